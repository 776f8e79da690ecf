//! A drive that writes with one bit per cell first: what `pslc-static` and `pslc-dynamic` share.
//!
//! ```text
//!  host ──▶ cache: blocks in SLC mode, written and emptied in turn ──fold──▶ main area: blocks in native mode, page-mapped
//!    └──────────────────── directly, if so configured, while the cache is full ──────────▲
//! ```
//!
//! Both are one region: cache and main area share dies and channels, so that folding contends with the host. The cache is
//! a [`Ring`] with an open block on each die where it has blocks enough; a page takes up to a page of one write, in units
//! of 4 KiB. Blocks of the cache are lent by the main area's [`PageSpace`]. Folding a page of the cache moves each unit
//! in it down together with all others of its slow page that the cache holds; what is missing is read from the old slow
//! page.
//!
//! The cache may have `least` blocks, and a dynamic one also as many as the data that the host has not written would
//! take: `least + logical blocks - ceil(mapped pages / pages per block)`, where a logical page is mapped if either area
//! has any of it, and no more than a share of all blocks. So the usual spare area, which neither may take, remains for
//! garbage collection.
//!
//! **Folding always finds room.** The main area's dies have room for `(blocks - lent - 3 dies) x pages per block` pages
//! ([`crate::region::page_map::RESERVED_BLOCKS`]). `blocks - least - logical blocks >= 3 dies` is asked of the device, and
//! `lent` never exceeds the above; so there is room for every mapped page at all times, be it in the cache or not. A
//! write that maps pages makes the cache smaller before any of its data is placed; meanwhile only pages are folded that
//! were mapped before, for which there was room before.
//!
//! A block changes modes by being erased: in SLC mode when it comes to the cache, natively when it goes back. Blocks that
//! the cache has from the beginning come erased natively and are erased once more when they are first used.
//!
//! Blocks of a fixed cache wear by themselves. A dynamic one exchanges a block now and then even if its size stays the
//! same, so that the wear of both modes is shared by all blocks.

mod settings;

use serde::{Deserialize, Serialize};

pub use settings::{Size, WhenFull};

use super::space::{PageSettings, PageSpace, Space};
use super::tiered::{FastTier, Run, Tiers, unit_bytes};
use super::{Metrics, Scheme, Shape, ratio};
use crate::media::{Cause, CellMode, Media};
use crate::region::ring::Ring;
use crate::request::{Op, Request};
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// Choices for the drive.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// What a write does that finds the cache full.
    pub when_full: WhenFull,
    /// Whether idle time is used to empty the cache.
    pub idle_fold: bool,
    /// Until how much of the cache has data at most, in percent.
    pub idle_fold_percent: f64,
    /// Blocks of a dynamic cache that are folded from one that is exchanged to the next; 0 exchanges none.
    pub exchange_period: u32,
    /// Collection of the main area.
    pub collection: PageSettings,
}

/// What happened so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Counts {
    cached_units: u64,
    rewritten_units: u64,
    direct_pages: u64,
    folded_pages: u64,
    folded_units: u64,
    partial_folds: u64,
    mode_changes: u64,
}

/// The state of a drive whose cache has a fixed number of blocks or, if `DYNAMIC`, takes those that hold nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct SlcCached<const DYNAMIC: bool> {
    tiers: Tiers<PageSpace>,
    ring: Ring,
    #[serde(with = "crate::save::fixed")]
    settings: Settings,
    /// Blocks that the cache has at least.
    #[serde(with = "crate::save::fixed")]
    least: u32,
    /// Blocks that it has at most.
    #[serde(with = "crate::save::fixed")]
    most: u32,
    /// Blocks that it has.
    blocks: u32,
    /// Erased blocks in front of the ring that have never been used, so that they are not in SLC mode yet.
    unused: u32,
    /// Page of the tail block from which on it is not folded yet.
    fold_page: u32,
    /// Logical pages of which either area has anything; counted if `DYNAMIC`.
    mapped_pages: u32,
    /// Blocks that all logical pages take.
    #[serde(with = "crate::save::fixed")]
    logical_blocks: u32,
    /// Die that is asked next for a block.
    lending_die: u32,
    /// Blocks to be folded until one is exchanged.
    until_exchange: u32,
    counts: Counts,
}

impl<const DYNAMIC: bool> SlcCached<DYNAMIC> {
    /// A drive over the device's last region, whose chip must have an SLC mode.
    ///
    /// # Errors
    /// No such mode, or too few blocks.
    pub fn with(shape: &Shape, size: Size, settings: Settings) -> Result<Self, String> {
        let region = shape.regions.last().ok_or("it has no region")?;
        let geometry = region.geometry;
        let mode = region.chip.slc_mode.as_ref().filter(|mode| mode.pages_per_block > 0);
        let Some(mode) = mode.filter(|mode| mode.pages_per_block <= geometry.pages_per_block) else {
            return Err(format!("its chip `{}` has no SLC mode", region.chip.name));
        };
        let logical_pages = shape.logical_sectors.div_ceil(u64::from(geometry.page_sectors()));
        let least = size.blocks(&geometry, logical_pages, settings.collection.gc_free_blocks)?;
        let id = RegionId((shape.regions.len() - 1) as u8);
        let slow = PageSpace::lending(id, geometry, logical_pages, settings.collection, least)?;
        // A cache of fixed size has the first blocks for good: no table need be larger.
        let known = if DYNAMIC { geometry.blocks } else { least };
        let most = (f64::from(geometry.blocks) * size.most_percent / 100.0) as u32;
        let table = Geometry::new(geometry.page_bytes, geometry.pages_per_block, known, 1)?;
        let unit_bytes = unit_bytes(geometry.page_bytes, geometry.page_bytes);
        let fast = FastTier::new(id, table, (CellMode::Slc, mode.pages_per_block), unit_bytes)?;
        let width = geometry.dies.min(least);
        Ok(Self {
            tiers: Tiers::new(fast, slow)?,
            ring: Ring::new(0..least, known, mode.pages_per_block, width),
            settings,
            least,
            most: most.max(least),
            blocks: least,
            unused: least,
            fold_page: 0,
            mapped_pages: 0,
            logical_blocks: logical_pages.div_ceil(u64::from(geometry.pages_per_block)) as u32,
            lending_die: least % geometry.dies,
            until_exchange: settings.exchange_period,
            counts: Counts::default(),
        })
    }

    /// Blocks that the cache may have.
    fn allowed_blocks(&self) -> u32 {
        if !DYNAMIC {
            return self.least;
        }
        let mapped_blocks = self.mapped_pages.div_ceil(self.tiers.slow.geometry().pages_per_block);
        (self.least + self.logical_blocks - mapped_blocks).min(self.most)
    }

    /// Whether either area has anything of a logical page.
    #[inline]
    fn is_mapped(&self, logical: u32) -> bool {
        let per_page = self.tiers.units_per_slow_page();
        self.tiers.slow.lookup(logical).is_some() || self.tiers.count_in_log(logical * per_page, per_page) > 0
    }

    /// Pages of a request that are not mapped.
    fn unmapped_pages(&self, request: &Request) -> u32 {
        let mut pages = 0;
        self.tiers.slow.geometry().for_each_page(request, |logical, _, _, _| {
            pages += u32::from(!self.is_mapped(logical));
        });
        pages
    }

    /// Counts the pages that a write is going to map, and gives back blocks that they may need.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M, request: &Request) {
        if self.mapped_pages == self.tiers.slow.logical_pages() {
            return;
        }
        self.mapped_pages += self.unmapped_pages(request);
        while self.blocks > self.allowed_blocks() {
            self.give_back(media);
        }
    }

    fn trim(&mut self, request: &Request) {
        let before = if DYNAMIC { self.unmapped_pages(request) } else { 0 };
        self.tiers.trim(request);
        if DYNAMIC {
            self.mapped_pages -= self.unmapped_pages(request) - before;
        }
    }

    fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        if DYNAMIC {
            self.make_room(media, request);
        }
        let (unit_sectors, units_per_page) = (self.tiers.fast.unit_sectors(), self.tiers.fast.units_per_page());
        let mut run = Run::whole(self.tiers.units(), request);
        while run.count > 0 {
            if let Some(page) = self.next_page(media) {
                let Some(piece) = run.take(units_per_page, unit_sectors) else { return };
                let before = self.tiers.fast.valid_units();
                self.tiers.write_fast(media, &piece, page, Cause::Host);
                let added = self.tiers.fast.valid_units() - before;
                self.counts.cached_units += u64::from(piece.count);
                self.counts.rewritten_units += u64::from(piece.count - added);
            } else {
                let Some(piece) = run.take_group(self.tiers.units_per_slow_page(), unit_sectors) else { return };
                self.tiers.write_slow(media, &piece, Cause::Host);
                self.counts.direct_pages += 1;
            }
        }
    }

    /// The cache's next page; none if it is full and the write is to go past it.
    #[inline]
    fn next_page<M: Media>(&mut self, media: &mut M) -> Option<Ppa> {
        if self.ring.needs_block() {
            self.open_block(media)?;
        }
        let (block, page) = self.ring.next_page();
        Some(self.tiers.slow.geometry().ppa(block, page))
    }

    fn open_block<M: Media>(&mut self, media: &mut M) -> Option<()> {
        if self.ring.erased() == 0 && !self.grow(media) {
            if self.settings.when_full == WhenFull::Direct {
                self.skip_invalid_pages();
                if !self.tail_is_folded() {
                    return None;
                }
            }
            self.fold_tail(media);
            self.recycle_tail(media);
        }
        let block = self.ring.open_block();
        if self.unused > 0 {
            self.unused -= 1;
            self.erase_for_cache(media, block);
        }
        Some(())
    }

    /// Takes a further block from the main area.
    fn grow<M: Media>(&mut self, media: &mut M) -> bool {
        if !DYNAMIC || self.blocks >= self.allowed_blocks() {
            return false;
        }
        let dies = self.tiers.slow.geometry().dies;
        for _ in 0..dies {
            let die = self.lending_die;
            self.lending_die = if die + 1 == dies { 0 } else { die + 1 };
            if let Some(block) = self.tiers.slow.lend(media, die) {
                self.erase_for_cache(media, block);
                self.ring.add_erased(block);
                self.blocks += 1;
                return true;
            }
        }
        false
    }

    fn erase_for_cache<M: Media>(&mut self, media: &mut M, block: BlockId) {
        self.tiers.fast.erase(media, block, Cause::Gc);
        self.counts.mode_changes += 1;
    }

    /// Gives an erased block of the cache back to the main area, or else the oldest one after folding it.
    fn give_back<M: Media>(&mut self, media: &mut M) {
        match self.ring.remove_erased() {
            Some(block) if self.unused > 0 => {
                self.unused -= 1;
                self.blocks -= 1;
                self.tiers.slow.give_back(block);
            }
            Some(block) => self.erase_for_main(media, block),
            // There are more blocks than are open at once, so the oldest is full.
            None => {
                self.fold_tail(media);
                self.give_back_tail(media);
            }
        }
    }

    fn give_back_tail<M: Media>(&mut self, media: &mut M) {
        self.fold_page = 0;
        let tail = self.ring.remove_tail();
        self.erase_for_main(media, tail);
    }

    fn erase_for_main<M: Media>(&mut self, media: &mut M, block: BlockId) {
        media.erase(self.tiers.fast.region(), block, CellMode::Native, Cause::Gc);
        self.counts.mode_changes += 1;
        self.blocks -= 1;
        self.tiers.slow.give_back(block);
    }

    /// Whether nothing of the tail block is valid any more.
    #[inline]
    fn tail_is_folded(&self) -> bool {
        self.fold_page == self.tiers.fast.slots().pages_per_block()
    }

    /// The page of the tail block that is folded next.
    #[inline]
    fn next_fold_page(&self) -> Option<Ppa> {
        let tail = self.ring.tail().filter(|_| !self.tail_is_folded())?;
        Some(self.tiers.slow.geometry().ppa(tail, self.fold_page))
    }

    /// Goes on to the next page of the tail block with valid data.
    fn skip_invalid_pages(&mut self) {
        while self.next_fold_page().is_some_and(|page| !self.tiers.fast.slots().is_valid(page)) {
            self.fold_page += 1;
        }
    }

    /// Folds what is left of the tail block.
    fn fold_tail<M: Media>(&mut self, media: &mut M) {
        while let Some(page) = self.next_fold_page() {
            self.fold(media, page);
        }
    }

    /// Folds a page of the tail block, the next one. Returns the number of pages programmed.
    fn fold<M: Media>(&mut self, media: &mut M, page: Ppa) -> u32 {
        let slots = self.tiers.fast.slots();
        let first = slots.first_slot(page);
        let last = Ppa(page.0 + slots.pages_per_block() - 1 - self.fold_page);
        let end = slots.first_slot(last) + slots.slots();
        let mut programs = 0;
        for slot in first..first + self.tiers.fast.units_per_page() {
            self.tiers.prefetch_emptied(slot, end, |_| true);
            if let Some(unit) = self.tiers.fast.slots().unit(slot) {
                let per_page = self.tiers.units_per_slow_page();
                let was_mapped = per_page > 1 && self.tiers.slow.lookup(self.tiers.slow_page(unit)).is_some();
                let moved = self.tiers.demote_slot(media, slot, unit);
                self.counts.partial_folds += u64::from(was_mapped && moved < per_page);
                self.counts.folded_units += u64::from(moved);
                programs += 1;
            }
        }
        self.counts.folded_pages += u64::from(programs);
        self.fold_page += 1;
        programs
    }

    /// The tail block is folded: it is erased and opened again after all that are erased already, or exchanged for another.
    fn recycle_tail<M: Media>(&mut self, media: &mut M) {
        if DYNAMIC && self.is_exchange_due() {
            self.give_back_tail(media);
            // At least the die that got a block back can spare one.
            self.grow(media);
        } else if let Some(tail) = self.ring.tail() {
            self.tiers.fast.erase(media, tail, Cause::Gc);
            self.ring.retire_tail();
            self.fold_page = 0;
        }
    }

    /// Counts a folded block.
    fn is_exchange_due(&mut self) -> bool {
        let period = self.settings.exchange_period;
        self.until_exchange = if self.until_exchange > 1 { self.until_exchange - 1 } else { period };
        period > 0 && self.until_exchange == period
    }

    /// Whether idle time goes into folding the tail block.
    fn is_to_be_folded(&self) -> bool {
        let limit = f64::from(self.allowed_blocks()) * self.settings.idle_fold_percent / 100.0;
        f64::from(self.ring.written()) > limit && self.ring.tail_is_full()
    }
}

impl<M: Media, const DYNAMIC: bool> Scheme<M> for SlcCached<DYNAMIC> {
    fn fill(&mut self, media: &mut M) {
        self.tiers.fill(media);
        self.mapped_pages = self.tiers.slow.logical_pages();
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        match request.op {
            Op::Read => self.tiers.read(media, request),
            Op::Write => self.write(media, request),
            Op::Trim => self.trim(request),
        }
    }

    #[inline]
    fn prefetch(&self, far: &Request, near: &Request) {
        let unit = |request: &Request| self.tiers.units().logical_page(request.sector).0;
        let (far_unit, near_unit) = (unit(far), unit(near));
        self.tiers.prefetch_slots(far_unit, near_unit);
        // Other than for its slot, a small write does not look at the main area's map, unless it may be the first to its
        // page; a large one makes what is there invalid.
        let page_sectors = self.tiers.slow.geometry().page_sectors();
        let is_unmapped = DYNAMIC && self.mapped_pages < self.tiers.slow.logical_pages();
        if is_unmapped || far.sectors >= page_sectors || far.op != Op::Write {
            self.tiers.slow.prefetch_entry(self.tiers.slow_page(far_unit));
        }
        if near.sectors >= page_sectors && near.op == Op::Write {
            self.tiers.slow.prefetch_page(self.tiers.slow_page(near_unit));
        }
    }

    fn idle(&mut self, media: &mut M, budget_pages: u32) {
        let mut budget_pages = budget_pages;
        while self.settings.idle_fold && budget_pages > 0 && self.is_to_be_folded() {
            while budget_pages > 0
                && let Some(page) = self.next_fold_page()
            {
                budget_pages = budget_pages.saturating_sub(self.fold(media, page));
            }
            if self.tail_is_folded() {
                self.recycle_tail(media);
            }
        }
        self.tiers.slow.idle(media, budget_pages);
    }

    fn fixed_slc_blocks(&self) -> u32 {
        if DYNAMIC { 0 } else { self.least }
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let Counts {
            cached_units,
            rewritten_units,
            direct_pages,
            folded_pages,
            folded_units,
            partial_folds,
            mode_changes,
        } = self.counts;
        let (fast, slow) = (&self.tiers.fast, &self.tiers.slow);
        metrics.count("cache_blocks", u64::from(self.blocks));
        metrics.count("cache_free_blocks", u64::from(self.ring.erased()));
        metrics.count("cache_allowed_blocks", u64::from(self.allowed_blocks()));
        metrics.count("cached_bytes", u64::from(fast.valid_units()) * u64::from(fast.unit_sectors()) * 512);
        metrics.push("cache_rewrite_ratio", ratio(rewritten_units, cached_units));
        metrics.count("folded_pages", folded_pages);
        metrics.count("folded_units", folded_units);
        metrics.push("partial_fold_ratio", ratio(partial_folds, folded_pages));
        metrics.count("direct_pages", direct_pages);
        metrics.count("mode_changes", mode_changes);
        metrics.count("cache_erases", fast.erases());
        metrics.count("gc_blocks", slow.erases());
        metrics.count("gc_copied_pages", slow.copied_pages());
        let most = if DYNAMIC { self.most } else { self.least };
        metrics.count("metadata_bytes", slow.metadata_bytes() + fast.metadata_bytes_of(most));
    }

    fn check(&self) -> Result<(), String> {
        self.ring.check(self.tiers.fast.slots().geometry().blocks)?;
        self.tiers.check(self.ring.iter_written())?;
        let mut lent: Vec<BlockId> = self.ring.iter_written().map(|(block, _)| block).collect();
        lent.extend(self.ring.iter_erased());
        lent.sort_unstable();
        if !self.tiers.slow.lent().eq(lent) {
            return Err("the cache has other blocks than the main area has lent".into());
        }
        if self.fold_page > self.tiers.fast.slots().pages_per_block() || self.unused > self.ring.erased() {
            return Err(format!("page {} is folded next, {} blocks are unused", self.fold_page, self.unused));
        }
        if self.lending_die >= self.tiers.slow.geometry().dies {
            return Err(format!("die {} is asked next for a block", self.lending_die));
        }
        if self.blocks != self.ring.written() + self.ring.erased() || self.blocks > self.allowed_blocks() {
            return Err(format!(
                "the cache has {} blocks, {} of them with data and {} erased, and may have {}",
                self.blocks,
                self.ring.written(),
                self.ring.erased(),
                self.allowed_blocks()
            ));
        }
        let mapped = (0..self.tiers.slow.logical_pages()).filter(|&logical| self.is_mapped(logical)).count();
        if DYNAMIC && mapped != self.mapped_pages as usize {
            return Err(format!("{mapped} logical pages are mapped, {} were counted", self.mapped_pages));
        }
        if (mapped as u64) > self.tiers.slow.room() {
            return Err(format!("{mapped} logical pages are mapped and {} fit", self.tiers.slow.room()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
