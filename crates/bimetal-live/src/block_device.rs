//! What can be exported: a device of 512-byte sectors.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Bytes of a sector, the unit of every address and length of a [`BlockDevice`].
pub const SECTOR_BYTES: u64 = 512;

/// Why a request failed. The set is closed, so that each front end maps it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IoError {
    /// The backing failed, or what was read is not what was written.
    #[error("input/output error")]
    Io,
    /// The device takes no writes.
    #[error("the device is read-only")]
    ReadOnly,
    /// There is no room left in the backing.
    #[error("no space left in the backing of the device")]
    NoSpace,
    /// The request is not within the device, or its data are not whole sectors.
    #[error("the request is not within the device")]
    OutOfRange,
    /// The device is being stopped.
    #[error("the device is being stopped")]
    Shutdown,
}

/// What is known of a run of sectors without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Something was written there.
    Allocated,
    /// Nothing is stored there, and it reads as zeros.
    Hole,
}

/// Data of a write in memory that a device may share until it returns, so that it need not copy them.
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

/// A device of 512-byte sectors that any number of threads use at once; it locks inside.
///
/// **Order.** A request that has returned is seen by every request that begins later, on whatever thread. `flush` makes
/// durable every write, trim and zeroing that returned before it began, on whatever thread; a request with `fua` returns
/// once its own effect is durable. Front ends offer several connections to one device on the strength of this.
///
/// One request of the host is one call here, so that a scheme sees the requests that the host made.
pub trait BlockDevice: Send + Sync {
    /// Capacity, in sectors.
    fn sectors(&self) -> u64;

    /// Whether writes, trims and zeroing are refused, now and from now on.
    fn read_only(&self) -> bool;

    /// Fills `out`, a whole number of sectors, from `sector` on. What `out` holds after an error means nothing.
    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError>;

    /// Writes `data`, a whole number of sectors, from `sector` on.
    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError>;

    /// As [`BlockDevice::write`]. The device may keep the data in memory until it returns, and no longer.
    fn write_shared(&self, sector: u64, data: &Payload, fua: bool) -> Result<(), IoError> {
        self.write(sector, data.bytes(), fua)
    }

    /// Forgets `sectors` sectors: what they hold is not needed any more.
    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError>;

    /// Makes `sectors` sectors read as zeros, faster than writing zeros would; they may be holes afterwards.
    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError>;

    /// Makes durable what was written before.
    fn flush(&self) -> Result<(), IoError>;

    /// Visits the runs of `sectors` sectors from `sector` on, in order and without gaps: their length in sectors and
    /// what is known of them. Neighbours may be alike. Ends early when `visit` breaks.
    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError>;

    /// Waits until a device of this kind would have answered what this thread has asked for since it last waited. Front ends
    /// call it before they send replies.
    fn settle(&self) {}

    /// Is told that these sectors will be read soon.
    fn prefetch(&self, _sector: u64, _sectors: u64) -> Result<(), IoError> {
        Ok(())
    }
}

/// The data of a request of [`write_zeros`].
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

/// Writes zeros that stay allocated, for front ends whose clients ask for them without a hole. Several requests of the device.
pub(crate) fn write_zeros(device: &dyn BlockDevice, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
    let step = ZEROS.len() as u64 / SECTOR_BYTES;
    let mut done = 0;
    while done < sectors {
        let now = step.min(sectors - done);
        device.write(sector + done, &ZEROS[..(now * SECTOR_BYTES) as usize], false)?;
        done += now;
    }
    if fua { device.flush() } else { Ok(()) }
}
