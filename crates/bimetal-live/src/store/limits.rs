//! Limits: thresholds for commits and checkpoints, and sizes of requests, batches and files.

use super::frame::SECTOR;

/// Upper bound of every sequence, batch and event number.
pub const NUMBER_MAX: u64 = 1 << 62;
/// Maximum bytes of page data in a batch.
pub const FEW_BYTES: usize = 512 << 10;

/// Thresholds at which a store commits or writes a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Events in memory that force a commit: 16 bytes each; reads count.
    pub events: usize,
    /// Sectors written to the home disk that force a commit.
    pub disk_sectors: usize,
    /// Maximum bytes of journal before a checkpoint is forced: see [`Limits::journal_limit`].
    pub journal_bytes: u64,
    /// Bytes of a checkpoint that one step collects and writes.
    pub checkpoint_bytes: usize,
    /// Maximum bytes of a checkpoint that wait in memory to be written. Beyond it a commit is forced, which waits until
    /// they are written.
    pub waiting_bytes: usize,
    /// Maximum sectors of a read or write event; larger requests become several events.
    pub request_sectors: u32,
    /// Maximum sectors of a trim event.
    pub trim_sectors: u32,
    /// Maximum bytes that a read-only device holds in memory for data that its scheme moves while it is read.
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

/// Journal before a checkpoint: one part in `JOURNAL_PART` of the device's capacity, clamped to [`JOURNAL_MIN`,
/// `JOURNAL_MAX`]. A larger checkpoint raises the maximum.
const JOURNAL_PART: u64 = 8;
const JOURNAL_MIN: u64 = 1 << 20;
const JOURNAL_MAX: u64 = 32 << 20;

impl Limits {
    /// Bytes of journal that force a checkpoint of a device of `sectors` sectors. A large device has as much journal as
    /// checkpoint, so that checkpoints write no more than commits do.
    pub fn journal_limit(&self, sectors: u64) -> u64 {
        let most = JOURNAL_MAX.max(checkpoint_room_bytes(sectors));
        self.journal_bytes.min((sectors * SECTOR as u64 / JOURNAL_PART).clamp(JOURNAL_MIN, most))
    }
}

/// Space that a store reserves for a checkpoint: bytes for each 4 KiB of the device, and a constant. Schemes take up to
/// 11 bytes. `csal` takes up to 18 if its fast pages have 2 KiB; its first checkpoint reserves the rest.
const ROOM_PER_4K: u64 = 12;
const ROOM_BESIDE: u64 = 1 << 20;

/// Bytes that are reserved for each of the two checkpoint files.
pub fn checkpoint_room_bytes(sectors: u64) -> u64 {
    sectors.div_ceil(8) * ROOM_PER_4K + ROOM_BESIDE
}
