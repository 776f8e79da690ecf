//! Why a store cannot be made, opened or checked: what, where, and what to do.

use std::io;

use bimetal_core::device::DeviceError;
use bimetal_core::scheme::BuildError;

use super::journal::JournalError;

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
    #[error("there is a store already; open it, or remove its files first")]
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
    /// Too little room for it.
    #[error("the store takes {needed} bytes and {free} are free; make room, or ask for a sparse store")]
    NoSpace {
        /// Bytes that it takes when all of it is in use.
        needed: u64,
        /// Bytes that are free.
        free: u64,
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
        "the store was made for version {found} of scheme `{scheme}` and this program has version {known}; copy its data \
         with the program that made it"
    )]
    SchemeVersion {
        /// The scheme.
        scheme: String,
        /// The version it was made for.
        found: u32,
        /// The version of this program.
        known: u32,
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
        self.map_err(|source| StoreError::Io { file: file.into(), source })
    }
}
