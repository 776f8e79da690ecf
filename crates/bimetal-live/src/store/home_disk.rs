//! The home disk under a flash cache: a plain image of all sectors, and a file of checksums beside it.
//!
//! The disk is written in place. So sectors written after a commit are kept in memory and read from there. The next
//! commit puts them into the journal, and they are written in place only when that commit is durable. Sectors of a
//! commit in progress are still read from memory, and later writes belong to the next commit. Recovery repeats the
//! writes in place. After a crash the disk therefore has exactly the state of the last commit, and a scheme over it
//! needs no recovery of its own.
//!
//! If the file system has no space for sectors of a batch, they stay in memory and in the journal. The journal does not
//! start again before they are in place.
//!
//! The image has a label after its last sector. The file of checksums has a label at its beginning, and from byte 4,096
//! on 16 bytes for each sector:
//!
//! ```text
//! 0   u32   CRC-32C of sector number, kind, sequence number and data, seeded with the store's number
//! 4   u32   kind: 0 never written, 1 data, 2 nothing that the host wrote, 3 lost
//! 8   u64   sequence number of the host write
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::backing::{File, is_full};
use super::bytes::{Buffer, put_u32, put_u64, u32_at, u64_at};
use super::crc32c::crc32c_append;
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

/// Offset of a sector's entry in the file of checksums.
fn sum_at(sector: u64) -> u64 {
    Label::BYTES as u64 + sector * SUM_BYTES as u64
}

/// A sector that lacked space: its index entry, and its bytes.
type Waiting = ([u8; INDEX_BYTES], [u8; SECTOR]);

/// Sectors written between two commits: a table of their positions, then number, tag and bytes by position.
pub struct Written {
    places: SectorTable,
    sectors: Vec<u64>,
    tags: Vec<Tag>,
    bytes: Buffer,
}

impl Written {
    fn new() -> Self {
        Self { places: SectorTable::new(), sectors: Vec::new(), tags: Vec::new(), bytes: Buffer::default() }
    }

    /// Number of sectors.
    pub fn len(&self) -> usize {
        self.sectors.len()
    }

    fn clear(&mut self) {
        self.places.clear();
        self.sectors.clear();
        self.tags.clear();
    }

    fn put(&mut self, sector: u64, bytes: &[u8], tag: Tag) {
        let fresh = self.sectors.len();
        let place = self.places.find_or_insert(sector, fresh as u32) as usize;
        if place == fresh {
            self.sectors.push(sector);
            self.tags.push(tag);
            self.bytes.resize((place + 1) * SECTOR);
        }
        // A sector of another place must never be mistaken for this one.
        self.tags[place] = if tag == Tag::NONE || tag.is(sector) { tag } else { Tag::UNREADABLE };
        self.bytes.bytes_mut()[place * SECTOR..(place + 1) * SECTOR].copy_from_slice(bytes);
    }

    fn get(&self, sector: u64) -> Option<(Tag, &[u8])> {
        let place = self.places.get(sector)? as usize;
        Some((self.tags[place], &self.bytes.bytes()[place * SECTOR..(place + 1) * SECTOR]))
    }

    /// Encodes the sectors in ascending order for a batch: an index, and the data.
    pub fn encode(&self, index: &mut [u8], data: &mut [u8]) {
        let mut order: Vec<u32> = (0..self.sectors.len() as u32).collect();
        order.sort_unstable_by_key(|&place| self.sectors[place as usize]);
        let index = index.chunks_exact_mut(INDEX_BYTES);
        for ((&place, entry), data) in order.iter().zip(index).zip(data.chunks_exact_mut(SECTOR)) {
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

    fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.sectors.capacity() * (8 + size_of::<Tag>() + 4)
    }
}

/// The files of the disk.
#[derive(Clone)]
pub struct Image {
    image: File,
    sums: File,
    seed: u32,
}

impl Image {
    /// The files that it writes.
    pub fn files(&self) -> [File; 2] {
        [&self.image, &self.sums].map(Arc::clone)
    }

    /// Writes the sectors of a batch in place. Returns those that lack space, as runs of the index.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn place(&self, index: &[u8], data: &[u8]) -> io::Result<Vec<Range<usize>>> {
        let mut left = Vec::new();
        for run in runs(index) {
            let start = numbered(index, run.start).0;
            let (index, data) =
                (&index[run.start * INDEX_BYTES..run.end * INDEX_BYTES], &data[run.start * SECTOR..run.end * SECTOR]);
            match self.put(start, index, data) {
                Ok(()) => {}
                Err(error) if is_full(&error) => left.push(run),
                Err(error) => return Err(error),
            }
        }
        Ok(left)
    }

    /// Writes consecutive sectors in place.
    fn put(&self, start: u64, index: &[u8], data: &[u8]) -> io::Result<()> {
        let mut entries = Vec::with_capacity(index.len());
        for (at, data) in data.chunks_exact(SECTOR).enumerate() {
            let (sector, kind, sequence) = numbered(index, at);
            let sum = self.checksum(sector, kind, sequence, data);
            entries.extend(sum.to_le_bytes());
            entries.extend(kind.to_le_bytes());
            entries.extend(sequence.to_le_bytes());
        }
        self.image.write_at(start * SECTOR as u64, data)?;
        self.sums.write_at(sum_at(start), &entries)
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
        crc32c_append(crc32c_append(self.seed, &head), bytes)
    }
}

/// Runs of an index with consecutive sectors.
fn runs(index: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let count = index.len() / INDEX_BYTES;
    let mut first = 0;
    std::iter::from_fn(move || {
        let start = (first < count).then(|| numbered(index, first).0)?;
        let follows = |&at: &usize| numbered(index, at).0 != start + (at - first) as u64;
        let end = (first + 1..count).find(follows).unwrap_or(count);
        Some(std::mem::replace(&mut first, end)..end)
    })
}

/// The disk.
pub struct HomeDisk {
    image: Image,
    is_dirty: bool,
    /// Sectors since the last commit began.
    fresh: Written,
    /// Sectors of commits in progress, oldest first.
    leaving: VecDeque<Arc<Written>>,
    spare: Option<Written>,
    entries: Vec<u8>,
    /// Sectors that are only durable in the journal.
    waiting: BTreeMap<u64, Waiting>,
}

impl HomeDisk {
    /// A disk in these files.
    pub fn new(image: File, sums: File, seed: u32) -> Self {
        Self {
            image: Image { image, sums, seed },
            is_dirty: false,
            fresh: Written::new(),
            leaving: VecDeque::new(),
            spare: None,
            entries: Vec::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Its files.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Whether sectors wait for space to be written in place.
    #[inline]
    pub fn lacks_room(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Number of sectors written since the last commit began.
    pub fn pending(&self) -> usize {
        self.fresh.len()
    }

    /// Reads consecutive sectors with their tags.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn read(&mut self, sector: u64, bytes: &mut [u8], tags: &mut [Tag]) -> io::Result<()> {
        self.image.image.read_at(sector * SECTOR as u64, bytes)?;
        self.entries.resize(tags.len() * SUM_BYTES, 0);
        self.image.sums.read_at(sum_at(sector), &mut self.entries)?;
        let entries = self.entries.chunks_exact(SUM_BYTES);
        for (((tag, bytes), entry), sector) in
            tags.iter_mut().zip(bytes.chunks_exact_mut(SECTOR)).zip(entries).zip(sector..)
        {
            let leaving = || self.leaving.iter().rev().find_map(|leaving| leaving.get(sector));
            if let Some((written, data)) = self.fresh.get(sector).or_else(leaving) {
                *tag = written;
                bytes.copy_from_slice(data);
                continue;
            }
            *tag = self.image.verify(sector, entry, bytes);
            if let Some((entry, waiting)) = self.waiting.get(&sector) {
                *tag = tag_of(entry);
                bytes.copy_from_slice(waiting);
            }
            if *tag == Tag::NONE {
                bytes.fill(0);
            }
        }
        Ok(())
    }

    /// Writes consecutive sectors: to memory, until a commit has written them in place.
    pub fn write(&mut self, sector: u64, bytes: &[u8], tags: &[Tag]) {
        for ((bytes, &tag), sector) in bytes.chunks_exact(SECTOR).zip(tags).zip(sector..) {
            self.fresh.put(sector, bytes, tag);
        }
    }

    /// Begins a commit. Returns the sectors that it makes durable.
    pub fn leave(&mut self) -> Arc<Written> {
        let fresh = self.spare.take().unwrap_or_else(Written::new);
        let leaving = Arc::new(std::mem::replace(&mut self.fresh, fresh));
        self.leaving.push_back(Arc::clone(&leaving));
        leaving
    }

    /// Whether the index of a batch is valid for a disk of `sectors` sectors. Files may contain anything.
    pub fn can_be(index: &[u8], sectors: u64) -> bool {
        index.chunks_exact(INDEX_BYTES).all(|entry| numbered(entry, 0).0 < sectors)
    }

    /// The oldest commit in progress has written its sectors in place, except for `left`, which wait for space.
    pub fn left(&mut self, index: &[u8], data: &[u8], left: &[Range<usize>]) {
        for run in runs(index) {
            let start = numbered(index, run.start).0;
            if left.contains(&run) {
                self.wait(start, &index[run.start * INDEX_BYTES..run.end * INDEX_BYTES], &data[run.start * SECTOR..]);
            } else {
                self.waited(start, run.len());
            }
        }
        if let Some(mut written) = self.leaving.pop_front().and_then(Arc::into_inner) {
            written.clear();
            self.spare = Some(written);
        }
    }

    /// Writes the sectors of a journal batch in place.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn apply(&mut self, index: &[u8], data: &[u8]) -> io::Result<()> {
        self.is_dirty = true;
        let left = self.image.place(index, data)?;
        self.left(index, data, &left);
        Ok(())
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

    /// Sectors are in place, so older versions of them no longer wait.
    fn waited(&mut self, start: u64, count: usize) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|sector, _| !(start..start + count as u64).contains(sector));
        }
    }

    /// Writes sectors in place that wait for space.
    ///
    /// # Errors
    /// There is not enough space for all of them yet, or the files cannot be written.
    pub fn place_waiting(&mut self) -> io::Result<()> {
        while let Some((&sector, &(entry, bytes))) = self.waiting.first_key_value() {
            self.is_dirty = true;
            self.image.put(sector, &entry, &bytes)?;
            self.waiting.remove(&sector);
        }
        Ok(())
    }

    /// Holds the sectors of a batch in memory, as if they had just been written.
    pub fn hold(&mut self, index: &[u8], data: &[u8]) {
        for (entry, data) in index.chunks_exact(INDEX_BYTES).zip(data.chunks_exact(SECTOR)) {
            self.write(numbered(entry, 0).0, data, &[tag_of(entry)]);
        }
    }

    /// Its files, if they were written to since the last call, other than by commits. The caller syncs them.
    pub fn take_dirty(&mut self) -> Option<[File; 2]> {
        std::mem::take(&mut self.is_dirty).then(|| self.image.files())
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        let waiting = self.waiting.len() * size_of::<(u64, Waiting)>();
        let written = self.leaving.iter().map(Arc::as_ref).chain(&self.spare).chain([&self.fresh]);
        waiting + written.map(Written::memory_bytes).sum::<usize>()
    }
}

/// Sector, kind and sequence number of an entry of an index.
fn numbered(index: &[u8], at: usize) -> (u64, u32, u64) {
    let (sector, sequence) = (u64_at(index, at * INDEX_BYTES), u64_at(index, at * INDEX_BYTES + 8));
    (sector & ((1 << KIND_SHIFT) - 1), (sector >> KIND_SHIFT) as u32, sequence)
}

/// The sectors of a journal batch, with their tags, from its index and data.
pub fn tagged<'a>((index, data): (&'a [u8], &'a [u8])) -> impl Iterator<Item = (Tag, &'a [u8])> {
    index.chunks_exact(INDEX_BYTES).map(tag_of).zip(data.chunks_exact(SECTOR))
}

/// The tag of a sector from its index entry.
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
        disk.leave().encode(&mut index, &mut data);
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
    fn what_a_commit_takes_is_read_from_memory_until_it_is_in_place() {
        let storage = CrashStorage::new();
        let mut disk = disk(&storage);
        let tag = |sector| Tag::new(sector, 3);
        disk.write(10, &[1; 3 * SECTOR], &[tag(10), tag(11), tag(12)]);
        let (mut index, mut data) = (vec![0; 3 * INDEX_BYTES], vec![0; 3 * SECTOR]);
        disk.leave().encode(&mut index, &mut data);
        disk.write(11, &[2; SECTOR], &[tag(11)]);
        assert_eq!((read(&mut disk, 10, 3).0, disk.pending()), (vec![1, 2, 1], 1));
        disk.apply(&index, &data).unwrap();
        assert_eq!((read(&mut disk, 10, 3).0, disk.pending()), (vec![1, 2, 1], 1), "what came later is still there");
        commit(&mut disk);
        assert_eq!((read(&mut disk, 10, 3).0, disk.pending()), (vec![1, 2, 1], 0));
    }

    #[test]
    fn a_damaged_sector_is_unreadable() {
        let storage = CrashStorage::new();
        let mut disk = disk(&storage);
        disk.write(1, &[1; 3 * SECTOR], &[1, 2, 3].map(|sector| Tag::new(sector, 7)));
        commit(&mut disk);
        disk.image.image.write_at(2 * SECTOR as u64 + 100, &[0]).unwrap();
        disk.image.sums.write_at(sum_at(3) + 8, &[8]).unwrap();
        assert_eq!(read(&mut disk, 1, 3).1, [Tag::new(1, 7), Tag::UNREADABLE, Tag::UNREADABLE]);
    }

    #[test]
    fn an_index_with_a_sector_that_is_none_is_known() {
        let mut index = vec![0; 2 * INDEX_BYTES];
        put_u64(&mut index, INDEX_BYTES, 9 | u64::from(DATA) << KIND_SHIFT);
        assert!(HomeDisk::can_be(&index, 10) && !HomeDisk::can_be(&index, 9));
    }
}
