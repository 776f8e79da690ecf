//! The interface of exported devices, which have 512-byte sectors.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Bytes of a sector, the unit of every address and length of a [`BlockDevice`].
pub const SECTOR_BYTES: u64 = 512;

/// Why a request failed. The set is closed, so that each front end maps it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IoError {
    /// The backing failed, or the data read are not the data written.
    #[error("input/output error")]
    Io,
    /// The device takes no writes.
    #[error("the device is read-only")]
    ReadOnly,
    /// The backing has no space left.
    #[error("no space left in the backing of the device")]
    NoSpace,
    /// The request is not within the device, or its data are not whole sectors.
    #[error("the request is not within the device")]
    OutOfRange,
    /// The device is being stopped.
    #[error("the device is being stopped")]
    Shutdown,
}

/// State of a run of sectors, known without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The sectors were written.
    Allocated,
    /// Nothing is stored; the sectors read as zeros.
    Hole,
}

/// Data of a write in shared memory. The device may use this memory until the write returns, and need not copy the
/// data.
#[derive(Clone, Debug)]
pub struct Payload {
    memory: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Payload {
    /// These bytes of `memory`.
    pub fn new(memory: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= memory.len(), "data beyond their memory");
        Self { memory, range }
    }

    /// The data.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }

    /// A part of the data, which shares their memory.
    pub fn part(&self, range: Range<usize>) -> Self {
        let start = self.range.start;
        Self::new(Arc::clone(&self.memory), start + range.start..start + range.end)
    }
}

/// A device of 512-byte sectors that any number of threads may use at once; it locks internally.
///
/// **Order.** The effect of a request that has returned is visible to every request that begins later, on any thread.
/// `flush` makes durable every write, trim and zeroing that returned before it began, on any thread; a request with
/// `fua` returns once its own effect is durable. Because of this, front ends may offer several connections to one
/// device.
///
/// One request of the host is one call, so that a scheme sees the original requests of the host.
pub trait BlockDevice: Send + Sync {
    /// Capacity, in sectors.
    fn sectors(&self) -> u64;

    /// Whether writes, trims and zeroing are refused, now and from now on.
    fn read_only(&self) -> bool;

    /// Fills `out`, a whole number of sectors, from `sector` on. After an error the content of `out` is undefined.
    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError>;

    /// Writes `data`, a whole number of sectors, from `sector` on.
    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError>;

    /// Like [`BlockDevice::write`]. The device may refer to the shared memory until it returns, and no longer.
    fn write_shared(&self, sector: u64, data: &Payload, fua: bool) -> Result<(), IoError> {
        self.write(sector, data.bytes(), fua)
    }

    /// Discards `sectors` sectors: their data are no longer needed.
    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError>;

    /// Makes `sectors` sectors read as zeros, faster than writing zeros would; they may be holes afterwards.
    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError>;

    /// Makes all earlier writes durable.
    fn flush(&self) -> Result<(), IoError>;

    /// Visits the runs of `sectors` sectors from `sector` on, in order and without gaps: their length in sectors and
    /// their state. Neighbouring runs may have the same state. Ends early when `visit` breaks.
    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError>;

    /// Waits until the modelled device would have answered the requests of this thread since its last call. Front ends
    /// call it before they send replies.
    fn settle(&self) {}

    /// Announces that these sectors will be read soon.
    fn prefetch(&self, _sector: u64, _sectors: u64) -> Result<(), IoError> {
        Ok(())
    }
}

/// The data of a request of [`write_zeros`].
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

/// Sectors of the 4-KiB block of hosts.
const BLOCK_SECTORS: u64 = 8;

/// The pieces of a request of `sectors` sectors, of at most `most` sectors each. All but the last end at the end of a block of
/// the host: if the piece before survives a crash and the next one does not, each block is old or new as a whole.
pub(crate) fn pieces(sector: u64, sectors: u64, most: u64) -> impl Iterator<Item = Range<u64>> {
    let (mut start, end) = (sector, sector + sectors);
    std::iter::from_fn(move || {
        let most = start.saturating_add(most).min(end);
        let border = most - most % BLOCK_SECTORS;
        let piece = start..if most < end && border > start { border } else { most };
        start = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Writes zeros that stay allocated, for clients that ask for zeros without holes. Makes several requests to the
/// device, as long as `goes_on`: a stop must not wait for terabytes.
pub(crate) fn write_zeros(
    device: &dyn BlockDevice,
    sector: u64,
    sectors: u64,
    fua: bool,
    goes_on: impl Fn() -> bool,
) -> Result<(), IoError> {
    for piece in pieces(sector, sectors, ZEROS.len() as u64 / SECTOR_BYTES) {
        if !goes_on() {
            return Err(IoError::Shutdown);
        }
        let bytes = (piece.end - piece.start) * SECTOR_BYTES;
        device.write(piece.start, &ZEROS[..bytes as usize], false)?;
    }
    if fua { device.flush() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_blocks() {
        let of = |sector, sectors, most| {
            pieces(sector, sectors, most).map(|piece| (piece.start, piece.end)).collect::<Vec<_>>()
        };
        assert_eq!(of(16, 512, 256), [(16, 272), (272, 528)]);
        assert_eq!(of(17, 512, 256), [(17, 272), (272, 528), (528, 529)]);
        assert_eq!((of(3, 256, 256), of(3, 0, 256)), (vec![(3, 259)], vec![]));
        assert_eq!(of(3, 10, 4), [(3, 7), (7, 8), (8, 12), (12, 13)], "a block is longer than a piece");
        assert_eq!(of(u64::MAX - 9, 9, 256), [(u64::MAX - 9, u64::MAX)]);
    }
}
