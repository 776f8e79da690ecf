//! Common to the readers of Parquet and Arrow files: errors and limits.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bimetal_core::trace::contract::Input;
use bimetal_core::trace::{self, ErrorKind, Options, Trace, TraceError};

/// Upper limit of rows for each byte of a file. Constant columns take almost no bytes, but no trace consists of them
/// alone.
const ROWS_PER_BYTE: u64 = 1000;

/// Calls `read` with the input of a file in this format; `name` appears in errors.
///
/// # Errors
/// Those of `read`. A panic in it is an error, because the libraries that read these formats panic on some damaged
/// files.
pub fn decode(
    name: &str,
    format: &str,
    options: &Options,
    read: impl FnOnce(&Input<'_>) -> Result<Trace, TraceError>,
) -> Result<Trace, TraceError> {
    let input = Input::of_table(name, options, trace::format(format)?);
    let read = catch_unwind(AssertUnwindSafe(|| read(&input)));
    read.unwrap_or_else(|_| Err(damaged(&input, "its parts contradict one another")))
}

/// The error of a file that violates the format.
pub fn damaged(input: &Input<'_>, what: impl Display) -> TraceError {
    let format = if input.format.name == "arrow" { "Arrow" } else { "Parquet" };
    // The messages of the libraries may have several lines.
    let what = what.to_string().replace(['\n', '\r'], " ");
    let what = format!("the {format} file is damaged or cut off: {}", what.trim());
    input.error(ErrorKind::Truncated, what).with_hint("write or fetch the file again")
}

/// Checks the number of rows of a file of `bytes` bytes. The error is the reason of the rejection.
pub fn check_rows(rows: u64, bytes: usize) -> Result<(), String> {
    let limit = ROWS_PER_BYTE.saturating_mul(bytes as u64);
    if rows > limit { Err(format!("it claims to have {rows} rows")) } else { Ok(()) }
}

/// The reason why a column of this kind is unsuitable as this field of a request.
pub fn refusal(column: &str, kind: &str, field: &str) -> String {
    format!("the column `{}` is {kind}, which is no {field}", column.escape_debug())
}

/// The error of an unsuitable column.
pub fn unsuitable(input: &Input<'_>, what: String) -> TraceError {
    input.error(ErrorKind::Field, what).with_hint("write it as integers, numbers or text")
}

/// The bytes of a text of fixed length, without the zeros and blanks that pad shorter texts.
pub fn trimmed_fixed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes[..end].trim_ascii()
}
