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
//! 44   u32   events of it that happened before the batch before it was durable
//! 48   u32   runs of pages that it has
//! 52   u32   bytes of them
//! 56         zeros
//! 64         events, 16 bytes each
//!            index of the runs, 16 bytes each: u64 first byte in the file of the region, u32 bytes, u8 region, 3 zeros
//!            index of the sectors, 16 bytes each, in ascending order
//!            zeros up to a multiple of 512
//!            the sectors, 512 bytes each
//!            the runs
//! ```
//!
//! The file begins with a label; batches follow from byte 4,096 on, each a multiple of 512 bytes. The superblock says where the first
//! one is that is needed. A batch lies behind the one before it, or, where there is no room for it, at the beginning of the file, if what
//! is there is needed no more, or at the end.
//!
//! A batch is written with one write and then synced; it happened if it is whole. After that its *seal* is written, the header alone with the magic `BMJS`, which says that it was durable: it tells a batch that was
//! torn by a crash from one that was damaged later. It is in the file of the superblock, in the place of the seal before
//! it, so that whatever cuts the journal short leaves it alone.
//!
//! A batch that programmed a few pages has them, so that one sync makes all of it durable: the files of the regions are synced before
//! the journal starts again. One that programmed more is written when they are durable where they belong.
//!
//! The file has room for all batches up to a checkpoint from the beginning, so that a full file system keeps no commit from
//! being made.

use std::io;

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
const BLOCK: usize = ATOMIC_BYTES as usize;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Events of it that happened while the batch before it was being made durable: only then were slots free again that this one
    /// waited for.
    pub overlap: u32,
    /// Runs of pages that it has, and their bytes.
    pub runs: u32,
    /// See there.
    pub run_bytes: u32,
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
        put_u32(bytes, 44, self.overlap);
        put_u32(bytes, 48, self.runs);
        put_u32(bytes, 52, self.run_bytes);
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
            overlap: u32_at(bytes, 44),
            runs: u32_at(bytes, 48),
            run_bytes: u32_at(bytes, 52),
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

    fn data_at(&self) -> usize {
        (self.index_at() + self.sectors as usize * INDEX_BYTES).next_multiple_of(BLOCK)
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        (self.runs_at() + self.run_bytes as usize) as u64
    }

    fn runs_at(&self) -> usize {
        self.data_at() + self.sectors as usize * SECTOR
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
    /// A batch, being written or read.
    batch: Buffer,
}

impl Journal {
    /// A journal in a file that has so much room, with its seal in another file, that begins there.
    pub fn new(file: File, seal: File, seed: u32, first: Start, room_bytes: u64) -> Self {
        let batch = Buffer::new(BLOCK);
        let Start { batch: next, offset: start } = first;
        Self { file, seal, seed, start, used: 0, offset: start, next, room_end: room_bytes, tail: None, batch }
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

    /// Appends a batch, which is not durable before its file was synced, and not part of the journal before [`Journal::seal`].
    ///
    /// # Errors
    /// It may not have been written. After one that [`is_full`] it can be written again.
    pub fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let sectors = batch.disk.as_ref().map_or(0, |disk| disk.len()) as u32;
        let mut header = Header {
            batch: self.next,
            first_event: batch.first_event,
            sequence: batch.first_sequence,
            events: batch.events.len() as u32,
            sectors,
            overlap: batch.overlap,
            runs: batch.runs().count() as u32,
            run_bytes: batch.runs().map(|(_, run)| run.frames().len()).sum::<usize>() as u32,
            body_sum: 0,
            is_seal: false,
        };
        self.batch.resize(header.bytes() as usize);
        let bytes = self.batch.bytes_mut();
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
        let index = &mut head[header.index_at()..];
        index[sectors as usize * INDEX_BYTES..].fill(0);
        if let Some(disk) = &batch.disk {
            disk.encode(&mut index[..sectors as usize * INDEX_BYTES], data);
        }
        header.body_sum = crc32c_append(self.seed, &bytes[HEADER_BYTES..]);
        header.encode(bytes, self.seed);
        self.file.write_at(self.place(header.bytes()), self.batch.bytes())
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

    /// The batch that was written last is durable, and all that it lists.
    ///
    /// # Errors
    /// That it was cannot be written down.
    pub fn seal(&mut self) -> io::Result<()> {
        let Some(header) = Header::decode(self.batch.bytes(), self.seed) else { return Ok(()) };
        self.passed(self.place(header.bytes()), header.bytes());
        let mut seal = [0; BLOCK];
        Header { is_seal: true, ..header }.encode(&mut seal, self.seed);
        // To append it again would be to let its events happen twice.
        self.seal
            .write_at(SEAL_AT, &seal)
            .map_err(|error| if is_full(&error) { io::Error::other(error) } else { error })
    }

    /// Runs of pages of the batch that was last read: region, first byte in its file, frames.
    pub fn runs(&self) -> impl Iterator<Item = (u8, u64, &[u8])> {
        let header = Header::decode(self.batch.bytes(), self.seed);
        let (index, mut frames) = header.map_or((&[][..], &[][..]), |header| {
            let bytes = self.batch.bytes();
            (&bytes[header.run_index_at()..header.index_at()], &bytes[header.runs_at()..])
        });
        index.chunks_exact(RUN_INDEX_BYTES).map_while(move |entry| {
            let (run, rest) = frames.split_at_checked(u32_at(entry, 8) as usize)?;
            frames = rest;
            Some((entry[12], u64_at(entry, 0), run))
        })
    }

    /// The header of the batch that comes next, if it begins there and the file is so long.
    fn expected(&self, bytes: &[u8], at: u64, length: u64) -> Option<Header> {
        let header = Header::decode(bytes, self.seed).filter(|header| header.batch == self.next && !header.is_seal)?;
        (header.bytes() <= length.saturating_sub(at)).then_some(header)
    }

    fn is_whole(&self, header: &Header, bytes: &[u8]) -> bool {
        header.body_sum == crc32c_append(self.seed, &bytes[HEADER_BYTES..])
    }

    /// Index and data of the home disk in the batch that was last written or read.
    pub fn sectors(&self) -> (&[u8], &[u8]) {
        let bytes = self.batch.bytes();
        let Some(header) = Header::decode(bytes, self.seed) else { return (&[], &[]) };
        let index_end = header.index_at() + header.sectors as usize * INDEX_BYTES;
        (&bytes[header.index_at()..index_end], &bytes[header.data_at()..header.runs_at()])
    }

    /// The 16 bytes of each event of the batch that was last read.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let header = Header::decode(self.batch.bytes(), self.seed);
        let end = header.map_or(HEADER_BYTES, |header| header.run_index_at());
        self.batch.bytes()[HEADER_BYTES..end].chunks_exact(EVENT_BYTES)
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
        self.batch.resize(BLOCK);
        self.file.read_at(at, self.batch.bytes_mut())?;
        let Some(header) = self.expected(self.batch.bytes(), at, length) else { return Ok(None) };
        self.batch.resize(header.bytes() as usize);
        self.file.read_at(at, self.batch.bytes_mut())?;
        if !self.is_whole(&header, self.batch.bytes()) {
            return Ok(None);
        }
        self.passed(at, header.bytes());
        Ok(Some(header))
    }

    /// Looks for the next batch elsewhere, whole, and for what could not be there if there were none: a seal of it or of a later one, or
    /// a later batch.
    fn look_behind(&mut self, length: u64) -> Result<Option<u64>, JournalError> {
        const CHUNK: u64 = 1 << 20;
        let mut chunk = Buffer::new(length.min(CHUNK).next_multiple_of(ATOMIC_BYTES) as usize);
        let (mut at, mut is_damaged) = (FIRST_BATCH_AT, false);
        while at < length {
            self.file.read_at(at, chunk.bytes_mut())?;
            let seed = self.seed;
            let headers = chunk.bytes().chunks_exact(BLOCK).map(|block| Header::decode(block, seed));
            for (header, at) in headers.zip((at..).step_by(BLOCK)).filter_map(|(header, at)| Some((header?, at))) {
                is_damaged |= header.batch > self.next;
                if header.batch == self.next && at != self.offset && self.is_there(&header, at, length)? {
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

    /// Whether a batch with that header is there, whole.
    fn is_there(&mut self, header: &Header, at: u64, length: u64) -> io::Result<bool> {
        if header.is_seal || header.bytes() > length.saturating_sub(at) {
            return Ok(false);
        }
        self.batch.resize(header.bytes() as usize);
        self.file.read_at(at, self.batch.bytes_mut())?;
        Ok(self.is_whole(header, self.batch.bytes()))
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
        self.batch.capacity()
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
        journal.write(&batch).unwrap();
        journal.seal().unwrap();
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
