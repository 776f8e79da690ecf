//! Checkpoints: the whole state of scheme and media, so that the journal can start again.
//!
//! A checkpoint is written while the device goes on. With the batch of a commit the state is frozen: large tables hand over what is
//! about to change, and the rest is collected piece by piece: see `upkeep`. So nobody waits for a checkpoint, and a state is never in
//! memory twice. It counts once the superblock names it: when all of it is durable, and all that the batches up to its commit
//! have written. The journal then begins with the batch behind that one.
//!
//! There are two files, written in turn; the superblock names the one that counts, with its length and its checksum:
//!
//! ```text
//! 0    u32   CRC-32C of the bytes 4 to 23
//! 4    u32   magic `BMCP`
//! 8    u64   bytes of the state without its large tables
//! 16   u32   CRC-32C of these
//! 20   u32   zero
//! 24         that state, little-endian, each small table with a `u64` for its length in front:
//!              u64     events so far
//!              ...     the media: see `FileMedia::save`
//!              u64, …  the scheme: as long as the number says
//! ...        the large tables, one behind the other
//! ```
//!
//! Files of format 4 and before have no head, and the state with its tables where they belong.

mod load;

use std::io::{self, IoSlice};
use std::time::Instant;

use bimetal_core::save::{Image, Piece};

use super::bytes::{put_u32, put_u64};
use super::commit::Committer;
use super::crc32c::{crc32c_append, crc32c_combine};
use super::engine::Engine;
use super::files::Files;
use super::journal::Start;
use super::state::Writer;
use super::superblock::{CheckpointRef, Superblock};
use super::syncs;
use super::times::Clocks;
use crate::block_device::IoError;

pub use load::load;

/// The files.
pub const CHECKPOINTS: [&str; 2] = ["checkpoint.0", "checkpoint.1"];

const MAGIC: u32 = u32::from_le_bytes(*b"BMCP");
const HEAD_BYTES: usize = 24;
/// Bytes that are read or written at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Pieces that are written at once.
const PIECES: usize = 64;
/// Steps of a checkpoint that are synced together.
const STEPS_PER_SYNC: usize = 4;
/// How much faster a checkpoint is written than the journal fills.
const CHECKPOINT_LEAD: f64 = 2.0;
/// Room that a store reserves for a checkpoint: bytes for each 4 KiB of the device, and a constant. Schemes take up to 11 bytes; `csal`
/// takes up to 18 where its fast pages have 2 KiB, and its first checkpoint reserves the rest.
const ROOM_PER_4K: u64 = 12;
const ROOM_BESIDE: u64 = 1 << 20;

/// Bytes that each of the files takes from the beginning.
pub fn room_bytes(sectors: u64) -> u64 {
    sectors.div_ceil(8) * ROOM_PER_4K + ROOM_BESIDE
}

impl Engine {
    /// Saves the state that a checkpoint has.
    fn save_state(&self, out: &mut Vec<u8>) {
        let mut out = Writer(out);
        out.u64(self.first_event);
        self.media.save(&mut out);
        out.section(|bytes| self.scheme.save(bytes));
    }
}

/// A checkpoint on its way.
pub struct Underway {
    image: Image,
    /// Which of the two files.
    file: u32,
    /// Head and state without the large tables, until they are written.
    head: Vec<u8>,
    tables_at: u64,
    /// Pieces of tables to be written next.
    pieces: Vec<Piece>,
    /// Whether all tables are collected.
    is_collected: bool,
    /// Checksum of head and state, and those of the rows of pieces that were written: place, bytes, sum.
    head_sum: u32,
    sums: Vec<(u64, u32, u32)>,
    /// Bytes written that are not synced yet, and the bytes of a step.
    unsynced_bytes: usize,
    step_bytes: usize,
    /// End of the journal when the state was frozen, and the bytes that it had; none until that commit is durable.
    journal: Option<(Start, u64)>,
    began: Instant,
}

impl Underway {
    fn begin(engine: &mut Engine, seed: u32, file: u32) -> Self {
        let (image, state) = Image::begin(|out| engine.save_state(out));
        let mut head = vec![0; HEAD_BYTES];
        put_u32(&mut head, 4, MAGIC);
        put_u64(&mut head, 8, state.len() as u64);
        let state_sum = crc32c_append(seed, &state);
        put_u32(&mut head, 16, state_sum);
        let sum = crc32c_append(seed, &head[4..]);
        put_u32(&mut head, 0, sum);
        head.extend(state);
        engine.image = Some(image.clone());
        Self {
            image,
            file,
            tables_at: head.len() as u64,
            head_sum: crc32c_append(seed, &head),
            head,
            pieces: Vec::new(),
            is_collected: false,
            sums: Vec::new(),
            unsynced_bytes: 0,
            step_bytes: engine.limits.checkpoint_bytes,
            journal: None,
            began: Instant::now(),
        }
    }

    /// Bytes of all of it.
    fn bytes(&self) -> u64 {
        self.tables_at + self.image.tables_bytes()
    }

    /// Checksum of all of it, when all of it was written.
    fn sum(&mut self) -> u32 {
        self.sums.sort_unstable();
        self.sums.iter().fold(self.head_sum, |sum, &(_, bytes, piece)| crc32c_combine(sum, piece, bytes.into()))
    }

    /// Collects the next pieces from the engine. Returns whether they are the last.
    pub(super) fn collect(&mut self, engine: &Engine) -> bool {
        let wanted = self.step_bytes.saturating_sub(self.image.ready_bytes());
        self.is_collected = self.image.collect(wanted, |out| engine.save_state(out));
        self.pieces = self.image.take();
        self.is_collected
    }

    /// Writes the pieces that were collected.
    ///
    /// # Errors
    /// They may not have been written.
    pub(super) fn write(&mut self, files: &Files, clocks: &Clocks) -> io::Result<()> {
        let file = &files.checkpoints[self.file as usize];
        for (chunk, at) in self.head.chunks(CHUNK_BYTES).zip((0..).step_by(CHUNK_BYTES)) {
            file.write_at(at, chunk)?;
        }
        self.unsynced_bytes += std::mem::take(&mut self.head).len();
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.sort_unstable_by_key(|piece| piece.at);
        let follows = |one: &Piece, other: &Piece| one.at + one.bytes.len() as u64 == other.at;
        for row in pieces.chunk_by(follows).flat_map(|row| row.chunks(PIECES)) {
            let slices: Vec<IoSlice<'_>> = row.iter().map(|piece| IoSlice::new(&piece.bytes)).collect();
            file.write_vectored_at(self.tables_at + row[0].at, &slices)?;
            let (bytes, sum) = row
                .iter()
                .fold((0, 0), |(bytes, sum), piece| (bytes + piece.bytes.len(), crc32c_append(sum, &piece.bytes)));
            self.sums.push((row[0].at, bytes as u32, sum));
            self.unsynced_bytes += bytes;
        }
        if self.is_collected || self.unsynced_bytes >= STEPS_PER_SYNC * self.step_bytes {
            self.unsynced_bytes = 0;
            syncs::sync(file, clocks)?;
        }
        Ok(())
    }

    /// Whether its state is that of a durable commit, so that it can be written.
    pub(super) fn can_be_written(&self) -> bool {
        self.journal.is_some()
    }
}

impl Committer {
    /// With the events of the next batch taken, or none, all that has happened is in batches: if a checkpoint is due, it begins.
    pub(super) fn begin_checkpoint_if_due(&mut self, engine: &mut Engine) {
        let is_free = engine.image.is_none() && !self.is_kept_up && engine.pending.is_empty();
        if is_free && self.journal.bytes() >= self.checkpoint_at {
            self.begin_checkpoint(engine);
        }
    }

    fn begin_checkpoint(&mut self, engine: &mut Engine) {
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

    /// The part of the journal that has been written, of 1, between the beginning of the checkpoint and the journal's limit.
    fn journal_progress(&self) -> f64 {
        let since = |bytes: u64| bytes.saturating_sub(self.checkpoint_from);
        since(self.journal.bytes()) as f64 / since(self.journal_limit).max(1) as f64
    }

    /// Whether the checkpoint on its way should go on beside commits: it is not far ahead of them.
    pub(super) fn needs_checkpoint_step(&self) -> bool {
        let is_needed = |underway: &Underway| {
            underway.can_be_written() && underway.image.progress() < CHECKPOINT_LEAD * self.journal_progress()
        };
        self.underway.as_ref().is_some_and(is_needed)
    }

    /// Whether commits must wait for the checkpoint on its way: it would not be complete before the journal is full, or too much of it
    /// waits in memory.
    pub(super) fn is_checkpoint_late(&self, engine: &Engine) -> bool {
        engine.image.as_ref().is_some_and(|image| {
            image.progress() < self.journal_progress() || image.ready_bytes() >= engine.limits.waiting_bytes
        })
    }

    /// A checkpoint is durable, with all that the batches up to its commit have written: it counts.
    ///
    /// # Errors
    /// The superblock may not have been written.
    pub(super) fn count_checkpoint(&mut self, underway: &mut Underway) -> io::Result<()> {
        let Some((end, bytes)) = underway.journal else { return Ok(()) };
        let length = underway.bytes();
        let checkpoint = CheckpointRef { file: underway.file, sum: underway.sum(), bytes: length };
        let start = self.journal.start_after(end, bytes);
        self.write_superblock(|superblock| {
            superblock.checkpoint = Some(checkpoint);
            superblock.journal = start;
        })?;
        self.journal.start_at(start, bytes);
        self.checkpoint_at = due_at(self.journal_limit);
        self.clocks.checkpointed(underway.began);
        // The next one is as large, or somewhat larger. If there is no room, it is tried again when it is needed.
        if length + length / 4 > room_bytes(self.sectors) {
            self.files.checkpoints[1 - underway.file as usize].allocate(0, length + length / 4).ok();
        }
        Ok(())
    }

    /// There was no room for a checkpoint: the journal goes on, and the checkpoint is tried again later.
    pub(super) fn put_checkpoint_off(&mut self, engine: &mut Engine) {
        self.abandon_checkpoint(engine);
        self.checkpoint_at = self.journal.bytes() + self.journal_limit / 8;
    }

    /// Writes a checkpoint of what is durable, which is all that has happened, while nothing else does.
    ///
    /// # Errors
    /// As the host is told.
    pub(super) fn checkpoint(&mut self, engine: &mut Engine) -> Result<(), IoError> {
        let end = (self.journal.end(), self.journal.bytes());
        if self.underway.as_ref().is_none_or(|underway| underway.journal != Some(end)) {
            self.abandon_checkpoint(engine);
            self.begin_checkpoint(engine);
            self.note_checkpoint_start();
        }
        while let Some(mut upkeep) = self.take_upkeep() {
            let done = upkeep.collect(engine).and_then(|()| upkeep.perform());
            let done = done.and_then(|()| self.conclude(&mut upkeep));
            self.finish_upkeep(engine, upkeep, done)?;
        }
        Ok(())
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
}

/// The part of the journal that it may grow by while a checkpoint is written.
const CHECKPOINT_PART: u64 = 4;

/// Bytes of journal at which a checkpoint must begin to be complete at `journal_limit`.
pub fn due_at(journal_limit: u64) -> u64 {
    journal_limit - journal_limit / CHECKPOINT_PART
}
