//! MSR Cambridge: one week of block I/O of 36 volumes on 13 servers, published by SNIA as CSV.
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: Windows FILETIME (100 ns since 1601) for the stamp and
//! the response, `Read` or `Write`, bytes. (SNIA IOTTA 387, README.)
//!
//! Traps: rows are not strictly in time order. A file with several hosts numbers its disks per host, so the device id
//! is the disk number plus 65,536 for each host that appeared earlier in the file.

use std::io::Write;

use super::collect::Row;
use super::detect::{self, Likeness, Sample};
use super::encode::WriteError;
use super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::lines::{self, Fields};
use super::numbering::Numbering;
use super::{Format, Input, Shared, TimeUnit, Trace};
use crate::request::{Op, SECTOR_BYTES};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "msr",
    aliases: &["msr-cambridge"],
    summary: "MSR Cambridge CSV (SNIA IOTTA 387)",
    layout: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime: 100-ns ticks, Read or Write, bytes",
    time_unit: Some(TimeUnit::HundredNanoseconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Clock,
    probe,
    decode,
};

const HEADER: &str = "timestamp,hostname,disknumber,type,offset,size,responsetime";

/// Upper limit of the disk numbers of one host.
const HOST_STRIDE: u64 = 1 << 16;

#[inline]
fn row(line: &[u8], unit: TimeUnit, hosts: &mut Numbering) -> Parsed<Option<Row>> {
    let mut fields = Fields::commas(line);
    let time_ns = fields.time("Timestamp", unit)?;
    let host = fields.next("Hostname")?;
    let disk = fields.whole("DiskNumber")?;
    if disk >= HOST_STRIDE {
        let text = disk.to_string();
        return Err(Fault::field(ErrorKind::Range, "DiskNumber", "is above 65535", text.as_bytes()));
    }
    let op = fields.letter("Type")?;
    let offset = fields.whole("Offset")?;
    let bytes = fields.whole("Size")?;
    fields.next("ResponseTime")?;
    fields.end()?;
    let host = written_host(host).unwrap_or_else(|| hosts.number(host));
    Ok(Some(Row { time_ns, device: host * HOST_STRIDE + disk, offset, bytes, op }))
}

/// The number of a host that [`encode_msr`] named, so that devices keep their ids and their order.
#[inline]
fn written_host(host: &[u8]) -> Option<u64> {
    match host.strip_prefix(b"trace")? {
        [] => Some(0),
        [b'-', number @ ..] => lines::whole(number, "").ok().filter(|&number| number <= u64::MAX / HOST_STRIDE),
        _ => None,
    }
}

fn probe(sample: &Sample<'_>) -> Likeness {
    detect::probe(sample, HEADER, |line| row(line, TimeUnit::HundredNanoseconds, &mut Numbering::default()))
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    let mut hosts = Numbering::default();
    let mut collector = lines::decode(input, HEADER, |line| row(line, unit, &mut hosts))?;
    if let (Some(first), Some(second)) = (hosts.name(0), hosts.name(1)) {
        collector.warn(format!(
            "{} hosts: device ids are the disk number of `{}`, 65536 + that of `{}`, and so on",
            hosts.count(),
            first.escape_ascii(),
            second.escape_ascii()
        ));
    }
    collector.finish(input)
}

/// Writes a trace as MSR CSV: one disk for each device, times on the source's clock, cut off to 100 ns. Device 65536·h + d
/// is disk d of host h, like those of a file that is read; host 0 is `trace`.
///
/// # Errors
/// [`ErrorKind::Inexpressible`] for a trace with trims, which the format lacks.
pub fn encode_msr(trace: &Trace, out: &mut dyn Write) -> Result<(), WriteError> {
    super::encode::text(trace, out, "MSR CSV", |line, device, request| {
        let op = if request.op == Op::Read { "Read" } else { "Write" };
        let ticks = trace.origin_ns.saturating_add(request.arrival_ns) / 100;
        let offset = (request.sector - device.base_sector) * SECTOR_BYTES;
        write!(line, "{ticks},trace")?;
        if device.id >= HOST_STRIDE {
            write!(line, "-{}", device.id / HOST_STRIDE)?;
        }
        writeln!(line, ",{},{op},{offset},{},0", device.id % HOST_STRIDE, request.bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::super::encode::encoded;
    use super::super::testing::{fault_of, read_as};
    use super::*;

    const LINES: &str = "128166385295514663,hm,0,Write,9056014336,2048,2833\n\
                         128166385295514878,hm,1,Read,11855351808,512,2617\n";

    #[test]
    fn the_published_syntax() {
        for text in [LINES.to_owned(), format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{LINES}")]
        {
            let trace = read_as(&FORMAT, text.as_bytes());
            assert_eq!((trace.requests[0].sector, trace.requests[0].sectors), (9_056_014_336 / 512, 4));
            assert_eq!(trace.duration_ns(), 21_500);
            assert_eq!(trace.devices.iter().map(|device| device.id).collect::<Vec<_>>(), [0, 1]);
            assert_eq!(trace.origin_ns, 12_816_638_529_551_466_300);
        }
    }

    #[test]
    fn hosts_number_their_own_disks() {
        let trace = read_as(&FORMAT, b"1,hm,0,Read,0,512,1\n2,prn,0,Read,0,512,1\n3,hm,1,Read,0,512,1\n");
        assert_eq!(trace.devices.iter().map(|device| device.id).collect::<Vec<_>>(), [0, 1, 65536]);
        assert!(trace.warnings[0].starts_with("2 hosts"), "{:?}", trace.warnings);
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("1,hm,0,Trim,0,512,1", "Type", "is neither read nor write"),
            ("1,hm,0,Read,0,-512,1", "Size", "is negative"),
            ("1,hm,x,Read,0,512,1", "DiskNumber", "is not a whole number"),
            ("1,hm,65536,Read,0,512,1", "DiskNumber", "is above 65535"),
            ("1,hm,0,Read,0,512", "ResponseTime", "is missing"),
            ("1,hm,0,Read,0,512,1,2", "", "too many fields"),
            ("1,hm,0,Read,18446744073709551615,512,1", "offset + size", "lies beyond 2^63 bytes"),
            ("1,hm,0,Read,18446744073709551616,512,1", "Offset", "does not fit 64 bits"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }

    #[test]
    fn line_4711_is_line_4711() {
        fault_of(&FORMAT, &LINES.repeat(2355), "1,hm,0,Read,0,oops,1", "Size", "line 4711: field `Size`");
    }

    #[test]
    fn devices_keep_their_numbers() {
        let text = b"131072,0,4096,w,0\n0,8,512,w,1\n65536,0,4096,r,2\n";
        let trace = super::super::decode("t", text, &super::super::Options::default()).unwrap();
        let again = read_as(&FORMAT, &encoded(encode_msr, &trace).unwrap());
        assert_eq!((again.devices, again.requests), (trace.devices, trace.requests));
    }

    #[test]
    fn what_is_written_reads_back() {
        let of_two_hosts = format!("{LINES}128166385295514879,prn,1,Read,0,512,0\n");
        for lines in [LINES, &of_two_hosts] {
            let trace = read_as(&FORMAT, lines.as_bytes());
            let mut again = read_as(&FORMAT, &encoded(encode_msr, &trace).unwrap());
            again.warnings.clone_from(&trace.warnings);
            assert_eq!(again, trace);
        }
    }
}
