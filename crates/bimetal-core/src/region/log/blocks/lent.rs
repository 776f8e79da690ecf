//! Lent blocks, which another user holds: the SLC-mode cache in front of a log, or metadata.

use super::Blocks;
use crate::media::CellMode;
use crate::save::Queue;
use crate::units::BlockId;

impl<const N: usize> Blocks<N> {
    /// Whether a die's valid pages would still fit into its blocks after lending one more.
    #[inline]
    pub fn can_lend(&self, die: u32) -> bool {
        let die = &self.dies[die as usize];
        die.valid_pages + self.data_pages <= die.valid_limit
    }

    /// Lends an erased block of a die that can spare one. The block takes no page until it is given back.
    pub fn lend(&mut self, die: u32) -> Option<BlockId> {
        debug_assert!(self.can_lend(die));
        let space = &mut self.dies[die as usize];
        let block = space.free[CellMode::Native as usize].pop_front()?;
        space.valid_limit -= self.data_pages;
        Some(BlockId(block))
    }

    /// Takes back a lent block, which has been erased.
    pub fn give_back(&mut self, block: BlockId) {
        let die = &mut self.dies[self.places[block.index()].die as usize];
        die.valid_limit += self.data_pages;
        die.free[CellMode::Native as usize].push_back(block.0);
    }

    /// The lent blocks: neither erased nor open nor sealed.
    pub fn lent(&self) -> impl Iterator<Item = BlockId> {
        let mut is_ours: Vec<bool> =
            self.places.iter().map(|place| self.counts.is_sealed(place.entry as usize)).collect();
        let open = self.open_blocks().map(|(_, open)| open.block);
        let victims = self.dies.iter().filter_map(|die| die.victim).map(|victim| victim.block);
        let erased = self.dies.iter().flat_map(|die| &die.free).flat_map(Queue::iter).chain(victims);
        for block in open.chain(erased) {
            if let Some(is_ours) = is_ours.get_mut(block as usize) {
                *is_ours = true;
            }
        }
        (0..).zip(is_ours).filter(|&(_, is_ours)| !is_ours).map(|(block, _)| BlockId(block))
    }
}
