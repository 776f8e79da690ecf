//! Limits: when a store does what it must do now and then, and how large its parts become.

use super::frame::SECTOR;

/// No number of what happens one after the other comes this far.
pub const NUMBER_MAX: u64 = 1 << 62;
/// Bytes of pages that a batch has, at most.
pub const FEW_BYTES: usize = 512 << 10;

/// When a store does what it must do now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Events in memory that force a commit: 16 bytes each, reads among them.
    pub events: usize,
    /// Sectors written to the home disk that force one.
    pub disk_sectors: usize,
    /// Bytes of journal that force a checkpoint, at most: see [`Limits::journal_limit`].
    pub journal_bytes: u64,
    /// Bytes of a checkpoint that are collected and written in one step.
    pub checkpoint_bytes: usize,
    /// Bytes of a checkpoint that wait in memory to be written, at most: with more there is a commit, which waits until they are.
    pub waiting_bytes: usize,
    /// Sectors of a read or write that are one event; larger requests are several.
    pub request_sectors: u32,
    /// Sectors of a trim that are one event.
    pub trim_sectors: u32,
    /// Bytes that a device that cannot be written to holds in memory, for what its scheme moves while it is read.
    pub held_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            events: 65_536,
            disk_sectors: 16_384,
            journal_bytes: u64::MAX,
            checkpoint_bytes: 1 << 20,
            waiting_bytes: 16 << 20,
            request_sectors: 256,
            trim_sectors: 131_072,
            held_bytes: 64 << 20,
        }
    }
}

/// The part of a device's capacity that its journal has before a checkpoint, the least that it has, and the most, unless a checkpoint
/// is larger.
const JOURNAL_PART: u64 = 8;
const JOURNAL_MIN: u64 = 1 << 20;
const JOURNAL_MAX: u64 = 32 << 20;

impl Limits {
    /// Bytes of journal that force a checkpoint of a device of `sectors` sectors. A large device has as much journal as checkpoint, so
    /// that checkpoints write no more than commits do.
    pub fn journal_limit(&self, sectors: u64) -> u64 {
        let most = JOURNAL_MAX.max(checkpoint_room_bytes(sectors));
        self.journal_bytes.min((sectors * SECTOR as u64 / JOURNAL_PART).clamp(JOURNAL_MIN, most))
    }
}

/// Room that a store reserves for a checkpoint: bytes for each 4 KiB of the device, and a constant. Schemes take up to 11 bytes; `csal`
/// takes up to 18 where its fast pages have 2 KiB, and its first checkpoint reserves the rest.
const ROOM_PER_4K: u64 = 12;
const ROOM_BESIDE: u64 = 1 << 20;

/// Bytes that each of the files of checkpoints takes from the beginning.
pub fn checkpoint_room_bytes(sectors: u64) -> u64 {
    sectors.div_ceil(8) * ROOM_PER_4K + ROOM_BESIDE
}
