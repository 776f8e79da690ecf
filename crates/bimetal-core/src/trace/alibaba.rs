//! Alibaba Block Traces (2020): 1,000 virtual disks over a month.
//!
//! `device_id,opcode,offset,length,timestamp`: `R` or `W`, bytes, microseconds of the Unix epoch. (alibaba/block-traces,
//! README.)
//!
//! Traps: the time is the last field; each device is a separate address space.

use super::collect::Row;
use super::detect::{self, Likeness, Sample};
use super::error::{Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "alibaba",
    aliases: &[],
    summary: "Alibaba Block Traces CSV (2020)",
    layout: "device_id,opcode,offset,length,timestamp: R or W, bytes, microseconds",
    time_unit: Some(TimeUnit::Microseconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::ClockAndDevices,
    probe,
    decode,
};

const HEADER: &str = "device_id,opcode,offset,length,timestamp";

#[inline]
fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
    let mut fields = Fields::commas(line);
    let device = fields.whole("device_id")?;
    let op = fields.letter("opcode")?;
    let offset = fields.whole("offset")?;
    let bytes = fields.whole("length")?;
    let time_ns = fields.time("timestamp", unit)?;
    fields.end()?;
    Ok(Some(Row { time_ns, device, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    detect::probe(sample, HEADER, |line| row(line, TimeUnit::Microseconds))
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    lines::decode(input, HEADER, |line| row(line, unit))?.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_of, read_as};
    use super::*;

    const LINES: &str = "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n";

    #[test]
    fn the_published_syntax() {
        let trace = read_as(&FORMAT, LINES.as_bytes());
        assert_eq!((trace.reads, trace.write_bytes, trace.duration_ns()), (1, 16_384, 46_000));
        assert_eq!(trace.devices.iter().map(|device| device.id).collect::<Vec<_>>(), [419, 725]);
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("1,T,0,512,1", "opcode", "is neither read nor write"),
            ("1,R,0,-512,1", "length", "is negative"),
            ("1,R,0,512", "timestamp", "is missing"),
            ("1,R,9223372036854775807,512,1", "offset + size", "lies beyond 2^63 bytes"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }
}
