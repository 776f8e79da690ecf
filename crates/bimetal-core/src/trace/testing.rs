//! Shared code of the formats' tests.

use super::error::Place;
use super::{Format, Options, Trace, decode};

/// Decodes in a format, which must succeed.
pub(super) fn read_as(format: &'static Format, bytes: &[u8]) -> Trace {
    decode("t", bytes, &Options { format: Some(format), ..Options::default() }).unwrap()
}

/// Appends an invalid line to a valid text and checks the resulting fault.
pub(super) fn fault_of(format: &'static Format, good: &str, line: &str, field: &str, what: &str) {
    let text = format!("{good}{line}\n");
    let options = Options { format: Some(format), ..Options::default() };
    let error = decode("t", text.as_bytes(), &options).unwrap_err();
    assert_eq!(error.place(), Place::Line(text.lines().count() as u64), "{error}");
    assert_eq!(error.field(), field, "{error}");
    assert!(error.to_string().contains(what), "{error}");
}
