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

/// Writes zeros that stay allocated, for clients that ask for zeros without holes. Makes several requests to the
/// device, as long as `goes_on`: a stop must not wait for terabytes.
pub(crate) fn write_zeros(
    device: &dyn BlockDevice,
    sector: u64,
    sectors: u64,
    fua: bool,
    goes_on: impl Fn() -> bool,
) -> Result<(), IoError> {
    let step = ZEROS.len() as u64 / SECTOR_BYTES;
    let mut done = 0;
    while done < sectors {
        if !goes_on() {
            return Err(IoError::Shutdown);
        }
        let now = step.min(sectors - done);
        device.write(sector + done, &ZEROS[..(now * SECTOR_BYTES) as usize], false)?;
        done += now;
    }
    if fua { device.flush() } else { Ok(()) }
}
