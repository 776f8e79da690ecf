//! Operations on flash and disks, and their causes: the terms that media, ledger and reports share.

use serde::{Deserialize, Serialize};

/// Cause of an operation. The scheme names it; accounting needs nothing else from a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Cause {
    /// The host asked for exactly this.
    Host,
    /// Garbage collection inside a region.
    Gc,
    /// Folding or merging a block chain.
    Fold,
    /// Data move from the slow region to the fast one.
    MigrateUp,
    /// Data move from the fast region to the slow one.
    MigrateDown,
    /// Static wear levelling.
    WearLevel,
    /// Reading spare areas to find out what blocks hold.
    Scan,
    /// Mapping pages, checkpoints, and the replacement of failed blocks.
    Meta,
}

impl Cause {
    /// All causes, in the order of their discriminants.
    pub const ALL: [Self; 8] =
        [Self::Host, Self::Gc, Self::Fold, Self::MigrateUp, Self::MigrateDown, Self::WearLevel, Self::Scan, Self::Meta];

    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Gc => "gc",
            Self::Fold => "fold",
            Self::MigrateUp => "migrate_up",
            Self::MigrateDown => "migrate_down",
            Self::WearLevel => "wear_level",
            Self::Scan => "scan",
            Self::Meta => "meta",
        }
    }
}

/// A stream of programs: its pages share blocks with each other only. NVMe's Flexible Data Placement calls it a reclaim unit handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream(u8);

impl Stream {
    /// Largest number of streams of a region.
    pub const MAX: usize = 16;

    /// The stream of a scheme with only one.
    pub const ONLY: Self = Self(0);

    /// The stream with this number, which is below [`Self::MAX`].
    #[inline(always)]
    pub const fn new(number: usize) -> Self {
        debug_assert!(number < Self::MAX);
        Self((number % Self::MAX) as u8)
    }

    /// Its number, below [`Self::MAX`].
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize % Self::MAX
    }
}

/// An operation of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DiskOp {
    /// Read of consecutive sectors.
    Read,
    /// Write of consecutive sectors.
    Write,
}

impl DiskOp {
    /// All operations, in the order of their discriminants.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// An operation of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FlashOp {
    /// Page read.
    Read,
    /// Page program.
    Program,
    /// Block erase.
    Erase,
}

impl FlashOp {
    /// All operations, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Read, Self::Program, Self::Erase];

    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Program => "program",
            Self::Erase => "erase",
        }
    }
}
