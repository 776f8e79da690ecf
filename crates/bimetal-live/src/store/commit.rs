//! Commits make changes durable while the device continues.
//!
//! A commit takes a batch from the engine: events, programmed pages, sectors of the home disk. The engine's lock is
//! then free, and only threads that need durability wait. Up to 512 KiB of pages are part of the batch, which is
//! appended to the journal and synced. More pages are written and synced before the batch. A crash before the batch is
//! durable leaves the state of the previous commit. Slots of erased blocks are freed, and the home disk is written in
//! place, only after the batch is durable.
//!
//! Several commits may be in progress. One batch at a time is taken and written, while earlier ones are synced, each by
//! the thread that wrote it. A batch is valid when it and all earlier ones are durable: batches *land* in order. A
//! failed sync invalidates all batches that have not landed. Events during a commit belong to a later one.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::backing::{File, is_full};
use super::batch::Batch;
use super::checkpoint::Underway;
use super::descriptions::DESCRIPTIONS_MAX;
use super::engine::Engine;
use super::event::Event;
use super::files::Files;
use super::home_disk::Image;
use super::journal::Journal;
use super::record::Record;
use super::region::Leaving;
use super::superblock::{Start, Superblock};
use super::syncs::{self, Syncs};
use super::times::Clocks;
use crate::block_device::IoError;

/// Largest number of batches that are written but not durable: enough for 32 clients that each wait for their own
/// batch. With a limit of 8, syncs of 5 ms and 32 clients, a client waited up to an eighth of a sync longer, until a
/// batch had landed and its own could begin.
pub const FLIGHTS_MAX: usize = DESCRIPTIONS_MAX;
/// Bytes of such batches above which no other is written. They stay in memory until they are durable.
const FLIGHT_BYTES: u64 = 4 << 20;

/// A batch that is written and has not landed.
pub struct Flight {
    record: Record,
    image: Option<Image>,
    /// Number of its last event plus 1.
    end: u64,
    /// End of the journal after the batch, and the journal's length in bytes.
    journal: (Start, u64),
    began: Instant,
    /// Whether its sync has finished.
    is_synced: bool,
}

/// Reusable memory of a written batch.
#[derive(Default)]
pub struct Spare {
    events: Vec<Event>,
    releases: Vec<u32>,
}

impl Spare {
    /// Memory for `events` events.
    pub fn new(events: usize) -> Self {
        Self { events: Vec::with_capacity(events), releases: Vec::with_capacity(FLIGHTS_MAX) }
    }
}

impl Engine {
    /// Takes all changes since the last call; `None` if there are none.
    ///
    /// # Errors
    /// Pages that lacked space earlier cannot be written yet, or the files failed.
    fn take_batch(&mut self, spare: &mut Spare) -> Result<Option<Batch>, IoError> {
        if self.pending.is_empty() {
            return Ok(None);
        }
        let (pages, has_pages) = self.media.leave().map_err(|error| self.told("a commit", &error))?;
        let disk = self.media.disk().map(|disk| (disk.leave(), disk.image().clone()));
        let (disk, image) = disk.unzip();
        let Spare { events, releases } = std::mem::take(spare);
        let events = std::mem::replace(&mut self.pending, events);
        let releases = std::mem::replace(&mut self.releases, releases);
        let (first_event, first_sequence) = (self.first_event, self.first_sequence);
        self.first_event += events.len() as u64;
        self.first_sequence = self.media.sequence();
        Ok(Some(Batch { first_event, first_sequence, releases, events, disk, image, pages, has_pages }))
    }
}

/// The durable side of a store: journal, checkpoints, superblock.
pub struct Committer {
    pub(super) files: Arc<Files>,
    pub(super) superblock: Superblock,
    pub(super) journal: Journal,
    /// Journal length in bytes that forces a checkpoint, and the length at which the next one is due.
    pub(super) journal_limit: u64,
    pub(super) checkpoint_at: u64,
    /// The checkpoint in progress, and the journal length in bytes at its start.
    pub(super) underway: Option<Underway>,
    pub(super) checkpoint_from: u64,
    /// Files with writes of batches that so far only the journal makes durable.
    pub(super) written: Unsynced,
    /// Whether a thread has taken `underway` or `written`, or parts of them, for a step of upkeep.
    pub(super) is_kept_up: bool,
    /// Whether that step has taken the checkpoint in progress.
    pub(super) is_checkpoint_taken: bool,
    /// Sectors of the device.
    pub(super) sectors: u64,
    /// Journal space in bytes that must be available before a write is accepted.
    pub(super) room_bytes: u64,
    /// Start of the open time that is not yet in the superblock.
    pub(super) opened: Instant,
    /// A batch that lacked space. It precedes all others.
    pub(super) unfinished: Option<Batch>,
    /// Batches that are written and have not landed, oldest first.
    pub(super) flights: VecDeque<Flight>,
    /// Memory of an earlier batch.
    pub(super) spare: Spare,
    pub(super) syncs: Syncs,
    pub(super) clocks: Arc<Clocks>,
}

/// Files with writes since their last sync.
#[derive(Default)]
pub struct Unsynced {
    files: Vec<File>,
    bytes: usize,
}

impl Unsynced {
    /// Adds files to which `bytes` bytes were written.
    pub fn add(&mut self, files: impl IntoIterator<Item = File>, bytes: usize) {
        for file in files {
            if !self.files.iter().any(|other| Arc::ptr_eq(other, &file)) {
                self.files.push(file);
            }
        }
        self.bytes += bytes;
    }

    /// Bytes written to them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Removes and returns the files, to be synced.
    pub fn take(&mut self) -> Vec<File> {
        self.bytes = 0;
        std::mem::take(&mut self.files)
    }

    /// Adds the files of another list.
    pub fn merge(&mut self, other: Self) {
        self.add(other.files, other.bytes);
    }
}

/// Sectors of the home disk that lacked space, as runs of the batch's index.
type Left = Vec<Range<usize>>;

impl Committer {
    /// The next batch to make durable; `None` if all changes are durable or in progress.
    ///
    /// # Errors
    /// The error for the host.
    pub fn next_batch(&mut self, engine: &mut Engine) -> Result<Option<Batch>, IoError> {
        // Slots may have been freed since this batch was taken. The next batch records that, so no checkpoint may begin
        // between the two.
        if let Some(batch) = self.unfinished.take() {
            return Ok(Some(batch));
        }
        let batch = engine.take_batch(&mut self.spare)?;
        self.begin_checkpoint_if_due(engine);
        if batch.is_none() && self.flights.is_empty() {
            self.note_checkpoint_start((self.journal.end(), self.journal.bytes()));
        }
        Ok(batch)
    }

    /// Whether batches must land before another one is written.
    pub fn is_crowded(&self) -> bool {
        let bytes = |flight: &Flight| flight.record.header().bytes();
        !self.flights.is_empty()
            && (self.flights.len() >= FLIGHTS_MAX
                || self.flights.iter().map(bytes).sum::<u64>() >= FLIGHT_BYTES
                || self.is_checkpoint_due())
    }

    /// Writes a batch. It takes as long as the files do, and does not use the engine.
    ///
    /// # Errors
    /// The batch may not be written. After an error that [`is_full`] it is not, and can be written again.
    pub fn write(&mut self, batch: &Batch) -> io::Result<Flight> {
        let began = Instant::now();
        batch.pages.iter().try_for_each(Leaving::write)?;
        let files: Vec<&File> = batch.pages.iter().map(Leaving::file).collect();
        if batch.has_pages {
            let bytes = batch.runs().map(|(_, run)| run.frames().len()).sum();
            self.written.add(files.into_iter().cloned(), bytes);
        } else {
            self.syncs.at_once(&files)?;
        }
        let record = self.journal.write(batch, self.flights.len())?;
        let journal = (self.journal.end(), self.journal.bytes());
        Ok(Flight { record, image: batch.image.clone(), end: batch.end(), journal, began, is_synced: false })
    }

    /// Registers a written batch. Returns the file to sync for it.
    ///
    /// # Errors
    /// The error for the host: the write failed. If it lacked space, the batch precedes all others when there is space
    /// again.
    pub fn launch(&mut self, engine: &mut Engine, batch: Batch, written: io::Result<Flight>) -> Result<File, IoError> {
        match written {
            Ok(flight) => {
                let Batch { mut events, mut releases, .. } = batch;
                events.clear();
                releases.clear();
                self.spare = Spare { events, releases };
                self.flights.push_back(flight);
                self.note_journal(engine);
                Ok(Arc::clone(self.journal.file()))
            }
            Err(error) if is_full(&error) => {
                self.unfinished = Some(batch);
                self.abandon_checkpoint(engine);
                Err(engine.told("a commit", &error))
            }
            Err(error) => Err(self.fail(engine, error)),
        }
    }

    /// A batch may not be durable, so none after it is valid. Its unwritten data stay in memory.
    pub fn fail(&mut self, engine: &mut Engine, error: io::Error) -> IoError {
        self.flights.clear();
        self.abandon_checkpoint(engine);
        // Writing it again could apply its events twice.
        engine.told("a commit", &if is_full(&error) { io::Error::other(error) } else { error })
    }

    /// Notes that the sync for the batch with this end has finished.
    pub fn note_synced(&mut self, end: u64) {
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.end == end) {
            flight.is_synced = true;
        }
    }

    /// The next batch that lands: it and all earlier ones are durable.
    pub fn next_landing(&mut self) -> Option<Flight> {
        self.flights.pop_front_if(|flight| flight.is_synced)
    }

    /// Performs the file operations that follow a durable batch. Recovery repeats them if they are interrupted.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn land(&mut self, flight: &Flight) -> io::Result<Left> {
        self.journal.seal(&flight.record)?;
        self.clocks.committed(flight.began);
        let (index, data) = flight.record.sectors();
        let Some(image) = &flight.image else { return Ok(Left::new()) };
        self.written.add(image.files(), data.len());
        image.place(index, data)
    }

    /// Notifies the engine that a batch has landed.
    ///
    /// # Errors
    /// The error for the host.
    pub fn finish(&mut self, engine: &mut Engine, flight: Flight, landed: io::Result<Left>) -> Result<(), IoError> {
        let left = landed.map_err(|error| self.fail(engine, error))?;
        engine.left();
        engine.durable = flight.end;
        let (index, data) = flight.record.sectors();
        if let Some(disk) = engine.media.disk() {
            disk.left(index, data, &left);
        }
        engine.counts.commits += 1;
        self.note_checkpoint_start(flight.journal);
        self.journal.recycle(flight.record);
        self.note_journal(engine);
        Ok(())
    }

    /// Makes all changes durable while no other thread uses the store.
    ///
    /// # Errors
    /// The error for the host.
    pub fn commit_all(&mut self, engine: &mut Engine) -> Result<(), IoError> {
        while let Some(batch) = self.next_batch(engine)? {
            let (end, written) = (batch.end(), self.write(&batch));
            let file = self.launch(engine, batch, written)?;
            syncs::sync(&file, &self.clocks).map_err(|error| self.fail(engine, error))?;
            self.note_synced(end);
            while let Some(flight) = self.next_landing() {
                let landed = self.land(&flight);
                self.finish(engine, flight, landed)?;
            }
        }
        Ok(())
    }

    /// Allocates the space that a write may need.
    ///
    /// # Errors
    /// The error for the host.
    pub fn make_room(&mut self, engine: &mut Engine) -> Result<(), IoError> {
        let made = engine.media.make_room().and_then(|()| self.journal.make_room(self.room_bytes));
        made.map_err(|error| engine.told("a write", &error))?;
        self.note_journal(engine);
        Ok(())
    }

    /// Whether a checkpoint should begin with the next batch. All earlier batches are then durable, because the saved
    /// state can only represent slots that wait for a single commit.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        self.underway.is_none() && !self.is_checkpoint_taken && self.journal.bytes() >= self.checkpoint_at
    }

    /// Begins a checkpoint if one is due. The events of the next batch have been taken, or there are none, so that
    /// batches contain all changes.
    pub(super) fn begin_checkpoint_if_due(&mut self, engine: &mut Engine) {
        let is_settled = engine.image.is_none() && engine.pending.is_empty() && self.flights.is_empty();
        if is_settled && self.is_checkpoint_due() {
            self.begin_checkpoint(engine);
        }
    }

    pub(super) fn begin_checkpoint(&mut self, engine: &mut Engine) {
        self.written.add(engine.media.take_dirty(), 0);
        let file = self.superblock.checkpoint.map_or(0, |checkpoint| 1 - checkpoint.file);
        self.underway = Some(Underway::begin(engine, self.superblock.seed(), file));
        self.checkpoint_from = self.journal.bytes();
    }

    /// The journal is durable up to `end`. A checkpoint that began with the last batch before it is covered completely.
    pub(super) fn note_checkpoint_start(&mut self, end: (Start, u64)) {
        if let Some(underway) = &mut self.underway {
            underway.journal.get_or_insert(end);
        }
    }

    /// Abandons the checkpoint in progress.
    pub(super) fn abandon_checkpoint(&mut self, engine: &mut Engine) {
        self.underway = None;
        if let Some(image) = engine.image.take() {
            image.abandon(|out| engine.save_state(out));
        }
    }

    /// Changes the superblock durably.
    pub(super) fn write_superblock(&mut self, change: impl FnOnce(&mut Superblock)) -> io::Result<()> {
        let mut superblock = self.superblock.clone();
        superblock.generation += 1;
        let opened = self.opened.elapsed();
        superblock.power.on_ms += opened.as_millis() as u64;
        change(&mut superblock);
        superblock.write(self.files.superblock.as_ref())?;
        self.superblock = superblock;
        self.opened += opened;
        Ok(())
    }

    /// Updates the engine's view of the journal.
    pub(super) fn note_journal(&self, engine: &mut Engine) {
        engine.journal_bytes = self.journal.bytes();
        let flying = self.flights.iter().map(|flight| flight.record.memory_bytes());
        engine.journal_memory_bytes = self.journal.memory_bytes() + flying.sum::<usize>();
        engine.lacks_journal = self.journal.lacks_room(self.room_bytes);
    }
}
