//! The ASCII format of trace replayers, such as those of Heimdall and LinnOS.
//!
//! `time device offset size op`: decimal milliseconds, **bytes** for offset and size, 1 for a read and 0 for a write.
//!
//! Trap: it has DiskSim's columns but counts bytes, not 512-byte blocks; detection distinguishes them by the values.

use super::collect::Row;
use super::columns::{self, Reading};
use super::detect::{self, Likeness, Sample};
use super::error::{Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "replayer",
    aliases: &[],
    summary: "trace replayers' ASCII (Heimdall, LinnOS)",
    layout: "time device offset size op: milliseconds, bytes, 1 = read, 0 = write",
    time_unit: Some(TimeUnit::Milliseconds),
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
    let time_ns = fields.time("time", unit)?;
    let device = fields.whole("device")?;
    let offset = fields.whole("offset")?;
    let bytes = fields.whole("size")?;
    let op = fields.digit("op", b'1')?;
    fields.end()?;
    Ok(Some(Row { time_ns, device, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    if !columns::allow(sample, Reading::MillisecondsAndBytes) {
        return Likeness::No;
    }
    detect::probe(sample, "", |line| row(line, TimeUnit::Milliseconds))
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    lines::decode(input, "", |line| row(line, unit))?.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_of, read_as};
    use super::*;
    use crate::request::{Op, Request};

    const LINES: &str = "0.000 0 200626176 4096 0\n223.412 0 3159347200 36864 1\n";

    #[test]
    fn the_published_syntax() {
        let trace = read_as(&FORMAT, LINES.as_bytes());
        let second =
            Request { arrival_ns: 223_412_000, sector: 3_159_347_200 / 512, sectors: 72, op: Op::Read, handle: 0 };
        assert_eq!(trace.requests[1], second);
        assert_eq!((trace.read_bytes, trace.write_bytes), (36_864, 4096));
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("1.5 0 0 512 r", "op", "is neither `0` nor `1`"),
            ("1.5 0 0 5.12 1", "size", "is not a whole number"),
            ("1.5 0 -512 512 1", "offset", "is negative"),
            ("1.5 0 0 512", "op", "is missing"),
            ("1.5 0 18446744073709551104 512 1", "offset + size", "lies beyond 2^63"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }
}
