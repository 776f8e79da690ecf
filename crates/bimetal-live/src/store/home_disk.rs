//! The home disk under a flash cache: a plain image of all sectors, and a file of checksums beside it.
//!
//! A disk is written in place, so what is written to it after a commit is kept in memory and read from there, goes into the
//! journal with the next commit, and is put in place only when that is durable. Recovery puts it there again. After a crash
//! the disk is therefore exactly what the last commit says, and a scheme over it needs no recovery of its own.
//!
//! Each sector has 16 bytes in the file of checksums:
//!
//! ```text
//! 0   u32   CRC-32C of sector number, kind, sequence number and data, seeded with the store's number
//! 4   u32   kind: 0 never written, 1 data, 2 nothing that the host wrote, 3 lost
//! 8   u64   sequence number of the host write
//! ```

use std::io;

use super::backing::Backing;
use super::bytes::{Buffer, put_u32, put_u64, u32_at, u64_at};
use super::frame::{SECTOR, Tag};
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

/// The disk.
pub struct HomeDisk {
    image: Box<dyn Backing>,
    sums: Box<dyn Backing>,
    seed: u32,
    is_dirty: bool,
    /// What was written since the last commit: the place of each sector, then number, tag and bytes by place.
    places: SectorTable,
    sectors: Vec<u64>,
    tags: Vec<Tag>,
    bytes: Buffer,
    order: Vec<u32>,
    entries: Vec<u8>,
}

impl HomeDisk {
    /// A disk in these files.
    pub fn new(image: Box<dyn Backing>, sums: Box<dyn Backing>, seed: u32) -> Self {
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
        }
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
        self.sums.read_at(sector * SUM_BYTES as u64, &mut self.entries)?;
        let entries = self.entries.chunks_exact(SUM_BYTES);
        for (((tag, bytes), entry), sector) in
            tags.iter_mut().zip(bytes.chunks_exact_mut(SECTOR)).zip(entries).zip(sector..)
        {
            *tag = self.verify(sector, entry, bytes);
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
        index.chunks_exact(INDEX_BYTES).all(|entry| u64_at(entry, 0) & ((1 << KIND_SHIFT) - 1) < sectors)
    }

    /// Puts the sectors of a batch in place. What is pending is among them, or there is none.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn apply(&mut self, index: &[u8], data: &[u8]) -> io::Result<()> {
        let entry = |at: usize| (u64_at(index, at * INDEX_BYTES), u64_at(index, at * INDEX_BYTES + 8));
        let number = |at: usize| entry(at).0 & ((1 << KIND_SHIFT) - 1);
        let count = index.len() / INDEX_BYTES;
        let mut first = 0;
        while first < count {
            let start = number(first);
            let end = (first + 1..count).find(|&at| number(at) != start + (at - first) as u64).unwrap_or(count);
            self.entries.clear();
            for at in first..end {
                let (numbered, sequence) = entry(at);
                let kind = (numbered >> KIND_SHIFT) as u32;
                let sum = self.checksum(number(at), kind, sequence, &data[at * SECTOR..(at + 1) * SECTOR]);
                self.entries.extend(sum.to_le_bytes());
                self.entries.extend(kind.to_le_bytes());
                self.entries.extend(sequence.to_le_bytes());
            }
            self.is_dirty = true;
            self.image.write_at(start * SECTOR as u64, &data[first * SECTOR..end * SECTOR])?;
            self.sums.write_at(start * SUM_BYTES as u64, &self.entries)?;
            first = end;
        }
        self.places.clear();
        self.sectors.clear();
        self.tags.clear();
        Ok(())
    }

    /// Holds the sectors of a batch in memory, as if they had been written just now.
    pub fn hold(&mut self, index: &[u8], data: &[u8]) {
        for (entry, data) in index.chunks_exact(INDEX_BYTES).zip(data.chunks_exact(SECTOR)) {
            let (numbered, sequence) = (u64_at(entry, 0), u64_at(entry, 8));
            let sector = numbered & ((1 << KIND_SHIFT) - 1);
            let tag = match (numbered >> KIND_SHIFT) as u32 {
                DATA => Tag::new(sector, sequence),
                NOTHING => Tag::NONE,
                _ => Tag::UNREADABLE,
            };
            self.write(sector, data, &[tag]);
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
        self.bytes.capacity() + self.sectors.capacity() * (8 + size_of::<Tag>() + 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::backing::{Access, Storage};
    use crate::store::crash_backing::CrashStorage;

    fn disk(storage: &CrashStorage) -> HomeDisk {
        let open = |name| storage.open(name, Access::Create, false).unwrap();
        HomeDisk::new(open("image"), open("sums"), 5)
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
        disk.sums.write_at(3 * SUM_BYTES as u64 + 8, &[8]).unwrap();
        assert_eq!(read(&mut disk, 1, 3).1, [Tag::new(1, 7), Tag::UNREADABLE, Tag::UNREADABLE]);
    }

    #[test]
    fn an_index_with_a_sector_that_is_none_is_known() {
        let mut index = vec![0; 2 * INDEX_BYTES];
        put_u64(&mut index, INDEX_BYTES, 9 | u64::from(DATA) << KIND_SHIFT);
        assert!(HomeDisk::can_be(&index, 10) && !HomeDisk::can_be(&index, 9));
    }
}
