//! The cells of a column, in batches of rows.

use std::io::Write;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArrayType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96Type,
};
use parquet::data_type::{DataType, Int96};
use parquet::errors::Result;

use crate::table_file::trimmed_fixed;

/// The Julian day on which Unix time starts. Int96 timestamps contain a Julian day.
const EPOCH_DAY: i128 = 2_440_588;
const DAY_NS: i128 = 86_400_000_000_000;

/// Whether whole numbers are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    Signed,
    Unsigned,
}

/// A column with its latest batch of cells.
pub struct Cells {
    values: Values,
    numbers: Numbers,
    /// Definition level of each row, in nullable columns.
    levels: Vec<i16>,
    level_of_value: i16,
}

/// A reader of each physical type, with its values.
enum Values {
    Truth(Typed<BoolType>),
    Int32(Typed<Int32Type>),
    Int64(Typed<Int64Type>),
    Int96(Typed<Int96Type>),
    Float(Typed<FloatType>),
    Double(Typed<DoubleType>),
    Bytes(Typed<ByteArrayType>),
    FixedBytes(Typed<FixedLenByteArrayType>),
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

impl<T: DataType> Typed<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, values: Vec::new() }
    }

    fn fill(&mut self, rows: usize, levels: &mut Vec<i16>) -> Result<usize> {
        self.values.clear();
        levels.clear();
        let (rows, _, _) = self.reader.read_records(rows, Some(levels), None, &mut self.values)?;
        Ok(rows)
    }
}

impl Cells {
    /// A column before its first row.
    pub fn new(reader: ColumnReader, level_of_value: i16, numbers: Numbers) -> Self {
        let values = match reader {
            ColumnReader::BoolColumnReader(reader) => Values::Truth(Typed::new(reader)),
            ColumnReader::Int32ColumnReader(reader) => Values::Int32(Typed::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => Values::Int64(Typed::new(reader)),
            ColumnReader::Int96ColumnReader(reader) => Values::Int96(Typed::new(reader)),
            ColumnReader::FloatColumnReader(reader) => Values::Float(Typed::new(reader)),
            ColumnReader::DoubleColumnReader(reader) => Values::Double(Typed::new(reader)),
            ColumnReader::ByteArrayColumnReader(reader) => Values::Bytes(Typed::new(reader)),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Values::FixedBytes(Typed::new(reader)),
        };
        Self { values, numbers, levels: Vec::new(), level_of_value }
    }

    /// Reads the next rows and returns their number, which is less than `rows` only at the end.
    ///
    /// # Errors
    /// Errors of the reader.
    pub fn fill(&mut self, rows: usize) -> Result<usize> {
        let levels = &mut self.levels;
        match &mut self.values {
            Values::Truth(column) => column.fill(rows, levels),
            Values::Int32(column) => column.fill(rows, levels),
            Values::Int64(column) => column.fill(rows, levels),
            Values::Int96(column) => column.fill(rows, levels),
            Values::Float(column) => column.fill(rows, levels),
            Values::Double(column) => column.fill(rows, levels),
            Values::Bytes(column) => column.fill(rows, levels),
            Values::FixedBytes(column) => column.fill(rows, levels),
        }
    }

    /// The first row of the batch without a value.
    pub fn first_null(&self) -> Option<usize> {
        self.levels.iter().position(|level| *level < self.level_of_value)
    }

    /// Appends the text of a cell. All rows must have a value.
    pub fn write(&self, row: usize, text: &mut Vec<u8>) {
        let is_unsigned = self.numbers == Numbers::Unsigned;
        // Writing to memory does not fail.
        let _ = match &self.values {
            Values::Truth(column) => write!(text, "{}", u8::from(column.values[row])),
            Values::Int32(column) if is_unsigned => write!(text, "{}", column.values[row].cast_unsigned()),
            Values::Int32(column) => write!(text, "{}", column.values[row]),
            Values::Int64(column) if is_unsigned => write!(text, "{}", column.values[row].cast_unsigned()),
            Values::Int64(column) => write!(text, "{}", column.values[row]),
            Values::Int96(column) => write!(text, "{}", nanoseconds(&column.values[row])),
            Values::Float(column) => write!(text, "{}", column.values[row]),
            Values::Double(column) => write!(text, "{}", column.values[row]),
            Values::Bytes(column) => text.write_all(column.values[row].data().trim_ascii()),
            Values::FixedBytes(column) => text.write_all(trimmed_fixed(column.values[row].data())),
        };
    }
}

/// Nanoseconds since the start of Unix time, from a Julian day and the nanoseconds of that day.
fn nanoseconds(time: &Int96) -> i128 {
    let [low, high, day] = [0, 1, 2].map(|word| time.data().get(word).copied().unwrap_or(0));
    (i128::from(day) - EPOCH_DAY) * DAY_NS + (i128::from(high) << 32 | i128::from(low))
}
