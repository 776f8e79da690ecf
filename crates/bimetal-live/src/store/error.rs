//! Errors of creating, opening and checking a store: each states the problem, its place, and the remedy.

use std::io::{self, ErrorKind};

use bimetal_core::device::DeviceError;
use bimetal_core::scheme::BuildError;

/// A store that cannot be created or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file cannot be opened, read or written.
    #[error("`{file}`: {source}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// The directory already holds a store.
    #[error("there is a store already; open it, or add `--force` if it may be lost")]
    Exists,
    /// The directory holds no store.
    #[error("there is no store; make one with `bimetal create`")]
    Missing,
    /// There are files of a store without its superblock.
    #[error(
        "`superblock`: it is missing, but other files of a store are there; hint: `bimetal check STORE --rescue IMAGE` saves the \
         data"
    )]
    NoSuperblock,
    /// A rescue does not know the files of the store.
    #[error(
        "the superblock cannot be read, and no file of a region is in the directory; name the files with `--region` and `--disk`"
    )]
    Unnamed,
    /// A rescue can search no region.
    #[error("nothing can be rescued: {reasons}; name other files with `--region` and `--disk` if there are any")]
    Unsearchable {
        /// Each file with the reason.
        reasons: String,
    },
    /// The creation of the store was interrupted.
    #[error(
        "the store was not made to the end, or its superblock is destroyed; hint: `bimetal check STORE --rescue IMAGE` saves the data \
         of a destroyed one, and the command that was interrupted (`create` or `copy`) makes an unfinished one again"
    )]
    Unfinished,
    /// Another process has the store open.
    #[error(
        "the store is in use by another process; stop that first, or restart it if it is a server whose sockets were deleted"
    )]
    InUse,
    /// Another program uses a file or block device.
    #[error("`{file}` is in use: {user}")]
    FileInUse {
        /// The file.
        file: String,
        /// The user: a mount point, a process.
        user: String,
    },
    /// A file or block device for a new store already holds data.
    #[error(
        "`{file}` holds {occupant}, which would be overwritten; choose another one, or add `--force` if it may be lost"
    )]
    Occupied {
        /// The file.
        file: String,
        /// The contents that were recognised.
        occupant: String,
    },
    /// A file is a part of another store, or of this one at another time.
    #[error("`{file}`: {what}")]
    Foreign {
        /// The file.
        file: String,
        /// The store to which it belongs, and the remedy.
        what: String,
    },
    /// The superblock is a copy, and files outside its directory may belong to the original.
    #[error(
        "the store was copied or moved to another file system, and `{file}` outside its directory may belong to the \
         original; if the original is gone, run `bimetal serve STORE --moved` once"
    )]
    Copied {
        /// The first file outside.
        file: String,
    },
    /// Too little free space.
    #[error(
        "the store takes {}{}, and {} are free; make room{}",
        size(*needed),
        if *sparse { " for its journal and its checkpoints" } else { "" },
        size(*free),
        if *sparse { "" } else { ", or ask for a sparse store" }
    )]
    NoSpace {
        /// Bytes that the store takes when all of it is in use.
        needed: u64,
        /// Bytes that are free.
        free: u64,
        /// Whether `needed` counts only the space that a sparse store takes at once.
        sparse: bool,
    },
    /// A block device or file that cannot be used.
    #[error("`{file}`: {what}")]
    Unsuitable {
        /// The file.
        file: String,
        /// The problem and the remedy.
        what: String,
    },
    /// A store of a format that this program does not read.
    #[error(
        "the store has format {found} and this program knows format {known}; copy its data with the program that made it, or, if no \
         version has that format, the superblock is damaged: `bimetal check --rescue` saves the data"
    )]
    Format {
        /// The format of the store.
        found: u32,
        /// The format of this program.
        known: u32,
    },
    /// The behaviour of the scheme has changed since the store was created.
    #[error(
        "the store was made for version {found} of scheme `{scheme}` and this program has version {known}; copy it to a new \
         store with `bimetal copy`"
    )]
    SchemeVersion {
        /// The scheme.
        scheme: String,
        /// The version for which the store was created.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// A store without a map, which cannot be read without its scheme.
    #[error(
        "the store has no map of its data: {what}; start and stop it with the program that made it, or rescue the data with \
         `bimetal check --rescue`"
    )]
    NoMap {
        /// Why there is no map.
        what: String,
    },
    /// A store that can be read neither by its scheme nor by its map.
    #[error(
        "{refusal}; it cannot be read without its scheme either, as {what}: start and stop it with the program that made it and \
         copy it then, or rescue the newest version of every sector with `bimetal check --rescue`"
    )]
    Uncopied {
        /// Why the scheme cannot read it.
        refusal: String,
        /// Why the map cannot be used.
        what: String,
    },
    /// The store's metadata are damaged.
    #[error("`{file}`: {what}; rescue the data with `bimetal check --rescue`")]
    Damaged {
        /// The file.
        file: String,
        /// The error.
        what: String,
    },
    /// The journal is damaged.
    #[error("`{file}`: {source}; rescue the data with `bimetal check --rescue`")]
    Journal {
        /// The file.
        file: String,
        /// The error.
        source: JournalError,
    },
    /// Metadata pass every checksum and check, and yet contradict each other.
    #[error("the store contradicts itself: {what}; rescue the data with `bimetal check --rescue`")]
    Contradiction {
        /// The contradiction.
        what: String,
    },
    /// The device description is invalid.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The scheme cannot run on the device.
    #[error(transparent)]
    Scheme(#[from] BuildError),
}

/// A number of bytes in MiB, or in GiB if it is large.
fn size(bytes: u64) -> String {
    if bytes >= 10 << 30 {
        format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
    } else {
        format!("{} MiB", bytes.div_ceil(1 << 20))
    }
}

/// Why the journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A batch that was durable is damaged.
    #[error("batch {batch} at byte {offset} is damaged, and it was durable once")]
    Damaged {
        /// Number of the batch.
        batch: u64,
        /// Byte offset at which it should be.
        offset: u64,
    },
}

/// Adds the file's name to an error.
pub trait InFile<T> {
    /// The result, its error with the file's name.
    ///
    /// # Errors
    /// The original error.
    fn in_file(self, file: &str) -> Result<T, StoreError>;
}

impl<T> InFile<T> for io::Result<T> {
    fn in_file(self, file: &str) -> Result<T, StoreError> {
        self.map_err(|source| match source.kind() {
            ErrorKind::WouldBlock => {
                StoreError::FileInUse { file: file.into(), user: "another process has locked it".into() }
            }
            ErrorKind::ResourceBusy => StoreError::FileInUse { file: file.into(), user: source.to_string() },
            _ => StoreError::Io { file: file.into(), source },
        })
    }
}
