//! What a store is kept in: named files of bytes, which lose, reorder and tear what was not synced.
//!
//! The store assumes no more than this of a backing: after [`Backing::sync`] has returned, what was written before is
//! there for good; until then each 512-byte sector of it may or may not be, whatever the order. A sync of one file says
//! nothing of another.

use std::io;

/// Bytes of what a backing writes whole or not at all.
pub const ATOMIC_BYTES: u64 = 512;

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
    /// Some may not have been written.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Makes durable what was written before.
    ///
    /// # Errors
    /// Some of it may be lost, whatever a later sync says.
    fn sync(&self) -> io::Result<()>;

    /// Gives room back: the bytes read as zeros or as they were.
    ///
    /// # Errors
    /// It was not given back.
    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()>;

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

    /// Takes it for this process as long as it is open: for reading beside others, or alone.
    ///
    /// # Errors
    /// Another process has it.
    fn lock(&self, _shared: bool) -> io::Result<()> {
        Ok(())
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To be read; it must be there.
    Read,
    /// To be read and written; it must be there.
    Write,
    /// To be read and written; it is made if need be, and what was in it is lost unless it is a block device.
    Create,
}

/// Where the files of a store are found by name.
pub trait Storage: Send + Sync {
    /// Opens a file. `direct` asks for reads and writes past the page cache, in whole sectors of 512 bytes.
    ///
    /// # Errors
    /// It is not there, or cannot be opened like this.
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
