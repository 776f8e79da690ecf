//! Requests of a guest, parsed from descriptor chains.
//!
//! Chains are hostile input. A request fails with a status before the device sees it if a length is not a whole number of sectors, a
//! range is not within the device, data exceed the advertised maximum, or descriptors are not in the order of the standard: first those
//! that the device reads, then those that it writes, with the status as the last byte.

use std::ops::Deref;

use virtio_bindings::virtio_blk::*;
use virtio_queue::DescriptorChain;
use vm_memory::{Address, Bytes, GuestAddress, GuestMemoryMmap};

use crate::block_device::{IoError, SECTOR_BYTES};
use crate::requests::{self, DISCARD_SECTORS_MAX, Memory, Range, ZERO_SECTORS_MAX};
use crate::store::bytes::{u32_at, u64_at};

/// Maximum number of data descriptors of a request.
pub const SEGMENTS_MAX: usize = 126;
/// Maximum length of a data descriptor, in bytes.
pub const SEGMENT_BYTES_MAX: usize = 32 << 10;
/// Maximum data of a request, in bytes.
pub const DATA_BYTES_MAX: usize = SEGMENTS_MAX * SEGMENT_BYTES_MAX;
/// Maximum number of ranges that a request discards.
pub const DISCARD_RANGES_MAX: usize = 16;

const HEADER_BYTES: usize = 16;
/// Maximum number of descriptors of a chain: data, header and status.
const DESCRIPTORS_MAX: usize = SEGMENTS_MAX + 2;
/// A range to be discarded or zeroed: sector, sectors, flags.
const RANGE_BYTES: usize = 16;

/// Status of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is malformed, or the device failed.
    Io,
    /// The device does not support it.
    Unsupported,
}

/// A request, and the address of its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub command: Result<Command, Refusal>,
    pub status: GuestAddress,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Block(requests::Command<Segments>),
    /// The serial number.
    Identify {
        into: Segments,
    },
}

/// Pieces of guest memory, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments(Vec<(GuestAddress, usize)>);

impl Segments {
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|&(_, bytes)| bytes).sum()
    }

    /// Splits off the first `bytes` bytes.
    fn split_front(&mut self, bytes: usize) -> Option<Self> {
        let mut front = Self::default();
        let mut left = bytes;
        while left > 0 {
            let (at, there) = self.0.first_mut()?;
            let now = left.min(*there);
            front.0.push((*at, now));
            left -= now;
            if now == *there {
                self.0.remove(0);
            } else {
                (*at, *there) = (at.checked_add(now as u64)?, *there - now);
            }
        }
        Some(front)
    }

    /// Splits off the last byte.
    fn split_last(&mut self) -> Option<GuestAddress> {
        let (at, bytes) = self.0.last_mut()?;
        *bytes -= 1;
        let last = at.checked_add(*bytes as u64)?;
        if *bytes == 0 {
            self.0.pop();
        }
        Some(last)
    }

    /// Copies all pieces, of at most `most` bytes.
    fn contents(&self, memory: &GuestMemoryMmap, most: usize) -> Result<Vec<u8>, Refusal> {
        if self.bytes() > most {
            return Err(Refusal::Io);
        }
        let mut contents = vec![0; self.bytes()];
        memory.gather(self, &mut contents).map_err(|_| Refusal::Io)?;
        Ok(contents)
    }
}

impl Memory for GuestMemoryMmap {
    type Place = Segments;

    fn bytes(place: &Segments) -> usize {
        place.bytes()
    }

    fn gather(&self, from: &Segments, mut out: &mut [u8]) -> Result<(), IoError> {
        for &(at, bytes) in &from.0 {
            let (now, later) = out.split_at_mut(bytes.min(out.len()));
            self.read_slice(now, at).map_err(|_| IoError::Io)?;
            out = later;
        }
        Ok(())
    }

    fn scatter(&self, into: &Segments, mut data: &[u8]) -> Result<(), IoError> {
        for &(at, bytes) in &into.0 {
            let (now, later) = data.split_at(bytes.min(data.len()));
            self.write_slice(now, at).map_err(|_| IoError::Io)?;
            data = later;
        }
        Ok(())
    }
}

/// The pieces of a chain by direction, from the device's point of view.
struct Pieces {
    readable: Segments,
    writable: Segments,
    is_in_order: bool,
}

/// The request of a chain to a device of `sectors` sectors; `None` if the chain has no room for a status.
pub fn parse<M>(chain: DescriptorChain<M>, memory: &GuestMemoryMmap, sectors: u64) -> Option<Request>
where
    M: Deref<Target = GuestMemoryMmap>,
{
    let mut pieces = Pieces { readable: Segments::default(), writable: Segments::default(), is_in_order: true };
    for (number, descriptor) in chain.enumerate() {
        if number == DESCRIPTORS_MAX {
            return None;
        }
        let (piece, is_writable) = ((descriptor.addr(), descriptor.len() as usize), descriptor.is_write_only());
        pieces.is_in_order &= is_writable || pieces.writable.0.is_empty();
        if piece.1 > 0 {
            if is_writable { &mut pieces.writable } else { &mut pieces.readable }.0.push(piece);
        }
    }
    let status = pieces.writable.split_last()?;
    let command = if pieces.is_in_order { command(pieces, memory, sectors) } else { Err(Refusal::Io) };
    Some(Request { command, status })
}

fn command(pieces: Pieces, memory: &GuestMemoryMmap, sectors: u64) -> Result<Command, Refusal> {
    let Pieces { readable: mut data, writable: into, .. } = pieces;
    let header = data.split_front(HEADER_BYTES).ok_or(Refusal::Io)?.contents(memory, HEADER_BYTES)?;
    let (kind, sector) = (u32_at(&header, 0), u64_at(&header, 8));
    let has = |input: bool, output: bool| {
        let is_so = (input || data.0.is_empty()) && (output || into.0.is_empty());
        if is_so { Ok(()) } else { Err(Refusal::Io) }
    };
    match kind {
        VIRTIO_BLK_T_IN => {
            has(false, true)?;
            within(sector, &into, sectors)?;
            Ok(Command::Block(requests::Command::Read { sector, into }))
        }
        VIRTIO_BLK_T_OUT => {
            has(true, false)?;
            within(sector, &data, sectors)?;
            Ok(Command::Block(requests::Command::Write { sector, from: data }))
        }
        VIRTIO_BLK_T_FLUSH => Ok(Command::Block(requests::Command::Flush)),
        VIRTIO_BLK_T_GET_ID => {
            has(false, true)?;
            Ok(Command::Identify { into })
        }
        VIRTIO_BLK_T_DISCARD => {
            has(true, false)?;
            let mut ranges = Vec::new();
            for (range, flags) in ranges_of(&data, memory, DISCARD_RANGES_MAX, DISCARD_SECTORS_MAX, sectors)? {
                if flags != 0 {
                    return Err(Refusal::Unsupported);
                }
                ranges.push(range);
            }
            Ok(Command::Block(requests::Command::Discard(ranges)))
        }
        VIRTIO_BLK_T_WRITE_ZEROES => {
            has(true, false)?;
            match ranges_of(&data, memory, 1, ZERO_SECTORS_MAX, sectors)?[..] {
                [(range, flags @ (0 | VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP))] => {
                    Ok(Command::Block(requests::Command::Zero { range, may_unmap: flags != 0 }))
                }
                _ => Err(Refusal::Unsupported),
            }
        }
        _ => Err(Refusal::Unsupported),
    }
}

/// Checks that data are whole sectors, not too long, and within a device of `sectors` sectors.
fn within(sector: u64, data: &Segments, sectors: u64) -> Result<(), Refusal> {
    let bytes = data.bytes();
    let is_whole = bytes > 0 && (bytes as u64).is_multiple_of(SECTOR_BYTES) && bytes <= DATA_BYTES_MAX;
    let end = sector.checked_add(bytes as u64 / SECTOR_BYTES);
    if is_whole && end.is_some_and(|end| end <= sectors) { Ok(()) } else { Err(Refusal::Io) }
}

/// Ranges with their flags: from 1 to `most`, each within the device and of at most `longest` sectors.
fn ranges_of(
    data: &Segments,
    memory: &GuestMemoryMmap,
    most: usize,
    longest: u64,
    sectors: u64,
) -> Result<Vec<(Range, u32)>, Refusal> {
    let bytes = data.contents(memory, most * RANGE_BYTES)?;
    if bytes.is_empty() || !bytes.len().is_multiple_of(RANGE_BYTES) {
        return Err(Refusal::Io);
    }
    let range = |bytes: &[u8]| {
        let range = Range::within(u64_at(bytes, 0), u32_at(bytes, 8).into(), sectors, longest);
        range.map(|range| (range, u32_at(bytes, 12))).ok_or(Refusal::Io)
    };
    bytes.chunks_exact(RANGE_BYTES).map(range).collect()
}
