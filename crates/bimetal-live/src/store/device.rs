//! A store as a block device.

mod commits;
mod status;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bimetal_core::device::Resolved;

use super::arena::HostData;
use super::backing::Storage;
use super::commit::Committer;
use super::create;
use super::engine::Engine;
use super::error::StoreError;
use super::files::OpenOptions;
use super::frame::SECTOR;
use super::open::{self, Recovery};
use super::reading::{Reading, Sources};
use super::superblock::Power;
use super::times::Clocks;
use super::waiters::Waiters;
use crate::block_device::{BlockDevice, Extent, IoError, Payload, pieces};

pub use status::Status;

/// An open store.
///
/// There are two locks. The engine's lock is held while a request is planned, never during a sync. The committer's lock
/// is held by the thread that leads a commit while the batch is written, and not while its journal is synced. A thread
/// that needs both takes the committer's first. Upkeep needs neither while it works on files.
pub struct Store {
    engine: Mutex<Engine>,
    committer: Mutex<Committer>,
    waiters: Waiters,
    /// Notified when there is upkeep to do, or when a thread has returned it.
    pub(super) upkeep: Condvar,
    /// Notified when batches have landed, or have failed.
    landing: Condvar,
    clocks: Arc<Clocks>,
    /// History of earlier openings, and start of this one.
    power: Power,
    opened: Instant,
    /// Sources of page reads without the engine, and memory for reads.
    sources: Sources,
    readings: Mutex<Vec<Reading>>,
    options: OpenOptions,
    sectors: u64,
    /// Bytes of the files in its directory when the whole store is in use.
    full_bytes: u64,
    number: u64,
    /// Whether nothing can be written: the store was opened read-only, or a file failed.
    is_frozen: AtomicBool,
    is_closed: AtomicBool,
    recovery: Recovery,
    resolved: Resolved,
}

impl Store {
    /// Opens a store in the state of its last commit.
    ///
    /// # Errors
    /// There is no store, another process has it open, or it cannot be read.
    pub fn open(storage: Arc<dyn Storage>, options: OpenOptions) -> Result<Self, StoreError> {
        let (engine, committer, resolved, recovery) = open::load(storage.as_ref(), &options)?;
        let contents = committer.superblock.contents.as_ref().ok_or(StoreError::Unfinished)?;
        Ok(Self {
            full_bytes: create::full_bytes(&resolved, contents)?,
            resolved,
            sectors: engine.sectors,
            clocks: Arc::clone(&committer.clocks),
            power: committer.superblock.power,
            number: committer.superblock.store,
            opened: committer.opened,
            sources: Sources::new(engine.media.regions(), committer.superblock.seed()),
            readings: Mutex::default(),
            engine: Mutex::new(engine),
            committer: Mutex::new(committer),
            waiters: Waiters::default(),
            upkeep: Condvar::new(),
            landing: Condvar::new(),
            options,
            is_frozen: AtomicBool::new(options.read_only),
            is_closed: AtomicBool::new(false),
            recovery,
        })
    }

    /// The recovery when it was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The number that was drawn when the store was created. Copies of its files have the same number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of the files in its directory when the whole store is in use. Those of a sparse store take less.
    pub fn full_bytes(&self) -> u64 {
        self.full_bytes
    }

    /// The device of the store.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// End of the last request on the modelled device, in nanoseconds.
    pub fn modelled_ns(&self) -> u64 {
        self.lock().media.now_ns()
    }

    /// Number of events since the store was created.
    pub fn events(&self) -> u64 {
        self.lock().events()
    }

    /// Commits, writes a checkpoint, and stops serving. The next opening has nothing to replay.
    ///
    /// # Errors
    /// Some data may not be durable.
    pub fn close(&self) -> Result<(), IoError> {
        let mut committer = self.quiet_committer();
        let mut engine = self.lock();
        if self.is_closed.swap(true, Ordering::Relaxed) || self.options.read_only {
            return Ok(());
        }
        let closed = engine.check_writable(false).and_then(|()| committer.commit_all(&mut engine));
        let is_empty = committer.journal.bytes() == 0;
        let closed = closed.and_then(|()| if is_empty { Ok(()) } else { committer.checkpoint(&mut engine) });
        if closed.is_ok() {
            committer.write_map(&mut engine, &self.resolved);
        }
        let closed = closed.and_then(|()| {
            committer.write_superblock(|superblock| superblock.power.is_off = true).map_err(|_| IoError::Io)
        });
        self.note_failure(&engine);
        closed
    }

    /// The host is idle: does background work of up to about `pages` page copies. Returns whether there was any.
    ///
    /// # Errors
    /// A file failed.
    pub fn idle(&self, pages: u32) -> Result<bool, IoError> {
        let worked = match self.make_room() {
            Err(IoError::NoSpace) => false,
            made => made.and_then(|()| self.change(|engine| engine.idle(pages)))?,
        };
        Ok(self.do_upkeep(self.settled_committer())? || worked)
    }

    /// Performs a step of upkeep, the work after commits for which no commit waits. Waits up to `patience` for work. If
    /// upkeep falls behind, commits help; if this is never called, they do all of it.
    ///
    /// # Errors
    /// A file failed.
    pub fn keep_up(&self, patience: Duration) -> Result<(), IoError> {
        let rests = |committer: &mut Committer| !committer.needs_upkeep();
        let waited = self.upkeep.wait_timeout_while(self.committer(), patience, rests);
        let (committer, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() { Ok(()) } else { self.do_upkeep(committer).map(|_| ()) }
    }
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readings(&self) -> MutexGuard<'_, Vec<Reading>> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `look` with both parts of the store.
    pub(super) fn inspect<T>(&self, look: impl FnOnce(&mut Committer, &mut Engine) -> T) -> T {
        look(&mut self.quiet_committer(), &mut self.lock())
    }

    /// Runs `look` with the engine, unless it is locked.
    #[cfg(feature = "soak")]
    pub(super) fn try_look<T>(&self, look: impl FnOnce(&Engine) -> T) -> Option<T> {
        self.engine.try_lock().ok().map(|engine| look(&engine))
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

    /// Locks the engine, unless the store is closed.
    fn open_engine(&self) -> Result<MutexGuard<'_, Engine>, IoError> {
        let engine = self.lock();
        if self.is_closed.load(Ordering::Relaxed) { Err(IoError::Shutdown) } else { Ok(engine) }
    }

    /// Locks the engine for an event. Waits for commits while most spare slots are parked, so that this event has enough.
    fn ready_engine(&self) -> Result<MutexGuard<'_, Engine>, IoError> {
        loop {
            let engine = self.open_engine()?;
            if !engine.media.lacks_slots() {
                return Ok(engine);
            }
            let events = engine.events();
            drop(engine);
            if self.make_durable(events).is_err() {
                return self.open_engine();
            }
        }
    }

    /// Performs a change of the device, then commits if that is due.
    fn change<T>(&self, work: impl FnOnce(&mut Engine) -> Result<T, IoError>) -> Result<T, IoError> {
        let mut due = None;
        let done = self.change_only(|engine| {
            let done = work(engine);
            due = engine.commit_due();
            done
        });
        self.relieve(due);
        done
    }

    /// Performs a change of the device.
    pub(super) fn change_only<T>(&self, work: impl FnOnce(&mut Engine) -> Result<T, IoError>) -> Result<T, IoError> {
        let mut engine = self.ready_engine()?;
        let done = engine.check_writable(self.options.read_only).and_then(|()| work(&mut engine));
        self.note_failure(&engine);
        done
    }

    /// Commits the events before `due`, if there are too many to wait any longer.
    fn relieve(&self, due: Option<u64>) {
        // The request that triggers a commit does not see its failure; the next request that needs the files does.
        if due.is_some_and(|events| self.make_durable(events).is_err()) {
            let mut engine = self.lock();
            engine.bound_pending();
            self.note_failure(&engine);
        }
    }

    /// Checks that the device is writable, and allocates the space that a write may need.
    fn make_room(&self) -> Result<(), IoError> {
        let engine = self.open_engine()?;
        engine.check_writable(self.options.read_only)?;
        if !engine.lacks_room() {
            return Ok(());
        }
        drop(engine);
        let mut committer = self.committer();
        let mut engine = self.open_engine()?;
        engine.check_writable(self.options.read_only)?;
        let made = if engine.lacks_room() { committer.make_room(&mut engine) } else { Ok(()) };
        self.note_failure(&engine);
        made
    }

    /// On a read-only device, reads change state in memory. If that takes too much memory, it is dropped: the device is
    /// again as it was opened.
    fn forget_reads(&self) -> Result<(), IoError> {
        if !self.options.read_only || !self.lock().holds_too_much() {
            return Ok(());
        }
        let mut committer = self.committer();
        let mut engine = self.lock();
        let (fresh, fresh_committer, ..) = open::reload(&committer.files, &self.options).map_err(|_| IoError::Io)?;
        (*engine, *committer) = (fresh, fresh_committer);
        Ok(())
    }

    /// Like [`BlockDevice::read`], at a time on the modelled device, or at the end of the previous request. Returns the
    /// duration on that device, in nanoseconds.
    ///
    /// # Errors
    /// The errors of [`BlockDevice::read`].
    pub fn timed_read(&self, sector: u64, out: &mut [u8], issue_ns: Option<u64>) -> Result<u64, IoError> {
        let sectors = whole_sectors(out.len())?;
        self.check_range(sector, sectors)?;
        let (mut took, mut left) = (Took::new(issue_ns), out);
        for piece in pieces(sector, sectors, self.options.limits.request_sectors.into()) {
            let (out, later) = left.split_at_mut((piece.end - piece.start) as usize * SECTOR);
            left = later;
            let read = self.read_piece(piece.start, out, &mut took);
            let due = self.lock().commit_due();
            self.relieve(due);
            read?;
        }
        let response_ns = took.response_ns();
        self.lock().modelled.reads.record(response_ns);
        Ok(response_ns)
    }

    /// Reads the sectors of one event.
    pub(super) fn read_piece(&self, sector: u64, out: &mut [u8], took: &mut Took) -> Result<(), IoError> {
        let mut reading = self.readings().pop().unwrap_or_default();
        loop {
            self.forget_reads()?;
            let mut engine = self.ready_engine()?;
            took.begin(&engine);
            let sectors = (out.len() / SECTOR) as u32;
            let served = engine.read(sector, sectors, took.issue_ns, self.options.read_only, reading);
            self.note_failure(&engine);
            reading = served?;
            took.end(&engine);
            let releases = engine.media.releases();
            drop(engine);
            let Err(misread) = reading.finish(&self.sources, out) else { break };
            let mut engine = self.lock();
            if engine.media.releases() == releases || self.options.read_only {
                let error = engine.misread(&misread);
                self.note_failure(&engine);
                return Err(error);
            }
            // The slots were reused meanwhile. The engine determines the new places of the sectors.
        }
        self.readings().push(reading);
        Ok(())
    }

    /// Like [`BlockDevice::write`], at a time on the modelled device, or at the end of the previous request. Returns
    /// the duration on that device, in nanoseconds.
    ///
    /// # Errors
    /// The errors of [`BlockDevice::write`].
    pub fn timed_write(&self, sector: u64, data: &[u8], fua: bool, issue_ns: Option<u64>) -> Result<u64, IoError> {
        self.write_data(sector, &HostData::Borrowed(data), fua, issue_ns)
    }

    fn write_data(&self, sector: u64, data: &HostData<'_>, fua: bool, issue_ns: Option<u64>) -> Result<u64, IoError> {
        let sectors = whole_sectors(data.bytes().len())?;
        self.check_range(sector, sectors)?;
        let mut took = Took::new(issue_ns);
        for piece in pieces(sector, sectors, self.options.limits.request_sectors.into()) {
            let [from, to] = [piece.start, piece.end].map(|at| (at - sector) as usize * SECTOR);
            self.make_room()?;
            self.change(|engine| {
                took.begin(engine);
                engine.write(piece.start, data.part(from..to), issue_ns)?;
                took.end(engine);
                Ok(())
            })?;
        }
        let response_ns = took.response_ns();
        self.lock().modelled.writes.record(response_ns);
        if fua {
            self.flush()?;
        }
        Ok(response_ns)
    }
}

/// Start and end of a request on the modelled device.
pub(super) struct Took {
    issue_ns: Option<u64>,
    start_ns: Option<u64>,
    end_ns: u64,
}

impl Took {
    pub(super) fn new(issue_ns: Option<u64>) -> Self {
        Self { issue_ns, start_ns: issue_ns, end_ns: 0 }
    }

    fn begin(&mut self, engine: &Engine) {
        self.start_ns.get_or_insert(engine.media.now_ns());
    }

    fn end(&mut self, engine: &Engine) {
        self.end_ns = self.end_ns.max(engine.media.now_ns());
    }

    fn response_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns.unwrap_or(0))
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

    fn write_shared(&self, sector: u64, data: &Payload, fua: bool) -> Result<(), IoError> {
        self.write_data(sector, &HostData::Shared(data.clone()), fua, None).map(|_| ())
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.check_range(sector, sectors)?;
        for piece in pieces(sector, sectors, self.options.limits.trim_sectors.into()) {
            let engine = self.open_engine()?;
            engine.check_writable(self.options.read_only)?;
            let is_exhausted = engine.media.is_exhausted();
            drop(engine);
            if is_exhausted {
                self.make_room().ok();
            }
            self.change(|engine| engine.trim(piece.start, (piece.end - piece.start) as u32))?;
        }
        if fua { self.flush() } else { Ok(()) }
    }

    /// A trim: trimmed sectors read as zeros.
    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.trim(sector, sectors, fua)
    }

    fn flush(&self) -> Result<(), IoError> {
        // A read-only device has nothing to flush. On a device that became unwritable, earlier writes may need it.
        if self.options.read_only {
            return Ok(());
        }
        let engine = self.open_engine()?;
        engine.check_writable(false)?;
        let changed = engine.changed;
        if engine.durable >= changed {
            return Ok(());
        }
        drop(engine);
        self.make_durable(changed)
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
mod tests;
