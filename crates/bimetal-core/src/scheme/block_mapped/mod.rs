//! Common base of the block-mapped schemes: reading, writing, folding and wear levelling of a region of block chains
//! (Chang 2010 §3.5; dual-pool wear levelling as in §5.1).
//!
//! A write appends to the newest log block of its logical block, or to a new one. When erased blocks run short, chains
//! are folded: their latest pages go to a new data block and all old blocks are erased. A full log block in order is
//! switched instead, without copying. All of it happens in the foreground.
//!
//! A small cache holds maps of chains with a log block; only those need one, since page `o` of a data block holds offset `o`.
//!
//! Departures and readings: pages that were never written, below one that was, are programmed empty when a chain
//! is folded (flash pages are programmed in order, and a data block holds offset `o` in page `o`). Scanning reads the
//! programmed pages of log blocks and one page of the data block. Wear levelling runs after a fold and uses the block
//! that the fold freed, so that no block is reserved for it.

mod overlay;
mod span;
mod wear;

pub use overlay::{Bare, Overlay};
pub use span::Span;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Metrics, ratio};
use crate::chip::Chip;
use crate::media::{Cause, CellMode, Media, PageMerge, Part, Stream};
use crate::model::chang::{self as model, ChainFactors};
use crate::part::dual_pool::{DualPool, Pool};
use crate::part::lru::LruCache;
use crate::region::chains::{Chains, Victims};
use crate::request::Request;
use crate::scheme::RegionShape;
use crate::units::{BlockId, Ppa, RegionId};

/// Choices for the region.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockMapSettings {
    /// Erased blocks that are kept when a log block is taken.
    pub spare_low: u32,
    /// Chains whose second-level map is cached.
    pub map_cache_chains: u32,
    /// Whether a scan reads all of the data block.
    pub scan_data_block: bool,
    /// Which chain is folded.
    pub gc_victim: Victims,
    /// Whether wear is levelled.
    pub wear_levelling: bool,
    /// Difference of erase counts at which blocks are exchanged (`TH`).
    pub wear_threshold: u32,
}

/// Counters since the start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Counts {
    page_writes: u64,
    write_misses: u64,
    map_lookups: u64,
    map_misses: u64,
    scanned_pages: u64,
    folds: u64,
    forced_folds: u64,
    switch_merges: u64,
    folded_blocks: u64,
    wear_swaps: u64,
    erases: u64,
}

/// A block-mapped region and its management.
#[derive(Debug, Serialize, Deserialize)]
pub struct BlockMapped {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    #[serde(with = "crate::save::text")]
    chip: Chip,
    chains: Chains,
    map_cache: LruCache,
    pool: DualPool,
    #[serde(with = "crate::save::fixed")]
    settings: BlockMapSettings,
    #[serde(with = "crate::save::fixed")]
    page_sectors: u32,
    counts: Counts,
}

impl BlockMapped {
    /// An erased region.
    ///
    /// # Errors
    /// Too few blocks, with the number needed.
    pub fn new(
        region: RegionId,
        shape: &RegionShape,
        logical_sectors: u64,
        settings: BlockMapSettings,
    ) -> Result<Self, String> {
        let geometry = shape.geometry;
        let page_sectors = geometry.page_sectors();
        let block_sectors = u64::from(page_sectors) * u64::from(geometry.pages_per_block);
        let logical_blocks = logical_sectors.div_ceil(block_sectors);
        let slc_pages = shape.chip.slc_mode.as_ref().map(|mode| mode.pages_per_block);
        let reserve = u64::from(settings.spare_low);
        let needed = logical_blocks + reserve + 1;
        if needed > u64::from(geometry.blocks) {
            return Err(format!(
                "{logical_blocks} logical blocks, {reserve} blocks kept erased and a log block take {needed} blocks and \
                 the region has {}; enlarge the region or its spare area",
                geometry.blocks
            ));
        }
        Ok(Self {
            region,
            chip: shape.chip.clone(),
            chains: Chains::new(geometry, slc_pages, logical_blocks as u32, settings.gc_victim),
            map_cache: LruCache::new(logical_blocks as usize, settings.map_cache_chains),
            pool: DualPool::new(geometry.blocks, settings.wear_threshold),
            settings,
            page_sectors,
            counts: Counts::default(),
        })
    }

    /// Maps and chains.
    #[inline]
    pub fn chains(&self) -> &Chains {
        &self.chains
    }

    /// Sectors of a page.
    #[inline]
    pub fn page_sectors(&self) -> u32 {
        self.page_sectors
    }

    /// Erases of all blocks.
    #[inline]
    pub fn erases(&self) -> u64 {
        self.counts.erases
    }

    /// The spans of a request.
    #[inline]
    pub fn spans(&self, request: &Request) -> impl Iterator<Item = Span> + use<> {
        span::spans(&self.chains, request)
    }

    /// Prefetches the map entry of a request's first page into the processor's cache, and returns that page.
    #[inline]
    pub fn prefetch(&self, request: &Request) -> u32 {
        let logical = self.chains.geometry().logical_page(request.sector).0;
        self.chains.prefetch(logical);
        logical
    }

    /// Programs every page of every logical block's data block.
    pub fn fill<M: Media>(&mut self, media: &mut M) {
        let pages = self.chains.pages(CellMode::Native);
        for logical_block in 0..self.chains.logical_blocks() {
            let Some(block) = self.chains.next_spare(CellMode::Native) else { return };
            self.chains.take_spare(block, logical_block, CellMode::Native);
            for page in 0..pages {
                let to = self.chains.geometry().ppa(block, page);
                media.program(self.region, to, &[], Stream::ONLY, Cause::Host);
                self.chains.set(self.chains.first_page(logical_block) + page, Some(to));
            }
            self.chains.note_data(block, pages);
            self.chains.append(block, true);
        }
    }

    /// Reads the latest copy of a page in this region, if it has one.
    #[inline]
    pub fn read<M: Media>(&mut self, media: &mut M, block: u32, logical: u32, cause: Cause) -> Option<M::Data> {
        self.resolve(media, block);
        let ppa = self.chains.lookup(logical)?;
        Some(media.read(self.region, ppa, cause))
    }

    /// Serves a host read from this region alone.
    #[inline]
    pub fn read_span<M: Media>(&mut self, media: &mut M, span: Span) {
        match self.read(media, span.block, span.logical, Cause::Host) {
            Some(data) => media.deliver(data, span.first, span.at, span.sectors),
            None => media.deliver_zeros(span.at, span.sectors),
        }
    }

    /// Serves a host write to this region.
    #[inline]
    pub fn write_span<M: Media, O: Overlay>(&mut self, media: &mut M, overlay: &mut O, span: Span) {
        if span.sectors == self.page_sectors {
            let to = self.next_page(media, overlay, span.block);
            let host = Part { data: media.host(), from: span.at, to: 0, sectors: span.sectors };
            media.program(self.region, to, &[host], Stream::ONLY, Cause::Host);
            self.chains.place(span.block, span.logical, to);
        } else {
            let mut merge = PageMerge::default();
            merge.fill(media.host(), span.at, span.first, span.sectors);
            self.write(media, overlay, span.block, span.logical, &mut merge, Cause::Host);
        }
    }

    /// Writes a page of the sectors merged so far; other sectors that are valid here are read and written with it.
    pub fn write<M: Media, O: Overlay>(
        &mut self,
        media: &mut M,
        overlay: &mut O,
        block: u32,
        logical: u32,
        merge: &mut PageMerge<M::Data>,
        cause: Cause,
    ) {
        let to = self.next_page(media, overlay, block);
        let others = merge.sectors() + overlay.newer_sectors(logical) < self.page_sectors;
        if let Some(old) = self.chains.lookup(logical).filter(|_| others) {
            let data = media.read(self.region, old, cause);
            merge.fill(data, 0, 0, self.page_sectors);
        }
        media.program(self.region, to, merge.parts(), Stream::ONLY, cause);
        self.chains.place(block, logical, to);
    }

    /// Drops the pages that a trim covers entirely; a part of a page cannot be dropped.
    #[inline]
    pub fn trim_span(&mut self, span: Span) {
        if span.sectors == self.page_sectors {
            self.chains.set(span.logical, None);
        }
    }

    /// Makes the second-level map of a logical block known: scans its chain unless it is cached. Without a log block no
    /// scan is needed, as page `o` of a data block holds offset `o`.
    #[inline]
    fn resolve<M: Media>(&mut self, media: &mut M, block: u32) {
        if !self.chains.has_log(block) {
            return;
        }
        self.counts.map_lookups += 1;
        if !self.map_cache.touch(block) {
            self.scan(media, block);
        }
    }

    fn scan<M: Media>(&mut self, media: &mut M, logical_block: u32) {
        self.counts.map_misses += 1;
        for (position, (block, programmed, is_data)) in self.chains.chain(logical_block).enumerate() {
            let pages = match is_data && !self.settings.scan_data_block {
                true => programmed.min(u32::from(position == 0)),
                false => programmed,
            };
            for page in 0..pages {
                media.read(self.region, self.chains.geometry().ppa(block, page), Cause::Scan);
            }
            self.counts.scanned_pages += u64::from(pages);
        }
    }

    /// The page that the next write to a logical block programs.
    #[inline]
    fn next_page<M: Media, O: Overlay>(&mut self, media: &mut M, overlay: &mut O, block: u32) -> Ppa {
        self.counts.page_writes += 1;
        let misses = self.counts.map_misses;
        self.resolve(media, block);
        self.counts.write_misses += self.counts.map_misses - misses;
        match self.chains.next_free(block) {
            Some(page) => page,
            None => self.new_log(media, overlay, block),
        }
    }

    /// Folds chains until `blocks` erased blocks can be taken without touching the reserve; returns whether they can.
    pub fn make_room<M: Media, O: Overlay>(&mut self, media: &mut M, overlay: &mut O, blocks: u32) -> bool {
        while self.chains.spare_blocks() < self.settings.spare_low + blocks {
            let Some(victim) = self.chains.victim() else { return false };
            let mode = self.chains.mode(victim);
            self.fold(media, overlay, victim, mode, Cause::Fold);
        }
        true
    }

    fn new_log<M: Media, O: Overlay>(&mut self, media: &mut M, overlay: &mut O, logical_block: u32) -> Ppa {
        self.make_room(media, overlay, 1);
        let block = self.claim(media, logical_block, Cause::Fold);
        self.chains.append(block, false);
        // Its map is that of the old chain, plus the following writes.
        self.map_cache.touch(logical_block);
        self.chains.geometry().ppa(block, 0)
    }

    /// Takes an erased block for a logical block, erased in the mode of its chain.
    fn claim<M: Media>(&mut self, media: &mut M, logical_block: u32, cause: Cause) -> BlockId {
        let mode = self.chains.mode(logical_block);
        let block = self.chains.next_spare(mode).unwrap_or_else(|| unreachable!("a fold keeps a block in reserve"));
        self.claim_block(media, block, logical_block, mode, cause);
        block
    }

    fn claim_block<M: Media>(&mut self, media: &mut M, block: BlockId, owner: u32, mode: CellMode, cause: Cause) {
        if self.chains.block_mode(block) != mode {
            self.erase(media, block, mode, cause);
        }
        self.chains.take_spare(block, owner, mode);
    }

    fn erase<M: Media>(&mut self, media: &mut M, block: BlockId, mode: CellMode, cause: Cause) {
        media.erase(self.region, block, mode, cause);
        self.pool.erased(block.0);
        self.counts.erases += 1;
    }

    /// Gathers the latest pages of a chain in a new data block of the given mode and erases all old blocks; or switches.
    pub fn fold<M: Media, O: Overlay>(
        &mut self,
        media: &mut M,
        overlay: &mut O,
        logical_block: u32,
        mode: CellMode,
        cause: Cause,
    ) {
        self.counts.folds += 1;
        self.map_cache.forget(logical_block);
        let (old, end) = if mode == self.chains.mode(logical_block) && self.chains.switchable(logical_block) {
            self.counts.switch_merges += 1;
            let (first, newest) = self.chains.switch(logical_block);
            (Some(first), Some(newest))
        } else {
            self.counts.forced_folds += u64::from(self.chains.next_free(logical_block).is_some());
            (self.gather(media, overlay, logical_block, mode, cause), None)
        };
        let mut erased = 0;
        let mut next = old;
        while let Some(block) = next.filter(|&block| Some(block) != end) {
            next = self.chains.next(block);
            self.erase(media, block, self.chains.block_mode(block), cause);
            self.chains.release(block);
            erased += 1;
        }
        self.counts.folded_blocks += erased;
        if self.settings.wear_levelling {
            for _ in 0..erased {
                self.level(media);
            }
        }
    }

    /// Copies the latest pages of a chain to a new data block; returns the first of the old blocks.
    fn gather<M: Media, O: Overlay>(
        &mut self,
        media: &mut M,
        overlay: &mut O,
        logical_block: u32,
        mode: CellMode,
        cause: Cause,
    ) -> Option<BlockId> {
        let first = self.chains.first_page(logical_block);
        let joins = overlay.joins_folds();
        let has_data = |chains: &Chains, overlay: &O, logical| {
            chains.lookup(logical).is_some() || (joins && overlay.newer_sectors(logical) > 0)
        };
        let last = (first..first + self.chains.pages(CellMode::Native))
            .rev()
            .find(|&logical| has_data(&self.chains, overlay, logical));
        let old = self.chains.detach(logical_block);
        self.chains.set_mode(logical_block, mode);
        let end = last.map_or(first, |last| last + 1);
        // In SLC mode a data block has all its blocks even if fewer would do: a chain never grows by being folded.
        let width = if mode == CellMode::Slc { self.chains.data_width(mode) } else { u32::from(end > first) };
        let mut logical = first;
        for _ in 0..width {
            let block = self.claim(media, logical_block, cause);
            let pages = self.chains.pages(mode).min(end - logical);
            self.gather_block(media, overlay, logical..logical + pages, self.chains.geometry().ppa(block, 0), cause);
            self.chains.note_data(block, pages);
            self.chains.append(block, true);
            logical += pages;
        }
        old
    }

    /// Copies logical pages to the pages of a block from `to` on, in runs of pages without newer data.
    fn gather_block<M: Media, O: Overlay>(
        &mut self,
        media: &mut M,
        overlay: &mut O,
        pages: Range<u32>,
        to: Ppa,
        cause: Cause,
    ) {
        let joins = overlay.joins_folds();
        let mut logical = pages.start;
        while logical < pages.end {
            let end = if joins { logical + overlay.run_without_newer(logical..pages.end) } else { pages.end };
            let to = Ppa(to.0 + (logical - pages.start));
            let run = self.chains.lookup_run(logical, end);
            let copied = run.len() as u32;
            if copied > 0 {
                media.copy_run(self.region, run, to, Stream::ONLY, cause);
                self.chains.set_run(logical, copied, to);
                logical += copied;
            } else {
                self.gather_page(media, overlay, logical, to, cause);
                logical += 1;
            }
        }
    }

    /// Writes a logical page to `to` that has newer sectors in the overlay, or no copy at all.
    fn gather_page<M: Media, O: Overlay>(
        &mut self,
        media: &mut M,
        overlay: &mut O,
        logical: u32,
        to: Ppa,
        cause: Cause,
    ) {
        let mut merge = PageMerge::default();
        if overlay.joins_folds() && overlay.newer_sectors(logical) > 0 {
            overlay.pull(media, logical, &mut merge);
        } else if self.chains.lookup(logical).is_none() {
            media.program(self.region, to, &[], Stream::ONLY, cause);
            return;
        }
        if let Some(from) = self.chains.lookup(logical).filter(|_| merge.sectors() < self.page_sectors) {
            let data = media.read(self.region, from, cause);
            merge.fill(data, 0, 0, self.page_sectors);
        }
        media.program(self.region, to, merge.parts(), Stream::ONLY, cause);
        self.chains.set(logical, Some(to));
    }

    /// Bytes of `L2P` and `LB`, with block numbers of whole bytes as in §4.2.
    pub fn metadata_bytes(&self) -> u64 {
        let (logical, physical) = (self.chains.logical_blocks(), self.chains.geometry().blocks);
        model::block_tables_bytes(u64::from(logical), u64::from(physical))
    }

    /// The paper's model (§4.1) with the factors measured so far: mean response of a page write, in microseconds.
    pub fn model_write_us(&self) -> f64 {
        let factors = ChainFactors {
            scanned_pages: ratio(self.counts.scanned_pages, self.counts.map_misses),
            erased_blocks: ratio(self.counts.folded_blocks, self.counts.folds),
            miss_ratio: ratio(self.counts.write_misses, self.counts.page_writes),
            fold_ratio: ratio(self.counts.folds, self.counts.page_writes),
        };
        model::chain_write_us(&self.chip, factors)
    }

    /// Figures of the region, the factors of the paper's Table 3 among them.
    pub fn metrics(&self, metrics: &mut Metrics) {
        let counts = &self.counts;
        metrics.count("folds", counts.folds);
        metrics.count("forced_folds", counts.forced_folds);
        metrics.count("switch_merges", counts.switch_merges);
        metrics.push("map_cache_hit_rate", ratio(counts.map_lookups - counts.map_misses, counts.map_lookups));
        metrics.push("model_n3_scanned_pages", ratio(counts.scanned_pages, counts.map_misses));
        metrics.push("model_n4_folded_blocks", ratio(counts.folded_blocks, counts.folds));
        metrics.push("model_p1_map_miss", ratio(counts.write_misses, counts.page_writes));
        metrics.push("model_p2_fold", ratio(counts.folds, counts.page_writes));
        metrics.count("wear_swaps", counts.wear_swaps);
        metrics.count("wear_hot_blocks", u64::from(self.pool.hot_blocks()));
        metrics.push("wear_hot_mean_erases", self.pool.mean_erases(Pool::Hot));
        metrics.push("wear_cold_mean_erases", self.pool.mean_erases(Pool::Cold));
        metrics.count("spare_blocks", u64::from(self.chains.spare_blocks()));
    }

    /// Checks all invariants of the region.
    ///
    /// # Errors
    /// The first one that is broken.
    pub fn check(&self) -> Result<(), String> {
        self.chains.check()?;
        self.map_cache.check()?;
        self.pool.check()?;
        let blocks = 0..self.chains.geometry().blocks;
        let erases: u64 = blocks.map(|block| u64::from(self.pool.erases(block))).sum();
        if erases != self.counts.erases {
            return Err(format!("blocks were erased {erases} times and {} are counted", self.counts.erases));
        }
        let (lookups, misses) = (self.counts.map_lookups, self.counts.map_misses);
        if misses > lookups {
            return Err(format!("{lookups} lookups in the map cache and {misses} misses"));
        }
        let (spare, kept) = (self.chains.spare_blocks(), self.settings.spare_low);
        if spare < kept {
            return Err(format!("{spare} spare blocks, {kept} to be kept"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
