//! `parquet` and `arrow`: the entries of the formats, and the detection of their files.
//!
//! The crate `bimetal-study` reads these files if it is built with its features `parquet` and `arrow`. The core depends
//! on no reader of them.

use crate::trace::detect::Likeness;
use crate::trace::error::{ErrorKind, TraceError};
use crate::trace::time_unit::TimeUnit;
use crate::trace::{Format, Input, Shared, Trace};

/// The layout of both formats.
const LAYOUT: &str =
    "columns such as a time_ms and an op and an offset and a size: or with other names, as a header of `csv` has";

/// The entry of Parquet files in [`FORMATS`](crate::trace::FORMATS).
pub static PARQUET: Format = Format {
    name: "parquet",
    aliases: &[],
    summary: "Parquet: a row for each request, its columns known by name or named by `--columns`",
    layout: LAYOUT,
    time_unit: Some(TimeUnit::Nanoseconds),
    has_actions: false,
    has_objects: false,
    has_columns: true,
    shared: Shared::Nothing,
    probe: |sample| probe(is_parquet(sample.bytes)),
    decode: |input| no_reader(input, "Parquet"),
};

/// The entry of Arrow files in [`FORMATS`](crate::trace::FORMATS).
pub static ARROW: Format = Format {
    name: "arrow",
    aliases: &["feather"],
    summary: "Arrow files (Feather version 2) and streams: a row for each request, its columns known by name or named \
              by `--columns`",
    layout: LAYOUT,
    time_unit: Some(TimeUnit::Nanoseconds),
    has_actions: false,
    has_objects: false,
    has_columns: true,
    shared: Shared::Nothing,
    probe: |sample| probe(is_arrow(sample.bytes)),
    decode: |input| no_reader(input, "Arrow files"),
};

/// Whether a file that starts with these bytes is a Parquet file.
pub fn is_parquet(start: &[u8]) -> bool {
    start.starts_with(b"PAR1")
}

/// Whether a file that starts with these 8 bytes is an Arrow file or an Arrow stream. A stream starts with a mark and
/// the length of its schema, a multiple of 8 bytes.
pub fn is_arrow(start: &[u8]) -> bool {
    const SCHEMA_BYTES_MAX: u32 = 16 << 20;
    if start.starts_with(b"ARROW1\0\0") {
        return true;
    }
    let length = start.strip_prefix(&[0xff; 4]).and_then(|rest| rest.first_chunk::<4>());
    length
        .map(|length| u32::from_le_bytes(*length))
        .is_some_and(|length| (8..=SCHEMA_BYTES_MAX).contains(&length) && length.is_multiple_of(8))
}

fn probe(is_magic: bool) -> Likeness {
    if is_magic { Likeness::Magic } else { Likeness::No }
}

fn no_reader(input: &Input<'_>, files: &str) -> Result<Trace, TraceError> {
    let hint = format!("take a build with the feature `{}`, or write the table as CSV", input.format.name);
    Err(input.error(ErrorKind::Undetected, format!("this build cannot read {files}")).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{self, Options};

    #[test]
    fn a_build_without_a_reader_says_so() {
        for (bytes, name, files) in [
            (&b"PAR1\x15\x04PAR1"[..], "parquet", "Parquet"),
            (b"ARROW1\0\0\xff", "arrow", "Arrow files"),
            (b"\xff\xff\xff\xff\x88\x01\0\0\x10", "arrow", "Arrow files"),
        ] {
            for columns in [None, Some("op,offset,size".parse().unwrap())] {
                let options = Options { columns, ..Options::default() };
                let error = trace::decode("t", bytes, &options).unwrap_err().to_string();
                let expected =
                    format!("t: this build cannot read {files}; hint: take a build with the feature `{name}`");
                assert!(error.starts_with(&expected), "{error}");
            }
            let objects = Options { objects: Some("slots".parse().unwrap()), ..Options::default() };
            let error = trace::decode("t", bytes, &objects).unwrap_err().to_string();
            assert!(error.contains(&format!("`--objects` does not apply to format `{name}`")), "{error}");
        }
    }

    #[test]
    fn only_the_start_of_an_arrow_stream_is_one() {
        assert!(!is_arrow(b"ARROW1"));
        for start in [[0xff; 8], [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], [0xff, 0xff, 0xff, 0xff, 12, 0, 0, 0]] {
            assert!(!is_arrow(&start), "{start:?}");
        }
    }
}
