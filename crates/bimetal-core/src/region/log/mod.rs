//! `Log`: a page-mapped region that collects itself. It is the engine below the schemes with page maps.
//!
//! ```text
//!                    streams, an open block each
//!  write ─▶ stream ─▶ |###___|   full: sealed      victim: its valid pages go to streams, too
//!                     |#_____|  ─────────────▶  |#_##_#| ─────────────▶ erased ─▶ …
//! ```
//!
//! A [`PageTable`] maps logical to physical pages. [`Blocks`] knows which blocks of each die are erased, open or
//! sealed. Pages go to the dies in turn, to the stream that the log's [`Separation`] chooses. Each die is collected by
//! itself, in the foreground, when it has only `gc_free_blocks` erased blocks left. Current dies program several pages
//! together, so their blocks are large. There a victim is collected in steps between page writes, so that no request
//! waits for the whole collection.
//!
//! With many streams the dies are pooled: they share their erased blocks, and a stream has open blocks on only some of
//! the dies, its lanes. Each die has its own victim, and the dies take turns, so that no die copies while the others
//! wait for it.
//!
//! Alternatively, blocks are grouped in [lines](Layout) across all dies. Then a stream has one open line, on which all
//! dies work, and lines are collected in steps.
//!
//! Pages of a log may be smaller than those of the media, so that several [share](Packing) one.
//!
//! A policy may choose the [mode](Separation::mode) in which a stream's blocks are opened. A block in SLC mode has
//! fewer pages, so the spare area limits the number of such blocks.
//!
//! # Progress
//!
//! The valid pages of a die, or of a pool of dies, always fit into its blocks without the reserved ones, which are the
//! open blocks and one erased block. So when erased blocks are short, some sealed block has an invalid page, and an
//! erased block has room for all of its valid pages. If the copies go to several streams, one of these takes the erased
//! block; the others share its room, or that of other open blocks, until the victim is erased. Pooled dies keep an
//! erased block for each victim: another victim is chosen only if an erased block is left for it.
//!
//! The last erased block is not opened in SLC mode, so that it has room for a victim's pages in any mode. A victim
//! without invalid pages can only be a block in SLC mode. Its pages go to the last stream, which is native, so the
//! number of blocks in SLC mode falls.
//!
//! The log may keep a summary of each block in the block's last page, so that the map can be rebuilt by reading one
//! page per block.

mod append;
mod blocks;
mod capacity;
mod collect;
mod lines;
mod packed;
mod packing;
mod separation;
#[cfg(test)]
mod tests;
mod units;
mod victims;

use serde::{Deserialize, Serialize};

use super::Space;
use super::page_table::PageTable;
use crate::media::{Cause, Media, Part, Stream};
use crate::request::Request;
use crate::units::{BlockId, Geometry, Ppa, RegionId};

pub use blocks::Blocks;
pub use capacity::Capacity;
use capacity::check_pages;
use collect::Step;
pub use lines::Layout;
use lines::Lines;
pub use packing::{PACKED_MAX, Packing};
pub use separation::{HostAndCopied, Separation};
pub use units::{UnitSettings, Units, default_unit_blocks};
pub use victims::{VictimPolicy, Victims};

/// When a log is collected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Collection {
    /// Erased blocks of a die at or below which it is collected before the next write.
    pub gc_free_blocks: u32,
    /// Whether idle time is used to collect up to `2 * gc_free_blocks` erased blocks, as far as the spare area allows.
    pub idle_gc: bool,
}

impl Collection {
    /// Maximum number of valid pages of a log with two streams under this collection policy.
    pub fn valid_pages_max(&self, geometry: &Geometry) -> u64 {
        let reserved = reserved_blocks(2).max(self.gc_free_blocks.saturating_add(2));
        let blocks = (geometry.blocks / geometry.dies).saturating_sub(reserved);
        u64::from(blocks) * u64::from(geometry.pages_per_block) * u64::from(geometry.dies)
    }
}

/// Blocks of each die that can hold no valid page at rest: an open block for each stream, and an erased block.
const fn reserved_blocks(streams: usize) -> u32 {
    streams as u32 + 1
}

/// The region's state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "P: Separation<N>")]
pub struct Log<P = HostAndCopied, const N: usize = 2> {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    table: PageTable,
    /// Maps the pages of lines to pages of the media; `None` if the layout is not lines.
    #[serde(with = "crate::save::fixed")]
    lines: Option<Lines>,
    blocks: Blocks<N>,
    #[serde(with = "crate::save::fixed")]
    collection: Collection,
    /// Number of erased blocks of a die up to which idle time is used to collect.
    #[serde(with = "crate::save::fixed")]
    idle_blocks: u32,
    /// Collection in progress, by die; empty if a victim is collected at once.
    #[serde(with = "crate::save::sized")]
    steps: Vec<Step>,
    erases: u64,
    copied_pages: u64,
    separation: P,
}

impl Log {
    /// An erased region for `logical_pages` pages, with two streams.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn new(
        region: RegionId,
        geometry: Geometry,
        logical_pages: u64,
        collection: Collection,
    ) -> Result<Self, String> {
        Self::with(region, geometry, Capacity::whole(&geometry, logical_pages), collection, |_| HostAndCopied)
    }

    /// An erased region with the largest possible logical capacity. Its first `lent` blocks are lent from the
    /// beginning. If `summaries`, the last page of each block is its summary, which is programmed with [`Cause::Meta`]
    /// after the other pages.
    ///
    /// # Errors
    /// Not even one page fits.
    pub fn largest(
        region: RegionId,
        geometry: Geometry,
        collection: Collection,
        lent: u32,
        summaries: bool,
    ) -> Result<Self, String> {
        let data_pages = geometry.pages_per_block - u32::from(summaries);
        if data_pages == 0 {
            return Err(
                "a block has one page, which its summary takes; use a chip with more pages per block, or turn \
                        summaries off"
                    .into(),
            );
        }
        let reserved = reserved_blocks(2).max(collection.gc_free_blocks.saturating_add(2));
        let kept = lent.div_ceil(geometry.dies).saturating_add(reserved);
        let blocks = (geometry.blocks / geometry.dies).saturating_sub(kept);
        match u64::from(blocks) * u64::from(data_pages) * u64::from(geometry.dies) {
            0 => Err(format!(
                "{} blocks of {} pages on {} dies hold no data beside {kept} blocks per die for metadata and garbage \
                 collection; enlarge the region",
                geometry.blocks, geometry.pages_per_block, geometry.dies
            )),
            pages => {
                let capacity = Capacity { data_pages, lent, ..Capacity::whole(&geometry, pages) };
                Self::with(region, geometry, capacity, collection, |_| HostAndCopied)
            }
        }
    }
}

impl<P: Separation<N>, const N: usize> Log<P, N> {
    /// An erased region with capacity `capacity`. `separation` makes the policy for a given number of block entries.
    ///
    /// # Errors
    /// Too little spare area; the error says how much is needed.
    pub fn with(
        region: RegionId,
        geometry: Geometry,
        capacity: Capacity,
        collection: Collection,
        separation: impl FnOnce(usize) -> P,
    ) -> Result<Self, String> {
        assert!(!P::POOLED, "dies of such a policy are pooled");
        let (capacity, geometry, lines) = capacity.in_lines(geometry)?;
        let kind = if lines.is_some() { "lines" } else { "blocks" };
        let Capacity { valid_pages, data_pages, lent, slc_pages, .. } = capacity;
        let blocks = u64::from((geometry.blocks / geometry.dies).saturating_sub(lent.div_ceil(geometry.dies)));
        let spare = blocks.saturating_sub(valid_pages.div_ceil(u64::from(data_pages * geometry.dies)));
        let needed = u64::from(collection.gc_free_blocks) + N as u64;
        if needed > spare {
            return Err(format!(
                "keeping {} {kind} erased takes {needed} spare {kind} per die and there are {spare}; enlarge the spare area or \
                 lower gc_free_blocks",
                collection.gc_free_blocks
            ));
        }
        let mut blocks =
            Blocks::<N>::new((geometry.blocks, geometry.dies), geometry.dies, data_pages, reserved_blocks(N));
        check_pages(&geometry, &capacity, blocks.room(), reserved_blocks(N))?;
        for number in 0..lent {
            let block = blocks.lend(number % geometry.dies);
            debug_assert_eq!(block, Some(BlockId(number)));
        }
        if slc_pages > 0 {
            blocks.allow_slc(slc_pages, (spare - needed) * u64::from(data_pages * geometry.dies));
        }
        // If all spare blocks of a die except the open ones had to be erased, each block would be collected again and
        // again for its last invalid page.
        let attainable = u32::try_from(spare - N as u64).unwrap_or(u32::MAX);
        let idle_blocks = attainable.min(2 * collection.gc_free_blocks);
        let separation = separation(blocks.entries());
        Ok(Self::over(region, (geometry, lines), &capacity, blocks, (collection, idle_blocks), separation))
    }

    /// An erased region with capacity `capacity` and pooled dies. A stream has lanes (open blocks) on as many dies as
    /// possible while three quarters of the spare area remain for invalid pages. `separation` makes the policy for
    /// these blocks and lanes.
    ///
    /// # Errors
    /// Too little spare area; the error says how much is needed.
    pub fn pooled(
        region: RegionId,
        geometry: Geometry,
        capacity: Capacity,
        collection: Collection,
        separation: impl FnOnce(&Blocks<N>) -> P,
    ) -> Result<Self, String> {
        Self::pooled_with(region, geometry, capacity, collection, N as u64, separation)
    }

    /// As [`Self::pooled`], if only `streams` of the streams, at least 1, will ever be written to.
    ///
    /// # Errors
    /// Too little spare area; the error says how much is needed.
    pub fn pooled_with(
        region: RegionId,
        geometry: Geometry,
        capacity: Capacity,
        collection: Collection,
        streams: u64,
        separation: impl FnOnce(&Blocks<N>) -> P,
    ) -> Result<Self, String> {
        let (capacity, geometry, lines) = capacity.in_lines(geometry)?;
        Self::in_queues(region, (geometry, lines), geometry.dies, capacity, collection, streams, separation)
    }

    /// As [`Self::pooled_with`], with `queues` queues of erased blocks: one for each die, or one for all.
    fn in_queues(
        region: RegionId,
        (geometry, lines): (Geometry, Option<Lines>),
        queues: u32,
        capacity: Capacity,
        collection: Collection,
        streams: u64,
        separation: impl FnOnce(&Blocks<N>) -> P,
    ) -> Result<Self, String> {
        assert!(P::POOLED, "dies of such a policy are not pooled");
        let kind = if lines.is_some() { "lines" } else { "blocks" };
        let Capacity { valid_pages, data_pages, slc_pages, .. } = capacity;
        let spare = u64::from(geometry.blocks).saturating_sub(valid_pages.div_ceil(u64::from(data_pages)));
        let lanes = (spare / (4 * streams)).clamp(1, u64::from(geometry.dies)) as u32;
        let open = u64::from(lanes) * streams;
        let erased = u64::from(collection.gc_free_blocks) * u64::from(queues);
        let needed = erased + open;
        if needed > spare {
            return Err(format!(
                "keeping {erased} {kind} erased takes {needed} spare {kind} and there are {spare}; enlarge the spare area or \
                 lower gc_free_blocks"
            ));
        }
        let mut blocks = Blocks::<N>::new((geometry.blocks, queues), lanes, data_pages, 0);
        check_pages(&geometry, &capacity, blocks.room(), 0)?;
        if slc_pages > 0 {
            blocks.allow_slc(slc_pages, (spare - needed) * u64::from(data_pages));
        }
        let idle_blocks = (spare - open).min(2 * erased) as u32;
        let separation = separation(&blocks);
        Ok(Self::over(region, (geometry, lines), &capacity, blocks, (collection, idle_blocks), separation))
    }

    fn over(
        region: RegionId,
        (geometry, lines): (Geometry, Option<Lines>),
        capacity: &Capacity,
        blocks: Blocks<N>,
        (collection, idle_blocks): (Collection, u32),
        separation: P,
    ) -> Self {
        const { assert!(N <= Stream::MAX, "media count no more streams") };
        Self {
            region,
            table: PageTable::new(geometry, capacity.logical_pages),
            lines,
            blocks,
            collection,
            idle_blocks,
            steps: Step::all(&geometry),
            erases: 0,
            copied_pages: 0,
            separation,
        }
    }

    /// Number of erased blocks of a die, or of the pool.
    #[inline]
    fn erased(&self, die: u32) -> u32 {
        if P::POOLED { self.blocks.free_in_pool() } else { self.blocks.free(die) }
    }

    /// Whether a die, or the pool, must be collected.
    #[inline]
    fn is_short(&self, die: u32) -> bool {
        let dies = if P::POOLED { self.blocks.dies() } else { 1 };
        self.erased(die) <= self.collection.gc_free_blocks.saturating_mul(dies)
    }

    /// The policy and its learned state.
    pub fn separation(&self) -> &P {
        &self.separation
    }

    /// The policy, mutable, for information that only the scheme has.
    pub fn separation_mut(&mut self) -> &mut P {
        &mut self.separation
    }

    /// Pages that hold a logical page.
    pub fn occupied(&self) -> u64 {
        self.blocks.valid()
    }

    /// Number of valid pages that fit into the region, without the lent blocks.
    pub fn room(&self) -> u64 {
        self.blocks.room()
    }

    /// The blocks' states: which blocks are erased, and the mode of the others.
    pub fn blocks(&self) -> &Blocks<N> {
        &self.blocks
    }

    /// Lends an erased block of a die, collecting the die first if necessary. `None` if the valid pages would not fit
    /// into the other blocks.
    pub fn lend<M: Media>(&mut self, media: &mut M, die: u32) -> Option<BlockId> {
        if !self.blocks.can_lend(die) {
            return None;
        }
        // The valid pages fit into the blocks without the reserved ones and the one to be lent. So a block with an
        // invalid page is found until there are more erased blocks than the reserve.
        while self.blocks.free(die) <= self.collection.gc_free_blocks + 1 && self.collect_victim(media, die) {}
        self.blocks.lend(die)
    }

    /// Takes back a lent block, erased in its native mode.
    pub fn give_back(&mut self, block: BlockId) {
        self.blocks.give_back(block);
    }

    /// The lent blocks, in order.
    pub fn lent(&self) -> impl Iterator<Item = BlockId> {
        self.blocks.lent()
    }
}

impl<P: Separation<N>, const N: usize> Space for Log<P, N> {
    fn region(&self) -> RegionId {
        self.region
    }

    #[inline(always)]
    fn table(&self) -> &PageTable {
        &self.table
    }

    #[inline(always)]
    fn lookup(&self, logical: u32) -> Option<Ppa> {
        self.table.lookup(logical).map(|page| self.on_media(page))
    }

    #[inline(always)]
    fn place(&self, logical: u32) -> Option<(Ppa, u32)> {
        let (page, index) = self.place_on_media(self.table.lookup(logical)?);
        Some((page, index * self.table.geometry().page_sectors()))
    }

    #[inline(always)]
    fn invalidate(&mut self, logical: u32) -> bool {
        self.forget(logical).is_some()
    }

    #[inline(always)]
    fn put_elsewhere(&mut self, logical: u32, place: u32) {
        self.forget(logical);
        self.table.put_elsewhere(logical, place);
    }

    #[inline(always)]
    fn begin(&mut self, request: &Request) {
        self.separation.begin(request);
    }

    #[inline]
    fn write<M: Media>(&mut self, media: &mut M, logical: u32, parts: &[Part<M::Data>], cause: Cause) {
        let old = self.forget(logical);
        let stream = self.separation.written(logical, old);
        if P::POOLED {
            return self.write_pooled(media, stream, &[logical], parts, cause);
        }
        if !self.steps.is_empty() {
            return self.write_in_steps(media, stream, logical, parts, cause);
        }
        let die = self.blocks.next_die();
        self.append(media, (die, stream), &[logical], parts, cause);
    }

    #[inline(always)]
    fn end<M: Media>(&mut self, media: &mut M) {
        if self.separation.gc_garbage_percent() > 0.0 {
            self.collect_garbage(media);
        }
    }

    fn idle<M: Media>(&mut self, media: &mut M, budget_pages: u32) -> u32 {
        if !self.collection.idle_gc {
            return 0;
        }
        let dies = if P::POOLED { 1 } else { self.blocks.dies() };
        // The budget is the time of all dies. They work at once, so each has its share, and of what earlier ones leave.
        (0..dies).fold(0, |copied, die| {
            let left = budget_pages.saturating_sub(copied);
            copied + self.collect_while_idle(media, die, left.div_ceil(dies - die))
        })
    }

    #[inline]
    fn prefetch_page(&self, logical: u32) {
        if let Some(page) = self.table.lookup(logical) {
            self.table.prefetch_valid(page);
            self.blocks.prefetch(self.table.geometry().block_of(page));
        }
    }

    fn erases(&self) -> u64 {
        self.erases
    }

    fn copied_pages(&self) -> u64 {
        self.copied_pages
    }

    fn metadata_bytes(&self) -> u64 {
        self.separation.metadata_bytes(self.table.logical_pages())
    }

    fn check(&self) -> Result<(), String> {
        let valid = self.table.check()?;
        let is_written_beyond = |block, page| self.table.valid_word(block, page).is_some();
        let reserved = (!P::POOLED).then_some(reserved_blocks(N));
        self.blocks.check(&valid, reserved, is_written_beyond)?;
        self.separation.check(&self.table, &self.blocks)
    }
}
