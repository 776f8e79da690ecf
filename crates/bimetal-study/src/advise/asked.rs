//! The user's restrictions of the candidate devices.

use bimetal_core::units::ByteSize;

/// The user's restrictions. The defaults leave all of them open.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Names of chips. If empty: chips on the market in the year of the prices, without those that another one equals or
    /// beats.
    pub chips: Vec<String>,
    /// Names of schemes. If empty: the usual ones; `all` means all.
    pub schemes: Vec<String>,
    /// Logical capacity. If none: the bytes that the trace touches.
    pub capacity: Option<ByteSize>,
    /// The drive under caches. If none: no caches over disks.
    pub disk: Option<String>,
    /// Channels of a device. If none: the numbers of [`dies`](super::dies).
    pub channels: Option<u32>,
    /// Dies on each channel. If none: the numbers of [`dies`](super::dies).
    pub dies_per_channel: Option<u32>,
}

/// Reason why there are no candidates, in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpaceError(pub String);
