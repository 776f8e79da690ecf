//! `parquet`: the format's entry, and the detection of its files.
//!
//! The crate `bimetal-study` reads Parquet files if it is built with its feature `parquet`. The core depends on no
//! Parquet reader.

use crate::trace::detect::{Likeness, Sample};
use crate::trace::error::{ErrorKind, TraceError};
use crate::trace::time_unit::TimeUnit;
use crate::trace::{Format, Input, Shared, Trace};

/// The format's entry in [`FORMATS`](crate::trace::FORMATS).
pub static FORMAT: Format = Format {
    name: "parquet",
    aliases: &[],
    summary: "Parquet: a row for each request, its columns known by name or named by `--columns`",
    layout: "columns such as a time_ms and an op and an offset and a size: or with other names, as a header of `csv` has",
    time_unit: Some(TimeUnit::Nanoseconds),
    has_actions: false,
    has_objects: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

/// Whether a file that starts with these bytes is a Parquet file.
pub fn is_parquet(start: &[u8]) -> bool {
    start.starts_with(b"PAR1")
}

fn probe(sample: &Sample<'_>) -> Likeness {
    if is_parquet(sample.bytes) { Likeness::Magic } else { Likeness::No }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let hint = "take a build with the feature `parquet`, or write the table as CSV";
    Err(input.error(ErrorKind::Undetected, "this build cannot read Parquet").with_hint(hint))
}

#[cfg(test)]
mod tests {
    use crate::trace::{self, Options};

    #[test]
    fn a_build_without_a_reader_says_so() {
        for columns in [None, Some("op,offset,size".parse().unwrap())] {
            let options = Options { columns, ..Options::default() };
            let error = trace::decode("t", b"PAR1\x15\x04PAR1", &options).unwrap_err();
            assert!(error.to_string().starts_with("t: this build cannot read Parquet; hint: "), "{error}");
        }
        let objects = Options { objects: Some("slots".parse().unwrap()), ..Options::default() };
        let error = trace::decode("t", b"PAR1", &objects).unwrap_err().to_string();
        assert!(error.contains("`--objects` does not apply to format `parquet`"), "{error}");
    }
}
