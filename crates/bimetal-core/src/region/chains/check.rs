//! The invariants of block chains.

use super::{Chains, LISTS, NONE, UNLISTED};

impl Chains {
    /// Checks that maps, chains, spare blocks and victim lists agree.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<(), String> {
        let mut owned = vec![false; self.blocks.len()];
        for logical_block in 0..self.logical_blocks() {
            self.check_chain(logical_block, &mut owned)?;
        }
        for (block, &owned) in owned.iter().enumerate() {
            let spare = self.spare.contains(block as u32);
            if owned == spare || spare != (self.blocks[block].owner == NONE) {
                return Err(format!("block {block} is in a chain: {owned}, spare: {spare}"));
            }
            if spare && self.blocks[block].programmed > 0 {
                return Err(format!("spare block {block} is programmed"));
            }
        }
        let spare = owned.iter().filter(|&&owned| !owned).count();
        if spare != self.spare_blocks as usize {
            return Err(format!("{spare} spare blocks and {} counted", self.spare_blocks));
        }
        let extra: u32 = self.chains.iter().map(|chain| self.extra_of(chain)).sum();
        if extra != self.extra_blocks {
            return Err(format!("{extra} blocks are extra and {} counted", self.extra_blocks));
        }
        for list in 0..LISTS {
            if self.victims.front(list).is_some() != (self.listed >> list & 1 == 1) {
                return Err(format!("victim list {list} has members and is not marked, or the reverse"));
            }
        }
        Ok(())
    }

    fn check_chain(&self, logical_block: u32, owned: &mut [bool]) -> Result<(), String> {
        let state = &self.chains[logical_block as usize];
        let mut blocks = 0;
        for (block, programmed, _) in self.chain(logical_block) {
            if std::mem::replace(&mut owned[block.index()], true) || self.blocks[block.index()].owner != logical_block {
                return Err(format!("block {} is in the chain of {logical_block} and not its own", block.0));
            }
            if programmed > self.pages(self.block_mode(block)) {
                return Err(format!("block {} has {programmed} pages programmed", block.0));
            }
            blocks += 1;
        }
        if blocks != state.blocks || state.data_blocks > blocks || self.list_of(logical_block) != state.list {
            return Err(format!("logical block {logical_block} has {blocks} blocks and the state {state:?}"));
        }
        if self.victims.contains(logical_block) != (state.list != UNLISTED) {
            return Err(format!("logical block {logical_block} and the victim lists disagree"));
        }
        for offset in 0..self.pages[0] {
            let Some(ppa) = self.lookup(self.first_page(logical_block) + offset) else { continue };
            let (block, page) = (self.geometry.block_of(ppa), self.geometry.page_of(ppa));
            let state = &self.blocks[block.index()];
            if state.owner != logical_block || page >= state.programmed {
                return Err(format!("offset {offset} of logical block {logical_block} is not in its chain"));
            }
            let data = self.chain(logical_block).position(|(member, _, is_data)| is_data && member == block);
            if data.is_some_and(|position| position as u32 * self.pages(state.mode) + page != offset) {
                return Err(format!(
                    "offset {offset} of logical block {logical_block} is out of place in the data block"
                ));
            }
        }
        Ok(())
    }
}
