//! oracleGeneral: the format in which libCacheSim and the collection `cacheMon/cache_dataset` publish cache traces.
//!
//! 24 bytes for each request, little-endian: u32 seconds, u64 id of the object, u32 bytes, i64 number of the next
//! access to the same object, from 1, or -1 (or the maximum) for none. With operations, `oracleGeneralOpNS`, 27 bytes:
//! u8 operation and u16 name space after the bytes. (libCacheSim, oracleGeneralBin.h.)
//!
//! Traps: the plain format has no operations. The id is a hash of a key, or the address of a block in disk traces.
//! There is no magic number: detection checks that accesses name the next access to the same object.

use super::super::detect::{Likeness, Sample};
use super::super::error::TraceError;
use super::super::{Format, Input, Shared, TimeUnit, Trace};
use super::record::{Layout, PLAIN};

/// The format's entry in [`FORMATS`](crate::trace::FORMATS).
pub static FORMAT: Format = Format {
    name: "oracleGeneral",
    aliases: &["oracle-general"],
    summary: "libCacheSim's oracleGeneral binary, and oracleGeneralOpNS with operations",
    layout: "time id size [op namespace] next: seconds, an object's id, bytes, libCacheSim's operations",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: true,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

const WITH_OPERATIONS: Layout = Layout { length: 27, size_bytes: 4, tenant_bytes: Some(2) };

/// Number of records that detection checks.
const SAMPLE_RECORDS: usize = 100;

/// Upper limit of access numbers.
const ACCESS_END: u64 = 1 << 40;

/// Whether the first records are in time order, and the next access that each names is to the same object or beyond the
/// end of the file.
fn fits(layout: &Layout, bytes: &[u8]) -> bool {
    let record = |at: u64| {
        let start = usize::try_from(at).ok()?.checked_mul(layout.length)?;
        bytes.get(start..start.checked_add(layout.length)?)
    };
    let names_next = |at: u64, this: &[u8]| match layout.next(this) {
        u64::MAX => true,
        next if next == i64::MAX as u64 => true,
        next if next <= at || next >= ACCESS_END => false,
        // Numbered from 1; in files of early versions from 0.
        next => {
            let same = |other: u64| other > at && record(other).is_none_or(|other| layout.id(other) == layout.id(this));
            same(next) || same(next - 1)
        }
    };
    let first = bytes.chunks_exact(layout.length).take(SAMPLE_RECORDS);
    let mut last = 0;
    first.len() > 0
        && first.zip(0u64..).all(|(this, at)| {
            let in_order = last <= layout.seconds(this);
            last = layout.seconds(this);
            in_order && layout.size(this) < 1 << 31 && names_next(at, this)
        })
}

fn layout(bytes: &[u8]) -> Option<&'static Layout> {
    [&PLAIN, &WITH_OPERATIONS].into_iter().find(|layout| fits(layout, bytes))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    layout(sample.bytes).map_or(Likeness::No, |_| Likeness::All)
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    Ok(layout(input.start).unwrap_or(&PLAIN).decode(input, 0)?.0)
}

#[cfg(test)]
mod tests {
    use super::super::super::error::{ErrorKind, Place};
    use super::super::super::{self as trace, Options};
    use super::*;
    use crate::request::Op;

    fn record(seconds: u32, id: u64, bytes: u32, op: Option<u8>, next: i64) -> Vec<u8> {
        let mut record = seconds.to_le_bytes().to_vec();
        record.extend(id.to_le_bytes());
        record.extend(bytes.to_le_bytes());
        if let Some(op) = op {
            record.extend([op, 1, 0]);
        }
        record.extend(next.to_le_bytes());
        record
    }

    /// The first three requests of libCacheSim's cloudPhysicsIO as in its file, and the first again.
    fn sample() -> Vec<u8> {
        [
            record(5_633_898, 42_932_745, 512, None, 4),
            record(5_633_898, 42_932_746, 512, None, -1),
            record(5_633_898, 40_409_911, 6656, None, i64::MAX),
            record(5_633_899, 42_932_745, 512, None, -1),
        ]
        .concat()
    }

    fn read(bytes: &[u8], objects: &str) -> Trace {
        let objects = (!objects.is_empty()).then(|| objects.parse().unwrap());
        trace::decode("t", bytes, &Options { objects, ..Options::default() }).unwrap()
    }

    fn places(trace: &Trace) -> Vec<(Op, u64, u32)> {
        trace.requests.iter().map(|request| (request.op, request.sector, request.sectors)).collect()
    }

    #[test]
    fn an_object_has_a_slot_by_its_first_appearance() {
        let trace = read(&sample(), "");
        assert_eq!((trace.format, trace.duration_ns(), trace.reads), ("oracleGeneral", 1_000_000_000, 4));
        assert_eq!(places(&trace), [(Op::Read, 0, 1), (Op::Read, 1, 1), (Op::Read, 2, 13), (Op::Read, 0, 1)]);
        assert!(trace.warnings.iter().any(|warning| warning.contains("`--objects sectors`")), "{:?}", trace.warnings);
        assert!(trace.warnings.iter().any(|warning| warning.contains("`--objects insert`")), "{:?}", trace.warnings);
    }

    #[test]
    fn an_id_can_be_an_address_and_a_first_access_a_write() {
        let trace = read(&sample(), "sectors,insert");
        assert_eq!(trace.requests[2].sector, 40_409_911);
        assert_eq!(
            places(&trace).iter().map(|place| place.0).collect::<Vec<_>>(),
            [Op::Write, Op::Write, Op::Write, Op::Read]
        );
        assert_eq!(trace.warnings, [""; 0]);
    }

    #[test]
    fn operations_are_those_of_the_variant_that_has_them() {
        let bytes = [
            record(7, u64::MAX, 100, Some(3), 3),
            record(7, 5, 512, Some(1), -1),
            record(8, u64::MAX, 1000, Some(13), 4),
            record(9, u64::MAX, 0, Some(9), -1),
        ]
        .concat();
        let trace = read(&bytes, "");
        assert_eq!(places(&trace), [(Op::Write, 0, 1), (Op::Read, 2, 1), (Op::Write, 0, 2), (Op::Trim, 0, 2)]);
        assert_eq!((trace.write_bytes, trace.trims), (1100, 1));
        let mut wrong = bytes.clone();
        wrong[27 + 16] = 77;
        let error = trace::decode("t", &wrong, &Options::default()).unwrap_err();
        assert_eq!((error.field(), error.place()), ("op", Place::Record { number: 2, byte: 27 }), "{error}");
    }

    #[test]
    fn faults_name_the_record() {
        let bytes = sample();
        let error = trace::decode("t", &bytes[..60], &Options::default()).unwrap_err();
        assert_eq!((error.kind(), error.place()), (ErrorKind::Truncated, Place::Record { number: 3, byte: 48 }));
        let objects = Some("4kib".parse().unwrap());
        let far = record(7, u64::MAX, 100, None, -1);
        let error = trace::decode("t", &far, &Options { objects, ..Options::default() }).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Range, "id"));
        let options = Options { objects, format: Some(trace::format("spc").unwrap()), ..Options::default() };
        let error = trace::decode("t", b"0,8,4096,r,0.5\n", &options).unwrap_err();
        assert!(error.to_string().contains("`--objects` does not apply to format `spc`"), "{error}");
    }

    #[test]
    fn accesses_that_name_another_object_next_are_of_no_such_trace() {
        for next in [0, 1, -2, 1 << 40] {
            let bytes = [record(1, 7, 512, None, next), record(1, 8, 512, None, -1)].concat();
            assert_eq!(probe(&Sample::new(&bytes)), Likeness::No, "{next}");
        }
        let beyond = [record(1, 7, 512, None, 3), record(1, 8, 512, None, -1)].concat();
        assert_eq!(probe(&Sample::new(&beyond)), Likeness::All, "the start of a trace");
    }
}
