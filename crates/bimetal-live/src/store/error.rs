//! Why a store cannot be made, opened or checked: what, where, and what to do.

use std::io::{self, ErrorKind};

use bimetal_core::device::DeviceError;
use bimetal_core::scheme::BuildError;

/// A store that cannot be made or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file cannot be opened, read or written.
    #[error("`{file}`: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// There is one already.
    #[error("there is a store already; open it, or add `--force` if it may be lost")]
    Exists,
    /// There is none.
    #[error("there is no store; make one with `bimetal create`")]
    Missing,
    /// It was never completed.
    #[error("the store was not made to the end; make it again")]
    Unfinished,
    /// Another process has it open.
    #[error("the store is in use by another process; stop that first")]
    InUse,
    /// Somebody uses a file or block device.
    #[error("`{file}` is in use: {user}")]
    FileInUse {
        /// The file.
        file: String,
        /// Who.
        user: String,
    },
    /// A file or block device that should become part of a store holds something.
    #[error(
        "`{file}` holds {occupant}, which would be overwritten; choose another one, or add `--force` if it may be lost"
    )]
    Occupied {
        /// The file.
        file: String,
        /// What it holds.
        occupant: String,
    },
    /// A file is a part of another store, or of this one at another time.
    #[error("`{file}`: {what}")]
    Foreign {
        /// The file.
        file: String,
        /// Whose it is and what to do.
        what: String,
    },
    /// The superblock is a copy, and files outside its directory may be those of the original.
    #[error(
        "the store was copied or moved to another file system, and `{file}` outside its directory may belong to the \
         original; if the original is gone, open this one with `--moved`"
    )]
    Copied {
        /// The first file outside.
        file: String,
    },
    /// Too little room for it.
    #[error(
        "the store takes {needed} bytes{} and {free} are free; make room{}",
        if *sparse { " for its journal and its checkpoints" } else { "" },
        if *sparse { "" } else { ", or ask for a sparse store" }
    )]
    NoSpace {
        /// Bytes that it takes when all of it is in use.
        needed: u64,
        /// Bytes that are free.
        free: u64,
        /// Whether only what every store takes at once is counted.
        sparse: bool,
    },
    /// A block device or file that does not suit.
    #[error("`{file}`: {what}")]
    Unsuitable {
        /// The file.
        file: String,
        /// What is wrong and what to do.
        what: String,
    },
    /// Made by a program whose stores look otherwise.
    #[error(
        "the store has format {found} and this program knows format {known}; copy its data with the program that made it"
    )]
    Format {
        /// The format that it has.
        found: u32,
        /// The only one that can be opened.
        known: u32,
    },
    /// Its scheme does other things today.
    #[error(
        "the store was made for version {found} of scheme `{scheme}` and this program has version {known}; copy it to a new \
         store with `bimetal copy`"
    )]
    SchemeVersion {
        /// The scheme.
        scheme: String,
        /// The version it was made for.
        found: u32,
        /// The version of this program.
        known: u32,
    },
    /// It cannot be read without its scheme.
    #[error(
        "the store has no map of its data: {what}; start and stop it with the program that made it, or rescue the data with \
         `bimetal check --rescue`"
    )]
    NoMap {
        /// Why not.
        what: String,
    },
    /// It can be read neither by its scheme nor without it.
    #[error(
        "{refusal}; it cannot be read without its scheme either, as {what}: start and stop it with the program that made it and \
         copy it then, or rescue the newest version of every sector with `bimetal check --rescue`"
    )]
    Uncopied {
        /// Why not by its scheme.
        refusal: String,
        /// Why not by its map.
        what: String,
    },
    /// Its own records are damaged.
    #[error("`{file}`: {what}; rescue the data with `bimetal check --rescue`")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// The journal is damaged.
    #[error("`{file}`: {source}; rescue the data with `bimetal check --rescue`")]
    Journal {
        /// The file.
        file: String,
        /// What is wrong.
        source: JournalError,
    },
    /// What its files say is sound for all that is checked, and impossible.
    #[error("the store contradicts itself: {what}; rescue the data with `bimetal check --rescue`")]
    Contradiction {
        /// What was come upon.
        what: String,
    },
    /// The device cannot be.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The scheme cannot run on it.
    #[error(transparent)]
    Scheme(#[from] BuildError),
}

/// Why the journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A batch that was durable is no longer whole.
    #[error("batch {batch} at byte {offset} is damaged, and it was durable once")]
    Damaged {
        /// The batch.
        batch: u64,
        /// Where it should be.
        offset: u64,
    },
}

/// Names the file of an error.
pub trait InFile<T> {
    /// The error with the file's name.
    ///
    /// # Errors
    /// As before.
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
