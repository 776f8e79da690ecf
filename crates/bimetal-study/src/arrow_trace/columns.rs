//! The columns of a record batch: their buffers, decompressed and checked.
//!
//! A column is a node with its number of values, and buffers: a bit for each value that exists, then the values. Other
//! columns than the required ones are skipped, and not decompressed. (Apache Arrow, Columnar Format.)

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::rc::Rc;
use std::vec::IntoIter;

use arrow_ipc::{CompressionType, FieldNode, MetadataVersion, RecordBatch};
use arrow_schema::{DataType, UnionMode};

use super::cells::{Bytes, Cells, Number, Values};
use super::messages::{Checked, Reason};

/// Largest buffer of a compressed batch after its decompression, in bytes.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// The dictionaries by their ids. A dictionary has several parts if it was extended.
pub type Dictionaries<'a> = BTreeMap<i64, Vec<Rc<Cells<'a>>>>;

/// A record batch, of which columns are taken in the order of the file.
pub struct Columns<'a> {
    nodes: IntoIter<FieldNode>,
    buffers: IntoIter<arrow_ipc::Buffer>,
    /// Number of data buffers of each column of views.
    view_buffers: IntoIter<i64>,
    body: &'a [u8],
    codec: Option<CompressionType>,
    version: MetadataVersion,
    /// Remaining bytes that its buffers may have after their decompression.
    budget: u64,
}

fn damaged<T>(what: &str) -> Checked<T> {
    Err(Reason::Damaged(what.to_owned()))
}

impl<'a> Columns<'a> {
    /// A batch of a file of this version; its buffers are in `body`, and may have `budget` bytes.
    pub fn new(batch: &RecordBatch<'_>, body: &'a [u8], version: MetadataVersion, budget: u64) -> Self {
        Self {
            nodes: batch.nodes().into_iter().flatten().copied().collect::<Vec<_>>().into_iter(),
            buffers: batch.buffers().into_iter().flatten().copied().collect::<Vec<_>>().into_iter(),
            view_buffers: batch.variadicBufferCounts().into_iter().flatten().collect::<Vec<_>>().into_iter(),
            body,
            codec: batch.compression().map(|compression| compression.codec()),
            version,
            budget,
        }
    }

    /// The bytes that remain of the budget.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    fn node(&mut self) -> Checked<FieldNode> {
        self.nodes.next().map_or_else(|| damaged("a record batch has too few columns"), Ok)
    }

    /// The next buffer as stored.
    fn stored(&mut self) -> Checked<&'a [u8]> {
        let Some(buffer) = self.buffers.next() else { return damaged("a record batch has too few buffers") };
        let place = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let stored = place.and_then(|(offset, length)| self.body.get(offset..)?.get(..length));
        stored.map_or_else(|| damaged("a buffer ends after its message"), Ok)
    }

    fn buffer(&mut self) -> Checked<Bytes<'a>> {
        let stored = self.stored()?;
        let Some(codec) = self.codec.filter(|_| !stored.is_empty()) else {
            return self.within_budget(stored.len() as u64, |_| Ok(Cow::Borrowed(stored)));
        };
        // The number of bytes after the decompression is in front of the data; -1 means that they are not compressed.
        let Some((length, data)) = stored.split_first_chunk::<8>() else {
            return damaged("a compressed buffer has no length");
        };
        match i64::from_le_bytes(*length) {
            -1 => self.within_budget(data.len() as u64, |_| Ok(Cow::Borrowed(data))),
            length => {
                let length = u64::try_from(length).or_else(|_| damaged("the length of a buffer is negative"))?;
                self.within_budget(length, |length| decompress(codec, data, length).map(Cow::Owned))
            }
        }
    }

    fn within_budget(&mut self, bytes: u64, take: impl FnOnce(u64) -> Checked<Bytes<'a>>) -> Checked<Bytes<'a>> {
        self.budget = self.budget.checked_sub(bytes).ok_or(Reason::DICTIONARIES)?;
        take(bytes)
    }

    fn skip_buffers(&mut self, count: usize) -> Checked<()> {
        (0..count).try_for_each(|_| self.stored().map(|_| ()))
    }

    fn view_buffers(&mut self) -> Checked<usize> {
        let count = self.view_buffers.next().and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|&count| count <= self.buffers.len());
        count.map_or_else(|| damaged("a number of buffers is invalid"), Ok)
    }

    /// Skips a column of this type.
    pub fn skip(&mut self, kind: &DataType) -> Checked<()> {
        use DataType::{
            Binary, BinaryView, FixedSizeList, LargeBinary, LargeList, LargeListView, LargeUtf8, List, ListView, Map,
            Null, RunEndEncoded, Struct, Union, Utf8, Utf8View,
        };
        self.node()?;
        match kind {
            Null => Ok(()),
            Utf8 | LargeUtf8 | Binary | LargeBinary => self.skip_buffers(3),
            Utf8View | BinaryView => {
                let data = self.view_buffers()?;
                self.skip_buffers(2 + data)
            }
            List(item) | LargeList(item) | Map(item, _) => {
                self.skip_buffers(2)?;
                self.skip(item.data_type())
            }
            ListView(item) | LargeListView(item) => {
                self.skip_buffers(3)?;
                self.skip(item.data_type())
            }
            FixedSizeList(item, _) => {
                self.skip_buffers(1)?;
                self.skip(item.data_type())
            }
            Struct(fields) => {
                self.skip_buffers(1)?;
                fields.iter().try_for_each(|field| self.skip(field.data_type()))
            }
            RunEndEncoded(ends, values) => [ends, values].iter().try_for_each(|field| self.skip(field.data_type())),
            Union(fields, mode) => {
                let has_nulls = usize::from(self.version < MetadataVersion::V5);
                self.skip_buffers(has_nulls + 1 + usize::from(*mode == UnionMode::Dense))?;
                fields.iter().try_for_each(|(_, field)| self.skip(field.data_type()))
            }
            _ => self.skip_buffers(2),
        }
    }

    /// The cells of a column of this type, which is suitable according to
    /// [`unsuitable_kind`](super::cells::unsuitable_kind). `parts` is its dictionary, if it has one.
    pub fn take(&mut self, kind: &DataType, parts: &[Rc<Cells<'a>>]) -> Checked<Cells<'a>> {
        use DataType::{
            Binary, BinaryView, Boolean, Dictionary, FixedSizeBinary, LargeBinary, LargeUtf8, Utf8, Utf8View,
        };
        let node = self.node()?;
        let Ok(rows) = usize::try_from(node.length()) else { return damaged("a number of values is negative") };
        let present = self.buffer()?;
        let present = if node.null_count() == 0 { None } else { Some(present) };
        let values = match kind {
            Boolean => Values::Truth(self.buffer()?),
            Utf8 | Binary => Values::Texts { ends: self.buffer()?, end: Number::Int32, data: self.buffer()? },
            LargeUtf8 | LargeBinary => Values::Texts { ends: self.buffer()?, end: Number::Int64, data: self.buffer()? },
            Utf8View | BinaryView => {
                let count = self.view_buffers()?;
                let views = self.buffer()?;
                Values::Views { views, data: (0..count).map(|_| self.buffer()).collect::<Checked<_>>()? }
            }
            FixedSizeBinary(bytes) => {
                let bytes = usize::try_from(*bytes).or_else(|_| damaged("a number of bytes is negative"))?;
                Values::Fixed { cells: self.buffer()?, bytes }
            }
            Dictionary(key, _) => {
                let Some(key) = Number::of(key) else { return damaged("the keys of a dictionary are no integers") };
                Values::Dictionary { keys: self.buffer()?, key, parts: parts.to_vec() }
            }
            kind => {
                let Some(number) = Number::of(kind) else { return damaged("a column has an unknown type") };
                Values::Numbers { cells: self.buffer()?, number }
            }
        };
        let cells = Cells { rows, present, values };
        if cells.are_whole() {
            Ok(cells)
        } else {
            damaged("the values of a column are cut off or contradict one another")
        }
    }
}

/// The data of a compressed buffer, which must have `length` bytes.
fn decompress(codec: CompressionType, data: &[u8], length: u64) -> Checked<Vec<u8>> {
    if length > BUFFER_BYTES_MAX {
        return Err(Reason::BUFFER);
    }
    let mut bytes = Vec::new();
    // One byte more, so that a longer buffer is detected.
    let limit = length + 1;
    let read = match codec {
        CompressionType::ZSTD => {
            zstd::stream::read::Decoder::new(data).and_then(|decoder| decoder.take(limit).read_to_end(&mut bytes))
        }
        CompressionType::LZ4_FRAME => lz4_flex::frame::FrameDecoder::new(data).take(limit).read_to_end(&mut bytes),
        _ => return Err(Reason::CODEC),
    };
    match read {
        Ok(read) if read as u64 == length => Ok(bytes),
        _ => damaged("a compressed buffer is damaged"),
    }
}
