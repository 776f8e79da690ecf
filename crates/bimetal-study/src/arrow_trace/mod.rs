//! Traces from Arrow files and streams: columns are recognised by name, as in delimited text with a header.
//!
//! The crate `arrow-ipc` parses the headers of messages. Buffers are read here, without the arrays of `arrow-array`: a
//! trace needs few of their types, and all of them would add 3 MB to the program.
//!
//! The file is held in memory as stored. Of the required columns, one record batch is decompressed at a time. A column
//! type with a unit, such as a timestamp in milliseconds, determines the unit of times. Cells are converted to text,
//! and so have the same meaning as in delimited text.

mod cells;
mod columns;
mod messages;

use std::rc::Rc;

use arrow_schema::{DataType, Schema, TimeUnit as TypeUnit};
use bimetal_core::trace::contract::{Input, Table, TableColumn};
use bimetal_core::trace::{ErrorKind, Options, TimeUnit, Trace, TraceError};

use crate::table_file::{self, damaged};
use cells::{Cells, unsuitable_kind};
use columns::{Columns, Dictionaries};
use messages::{Checked, Content, Messages, Reason};

/// Upper limit of the dictionaries of the required columns together, in bytes.
const DICTIONARY_BYTES_MAX: u64 = 1 << 30;

/// Decodes an Arrow file or stream; `name` appears in errors.
///
/// # Errors
/// Errors of [`trace::decode`](bimetal_core::trace::decode), columns with unsuitable types, missing values, and damaged
/// files.
pub fn decode(name: &str, bytes: &[u8], options: &Options) -> Result<Trace, TraceError> {
    table_file::decode(name, "arrow", options, |input| read(input, bytes))
}

fn read(input: &Input<'_>, bytes: &[u8]) -> Result<Trace, TraceError> {
    let file = Messages::of(bytes).map_err(|reason| refused(input, reason))?;
    let mut table = table(input, &file.schema, bytes.len())?;
    let mut reader = Reader::new(&file, &table);
    let mut rows = 0u64;
    for message in &file.messages {
        match message.content(bytes).map_err(|reason| refused(input, reason))? {
            Content::Dictionary { id, follows, values, body } => {
                let columns = Columns::new(&values, body, file.version, reader.dictionary_budget);
                reader.dictionary(id, follows, columns).map_err(|reason| refused(input, reason))?;
            }
            Content::Rows { rows: 0, .. } => {}
            Content::Rows { rows: count, batch, body } => {
                rows = rows.saturating_add(count);
                table_file::check_rows(rows, bytes.len()).map_err(|what| damaged(input, what))?;
                let columns = Columns::new(&batch, body, file.version, u64::MAX);
                let cells = reader.batch(columns, count).map_err(|reason| refused(input, reason))?;
                push(&cells, &mut table)?;
            }
        }
    }
    table.finish()
}

/// The required columns of a file, and their dictionaries so far.
struct Reader<'a, 'f> {
    file: &'f Messages,
    /// The required columns, in the order of the table.
    needed: Vec<usize>,
    dictionaries: Dictionaries<'a>,
    /// Bytes that further dictionaries may have.
    dictionary_budget: u64,
}

impl<'a, 'f> Reader<'a, 'f> {
    fn new(file: &'f Messages, table: &Table<'_>) -> Self {
        let needed = table.columns().iter().map(|(column, _)| *column).collect();
        Self { file, needed, dictionaries: Dictionaries::new(), dictionary_budget: DICTIONARY_BYTES_MAX }
    }

    /// Adds values to a dictionary or replaces them, if a required column has it.
    fn dictionary(&mut self, id: i64, follows: bool, mut columns: Columns<'a>) -> Checked<()> {
        let column = self.needed.iter().find(|&&column| self.file.dictionaries[column] == Some(id));
        let Some(DataType::Dictionary(_, kind)) = column.map(|&column| self.file.schema.field(column).data_type())
        else {
            return Ok(());
        };
        let part = Rc::new(columns.take(kind, &[])?);
        self.dictionary_budget = columns.budget();
        let parts = self.dictionaries.entry(id).or_default();
        if !follows {
            parts.clear();
        }
        parts.push(part);
        Ok(())
    }

    /// The required columns of a batch with this number of rows, in the order of the table.
    fn batch(&self, mut columns: Columns<'a>, rows: u64) -> Checked<Vec<Cells<'a>>> {
        let mut found: Vec<(usize, Cells<'a>)> = Vec::with_capacity(self.needed.len());
        for (column, field) in self.file.schema.fields().iter().enumerate() {
            let Some(place) = self.needed.iter().position(|&needed| needed == column) else {
                columns.skip(field.data_type())?;
                continue;
            };
            let parts = self.file.dictionaries[column].and_then(|id| self.dictionaries.get(&id));
            let cells = columns.take(field.data_type(), parts.map_or(&[], Vec::as_slice))?;
            if cells.rows as u64 != rows {
                return Err(Reason::Damaged(format!("a column has {} rows of {rows}", cells.rows)));
            }
            found.push((place, cells));
        }
        found.sort_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, cells)| cells).collect())
    }
}

/// The error of a file that is damaged or unsupported.
fn refused(input: &Input<'_>, reason: Reason) -> TraceError {
    match reason {
        Reason::Damaged(what) => damaged(input, what),
        Reason::Unsupported { what, hint } => input.error(ErrorKind::Field, what).with_hint(hint),
    }
}

/// The table of a file of `bytes` bytes. The types of the required columns are suitable.
fn table<'a>(input: &'a Input<'a>, schema: &Schema, bytes: usize) -> Result<Table<'a>, TraceError> {
    let fields = schema.fields();
    let columns =
        fields.iter().map(|field| TableColumn { name: field.name(), time_unit: time_unit(field.data_type()) });
    // A row of the four fields takes at least 16 bytes, unless it is compressed.
    let table = Table::of(input, &columns.collect::<Vec<_>>(), bytes / 16)?;
    for &(column, field) in table.columns() {
        let kind = fields[column].data_type();
        let is_time = time_unit(kind).is_some() && field != "time";
        if let Some(kind) = unsuitable_kind(kind).or(is_time.then_some("a time")) {
            return Err(table_file::unsuitable(input, table_file::refusal(fields[column].name(), kind, field)));
        }
    }
    Ok(table)
}

/// Adds the rows of a batch.
fn push(columns: &[Cells<'_>], table: &mut Table<'_>) -> Result<(), TraceError> {
    let fields = columns.iter().zip(table.columns());
    let nulls = fields.filter_map(|(cells, (_, field))| cells.first_null().map(|row| (row, *field)));
    if let Some((row, field)) = nulls.min_by_key(|(row, _)| *row) {
        return Err(table.null(row, field));
    }
    let rows = columns.first().map_or(0, |cells| cells.rows);
    table.push(rows, |place, row, text| columns[place].write(row, text))
}

/// The unit of times, from the type of the column.
fn time_unit(kind: &DataType) -> Option<TimeUnit> {
    let unit = match kind {
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => {
            unit
        }
        DataType::Dictionary(_, values) => return time_unit(values),
        _ => return None,
    };
    Some(match unit {
        TypeUnit::Second => TimeUnit::Seconds,
        TypeUnit::Millisecond => TimeUnit::Milliseconds,
        TypeUnit::Microsecond => TimeUnit::Microseconds,
        TypeUnit::Nanosecond => TimeUnit::Nanoseconds,
    })
}

#[cfg(test)]
mod tests;
