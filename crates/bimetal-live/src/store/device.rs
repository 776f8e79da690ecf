//! A store as a block device.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bimetal_core::device::Resolved;
use bimetal_core::replay::{Arrivals, Outcome};
use bimetal_core::scheme::Metrics;

use super::backing::Storage;
use super::engine::{Counts, Engine, Modelled};
use super::error::StoreError;
use super::frame::SECTOR;
use super::open::{self, OpenOptions, Recovery};
use super::superblock::Power;
use crate::block_device::{BlockDevice, Extent, IoError};
use crate::latency::Snapshot;

/// An open store. Threads take turns.
pub struct Store {
    engine: Mutex<Engine>,
    options: OpenOptions,
    sectors: u64,
    /// Nothing can be written: it was opened like this, or a file failed.
    is_frozen: AtomicBool,
    is_closed: AtomicBool,
    recovery: Recovery,
    resolved: Resolved,
}

/// What is known of an open store.
#[derive(Clone, Debug)]
pub struct Status {
    /// What was measured on the modelled device: operations and wear since the store was made, what the host asked for since
    /// then, responses since it was opened.
    pub outcome: Outcome,
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
    /// Damaged pages that were come upon.
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

/// How long the work on the files of an open store took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Commits: pages and journal, until both are durable.
    pub commit: Snapshot,
    /// Syncs, each of one file.
    pub sync: Snapshot,
    /// Checkpoints, until they are durable.
    pub checkpoint: Snapshot,
}

impl Store {
    /// Opens a store. Its state is that of its last commit.
    ///
    /// # Errors
    /// There is none, another process has it, or it cannot be read.
    pub fn open(storage: Arc<dyn Storage>, options: OpenOptions) -> Result<Self, StoreError> {
        let (engine, resolved, recovery) = open::load(storage.as_ref(), &options)?;
        Ok(Self {
            resolved,
            sectors: engine.sectors,
            engine: Mutex::new(engine),
            options,
            is_frozen: AtomicBool::new(options.read_only),
            is_closed: AtomicBool::new(false),
            recovery,
        })
    }

    /// What opening it took.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The device that it is.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// When the last request ended on the modelled device, in nanoseconds.
    pub fn modelled_ns(&self) -> u64 {
        self.lock().media.now_ns()
    }

    /// Events since the store was made.
    pub fn events(&self) -> u64 {
        let engine = self.lock();
        engine.first_event + engine.pending.len() as u64
    }

    /// Commits, writes a checkpoint, and serves nothing more: opening the store again replays nothing.
    ///
    /// # Errors
    /// Something may not be durable.
    pub fn close(&self) -> Result<(), IoError> {
        let mut engine = self.lock();
        if self.is_closed.swap(true, Ordering::Relaxed) || self.options.read_only {
            return Ok(());
        }
        let closed = engine.check_writable(false).and_then(|()| engine.commit());
        let closed = closed.and_then(|()| if engine.journal.bytes() > 0 { engine.checkpoint() } else { Ok(()) });
        let closed = closed.and_then(|()| {
            engine.write_superblock(|superblock, _| superblock.power.is_off = true).map_err(|_| IoError::Io)
        });
        self.note_failure(&engine);
        closed
    }

    /// The host is idle: background work of about so many page copies may be done. Returns whether any was.
    ///
    /// # Errors
    /// A file failed.
    pub fn idle(&self, pages: u32) -> Result<bool, IoError> {
        self.change(0, 0, |engine| engine.idle(pages))
    }

    /// What is known of it.
    pub fn status(&self) -> Status {
        let mut engine = self.lock();
        let engine = &mut *engine;
        let figures = engine.ask(&"figures", |scheme, _| {
            let mut metrics = Metrics::default();
            scheme.metrics(&mut metrics);
            (metrics, scheme.fixed_slc_blocks())
        });
        let (metrics, fixed_slc_blocks) = figures.unwrap_or_default();
        self.note_failure(engine);
        let (metadata, buffers) = engine.media.memory_bytes();
        let Modelled { reads, writes } = &mut engine.modelled;
        reads.close_run();
        writes.close_run();
        let mut power = engine.superblock.power;
        power.on_ms += engine.opened.elapsed().as_millis() as u64;
        Status {
            power,
            events: engine.first_event + engine.pending.len() as u64,
            events_pending: engine.pending.len() as u64,
            journal_bytes: engine.journal.bytes(),
            written_sectors: engine.media.written().count(),
            media_errors: engine.media.media_errors(),
            counts: engine.counts,
            times: Times::default(),
            failure: engine.media.failure().map(|failure| failure.what.clone()),
            is_full: engine.is_full,
            metadata_bytes: (metrics.get("metadata_bytes").map(|bytes| bytes as u64), metadata),
            buffer_bytes: buffers + engine.journal.memory_bytes() + engine.pending.capacity() * 24,
            outcome: Outcome {
                ledger: engine.media.ledger().clone(),
                reads: reads.clone(),
                writes: writes.clone(),
                host: engine.media.host(),
                simulated_ns: engine.media.now_ns(),
                arrivals: Arrivals::Closed { depth: 1 },
                backlog_ns: 0,
                arrivals_ns: 0,
                stretches: Vec::new(),
                servers: engine.media.servers(),
                metrics,
                controller: Metrics::default(),
                fixed_slc_blocks,
                intervals: Vec::new(),
            },
        }
    }
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what is inside.
    pub(super) fn inspect<T>(&self, look: impl FnOnce(&mut Engine) -> T) -> T {
        look(&mut self.lock())
    }

    fn note_failure(&self, engine: &Engine) {
        if engine.media.failure().is_some() {
            self.is_frozen.store(true, Ordering::Relaxed);
        }
    }

    fn check_range(&self, sector: u64, sectors: u64) -> Result<(), IoError> {
        let is_within = sector.checked_add(sectors).is_some_and(|end| end <= self.sectors);
        if is_within { Ok(()) } else { Err(IoError::OutOfRange) }
    }

    /// Does something that changes the device.
    fn change<T>(
        &self,
        sector: u64,
        sectors: u64,
        work: impl FnOnce(&mut Engine) -> Result<T, IoError>,
    ) -> Result<T, IoError> {
        self.check_range(sector, sectors)?;
        let mut engine = self.lock();
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(IoError::Shutdown);
        }
        let done = engine.check_writable(self.options.read_only).and_then(|()| work(&mut engine));
        self.note_failure(&engine);
        done
    }

    /// As [`BlockDevice::read`], at a time of the modelled device, or when it ended what came before. Returns how long that
    /// device takes, in nanoseconds.
    ///
    /// # Errors
    /// As there.
    pub fn timed_read(&self, sector: u64, out: &mut [u8], issue_ns: Option<u64>) -> Result<u64, IoError> {
        self.check_range(sector, whole_sectors(out.len())?)?;
        let mut engine = self.lock();
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(IoError::Shutdown);
        }
        if self.options.read_only && engine.holds_too_much() {
            // What reading has changed is forgotten: the device is again as it was opened.
            let (fresh, ..) = open::reload(&engine.files, &self.options).map_err(|_| IoError::Io)?;
            *engine = fresh;
        }
        let done = engine.timed(issue_ns, |engine| engine.read(sector, out, self.options.read_only));
        self.note_failure(&engine);
        let ((), response_ns) = done?;
        engine.modelled.reads.record(response_ns);
        Ok(response_ns)
    }

    /// As [`BlockDevice::write`], at a time of the modelled device, or when it ended what came before. Returns how long that
    /// device takes, in nanoseconds.
    ///
    /// # Errors
    /// As there.
    pub fn timed_write(&self, sector: u64, data: &[u8], fua: bool, issue_ns: Option<u64>) -> Result<u64, IoError> {
        self.change(sector, whole_sectors(data.len())?, |engine| {
            let ((), response_ns) = engine.timed(issue_ns, |engine| engine.write(sector, data))?;
            engine.modelled.writes.record(response_ns);
            if fua {
                engine.flush()?
            }
            Ok(response_ns)
        })
    }
}

fn whole_sectors(bytes: usize) -> Result<u64, IoError> {
    if bytes.is_multiple_of(SECTOR) { Ok((bytes / SECTOR) as u64) } else { Err(IoError::OutOfRange) }
}

impl BlockDevice for Store {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn read_only(&self) -> bool {
        self.is_frozen.load(Ordering::Relaxed)
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError> {
        self.timed_read(sector, out, None).map(|_| ())
    }

    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError> {
        self.timed_write(sector, data, fua, None).map(|_| ())
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.change(sector, sectors, |engine| {
            engine.trim(sector, sectors)?;
            if fua { engine.flush() } else { Ok(()) }
        })
    }

    /// A trim: trimmed sectors read as zeros.
    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.trim(sector, sectors, fua)
    }

    fn flush(&self) -> Result<(), IoError> {
        // There is nothing to flush on a device that cannot be written to, unless something was written before.
        if self.options.read_only { Ok(()) } else { self.change(0, 0, Engine::flush) }
    }

    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError> {
        self.check_range(sector, sectors)?;
        let engine = self.lock();
        let (mut at, end) = (sector, sector + sectors);
        while at < end {
            let run = engine.media.written().run(at, end);
            let extent = if engine.media.written().get(at) { Extent::Allocated } else { Extent::Hole };
            if visit(run, extent).is_break() {
                break;
            }
            at += run;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::crash_backing::CrashStorage;
    use crate::store::create::{CreateOptions, create};
    use crate::store::soak::TINY;
    use bimetal_core::media::Media;
    use bimetal_core::request::Request;
    use bimetal_core::scheme::{SCHEMES, Scheme};

    /// A scheme whose state is nonsense.
    #[derive(serde::Serialize)]
    struct Nonsense;

    impl<M: Media> Scheme<M> for Nonsense {
        fn fill(&mut self, _: &mut M) {}
        fn serve(&mut self, _: &mut M, request: &Request) {
            panic!("sector {} is nowhere", request.sector);
        }
        fn metrics(&self, _: &mut Metrics) {
            panic!("there are no figures");
        }
        fn check(&self) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn a_scheme_that_panics_ends_the_service_and_nothing_else() {
        let storage = Arc::new(CrashStorage::new());
        let device = TINY[0].device(SCHEMES[0], 0).unwrap();
        create(storage.as_ref(), &device, &CreateOptions { number: Some(1), ..CreateOptions::default() }).unwrap();
        let open = || Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
        let store = open();
        store.write(0, &[1; SECTOR], true).unwrap();
        store.inspect(|engine| engine.scheme = Box::new(Nonsense));
        let mut sector = [9; SECTOR];
        assert_eq!(store.read(0, &mut sector), Err(IoError::Io));
        assert_eq!(store.write(0, &[2; SECTOR], true), Err(IoError::Io));
        assert_eq!((store.flush(), store.close()), (Err(IoError::Io), Err(IoError::Io)));
        let failure = store.status().failure.unwrap();
        assert!(store.read_only() && failure.ends_with("sector 0 is nowhere"), "{failure}");
        drop(store);
        // What was durable is there for a scheme that knows it.
        open().read(0, &mut sector).unwrap();
        assert_eq!(sector, [1; SECTOR]);
    }
}
