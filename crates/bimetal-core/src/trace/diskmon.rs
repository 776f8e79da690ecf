//! DiskMon: logs of Sysinternals' monitor of a Windows PC's disks, with which *`ComboFTL`* and *WLAFTL* took their traces.
//!
//! `number seconds duration disk Read|Write sector sectors`, separated by tabs. Some logs have a header line that
//! begins with `#`. Seconds count from the start of the log, and sectors have 512 bytes. (Layout from the logs of
//! `ZhouHeyu/SimulationTrace`.)
//!
//! Traps: several requests share a time stamp, because the clock of old versions ticks every 1 to 16 ms. A log may
//! contain sectors beyond the end of any disk, where the monitor did not know the request. Such a line is an error and
//! has to be deleted.

use super::collect::Row;
use super::detect::{self, Likeness, Sample};
use super::error::{Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "diskmon",
    aliases: &[],
    summary: "Sysinternals DiskMon logs of Windows disks",
    layout: "number time duration disk request sector length: seconds, Read or Write, 512-byte sectors",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

#[inline]
fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
    let mut fields = Fields::blanks(line);
    fields.whole("number")?;
    let time_ns = fields.time("time", unit)?;
    fields.time("duration", TimeUnit::Seconds)?;
    let device = fields.whole("disk")?;
    let op = fields.letter("request")?;
    let offset = fields.sectors("sector")?;
    let bytes = fields.sectors("length")?;
    fields.end()?;
    Ok(Some(Row { time_ns, device, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    detect::probe(sample, "", |line| row(line, TimeUnit::Seconds))
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    lines::decode(input, "", |line| row(line, unit))?.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_of, read_as};
    use super::*;
    use crate::request::Op;
    use crate::trace;

    /// The first lines of `pc-a.txt` of ZhouHeyu/SimulationTrace, and one of `system-disk.txt`.
    const LINES: &str = "0\t4.656875\t0.00003815\t0\tWrite\t6194591\t32\r\n1\t4.656875\t0.00003815\t0\tWrite\t6164511\t8\r\n\
                         2\t5.204653\t0.02491951\t0\tRead\t632736\t24\t\r\n";

    #[test]
    fn a_log_of_a_pc() {
        for text in [LINES.to_owned(), format!("#\tTime\tDuration (s)\tDisk\tRequest\tSector\tLength\r\n{LINES}")] {
            let trace = trace::decode("t", text.as_bytes(), &trace::Options::default()).unwrap();
            assert_eq!((trace.format, trace.requests.len()), ("diskmon", 3));
            assert_eq!((trace.requests[0].sector, trace.requests[0].sectors), (6_194_591, 32));
            assert_eq!((trace.requests[2].op, trace.duration_ns()), (Op::Read, 547_778_000));
            assert_eq!((trace.write_bytes, trace.read_bytes), (40 * 512, 24 * 512));
        }
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("3\t5.3\t0.1\t0\tFlush\t8\t8", "request", "is neither read nor write"),
            ("3\t5.3\t0.1\t0\tWrite\t8", "length", "is missing"),
            ("3\t5.3\t0.1\t0\tWrite\t8486082789636758048\t2742488", "sector", "lies beyond 2^63 bytes"),
            ("3\t5.3\t0.1\t0\tWrite\t8\t8\t9", "", "too many fields"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
        assert_eq!(read_as(&FORMAT, LINES.as_bytes()).devices[0].requests, 3);
    }
}
