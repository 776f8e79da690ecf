//! Tables as Parquet files.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::export::{Cells, Column, Table};

/// Writes a table as one row group, compressed with zstd.
///
/// # Errors
/// Errors of the writer.
pub fn write(table: &Table, to: impl Write + Send) -> io::Result<()> {
    written(table, to).map_err(io::Error::other)
}

fn written(table: &Table, to: impl Write + Send) -> Result<()> {
    let fields = table.columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("sweep").with_fields(fields).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in &table.columns {
        let Some(mut writer) = group.next_column()? else { break };
        match &column.cells {
            Cells::Text(cells) => fill::<ByteArrayType, _>(&mut writer, cells, |text| ByteArray::from(text.as_str())),
            Cells::Whole(cells) => fill::<Int64Type, _>(&mut writer, cells, |whole| *whole),
            Cells::Number(cells) => fill::<DoubleType, _>(&mut writer, cells, |number| *number),
            Cells::Truth(cells) => fill::<BoolType, _>(&mut writer, cells, |truth| *truth),
        }?;
        writer.close()?;
    }
    group.close()?;
    file.close().map(drop)
}

fn field(column: &Column) -> Result<Type> {
    let physical = match column.cells {
        Cells::Text(_) => Physical::BYTE_ARRAY,
        Cells::Whole(_) => Physical::INT64,
        Cells::Number(_) => Physical::DOUBLE,
        Cells::Truth(_) => Physical::BOOLEAN,
    };
    let field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    let field = match column.cells {
        Cells::Text(_) => field.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8),
        _ => field,
    };
    field.build()
}

/// Writes the non-null values, and the definition level of each row.
fn fill<T: DataType, C>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: &[Option<C>],
    value: impl Fn(&C) -> T::T,
) -> Result<()> {
    let values: Vec<T::T> = cells.iter().flatten().map(value).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    writer.typed::<T>().write_batch(&values, Some(&levels), None).map(drop)
}
