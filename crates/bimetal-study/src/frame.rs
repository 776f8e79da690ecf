//! Traces from the columns of data frames, recognised by name and unit like the columns of delimited text.

use bimetal_core::trace::contract::{Format, Input, Likeness, Sample, Shared, Table, TableColumn};
use bimetal_core::trace::{ErrorKind, Options, TimeUnit, Trace, TraceError};

use crate::columns::FORMAT as NAME;

/// The format of frames. It is not a file format and not in the registry.
static FORMAT: Format = Format {
    name: NAME,
    aliases: &[],
    summary: "columns of a data frame",
    layout: "columns such as time_ms, op, offset and size: or with other names, as in a header of `csv`",
    time_unit: Some(TimeUnit::Nanoseconds),
    has_actions: false,
    has_objects: false,
    has_columns: true,
    shared: Shared::Nothing,
    probe,
    decode,
};

fn probe(_: &Sample<'_>) -> Likeness {
    Likeness::No
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    Err(input.error(ErrorKind::Undetected, "a file is no data frame"))
}

/// The values of a column, a value for each row.
#[derive(Clone, Copy, Debug)]
pub enum Cells<'a> {
    /// Whole numbers.
    Signed(&'a [i64]),
    /// Whole numbers that are not negative.
    Unsigned(&'a [u64]),
    /// Numbers.
    Float(&'a [f64]),
    /// Distinct words, and for each row the index of its word.
    Words(&'a [String], &'a [u64]),
}

impl Cells<'_> {
    fn rows(&self) -> usize {
        match self {
            Self::Signed(values) => values.len(),
            Self::Unsigned(values) | Self::Words(_, values) => values.len(),
            Self::Float(values) => values.len(),
        }
    }

    fn write(&self, row: usize, text: &mut Vec<u8>) {
        use std::io::Write;
        // Writing to memory does not fail.
        let _ = match self {
            Self::Signed(values) => write!(text, "{}", values[row]),
            Self::Unsigned(values) => write!(text, "{}", values[row]),
            Self::Float(values) => write!(text, "{}", values[row]),
            Self::Words(words, of_row) => {
                let word = usize::try_from(of_row[row]).ok().and_then(|word| words.get(word));
                text.write_all(word.map_or(&b""[..], |word| word.trim().as_bytes()))
            }
        };
    }
}

/// A frame and the options for reading it.
#[derive(Debug)]
pub struct Frame<'a> {
    name: &'a str,
    options: Options,
    columns: &'a [TableColumn<'a>],
}

impl<'a> Frame<'a> {
    /// A frame with these columns. Its name appears in errors.
    pub fn new(name: &'a str, options: Options, columns: &'a [TableColumn<'a>]) -> Self {
        Self { name, options: Options { format: Some(&FORMAT), ..options }, columns }
    }

    /// The required columns, each with the field that it holds.
    ///
    /// # Errors
    /// The columns lack a field of a request.
    pub fn needed(&self) -> Result<Vec<(usize, &'static str)>, TraceError> {
        Ok(Table::of(&self.input(), self.columns, 0)?.columns().to_vec())
    }

    /// The trace whose required columns, in the order of [`Self::needed`], hold these cells.
    ///
    /// # Errors
    /// Columns of different lengths, or the first row that is not a valid request.
    pub fn trace(&self, cells: &[Cells<'_>]) -> Result<Trace, TraceError> {
        let input = self.input();
        let rows = cells.first().map_or(0, Cells::rows);
        let mut table = Table::of(&input, self.columns, rows)?;
        if cells.len() != table.columns().len() || cells.iter().any(|column| column.rows() != rows) {
            return Err(input.error(ErrorKind::FieldCount, "the columns are not equally long"));
        }
        table.push(rows, |place, row, text| cells[place].write(row, text))?;
        table.finish()
    }

    fn input(&self) -> Input<'_> {
        Input::of_table(self.name, &self.options, &FORMAT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cells: &[Cells<'_>]) -> Result<Trace, TraceError> {
        let names = ["started", "rw", "lba", "len"];
        let columns = names.map(|name| TableColumn { name, time_unit: None });
        let named = "time=started:us,op=rw,offset=lba:sectors,size=len".parse().unwrap();
        let frame = Frame::new("frame", Options { columns: Some(named), ..Options::default() }, &columns);
        assert_eq!(frame.needed().unwrap(), [(0, "time"), (1, "op"), (2, "offset"), (3, "size")]);
        frame.trace(cells)
    }

    #[test]
    fn columns_are_named_and_have_units() {
        let words = ["r".to_owned(), " Write ".to_owned()];
        let op = Cells::Words(&words, &[1, 0]);
        let trace =
            read(&[Cells::Float(&[1.5, 2.0]), op, Cells::Unsigned(&[8, 16]), Cells::Signed(&[512, 600])]).unwrap();
        assert_eq!((trace.format, trace.writes, trace.duration_ns(), trace.read_bytes), ("columns", 1, 500, 600));
        assert_eq!(trace.warnings, ["1 request rounded up to whole 512-byte sectors"]);
        let error = read(&[Cells::Float(&[1.5, 2.0]), op, Cells::Signed(&[8, -1]), Cells::Signed(&[512, 600])]);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("frame: row 1: field `offset` is negative: `-1`; hint: "), "{error}");
        assert!(!error.contains("--format"), "{error}");
        let error = read(&[Cells::Float(&[1.5]), op, Cells::Signed(&[8, 9]), Cells::Signed(&[512, 600])]).unwrap_err();
        assert!(error.to_string().contains("the columns are not equally long"), "{error}");
    }
}
