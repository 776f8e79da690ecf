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
use super::crc32c::{crc32c_append, crc32c_combine};
use super::engine::Engine;
use super::files::Files;
use super::state::Writer;
use super::superblock::Start;
use super::syncs;
use super::times::Clocks;

pub use load::load;

const MAGIC: u32 = u32::from_le_bytes(*b"BMCP");
const HEAD_BYTES: usize = 24;
/// Bytes that are read or written at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Pieces that are written at once.
const PIECES: usize = 64;
/// Steps of a checkpoint that are synced together.
const STEPS_PER_SYNC: usize = 4;

impl Engine {
    /// Saves the state that a checkpoint has.
    pub(super) fn save_state(&self, out: &mut Vec<u8>) {
        let mut out = Writer(out);
        out.u64(self.first_event);
        self.media.save(&mut out);
        out.section(|bytes| self.scheme.save(bytes));
    }
}

/// A checkpoint on its way.
pub struct Underway {
    pub(super) image: Image,
    /// Which of the two files.
    pub(super) file: u32,
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
    pub(super) journal: Option<(Start, u64)>,
    pub(super) began: Instant,
}

impl Underway {
    pub(super) fn begin(engine: &mut Engine, seed: u32, file: u32) -> Self {
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
    pub(super) fn bytes(&self) -> u64 {
        self.tables_at + self.image.tables_bytes()
    }

    /// Checksum of all of it, when all of it was written.
    pub(super) fn sum(&mut self) -> u32 {
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

/// The part of the journal that it may grow by while a checkpoint is written.
const CHECKPOINT_PART: u64 = 4;

/// Bytes of journal at which a checkpoint must begin to be complete at `journal_limit`.
pub fn due_at(journal_limit: u64) -> u64 {
    journal_limit - journal_limit / CHECKPOINT_PART
}
