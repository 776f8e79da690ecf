//! Transmission: parses requests from the input and checks them. A valid request is within the device, aligned and
//! within the length limit; all others are refused here, with the error that the protocol requires.

use super::mode::Mode;
use super::negotiation::{Agreement, BASE_ALLOCATION_ID};
use super::proto::*;
use super::reply::{Refusal, ReplyTo};
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
    pub fn reply_bytes(&self, mode: Mode) -> usize {
        match *self {
            Self::Read { bytes, .. } => mode.data_header_bytes() + bytes,
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
    Request { used: usize, to: ReplyTo, command: Command<'i> },
    /// A request that is refused, followed by its `data` bytes of data.
    Refused { used: usize, to: ReplyTo, refusal: Refusal, data: u64 },
    /// The client ends the session.
    Disconnect,
    /// The input is not a request.
    Violation(&'static str),
}

/// Bytes of a request before its length; both forms of requests begin alike.
const BEGINNING_BYTES: usize = 24;
/// Bytes of data of a query for block status that names its contexts: the length of the queried range, and the number of
/// the only context.
const FILTER_BYTES: usize = 12;

/// The fields of a request.
struct Header {
    flags: u16,
    kind: u16,
    offset: u64,
    /// Length of the range.
    bytes: u64,
}

/// Parses the request at the head of `input`. A write is refused before its data arrive.
pub fn receive(input: &[u8], agreement: Agreement, geometry: Geometry) -> Received<'_> {
    let mode = agreement.mode;
    let header_bytes = mode.request_bytes();
    let Some((beginning, rest)) = input.split_first_chunk::<BEGINNING_BYTES>() else {
        return Received::Incomplete(header_bytes);
    };
    let length = match mode {
        Mode::Simple | Mode::Structured => {
            rest.split_first_chunk().map(|(&bytes, rest)| (u32::from_be_bytes(bytes).into(), rest))
        }
        Mode::Extended => rest.split_first_chunk().map(|(&bytes, rest)| (u64::from_be_bytes(bytes), rest)),
    };
    let Some((bytes, rest)) = length else { return Received::Incomplete(header_bytes) };
    let [m0, m1, m2, m3, f0, f1, k0, k1, c0, c1, c2, c3, c4, c5, c6, c7, offset @ ..] = *beginning;
    let magic = if mode == Mode::Extended { NBD_EXTENDED_REQUEST_MAGIC } else { NBD_REQUEST_MAGIC };
    if u32::from_be_bytes([m0, m1, m2, m3]) != magic {
        return Received::Violation("a request has a wrong magic number");
    }
    let cookie = u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]);
    let (flags, kind) = (u16::from_be_bytes([f0, f1]), u16::from_be_bytes([k0, k1]));
    let mut header = Header { flags, kind, offset: u64::from_be_bytes(offset), bytes };
    if kind == NBD_CMD_DISC {
        return Received::Disconnect;
    }
    let data_bytes = if header.has_data(mode) { bytes } else { 0 };
    if mode == Mode::Extended && data_bytes > MAX_PAYLOAD_BYTES as u64 {
        return Received::Violation("a request has more data than the server takes");
    }
    let to = ReplyTo { mode, cookie, offset: header.offset };
    let mut checked = Ok(());
    if kind == NBD_CMD_BLOCK_STATUS && data_bytes == FILTER_BYTES as u64 {
        let Some((filter, _)) = rest.split_first_chunk() else {
            return Received::Incomplete(header_bytes + FILTER_BYTES);
        };
        checked = header.filter(filter);
    }
    if let Err(refusal) = checked.and_then(|()| header.check(agreement, geometry, data_bytes)) {
        return Received::Refused { used: header_bytes, to, refusal, data: data_bytes };
    }
    let used = header_bytes + data_bytes as usize;
    match rest.get(..data_bytes as usize) {
        Some(data) => Received::Request { used, to, command: header.command(data) },
        None => Received::Incomplete(used),
    }
}

const fn invalid(message: &'static str) -> Refusal {
    Refusal { error: NbdError::Inval, message }
}

impl Header {
    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Whether data follow the header. Extended writes must have the flag, but those of QEMU 10.0 have data without it.
    fn has_data(&self, mode: Mode) -> bool {
        self.kind == NBD_CMD_WRITE || mode == Mode::Extended && self.has(NBD_CMD_FLAG_PAYLOAD_LEN)
    }

    /// Takes the length of the range from the data of a query that names its contexts, and checks that it names the only
    /// one.
    fn filter(&mut self, data: &[u8; FILTER_BYTES]) -> Result<(), Refusal> {
        let [bytes @ .., i0, i1, i2, i3] = *data;
        self.bytes = u64::from_be_bytes(bytes);
        match u32::from_be_bytes([i0, i1, i2, i3]) {
            BASE_ALLOCATION_ID => Ok(()),
            _ => Err(invalid("the context is unknown")),
        }
    }

    /// Checks the request, which has `data_bytes` bytes of data.
    fn check(&self, agreement: Agreement, geometry: Geometry, data_bytes: u64) -> Result<(), Refusal> {
        let extended = agreement.mode == Mode::Extended;
        let flags = match self.kind {
            NBD_CMD_READ if agreement.mode.has_chunks() => NBD_CMD_FLAG_DF,
            NBD_CMD_WRITE if extended => NBD_CMD_FLAG_PAYLOAD_LEN,
            NBD_CMD_WRITE_ZEROES => NBD_CMD_FLAG_NO_HOLE | NBD_CMD_FLAG_FAST_ZERO,
            NBD_CMD_BLOCK_STATUS if extended => NBD_CMD_FLAG_REQ_ONE | NBD_CMD_FLAG_PAYLOAD_LEN,
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
            if self.has(NBD_CMD_FLAG_PAYLOAD_LEN) && data_bytes != FILTER_BYTES as u64 {
                return Err(invalid("the data of a query are a length and the number of the chosen context"));
            }
            if self.bytes == 0 {
                return Err(invalid("the status of nothing"));
            }
        }
        // The limit is for data in memory. A trim or a query of block status may have any length of the field.
        if matches!(self.kind, NBD_CMD_READ | NBD_CMD_WRITE) && self.bytes > MAX_PAYLOAD_BYTES as u64 {
            return Err(invalid("more data than a request may have"));
        }
        if !self.offset.is_multiple_of(SECTOR_BYTES) || !self.bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(invalid("not a multiple of 512 bytes"));
        }
        if self.offset.checked_add(self.bytes).is_none_or(|end| end > geometry.bytes) {
            let grows = matches!(self.kind, NBD_CMD_WRITE | NBD_CMD_WRITE_ZEROES);
            let error = if grows { NbdError::NoSpc } else { NbdError::Inval };
            return Err(Refusal { error, message: "beyond the end of the device" });
        }
        Ok(())
    }

    /// The command, once it was checked.
    fn command<'i>(&self, data: &'i [u8]) -> Command<'i> {
        let (sector, sectors) = (self.offset / SECTOR_BYTES, self.bytes / SECTOR_BYTES);
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
