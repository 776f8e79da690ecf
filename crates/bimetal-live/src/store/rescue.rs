//! Rescue: an image of the host's sectors from a store with any damage.
//!
//! A store that can be opened is copied. From other stores, the rescue takes the newest version of each sector in any
//! intact page, in a region or in the journal, or on the home disk: the last write, committed or not. The pages do not
//! record trims, so trimmed data may return.
//!
//! The superblock names the files and describes the regions. Without it, the labels of the files describe them. Files
//! that are missing or damaged do not end the search; the result lists them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::backing::{Access, Backing, Storage};
use super::bytes::Buffer;
use super::crc32c::crc32c;
use super::device::Store;
use super::error::{InFile, StoreError};
use super::extract::{Read, read_range};
use super::files::{self, OpenOptions};
use super::frame::{Layout, SECTOR, SECTORS_MAX, Tag};
use super::home_disk::{self, HomeDisk, SUM_BYTES};
use super::label::{FileRole, Label};
use super::map::Mapped;
use super::names::{DISK, JOURNAL, SUMS, region_file};
use super::record::{HEADER_BYTES, Header, Record};
use super::region::FIRST_SLOT;
use super::superblock::{SUPERBLOCK, Superblock};
use crate::block_device::BlockDevice;

/// Files of a store, if its superblock cannot name them.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Files of the regions; if empty, the default names of `create`.
    pub regions: Vec<String>,
    /// File of the home disk, likewise.
    pub disk: Option<String>,
}

/// Result of a rescue.
#[derive(Clone, Debug, Default)]
pub struct Rescued {
    /// Whether the store could be opened, so that the image is its state.
    pub is_state: bool,
    /// Reason why it could not be opened.
    pub refusal: Option<String>,
    /// Number of sectors in the image.
    pub sectors: u64,
    /// Runs of known lost sectors: first sector, number.
    pub lost: Vec<(u64, u64)>,
    /// Number of pages read, and number of intact ones.
    pub pages: (u64, u64),
    /// Files that could not be searched, or not completely: each with the reason.
    pub unsearched: Vec<String>,
}

/// Writes all rescued sectors to `image`, an empty file. All other sectors are zeros.
///
/// # Errors
/// The image cannot be written, no file can be searched, or another process uses the store.
pub fn rescue(storage: Arc<dyn Storage>, parts: &Parts, image: &dyn Backing) -> Result<Rescued, StoreError> {
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    match Store::open(Arc::clone(&storage), options) {
        Ok(store) => {
            let mut take = |sector, bytes: &[u8]| image.write_at(sector * SECTOR as u64, bytes);
            let written = read_range(&store, 0..store.sectors(), &mut take);
            let (sectors, lost) = written.in_file(IMAGE)?;
            // Sectors that were never written are zeros up to the end of the device.
            image.set_len(store.sectors() * SECTOR as u64).in_file(IMAGE)?;
            Ok(Rescued { is_state: true, sectors, lost, ..Rescued::default() })
        }
        Err(error @ (StoreError::InUse | StoreError::FileInUse { .. })) if parts.regions.is_empty() => Err(error),
        Err(error) => {
            let rescued = Rescued { refusal: Some(error.to_string()), ..Rescued::default() };
            if parts.regions.is_empty()
                && parts.disk.is_none()
                && let Some((sectors, lost)) = by_map(storage.as_ref(), image)?
            {
                return Ok(Rescued { is_state: true, sectors, lost, ..rescued });
            }
            let known = Known::of(storage.as_ref());
            let mut search =
                Search { storage: storage.as_ref(), image, sectors: SECTORS_MAX, newest: BTreeMap::new(), rescued };
            search.run(&known, parts)?;
            Ok(search.rescued)
        }
    }
}

/// Reads a store by its map, which depends neither on checkpoints nor on the scheme and knows the trimmed sectors.
/// Returns the number of sectors and the lost ones; `None` and an empty image if there is no map of the latest state.
fn by_map(storage: &dyn Storage, image: &dyn Backing) -> Result<Option<Read>, StoreError> {
    let Ok(mut mapped) = Mapped::open(storage) else { return Ok(None) };
    let read = mapped.read_all(&mut |sector, bytes| image.write_at(sector * SECTOR as u64, bytes));
    let bytes = if read.is_ok() { mapped.sectors() * SECTOR as u64 } else { 0 };
    image.set_len(bytes).in_file(IMAGE)?;
    Ok(read.ok())
}

/// The image, in errors.
const IMAGE: &str = "the image";
/// Regions are numbered by one byte.
const REGIONS_MAX: usize = 256;
/// Bytes of the journal that are searched at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Sectors of the home disk that are read at once, and those that are read at once where these cannot be read.
const DISK_RUN: u64 = 2048;
const DISK_PIECE: u64 = 8;
/// Sectors whose newest versions are noted together.
const NOTED: u64 = 64;

/// Facts of a store's superblock, as far as it can be read.
#[derive(Default)]
struct Known {
    /// Whether the file exists.
    exists: bool,
    store: Option<u64>,
    parts: Parts,
    /// Roles of the files of `parts`.
    roles: Vec<(String, FileRole)>,
    logical_sectors: Option<u64>,
}

impl Known {
    fn of(storage: &dyn Storage) -> Self {
        let mut known = Self { exists: storage.exists(SUPERBLOCK).unwrap_or(false), ..Self::default() };
        let Ok(file) = storage.open(SUPERBLOCK, Access::Read, false) else { return known };
        if let Ok((superblock, names)) = Superblock::read_names(file.as_ref()) {
            known.store = Some(superblock.store);
            known.parts = Parts { regions: names.regions, disk: names.disk };
        }
        let contents = Superblock::read(file.as_ref()).ok().and_then(|superblock| superblock.contents);
        if let Some(contents) = contents
            && let Ok(resolved) = contents.device.resolve()
        {
            known.roles = files::parts(&contents, &resolved).unwrap_or_default();
            known.logical_sectors = Some(resolved.shape.logical_sectors);
        }
        known
    }

    fn role(&self, file: &str) -> Option<FileRole> {
        self.roles.iter().find(|(known, _)| known == file).map(|&(_, role)| role)
    }

    /// The names of the files: the given ones, else those in the superblock, else the default ones.
    ///
    /// # Errors
    /// There are no such files.
    fn named(&self, storage: &dyn Storage, given: &Parts) -> Result<Parts, StoreError> {
        let exists = |file: &String| storage.exists(file).unwrap_or(false);
        let mut parts = given.clone();
        if parts.regions.is_empty() {
            parts.regions.clone_from(&self.parts.regions);
        }
        if self.parts.regions.is_empty() {
            parts.disk = parts.disk.or_else(|| Some(DISK.to_owned()).filter(exists));
        } else {
            parts.disk = parts.disk.or_else(|| self.parts.disk.clone());
        }
        if parts.regions.is_empty() {
            parts.regions = (0..REGIONS_MAX).map(region_file).filter(exists).collect();
        }
        match parts.regions.is_empty() {
            false => Ok(parts),
            true if self.exists => Err(StoreError::Unnamed),
            true => Err(files::missing(storage)),
        }
    }
}

/// A file of a region.
struct RegionFile {
    name: String,
    file: Box<dyn Backing>,
    number: u8,
    layout: Layout,
}

/// The newest version of each sector found so far.
struct Search<'a> {
    storage: &'a dyn Storage,
    image: &'a dyn Backing,
    /// Upper limit of sector numbers; larger ones are invalid.
    sectors: u64,
    /// Sequence numbers by sector. Memory is only allocated for sectors found, because a stated size may be wrong.
    newest: BTreeMap<u64, [u64; NOTED as usize]>,
    rescued: Rescued,
}

impl Search<'_> {
    fn run(&mut self, known: &Known, given: &Parts) -> Result<(), StoreError> {
        let parts = known.named(self.storage, given)?;
        let mut store = known.store;
        let mut regions = Vec::new();
        for name in &parts.regions {
            match self.region(name, known.role(name), &mut store) {
                Ok(region) => regions.push(region),
                Err(reason) => self.miss(name, reason),
            }
        }
        let seed = store.map(|store| crc32c(&store.to_le_bytes()));
        // The home disk of a cache can be searched without its flash.
        let Some(seed) = seed.filter(|_| !regions.is_empty() || parts.disk.is_some()) else {
            return Err(StoreError::Unsearchable { reasons: self.rescued.unsearched.join("; ") });
        };
        self.sectors = known.logical_sectors.unwrap_or(SECTORS_MAX);
        if let Some(name) = &parts.disk {
            self.take_disk(name, known.role(name), seed)?;
        }
        for region in &regions {
            self.take_region(region, seed)?;
        }
        self.take_journal(&regions, parts.disk.is_some(), seed)?;
        if let Some(sectors) = known.logical_sectors {
            self.image.set_len(sectors * SECTOR as u64).in_file(IMAGE)?;
        }
        self.rescued.sectors = self.newest.values().flatten().filter(|&&sequence| sequence > 0).count() as u64;
        if self.rescued.sectors == 0 && known.store.is_none() {
            self.miss(SUPERBLOCK, "cannot be read, and no data were found: files outside of the directory are unknown");
        }
        Ok(())
    }

    /// Notes that a file could not be searched, or not completely.
    fn miss(&mut self, file: &str, reason: impl std::fmt::Display) {
        self.rescued.unsearched.push(format!("`{file}` {reason}"));
    }

    /// Opens a file and locks it against writers.
    fn open(&self, file: &str) -> io::Result<Box<dyn Backing>> {
        let backing = self.storage.open(file, Access::Read, false)?;
        backing.lock(true)?;
        Ok(backing)
    }

    /// The file of a region, which its label or the superblock describes. A sound label tells the number of the store,
    /// if it is still unknown.
    fn region(&self, name: &str, known: Option<FileRole>, store: &mut Option<u64>) -> Result<RegionFile, String> {
        let file = self.open(name).map_err(reason)?;
        let label = Label::read(file.as_ref(), 0).ok().flatten();
        *store = store.or(label.map(|label| label.store));
        // Files may have been swapped: a sound label knows better than the name of its file.
        let own = label.filter(|label| Some(label.store) == *store).map(|label| label.part);
        match own.or(known) {
            Some(FileRole::Region { region, page_bytes, .. }) => {
                Ok(RegionFile { name: name.to_owned(), file, number: region, layout: Layout::new(page_bytes) })
            }
            Some(part) => Err(format!("is {part}, and no region")),
            None => Err("has no sound label, and the superblock does not describe it".into()),
        }
    }

    fn take(&mut self, tag: Tag, bytes: &[u8]) -> Result<(), StoreError> {
        let Some((sector, sequence)) = tag.written().filter(|&(sector, _)| sector < self.sectors) else {
            return Ok(());
        };
        let noted = self.newest.entry(sector / NOTED).or_insert([0; NOTED as usize]);
        let newest = &mut noted[(sector % NOTED) as usize];
        if sequence > *newest {
            *newest = sequence;
            self.image.write_at(sector * SECTOR as u64, bytes).in_file(IMAGE)?;
        }
        Ok(())
    }

    /// Takes the sectors of the home disk whose checksums are right.
    fn take_disk(&mut self, name: &str, role: Option<FileRole>, seed: u32) -> Result<(), StoreError> {
        let opened = self.open(name).map_err(|error| (name, reason(error)));
        let both = opened.and_then(|disk| Ok((disk, self.open(SUMS).map_err(|error| (SUMS, reason(error)))?)));
        let (disk, sums) = match both {
            Ok(both) => both,
            Err((file, reason)) => {
                self.miss(file, reason);
                return Ok(());
            }
        };
        let length = |file: &dyn Backing, name: &str| file.length().in_file(name);
        let (disk_bytes, sums_bytes) = (length(disk.as_ref(), name)?, length(sums.as_ref(), SUMS)?);
        let label = Label::BYTES as u64;
        let sectors = match role {
            Some(FileRole::Disk { sectors }) => sectors,
            _ => disk_bytes.saturating_sub(label) / SECTOR as u64,
        };
        let in_files = [disk_bytes / SECTOR as u64, sums_bytes.saturating_sub(label) / SUM_BYTES as u64];
        if in_files[0] < sectors {
            self.miss(name, format_args!("is cut off after {} of {sectors} sectors", in_files[0]));
        }
        // The file of the checksums is only as long as sectors were written: it is cut off if data have no checksums.
        let end = in_files.into_iter().fold(sectors, u64::min);
        if in_files[1] < sectors.min(in_files[0]) && has_data(disk.as_ref(), end..sectors.min(in_files[0])) {
            self.miss(SUMS, format_args!("is cut off after {} of {sectors} sectors", in_files[1]));
        }
        let mut disk = HomeDisk::new(disk.into(), sums.into(), seed);
        let mut unread = 0;
        for first in (0..end).step_by(DISK_RUN as usize) {
            let run = first..end.min(first + DISK_RUN);
            if self.take_sectors(&mut disk, run.clone())?.is_err() {
                for first in run.clone().step_by(DISK_PIECE as usize) {
                    let piece = first..run.end.min(first + DISK_PIECE);
                    unread += self.take_sectors(&mut disk, piece.clone())?.map_or(piece.end - piece.start, |()| 0);
                }
            }
        }
        if unread > 0 {
            self.miss(name, format_args!("has {unread} sectors that cannot be read"));
        }
        Ok(())
    }

    /// Takes consecutive sectors of the home disk. The inner error is that of its files.
    fn take_sectors(&mut self, disk: &mut HomeDisk, run: std::ops::Range<u64>) -> Result<io::Result<()>, StoreError> {
        let count = (run.end - run.start) as usize;
        let (mut bytes, mut tags) = (vec![0; count * SECTOR], vec![Tag::NONE; count]);
        if let Err(error) = disk.read(run.start, &mut bytes, &mut tags) {
            return Ok(Err(error));
        }
        for (bytes, &tag) in bytes.chunks_exact(SECTOR).zip(&tags) {
            self.take(tag, bytes)?;
        }
        Ok(Ok(()))
    }

    /// Takes the intact pages of a region.
    fn take_region(&mut self, region: &RegionFile, seed: u32) -> Result<(), StoreError> {
        let RegionFile { name, file, number, layout } = region;
        let mut frame = Buffer::new(layout.stride());
        let length = file.length().in_file(name)?;
        let (mut offset, mut unread) = (FIRST_SLOT, 0u64);
        while offset + layout.stride() as u64 <= length {
            self.rescued.pages.0 += 1;
            match file.read_at(offset, frame.bytes_mut()) {
                Ok(()) => self.rescued.pages.1 += u64::from(self.take_frame(layout, *number, frame.bytes(), seed)?),
                Err(_) => unread += 1,
            }
            offset += layout.stride() as u64;
        }
        if unread > 0 {
            self.miss(name, format_args!("has {unread} pages that cannot be read"));
        }
        Ok(())
    }

    /// Takes pages and sectors of the home disk from the journal: those of the last commits may only be there. They are
    /// taken wherever they lie, because a damaged batch hides those behind it.
    fn take_journal(&mut self, regions: &[RegionFile], has_disk: bool, seed: u32) -> Result<(), StoreError> {
        let journal = match self.open(JOURNAL) {
            Ok(journal) => journal,
            Err(error) => {
                self.miss(JOURNAL, reason(error));
                return Ok(());
            }
        };
        let length = journal.length().in_file(JOURNAL)?;
        let longest = regions.iter().map(|region| region.layout.stride()).max().unwrap_or(0);
        let (mut bytes, mut record) = (Buffer::default(), Record::default());
        for offset in (0..length).step_by(CHUNK_BYTES) {
            // The chunk, and the rest of a frame that begins in it.
            bytes.resize((length - offset).min((CHUNK_BYTES + longest) as u64) as usize);
            if let Err(error) = journal.read_at(offset, bytes.bytes_mut()) {
                self.miss(JOURNAL, format_args!("cannot be read at byte {offset}: {error}"));
                continue;
            }
            for start in (0..CHUNK_BYTES.min(bytes.bytes().len())).step_by(SECTOR) {
                let from = &bytes.bytes()[start..];
                for RegionFile { number, layout, .. } in regions {
                    if let Some(frame) = from.get(..layout.stride()) {
                        self.take_frame(layout, *number, frame, seed)?;
                    }
                }
                let header = from.get(..HEADER_BYTES).filter(|_| has_disk).and_then(|head| Header::decode(head, seed));
                let at = offset + start as u64;
                if let Some(header) = header.filter(|header| !header.is_seal() && header.bytes() <= length - at)
                    && journal.read_at(at, record.begin(&header)).is_ok()
                    && record.is_whole(seed)
                {
                    for (tag, bytes) in home_disk::tagged(record.sectors()) {
                        self.take(tag, bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the sectors of a frame of a region. Returns whether the frame is intact.
    fn take_frame(&mut self, layout: &Layout, region: u8, frame: &[u8], seed: u32) -> Result<bool, StoreError> {
        let is_sound = layout.open(frame, seed).is_ok_and(|(place, _)| place.region == region);
        for sector in (0..layout.page_sectors()).filter(|_| is_sound) {
            self.take(layout.tag(frame, sector), &frame[sector * SECTOR..(sector + 1) * SECTOR])?;
        }
        Ok(is_sound)
    }
}

/// Whether any of these sectors of the home disk has data, or cannot be read.
fn has_data(disk: &dyn Backing, sectors: std::ops::Range<u64>) -> bool {
    let mut bytes = Buffer::new(DISK_RUN as usize * SECTOR);
    sectors.clone().step_by(DISK_RUN as usize).any(|first| {
        bytes.resize((sectors.end - first).min(DISK_RUN) as usize * SECTOR);
        let read = disk.read_at(first * SECTOR as u64, bytes.bytes_mut());
        read.is_err() || bytes.bytes().iter().any(|&byte| byte != 0)
    })
}

/// Why a file cannot be searched.
fn reason(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "is missing".into(),
        io::ErrorKind::WouldBlock => "is in use by another process".into(),
        _ => format!("cannot be opened: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::crash_backing::CrashStorage;

    /// Anyone can compute the checksum of a label, so its numbers may be wrong.
    #[test]
    fn a_label_that_boasts_costs_nothing() {
        let storage = CrashStorage::new();
        let part = FileRole::Region { region: 0, page_bytes: 64 << 10, pages_per_block: 1 << 15, blocks: 1 << 16 };
        let label = Label { store: 1, opening: 2, part };
        for name in [SUPERBLOCK, &region_file(0)] {
            storage.open(name, Access::Create, false).unwrap().write_at(0, label.encode().bytes()).unwrap();
        }
        let image = storage.open("image", Access::Create, false).unwrap();
        let rescued = rescue(Arc::new(storage.clone()), &Parts::default(), image.as_ref()).unwrap();
        assert_eq!((rescued.is_state, rescued.sectors), (false, 0));
    }
}
