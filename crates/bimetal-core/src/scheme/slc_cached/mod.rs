//! A drive that first writes with one bit per cell: the common base of `pslc-static` and `pslc-dynamic`.
//!
//! ```text
//!  host ──▶ cache: blocks in SLC mode, written and emptied in turn ──fold──▶ main area: blocks in native mode, page-mapped
//!    └──────────────────── directly, if so configured, while the cache is full ──────────▲
//! ```
//!
//! Both are one region: cache and main area share dies and channels, so that folding contends with the host. The cache
//! is a [`Ring`] with an open block on each die if it has enough blocks; a page takes up to a page of one write, in
//! units of 4 KiB. Blocks of the cache are lent by the main area's [`Log`]. Folding a page of the cache moves each unit
//! in it down together with all others of its slow page that are in the cache; missing units are read from the old slow
//! page.
//!
//! The policies, by their usual names:
//!
//! - **Static cache** (TurboWrite of the 840 EVO, WriteBooster with a dedicated buffer): always `least` blocks.
//! - **Dynamic cache** ("dynamic SLC", "Intelligent TurboWrite"): `least` blocks, and blocks without data, up to the
//!   number that a [`Curve`] allows for the fill level of the drive. The curve is published for the Intel 660p. By
//!   default it allows all blocks until their data fill them in SLC mode, and falls in a straight line to `least` on a
//!   full drive. The usual spare area is never taken.
//! - **Fold first** (`when_full=fold`: Crucial T500, Intel 600p): all writes go to the cache; while it is full, each
//!   waits for folding. Of `bits` folded blocks, one goes to the main area for their data, and the others are written
//!   again.
//! - **Direct** (`direct`: 840 EVO, WD SN550): a full cache is bypassed. With a fixed cache there are two levels of
//!   speed.
//! - **Direct, then fold** (`direct-then-fold`: drives with Maxio and InnoGrit controllers): three levels. Blocks in
//!   SLC mode and then native ones are written until none is left; then folding the cache makes room. With `direct`, a
//!   dynamic cache above its curve is folded down to the curve before that.
//! - **Folding in steps** (`fold_in_steps`): no request waits for a whole block. The tail block is folded page by
//!   page, as fast as the host's writes use up the remaining erased blocks and room ([`fold`]).
//! - **Flush in idle time** (WriteBooster's flush during hibernation): begins when more than
//!   `idle_fold_start_percent` of the cache has data, since WriteBooster asks for a flush when little of its buffer is
//!   available, and continues down to `idle_fold_percent`. Breaks of less than `idle_fold_min_pages` page copies are
//!   not used. Without it data stay for reads.
//! - **Overwritten data** are never folded.
//!
//! **Folding always finds room.** The main area's dies have room for `(blocks - lent - 3 dies) x pages per block` pages
//! (3 per die: open blocks of two streams and an erased one), and the device must have
//! `blocks - least - logical blocks >= 3 dies`: with `least` blocks lent every logical page fits. A larger cache always
//! leaves room for the data of the main area and for folding the tail block: two pages for each page of it, since a
//! page holds units of one write, or all pages that are only in the cache if those are fewer. Folding a block gives back
//! more than that, so the next one can be folded as well. A write that takes room makes the cache smaller before its
//! data are placed.
//!
//! A block changes its mode when it is erased: to SLC mode when it goes to the cache, to native mode when it goes back.
//! Blocks that the cache has from the beginning are erased natively and are erased once more at their first use.
//!
//! Blocks of a fixed cache wear separately. A dynamic one exchanges a block at times even if its size stays the same,
//! so that the wear of both modes is shared by all blocks.

pub mod family;
mod fold;
mod room;
mod settings;

use serde::{Deserialize, Serialize};

use settings::Curve;
pub use settings::{CacheSettings, IdleFold, Size, WhenFull};

use super::tiered::{FastTier, Run, Tiers, unit_bytes};
use super::{Adaptation, Metrics, Scheme, Shape, ratio};
use crate::media::{Cause, CellMode, Media};
use crate::region::Space;
use crate::region::log::{Capacity, HostAndCopied, Log};
use crate::region::ring::Ring;
use crate::request::{Op, Request};
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// The size of a dynamic cache.
pub const ALLOWED_BLOCKS: Adaptation = Adaptation {
    metric: "cache_allowed_blocks",
    title: "Blocks that the cache may have",
    unit: "blocks",
    meaning: "Blocks in SLC mode that the curve allows: fewer, the more logical pages have data.",
};

/// Counters since the start.
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

/// The state of a drive whose cache has a fixed number of blocks or, if `DYNAMIC`, takes blocks without data.
#[derive(Debug, Serialize, Deserialize)]
pub struct SlcCached<const DYNAMIC: bool> {
    tiers: Tiers<Log>,
    ring: Ring,
    #[serde(with = "crate::save::fixed")]
    settings: CacheSettings,
    /// Least number of blocks of the cache.
    #[serde(with = "crate::save::fixed")]
    least: u32,
    /// Number of further blocks that it may have, by the fill level of the drive.
    #[serde(with = "crate::save::fixed")]
    curve: Curve,
    /// Number of blocks of the cache.
    blocks: u32,
    /// Erased blocks in front of the ring that were never used, and so are not in SLC mode yet.
    unused: u32,
    /// First page of the tail block that is not folded yet.
    fold_page: u32,
    /// Logical pages with data in either area; counted if `DYNAMIC`.
    mapped_pages: u32,
    /// Number of blocks that all logical pages take.
    #[serde(with = "crate::save::fixed")]
    logical_blocks: u32,
    /// Die that is asked for the next block.
    lending_die: u32,
    /// Number of blocks to be folded until one is exchanged.
    until_exchange: u32,
    /// Whether idle time is being used to fold, until few enough blocks have data.
    is_idle_folding: bool,
    counts: Counts,
}

impl<const DYNAMIC: bool> SlcCached<DYNAMIC> {
    /// A drive over the device's last region, whose chip must have an SLC mode.
    ///
    /// # Errors
    /// No such mode, or too few blocks.
    pub fn with(shape: &Shape, size: Size, settings: CacheSettings) -> Result<Self, String> {
        let region = shape.regions.last().ok_or("it has no region")?;
        let geometry = region.geometry;
        let mode = region.chip.slc_mode.as_ref().filter(|mode| mode.pages_per_block > 0);
        let Some(mode) = mode.filter(|mode| mode.pages_per_block <= geometry.pages_per_block) else {
            return Err(format!("its chip `{}` has no SLC mode", region.chip.name));
        };
        let logical_pages = shape.logical_sectors.div_ceil(u64::from(geometry.page_sectors()));
        let least = size.blocks(&geometry, logical_pages, settings.collection.gc_free_blocks)?;
        let id = RegionId((shape.regions.len() - 1) as u8);
        let capacity = Capacity { lent: least, ..Capacity::whole(&geometry, logical_pages) };
        let slow = Log::with(id, geometry, capacity, settings.collection, |_| HostAndCopied)?;
        // A fixed cache always has the first blocks: the tables need not be larger.
        let known = if DYNAMIC { geometry.blocks } else { least };
        let curve = size.curve(&geometry, slow.logical_pages(), least, mode.pages_per_block)?;
        let table = Geometry::new(geometry.page_bytes, geometry.pages_per_block, known, 1)?;
        let unit_bytes = unit_bytes(geometry.page_bytes, geometry.page_bytes);
        let fast = FastTier::new(id, table, (CellMode::Slc, mode.pages_per_block), unit_bytes)?;
        // A dynamic cache is written on more dies when it has grown.
        let mut ring =
            Ring::new(0..least, known, mode.pages_per_block, geometry.dies.min(known), geometry.stripe_pages);
        ring.set_width(least);
        Ok(Self {
            tiers: Tiers::new(fast, slow)?,
            ring,
            settings,
            least,
            curve,
            blocks: least,
            unused: least,
            fold_page: 0,
            mapped_pages: 0,
            logical_blocks: logical_pages.div_ceil(u64::from(geometry.pages_per_block)) as u32,
            lending_die: least % geometry.dies,
            until_exchange: settings.exchange_period,
            is_idle_folding: false,
            counts: Counts::default(),
        })
    }

    /// Whether either area has data of a logical page.
    #[inline]
    fn is_mapped(&self, logical: u32) -> bool {
        let per_page = self.tiers.units_per_slow_page();
        self.tiers.slow.lookup(logical).is_some() || self.tiers.count_in_log(logical * per_page, per_page) > 0
    }

    /// Pages of a request that are not mapped.
    fn unmapped_pages(&self, request: &Request) -> u32 {
        let spans = self.tiers.slow.geometry().spans(request);
        spans.map(|span| u32::from(!self.is_mapped(span.page))).sum()
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
                if DYNAMIC {
                    self.make_room_beside(media, piece.unit);
                }
                self.tiers.write_slow(media, &piece, Cause::Host);
                self.counts.direct_pages += 1;
            }
            if self.settings.fold_in_steps {
                self.fold_ahead(media);
            }
        }
    }

    /// The cache's next page; `None` if the cache is full and the write bypasses it.
    #[inline]
    fn next_page<M: Media>(&mut self, media: &mut M) -> Option<Ppa> {
        if self.ring.needs_block() {
            self.open_block(media)?;
        }
        let (block, page) = self.ring.next_page();
        Some(self.tiers.slow.geometry().ppa(block, page))
    }

    fn open_block<M: Media>(&mut self, media: &mut M) -> Option<()> {
        if DYNAMIC && self.ring.begins_round() {
            self.ring.set_width(self.tiers.slow.geometry().dies.min(self.allowed_blocks()));
        }
        while self.ring.erased() == 0 && !self.grow(media) {
            // Pages that are left in other open blocks come first.
            if self.ring.skip_full() {
                return Some(());
            }
            if self.settings.when_full != WhenFull::Fold {
                self.skip_invalid_pages();
                if !self.tail_is_folded() {
                    return None;
                }
            }
            self.fold_tail(media);
            self.finish_tail(media);
        }
        let block = self.ring.open_block();
        if self.unused > 0 {
            self.unused -= 1;
            self.erase_for_cache(media, block);
        }
        Some(())
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
        let unit = |request: &Request| self.tiers.units().page_of(request.sector).0;
        let (far_unit, near_unit) = (unit(far), unit(near));
        self.tiers.prefetch_slots(far_unit, near_unit);
        // A small write only looks up its slot, and not the main area's map, unless it may be the first to its page; a
        // large write invalidates the page in the main area.
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
        let left_pages = self.fold_while_idle(media, budget_pages);
        self.tiers.slow.idle(media, left_pages);
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
        metrics.count(ALLOWED_BLOCKS.metric, u64::from(self.allowed_blocks()));
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
        let extra = if DYNAMIC { self.curve.most_pages / slow.geometry().pages_per_block } else { 0 };
        metrics.count("metadata_bytes", slow.metadata_bytes() + fast.metadata_bytes_of(self.least + extra));
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
        self.check_fold_page()?;
        if self.unused > self.ring.erased() {
            return Err(format!("{} blocks are unused and {} erased", self.unused, self.ring.erased()));
        }
        if self.lending_die >= self.tiers.slow.geometry().dies {
            return Err(format!("die {} is asked next for a block", self.lending_die));
        }
        if self.blocks != self.ring.written() + self.ring.erased() || self.blocks < self.least {
            return Err(format!(
                "the cache has {} blocks, {} of them with data and {} erased, and at least {}",
                self.blocks,
                self.ring.written(),
                self.ring.erased(),
                self.least
            ));
        }
        let mapped = (0..self.tiers.slow.logical_pages()).filter(|&logical| self.is_mapped(logical)).count();
        if DYNAMIC && mapped != self.mapped_pages as usize {
            return Err(format!("{mapped} logical pages are mapped, {} were counted", self.mapped_pages));
        }
        if self.blocks == self.least && (mapped as u64) > self.tiers.slow.room() {
            return Err(format!("{mapped} logical pages are mapped and {} fit", self.tiers.slow.room()));
        }
        if DYNAMIC && self.blocks > self.least && self.free_pages() < self.held_pages() {
            return Err(format!("the cache has {} blocks and leaves no room for folding them", self.blocks));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
