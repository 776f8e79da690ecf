//! The blocks of a log: which are erased, open, sealed or lent on each die, and the number of valid pages of each.
//!
//! Each die has its erased blocks and one open block per stream, and is collected by itself. A full block is sealed and
//! can become a victim. The victim of a die is no candidate while its pages are moved, and is erased afterwards. A lent
//! block takes no page.
//!
//! A stream has an open block on each *lane*. Normally a lane is a die. With many streams on many dies, most of the
//! spare area would be open blocks. So dies can be *pooled*: they share their erased blocks, and there are a few lanes,
//! or one for each unit of pages. A block is opened on a die where the stream has no open block, and the die with the
//! fewest erased blocks is collected first, so that all dies are written to.
//!
//! A block is erased in a [`CellMode`]. A block in SLC mode has fewer pages. From its opening to its erase, the missing
//! pages are subtracted from its die's room for valid pages.

mod check;
mod lent;
mod slc;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::media::CellMode;
use crate::region::valid_counts::{GROUP, ValidCounts};
use crate::save::{Queue, Table};
use crate::units::BlockId;

const NONE: u32 = u32::MAX;

/// A stream's open block on a die, or a die's victim.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Open {
    /// The block.
    pub block: u32,
    /// Its next page.
    pub page: u32,
    /// Number of data pages of the block. When `page` reaches it, a new block is needed.
    pub end: u32,
}

impl Open {
    const NONE: Self = Self { block: NONE, page: 0, end: 0 };

    /// Whether the block has no page left.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.page == self.end
    }
}

/// The open blocks of a lane with `N` streams.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Lane<const N: usize> {
    #[serde(with = "crate::save::tuple")]
    open: [Open; N],
}

/// A die, or the whole pool if the dies share one queue of blocks.
#[derive(Debug, Serialize, Deserialize)]
struct Die {
    /// Erased blocks, by the mode in which they were erased.
    #[serde(with = "crate::save::tuple")]
    free: [Queue; 2],
    /// The victim being collected, and the next page to look at.
    victim: Option<Open>,
    /// Whether the victim was a block in SLC mode without invalid pages.
    victim_leaves: bool,
    valid_pages: u32,
    /// Maximum number of valid pages.
    valid_limit: u32,
    /// Range of its blocks in the table of valid counts: the first entry, and one past the last.
    #[serde(with = "crate::save::fixed")]
    first: usize,
    #[serde(with = "crate::save::fixed")]
    end: usize,
}

impl Die {
    /// Its erased blocks.
    #[inline]
    fn erased(&self) -> u32 {
        (self.free[0].len() + self.free[1].len()) as u32
    }
}

/// Position of a block in the table of valid counts, and its die.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Position in the table.
    pub entry: u32,
    /// The die.
    pub die: u32,
}

crate::save::words!(Place { entry: u32, die: u32 });

/// The blocks of a region whose lanes have `N` streams each.
#[derive(Debug, Serialize, Deserialize)]
pub struct Blocks<const N: usize> {
    /// Data pages per block; they are the first pages of the block.
    #[serde(with = "crate::save::fixed")]
    data_pages: u32,
    /// Data pages per block in SLC mode; equal to `data_pages` if blocks have only one mode.
    #[serde(with = "crate::save::fixed")]
    slc_pages: u32,
    /// Valid counts, in the order of dies.
    counts: ValidCounts,
    /// Position of each block in `counts`, and its die.
    #[serde(with = "crate::save::fixed_list")]
    places: Table<Place>,
    #[serde(with = "crate::save::sized")]
    dies: Vec<Die>,
    #[serde(with = "crate::save::sized")]
    lanes: Vec<Lane<N>>,
    next_die: u32,
    /// Pages that the previous die still takes: the pages of a stripe go to one die.
    stripe_left: u32,
    /// By block: 1 from its opening in SLC mode to its erase. Empty if blocks have only one mode.
    slc: Table<u8>,
    /// Number of blocks in SLC mode, and its maximum.
    slc_blocks: u32,
    #[serde(with = "crate::save::fixed")]
    slc_blocks_max: u32,
}

impl<const N: usize> Blocks<N> {
    /// `blocks` erased blocks, assigned in turn to `dies` dies, with data in their first `data_pages` pages. `reserved`
    /// blocks of each die hold no valid page at rest; it is 0 for pooled dies.
    pub fn new((blocks, dies): (u32, u32), lanes: u32, data_pages: u32, reserved: u32) -> Self {
        let mut places = vec![Place { entry: 0, die: 0 }; blocks as usize];
        let mut end = 0usize;
        let dies = (0..dies).map(|die| {
            let free: Queue = (die..blocks).step_by(dies as usize).collect();
            let in_slc = Queue::with_capacity(0);
            // No group contains blocks of two dies.
            let first = end.next_multiple_of(GROUP);
            end = first;
            for block in free.iter() {
                places[block as usize] = Place { entry: end as u32, die };
                end += 1;
            }
            let valid_limit = (free.len() as u32).saturating_sub(reserved) * data_pages;
            Die { free: [free, in_slc], victim: None, victim_leaves: false, valid_pages: 0, valid_limit, first, end }
        });
        let dies = dies.collect();
        Self {
            data_pages,
            slc_pages: data_pages,
            counts: ValidCounts::new(end, data_pages),
            places: places.into(),
            dies,
            lanes: vec![Lane { open: [Open::NONE; N] }; lanes as usize],
            next_die: 0,
            stripe_left: 0,
            slc: Vec::new().into(),
            slc_blocks: 0,
            slc_blocks_max: 0,
        }
    }

    /// Data pages per block.
    #[inline(always)]
    pub fn data_pages(&self) -> u32 {
        self.data_pages
    }

    /// Number of entries in the table of valid counts.
    pub fn entries(&self) -> usize {
        self.dies.last().map_or(0, |die| die.end)
    }

    /// Number of dies with their own erased blocks; 1 if the dies are pooled.
    #[inline]
    pub fn dies(&self) -> u32 {
        self.dies.len() as u32
    }

    /// Number of lanes, that is, of open blocks per stream.
    #[inline]
    pub fn lanes(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// Valid pages of each block, and which blocks are sealed.
    pub fn counts(&self) -> &ValidCounts {
        &self.counts
    }

    /// Number of valid pages.
    pub fn valid(&self) -> u64 {
        self.dies.iter().map(|die| u64::from(die.valid_pages)).sum()
    }

    /// Invalid pages of full blocks, and pages in use: valid or invalid. For a log without lent blocks and blocks in SLC
    /// mode.
    pub fn garbage(&self) -> (u64, u64) {
        debug_assert!(self.slc_blocks == 0);
        let erased: u32 = self.dies.iter().map(Die::erased).sum();
        let (mut opened, mut pages, mut valid) = (0, 0, 0);
        for (_, open) in self.open_blocks() {
            opened += 1;
            pages += u64::from(open.page);
            valid += u64::from(self.valid_in(BlockId(open.block)));
        }
        let full_pages = u64::from(self.places.len() as u32 - erased - opened) * u64::from(self.data_pages);
        (full_pages + valid - self.valid(), full_pages + pages)
    }

    /// Number of valid pages that fit, without the lent blocks.
    pub fn room(&self) -> u64 {
        self.dies.iter().map(|die| u64::from(die.valid_limit)).sum()
    }

    /// The die of a block and its entry in the table of valid counts.
    #[inline]
    pub fn place(&self, block: BlockId) -> Place {
        if self.dies.len() == 1 { Place { entry: block.0, die: 0 } } else { self.places[block.index()] }
    }

    /// A block's entry in the table of valid counts.
    #[inline]
    pub fn entry(&self, block: BlockId) -> usize {
        self.places[block.index()].entry as usize
    }

    /// Prefetches a block's count into the processor's cache.
    #[inline]
    pub fn prefetch(&self, block: BlockId) {
        self.counts.prefetch(self.place(block).entry as usize);
    }

    /// The die that takes the next page: dies take turns, and dies full of valid data are skipped. There must be a die
    /// with room.
    #[inline(always)]
    pub fn next_die(&mut self) -> u32 {
        debug_assert!(self.valid() < self.room(), "the region is full of valid data");
        loop {
            let die = self.next_die;
            self.next_die = if die + 1 == self.dies() { 0 } else { die + 1 };
            if self.has_room(die) {
                return die;
            }
        }
    }

    /// As [`Self::next_die`], but each die takes `stripe_pages` pages before the next die.
    pub fn next_die_in_stripes(&mut self, stripe_pages: u32) -> u32 {
        if self.stripe_left > 0 {
            let die = if self.next_die == 0 { self.dies() } else { self.next_die } - 1;
            self.stripe_left -= 1;
            if self.has_room(die) {
                return die;
            }
        }
        self.stripe_left = stripe_pages - 1;
        self.next_die()
    }

    /// The lane that takes the next page of pooled dies: lanes take turns, with `stripe_pages` pages each.
    pub fn next_lane(&mut self, stripe_pages: u32) -> u32 {
        if self.stripe_left > 0 {
            self.stripe_left -= 1;
        } else {
            self.stripe_left = stripe_pages - 1;
            self.next_die = if self.next_die + 1 >= self.lanes() { 0 } else { self.next_die + 1 };
        }
        self.next_die
    }

    /// The first lane and stream of pooled dies whose open block has pages left.
    pub fn with_room(&self) -> Option<(u32, usize)> {
        let mut all = (0..N).rev().flat_map(|stream| (0..self.lanes()).map(move |lane| (lane, stream)));
        all.find(|&(lane, stream)| !self.needs_block(lane, stream))
    }

    /// Whether a die has room for another valid page.
    #[inline(always)]
    fn has_room(&self, die: u32) -> bool {
        let die = &self.dies[die as usize];
        die.valid_pages < die.valid_limit
    }

    /// Number of erased blocks of a die, without open blocks.
    #[inline]
    pub fn free(&self, die: u32) -> u32 {
        self.dies[die as usize].erased()
    }

    /// Number of erased blocks of all dies.
    #[inline]
    pub fn free_in_pool(&self) -> u32 {
        self.dies.iter().map(Die::erased).sum()
    }

    /// Whether a stream must open an erased block for its next page.
    #[inline]
    pub fn needs_block(&self, lane: u32, stream: usize) -> bool {
        self.lanes[lane as usize].open[stream].is_full()
    }

    /// The die on which a block is opened for a lane of pooled dies: among the dies with an erased block, the one with
    /// the fewest open blocks of the stream; among equals, the one with the fewest valid pages.
    pub fn die_to_open(&self, stream: usize) -> u32 {
        let is_open = |open: &Open, die: usize| !open.is_full() && self.places[open.block as usize].die as usize == die;
        let opened = |die: usize| self.lanes.iter().filter(|lane| is_open(&lane.open[stream], die)).count();
        let with_erased = (0..self.dies.len()).filter(|&die| self.dies[die].erased() > 0);
        match self.dies.len() {
            1 => 0,
            _ => with_erased.min_by_key(|&die| (opened(die), self.dies[die].valid_pages)).unwrap_or(0) as u32,
        }
    }

    /// The next block opened on a die is the first erased one that `is_preferred`, if there is one.
    pub fn bring_forward(&mut self, die: u32, is_preferred: impl Fn(u32) -> bool) {
        self.dies[die as usize].free[CellMode::Native as usize].bring_forward(is_preferred);
    }

    /// Opens a block for a stream that [needs](Self::needs_block) one: the block that was erased longest ago, which is
    /// a simple dynamic wear levelling. Blocks erased in `mode` come first. If there are none, another block must be
    /// erased again, and `mode` is returned as well.
    #[inline]
    pub fn open(&mut self, die: u32, lane: u32, stream: usize, mode: CellMode) -> (BlockId, Option<CellMode>) {
        let space = &mut self.dies[die as usize];
        let fitting = space.free[mode as usize].pop_front();
        let erased = fitting.or_else(|| space.free[1 - mode as usize].pop_front());
        let block = erased.unwrap_or_else(|| unreachable!("a log collects before it runs out of erased blocks"));
        let end = match mode {
            CellMode::Native => self.data_pages,
            CellMode::Slc => self.slc_pages,
        };
        self.lanes[lane as usize].open[stream] = Open { block, page: 0, end };
        if mode == CellMode::Slc {
            space.valid_limit -= self.data_pages - self.slc_pages;
            self.slc[block as usize] = 1;
            self.slc_blocks += 1;
        }
        (BlockId(block), fitting.is_none().then_some(mode))
    }

    /// The next page of a stream's open block: the block, and the page's position in the block.
    #[inline(always)]
    pub fn next_page(&self, lane: u32, stream: usize) -> (BlockId, u32) {
        let Open { block, page, .. } = self.lanes[lane as usize].open[stream];
        (BlockId(block), page)
    }

    /// Number of pages left in a stream's open block.
    #[inline]
    pub fn pages_left(&self, lane: u32, stream: usize) -> u32 {
        let Open { page, end, .. } = self.lanes[lane as usize].open[stream];
        end - page
    }

    /// Marks the next `pages` pages of a stream's open block as filled. Returns the block if it is now full and
    /// therefore sealed.
    #[inline(always)]
    pub fn fill(&mut self, lane: u32, stream: usize, pages: u32) -> Option<BlockId> {
        let open = &mut self.lanes[lane as usize].open[stream];
        open.page += pages;
        let (block, is_full) = (open.block, open.is_full());
        let entry = self.places[block as usize].entry as usize;
        self.counts.add(entry, pages as usize);
        is_full.then(|| self.seal(lane, stream, entry))
    }

    /// The next `pages` pages of a stream's open block, before those that [`Self::fill`] fills next, stay empty.
    #[inline(always)]
    pub fn skip(&mut self, lane: u32, stream: usize, pages: u32) {
        self.lanes[lane as usize].open[stream].page += pages;
    }

    fn seal(&mut self, lane: u32, stream: usize, entry: usize) -> BlockId {
        let open = &mut self.lanes[lane as usize].open[stream];
        self.counts.seal(entry);
        BlockId(std::mem::replace(&mut open.block, NONE))
    }

    /// Adds `pages` to the valid pages of a die.
    #[inline(always)]
    pub fn add_valid(&mut self, die: u32, pages: u32) {
        self.dies[die as usize].valid_pages += pages;
    }

    /// Valid pages of a block have moved to another block, possibly on another die.
    pub fn move_valid(&mut self, from: BlockId, to: BlockId, pages: u32) {
        let [from, to] = [from, to].map(|block| self.place(block).die);
        self.dies[from as usize].valid_pages -= pages;
        self.dies[to as usize].valid_pages += pages;
    }

    /// A page of a block has become invalid.
    #[inline(always)]
    pub fn invalidate(&mut self, place: Place) {
        self.dies[place.die as usize].valid_pages -= 1;
        self.counts.invalidate(place.entry as usize);
    }

    /// Valid pages of a block.
    pub fn valid_in(&self, block: BlockId) -> u32 {
        self.counts.valid_pages(self.entry(block))
    }

    /// The victim of a die and the next page to look at, while its pages are being moved.
    #[inline]
    pub fn victim(&self, die: u32) -> Option<Open> {
        self.dies[die as usize].victim
    }

    /// Whether the victim of a die was a block in SLC mode without invalid pages. Collecting it still gains room,
    /// because blocks in native mode have more pages.
    #[inline]
    pub fn victim_leaves(&self, die: u32) -> bool {
        self.dies[die as usize].victim_leaves
    }

    /// Makes the sealed block that `choose` returns the victim of a die: it leaves the candidates and its pages are
    /// moved from now on. `None` if no block has an invalid page.
    pub fn begin_collecting(
        &mut self,
        die: u32,
        choose: impl FnOnce(&mut ValidCounts, Range<usize>) -> Option<usize>,
    ) -> Option<BlockId> {
        debug_assert!(self.victim(die).is_none());
        let dies = self.dies.len();
        let space = &mut self.dies[die as usize];
        let entry = choose(&mut self.counts, space.first..space.end)?;
        self.counts.unseal(entry);
        let block = ((entry - space.first) * dies + die as usize) as u32;
        space.victim = Some(Open { block, page: 0, end: self.data_pages });
        let is_slc = self.slc.get(block as usize) == Some(&1);
        space.victim_leaves = is_slc && self.counts.valid_pages(entry) == self.slc_pages;
        Some(BlockId(block))
    }

    /// The die of an entry of the table of valid counts.
    pub fn die_of(&self, entry: usize) -> u32 {
        self.dies.partition_point(|die| die.end <= entry) as u32
    }

    /// Number of dies that have a victim.
    #[inline]
    pub fn victims(&self) -> u32 {
        self.dies.iter().map(|die| u32::from(die.victim.is_some())).sum()
    }

    /// The victim with the fewest valid pages left among all dies, and its die.
    pub fn emptiest_victim(&self) -> Option<(u32, BlockId)> {
        let victims = (0..).zip(&self.dies).filter_map(|(die, space)| Some((die, BlockId(space.victim?.block))));
        victims.min_by_key(|&(_, block)| self.valid_in(block))
    }

    /// The die with the fewest erased blocks. Equal dies are ordered by number. With `last`, the die that follows `last`
    /// in this order.
    pub fn fewest_erased(&self, last: Option<u32>) -> Option<u32> {
        let key = |die: u32| (self.free(die), die);
        (0..self.dies()).filter(|&die| last.is_none_or(|last| key(die) > key(last))).min_by_key(|&die| key(die))
    }

    /// `pages` pages of a die's victim have moved away; the remaining ones begin at page `page`.
    #[inline]
    pub fn moved(&mut self, die: u32, pages: u32, page: u32) {
        if let Some(victim) = &mut self.dies[die as usize].victim {
            victim.page = page;
            self.counts.subtract(self.places[victim.block as usize].entry as usize, pages as usize);
        }
    }

    /// The emptied victim of a die is erased in `mode`.
    pub fn end_collecting(&mut self, die: u32, mode: CellMode) {
        let lacking = self.lacking();
        let space = &mut self.dies[die as usize];
        let Some(victim) = space.victim.take() else { return };
        space.free[mode as usize].push_back(victim.block);
        if let Some(slc) = self.slc.get(victim.block as usize).copied() {
            self.slc[victim.block as usize] = 0;
            self.slc_blocks -= u32::from(slc);
            space.valid_limit += lacking * u32::from(slc);
        }
    }

    /// The open blocks, each with its lane.
    pub fn open_blocks(&self) -> impl Iterator<Item = (u32, &Open)> {
        let lanes =
            (0..).zip(&self.lanes).flat_map(|(lane, streams)| streams.open.iter().map(move |open| (lane, open)));
        lanes.filter(|(_, open)| !open.is_full())
    }
}
