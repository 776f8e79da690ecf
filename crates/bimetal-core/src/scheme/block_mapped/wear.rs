//! Dual-pool wear levelling of a block-mapped region: [`DualPool`] chooses the blocks, this module moves the data.
//!
//! [`DualPool`]: crate::part::dual_pool::DualPool

use super::BlockMapped;
use crate::media::{Cause, CellMode, Media, Stream};
use crate::part::dual_pool::Pool;
use crate::units::BlockId;

impl BlockMapped {
    /// Dual-pool wear levelling after one erase.
    pub(super) fn level<M: Media>(&mut self, media: &mut M) {
        if let Some((worn, young)) = self.pool.due() {
            self.swap(media, BlockId(worn), BlockId(young));
        }
        self.pool.resize();
    }

    /// Moves cold data from the least worn cold block into the most worn hot one.
    fn swap<M: Media>(&mut self, media: &mut M, worn: BlockId, young: BlockId) {
        if self.chains.is_spare(young) {
            // The cold block has no data and waits to be used.
            self.pool.change(young.0, Pool::Hot);
            return;
        }
        if !self.chains.is_spare(worn) {
            let Some(free) = self.chains.next_spare(self.chains.block_mode(worn)) else { return };
            self.relocate(media, worn, free);
        }
        self.relocate(media, young, worn);
        self.pool.change(worn.0, Pool::Cold);
        self.pool.change(young.0, Pool::Hot);
        self.counts.wear_swaps += 1;
    }

    /// Puts the erased block `to` into the place of `from` in its chain. A data block keeps its offsets; of a log block
    /// only the latest copies move.
    fn relocate<M: Media>(&mut self, media: &mut M, from: BlockId, to: BlockId) {
        let Some(member) = self.chains.member(from) else { return };
        let mode = self.chains.block_mode(from);
        self.claim_block(media, to, member.owner, mode, Cause::WearLevel);
        let first = self.chains.first_page(member.owner);
        let geometry = *self.chains.geometry();
        if member.is_data {
            let first = first + member.position * self.chains.pages(mode);
            for page in 0..self.chains.programmed(from) {
                let (old, new) = (geometry.ppa(from, page), geometry.ppa(to, page));
                if self.chains.lookup(first + page) == Some(old) {
                    media.copy(self.region, old, new, Stream::ONLY, Cause::WearLevel);
                    self.chains.set(first + page, Some(new));
                } else {
                    media.program(self.region, new, &[], Stream::ONLY, Cause::WearLevel);
                }
                self.chains.note_program(new, page);
            }
        } else {
            let mut page = 0;
            for offset in 0..self.chains.pages(CellMode::Native) {
                let Some(old) = self.chains.lookup(first + offset) else { continue };
                if geometry.block_of(old) == from {
                    let new = geometry.ppa(to, page);
                    media.copy(self.region, old, new, Stream::ONLY, Cause::WearLevel);
                    self.chains.set(first + offset, Some(new));
                    self.chains.note_program(new, offset);
                    page += 1;
                }
            }
        }
        self.chains.replace(from, member, to);
        self.erase(media, from, mode, Cause::WearLevel);
        self.chains.release(from);
    }
}
