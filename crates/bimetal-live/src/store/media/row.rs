//! Pages of a large write that go directly from its payload to their file with one call, past the write buffer.
//!
//! Pages wait in the write buffer so that a small commit can include them in its batch. If frames of the commit are
//! already in the file, this has no advantage, and a large write would only cost one more copy.

use std::io::{self, IoSlice};

use bimetal_core::media::Part;
use bimetal_core::request::Op;
use bimetal_core::units::RegionId;

use super::{Carried, FileMedia, From, Io};
use crate::store::frame::{PageSum, seal_label, set_label_tag};
use crate::store::region::Spot;

/// Least number of pages in a large write.
const LARGE_PAGES: usize = 4;
/// Largest number of pages in one write.
const ROW_PAGES: usize = 64;

/// Pages that are adjacent in a file and whose data are in the arena.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Their places, and their first sectors in the arena.
    pages: Vec<(Spot, u32)>,
    labels: Vec<u8>,
}

impl Row {
    /// Removes all pages.
    pub(super) fn clear(&mut self) {
        self.pages.clear();
    }

    /// Whether it contains a page.
    pub(super) fn holds(&self, spot: &Spot) -> bool {
        let (Some((first, _)), Some((last, _))) = (self.pages.first(), self.pages.last()) else { return false };
        first.place.region == spot.place.region && (first.offset..=last.offset).contains(&spot.offset)
    }

    /// Memory in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<(Spot, u32)>() + self.labels.capacity()
    }
}

impl FileMedia {
    /// The first sector in the arena, if the page can be written directly.
    pub(super) fn straight(&self, region: RegionId, spot: &Spot, parts: &[Part<Carried>]) -> Option<u32> {
        let of_region = &self.regions[region.index()];
        let page_sectors = of_region.layout.page_sectors();
        let is_large = self.request.op == Op::Write && self.request.sectors as usize >= LARGE_PAGES * page_sectors;
        match parts {
            [Part { data: Carried { from: From::Arena(first), .. }, from, to: 0, sectors }]
                if is_large
                    && self.io == Io::Files
                    && *sectors as usize == page_sectors
                    && of_region.takes_rows(spot) =>
            {
                Some(first + from)
            }
            _ => None,
        }
    }

    /// Adds a page to the row. If it is not adjacent, the row is written first.
    pub(super) fn add_to_row(&mut self, region: RegionId, spot: &Spot, first: u32) {
        let layout = self.regions[region.index()].layout;
        let follows = self.row.pages.last().is_some_and(|(last, _)| spot.is_behind(last, layout.stride()));
        if !follows || self.row.pages.len() == ROW_PAGES {
            self.write_row();
        }
        let Row { pages, labels } = &mut self.row;
        let from = pages.len() * layout.label_bytes();
        labels.resize(labels.len().max(from + layout.label_bytes()), 0);
        let label = &mut labels[from..from + layout.label_bytes()];
        // It may be that of a page of another region, with more sectors.
        label.fill(0);
        let sectors = layout.page_sectors() as u32;
        for (sector, &tag) in self.arena.tags(first, sectors).iter().enumerate() {
            set_label_tag(label, sector, tag);
        }
        let sum = PageSum::of(self.arena.bytes(first, sectors), self.seed);
        seal_label(label, sum, spot.place, self.sequence);
        pages.push((*spot, first));
    }

    /// Writes the pages of the row.
    pub(super) fn write_row(&mut self) {
        if self.row.pages.is_empty() {
            return;
        }
        let mut row = std::mem::take(&mut self.row);
        if let Err(error) = self.write_pages(&row) {
            self.hold_row(&row, &error);
        }
        row.clear();
        self.row = row;
    }

    fn write_pages(&mut self, row: &Row) -> io::Result<()> {
        let (spot, _) = row.pages[0];
        let region = &mut self.regions[usize::from(spot.place.region)];
        let (sectors, label_bytes) = (region.layout.page_sectors() as u32, region.layout.label_bytes());
        let mut places = [IoSlice::new(&[]); 2 * ROW_PAGES];
        let labels = row.labels.chunks_exact(label_bytes);
        for ((places, &(_, first)), label) in places.chunks_exact_mut(2).zip(&row.pages).zip(labels) {
            places[0] = IoSlice::new(self.arena.bytes(first, sectors));
            places[1] = IoSlice::new(label);
        }
        region.write_row(spot.offset, &places[..2 * row.pages.len()])
    }

    fn hold_row(&mut self, row: &Row, error: &io::Error) {
        for (index, (spot, first)) in row.pages.iter().enumerate() {
            let layout = self.regions[usize::from(spot.place.region)].layout;
            let label = &row.labels[index * layout.label_bytes()..(index + 1) * layout.label_bytes()];
            let frame = [self.arena.bytes(*first, layout.page_sectors() as u32), label].concat();
            self.hold(spot, frame, error);
        }
    }
}
