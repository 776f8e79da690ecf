//! A ring of blocks, which are written and reclaimed in the same order (Chang 2010 §3.3; the circular buffers of
//! `ComboFTL` 2010 §4.1; the FIFO of WLAFTL 2018 §3.3).
//!
//! ```text
//!   erased    tail ............... head    erased
//!  |_______|#######|#######|#######|###___|_______|
//! ```
//!
//! The tail is the oldest block; a new block is opened at the head. An erased block goes to the end of the queue of
//! erased blocks. So blocks are erased strictly in turn, and their erase counts differ by at most one. A ring may write
//! to several open blocks in turn, a stripe of consecutive pages to each, so that their dies work in parallel. Two
//! rings can share a region and exchange erased blocks.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::units::BlockId;

/// A block that is being written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Open {
    block: u32,
    /// Next page.
    page: u32,
}

/// Blocks and positions of a ring.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ring {
    #[serde(with = "crate::save::fixed")]
    pages_per_block: u32,
    /// Number of consecutive pages that one open block takes before the next open block.
    #[serde(with = "crate::save::fixed")]
    stripe_pages: u32,
    /// Erased blocks, in the order in which they will be opened.
    erased: VecDeque<u32>,
    /// Blocks with data, including open ones, oldest first.
    written: VecDeque<u32>,
    /// The open blocks. A full one stays until the next block replaces it.
    #[serde(with = "crate::save::sized")]
    open: Vec<Open>,
    /// Number of blocks that are written in parallel: the first `width` entries of `open`. The other entries are full.
    width: u32,
    /// Index in `open` of the block that takes the next page.
    next: usize,
}

impl Ring {
    /// A ring of the given erased blocks. It writes `width` blocks in parallel, `stripe_pages` consecutive pages to
    /// each in turn, and can hold up to `capacity` blocks.
    pub fn new(
        blocks: impl Iterator<Item = u32>,
        capacity: u32,
        pages_per_block: u32,
        width: u32,
        stripe_pages: u32,
    ) -> Self {
        let mut erased = VecDeque::with_capacity(capacity as usize);
        erased.extend(blocks);
        let full = Open { block: u32::MAX, page: pages_per_block };
        let written = VecDeque::with_capacity(capacity as usize);
        let open = vec![full; width as usize];
        Self { pages_per_block, stripe_pages, erased, written, open, width, next: 0 }
    }

    /// Number of blocks that are written in parallel.
    #[inline]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Sets the number of blocks written in parallel, from 1 to the width for which the ring was made. Before it is
    /// reduced, open blocks with pages left are filled.
    pub fn set_width(&mut self, width: u32) {
        self.width = self.width.max(width.min(self.open.len() as u32));
        while self.width > width.max(1) && self.is_full(self.width as usize - 1) {
            self.width -= 1;
        }
        if self.next >= self.width as usize {
            self.next = 0;
        }
    }

    /// Whether the next page is the first of a round over all open blocks.
    #[inline]
    pub fn begins_round(&self) -> bool {
        self.next == 0
    }

    #[inline]
    fn is_full(&self, open: usize) -> bool {
        self.open[open].page == self.pages_per_block
    }

    /// Number of erased blocks.
    #[inline]
    pub fn erased(&self) -> u32 {
        self.erased.len() as u32
    }

    /// Number of blocks with data.
    #[inline]
    pub fn written(&self) -> u32 {
        self.written.len() as u32
    }

    /// Whether the next page needs an erased block.
    #[inline]
    pub fn needs_block(&self) -> bool {
        self.is_full(self.next)
    }

    /// Selects the next open block with pages left for the next page. Returns whether there is one.
    pub fn skip_full(&mut self) -> bool {
        let width = self.width as usize;
        let found = (0..width).map(|step| (self.next + step) % width).find(|&open| !self.is_full(open));
        self.next = found.unwrap_or(self.next);
        found.is_some()
    }

    /// Opens the next erased block for the following pages.
    pub fn open_block(&mut self) -> BlockId {
        debug_assert!(self.needs_block());
        let block =
            self.erased.pop_front().unwrap_or_else(|| unreachable!("a scheme reclaims before it opens a block"));
        self.written.push_back(block);
        self.open[self.next] = Open { block, page: 0 };
        BlockId(block)
    }

    /// Takes the next page: its block and its position in the block. The open block must have room.
    #[inline]
    pub fn next_page(&mut self) -> (BlockId, u32) {
        let open = &mut self.open[self.next];
        debug_assert!(open.page < self.pages_per_block);
        let taken = (BlockId(open.block), open.page);
        open.page += 1;
        // A ring with one open block avoids the division.
        if self.width > 1 && (open.page.is_multiple_of(self.stripe_pages) || open.page == self.pages_per_block) {
            self.next = if self.next + 1 == self.width as usize { 0 } else { self.next + 1 };
        }
        taken
    }

    /// Number of pages left in the open blocks.
    pub fn open_pages(&self) -> u32 {
        self.open.iter().map(|open| self.pages_per_block - open.page).sum()
    }

    /// Whether there is a tail block and it is completely written.
    #[inline]
    pub fn tail_is_full(&self) -> bool {
        let is_full = |tail| self.open.iter().all(|open| open.block != tail || open.page == self.pages_per_block);
        self.written.front().is_some_and(|&tail| is_full(tail))
    }

    /// Gives up the remaining pages of the tail block, so that it can be reclaimed.
    pub fn close_tail(&mut self) {
        let tail = self.written.front().copied();
        for open in self.open.iter_mut().filter(|open| Some(open.block) == tail) {
            open.page = self.pages_per_block;
        }
    }

    /// The most recently opened block.
    #[inline]
    pub fn head(&self) -> Option<BlockId> {
        self.written.back().map(|&block| BlockId(block))
    }

    /// The block to be reclaimed next.
    #[inline]
    pub fn tail(&self) -> Option<BlockId> {
        self.written.front().map(|&block| BlockId(block))
    }

    /// The tail block has no valid data and has been erased: moves it to the end of the erased blocks.
    pub fn retire_tail(&mut self) {
        let tail = self.remove_tail();
        self.erased.push_back(tail.0);
    }

    /// Removes the tail block from the ring.
    pub fn remove_tail(&mut self) -> BlockId {
        debug_assert!(self.tail_is_full());
        let tail = self.written.pop_front().unwrap_or_else(|| unreachable!("only a ring with data is reclaimed"));
        BlockId(tail)
    }

    /// Removes the erased block that would be opened next from the ring.
    pub fn remove_erased(&mut self) -> Option<BlockId> {
        self.erased.pop_front().map(BlockId)
    }

    /// Adds an erased block.
    pub fn add_erased(&mut self, block: BlockId) {
        self.erased.push_back(block.0);
    }

    /// Blocks with data, oldest first, each with the number of its programmed pages.
    pub fn iter_written(&self) -> impl Iterator<Item = (BlockId, u32)> + '_ {
        self.written.iter().map(|&block| {
            // A block may be full in one entry and open in another.
            let pages = self.open.iter().filter(|open| open.block == block).map(|open| open.page).min();
            (BlockId(block), pages.unwrap_or(self.pages_per_block))
        })
    }

    /// Checks that all block numbers are below `blocks`, that each block occurs once, and that the ring only writes to
    /// blocks that it has.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self, blocks: u32) -> Result<(), String> {
        let mut seen = vec![false; blocks as usize];
        for &block in self.erased.iter().chain(&self.written) {
            if seen.get_mut(block as usize).is_none_or(|seen| std::mem::replace(seen, true)) {
                return Err(format!("block {block} is not one of {blocks}, or twice in the ring"));
            }
        }
        if self.width as usize > self.open.len() || self.next >= self.width as usize {
            return Err(format!("block {} of {} of {} is written next", self.next, self.width, self.open.len()));
        }
        for (number, open) in self.open.iter().enumerate() {
            let is_full = open.page == self.pages_per_block;
            if !is_full && number >= self.width as usize {
                return Err(format!("block {} is open beside {} others", open.block, self.width));
            }
            if open.page > self.pages_per_block || !is_full && !self.written.contains(&open.block) {
                return Err(format!("block {} is written to page {} and not in the ring", open.block, open.page));
            }
        }
        Ok(())
    }

    /// Erased blocks, in the order in which they will be opened.
    pub fn iter_erased(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.erased.iter().map(|&block| BlockId(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(ring: &mut Ring, longest: u32) -> (u32, u32) {
        if ring.needs_block() {
            while ring.written() >= longest {
                ring.retire_tail();
            }
            ring.open_block();
        }
        let (block, page) = ring.next_page();
        (block.0, page)
    }

    #[test]
    fn head_and_tail_go_round() {
        let mut ring = Ring::new(0..4, 4, 2, 1, 1);
        let pages: Vec<_> = (0..10).map(|_| take(&mut ring, 3)).collect();
        assert_eq!(pages, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1), (0, 0), (0, 1)]);
        assert_eq!((ring.tail(), ring.head(), ring.erased()), (Some(BlockId(2)), Some(BlockId(0)), 1));
        assert_eq!(ring.iter_written().collect::<Vec<_>>(), [(BlockId(2), 2), (BlockId(3), 2), (BlockId(0), 2)]);
    }

    #[test]
    fn several_blocks_are_written_in_turn() {
        let mut ring = Ring::new(0..8, 8, 2, 2, 1);
        let pages: Vec<_> = (0..6).map(|_| take(&mut ring, 6)).collect();
        assert_eq!(pages, [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0)]);
        assert_eq!((ring.open_pages(), ring.written()), (2, 4));
        assert!(ring.tail_is_full());
        (0..2).for_each(|_| ring.retire_tail());
        assert!(!ring.tail_is_full(), "block 2 has a page left");
    }

    #[test]
    fn a_stripe_of_pages_goes_to_one_block_and_never_beyond_its_end() {
        let mut ring = Ring::new(0..8, 8, 3, 2, 2);
        let pages: Vec<_> = (0..8).map(|_| take(&mut ring, 8)).collect();
        assert_eq!(pages, [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2), (2, 0), (2, 1)]);
    }

    #[test]
    fn the_number_of_open_blocks_grows_at_once_and_shrinks_as_they_are_full() {
        let mut ring = Ring::new(0..8, 8, 2, 4, 1);
        ring.set_width(1);
        assert_eq!([take(&mut ring, 8), take(&mut ring, 8)], [(0, 0), (0, 1)]);
        ring.set_width(3);
        let pages: Vec<_> = (0..4).map(|_| take(&mut ring, 8)).collect();
        assert_eq!((pages, ring.width()), (vec![(1, 0), (2, 0), (3, 0), (1, 1)], 3));
        ring.set_width(1);
        assert_eq!(ring.width(), 3, "two blocks have a page left");
        assert_eq!([take(&mut ring, 8), take(&mut ring, 8)], [(2, 1), (3, 1)]);
        ring.set_width(1);
        assert_eq!((ring.width(), ring.begins_round(), ring.needs_block()), (1, true, true));
        ring.check(8).unwrap();
    }

    #[test]
    fn a_tail_that_is_open_is_closed_and_another_block_takes_the_next_page() {
        let mut ring = Ring::new(0..8, 8, 2, 2, 1);
        (0..2).for_each(|_| _ = take(&mut ring, 8));
        assert!(!ring.tail_is_full());
        ring.close_tail();
        ring.retire_tail();
        assert!(ring.needs_block() && ring.skip_full());
        assert_eq!(ring.next_page(), (BlockId(1), 1));
        assert!(!ring.skip_full());
        ring.check(8).unwrap();
    }

    #[test]
    fn rings_exchange_erased_blocks() {
        let (mut first, mut second) = (Ring::new(0..3, 6, 2, 1, 1), Ring::new(3..6, 6, 2, 1, 1));
        let (given, taken) = (first.remove_erased().unwrap(), second.remove_erased().unwrap());
        first.add_erased(taken);
        second.add_erased(given);
        assert_eq!(first.iter_erased().collect::<Vec<_>>(), [BlockId(1), BlockId(2), BlockId(3)]);
        assert_eq!(second.iter_erased().collect::<Vec<_>>(), [BlockId(4), BlockId(5), BlockId(0)]);
    }
}
