//! vscsi: the SCSI traces of CloudPhysics' virtual machines, versions 1 and 2, little-endian.
//!
//! Version 1, 32 bytes: u32 serial, u32 bytes, u32 scatter-gather entries, u16 command, u16 version, u64 block (512 B),
//! u64 time (us). Version 2, 40 bytes: u16 command, u16 version, u32 serial, u32 bytes, u32 entries, u64 block, u64 time,
//! u64 response time. The high byte of `version` is 1 or 2. (libCacheSim, vscsi.h.)
//!
//! Traps: the command is a SCSI operation code, with four codes each for reads and writes. Commands that move no data
//! are left out. Blocks need not be aligned to 4 KiB. Unmap carries its extents in the data, so it cannot be replayed.

use super::collect::{Collector, Row, count};
use super::detect::{Likeness, Sample};
use super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::lines::time_of_whole;
use super::records;
use super::{Format, Input, Shared, TimeUnit, Trace};
use crate::request::{Op, SECTOR_BYTES};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "vscsi",
    aliases: &["cloudphysics"],
    summary: "CloudPhysics vscsi binary, versions 1 and 2",
    layout: "serial bytes entries command version block time [response]: 512-byte blocks, microseconds",
    time_unit: Some(TimeUnit::Microseconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

/// Number of records that detection checks.
const SAMPLE_RECORDS: usize = 100;

/// Offsets of a version's fields.
struct Layout {
    length: usize,
    bytes_at: usize,
    command_at: usize,
    version_at: usize,
    block_at: usize,
    time_at: usize,
    version: u8,
}

const LAYOUTS: [Layout; 2] = [
    Layout { length: 32, bytes_at: 4, command_at: 12, version_at: 14, block_at: 16, time_at: 24, version: 1 },
    Layout { length: 40, bytes_at: 8, command_at: 0, version_at: 2, block_at: 16, time_at: 24, version: 2 },
];

fn field<const N: usize>(record: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value[..N].copy_from_slice(&record[at..at + N]);
    u64::from_le_bytes(value)
}

impl Layout {
    fn fits(&self, record: &[u8]) -> bool {
        field::<2>(record, self.version_at) >> 8 == u64::from(self.version) && field::<2>(record, self.command_at) < 256
    }

    #[inline]
    fn row(&self, record: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
        if !self.fits(record) {
            let text = format!("{:#06x}", field::<2>(record, self.version_at));
            return Err(Fault::field(ErrorKind::Field, "version", "is not that of the first record", text.as_bytes()));
        }
        let Some(op) = operation(field::<2>(record, self.command_at)) else {
            return Ok(None);
        };
        let block = field::<8>(record, self.block_at);
        let Some(offset) = block.checked_mul(SECTOR_BYTES) else {
            let text = block.to_string();
            return Err(Fault::field(ErrorKind::Range, "block", "lies beyond 2^63 bytes", text.as_bytes()));
        };
        let time_ns = time_of_whole(field::<8>(record, self.time_at), "time", unit)?;
        Ok(Some(Row { time_ns, device: 0, offset, bytes: field::<4>(record, self.bytes_at), op }))
    }
}

/// READ and WRITE of 6, 10, 12 and 16 bytes, and WRITE AND VERIFY.
pub(super) fn operation(command: u64) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Some(Op::Write),
        _ => None,
    }
}

/// The layout whose version and command are valid in all of the first records, with at least one read or write among
/// them.
fn layout(bytes: &[u8]) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| {
        let records = || bytes.chunks_exact(layout.length).take(SAMPLE_RECORDS);
        let is_request = |record: &[u8]| operation(field::<2>(record, layout.command_at)).is_some();
        records().all(|record| layout.fits(record)) && records().any(is_request)
    })
}

fn probe(sample: &Sample<'_>) -> Likeness {
    layout(sample.bytes).map_or(Likeness::No, |_| Likeness::Magic)
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let first_fits = |layout: &&Layout| input.start.get(..layout.length).is_some_and(|record| layout.fits(record));
    let Some(layout) = layout(input.start).or_else(|| LAYOUTS.iter().find(first_fits)) else {
        let kind = if input.start.len() < LAYOUTS[0].length { ErrorKind::Truncated } else { ErrorKind::Field };
        let what = "the first record has no known vscsi version";
        return Err(input.error(kind, what).with_hint("a record has 32 (version 1) or 40 bytes (version 2)"));
    };
    let unit = input.time_unit();
    let mut collector = Collector::new(input.options, input.expected_length / layout.length as u64);
    let mut others = 0u64;
    records::each(input, 0, layout.length, |record| {
        let row = layout.row(record, unit)?;
        others += u64::from(row.is_none());
        row.map_or(Ok(()), |row| collector.push(&row))?;
        Ok(collector.flow())
    })?;
    if others > 0 {
        collector.warn(format!("{} other than reads and writes left out", count(others, "SCSI command")));
    }
    collector.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Place, decode as decode_any};
    use super::*;

    fn v1(command: u16, bytes: u32, block: u64, time: u64) -> Vec<u8> {
        let mut record = Vec::new();
        for word in [7, bytes, 1] {
            record.extend(u32::to_le_bytes(word));
        }
        record.extend(command.to_le_bytes());
        record.extend(0x0100u16.to_le_bytes());
        record.extend(block.to_le_bytes());
        record.extend(time.to_le_bytes());
        record
    }

    fn v2(command: u16, bytes: u32, block: u64, time: u64) -> Vec<u8> {
        let mut record = Vec::new();
        record.extend(command.to_le_bytes());
        record.extend(0x0200u16.to_le_bytes());
        for word in [7, bytes, 1] {
            record.extend(u32::to_le_bytes(word));
        }
        for word in [block, time, 55] {
            record.extend(u64::to_le_bytes(word));
        }
        record
    }

    #[test]
    fn both_versions() {
        for make in [v1, v2] {
            let bytes =
                [make(0x2a, 512, 42_932_745, 5_631_000), make(0x88, 8192, 8, 5_631_005), make(0, 0, 0, 0)].concat();
            let trace = decode_any("t", &bytes, &Options::default()).unwrap();
            assert_eq!((trace.format, trace.reads, trace.writes), ("vscsi", 1, 1));
            assert_eq!((trace.requests[0].sector, trace.requests[1].sectors), (42_932_745, 16));
            assert_eq!(trace.duration_ns(), 5000);
            assert!(trace.warnings[0].starts_with("1 SCSI command other"));
        }
    }

    #[test]
    fn truncated_and_mixed_files_are_errors() {
        let bytes = [v1(0x2a, 512, 1, 1), v1(0x28, 512, 1, 2)].concat();
        let error = decode_any("t", &bytes[..63], &Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated);
        assert_eq!(error.place(), Place::Record { number: 2, byte: 32 });
        let options = Options { format: Some(&FORMAT), ..Options::default() };
        assert_eq!(decode_any("t", &bytes[..5], &options).unwrap_err().kind(), ErrorKind::Truncated);
        let mixed = [bytes.clone(), v2(0x2a, 512, 1, 3)].concat();
        let error = decode_any("t", &mixed, &options).unwrap_err();
        assert_eq!((error.field(), error.place()), ("version", Place::Record { number: 3, byte: 64 }));
        let far = v1(0x2a, 512, u64::MAX, 1);
        let error = decode_any("t", &far, &Options::default()).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Range, "block"));
    }
}
