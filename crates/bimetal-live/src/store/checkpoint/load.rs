//! A checkpoint is read: its state at once, its large tables piece by piece.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bimetal_core::device::Resolved;
use bimetal_core::save::{self, Source};
use bimetal_core::scheme::{self, Scheme};

use super::{CHUNK_BYTES, HEAD_BYTES, MAGIC};
use crate::store::backing::File;
use crate::store::bytes::{u32_at, u64_at};
use crate::store::crc32c::crc32c_append;
use crate::store::error::{InFile, StoreError};
use crate::store::files::Files;
use crate::store::media::FileMedia;
use crate::store::names::CHECKPOINTS;
use crate::store::state::{Layout, Reader, bounded};
use crate::store::superblock::{CheckpointRef, Superblock};

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
