//! Requests whose data are in the memory of a client: what front ends that share such memory have in common.
//!
//! A front end translates the requests of its protocol to [`Command`]s. Its type of [`Memory`] copies the data.
//!
//! | subject | module |
//! |---|---|
//! | a request as one call of the device | `execute` |
//! | requests that wait for a thread | `jobs` |

mod execute;
mod jobs;

pub use execute::{Buffer, Memory, execute};
pub use jobs::{Jobs, WORKERS, was_blocked};

/// Flash pages of most devices have 4 KiB or more: a smaller write costs a read.
pub const PHYSICAL_BLOCK_BYTES: u64 = 4096;
/// Maximum sectors of a range that a request discards: 1 GiB.
pub const DISCARD_SECTORS_MAX: u64 = 1 << 21;
/// Maximum sectors that a request zeroes: 32 MiB. They may have to be written, and stopping a queue waits for that.
pub const ZERO_SECTORS_MAX: u64 = 32 << 11;
/// Maximum number of queue threads of a device.
pub const QUEUE_THREADS_MAX: usize = 8;

/// A request for a device. `D` is the place of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<D> {
    Read {
        sector: u64,
        into: D,
    },
    Write {
        sector: u64,
        from: D,
    },
    Flush,
    Discard(Vec<Range>),
    /// The range may become a hole if `may_unmap`.
    Zero {
        range: Range,
        may_unmap: bool,
    },
}

impl<D> Command<D> {
    /// Whether it waits for no sync. With `fua`, a write is durable when it completes.
    pub fn is_quick(&self, fua: bool) -> bool {
        match self {
            Self::Read { .. } => true,
            Self::Write { .. } => !fua,
            Self::Flush | Self::Discard(_) | Self::Zero { .. } => false,
        }
    }

    /// The place of its data, if it has any.
    pub fn data(&self) -> Option<&D> {
        match self {
            Self::Read { into: data, .. } | Self::Write { from: data, .. } => Some(data),
            Self::Flush | Self::Discard(_) | Self::Zero { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub sector: u64,
    pub sectors: u64,
}

impl Range {
    /// The range, if it is within a device of `device` sectors and has at most `longest` sectors.
    pub fn within(sector: u64, sectors: u64, device: u64, longest: u64) -> Option<Self> {
        let end = sector.checked_add(sectors)?;
        (end <= device && sectors <= longest).then_some(Self { sector, sectors })
    }
}
