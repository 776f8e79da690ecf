//! Figures of an open store.

use bimetal_core::replay::Measured;
use bimetal_core::save::Image;

use super::Store;
use crate::store::engine::{Counts, Modelled};
use crate::store::event::Event;
use crate::store::superblock::Power;
use crate::store::times::Times;
use std::sync::atomic::Ordering;

/// Status of an open store.
#[derive(Clone, Debug)]
pub struct Status {
    /// Measurements on the modelled device: operations, wear and host counts since the store was created, responses
    /// since it was opened.
    pub measured: Measured,
    /// Power cycles and operating time.
    pub power: Power,
    /// Events since the store was created: reads, writes, trims, idle times. A large request is several events.
    pub events: u64,
    /// Events that no commit has made durable yet.
    pub events_pending: u64,
    /// Bytes of journal since the last checkpoint.
    pub journal_bytes: u64,
    /// Sectors that hold data.
    pub written_sectors: u64,
    /// Number of damaged pages found.
    pub media_errors: u64,
    /// Counts since the store was opened.
    pub counts: Counts,
    /// Durations of file operations since the store was opened.
    pub times: Times,
    /// Reason why nothing is written any more, if there is one.
    pub failure: Option<String>,
    /// Whether writes are refused until the file system has space.
    pub is_full: bool,
    /// Memory in bytes for the state of the device: of the scheme, if it reports it, and of the store.
    pub metadata_bytes: (Option<u64>, usize),
    /// Memory in bytes for data in transit.
    pub buffer_bytes: usize,
}

impl Store {
    /// The status of the store.
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
                erased_before: Vec::new(),
                fixed_slc_erased_before: 0,
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
