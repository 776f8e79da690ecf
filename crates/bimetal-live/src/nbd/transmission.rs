//! Transmission: parses requests from the input and checks them. A valid request is within the device, aligned and
//! within the length limit; all others are refused here, with the error that the protocol requires.

use super::negotiation::Agreement;
use super::proto::*;
use super::reply::{DATA_HEADER_BYTES, Refusal, SIMPLE_REPLY_BYTES};
use super::{Geometry, MAX_PAYLOAD_BYTES};
use crate::block_device::SECTOR_BYTES;

/// Operation of a request, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'i> {
    /// Reads data; the reply is one chunk if `whole`.
    Read { sector: u64, bytes: usize, whole: bool },
    /// Writes data.
    Write { sector: u64, data: &'i [u8], fua: bool },
    /// Makes all completed writes durable.
    Flush,
    /// Discards data.
    Trim { sector: u64, sectors: u64, fua: bool },
    /// Makes sectors read as zeros: allocated if `no_hole`; if `fast`, only if that is faster than a write.
    WriteZeroes { sector: u64, sectors: u64, fua: bool, no_hole: bool, fast: bool },
    /// Sectors will be read soon.
    Cache { sector: u64, sectors: u64 },
    /// Reports allocated extents and holes; if `one`, only the first extent.
    BlockStatus { sector: u64, sectors: u64, one: bool },
}

impl Command<'_> {
    /// Whether the command waits for durable storage.
    pub fn waits(&self) -> bool {
        match *self {
            Self::Flush => true,
            Self::Write { fua, .. } | Self::Trim { fua, .. } | Self::WriteZeroes { fua, .. } => fua,
            Self::Read { .. } | Self::Cache { .. } | Self::BlockStatus { .. } => false,
        }
    }

    /// Bytes of the reply to a read. Other replies are short; 0 stands for them.
    pub fn reply_bytes(&self, structured: bool) -> usize {
        match *self {
            Self::Read { bytes, .. } if structured => DATA_HEADER_BYTES + bytes,
            Self::Read { bytes, .. } => SIMPLE_REPLY_BYTES + bytes,
            _ => 0,
        }
    }
}

/// First message of the input, of which `used` bytes are consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<'i> {
    /// An incomplete request of this length in bytes.
    Incomplete(usize),
    /// A request that can be executed.
    Request { used: usize, cookie: u64, command: Command<'i> },
    /// A request that is refused, followed by its `data` bytes of data.
    Refused { used: usize, cookie: u64, refusal: Refusal, data: u64 },
    /// The client ends the session.
    Disconnect,
    /// The input is not a request.
    Violation(&'static str),
}

/// The fields of a request.
struct Header {
    flags: u16,
    kind: u16,
    offset: u64,
    bytes: u32,
}

/// Parses the request at the head of `input`. A write is refused before its data arrive.
pub fn receive(input: &[u8], agreement: Agreement, geometry: Geometry) -> Received<'_> {
    let Some((header, rest)) = input.split_first_chunk::<REQUEST_BYTES>() else {
        return Received::Incomplete(REQUEST_BYTES);
    };
    let [m0, m1, m2, m3, f0, f1, k0, k1, c0, c1, c2, c3, c4, c5, c6, c7, ..] = *header;
    let [.., o0, o1, o2, o3, o4, o5, o6, o7, b0, b1, b2, b3] = *header;
    if u32::from_be_bytes([m0, m1, m2, m3]) != NBD_REQUEST_MAGIC {
        return Received::Violation("a request has a wrong magic number");
    }
    let cookie = u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]);
    let header = Header {
        flags: u16::from_be_bytes([f0, f1]),
        kind: u16::from_be_bytes([k0, k1]),
        offset: u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
        bytes: u32::from_be_bytes([b0, b1, b2, b3]),
    };
    if header.kind == NBD_CMD_DISC {
        return Received::Disconnect;
    }
    let data_bytes = if header.kind == NBD_CMD_WRITE { header.bytes as usize } else { 0 };
    if let Err(refusal) = header.check(agreement, geometry) {
        return Received::Refused { used: REQUEST_BYTES, cookie, refusal, data: data_bytes as u64 };
    }
    match rest.get(..data_bytes) {
        Some(data) => Received::Request { used: REQUEST_BYTES + data_bytes, cookie, command: header.command(data) },
        None => Received::Incomplete(REQUEST_BYTES + data_bytes),
    }
}

const fn invalid(message: &'static str) -> Refusal {
    Refusal { error: NbdError::Inval, message }
}

impl Header {
    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    fn check(&self, agreement: Agreement, geometry: Geometry) -> Result<(), Refusal> {
        let flags = match self.kind {
            NBD_CMD_READ if agreement.structured => NBD_CMD_FLAG_DF,
            NBD_CMD_WRITE_ZEROES => NBD_CMD_FLAG_NO_HOLE | NBD_CMD_FLAG_FAST_ZERO,
            NBD_CMD_BLOCK_STATUS => NBD_CMD_FLAG_REQ_ONE,
            NBD_CMD_READ | NBD_CMD_WRITE | NBD_CMD_FLUSH | NBD_CMD_TRIM | NBD_CMD_CACHE => 0,
            _ => return Err(invalid("the command is unknown")),
        };
        // FUA is allowed with every command; it has no effect on commands that do not write.
        if self.has(!(flags | NBD_CMD_FLAG_FUA)) {
            return Err(invalid("the command does not have that flag"));
        }
        if self.kind == NBD_CMD_FLUSH {
            let plain = self.offset == 0 && self.bytes == 0;
            return if plain { Ok(()) } else { Err(invalid("a flush has neither offset nor length")) };
        }
        let writes = matches!(self.kind, NBD_CMD_WRITE | NBD_CMD_TRIM | NBD_CMD_WRITE_ZEROES);
        if writes && geometry.read_only {
            return Err(Refusal { error: NbdError::Perm, message: "the export is read-only" });
        }
        if self.kind == NBD_CMD_BLOCK_STATUS {
            if !agreement.allocation {
                return Err(invalid("no context was chosen"));
            }
            if self.bytes == 0 {
                return Err(invalid("the status of nothing"));
            }
        }
        // The limit is for data in memory. A trim or a query of block status may have any length of the field.
        if matches!(self.kind, NBD_CMD_READ | NBD_CMD_WRITE) && self.bytes as usize > MAX_PAYLOAD_BYTES {
            return Err(invalid("more data than a request may have"));
        }
        if !self.offset.is_multiple_of(SECTOR_BYTES) || !u64::from(self.bytes).is_multiple_of(SECTOR_BYTES) {
            return Err(invalid("not a multiple of 512 bytes"));
        }
        if self.offset.checked_add(self.bytes.into()).is_none_or(|end| end > geometry.bytes) {
            let grows = matches!(self.kind, NBD_CMD_WRITE | NBD_CMD_WRITE_ZEROES);
            let error = if grows { NbdError::NoSpc } else { NbdError::Inval };
            return Err(Refusal { error, message: "beyond the end of the device" });
        }
        Ok(())
    }

    /// The command, once it was checked.
    fn command<'i>(&self, data: &'i [u8]) -> Command<'i> {
        let (sector, sectors) = (self.offset / SECTOR_BYTES, u64::from(self.bytes) / SECTOR_BYTES);
        let fua = self.has(NBD_CMD_FLAG_FUA);
        match self.kind {
            NBD_CMD_READ => Command::Read { sector, bytes: self.bytes as usize, whole: self.has(NBD_CMD_FLAG_DF) },
            NBD_CMD_WRITE => Command::Write { sector, data, fua },
            NBD_CMD_TRIM => Command::Trim { sector, sectors, fua },
            NBD_CMD_CACHE => Command::Cache { sector, sectors },
            NBD_CMD_WRITE_ZEROES => Command::WriteZeroes {
                sector,
                sectors,
                fua,
                no_hole: self.has(NBD_CMD_FLAG_NO_HOLE),
                fast: self.has(NBD_CMD_FLAG_FAST_ZERO),
            },
            NBD_CMD_BLOCK_STATUS => Command::BlockStatus { sector, sectors, one: self.has(NBD_CMD_FLAG_REQ_ONE) },
            _ => Command::Flush,
        }
    }
}
