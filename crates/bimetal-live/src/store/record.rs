//! The format of a batch in the journal.
//!
//! ```text
//! 0    u32   CRC-32C of bytes 4 to 64, seeded with the store's number
//! 4    u32   magic `BMJB`
//! 8    u64   number of the batch, which is that of the previous batch plus 1
//! 16   u64   number of its first event
//! 24   u64   last sequence number in use before its first event
//! 32   u32   events
//! 36   u32   sectors of the home disk
//! 40   u32   CRC-32C of all that follows byte 64, seeded likewise
//! 44   u32   batches that became durable during its events
//! 48   u32   runs of pages in it
//! 52   u32   bytes of these runs
//! 56   u32   directly preceding batches that were not durable when it was written
//! 60   u32   1; in formats before 6 it is 0, and byte 44 is the number of events before the previous batch was durable
//! 64         events, 16 bytes each
//!            index of the runs, 16 bytes each: u64 first byte in the file of the region, u32 bytes, u8 region, 3 zeros
//!            index of the sectors, 16 bytes each, in ascending order
//!            for each batch that became durable meanwhile, oldest first: u32 number of this batch's events before that
//!            zeros up to a multiple of 512
//!            the sectors, 512 bytes each
//!            the runs
//! ```
//!
//! Its *seal* is the header alone, with the magic `BMJS`.

use std::ops::Range;

use super::backing::ATOMIC_BYTES;
use super::batch::Batch;
use super::bytes::{Buffer, put_u32, put_u64, u32_at, u64_at};
use super::crc32c::crc32c_append;
use super::event::EVENT_BYTES;
use super::frame::SECTOR;
use super::home_disk::INDEX_BYTES;

const BATCH: u32 = u32::from_le_bytes(*b"BMJB");
const SEAL: u32 = u32::from_le_bytes(*b"BMJS");
/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;
const RUN_INDEX_BYTES: usize = 16;
const RELEASE_BYTES: usize = 4;
const BLOCK: usize = ATOMIC_BYTES as usize;
/// The form of a batch; zero in formats before 6.
const FORM: u32 = 1;

/// The header of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Its number.
    pub batch: u64,
    /// Number of its first event.
    pub first_event: u64,
    /// Last sequence number in use before it.
    pub sequence: u64,
    /// Number of events.
    pub events: u32,
    /// Number of sectors of the home disk.
    pub sectors: u32,
    /// Number of batches that became durable during its events. Slots that waited for them became free only then. In a
    /// batch of form 0, which knows of one such batch only: the number of events before that moment.
    releases: u32,
    /// Runs of pages that it contains, and their bytes.
    pub runs: u32,
    /// See `runs`.
    pub run_bytes: u32,
    /// Number of directly preceding batches that were not durable when it was written.
    under_way: u32,
    form: u32,
    body_sum: u32,
    is_seal: bool,
}

impl Header {
    /// Writes the seal of the batch, which is as long as the smallest batch.
    pub fn encode_seal(&self, bytes: &mut [u8], seed: u32) {
        Self { is_seal: true, ..*self }.encode(bytes, seed);
    }

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

    /// Decodes the header of a batch or a seal, if the bytes begin with one.
    pub fn decode(bytes: &[u8], seed: u32) -> Option<Self> {
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

    /// Whether it is a seal.
    pub fn is_seal(&self) -> bool {
        self.is_seal
    }

    /// All batches before this number were durable when it was written.
    pub fn durable_before(&self) -> u64 {
        self.batch.saturating_sub(self.under_way.into())
    }

    /// Number of releases listed after its indices.
    fn listed(&self) -> usize {
        if self.form == 0 { 0 } else { self.releases as usize }
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
        (self.releases_at() + self.listed() * RELEASE_BYTES).next_multiple_of(BLOCK)
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        (self.runs_at() + self.run_bytes as usize) as u64
    }

    fn runs_at(&self) -> usize {
        self.data_at() + self.sectors as usize * SECTOR
    }
}

/// A batch as stored in the file.
#[derive(Default)]
pub struct Record {
    header: Header,
    bytes: Buffer,
}

impl Record {
    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Prepares it for a batch with this header. Returns the buffer for all its bytes, which the caller reads.
    pub fn begin(&mut self, header: &Header) -> &mut [u8] {
        self.header = *header;
        self.bytes.resize(header.bytes() as usize);
        self.bytes.bytes_mut()
    }

    /// Whether the bytes match the header's checksum.
    pub fn is_whole(&self, seed: u32) -> bool {
        self.header.body_sum == crc32c_append(seed, &self.bytes()[HEADER_BYTES..])
    }

    /// A part of it; empty if it was not read.
    fn part(&self, range: Range<usize>) -> &[u8] {
        self.bytes.bytes().get(range).unwrap_or_default()
    }

    /// The 16 bytes of each event.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.part(HEADER_BYTES..self.header.run_index_at()).chunks_exact(EVENT_BYTES)
    }

    /// For each batch that became durable meanwhile, in order: the number of this batch's events before that moment.
    pub fn releases(&self) -> impl Iterator<Item = u32> {
        let of_one_before = (self.header.form == 0).then_some(self.header.releases);
        let from = self.header.releases_at();
        let list = self.part(from..from + self.header.listed() * RELEASE_BYTES).chunks_exact(RELEASE_BYTES);
        of_one_before.into_iter().chain(list.map(|entry| u32_at(entry, 0)))
    }

    /// Index and data of home-disk sectors.
    pub fn sectors(&self) -> (&[u8], &[u8]) {
        let index = self.part(self.header.index_at()..self.header.releases_at());
        (index, self.part(self.header.data_at()..self.header.runs_at()))
    }

    /// Runs of pages: region, offset in its file, frames.
    pub fn runs(&self) -> impl Iterator<Item = (u8, u64, &[u8])> {
        let index = self.part(self.header.run_index_at()..self.header.index_at());
        let mut frames = self.part(self.header.runs_at()..self.bytes().len());
        index.chunks_exact(RUN_INDEX_BYTES).map_while(move |entry| {
            let (run, rest) = frames.split_at_checked(u32_at(entry, 8) as usize)?;
            frames = rest;
            Some((entry[12], u64_at(entry, 0), run))
        })
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Encodes a batch with this number. `under_way` of the batches before it are not durable.
    pub fn encode(&mut self, batch: &Batch, number: u64, under_way: usize, seed: u32) {
        self.header = Header {
            batch: number,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::event::Event;

    #[test]
    fn batches_of_formats_before_6_have_one_release() {
        let mut batch = Batch::of_events(1, vec![Event::Idle { pages: 1 }]);
        batch.releases = vec![0, 0, 1];
        let mut record = Record::default();
        record.encode(&batch, 1, 0, 7);
        assert!(record.is_whole(7) && !record.is_whole(8));
        assert_eq!(record.releases().collect::<Vec<_>>(), [0, 0, 1]);
        let mut bytes = record.bytes().to_vec();
        Header { form: 0, releases: 1, ..record.header }.encode(&mut bytes, 7);
        let header = Header::decode(&bytes, 7).unwrap();
        record.begin(&header).copy_from_slice(&bytes);
        assert!(record.is_whole(7));
        assert_eq!((record.events().len(), record.releases().collect::<Vec<_>>()), (1, vec![1]));
    }
}
