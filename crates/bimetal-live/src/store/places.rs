//! Places of sectors in the files, and their tracking while a scheme is asked for all sectors.

use std::collections::BTreeMap;
use std::sync::Arc;

use bimetal_core::media::Part;
use bimetal_core::units::{Geometry, Ppa, RegionId};

use super::region::Region;

/// Sectors of one request to a scheme.
pub const REQUEST_SECTORS: u64 = 256;

/// Place of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a page of a region.
    Flash {
        /// Index of the region in the device.
        region: u8,
        /// Slot within its file.
        slot: u32,
        /// Page within the slot.
        page: u16,
        /// Sector within the page.
        sector: u16,
    },
    /// On the home disk, as this sector.
    Disk(u64),
    /// In no file: it is lost.
    Nowhere,
}

impl Place {
    /// The place of the sector `sectors` sectors further in the same slot or on the home disk; `None` if there can be no
    /// such page. `page_sectors` are the sectors of a page, by region.
    pub(super) fn after(self, sectors: u32, page_sectors: &[u32]) -> Option<Self> {
        match self {
            Self::Flash { region, slot, page, sector } => {
                let (in_page, ahead) = (page_sectors[usize::from(region)], u32::from(sector) + sectors);
                let page = u16::try_from(u32::from(page) + ahead / in_page).ok()?;
                Some(Self::Flash { region, slot, page, sector: (ahead % in_page) as u16 })
            }
            Self::Disk(sector) => Some(Self::Disk(sector + u64::from(sectors))),
            Self::Nowhere => Some(Self::Nowhere),
        }
    }
}

/// A place as two numbers, which stay in registers: a survey handles one for each page of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed {
    /// Index of the region, or one of the constants.
    file: u32,
    /// In a region: the slot, and in the lower half the sector within the slot. On the home disk: the sector. Each
    /// following sector is one more.
    at: u64,
}

impl Packed {
    /// The home disk.
    const DISK: u32 = 1 << 8;
    /// No file.
    const NO_FILE: u32 = Self::DISK + 1;
    /// Sectors with a list of their places, whose index is `at`.
    const EACH: u32 = Self::DISK + 2;

    /// The place of data that are in no file.
    const NOWHERE: Self = Self { file: Self::NO_FILE, at: 0 };

    fn on_disk(sector: u64) -> Self {
        Self { file: Self::DISK, at: sector }
    }

    /// The first sector of a page that was not programmed since the survey began.
    #[inline]
    fn of_page(region: &Region, page: Ppa) -> Self {
        match region.slot_of(page) {
            Some((slot, page)) => {
                let sector = u64::from(page) * region.layout.page_sectors() as u64;
                Self { file: region.id.into(), at: u64::from(slot) << 32 | sector }
            }
            None => Self::NOWHERE,
        }
    }

    #[inline]
    fn after(self, sectors: u32) -> Self {
        Self { at: self.at + u64::from(sectors), ..self }
    }

    fn unpack(self, page_sectors: &[u32]) -> Place {
        match self.file {
            Self::DISK => Place::Disk(self.at),
            Self::NO_FILE => Place::Nowhere,
            region => {
                let (sector, in_page) = (self.at as u32, page_sectors[region as usize]);
                Place::Flash {
                    region: region as u8,
                    slot: (self.at >> 32) as u32,
                    page: (sector / in_page) as u16,
                    sector: (sector % in_page) as u16,
                }
            }
        }
    }
}

/// Consecutive sectors of a request.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// The first one, as an index within the request.
    at: u32,
    sectors: u32,
    place: Packed,
}

impl Found {
    #[inline]
    fn end(&self) -> u32 {
        self.at + self.sectors
    }
}

/// The notes of a survey: the origin of all data.
#[derive(Debug)]
pub struct Survey {
    /// Sectors of a page, by region.
    page_sectors: Vec<u32>,
    /// Origin of the sectors in pages that were programmed since the survey began.
    pages: BTreeMap<(RegionId, Ppa), Arc<[Packed]>>,
    /// Number of sectors in these pages and on the disk.
    pub(super) noted: usize,
    /// Origin of home-disk sectors that were written since the survey began.
    disk: BTreeMap<u64, Packed>,
    /// Origin of the first of consecutive sectors in transit in the current request, or the number of a list.
    notes: Vec<Packed>,
    /// Origin of each of some sectors in transit.
    lists: Vec<Arc<[Packed]>>,
    /// Places of the sectors of the current request, ascending. Missing ones were not delivered.
    found: Vec<Found>,
}

impl Survey {
    /// The note of host data, which have no place.
    pub const HOST: u32 = 0;

    /// A survey of these regions, and of the home disk.
    pub fn new(regions: &[Region]) -> Self {
        Self {
            page_sectors: page_sectors(regions),
            pages: BTreeMap::new(),
            noted: 0,
            disk: BTreeMap::new(),
            notes: Vec::new(),
            lists: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Begins a request.
    pub(super) fn begin(&mut self) {
        self.notes.clear();
        self.lists.clear();
        self.notes.push(Packed::NOWHERE);
        self.found.clear();
    }

    /// Rows of consecutive sectors of the request that were delivered, ascending: the first one as an index within the
    /// request, their number, and the place of the first one.
    pub(super) fn found(&self) -> impl Iterator<Item = (u32, u32, Place)> {
        self.found.iter().map(|row| (row.at, row.sectors, row.place.unpack(&self.page_sectors)))
    }

    /// Adds a note on the origin of sectors. Returns its number.
    #[inline]
    fn note(&mut self, note: Packed) -> u32 {
        self.notes.push(note);
        self.notes.len() as u32 - 1
    }

    /// Adds a note on the origin of each of some sectors.
    fn note_each(&mut self, places: Arc<[Packed]>) -> u32 {
        self.lists.push(places);
        self.note(Packed { file: Packed::EACH, at: self.lists.len() as u64 - 1 })
    }

    /// Place of a sector in a note.
    fn place(&self, note: u32, sector: u32) -> Packed {
        match self.notes[note as usize] {
            Packed { file: Packed::EACH, at } => self.lists[at as usize][sector as usize],
            first => first.after(sector),
        }
    }

    /// Reads a page.
    #[inline]
    pub fn read(&mut self, region: &Region, page: Ppa) -> u32 {
        // Its block may be erased before the places are needed.
        if !self.pages.is_empty()
            && let Some(places) = self.pages.get(&(RegionId(region.id), page))
        {
            return self.note_each(Arc::clone(places));
        }
        self.note(Packed::of_page(region, page))
    }

    /// Programs a page. The data of its parts are notes.
    pub fn program(&mut self, region: &Region, page: Ppa, parts: impl Iterator<Item = Part<u32>>) {
        let mut places = vec![Packed::NOWHERE; region.layout.page_sectors()];
        for Part { data, from, to, sectors } in parts {
            for sector in 0..sectors {
                places[(to + sector) as usize] = self.place(data, from + sector);
            }
        }
        self.put(region, page, places.into());
    }

    /// Copies a page.
    pub fn copy(&mut self, region: &Region, from: Ppa, to: Ppa) {
        let places = self.pages.get(&(RegionId(region.id), from)).cloned();
        let first = Packed::of_page(region, from);
        let row = || (0..region.layout.page_sectors() as u32).map(|sector| first.after(sector)).collect();
        self.put(region, to, places.unwrap_or_else(row));
    }

    fn put(&mut self, region: &Region, page: Ppa, places: Arc<[Packed]>) {
        self.noted += places.len();
        if let Some(before) = self.pages.insert((RegionId(region.id), page), places) {
            self.noted -= before.len();
        }
    }

    /// Erases the pages of a block.
    pub fn erase(&mut self, region: RegionId, geometry: &Geometry, first: Ppa) {
        let pages = (region, first)..=(region, Ppa(first.0 + geometry.pages_per_block - 1));
        let erased: Vec<_> = self.pages.range(pages).map(|(&page, _)| page).collect();
        for page in erased {
            self.noted -= self.pages.remove(&page).map_or(0, |places| places.len());
        }
    }

    /// Delivers sectors of the request, from a sector of a note on.
    #[inline]
    pub fn deliver(&mut self, note: u32, from: u32, at: u32, sectors: u32) {
        let first = self.notes[note as usize];
        if first.file != Packed::EACH {
            return self.find(Found { at, sectors, place: first.after(from) });
        }
        for sector in 0..sectors {
            self.find(Found { at: at + sector, sectors: 1, place: self.place(note, from + sector) });
        }
    }

    /// Adds those sectors that were not found before.
    #[inline]
    fn find(&mut self, row: Found) {
        match self.found.last_mut() {
            Some(last) if last.end() > row.at => self.find_between(row),
            Some(last) if last.end() == row.at && last.place.after(last.sectors) == row.place => {
                last.sectors += row.sectors;
            }
            _ => self.found.push(row),
        }
    }

    /// The same if later sectors were found before earlier ones, or the same ones repeatedly.
    #[cold]
    fn find_between(&mut self, row: Found) {
        let mut index = self.found.partition_point(|found| found.end() <= row.at);
        let mut at = row.at;
        while at < row.end() {
            let next = self.found.get(index).copied();
            let end = next.map_or(row.end(), |next| next.at.min(row.end()));
            if at < end {
                let place = row.place.after(at - row.at);
                self.found.insert(index, Found { at, sectors: end - at, place });
                index += 1;
            }
            at = next.map_or(end, |next| next.end());
            index += 1;
        }
    }

    /// Reads sectors of the home disk.
    pub fn fetch(&mut self, sector: u64, sectors: u32) -> u32 {
        let range = sector..sector + u64::from(sectors);
        if self.disk.range(range.clone()).next().is_none() {
            return self.note(Packed::on_disk(sector));
        }
        let places = range.map(|sector| self.disk.get(&sector).copied().unwrap_or(Packed::on_disk(sector)));
        let places = places.collect();
        self.note_each(places)
    }

    /// Writes sectors of the home disk, from a sector of a note on.
    pub fn destage(&mut self, note: u32, from: u32, sector: u64, sectors: u32) {
        for ahead in 0..sectors {
            let place = self.place(note, from + ahead);
            self.noted += usize::from(self.disk.insert(sector + u64::from(ahead), place).is_none());
        }
    }
}

/// Sectors of a page, by region.
pub fn page_sectors(regions: &[Region]) -> Vec<u32> {
    regions.iter().map(|region| region.layout.page_sectors() as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_that_is_delivered_twice_lies_where_it_was_found_first() {
        let mut survey = Survey::new(&[]);
        survey.begin();
        let [early, late] = [100, 500].map(|sector| survey.fetch(sector, 16));
        survey.deliver(early, 1, 4, 2);
        survey.deliver(early, 9, 8, 1);
        survey.deliver(late, 0, 0, 10);
        survey.deliver(late, 12, 12, 2);
        survey.deliver(early, 0, 11, 4);
        let found: Vec<_> = survey.found().collect();
        let disk = Place::Disk;
        let expected = [
            (0, 4, disk(500)),
            (4, 2, disk(101)),
            (6, 2, disk(506)),
            (8, 1, disk(109)),
            (9, 1, disk(509)),
            (11, 1, disk(100)),
            (12, 2, disk(512)),
            (14, 1, disk(103)),
        ];
        assert_eq!(found, expected);
    }
}
