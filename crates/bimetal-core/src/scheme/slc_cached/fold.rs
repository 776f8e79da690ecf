//! Folding: when, and in which steps, the oldest data of the cache move to the main area.

use super::{SlcCached, WhenFull};
use crate::media::{Cause, Media};
use crate::region::Space;
use crate::units::Ppa;

impl<const DYNAMIC: bool> SlcCached<DYNAMIC> {
    /// Whether the tail block has no valid data left.
    #[inline]
    pub(super) fn tail_is_folded(&self) -> bool {
        self.fold_page == self.tiers.fast.slots().pages_per_block()
    }

    /// The page of the tail block that is folded next.
    #[inline]
    fn next_fold_page(&self) -> Option<Ppa> {
        let tail = self.ring.tail().filter(|_| !self.tail_is_folded())?;
        Some(self.tiers.slow.geometry().ppa(tail, self.fold_page))
    }

    /// Skips the pages of the tail block without valid data.
    pub(super) fn skip_invalid_pages(&mut self) {
        while self.next_fold_page().is_some_and(|page| !self.tiers.fast.slots().is_valid(page)) {
            self.fold_page += 1;
        }
    }

    /// Folds the rest of the tail block.
    pub(super) fn fold_tail<M: Media>(&mut self, media: &mut M) {
        while let Some(page) = self.next_fold_page() {
            self.fold(media, page);
        }
    }

    /// Folds `page`, the next one of the tail block. Returns the number of pages programmed.
    fn fold<M: Media>(&mut self, media: &mut M, page: Ppa) -> u32 {
        let slots = self.tiers.fast.slots();
        let first = slots.first_slot(page);
        let last = Ppa(page.0 + slots.pages_per_block() - 1 - self.fold_page);
        let end = slots.first_slot(last) + slots.slots();
        let mut programs = 0;
        for slot in first..first + self.tiers.fast.units_per_page() {
            self.tiers.prefetch_emptied(slot, end, |_| true);
            if let Some(unit) = self.tiers.fast.slots().unit(slot) {
                let per_page = self.tiers.units_per_slow_page();
                let was_mapped = per_page > 1 && self.tiers.slow.lookup(self.tiers.slow_page(unit)).is_some();
                let moved = self.tiers.demote_slot(media, slot, unit);
                self.counts.partial_folds += u64::from(was_mapped && moved < per_page);
                self.counts.folded_units += u64::from(moved);
                programs += 1;
            }
        }
        self.counts.folded_pages += u64::from(programs);
        self.fold_page += 1;
        programs
    }

    /// The tail block is folded: it is erased and reused after the blocks that are already erased, or given to the main
    /// area if that needs it or if the block is to be exchanged.
    pub(super) fn finish_tail<M: Media>(&mut self, media: &mut M) {
        self.fold_page = 0;
        if DYNAMIC && self.blocks > self.least && (self.slack_pages(self.ahead_pages()) < 0 || self.is_above_curve()) {
            self.give_back_tail(media);
        } else if DYNAMIC && self.is_exchange_due() {
            self.give_back_tail(media);
            // At least the die that got a block back can lend one.
            self.borrow(media);
        } else if let Some(tail) = self.ring.tail() {
            self.tiers.fast.erase(media, tail, Cause::Gc);
            self.ring.retire_tail();
        }
    }

    /// Counts a folded block. Returns whether a block is to be exchanged.
    fn is_exchange_due(&mut self) -> bool {
        let period = self.settings.exchange_period;
        self.until_exchange = if self.until_exchange > 1 { self.until_exchange - 1 } else { period };
        period > 0 && self.until_exchange == period
    }

    /// Folds pages of the tail block at the pace of the host's writes.
    pub(super) fn fold_ahead<M: Media>(&mut self, media: &mut M) {
        while self.is_behind() && self.ring.tail_is_full() {
            if let Some(page) = self.next_fold_page() {
                self.fold(media, page);
            }
            if self.tail_is_folded() {
                self.finish_tail(media);
            }
        }
    }

    /// Whether folding is behind: fewer erased pages are left than the reserve requires. A tail block that is folded in
    /// part counts in part.
    fn is_behind(&self) -> bool {
        let waits = self.settings.when_full == WhenFull::Fold;
        let slots = self.tiers.fast.slots();
        let erased = i64::from(self.ring.open_pages()) + i64::from(self.ring.erased() * slots.pages_per_block());
        // All open blocks become full at the same time, and as many are opened next.
        let reserve = self.ring.width().min(self.blocks.saturating_sub(self.ring.width()));
        let reserve = i64::from(reserve * slots.pages_per_block());
        let is_least = !DYNAMIC || self.blocks == self.least;
        if is_least && (!waits || erased >= reserve) {
            return false;
        }
        let slack = if DYNAMIC { self.growth_pages() } else { 0 };
        if is_least && slack < self.native_pages() {
            return erased + i64::from(self.fold_page) < reserve;
        }
        // In native pages, multiplied by the pages of a block in SLC mode.
        let (gain, slc_pages) = self.gain_of_a_page();
        let room = slack * slc_pages + i64::from(self.fold_page) * gain;
        if waits {
            room + erased * self.native_pages() < reserve * self.native_pages()
        } else {
            self.ring.erased() == 0 && room < 0
        }
    }

    /// Folds while the host is idle, within `budget_pages` page copies. Returns the rest of the budget.
    pub(super) fn fold_while_idle<M: Media>(&mut self, media: &mut M, budget_pages: u32) -> u32 {
        let mut budget_pages = budget_pages;
        if !self.settings.idle.is_on || budget_pages < self.settings.idle.min_pages {
            return budget_pages;
        }
        while budget_pages > 0 && self.is_to_be_folded() {
            while budget_pages > 0
                && let Some(page) = self.next_fold_page()
            {
                budget_pages = budget_pages.saturating_sub(self.fold(media, page));
            }
            if self.tail_is_folded() {
                self.finish_tail(media);
            }
        }
        budget_pages
    }

    /// Whether idle time is used for folding the tail block.
    fn is_to_be_folded(&mut self) -> bool {
        let idle = &self.settings.idle;
        let percent = if self.is_idle_folding { idle.to_percent } else { idle.from_percent.max(idle.to_percent) };
        let limit = f64::from(self.allowed_blocks()) * percent / 100.0;
        self.is_idle_folding = f64::from(self.ring.written()) > limit;
        self.is_idle_folding && self.ring.tail_is_full()
    }

    /// Checks that folded blocks hold no valid data.
    ///
    /// # Errors
    /// They hold valid data, or the block has fewer pages.
    pub(super) fn check_fold_page(&self) -> Result<(), String> {
        let slots = self.tiers.fast.slots();
        let is_folded = |tail, page| !slots.is_valid(self.tiers.slow.geometry().ppa(tail, page));
        let holds = match self.ring.tail() {
            _ if self.fold_page > slots.pages_per_block() => false,
            Some(tail) => (0..self.fold_page).all(|page| is_folded(tail, page)),
            None => self.fold_page == 0,
        };
        if holds { Ok(()) } else { Err(format!("page {} of the tail block cannot be folded next", self.fold_page)) }
    }
}
