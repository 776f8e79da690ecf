//! Figures of an open store.

use bimetal_core::replay::Measured;
use bimetal_core::save::Image;

use super::Store;
use crate::store::engine::{Counts, Modelled};
use crate::store::event::Event;
use crate::store::superblock::Power;
use crate::store::times::Times;
use std::sync::atomic::Ordering;

/// What is known of an open store.
#[derive(Clone, Debug)]
pub struct Status {
    /// What was measured on the modelled device: operations and wear since the store was made, what the host asked for since
    /// then, responses since it was opened.
    pub measured: Measured,
    /// When it was open.
    pub power: Power,
    /// Events since the store was made: reads, writes, trims, idle times. Large requests are several.
    pub events: u64,
    /// Those of them that no commit has made durable yet.
    pub events_pending: u64,
    /// Bytes of journal since the last checkpoint.
    pub journal_bytes: u64,
    /// Sectors that hold data.
    pub written_sectors: u64,
    /// Damaged pages found.
    pub media_errors: u64,
    /// How often things happened since the store was opened.
    pub counts: Counts,
    /// How long its work on files took since the store was opened.
    pub times: Times,
    /// Why nothing is written any more, if so.
    pub failure: Option<String>,
    /// Whether writes are refused until there is room in the file system.
    pub is_full: bool,
    /// Bytes of memory for what is known of the device: by the scheme, if it says so, and by the store.
    pub metadata_bytes: (Option<u64>, usize),
    /// Bytes of memory for data on their way.
    pub buffer_bytes: usize,
}

impl Store {
    /// What is known of it.
    pub fn status(&self) -> Status {
        let mut engine = self.lock();
        let engine = &mut *engine;
        let (metrics, fixed_slc_blocks) = engine.figures();
        self.note_failure(engine);
        let (metadata, buffers) = engine.media.memory_bytes();
        let (events, events_pending) = (engine.events(), engine.events() - engine.durable);
        let Modelled { reads, writes } = &mut engine.modelled;
        reads.close_run();
        writes.close_run();
        let mut power = self.power;
        power.on_ms += self.opened.elapsed().as_millis() as u64;
        power.is_off |= self.is_closed.load(Ordering::Relaxed) && !self.options.read_only;
        Status {
            power,
            events,
            events_pending,
            journal_bytes: engine.journal_bytes,
            written_sectors: engine.media.written().count(),
            media_errors: engine.media.media_errors(),
            counts: engine.counts,
            times: self.clocks.times(),
            failure: engine.media.failure().map(|failure| failure.what.clone()),
            is_full: engine.is_full,
            metadata_bytes: (metrics.get("metadata_bytes").map(|bytes| bytes as u64), metadata),
            buffer_bytes: buffers
                + engine.journal_memory_bytes
                + 2 * engine.pending.capacity() * size_of::<Event>()
                + engine.image.as_ref().map_or(0, Image::ready_bytes),
            measured: Measured {
                ledger: engine.media.ledger().clone(),
                reads: reads.clone(),
                writes: writes.clone(),
                host: engine.media.host(),
                simulated_ns: engine.media.now_ns(),
                servers: engine.media.servers(),
                metrics,
                fixed_slc_blocks,
            },
        }
    }
}
