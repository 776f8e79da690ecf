//! Checkpoints: the whole state of scheme and media, so that the journal can start again.
//!
//! A checkpoint is written while the device goes on. With the batch of a commit the state is frozen: large tables hand over what is
//! about to change, and the rest is collected piece by piece: see `upkeep`. So nobody waits for a checkpoint, and a state is never in
//! memory twice. It counts once the superblock names it: when all of it is durable, and all that the batches up to its commit
//! have written. The journal then begins with the batch behind that one.
//!
//! There are two files, written in turn; the superblock names the one that counts, with its length and the checksum of its head:
//!
//! ```text
//! 0    u32   CRC-32C of the bytes 4 to 39
//! 4    u32   magic `BMCC`
//! 8    u64   bytes of the state without its tables
//! 16   u32   CRC-32C of these
//! 20   u32   CRC-32C of the directory
//! 24   u64   chunks of tables
//! 32   u64   place of the directory, the last thing in the file
//! 40         that state, little-endian, each small table with a `u64` for its length in front:
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
//! So a checkpoint takes what is in use of its device. Those of format 5 have another head and all tables whole, one behind the other;
//! those of format 4 and before have no head, and the state with its tables where they belong.

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
/// Bytes that are read or written at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Pieces that are written at once.
const PIECES: usize = 512;
/// Steps of a checkpoint that are synced together.
const STEPS_PER_SYNC: usize = 4;
/// Bytes of a step while nothing else happens.
const LARGE_STEP_BYTES: usize = 32 << 20;

impl Engine {
    /// Saves the state that a checkpoint has.
    pub(super) fn save_state(&self, out: &mut Vec<u8>) {
        let mut out = Writer(out);
        out.u64(self.first_event);
        self.media.save(&mut out);
        out.section(|bytes| self.scheme.save(bytes));
    }
}

/// Where a chunk is in a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// Its first byte in the file; 0 if it is blank.
    at: u64,
    bytes: u32,
    sum: u32,
}

/// A checkpoint on its way.
pub struct Underway {
    pub(super) image: Image,
    /// Which of the two files.
    pub(super) file: u32,
    seed: u32,
    /// The state without its tables, until it is written; its bytes and their checksum.
    state: Vec<u8>,
    state_bytes: u64,
    state_sum: u32,
    /// Pieces of tables to be written next, and where.
    pieces: Vec<Piece>,
    end: u64,
    /// Where the chunks are that were written.
    directory: Vec<Entry>,
    /// Whether all tables are collected.
    is_collected: bool,
    /// Checksum of the head and bytes of the file, once all is written.
    pub(super) written: (u32, u64),
    /// Bytes written that are not synced yet, the bytes of a step, and those that are synced together.
    unsynced_bytes: usize,
    step_bytes: usize,
    synced_bytes: usize,
    /// End of the journal when the state was frozen, and the bytes that it had; none until that commit is durable.
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

    /// Nothing else happens until it is complete: it goes on in large steps, and is synced once.
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

    /// Writes the pieces that were collected.
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

    /// Writes what says where all is.
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

    /// Whether its state is that of a durable commit, so that it can be written.
    pub(super) fn can_be_written(&self) -> bool {
        self.journal.is_some()
    }
}

/// Writes bytes with no call that takes long.
fn write_long(file: &dyn Backing, at: u64, bytes: &[u8]) -> io::Result<()> {
    let mut chunks = bytes.chunks(CHUNK_BYTES).zip((at..).step_by(CHUNK_BYTES));
    chunks.try_for_each(|(chunk, at)| file.write_at(at, chunk))
}

/// The part of the journal that it may grow by while a checkpoint is written.
const CHECKPOINT_PART: u64 = 4;

/// Bytes of journal at which a checkpoint must begin to be complete at `journal_limit`.
pub fn due_at(journal_limit: u64) -> u64 {
    journal_limit - journal_limit / CHECKPOINT_PART
}
