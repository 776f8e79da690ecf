//! Checkpoints: the whole state of scheme and media. The journal starts again after each one.
//!
//! A checkpoint is written while the device continues. The state is frozen together with the batch of a commit: large
//! tables hand over chunks before they change, and the rest is collected step by step (see `upkeep`). So no request
//! waits for a checkpoint, and the state is never in memory twice. A checkpoint is valid once the superblock names it.
//! That happens when all of it is durable, and all file writes of the batches up to its commit. The journal then begins
//! with the next batch.
//!
//! Two files are written alternately. The superblock names the valid one, with its length and the checksum of its head:
//!
//! ```text
//! 0    u32   CRC-32C of the bytes 4 to 39
//! 4    u32   magic `BMCC`
//! 8    u64   bytes of the state without its tables
//! 16   u32   CRC-32C of these
//! 20   u32   CRC-32C of the directory
//! 24   u64   chunks of tables
//! 32   u64   place of the directory, the last thing in the file
//! 40         the state, little-endian, each small table preceded by a `u64` with its length:
//!              u64     events so far
//!              ...     the media: see `FileMedia::save`
//!              u64, …  the scheme: as long as the number says
//! ...        the chunks that are not blank, in any order
//! ...        the directory: for each chunk of the tables, in the order in which the state is saved:
//!              u64     place in the file, 0 if it is blank: the file does not have it
//!              u32     bytes
//!              u32     CRC-32C of these
//! ```
//!
//! So the size of a checkpoint depends on the used part of its device. Checkpoints of format 5 have another head and
//! all tables in full, one after the other. Those of format 4 and earlier are not read: every scheme had another version
//! then.

mod load;

use std::io::{self, IoSlice};
use std::time::Instant;

use bimetal_core::save::{Image, Piece};

use super::backing::Backing;
use super::bytes::{put_u32, put_u64};
use super::crc32c::crc32c_append;
use super::engine::Engine;
use super::files::Files;
use super::state::Writer;
use super::superblock::Start;
use super::syncs;
use super::times::Clocks;

pub use load::load;

const MAGIC: u32 = u32::from_le_bytes(*b"BMCC");
const HEAD_BYTES: usize = 40;
/// Bytes of a chunk's entry in the directory.
const ENTRY_BYTES: usize = 16;
/// Bytes of one read or write call.
const CHUNK_BYTES: usize = 1 << 20;
/// Pieces in one write call.
const PIECES: usize = 512;
/// Steps of a checkpoint between two syncs.
const STEPS_PER_SYNC: usize = 4;
/// Bytes of a step while the device is otherwise idle.
const LARGE_STEP_BYTES: usize = 32 << 20;

impl Engine {
    /// Saves the state for a checkpoint.
    pub(super) fn save_state(&self, out: &mut Vec<u8>) {
        let mut out = Writer(out);
        out.u64(self.first_event);
        self.media.save(&mut out);
        out.section(|bytes| self.scheme.save(bytes));
    }
}

/// Place of a chunk in a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// Its first byte in the file; 0 if it is blank.
    at: u64,
    bytes: u32,
    sum: u32,
}

/// A checkpoint in progress.
pub struct Underway {
    pub(super) image: Image,
    /// Index of its file.
    pub(super) file: u32,
    seed: u32,
    /// The state without its tables, until it is written; its length and checksum.
    state: Vec<u8>,
    state_bytes: u64,
    state_sum: u32,
    /// Next pieces of tables to write, and the end of the file so far.
    pieces: Vec<Piece>,
    end: u64,
    /// Places of the written chunks.
    directory: Vec<Entry>,
    /// Whether all tables are collected.
    is_collected: bool,
    /// Checksum of the head, and length of the file, once everything is written.
    pub(super) written: (u32, u64),
    /// Unsynced bytes, bytes of a step, and bytes between two syncs.
    unsynced_bytes: usize,
    step_bytes: usize,
    synced_bytes: usize,
    /// End of the journal when the state was frozen, and its length; `None` until that commit is durable.
    pub(super) journal: Option<(Start, u64)>,
    pub(super) began: Instant,
}

impl Underway {
    pub(super) fn begin(engine: &mut Engine, seed: u32, file: u32) -> Self {
        let (image, state) = Image::begin(|out| engine.save_state(out));
        engine.image = Some(image.clone());
        let step_bytes = engine.limits.checkpoint_bytes;
        Self {
            file,
            seed,
            state_bytes: state.len() as u64,
            state_sum: 0,
            pieces: Vec::new(),
            end: (HEAD_BYTES + state.len()) as u64,
            state,
            directory: vec![Entry::default(); image.chunks() as usize],
            image,
            is_collected: false,
            written: (0, 0),
            unsynced_bytes: 0,
            step_bytes,
            synced_bytes: STEPS_PER_SYNC * step_bytes,
            journal: None,
            began: Instant::now(),
        }
    }

    /// The device is idle until the checkpoint is complete: it continues in large steps and syncs once.
    pub(super) fn hurry(&mut self) {
        (self.step_bytes, self.synced_bytes) = (LARGE_STEP_BYTES, usize::MAX);
    }

    /// Collects the next pieces from the engine. Returns whether they are the last.
    pub(super) fn collect(&mut self, engine: &Engine) -> bool {
        let wanted = self.step_bytes.saturating_sub(self.image.ready_bytes());
        self.is_collected = self.image.collect(wanted, |out| engine.save_state(out));
        self.pieces = self.image.take();
        self.is_collected
    }

    /// Writes the collected pieces.
    ///
    /// # Errors
    /// They may not have been written.
    pub(super) fn write(&mut self, files: &Files, clocks: &Clocks) -> io::Result<()> {
        let file = &files.checkpoints[self.file as usize];
        let state = std::mem::take(&mut self.state);
        if !state.is_empty() {
            self.state_sum = crc32c_append(self.seed, &state);
            write_long(file.as_ref(), HEAD_BYTES as u64, &state)?;
            self.unsynced_bytes += state.len();
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.sort_unstable_by_key(|piece| piece.chunk);
        for row in pieces.chunks(PIECES) {
            let slices: Vec<IoSlice<'_>> = row.iter().map(|piece| IoSlice::new(&piece.bytes)).collect();
            file.write_vectored_at(self.end, &slices)?;
            for Piece { chunk, bytes } in row {
                let sum = crc32c_append(self.seed, bytes);
                self.directory[*chunk as usize] = Entry { at: self.end, bytes: bytes.len() as u32, sum };
                self.end += bytes.len() as u64;
                self.unsynced_bytes += bytes.len();
            }
        }
        if self.is_collected {
            self.write_directory(file.as_ref())?;
        }
        if self.is_collected || self.unsynced_bytes >= self.synced_bytes {
            self.unsynced_bytes = 0;
            syncs::sync(file, clocks)?;
        }
        Ok(())
    }

    /// Writes the directory of chunks and the head.
    fn write_directory(&mut self, file: &dyn Backing) -> io::Result<()> {
        let mut directory = vec![0; self.directory.len() * ENTRY_BYTES];
        for (entry, bytes) in self.directory.iter().zip(directory.chunks_exact_mut(ENTRY_BYTES)) {
            put_u64(bytes, 0, entry.at);
            put_u32(bytes, 8, entry.bytes);
            put_u32(bytes, 12, entry.sum);
        }
        write_long(file, self.end, &directory)?;
        let mut head = [0; HEAD_BYTES];
        put_u32(&mut head, 4, MAGIC);
        put_u64(&mut head, 8, self.state_bytes);
        put_u32(&mut head, 16, self.state_sum);
        put_u32(&mut head, 20, crc32c_append(self.seed, &directory));
        put_u64(&mut head, 24, self.directory.len() as u64);
        put_u64(&mut head, 32, self.end);
        let sum = crc32c_append(self.seed, &head[4..]);
        put_u32(&mut head, 0, sum);
        file.write_at(0, &head)?;
        self.written = (crc32c_append(self.seed, &head), self.end + directory.len() as u64);
        Ok(())
    }

    /// Whether its state belongs to a durable commit, so that it may be written.
    pub(super) fn can_be_written(&self) -> bool {
        self.journal.is_some()
    }
}

/// Writes bytes in several short calls.
fn write_long(file: &dyn Backing, at: u64, bytes: &[u8]) -> io::Result<()> {
    let mut chunks = bytes.chunks(CHUNK_BYTES).zip((at..).step_by(CHUNK_BYTES));
    chunks.try_for_each(|(chunk, at)| file.write_at(at, chunk))
}

/// Divisor of the journal limit: the share by which the journal may grow while a checkpoint is written.
const CHECKPOINT_PART: u64 = 4;

/// Journal length in bytes at which a checkpoint must begin in order to be complete at `journal_limit`.
pub fn due_at(journal_limit: u64) -> u64 {
    journal_limit - journal_limit / CHECKPOINT_PART
}
