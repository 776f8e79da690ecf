//! The home disk under a flash cache: a plain image of all sectors, and a file of checksums beside it.
//!
//! A disk is written in place, so what is written to it after a commit is kept in memory and read from there, goes into the
//! journal with the next commit, and is put in place only when that is durable. Recovery puts it there again. After a crash
//! the disk is therefore exactly what the last commit says, and a scheme over it needs no recovery of its own.
//!
//! Sectors of a batch for which the file system has no room stay in memory and in the journal, until there is some: the
//! journal does not start again before they are in place.
//!
//! The image has a label behind its last sector. The file of checksums has one at its beginning; each sector has 16 bytes in
//! it from byte 4,096 on:
//!
//! ```text
//! 0   u32   CRC-32C of sector number, kind, sequence number and data, seeded with the store's number
//! 4   u32   kind: 0 never written, 1 data, 2 nothing that the host wrote, 3 lost
//! 8   u64   sequence number of the host write
//! ```

use std::collections::BTreeMap;
use std::io;

use super::backing::is_full;
use super::bytes::{Buffer, put_u32, put_u64, u32_at, u64_at};
use super::files::File;
use super::frame::{SECTOR, Tag};
use super::label::Label;
use super::sector_table::SectorTable;

/// Bytes of a sector's checksum entry.
pub const SUM_BYTES: usize = 16;
/// Bytes of a sector's entry in the index of a journal batch: its number with the kind in the highest byte, and the
/// sequence number.
pub const INDEX_BYTES: usize = 16;

const KIND_SHIFT: u32 = 56;
const DATA: u32 = 1;
const NOTHING: u32 = 2;
const LOST: u32 = 3;

/// Where the entry of a sector is in the file of checksums.
fn sum_at(sector: u64) -> u64 {
    Label::BYTES as u64 + sector * SUM_BYTES as u64
}

/// A sector of a batch that there was no room for: its entry in the index, and its bytes.
type Waiting = ([u8; INDEX_BYTES], [u8; SECTOR]);

/// The disk.
pub struct HomeDisk {
    image: File,
    sums: File,
    seed: u32,
    is_dirty: bool,
    /// What was written since the last commit: the place of each sector, then number, tag and bytes by place.
    places: SectorTable,
    sectors: Vec<u64>,
    tags: Vec<Tag>,
    bytes: Buffer,
    order: Vec<u32>,
    entries: Vec<u8>,
    /// Sectors that are durable in the journal only.
    waiting: BTreeMap<u64, Waiting>,
}

impl HomeDisk {
    /// A disk in these files.
    pub fn new(image: File, sums: File, seed: u32) -> Self {
        Self {
            image,
            sums,
            seed,
            is_dirty: false,
            places: SectorTable::new(),
            sectors: Vec::new(),
            tags: Vec::new(),
            bytes: Buffer::default(),
            order: Vec::new(),
            entries: Vec::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Whether sectors wait for room to be put in place.
    #[inline]
    pub fn lacks_room(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sectors written since the last commit.
    pub fn pending(&self) -> usize {
        self.sectors.len()
    }

    /// Reads sectors that follow each other, with their tags.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn read(&mut self, sector: u64, bytes: &mut [u8], tags: &mut [Tag]) -> io::Result<()> {
        self.image.read_at(sector * SECTOR as u64, bytes)?;
        self.entries.resize(tags.len() * SUM_BYTES, 0);
        self.sums.read_at(sum_at(sector), &mut self.entries)?;
        let entries = self.entries.chunks_exact(SUM_BYTES);
        for (((tag, bytes), entry), sector) in
            tags.iter_mut().zip(bytes.chunks_exact_mut(SECTOR)).zip(entries).zip(sector..)
        {
            *tag = self.verify(sector, entry, bytes);
            if let Some((entry, waiting)) = self.waiting.get(&sector) {
                *tag = tag_of(entry);
                bytes.copy_from_slice(waiting);
            }
            if *tag == Tag::NONE {
                bytes.fill(0);
            }
            if let Some(place) = self.places.get(sector) {
                let place = place as usize;
                *tag = self.tags[place];
                bytes.copy_from_slice(&self.bytes.bytes()[place * SECTOR..(place + 1) * SECTOR]);
            }
        }
        Ok(())
    }

    fn verify(&self, sector: u64, entry: &[u8], bytes: &[u8]) -> Tag {
        let (sum, kind, sequence) = (u32_at(entry, 0), u32_at(entry, 4), u64_at(entry, 8));
        if entry.iter().all(|&byte| byte == 0) {
            return Tag::NONE;
        }
        match kind {
            _ if sum != self.checksum(sector, kind, sequence, bytes) => Tag::UNREADABLE,
            DATA => Tag::new(sector, sequence),
            NOTHING => Tag::NONE,
            _ => Tag::UNREADABLE,
        }
    }

    fn checksum(&self, sector: u64, kind: u32, sequence: u64, bytes: &[u8]) -> u32 {
        let mut head = [0; 20];
        put_u64(&mut head, 0, sector);
        put_u64(&mut head, 8, sequence);
        put_u32(&mut head, 16, kind);
        crc32c::crc32c_append(crc32c::crc32c_append(self.seed, &head), bytes)
    }

    /// Writes sectors that follow each other: to memory, until the next commit.
    pub fn write(&mut self, sector: u64, bytes: &[u8], tags: &[Tag]) {
        for ((bytes, &tag), sector) in bytes.chunks_exact(SECTOR).zip(tags).zip(sector..) {
            let fresh = self.sectors.len();
            let place = self.places.find_or_insert(sector, fresh as u32) as usize;
            if place == fresh {
                self.sectors.push(sector);
                self.tags.push(tag);
                self.bytes.resize((place + 1) * SECTOR);
            }
            // A sector of another place is never taken for this one.
            self.tags[place] = if tag == Tag::NONE || tag.is(sector) { tag } else { Tag::UNREADABLE };
            self.bytes.bytes_mut()[place * SECTOR..(place + 1) * SECTOR].copy_from_slice(bytes);
        }
    }

    /// Writes what is pending, in order of sectors, to a batch: an index, and the data.
    pub fn encode(&mut self, index: &mut [u8], data: &mut [u8]) {
        self.order.clear();
        self.order.extend(0..self.sectors.len() as u32);
        self.order.sort_unstable_by_key(|&place| self.sectors[place as usize]);
        let index = index.chunks_exact_mut(INDEX_BYTES);
        for ((&place, entry), data) in self.order.iter().zip(index).zip(data.chunks_exact_mut(SECTOR)) {
            let place = place as usize;
            let (kind, sequence) = match self.tags[place] {
                Tag::NONE => (NOTHING, 0),
                tag => tag.written().map_or((LOST, 0), |(_, sequence)| (DATA, sequence)),
            };
            put_u64(entry, 0, self.sectors[place] | u64::from(kind) << KIND_SHIFT);
            put_u64(entry, 8, sequence);
            data.copy_from_slice(&self.bytes.bytes()[place * SECTOR..(place + 1) * SECTOR]);
        }
    }

    /// Whether the index of a batch can be that of a disk of so many sectors: what is read from a file may be anything.
    pub fn can_be(index: &[u8], sectors: u64) -> bool {
        index.chunks_exact(INDEX_BYTES).all(|entry| numbered(entry, 0).0 < sectors)
    }

    /// Puts the sectors of a batch in place, or lets those wait for which there is no room. What is pending is among them, or
    /// there is none.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn apply(&mut self, index: &[u8], data: &[u8]) -> io::Result<()> {
        let count = index.len() / INDEX_BYTES;
        let mut first = 0;
        while first < count {
            let start = numbered(index, first).0;
            let end =
                (first + 1..count).find(|&at| numbered(index, at).0 != start + (at - first) as u64).unwrap_or(count);
            let (index, data) = (&index[first * INDEX_BYTES..end * INDEX_BYTES], &data[first * SECTOR..end * SECTOR]);
            match self.put(start, index, data) {
                Ok(()) => self.waited(start, index.len() / INDEX_BYTES),
                Err(error) if is_full(&error) => self.wait(start, index, data),
                Err(error) => return Err(error),
            }
            first = end;
        }
        self.places.clear();
        self.sectors.clear();
        self.tags.clear();
        Ok(())
    }

    /// Writes sectors that follow each other to their places.
    fn put(&mut self, start: u64, index: &[u8], data: &[u8]) -> io::Result<()> {
        self.entries.clear();
        for (at, data) in data.chunks_exact(SECTOR).enumerate() {
            let (sector, kind, sequence) = numbered(index, at);
            let sum = self.checksum(sector, kind, sequence, data);
            self.entries.extend(sum.to_le_bytes());
            self.entries.extend(kind.to_le_bytes());
            self.entries.extend(sequence.to_le_bytes());
        }
        self.is_dirty = true;
        self.image.write_at(start * SECTOR as u64, data)?;
        self.sums.write_at(sum_at(start), &self.entries)
    }

    fn wait(&mut self, start: u64, index: &[u8], data: &[u8]) {
        let sectors = index.chunks_exact(INDEX_BYTES).zip(data.chunks_exact(SECTOR)).zip(start..);
        for ((entry, bytes), sector) in sectors {
            let mut waiting = ([0; INDEX_BYTES], [0; SECTOR]);
            waiting.0.copy_from_slice(entry);
            waiting.1.copy_from_slice(bytes);
            self.waiting.insert(sector, waiting);
        }
    }

    /// Sectors are in place: older versions of them wait no more.
    fn waited(&mut self, start: u64, count: usize) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|sector, _| !(start..start + count as u64).contains(sector));
        }
    }

    /// Puts sectors in place that wait for room.
    ///
    /// # Errors
    /// There is no room for all of them yet, or the files cannot be written.
    pub fn place_waiting(&mut self) -> io::Result<()> {
        while let Some((&sector, &(entry, bytes))) = self.waiting.first_key_value() {
            self.put(sector, &entry, &bytes)?;
            self.waiting.remove(&sector);
        }
        Ok(())
    }

    /// Holds the sectors of a batch in memory, as if they had been written just now.
    pub fn hold(&mut self, index: &[u8], data: &[u8]) {
        for (entry, data) in index.chunks_exact(INDEX_BYTES).zip(data.chunks_exact(SECTOR)) {
            self.write(numbered(entry, 0).0, data, &[tag_of(entry)]);
        }
    }

    /// Makes durable what is in place.
    ///
    /// # Errors
    /// It may not be.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty {
            self.image.sync()?;
            self.sums.sync()?;
            self.is_dirty = false;
        }
        Ok(())
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        let waiting = self.waiting.len() * size_of::<(u64, Waiting)>();
        waiting + self.bytes.capacity() + self.sectors.capacity() * (8 + size_of::<Tag>() + 4)
    }
}

/// Sector, kind and sequence number of an entry of an index.
fn numbered(index: &[u8], at: usize) -> (u64, u32, u64) {
    let (sector, sequence) = (u64_at(index, at * INDEX_BYTES), u64_at(index, at * INDEX_BYTES + 8));
    (sector & ((1 << KIND_SHIFT) - 1), (sector >> KIND_SHIFT) as u32, sequence)
}

/// What the sector of an entry holds.
fn tag_of(entry: &[u8]) -> Tag {
    match numbered(entry, 0) {
        (sector, DATA, sequence) => Tag::new(sector, sequence),
        (_, NOTHING, _) => Tag::NONE,
        _ => Tag::UNREADABLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::backing::{Access, Storage};
    use crate::store::crash_backing::CrashStorage;

    fn disk(storage: &CrashStorage) -> HomeDisk {
        let open = |name| storage.open(name, Access::Create, false).unwrap();
        HomeDisk::new(open("image").into(), open("sums").into(), 5)
    }

    fn read(disk: &mut HomeDisk, sector: u64, sectors: usize) -> (Vec<u8>, Vec<Tag>) {
        let (mut bytes, mut tags) = (vec![9; sectors * SECTOR], vec![Tag::UNREADABLE; sectors]);
        disk.read(sector, &mut bytes, &mut tags).unwrap();
        (bytes.chunks_exact(SECTOR).map(|sector| sector[7]).collect(), tags)
    }

    fn commit(disk: &mut HomeDisk) {
        let (mut index, mut data) = (vec![0; disk.pending() * INDEX_BYTES], vec![0; disk.pending() * SECTOR]);
        disk.encode(&mut index, &mut data);
        disk.apply(&index, &data).unwrap();
    }

    #[test]
    fn what_is_pending_is_read_and_then_put_in_place() {
        let storage = CrashStorage::new();
        let mut disk = disk(&storage);
        let tag = |sector| Tag::new(sector, 3);
        disk.write(11, &[1; 2 * SECTOR], &[tag(11), tag(12)]);
        disk.write(10, &[2; 2 * SECTOR], &[tag(10), tag(11)]);
        disk.write(20, &[3; 2 * SECTOR], &[Tag::NONE, tag(5)]);
        let expected = (vec![0, 2, 2, 1, 0], vec![Tag::NONE, tag(10), tag(11), tag(12), Tag::NONE]);
        assert_eq!(read(&mut disk, 9, 5), expected);
        assert_eq!(disk.pending(), 5);
        commit(&mut disk);
        assert_eq!(disk.pending(), 0);
        assert_eq!(read(&mut disk, 9, 5), expected);
        assert_eq!(read(&mut disk, 20, 2).1, [Tag::NONE, Tag::UNREADABLE], "a sector of elsewhere is none of this one");
    }

    #[test]
    fn a_damaged_sector_is_unreadable() {
        let storage = CrashStorage::new();
        let mut disk = disk(&storage);
        disk.write(1, &[1; 3 * SECTOR], &[1, 2, 3].map(|sector| Tag::new(sector, 7)));
        commit(&mut disk);
        disk.image.write_at(2 * SECTOR as u64 + 100, &[0]).unwrap();
        disk.sums.write_at(sum_at(3) + 8, &[8]).unwrap();
        assert_eq!(read(&mut disk, 1, 3).1, [Tag::new(1, 7), Tag::UNREADABLE, Tag::UNREADABLE]);
    }

    #[test]
    fn an_index_with_a_sector_that_is_none_is_known() {
        let mut index = vec![0; 2 * INDEX_BYTES];
        put_u64(&mut index, INDEX_BYTES, 9 | u64::from(DATA) << KIND_SHIFT);
        assert!(HomeDisk::can_be(&index, 10) && !HomeDisk::can_be(&index, 9));
    }
}
