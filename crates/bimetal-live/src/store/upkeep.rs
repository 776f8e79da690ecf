//! Upkeep: work after commits for which no commit waits. It syncs files that batches have written, and writes the
//! checkpoint in progress.
//!
//! A thread takes the upkeep from the committer, performs a step of it, and returns it. It holds the engine's lock
//! while it copies some tables, the committer's while the superblock is written, and none while other files are written
//! and synced. Commits help if the upkeep falls behind, so checkpoints are also written without an upkeep thread.

use std::io;
use std::sync::Arc;

use super::backing::is_full;
use super::checkpoint::{Underway, due_at};
use super::commit::{Committer, Unsynced};
use super::engine::Engine;
use super::files::Files;
use super::home_disk::HomeDisk;
use super::limits::checkpoint_room_bytes;
use super::superblock::CheckpointRef;
use super::syncs;
use super::times::Clocks;
use crate::block_device::IoError;

/// Bytes that batches write to the files before these are synced, and bytes from which on commits wait for that sync.
const WRITTEN_BYTES: usize = 4 << 20;
const WRITTEN_MAX: usize = 4 * WRITTEN_BYTES;
/// Ratio between the progress of a checkpoint and the filling of the journal.
const CHECKPOINT_LEAD: f64 = 2.0;

/// The upkeep while one thread has it.
pub struct Upkeep {
    /// Files with writes of batches that so far only the journal makes durable.
    written: Unsynced,
    /// The checkpoint in progress.
    underway: Option<Underway>,
    /// Whether this step completes it.
    is_complete: bool,
    files: Arc<Files>,
    clocks: Arc<Clocks>,
}

impl Upkeep {
    /// Takes the data for this step from the engine. Sectors of the home disk that lacked space are put in place, while
    /// no batch of this committer puts newer ones there.
    ///
    /// # Errors
    /// There is no space for pages or sectors of the home disk that only the journal has, or the files cannot be written.
    pub fn collect(&mut self, engine: &mut Engine, _committer: &Committer) -> io::Result<()> {
        // Without an image, the checkpoint was abandoned meanwhile.
        let Some(underway) = self.underway.as_mut().filter(|_| engine.image.is_some()) else { return Ok(()) };
        if underway.collect(engine) {
            // What only the journal has: the checkpoint replaces the journal.
            engine.media.place_held()?;
            engine.media.disk().map_or(Ok(()), HomeDisk::place_waiting)?;
            self.written.add(engine.media.take_dirty(), 0);
            self.is_complete = true;
        }
        Ok(())
    }

    /// Writes and syncs. It takes as long as the files do, and holds no lock.
    ///
    /// # Errors
    /// Some data may not be durable.
    pub fn perform(&mut self) -> io::Result<()> {
        if let Some(underway) = &mut self.underway {
            underway.write(&self.files, &self.clocks)?;
        }
        if self.is_complete || self.written.bytes() >= WRITTEN_BYTES {
            let files = self.written.take();
            // Writes of batches already had space, so a lack of space here is a failure.
            files.iter().try_for_each(|file| syncs::sync(file, &self.clocks)).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

impl Committer {
    /// Whether there is upkeep to do now that no thread is doing.
    pub fn needs_upkeep(&self) -> bool {
        !self.is_kept_up && (self.written.bytes() >= WRITTEN_BYTES || self.needs_checkpoint_step())
    }

    /// Whether commits must wait for the upkeep.
    pub fn is_upkeep_late(&self, engine: &Engine) -> bool {
        self.written.bytes() >= WRITTEN_MAX || self.is_checkpoint_late(engine)
    }

    /// Takes the upkeep, unless another thread has it or there is nothing to do. It must be returned with
    /// [`Committer::finish_upkeep`].
    pub fn take_upkeep(&mut self) -> Option<Upkeep> {
        if self.is_kept_up {
            return None;
        }
        let underway = self.underway.take_if(|underway| underway.can_be_written());
        if underway.is_none() && self.written.bytes() < WRITTEN_BYTES {
            return None;
        }
        self.is_kept_up = true;
        self.is_checkpoint_taken = underway.is_some();
        let (files, clocks) = (Arc::clone(&self.files), Arc::clone(&self.clocks));
        Some(Upkeep { written: std::mem::take(&mut self.written), underway, is_complete: false, files, clocks })
    }

    /// Concludes a step: a complete checkpoint becomes the valid one.
    ///
    /// # Errors
    /// The superblock may not have been written.
    pub fn conclude(&mut self, upkeep: &Upkeep) -> io::Result<()> {
        match &upkeep.underway {
            Some(underway) if upkeep.is_complete => self.count_checkpoint(underway),
            _ => Ok(()),
        }
    }

    /// Returns the upkeep. If there is no space for a checkpoint, the journal continues.
    ///
    /// # Errors
    /// The files failed.
    pub fn finish_upkeep(&mut self, engine: &mut Engine, upkeep: Upkeep, done: io::Result<()>) -> Result<(), IoError> {
        let Upkeep { written, underway, is_complete, .. } = upkeep;
        self.written.merge(written);
        self.is_kept_up = false;
        // Otherwise a new checkpoint may have begun meanwhile.
        let was_taken = std::mem::take(&mut self.is_checkpoint_taken);
        match done {
            Ok(()) if is_complete => {
                engine.image = None;
                engine.counts.checkpoints += 1;
            }
            // It may have been abandoned meanwhile.
            Ok(()) if was_taken => self.underway = underway.filter(|_| engine.image.is_some()),
            Ok(()) => {}
            Err(error) if is_full(&error) => {
                tracing::warn!("no room for a checkpoint: {error}; the journal goes on");
                self.put_checkpoint_off(engine);
            }
            Err(error) => {
                self.abandon_checkpoint(engine);
                engine.media.fail(if underway.is_some() { "a checkpoint" } else { "what was written" }, &error);
                return Err(IoError::Io);
            }
        }
        self.note_journal(engine);
        Ok(())
    }
}

impl Committer {
    /// Share of the journal written since the checkpoint began, relative to the distance to the journal's limit.
    fn journal_progress(&self) -> f64 {
        let since = |bytes: u64| bytes.saturating_sub(self.checkpoint_from);
        since(self.journal.bytes()) as f64 / since(self.journal_limit).max(1) as f64
    }

    /// Whether the checkpoint in progress should continue beside commits, because it is not far ahead of them.
    pub(super) fn needs_checkpoint_step(&self) -> bool {
        let is_needed = |underway: &Underway| {
            underway.can_be_written() && underway.image.progress() < CHECKPOINT_LEAD * self.journal_progress()
        };
        self.underway.as_ref().is_some_and(is_needed)
    }

    /// Whether commits must wait for the checkpoint in progress: it would not be complete before the journal is full,
    /// or too much of it waits in memory.
    pub(super) fn is_checkpoint_late(&self, engine: &Engine) -> bool {
        engine.image.as_ref().is_some_and(|image| {
            image.progress() < self.journal_progress() || image.ready_bytes() >= engine.limits.waiting_bytes
        })
    }

    /// Makes a checkpoint the valid one. It is durable, and so are all file writes of the batches up to its commit.
    ///
    /// # Errors
    /// The superblock may not have been written.
    pub(super) fn count_checkpoint(&mut self, underway: &Underway) -> io::Result<()> {
        let Some((end, bytes)) = underway.journal else { return Ok(()) };
        let (sum, length) = underway.written;
        let checkpoint = CheckpointRef { file: underway.file, sum, bytes: length };
        let start = self.journal.start_after(end, bytes);
        self.write_superblock(|superblock| {
            superblock.checkpoint = Some(checkpoint);
            superblock.journal = start;
        })?;
        self.journal.start_at(start, bytes);
        self.checkpoint_at = due_at(self.journal_limit);
        self.clocks.checkpointed(underway.began);
        // The next checkpoint will have about the same size, or somewhat more. If there is no space now, allocation is
        // repeated when it is needed.
        if length + length / 4 > checkpoint_room_bytes(self.sectors) {
            self.files.checkpoints[1 - underway.file as usize].allocate(0, length + length / 4).ok();
        }
        Ok(())
    }

    /// Postpones a checkpoint that lacks space: the journal continues.
    pub(super) fn put_checkpoint_off(&mut self, engine: &mut Engine) {
        self.abandon_checkpoint(engine);
        self.checkpoint_at = self.journal.bytes() + self.journal_limit / 8;
    }

    /// Writes a checkpoint of the durable state, which includes all changes, while no other thread uses the store.
    ///
    /// # Errors
    /// The error for the host.
    pub(super) fn checkpoint(&mut self, engine: &mut Engine) -> Result<(), IoError> {
        let end = (self.journal.end(), self.journal.bytes());
        if self.underway.as_ref().is_none_or(|underway| underway.journal != Some(end)) {
            self.abandon_checkpoint(engine);
            self.begin_checkpoint(engine);
            self.note_checkpoint_start(end);
        }
        self.underway.iter_mut().for_each(Underway::hurry);
        while let Some(mut upkeep) = self.take_upkeep() {
            let done = upkeep.collect(engine, self).and_then(|()| upkeep.perform());
            let done = done.and_then(|()| self.conclude(&upkeep));
            self.finish_upkeep(engine, upkeep, done)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use bimetal_core::scheme::SCHEMES;

    use super::*;
    use crate::block_device::BlockDevice;
    use crate::store::backing::Storage;
    use crate::store::crash_backing::CrashStorage;
    use crate::store::frame::SECTOR;
    use crate::store::soak::TINY;
    use crate::store::{CreateOptions, Limits, OpenOptions, Store, create};

    const JOURNAL_BYTES: u64 = 64 << 10;
    const WRITES: u64 = 300;

    fn new_store() -> (Arc<CrashStorage>, Store) {
        let storage = Arc::new(CrashStorage::new());
        let device = TINY[0].device(SCHEMES[0], 0).unwrap();
        create(storage.as_ref(), &device, &CreateOptions { number: Some(1), ..CreateOptions::default() }).unwrap();
        (Arc::clone(&storage), open(&storage))
    }

    fn open(storage: &Arc<CrashStorage>) -> Store {
        let limits = Limits { journal_bytes: JOURNAL_BYTES, checkpoint_bytes: 100, ..Limits::default() };
        let options = OpenOptions { limits, ..OpenOptions::default() };
        Store::open(Arc::clone(storage) as Arc<dyn Storage>, options).unwrap()
    }

    fn sector(number: u64) -> Vec<u8> {
        vec![number as u8; SECTOR]
    }

    #[test]
    fn a_checkpoint_begins_while_a_thread_is_at_work_on_the_upkeep() {
        let (_, store) = new_store();
        store.committer().is_kept_up = true;
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for number in 0..WRITES {
                    store.write(number % store.sectors(), &sector(number), true).unwrap();
                }
            });
            while store.committer().underway.is_none() {
                assert!(!writer.is_finished(), "the journal has grown without a checkpoint");
                thread::yield_now();
            }
            // The thread has done its step, and the writer does the remaining ones.
            store.committer().is_kept_up = false;
            store.upkeep.notify_all();
        });
        assert!(store.status().counts.checkpoints > 1);
    }

    fn is_late(store: &Store) -> bool {
        store.inspect(|committer, engine| committer.is_upkeep_late(engine))
    }

    #[test]
    fn checkpoints_are_complete_in_time_with_and_without_help() {
        for helps in [true, false] {
            let (_, store) = new_store();
            for number in 0..WRITES {
                store.write(number % store.sectors(), &sector(number), true).unwrap();
                assert!(!is_late(&store), "a commit waits until it is not");
                assert!(store.status().journal_bytes < JOURNAL_BYTES + JOURNAL_BYTES / 8);
                if helps {
                    store.keep_up(Duration::ZERO).unwrap();
                }
            }
            assert!(store.status().counts.checkpoints >= 3, "{}", store.status().counts.checkpoints);
        }
    }

    #[test]
    fn idle_time_completes_a_checkpoint() {
        let (_, store) = new_store();
        let mut number = 0;
        while !store.inspect(|_, engine| engine.image.is_some()) {
            store.write(number % store.sectors(), &sector(number), true).unwrap();
            number += 1;
        }
        let before = store.status().counts.checkpoints;
        while store.idle(1).unwrap() {}
        assert_eq!(store.status().counts.checkpoints, before + 1);
    }

    #[test]
    fn a_thread_keeps_up_with_writers_and_the_end() {
        let (storage, store) = new_store();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    store.keep_up(Duration::from_millis(1)).unwrap();
                }
            });
            let writers = [0, 1].map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for number in 0..WRITES {
                        let place = (2 * number + writer) % store.sectors();
                        store.write(place, &sector(place + number / 7), number % 3 == 0).unwrap();
                    }
                })
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            store.close().unwrap();
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(store.status().counts.checkpoints > 1);
        let again = open(&storage);
        let mut found = sector(0);
        for number in WRITES - again.sectors() / 2..WRITES {
            for writer in [0, 1] {
                let place = (2 * number + writer) % again.sectors();
                again.read(place, &mut found).unwrap();
                assert_eq!(found, sector(place + number / 7));
            }
        }
    }
}
