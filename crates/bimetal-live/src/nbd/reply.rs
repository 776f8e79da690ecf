//! Writes replies: to options, and to requests in each [`Mode`].

use super::buffer::Output;
use super::mode::Mode;
use super::proto::*;

/// Refusal of a request or an option, with a message for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Error number for the client's program.
    pub error: NbdError,
    /// Message for its user, at most [`STRING_BYTES_MAX`] bytes.
    pub message: &'static str,
}

/// Writes a reply to an option, with its type and its data in parts.
pub fn option(out: &mut Output, option: u32, reply: u32, parts: &[&[u8]]) {
    out.put(&NBD_REP_MAGIC.to_be_bytes());
    out.put(&option.to_be_bytes());
    out.put(&reply.to_be_bytes());
    out.put(&(parts.iter().map(|part| part.len()).sum::<usize>() as u32).to_be_bytes());
    for part in parts {
        out.put(part);
    }
}

/// The request that is answered: the form of its replies, and the fields that they repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// Form of the replies.
    pub mode: Mode,
    /// The number by which the client knows the request.
    pub cookie: u64,
    /// Its offset, which every extended reply repeats.
    pub offset: u64,
}

impl ReplyTo {
    /// Writes the header of a simple reply to the first bytes of `into`; `error` is 0 for success.
    pub fn simple_header(self, into: &mut [u8], error: u32) {
        into[..4].copy_from_slice(&NBD_SIMPLE_REPLY_MAGIC.to_be_bytes());
        into[4..8].copy_from_slice(&error.to_be_bytes());
        into[8..16].copy_from_slice(&self.cookie.to_be_bytes());
    }

    /// Writes the header of a chunk to the first bytes of `into`.
    fn chunk_header(self, into: &mut [u8], flags: u16, kind: u16, payload_bytes: usize) {
        into[4..6].copy_from_slice(&flags.to_be_bytes());
        into[6..8].copy_from_slice(&kind.to_be_bytes());
        into[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        let magic = if self.mode == Mode::Extended {
            into[16..24].copy_from_slice(&self.offset.to_be_bytes());
            into[24..32].copy_from_slice(&(payload_bytes as u64).to_be_bytes());
            NBD_EXTENDED_REPLY_MAGIC
        } else {
            into[16..20].copy_from_slice(&(payload_bytes as u32).to_be_bytes());
            NBD_STRUCTURED_REPLY_MAGIC
        };
        into[..4].copy_from_slice(&magic.to_be_bytes());
    }

    /// Writes the header of a chunk with `bytes` bytes of data at `offset` to the first bytes of `into`.
    pub fn data_header(self, into: &mut [u8], flags: u16, offset: u64, bytes: usize) {
        self.chunk_header(into, flags, NBD_REPLY_TYPE_OFFSET_DATA, 8 + bytes);
        into[self.mode.header_bytes()..self.mode.data_header_bytes()].copy_from_slice(&offset.to_be_bytes());
    }

    /// Writes a chunk which announces `bytes` bytes of zeros at `offset` to the first bytes of `into`.
    pub fn hole_chunk(self, into: &mut [u8], flags: u16, offset: u64, bytes: usize) {
        self.chunk_header(into, flags, NBD_REPLY_TYPE_OFFSET_HOLE, 12);
        let (at, end) = (self.mode.data_header_bytes(), self.mode.hole_chunk_bytes());
        into[self.mode.header_bytes()..at].copy_from_slice(&offset.to_be_bytes());
        into[at..end].copy_from_slice(&(bytes as u32).to_be_bytes());
    }

    /// Writes a simple reply without data; `error` is 0 for success.
    fn simple(self, out: &mut Output, error: u32) {
        let bytes = Mode::Simple.header_bytes();
        self.simple_header(out.room(bytes), error);
        out.fill(bytes);
    }

    /// Writes the header of the only chunk of a reply. Its payload of `payload_bytes` bytes follows.
    fn only_chunk(self, out: &mut Output, kind: u16, payload_bytes: usize) {
        let bytes = self.mode.header_bytes();
        self.chunk_header(out.room(bytes), NBD_REPLY_FLAG_DONE, kind, payload_bytes);
        out.fill(bytes);
    }

    /// Writes the reply to a request that has succeeded and returns no data.
    pub fn success(self, out: &mut Output) {
        match self.mode {
            Mode::Simple | Mode::Structured => self.simple(out, 0),
            Mode::Extended => self.only_chunk(out, NBD_REPLY_TYPE_NONE, 0),
        }
    }

    /// Writes the reply to a read of length 0.
    pub fn no_data(self, out: &mut Output) {
        match self.mode {
            Mode::Simple => self.simple(out, 0),
            Mode::Structured | Mode::Extended => self.only_chunk(out, NBD_REPLY_TYPE_NONE, 0),
        }
    }

    /// Writes that the request was refused or failed.
    pub fn refusal(self, out: &mut Output, refusal: Refusal) {
        let Refusal { error, message } = refusal;
        if !self.mode.has_chunks() {
            return self.simple(out, error as u32);
        }
        self.only_chunk(out, NBD_REPLY_TYPE_ERROR, 6 + message.len());
        out.put(&(error as u32).to_be_bytes());
        out.put(&(message.len() as u16).to_be_bytes());
        out.put(message.as_bytes());
    }

    /// Bytes of a block status before its extents.
    fn status_header_bytes(self) -> usize {
        self.mode.header_bytes() + if self.mode == Mode::Extended { 8 } else { 4 }
    }

    /// Begins a block status. Its extents and then [`ReplyTo::end_status`] follow.
    pub fn begin_status(self, out: &mut Output) {
        let bytes = self.status_header_bytes();
        out.room(bytes);
        out.fill(bytes);
    }

    /// Adds an extent of `bytes` bytes to a block status.
    pub fn extent(self, out: &mut Output, bytes: u64, state: u32) {
        match self.mode {
            Mode::Simple | Mode::Structured => {
                out.put(&(bytes as u32).to_be_bytes());
                out.put(&state.to_be_bytes());
            }
            Mode::Extended => {
                out.put(&bytes.to_be_bytes());
                out.put(&u64::from(state).to_be_bytes());
            }
        }
    }

    /// Completes `reply`, a block status of a context with this number of extents.
    pub fn end_status(self, reply: &mut [u8], context: u32, extents: usize) {
        let at = self.mode.header_bytes();
        let payload_bytes = reply.len() - at;
        reply[at..at + 4].copy_from_slice(&context.to_be_bytes());
        let kind = match self.mode {
            Mode::Simple | Mode::Structured => NBD_REPLY_TYPE_BLOCK_STATUS,
            Mode::Extended => {
                reply[at + 4..at + 8].copy_from_slice(&(extents as u32).to_be_bytes());
                NBD_REPLY_TYPE_BLOCK_STATUS_EXT
            }
        };
        self.chunk_header(reply, NBD_REPLY_FLAG_DONE, kind, payload_bytes);
    }
}
