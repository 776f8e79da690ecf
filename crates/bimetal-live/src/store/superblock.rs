//! The superblock: identity and description of a store, and the positions of its checkpoint and journal.
//!
//! The file has two copies, at bytes 0 and 65,536, that are written in turn: even generations go to the first. The
//! valid copy of the higher generation counts. Behind them is the seal of the journal. A copy:
//!
//! ```text
//! 0    u32   CRC-32C of all that follows, to the end of the text
//! 4    u32   magic `BMSB`
//! 8    u32   format of the store
//! 12   u32   1 if the store is complete, else 0
//! 16   u64   number of the store
//! 24   u64   generation
//! 32   u64   sequence numbers up to this one may have been used
//! 40   u64   the first batch that the journal has, or will have
//! 48   u32   file of the latest checkpoint, 0 or 1; 4,294,967,295 if there is none
//! 52   u32   CRC-32C of the checkpoint
//! 56   u64   its length
//! 64   u32   version of the scheme
//! 68   u32   length of the text
//! 72   u64   number of openings for writing
//! 80   u64   number of these openings without a clean close
//! 88   u64   total time for which it was open, in milliseconds
//! 96   u32   1 if it is closed, else 0
//! 100  u64   number of the latest opening for writing
//! 108  u64   second number that labels may have: of the previous opening while labels are written, else the same
//! 116  u64   identity of the superblock's file, see `Identity::lasting`; 0 if unknown
//! 124  u64   byte of the first batch in the journal, if present; before format 5 it is at 4,096, and the text is here
//! 132        the text: TOML with the names of the files and the device
//! ```

use std::io;
use std::path::Path;

use bimetal_core::device::Device;
use serde::{Deserialize, Serialize};

use super::backing::{ATOMIC_BYTES, Backing};
use super::bytes::{put_u32, put_u64, u32_at, u64_at};
use super::crc32c::crc32c;
use super::error::{InFile, StoreError};
use super::label::Label;
use super::limits::NUMBER_MAX;
use super::names::CHECKPOINTS;

/// Name of the file.
pub const SUPERBLOCK: &str = "superblock";
/// The format that this program writes.
pub const FORMAT: u32 = 6;
/// The oldest format that this program reads.
const FORMAT_MIN: u32 = 3;

const MAGIC: u32 = u32::from_le_bytes(*b"BMSB");
const COPY_BYTES: u64 = 64 << 10;
const HEAD_BYTES: usize = 132;
/// Bytes of the head in formats before 5.
const OLD_HEAD_BYTES: usize = 124;
/// Bytes of the file: both copies, and the seal of the journal behind them.
pub const FILE_BYTES: u64 = 2 * COPY_BYTES + ATOMIC_BYTES;
/// Byte offset of the journal's seal.
pub const SEAL_AT: u64 = 2 * COPY_BYTES;
/// Byte offset of the first batch in a new journal.
pub const FIRST_BATCH_AT: u64 = Label::BYTES as u64;
const NO_CHECKPOINT: u32 = u32::MAX;

/// The names of a store's files, and its device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// Files or block devices of the regions.
    pub regions: Vec<String>,
    /// File or block device of the home disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Whether the files grow as they are written, rather than being allocated at creation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// The resolved device.
    pub device: Device,
}

/// The names of a store's files without the device: the part of the text that every version has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Names {
    /// Files or block devices of the regions.
    pub regions: Vec<String>,
    /// File or block device of the home disk.
    pub disk: Option<String>,
}

/// Reference to a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointRef {
    /// Index of its file in `CHECKPOINTS`.
    pub file: u32,
    /// CRC-32C of the checkpoint's head, whose contents verify the rest; in formats before the head, of all its bytes.
    pub sum: u32,
    /// Length of the checkpoint in bytes.
    pub bytes: u64,
}

/// Position at which a journal begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Number of its first batch.
    pub batch: u64,
    /// Byte offset of that batch in the file, if the batch exists: see `journal`.
    pub offset: u64,
}

impl Start {
    /// The beginning of the file.
    pub fn of_file(batch: u64) -> Self {
        Self { batch, offset: FIRST_BATCH_AT }
    }
}

/// Power cycles and operating time, counted as a drive counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Power {
    /// Openings for writing.
    pub cycles: u64,
    /// Openings for writing that did not end with a close.
    pub unsafe_shutdowns: u64,
    /// Time for which the store was open, in milliseconds; after a crash, the part that was recorded.
    pub on_ms: u64,
    /// Whether the store is closed.
    pub is_off: bool,
}

/// A superblock.
#[derive(Clone, Debug, PartialEq)]
pub struct Superblock {
    /// Whether the store was completed.
    pub is_complete: bool,
    /// Number of the store.
    pub store: u64,
    /// Number of writes of the superblock.
    pub generation: u64,
    /// Highest sequence number that may have been used.
    pub sequence: u64,
    /// Start of the journal.
    pub journal: Start,
    /// The latest checkpoint.
    pub checkpoint: Option<CheckpointRef>,
    /// Version of the scheme.
    pub scheme_version: u32,
    /// Power cycles and operating time.
    pub power: Power,
    /// Number of the latest opening for writing, and the other number that labels may have.
    pub openings: [u64; 2],
    /// Identity of the superblock's file; 0 if unknown.
    pub home: u64,
    /// Files and device; `None` while the store is being created.
    pub contents: Option<Contents>,
}

impl Contents {
    /// Files with absolute paths: a copy of the store's directory shares them.
    pub fn outside(&self) -> impl Iterator<Item = &str> {
        let files = self.regions.iter().chain(&self.disk).map(String::as_str);
        files.filter(|file| Path::new(file).is_absolute())
    }
}

impl Superblock {
    /// Seed of all checksums of the store.
    pub fn seed(&self) -> u32 {
        crc32c(&self.store.to_le_bytes())
    }

    fn encode(&self) -> Result<Vec<u8>, String> {
        let text =
            self.contents.as_ref().map_or(Ok(String::new()), toml::to_string).map_err(|error| error.to_string())?;
        if HEAD_BYTES + text.len() > COPY_BYTES as usize {
            return Err(format!("a device description of {} bytes is too long", text.len()));
        }
        let mut bytes = vec![0; HEAD_BYTES];
        put_u32(&mut bytes, 4, MAGIC);
        put_u32(&mut bytes, 8, FORMAT);
        put_u32(&mut bytes, 12, u32::from(self.is_complete));
        put_u64(&mut bytes, 16, self.store);
        put_u64(&mut bytes, 24, self.generation);
        put_u64(&mut bytes, 32, self.sequence);
        put_u64(&mut bytes, 40, self.journal.batch);
        let checkpoint = self.checkpoint.unwrap_or(CheckpointRef { file: NO_CHECKPOINT, sum: 0, bytes: 0 });
        put_u32(&mut bytes, 48, checkpoint.file);
        put_u32(&mut bytes, 52, checkpoint.sum);
        put_u64(&mut bytes, 56, checkpoint.bytes);
        put_u32(&mut bytes, 64, self.scheme_version);
        put_u32(&mut bytes, 68, text.len() as u32);
        put_u64(&mut bytes, 72, self.power.cycles);
        put_u64(&mut bytes, 80, self.power.unsafe_shutdowns);
        put_u64(&mut bytes, 88, self.power.on_ms);
        put_u32(&mut bytes, 96, u32::from(self.power.is_off));
        put_u64(&mut bytes, 100, self.openings[0]);
        put_u64(&mut bytes, 108, self.openings[1]);
        put_u64(&mut bytes, 116, self.home);
        put_u64(&mut bytes, 124, self.journal.offset);
        bytes.extend(text.as_bytes());
        let sum = crc32c(&bytes[4..]);
        put_u32(&mut bytes, 0, sum);
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let (mut superblock, text) = Self::decode_numbers(bytes)?;
        if !text.is_empty() {
            superblock.contents = Some(toml::from_str(text).map_err(|_| Unreadable::Damaged)?);
        }
        Ok(superblock)
    }

    /// Decodes everything except the contents, and returns the text that describes those.
    fn decode_numbers(bytes: &[u8]) -> Result<(Self, &str), Unreadable> {
        if u32_at(bytes, 4) != MAGIC {
            return Err(Unreadable::Foreign);
        }
        // The format is checked first, because other formats sum other bytes.
        let format = u32_at(bytes, 8);
        if !(FORMAT_MIN..=FORMAT).contains(&format) {
            return Err(Unreadable::Format(format));
        }
        let head_bytes = if format < 5 { OLD_HEAD_BYTES } else { HEAD_BYTES };
        let end = head_bytes.saturating_add(u32_at(bytes, 68) as usize);
        if end > bytes.len() || u32_at(bytes, 0) != crc32c(&bytes[4..end]) {
            return Err(Unreadable::Damaged);
        }
        let text = std::str::from_utf8(&bytes[head_bytes..end]).map_err(|_| Unreadable::Damaged)?;
        let checkpoint = CheckpointRef { file: u32_at(bytes, 48), sum: u32_at(bytes, 52), bytes: u64_at(bytes, 56) };
        let checkpoint = Some(checkpoint).filter(|checkpoint| checkpoint.file != NO_CHECKPOINT);
        if checkpoint.is_some_and(|checkpoint| checkpoint.file as usize >= CHECKPOINTS.len()) {
            return Err(Unreadable::Damaged);
        }
        let mut journal = Start::of_file(u64_at(bytes, 40));
        if format >= 5 {
            journal.offset = u64_at(bytes, 124);
        }
        // Generation, sequence number, batch; openings, unsafe shutdowns, milliseconds.
        let numbers = [24, 32, 40, 72, 80, 88].map(|at| u64_at(bytes, at));
        if numbers.into_iter().chain([journal.offset]).any(|number| number > NUMBER_MAX)
            || !journal.offset.is_multiple_of(ATOMIC_BYTES)
        {
            return Err(Unreadable::Damaged);
        }
        let superblock = Self {
            is_complete: u32_at(bytes, 12) == 1,
            store: u64_at(bytes, 16),
            generation: u64_at(bytes, 24),
            sequence: u64_at(bytes, 32),
            journal,
            checkpoint,
            scheme_version: u32_at(bytes, 64),
            power: Power {
                cycles: u64_at(bytes, 72),
                unsafe_shutdowns: u64_at(bytes, 80),
                on_ms: u64_at(bytes, 88),
                is_off: u32_at(bytes, 96) == 1,
            },
            openings: [u64_at(bytes, 100), u64_at(bytes, 108)],
            home: u64_at(bytes, 116),
            contents: None,
        };
        Ok((superblock, text))
    }

    /// Whether `bytes` begin with the magic of a superblock.
    pub fn is_one(bytes: &[u8]) -> bool {
        u32_at(bytes, 4) == MAGIC
    }

    /// Writes the superblock over the older copy and syncs the file.
    ///
    /// # Errors
    /// The write or the sync failed; the superblock may not be durable.
    pub fn write(&self, file: &dyn Backing) -> io::Result<()> {
        let bytes = self.encode().map_err(io::Error::other)?;
        file.write_at(self.generation % 2 * COPY_BYTES, &bytes)?;
        file.sync()
    }

    /// Both copies, each or the reason why it cannot be read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_copies(file: &dyn Backing) -> io::Result<[Result<Self, Unreadable>; 2]> {
        let mut bytes = vec![0; COPY_BYTES as usize];
        file.read_at(0, &mut bytes)?;
        let first = Self::decode(&bytes);
        file.read_at(COPY_BYTES, &mut bytes)?;
        Ok([first, Self::decode(&bytes)])
    }

    /// Reads the valid copy of the higher generation of a completed store.
    ///
    /// # Errors
    /// Neither copy can be read, or the store is unfinished.
    pub fn read(file: &dyn Backing) -> Result<Self, StoreError> {
        Some(Self::read_latest(file)?).filter(|copy| copy.is_complete).ok_or(StoreError::Unfinished)
    }

    /// Reads the valid copy of the higher generation, of a completed or an unfinished store.
    ///
    /// # Errors
    /// Neither copy can be read.
    pub fn read_latest(file: &dyn Backing) -> Result<Self, StoreError> {
        latest(Self::read_copies(file).in_file(SUPERBLOCK)?, |copy| copy.generation)
    }

    /// Reads the valid copy of the higher generation of a completed store, and the names of its files. The rest of its
    /// text may be unknown to this program.
    ///
    /// # Errors
    /// Neither copy can be read, or the store is unfinished.
    pub fn read_names(file: &dyn Backing) -> Result<(Self, Names), StoreError> {
        let mut bytes = vec![0; COPY_BYTES as usize];
        let mut read = |offset| {
            file.read_at(offset, &mut bytes).in_file(SUPERBLOCK)?;
            Ok::<_, StoreError>(Self::decode_numbers(&bytes).and_then(|(superblock, text)| {
                let names = if superblock.is_complete { text } else { "regions = []" };
                Ok((superblock, toml::from_str::<Names>(names).map_err(|_| Unreadable::Damaged)?))
            }))
        };
        let copies = [read(0)?, read(COPY_BYTES)?];
        let found = latest(copies, |(superblock, _)| superblock.generation)?;
        Some(found).filter(|(superblock, _)| superblock.is_complete).ok_or(StoreError::Unfinished)
    }
}

/// The copy of the higher generation, or an error with the reason why neither can be read.
fn latest<T>(copies: [Result<T, Unreadable>; 2], generation: impl Fn(&T) -> u64) -> Result<T, StoreError> {
    let worst = copies.iter().filter_map(|copy| copy.as_ref().err()).max().copied();
    copies.into_iter().flatten().max_by_key(generation).ok_or_else(|| match worst {
        Some(Unreadable::Format(found)) => StoreError::Format { found, known: FORMAT },
        Some(Unreadable::Damaged) => {
            StoreError::Damaged { file: SUPERBLOCK.into(), what: "both copies are damaged".into() }
        }
        Some(Unreadable::Foreign) | None => StoreError::Unfinished,
    })
}

/// Allocates all space that the superblock's file will ever need, so that a later write of it never lacks space.
///
/// # Errors
/// Too little free space.
pub fn take_room(file: &dyn Backing) -> io::Result<()> {
    file.allocate(0, FILE_BYTES)?;
    file.write_at(SEAL_AT, &[0; ATOMIC_BYTES as usize])
}

/// Why a copy of the superblock cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unreadable {
    /// The bytes are not a superblock.
    Foreign,
    /// The checksum or a number is wrong.
    Damaged,
    /// The format is not supported.
    Format(u32),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::backing::{Access, Storage};
    use crate::store::crash_backing::CrashStorage;

    fn superblock(generation: u64) -> Superblock {
        let device = bimetal_core::device::preset("wlaftl").unwrap();
        Superblock {
            is_complete: true,
            store: 7,
            generation,
            sequence: 8,
            journal: Start { batch: 9, offset: 8192 },
            checkpoint: Some(CheckpointRef { file: 1, sum: 2, bytes: 3 }),
            scheme_version: 4,
            power: Power { cycles: 5, unsafe_shutdowns: 1, on_ms: 6, is_off: true },
            openings: [10, 11],
            home: 12,
            contents: Some(Contents { regions: vec!["slc".into(), "mlc".into()], disk: None, sparse: true, device }),
        }
    }

    #[test]
    fn the_latest_valid_copy_counts() {
        let storage = CrashStorage::new();
        let file = storage.open(SUPERBLOCK, Access::Create, false).unwrap();
        assert!(matches!(Superblock::read(file.as_ref()), Err(StoreError::Unfinished)));
        for generation in 1..4 {
            superblock(generation).write(file.as_ref()).unwrap();
            assert_eq!(Superblock::read(file.as_ref()).unwrap(), superblock(generation));
        }
        storage.flip(SUPERBLOCK, (COPY_BYTES as usize + 100) * 8);
        assert_eq!(Superblock::read(file.as_ref()).unwrap(), superblock(2), "that of before");
        storage.flip(SUPERBLOCK, 100 * 8);
        assert!(matches!(Superblock::read(file.as_ref()), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn another_format_is_named() {
        let storage = CrashStorage::new();
        let file = storage.open(SUPERBLOCK, Access::Create, false).unwrap();
        let mut bytes = superblock(0).encode().unwrap();
        put_u32(&mut bytes, 8, 1);
        file.write_at(0, &bytes).unwrap();
        assert!(matches!(Superblock::read(file.as_ref()), Err(StoreError::Format { found: 1, known: FORMAT })));
    }

    #[test]
    fn numbers_that_cannot_be_are_damage() {
        let mut far = superblock(1);
        far.power.on_ms = NUMBER_MAX + 1;
        let checkpoint = Some(CheckpointRef { file: 2, sum: 0, bytes: 0 });
        for wrong in [far, superblock(u64::MAX), Superblock { checkpoint, ..superblock(1) }] {
            assert_eq!(Superblock::decode(&wrong.encode().unwrap()), Err(Unreadable::Damaged));
        }
    }
}
