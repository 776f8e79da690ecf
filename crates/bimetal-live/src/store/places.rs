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
    /// The place of a later sector of the same page, or of the home disk.
    pub(super) fn after(self, sectors: u32) -> Self {
        match self {
            Self::Flash { region, slot, page, sector } => {
                Self::Flash { region, slot, page, sector: sector + sectors as u16 }
            }
            Self::Disk(sector) => Self::Disk(sector + u64::from(sectors)),
            Self::Nowhere => Self::Nowhere,
        }
    }

    /// The place of the next sector in the same run, if there can be one. `page_sectors` are the sectors of a page, by
    /// region.
    pub(super) fn next(self, page_sectors: &[u32]) -> Option<Self> {
        match self {
            Self::Flash { region, slot, page, sector } => {
                if u32::from(sector) + 1 < page_sectors[usize::from(region)] {
                    Some(Self::Flash { region, slot, page, sector: sector + 1 })
                } else {
                    Some(Self::Flash { region, slot, page: page.checked_add(1)?, sector: 0 })
                }
            }
            Self::Disk(sector) => Some(Self::Disk(sector + 1)),
            Self::Nowhere => Some(Self::Nowhere),
        }
    }
}

/// Places of sectors that a scheme holds.
#[derive(Clone, Debug)]
enum Note {
    /// Consecutive, from this place on.
    Row(Place),
    /// A place for each.
    Each(Arc<[Place]>),
}

/// Consecutive sectors of a request.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The first one, as an index within the request.
    pub at: u32,
    /// Number of sectors.
    pub sectors: u32,
    /// Place of the first one.
    pub place: Place,
}

impl Found {
    fn end(&self) -> u32 {
        self.at + self.sectors
    }
}

/// The notes of a survey: the origin of all data.
#[derive(Debug, Default)]
pub struct Survey {
    /// Origin of the sectors in pages that were programmed since the survey began.
    pages: BTreeMap<(RegionId, Ppa), Arc<[Place]>>,
    /// Number of sectors in these pages and on the disk.
    pub(super) noted: usize,
    /// Origin of home-disk sectors that were written since the survey began.
    disk: BTreeMap<u64, Place>,
    /// Origin of sectors in transit in the current request. Host data have no place.
    notes: Vec<Note>,
    /// Places of the sectors of the current request, ascending. Missing ones were not delivered.
    pub(super) found: Vec<Found>,
}

impl Survey {
    /// The note of host data.
    pub const HOST: u32 = 0;

    /// Begins a request.
    pub(super) fn begin(&mut self) {
        self.notes.clear();
        self.notes.push(Note::Row(Place::Nowhere));
        self.found.clear();
    }

    /// Adds a note on the origin of sectors. Returns its number.
    fn note(&mut self, note: Note) -> u32 {
        self.notes.push(note);
        self.notes.len() as u32 - 1
    }

    /// Place of a sector in a note.
    fn place(&self, note: u32, sector: u32) -> Place {
        match &self.notes[note as usize] {
            Note::Row(first) => first.after(sector),
            Note::Each(places) => places[sector as usize],
        }
    }

    /// Reads a page.
    #[inline]
    pub fn read(&mut self, region: &Region, page: Ppa) -> u32 {
        // Its block may be erased before the places are needed.
        let note = match self.pages.get(&(RegionId(region.id), page)) {
            Some(places) => Note::Each(Arc::clone(places)),
            None => Note::Row(of_page(region, page)),
        };
        self.note(note)
    }

    /// Programs a page. The data of its parts are notes.
    pub fn program(&mut self, region: &Region, page: Ppa, parts: impl Iterator<Item = Part<u32>>) {
        let mut places = vec![Place::Nowhere; region.layout.page_sectors()];
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
        let first = of_page(region, from);
        let row = || (0..region.layout.page_sectors() as u32).map(|sector| first.after(sector)).collect();
        self.put(region, to, places.unwrap_or_else(row));
    }

    fn put(&mut self, region: &Region, page: Ppa, places: Arc<[Place]>) {
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
        match self.notes[note as usize] {
            Note::Row(first) => self.find(Found { at, sectors, place: first.after(from) }),
            Note::Each(_) => {
                for sector in 0..sectors {
                    self.find(Found { at: at + sector, sectors: 1, place: self.place(note, from + sector) });
                }
            }
        }
    }

    /// Adds those sectors that were not found before.
    #[inline]
    fn find(&mut self, row: Found) {
        match self.found.last() {
            Some(last) if last.end() > row.at => self.find_between(row),
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
            return self.note(Note::Row(Place::Disk(sector)));
        }
        let places = range.map(|sector| self.disk.get(&sector).copied().unwrap_or(Place::Disk(sector)));
        let places = places.collect();
        self.note(Note::Each(places))
    }

    /// Writes sectors of the home disk, from a sector of a note on.
    pub fn destage(&mut self, note: u32, from: u32, sector: u64, sectors: u32) {
        for ahead in 0..sectors {
            let place = self.place(note, from + ahead);
            self.noted += usize::from(self.disk.insert(sector + u64::from(ahead), place).is_none());
        }
    }
}

/// Place of the first sector in a page that was not programmed since the survey began.
fn of_page(region: &Region, page: Ppa) -> Place {
    match region.spot(page) {
        Some(spot) => {
            Place::Flash { region: region.id, slot: spot.place.slot, page: spot.place.page as u16, sector: 0 }
        }
        None => Place::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_that_is_delivered_twice_lies_where_it_was_found_first() {
        let mut survey = Survey::default();
        survey.begin();
        let [early, late] = [100, 500].map(|sector| survey.fetch(sector, 16));
        survey.deliver(early, 1, 4, 2);
        survey.deliver(early, 9, 8, 1);
        survey.deliver(late, 0, 0, 10);
        survey.deliver(late, 12, 12, 2);
        survey.deliver(early, 0, 11, 4);
        let found: Vec<_> = survey.found.iter().map(|found| (found.at, found.sectors, found.place)).collect();
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
