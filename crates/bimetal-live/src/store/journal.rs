//! The journal: the changes since the last checkpoint, in batches. Each batch is a commit.
//!
//! [`record`](super::record) specifies the format of a batch.
//!
//! The file begins with a label; batches follow from byte 4,096 on, each a multiple of 512 bytes. The superblock
//! records the place of the first needed batch. A batch directly follows the previous one. If there is no space for it
//! there, it is at the beginning of the file, as far as that is no longer needed, or at the end.
//!
//! A batch is written with one write and then synced. It is valid if it and all earlier batches are complete. When
//! these are durable, its *seal* is written: the header alone with the magic `BMJS`. The seal distinguishes a batch
//! that was torn by a crash from one that was damaged later. It is in the superblock's file, where it overwrites the
//! previous seal, so that a truncation of the journal does not affect it.
//!
//! Batches are written while earlier ones are being synced. A crash may tear one of these and leave complete ones
//! behind it, which are not valid. Each batch records the number of earlier batches that were not durable yet. If a
//! later batch shows that a torn one had been durable, that one is damaged. Invalid batches remain in the file, behind
//! new batches with the same numbers. Their sequence numbers reveal them: each opening continues with higher ones, so
//! sequence numbers of valid batches never decrease.
//!
//! A batch with few pages contains them, so that a single sync makes all of it durable. The files of the regions are
//! then synced before the journal starts again. A batch with more pages is written when these are durable in their
//! region files.
//!
//! From the beginning, the file has space for all batches up to a checkpoint, so that a full file system cannot prevent
//! a commit.

use std::io;

use super::backing::{ATOMIC_BYTES, File};
use super::batch::Batch;
use super::bytes::Buffer;
use super::error::JournalError;
use super::event::EVENT_BYTES;
use super::frame::SECTOR;
use super::home_disk::INDEX_BYTES;
use super::limits::{FEW_BYTES, Limits};
use super::record::{Header, Record};
use super::superblock::{FIRST_BATCH_AT, SEAL_AT, Start};

const BLOCK: usize = ATOMIC_BYTES as usize;
/// Memory that is kept for the next batches, in bytes, unless a single batch takes more.
const SPARE_BYTES: usize = 4 << 20;

/// Bytes of the journal's file for a device of `sectors` sectors: the batches up to a checkpoint, the batch that forces
/// it, and the batch that is collected during that commit.
pub fn room_bytes(sectors: u64, has_disk: bool) -> u64 {
    let limits = Limits::default();
    FIRST_BATCH_AT + limits.journal_limit(sectors) + 2 * batch_bytes(&limits, sectors, has_disk)
}

/// Approximate size of the largest batch in bytes. Its last event may exceed the limits.
pub fn batch_bytes(limits: &Limits, sectors: u64, has_disk: bool) -> u64 {
    let of_disk = if has_disk { (limits.disk_sectors as u64).min(sectors) } else { 0 };
    let exact = limits.events as u64 * EVENT_BYTES as u64 + of_disk * (SECTOR + INDEX_BYTES) as u64 + FEW_BYTES as u64;
    (exact + exact / 4).next_multiple_of(1 << 16)
}

/// The journal.
pub struct Journal {
    file: File,
    /// The file with the seal.
    seal: File,
    seed: u32,
    /// Place of the first needed batch, and total bytes of all needed batches.
    start: u64,
    used: u64,
    /// End of the latest batch, and the number of the next.
    offset: u64,
    next: u64,
    /// End of the allocated space in the file.
    room_end: u64,
    /// End of the last batch before the journal wrapped to the beginning of the file.
    top: u64,
    /// Place where batches continue at the end of the file because there was no space between those at its beginning
    /// and the first one. The batches at the beginning precede them and are still needed.
    tail: Option<u64>,
    /// A lower bound of the sequence numbers of later batches: the last one in use before the latest batch, or more.
    sequence: u64,
    /// The batch that was read last.
    record: Record,
    /// Memory of written batches.
    spare: Vec<Record>,
}

impl Journal {
    /// A journal that begins at `first`, in a file with `room_bytes` allocated bytes, with its seal in another file.
    pub fn new(file: File, seal: File, seed: u32, first: Start, room_bytes: u64) -> Self {
        let Start { batch: next, offset: start } = first;
        let (record, spare) = (Record::default(), Vec::new());
        let (used, offset, room_end, top, tail, sequence) = (0, start, room_bytes, start, None, 0);
        Self { file, seal, seed, start, used, offset, next, room_end, top, tail, sequence, record, spare }
    }

    /// Reading continues after this sequence number. Batches with lower ones are not valid.
    pub fn begin_after(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Total bytes of the needed batches.
    pub fn bytes(&self) -> u64 {
        self.used
    }

    /// End of the latest batch in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The start of the journal if no batch so far were needed.
    pub fn end(&self) -> Start {
        Start { batch: self.next, offset: self.offset }
    }

    /// Whether the latest batch is at a lower offset than the first one.
    fn is_wrapped(&self) -> bool {
        self.offset <= self.start && self.used > 0
    }

    /// The place for a batch of `batch_bytes` bytes.
    fn place(&self, batch_bytes: u64) -> u64 {
        let is_wrapped = self.is_wrapped();
        let limit = if is_wrapped { self.start } else { self.room_end };
        if self.offset + batch_bytes <= limit {
            self.offset
        } else if !is_wrapped && self.tail.is_none() && FIRST_BATCH_AT + batch_bytes <= self.start {
            FIRST_BATCH_AT
        } else if is_wrapped {
            self.top
        } else {
            self.offset
        }
    }

    /// Whether there is no space for a batch of `batch_bytes` bytes.
    #[inline]
    pub fn lacks_room(&self, batch_bytes: u64) -> bool {
        self.place(batch_bytes) + batch_bytes > self.room_end
    }

    /// Allocates space for a batch of `batch_bytes` bytes.
    ///
    /// # Errors
    /// There is too little space.
    pub fn make_room(&mut self, batch_bytes: u64) -> io::Result<()> {
        let end = self.place(batch_bytes) + batch_bytes;
        if end > self.room_end {
            self.file.allocate(self.room_end, end - self.room_end)?;
            self.room_end = end;
        }
        Ok(())
    }

    /// The journal's file, to be synced after a write.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Appends a batch. `under_way` of the batches before it are not durable yet. The batch is durable after a sync of
    /// its file, and counts only after [`Journal::seal`].
    ///
    /// # Errors
    /// The batch may not have been written. After an error that [`is_full`] it can be written again.
    pub fn write(&mut self, batch: &Batch, under_way: usize) -> io::Result<Record> {
        let mut record = self.spare.pop().unwrap_or_default();
        record.encode(batch, self.next, under_way, self.seed);
        let bytes = record.header().bytes();
        let at = self.place(bytes);
        match self.file.write_at(at, record.bytes()) {
            Ok(()) => {
                self.passed(at, bytes);
                Ok(record)
            }
            Err(error) => {
                self.spare.push(record);
                Err(error)
            }
        }
    }

    /// Returns the memory of a batch, for later batches unless there is already enough.
    pub fn recycle(&mut self, record: Record) {
        if self.spare.is_empty() || self.memory_bytes() + record.memory_bytes() <= SPARE_BYTES {
            self.spare.push(record);
        }
    }

    /// Notes that a batch is at this place.
    fn passed(&mut self, at: u64, bytes: u64) {
        if at > self.offset && self.is_wrapped() {
            self.tail = Some(at);
        } else if at < self.offset {
            self.top = self.offset;
        }
        self.offset = at + bytes;
        self.room_end = self.room_end.max(self.offset);
        self.used += bytes;
        self.next += 1;
    }

    /// Seals a batch that is durable together with all data it lists and all earlier batches.
    ///
    /// # Errors
    /// The seal may not have been written.
    pub fn seal(&mut self, record: &Record) -> io::Result<()> {
        let mut seal = [0; BLOCK];
        record.header().encode_seal(&mut seal, self.seed);
        self.seal.write_at(SEAL_AT, &seal)
    }

    /// The batch that was read last.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The header at these bytes, if it belongs to the next batch and the file is long enough.
    fn expected(&self, bytes: &[u8], at: u64, length: u64) -> Option<Header> {
        Header::decode(bytes, self.seed).filter(|header| self.is_next(header, at, length))
    }

    /// Whether a header belongs to the next batch, and the file is long enough.
    fn is_next(&self, header: &Header, at: u64, length: u64) -> bool {
        header.batch == self.next
            && !header.is_seal()
            && header.sequence >= self.sequence
            && header.bytes() <= length.saturating_sub(at)
    }

    /// Reads the next batch; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, or a batch is damaged.
    pub fn read_next(&mut self) -> Result<Option<Header>, JournalError> {
        let length = self.file.length()?;
        let behind = self.read_batch(self.offset, length)?;
        if behind.is_some() {
            return Ok(behind);
        }
        match self.look_behind(length)? {
            Some(at) => Ok(self.read_batch(at, length)?),
            None => Ok(None),
        }
    }

    /// Reads the next batch if it is complete at this place.
    fn read_batch(&mut self, at: u64, length: u64) -> io::Result<Option<Header>> {
        let mut head = Buffer::new(BLOCK);
        self.file.read_at(at, head.bytes_mut())?;
        let Some(header) = self.expected(head.bytes(), at, length) else { return Ok(None) };
        if !self.read_whole(&header, at)? {
            return Ok(None);
        }
        self.passed(at, header.bytes());
        self.sequence = header.sequence;
        Ok(Some(header))
    }

    /// Reads a batch with this header. Returns whether it is complete.
    fn read_whole(&mut self, header: &Header, at: u64) -> io::Result<bool> {
        self.file.read_at(at, self.record.begin(header))?;
        Ok(self.record.is_whole(self.seed))
    }

    /// Searches the rest of the file for the next batch, and for evidence that it had been durable: its own seal or
    /// that of a later batch, or a later batch that was written after that.
    fn look_behind(&mut self, length: u64) -> Result<Option<u64>, JournalError> {
        const CHUNK: u64 = 1 << 20;
        let mut chunk = Buffer::new(length.min(CHUNK).next_multiple_of(ATOMIC_BYTES) as usize);
        let (mut at, mut is_damaged) = (FIRST_BATCH_AT, false);
        while at < length {
            self.file.read_at(at, chunk.bytes_mut())?;
            let seed = self.seed;
            let headers = chunk.bytes().chunks_exact(BLOCK).map(|block| Header::decode(block, seed));
            for (header, at) in headers.zip((at..).step_by(BLOCK)).filter_map(|(header, at)| Some((header?, at))) {
                is_damaged |= header.durable_before() > self.next;
                if at != self.offset && self.is_next(&header, at, length) && self.read_whole(&header, at)? {
                    return Ok(Some(at));
                }
            }
            at += CHUNK;
        }
        let mut seal = [0; BLOCK];
        self.seal.read_at(SEAL_AT, &mut seal)?;
        is_damaged |= Header::decode(&seal, self.seed).is_some_and(|seal| seal.is_seal() && seal.batch >= self.next);
        if is_damaged { Err(JournalError::Damaged { batch: self.next, offset: self.offset }) } else { Ok(None) }
    }

    /// The start of the journal after a checkpoint that contains its first `bytes` bytes, up to `end`. If that is all
    /// of it, it starts at the beginning of the file.
    pub fn start_after(&self, end: Start, bytes: u64) -> Start {
        if self.used == bytes { Start::of_file(self.next) } else { end }
    }

    /// A checkpoint contains the first `bytes` bytes, so the journal now starts at `start`.
    pub fn start_at(&mut self, start: Start, bytes: u64) {
        self.used -= bytes;
        // The batches at the beginning of the file are needed as long as one before them is.
        self.tail = self.tail.filter(|&tail| (self.start..=tail).contains(&start.offset) && self.used > 0);
        self.start = start.offset;
        if self.used == 0 {
            self.offset = start.offset;
        }
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.record.memory_bytes() + self.spare.iter().map(Record::memory_bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::backing::{Access, Storage};
    use crate::store::crash_backing::CrashStorage;
    use crate::store::event::Event;
    use crate::store::record::HEADER_BYTES;
    use bimetal_core::part::random::below;

    const ROOM: u64 = FIRST_BATCH_AT + 12 * 512;

    fn open([file, seal]: &[File; 2], start: Start) -> Journal {
        Journal::new(Arc::clone(file), Arc::clone(seal), 7, start, ROOM)
    }

    fn append(journal: &mut Journal, events: usize) {
        let batch = Batch::of_events(journal.next, vec![Event::Idle { pages: 1 }; events]);
        journal.make_room((HEADER_BYTES + events * EVENT_BYTES).next_multiple_of(BLOCK) as u64).unwrap();
        let record = journal.write(&batch, 0).unwrap();
        journal.seal(&record).unwrap();
        journal.recycle(record);
    }

    /// The numbers of the readable batches, and the journal at its end.
    fn read(files: &[File; 2], start: Start) -> (Vec<u64>, Journal) {
        let mut journal = open(files, start);
        let mut numbers = Vec::new();
        while let Some(header) = journal.read_next().unwrap() {
            numbers.push(header.batch);
        }
        (numbers, journal)
    }

    /// Appends a batch of one event. `under_way` of the batches before it are not durable.
    fn append_in_flight(journal: &mut Journal, sequence: u64, under_way: usize) {
        let mut batch = Batch::of_events(journal.next, vec![Event::Idle { pages: 1 }]);
        batch.first_sequence = sequence;
        journal.write(&batch, under_way).unwrap();
    }

    #[test]
    fn room_behind_the_others_is_taken_once() {
        let storage = CrashStorage::new();
        let files =
            ["journal", "superblock"].map(|name| File::from(storage.open(name, Access::Create, false).unwrap()));
        let mut journal = open(&files, Start::of_file(1));
        let mut checkpoint = (Start::of_file(1), 0);
        // A checkpoint contains the batches of the first half of the file. More batches follow up to its end and from
        // its beginning.
        while !journal.is_wrapped() {
            append(&mut journal, 1);
            if journal.offset() == FIRST_BATCH_AT + 6 * 512 {
                checkpoint = (journal.end(), journal.bytes());
                journal.start_at(checkpoint.0, checkpoint.1);
            }
        }
        // No batch of this size fits between those at the beginning and the first one.
        let bytes = 6 * 512;
        assert!(journal.lacks_room(bytes));
        journal.make_room(bytes).unwrap();
        let room_end = journal.room_end;
        assert!(!journal.lacks_room(bytes), "a write would take room again");
        journal.make_room(bytes).unwrap();
        assert_eq!(journal.room_end, room_end);
        append(&mut journal, 5 * 512 / EVENT_BYTES);
        assert!(journal.tail.is_some() && journal.room_end == room_end);
        let batches = journal.next - checkpoint.0.batch;
        assert_eq!(read(&files, checkpoint.0).0.len() as u64, batches, "all are found");
    }

    #[test]
    fn a_torn_batch_ends_the_journal_unless_it_was_durable() {
        let storage = CrashStorage::new();
        let files =
            ["journal", "superblock"].map(|name| File::from(storage.open(name, Access::Create, false).unwrap()));
        let start = Start::of_file(1);
        let mut journal = open(&files, start);
        append(&mut journal, 1);
        (0..3).for_each(|under_way| append_in_flight(&mut journal, 0, under_way));
        assert_eq!(read(&files, start).0, [1, 2, 3, 4]);
        files[0].write_at(FIRST_BATCH_AT + 512 + 64, &[9]).unwrap();
        let (numbers, mut journal) = read(&files, start);
        assert_eq!(numbers, [1], "those behind it never happened");
        // The old batches are still there, behind a new batch of the same length.
        append_in_flight(&mut journal, 1, 0);
        let (numbers, mut journal) = read(&files, start);
        assert_eq!(numbers, [1, 2]);
        append_in_flight(&mut journal, 1, 1);
        append_in_flight(&mut journal, 1, 1);
        files[0].write_at(FIRST_BATCH_AT + 512 + 64, &[9]).unwrap();
        let damaged = open(&files, Start { batch: 2, offset: FIRST_BATCH_AT + 512 }).read_next();
        assert!(
            matches!(damaged, Err(JournalError::Damaged { batch: 2, .. })),
            "the last one was written when it was durable"
        );
    }

    #[test]
    fn batches_are_found_wherever_there_was_room_for_them() {
        let (mut wrapped, mut split) = (0, 0);
        for seed in 1..20 {
            let (storage, mut random) = (CrashStorage::new(), seed);
            let open_file = |name| File::from(storage.open(name, Access::Create, false).unwrap());
            let files = ["journal", "superblock"].map(open_file);
            let mut start = Start::of_file(1);
            let (mut journal, mut mark) = (open(&files, start), None);
            for _ in 0..200 {
                match below(&mut random, 8) {
                    0 if mark.is_none() => mark = Some((journal.end(), journal.bytes())),
                    1 => {
                        if let Some((end, bytes)) = mark.take() {
                            start = journal.start_after(end, bytes);
                            journal.start_at(start, bytes);
                        }
                    }
                    2 => {
                        // A crash: the journal continues from the readable batches.
                        (journal, mark) = (read(&files, start).1, None);
                    }
                    _ => append(&mut journal, 1 + below(&mut random, 90) as usize),
                }
                let (numbers, again) = read(&files, start);
                assert_eq!(numbers, (start.batch..journal.next).collect::<Vec<_>>(), "seed {seed}");
                assert_eq!((again.used, again.offset), (journal.used, journal.offset), "seed {seed}");
                wrapped += u32::from(journal.is_wrapped());
                split += u32::from(journal.tail.is_some());
            }
        }
        assert!(wrapped > 20 && split > 20, "{wrapped}, {split}");
    }
}
