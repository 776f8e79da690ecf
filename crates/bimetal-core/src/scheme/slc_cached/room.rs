//! Size of the cache: which blocks it may take from the main area, and when it gives them back.

use super::{SlcCached, WhenFull};
use crate::media::{Cause, CellMode, Media};
use crate::region::Space;
use crate::request::Request;
use crate::units::BlockId;

impl<const DYNAMIC: bool> SlcCached<DYNAMIC> {
    /// Blocks that the cache may have.
    pub(super) fn allowed_blocks(&self) -> u32 {
        if !DYNAMIC {
            return self.least;
        }
        let pages = self.curve.pages(self.mapped_pages).min(self.free_pages()).max(0);
        self.least + pages as u32 / self.tiers.slow.geometry().pages_per_block
    }

    /// Pages of native blocks without the data of the main area and the pages that folding the tail block takes.
    pub(super) fn free_pages(&self) -> i64 {
        let occupied = self.tiers.slow.occupied() as i64;
        let only_in_cache = i64::from(self.mapped_pages) - occupied;
        let pages_per_block = self.native_pages();
        // If folding a block took more than a block, all data of the cache would have to fit at once.
        let taken = if self.taken_by_tail(0) > pages_per_block {
            only_in_cache
        } else {
            only_in_cache.min(self.taken_by_tail(self.fold_page))
        };
        i64::from(self.logical_blocks) * pages_per_block - occupied - taken
    }

    /// Largest number of pages that folding a full block from `page` on programs: the content of a page of the cache
    /// was written at once, so it belongs to two pages at most.
    fn taken_by_tail(&self, page: u32) -> i64 {
        let fast = &self.tiers.fast;
        let pages = i64::from(fast.slots().pages_per_block() - page);
        if fast.units_per_page() > 1 { 2 * pages } else { pages }
    }

    /// Native pages of a block.
    pub(super) fn native_pages(&self) -> i64 {
        i64::from(self.tiers.slow.geometry().pages_per_block)
    }

    /// Native pages of the blocks of the cache beyond `least`.
    pub(super) fn held_pages(&self) -> i64 {
        i64::from(self.blocks - self.least) * self.native_pages()
    }

    /// Native pages of room that the cache leaves, without `ahead_pages`; if negative, the cache is too large by this
    /// number.
    pub(super) fn slack_pages(&self, ahead_pages: i64) -> i64 {
        let free = self.free_pages();
        let limit = match self.settings.when_full {
            WhenFull::DirectThenFold => free,
            WhenFull::Fold | WhenFull::Direct => free.min(self.curve.line_pages(self.mapped_pages)),
        };
        limit - ahead_pages - self.held_pages()
    }

    /// Native pages by which the cache may still grow, up to its largest size; see [`Self::slack_pages`].
    pub(super) fn growth_pages(&self) -> i64 {
        self.slack_pages(self.ahead_pages()).min(i64::from(self.curve.most_pages) - self.held_pages())
    }

    /// Native pages of room below which the cache is folded ahead of need: those of a block.
    pub(super) fn ahead_pages(&self) -> i64 {
        if self.settings.fold_in_steps { self.native_pages() } else { 0 }
    }

    /// Gain of folding a page of the tail block beyond the room that [`Self::free_pages`] counts by then: its share of
    /// the block.
    pub(super) fn gain_of_a_page(&self) -> (i64, i64) {
        let taken = self.taken_by_tail(0);
        ((self.native_pages() - taken).max(0), i64::from(self.tiers.fast.slots().pages_per_block()))
    }

    /// Whether the cache is larger than the curve allows.
    pub(super) fn is_above_curve(&self) -> bool {
        self.curve.pages(self.mapped_pages) < self.held_pages()
    }

    /// Counts the pages that a write is going to map, and gives back blocks that they may need.
    #[inline]
    pub(super) fn make_room<M: Media>(&mut self, media: &mut M, request: &Request) {
        if self.mapped_pages < self.tiers.slow.logical_pages() {
            self.mapped_pages += self.unmapped_pages(request);
        }
        while self.blocks > self.least && self.slack_pages(0) < 0 {
            self.give_back(media);
        }
    }

    /// Makes room for the page of a unit whose write bypasses the cache.
    pub(super) fn make_room_beside<M: Media>(&mut self, media: &mut M, unit: u32) {
        if self.tiers.slow.lookup(self.tiers.slow_page(unit)).is_some() {
            return;
        }
        while self.blocks > self.least && self.slack_pages(0) < 1 {
            self.give_back(media);
        }
    }

    /// Takes another block from the main area, if the cache may have one.
    pub(super) fn grow<M: Media>(&mut self, media: &mut M) -> bool {
        let block = self.native_pages();
        let may_grow =
            DYNAMIC && self.growth_pages() >= block && self.curve.pages(self.mapped_pages) - self.held_pages() >= block;
        may_grow && self.borrow(media)
    }

    /// Takes another block from the main area, of the next die that can lend one.
    pub(super) fn borrow<M: Media>(&mut self, media: &mut M) -> bool {
        let dies = self.tiers.slow.geometry().dies;
        for _ in 0..dies {
            let die = self.lending_die;
            self.lending_die = if die + 1 == dies { 0 } else { die + 1 };
            if let Some(block) = self.tiers.slow.lend(media, die) {
                self.erase_for_cache(media, block);
                self.ring.add_erased(block);
                self.blocks += 1;
                return true;
            }
        }
        false
    }

    pub(super) fn erase_for_cache<M: Media>(&mut self, media: &mut M, block: BlockId) {
        self.tiers.fast.erase(media, block, Cause::Gc);
        self.counts.mode_changes += 1;
    }

    /// Gives an erased block of the cache back to the main area, or the oldest one after folding it.
    fn give_back<M: Media>(&mut self, media: &mut M) {
        match self.ring.remove_erased() {
            Some(block) if self.unused > 0 => {
                self.unused -= 1;
                self.blocks -= 1;
                self.tiers.slow.give_back(block);
            }
            Some(block) => self.erase_for_main(media, block),
            None => {
                self.ring.close_tail();
                self.fold_tail(media);
                self.give_back_tail(media);
            }
        }
    }

    /// Gives the folded tail block back to the main area.
    pub(super) fn give_back_tail<M: Media>(&mut self, media: &mut M) {
        self.fold_page = 0;
        let tail = self.ring.remove_tail();
        self.erase_for_main(media, tail);
    }

    fn erase_for_main<M: Media>(&mut self, media: &mut M, block: BlockId) {
        media.erase(self.tiers.fast.region(), block, CellMode::Native, Cause::Gc);
        self.counts.mode_changes += 1;
        self.blocks -= 1;
        self.tiers.slow.give_back(block);
    }
}
