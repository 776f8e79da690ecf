//! A page-mapped region with greedy garbage collection.
//!
//! Pages go to the dies in turn; each die is collected by itself, in the foreground, when it is down to
//! `gc_free_blocks` erased blocks. The victim is the block with the fewest valid pages.

use super::Space;
use crate::media::{Cause, CellMode, Media, Part};
use crate::region::page_map::{PageMap, RESERVED_BLOCKS, Stream};
use crate::region::page_table::Run;
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// Blocks of a die that are being filled: one for each stream.
const OPEN_BLOCKS: u32 = 2;

/// When a region is collected.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Erased blocks of a die at or below which it is collected before the next write.
    pub gc_free_blocks: u32,
    /// Whether idle time is used to collect up to twice as many, as far as the spare area allows.
    pub idle_gc: bool,
}

impl Settings {
    /// Blocks of each die that cannot hold data at rest.
    fn reserved_blocks(&self) -> u32 {
        RESERVED_BLOCKS.max(self.gc_free_blocks.saturating_add(OPEN_BLOCKS))
    }

    /// Most valid pages that a region collected like this can hold.
    pub fn valid_pages_max(&self, geometry: &Geometry) -> u64 {
        let blocks = (geometry.blocks / geometry.dies).saturating_sub(self.reserved_blocks());
        u64::from(blocks) * u64::from(geometry.pages_per_block) * u64::from(geometry.dies)
    }
}

/// The region's state.
#[derive(Debug)]
pub struct PageSpace {
    region: RegionId,
    pages: PageMap,
    settings: Settings,
    /// Erased blocks of a die up to which idle time is used.
    idle_blocks: u32,
    erases: u64,
    copied_pages: u64,
}

impl PageSpace {
    /// An erased region for `logical_pages` pages.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn new(region: RegionId, geometry: Geometry, logical_pages: u64, settings: Settings) -> Result<Self, String> {
        Self::lending(region, geometry, logical_pages, settings, 0)
    }

    /// An erased region for an address space of `logical_pages` pages of which at most `valid_pages` lie in it at a time:
    /// its user sees to that. [`Settings::valid_pages_max`] says how many are possible.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn sparse(
        region: RegionId,
        geometry: Geometry,
        logical_pages: u64,
        valid_pages: u64,
        settings: Settings,
    ) -> Result<Self, String> {
        let blocks = u64::from(geometry.blocks / geometry.dies);
        let spare = spare_blocks(&geometry, blocks, valid_pages, &settings)?;
        Ok(Self::over(region, PageMap::sparse(geometry, logical_pages, valid_pages)?, settings, spare))
    }

    /// The same with its first `lent` blocks lent from the beginning.
    ///
    /// # Errors
    /// Too little spare area without them.
    pub fn lending(
        region: RegionId,
        geometry: Geometry,
        logical_pages: u64,
        settings: Settings,
        lent: u32,
    ) -> Result<Self, String> {
        let blocks = u64::from((geometry.blocks / geometry.dies).saturating_sub(lent.div_ceil(geometry.dies)));
        let spare = spare_blocks(&geometry, blocks, logical_pages, &settings)?;
        let mut pages = PageMap::new(geometry, logical_pages)?;
        for number in 0..lent {
            let block = pages.lend(number % geometry.dies);
            debug_assert_eq!(block.0, number);
        }
        Ok(Self::over(region, pages, settings, spare))
    }

    fn over(region: RegionId, pages: PageMap, settings: Settings, spare: u64) -> Self {
        // Were all blocks of a die's spare area but the open ones to be erased, each block would be copied for the sake of
        // its last invalid page, again and again.
        let attainable = u32::try_from(spare - u64::from(OPEN_BLOCKS)).unwrap_or(u32::MAX);
        let idle_blocks = attainable.min(2 * settings.gc_free_blocks);
        Self { region, pages, settings, idle_blocks, erases: 0, copied_pages: 0 }
    }

    /// Pages that hold a logical page.
    pub fn occupied(&self) -> u64 {
        self.pages.occupied()
    }

    /// Lends an erased block of a die, which is collected if it must be; none if its valid pages would not fit into the
    /// others.
    pub fn lend<M: Media>(&mut self, media: &mut M, die: u32) -> Option<BlockId> {
        if !self.pages.can_lend(die) {
            return None;
        }
        // Its valid pages fit into all its blocks but the reserved ones and the one to be lent, so a block with an
        // invalid page is found until there are more erased blocks than the reserve has.
        while self.pages.free_blocks(die) <= self.settings.gc_free_blocks + 1 {
            let Some(victim) = self.pages.victim(die) else { break };
            self.collect(media, die, victim);
        }
        Some(self.pages.lend(die))
    }

    /// Valid pages that fit into it, less what is lent.
    pub fn room(&self) -> u64 {
        self.pages.room()
    }

    /// A lent block comes back, erased in its native mode.
    pub fn give_back(&mut self, block: BlockId) {
        self.pages.give_back(block);
    }

    /// Makes room on a die for one more page.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M, die: u32) {
        if !self.pages.needs_block(die, Stream::Host) {
            return;
        }
        while self.pages.free_blocks(die) <= self.settings.gc_free_blocks {
            let Some(victim) = self.pages.victim(die) else { return };
            self.collect(media, die, victim);
        }
    }

    /// Moves the valid pages of a block away and erases it.
    fn collect<M: Media>(&mut self, media: &mut M, die: u32, victim: BlockId) {
        self.pages.unseal(victim);
        let mut run = Run::default();
        let mut page = 0;
        while let Some((to, next)) = self.pages.relocate(victim, page, die, &mut run) {
            media.copy_run(self.region, run.pages(), to, Cause::Gc);
            self.copied_pages += run.pages().len() as u64;
            page = next;
        }
        media.erase(self.region, victim, CellMode::Native, Cause::Gc);
        self.pages.release(die, victim);
        self.erases += 1;
    }
}

/// Spare blocks of each die if `blocks` blocks of it are for data of which `valid_pages` pages lie in the region.
///
/// # Errors
/// Fewer than it takes.
fn spare_blocks(geometry: &Geometry, blocks: u64, valid_pages: u64, settings: &Settings) -> Result<u64, String> {
    let spare = blocks.saturating_sub(valid_pages.div_ceil(u64::from(geometry.pages_per_block * geometry.dies)));
    let needed = settings.gc_free_blocks + OPEN_BLOCKS;
    if u64::from(needed) > spare {
        return Err(format!(
            "keeping {} blocks erased takes {needed} spare blocks per die and there are {spare}; enlarge the spare area \
             or lower gc_free_blocks",
            settings.gc_free_blocks
        ));
    }
    Ok(spare)
}

impl Space for PageSpace {
    fn region(&self) -> RegionId {
        self.region
    }

    #[inline(always)]
    fn geometry(&self) -> &Geometry {
        self.pages.geometry()
    }

    fn logical_pages(&self) -> u32 {
        self.pages.logical_pages()
    }

    #[inline(always)]
    fn lookup(&self, logical: u32) -> Option<Ppa> {
        self.pages.lookup(logical)
    }

    #[inline(always)]
    fn invalidate(&mut self, logical: u32) {
        self.pages.invalidate(logical);
    }

    #[inline]
    fn write<M: Media>(&mut self, media: &mut M, logical: u32, parts: &[Part<M::Data>], cause: Cause) {
        self.pages.invalidate(logical);
        let die = self.pages.next_die();
        self.make_room(media, die);
        let ppa = self.pages.place(logical, die, Stream::Host);
        media.program(self.region, ppa, parts, cause);
    }

    fn idle<M: Media>(&mut self, media: &mut M, budget_pages: u32) -> u32 {
        if !self.settings.idle_gc {
            return 0;
        }
        let before = self.copied_pages;
        let budget = before + u64::from(budget_pages);
        for die in 0..self.pages.geometry().dies {
            while self.pages.free_blocks(die) < self.idle_blocks && self.copied_pages < budget {
                let Some(victim) = self.pages.victim(die) else { break };
                self.collect(media, die, victim);
            }
        }
        (self.copied_pages - before) as u32
    }

    #[inline]
    fn prefetch_entry(&self, logical: u32) {
        self.pages.prefetch_entry(logical);
    }

    #[inline]
    fn prefetch_page(&self, logical: u32) {
        self.pages.prefetch_page(logical);
    }

    fn erases(&self) -> u64 {
        self.erases
    }

    fn copied_pages(&self) -> u64 {
        self.copied_pages
    }

    fn metadata_bytes(&self) -> u64 {
        u64::from(self.pages.logical_pages()) * 4
    }

    fn check(&self) -> Result<(), String> {
        self.pages.check()
    }
}
