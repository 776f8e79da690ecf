//! Garbage collection of a log: whole victims, steps between writes, or as many copies as idle time allows.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::blocks::Open;
use super::{Log, Packing, Separation};
use crate::media::{CellMode, Media};
use crate::region::page_table::{Run, ValidWord};
use crate::region::valid_counts::ValidCounts;
use crate::units::{BlockId, Geometry, Ppa};

/// The victim of a die that is collected in steps.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Step {
    /// Valid pages of the victim when it was chosen; if they are packed, with the empty rest of the last page.
    valid: u32,
    /// Copies that are due, multiplied by the number of pages that the victim gains.
    owed: i64,
}

impl Step {
    /// One entry for each die, or no entry if victims are collected at once.
    pub fn all(geometry: &Geometry) -> Vec<Self> {
        vec![Self::default(); if geometry.stripe_pages > 1 { geometry.dies as usize } else { 0 }]
    }
}

impl<P: Separation<N>, const N: usize> Log<P, N> {
    /// Whether the pages of a victim go to several streams.
    const MIXED: bool = P::POOLED && N > 1;

    /// Copies up to `budget_pages` pages of victims, beginning where erased blocks are fewest, and erases each emptied
    /// victim. Returns the number of copied pages, which is less than the budget if no block has an invalid page.
    ///
    /// With this a scheme can spread collection over requests, regardless of the number of erased blocks.
    pub fn collect<M: Media>(&mut self, media: &mut M, budget_pages: u32) -> u32 {
        let mut copied = 0;
        while copied < budget_pages {
            let Some(pages) = self.collect_anywhere(media, budget_pages - copied) else { break };
            copied += pages;
        }
        copied
    }

    /// [`Self::collect_pages`] on the die with the fewest erased blocks among those that have a victim.
    fn collect_anywhere<M: Media>(&mut self, media: &mut M, most: u32) -> Option<u32> {
        if P::POOLED {
            return self.collect_pages(media, 0, most);
        }
        let mut last = None;
        loop {
            let die = self.blocks.fewest_erased(last)?;
            if let Some(copied) = self.collect_pages(media, die, most) {
                return Some(copied);
            }
            last = Some(die);
        }
    }

    /// [`Self::collect`] on a die or in the pool, until that has `idle_blocks` erased blocks.
    pub(super) fn collect_while_idle<M: Media>(&mut self, media: &mut M, die: u32, budget_pages: u32) -> u32 {
        let mut copied = 0;
        while copied < budget_pages && self.erased(die) < self.idle_blocks {
            let Some(pages) = self.collect_pages(media, die, budget_pages - copied) else { break };
            self.separation.collected_in_idle_time();
            copied += pages;
        }
        copied
    }

    /// If the policy allows no more garbage, collects a victim.
    #[inline(never)]
    pub(super) fn collect_garbage<M: Media>(&mut self, media: &mut M) {
        let (garbage, used) = self.blocks.garbage();
        if 100.0 * garbage as f64 > self.separation.gc_garbage_percent() * used as f64 {
            self.collect_anywhere(media, u32::MAX);
        }
    }

    /// Called after a page write to a die that has only its last erased blocks left. Copies enough of a victim that it
    /// is erased before its block is needed. A victim with v valid pages of P makes room for P - v pages at the cost of
    /// v copies.
    pub(super) fn collect_step<M: Media>(&mut self, media: &mut M, die: u32) {
        let (die, victim) = match self.blocks.victim(die) {
            Some(victim) => (die, BlockId(victim.block)),
            None if !self.is_short(die) => return,
            None => {
                let chosen = if P::POOLED { self.begin_collecting_pool() } else { self.victim_of_die(die) };
                let Some(chosen) = chosen else { return };
                chosen
            }
        };
        let Step { valid, mut owed } = self.steps[die as usize];
        let gain = i64::from(self.blocks.data_pages() - valid);
        owed += i64::from(valid) * i64::from(self.per_page());
        let mut run = Run::default();
        while owed >= gain && self.blocks.valid_in(victim) > 0 {
            owed -= self.copy_run(media, die, u32::MAX, &mut run) as i64 * gain;
        }
        self.steps[die as usize].owed = owed;
        if self.blocks.valid_in(victim) == 0 {
            self.erase(media, die, victim);
        }
    }

    /// Moves away the valid pages of the victim of a die or pool, and erases it. Returns `false` if there is no victim.
    pub(super) fn collect_victim<M: Media>(&mut self, media: &mut M, die: u32) -> bool {
        self.collect_pages(media, die, u32::MAX).is_some()
    }

    /// Collects the current victim of the die of `entry`. If that die has no victim, the block of `entry`, which the
    /// policy has chosen, becomes its victim.
    pub(super) fn collect_entry<M: Media>(&mut self, media: &mut M, entry: usize) -> bool {
        let die = self.blocks.die_of(entry);
        if self.blocks.victim(die).is_none() && self.begin_collecting(die, |_, _, _| Some(entry)).is_none() {
            return false;
        }
        self.collect_victim(media, die)
    }

    /// Copies up to `most` pages of the victim of a die or pool, and erases the victim when no valid page is left.
    /// Returns the number of copied pages, or `None` if there is no victim.
    fn collect_pages<M: Media>(&mut self, media: &mut M, die: u32, most: u32) -> Option<u32> {
        let most = if P::AT_ONCE { u32::MAX } else { most };
        let (die, victim) = if P::POOLED { self.victim_of_pool()? } else { self.victim_of_die(die)? };
        let mut run = Run::default();
        let mut left = most;
        while left > 0 {
            match self.copy_run(media, die, left, &mut run) {
                0 => break,
                copied => left = left.saturating_sub(copied as u32),
            }
        }
        if self.blocks.valid_in(victim) == 0 {
            self.erase(media, die, victim);
        }
        Some(most - left)
    }

    /// A die's victim; chosen now if the die has none.
    fn victim_of_die(&mut self, die: u32) -> Option<(u32, BlockId)> {
        let collecting = self.blocks.victim(die).map(|victim| BlockId(victim.block));
        collecting.or_else(|| self.begin_collecting(die, P::victim)).map(|victim| (die, victim))
    }

    /// The victim of a pool that needs the fewest copies; chosen now if the pool has none.
    fn victim_of_pool(&mut self) -> Option<(u32, BlockId)> {
        self.blocks.emptiest_victim().or_else(|| self.begin_collecting_pool())
    }

    /// Chooses a victim on the die with the fewest erased blocks that has no victim and can have one.
    fn begin_collecting_pool(&mut self) -> Option<(u32, BlockId)> {
        if self.blocks.free_in_pool() <= self.blocks.victims() {
            return None;
        }
        let mut last = None;
        loop {
            let die = self.blocks.fewest_erased(last)?;
            if self.blocks.victim(die).is_none()
                && let Some(victim) = self.begin_collecting(die, P::victim)
            {
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
        if let Some(step) = self.steps.get_mut(die as usize) {
            let valid =
                self.blocks.valid_in(victim).next_multiple_of(self.separation.packing().map_or(1, Packing::per_page));
            *step = Step { valid, owed: 0 };
        }
        Some(victim)
    }

    /// Copies up to `most` valid pages of a die's victim to consecutive pages of one stream's open block, limited by
    /// the size of a run and the pages left in that block. `run` then holds the old places of the pages. Returns the
    /// number of copied pages.
    #[inline]
    fn copy_run<M: Media>(&mut self, media: &mut M, die: u32, most: u32, run: &mut Run) -> usize {
        if self.separation.packing().is_some() {
            return self.copy_packed(media, die);
        }
        let Some(victim) = self.blocks.victim(die) else { return 0 };
        let Some(pages) = self.table.valid_word(BlockId(victim.block), victim.page) else { return 0 };
        let (pages, lane, stream) =
            if P::POOLED { self.of_one_stream(pages, victim, die) } else { (pages, die, N - 1) };
        let (block, page) = self.next_page(media, lane, stream);
        let to = self.table.geometry().ppa(block, page);
        self.table.move_run(pages, to, self.blocks.pages_left(lane, stream).min(most), run);
        let copied = run.pages().len();
        // With several streams, pages between the moved ones may be left.
        let last = if Self::MIXED { 0 } else { copied - 1 };
        let next = self.table.geometry().page_of(run.pages()[last]) + 1;
        self.blocks.moved(die, copied as u32, next);
        if P::POOLED {
            self.blocks.move_valid(BlockId(victim.block), block, copied as u32);
        }
        let is_full = self.fill(lane, stream, copied as u32);
        self.copy_pages(media, run.pages(), to, stream);
        self.copied_pages += copied as u64;
        if is_full {
            self.summarise(media, Ppa(to.0 + copied as u32 - 1), stream);
        }
        copied
    }

    /// Selects the pages of a pool's victim that go to the same stream as the first page, and returns them with the
    /// lane and the stream. If that stream needs a block and none is erased, the pages go to another stream.
    pub(super) fn of_one_stream(&self, pages: ValidWord, victim: Open, die: u32) -> (ValidWord, u32, usize) {
        let entry = self.blocks.entry(BlockId(victim.block));
        let first = self.table.first_owner(pages);
        let leaves = P::MODES && self.blocks.victim_leaves(die);
        let stream_of = |logical| if leaves { N - 1 } else { self.separation.copied(logical, entry) };
        let stream = stream_of(first);
        let pages = if Self::MIXED { self.table.retain(pages, |logical| stream_of(logical) == stream) } else { pages };
        // The lanes take turns as targets of copies, by victim and by word of pages.
        let in_turn = || (victim.block + victim.page / u64::BITS) % self.blocks.lanes();
        let lane = self.separation.lane(first).unwrap_or_else(in_turn);
        let takes_none = self.blocks.free_in_pool() > 0 || !self.blocks.needs_block(lane, stream);
        let other = if takes_none { None } else { self.blocks.with_room() };
        let (lane, stream) = other.unwrap_or((lane, stream));
        (pages, lane, stream)
    }

    /// Erases a die's emptied victim.
    fn erase<M: Media>(&mut self, media: &mut M, die: u32, victim: BlockId) {
        let mode = if P::MODES { self.separation.erased(self.blocks.entry(victim)) } else { CellMode::Native };
        self.erase_block(media, victim, mode);
        self.blocks.end_collecting(die, mode);
    }
}
