//! Tables of the user: delimited text, JSON lines, Parquet and Arrow files. Columns are named by a header, by keys, or
//! by the user.
//!
//! Without `--columns`, unambiguous names determine the columns: `timestamp_us`, `lba`, `length`. A number in an
//! unknown unit is an error with a hint how to state it, because a wrong unit turns the same digits into a different
//! trace. A date and time needs no unit.

mod columnar;
mod date;
mod delimited;
mod json_lines;
mod typed;

pub use columnar::{ARROW, PARQUET, is_arrow, is_parquet};
pub use delimited::FORMAT as DELIMITED;
pub use json_lines::FORMAT as JSON_LINES;
pub use typed::{Table, TableColumn};

use super::Format;
use super::collect::{MAX_BYTES, Row};
use super::error::{ErrorKind, Fault, Parsed};
use super::lines::{time, whole};
use super::roles::{Mapping, OpCode};
use super::time_unit::TimeUnit;
use crate::request::Op;

impl<T> Mapping<T> {
    /// The record; `field` returns its fields.
    fn row<'a>(&self, mut field: impl FnMut(&T) -> Option<&'a [u8]>) -> Parsed<Row> {
        let mut get = |place: &T, name: &'static str| field(place).ok_or_else(|| Fault::missing(name));
        let time_ns = match &self.time {
            Some((place, unit)) => instant(get(place, "time")?, *unit)?,
            None => 0,
        };
        let op = operation(get(&self.op.0, "op")?, self.op.1)?;
        let offset = bytes(get(&self.offset.0, "offset")?, "offset", self.offset.1)?;
        let bytes = bytes(get(&self.size.0, "size")?, "size", self.size.1)?;
        let device = match &self.device {
            Some(place) => whole(get(place, "device")?, "device")?,
            None => 0,
        };
        Ok(Row { time_ns, device, offset, bytes, op })
    }
}

/// A time in nanoseconds, from a number of units or from a date.
fn instant(text: &[u8], unit: Option<TimeUnit>) -> Parsed<u64> {
    if date::is_date(text) {
        return date::nanoseconds(text);
    }
    let unknown = "has an unknown unit: name it with `--time-unit`";
    time(text, "time", unit.ok_or_else(|| Fault::field(ErrorKind::Field, "time", unknown, text))?)
}

/// An address or a length in bytes, from a number of units of `unit_bytes` bytes.
fn bytes(text: &[u8], field: &'static str, unit_bytes: u64) -> Parsed<u64> {
    let number = whole(text, field)?;
    let bytes = number.checked_mul(unit_bytes).filter(|&bytes| bytes <= MAX_BYTES);
    bytes.ok_or_else(|| Fault::field(ErrorKind::Range, field, "lies beyond 2^63 bytes", text))
}

fn operation(text: &[u8], code: OpCode) -> Parsed<Op> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    match code {
        OpCode::Word if is(&["r", "read", "rd"]) => Ok(Op::Read),
        OpCode::Word if is(&["w", "write", "wr"]) => Ok(Op::Write),
        OpCode::Word if is(&["t", "trim", "d", "discard", "unmap"]) => Ok(Op::Trim),
        OpCode::Word if is(&["0", "1"]) => {
            let what = "says read or write with 0 and 1: name the column `op:0=read` or `op:1=read`, with a header \
                        `op=NAME:0=read`";
            Err(Fault::field(ErrorKind::Field, "op", what, text))
        }
        OpCode::Word => Err(Fault::field(ErrorKind::Field, "op", "is neither read nor write nor trim", text)),
        OpCode::Digit { read } => match text {
            [digit @ (b'0' | b'1')] => Ok(if *digit == read { Op::Read } else { Op::Write }),
            _ => Err(Fault::field(ErrorKind::Field, "op", "is neither `0` nor `1`", text)),
        },
    }
}

/// The warning about a table without a recognised time column.
const NO_TIME: &str =
    "no column is known as a time, so that requests have none: name it with `--columns`, if there is one";

/// The hint for columns by name that lack information.
const SYNTAX_HINT: &str =
    "name the columns with `--columns`, such as `time=started:us,op=rw,offset=lba:sectors,size=len`";

/// The format of a file whose columns the user has named.
pub(super) fn format_of(bytes: &[u8]) -> &'static Format {
    if is_parquet(bytes) {
        return &PARQUET;
    }
    if is_arrow(bytes) {
        return &ARROW;
    }
    let begins_json = bytes.trim_ascii_start().first() == Some(&b'{');
    if begins_json { &JSON_LINES } else { &DELIMITED }
}
