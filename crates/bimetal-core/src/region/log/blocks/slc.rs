//! Blocks in SLC mode, of which there are only as many as leave room for the valid pages.

use super::Blocks;
use crate::media::CellMode;
use crate::save::Queue;
use crate::units::BlockId;

impl<const N: usize> Blocks<N> {
    /// Allows blocks in SLC mode, with `slc_pages` pages each. Their number is limited: they may reduce the room for
    /// valid pages by at most `room_pages` pages.
    pub fn allow_slc(&mut self, slc_pages: u32, room_pages: u64) {
        debug_assert!(0 < slc_pages && slc_pages <= self.data_pages);
        self.slc_pages = slc_pages;
        self.slc = vec![0; self.places.len()].into();
        // Queues of this capacity never grow while a device serves.
        self.dies.iter_mut().for_each(|die| die.free[1] = Queue::with_capacity(die.end - die.first));
        let lacking = u64::from((self.data_pages - slc_pages).max(1));
        self.slc_blocks_max = (room_pages / lacking).min(self.places.len() as u64) as u32;
    }

    /// Whether a block of a die can be opened in SLC mode.
    pub fn has_room_for_slc(&self, die: u32) -> bool {
        let space = &self.dies[die as usize];
        self.slc_blocks < self.slc_blocks_max && space.valid_pages + self.lacking() <= space.valid_limit
    }

    /// Number of pages that a block has less in SLC mode than in native mode.
    pub(super) fn lacking(&self) -> u32 {
        self.data_pages - self.slc_pages
    }

    /// Number of blocks opened in SLC mode and not erased since.
    pub fn slc_blocks(&self) -> u32 {
        self.slc_blocks
    }

    /// The mode of a block that holds data or held data.
    pub fn mode(&self, block: BlockId) -> CellMode {
        match self.slc.get(block.index()) {
            Some(1) => CellMode::Slc,
            _ => CellMode::Native,
        }
    }
}
