//! The policy of the slow region: data from the cache and collected data in bands of their own, and the band to be
//! collected next.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::region::log::{Blocks, Packing, Separation};
use crate::region::page_table::PageTable;
use crate::region::valid_counts::ValidCounts;
use crate::save::Table;

/// Streams: units from the cache, and collected units.
pub const STREAMS: usize = 2;
/// Bands whose shares of invalid units differ by no more than this, in hundredths, are equally good victims.
const EQUAL_PERCENT: u32 = 10;

/// The state of the bands.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bands {
    #[serde(with = "crate::save::fixed")]
    packing: Packing,
    /// By band: number of times that it was written.
    writes: Table<u32>,
    padded_units: u64,
}

impl Bands {
    /// Bands that were never written.
    pub fn new(bands: usize, packing: Packing) -> Self {
        Self { packing, writes: vec![0; bands].into(), padded_units: 0 }
    }

    /// Units of a page.
    pub fn units_per_page(&self) -> u32 {
        self.packing.per_page()
    }

    /// Places for units that were left empty in the pages written so far.
    pub fn padded_units(&self) -> u64 {
        self.padded_units
    }
}

impl Separation<STREAMS> for Bands {
    const POOLED: bool = true;

    #[inline(always)]
    fn packing(&self) -> Option<&Packing> {
        Some(&self.packing)
    }

    fn left_empty(&mut self, units: u32) {
        self.padded_units += u64::from(units);
    }

    fn written(&mut self, _: u32, _: Option<usize>) -> usize {
        0
    }

    /// Among the bands with about the most invalid units the one written least, then the first.
    fn victim(&mut self, counts: &mut ValidCounts, entries: Range<usize>) -> Option<usize> {
        let least = counts.fewest(entries.clone()).map(|emptiest| counts.valid_pages(emptiest))?;
        let most = least + counts.pages_per_block() * EQUAL_PERCENT / 100;
        let is_equal = |&band: &usize| counts.cost(band) <= most && self.packing.frees_a_page(counts.cost(band));
        entries.filter(is_equal).min_by_key(|&band| self.writes[band])
    }

    fn opened(&mut self, band: usize, _: u32, _: usize) {
        self.writes[band] += 1;
    }

    fn check(&self, _: &PageTable, blocks: &Blocks<STREAMS>) -> Result<(), String> {
        match self.writes.len() {
            bands if bands == blocks.entries() => Ok(()),
            bands => Err(format!("{bands} bands have counts of writes, and there are {}", blocks.entries())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::log::{Collection, Log};
    use crate::units::{Geometry, RegionId};

    /// The band with the most invalid units, unless one within ten points was written fewer times.
    #[test]
    fn the_victim_is_about_the_emptiest_and_among_these_the_least_worn() {
        let media = Geometry::new(16 << 10, 16, 10, 1).unwrap();
        let collection = Collection { gc_free_blocks: 2, idle_gc: false };
        let bands = |blocks: &Blocks<STREAMS>, packing| Bands::new(blocks.entries(), packing);
        let mut log = Log::packed(RegionId(0), media, (256, 4096), collection, bands).unwrap();
        let bands = log.separation_mut();
        let mut counts = ValidCounts::new(10, 64);
        for band in 0..4 {
            counts.add(band, 64);
            counts.seal(band);
        }
        let invalidate = |counts: &mut ValidCounts, band, units| (0..units).for_each(|_| counts.invalidate(band));
        invalidate(&mut counts, 3, 3);
        assert_eq!(bands.victim(&mut counts, 0..10), None, "61 units take all 16 pages");
        invalidate(&mut counts, 0, 8);
        invalidate(&mut counts, 1, 16);
        invalidate(&mut counts, 2, 14);
        assert_eq!(bands.victim(&mut counts, 0..10), Some(1), "of bands 1 and 2, alike worn, the first");
        (0..2).for_each(|_| bands.opened(1, 0, 0));
        assert_eq!(bands.victim(&mut counts, 0..10), Some(2), "six units of 64 are ten points: band 0 is no candidate");
    }
}
