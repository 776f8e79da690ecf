//! The messages of an Arrow file or stream: the schema, dictionaries and record batches.

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{Block, MetadataVersion, RecordBatch};
use arrow_schema::Schema;

/// The first and last bytes of a file.
const MAGIC: &[u8] = b"ARROW1";
/// The first bytes of a message.
const MARK: &[u8] = &[0xff; 4];

/// The reason why a file cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Reason {
    /// It violates the format.
    Damaged(String),
    /// It is valid, but not supported.
    Unsupported { what: &'static str, hint: &'static str },
}

impl Reason {
    /// The dictionaries are too large.
    pub const DICTIONARIES: Self = Self::Unsupported {
        what: "the dictionaries of its columns have more than 1 GiB",
        hint: "write the columns without dictionaries",
    };
    /// A buffer is too large.
    pub const BUFFER: Self = Self::Unsupported {
        what: "a compressed column has more than 1 GiB in one record batch",
        hint: "write it in smaller record batches, or uncompressed",
    };
    /// The compression is unknown.
    pub const CODEC: Self = Self::Unsupported {
        what: "its compression is unsupported",
        hint: "write it with lz4 or zstd, or uncompressed",
    };
    const BYTE_ORDER: Self =
        Self::Unsupported { what: "its numbers are big-endian", hint: "write it as little-endian, or as CSV" };

    fn damaged(what: &str) -> Self {
        Self::Damaged(what.to_owned())
    }
}

/// A result whose error is the reason why a file cannot be read.
pub type Checked<T> = Result<T, Reason>;

/// An error if a part of the file lies outside of it.
fn cut() -> Reason {
    Reason::damaged("a message ends after the end")
}

/// A file or stream as its schema and messages.
pub struct Messages {
    pub schema: Schema,
    pub version: MetadataVersion,
    /// The id of the dictionary of each column.
    pub dictionaries: Vec<Option<i64>>,
    /// Dictionaries and record batches, in the order in which they must be read.
    pub messages: Vec<Message>,
}

/// A message within the file.
pub struct Message {
    start: usize,
    /// Bytes of its header and of its body.
    header: usize,
    body: usize,
}

/// The content of a message, with the bytes in which its buffers are.
pub enum Content<'a> {
    /// Values of the dictionary with this id, which follow or replace the earlier ones.
    Dictionary { id: i64, follows: bool, values: RecordBatch<'a>, body: &'a [u8] },
    /// A record batch with a number of rows.
    Rows { rows: u64, batch: RecordBatch<'a>, body: &'a [u8] },
}

impl Messages {
    /// The messages of a file or, if it does not start like a file, of a stream.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn of(bytes: &[u8]) -> Checked<Self> {
        if bytes.starts_with(MAGIC) { Self::of_file(bytes) } else { Self::of_stream(bytes) }
    }

    fn new(schema: arrow_ipc::Schema<'_>, version: MetadataVersion, messages: Vec<Message>) -> Checked<Self> {
        if !schema.endianness().equals_to_target_endianness() {
            return Err(Reason::BYTE_ORDER);
        }
        let fields = schema.fields().into_iter().flatten();
        let dictionaries = fields.map(|field| field.dictionary().map(|dictionary| dictionary.id())).collect();
        let schema = try_fb_to_schema(schema).map_err(|error| Reason::Damaged(error.to_string()))?;
        Ok(Self { schema, version, dictionaries, messages })
    }

    /// A file has its schema and the places of its messages in its footer.
    fn of_file(bytes: &[u8]) -> Checked<Self> {
        let (body, end) = bytes
            .split_last_chunk::<10>()
            .filter(|(_, end)| end.ends_with(MAGIC))
            .ok_or_else(|| Reason::damaged("it does not end with `ARROW1`"))?;
        let length = read_footer_length(*end).map_err(|error| Reason::Damaged(error.to_string()))?;
        let start = body.len().checked_sub(length).filter(|&start| start >= MAGIC.len());
        let footer = start.map(|start| &body[start..]);
        let footer = footer.ok_or_else(|| Reason::damaged("its footer is longer than the file"))?;
        let footer = arrow_ipc::root_as_footer(footer).map_err(|_| Reason::damaged("its footer is invalid"))?;
        let schema = footer.schema().ok_or_else(|| Reason::damaged("its footer has no schema"))?;
        let dictionaries = footer.dictionaries().into_iter().flatten();
        let blocks = dictionaries.chain(footer.recordBatches().into_iter().flatten());
        let messages = blocks.map(|block| Message::at(block, bytes.len())).collect::<Checked<_>>()?;
        Self::new(schema, footer.version(), messages)
    }

    /// A stream consists of messages: first the schema, then the others in order, and a mark at the end.
    fn of_stream(bytes: &[u8]) -> Checked<Self> {
        let mut messages = Vec::new();
        let mut end = 0;
        while let Some(message) = Message::starting_at(end, bytes)? {
            end = message.start + message.header + message.body;
            messages.push(message);
        }
        // The mark has 8 bytes.
        if end + 8 != bytes.len() {
            return Err(Reason::damaged("it goes on after the end of the stream"));
        }
        let no_schema = || Reason::damaged("it does not start with a schema");
        if messages.is_empty() {
            return Err(no_schema());
        }
        let first = messages.remove(0);
        let header = first.header(bytes)?;
        Self::new(header.header_as_schema().ok_or_else(no_schema)?, header.version(), messages)
    }
}

impl Message {
    /// The message at this place in a file of `bytes` bytes.
    fn at(block: &Block, bytes: usize) -> Checked<Self> {
        let start = usize::try_from(block.offset()).map_err(|_| cut())?;
        let header = usize::try_from(block.metaDataLength()).map_err(|_| cut())?;
        let body = usize::try_from(block.bodyLength()).map_err(|_| cut())?;
        let end = start.checked_add(header).and_then(|end| end.checked_add(body));
        if end.is_none_or(|end| end > bytes) {
            return Err(cut());
        }
        Ok(Self { start, header, body })
    }

    /// The message of a stream that starts here, or `None` at the mark of the end.
    fn starting_at(start: usize, bytes: &[u8]) -> Checked<Option<Self>> {
        let rest = bytes.get(start..).filter(|rest| !rest.is_empty());
        let rest = rest.ok_or_else(|| Reason::damaged("it lacks the mark at the end of a stream"))?;
        let Some((length, _)) = rest.strip_prefix(MARK).and_then(|rest| rest.split_first_chunk::<4>()) else {
            return Err(Reason::damaged("a message does not start with its mark"));
        };
        let length = i32::from_le_bytes(*length);
        if length == 0 {
            return Ok(None);
        }
        let place = |body| {
            let offset = i64::try_from(start).map_err(|_| cut())?;
            Self::at(&Block::new(offset, length.checked_add(8).ok_or_else(cut)?, body), bytes.len())
        };
        let body = place(0)?.header(bytes)?.bodyLength();
        place(body).map(Some)
    }

    fn header<'a>(&self, bytes: &'a [u8]) -> Checked<arrow_ipc::Message<'a>> {
        let header = bytes.get(self.start..self.start + self.header).ok_or_else(cut)?;
        // Writers before version 0.15 of the format wrote a length without a mark.
        let length_end = if header.starts_with(MARK) { 8 } else { 4 };
        let invalid = || Reason::damaged("the header of a message is invalid");
        let header = header.get(length_end..).ok_or_else(invalid)?;
        arrow_ipc::root_as_message(header).map_err(|_| invalid())
    }

    /// The content.
    ///
    /// # Errors
    /// An invalid header, or one of another kind.
    pub fn content<'a>(&self, bytes: &'a [u8]) -> Checked<Content<'a>> {
        let header = self.header(bytes)?;
        let body = bytes.get(self.start + self.header..).and_then(|rest| rest.get(..self.body)).ok_or_else(cut)?;
        if let Some(batch) = header.header_as_record_batch() {
            let rows = u64::try_from(batch.length()).map_err(|_| Reason::damaged("a number of rows is negative"))?;
            return Ok(Content::Rows { rows, batch, body });
        }
        let Some(dictionary) = header.header_as_dictionary_batch() else {
            return Err(Reason::damaged("a message is neither a record batch nor a dictionary"));
        };
        let values = dictionary.data().ok_or_else(|| Reason::damaged("a dictionary has no values"))?;
        Ok(Content::Dictionary { id: dictionary.id(), follows: dictionary.isDelta(), values, body })
    }
}
