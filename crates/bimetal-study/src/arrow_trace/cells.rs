//! The cells of a column of a record batch as text.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;
use std::rc::Rc;

use arrow_schema::DataType;

use crate::table_file::trimmed_fixed;

/// A buffer: a part of the file, or decompressed.
pub type Bytes<'a> = Cow<'a, [u8]>;

/// Bytes of a view, and the longest text within it.
const VIEW_BYTES: usize = 16;
const VIEW_TEXT_MAX: usize = 12;

/// The kind of a column that [`Cells`] cannot be made of, for a message; `None` for all others.
pub fn unsuitable_kind(kind: &DataType) -> Option<&'static str> {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Dictionary,
        FixedSizeBinary, FixedSizeList, LargeBinary, LargeList, LargeListView, LargeUtf8, List, ListView, Struct, Utf8,
        Utf8View,
    };
    match kind {
        kind if Number::of(kind).is_some() => None,
        Boolean | Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => None,
        FixedSizeBinary(bytes) if *bytes > 0 => None,
        Dictionary(_, values) if !matches!(**values, Dictionary(..)) => unsuitable_kind(values),
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Some("a decimal"),
        Date32 | Date64 => Some("a date"),
        List(_) | LargeList(_) | ListView(_) | LargeListView(_) | FixedSizeList(..) => Some("a list"),
        Struct(_) => Some("a struct"),
        _ => Some("of a special type"),
    }
}

/// A type of numbers, little-endian.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
}

impl Number {
    /// The numbers of a column of this type. Times and decimals without a fraction are integers.
    pub fn of(kind: &DataType) -> Option<Self> {
        use DataType as Kind;
        Some(match kind {
            Kind::Int8 => Self::Int8,
            Kind::Int16 => Self::Int16,
            Kind::Int32 | Kind::Time32(_) | Kind::Decimal32(_, 0) => Self::Int32,
            Kind::Int64 | Kind::Decimal64(_, 0) => Self::Int64,
            Kind::Timestamp(..) | Kind::Time64(_) | Kind::Duration(_) => Self::Int64,
            Kind::Decimal128(_, 0) => Self::Int128,
            Kind::UInt8 => Self::UInt8,
            Kind::UInt16 => Self::UInt16,
            Kind::UInt32 => Self::UInt32,
            Kind::UInt64 => Self::UInt64,
            Kind::Float32 => Self::Float32,
            Kind::Float64 => Self::Float64,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 => 8,
            Self::Int128 => 16,
        }
    }

    /// The number in a row as text.
    fn write(self, cells: &[u8], row: usize, text: &mut Vec<u8>) {
        match self {
            Self::Int8 => write_number(text, i8::from_le_bytes(cell(cells, row))),
            Self::Int16 => write_number(text, i16::from_le_bytes(cell(cells, row))),
            Self::Int32 => write_number(text, i32::from_le_bytes(cell(cells, row))),
            Self::Int64 => write_number(text, i64::from_le_bytes(cell(cells, row))),
            Self::Int128 => write_number(text, i128::from_le_bytes(cell(cells, row))),
            Self::UInt8 => write_number(text, u8::from_le_bytes(cell(cells, row))),
            Self::UInt16 => write_number(text, u16::from_le_bytes(cell(cells, row))),
            Self::UInt32 => write_number(text, u32::from_le_bytes(cell(cells, row))),
            Self::UInt64 => write_number(text, u64::from_le_bytes(cell(cells, row))),
            Self::Float32 => write_number(text, f32::from_le_bytes(cell(cells, row))),
            Self::Float64 => write_number(text, f64::from_le_bytes(cell(cells, row))),
        }
    }

    /// The number in a row, if it can be the index of a value.
    fn index(self, cells: &[u8], row: usize) -> Option<usize> {
        match self {
            Self::Int8 => i8::from_le_bytes(cell(cells, row)).try_into().ok(),
            Self::Int16 => i16::from_le_bytes(cell(cells, row)).try_into().ok(),
            Self::Int32 => i32::from_le_bytes(cell(cells, row)).try_into().ok(),
            Self::Int64 => i64::from_le_bytes(cell(cells, row)).try_into().ok(),
            Self::UInt8 => Some(u8::from_le_bytes(cell(cells, row)).into()),
            Self::UInt16 => Some(u16::from_le_bytes(cell(cells, row)).into()),
            Self::UInt32 => u32::from_le_bytes(cell(cells, row)).try_into().ok(),
            Self::UInt64 => u64::from_le_bytes(cell(cells, row)).try_into().ok(),
            Self::Int128 | Self::Float32 | Self::Float64 => None,
        }
    }
}

/// The bytes of a row. Zeros after the end, which [`Cells::are_whole`] excludes.
fn cell<const BYTES: usize>(cells: &[u8], row: usize) -> [u8; BYTES] {
    cells.get(row * BYTES..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; BYTES])
}

fn write_number(text: &mut Vec<u8>, number: impl Display) {
    // Writing to memory does not fail.
    let _ = write!(text, "{number}");
}

fn bit(bits: &[u8], row: usize) -> bool {
    bits.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
}

/// The values of a column.
pub enum Values<'a> {
    /// A bit for each row.
    Truth(Bytes<'a>),
    Numbers {
        cells: Bytes<'a>,
        number: Number,
    },
    /// Texts one after another. `ends` has the start of the first and the end of each.
    Texts {
        ends: Bytes<'a>,
        end: Number,
        data: Bytes<'a>,
    },
    /// For each row a text, or its place in one of the buffers.
    Views {
        views: Bytes<'a>,
        data: Vec<Bytes<'a>>,
    },
    /// Texts of the same number of bytes.
    Fixed {
        cells: Bytes<'a>,
        bytes: usize,
    },
    /// For each row the index of a value in the parts together.
    Dictionary {
        keys: Bytes<'a>,
        key: Number,
        parts: Vec<Rc<Cells<'a>>>,
    },
}

/// The cells of a column.
pub struct Cells<'a> {
    /// Number of rows.
    pub rows: usize,
    /// A bit for each row that has a value, if not all have one.
    pub present: Option<Bytes<'a>>,
    /// The values.
    pub values: Values<'a>,
}

impl Cells<'_> {
    /// Whether the buffers have all values, and no text or key lies outside of its buffer.
    pub fn are_whole(&self) -> bool {
        let has = |buffer: &[u8], bytes: usize| self.rows.checked_mul(bytes).is_some_and(|bytes| bytes <= buffer.len());
        let has_bits = |buffer: &[u8]| self.rows.div_ceil(8) <= buffer.len();
        let has_values = match &self.values {
            Values::Truth(bits) => has_bits(bits),
            Values::Numbers { cells, number } => has(cells, number.bytes()),
            Values::Texts { ends, end, .. } => {
                self.rows == 0 || has(ends.get(end.bytes()..).unwrap_or(&[]), end.bytes())
            }
            Values::Views { views, .. } => has(views, VIEW_BYTES),
            Values::Fixed { cells, bytes } => has(cells, *bytes),
            Values::Dictionary { keys, key, .. } => has(keys, key.bytes()),
        };
        let is_valid = |row: usize| match &self.values {
            Values::Truth(_) | Values::Numbers { .. } => true,
            Values::Texts { .. } | Values::Views { .. } | Values::Fixed { .. } => self.text(row).is_some(),
            Values::Dictionary { .. } => !self.is_present(row) || self.value(row).is_some(),
        };
        has_values && self.present.as_deref().is_none_or(has_bits) && (0..self.rows).all(is_valid)
    }

    /// The first row without a value.
    pub fn first_null(&self) -> Option<usize> {
        (0..self.rows).find(|&row| {
            let is_null = |(part, row): (&Rc<Self>, usize)| !part.is_present(row);
            !self.is_present(row) || self.value(row).is_some_and(is_null)
        })
    }

    fn is_present(&self, row: usize) -> bool {
        self.present.as_deref().is_none_or(|present| bit(present, row))
    }

    /// The part of the dictionary with the value of a row, and the row of the value.
    fn value(&self, row: usize) -> Option<(&Rc<Self>, usize)> {
        let Values::Dictionary { keys, key, parts } = &self.values else { return None };
        let mut index = key.index(keys, row)?;
        for part in parts {
            if index < part.rows {
                return Some((part, index));
            }
            index -= part.rows;
        }
        None
    }

    /// The text of a row.
    fn text(&self, row: usize) -> Option<&[u8]> {
        match &self.values {
            Values::Texts { ends, end, data } => data.get(end.index(ends, row)?..end.index(ends, row + 1)?),
            Values::Views { views, data } => {
                let view = views.get(row * VIEW_BYTES..)?.first_chunk::<VIEW_BYTES>()?;
                let word = |at: usize| Number::UInt32.index(view, at);
                let length = word(0)?;
                if length <= VIEW_TEXT_MAX {
                    return view[4..].get(..length);
                }
                data.get(word(2)?)?.get(word(3)?..)?.get(..length)
            }
            Values::Fixed { cells, bytes } => cells.get(row * bytes..)?.get(..*bytes).map(trimmed_fixed),
            _ => None,
        }
    }

    /// Appends the text of a cell. The row must have a value.
    pub fn write(&self, row: usize, text: &mut Vec<u8>) {
        match &self.values {
            Values::Truth(bits) => write_number(text, u8::from(bit(bits, row))),
            Values::Numbers { cells, number } => number.write(cells, row, text),
            Values::Dictionary { .. } => {
                if let Some((part, row)) = self.value(row) {
                    part.write(row, text);
                }
            }
            _ => text.extend_from_slice(self.text(row).unwrap_or_default().trim_ascii()),
        }
    }
}
