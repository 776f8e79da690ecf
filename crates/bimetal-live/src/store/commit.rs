//! Commits: what has happened becomes durable while the device goes on.
//!
//! A commit takes a batch from the engine: events, programmed pages, sectors of the home disk. The engine's lock is then free, and only
//! threads that need durability wait. Up to 512 KiB of pages are part of the batch, which is appended to the journal and synced. More
//! pages are written and synced before the batch. A crash before the batch is durable leaves the state of the commit before. Slots of
//! erased blocks are freed, and the home disk is written in place, only after the batch is durable.
//!
//! There is one commit at a time. Events that happen during a commit are in the next one.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::backing::File;
use super::batch::Batch;
use super::checkpoint::Underway;
use super::engine::Engine;
use super::event::Event;
use super::files::Files;
use super::journal::Journal;
use super::region::Leaving;
use super::superblock::Superblock;
use super::syncs::Syncs;
use super::times::Clocks;
use crate::block_device::IoError;

impl Engine {
    /// Takes all that has happened since the last time; nothing if nothing has.
    ///
    /// # Errors
    /// Pages for which there was no room before cannot be written yet, or the files failed.
    fn take_batch(&mut self, spare: &mut Vec<Event>) -> Result<Option<Batch>, IoError> {
        if self.pending.is_empty() {
            return Ok(None);
        }
        let (pages, has_pages) = self.media.leave().map_err(|error| self.told("a commit", &error))?;
        let disk = self.media.disk().map(|disk| (disk.leave(), disk.image().clone()));
        let (disk, image) = disk.unzip();
        let events = std::mem::replace(&mut self.pending, std::mem::take(spare));
        let (first_event, first_sequence) = (self.first_event, self.first_sequence);
        self.first_event += events.len() as u64;
        self.first_sequence = self.media.sequence();
        let overlap = std::mem::take(&mut self.overlap);
        Ok(Some(Batch { first_event, first_sequence, overlap, events, disk, image, pages, has_pages }))
    }
}

/// What makes durable, and what is durable: journal, checkpoints, superblock.
pub struct Committer {
    pub(super) files: Arc<Files>,
    pub(super) superblock: Superblock,
    pub(super) journal: Journal,
    /// Bytes of journal that force a checkpoint on this device, and those at which the next one is due.
    pub(super) journal_limit: u64,
    pub(super) checkpoint_at: u64,
    /// The checkpoint on its way, and the bytes of journal with which it began.
    pub(super) underway: Option<Underway>,
    pub(super) checkpoint_from: u64,
    /// Files to which batches were written that only the journal makes durable so far.
    pub(super) written: Unsynced,
    /// Whether a thread has these two, or part of them, for a step of upkeep.
    pub(super) is_kept_up: bool,
    /// Sectors of the device.
    pub(super) sectors: u64,
    /// Bytes of journal that there must be room for before a write is accepted.
    pub(super) room_bytes: u64,
    /// Since when the time of this opening is not in the superblock yet.
    pub(super) opened: Instant,
    /// A batch for which there was no room: it comes before any other.
    pub(super) unfinished: Option<Batch>,
    /// Memory of the batch before.
    pub(super) spare: Vec<Event>,
    pub(super) syncs: Syncs,
    pub(super) clocks: Arc<Clocks>,
}

/// Files to which something was written since they were synced.
#[derive(Default)]
pub struct Unsynced {
    files: Vec<File>,
    bytes: usize,
}

impl Unsynced {
    /// Notes files to which `bytes` bytes were written.
    pub fn add(&mut self, files: impl IntoIterator<Item = File>, bytes: usize) {
        for file in files {
            if !self.files.iter().any(|other| Arc::ptr_eq(other, &file)) {
                self.files.push(file);
            }
        }
        self.bytes += bytes;
    }

    /// Bytes that were written to them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The files, to be synced.
    pub fn take(&mut self) -> Vec<File> {
        self.bytes = 0;
        std::mem::take(&mut self.files)
    }

    /// Notes those of another list, too.
    pub fn merge(&mut self, other: Self) {
        self.add(other.files, other.bytes);
    }
}

/// Sectors of the home disk for which there was no room, as runs of the batch's index.
type Left = Vec<Range<usize>>;

impl Committer {
    /// What is to be made durable next; nothing if all is.
    ///
    /// # Errors
    /// As the host is told.
    pub fn next_batch(&mut self, engine: &mut Engine) -> Result<Option<Batch>, IoError> {
        let batch = match self.unfinished.take() {
            Some(batch) => Some(batch),
            None => engine.take_batch(&mut self.spare)?,
        };
        self.begin_checkpoint_if_due(engine);
        if batch.is_none() {
            self.note_checkpoint_start();
        }
        Ok(batch)
    }

    /// Makes a batch durable. Takes as long as the files do, and nothing of the engine.
    ///
    /// # Errors
    /// It may not be. After one that [`is_full`](super::backing::is_full) it is not, and can be written again.
    pub fn write(&mut self, batch: &Batch) -> io::Result<Left> {
        let start = Instant::now();
        batch.pages.iter().try_for_each(Leaving::write)?;
        let files: Vec<&File> = batch.pages.iter().map(Leaving::file).collect();
        if batch.has_pages {
            let bytes = batch.runs().map(|(_, run)| run.frames().len()).sum();
            self.written.add(files.into_iter().cloned(), bytes);
        } else {
            self.syncs.at_once(&files)?;
        }
        self.journal.write(batch)?;
        self.syncs.at_once(&[self.journal.file()])?;
        self.journal.seal()?;
        self.clocks.committed(start);
        // Durable: what follows is done again by recovery if it is cut short.
        let (index, data) = self.journal.sectors();
        let Some(image) = &batch.image else { return Ok(Left::new()) };
        self.written.add(image.files(), data.len());
        image.place(index, data)
    }

    /// Tells the engine what has become of a batch.
    ///
    /// # Errors
    /// As the host is told.
    pub fn finish(&mut self, engine: &mut Engine, batch: Batch, written: io::Result<Left>) -> Result<(), IoError> {
        let left = match written {
            Ok(left) => left,
            Err(error) => {
                self.unfinished = Some(batch);
                self.abandon_checkpoint(engine);
                return Err(engine.told("a commit", &error));
            }
        };
        engine.durable = batch.end();
        let Batch { mut events, disk, pages, .. } = batch;
        events.clear();
        self.spare = events;
        drop((disk, pages));
        engine.media.left();
        let (index, data) = self.journal.sectors();
        if let Some(disk) = engine.media.disk() {
            disk.left(index, data, &left);
        }
        engine.overlap = engine.pending.len() as u32;
        engine.counts.commits += 1;
        self.note_checkpoint_start();
        self.note_journal(engine);
        Ok(())
    }

    /// Makes durable all that has happened, while nothing else does.
    ///
    /// # Errors
    /// As the host is told.
    pub fn commit_all(&mut self, engine: &mut Engine) -> Result<(), IoError> {
        while let Some(batch) = self.next_batch(engine)? {
            let written = self.write(&batch);
            self.finish(engine, batch, written)?;
        }
        Ok(())
    }

    /// Takes room for what a write may lead to.
    ///
    /// # Errors
    /// As the host is told.
    pub fn make_room(&mut self, engine: &mut Engine) -> Result<(), IoError> {
        let made = engine.media.make_room().and_then(|()| self.journal.make_room(self.room_bytes));
        made.map_err(|error| engine.told("a write", &error))?;
        self.note_journal(engine);
        Ok(())
    }

    /// With the events of the next batch taken, or none, all that has happened is in batches: if a checkpoint is due, it begins.
    pub(super) fn begin_checkpoint_if_due(&mut self, engine: &mut Engine) {
        let is_free = engine.image.is_none() && !self.is_kept_up && engine.pending.is_empty();
        if is_free && self.journal.bytes() >= self.checkpoint_at {
            self.begin_checkpoint(engine);
        }
    }

    pub(super) fn begin_checkpoint(&mut self, engine: &mut Engine) {
        self.written.add(engine.media.take_dirty(), 0);
        let file = self.superblock.checkpoint.map_or(0, |checkpoint| 1 - checkpoint.file);
        self.underway = Some(Underway::begin(engine, self.superblock.seed(), file));
        self.checkpoint_from = self.journal.bytes();
    }

    /// A batch is durable: a checkpoint that was begun with it has what is in the journal so far.
    pub(super) fn note_checkpoint_start(&mut self) {
        let end = (self.journal.end(), self.journal.bytes());
        if let Some(underway) = &mut self.underway {
            underway.journal.get_or_insert(end);
        }
    }

    /// The checkpoint on its way is given up.
    pub(super) fn abandon_checkpoint(&mut self, engine: &mut Engine) {
        self.underway = None;
        if let Some(image) = engine.image.take() {
            image.abandon(|out| engine.save_state(out));
        }
    }

    /// Changes the superblock, durably.
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

    /// Tells the engine how the journal stands.
    pub(super) fn note_journal(&self, engine: &mut Engine) {
        engine.journal_bytes = self.journal.bytes();
        engine.journal_memory_bytes = self.journal.memory_bytes();
        engine.lacks_journal = self.journal.lacks_room(self.room_bytes);
    }
}
