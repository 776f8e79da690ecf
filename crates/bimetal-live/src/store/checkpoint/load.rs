//! Loading of a checkpoint: its state at once, its tables chunk by chunk.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bimetal_core::device::Resolved;
use bimetal_core::save::{self, Source};
use bimetal_core::scheme::{self, Scheme};

use super::{CHUNK_BYTES, ENTRY_BYTES, HEAD_BYTES, MAGIC};
use crate::store::backing::File;
use crate::store::bytes::{u32_at, u64_at};
use crate::store::crc32c::crc32c_append;
use crate::store::error::{InFile, StoreError};
use crate::store::files::Files;
use crate::store::media::FileMedia;
use crate::store::names::CHECKPOINTS;
use crate::store::state::{Reader, bounded};
use crate::store::superblock::{CheckpointRef, Superblock};

/// Head of a checkpoint of format 5.
const OLD_MAGIC: u32 = u32::from_le_bytes(*b"BMCP");
const OLD_HEAD_BYTES: usize = 24;

/// A restored state: the scheme, and the number of events so far.
type Restored = (Box<dyn Scheme<FileMedia>>, u64);

/// Reads a checkpoint into fresh media.
///
/// # Errors
/// It cannot be read, is damaged, or does not fit this device.
pub fn load(
    files: &Files,
    superblock: &Superblock,
    checkpoint: &CheckpointRef,
    resolved: &Resolved,
    media: &mut FileMedia,
) -> Result<Restored, StoreError> {
    let name = CHECKPOINTS[checkpoint.file as usize];
    let damaged = |what: String| StoreError::Damaged { file: name.into(), what };
    let file = &files.checkpoints[checkpoint.file as usize];
    // The stated length may be wrong, so memory is only allocated for existing bytes.
    if file.length().in_file(name)? < checkpoint.bytes {
        return Err(damaged("it ends too early".into()));
    }
    let stored =
        Stored { file: Arc::clone(file), seed: superblock.seed(), bytes: checkpoint.bytes, sum: checkpoint.sum };
    let magic = stored.read(4, 4).map(|bytes| u32_at(&bytes, 0)).map_err(damaged)?;
    let restored = match magic {
        MAGIC => stored.load(resolved, media),
        OLD_MAGIC => stored.load_rows(resolved, media),
        _ => Err("it does not begin with the head of a checkpoint".into()),
    };
    restored.map_err(damaged)
}

fn restore(state: &[u8], resolved: &Resolved, media: &mut FileMedia) -> Result<Restored, String> {
    let mut state = Reader(state);
    let event = state.u64().and_then(bounded)?;
    media.restore(&mut state)?;
    let scheme = state.section()?;
    state.end()?;
    let (device, shape) = (&resolved.device, &resolved.shape);
    let scheme =
        scheme::restore(&device.scheme, shape, &resolved.settings, scheme).map_err(|error| error.to_string())?;
    Ok((scheme, event))
}

/// A checkpoint as the superblock describes it.
struct Stored {
    file: File,
    seed: u32,
    bytes: u64,
    sum: u32,
}

impl Stored {
    /// Reads bytes of it. The stated place may be wrong.
    fn read(&self, at: u64, bytes: u64) -> Result<Vec<u8>, String> {
        if at.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err("it ends too early".into());
        }
        let mut read = vec![0; bytes as usize];
        self.file.read_at(at, &mut read).map_err(|error| error.to_string())?;
        Ok(read)
    }

    /// The same, verified against a checksum.
    fn read_sound(&self, at: u64, bytes: u64, sum: u32) -> Result<Vec<u8>, String> {
        self.read(at, bytes).and_then(|read| check_sum(crc32c_append(self.seed, &read), sum).map(|()| read))
    }

    fn load(self, resolved: &Resolved, media: &mut FileMedia) -> Result<Restored, String> {
        let head = self.read_sound(0, HEAD_BYTES as u64, self.sum)?;
        check_sum(crc32c_append(self.seed, &head[4..]), u32_at(&head, 0))?;
        let [state_bytes, chunks, directory_at] = [8, 24, 32].map(|at| u64_at(&head, at));
        let state = self.read_sound(HEAD_BYTES as u64, state_bytes, u32_at(&head, 16))?;
        let directory_bytes = chunks.saturating_mul(ENTRY_BYTES as u64);
        let directory = self.read_sound(directory_at, directory_bytes, u32_at(&head, 20))?;
        if directory_at + directory_bytes != self.bytes {
            return Err("more follows its directory".into());
        }
        let end = directory_at;
        let tables =
            Tables { stored: self, directory, next: 0, end, ahead: Vec::new(), ahead_at: 0, alone: Vec::new() };
        save::read_image(Box::new(tables), true, || restore(&state, resolved, media))
    }

    /// Loads a checkpoint of format 5: all tables are complete, one after the other.
    fn load_rows(self, resolved: &Resolved, media: &mut FileMedia) -> Result<Restored, String> {
        let head = self.read(0, OLD_HEAD_BYTES as u64)?;
        check_sum(crc32c_append(self.seed, &head[4..]), u32_at(&head, 0))?;
        let state = self.read_sound(OLD_HEAD_BYTES as u64, u64_at(&head, 8), u32_at(&head, 16))?;
        let sum = Rc::new(Cell::new(crc32c_append(crc32c_append(self.seed, &head), &state)));
        let (at, expected) = ((OLD_HEAD_BYTES + state.len()) as u64, self.sum);
        let rows = Rows { stored: self, at, sum: Rc::clone(&sum), row: Vec::new() };
        let restored = save::read_image(Box::new(rows), false, || restore(&state, resolved, media))?;
        check_sum(sum.get(), expected).map(|()| restored)
    }
}

fn check_sum(found: u32, expected: u32) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err("the checksum is wrong".into()) }
}

/// The chunks of a checkpoint's tables.
struct Tables {
    stored: Stored,
    directory: Vec<u8>,
    /// Byte of the next entry.
    next: usize,
    /// End of the chunks.
    end: u64,
    /// Data that were read ahead, and their offset. Most chunks are adjacent.
    ahead: Vec<u8>,
    ahead_at: u64,
    /// A chunk that is not.
    alone: Vec<u8>,
}

impl Tables {
    /// Reads bytes of chunks, no more than exist.
    fn bytes(&mut self, at: u64, bytes: usize) -> Result<&[u8], String> {
        let ahead_end = self.ahead_at + self.ahead.len() as u64;
        let is_ahead = |at: u64, end: u64| self.ahead_at <= at && at + bytes as u64 <= end;
        if is_ahead(at, ahead_end) {
            let first = (at - self.ahead_at) as usize;
            return Ok(&self.ahead[first..first + bytes]);
        }
        let is_next = self.ahead_at <= at && at <= ahead_end + CHUNK_BYTES as u64;
        if !is_next && !self.ahead.is_empty() {
            self.alone = self.stored.read(at, bytes as u64)?;
            return Ok(&self.alone);
        }
        self.ahead.resize((self.end - at).min((CHUNK_BYTES).max(bytes) as u64) as usize, 0);
        self.ahead_at = at;
        self.stored.file.read_at(at, &mut self.ahead).map_err(|error| error.to_string())?;
        Ok(&self.ahead[..bytes])
    }
}

impl Source for Tables {
    fn next(&mut self, all: usize) -> Result<&[u8], String> {
        let entry = self.directory.get(self.next..self.next + ENTRY_BYTES).ok_or("it lacks a chunk")?;
        self.next += ENTRY_BYTES;
        let (at, bytes, sum) = (u64_at(entry, 0), u32_at(entry, 8) as usize, u32_at(entry, 12));
        if at == 0 {
            return Ok(&[]);
        }
        if bytes > all || at.checked_add(bytes as u64).is_none_or(|end| end > self.end) {
            return Err("a chunk is not where it is said to be".into());
        }
        let seed = self.stored.seed;
        let chunk = self.bytes(at, bytes)?;
        check_sum(crc32c_append(seed, chunk), sum)?;
        Ok(chunk)
    }

    fn is_at_end(&self) -> bool {
        self.next == self.directory.len()
    }
}

/// The tables of a checkpoint of format 5.
struct Rows {
    stored: Stored,
    at: u64,
    /// Checksum of the file up to `at`.
    sum: Rc<Cell<u32>>,
    row: Vec<u8>,
}

impl Source for Rows {
    fn next(&mut self, all: usize) -> Result<&[u8], String> {
        if self.stored.bytes - self.at < all as u64 {
            return Err("it ends too early".into());
        }
        self.row.resize(all, 0);
        self.stored.file.read_at(self.at, &mut self.row).map_err(|error| error.to_string())?;
        self.sum.set(crc32c_append(self.sum.get(), &self.row));
        self.at += all as u64;
        Ok(&self.row)
    }

    fn is_at_end(&self) -> bool {
        self.at == self.stored.bytes
    }
}
