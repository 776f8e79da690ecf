//! The journal: what happened since the last checkpoint, in batches of which each is a commit.
//!
//! [`record`](super::record) has the form of a batch.
//!
//! The file begins with a label; batches follow from byte 4,096 on, each a multiple of 512 bytes. The superblock says where the first
//! one is that is needed. A batch lies behind the one before it, or, where there is no room for it, at the beginning of the file, if what
//! is there is needed no more, or at the end.
//!
//! A batch is written with one write and then synced; it happened if it is whole, and all before it are. When all these are durable its
//! *seal* is written, the header alone with the magic `BMJS`, which says so: it tells a batch that was torn by a crash from one that was
//! damaged later. It is in the file of the superblock, in the place of the seal before it, so that whatever cuts the journal short
//! leaves it alone.
//!
//! Batches are written while ones before them are being synced. A crash may tear one of these and leave whole ones behind it, which
//! never happened. Each says how many before it were not durable yet: one that could not be there if the torn one had not been durable
//! tells of damage. Those that never happened stay in the file, behind batches that get the same numbers later. They are known by
//! their sequence numbers, as each opening goes on with higher ones: those of batches never descend.
//!
//! A batch that programmed a few pages has them, so that one sync makes all of it durable: the files of the regions are synced before
//! the journal starts again. One that programmed more is written when they are durable where they belong.
//!
//! The file has room for all batches up to a checkpoint from the beginning, so that a full file system keeps no commit from
//! being made.

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
/// Memory that is kept for the next batches, unless one of them takes more.
const SPARE_BYTES: usize = 4 << 20;

/// Bytes of the journal's file for a device of `sectors` sectors: the batches up to a checkpoint, the batch that forces it, and the batch
/// that is collected during that commit.
pub fn room_bytes(sectors: u64, has_disk: bool) -> u64 {
    let limits = Limits::default();
    FIRST_BATCH_AT + limits.journal_limit(sectors) + 2 * batch_bytes(&limits, sectors, has_disk)
}

/// Bytes of the largest batch, about: its last event may take it beyond the limits.
pub fn batch_bytes(limits: &Limits, sectors: u64, has_disk: bool) -> u64 {
    let of_disk = if has_disk { (limits.disk_sectors as u64).min(sectors) } else { 0 };
    let exact = limits.events as u64 * EVENT_BYTES as u64 + of_disk * (SECTOR + INDEX_BYTES) as u64 + FEW_BYTES as u64;
    (exact + exact / 4).next_multiple_of(1 << 16)
}

/// The journal.
pub struct Journal {
    file: File,
    /// The file that has the seal.
    seal: File,
    seed: u32,
    /// Where the first batch is that is needed, and the bytes of all that are.
    start: u64,
    used: u64,
    /// End of the latest batch, and the number of the next.
    offset: u64,
    next: u64,
    /// Up to where the file has room.
    room_end: u64,
    /// End of the batches before the one that went to the beginning of the file.
    top: u64,
    /// Where the batches behind all others begin, while ones at the beginning of the file are needed that come before these and after
    /// the first one: there was no room between.
    tail: Option<u64>,
    /// Last sequence number in use before the latest batch, or more: no batch behind it has a lower one.
    sequence: u64,
    /// The batch that was read last.
    record: Record,
    /// Memory of batches that were written.
    spare: Vec<Record>,
}

impl Journal {
    /// A journal in a file that has so much room, with its seal in another file, that begins there.
    pub fn new(file: File, seal: File, seed: u32, first: Start, room_bytes: u64) -> Self {
        let Start { batch: next, offset: start } = first;
        let (record, spare) = (Record::default(), Vec::new());
        let (used, offset, room_end, top, tail, sequence) = (0, start, room_bytes, start, None, 0);
        Self { file, seal, seed, start, used, offset, next, room_end, top, tail, sequence, record, spare }
    }

    /// What it is read for begins with this sequence number: batches of lower ones never happened.
    pub fn begin_after(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Bytes of the batches that are needed.
    pub fn bytes(&self) -> u64 {
        self.used
    }

    /// Where the latest batch ends in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where it would begin if no batch so far were needed.
    pub fn end(&self) -> Start {
        Start { batch: self.next, offset: self.offset }
    }

    /// Whether the latest batch lies before the first one.
    fn is_wrapped(&self) -> bool {
        self.offset <= self.start && self.used > 0
    }

    /// Where a batch of `batch_bytes` bytes goes.
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

    /// Whether there is no room for a batch of `batch_bytes` bytes.
    #[inline]
    pub fn lacks_room(&self, batch_bytes: u64) -> bool {
        self.place(batch_bytes) + batch_bytes > self.room_end
    }

    /// Takes room for a batch of `batch_bytes` bytes.
    ///
    /// # Errors
    /// There is too little.
    pub fn make_room(&mut self, batch_bytes: u64) -> io::Result<()> {
        let end = self.place(batch_bytes) + batch_bytes;
        if end > self.room_end {
            self.file.allocate(self.room_end, end - self.room_end)?;
            self.room_end = end;
        }
        Ok(())
    }

    /// Its file, to be synced after a write.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Appends a batch, of which `under_way` before it are not durable yet. It is not before its file was synced, and does not count
    /// before [`Journal::seal`].
    ///
    /// # Errors
    /// It may not have been written. After one that [`is_full`] it can be written again.
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

    /// The memory of a batch is needed no more. It serves the next batches, unless there is much of it already.
    pub fn recycle(&mut self, record: Record) {
        if self.spare.is_empty() || self.memory_bytes() + record.memory_bytes() <= SPARE_BYTES {
            self.spare.push(record);
        }
    }

    /// A batch lies there.
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

    /// A batch is durable, with all that it lists and all batches before it.
    ///
    /// # Errors
    /// That it was cannot be written down.
    pub fn seal(&mut self, record: &Record) -> io::Result<()> {
        let mut seal = [0; BLOCK];
        record.header().encode_seal(&mut seal, self.seed);
        self.seal.write_at(SEAL_AT, &seal)
    }

    /// The batch that was read last.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The header of the batch that comes next, if it begins there and the file is so long.
    fn expected(&self, bytes: &[u8], at: u64, length: u64) -> Option<Header> {
        Header::decode(bytes, self.seed).filter(|header| self.is_next(header, at, length))
    }

    /// Whether a header is that of the batch that comes next, and the file is so long.
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

    /// Reads the next batch if it lies there, whole.
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

    /// Reads a batch with that header. Returns whether it is whole.
    fn read_whole(&mut self, header: &Header, at: u64) -> io::Result<bool> {
        self.file.read_at(at, self.record.begin(header))?;
        Ok(self.record.is_whole(self.seed))
    }

    /// Looks for the next batch elsewhere, whole, and for what could not be there if it had never been durable: a seal of it or of a
    /// later one, or a later batch that was written when it was.
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

    /// Where it begins once a checkpoint holds its first `bytes` bytes, up to `end`. If that is all of it, it begins again at the start of the file.
    pub fn start_after(&self, end: Start, bytes: u64) -> Start {
        if self.used == bytes { Start::of_file(self.next) } else { end }
    }

    /// A checkpoint holds its first `bytes` bytes: it begins there.
    pub fn start_at(&mut self, start: Start, bytes: u64) {
        self.used -= bytes;
        // The batches at the beginning of the file are needed as long as one before them is.
        self.tail = self.tail.filter(|&tail| (self.start..=tail).contains(&start.offset) && self.used > 0);
        self.start = start.offset;
        if self.used == 0 {
            self.offset = start.offset;
        }
    }

    /// Bytes of memory that it takes.
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

    /// The numbers of the batches that are read, and where the journal goes on.
    fn read(files: &[File; 2], start: Start) -> (Vec<u64>, Journal) {
        let mut journal = open(files, start);
        let mut numbers = Vec::new();
        while let Some(header) = journal.read_next().unwrap() {
            numbers.push(header.batch);
        }
        (numbers, journal)
    }

    /// Appends a batch of one event, of which `under_way` before it are not durable.
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
        // The batches of the first half of the file are in a checkpoint, and others follow up to its end and from its beginning.
        while !journal.is_wrapped() {
            append(&mut journal, 1);
            if journal.offset() == FIRST_BATCH_AT + 6 * 512 {
                checkpoint = (journal.end(), journal.bytes());
                journal.start_at(checkpoint.0, checkpoint.1);
            }
        }
        // No batch of this size has room between those at the beginning and the first one.
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
        // They are still there, behind a batch of the same length.
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
                        // A crash: it goes on from what is read.
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
