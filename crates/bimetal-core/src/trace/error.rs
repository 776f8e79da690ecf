//! Errors of traces: the problem, the file, the record and field, and the remedy.

use std::fmt;

/// Longest excerpt of the faulty text in a message, in bytes of the source.
const EXCERPT: usize = 40;

/// The kind of a [`TraceError`], for callers that depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file has no bytes.
    Empty,
    /// The file is well formed but contains no request.
    NoRequests,
    /// The bytes match no known format.
    Undetected,
    /// The bytes match several formats equally well.
    Ambiguous,
    /// A binary file ends within a record or before its stated end.
    Truncated,
    /// A record has too few or too many fields.
    FieldCount,
    /// A field cannot be read.
    Field,
    /// A field is valid but its value is out of range.
    Range,
    /// A requested device is not in the trace.
    Device,
    /// An option does not apply or names something unknown.
    Option,
    /// The target format cannot express the trace.
    Inexpressible,
}

/// The place of an error in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line, counted from 1.
    Line(u64),
    /// A row of a table without lines, counted from 0 as data frames do.
    Row(u64),
    /// A binary record, counted from 1, and the offset of its first byte.
    Record {
        /// Number of the record.
        number: u64,
        /// Offset in the file.
        byte: u64,
    },
}

/// Reason why a trace could not be read. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct TraceError {
    // Boxed, so that results of hot parsing loops stay small.
    detail: Box<Detail>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Detail {
    kind: ErrorKind,
    file: String,
    place: Place,
    field: &'static str,
    what: String,
    text: Option<String>,
    hint: String,
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}: ", self.file.escape_debug())?;
        }
        match self.place {
            Place::File => {}
            Place::Line(number) => write!(f, "line {number}: ")?,
            Place::Row(number) => write!(f, "row {number}: ")?,
            Place::Record { number, byte } => write!(f, "record {number} at byte {byte}: ")?,
        }
        if !self.field.is_empty() {
            write!(f, "field `{}` ", self.field)?;
        }
        f.write_str(&self.what)?;
        if let Some(text) = &self.text {
            write!(f, ": `{text}`")?;
        }
        if !self.hint.is_empty() {
            write!(f, "; hint: {}", self.hint)?;
        }
        Ok(())
    }
}

impl TraceError {
    /// An error about a file as a whole; an empty `file` is left out of the message.
    pub(super) fn new(kind: ErrorKind, file: &str, what: impl Into<String>) -> Self {
        let detail = Detail {
            kind,
            file: file.to_owned(),
            place: Place::File,
            field: "",
            what: what.into(),
            text: None,
            hint: String::new(),
        };
        Self { detail: Box::new(detail) }
    }

    /// Adds a hint with the remedy.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.detail.hint = hint.into();
        self
    }

    /// The error of a record.
    pub(super) fn of_fault(file: &str, place: Place, fault: Fault) -> Self {
        let mut error = Self::new(fault.kind, file, fault.what).at(place);
        error.detail.field = fault.field;
        error.detail.text = fault.text;
        error
    }

    pub(super) fn at(mut self, place: Place) -> Self {
        self.detail.place = place;
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.detail.kind
    }

    /// The place of the error in the file.
    pub fn place(&self) -> Place {
        self.detail.place
    }

    /// The field in error; empty if it is not about a single field.
    pub fn field(&self) -> &'static str {
        self.detail.field
    }
}

/// An error of one record, before its place in the file is known.
#[derive(Debug)]
pub struct Fault {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The field; empty if the error is not about a single field.
    pub field: &'static str,
    /// The problem.
    pub what: &'static str,
    /// The text in the source.
    pub text: Option<String>,
}

/// The result of parsing a record or field. The fault is boxed, because faults end a run and hot loops should carry
/// little.
pub type Parsed<T> = Result<T, Box<Fault>>;

impl Fault {
    /// A field that cannot be read.
    #[cold]
    pub fn field(kind: ErrorKind, field: &'static str, what: &'static str, text: &[u8]) -> Box<Self> {
        Box::new(Self { kind, field, what, text: Some(excerpt(text)) })
    }

    /// A missing field.
    #[cold]
    pub fn missing(field: &'static str) -> Box<Self> {
        Box::new(Self { kind: ErrorKind::FieldCount, field, what: "is missing: too few fields", text: None })
    }

    /// Excess fields.
    #[cold]
    pub fn extra(text: &[u8]) -> Box<Self> {
        let what = "too many fields, from";
        Box::new(Self { kind: ErrorKind::FieldCount, field: "", what, text: Some(excerpt(text)) })
    }
}

/// Text of the source for a message: printable and short.
fn excerpt(text: &[u8]) -> String {
    let mut shown = text[..text.len().min(EXCERPT)].escape_ascii().to_string();
    if text.len() > EXCERPT {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_that_says_everything() {
        let mut error = TraceError::new(ErrorKind::Field, "a\nb.csv", "is not a whole number").at(Place::Line(7));
        error.detail.field = "size";
        error.detail.text = Some(excerpt(&[b'\n'; 100]));
        let shown = error.with_hint("do that").to_string();
        assert!(!shown.contains('\n'));
        assert!(shown.starts_with("a\\nb.csv: line 7: field `size` is not a whole number: `\\n\\n"), "{shown}");
        assert!(shown.ends_with("\\n...`; hint: do that"), "{shown}");
    }
}
