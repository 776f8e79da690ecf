//! What a block device is to those who serve it: sectors of 512 bytes, and an error that a client can be told.

/// Why a request failed: a closed set, as protocols know no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IoError {
    /// The data cannot be read or written.
    #[error("input/output error")]
    Io,
    /// The device cannot be written to.
    #[error("the device is read-only")]
    ReadOnly,
    /// There is no room for it.
    #[error("no space left on the device")]
    NoSpace,
    /// It lies beyond the end of the device, or is no whole number of sectors.
    #[error("the request is not within the device")]
    Invalid,
    /// The device is being closed.
    #[error("the device is shutting down")]
    Shutdown,
}

/// What is known of a run of sectors without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It holds data.
    Allocated,
    /// It holds none and reads as zeros.
    Hole,
}

/// A device that is read and written in sectors of 512 bytes, by several threads.
///
/// What was written is durable once a later [`flush`](Self::flush) has returned, or at once with `fua`.
pub trait BlockDevice: Send + Sync {
    /// Capacity in sectors.
    fn sectors(&self) -> u64;

    /// Whether it cannot be written to.
    fn read_only(&self) -> bool;

    /// Reads sectors; never-written and trimmed ones read as zeros.
    ///
    /// # Errors
    /// Data that cannot be read, or a run that is not within the device.
    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError>;

    /// Writes sectors, durably if `fua`.
    ///
    /// # Errors
    /// A device that cannot be written to, or a run that is not within it.
    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError>;

    /// Gives sectors back.
    ///
    /// # Errors
    /// A device that cannot be written to, or a run that is not within it.
    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError>;

    /// Makes sectors read as zeros; it may give them back.
    ///
    /// # Errors
    /// A device that cannot be written to, or a run that is not within it.
    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError>;

    /// Makes durable what was written by requests that have returned.
    ///
    /// # Errors
    /// It may not be durable.
    fn flush(&self) -> Result<(), IoError>;

    /// Calls `visit` with the runs, in order, that the sectors consist of.
    ///
    /// # Errors
    /// A run that is not within the device.
    fn extents(&self, sector: u64, sectors: u64, visit: &mut dyn FnMut(u64, Extent)) -> Result<(), IoError>;

    /// Sectors that will be read soon.
    ///
    /// # Errors
    /// A run that is not within the device.
    fn prefetch(&self, _sector: u64, _sectors: u64) -> Result<(), IoError> {
        Ok(())
    }
}
