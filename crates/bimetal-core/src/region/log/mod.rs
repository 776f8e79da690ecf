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
//! # Progress
//!
//! A die, or a pool of dies, never holds more valid pages than all its blocks but the reserved ones: the open ones, and an erased one. So
//! when erased blocks are short, a sealed block has an invalid page. An erased block has room for all valid pages of that one. If copies go
//! to several streams, one of them takes it, and the others share its room or that of other open blocks until the victim is erased. Of
//! pooled dies there is an erased block for each victim: another is chosen only where one is left for it.
//!
//! It may keep a summary of each block in the block's last page, so that its map can be found again by reading one page of a block.

mod blocks;
mod separation;
#[cfg(test)]
mod tests;
mod units;
mod victims;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Space;
use super::page_table::{PageTable, Run, ValidWord};
use super::valid_counts::ValidCounts;
use crate::media::{Cause, CellMode, Media, Part, Stream};
use crate::units::{BlockId, Geometry, Ppa, RegionId};

pub use blocks::Blocks;
use blocks::Open;
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
}

impl Capacity {
    /// Room for all `logical_pages` pages of an address space.
    pub fn whole(geometry: &Geometry, logical_pages: u64) -> Self {
        Self { logical_pages, valid_pages: logical_pages, data_pages: geometry.pages_per_block, lent: 0 }
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
#[serde(bound = "P: Separation<N>")]
pub struct Log<P = HostAndCopied, const N: usize = 2> {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    table: PageTable,
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

impl Step {
    /// For each die of those that are collected in steps.
    fn all(geometry: &Geometry) -> Vec<Self> {
        vec![Self::default(); if geometry.stripe_pages > 1 { geometry.dies as usize } else { 0 }]
    }
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
    /// Whether the pages of a victim go to several streams.
    const MIXED: bool = P::POOLED && N > 1;

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
        let Capacity { logical_pages, valid_pages, data_pages, lent } = capacity;
        let blocks = u64::from((geometry.blocks / geometry.dies).saturating_sub(lent.div_ceil(geometry.dies)));
        let spare = blocks.saturating_sub(valid_pages.div_ceil(u64::from(data_pages * geometry.dies)));
        let needed = u64::from(collection.gc_free_blocks) + N as u64;
        if needed > spare {
            return Err(format!(
                "keeping {} blocks erased takes {needed} spare blocks per die and there are {spare}; enlarge the spare area \
                 or lower gc_free_blocks",
                collection.gc_free_blocks
            ));
        }
        const { assert!(N <= Stream::MAX, "media count no more streams") };
        let dies = geometry.dies;
        let mut blocks = Blocks::<N>::new((geometry.blocks, dies), dies, data_pages, reserved_blocks(N))?;
        check_pages(&geometry, &capacity, blocks.room(), reserved_blocks(N))?;
        for number in 0..lent {
            let block = blocks.lend(number % geometry.dies);
            debug_assert_eq!(block, Some(BlockId(number)));
        }
        // Were all blocks of a die's spare area but the open ones to be erased, each block would be copied for the sake of
        // its last invalid page, again and again.
        let attainable = u32::try_from(spare - N as u64).unwrap_or(u32::MAX);
        let separation = separation(blocks.entries());
        Ok(Self {
            region,
            table: PageTable::new(geometry, logical_pages),
            blocks,
            collection,
            idle_blocks: attainable.min(2 * collection.gc_free_blocks),
            steps: Step::all(&geometry),
            erases: 0,
            copied_pages: 0,
            separation,
        })
    }

    /// An erased region for `logical_pages` pages whose dies are pooled. Streams have lanes, open blocks, on as many dies as leaves three
    /// quarters of the spare area to garbage. `separation` makes its policy for these blocks and lanes.
    ///
    /// # Errors
    /// Too little spare area, and how much it takes.
    pub fn pooled(
        region: RegionId,
        geometry: Geometry,
        logical_pages: u64,
        collection: Collection,
        separation: impl FnOnce(&Blocks<N>) -> P,
    ) -> Result<Self, String> {
        Self::pooled_with(region, geometry, logical_pages, collection, N as u64, separation)
    }

    /// The same if only `streams` of its streams, at least 1, will ever be written to.
    ///
    /// # Errors
    /// Too little spare area, and how much it takes.
    pub fn pooled_with(
        region: RegionId,
        geometry: Geometry,
        logical_pages: u64,
        collection: Collection,
        streams: u64,
        separation: impl FnOnce(&Blocks<N>) -> P,
    ) -> Result<Self, String> {
        assert!(P::POOLED, "dies of such a policy are not pooled");
        let capacity = Capacity::whole(&geometry, logical_pages);
        let data_blocks = logical_pages.div_ceil(u64::from(geometry.pages_per_block));
        let spare = u64::from(geometry.blocks).saturating_sub(data_blocks);
        let lanes = (spare / (4 * streams)).clamp(1, u64::from(geometry.dies)) as u32;
        let open = u64::from(lanes) * streams;
        let erased = u64::from(collection.gc_free_blocks) * u64::from(geometry.dies);
        let needed = erased + open;
        if needed > spare {
            return Err(format!(
                "keeping {erased} blocks erased takes {needed} spare blocks and there are {spare}; enlarge the spare area or lower \
                 gc_free_blocks"
            ));
        }
        const { assert!(N <= Stream::MAX, "media count no more streams") };
        let blocks = Blocks::<N>::new((geometry.blocks, geometry.dies), lanes, geometry.pages_per_block, 0)?;
        check_pages(&geometry, &capacity, blocks.room(), 0)?;
        let separation = separation(&blocks);
        let idle_blocks = (spare - open).min(2 * erased) as u32;
        let (table, steps) = (PageTable::new(geometry, logical_pages), Step::all(&geometry));
        Ok(Self { region, table, blocks, collection, idle_blocks, steps, erases: 0, copied_pages: 0, separation })
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

    /// Pages that hold a logical page.
    pub fn occupied(&self) -> u64 {
        self.blocks.valid()
    }

    /// Valid pages that fit into it, less what is lent.
    pub fn room(&self) -> u64 {
        self.blocks.room()
    }

    /// Lends an erased block of a die, which is collected if it must be; none if its valid pages would not fit into the
    /// others.
    pub fn lend<M: Media>(&mut self, media: &mut M, die: u32) -> Option<BlockId> {
        if !self.blocks.can_lend(die) {
            return None;
        }
        // Its valid pages fit into all its blocks but the reserved ones and the one to be lent, so a block with an
        // invalid page is found until there are more erased blocks than the reserve has.
        while self.blocks.free(die) <= self.collection.gc_free_blocks + 1 && self.collect(media, die) {}
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

    /// Forgets the copy of a logical page, if there is one: its physical page can be collected. Returns the block's entry.
    #[inline(always)]
    fn forget(&mut self, logical: u32) -> Option<usize> {
        let page = self.table.clear(logical)?;
        let place = self.blocks.place(self.table.geometry().block_of(page));
        self.blocks.invalidate(place);
        Some(place.entry as usize)
    }

    /// Programs a logical page that has no copy in a stream.
    #[inline(always)]
    fn append<M: Media>(
        &mut self,
        media: &mut M,
        (die, stream): (u32, usize),
        logical: u32,
        parts: &[Part<M::Data>],
        cause: Cause,
    ) {
        self.make_room(media, die, stream);
        let (block, page) = self.next_page(die, stream);
        let page = self.table.geometry().ppa(block, page);
        self.table.assign(logical, page);
        self.blocks.add_valid(if P::POOLED { self.blocks.place(block).die } else { die }, 1);
        let is_full = self.fill(die, stream, 1);
        media.program(self.region, page, parts, Stream::new(stream), cause);
        if is_full {
            self.summarise(media, page, stream);
        }
    }

    /// Makes sure that a stream's next page has an erased block, if it takes one.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M, lane: u32, stream: usize) {
        // Copies of a victim may have opened a block of the stream.
        while self.blocks.needs_block(lane, stream) {
            let collected = match self.separation.victim_at_limit(self.blocks.counts(), lane) {
                Some(victim) => self.collect_entry(media, victim),
                None => self.is_short(lane) && self.collect(media, lane),
            };
            if !collected {
                return;
            }
        }
    }

    /// The next page of a stream, in a new block where it needs one.
    #[inline(always)]
    fn next_page(&mut self, die: u32, stream: usize) -> (BlockId, u32) {
        if self.blocks.needs_block(die, stream) {
            let block = if P::POOLED { self.blocks.open_in_pool(die, stream) } else { self.blocks.open(die, stream) };
            self.separation.opened(self.blocks.entry(block), die, stream);
        }
        self.blocks.next_page(die, stream)
    }

    /// The next `pages` pages of a stream's open block are filled. Returns whether it is full.
    #[inline(always)]
    fn fill(&mut self, die: u32, stream: usize, pages: u32) -> bool {
        let sealed = self.blocks.fill(die, stream, pages);
        if let Some(block) = sealed {
            self.separation.sealed(self.blocks.entry(block));
        }
        sealed.is_some()
    }

    /// The same as [`Space::write`] on dies of today, whose victims are collected in steps. Apart, so that the others are short.
    #[inline(never)]
    fn write_in_steps<M: Media>(
        &mut self,
        media: &mut M,
        stream: usize,
        logical: u32,
        parts: &[Part<M::Data>],
        cause: Cause,
    ) {
        let die = self.blocks.next_die_in_stripes(self.table.geometry().stripe_pages);
        self.append(media, (die, stream), logical, parts, cause);
        self.collect_step(media, die);
    }

    /// The same where dies are pooled.
    fn write_pooled<M: Media>(
        &mut self,
        media: &mut M,
        stream: usize,
        logical: u32,
        parts: &[Part<M::Data>],
        cause: Cause,
    ) {
        let in_turn = || self.blocks.next_lane(self.table.geometry().stripe_pages);
        let lane = self.separation.lane(logical).unwrap_or_else(in_turn);
        while self.blocks.free_in_pool() < self.blocks.victims() {
            // The room that a victim needs may be in the block that this page would go to.
            self.collect(media, 0);
        }
        self.append(media, (lane, stream), logical, parts, cause);
        if let Some(page) = self.table.lookup(logical).filter(|_| !self.steps.is_empty()) {
            // Dies with victims take turns as the pages of a block do.
            let geometry = self.table.geometry();
            self.collect_step(media, geometry.page_of(page) % geometry.dies);
        }
    }

    /// After a page was written to a die that is down to its last erased blocks: so much of a victim is copied that it is erased
    /// when it has to be. A victim with v of P pages valid makes room for P - v pages at the cost of v copies.
    fn collect_step<M: Media>(&mut self, media: &mut M, die: u32) {
        let (die, victim) = match self.blocks.victim(die) {
            Some(victim) => (die, BlockId(victim.block)),
            None if !self.is_short(die) => return,
            None => {
                let chosen = if P::POOLED { self.begin_collecting_pool() } else { self.victim_of_die(die) };
                let Some((die, victim)) = chosen else { return };
                self.steps[die as usize] = Step { valid: self.blocks.valid_in(victim), owed: 0 };
                (die, victim)
            }
        };
        let Step { valid, mut owed } = self.steps[die as usize];
        let gain = i64::from(self.blocks.data_pages() - valid);
        owed += i64::from(valid);
        let mut run = Run::default();
        while owed >= gain && self.blocks.valid_in(victim) > 0 {
            owed -= self.copy_run(media, die, &mut run) as i64 * gain;
        }
        self.steps[die as usize].owed = owed;
        if self.blocks.valid_in(victim) == 0 {
            self.erase(media, die, victim);
        }
    }

    /// Programs the summary of a block that is full with its data page `last`, if it has one.
    #[cold]
    fn summarise<M: Media>(&mut self, media: &mut M, last: Ppa, stream: usize) {
        if self.blocks.data_pages() < self.table.geometry().pages_per_block {
            media.program(self.region, Ppa(last.0 + 1), &[], Stream::new(stream), Cause::Meta);
        }
    }

    /// Moves the valid pages of a die's victim away, or of a pool's, and erases it; false if there is none.
    fn collect<M: Media>(&mut self, media: &mut M, die: u32) -> bool {
        let victim = if P::POOLED { self.victim_of_pool() } else { self.victim_of_die(die) };
        self.empty(media, victim)
    }

    /// The same of a block that the policy has chosen.
    fn collect_entry<M: Media>(&mut self, media: &mut M, entry: usize) -> bool {
        let die = self.blocks.die_of(entry);
        let victim = self.begin_collecting(die, |_, _, _| Some(entry));
        self.empty(media, victim.map(|victim| (die, victim)))
    }

    fn empty<M: Media>(&mut self, media: &mut M, victim: Option<(u32, BlockId)>) -> bool {
        let Some((die, victim)) = victim else { return false };
        let mut run = Run::default();
        while self.copy_run(media, die, &mut run) > 0 {}
        self.erase(media, die, victim);
        true
    }

    /// A die's victim, chosen now unless it has one.
    fn victim_of_die(&mut self, die: u32) -> Option<(u32, BlockId)> {
        let collecting = self.blocks.victim(die).map(|victim| BlockId(victim.block));
        collecting.or_else(|| self.begin_collecting(die, P::victim)).map(|victim| (die, victim))
    }

    /// The victim of a pool that takes the fewest copies, chosen now if there is none.
    fn victim_of_pool(&mut self) -> Option<(u32, BlockId)> {
        self.blocks.emptiest_victim().or_else(|| self.begin_collecting_pool())
    }

    /// Chooses a victim on the die with the fewest erased blocks that has none and can have one.
    fn begin_collecting_pool(&mut self) -> Option<(u32, BlockId)> {
        if self.blocks.free_in_pool() <= self.blocks.victims() {
            return None;
        }
        let mut last = None;
        loop {
            let die = self.blocks.fewest_erased(last)?;
            if let Some(victim) = self.begin_collecting(die, P::victim) {
                return Some((die, victim));
            }
            last = Some(die);
        }
    }

    fn begin_collecting(
        &mut self,
        die: u32,
        choose: impl FnOnce(&mut P, &mut ValidCounts, Range<usize>) -> Option<usize>,
    ) -> Option<BlockId> {
        let victim =
            self.blocks.begin_collecting(die, |counts, entries| choose(&mut self.separation, counts, entries))?;
        self.separation.collected(self.blocks.entry(victim));
        Some(victim)
    }

    /// Copies valid pages of a die's victim to consecutive pages of one stream's open block, as many as a run and that block hold.
    /// `run` has their old places then. Returns how many.
    #[inline]
    fn copy_run<M: Media>(&mut self, media: &mut M, die: u32, run: &mut Run) -> usize {
        let Some(victim) = self.blocks.victim(die) else { return 0 };
        let Some(pages) = self.table.valid_word(BlockId(victim.block), victim.page) else { return 0 };
        let (pages, lane, stream) = if P::POOLED { self.of_one_stream(pages, victim) } else { (pages, die, N - 1) };
        let (block, page) = self.next_page(lane, stream);
        let to = self.table.geometry().ppa(block, page);
        self.table.move_run(pages, to, self.blocks.data_pages() - page, run);
        let copied = run.pages().len();
        // Of several streams, pages between those that were moved may be left.
        let last = if Self::MIXED { 0 } else { copied - 1 };
        let next = self.table.geometry().page_of(run.pages()[last]) + 1;
        self.blocks.moved(die, copied as u32, next);
        if P::POOLED {
            self.blocks.move_valid(BlockId(victim.block), block, copied as u32);
        }
        let is_full = self.fill(lane, stream, copied as u32);
        media.copy_run(self.region, run.pages(), to, Stream::new(stream), Cause::Gc);
        self.copied_pages += copied as u64;
        if is_full {
            self.summarise(media, Ppa(to.0 + copied as u32 - 1), stream);
        }
        copied
    }

    /// Those of a pool's victim's pages that go to the same stream as the first of them, and its lane and stream. If that takes a block
    /// and none is erased, they go to another one.
    fn of_one_stream(&self, pages: ValidWord, victim: Open) -> (ValidWord, u32, usize) {
        let entry = self.blocks.entry(BlockId(victim.block));
        let first = self.table.first_owner(pages);
        let stream = self.separation.copied(first, entry);
        let is_of_stream = |logical| self.separation.copied(logical, entry) == stream;
        let pages = if Self::MIXED { self.table.retain(pages, is_of_stream) } else { pages };
        // Copies go to the lanes in turn, victim by victim and word by word.
        let in_turn = || (victim.block + victim.page / u64::BITS) % self.blocks.lanes();
        let lane = self.separation.lane(first).unwrap_or_else(in_turn);
        let takes_none = self.blocks.free_in_pool() > 0 || !self.blocks.needs_block(lane, stream);
        let other = if takes_none { None } else { self.blocks.with_room() };
        let (lane, stream) = other.unwrap_or((lane, stream));
        (pages, lane, stream)
    }

    /// Erases a die's emptied victim.
    fn erase<M: Media>(&mut self, media: &mut M, die: u32, victim: BlockId) {
        media.erase(self.region, victim, CellMode::Native, Cause::Gc);
        self.blocks.end_collecting(die);
        self.erases += 1;
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
    fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    fn logical_pages(&self) -> u32 {
        self.table.logical_pages()
    }

    #[inline(always)]
    fn lookup(&self, logical: u32) -> Option<Ppa> {
        self.table.lookup(logical)
    }

    #[inline(always)]
    fn invalidate(&mut self, logical: u32) {
        self.forget(logical);
    }

    #[inline(always)]
    fn elsewhere(&self, logical: u32) -> Option<u32> {
        self.table.elsewhere(logical)
    }

    fn places_elsewhere(&self) -> u32 {
        self.table.places_elsewhere()
    }

    #[inline(always)]
    fn put_elsewhere(&mut self, logical: u32, place: u32) {
        self.forget(logical);
        self.table.put_elsewhere(logical, place);
    }

    #[inline(always)]
    fn set_handle(&mut self, handle: u8) {
        self.separation.set_handle(handle);
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
        let before = self.copied_pages;
        let budget = before + u64::from(budget_pages);
        let pools = if P::POOLED { 1 } else { self.blocks.dies() };
        for die in 0..pools {
            while self.erased(die) < self.idle_blocks && self.copied_pages < budget && self.collect(media, die) {}
        }
        (self.copied_pages - before) as u32
    }

    #[inline]
    fn prefetch_entry(&self, logical: u32) {
        self.table.prefetch_map(logical);
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
