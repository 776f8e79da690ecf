//! The cells of a column of a record batch.

use std::fmt::Display;
use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

use crate::table_file::trimmed_fixed;

/// The kind of a column that [`Cells`] cannot be made of, for a message; `None` for all others.
pub fn unsuitable_kind(kind: &DataType) -> Option<&'static str> {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Dictionary,
        Duration, FixedSizeBinary, FixedSizeList, Float16, Float32, Float64, Int8, Int16, Int32, Int64, LargeBinary,
        LargeList, LargeListView, LargeUtf8, List, ListView, Struct, Time32, Time64, Timestamp, UInt8, UInt16, UInt32,
        UInt64, Utf8, Utf8View,
    };
    match kind {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float16 | Float32 | Float64 => None,
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => None,
        Timestamp(..) | Time32(_) | Time64(_) | Duration(_) => None,
        Decimal32(_, 0) | Decimal64(_, 0) | Decimal128(_, 0) => None,
        FixedSizeBinary(bytes) if *bytes > 0 => None,
        Dictionary(_, values) if !matches!(**values, Dictionary(..)) => unsuitable_kind(values),
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Some("a decimal"),
        Date32 | Date64 => Some("a date"),
        List(_) | LargeList(_) | ListView(_) | LargeListView(_) | FixedSizeList(..) => Some("a list"),
        Struct(_) => Some("a struct"),
        _ => Some("of a special type"),
    }
}

/// The first row without a value.
pub fn first_null(column: &ArrayRef) -> Option<usize> {
    let nulls = column.logical_nulls()?;
    (0..nulls.len()).find(|&row| nulls.is_null(row))
}

/// The cells of a column as text.
pub struct Cells<'a>(Box<dyn Fn(usize, &mut Vec<u8>) + 'a>);

impl<'a> Cells<'a> {
    /// The cells of a column without nulls, of a type that is suitable according to [`unsuitable_kind`].
    pub fn of(column: &'a dyn Array) -> Option<Self> {
        use DataType as Kind;
        Some(match column.data_type() {
            Kind::Boolean => {
                let column = column.as_boolean_opt()?;
                Self::written(move |row, text| write_number(text, u8::from(column.value(row))))
            }
            Kind::Int8 => Self::numbers::<Int8Type>(column)?,
            Kind::Int16 => Self::numbers::<Int16Type>(column)?,
            Kind::Int32 => Self::numbers::<Int32Type>(column)?,
            Kind::Int64 => Self::numbers::<Int64Type>(column)?,
            Kind::UInt8 => Self::numbers::<UInt8Type>(column)?,
            Kind::UInt16 => Self::numbers::<UInt16Type>(column)?,
            Kind::UInt32 => Self::numbers::<UInt32Type>(column)?,
            Kind::UInt64 => Self::numbers::<UInt64Type>(column)?,
            Kind::Float16 => Self::numbers::<Float16Type>(column)?,
            Kind::Float32 => Self::numbers::<Float32Type>(column)?,
            Kind::Float64 => Self::numbers::<Float64Type>(column)?,
            Kind::Decimal32(..) => Self::numbers::<Decimal32Type>(column)?,
            Kind::Decimal64(..) => Self::numbers::<Decimal64Type>(column)?,
            Kind::Decimal128(..) => Self::numbers::<Decimal128Type>(column)?,
            Kind::Timestamp(..) | Kind::Time32(_) | Kind::Time64(_) | Kind::Duration(_) => Self::times(column)?,
            Kind::Dictionary(..) => {
                let column = column.as_any_dictionary_opt()?;
                let (keys, values) = (column.normalized_keys(), Self::of(column.values())?);
                Self::written(move |row, text| values.write(keys[row], text))
            }
            _ => Self::texts(column)?,
        })
    }

    fn written(write: impl Fn(usize, &mut Vec<u8>) + 'a) -> Self {
        Self(Box::new(write))
    }

    fn numbers<T: ArrowPrimitiveType<Native: Display>>(column: &'a dyn Array) -> Option<Self> {
        let column = column.as_primitive_opt::<T>()?;
        Some(Self::written(move |row, text| write_number(text, column.value(row))))
    }

    fn times(column: &'a dyn Array) -> Option<Self> {
        use DataType::{Duration, Time32, Time64, Timestamp};
        match column.data_type() {
            Timestamp(TimeUnit::Second, _) => Self::numbers::<TimestampSecondType>(column),
            Timestamp(TimeUnit::Millisecond, _) => Self::numbers::<TimestampMillisecondType>(column),
            Timestamp(TimeUnit::Microsecond, _) => Self::numbers::<TimestampMicrosecondType>(column),
            Timestamp(TimeUnit::Nanosecond, _) => Self::numbers::<TimestampNanosecondType>(column),
            Time32(TimeUnit::Second) => Self::numbers::<Time32SecondType>(column),
            Time32(_) => Self::numbers::<Time32MillisecondType>(column),
            Time64(TimeUnit::Microsecond) => Self::numbers::<Time64MicrosecondType>(column),
            Time64(_) => Self::numbers::<Time64NanosecondType>(column),
            Duration(TimeUnit::Second) => Self::numbers::<DurationSecondType>(column),
            Duration(TimeUnit::Millisecond) => Self::numbers::<DurationMillisecondType>(column),
            Duration(TimeUnit::Microsecond) => Self::numbers::<DurationMicrosecondType>(column),
            Duration(TimeUnit::Nanosecond) => Self::numbers::<DurationNanosecondType>(column),
            _ => None,
        }
    }

    fn texts(column: &'a dyn Array) -> Option<Self> {
        match column.data_type() {
            DataType::Utf8 => {
                Self::bytes(column.as_string_opt::<i32>().map(|column| |row| column.value(row).as_bytes()))
            }
            DataType::LargeUtf8 => {
                Self::bytes(column.as_string_opt::<i64>().map(|column| |row| column.value(row).as_bytes()))
            }
            DataType::Utf8View => {
                Self::bytes(column.as_string_view_opt().map(|column| |row| column.value(row).as_bytes()))
            }
            DataType::Binary => Self::bytes(column.as_binary_opt::<i32>().map(|column| |row| column.value(row))),
            DataType::LargeBinary => Self::bytes(column.as_binary_opt::<i64>().map(|column| |row| column.value(row))),
            DataType::BinaryView => Self::bytes(column.as_binary_view_opt().map(|column| |row| column.value(row))),
            DataType::FixedSizeBinary(_) => {
                Self::bytes(column.as_fixed_size_binary_opt().map(|column| |row| trimmed_fixed(column.value(row))))
            }
            _ => None,
        }
    }

    fn bytes(value: Option<impl Fn(usize) -> &'a [u8] + 'a>) -> Option<Self> {
        value.map(|value| Self::written(move |row, text| text.extend_from_slice(value(row).trim_ascii())))
    }

    /// Appends the text of a cell.
    pub fn write(&self, row: usize, text: &mut Vec<u8>) {
        (self.0)(row, text);
    }
}

fn write_number(text: &mut Vec<u8>, number: impl Display) {
    // Writing to memory does not fail.
    let _ = write!(text, "{number}");
}
