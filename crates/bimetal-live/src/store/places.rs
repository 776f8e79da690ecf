//! Where sectors lie in the files, and what is known of that while a scheme is asked for all of them.

use std::collections::BTreeMap;

use bimetal_core::media::Part;
use bimetal_core::units::{Geometry, Ppa, RegionId};

use super::region::Region;

/// Sectors that a scheme is asked for at once.
pub const REQUEST_SECTORS: u64 = 256;

/// Where a sector lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a page of a region.
    Flash {
        /// Position of the region in the device.
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
    /// Where the next sector of the same run lies, if there can be one. `page_sectors` has the sectors of a page of each region.
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

/// What is known in a survey: where everything comes from.
#[derive(Debug, Default)]
pub struct Survey {
    /// Where the sectors of pages come from that were programmed since.
    pages: BTreeMap<(RegionId, Ppa), Box<[Place]>>,
    /// Sectors in them.
    pub(super) noted: usize,
    /// Where sectors of the home disk come from that were written since.
    disk: BTreeMap<u64, Place>,
    /// Where sectors come from that are on their way in the request being served. The host's are nowhere.
    notes: Vec<Place>,
    /// Where the sectors of that request come from.
    pub(super) found: Vec<Option<Place>>,
}

impl Survey {
    /// The first note of what the host sends.
    pub const HOST: u32 = 0;

    /// A request of `sectors` sectors begins.
    pub(super) fn begin(&mut self, sectors: usize) {
        self.notes.clear();
        self.notes.resize(REQUEST_SECTORS as usize, Place::Nowhere);
        self.found.clear();
        self.found.resize(sectors, None);
    }

    /// Notes where sectors come from. Returns the first of these notes.
    fn note(&mut self, places: impl IntoIterator<Item = Place>) -> u32 {
        let first = self.notes.len() as u32;
        self.notes.extend(places);
        first
    }

    /// A page is read.
    pub fn read(&mut self, region: &Region, page: Ppa) -> u32 {
        let Self { pages, notes, .. } = self;
        let first = notes.len() as u32;
        match pages.get(&(RegionId(region.id), page)) {
            // Its block may be erased before they are needed.
            Some(places) => notes.extend_from_slice(places),
            None => notes.extend(of_page(region, page)),
        }
        first
    }

    /// A page is programmed, of parts whose data are notes.
    pub fn program(&mut self, region: &Region, page: Ppa, parts: &[Part<u32>]) {
        let mut places = vec![Place::Nowhere; region.layout.page_sectors()];
        for Part { data, from, to, sectors } in parts {
            let (first, to, sectors) = ((data + from) as usize, *to as usize, *sectors as usize);
            places[to..to + sectors].copy_from_slice(&self.notes[first..first + sectors]);
        }
        self.put(region, page, places.into());
    }

    /// A page is copied.
    pub fn copy(&mut self, region: &Region, from: Ppa, to: Ppa) {
        let places = self.pages.get(&(RegionId(region.id), from)).cloned();
        self.put(region, to, places.unwrap_or_else(|| of_page(region, from).collect()));
    }

    fn put(&mut self, region: &Region, page: Ppa, places: Box<[Place]>) {
        self.noted += places.len();
        if let Some(before) = self.pages.insert((RegionId(region.id), page), places) {
            self.noted -= before.len();
        }
    }

    /// Pages of a block are erased.
    pub fn erase(&mut self, region: RegionId, geometry: &Geometry, first: Ppa) {
        let pages = (region, first)..=(region, Ppa(first.0 + geometry.pages_per_block - 1));
        let erased: Vec<_> = self.pages.range(pages).map(|(&page, _)| page).collect();
        for page in erased {
            self.noted -= self.pages.remove(&page).map_or(0, |places| places.len());
        }
    }

    /// Sectors of the request are found.
    pub fn deliver(&mut self, first: u32, at: u32, sectors: u32) {
        let notes = &self.notes[first as usize..(first + sectors) as usize];
        for (found, &place) in self.found[at as usize..].iter_mut().zip(notes) {
            found.get_or_insert(place);
        }
    }

    /// Sectors of the home disk are read.
    pub fn fetch(&mut self, sector: u64, sectors: u32) -> u32 {
        let places = (sector..sector + u64::from(sectors))
            .map(|sector| self.disk.get(&sector).copied().unwrap_or(Place::Disk(sector)));
        let places: Vec<Place> = places.collect();
        self.note(places)
    }

    /// Sectors of the home disk are written.
    pub fn destage(&mut self, first: u32, sector: u64, sectors: u32) {
        let notes = &self.notes[first as usize..(first + sectors) as usize];
        for (&place, sector) in notes.iter().zip(sector..) {
            self.noted += usize::from(self.disk.insert(sector, place).is_none());
        }
    }
}

/// Where the sectors of a page lie that was not programmed since.
fn of_page(region: &Region, page: Ppa) -> impl Iterator<Item = Place> {
    let (place, id) = (region.spot(page).map(|spot| spot.place), region.id);
    (0..region.layout.page_sectors() as u16).map(move |sector| match place {
        Some(place) => Place::Flash { region: id, slot: place.slot, page: place.page as u16, sector },
        None => Place::Nowhere,
    })
}
