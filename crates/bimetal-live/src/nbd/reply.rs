//! Writes replies: to options, simple ones, and in chunks.

use super::buffer::Output;
use super::proto::*;

/// Bytes of a simple reply before its data.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Bytes of a chunk before its payload.
pub const CHUNK_HEADER_BYTES: usize = 20;
/// Bytes of a chunk of data before its data.
pub const DATA_HEADER_BYTES: usize = CHUNK_HEADER_BYTES + 8;
/// Bytes of a chunk that announces zeros.
pub const HOLE_CHUNK_BYTES: usize = CHUNK_HEADER_BYTES + 12;

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

/// Writes a simple reply without data; `error` is 0 for success.
pub fn simple(out: &mut Output, cookie: u64, error: u32) {
    simple_header(out.room(SIMPLE_REPLY_BYTES), cookie, error);
    out.fill(SIMPLE_REPLY_BYTES);
}

/// Writes the header of a simple reply to the first bytes of `into`.
pub fn simple_header(into: &mut [u8], cookie: u64, error: u32) {
    into[..4].copy_from_slice(&NBD_SIMPLE_REPLY_MAGIC.to_be_bytes());
    into[4..8].copy_from_slice(&error.to_be_bytes());
    into[8..16].copy_from_slice(&cookie.to_be_bytes());
}

/// Writes the header of a chunk to the first bytes of `into`.
pub fn chunk_header(into: &mut [u8], flags: u16, kind: u16, cookie: u64, payload_bytes: usize) {
    into[..4].copy_from_slice(&NBD_STRUCTURED_REPLY_MAGIC.to_be_bytes());
    into[4..6].copy_from_slice(&flags.to_be_bytes());
    into[6..8].copy_from_slice(&kind.to_be_bytes());
    into[8..16].copy_from_slice(&cookie.to_be_bytes());
    into[16..20].copy_from_slice(&(payload_bytes as u32).to_be_bytes());
}

/// Writes the only chunk of a reply without data.
pub fn none_chunk(out: &mut Output, cookie: u64) {
    chunk_header(out.room(CHUNK_HEADER_BYTES), NBD_REPLY_FLAG_DONE, NBD_REPLY_TYPE_NONE, cookie, 0);
    out.fill(CHUNK_HEADER_BYTES);
}

/// Writes the header of a chunk with `bytes` bytes of data at `offset` to the first bytes of `into`.
pub fn data_header(into: &mut [u8], flags: u16, cookie: u64, offset: u64, bytes: usize) {
    chunk_header(into, flags, NBD_REPLY_TYPE_OFFSET_DATA, cookie, 8 + bytes);
    into[CHUNK_HEADER_BYTES..DATA_HEADER_BYTES].copy_from_slice(&offset.to_be_bytes());
}

/// Writes a chunk which announces `bytes` bytes of zeros at `offset` to the first bytes of `into`.
pub fn hole_chunk(into: &mut [u8], flags: u16, cookie: u64, offset: u64, bytes: usize) {
    chunk_header(into, flags, NBD_REPLY_TYPE_OFFSET_HOLE, cookie, 12);
    into[CHUNK_HEADER_BYTES..DATA_HEADER_BYTES].copy_from_slice(&offset.to_be_bytes());
    into[DATA_HEADER_BYTES..HOLE_CHUNK_BYTES].copy_from_slice(&(bytes as u32).to_be_bytes());
}

/// Writes the only chunk of a reply with an error.
pub fn error_chunk(out: &mut Output, cookie: u64, refusal: Refusal) {
    let Refusal { error, message } = refusal;
    let payload_bytes = 6 + message.len();
    chunk_header(out.room(CHUNK_HEADER_BYTES), NBD_REPLY_FLAG_DONE, NBD_REPLY_TYPE_ERROR, cookie, payload_bytes);
    out.fill(CHUNK_HEADER_BYTES);
    out.put(&(error as u32).to_be_bytes());
    out.put(&(message.len() as u16).to_be_bytes());
    out.put(message.as_bytes());
}
