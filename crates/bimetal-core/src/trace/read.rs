//! From a source to a trace: the format is detected from the first bytes, and decodes all of them.

use std::io::{self, Read};

use super::error::{ErrorKind, TraceError};
use super::input::{Input, Source};
use super::{Options, Trace, detect, table};

/// Number of first bytes that detection and headers are limited to.
const START_BYTES: u64 = 1 << 20;

/// Error of reading a trace from a source.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Reading the source failed.
    #[error(transparent)]
    Source(#[from] io::Error),
    /// The bytes are not a valid trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Decodes one file from a source that ends with the file. `expected_length` is its number of bytes, or less if that is
/// unknown; `name` appears in errors.
///
/// # Errors
/// A failing source. A [`TraceError`] for the first record that cannot be parsed exactly, for an undetectable or
/// ambiguous format, for a trace without requests, and for options that do not apply to the format.
pub fn read(name: &str, source: &mut dyn Read, expected_length: u64, options: &Options) -> Result<Trace, ReadError> {
    let mut start = Vec::new();
    Read::take(&mut *source, START_BYTES).read_to_end(&mut start)?;
    if start.is_empty() {
        return Err(TraceError::new(ErrorKind::Empty, name, "the file is empty").into());
    }
    let format = match options.format {
        Some(format) => format,
        None if options.columns.is_some() => table::format_of(&start),
        None => detect(name, &start)?,
    };
    options.check(name, format)?;
    let source = Source::new(source);
    let expected_length = expected_length.max(start.len() as u64);
    let decoded = (format.decode)(&Input { name, start: &start, expected_length, options, format, rest: &source });
    match source.failure() {
        Some(failure) => Err(failure.into()),
        None => Ok(decoded?),
    }
}

/// Decodes the bytes of one file; `name` appears in errors.
///
/// # Errors
/// Those of [`read`], without a failing source.
pub fn decode(name: &str, bytes: &[u8], options: &Options) -> Result<Trace, TraceError> {
    read(name, &mut &*bytes, bytes.len() as u64, options).map_err(|error| match error {
        ReadError::Trace(error) => error,
        ReadError::Source(error) => TraceError::new(ErrorKind::Truncated, name, error.to_string()),
    })
}
