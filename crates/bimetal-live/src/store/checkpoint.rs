//! Checkpoints: the whole state of scheme and media, so that the journal can start again.
//!
//! There are two files, written in turn; the superblock names the one that counts, with its length and its checksum. It
//! holds, little-endian, each table with a `u64` for its length in front:
//!
//! ```text
//! u64     events so far
//! ...     the media: see `FileMedia::save`
//! u64, …  the scheme: as long as the number says
//! ```

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bimetal_core::device::Resolved;
use bimetal_core::scheme::{self, Scheme};

use super::backing::is_full;
use super::commit::Committer;
use super::crc32c::crc32c_append;
use super::engine::Engine;
use super::error::{InFile, StoreError};
use super::files::Files;
use super::home_disk::HomeDisk;
use super::media::FileMedia;
use super::state::{Reader, Writer, bounded};
use super::superblock::{CheckpointRef, Superblock};
use crate::block_device::IoError;

/// The files.
pub const CHECKPOINTS: [&str; 2] = ["checkpoint.0", "checkpoint.1"];

/// Bytes that are written at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes for each 4 KiB of the device that a checkpoint has room for from the beginning, and beside that. Schemes take up to 11.
const ROOM_PER_4K: u64 = 12;
const ROOM_BESIDE: u64 = 1 << 20;

/// Bytes that each of the files takes from the beginning.
pub fn room_bytes(sectors: u64) -> u64 {
    sectors.div_ceil(8) * ROOM_PER_4K + ROOM_BESIDE
}

impl Committer {
    /// Makes all durable that has happened and writes a checkpoint, after which the journal starts again. Where there is no room for
    /// it, or for sectors of the home disk that only the journal has, the journal goes on.
    pub(super) fn checkpoint(&mut self, engine: &mut Engine) -> Result<(), IoError> {
        self.commit_all(engine)?;
        let start = Instant::now();
        let placed = engine.media.disk().map_or(Ok(()), HomeDisk::place_waiting);
        match placed.and_then(|()| self.try_checkpoint(engine)) {
            Ok(()) => {
                engine.counts.checkpoints += 1;
                self.clocks.checkpointed(start);
                self.checkpoint_at = self.journal_limit;
            }
            Err(error) if is_full(&error) => {
                tracing::warn!("no room for a checkpoint: {error}; the journal goes on");
                self.checkpoint_at = self.journal.bytes() + self.journal_limit / 8;
            }
            Err(error) => {
                engine.media.fail("a checkpoint", &error);
                return Err(IoError::Io);
            }
        }
        self.note_journal(engine);
        Ok(())
    }

    fn try_checkpoint(&mut self, engine: &mut Engine) -> io::Result<()> {
        engine.media.sync()?;
        engine.media.disk().map_or(Ok(()), |disk| disk.sync())?;
        let mut bytes = Vec::new();
        let mut out = Writer(&mut bytes);
        out.u64(engine.first_event);
        engine.media.save(&mut out);
        out.section(|bytes| engine.scheme.save(bytes));
        let file = self.superblock.checkpoint.map_or(0, |checkpoint| 1 - checkpoint.file);
        let files = Arc::clone(&self.files);
        let [backing, other] = [file, 1 - file].map(|file| &files.checkpoints[file as usize]);
        for (chunk, at) in bytes.chunks(CHUNK_BYTES).zip((0..).step_by(CHUNK_BYTES)) {
            backing.write_at(at, chunk)?;
        }
        backing.sync()?;
        let checkpoint =
            CheckpointRef { file, sum: crc32c_append(self.superblock.seed(), &bytes), bytes: bytes.len() as u64 };
        self.write_superblock(|superblock, journal_next| {
            superblock.checkpoint = Some(checkpoint);
            superblock.first_batch = journal_next;
        })?;
        self.journal.restart();
        // The next one is as large, or somewhat larger. If there is no room, it is tried again when it is needed.
        let next = (bytes.len() + bytes.len() / 4) as u64;
        if next > room_bytes(engine.sectors) {
            other.allocate(0, next).ok();
        }
        Ok(())
    }

    /// Changes the superblock, durably.
    pub(super) fn write_superblock(&mut self, change: impl FnOnce(&mut Superblock, u64)) -> io::Result<()> {
        let mut superblock = self.superblock.clone();
        superblock.generation += 1;
        let opened = self.opened.elapsed();
        superblock.power.on_ms += opened.as_millis() as u64;
        change(&mut superblock, self.journal.next());
        superblock.write(self.files.superblock.as_ref())?;
        self.superblock = superblock;
        self.opened += opened;
        Ok(())
    }
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
    let file = CHECKPOINTS[checkpoint.file as usize];
    let damaged = |what: String| StoreError::Damaged { file: file.into(), what };
    let backing = &files.checkpoints[checkpoint.file as usize];
    // Its length may be anything, and memory is taken only for what is there.
    if backing.length().in_file(file)? < checkpoint.bytes {
        return Err(damaged("it ends too early".into()));
    }
    let mut bytes = vec![0; checkpoint.bytes as usize];
    backing.read_at(0, &mut bytes).in_file(file)?;
    if crc32c_append(superblock.seed(), &bytes) != checkpoint.sum {
        return Err(damaged("the checksum is wrong".into()));
    }
    let mut state = Reader(&bytes);
    let mut restore = || {
        let event = state.u64().and_then(bounded)?;
        media.restore(&mut state)?;
        let scheme = state.section()?;
        state.end()?;
        let (device, shape) = (&resolved.device, &resolved.shape);
        let scheme =
            scheme::restore(&device.scheme, shape, &resolved.settings, scheme).map_err(|error| error.to_string())?;
        Ok((scheme, event))
    };
    restore().map_err(damaged)
}
