//! `Log`: a page-mapped region that collects itself. The engine below schemes over page maps.
//!
//! ```text
//!                    streams, an open block each
//!  write ─▶ stream ─▶ |###___|   full: sealed      victim: its valid pages go to streams, too
//!                     |#_____|  ─────────────▶  |#_##_#| ─────────────▶ erased ─▶ …
//! ```
//!
//! A [`PageTable`] says where pages are, [`Blocks`] which blocks of each die are erased, open or sealed. Pages go to the dies in turn, to
//! the stream that the log's [`Separation`] gives them. Each die is collected by itself, in the foreground, when it is down to
//! `gc_free_blocks` erased blocks. On dies that program several pages together, those of today, blocks are large: there a victim is
//! collected in steps between the pages that are written, so that no request waits for all of it.
//!
//! With many streams dies are pooled: they have their erased blocks in common, and a stream has open blocks on some of them, its lanes.
//! Each die has a victim of its own, and they take turns, so that no die copies while the others wait for it.
//!
//! Or blocks lie in [lines](Layout) across all dies: then a stream has one open line, on which all dies work, and lines are collected in steps.
//!
//! A policy may choose the [mode](Separation::mode) in which a stream's blocks are opened. A block in SLC mode lacks pages, so there are no more of
//! them than the spare area has room for.
//!
//! # Progress
//!
//! A die, or a pool of dies, never holds more valid pages than all its blocks but the reserved ones: the open ones, and an erased one. So
//! when erased blocks are short, a sealed block has an invalid page. An erased block has room for all valid pages of that one. If copies go
//! to several streams, one of them takes it, and the others share its room or that of other open blocks until the victim is erased. Of
//! pooled dies there is an erased block for each victim: another is chosen only where one is left for it.
//!
//! The last erased block is not opened in SLC mode, so that it has room for a victim's pages in any mode. A victim that is full of valid pages
//! can only be one in SLC mode: its pages go to the last stream, which is native, and there are fewer blocks in SLC mode than before.
//!
//! It may keep a summary of each block in the block's last page, so that its map can be found again by reading one page of a block.

mod append;
mod blocks;
mod collect;
mod lines;
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
use collect::Step;
pub use lines::Layout;
use lines::Lines;
pub use separation::{HostAndCopied, Separation};
pub use units::{UnitSettings, Units, default_unit_blocks};
pub use victims::{VictimPolicy, Victims};

/// When a log is collected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Collection {
    /// Erased blocks of a die at or below which it is collected before the next write.
    pub gc_free_blocks: u32,
    /// Whether idle time is used to collect up to twice as many, as far as the spare area allows.
    pub idle_gc: bool,
}

impl Collection {
    /// Most valid pages that a log with two streams can hold if it is collected like this.
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

/// The pages that a log is to hold, and the blocks that it may use.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Pages of the address space.
    pub logical_pages: u64,
    /// Pages of it that are valid at a time, at most: its user sees to that.
    pub valid_pages: u64,
    /// Pages of a block that take data, its first.
    pub data_pages: u32,
    /// Blocks, the first ones, that are lent from the beginning.
    pub lent: u32,
    /// How blocks lie on the dies. None is lent if it is in lines, and all pages of a block take data.
    pub layout: Layout,
    /// Pages that a block has in SLC mode, if the policy opens any in it; else 0. Together they take no more room than the spare area has
    /// beside open and erased blocks.
    pub slc_pages: u32,
}

impl Capacity {
    /// Room for all `logical_pages` pages of an address space.
    pub fn whole(geometry: &Geometry, logical_pages: u64) -> Self {
        let data_pages = geometry.pages_per_block;
        Self { logical_pages, valid_pages: logical_pages, data_pages, lent: 0, layout: Layout::Die, slc_pages: 0 }
    }

    /// The same in lines, if it is to be in lines: of one die, whose blocks the lines are.
    fn in_lines(self, geometry: Geometry) -> Result<(Self, Geometry, Option<Lines>), String> {
        if self.layout == Layout::Die || geometry.dies == 1 {
            return Ok((self, geometry, None));
        }
        debug_assert!(self.lent == 0 && self.data_pages == geometry.pages_per_block);
        let lines = Lines::new(geometry, self.slc_pages);
        let (data_pages, slc_pages) = (self.data_pages * geometry.dies, self.slc_pages * geometry.dies);
        Ok((Self { data_pages, slc_pages, ..self }, lines.geometry()?, Some(lines)))
    }
}

/// The region's state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "P: Separation<N>")]
pub struct Log<P = HostAndCopied, const N: usize = 2> {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    table: PageTable,
    /// Where pages of its blocks are on the media, if these are lines.
    #[serde(with = "crate::save::fixed")]
    lines: Option<Lines>,
    blocks: Blocks<N>,
    #[serde(with = "crate::save::fixed")]
    collection: Collection,
    /// Erased blocks of a die up to which idle time is used.
    #[serde(with = "crate::save::fixed")]
    idle_blocks: u32,
    /// By die; none where a victim is collected at once.
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

    /// An erased region for as many pages as it can hold, with its first `lent` blocks lent from the beginning. If
    /// `summaries`, the last page of each block is its summary: it is programmed, as [`Cause::Meta`], when the others are.
    ///
    /// # Errors
    /// No page fits.
    pub fn largest(
        region: RegionId,
        geometry: Geometry,
        collection: Collection,
        lent: u32,
        summaries: bool,
    ) -> Result<Self, String> {
        let data_pages = geometry.pages_per_block - u32::from(summaries);
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
    /// An erased region of that capacity. `separation` makes its policy for a number of entries of blocks.
    ///
    /// # Errors
    /// Too little spare area, and how much it takes.
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
        // Were all blocks of a die's spare area but the open ones to be erased, each block would be copied for the sake of
        // its last invalid page, again and again.
        let attainable = u32::try_from(spare - N as u64).unwrap_or(u32::MAX);
        let idle_blocks = attainable.min(2 * collection.gc_free_blocks);
        let separation = separation(blocks.entries());
        Ok(Self::over(region, (geometry, lines), &capacity, blocks, (collection, idle_blocks), separation))
    }

    /// An erased region of that capacity whose dies are pooled. Streams have lanes, open blocks, on as many dies as leaves three
    /// quarters of the spare area to garbage. `separation` makes its policy for these blocks and lanes.
    ///
    /// # Errors
    /// Too little spare area, and how much it takes.
    pub fn pooled(
        region: RegionId,
        geometry: Geometry,
        capacity: Capacity,
        collection: Collection,
        separation: impl FnOnce(&Blocks<N>) -> P,
    ) -> Result<Self, String> {
        Self::pooled_with(region, geometry, capacity, collection, N as u64, separation)
    }

    /// The same if only `streams` of its streams, at least 1, will ever be written to.
    ///
    /// # Errors
    /// Too little spare area, and how much it takes.
    pub fn pooled_with(
        region: RegionId,
        geometry: Geometry,
        capacity: Capacity,
        collection: Collection,
        streams: u64,
        separation: impl FnOnce(&Blocks<N>) -> P,
    ) -> Result<Self, String> {
        assert!(P::POOLED, "dies of such a policy are not pooled");
        let (capacity, geometry, lines) = capacity.in_lines(geometry)?;
        let kind = if lines.is_some() { "lines" } else { "blocks" };
        let Capacity { valid_pages, data_pages, slc_pages, .. } = capacity;
        let spare = u64::from(geometry.blocks).saturating_sub(valid_pages.div_ceil(u64::from(data_pages)));
        let lanes = (spare / (4 * streams)).clamp(1, u64::from(geometry.dies)) as u32;
        let open = u64::from(lanes) * streams;
        let erased = u64::from(collection.gc_free_blocks) * u64::from(geometry.dies);
        let needed = erased + open;
        if needed > spare {
            return Err(format!(
                "keeping {erased} {kind} erased takes {needed} spare {kind} and there are {spare}; enlarge the spare area or \
                 lower gc_free_blocks"
            ));
        }
        let mut blocks = Blocks::<N>::new((geometry.blocks, geometry.dies), lanes, data_pages, 0);
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

    /// Erased blocks of a die, or of the pool.
    #[inline]
    fn erased(&self, die: u32) -> u32 {
        if P::POOLED { self.blocks.free_in_pool() } else { self.blocks.free(die) }
    }

    /// Whether a die, or the pool, is to be collected.
    #[inline]
    fn is_short(&self, die: u32) -> bool {
        let dies = if P::POOLED { self.blocks.dies() } else { 1 };
        self.erased(die) <= self.collection.gc_free_blocks.saturating_mul(dies)
    }

    /// The policy, with what it has learned.
    pub fn separation(&self) -> &P {
        &self.separation
    }

    /// The same, to tell it what only its scheme knows.
    pub fn separation_mut(&mut self) -> &mut P {
        &mut self.separation
    }

    /// Pages that hold a logical page.
    pub fn occupied(&self) -> u64 {
        self.blocks.valid()
    }

    /// Valid pages that fit into it, less what is lent.
    pub fn room(&self) -> u64 {
        self.blocks.room()
    }

    /// Its blocks: which are erased, and in which mode the others are.
    pub fn blocks(&self) -> &Blocks<N> {
        &self.blocks
    }

    /// Lends an erased block of a die, which is collected if it must be; none if its valid pages would not fit into the
    /// others.
    pub fn lend<M: Media>(&mut self, media: &mut M, die: u32) -> Option<BlockId> {
        if !self.blocks.can_lend(die) {
            return None;
        }
        // Its valid pages fit into all its blocks but the reserved ones and the one to be lent, so a block with an
        // invalid page is found until there are more erased blocks than the reserve has.
        while self.blocks.free(die) <= self.collection.gc_free_blocks + 1 && self.collect_victim(media, die) {}
        self.blocks.lend(die)
    }

    /// A lent block comes back, erased in its native mode.
    pub fn give_back(&mut self, block: BlockId) {
        self.blocks.give_back(block);
    }

    /// Blocks that are lent, in order.
    pub fn lent(&self) -> impl Iterator<Item = BlockId> {
        self.blocks.lent()
    }
}

/// Checks that valid pages fit beside the reserved blocks, and that they can be numbered.
fn check_pages(geometry: &Geometry, capacity: &Capacity, room: u64, reserved: u32) -> Result<(), String> {
    let Capacity { logical_pages, valid_pages, data_pages, .. } = *capacity;
    if logical_pages >= u64::from(u32::MAX) {
        return Err(format!("{logical_pages} logical pages are more than 2^32; lower the capacity"));
    }
    if valid_pages > room {
        let needed = valid_pages.div_ceil(u64::from(data_pages)) + u64::from(reserved * geometry.dies);
        return Err(format!(
            "{} blocks leave too little spare area: {valid_pages} pages of {} bytes on {} dies need about \
             {needed} blocks ({reserved} per die stay free of data); enlarge the region or its spare area",
            geometry.blocks, geometry.page_bytes, geometry.dies
        ));
    }
    Ok(())
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
    fn invalidate(&mut self, logical: u32) {
        self.forget(logical);
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
            return self.write_pooled(media, stream, logical, parts, cause);
        }
        if !self.steps.is_empty() {
            return self.write_in_steps(media, stream, logical, parts, cause);
        }
        let die = self.blocks.next_die();
        self.append(media, (die, stream), logical, parts, cause);
    }

    fn idle<M: Media>(&mut self, media: &mut M, budget_pages: u32) -> u32 {
        if !self.collection.idle_gc {
            return 0;
        }
        let dies = if P::POOLED { 1 } else { self.blocks.dies() };
        (0..dies).fold(0, |copied, die| {
            let left = budget_pages.saturating_sub(copied);
            copied + self.collect_while_idle(media, die, left)
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
