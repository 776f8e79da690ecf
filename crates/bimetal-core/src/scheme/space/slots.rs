//! Pages of a large address space kept in a small region, such as the fast SSD of `HySSD` or the cache of `OP-FCL`.
//!
//! ```text
//!  page ──index──▶ slot ──▶ the flash pages slot·k … slot·k + k − 1 of a page-mapped region, which collects itself
//! ```
//!
//! A page is the unit of placement; it has `k` flash pages. The region has as many slots as it can hold pages and still
//! be collected. Each scheme decides which pages are in the region and how many of the slots are used.

use serde::{Deserialize, Serialize};

use crate::media::{Cause, Media, Part};
use crate::region::Space;
use crate::region::log::{Collection, Log};
use crate::region::slot_chains::SlotChains;
use crate::save::Table;
use crate::units::{Geometry, RegionId};

/// Marks a free slot.
const FREE: u32 = u32::MAX;

/// Chains per slot: 16 bytes. One search in eight looks at a second slot, and one in five for a page that has none.
const CHAINS_PER_SLOT: u64 = 4;

/// Slots, their index, and the region below them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "Saved")]
pub struct Slots {
    space: Log,
    /// The slots of pages in the region.
    #[serde(skip_serializing)]
    index: SlotChains,
    /// Page of each slot, or [`FREE`].
    pages: Table<u32>,
    /// Free slots; the last is taken first.
    free: Vec<u32>,
    /// Flash pages per slot, `k`.
    #[serde(with = "crate::save::fixed")]
    flash_pages: u32,
}

/// The saved form. The index follows from the pages of the slots.
#[derive(Deserialize)]
struct Saved {
    space: Log,
    pages: Table<u32>,
    free: Vec<u32>,
    #[serde(with = "crate::save::fixed")]
    flash_pages: u32,
}

impl From<Saved> for Slots {
    fn from(Saved { space, pages, mut free, flash_pages }: Saved) -> Self {
        // Reserve room for all slots, as in a new state.
        free.reserve_exact(pages.len().saturating_sub(free.len()));
        let mut index = empty_index(pages.len());
        for (&page, slot) in pages.iter().zip(0..).filter(|&(&page, _)| page != FREE) {
            index.link(page, slot);
        }
        Self { space, index, pages, free, flash_pages }
    }
}

/// An index for this number of slots.
fn empty_index(slots: usize) -> SlotChains {
    SlotChains::new(slots, slots as u64 * CHAINS_PER_SLOT)
}

impl Slots {
    /// An erased region for pages of `flash_pages` flash pages each.
    ///
    /// # Errors
    /// The region cannot hold one page and still be collected.
    pub fn new(region: RegionId, geometry: Geometry, flash_pages: u32, settings: Collection) -> Result<Self, String> {
        debug_assert!(flash_pages > 0);
        let slots = (settings.valid_pages_max(&geometry) / u64::from(flash_pages)) as u32;
        if slots == 0 {
            return Err(format!(
                "{} blocks of {} pages on {} dies hold no data, because garbage collection needs all pages; enlarge \
                 the fast region or lower gc_free_blocks",
                geometry.blocks, geometry.pages_per_block, geometry.dies
            ));
        }
        Log::new(region, geometry, u64::from(slots) * u64::from(flash_pages), settings)
            .map(|space| Self::over(space, flash_pages))
    }

    /// Slots of `flash_pages` flash pages each in the erased region `space`.
    pub fn over(space: Log, flash_pages: u32) -> Self {
        let slots = space.logical_pages() / flash_pages;
        Self {
            space,
            index: empty_index(slots as usize),
            pages: vec![FREE; slots as usize].into(),
            free: (0..slots).rev().collect(),
            flash_pages,
        }
    }

    /// Number of slots, that is, of pages that fit.
    pub fn capacity(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Number of used slots, that is, of pages in the region.
    #[inline]
    pub fn used(&self) -> u32 {
        self.capacity() - self.free.len() as u32
    }

    /// The geometry in blocks and flash pages.
    #[inline(always)]
    pub fn geometry(&self) -> &Geometry {
        self.space.geometry()
    }

    /// The region itself, with its erases, copies and check.
    pub fn space(&self) -> &Log {
        &self.space
    }

    /// The slot of a page; `None` if the page is not in the region.
    #[inline]
    pub fn lookup(&self, page: u32) -> Option<u32> {
        self.index.find(page, |slot| self.pages[slot as usize] == page)
    }

    /// Whether a slot is taken.
    pub fn is_taken(&self, slot: u32) -> bool {
        self.pages[slot as usize] != FREE
    }

    /// The page of a slot that is taken.
    #[inline]
    pub fn page_of(&self, slot: u32) -> u32 {
        self.pages[slot as usize]
    }

    /// Assigns a free slot to a page that has none. There must be a free slot.
    #[inline]
    pub fn take(&mut self, page: u32) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| unreachable!("a scheme keeps to the capacity"));
        debug_assert_eq!(self.lookup(page), None);
        self.index.link(page, slot);
        self.pages[slot as usize] = page;
        slot
    }

    /// Frees a used slot and invalidates the data of its page.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        let page = std::mem::replace(&mut self.pages[slot as usize], FREE);
        self.index.unlink(page, slot);
        (0..self.flash_pages).for_each(|part| self.invalidate(slot, part));
        self.free.push(slot);
    }

    /// Reads flash page `part` of a slot; `None` if it was never written or has been invalidated.
    #[inline]
    pub fn read<M: Media>(&self, media: &mut M, slot: u32, part: u32, cause: Cause) -> Option<M::Data> {
        let ppa = self.space.lookup(slot * self.flash_pages + part)?;
        Some(media.read(self.space.region(), ppa, cause))
    }

    /// Whether flash page `part` of a slot was written.
    #[inline]
    pub fn is_written(&self, slot: u32, part: u32) -> bool {
        self.space.lookup(slot * self.flash_pages + part).is_some()
    }

    /// Programs flash page `part` of a slot, collecting the region first if necessary.
    #[inline]
    pub fn write<M: Media>(&mut self, media: &mut M, slot: u32, part: u32, parts: &[Part<M::Data>], cause: Cause) {
        self.space.write(media, slot * self.flash_pages + part, parts, cause);
    }

    /// Invalidates flash page `part` of a slot.
    #[inline]
    pub fn invalidate(&mut self, slot: u32, part: u32) {
        self.space.invalidate(slot * self.flash_pages + part);
    }

    /// Prefetches the page of a slot into the processor's cache.
    #[inline]
    pub fn prefetch_page_of(&self, slot: u32) {
        prefetch_index::prefetch_index(&self.pages, slot as usize);
    }

    /// Prefetches the index entry of a page into the processor's cache.
    #[inline]
    pub fn prefetch_index(&self, page: u32) {
        self.index.prefetch(page);
    }

    /// Prefetches the data of the slot that a page probably has, if its index entry is already in the processor's cache.
    /// Returns that slot.
    #[inline]
    pub fn prefetch_slot(&self, page: u32) -> Option<u32> {
        let slot = self.index.first(page)?;
        self.prefetch_page_of(slot);
        self.prefetch_entry(slot);
        Some(slot)
    }

    /// Prefetches a slot's entries in the map and in the index into the processor's cache.
    #[inline]
    pub fn prefetch_entry(&self, slot: u32) {
        self.index.prefetch_link(slot);
        self.space.prefetch_entry(slot * self.flash_pages);
    }

    /// Bytes of the tables that a controller would hold: a hash table with the page of each slot and the places of its
    /// flash pages.
    pub fn metadata_bytes(&self) -> u64 {
        self.space.metadata_bytes() + u64::from(self.capacity()) * 4
    }

    /// Checks that index, slots and region agree.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        self.space.check()?;
        let taken = (0..self.capacity()).filter(|&slot| self.is_taken(slot)).count();
        if taken + self.free.len() != self.pages.len() {
            return Err(format!("{taken} slots are taken and {} free of {}", self.free.len(), self.capacity()));
        }
        for (slot, &page) in self.pages.iter().enumerate() {
            let slot = slot as u32;
            if page != FREE && self.lookup(page) != Some(slot) {
                return Err(format!("slot {slot} has page {page}, which the index has elsewhere"));
            }
            if page == FREE && (0..self.flash_pages).any(|part| self.is_written(slot, part)) {
                return Err(format!("free slot {slot} has data"));
            }
        }
        let mut is_taken: Vec<bool> = self.pages.iter().map(|&page| page != FREE).collect();
        let astray = |slot: &&u32| is_taken.get_mut(**slot as usize).is_none_or(|taken| std::mem::replace(taken, true));
        match self.free.iter().find(astray) {
            Some(slot) => Err(format!("slot {slot} is listed as free but has a page, or is listed twice")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Checked, Faults, SimMedia, SimRegion, Simulation};
    use crate::part::random;
    use crate::request::{Op, Request};
    use crate::save::{self, Save};

    const REGION: RegionId = RegionId(0);
    const SETTINGS: Collection = Collection { gc_free_blocks: 1, idle_gc: false };

    fn slots(blocks: u32, dies: u32, flash_pages: u32) -> (Checked<SimMedia>, Slots) {
        let geometry = Geometry::new(2048, 16, blocks, dies).unwrap();
        let chip = chip::find("chang-slc").unwrap();
        let region = SimRegion { chip, geometry, channels: 1, faults: Faults::default() };
        let media = Checked::new(SimMedia::new(&[region], 1), &[(geometry, 0)]);
        (media, Slots::new(REGION, geometry, flash_pages, SETTINGS).unwrap())
    }

    fn write(media: &mut Checked<SimMedia>, slots: &mut Slots, slot: u32) {
        media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 4, op: Op::Write, handle: 0 }, 0);
        let host = Part { data: media.host(), from: 0, to: 0, sectors: 4 };
        (0..slots.flash_pages).for_each(|part| slots.write(media, slot, part, &[host], Cause::Host));
    }

    /// Full to the last slot, with pages that come and go, the region is still collected.
    #[test]
    fn pages_come_and_go() {
        for (blocks, dies, flash_pages) in [(8, 1, 1), (9, 2, 2), (12, 2, 5)] {
            let (mut media, mut slots) = slots(blocks, dies, flash_pages);
            let capacity = (blocks / dies - 3) * dies * 16 / flash_pages;
            assert_eq!((slots.capacity(), slots.used()), (capacity, 0));
            let mut state = 1;
            let mut page = || random::below(&mut state, 1 << 31) as u32;
            for _ in 0..capacity {
                let slot = slots.take(page());
                write(&mut media, &mut slots, slot);
            }
            for _ in 0..2000 {
                let slot = page() % capacity;
                let old = slots.page_of(slot);
                slots.release(slot);
                assert_eq!((slots.lookup(old), slots.used()), (None, capacity - 1));
                let new = page();
                assert_eq!(slots.take(new), slot);
                assert_eq!((slots.lookup(new), slots.is_written(slot, flash_pages - 1)), (Some(slot), false));
                write(&mut media, &mut slots, slot);
            }
            slots.check().unwrap();
            assert!(slots.space().erases() > 0 && slots.read(&mut media, 0, 0, Cause::Host).is_some());
        }
    }

    #[test]
    fn slots_that_are_restored_full_are_freed_without_allocating() {
        let (_, mut full) = slots(8, 1, 1);
        let capacity = full.capacity();
        (0..capacity).for_each(|page| assert_eq!(full.take(page), page));
        let mut bytes = Vec::new();
        full.save(&mut bytes);
        let mut restored = save::restore(&slots(8, 1, 1).1, &bytes).unwrap();
        let allocations = allocation_counter::measure(|| (0..capacity).for_each(|slot| restored.release(slot)));
        assert_eq!((allocations.count_total, restored.used()), (0, 0));
    }

    #[test]
    fn a_region_without_room_for_a_page_is_refused() {
        let geometry = Geometry::new(2048, 16, 3, 1).unwrap();
        assert!(Slots::new(REGION, geometry, 1, SETTINGS).unwrap_err().contains("enlarge the fast region"));
        let geometry = Geometry::new(2048, 16, 4, 1).unwrap();
        assert!(Slots::new(REGION, geometry, 17, SETTINGS).is_err());
        assert_eq!(Slots::new(REGION, geometry, 16, SETTINGS).unwrap().capacity(), 1);
    }
}
