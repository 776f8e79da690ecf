//! Traces from Parquet files: columns are recognised by name, as in delimited text with a header.
//!
//! The file is held in memory as stored. Of each required column one page and one batch of rows are decoded at a time.
//! A column type with a unit, such as a timestamp in milliseconds, determines the unit of times. Cells are converted to
//! text, and so have the same meaning as in delimited text.

mod cells;
mod vet;

use std::sync::Arc;

use bimetal_core::trace::contract::{Input, Table, TableColumn};
use bimetal_core::trace::{ErrorKind, Options, TimeUnit, Trace, TraceError};
use bytes::{Buf, Bytes};
use parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit as TypeUnit, Type as Physical};
use parquet::column::reader::get_column_reader;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use crate::table_file::{self, damaged};
use cells::{Cells, Numbers};

/// Rows in a batch.
const BATCH: usize = 8192;

/// Decodes a Parquet file; `name` appears in errors.
///
/// # Errors
/// Errors of [`trace::decode`](bimetal_core::trace::decode), columns with unsuitable types, missing values, and damaged
/// files.
pub fn decode(name: &str, bytes: Vec<u8>, options: &Options) -> Result<Trace, TraceError> {
    table_file::decode(name, "parquet", options, |input| read(input, &Bytes::from(bytes)))
}

fn read(input: &Input<'_>, bytes: &Bytes) -> Result<Trace, TraceError> {
    vet::file(bytes).map_err(|what| damaged(input, what))?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(bytes).map_err(|error| damaged(input, error))?;
    let rows = metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
    let rows = rows.fold(0, u64::saturating_add);
    table_file::check_rows(rows, bytes.len()).map_err(|what| damaged(input, what))?;
    let schema = metadata.file_metadata().schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let columns = schema.columns().iter().zip(&names);
    let columns: Vec<TableColumn<'_>> =
        columns.map(|(column, name)| TableColumn { name, time_unit: time_unit(column) }).collect();
    // The row count of a damaged file may be too large, so the reserved space is limited by the file size.
    let expected = usize::try_from(rows).unwrap_or(usize::MAX).min(bytes.len());
    let mut table = Table::of(input, &columns, expected)?;
    let needed: Vec<Needed<'_>> = table
        .columns()
        .iter()
        .map(|&(column, field)| {
            let name = &names[column];
            numbers(&schema.column(column), name, field).map(|numbers| Needed { column, name, field, numbers })
        })
        .collect::<Result<_, _>>()
        .map_err(|what| table_file::unsuitable(input, what))?;
    for group in 0..metadata.num_row_groups() {
        read_group(input, bytes, &metadata, group, &needed, &mut table)?;
    }
    table.finish()
}

/// A required column.
struct Needed<'a> {
    column: usize,
    name: &'a str,
    field: &'static str,
    numbers: Numbers,
}

/// Adds the rows of a row group.
fn read_group(
    input: &Input<'_>,
    bytes: &Bytes,
    metadata: &ParquetMetaData,
    group: usize,
    needed: &[Needed<'_>],
    table: &mut Table<'_>,
) -> Result<(), TraceError> {
    let group = metadata.row_group(group);
    let mut left = usize::try_from(group.num_rows()).map_err(|error| damaged(input, error))?;
    let cells = needed.iter().map(|needed| cells(input, bytes, group, needed));
    let mut cells: Vec<Cells> = cells.collect::<Result<_, _>>()?;
    while left > 0 {
        let wanted = left.min(BATCH);
        for (cells, needed) in cells.iter_mut().zip(needed) {
            let got = cells.fill(wanted).map_err(|error| damaged(input, error))?;
            if let Some(row) = cells.first_null() {
                return Err(table.null(row, needed.field));
            }
            if got < wanted {
                let what = format!("the column `{}` ends {} rows early", needed.name.escape_debug(), left - got);
                return Err(damaged(input, what));
            }
        }
        table.push(wanted, |place, row, text| cells[place].write(row, text))?;
        left -= wanted;
    }
    Ok(())
}

/// The cells of a column in a row group.
fn cells(input: &Input<'_>, bytes: &Bytes, group: &RowGroupMetaData, needed: &Needed<'_>) -> Result<Cells, TraceError> {
    let column = group.column(needed.column);
    let codec = column.compression();
    if !is_undone(codec) {
        let name = codec.to_string();
        let name = name.split('(').next().unwrap_or_default();
        let what = format!("the column `{}` is compressed by {name}, which is unsupported", needed.name.escape_debug());
        return Err(input.error(ErrorKind::Field, what).with_hint("write the file with zstd, snappy, gzip or lz4_raw"));
    }
    let offsets = [column.dictionary_page_offset().unwrap_or(0), column.data_page_offset(), column.compressed_size()];
    if offsets.iter().any(|&offset| offset < 0) {
        return Err(damaged(input, "an offset in its footer is negative"));
    }
    let source = Source { bytes: bytes.clone(), codec };
    let rows = usize::try_from(group.num_rows()).map_err(|error| damaged(input, error))?;
    let pages = SerializedPageReader::new(Arc::new(source), column, rows, None);
    let pages = pages.map_err(|error| damaged(input, error))?;
    let (descriptor, level_of_value) = (column.column_descr_ptr(), column.column_descr().max_def_level());
    Ok(Cells::new(get_column_reader(descriptor, Box::new(pages)), level_of_value, needed.numbers))
}

fn is_undone(codec: Compression) -> bool {
    use Compression::{GZIP, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    matches!(codec, UNCOMPRESSED | SNAPPY | GZIP(_) | ZSTD(_) | LZ4_RAW)
}

/// The unit of times, from the type of the column.
fn time_unit(column: &ColumnDescriptor) -> Option<TimeUnit> {
    let unit = match column.logical_type_ref() {
        Some(LogicalType::Timestamp(timestamp)) => timestamp.unit,
        Some(LogicalType::Time(time)) => time.unit,
        _ => return of_old_type(column),
    };
    Some(match unit {
        TypeUnit::MILLIS => TimeUnit::Milliseconds,
        TypeUnit::MICROS => TimeUnit::Microseconds,
        TypeUnit::NANOS => TimeUnit::Nanoseconds,
    })
}

/// The same for the converted types of older writers.
fn of_old_type(column: &ColumnDescriptor) -> Option<TimeUnit> {
    match (column.converted_type(), column.physical_type()) {
        (ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIME_MILLIS, _) => Some(TimeUnit::Milliseconds),
        (ConvertedType::TIMESTAMP_MICROS | ConvertedType::TIME_MICROS, _) => Some(TimeUnit::Microseconds),
        (_, Physical::INT96) => Some(TimeUnit::Nanoseconds),
        _ => None,
    }
}

/// The signedness of a column's values, or the reason why the column is unsuitable.
fn numbers(column: &ColumnDescriptor, name: &str, field: &str) -> Result<Numbers, String> {
    let refuse = |kind: &str| Err(table_file::refusal(name, kind, field));
    if column.max_rep_level() > 0 {
        return refuse("a list");
    }
    let is_time = time_unit(column).is_some();
    match column.logical_type_ref() {
        None | Some(LogicalType::String | LogicalType::Enum | LogicalType::Integer(_)) => {}
        Some(LogicalType::Timestamp(_) | LogicalType::Time(_)) => {}
        Some(LogicalType::Decimal(decimal)) if decimal.scale == 0 => {}
        Some(LogicalType::Decimal(_)) => return refuse("a decimal"),
        Some(LogicalType::Date) => return refuse("a date"),
        Some(_) => return refuse("of a special type"),
    }
    let is_decimal = column.converted_type() == ConvertedType::DECIMAL;
    match column.physical_type() {
        _ if is_time && field != "time" => refuse("a time"),
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY if is_decimal => refuse("a decimal in bytes"),
        _ if is_decimal && column.type_scale() != 0 => refuse("a decimal"),
        Physical::INT32 | Physical::INT64 if column.converted_type() == ConvertedType::DATE => refuse("a date"),
        _ => {
            use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
            let is_unsigned = match column.logical_type_ref() {
                Some(LogicalType::Integer(integer)) => !integer.is_signed,
                _ => matches!(column.converted_type(), UINT_8 | UINT_16 | UINT_32 | UINT_64),
            };
            Ok(if is_unsigned { Numbers::Unsigned } else { Numbers::Signed })
        }
    }
}

/// A file in memory, whose pages are checked before the reader sees them.
struct Source {
    bytes: Bytes,
    codec: Compression,
}

impl Source {
    fn from(&self, start: u64) -> ParquetResult<Bytes> {
        let start = usize::try_from(start).ok().filter(|&start| start <= self.bytes.len());
        start
            .map(|start| self.bytes.slice(start..))
            .ok_or_else(|| ParquetError::EOF("a page begins after the end".into()))
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl ChunkReader for Source {
    type T = bytes::buf::Reader<Bytes>;

    /// A reader from `start`, where a page header begins.
    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let bytes = self.from(start)?;
        let is_gzip = matches!(self.codec, Compression::GZIP(_));
        vet::page(&bytes, is_gzip, self.codec == Compression::UNCOMPRESSED)
            .map_err(|what| ParquetError::General(what.into()))?;
        Ok(bytes.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF("a page ends after the end".into()));
        }
        Ok(bytes.slice(..length))
    }
}

#[cfg(test)]
mod tests;
