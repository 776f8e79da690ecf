//! The journal: what happened since the last checkpoint, in batches of which each is a commit.
//!
//! ```text
//! 0    u32   CRC-32C of bytes 4 to 64, seeded with the store's number
//! 4    u32   magic `BMJB`
//! 8    u64   number of the batch, one more than that of the batch before
//! 16   u64   number of its first event
//! 24   u64   last sequence number in use before its first event
//! 32   u32   events
//! 36   u32   sectors of the home disk
//! 40   u32   CRC-32C of all that follows byte 64, seeded likewise
//! 44   u32   batches that became durable while its events happened
//! 48   u32   runs of pages that it has
//! 52   u32   bytes of them
//! 56   u32   batches right before it that were not durable when it was written
//! 60   u32   1; in formats before 6 zero, and byte 44 has the events of it that happened before the batch before it was durable
//! 64         events, 16 bytes each
//!            index of the runs, 16 bytes each: u64 first byte in the file of the region, u32 bytes, u8 region, 3 zeros
//!            index of the sectors, 16 bytes each, in ascending order
//!            for each batch that became durable meanwhile, oldest first: u32 events of this batch that had happened by then
//!            zeros up to a multiple of 512
//!            the sectors, 512 bytes each
//!            the runs
//! ```
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
use std::ops::Range;

use super::backing::{ATOMIC_BYTES, File, is_full};
use super::batch::Batch;
use super::bytes::{Buffer, put_u32, put_u64, u32_at, u64_at};
use super::crc32c::crc32c_append;
use super::error::JournalError;
use super::event::EVENT_BYTES;
use super::frame::SECTOR;
use super::home_disk::INDEX_BYTES;
use super::limits::{FEW_BYTES, Limits};
use super::superblock::{FIRST_BATCH_AT, SEAL_AT, Start};

const BATCH: u32 = u32::from_le_bytes(*b"BMJB");
const SEAL: u32 = u32::from_le_bytes(*b"BMJS");
const HEADER_BYTES: usize = 64;
const RUN_INDEX_BYTES: usize = 16;
const RELEASE_BYTES: usize = 4;
const BLOCK: usize = ATOMIC_BYTES as usize;
/// What byte 60 of a batch has.
const FORM: u32 = 1;

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

/// What a batch says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Its number.
    pub batch: u64,
    /// Number of its first event.
    pub first_event: u64,
    /// Last sequence number in use before it.
    pub sequence: u64,
    /// How many events.
    pub events: u32,
    /// How many sectors of the home disk.
    pub sectors: u32,
    /// Batches that became durable while its events happened: only then were slots free again that wait for them. In a batch without
    /// form, which knows of one batch only, the events that happened before.
    releases: u32,
    /// Runs of pages that it has, and their bytes.
    pub runs: u32,
    /// See there.
    pub run_bytes: u32,
    /// Batches right before it that were not durable when it was written.
    under_way: u32,
    form: u32,
    body_sum: u32,
    is_seal: bool,
}

impl Header {
    fn encode(&self, bytes: &mut [u8], seed: u32) {
        bytes[..HEADER_BYTES].fill(0);
        put_u32(bytes, 4, if self.is_seal { SEAL } else { BATCH });
        put_u64(bytes, 8, self.batch);
        put_u64(bytes, 16, self.first_event);
        put_u64(bytes, 24, self.sequence);
        put_u32(bytes, 32, self.events);
        put_u32(bytes, 36, self.sectors);
        put_u32(bytes, 40, self.body_sum);
        put_u32(bytes, 44, self.releases);
        put_u32(bytes, 48, self.runs);
        put_u32(bytes, 52, self.run_bytes);
        put_u32(bytes, 56, self.under_way);
        put_u32(bytes, 60, self.form);
        let sum = crc32c_append(seed, &bytes[4..HEADER_BYTES]);
        put_u32(bytes, 0, sum);
    }

    fn decode(bytes: &[u8], seed: u32) -> Option<Self> {
        let magic = u32_at(bytes, 4);
        if magic != BATCH && magic != SEAL || u32_at(bytes, 0) != crc32c_append(seed, &bytes[4..HEADER_BYTES]) {
            return None;
        }
        Some(Self {
            batch: u64_at(bytes, 8),
            first_event: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            events: u32_at(bytes, 32),
            sectors: u32_at(bytes, 36),
            releases: u32_at(bytes, 44),
            runs: u32_at(bytes, 48),
            run_bytes: u32_at(bytes, 52),
            under_way: u32_at(bytes, 56),
            form: u32_at(bytes, 60),
            body_sum: u32_at(bytes, 40),
            is_seal: magic == SEAL,
        })
    }

    fn run_index_at(&self) -> usize {
        HEADER_BYTES + self.events as usize * EVENT_BYTES
    }

    fn index_at(&self) -> usize {
        self.run_index_at() + self.runs as usize * RUN_INDEX_BYTES
    }

    fn releases_at(&self) -> usize {
        self.index_at() + self.sectors as usize * INDEX_BYTES
    }

    fn data_at(&self) -> usize {
        let releases = if self.form == 0 { 0 } else { self.releases as usize };
        (self.releases_at() + releases * RELEASE_BYTES).next_multiple_of(BLOCK)
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        (self.runs_at() + self.run_bytes as usize) as u64
    }

    fn runs_at(&self) -> usize {
        self.data_at() + self.sectors as usize * SECTOR
    }
}

/// A batch as it is in the file.
#[derive(Default)]
pub struct Record {
    header: Header,
    bytes: Buffer,
}

impl Record {
    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// A part of it; nothing of one that was not read.
    fn part(&self, range: Range<usize>) -> &[u8] {
        self.bytes.bytes().get(range).unwrap_or_default()
    }

    /// The 16 bytes of each event.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.part(HEADER_BYTES..self.header.run_index_at()).chunks_exact(EVENT_BYTES)
    }

    /// For each batch that became durable meanwhile, in their order, the events of this one that had happened by then.
    pub fn releases(&self) -> impl Iterator<Item = u32> {
        let of_one_before = (self.header.form == 0).then_some(self.header.releases);
        let listed = if self.header.form == 0 { 0 } else { self.header.releases as usize };
        let from = self.header.releases_at();
        let list = self.part(from..from + listed * RELEASE_BYTES).chunks_exact(RELEASE_BYTES);
        of_one_before.into_iter().chain(list.map(|entry| u32_at(entry, 0)))
    }

    /// Index and data of the home disk.
    pub fn sectors(&self) -> (&[u8], &[u8]) {
        let index = self.part(self.header.index_at()..self.header.releases_at());
        (index, self.part(self.header.data_at()..self.header.runs_at()))
    }

    /// Runs of pages: region, first byte in its file, frames.
    pub fn runs(&self) -> impl Iterator<Item = (u8, u64, &[u8])> {
        let index = self.part(self.header.run_index_at()..self.header.index_at());
        let mut frames = self.part(self.header.runs_at()..self.bytes.bytes().len());
        index.chunks_exact(RUN_INDEX_BYTES).map_while(move |entry| {
            let (run, rest) = frames.split_at_checked(u32_at(entry, 8) as usize)?;
            frames = rest;
            Some((entry[12], u64_at(entry, 0), run))
        })
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Writes a batch to it, of which the header has the numbers.
    fn encode(&mut self, batch: &Batch, seed: u32) {
        let header = &mut self.header;
        self.bytes.resize(header.bytes() as usize);
        let bytes = self.bytes.bytes_mut();
        for (event, bytes) in batch.events.iter().zip(bytes[HEADER_BYTES..].chunks_exact_mut(EVENT_BYTES)) {
            event.encode(bytes);
        }
        for ((region, run), bytes) in batch.runs().zip(bytes[header.run_index_at()..].chunks_exact_mut(RUN_INDEX_BYTES))
        {
            put_u64(bytes, 0, run.offset());
            put_u32(bytes, 8, run.frames().len() as u32);
            put_u32(bytes, 12, region.into());
        }
        let mut runs = &mut bytes[header.runs_at()..];
        for (_, run) in batch.runs() {
            let (place, rest) = runs.split_at_mut(run.frames().len());
            place.copy_from_slice(run.frames());
            runs = rest;
        }
        let (head, data) = bytes.split_at_mut(header.data_at());
        let (index, releases) = head[header.index_at()..].split_at_mut(header.sectors as usize * INDEX_BYTES);
        releases.fill(0);
        for (&events, entry) in batch.releases.iter().zip(releases.chunks_exact_mut(RELEASE_BYTES)) {
            put_u32(entry, 0, events);
        }
        if let Some(disk) = &batch.disk {
            disk.encode(index, data);
        }
        header.body_sum = crc32c_append(seed, &bytes[HEADER_BYTES..]);
        header.encode(bytes, seed);
    }
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
        let (used, offset, room_end, tail, sequence) = (0, start, room_bytes, None, 0);
        Self { file, seal, seed, start, used, offset, next, room_end, tail, sequence, record, spare }
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

    /// Where a batch of so many bytes goes.
    fn place(&self, batch_bytes: u64) -> u64 {
        let is_wrapped = self.is_wrapped();
        let limit = if is_wrapped { self.start } else { self.room_end };
        if self.offset + batch_bytes <= limit {
            self.offset
        } else if !is_wrapped && self.tail.is_none() && FIRST_BATCH_AT + batch_bytes <= self.start {
            FIRST_BATCH_AT
        } else if is_wrapped {
            self.room_end
        } else {
            self.offset
        }
    }

    /// Whether there is no room for a batch of so many bytes.
    #[inline]
    pub fn lacks_room(&self, batch_bytes: u64) -> bool {
        self.place(batch_bytes) + batch_bytes > self.room_end
    }

    /// Takes room for a batch of so many bytes.
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
        record.header = Header {
            batch: self.next,
            first_event: batch.first_event,
            sequence: batch.first_sequence,
            events: batch.events.len() as u32,
            sectors: batch.disk.as_ref().map_or(0, |disk| disk.len()) as u32,
            releases: batch.releases.len() as u32,
            runs: batch.runs().count() as u32,
            run_bytes: batch.runs().map(|(_, run)| run.frames().len()).sum::<usize>() as u32,
            under_way: under_way as u32,
            form: FORM,
            body_sum: 0,
            is_seal: false,
        };
        record.encode(batch, self.seed);
        let (at, bytes) = (self.place(record.header.bytes()), record.header.bytes());
        match self.file.write_at(at, record.bytes.bytes()) {
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

    /// The memory of a batch is needed no more.
    pub fn recycle(&mut self, record: Record) {
        self.spare.push(record);
    }

    /// A batch lies there.
    fn passed(&mut self, at: u64, bytes: u64) {
        if at > self.offset && self.is_wrapped() {
            self.tail = Some(at);
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
        Header { is_seal: true, ..record.header }.encode(&mut seal, self.seed);
        // To append it again would be to let its events happen twice.
        self.seal
            .write_at(SEAL_AT, &seal)
            .map_err(|error| if is_full(&error) { io::Error::other(error) } else { error })
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
            && !header.is_seal
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
        let Record { header: read, bytes } = &mut self.record;
        *read = *header;
        bytes.resize(header.bytes() as usize);
        self.file.read_at(at, bytes.bytes_mut())?;
        Ok(header.body_sum == crc32c_append(self.seed, &bytes.bytes()[HEADER_BYTES..]))
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
                is_damaged |= header.batch.saturating_sub(header.under_way.into()) > self.next;
                if at != self.offset && self.is_next(&header, at, length) && self.read_whole(&header, at)? {
                    return Ok(Some(at));
                }
            }
            at += CHUNK;
        }
        let mut seal = [0; BLOCK];
        self.seal.read_at(SEAL_AT, &mut seal)?;
        is_damaged |= Header::decode(&seal, self.seed).is_some_and(|seal| seal.is_seal && seal.batch >= self.next);
        if is_damaged { Err(JournalError::Damaged { batch: self.next, offset: self.offset }) } else { Ok(None) }
    }

    /// Where it begins once a checkpoint holds its first `bytes` bytes, up to `end`. If that is all of it, it begins in the file anew.
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

    /// Appends a batch of one event, while so many before it are not durable.
    fn append_in_flight(journal: &mut Journal, sequence: u64, under_way: usize) {
        let mut batch = Batch::of_events(journal.next, vec![Event::Idle { pages: 1 }]);
        batch.first_sequence = sequence;
        journal.write(&batch, under_way).unwrap();
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
    fn batches_of_before_have_one_release() {
        let storage = CrashStorage::new();
        let files =
            ["journal", "superblock"].map(|name| File::from(storage.open(name, Access::Create, false).unwrap()));
        let mut journal = open(&files, Start::of_file(1));
        let mut batch = Batch::of_events(1, vec![Event::Idle { pages: 1 }]);
        batch.releases = vec![0, 0, 1];
        let record = journal.write(&batch, 0).unwrap();
        assert_eq!(record.releases().collect::<Vec<_>>(), [0, 0, 1]);
        let mut bytes = record.bytes.bytes().to_vec();
        Header { form: 0, releases: 1, ..record.header }.encode(&mut bytes, 7);
        files[0].write_at(FIRST_BATCH_AT, &bytes).unwrap();
        let mut journal = open(&files, Start::of_file(1));
        assert_eq!(journal.read_next().unwrap().map(|header| header.events), Some(1));
        assert_eq!(journal.record().releases().collect::<Vec<_>>(), [1]);
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
