//! Checkpoints: the whole state of scheme and media, so that the journal can start again.
//!
//! A checkpoint is written while the device goes on. With the batch of a commit the state is frozen: large tables hand over what is
//! about to change, and the rest is collected piece by piece, some after each commit. So nobody waits for a checkpoint, and a state is
//! never in memory twice. It counts once the superblock names it: when all of it is durable, and all that the batches up to its commit
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

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bimetal_core::device::Resolved;
use bimetal_core::save::{self, Image, Piece, Source};
use bimetal_core::scheme::{self, Scheme};

use super::backing::is_full;
use super::bytes::{put_u32, put_u64, u32_at, u64_at};
use super::commit::Committer;
use super::crc32c::{crc32c_append, crc32c_combine};
use super::engine::Engine;
use super::error::{InFile, StoreError};
use super::files::{File, Files};
use super::home_disk::HomeDisk;
use super::journal::Start;
use super::media::FileMedia;
use super::state::{Layout, Reader, Writer, bounded};
use super::superblock::{CheckpointRef, Superblock};
use crate::block_device::IoError;

/// The files.
pub const CHECKPOINTS: [&str; 2] = ["checkpoint.0", "checkpoint.1"];

const MAGIC: u32 = u32::from_le_bytes(*b"BMCP");
const HEAD_BYTES: usize = 24;
/// Bytes that are read or written at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Pieces that are written at once.
const PIECES: usize = 64;
/// Bytes of a checkpoint that follow a commit, at most.
const STEP_MAX: u64 = 8 << 20;
/// Bytes for each 4 KiB of the device that a checkpoint has room for from the beginning, and beside that. Schemes take up to 11, and `csal` up to
/// 18 where its fast pages have 2 KiB: its first checkpoint makes room for the others.
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

/// A checkpoint that is being written.
pub struct Underway {
    image: Image,
    /// Which of the two files.
    file: u32,
    /// Head and state without the large tables, until they are written.
    head: Vec<u8>,
    tables_at: u64,
    /// Checksum of head and state, and those of the rows of pieces that were written: place, bytes, sum.
    head_sum: u32,
    sums: Vec<(u64, u32, u32)>,
    /// Bytes written that are not synced yet.
    unsynced_bytes: usize,
    /// End of the journal when the state was frozen, and the bytes that it had; none until that commit is durable.
    journal: Option<(Start, u64)>,
    began: Instant,
}

/// A part of a checkpoint.
pub struct Part {
    pieces: Vec<Piece>,
    /// Whether no other follows.
    is_last: bool,
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
            sums: Vec::new(),
            unsynced_bytes: 0,
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

    /// Writes a part to the file.
    fn write(&mut self, file: &File, mut pieces: Vec<Piece>) -> io::Result<()> {
        for (chunk, at) in self.head.chunks(CHUNK_BYTES).zip((0..).step_by(CHUNK_BYTES)) {
            file.write_at(at, chunk)?;
        }
        self.unsynced_bytes += std::mem::take(&mut self.head).len();
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
        Ok(())
    }
}

impl Committer {
    /// With the events of the next batch taken, or none, all that has happened is in batches: if a checkpoint is due, it begins.
    pub(super) fn begin_checkpoint_if_due(&mut self, engine: &mut Engine) {
        if self.journal.bytes() >= self.checkpoint_at && self.underway.is_none() && engine.pending.is_empty() {
            self.begin_checkpoint(engine);
        }
    }

    fn begin_checkpoint(&mut self, engine: &mut Engine) {
        self.written.add(engine.media.take_dirty(), 0);
        let file = self.superblock.checkpoint.map_or(0, |checkpoint| 1 - checkpoint.file);
        self.underway = Some(Underway::begin(engine, self.superblock.seed(), file));
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
        engine.image = None;
        if let Some(underway) = self.underway.take() {
            underway.image.abandon(|out| engine.save_state(out));
        }
    }

    /// Bytes of the checkpoint to be written before the next commit: so many that it ends before the journal is full.
    pub(super) fn step_bytes(&self) -> usize {
        let all = self.underway.as_ref().map_or(0, |underway| underway.image.tables_bytes());
        let commits_left = (self.journal_limit / CHECKPOINT_PART / self.journal.latest_bytes().max(1)).max(1);
        (2 * all / commits_left).clamp(self.step_bytes, STEP_MAX.max(self.step_bytes)) as usize
    }

    /// Whether a checkpoint is on its way and should have ended by now.
    pub(super) fn is_checkpoint_late(&self) -> bool {
        self.underway.is_some() && self.journal.bytes() >= self.journal_limit
    }

    /// Takes the next part of a checkpoint from the engine, of about so many bytes; none if no checkpoint is on its way.
    ///
    /// # Errors
    /// There is no room for sectors of the home disk that only the journal has, or the files cannot be written.
    pub(super) fn collect_part(&mut self, engine: &mut Engine, bytes: usize) -> io::Result<Option<Part>> {
        let Some(underway) = self.underway.as_mut().filter(|underway| underway.journal.is_some()) else {
            return Ok(None);
        };
        let wanted = bytes.saturating_sub(underway.image.ready_bytes());
        let is_last = underway.image.collect(wanted, |out| engine.save_state(out));
        let pieces = underway.image.take();
        if is_last {
            engine.image = None;
            engine.media.disk().map_or(Ok(()), HomeDisk::place_waiting)?;
            self.written.add(engine.media.take_dirty(), 0);
        }
        Ok(Some(Part { pieces, is_last }))
    }

    /// Writes a part of a checkpoint. Takes as long as the files do, and nothing of the engine. Returns whether the checkpoint counts.
    ///
    /// # Errors
    /// It may not have been written.
    pub(super) fn write_part(&mut self, part: Part) -> io::Result<bool> {
        let Some(underway) = &mut self.underway else { return Ok(false) };
        let files = Arc::clone(&self.files);
        let [file, other] = [underway.file, 1 - underway.file].map(|file| &files.checkpoints[file as usize]);
        underway.write(file, part.pieces)?;
        if !part.is_last {
            if underway.unsynced_bytes as u64 >= self.step_bytes {
                underway.unsynced_bytes = 0;
                self.syncs.at_once(&[file])?;
            }
            return Ok(false);
        }
        let (Some((end, bytes)), length) = (underway.journal, underway.bytes()) else { return Ok(false) };
        let checkpoint = CheckpointRef { file: underway.file, sum: underway.sum(), bytes: length };
        let written = self.written.take();
        self.syncs.at_once(&written.iter().chain([file]).collect::<Vec<_>>())?;
        let start = self.journal.start_after(end, bytes);
        self.write_superblock(|superblock| {
            superblock.checkpoint = Some(checkpoint);
            superblock.journal = start;
        })?;
        self.journal.start_at(start, bytes);
        // The next one is as large, or somewhat larger. If there is no room, it is tried again when it is needed.
        if length + length / 4 > room_bytes(self.sectors) {
            other.allocate(0, length + length / 4).ok();
        }
        Ok(true)
    }

    /// Tells the engine what has become of a part of a checkpoint. Where there is no room for a checkpoint, the journal goes on.
    ///
    /// # Errors
    /// The files failed.
    pub(super) fn finish_part(&mut self, engine: &mut Engine, counts: io::Result<bool>) -> Result<(), IoError> {
        match counts {
            Ok(false) => return Ok(()),
            Ok(true) => {
                engine.counts.checkpoints += 1;
                if let Some(underway) = self.underway.take() {
                    self.clocks.checkpointed(underway.began);
                }
                self.checkpoint_at = due_at(self.journal_limit);
            }
            Err(error) if is_full(&error) => {
                tracing::warn!("no room for a checkpoint: {error}; the journal goes on");
                self.abandon_checkpoint(engine);
                self.checkpoint_at = self.journal.bytes() + self.journal_limit / 8;
            }
            Err(error) => {
                self.abandon_checkpoint(engine);
                engine.media.fail("a checkpoint", &error);
                return Err(IoError::Io);
            }
        }
        self.note_journal(engine);
        Ok(())
    }

    /// Writes a checkpoint of what is durable, which is all that has happened, while nothing else does.
    ///
    /// # Errors
    /// As the host is told.
    pub(super) fn checkpoint(&mut self, engine: &mut Engine) -> Result<(), IoError> {
        let end = (self.journal.end(), self.journal.bytes());
        if self.underway.as_ref().is_some_and(|underway| underway.journal != Some(end)) {
            self.abandon_checkpoint(engine);
        }
        if self.underway.is_none() {
            self.begin_checkpoint(engine);
            self.note_checkpoint_start();
        }
        while self.underway.is_some() {
            let part = self.collect_part(engine, CHUNK_BYTES);
            let counts = part.and_then(|part| part.map_or(Ok(false), |part| self.write_part(part)));
            self.finish_part(engine, counts)?;
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

/// Bytes of journal at which a checkpoint begins, if it is to be there when there are so many.
pub fn due_at(journal_limit: u64) -> u64 {
    journal_limit - journal_limit / CHECKPOINT_PART
}

/// A state that was read: the scheme, and the number of events so far.
type Restored = (Box<dyn Scheme<FileMedia>>, u64);

/// Reads a checkpoint into fresh media.
///
/// # Errors
/// It cannot be read, is damaged, or is none of this device.
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
    // Its length may be anything, and memory is taken only for what is there.
    if file.length().in_file(name)? < checkpoint.bytes {
        return Err(damaged("it ends too early".into()));
    }
    let wrong_sum = || damaged("the checksum is wrong".into());
    let (seed, mut head) = (superblock.seed(), [0; HEAD_BYTES]);
    file.read_at(0, &mut head).in_file(name)?;
    // The number of events, with which those without a head begin, cannot be so large.
    if u32_at(&head, 4) != MAGIC {
        let mut state = vec![0; checkpoint.bytes as usize];
        file.read_at(0, &mut state).in_file(name)?;
        if crc32c_append(seed, &state) != checkpoint.sum {
            return Err(wrong_sum());
        }
        return restore(&state, Layout::Inline, resolved, media).map_err(damaged);
    }
    let (head_sum, state_bytes, state_sum) = (u32_at(&head, 0), u64_at(&head, 8), u32_at(&head, 16));
    let tables_bytes = checkpoint.bytes.checked_sub(HEAD_BYTES as u64).and_then(|bytes| bytes.checked_sub(state_bytes));
    let Some(tables_bytes) = tables_bytes.filter(|_| head_sum == crc32c_append(seed, &head[4..])) else {
        return Err(wrong_sum());
    };
    let mut state = vec![0; state_bytes as usize];
    file.read_at(HEAD_BYTES as u64, &mut state).in_file(name)?;
    if crc32c_append(seed, &state) != state_sum {
        return Err(wrong_sum());
    }
    let sum = Rc::new(Cell::new(crc32c_append(crc32c_append(seed, &head), &state)));
    let tables = Tables {
        file: Arc::clone(file),
        first: HEAD_BYTES as u64 + state_bytes,
        at: 0,
        bytes: tables_bytes,
        sum: Rc::clone(&sum),
        ahead: Vec::new(),
        taken: 0,
    };
    let restored = save::read_image(Box::new(tables), || restore(&state, Layout::Apart, resolved, media));
    let restored = restored.map_err(damaged)?;
    if sum.get() == checkpoint.sum { Ok(restored) } else { Err(wrong_sum()) }
}

fn restore(state: &[u8], layout: Layout, resolved: &Resolved, media: &mut FileMedia) -> Result<Restored, String> {
    let mut state = Reader(state);
    let event = state.u64().and_then(bounded)?;
    media.restore(&mut state, layout)?;
    let scheme = state.section()?;
    state.end()?;
    let (device, shape) = (&resolved.device, &resolved.shape);
    let scheme =
        scheme::restore(&device.scheme, shape, &resolved.settings, scheme).map_err(|error| error.to_string())?;
    Ok((scheme, event))
}

/// The large tables of a checkpoint, read one after the other.
struct Tables {
    file: File,
    /// Where they begin in the file, the place up to which they were handed out, and their bytes.
    first: u64,
    at: u64,
    bytes: u64,
    /// Checksum of the file up to there.
    sum: Rc<Cell<u32>>,
    /// What was read ahead, and how much of it was handed out.
    ahead: Vec<u8>,
    taken: usize,
}

impl Source for Tables {
    fn left(&self) -> u64 {
        self.bytes - self.at
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.taken == self.ahead.len() {
                let place = self.at + filled as u64;
                self.ahead.resize((self.bytes - place).min(CHUNK_BYTES as u64) as usize, 0);
                self.file.read_at(self.first + place, &mut self.ahead).map_err(|error| error.to_string())?;
                self.taken = 0;
            }
            let count = (bytes.len() - filled).min(self.ahead.len() - self.taken);
            bytes[filled..filled + count].copy_from_slice(&self.ahead[self.taken..self.taken + count]);
            (filled, self.taken) = (filled + count, self.taken + count);
        }
        self.sum.set(crc32c_append(self.sum.get(), bytes));
        self.at += bytes.len() as u64;
        Ok(())
    }
}
