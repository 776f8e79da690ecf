//! A page-mapped region with greedy garbage collection.
//!
//! Pages go to the dies in turn; each die is collected by itself, in the foreground, when it is down to
//! `gc_free_blocks` erased blocks. The victim is the block with the fewest valid pages. On dies that program several pages
//! together, those of today, blocks are large: there a victim is collected in steps between the pages that are written, so that
//! no request waits for all of it.
//!
//! It may keep a summary of each block in the block's last page, so that its map can be found again by reading one page of
//! a block.

use serde::{Deserialize, Serialize};

use super::Space;
use crate::media::{Cause, CellMode, Media, Part};
use crate::region::page_map::{PageMap, RESERVED_BLOCKS, Stream};
use crate::region::page_table::Run;
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// Blocks of a die that are being filled: one for each stream.
const OPEN_BLOCKS: u32 = 2;

/// When a region is collected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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

/// The victim of a die that is collected in steps.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Step {
    /// Its valid pages when it was chosen.
    valid: u32,
    /// Copies that are due, times the pages that it gives.
    owed: i64,
}

/// The region's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageSpace {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    pages: PageMap,
    #[serde(with = "crate::save::fixed")]
    settings: Settings,
    /// Erased blocks of a die up to which idle time is used.
    #[serde(with = "crate::save::fixed")]
    idle_blocks: u32,
    /// By die; none where a victim is collected at once.
    #[serde(with = "crate::save::sized")]
    steps: Vec<Step>,
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
        let spare = spare_blocks(blocks, valid_pages, geometry.pages_per_block * geometry.dies, &settings)?;
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
        Self::with(region, geometry, logical_pages, settings, lent, geometry.pages_per_block)
    }

    /// An erased region for as many pages as it can hold, with its first `lent` blocks lent from the beginning. If
    /// `summaries`, the last page of each block is its summary: it is programmed, as [`Cause::Meta`], when the others are.
    ///
    /// # Errors
    /// No page fits.
    pub fn whole(
        region: RegionId,
        geometry: Geometry,
        settings: Settings,
        lent: u32,
        summaries: bool,
    ) -> Result<Self, String> {
        let data_pages = geometry.pages_per_block - u32::from(summaries);
        let kept = lent.div_ceil(geometry.dies).saturating_add(settings.reserved_blocks());
        let blocks = (geometry.blocks / geometry.dies).saturating_sub(kept);
        match u64::from(blocks) * u64::from(data_pages) * u64::from(geometry.dies) {
            0 => Err(format!(
                "{} blocks of {} pages on {} dies hold no data beside {kept} blocks per die for metadata and garbage \
                 collection; enlarge the region",
                geometry.blocks, geometry.pages_per_block, geometry.dies
            )),
            pages => Self::with(region, geometry, pages, settings, lent, data_pages),
        }
    }

    fn with(
        region: RegionId,
        geometry: Geometry,
        logical_pages: u64,
        settings: Settings,
        lent: u32,
        data_pages: u32,
    ) -> Result<Self, String> {
        let blocks = u64::from((geometry.blocks / geometry.dies).saturating_sub(lent.div_ceil(geometry.dies)));
        let spare = spare_blocks(blocks, logical_pages, data_pages * geometry.dies, &settings)?;
        let mut pages = PageMap::with_data_pages(geometry, logical_pages, data_pages)?;
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
        let in_steps = pages.geometry().stripe_pages > 1;
        let steps = vec![Step::default(); if in_steps { pages.geometry().dies as usize } else { 0 }];
        Self { region, pages, settings, idle_blocks, steps, erases: 0, copied_pages: 0 }
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
        while self.pages.free_blocks(die) <= self.settings.gc_free_blocks + 1 && self.collect(media, die) {}
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

    /// Blocks that are lent, in order.
    pub fn lent(&self) -> impl Iterator<Item = BlockId> {
        self.pages.lent()
    }

    /// Makes room on a die for one more page.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M, die: u32) {
        if !self.pages.needs_block(die, Stream::Host) {
            return;
        }
        while self.pages.free_blocks(die) <= self.settings.gc_free_blocks && self.collect(media, die) {}
    }

    /// Programs the next page of a die with a logical page that has none.
    #[inline(always)]
    fn append<M: Media>(&mut self, media: &mut M, die: u32, logical: u32, parts: &[Part<M::Data>], cause: Cause) {
        self.make_room(media, die);
        let (ppa, is_full) = self.pages.place(logical, die, Stream::Host);
        media.program(self.region, ppa, parts, cause);
        if is_full {
            self.summarise(media, ppa);
        }
    }

    /// The same on dies of today, whose victims are collected in steps. Apart, so that the others are short.
    #[inline(never)]
    fn write_in_steps<M: Media>(&mut self, media: &mut M, logical: u32, parts: &[Part<M::Data>], cause: Cause) {
        let die = self.pages.next_die_in_stripes();
        self.append(media, die, logical, parts, cause);
        self.collect_step(media, die);
    }

    /// After a page was written to a die that is down to its last erased blocks: so much of a victim is copied that it is erased
    /// when it has to be. A victim with v of P pages valid makes room for P - v pages at the cost of v copies.
    fn collect_step<M: Media>(&mut self, media: &mut M, die: u32) {
        let victim = match self.pages.collecting(die) {
            Some(victim) => victim,
            None if self.pages.free_blocks(die) > self.settings.gc_free_blocks => return,
            None => {
                let Some(victim) = self.pages.begin_collecting(die) else { return };
                self.steps[die as usize] = Step { valid: self.pages.valid_pages(victim), owed: 0 };
                victim
            }
        };
        let Step { valid, mut owed } = self.steps[die as usize];
        let gain = i64::from(self.pages.data_pages() - valid);
        owed += i64::from(valid);
        let mut run = Run::default();
        while owed >= gain && self.pages.valid_pages(victim) > 0 {
            owed -= self.copy_run(media, die, &mut run) as i64 * gain;
        }
        self.steps[die as usize].owed = owed;
        if self.pages.valid_pages(victim) == 0 {
            self.erase(media, die, victim);
        }
    }

    /// Programs the summary of a block that is full with its data page `last`, if it has one.
    #[cold]
    fn summarise<M: Media>(&mut self, media: &mut M, last: Ppa) {
        if self.pages.data_pages() < self.pages.geometry().pages_per_block {
            media.program(self.region, Ppa(last.0 + 1), &[], Cause::Meta);
        }
    }

    /// Moves the valid pages of a die's victim away and erases it; false if the die has none.
    fn collect<M: Media>(&mut self, media: &mut M, die: u32) -> bool {
        let Some(victim) = self.pages.collecting(die).or_else(|| self.pages.begin_collecting(die)) else {
            return false;
        };
        let mut run = Run::default();
        while self.copy_run(media, die, &mut run) > 0 {}
        self.erase(media, die, victim);
        true
    }

    /// Copies a run of pages of a die's victim, whose old places `run` has then. Returns how many.
    #[inline]
    fn copy_run<M: Media>(&mut self, media: &mut M, die: u32, run: &mut Run) -> usize {
        let Some(to) = self.pages.relocate(die, run) else { return 0 };
        let copied = run.pages().len();
        media.copy_run(self.region, run.pages(), to, Cause::Gc);
        self.copied_pages += copied as u64;
        if self.pages.needs_block(die, Stream::Gc) {
            self.summarise(media, Ppa(to.0 + copied as u32 - 1));
        }
        copied
    }

    /// Erases a die's emptied victim.
    fn erase<M: Media>(&mut self, media: &mut M, die: u32, victim: BlockId) {
        media.erase(self.region, victim, CellMode::Native, Cause::Gc);
        self.pages.end_collecting(die);
        self.erases += 1;
    }
}

/// Spare blocks of each die if `blocks` blocks of it are for data of which `valid_pages` pages lie in the region.
///
/// # Errors
/// Fewer than it takes.
fn spare_blocks(blocks: u64, valid_pages: u64, row_pages: u32, settings: &Settings) -> Result<u64, String> {
    let spare = blocks.saturating_sub(valid_pages.div_ceil(u64::from(row_pages)));
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

    #[inline(always)]
    fn elsewhere(&self, logical: u32) -> Option<u32> {
        self.pages.elsewhere(logical)
    }

    fn places_elsewhere(&self) -> u32 {
        self.pages.places_elsewhere()
    }

    #[inline(always)]
    fn put_elsewhere(&mut self, logical: u32, place: u32) {
        self.pages.put_elsewhere(logical, place);
    }

    #[inline]
    fn write<M: Media>(&mut self, media: &mut M, logical: u32, parts: &[Part<M::Data>], cause: Cause) {
        self.pages.invalidate(logical);
        if !self.steps.is_empty() {
            return self.write_in_steps(media, logical, parts, cause);
        }
        let die = self.pages.next_die();
        self.append(media, die, logical, parts, cause);
    }

    fn idle<M: Media>(&mut self, media: &mut M, budget_pages: u32) -> u32 {
        if !self.settings.idle_gc {
            return 0;
        }
        let before = self.copied_pages;
        let budget = before + u64::from(budget_pages);
        for die in 0..self.pages.geometry().dies {
            while self.pages.free_blocks(die) < self.idle_blocks
                && self.copied_pages < budget
                && self.collect(media, die)
            {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
    use crate::part::random::below;
    use crate::request::{Op, Request};

    /// The most copies between two writes, and all copies.
    fn copies(stripe_pages: u32) -> (u64, u64) {
        let geometry = Geometry::new(4096, 128, 200, 2).unwrap().striped(stripe_pages);
        let chip = chip::find("chang-mlc").unwrap();
        let sim = SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1);
        let mut media = Checked::new(sim, &[(geometry, 0)]);
        let settings = Settings { gc_free_blocks: 1, idle_gc: false };
        let mut space = PageSpace::new(RegionId(0), geometry, 170 * 128, settings).unwrap();
        media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 8, op: Op::Write }, 0);
        let (mut state, mut most) = (5, 0);
        for write in 0..80_000 {
            let before = space.copied_pages();
            space.write(&mut media, below(&mut state, 170 * 128) as u32, &[], Cause::Host);
            most = most.max(space.copied_pages() - before);
            if write % 1000 == 0 {
                space.check().unwrap();
            }
        }
        (most, space.copied_pages())
    }

    #[test]
    fn in_steps_no_write_waits_for_a_whole_victim_and_no_more_is_copied() {
        let ((whole_most, whole), (step_most, steps)) = (copies(1), copies(4));
        println!("at once: {whole_most} at most, {whole} in all; in steps: {step_most}, {steps}");
        assert!(whole_most > 100 && step_most <= 64, "a step copies what a word of the map of valid pages has");
        // It chooses a victim earlier by one block of a hundred on a die.
        assert!((steps as f64 / whole as f64 - 1.0).abs() < 0.05);
    }

    #[test]
    fn a_block_ends_with_its_summary_and_collecting_skips_it() {
        let geometry = Geometry::new(4096, 8, 12, 1).unwrap();
        let chip = chip::find("chang-mlc").unwrap();
        let sim = SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1);
        let mut media = Checked::new(sim, &[(geometry, 0)]);
        let settings = Settings { gc_free_blocks: 1, idle_gc: false };
        assert!(PageSpace::whole(RegionId(0), geometry, settings, 9, true).is_err());
        let mut space = PageSpace::whole(RegionId(0), geometry, settings, 1, true).unwrap();
        assert_eq!((space.logical_pages(), space.room()), (56, 56));
        media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 8, op: Op::Write }, 0);
        let mut state = 5;
        for _ in 0..500 {
            space.write(&mut media, below(&mut state, 56) as u32, &[], Cause::Host);
            space.check().unwrap();
        }
        let ledger = media.ledger();
        let data = ledger.total(FlashOp::Program, Cause::Host) + ledger.total(FlashOp::Program, Cause::Gc);
        let summaries = ledger.total(FlashOp::Program, Cause::Meta);
        assert!(space.erases() > 20 && space.copied_pages() > 0);
        // Two blocks may be open.
        assert!((data / 7 - 2..=data / 7).contains(&summaries), "{summaries} summaries of {data} pages");
        assert_eq!(ledger.total(FlashOp::Read, Cause::Gc), space.copied_pages(), "no summary is copied");
    }
}
