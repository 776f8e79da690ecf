//! A page-mapped region: any logical page on any physical page.
//!
//! A [`PageTable`] says where pages are, [`ValidCounts`] how many of each block are valid. Each die has its erased blocks
//! and one open block per stream, and is collected by itself: its open blocks are filled page by page, full ones are
//! sealed, and the victim of garbage collection is the sealed block with the fewest valid pages (greedy). A die never
//! holds more valid pages than all its blocks but [`RESERVED_BLOCKS`], so that a victim always has an invalid page and
//! collection always makes progress.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::page_table::{PageTable, Run};
use super::valid_counts::{GROUP, ValidCounts};
use crate::units::{BlockId, Geometry, Ppa};

/// Blocks of each die that can hold no valid page at rest: the open block of each stream and one erased block.
pub const RESERVED_BLOCKS: u32 = 3;

const NONE: u32 = u32::MAX;

/// What is written apart from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stream {
    /// Data that the host writes.
    Host = 0,
    /// Data that garbage collection found still valid: colder.
    Gc = 1,
}

/// The block that a stream fills on a die.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Open {
    block: u32,
    /// Next page; the number of data pages where a new block is needed.
    page: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Die {
    free: VecDeque<u32>,
    open: [Open; 2],
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

/// The region's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageMap {
    table: PageTable,
    /// Pages of a block that take data, its first.
    #[serde(with = "crate::save::fixed")]
    data_pages: u32,
    /// In the order of dies.
    counts: ValidCounts,
    /// Position of each block in `counts`, and its die.
    #[serde(with = "crate::save::fixed")]
    places: Vec<Place>,
    #[serde(with = "crate::save::sized")]
    dies: Vec<Die>,
    next_die: u32,
    /// Pages that the die before it still takes: those of a stripe go to one die.
    stripe_left: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Place {
    count: u32,
    die: u32,
}

impl PageMap {
    /// An erased region for `logical_pages` pages.
    ///
    /// # Errors
    /// Too little spare area for garbage collection to make progress, and how much it takes.
    pub fn new(geometry: Geometry, logical_pages: u64) -> Result<Self, String> {
        Self::with(geometry, logical_pages, logical_pages, geometry.pages_per_block)
    }

    /// An erased region for an address space of `logical_pages` pages of which at most `valid_pages` lie in it at a time:
    /// its user sees to that.
    ///
    /// # Errors
    /// Too little spare area for garbage collection to make progress, and how much it takes.
    pub fn sparse(geometry: Geometry, logical_pages: u64, valid_pages: u64) -> Result<Self, String> {
        Self::with(geometry, logical_pages, valid_pages, geometry.pages_per_block)
    }

    /// An erased region with data in the first `data_pages` pages of each block only: what the others are for is its
    /// user's.
    ///
    /// # Errors
    /// Too little spare area for garbage collection to make progress, and how much it takes.
    pub fn with_data_pages(geometry: Geometry, logical_pages: u64, data_pages: u32) -> Result<Self, String> {
        Self::with(geometry, logical_pages, logical_pages, data_pages)
    }

    fn with(geometry: Geometry, logical_pages: u64, valid_pages: u64, data_pages: u32) -> Result<Self, String> {
        if logical_pages >= u64::from(NONE) {
            return Err(format!("{logical_pages} logical pages are more than 2^32; lower the capacity"));
        }
        let pages = data_pages;
        let mut places = vec![Place { count: 0, die: 0 }; geometry.blocks as usize];
        let mut end = 0usize;
        let dies: Vec<Die> = (0..geometry.dies)
            .map(|die| {
                let free: VecDeque<u32> = (die..geometry.blocks).step_by(geometry.dies as usize).collect();
                // No group holds blocks of two dies.
                let first = end.next_multiple_of(GROUP);
                end = first;
                for &block in &free {
                    places[block as usize] = Place { count: end as u32, die };
                    end += 1;
                }
                let valid_limit = (free.len() as u32).saturating_sub(RESERVED_BLOCKS) * pages;
                let open = [Open { block: NONE, page: pages }; 2];
                Die { free, open, victim: None, valid_pages: 0, valid_limit, first, end }
            })
            .collect();
        let limit: u64 = dies.iter().map(|die| u64::from(die.valid_limit)).sum();
        if valid_pages > limit {
            let needed = valid_pages.div_ceil(u64::from(pages)) + u64::from(RESERVED_BLOCKS * geometry.dies);
            return Err(format!(
                "{} blocks leave too little spare area: {valid_pages} pages of {} bytes on {} dies need about \
                 {needed} blocks ({RESERVED_BLOCKS} per die stay free of data); enlarge the region or its spare area",
                geometry.blocks, geometry.page_bytes, geometry.dies
            ));
        }
        Ok(Self {
            table: PageTable::new(geometry, logical_pages),
            data_pages,
            counts: ValidCounts::new(end, pages)?,
            places,
            dies,
            next_die: 0,
            stripe_left: 0,
        })
    }

    /// Blocks and pages.
    #[inline(always)]
    pub fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    /// Pages of a block that take data.
    #[inline(always)]
    pub fn data_pages(&self) -> u32 {
        self.data_pages
    }

    /// Number of logical pages.
    pub fn logical_pages(&self) -> u32 {
        self.table.logical_pages()
    }

    /// Where a logical page is, if anywhere.
    #[inline(always)]
    pub fn lookup(&self, logical: u32) -> Option<Ppa> {
        self.table.lookup(logical)
    }

    /// The place outside of the region that [`Self::put_elsewhere`] gave a logical page.
    #[inline(always)]
    pub fn elsewhere(&self, logical: u32) -> Option<u32> {
        self.table.elsewhere(logical)
    }

    /// How many places outside of the region can be told from its pages.
    pub fn places_elsewhere(&self) -> u32 {
        self.table.places_elsewhere()
    }

    /// Forgets the copy of a logical page, which is at this place outside of the region until it is invalidated or written.
    #[inline(always)]
    pub fn put_elsewhere(&mut self, logical: u32, place: u32) {
        self.invalidate(logical);
        self.table.put_elsewhere(logical, place);
    }

    /// Brings a logical page's map entry into the processor's cache.
    #[inline]
    pub fn prefetch_entry(&self, logical: u32) {
        self.table.prefetch_map(logical);
    }

    /// Brings what a logical page's map entry points to into the processor's cache.
    #[inline]
    pub fn prefetch_page(&self, logical: u32) {
        if let Some(ppa) = self.table.lookup(logical) {
            self.table.prefetch_valid(ppa);
            self.counts.prefetch(self.place_of(ppa).count as usize);
        }
    }

    /// Pages that hold a logical page.
    pub fn occupied(&self) -> u64 {
        self.dies.iter().map(|die| u64::from(die.valid_pages)).sum()
    }

    /// Forgets the copy of a logical page; what it occupied can be collected.
    #[inline(always)]
    pub fn invalidate(&mut self, logical: u32) {
        if let Some(ppa) = self.table.clear(logical) {
            let Place { count, die } = self.place_of(ppa);
            self.dies[die as usize].valid_pages -= 1;
            self.counts.invalidate(count as usize);
        }
    }

    /// The die that takes the next host page: in turn, past those that are full of valid data. There must be one.
    #[inline(always)]
    pub fn next_die(&mut self) -> u32 {
        debug_assert!(self.occupied() < self.room(), "the region is full of valid data");
        loop {
            let die = self.next_die;
            self.next_die = if die + 1 == self.geometry().dies { 0 } else { die + 1 };
            if self.has_room(die) {
                return die;
            }
        }
    }

    /// The same with a stripe of pages on each die before the next takes its turn.
    pub fn next_die_in_stripes(&mut self) -> u32 {
        if self.stripe_left > 0 {
            let die = if self.next_die == 0 { self.geometry().dies } else { self.next_die } - 1;
            self.stripe_left -= 1;
            if self.has_room(die) {
                return die;
            }
        }
        self.stripe_left = self.geometry().stripe_pages - 1;
        self.next_die()
    }

    /// Whether a die has room for another valid page.
    #[inline(always)]
    fn has_room(&self, die: u32) -> bool {
        let space = &self.dies[die as usize];
        space.valid_pages < space.valid_limit
    }

    /// Erased blocks of a die, open ones not counted.
    #[inline]
    pub fn free_blocks(&self, die: u32) -> u32 {
        self.dies[die as usize].free.len() as u32
    }

    /// Whether the next page of a stream takes an erased block.
    #[inline]
    pub fn needs_block(&self, die: u32, stream: Stream) -> bool {
        self.dies[die as usize].open[stream as usize].page == self.data_pages
    }

    /// Maps an unmapped logical page onto the next page of a stream's open block. Returns that page, and whether the block is full
    /// then.
    #[inline(always)]
    pub fn place(&mut self, logical: u32, die: u32, stream: Stream) -> (Ppa, bool) {
        let pages = self.data_pages;
        let space = &mut self.dies[die as usize];
        let open = &mut space.open[stream as usize];
        if open.page == pages {
            *open = Open { block: pop_erased(&mut space.free), page: 0 };
        }
        let block = open.block;
        let ppa = self.table.geometry().ppa(BlockId(block), open.page);
        open.page += 1;
        let sealed = open.page == pages;
        space.valid_pages += 1;
        self.table.assign(logical, ppa);
        self.counts.add(self.places[block as usize].count as usize, 1);
        if sealed {
            self.seal(die, stream);
        }
        (ppa, sealed)
    }

    /// The sealed block of a die with the fewest valid pages, the first of equals; none if all are full of valid pages.
    pub fn victim(&mut self, die: u32) -> Option<BlockId> {
        let Die { first, end, .. } = self.dies[die as usize];
        let count = self.counts.fewest(first..end)?;
        Some(BlockId((count - first) as u32 * self.geometry().dies + die))
    }

    /// Valid pages of a block.
    pub fn valid_pages(&self, block: BlockId) -> u32 {
        self.counts.valid_pages(self.places[block.index()].count as usize)
    }

    /// Moves valid pages of a die's victim to consecutive pages of the die's open `Gc` block, as many as a run and that block
    /// hold. Puts their old places into `run`; returns the first new place, or nothing if no valid page is left.
    #[inline]
    pub fn relocate(&mut self, die: u32, run: &mut Run) -> Option<Ppa> {
        let Open { block, page } = self.dies[die as usize].victim?;
        let pages = self.table.valid_word(BlockId(block), page)?;
        let to = self.open_gc(die);
        let room = self.data_pages - self.geometry().page_of(to);
        self.table.move_run(pages, to, room, run);
        self.moved(BlockId(block), run.pages().len(), die);
        let last = run.pages()[run.pages().len() - 1];
        self.dies[die as usize].victim = Some(Open { block, page: self.geometry().page_of(last) + 1 });
        Some(to)
    }

    /// The next page of a die's open `Gc` block.
    fn open_gc(&mut self, die: u32) -> Ppa {
        let space = &mut self.dies[die as usize];
        let open = &mut space.open[Stream::Gc as usize];
        if open.page == self.data_pages {
            *open = Open { block: pop_erased(&mut space.free), page: 0 };
        }
        self.table.geometry().ppa(BlockId(open.block), open.page)
    }

    /// Accounts for `pages` pages moved from a victim to the open `Gc` block.
    #[inline]
    fn moved(&mut self, victim: BlockId, pages: usize, die: u32) {
        self.counts.subtract(self.places[victim.index()].count as usize, pages);
        let open = &mut self.dies[die as usize].open[Stream::Gc as usize];
        open.page += pages as u32;
        let sealed = open.page == self.data_pages;
        self.counts.add(self.places[open.block as usize].count as usize, pages);
        if sealed {
            self.seal(die, Stream::Gc);
        }
    }

    /// Takes the [`victim`](Self::victim) of a die out of the candidates: its pages are moved from now on.
    pub fn begin_collecting(&mut self, die: u32) -> Option<BlockId> {
        debug_assert!(self.collecting(die).is_none());
        let block = self.victim(die)?;
        self.counts.unseal(self.places[block.index()].count as usize);
        self.dies[die as usize].victim = Some(Open { block: block.0, page: 0 });
        Some(block)
    }

    /// The victim of a die whose pages are being moved.
    #[inline]
    pub fn collecting(&self, die: u32) -> Option<BlockId> {
        self.dies[die as usize].victim.map(|victim| BlockId(victim.block))
    }

    /// The emptied victim of a die is erased and free again.
    pub fn end_collecting(&mut self, die: u32) {
        let space = &mut self.dies[die as usize];
        if let Some(victim) = space.victim.take() {
            space.free.push_back(victim.block);
        }
    }

    /// Whether a die's valid pages would fit into its blocks if it lent one more of them.
    #[inline]
    pub fn can_lend(&self, die: u32) -> bool {
        let space = &self.dies[die as usize];
        space.valid_pages + self.data_pages <= space.valid_limit
    }

    /// Valid pages that fit into the region, less what is lent.
    pub fn room(&self) -> u64 {
        self.dies.iter().map(|die| u64::from(die.valid_limit)).sum()
    }

    /// Lends an erased block of a die that can spare it: it takes no page until it is given back.
    pub fn lend(&mut self, die: u32) -> BlockId {
        debug_assert!(self.can_lend(die));
        let pages = self.data_pages;
        let space = &mut self.dies[die as usize];
        space.valid_limit -= pages;
        BlockId(pop_erased(&mut space.free))
    }

    /// A block that was lent comes back, erased.
    pub fn give_back(&mut self, block: BlockId) {
        let (die, pages) = (self.geometry().die_of(block), self.data_pages);
        let space = &mut self.dies[die as usize];
        space.valid_limit += pages;
        space.free.push_back(block.0);
    }

    /// A full open block becomes a candidate for collection.
    fn seal(&mut self, die: u32, stream: Stream) {
        let open = &mut self.dies[die as usize].open[stream as usize];
        let block = std::mem::replace(&mut open.block, NONE);
        self.counts.seal(self.places[block as usize].count as usize);
    }

    /// Where the counts of a page's block are kept.
    #[inline]
    fn place_of(&self, ppa: Ppa) -> Place {
        let block = self.geometry().block_of(ppa);
        if self.geometry().dies == 1 { Place { count: block.0, die: 0 } } else { self.places[block.index()] }
    }

    /// Checks that map, owners, validity and counts agree.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<(), String> {
        let valid = self.table.check()?;
        for (block, &counted) in valid.iter().enumerate() {
            let kept = self.valid_pages(BlockId(block as u32));
            if counted != kept {
                return Err(format!("block {block} has {counted} valid pages and counts {kept}"));
            }
        }
        self.counts.check()?;
        let lent: Vec<BlockId> = self.lent().collect();
        for (die, space) in self.dies.iter().enumerate() {
            let counted: u32 = valid.iter().skip(die).step_by(self.geometry().dies as usize).sum();
            if counted != space.valid_pages || counted > space.valid_limit {
                return Err(format!("die {die} has {counted} valid pages and counts {}", space.valid_pages));
            }
            self.check_die(die as u32, &valid, &lent)?;
        }
        match self.dies.get(self.next_die as usize) {
            Some(_) => Ok(()),
            None => Err(format!("die {} is next of {}", self.next_die, self.dies.len())),
        }
    }

    /// Checks that each block of a die is erased, open, sealed or lent, and has valid pages only where it is written.
    fn check_die(&self, die: u32, valid: &[u32], lent: &[BlockId]) -> Result<(), String> {
        let space = &self.dies[die as usize];
        let open = space.open.iter().filter(|open| open.page != self.data_pages);
        let used =
            || open.clone().map(|open| (open.block, open.page)).chain(space.free.iter().map(|&block| (block, 0)));
        let mut is_used = vec![false; space.end - space.first];
        if let Some(Open { block, page }) = space.victim {
            let place = self.places.get(block as usize).filter(|place| place.die == die && page <= self.data_pages);
            match place.map(|place| place.count as usize).filter(|&place| !self.counts.is_sealed(place)) {
                Some(place) => is_used[place - space.first] = true,
                None => return Err(format!("block {block} of die {die} cannot be the one that is collected")),
            }
        }
        for (block, pages) in used() {
            let place = self.places.get(block as usize).filter(|place| place.die == die && pages < self.data_pages);
            let place = place.map(|place| place.count as usize).filter(|&place| !self.counts.is_sealed(place));
            if place.is_none_or(|place| std::mem::replace(&mut is_used[place - space.first], true)) {
                return Err(format!("block {block} is not a block of die {die} to be written, or twice"));
            }
            if self.table.valid_word(BlockId(block), pages).is_some() {
                return Err(format!("block {block} has a valid page that is not yet written"));
            }
        }
        let lent = lent.iter().filter(|&&block| self.geometry().die_of(block) == die);
        let (lent, held) = lent.fold((0, 0), |(lent, held), block| (lent + 1, held + valid[block.index()]));
        let most = (is_used.len() as u32).saturating_sub(RESERVED_BLOCKS) * self.data_pages;
        if held > 0 || lent * self.data_pages + space.valid_limit != most {
            return Err(format!("{lent} blocks of die {die} are lent, with {held} valid pages, or not as many"));
        }
        if space.free.is_empty() && space.victim.is_none() {
            return Err(format!("die {die} has no erased block"));
        }
        Ok(())
    }

    /// Blocks that are lent: neither erased nor open nor sealed.
    pub fn lent(&self) -> impl Iterator<Item = BlockId> {
        let mut is_ours: Vec<bool> =
            self.places.iter().map(|place| self.counts.is_sealed(place.count as usize)).collect();
        for die in &self.dies {
            let open = die.open.iter().filter(|open| open.page != self.data_pages).map(|open| &open.block);
            let victim = die.victim.as_ref().map(|victim| &victim.block);
            for &block in die.free.iter().chain(open).chain(victim) {
                if let Some(is_ours) = is_ours.get_mut(block as usize) {
                    *is_ours = true;
                }
            }
        }
        (0..).zip(is_ours).filter(|&(_, is_ours)| !is_ours).map(|(block, _)| BlockId(block))
    }
}

/// Takes the block that has been erased for longest: a simple dynamic wear levelling.
#[inline]
fn pop_erased(free: &mut VecDeque<u32>) -> u32 {
    free.pop_front().unwrap_or_else(|| unreachable!("a scheme collects before it runs out of erased blocks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> PageMap {
        PageMap::new(Geometry::new(4096, 4, 10, 2).unwrap(), 16).unwrap()
    }

    #[test]
    fn pages_go_to_the_dies_in_turn_and_fill_blocks_in_order() {
        let mut pages = pages();
        let placed: Vec<Ppa> = (0..6)
            .map(|logical| {
                let die = pages.next_die();
                pages.place(logical, die, Stream::Host).0
            })
            .collect();
        let geometry = *pages.geometry();
        let places: Vec<_> = placed.iter().map(|&ppa| (geometry.block_of(ppa).0, geometry.page_of(ppa))).collect();
        assert_eq!(places, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(pages.lookup(4), Some(placed[4]));
        pages.invalidate(4);
        assert_eq!(pages.lookup(4), None);
        pages.check().unwrap();
    }

    #[test]
    fn the_victim_is_the_sealed_block_with_the_fewest_valid_pages() {
        let mut pages = pages();
        for logical in 0..8 {
            pages.place(logical, 0, Stream::Host);
        }
        assert_eq!(pages.victim(0), None, "full blocks of valid pages cannot be collected");
        pages.invalidate(5);
        pages.invalidate(1);
        pages.invalidate(6);
        assert_eq!(pages.victim(0), Some(BlockId(2)), "the second block of die 0 has two valid pages left");
        assert_eq!(pages.victim(1), None);
        pages.check().unwrap();
    }

    #[test]
    fn a_collected_block_is_empty_and_its_pages_are_found_again() {
        let mut pages = pages();
        for logical in 0..4 {
            pages.place(logical, 0, Stream::Host);
        }
        pages.invalidate(2);
        let victim = pages.begin_collecting(0).unwrap();
        pages.check().unwrap();
        let mut run = Run::default();
        let to = pages.relocate(0, &mut run).unwrap();
        let from: Vec<u32> = run.pages().iter().map(|&ppa| pages.geometry().page_of(ppa)).collect();
        assert_eq!(from, [0, 1, 3]);
        assert_eq!(pages.lookup(3), Some(Ppa(to.0 + 2)));
        assert_eq!((pages.valid_pages(victim), pages.free_blocks(0)), (0, 3));
        assert_eq!(pages.collecting(0), Some(victim));
        pages.end_collecting(0);
        assert_eq!((pages.free_blocks(0), pages.collecting(0)), (4, None));
        pages.check().unwrap();
    }

    #[test]
    fn a_die_takes_a_stripe_before_the_next_one() {
        let mut pages = PageMap::new(Geometry::new(4096, 8, 12, 2).unwrap().striped(4), 40).unwrap();
        let dies: Vec<u32> = (0..10).map(|_| pages.next_die_in_stripes()).collect();
        assert_eq!(dies, [0, 0, 0, 0, 1, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn an_address_space_may_be_larger_than_what_lies_in_it() {
        let geometry = Geometry::new(4096, 4, 10, 2).unwrap();
        assert!(PageMap::sparse(geometry, 1000, 17).is_err());
        let mut pages = PageMap::sparse(geometry, 1000, 16).unwrap();
        for logical in (0..1000).step_by(67) {
            let die = pages.next_die();
            pages.place(logical, die, Stream::Host);
        }
        assert_eq!((pages.logical_pages(), pages.occupied(), pages.room()), (1000, 15, 16));
        assert!(pages.lookup(938).is_some() && pages.lookup(999).is_none());
        pages.invalidate(67);
        assert_eq!(pages.occupied(), 14);
        pages.check().unwrap();
    }

    #[test]
    fn a_lent_block_takes_no_page_and_leaves_room_for_fewer() {
        let mut pages = pages();
        // The second die has 5 blocks of 4 pages, 3 of them reserved.
        assert!(pages.can_lend(1));
        let lent = [pages.lend(1), pages.lend(1)];
        assert_eq!((lent, pages.can_lend(1), pages.free_blocks(1)), ([BlockId(1), BlockId(3)], false, 3));
        let placed: Vec<Ppa> = (0..8)
            .map(|logical| {
                let die = pages.next_die();
                pages.place(logical, die, Stream::Host).0
            })
            .collect();
        assert!(placed.iter().all(|&ppa| pages.geometry().block_of(ppa).0.is_multiple_of(2)), "die 1 takes none");
        pages.check().unwrap();
        pages.give_back(BlockId(3));
        assert_eq!((pages.next_die(), pages.free_blocks(1)), (1, 4));
        assert!(pages.can_lend(1) && !pages.can_lend(0));
    }

    #[test]
    fn a_die_never_takes_more_valid_pages_than_it_can_collect() {
        let mut pages = pages();
        for logical in 0..16 {
            let die = pages.next_die();
            pages.place(logical, die, Stream::Host);
        }
        assert_eq!(pages.dies.iter().map(|die| die.valid_pages).collect::<Vec<_>>(), [8, 8]);
        assert!(PageMap::new(Geometry::new(4096, 4, 10, 2).unwrap(), 17).is_err());
    }
}
