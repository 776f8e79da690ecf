//! Rescue: an image of the host's sectors from a store with any damage.
//!
//! A store that can be opened is copied. From other stores, the rescue takes the newest version of each sector in any
//! intact page, in a region or in the journal, or on the home disk: the last write, committed or not. The pages do not
//! record trims, so trimmed data may return.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backing::{Access, Backing, Storage};
use super::bytes::Buffer;
use super::crc32c::crc32c;
use super::device::Store;
use super::error::{InFile, StoreError};
use super::extract::read_range;
use super::files::OpenOptions;
use super::frame::{Layout, SECTOR, Tag};
use super::home_disk::HomeDisk;
use super::label::{FileRole, Label};
use super::names::{DISK, JOURNAL, SUMS, region_file};
use super::region::FIRST_SLOT;
use super::superblock::{Contents, SUPERBLOCK, Superblock};
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
}

/// Writes all rescued sectors to `image`, an empty file. All other sectors are zeros.
///
/// # Errors
/// The files cannot be read, the image cannot be written, or there is no intact label.
pub fn rescue(storage: Arc<dyn Storage>, parts: &Parts, image: &dyn Backing) -> Result<Rescued, StoreError> {
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    match Store::open(Arc::clone(&storage), options) {
        Ok(store) => {
            let mut take = |sector, bytes: &[u8]| image.write_at(sector * SECTOR as u64, bytes);
            let written = read_range(&store, 0..store.sectors(), &mut take);
            let (sectors, lost) = written.in_file("the image")?;
            // Sectors that were never written are zeros up to the end of the device.
            image.set_len(store.sectors() * SECTOR as u64).in_file("the image")?;
            Ok(Rescued { is_state: true, sectors, lost, ..Rescued::default() })
        }
        Err(error @ (StoreError::InUse | StoreError::FileInUse { .. })) if parts.regions.is_empty() => Err(error),
        Err(error) => {
            let (newest, rescued) = (BTreeMap::new(), Rescued::default());
            let mut search = Search { storage: storage.as_ref(), image, sectors: 0, newest, rescued };
            search.rescued.refusal = Some(error.to_string());
            search.run(parts)?;
            Ok(search.rescued)
        }
    }
}

/// The files of regions that have the default names, of which some may be missing.
fn default_regions(storage: &dyn Storage) -> impl Iterator<Item = String> {
    (0..REGIONS_MAX).map(region_file).filter(|file| storage.exists(file).unwrap_or(false))
}

/// Regions are numbered by one byte.
const REGIONS_MAX: usize = 256;

/// Bytes of the journal that are searched at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Sectors whose newest versions are noted together.
const NOTED: u64 = 64;

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
    fn run(&mut self, parts: &Parts) -> Result<(), StoreError> {
        let parts = self.named(parts)?;
        let mut regions = Vec::new();
        for file in &parts.regions {
            if !self.storage.exists(file).in_file(file)? {
                self.rescued.refusal.iter_mut().for_each(|refusal| *refusal += &format!("; `{file}` is missing"));
                continue;
            }
            let backing = self.open(file)?;
            match Label::read(backing.as_ref(), 0).in_file(file)? {
                Some(label) if matches!(label.part, FileRole::Region { .. }) => regions.push((file, backing, label)),
                _ => {
                    self.rescued.refusal.iter_mut().for_each(|refusal| *refusal += &format!("; `{file}` has no label"))
                }
            }
        }
        let Some(seed) = regions.first().map(|(_, _, label)| crc32c(&label.store.to_le_bytes())) else {
            return Err(StoreError::Damaged { file: parts.regions.join(", "), what: "there is no sound label".into() });
        };
        let room = |label: &Label| match label.part {
            FileRole::Region { blocks, pages_per_block, page_bytes, .. } => {
                u64::from(blocks) * u64::from(pages_per_block) * u64::from(page_bytes)
            }
            _ => 0,
        };
        self.sectors = regions.iter().map(|(_, _, label)| room(label)).fold(0, u64::saturating_add) / SECTOR as u64;
        if let Some(file) = &parts.disk {
            let (image, sums) = (self.open(file)?, self.open(SUMS)?);
            self.sectors = image.length().in_file(file)?.saturating_sub(Label::BYTES as u64) / SECTOR as u64;
            self.take_disk(HomeDisk::new(image.into(), sums.into(), seed))?;
        }
        for (file, backing, label) in regions {
            self.take_region(backing.as_ref(), &label, seed).in_file(file)?;
            // There may be no journal.
            if let Ok(journal) = self.open(JOURNAL) {
                self.take_journal(journal.as_ref(), &label, seed).in_file(JOURNAL)?;
            }
        }
        if let Some(bytes) = self.device_bytes() {
            self.image.set_len(bytes).in_file("the image")?;
        }
        self.rescued.sectors = self.newest.values().flatten().filter(|&&sequence| sequence > 0).count() as u64;
        Ok(())
    }

    /// Opens a file and locks it against writers.
    fn open(&self, file: &str) -> Result<Box<dyn Backing>, StoreError> {
        let backing = self.storage.open(file, Access::Read, false).in_file(file)?;
        backing.lock(true).in_file(file)?;
        Ok(backing)
    }

    /// The names of the files: the given ones, else those in the superblock, else the default ones.
    fn named(&self, parts: &Parts) -> Result<Parts, StoreError> {
        if !parts.regions.is_empty() {
            return Ok(parts.clone());
        }
        if let Some(contents) = self.contents() {
            return Ok(Parts { regions: contents.regions, disk: contents.disk });
        }
        let regions: Vec<String> = default_regions(self.storage).collect();
        if regions.is_empty() {
            return Err(StoreError::Missing);
        }
        Ok(Parts { regions, disk: Some(DISK.to_owned()).filter(|disk| self.storage.exists(disk).unwrap_or(false)) })
    }

    /// The description of the store, if its superblock is intact.
    fn contents(&self) -> Option<Contents> {
        let file = self.storage.open(SUPERBLOCK, Access::Read, false).ok()?;
        Superblock::read(file.as_ref()).ok()?.contents
    }

    /// Capacity of the device, if it is known.
    fn device_bytes(&self) -> Option<u64> {
        let bytes = self.contents()?.device.logical.0;
        Some(bytes / SECTOR as u64 * SECTOR as u64).filter(|&bytes| bytes <= self.sectors * SECTOR as u64)
    }

    fn take(&mut self, tag: Tag, bytes: &[u8]) -> std::io::Result<()> {
        let Some((sector, sequence)) = tag.written().filter(|&(sector, _)| sector < self.sectors) else {
            return Ok(());
        };
        let noted = self.newest.entry(sector / NOTED).or_insert([0; NOTED as usize]);
        let newest = &mut noted[(sector % NOTED) as usize];
        if sequence > *newest {
            *newest = sequence;
            self.image.write_at(sector * SECTOR as u64, bytes)?;
        }
        Ok(())
    }

    fn take_disk(&mut self, mut disk: HomeDisk) -> Result<(), StoreError> {
        let run = self.sectors.clamp(1, 2048) as usize;
        let (mut bytes, mut tags) = (vec![0; run * SECTOR], vec![Tag::NONE; run]);
        for sector in (0..self.sectors).step_by(run) {
            let count = (self.sectors - sector).min(run as u64) as usize;
            disk.read(sector, &mut bytes[..count * SECTOR], &mut tags[..count]).in_file("the home disk")?;
            for (bytes, &tag) in bytes.chunks_exact(SECTOR).zip(&tags[..count]) {
                self.take(tag, bytes).in_file("the image")?;
            }
        }
        Ok(())
    }

    fn take_region(&mut self, backing: &dyn Backing, label: &Label, seed: u32) -> std::io::Result<()> {
        let FileRole::Region { region, page_bytes, .. } = label.part else { return Ok(()) };
        let layout = Layout::new(page_bytes);
        let mut frame = Buffer::new(layout.stride());
        let length = backing.length()?;
        let mut offset = FIRST_SLOT;
        while offset + layout.stride() as u64 <= length {
            backing.read_at(offset, frame.bytes_mut())?;
            self.rescued.pages.0 += 1;
            self.rescued.pages.1 += u64::from(self.take_frame(&layout, region, frame.bytes(), seed)?);
            offset += layout.stride() as u64;
        }
        Ok(())
    }

    /// Takes pages from batches of the journal: the pages of the last commits may only be there. Batches are not
    /// parsed, because a damaged one hides those behind it.
    fn take_journal(&mut self, journal: &dyn Backing, label: &Label, seed: u32) -> std::io::Result<()> {
        let FileRole::Region { region, page_bytes, .. } = label.part else { return Ok(()) };
        let layout = Layout::new(page_bytes);
        let (length, stride) = (journal.length()?, layout.stride());
        let mut bytes = Buffer::default();
        for offset in (0..length).step_by(CHUNK_BYTES) {
            // The chunk, and the rest of a frame that begins in it.
            bytes.resize((length - offset).min((CHUNK_BYTES + stride) as u64) as usize);
            journal.read_at(offset, bytes.bytes_mut())?;
            let starts = (0..CHUNK_BYTES).step_by(SECTOR).take_while(|start| start + stride <= bytes.bytes().len());
            for start in starts {
                self.take_frame(&layout, region, &bytes.bytes()[start..start + stride], seed)?;
            }
        }
        Ok(())
    }

    /// Takes the sectors of a frame of this region. Returns whether the frame is intact.
    fn take_frame(&mut self, layout: &Layout, region: u8, frame: &[u8], seed: u32) -> std::io::Result<bool> {
        let is_sound = layout.open(frame, seed).is_ok_and(|(place, _)| place.region == region);
        for sector in (0..layout.page_sectors()).filter(|_| is_sound) {
            self.take(layout.tag(frame, sector), &frame[sector * SECTOR..(sector + 1) * SECTOR])?;
        }
        Ok(is_sound)
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
