//! Placing written pages: choosing the stream, the die or lane, and the block.

use super::{Log, Separation};
use crate::media::{Cause, CellMode, Media, Part};
use crate::units::{BlockId, Ppa};

impl<P: Separation<N>, const N: usize> Log<P, N> {
    /// Invalidates the copy of a logical page, if it has one, so that its physical page can be collected. Returns the
    /// block's entry.
    #[inline(always)]
    pub(super) fn forget(&mut self, logical: u32) -> Option<usize> {
        let page = self.table.clear(logical)?;
        let place = self.blocks.place(self.table.geometry().block_of(page));
        self.blocks.invalidate(place);
        Some(place.entry as usize)
    }

    /// Programs logical pages that have no valid copy, in a stream: one, or those that share a page of the media.
    #[inline(always)]
    pub(super) fn append<M: Media>(
        &mut self,
        media: &mut M,
        (die, stream): (u32, usize),
        logical: &[u32],
        parts: &[Part<M::Data>],
        cause: Cause,
    ) {
        if self.blocks.needs_block(die, stream) {
            self.make_room(media, die, stream);
        }
        let (block, page) = self.blocks.next_page(die, stream);
        let page = self.table.geometry().ppa(block, page);
        // A loop that is compiled here: mostly it takes one page.
        for (&logical, page) in logical.iter().zip(page.0..) {
            self.table.assign(logical, Ppa(page));
        }
        let pages = logical.len() as u32;
        self.blocks.add_valid(if P::POOLED { self.blocks.place(block).die } else { die }, pages);
        self.leave_empty(die, stream, pages);
        let is_full = self.fill(die, stream, pages);
        self.program(media, page, parts, stream, cause);
        if is_full {
            self.summarise(media, page, stream);
        }
    }

    /// Opens a block for the next page of a stream whose block is full, collecting first where erased blocks are short.
    /// A separate function, to keep the path of most pages short.
    #[inline(never)]
    fn make_room<M: Media>(&mut self, media: &mut M, lane: u32, stream: usize) {
        // Copying a victim may already have opened a block of the stream.
        while self.blocks.needs_block(lane, stream) {
            let collected = match self.separation.victim_at_limit(self.blocks.counts(), lane) {
                Some(victim) => self.collect_entry(media, victim),
                None => self.is_short(lane) && self.collect_victim(media, lane),
            };
            if !collected {
                return self.open_block(media, lane, stream);
            }
        }
    }

    /// The next page of a stream, in a newly opened block if necessary.
    #[inline(always)]
    pub(super) fn next_page<M: Media>(&mut self, media: &mut M, lane: u32, stream: usize) -> (BlockId, u32) {
        if self.blocks.needs_block(lane, stream) {
            self.open_block(media, lane, stream);
        }
        self.blocks.next_page(lane, stream)
    }

    fn open_block<M: Media>(&mut self, media: &mut M, lane: u32, stream: usize) {
        let die = if P::POOLED { self.blocks.die_to_open(stream) } else { lane };
        let mode = if P::MODES { self.mode_to_open(die, stream) } else { CellMode::Native };
        if let Some(packing) = self.separation.packing() {
            let lanes = self.blocks.lanes();
            self.blocks.bring_forward(die, |block| packing.is_of_lane(block, lane, lanes));
        }
        let (block, erased_in) = self.blocks.open(die, lane, stream, mode);
        if let Some(mode) = erased_in {
            self.erase_block(media, block, mode);
        }
        self.separation.opened(self.blocks.entry(block), lane, stream);
    }

    /// The mode in which a stream opens a block: the stream's own mode if there is room for it among the valid pages.
    /// The last erased block is opened in native mode, because it must have room for all pages of a victim.
    fn mode_to_open(&self, die: u32, stream: usize) -> CellMode {
        let kept = if P::POOLED { self.blocks.victims().max(1) } else { 1 };
        let can_be_slc = stream + 1 < N && self.erased(die) > kept && self.blocks.has_room_for_slc(die);
        if can_be_slc { self.separation.mode(stream) } else { CellMode::Native }
    }

    /// Marks the next `pages` pages of a stream's open block as filled. Returns whether the block is full.
    #[inline(always)]
    pub(super) fn fill(&mut self, die: u32, stream: usize, pages: u32) -> bool {
        let sealed = self.blocks.fill(die, stream, pages);
        if let Some(block) = sealed {
            self.separation.sealed(self.blocks.entry(block));
        }
        sealed.is_some()
    }

    /// [`Space::write`](crate::region::Space::write) if victims are collected in steps. A separate function, to keep
    /// the other paths short.
    #[inline(never)]
    pub(super) fn write_in_steps<M: Media>(
        &mut self,
        media: &mut M,
        stream: usize,
        logical: u32,
        parts: &[Part<M::Data>],
        cause: Cause,
    ) {
        let die = self.blocks.next_die_in_stripes(self.table.geometry().stripe_pages);
        self.append(media, (die, stream), &[logical], parts, cause);
        self.collect_step(media, die);
    }

    /// [`Space::write`](crate::region::Space::write) if dies are pooled, of a page or of those that share a page of the
    /// media.
    pub(super) fn write_pooled<M: Media>(
        &mut self,
        media: &mut M,
        stream: usize,
        logical: &[u32],
        parts: &[Part<M::Data>],
        cause: Cause,
    ) {
        let in_turn = || self.blocks.next_lane(self.table.geometry().stripe_pages);
        let lane = self.separation.lane(logical[0]).unwrap_or_else(in_turn);
        while self.blocks.free_in_pool() < self.blocks.victims() {
            // The room that the victim needs may be in the block that this page would take.
            self.collect_victim(media, 0);
        }
        self.append(media, (lane, stream), logical, parts, cause);
        if let Some(page) = self.table.lookup(logical[0]).filter(|_| !self.steps.is_empty()) {
            // Dies with victims take turns in the same order as the pages of a block.
            let die = self.table.geometry().page_of(page) % self.blocks.dies();
            self.collect_step(media, die);
        }
    }

    /// Programs the summary of a block that its data page `last` has filled, if the log keeps summaries.
    #[cold]
    pub(super) fn summarise<M: Media>(&mut self, media: &mut M, last: Ppa, stream: usize) {
        if self.blocks.data_pages() < self.table.geometry().pages_per_block {
            self.program(media, Ppa(last.0 + 1), &[], stream, Cause::Meta);
        }
    }
}
