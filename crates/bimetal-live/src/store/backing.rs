//! What a store is kept in: named files of bytes, which lose, reorder and tear what was not synced.
//!
//! The store assumes no more than this of a backing: after [`Backing::sync`] has returned, what was written before is
//! there for good; until then each 512-byte sector of it may or may not be, whatever the order. A sync of one file says
//! nothing of another.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::sync::Arc;

use super::bytes::Buffer;
use super::crc32c::crc32c_append;

/// A file that others hold, too.
pub(crate) type File = Arc<dyn Backing>;

/// Bytes of what a backing writes whole or not at all.
pub const ATOMIC_BYTES: u64 = 512;

/// Whether an operation failed because no room is left. Nothing is lost then, and it can be tried again.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Which file it is, whatever path led to it. A copy is another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number of the file system's device, or of the block device itself.
    pub device: u64,
    /// Number of the file in its file system; 0 for a block device.
    pub inode: u64,
    /// When it was made, in nanoseconds; 0 where that is not known.
    pub born_ns: u64,
}

impl Identity {
    /// A number that stays the same when the machine starts again, and that a copy of the file does not have.
    pub fn lasting(&self) -> u64 {
        let halves = [self.inode, self.born_ns].map(|number| number.to_le_bytes());
        let sum = |seed| u64::from(crc32c_append(seed, &halves.concat()));
        sum(0) << 32 | sum(1)
    }
}

/// An open file, or a block device.
pub trait Backing: Send + Sync {
    /// Reads bytes; those beyond the end are zeros.
    ///
    /// # Errors
    /// They cannot be read.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes bytes, beyond the end too where the file can grow.
    ///
    /// # Errors
    /// Some may not have been written. After one that [`is_full`] they can be written again.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// As [`Backing::read_at`], into several places one after the other.
    ///
    /// # Errors
    /// As there.
    fn read_vectored_at(&self, offset: u64, out: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        read_bounced(out, |bytes| self.read_at(offset, bytes))
    }

    /// As [`Backing::write_at`], from several places one after the other.
    ///
    /// # Errors
    /// As there.
    fn write_vectored_at(&self, offset: u64, data: &[IoSlice<'_>]) -> io::Result<()> {
        self.write_at(offset, collect(data).bytes())
    }

    /// Makes durable what was written before.
    ///
    /// # Errors
    /// Some of it may be lost, whatever a later sync says. No such error [`is_full`].
    fn sync(&self) -> io::Result<()>;

    /// Gives room back: the bytes read as zeros or as they were.
    ///
    /// # Errors
    /// It was not given back.
    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Takes room for bytes that will be written, so that no room is missing then. The length of the file stays.
    ///
    /// # Errors
    /// One that [`is_full`] where there is too little.
    fn allocate(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    /// Length in bytes.
    ///
    /// # Errors
    /// It cannot be found out.
    fn length(&self) -> io::Result<u64>;

    /// Makes a file longer or shorter; no block device can.
    ///
    /// # Errors
    /// It could not be done.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Whether its length is what it is, as that of a block device.
    fn is_fixed(&self) -> bool {
        false
    }

    /// Takes it as long as it is open: for reading beside others, or alone.
    ///
    /// # Errors
    /// One of the kind `WouldBlock` if somebody else has it.
    fn lock(&self, _shared: bool) -> io::Result<()> {
        Ok(())
    }

    /// Takes it alone, if nobody uses it in any way that can be found out: it is to become part of a store.
    ///
    /// # Errors
    /// One of the kind `WouldBlock` or `ResourceBusy` if somebody does.
    fn claim(&self) -> io::Result<()> {
        self.lock(false)
    }

    /// Which file it is, if that is known.
    ///
    /// # Errors
    /// It cannot be found out.
    fn identity(&self) -> io::Result<Option<Identity>> {
        Ok(None)
    }

    /// What would be lost if it became part of a store, in words; nothing if it is empty.
    ///
    /// # Errors
    /// It cannot be read.
    fn occupant(&self) -> io::Result<Option<String>>;

    /// Makes a file empty; on a block device, removes what it is known by: its first and its last mebibyte.
    ///
    /// # Errors
    /// It could not be done.
    fn clear(&self) -> io::Result<()>;
}

/// Fills several places one after the other with what `read` writes to memory that is aligned for direct access.
///
/// # Errors
/// That of `read`.
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

/// The bytes of several places one after the other, aligned for direct access.
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

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To be read; it must be there.
    Read,
    /// To be read and written; it must be there.
    Write,
    /// To be read and written; it is made, and must not be there.
    Create,
}

/// Where the files of a store are found by name.
pub trait Storage: Send + Sync {
    /// Opens a file, without ever waiting for anybody. `direct` asks for reads and writes past the page cache, in whole
    /// sectors of 512 bytes.
    ///
    /// # Errors
    /// It is not there, is neither a file nor a block device, or cannot be opened like this; one of the kind `WouldBlock`
    /// or `ResourceBusy` if somebody else has it.
    fn open(&self, name: &str, access: Access, direct: bool) -> io::Result<Box<dyn Backing>>;

    /// Whether there is a file of that name.
    ///
    /// # Errors
    /// It cannot be found out.
    fn exists(&self, name: &str) -> io::Result<bool>;

    /// Makes durable which files there are.
    ///
    /// # Errors
    /// It may not be.
    fn sync(&self) -> io::Result<()>;

    /// Bytes that are free for new files, if that is known.
    fn free_bytes(&self) -> Option<u64> {
        None
    }
}
