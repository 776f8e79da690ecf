//! The backing of a store: named files of bytes. A crash may lose, reorder and tear unsynced writes.
//!
//! The store assumes only this: after [`Backing::sync`] has returned, all earlier writes are durable. Until then each
//! 512-byte sector of them may or may not be durable, in any order. A sync of one file has no effect on another.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::sync::Arc;

use super::bytes::Buffer;
use super::crc32c::crc32c_append;

/// A file with several owners.
pub(crate) type File = Arc<dyn Backing>;

/// Size of an atomic write, in bytes.
pub const ATOMIC_BYTES: u64 = 512;

/// Whether an operation failed for lack of space. Nothing is lost then, and the operation can be repeated.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Identity of a file, independent of its path. A copy has another identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number of the file system's device, or of the block device itself.
    pub device: u64,
    /// Number of the file in its file system; 0 for a block device.
    pub inode: u64,
    /// Time of creation in nanoseconds; 0 if unknown.
    pub born_ns: u64,
}

impl Identity {
    /// A number that survives a reboot and that differs for a copy of the file.
    pub fn lasting(&self) -> u64 {
        let halves = [self.inode, self.born_ns].map(|number| number.to_le_bytes());
        let sum = |seed| u64::from(crc32c_append(seed, &halves.concat()));
        sum(0) << 32 | sum(1)
    }
}

/// An open file or block device.
pub trait Backing: Send + Sync {
    /// Reads bytes. Bytes beyond the end are zeros.
    ///
    /// # Errors
    /// The read failed.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes bytes. If the file can grow, they may lie beyond its end.
    ///
    /// # Errors
    /// Some bytes may not have been written. After an error that [`is_full`] they can be written again.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Like [`Backing::read_at`], into several buffers one after the other.
    ///
    /// # Errors
    /// The errors of [`Backing::read_at`].
    fn read_vectored_at(&self, offset: u64, out: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        read_bounced(out, |bytes| self.read_at(offset, bytes))
    }

    /// Like [`Backing::write_at`], from several buffers one after the other.
    ///
    /// # Errors
    /// The errors of [`Backing::write_at`].
    fn write_vectored_at(&self, offset: u64, data: &[IoSlice<'_>]) -> io::Result<()> {
        self.write_at(offset, collect(data).bytes())
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// Some of the data may be lost, regardless of the result of a later sync. Such an error is never [`is_full`].
    fn sync(&self) -> io::Result<()>;

    /// Drops copies of the file's data in memory that are not waiting to be written, so that later reads return the
    /// data of the disk. After a failed sync the copies may have data that the disk does not have.
    ///
    /// # Errors
    /// The copies may still exist.
    fn drop_cached(&self) -> io::Result<()> {
        Ok(())
    }

    /// Releases space. The bytes then read as zeros or keep their values.
    ///
    /// # Errors
    /// The space was not released.
    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Allocates space for future writes, so that these do not run out of space. The length of the file does not
    /// change.
    ///
    /// # Errors
    /// An error that [`is_full`] if there is too little space.
    fn allocate(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    /// Length in bytes.
    ///
    /// # Errors
    /// The length cannot be determined.
    fn length(&self) -> io::Result<u64>;

    /// Changes the length of a file. Block devices do not support it.
    ///
    /// # Errors
    /// The length could not be changed.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Whether the length is fixed, as for a block device.
    fn is_fixed(&self) -> bool {
        false
    }

    /// Locks the file while it is open: shared with other readers, or exclusively.
    ///
    /// # Errors
    /// An error of kind `WouldBlock` if another process holds the lock.
    fn lock(&self, _shared: bool) -> io::Result<()> {
        Ok(())
    }

    /// Locks a file exclusively that is to become part of a store, if no use of it can be detected.
    ///
    /// # Errors
    /// An error of kind `WouldBlock` or `ResourceBusy` if it is in use.
    fn claim(&self) -> io::Result<()> {
        self.lock(false)
    }

    /// Identity of the file, if known.
    ///
    /// # Errors
    /// The identity cannot be determined.
    fn identity(&self) -> io::Result<Option<Identity>> {
        Ok(None)
    }

    /// Contents that would be lost if the file became part of a store, in words; `None` if it is empty.
    ///
    /// # Errors
    /// The file cannot be read.
    fn occupant(&self) -> io::Result<Option<String>>;

    /// Empties a file. On a block device, it erases the signatures in the first and the last mebibyte.
    ///
    /// # Errors
    /// It failed, possibly in part.
    fn clear(&self) -> io::Result<()>;
}

/// Fills several buffers one after the other. `read` fills one buffer that is aligned for direct access.
///
/// # Errors
/// The error of `read`.
pub(super) fn read_bounced(
    out: &mut [IoSliceMut<'_>],
    read: impl FnOnce(&mut [u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = Buffer::new(out.iter().map(|place| place.len()).sum());
    read(bytes.bytes_mut())?;
    let mut left = bytes.bytes();
    for place in out {
        let (now, later) = left.split_at(place.len());
        place.copy_from_slice(now);
        left = later;
    }
    Ok(())
}

/// The bytes of several buffers, concatenated and aligned for direct access.
pub(super) fn collect(data: &[IoSlice<'_>]) -> Buffer {
    let mut bytes = Buffer::new(data.iter().map(|place| place.len()).sum());
    let mut left = bytes.bytes_mut();
    for place in data {
        let (now, later) = left.split_at_mut(place.len());
        now.copy_from_slice(place);
        left = later;
    }
    bytes
}

/// Access mode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read; the file must exist.
    Read,
    /// Read and write; the file must exist.
    Write,
    /// Read and write; the file is created and must not exist.
    Create,
}

/// Finds the files of a store by name.
pub trait Storage: Send + Sync {
    /// Opens a file without blocking. `direct` bypasses the page cache; reads and writes must then cover whole 512-byte
    /// sectors.
    ///
    /// # Errors
    /// The file does not exist, is neither a file nor a block device, or cannot be opened in this mode. The error has
    /// kind `WouldBlock` or `ResourceBusy` if the file is in use.
    fn open(&self, name: &str, access: Access, direct: bool) -> io::Result<Box<dyn Backing>>;

    /// Whether a file of this name exists.
    ///
    /// # Errors
    /// The file's existence cannot be determined.
    fn exists(&self, name: &str) -> io::Result<bool>;

    /// Makes the creation of files durable.
    ///
    /// # Errors
    /// It may not be durable.
    fn sync(&self) -> io::Result<()>;

    /// Free bytes for new files, if known.
    fn free_bytes(&self) -> Option<u64> {
        None
    }
}
