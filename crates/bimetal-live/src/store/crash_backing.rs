//! A backing in memory that simulates crashes and failures: a power cut loses, reorders and tears unsynced writes,
//! operations fail, space runs out, bits flip. It serves tests, also of schemes in other crates.
//!
//! Writes since the last sync are in a list. A power cut keeps of each 512-byte sector the state of the last sync or
//! any later one, and any of the files created or extended since. A killed process loses nothing immediately, but its
//! unsynced writes can still be lost later. After a failed sync, the affected data may or may not be durable,
//! regardless of the results of later syncs.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bimetal_core::part::random::below;

use super::backing::{ATOMIC_BYTES, Access, Backing, Storage};

/// Kind of failure of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process ends here: the operation may have been done in part, and no later operation happens.
    Crash,
    /// An I/O error.
    Io,
    /// The disk is full; only writes fail with it.
    Full,
}

/// Effect of a crash on unsynced writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Only the process ended: nothing is lost, and nothing becomes durable.
    Kill,
    /// All of them are lost.
    All,
    /// None of them is lost.
    Nothing,
    /// Each write is complete, lost or torn.
    Writes,
    /// Each sector has any of its states since the last sync.
    Sectors,
}

impl Loss {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Kill, Self::All, Self::Nothing, Self::Writes, Self::Sectors];
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, data: Vec<u8> },
    Length(u64),
}

#[derive(Clone, Debug)]
struct Unsynced {
    change: Change,
    /// Whether a sync of it has failed.
    is_doubtful: bool,
}

#[derive(Clone, Debug, Default)]
struct MemoryFile {
    /// The contents that a reader sees.
    seen: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Unsynced>,
    /// Whether a sync of the directory included it.
    is_listed: bool,
    is_fixed: bool,
    /// Pieces of it that occupy space, see [`ROOM_BYTES`].
    taken: Vec<bool>,
}

/// Unit of space allocation in bytes.
pub const ROOM_BYTES: u64 = 4096;

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { data, .. } if data.is_empty() => {}
        Change::Write { offset, data } => {
            let (start, end) = (*offset as usize, *offset as usize + data.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(data);
        }
        Change::Length(length) => bytes.resize(*length as usize, 0),
    }
}

impl MemoryFile {
    fn change(&mut self, change: Change) {
        if let Change::Write { offset, data } = &change {
            self.supersede(*offset, *offset + data.len() as u64);
        }
        apply(&mut self.seen, &change);
        self.unsynced.push(Unsynced { change, is_doubtful: false });
    }

    /// Bytes are written again whose sync has failed. The old ones can no longer become durable.
    fn supersede(&mut self, start: u64, end: u64) {
        if !self.unsynced.iter().any(|unsynced| unsynced.is_doubtful) {
            return;
        }
        for unsynced in std::mem::take(&mut self.unsynced) {
            let Unsynced { change: Change::Write { offset, data }, is_doubtful: true } = &unsynced else {
                self.unsynced.push(unsynced);
                continue;
            };
            let last = offset + data.len() as u64;
            for (from, to) in [(*offset, last.min(start)), (end.max(*offset), last)] {
                if from < to {
                    let data = data[(from - offset) as usize..(to - offset) as usize].to_vec();
                    self.unsynced.push(Unsynced { change: Change::Write { offset: from, data }, is_doubtful: true });
                }
            }
        }
    }

    fn sync(&mut self) {
        self.unsynced.retain(|unsynced| {
            if !unsynced.is_doubtful {
                apply(&mut self.durable, &unsynced.change);
            }
            unsynced.is_doubtful
        });
    }

    /// Loses the changes whose sync has failed, which are no longer waiting to be written.
    fn drop_cached(&mut self) {
        self.unsynced.retain(|unsynced| !unsynced.is_doubtful);
        self.seen.clone_from(&self.durable);
        self.unsynced.iter().for_each(|unsynced| apply(&mut self.seen, &unsynced.change));
    }

    fn cut(&mut self, loss: Loss, state: &mut u64) {
        for Unsynced { change, .. } in self.unsynced.drain(..) {
            match (loss, &change) {
                (Loss::Kill | Loss::Nothing, _) => apply(&mut self.durable, &change),
                (Loss::All, _) => {}
                (Loss::Writes | Loss::Sectors, Change::Length(_)) => {
                    if below(state, 2) == 0 {
                        apply(&mut self.durable, &change);
                    }
                }
                (Loss::Writes, Change::Write { offset, data }) => match below(state, 3) {
                    0 => {}
                    1 => apply(&mut self.durable, &change),
                    _ => keep_some(&mut self.durable, *offset, data, state),
                },
                (Loss::Sectors, Change::Write { offset, data }) => keep_some(&mut self.durable, *offset, data, state),
            }
        }
        self.seen.clone_from(&self.durable);
    }
}

/// Writes a random subset of the sectors of a write.
fn keep_some(bytes: &mut Vec<u8>, offset: u64, data: &[u8], state: &mut u64) {
    let mut at = 0;
    while at < data.len() {
        let sector_end = (offset + at as u64) / ATOMIC_BYTES * ATOMIC_BYTES + ATOMIC_BYTES;
        let end = data.len().min((sector_end - offset) as usize);
        if below(state, 2) == 0 {
            apply(bytes, &Change::Write { offset: offset + at as u64, data: data[at..end].to_vec() });
        }
        at = end;
    }
}

#[derive(Clone, Debug, Default)]
struct Files {
    files: BTreeMap<String, MemoryFile>,
    /// Numbers of changing operations and of reads so far.
    changes: u64,
    reads: u64,
    fault: Option<(u64, Fault)>,
    failing_read: Option<u64>,
    is_crashed: bool,
    /// Free pieces, if space is limited.
    room: Option<u64>,
}

impl Files {
    /// Counts an operation. Returns its failure, if it has one.
    fn count_change(&mut self) -> io::Result<Option<Fault>> {
        if self.is_crashed {
            return Err(crashed());
        }
        self.changes += 1;
        let fault = self.fault.filter(|(at, _)| *at == self.changes).map(|(_, fault)| fault);
        self.is_crashed = fault == Some(Fault::Crash);
        Ok(fault)
    }

    /// Allocates space for bytes of a file, all of it or none.
    fn take_room(&mut self, name: &str, offset: u64, bytes: u64) -> io::Result<()> {
        let Some(file) = self.files.get_mut(name).filter(|file| !file.is_fixed && bytes > 0) else { return Ok(()) };
        let pieces = (offset / ROOM_BYTES) as usize..(offset + bytes).div_ceil(ROOM_BYTES) as usize;
        file.taken.resize(file.taken.len().max(pieces.end), false);
        let taken = &mut file.taken[pieces];
        let missing = taken.iter().filter(|&&taken| !taken).count() as u64;
        if let Some(room) = &mut self.room {
            *room = room.checked_sub(missing).ok_or(ErrorKind::StorageFull)?;
        }
        taken.fill(true);
        Ok(())
    }

    /// Releases the space of all whole pieces in a range of a file.
    fn give_room(&mut self, name: &str, offset: u64, bytes: u64) {
        let Some(file) = self.files.get_mut(name) else { return };
        let end = ((offset + bytes) / ROOM_BYTES).min(file.taken.len() as u64) as usize;
        let start = (offset.div_ceil(ROOM_BYTES) as usize).min(end);
        let taken = &mut file.taken[start..end];
        let given = taken.iter().filter(|&&taken| taken).count() as u64;
        taken.fill(false);
        self.room = self.room.map(|room| room + given);
    }

    /// Counts an operation that changes a file, and performs `change` unless it fails before that.
    fn do_change(&mut self, name: &str, change: Change) -> io::Result<()> {
        let fault = self.count_change()?;
        match &change {
            Change::Write { offset, data } => self.take_room(name, *offset, data.len() as u64)?,
            Change::Length(length) => self.give_room(name, *length, u64::MAX / 2),
        }
        let file = self.files.entry(name.into()).or_default();
        match fault {
            Some(Fault::Io) => return Err(ErrorKind::Other.into()),
            Some(Fault::Full) => return Err(ErrorKind::StorageFull.into()),
            Some(Fault::Crash) | None => file.change(change),
        }
        if self.is_crashed { Err(crashed()) } else { Ok(()) }
    }
}

fn crashed() -> io::Error {
    io::Error::other("the machine has crashed")
}

/// A callback that runs while a file is synced.
pub type Meanwhile = Arc<dyn Fn() + Send + Sync>;

/// Files in memory, shared by everything that is opened from it.
#[derive(Default)]
pub struct CrashStorage {
    files: Arc<Mutex<Files>>,
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
}

impl Clone for CrashStorage {
    /// A copy of all files in their current state.
    fn clone(&self) -> Self {
        Self { files: Arc::new(Mutex::new(self.lock().clone())), meanwhile: Arc::default() }
    }
}

impl CrashStorage {
    /// A storage without files.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a file with fixed length, like a block device.
    pub fn add_fixed(&self, name: &str, bytes: usize) {
        let (seen, durable) = (vec![0; bytes], vec![0; bytes]);
        let file = MemoryFile { seen, durable, is_fixed: true, is_listed: true, ..MemoryFile::default() };
        self.lock().files.insert(name.into(), file);
    }

    /// Limits the additional space that files may take from now on; `None` removes the limit.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.lock().room = bytes.map(|bytes| bytes / ROOM_BYTES);
    }

    /// Number of changing operations so far.
    pub fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Reads so far.
    pub fn reads(&self) -> u64 {
        self.lock().reads
    }

    /// Makes a changing operation fail. The first operation ever has number 1.
    pub fn set_fault(&self, change: u64, fault: Fault) {
        self.lock().fault = Some((change, fault));
    }

    /// Makes the read with this number fail.
    pub fn set_failing_read(&self, read: u64) {
        self.lock().failing_read = Some(read);
    }

    /// Sets a callback that runs whenever a file is about to be synced, as if another thread did the work; `None`
    /// removes it. Syncs within the callback call it again.
    pub fn set_meanwhile(&self, meanwhile: Option<Meanwhile>) {
        *self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner) = meanwhile;
    }

    /// Whether the simulated process has crashed.
    pub fn is_crashed(&self) -> bool {
        self.lock().is_crashed
    }

    /// Whether the operation that was set to fail has been reached.
    pub fn has_failed(&self) -> bool {
        let files = self.lock();
        files.fault.is_some_and(|(at, _)| at <= files.changes)
    }

    /// Restarts after a crash and keeps the data that survive. Nothing fails from then on.
    pub fn restart(&self, loss: Loss, seed: u64) {
        let mut files = self.lock();
        let mut state = seed;
        if loss != Loss::Kill {
            for file in files.files.values_mut() {
                file.cut(loss, &mut state);
            }
            files.files.retain(|_, file| file.is_listed || loss != Loss::All && below(&mut state, 2) == 0);
        }
        files.is_crashed = false;
        files.fault = None;
        files.failing_read = None;
    }

    /// Names and lengths of all files.
    pub fn names(&self) -> Vec<(String, usize)> {
        self.lock().files.iter().map(|(name, file)| (name.clone(), file.seen.len())).collect()
    }

    /// The bytes of a file.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.lock().files.get(name).map(|file| file.seen.clone()).unwrap_or_default()
    }

    /// Flips a bit of a file.
    pub fn flip(&self, name: &str, bit: usize) {
        if let Some(file) = self.lock().files.get_mut(name) {
            for bytes in [&mut file.seen, &mut file.durable] {
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
        }
    }
}

impl Storage for CrashStorage {
    fn open(&self, name: &str, access: Access, _direct: bool) -> io::Result<Box<dyn Backing>> {
        match (self.exists(name)?, access == Access::Create) {
            (true, true) => return Err(ErrorKind::AlreadyExists.into()),
            (false, true) => self.lock().do_change(name, Change::Length(0))?,
            (true, false) => {}
            (false, false) => return Err(ErrorKind::NotFound.into()),
        }
        let (files, meanwhile) = (Arc::clone(&self.files), Arc::clone(&self.meanwhile));
        Ok(Box::new(Handle { files, meanwhile, name: name.into() }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.lock().files.contains_key(name))
    }

    fn sync(&self) -> io::Result<()> {
        let mut files = self.lock();
        match files.count_change()? {
            None => files.files.values_mut().for_each(|file| file.is_listed = true),
            Some(_) => return Err(crashed()),
        }
        Ok(())
    }
}

struct Handle {
    files: Arc<Mutex<Files>>,
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
    name: String,
}

impl Handle {
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backing for Handle {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut files = self.lock();
        if files.is_crashed {
            return Err(crashed());
        }
        files.reads += 1;
        if files.failing_read == Some(files.reads) {
            return Err(ErrorKind::Other.into());
        }
        let seen = files.files.get(&self.name).map_or(&[][..], |file| &file.seen);
        let start = (offset as usize).min(seen.len());
        let length = out.len().min(seen.len() - start);
        out[..length].copy_from_slice(&seen[start..start + length]);
        out[length..].fill(0);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut files = self.lock();
        let beyond = |file: &MemoryFile| file.is_fixed && offset as usize + data.len() > file.seen.len();
        if files.files.get(&self.name).is_some_and(beyond) {
            return Err(ErrorKind::StorageFull.into());
        }
        files.do_change(&self.name, Change::Write { offset, data: data.to_vec() })
    }

    fn sync(&self) -> io::Result<()> {
        let meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        let mut files = self.lock();
        let fault = files.count_change()?;
        let Some(file) = files.files.get_mut(&self.name) else { return Ok(()) };
        if fault.is_none() {
            file.sync();
            return Ok(());
        }
        if fault == Some(Fault::Crash) {
            return Err(crashed());
        }
        file.unsynced.iter_mut().for_each(|unsynced| unsynced.is_doubtful = true);
        Err(ErrorKind::Other.into())
    }

    fn drop_cached(&self) -> io::Result<()> {
        if let Some(file) = self.lock().files.get_mut(&self.name) {
            file.drop_cached();
        }
        Ok(())
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut files = self.lock();
        let length = files.files.get(&self.name).map_or(0, |file| file.seen.len() as u64);
        let within = bytes.min(length.saturating_sub(offset));
        files.do_change(&self.name, Change::Write { offset, data: vec![0; within as usize] })?;
        files.give_room(&self.name, offset, bytes);
        Ok(())
    }

    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut files = self.lock();
        match files.count_change()? {
            None => files.take_room(&self.name, offset, bytes),
            Some(Fault::Full) => Err(ErrorKind::StorageFull.into()),
            Some(Fault::Io) => Err(ErrorKind::Other.into()),
            Some(Fault::Crash) => Err(crashed()),
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.lock().files.get(&self.name).map_or(0, |file| file.seen.len() as u64))
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.lock().do_change(&self.name, Change::Length(bytes))
    }

    fn is_fixed(&self) -> bool {
        self.lock().files.get(&self.name).is_some_and(|file| file.is_fixed)
    }

    fn occupant(&self) -> io::Result<Option<String>> {
        let files = self.lock();
        let holds = files.files.get(&self.name).is_some_and(|file| file.seen.iter().any(|&byte| byte != 0));
        Ok(holds.then(|| "data".to_owned()))
    }

    fn clear(&self) -> io::Result<()> {
        if self.is_fixed() {
            let zeros = vec![0; self.length()? as usize];
            return self.write_at(0, &zeros);
        }
        self.set_len(0)
    }
}

#[cfg(test)]
mod tests;
