//! Traces from Arrow files and streams: columns are recognised by name, as in delimited text with a header.
//!
//! The file is held in memory as stored. Of the required columns, one record batch is decompressed at a time. A column
//! type with a unit, such as a timestamp in milliseconds, determines the unit of times. Cells are converted to text,
//! and so have the same meaning as in delimited text.

mod cells;
mod messages;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::FileDecoder;
use arrow_schema::{DataType, Schema, TimeUnit as TypeUnit};
use bimetal_core::trace::contract::{Input, Table, TableColumn};
use bimetal_core::trace::{ErrorKind, Options, TimeUnit, Trace, TraceError};

use crate::table_file::{self, damaged};
use cells::{Cells, unsuitable_kind};
use messages::{Content, Messages, Reason};

/// Upper limit of the dictionaries of the required columns together, in bytes.
const DICTIONARY_BYTES_MAX: u64 = 1 << 30;

/// Decodes an Arrow file or stream; `name` appears in errors.
///
/// # Errors
/// Errors of [`trace::decode`](bimetal_core::trace::decode), columns with unsuitable types, missing values, and damaged
/// files.
pub fn decode(name: &str, bytes: Vec<u8>, options: &Options) -> Result<Trace, TraceError> {
    table_file::decode(name, "arrow", options, |input| read(input, &Buffer::from_vec(bytes)))
}

fn read(input: &Input<'_>, bytes: &Buffer) -> Result<Trace, TraceError> {
    let file = Messages::of(bytes).map_err(|reason| refused(input, reason))?;
    let mut table = table(input, &file.schema, bytes.len())?;
    let mut needed: Vec<usize> = table.columns().iter().map(|(column, _)| *column).collect();
    // The decoder returns columns in the order of the file.
    needed.sort_unstable();
    let dictionaries: Vec<i64> = needed.iter().filter_map(|&column| file.dictionaries[column]).collect();
    let mut decoder = FileDecoder::new(file.schema.clone(), file.version).with_projection(needed.clone());
    let (mut rows, mut dictionary_bytes) = (0u64, 0u64);
    for message in &file.messages {
        let checked = message.check(bytes).map_err(|reason| refused(input, reason))?;
        match checked.content {
            Content::Dictionary(id) if dictionaries.contains(&id) => {
                dictionary_bytes = dictionary_bytes.saturating_add(checked.bytes);
                if dictionary_bytes > DICTIONARY_BYTES_MAX {
                    return Err(refused(input, Reason::DICTIONARIES));
                }
                let read = decoder.read_dictionary(&message.block, &message.slice(bytes));
                read.map_err(|error| damaged(input, error))?;
            }
            Content::Dictionary(_) | Content::Rows(0) => {}
            Content::Rows(count) => {
                rows = rows.saturating_add(count);
                table_file::check_rows(rows, bytes.len()).map_err(|what| damaged(input, what))?;
                let batch = decoder.read_record_batch(&message.block, &message.slice(bytes));
                let batch = batch.map_err(|error| damaged(input, error))?;
                let batch = batch.ok_or_else(|| damaged(input, "a record batch is missing"))?;
                push(input, &batch, &needed, &mut table)?;
            }
        }
    }
    table.finish()
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

/// Adds the rows of a batch with the columns `needed`.
fn push(input: &Input<'_>, batch: &RecordBatch, needed: &[usize], table: &mut Table<'_>) -> Result<(), TraceError> {
    let columns = table.columns().iter().map(|&(column, field)| {
        let place = needed.iter().position(|&other| other == column);
        place.map(|place| (batch.column(place), field))
    });
    let columns: Option<Vec<_>> = columns.collect();
    let columns = columns.ok_or_else(|| damaged(input, "a record batch lacks a column"))?;
    let nulls = columns.iter().filter_map(|(column, field)| cells::first_null(column).map(|row| (row, *field)));
    if let Some((row, field)) = nulls.min_by_key(|(row, _)| *row) {
        return Err(table.null(row, field));
    }
    let cells: Option<Vec<Cells<'_>>> = columns.iter().map(|(column, _)| Cells::of(column)).collect();
    let cells = cells.ok_or_else(|| damaged(input, "the type of a column changes"))?;
    table.push(batch.num_rows(), |place, row, text| cells[place].write(row, text))
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
