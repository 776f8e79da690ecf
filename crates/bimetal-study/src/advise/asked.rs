//! Which devices are asked for, beyond the usual.

use bimetal_core::units::ByteSize;

/// What is asked for beyond the usual.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Names of chips; without any those that can be bought in the year of the prices and that no other beats.
    pub chips: Vec<String>,
    /// Names of schemes; without any those that are usual, `all` for all.
    pub schemes: Vec<String>,
    /// What the host sees; without it what the trace touches.
    pub capacity: Option<ByteSize>,
    /// A drive under caches; without it there are none.
    pub disk: Option<String>,
    /// Channels of a device; without a number those of [`dies`](super::dies).
    pub channels: Option<u32>,
    /// Dies on each channel; without a number those of [`dies`](super::dies).
    pub dies_per_channel: Option<u32>,
}

/// Why there are no candidates, in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpaceError(pub String);
