//! Reading of a store by its map, from superblock, labels and frames, without its scheme.

use std::io;

use bimetal_core::device::Device;

use super::{HOME_DISK, Header, MapRun, Place, each_run};
use crate::store::backing::{Access, Backing, Storage};
use crate::store::bytes::Buffer;
use crate::store::error::{InFile, StoreError};
use crate::store::extract::{Read, Take, lose};
use crate::store::files;
use crate::store::frame::{Layout, SECTOR, Tag};
use crate::store::home_disk::HomeDisk;
use crate::store::label::{FileRole, Label};
use crate::store::names::{MAP, SUMS};
use crate::store::region::FIRST_SLOT;
use crate::store::superblock::{SUPERBLOCK, Superblock};

/// Bytes of frames in one read, unless a single frame has more.
const FRAMES_BYTES: usize = 256 << 10;
/// Largest number of sectors handed out at once.
const HANDED_SECTORS: usize = 512;

/// A region's file and its format.
struct Flash {
    name: String,
    file: Box<dyn Backing>,
    layout: Layout,
    pages_per_block: u32,
}

impl Flash {
    fn page_sectors(&self) -> u64 {
        self.layout.page_sectors() as u64
    }
}

/// A closed store, read by its map.
pub struct Mapped {
    header: Header,
    map: Box<dyn Backing>,
    regions: Vec<Flash>,
    disk: Option<HomeDisk>,
    seed: u32,
    device: Option<Device>,
    /// Locked while the store is being read.
    _superblock: Box<dyn Backing>,
}

impl Mapped {
    /// Opens a store that was closed cleanly.
    ///
    /// # Errors
    /// There is no store, it is in use, a file does not belong to it, or it has no map of its latest state.
    pub fn open(storage: &dyn Storage) -> Result<Self, StoreError> {
        if !storage.exists(SUPERBLOCK).in_file(SUPERBLOCK)? {
            return Err(files::missing(storage));
        }
        let superblock_file = open(storage, SUPERBLOCK).map_err(|error| match error {
            StoreError::FileInUse { .. } => StoreError::InUse,
            error => error,
        })?;
        let (superblock, names) = Superblock::read_names(superblock_file.as_ref())?;
        if !superblock.power.is_off {
            return Err(StoreError::NoMap { what: "it was not closed after it was last opened".into() });
        }
        if !storage.exists(MAP).in_file(MAP)? {
            return Err(StoreError::NoMap { what: format!("there is no file `{MAP}`") });
        }
        let (map, seed) = (open(storage, MAP)?, superblock.seed());
        let useless = |what: String| StoreError::NoMap { what: format!("`{MAP}`: {what}") };
        let header = Header::read(map.as_ref(), seed).in_file(MAP)?.map_err(useless)?;
        let openings = superblock.openings;
        if header.store != superblock.store || openings != [header.opening; 2] {
            return Err(useless("it is of another time than the store's state".into()));
        }
        let mut regions = Vec::new();
        for (name, number) in names.regions.iter().zip(0..HOME_DISK) {
            let file = open(storage, name)?;
            match label(file.as_ref(), name, 0, &superblock)? {
                FileRole::Region { region, page_bytes, pages_per_block, .. } if region == number => {
                    regions.push(Flash { name: name.clone(), file, layout: Layout::new(page_bytes), pages_per_block });
                }
                part => return Err(misplaced(name, part)),
            }
        }
        let disk = names.disk.as_ref().map(|name| {
            let (image, sums) = (open(storage, name)?, open(storage, SUMS)?);
            let part = FileRole::Disk { sectors: header.sectors };
            for (file, name, expected) in [(&image, name.as_str(), part), (&sums, SUMS, FileRole::Sums)] {
                let found = label(file.as_ref(), name, expected.label_at(), &superblock)?;
                if found != expected {
                    return Err(misplaced(name, found));
                }
            }
            Ok(HomeDisk::new(image.into(), sums.into(), seed))
        });
        let disk = disk.transpose()?;
        let described = Superblock::read(superblock_file.as_ref()).ok().and_then(|superblock| superblock.contents);
        let device = described.map(|contents| contents.device);
        Ok(Self { header, map, regions, disk, seed, device, _superblock: superblock_file })
    }

    /// Sectors of the device.
    pub fn sectors(&self) -> u64 {
        self.header.sectors
    }

    /// Sectors that hold data.
    pub fn written_sectors(&self) -> u64 {
        self.header.mapped
    }

    /// The device, if this program can parse its description.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Hands all readable sectors that hold data to `take`, in ascending runs.
    ///
    /// # Errors
    /// Errors of `take` and of the device; or the map or a file cannot be read.
    pub fn read_all(&mut self, take: Take<'_>) -> Result<Read, StoreError> {
        let Self { header, map, regions, disk, seed, .. } = self;
        let mut handing = Handing { take, first: 0, bytes: Vec::new(), read: (0, Vec::new()) };
        let mut frames = Buffer::default();
        let mut refused = None;
        let read = each_run(map.as_ref(), header, *seed, |run| {
            let done = match run.place {
                Place::Flash { region, .. } => match regions.get(usize::from(region)) {
                    Some(region) => {
                        read_flash(region, run, *seed, &mut frames, &mut handing).map(|()| true).in_file(&region.name)
                    }
                    None => Ok(false),
                },
                Place::Disk(_) => match disk {
                    Some(disk) => read_disk(disk, run, &mut handing).map(|()| true).in_file("the home disk"),
                    None => Ok(false),
                },
                Place::Nowhere => handing.lose(run.sector, run.sectors).map(|()| true).in_file("the device"),
            };
            let damaged = |what: &str| StoreError::Damaged { file: MAP.into(), what: what.into() };
            let done = done.and_then(|known| {
                if known { Ok(()) } else { Err(damaged("it names a region or a disk that the store does not have")) }
            });
            done.map_err(|error| {
                refused = Some(error);
                io::ErrorKind::Other.into()
            })
        });
        if let Some(error) = refused {
            return Err(error);
        }
        read.in_file(MAP)?.map_err(|what| StoreError::Damaged { file: MAP.into(), what })?;
        handing.hand().in_file("the device")?;
        Ok(handing.read)
    }
}

/// Opens a file and locks it against writers.
fn open(storage: &dyn Storage, name: &str) -> Result<Box<dyn Backing>, StoreError> {
    let file = storage.open(name, Access::Read, false).in_file(name)?;
    file.lock(true).in_file(name)?;
    Ok(file)
}

/// The role of a file in the store, as of the latest opening.
fn label(file: &dyn Backing, name: &str, at: u64, superblock: &Superblock) -> Result<FileRole, StoreError> {
    let found = Label::read(file, at).in_file(name)?;
    let is_own = |label: &Label| label.store == superblock.store && superblock.openings.contains(&label.opening);
    found.filter(is_own).map(|label| label.part).ok_or_else(|| StoreError::Foreign {
        file: name.into(),
        what: "it is no part of this store as it was last opened; put the files together that belong together".into(),
    })
}

fn misplaced(name: &str, found: FileRole) -> StoreError {
    StoreError::Foreign { file: name.into(), what: format!("it is {found} of this store, which belongs elsewhere") }
}

/// Sectors on their way to the caller.
struct Handing<'a> {
    take: Take<'a>,
    first: u64,
    bytes: Vec<u8>,
    read: Read,
}

impl Handing<'_> {
    fn hand(&mut self) -> io::Result<()> {
        if !self.bytes.is_empty() {
            (self.take)(self.first, &self.bytes)?;
            self.read.0 += (self.bytes.len() / SECTOR) as u64;
            self.bytes.clear();
        }
        Ok(())
    }

    /// A sector with its contents, or an unreadable one.
    fn give(&mut self, sector: u64, tag: Tag, bytes: &[u8]) -> io::Result<()> {
        if !tag.is(sector) {
            return self.lose(sector, 1);
        }
        let held = self.bytes.len() / SECTOR;
        if held >= HANDED_SECTORS || sector != self.first + held as u64 {
            self.hand()?;
        }
        if self.bytes.is_empty() {
            self.first = sector;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn lose(&mut self, sector: u64, sectors: u32) -> io::Result<()> {
        self.hand()?;
        lose(&mut self.read.1, sector, sectors.into());
        Ok(())
    }
}

fn read_flash(
    region: &Flash,
    run: &MapRun,
    seed: u32,
    frames: &mut Buffer,
    handing: &mut Handing<'_>,
) -> io::Result<()> {
    let Place::Flash { slot, page, sector: within, region: id } = run.place else { return Ok(()) };
    let (layout, of_page) = (region.layout, region.page_sectors());
    let stride = layout.stride();
    let (mut host, end) = (run.sector, run.sector + u64::from(run.sectors));
    let mut at = u64::from(page) * of_page + u64::from(within);
    while host < end {
        let page = at / of_page;
        let last_page = (at + (end - host) - 1) / of_page;
        if u64::from(within) >= of_page || last_page >= u64::from(region.pages_per_block) {
            return handing.lose(host, (end - host) as u32);
        }
        let count = ((last_page - page + 1) as usize).min((FRAMES_BYTES / stride).max(1));
        frames.resize(count * stride);
        let slot_at = u64::from(slot) * u64::from(region.pages_per_block) * stride as u64;
        region.file.read_at(FIRST_SLOT + slot_at + page * stride as u64, frames.bytes_mut())?;
        for (frame, page) in frames.bytes().chunks_exact(stride).zip(page..) {
            let is_there = layout
                .open(frame, seed)
                .is_ok_and(|(place, _)| (place.region, place.slot, u64::from(place.page)) == (id, slot, page));
            while host < end && at / of_page == page {
                let sector = (at % of_page) as usize;
                let tag = if is_there { layout.tag(frame, sector) } else { Tag::UNREADABLE };
                handing.give(host, tag, &frame[sector * SECTOR..(sector + 1) * SECTOR])?;
                (host, at) = (host + 1, at + 1);
            }
        }
    }
    Ok(())
}

fn read_disk(disk: &mut HomeDisk, run: &MapRun, handing: &mut Handing<'_>) -> io::Result<()> {
    let mut bytes = Buffer::new(HANDED_SECTORS * SECTOR);
    let mut tags = vec![Tag::NONE; HANDED_SECTORS];
    let end = run.sector + u64::from(run.sectors);
    for sector in (run.sector..end).step_by(HANDED_SECTORS) {
        let count = (end - sector).min(HANDED_SECTORS as u64) as usize;
        let (bytes, tags) = (&mut bytes.bytes_mut()[..count * SECTOR], &mut tags[..count]);
        disk.read(sector, bytes, tags)?;
        for ((bytes, &tag), sector) in bytes.chunks_exact(SECTOR).zip(tags.iter()).zip(sector..) {
            handing.give(sector, tag, bytes)?;
        }
    }
    Ok(())
}
