//! Blocks written in turn and reclaimed in turn (Chang 2010 §3.3; the circular buffers of `ComboFTL` 2010 §4.1; the FIFO
//! of WLAFTL 2018 §3.3).
//!
//! ```text
//!   erased    tail ............... head    erased
//!  |_______|#######|#######|#######|###___|_______|
//! ```
//!
//! The oldest block is the tail; a new one is opened at the head. Since an erased block goes to the end of the erased
//! ones, blocks are erased strictly in turn and their wear differs by one cycle at most. A ring may write to several
//! blocks at once in turn, a stripe of consecutive pages to each, so that their dies work at the same time. Two rings can
//! share a region and exchange erased blocks.

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

/// The ring's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ring {
    #[serde(with = "crate::save::fixed")]
    pages_per_block: u32,
    /// Consecutive pages that one open block takes before the next takes its turn.
    #[serde(with = "crate::save::fixed")]
    stripe_pages: u32,
    /// Erased blocks, the one to be opened next in front.
    erased: VecDeque<u32>,
    /// Blocks with data, oldest first; open ones are among them.
    written: VecDeque<u32>,
    /// The open blocks, or full ones until the next is opened in their place.
    #[serde(with = "crate::save::sized")]
    open: Vec<Open>,
    /// Blocks that are written at once: the first ones of `open`. The others are full.
    width: u32,
    /// Which of them takes the next page.
    next: usize,
}

impl Ring {
    /// A ring of these erased blocks, `width` of which are written at once, `stripe_pages` consecutive pages to each in
    /// turn. It can take up to `capacity` blocks.
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

    /// Blocks that are written at once.
    #[inline]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Lets `width` blocks be written at once, at least 1 and at most as many as the ring was made for. Blocks that are
    /// open and have pages left are written to their end before there are fewer.
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

    /// Erased blocks.
    #[inline]
    pub fn erased(&self) -> u32 {
        self.erased.len() as u32
    }

    /// Blocks with data.
    #[inline]
    pub fn written(&self) -> u32 {
        self.written.len() as u32
    }

    /// Whether the next page takes an erased block.
    #[inline]
    pub fn needs_block(&self) -> bool {
        self.is_full(self.next)
    }

    /// Lets the next open block that has pages left take the next page. Returns whether there is one.
    pub fn skip_full(&mut self) -> bool {
        let width = self.width as usize;
        let found = (0..width).map(|step| (self.next + step) % width).find(|&open| !self.is_full(open));
        self.next = found.unwrap_or(self.next);
        found.is_some()
    }

    /// Opens the next erased block for the pages to come.
    pub fn open_block(&mut self) -> BlockId {
        debug_assert!(self.needs_block());
        let block =
            self.erased.pop_front().unwrap_or_else(|| unreachable!("a scheme reclaims before it opens a block"));
        self.written.push_back(block);
        self.open[self.next] = Open { block, page: 0 };
        BlockId(block)
    }

    /// Takes the next page: its block and its place in it. An open block has room for it.
    #[inline]
    pub fn next_page(&mut self) -> (BlockId, u32) {
        let open = &mut self.open[self.next];
        debug_assert!(open.page < self.pages_per_block);
        let taken = (BlockId(open.block), open.page);
        open.page += 1;
        // A ring with one open block does not divide.
        if self.width > 1 && (open.page.is_multiple_of(self.stripe_pages) || open.page == self.pages_per_block) {
            self.next = if self.next + 1 == self.width as usize { 0 } else { self.next + 1 };
        }
        taken
    }

    /// Pages that open blocks still have.
    pub fn open_pages(&self) -> u32 {
        self.open.iter().map(|open| self.pages_per_block - open.page).sum()
    }

    /// Whether there is a tail block and it is not being written any more.
    #[inline]
    pub fn tail_is_full(&self) -> bool {
        let is_full = |tail| self.open.iter().all(|open| open.block != tail || open.page == self.pages_per_block);
        self.written.front().is_some_and(|&tail| is_full(tail))
    }

    /// Leaves the pages unwritten that the tail block still has, so that it can be reclaimed.
    pub fn close_tail(&mut self) {
        let tail = self.written.front().copied();
        for open in self.open.iter_mut().filter(|open| Some(open.block) == tail) {
            open.page = self.pages_per_block;
        }
    }

    /// The block opened last.
    #[inline]
    pub fn head(&self) -> Option<BlockId> {
        self.written.back().map(|&block| BlockId(block))
    }

    /// The block reclaimed next.
    #[inline]
    pub fn tail(&self) -> Option<BlockId> {
        self.written.front().map(|&block| BlockId(block))
    }

    /// The tail block holds nothing valid any more and is erased: it comes last among the erased ones.
    pub fn retire_tail(&mut self) {
        let tail = self.remove_tail();
        self.erased.push_back(tail.0);
    }

    /// Takes the tail block out of the ring.
    pub fn remove_tail(&mut self) -> BlockId {
        debug_assert!(self.tail_is_full());
        let tail = self.written.pop_front().unwrap_or_else(|| unreachable!("only a ring with data is reclaimed"));
        BlockId(tail)
    }

    /// Takes the erased block that would be opened next out of the ring.
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
            // A block that was full in one place may be open in another.
            let pages = self.open.iter().filter(|open| open.block == block).map(|open| open.page).min();
            (BlockId(block), pages.unwrap_or(self.pages_per_block))
        })
    }

    /// Checks that its blocks are among `blocks` blocks, each once, and that it writes to such as it has.
    ///
    /// # Errors
    /// The first that is not.
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
