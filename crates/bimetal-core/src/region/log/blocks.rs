//! The blocks of a log: which are erased, open, sealed or lent on each die, and how many of their pages are valid.
//!
//! Each die has its erased blocks and one open block per stream, and is collected by itself. A block that is full is sealed: it can be a
//! victim. The victim of a die leaves the candidates while its pages are moved, and comes back erased. A lent block takes no page.
//!
//! A stream has an open block on each *lane*: a lane is a die. Many streams on many dies would have most of the spare area in open blocks.
//! So dies can be *pooled*: their erased blocks are common, and there are a few lanes, or one for each unit of pages. Blocks are opened
//! on dies where the stream has none open, and collected first on the die that has fewest erased ones, so that all dies are written to.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::region::valid_counts::{GROUP, ValidCounts};
use crate::save::{Queue, Table};
use crate::units::BlockId;

const NONE: u32 = u32::MAX;

/// The block that a stream fills on a die, or the one that is collected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Open {
    /// The block.
    pub block: u32,
    /// Its next page; the number of data pages where a new block is needed.
    pub page: u32,
}

/// The open blocks of a lane with `N` streams.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Lane<const N: usize> {
    #[serde(with = "crate::save::tuple")]
    open: [Open; N],
}

/// A die, or all of them where their blocks are one queue.
#[derive(Debug, Serialize, Deserialize)]
struct Die {
    free: Queue,
    /// The victim that is being collected, and the page to go on from.
    victim: Option<Open>,
    valid_pages: u32,
    /// Valid pages may not exceed this.
    valid_limit: u32,
    /// First of its blocks in the table of valid counts, and one past the last.
    #[serde(with = "crate::save::fixed")]
    first: usize,
    #[serde(with = "crate::save::fixed")]
    end: usize,
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
    /// Pages of a block that take data, its first.
    #[serde(with = "crate::save::fixed")]
    data_pages: u32,
    /// In the order of dies.
    counts: ValidCounts,
    /// Position of each block in `counts`, and its die.
    #[serde(with = "crate::save::fixed_list")]
    places: Table<Place>,
    #[serde(with = "crate::save::sized")]
    dies: Vec<Die>,
    #[serde(with = "crate::save::sized")]
    lanes: Vec<Lane<N>>,
    next_die: u32,
    /// Pages that the die before it still takes: those of a stripe go to one die.
    stripe_left: u32,
}

impl<const N: usize> Blocks<N> {
    /// `blocks` erased blocks of `dies` dies in turn, with data in their first `data_pages` pages. `reserved` blocks of each die hold no
    /// valid page at rest, none of dies that are pooled.
    ///
    /// # Errors
    /// Blocks with more pages than are counted.
    pub fn new((blocks, dies): (u32, u32), lanes: u32, data_pages: u32, reserved: u32) -> Result<Self, String> {
        let mut places = vec![Place { entry: 0, die: 0 }; blocks as usize];
        let mut end = 0usize;
        let dies = (0..dies).map(|die| {
            let free: Queue = (die..blocks).step_by(dies as usize).collect();
            // No group holds blocks of two dies.
            let first = end.next_multiple_of(GROUP);
            end = first;
            for block in free.iter() {
                places[block as usize] = Place { entry: end as u32, die };
                end += 1;
            }
            let valid_limit = (free.len() as u32).saturating_sub(reserved) * data_pages;
            Die { free, victim: None, valid_pages: 0, valid_limit, first, end }
        });
        let dies = dies.collect();
        let lanes = vec![Lane { open: [Open { block: NONE, page: data_pages }; N] }; lanes as usize];
        let counts = ValidCounts::new(end, data_pages)?;
        Ok(Self { data_pages, counts, places: places.into(), dies, lanes, next_die: 0, stripe_left: 0 })
    }

    /// Pages of a block that take data.
    #[inline(always)]
    pub fn data_pages(&self) -> u32 {
        self.data_pages
    }

    /// Entries of the table of valid counts.
    pub fn entries(&self) -> usize {
        self.dies.last().map_or(0, |die| die.end)
    }

    /// Dies with erased blocks of their own.
    #[inline]
    pub fn dies(&self) -> u32 {
        self.dies.len() as u32
    }

    /// Lanes: open blocks of a stream.
    #[inline]
    pub fn lanes(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// Valid pages of each block, and which is sealed.
    pub fn counts(&self) -> &ValidCounts {
        &self.counts
    }

    /// Pages that are valid.
    pub fn valid(&self) -> u64 {
        self.dies.iter().map(|die| u64::from(die.valid_pages)).sum()
    }

    /// Valid pages that fit, less what is lent.
    pub fn room(&self) -> u64 {
        self.dies.iter().map(|die| u64::from(die.valid_limit)).sum()
    }

    /// Where the counts of a block are kept.
    #[inline]
    pub fn place(&self, block: BlockId) -> Place {
        if self.dies.len() == 1 { Place { entry: block.0, die: 0 } } else { self.places[block.index()] }
    }

    /// Position of a block in the table of valid counts.
    #[inline]
    pub fn entry(&self, block: BlockId) -> usize {
        self.places[block.index()].entry as usize
    }

    /// Brings a block's count into the processor's cache.
    #[inline]
    pub fn prefetch(&self, block: BlockId) {
        self.counts.prefetch(self.place(block).entry as usize);
    }

    /// The die that takes the next page: in turn, past those that are full of valid data. There must be one.
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

    /// The same with `stripe_pages` pages on each die before the next takes its turn.
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

    /// The lane that takes the next page of pooled dies: in turn, with `stripe_pages` pages on each.
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

    /// Erased blocks of a die, open ones not counted.
    #[inline]
    pub fn free(&self, die: u32) -> u32 {
        self.dies[die as usize].free.len() as u32
    }

    /// Erased blocks of all dies.
    #[inline]
    pub fn free_in_pool(&self) -> u32 {
        self.dies.iter().map(|die| die.free.len() as u32).sum()
    }

    /// Whether the next page of a stream takes an erased block.
    #[inline]
    pub fn needs_block(&self, lane: u32, stream: usize) -> bool {
        self.lanes[lane as usize].open[stream].page == self.data_pages
    }

    /// Gives a stream that [needs](Self::needs_block) one the block that has been erased for longest: a simple dynamic wear
    /// levelling.
    #[inline]
    pub fn open(&mut self, die: u32, stream: usize) -> BlockId {
        self.open_from(die as usize, die, stream)
    }

    /// The same for a lane of pooled dies. The block is of the die, among those that have an erased one, with the fewest open blocks of
    /// the stream, and among these with the fewest valid pages.
    pub fn open_in_pool(&mut self, lane: u32, stream: usize) -> BlockId {
        let is_open = |open: &Open, die: usize| {
            open.page != self.data_pages && self.places[open.block as usize].die as usize == die
        };
        let opened = |die: usize| self.lanes.iter().filter(|lane| is_open(&lane.open[stream], die)).count();
        let with_erased = (0..self.dies.len()).filter(|&die| !self.dies[die].free.is_empty());
        let die = match self.dies.len() {
            1 => 0,
            _ => with_erased.min_by_key(|&die| (opened(die), self.dies[die].valid_pages)).unwrap_or(0),
        };
        self.open_from(die, lane, stream)
    }

    #[inline]
    fn open_from(&mut self, die: usize, lane: u32, stream: usize) -> BlockId {
        let erased = self.dies[die].free.pop_front();
        let block = erased.unwrap_or_else(|| unreachable!("a log collects before it runs out of erased blocks"));
        self.lanes[lane as usize].open[stream] = Open { block, page: 0 };
        BlockId(block)
    }

    /// The next page of a stream's open block: the block, and the page's position in it.
    #[inline(always)]
    pub fn next_page(&self, lane: u32, stream: usize) -> (BlockId, u32) {
        let Open { block, page } = self.lanes[lane as usize].open[stream];
        (BlockId(block), page)
    }

    /// The next `pages` pages of a stream's open block are filled. Returns the block if it is full, and thus sealed.
    #[inline(always)]
    pub fn fill(&mut self, lane: u32, stream: usize, pages: u32) -> Option<BlockId> {
        let open = &mut self.lanes[lane as usize].open[stream];
        open.page += pages;
        let (block, is_full) = (open.block, open.page == self.data_pages);
        let entry = self.places[block as usize].entry as usize;
        self.counts.add(entry, pages as usize);
        is_full.then(|| self.seal(lane, stream, entry))
    }

    fn seal(&mut self, lane: u32, stream: usize, entry: usize) -> BlockId {
        let open = &mut self.lanes[lane as usize].open[stream];
        self.counts.seal(entry);
        BlockId(std::mem::replace(&mut open.block, NONE))
    }

    /// Adds to the valid pages of a die.
    #[inline(always)]
    pub fn add_valid(&mut self, die: u32, pages: u32) {
        self.dies[die as usize].valid_pages += pages;
    }

    /// Valid pages of a block have moved to another one, maybe of another die.
    pub fn move_valid(&mut self, from: BlockId, to: BlockId, pages: u32) {
        let [from, to] = [from, to].map(|block| self.place(block).die);
        self.dies[from as usize].valid_pages -= pages;
        self.dies[to as usize].valid_pages += pages;
    }

    /// A page of a block is valid no longer.
    #[inline(always)]
    pub fn invalidate(&mut self, place: Place) {
        self.dies[place.die as usize].valid_pages -= 1;
        self.counts.invalidate(place.entry as usize);
    }

    /// Valid pages of a block.
    pub fn valid_in(&self, block: BlockId) -> u32 {
        self.counts.valid_pages(self.entry(block))
    }

    /// The victim of a die and the page to go on from, while its pages are being moved.
    #[inline]
    pub fn victim(&self, die: u32) -> Option<Open> {
        self.dies[die as usize].victim
    }

    /// Takes the sealed block of a die that `choose` says out of the candidates: its pages are moved from now on. None if no block has
    /// an invalid page.
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
        space.victim = Some(Open { block, page: 0 });
        Some(BlockId(block))
    }

    /// The die of an entry of the table of valid counts.
    pub fn die_of(&self, entry: usize) -> u32 {
        self.dies.partition_point(|die| die.end <= entry) as u32
    }

    /// Dies that have a victim.
    #[inline]
    pub fn victims(&self) -> u32 {
        self.dies.iter().map(|die| u32::from(die.victim.is_some())).sum()
    }

    /// The victim of all dies that has the fewest valid pages left, and its die.
    pub fn emptiest_victim(&self) -> Option<(u32, BlockId)> {
        let victims = (0..).zip(&self.dies).filter_map(|(die, space)| Some((die, BlockId(space.victim?.block))));
        victims.min_by_key(|&(_, block)| self.valid_in(block))
    }

    /// The die without a victim with the fewest erased blocks, the first of equals, that comes after `last` in this order.
    pub fn fewest_erased(&self, last: Option<u32>) -> Option<u32> {
        let key = |die: u32| (self.free(die), die);
        let rest = (0..self.dies()).filter(|&die| self.victim(die).is_none());
        let rest = rest.filter(|&die| last.is_none_or(|last| key(die) > key(last)));
        rest.min_by_key(|&die| key(die))
    }

    /// `pages` pages of a die's victim have moved away; the others begin with page `page`.
    #[inline]
    pub fn moved(&mut self, die: u32, pages: u32, page: u32) {
        if let Some(victim) = &mut self.dies[die as usize].victim {
            victim.page = page;
            self.counts.subtract(self.places[victim.block as usize].entry as usize, pages as usize);
        }
    }

    /// The emptied victim of a die is erased.
    pub fn end_collecting(&mut self, die: u32) {
        if let Some(victim) = self.dies[die as usize].victim.take() {
            self.dies[die as usize].free.push_back(victim.block);
        }
    }

    /// Whether a die's valid pages would fit into its blocks if it lent one more of them.
    #[inline]
    pub fn can_lend(&self, die: u32) -> bool {
        let die = &self.dies[die as usize];
        die.valid_pages + self.data_pages <= die.valid_limit
    }

    /// Lends an erased block of a die that can spare it: it takes no page until it is given back.
    pub fn lend(&mut self, die: u32) -> Option<BlockId> {
        debug_assert!(self.can_lend(die));
        let space = &mut self.dies[die as usize];
        let block = space.free.pop_front()?;
        space.valid_limit -= self.data_pages;
        Some(BlockId(block))
    }

    /// A block that was lent comes back, erased.
    pub fn give_back(&mut self, block: BlockId) {
        let die = &mut self.dies[self.places[block.index()].die as usize];
        die.valid_limit += self.data_pages;
        die.free.push_back(block.0);
    }

    /// Blocks that are lent: neither erased nor open nor sealed.
    pub fn lent(&self) -> impl Iterator<Item = BlockId> {
        let mut is_ours: Vec<bool> =
            self.places.iter().map(|place| self.counts.is_sealed(place.entry as usize)).collect();
        let open = self.open_blocks().map(|(_, open)| open.block);
        let erased = self.dies.iter().flat_map(|die| die.free.iter().chain(die.victim.map(|victim| victim.block)));
        for block in open.chain(erased) {
            if let Some(is_ours) = is_ours.get_mut(block as usize) {
                *is_ours = true;
            }
        }
        (0..).zip(is_ours).filter(|&(_, is_ours)| !is_ours).map(|(block, _)| BlockId(block))
    }

    /// Lanes and their open blocks.
    pub fn open_blocks(&self) -> impl Iterator<Item = (u32, &Open)> {
        let lanes =
            (0..).zip(&self.lanes).flat_map(|(lane, streams)| streams.open.iter().map(move |open| (lane, open)));
        lanes.filter(|(_, open)| open.page != self.data_pages)
    }

    /// Checks that counts agree with `valid`, the valid pages of each block, and that each block is erased, open, sealed, collected or
    /// lent. `reserved` blocks of each die hold no valid page at rest; none says that the dies are pooled. `is_written_beyond` tells
    /// whether a block has a valid page from a page on.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(
        &self,
        valid: &[u32],
        reserved: Option<u32>,
        is_written_beyond: impl Fn(BlockId, u32) -> bool,
    ) -> Result<(), String> {
        for (block, &counted) in valid.iter().enumerate() {
            let kept = self.valid_in(BlockId(block as u32));
            if counted != kept {
                return Err(format!("block {block} has {counted} valid pages and counts {kept}"));
            }
        }
        self.counts.check()?;
        self.check_unsealed(reserved.is_none(), is_written_beyond)?;
        let lent: Vec<BlockId> = self.lent().collect();
        for (die, space) in self.dies.iter().enumerate() {
            let counted: u32 = valid.iter().skip(die).step_by(self.dies.len()).sum();
            if counted != space.valid_pages || counted > space.valid_limit {
                return Err(format!("die {die} has {counted} valid pages and counts {}", space.valid_pages));
            }
            let lent = lent.iter().filter(|&&block| self.places[block.index()].die as usize == die);
            let (lent, held) = lent.fold((0, 0), |(lent, held), block| (lent + 1, held + valid[block.index()]));
            let most = ((space.end - space.first) as u32).saturating_sub(reserved.unwrap_or(0)) * self.data_pages;
            if held > 0 || lent * self.data_pages + space.valid_limit != most {
                return Err(format!("{lent} blocks of die {die} are lent, with {held} valid pages, or not as many"));
            }
            if reserved.is_some() && space.free.is_empty() && space.victim.is_none() {
                return Err(format!("die {die} has no erased block"));
            }
        }
        if reserved.is_none() && self.free_in_pool() == 0 && self.victims() == 0 {
            return Err("there is no erased block".into());
        }
        match self.lanes.get(self.next_die as usize) {
            Some(_) => Ok(()),
            None => Err(format!("lane {} is next of {}", self.next_die, self.lanes.len())),
        }
    }

    /// Checks that blocks that are to be written, and victims, are not sealed, and that each is in one place, on its die unless the dies
    /// are pooled.
    fn check_unsealed(&self, is_pooled: bool, is_written_beyond: impl Fn(BlockId, u32) -> bool) -> Result<(), String> {
        let mut is_used = vec![false; self.entries()];
        let mut take = |block: u32, die: Option<u32>| {
            let place = self.places.get(block as usize).filter(|place| die.is_none_or(|die| place.die == die));
            let entry = place.map(|place| place.entry as usize).filter(|&entry| !self.counts.is_sealed(entry));
            entry.is_some_and(|entry| !std::mem::replace(&mut is_used[entry], true))
        };
        for (die, space) in (0..).zip(&self.dies) {
            if let Some(Open { block, page }) = space.victim
                && (!take(block, Some(die)) || page > self.data_pages)
            {
                return Err(format!("block {block} of die {die} cannot be the one that is collected"));
            }
        }
        let open = self.open_blocks().map(|(lane, open)| (*open, (!is_pooled).then_some(lane)));
        let erased = (0..)
            .zip(&self.dies)
            .flat_map(|(die, space)| space.free.iter().map(move |block| (Open { block, page: 0 }, Some(die))));
        for (Open { block, page }, die) in open.chain(erased) {
            if !take(block, die) || page > self.data_pages {
                return Err(format!("block {block} is not a block of its die to be written, or twice"));
            }
            if is_written_beyond(BlockId(block), page) {
                return Err(format!("block {block} has a valid page that is not yet written"));
            }
        }
        Ok(())
    }
}
