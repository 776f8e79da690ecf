//! lcs: libCacheSim's own format since 2024, versions 1 to 8.
//!
//! A header of 8,192 bytes: u64 magic, u64 version, 8,000 bytes of statistics (the second i64 is the number of
//! requests), zeros, u64 magic. Then records, little-endian. Version 1: u32 seconds, u64 id, u32 bytes, i64 next
//! access. Version 2 has u8 operation and u24 tenant after the bytes. Version 3 has i64 bytes, and u32 life after the
//! tenant; versions 4 to 8 add 1, 2, 4, 8, 16 features of 4 bytes. (libCacheSim, lcs.h.)
//!
//! Traps: as for [`oracle_general`](super::oracle_general). Each tenant, or each volume in disk traces, has separate
//! ids.

use super::super::detect::{Likeness, Sample};
use super::super::error::{ErrorKind, TraceError};
use super::super::{Format, Input, Shared, TimeUnit, Trace};
use super::record::{Layout, PLAIN};

/// The format's entry in [`FORMATS`](crate::trace::FORMATS).
pub static FORMAT: Format = Format {
    name: "lcs",
    aliases: &[],
    summary: "libCacheSim's lcs binary, versions 1 to 8",
    layout: "time id size [op tenant life] next: seconds, an object's id, bytes, libCacheSim's operations",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: true,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
const HEADER: usize = 8192;
const VERSION_AT: usize = 8;
const REQUESTS_AT: usize = 24;
const MAGIC_AGAIN_AT: usize = HEADER - 8;

const TENANT_BYTES: usize = 3;

/// The records of versions 1 to 8.
static LAYOUTS: [Layout; 8] = [
    PLAIN,
    Layout { length: 28, size_bytes: 4, tenant_bytes: Some(TENANT_BYTES) },
    with_features(0),
    with_features(1),
    with_features(2),
    with_features(4),
    with_features(8),
    with_features(16),
];

const fn with_features(features: usize) -> Layout {
    Layout { length: 36 + 4 * features, size_bytes: 8, tenant_bytes: Some(TENANT_BYTES) }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    if sample.bytes.starts_with(&MAGIC) { Likeness::Magic } else { Likeness::No }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let wrong = |kind, what: String| {
        let hint = "convert the trace again, with libCacheSim's traceConv of 2025 or later";
        Err(input.error(kind, what).with_hint(hint))
    };
    if !input.start.starts_with(&MAGIC) {
        return wrong(ErrorKind::Field, "the file does not start with lcs's magic number".to_owned());
    }
    let (Some(version), Some(requests), Some(again)) =
        (word(input.start, VERSION_AT), word(input.start, REQUESTS_AT), word(input.start, MAGIC_AGAIN_AT))
    else {
        return wrong(ErrorKind::Truncated, format!("the file ends within its header of {HEADER} bytes"));
    };
    if again.to_le_bytes() != MAGIC {
        return wrong(ErrorKind::Field, format!("the header of {HEADER} bytes does not end with the magic number"));
    }
    let Some(layout) = version.checked_sub(1).and_then(|index| LAYOUTS.get(usize::try_from(index).ok()?)) else {
        return wrong(
            ErrorKind::Field,
            format!("version {version} of lcs is unknown, only 1 to {} are", LAYOUTS.len()),
        );
    };
    let (mut trace, found) = layout.decode(input, HEADER)?;
    if requests != found {
        trace.warnings.push(format!("the header announces {requests} requests and {found} follow: is the file whole?"));
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::super::super::error::Place;
    use super::super::super::{self as trace, Options};
    use super::*;
    use crate::request::Op;

    /// A file of this version with a read of object 5 and a write of object 6 by tenant 2, as far as the version can
    /// express it.
    fn file(version: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[VERSION_AT..][..8].copy_from_slice(&version.to_le_bytes());
        bytes[REQUESTS_AT..][..8].copy_from_slice(&2u64.to_le_bytes());
        bytes[MAGIC_AGAIN_AT..].copy_from_slice(&MAGIC);
        for (seconds, id, size, op, tenant) in [(7u32, 5u64, 512u32, 1u8, 0u8), (9, 6, 4096, 3, 2)] {
            bytes.extend(seconds.to_le_bytes());
            bytes.extend(id.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            if version >= 3 {
                bytes.extend([0; 4]);
            }
            if version >= 2 {
                bytes.extend([op, tenant, 0, 0]);
            }
            if version >= 3 {
                bytes.extend([60, 0, 0, 0]);
            }
            bytes.extend((-1i64).to_le_bytes());
            bytes.extend(vec![9; 4 * [0, 0, 0, 0, 1, 2, 4, 8, 16][version as usize]]);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
        trace::decode("t", bytes, &Options::default())
    }

    #[test]
    fn every_version() {
        for version in 1..=8 {
            let trace = read(&file(version)).unwrap();
            assert_eq!(
                (trace.format, trace.requests.len(), trace.duration_ns()),
                ("lcs", 2, 2_000_000_000),
                "{version}"
            );
            let second = trace.requests[1];
            assert_eq!(second.sectors, 8, "{version}");
            let has_more = version > 1;
            assert_eq!(second.op, if has_more { Op::Write } else { Op::Read }, "{version}");
            let tenants: Vec<u64> = trace.devices.iter().map(|device| device.id).collect();
            assert_eq!(tenants, if has_more { vec![0, 2] } else { vec![0] }, "{version}");
        }
    }

    #[test]
    fn what_is_not_whole_or_not_known_is_said() {
        let good = file(3);
        for cut in [8, 100, HEADER - 1, HEADER + 35] {
            assert_eq!(read(&good[..cut]).unwrap_err().kind(), ErrorKind::Truncated, "{cut}");
        }
        let error = read(&good[..HEADER + 40]).unwrap_err();
        assert_eq!(error.place(), Place::Record { number: 2, byte: HEADER as u64 + 36 });
        let short = read(&good[..HEADER + 36]).unwrap();
        assert!(short.warnings.iter().any(|warning| warning.contains("announces 2 requests and 1 follow")));
        assert_eq!(read(&good[..HEADER]).unwrap_err().kind(), ErrorKind::NoRequests);
        for (at, what) in [(VERSION_AT, "version 77"), (MAGIC_AGAIN_AT, "does not end with the magic number")] {
            let mut wrong = good.clone();
            wrong[at] = 77;
            let error = read(&wrong).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        let mut negative = good.clone();
        negative[HEADER + 12 + 7] = 0x80;
        let error = read(&negative).unwrap_err();
        assert_eq!(
            (error.field(), error.place()),
            ("size", Place::Record { number: 1, byte: HEADER as u64 }),
            "{error}"
        );
        let other = Options { format: Some(&FORMAT), ..Options::default() };
        assert!(trace::decode("t", b"nothing", &other).unwrap_err().to_string().contains("magic"));
    }
}
