//! Tencent Cloud Block Storage, published by SNIA as CSV.
//!
//! `Timestamp,Offset,Size,IOType,VolumeID`: whole seconds of the Unix epoch, 512-byte sectors, 0 for a read and 1 for a
//! write. (SNIA IOTTA 27917, README.)
//!
//! Traps: time stamps have a resolution of one second, so bursts within a second are lost. Thousands of volumes share a
//! file, each with a separate address space. Rows are not quite in time order.

use super::collect::Row;
use super::detect::{self, Likeness, Sample};
use super::error::{Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "tencent",
    aliases: &["tencent-cbs"],
    summary: "Tencent Cloud Block Storage CSV (SNIA IOTTA 27917)",
    layout: "Timestamp,Offset,Size,IOType,VolumeID: seconds, 512-byte sectors, 0 = read, 1 = write",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::ClockAndDevices,
    probe,
    decode,
};

const HEADER: &str = "timestamp,offset,size,iotype,volumeid";

#[inline]
fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
    let mut fields = Fields::commas(line);
    let time_ns = fields.time("Timestamp", unit)?;
    let offset = fields.sectors("Offset")?;
    let bytes = fields.sectors("Size")?;
    let op = fields.digit("IOType", b'0')?;
    let device = fields.whole("VolumeID")?;
    fields.end()?;
    Ok(Some(Row { time_ns, device, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    // Any five numbers would fit. The seconds since 1970 have ten digits.
    let is_date = |line: &[u8]| line.iter().take_while(|byte| byte.is_ascii_digit()).count() >= 10;
    let likeness = detect::probe(sample, HEADER, |line| row(line, TimeUnit::Seconds));
    let is_sure = likeness == Likeness::Header || sample.lines().next().is_some_and(|(_, line)| is_date(line));
    if is_sure { likeness } else { Likeness::No }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    lines::decode(input, HEADER, |line| row(line, unit))?.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::error::ErrorKind;
    use super::super::testing::{fault_of, read_as};
    use super::*;
    use crate::request::Op;

    const LINES: &str = "1538323200,4247200,128,1,1058\n1538323199,13896880,128,0,1063\n";

    #[test]
    fn the_published_syntax() {
        let trace = read_as(&FORMAT, LINES.as_bytes());
        assert_eq!((trace.requests[0].op, trace.requests[1].op), (Op::Read, Op::Write));
        assert_eq!((trace.read_bytes, trace.duration_ns()), (65_536, 1_000_000_000));
        assert_eq!(trace.devices.iter().map(|device| device.id).collect::<Vec<_>>(), [1058, 1063]);
    }

    #[test]
    fn five_numbers_without_a_date_are_not_recognised() {
        let any = b"0,4096,8192,1,0\n1,8192,4096,0,0\n";
        assert_eq!(detect::detect("t", any).unwrap_err().kind(), ErrorKind::Undetected);
        assert_eq!(detect::detect("t", LINES.as_bytes()).unwrap().name, "tencent");
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("1538323200,0,8,2,1", "IOType", "is neither `0` nor `1`"),
            ("1538323200,0,8,1", "VolumeID", "is missing"),
            ("1538323200,-8,8,1,1", "Offset", "is negative"),
            ("1538323200,36028797018963968,8,1,1", "Offset", "lies beyond 2^63 bytes"),
            ("99999999999,0,8,1,1", "Timestamp", "does not fit"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }
}
