//! The mapping manager: the place of a cached page in flash, and its cached sectors.
//!
//! A cached page has a slot, which records the page's cached sectors: the others are on the disk. A page that is
//! neither cached nor on the disk was never written, or has been trimmed: it reads as zeros.

use serde::{Deserialize, Serialize};

use super::checkpoint::Checkpoint;
use crate::media::{Cause, Media, PageMerge, Part};
use crate::region::Space;
use crate::region::log::{Collection, Log};
use crate::save::Table;
use crate::scheme::space::Slots;
use crate::units::{Geometry, RegionId};

/// Sectors of a page, a bit each.
pub type Sectors = u32;

/// Sectors of the largest page.
const PAGE_SECTORS_MAX: u32 = Sectors::BITS;

/// `sectors` sectors from `first` on.
#[inline]
pub fn span(first: u32, sectors: u32) -> Sectors {
    if sectors == 0 { 0 } else { (Sectors::MAX >> (Sectors::BITS - sectors)) << first }
}

/// First sector and length of each run of sectors.
pub fn runs(mut sectors: Sectors) -> impl Iterator<Item = (u32, u32)> {
    std::iter::from_fn(move || {
        let first = sectors.trailing_zeros();
        let length = (sectors.checked_shr(first)?).trailing_ones();
        sectors &= !span(first, length);
        Some((first, length))
    })
}

/// Place of a logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this slot, at least partly.
    Cached(u32),
    /// On the disk only.
    Disk,
    /// Nowhere.
    Absent,
}

/// Layout of the flash.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Blocks of a die, in percent, that collection keeps erased; at least one.
    pub gc_free_percent: f64,
    /// Whether the last page of each block is its summary.
    pub summary_pages: bool,
    /// Whether checkpoints are written.
    pub checkpoints: bool,
}

/// The map of the cache.
#[derive(Debug, Serialize, Deserialize)]
pub struct Mapping {
    slots: Slots,
    /// Cached sectors of the page in each occupied slot.
    held: Table<Sectors>,
    /// A bit per logical page that is in the cache or on the disk.
    present: Table<u64>,
    #[serde(with = "crate::save::fixed")]
    logical_sectors: u64,
    checkpoint: Option<Checkpoint>,
}

impl Mapping {
    /// An empty cache in an erased region, in front of a disk without data.
    ///
    /// # Errors
    /// Too few blocks, or pages that are too large.
    pub fn new(region: RegionId, geometry: Geometry, logical_sectors: u64, layout: Layout) -> Result<Self, String> {
        if geometry.page_sectors() > PAGE_SECTORS_MAX {
            return Err(format!(
                "it can record the cached sectors of pages of up to {} KiB; use a chip with smaller pages or a smaller \
                 mapping_unit",
                PAGE_SECTORS_MAX / 2
            ));
        }
        let logical_pages = logical_sectors.div_ceil(u64::from(geometry.page_sectors()));
        if logical_pages >= u64::from(u32::MAX) {
            return Err(format!("{logical_pages} logical pages are more than 2^32; lower the capacity"));
        }
        let flash_pages = data_pages(&geometry, layout.summary_pages);
        let lent = if layout.checkpoints { Checkpoint::blocks(&geometry, flash_pages) } else { 0 };
        let die_blocks = geometry.blocks / geometry.dies;
        let gc_free_blocks = ((f64::from(die_blocks) * layout.gc_free_percent / 100.0).ceil() as u32).max(1);
        let settings = Collection { gc_free_blocks, idle_gc: false };
        let space = Log::largest(region, geometry, settings, lent, layout.summary_pages)?;
        Ok(Self {
            held: vec![0; space.logical_pages() as usize].into(),
            slots: Slots::over(space, 1),
            present: vec![0; logical_pages.div_ceil(64) as usize].into(),
            logical_sectors,
            checkpoint: (lent > 0).then(|| Checkpoint::new(region, geometry, lent)),
        })
    }

    /// Slots, their pages and their region.
    #[inline]
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Blocks and pages of the flash.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        self.slots.geometry()
    }

    /// First sector of a logical page, and the number of its sectors that the host sees.
    #[inline]
    pub fn sectors_of(&self, page: u32) -> (u64, u32) {
        let page_sectors = self.geometry().page_sectors();
        let first = u64::from(page) * u64::from(page_sectors);
        (first, (self.logical_sectors - first).min(u64::from(page_sectors)) as u32)
    }

    /// The place of a logical page.
    #[inline]
    pub fn find(&self, page: u32) -> Place {
        match self.slots.lookup(page) {
            Some(slot) => Place::Cached(slot),
            None if self.present[page as usize / 64] >> (page % 64) & 1 == 1 => Place::Disk,
            None => Place::Absent,
        }
    }

    /// Records that a logical page will be in the cache or on the disk.
    #[inline]
    pub fn set_present(&mut self, page: u32) {
        self.present[page as usize / 64] |= 1 << (page % 64);
    }

    /// Trims a logical page that is not cached.
    pub fn set_absent(&mut self, page: u32) {
        self.present[page as usize / 64] &= !(1 << (page % 64));
    }

    /// Records that all logical pages are on the disk.
    pub fn set_all_present(&mut self) {
        self.present.fill(u64::MAX);
    }

    /// Whether a slot is free.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.slots.used() < self.slots.capacity()
    }

    /// Assigns a slot to a logical page, which will hold its sectors `held`.
    #[inline]
    pub fn take(&mut self, page: u32, held: Sectors) -> u32 {
        let slot = self.slots.take(page);
        self.held[slot as usize] = held;
        slot
    }

    /// Removes a page from the cache.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        self.slots.release(slot);
    }

    /// Cached sectors of a slot's page.
    #[inline]
    pub fn held(&self, slot: u32) -> Sectors {
        self.held[slot as usize]
    }

    /// Records that a slot will also hold these sectors of its page.
    #[inline]
    pub fn hold(&mut self, slot: u32, sectors: Sectors) {
        self.held[slot as usize] |= sectors;
    }

    /// Reads the page in a slot.
    #[inline]
    pub fn read<M: Media>(&self, media: &mut M, slot: u32, cause: Cause) -> M::Data {
        let data = self.slots.read(media, slot, 0, cause);
        data.unwrap_or_else(|| unreachable!("a slot that is taken has been written"))
    }

    /// Programs the page of a slot.
    #[inline]
    pub fn write<M: Media>(&mut self, media: &mut M, slot: u32, parts: &[Part<M::Data>], cause: Cause) {
        self.slots.write(media, slot, 0, parts, cause);
    }

    /// Begins a checkpoint, if checkpoints are written.
    pub fn begin_checkpoint(&mut self) {
        let cached_pages = self.slots.used();
        if let Some(checkpoint) = &mut self.checkpoint {
            checkpoint.begin(cached_pages);
        }
    }

    /// Writes up to `pages` pages of an incomplete checkpoint; returns their number.
    #[inline]
    pub fn write_checkpoint<M: Media>(&mut self, media: &mut M, pages: u32) -> u32 {
        self.checkpoint.as_mut().map_or(0, |checkpoint| checkpoint.write(media, pages))
    }

    /// Brings the data for finding a logical page into the processor's cache.
    #[inline]
    pub fn prefetch_entry(&self, page: u32) {
        self.slots.prefetch_index(page);
        prefetch_index::prefetch_index(&self.present, page as usize / 64);
    }

    /// Prefetches the data of the slot that a logical page probably has.
    #[inline]
    pub fn prefetch_slot(&self, page: u32) {
        if let Some(slot) = self.slots.prefetch_slot(page) {
            prefetch_index::prefetch_index(&self.held, slot as usize);
        }
    }

    /// Prefetches the state that is dropped with a cached page: its index entry and its slot.
    #[inline]
    pub fn prefetch_cached(&self, page: u32, slot: u32) {
        self.slots.prefetch_index(page);
        self.slots.prefetch_entry(slot);
        prefetch_index::prefetch_index(&self.held, slot as usize);
    }

    /// Prefetches the state of a slot's flash page for its invalidation.
    #[inline]
    pub fn prefetch_flash(&self, slot: u32) {
        self.slots.space().prefetch_page(slot);
    }

    /// Bytes of tables in a controller: slots, their content, a bit per logical page.
    pub fn metadata_bytes(&self) -> u64 {
        self.slots.metadata_bytes() + size_of_val(&self.held[..]) as u64 + size_of_val(&self.present[..]) as u64
    }

    /// Checks that slots, their sectors and the index agree.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<(), String> {
        self.slots.check()?;
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.check()?;
        }
        let mut pages =
            (0..self.slots.capacity()).filter(|&slot| self.slots.is_taken(slot)).map(|slot| self.slots.page_of(slot));
        let page_sectors = u64::from(self.geometry().page_sectors());
        if let Some(page) = pages.find(|&page| u64::from(page) * page_sectors >= self.logical_sectors) {
            return Err(format!("page {page} is cached, but beyond the logical capacity"));
        }
        for slot in (0..self.slots.capacity()).filter(|&slot| self.slots.is_written(slot, 0)) {
            let (page, held) = (self.slots.page_of(slot), self.held[slot as usize]);
            let all = span(0, self.sectors_of(page).1);
            if held == 0 || held & !all != 0 {
                return Err(format!("page {page} has sectors {held:#x} of {all:#x} in slot {slot}"));
            }
            if self.present[page as usize / 64] >> (page % 64) & 1 == 0 {
                return Err(format!("page {page} is in slot {slot}, but recorded as absent"));
            }
        }
        Ok(())
    }
}

/// Merges the held parts of a page with new parts of it, which take precedence.
pub fn merge_held<D: Copy>(merge: &mut PageMerge<D>, data: D, held: Sectors) {
    for (first, sectors) in runs(held) {
        merge.fill(data, first, first, sectors);
    }
}

/// Pages of a region that can hold data.
pub fn data_pages(geometry: &Geometry, summary_pages: bool) -> u64 {
    u64::from(geometry.blocks) * u64::from(geometry.pages_per_block - u32::from(summary_pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_up_to_the_last_sector() {
        let found = |sectors| runs(sectors).collect::<Vec<_>>();
        assert_eq!(found(0), []);
        assert_eq!(found(0b0111_0010), [(1, 1), (4, 3)]);
        assert_eq!(found(u32::MAX), [(0, 32)]);
        assert_eq!(found(1 << 31 | 1), [(0, 1), (31, 1)]);
        assert_eq!((span(4, 3), span(0, 32), span(31, 0)), (0b0111_0000, u32::MAX, 0));
    }

    #[test]
    fn a_page_is_cached_on_the_disk_or_absent() {
        let geometry = Geometry::new(4096, 16, 20, 1).unwrap();
        let layout = Layout { gc_free_percent: 1.0, summary_pages: true, checkpoints: true };
        // The last of 101 pages has three sectors.
        let mut mapping = Mapping::new(RegionId(0), geometry, 100 * 8 + 3, layout).unwrap();
        assert_eq!(mapping.slots().capacity(), (20 - 2 - 3) * 15);
        assert_eq!((mapping.sectors_of(100), mapping.find(100)), ((800, 3), Place::Absent));
        mapping.set_all_present();
        assert_eq!(mapping.find(100), Place::Disk);
        let slot = mapping.take(100, 0b011);
        mapping.hold(slot, 0b100);
        assert_eq!((mapping.find(100), mapping.held(slot)), (Place::Cached(slot), 0b111));
        mapping.release(slot);
        assert_eq!(mapping.find(100), Place::Disk);
        mapping.set_absent(100);
        assert_eq!(mapping.find(100), Place::Absent);
    }

    #[test]
    fn a_region_without_room_is_refused() {
        let layout = Layout { gc_free_percent: 1.0, summary_pages: true, checkpoints: true };
        let refused = |geometry| Mapping::new(RegionId(0), geometry, 4096, layout).unwrap_err();
        assert!(refused(Geometry::new(4096, 16, 5, 1).unwrap()).contains("enlarge the region"));
        assert!(refused(Geometry::new(32768, 16, 20, 1).unwrap()).contains("16 KiB"));
    }
}
