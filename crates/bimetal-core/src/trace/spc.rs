//! SPC: the trace format of the Storage Performance Council, in which the UMass repository publishes Financial1,
//! Financial2 and WebSearch1-3.
//!
//! `ASU,LBA,Size,Opcode,Timestamp[,...]`: application storage unit, address in 512-byte blocks, size in bytes, `r` or
//! `w` in either case, seconds from the start as a decimal. (SPC Trace File Format Specification 1.0.1: blanks around
//! fields are allowed, and so are further fields.)
//!
//! Traps: each ASU is a separate address space; sizes need not be multiples of 512 bytes.

use std::io::Write;

use super::collect::Row;
use super::detect::{self, Likeness, Sample};
use super::encode::WriteError;
use super::error::{Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};
use crate::request::{Op, SECTOR_BYTES};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "spc",
    aliases: &["umass"],
    summary: "SPC trace file format 1.0.1 (UMass Financial, WebSearch)",
    layout: "ASU,LBA,Size,Opcode,Timestamp: 512-byte blocks, bytes, r or w, seconds",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

const HEADER: &str = "asu,lba,size,opcode,timestamp";

/// Number of requests from which on as many devices are no coincidence.
const MANY_REQUESTS: usize = 20;

#[inline]
fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
    let mut fields = Fields::commas(line);
    let device = fields.whole("ASU")?;
    let offset = fields.sectors("LBA")?;
    let bytes = fields.whole("Size")?;
    let op = fields.letter("Opcode")?;
    let time_ns = fields.time("Timestamp", unit)?;
    Ok(Some(Row { time_ns, device, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    detect::probe(sample, HEADER, |line| row(line, TimeUnit::Seconds))
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    let mut trace = lines::decode(input, HEADER, |line| row(line, unit))?.finish(input)?;
    let requests = trace.requests.len();
    if input.options.format.is_none() && requests >= MANY_REQUESTS && 2 * trace.devices.len() > requests {
        let what =
            "nearly every request has a first field (ASU) of its own: if it is a time, use `--format csv --columns`";
        trace.warnings.push(what.to_owned());
    }
    Ok(trace)
}

/// Writes a trace in SPC syntax: one ASU for each device, addresses within the device, times to the nanosecond.
///
/// # Errors
/// [`super::ErrorKind::Inexpressible`] for a trace with trims, which the format lacks.
pub fn encode_spc(trace: &Trace, out: &mut dyn Write) -> Result<(), WriteError> {
    super::encode::text(trace, out, "SPC", |line, device, request| {
        let op = if request.op == Op::Read { 'r' } else { 'w' };
        let (seconds, ns) = (request.arrival_ns / 1_000_000_000, request.arrival_ns % 1_000_000_000);
        let sector = request.sector - device.base_sector;
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        writeln!(line, "{},{sector},{bytes},{op},{seconds}.{ns:09}", device.id)
    })
}

#[cfg(test)]
mod tests {
    use super::super::encode::encoded;
    use super::super::error::ErrorKind;
    use super::super::testing::{fault_of, read_as};
    use super::*;
    use crate::request::Request;

    #[test]
    fn the_published_syntax() {
        let trace = read_as(&FORMAT, b"0,303567,3584,w,0.000000\n1,55590,3072,R,0.026214, extra\n0, 303574,3584,W,1\n");
        let first = Request { arrival_ns: 0, sector: 303_567, sectors: 7, op: Op::Write, handle: 0 };
        assert_eq!(trace.requests[0], first);
        assert_eq!((trace.requests[1].arrival_ns, trace.requests[1].op), (26_214_000, Op::Read));
        assert_eq!((trace.reads, trace.writes, trace.write_bytes), (1, 2, 7168));
    }

    #[test]
    fn a_device_for_each_request_is_doubted() {
        let text = |devices: u64| -> String { (0..40).map(|i| format!("{},8,4096,W,1\n", i % devices)).collect() };
        let warnings = |devices| {
            super::super::decode("t", text(devices).as_bytes(), &super::super::Options::default()).unwrap().warnings
        };
        let is_doubt = |warning: &String| warning.contains("if it is a time, use");
        assert!(warnings(40).iter().any(is_doubt) && !warnings(20).iter().any(is_doubt));
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("0,1,512,x,0", "Opcode", "is neither read nor write"),
            ("0,1,512,rw,0", "Opcode", "is neither read nor write"),
            ("-1,1,512,r,0", "ASU", "is negative"),
            ("0,1e3,512,r,0", "LBA", "is not a whole number"),
            ("0,36028797018963968,512,r,0", "LBA", "lies beyond 2^63 bytes"),
            ("0,1,512,r", "Timestamp", "is missing"),
            ("0,1,512,r,soon", "Timestamp", "is not a decimal number"),
        ] {
            fault_of(&FORMAT, "0,1,512,r,0\n", line, field, what);
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let trace = read_as(&FORMAT, b"0,1,512,w,0.000000001\n5,7,1024,r,3.5\n");
        let mut again = read_as(&FORMAT, &encoded(encode_spc, &trace).unwrap());
        again.origin_ns = trace.origin_ns;
        assert_eq!(again, trace);
        let mut trims = trace;
        trims.trims = 1;
        assert_eq!(encoded(encode_spc, &trims).unwrap_err().kind(), ErrorKind::Inexpressible);
    }
}
