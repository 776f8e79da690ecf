//! Form of the messages in transmission, which the negotiation decides.

use super::proto::{EXTENDED_REQUEST_BYTES, REQUEST_BYTES};

/// Form of the messages in transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Compact requests and simple replies.
    #[default]
    Simple,
    /// Compact requests. Reads are answered in chunks, and errors have a text.
    Structured,
    /// Requests with lengths of 64 bits. Every reply consists of chunks, whose headers are as long as those of requests.
    Extended,
}

impl Mode {
    /// Whether reads are answered in chunks.
    pub fn has_chunks(self) -> bool {
        self != Self::Simple
    }

    /// Bytes of a request before its data.
    pub fn request_bytes(self) -> usize {
        match self {
            Self::Simple | Self::Structured => REQUEST_BYTES,
            Self::Extended => EXTENDED_REQUEST_BYTES,
        }
    }

    /// Bytes of the header of a reply to a read, before its payload.
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::Simple => 16,
            Self::Structured => 20,
            Self::Extended => 32,
        }
    }

    /// Bytes of a reply to a read before its data. A chunk has the offset of its data first.
    pub fn data_header_bytes(self) -> usize {
        self.header_bytes() + if self.has_chunks() { 8 } else { 0 }
    }

    /// Bytes of a chunk that announces zeros.
    pub fn hole_chunk_bytes(self) -> usize {
        self.data_header_bytes() + 4
    }
}
