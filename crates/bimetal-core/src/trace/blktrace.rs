//! blktrace's binary recordings: `x.blktrace.N`, one for each processor, or one file merged by `blkparse -d`.
//!
//! Records in the byte order of the machine: u32 magic `0x65617407`, u32 sequence, u64 time (ns), u64 sector (512 B),
//! u32 bytes, u32 action, u32 pid, u32 device, u32 cpu, u16 error, u16 pdu_len, then pdu_len bytes of payload. Version 8
//! (`0x65617408`, `struct blk_io_trace2`) has pid before a u64 action and 12 bytes of padding: 64 bytes, not 48. The
//! low 16 bits of the action encode the step, the bits above them the kind of request. (Linux, blktrace_api.h.)
//!
//! Traps: each request has several records, of which one action is used (see [`super::block_action`]). Notes carry
//! payload, not requests. The files of one recording have to be merged by time.

use super::block_action::Steps;
use super::collect::Row;
use super::detect::{Likeness, Sample};
use super::error::{ErrorKind, Fault, Place, TraceError};
use super::{Action, Format, Input, Shared, Trace};
use crate::request::{Op, SECTOR_BYTES};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "blktrace",
    aliases: &[],
    summary: "blktrace binary, versions 7 and 8, either byte order",
    layout: "magic sequence time sector bytes action pid device cpu error pdu_len payload: nanoseconds, 512-byte sectors",
    time_unit: None,
    has_actions: true,
    has_objects: false,
    has_columns: false,
    shared: Shared::ClockAndDevices,
    probe,
    decode,
};

const MAGIC: u32 = 0x6561_7400;
const CATEGORY_SHIFT: u32 = 16;
const CATEGORY_WRITE: u64 = 1 << 1;
/// Packet commands, such as an inquiry: they have bytes, but no sector.
const CATEGORY_PACKET: u64 = 1 << 9;
const CATEGORY_NOTIFY: u64 = 1 << 10;
const CATEGORY_DISCARD: u64 = 1 << 13;
/// Flag in the low half of an action: the payload starts with the id of a control group.
const ACTION_CGROUP: u64 = 1 << 8;

/// One version's record layout.
struct Layout {
    length: usize,
    /// Reads the action, which version 8 widened.
    action: fn(&Record<'_>) -> u64,
    device_at: usize,
    payload_length_at: usize,
}

fn layout(version: u32) -> Option<Layout> {
    match version {
        7 => Some(Layout {
            length: 48,
            action: |record| u64::from(record.u32(28)),
            device_at: 36,
            payload_length_at: 46,
        }),
        8 => Some(Layout { length: 64, action: |record| record.u64(32), device_at: 40, payload_length_at: 50 }),
        _ => None,
    }
}

/// The fixed part of a record and its byte order.
struct Record<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl Record<'_> {
    fn get<const N: usize>(&self, at: usize) -> u64 {
        let mut value = [0; 8];
        value[..N].copy_from_slice(&self.bytes[at..at + N]);
        if self.big_endian {
            value[..N].reverse();
        }
        u64::from_le_bytes(value)
    }

    fn u16(&self, at: usize) -> u16 {
        self.get::<2>(at) as u16
    }

    fn u32(&self, at: usize) -> u32 {
        self.get::<4>(at) as u32
    }

    fn u64(&self, at: usize) -> u64 {
        self.get::<8>(at)
    }
}

/// Whether the file is big-endian, from its first magic number.
fn byte_order(bytes: &[u8]) -> Option<bool> {
    let magic = *bytes.first_chunk::<4>()?;
    let is_magic = |magic: u32| magic & !0xff == MAGIC;
    if is_magic(u32::from_le_bytes(magic)) {
        return Some(false);
    }
    is_magic(u32::from_be_bytes(magic)).then_some(true)
}

fn probe(sample: &Sample<'_>) -> Likeness {
    byte_order(sample.bytes).map_or(Likeness::No, |_| Likeness::Magic)
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let bytes = input.whole()?;
    let mut steps = Steps::new(input);
    let big_endian = byte_order(&bytes).unwrap_or(false);
    let mut rest = &bytes[..];
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let place = Place::Record { number, byte: (bytes.len() - rest.len()) as u64 };
        let truncated = || {
            let what = format!("the file ends within this record, after {} bytes of it", rest.len());
            input
                .error(ErrorKind::Truncated, what)
                .at(place)
                .with_hint("copy the file again; `blkparse` may cut it too")
        };
        let record = Record { bytes: rest, big_endian };
        if rest.len() < 4 {
            return Err(truncated());
        }
        let magic = record.u32(0);
        let Some(layout) = layout(magic & 0xff).filter(|_| magic & !0xff == MAGIC) else {
            let text = format!("{magic:#010x}");
            let what = "is not that of blktrace version 7 or 8";
            return Err(input.fault(place, *Fault::field(ErrorKind::Field, "magic", what, text.as_bytes())));
        };
        if rest.len() < layout.length {
            return Err(truncated());
        }
        let length = layout.length + usize::from(record.u16(layout.payload_length_at));
        if rest.len() < length {
            return Err(truncated());
        }
        if let Some((action, op)) = meaning((layout.action)(&record)).filter(|_| record.u32(24) > 0) {
            let pushed = steps.push(action, || request(&record, &layout, op));
            pushed.map_err(|fault| input.fault(place, *fault))?;
        }
        rest = &rest[length..];
    }
    steps.finish()
}

fn request(record: &Record<'_>, layout: &Layout, op: Op) -> Result<Row, Box<Fault>> {
    let sector = record.u64(16);
    let Some(offset) = sector.checked_mul(SECTOR_BYTES) else {
        let text = sector.to_string();
        return Err(Fault::field(ErrorKind::Range, "sector", "lies beyond 2^63 bytes", text.as_bytes()));
    };
    let device = u64::from(record.u32(layout.device_at));
    Ok(Row { time_ns: record.u64(8), device, offset, bytes: u64::from(record.u32(24)), op })
}

/// The step and operation of an action word, if it is a known step of a request.
fn meaning(action: u64) -> Option<(Action, Op)> {
    let category = action >> CATEGORY_SHIFT;
    if category & (CATEGORY_NOTIFY | CATEGORY_PACKET) != 0 {
        return None;
    }
    let step = match action & 0xffff & !ACTION_CGROUP {
        1 => Action::Queue,
        7 => Action::Issue,
        8 => Action::Complete,
        _ => return None,
    };
    let op = match category {
        _ if category & CATEGORY_DISCARD != 0 => Op::Trim,
        _ if category & CATEGORY_WRITE != 0 => Op::Write,
        _ => Op::Read,
    };
    Some((step, op))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_as;
    use super::super::{Options, decode as decode_any};
    use super::*;

    /// A record with a payload of `payload` bytes.
    fn record(
        version: u32,
        big_endian: bool,
        time: u64,
        sector: u64,
        bytes: u32,
        action: u64,
        payload: u16,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |value: u64, width: usize| {
            let le = value.to_le_bytes();
            out.extend(if big_endian { le[..width].iter().rev().copied().collect() } else { le[..width].to_vec() });
        };
        put(u64::from(MAGIC | version), 4);
        put(1, 4);
        put(time, 8);
        put(sector, 8);
        put(u64::from(bytes), 4);
        if version == 7 {
            put(action, 4);
            put(99, 4);
        } else {
            put(99, 4);
            put(action, 8);
        }
        put(8 << 20, 4);
        put(3, 4);
        put(0, 2);
        put(u64::from(payload), 2);
        if version == 8 {
            put(0, 8);
            put(0, 4);
        }
        out.extend(vec![0xaa; usize::from(payload)]);
        out
    }

    const READ: u64 = 1 << 16;
    const WRITE: u64 = 1 << 17;

    fn recording(version: u32, big_endian: bool) -> Vec<u8> {
        [
            record(version, big_endian, 0, 0, 0, CATEGORY_NOTIFY << 16, 16),
            record(version, big_endian, 1000, 64, 4096, 1 | WRITE, 0),
            record(version, big_endian, 1500, 64, 4096, 7 | WRITE, 0),
            record(version, big_endian, 2000, 8, 512, 1 | READ | ACTION_CGROUP, 8),
            record(version, big_endian, 2500, 0, 0, 1 | WRITE, 0), // a flush
            record(version, big_endian, 3000, 128, 65536, 1 | WRITE | CATEGORY_DISCARD << 16, 0),
        ]
        .concat()
    }

    #[test]
    fn both_versions_in_both_byte_orders() {
        for version in [7, 8] {
            for big_endian in [false, true] {
                let bytes = recording(version, big_endian);
                let trace = decode_any("t", &bytes, &Options::default()).unwrap();
                let got: Vec<_> = trace.requests.iter().map(|r| (r.arrival_ns, r.sector, r.sectors, r.op)).collect();
                assert_eq!(got, [(0, 64, 8, Op::Write), (1000, 8, 1, Op::Read), (2000, 128, 128, Op::Trim)]);
                assert_eq!((trace.format, trace.devices[0].id), ("blktrace", 8 << 20));
                let options = Options { action: Some(Action::Issue), ..Options::default() };
                assert_eq!(decode_any("t", &bytes, &options).unwrap().requests.len(), 1);
            }
        }
    }

    #[test]
    fn packet_commands_are_no_requests() {
        let packet = record(7, false, 4000, 0, 36, 7 | READ | CATEGORY_PACKET << CATEGORY_SHIFT, 8);
        let options = Options { action: Some(Action::Issue), ..Options::default() };
        let trace = decode_any("t", &[recording(7, false), packet].concat(), &options).unwrap();
        assert_eq!((trace.requests.len(), trace.writes), (1, 1));
    }

    #[test]
    fn a_cut_anywhere_is_an_error_or_a_shorter_trace() {
        let bytes = recording(7, false);
        let ends = [64, 112, 160, 216, 264, 312];
        for cut in 1..bytes.len() {
            let options = Options { format: Some(&FORMAT), ..Options::default() };
            match decode_any("t", &bytes[..cut], &options) {
                Ok(_) => assert!(ends.contains(&cut), "{cut}"),
                Err(error) if ends.contains(&cut) => {
                    assert_eq!(error.kind(), ErrorKind::NoRequests)
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Truncated, "{error}"),
            }
        }
        let error = decode_any("t", &bytes[..100], &Options::default()).unwrap_err();
        assert_eq!(error.place(), Place::Record { number: 2, byte: 64 });
    }

    #[test]
    fn a_bad_record_is_named() {
        let mut bytes = recording(7, false);
        bytes[112] = 0;
        let error = decode_any("t", &bytes, &Options::default()).unwrap_err();
        assert_eq!((error.place(), error.field()), (Place::Record { number: 3, byte: 112 }, "magic"));
        let far = record(7, true, 0, u64::MAX, 512, 1 | READ, 0);
        let error = decode_any("t", &far, &Options::default()).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Range, "sector"));
        assert_eq!(read_as(&FORMAT, &recording(8, true)).requests.len(), 3);
    }
}
