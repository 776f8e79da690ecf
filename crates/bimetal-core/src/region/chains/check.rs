//! The invariants of block chains.

use super::{Chains, LISTS, NONE, UNLISTED};
use crate::media::CellMode;
use crate::units::Ppa;

impl Chains {
    /// Checks that maps, chains, spare blocks and victim lists agree.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        self.check_numbers()?;
        self.check_lists()?;
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
        Ok(())
    }

    /// Checks that all referenced blocks and pages exist.
    fn check_numbers(&self) -> Result<(), String> {
        let is_block = |block: u32| block == NONE || (block as usize) < self.blocks.len();
        let is_owner = |owner: u32| owner == NONE || owner < self.logical_blocks();
        if !self.blocks.iter().all(|block| is_block(block.next) && is_owner(block.owner)) {
            return Err("a block is followed or owned by one that does not exist".into());
        }
        if !self.chains.iter().all(|chain| is_block(chain.first) && is_block(chain.last)) {
            return Err("a chain has blocks that do not exist".into());
        }
        match self.map.iter().find(|&&ppa| ppa != Ppa::NONE && !self.geometry.has_page(ppa)) {
            Some(ppa) => Err(format!("a logical page is said to be at {ppa:?}, which is no page")),
            None => Ok(()),
        }
    }

    /// Checks that each chain and each spare block is in the correct list.
    fn check_lists(&self) -> Result<(), String> {
        self.victims.check()?;
        self.spare.check()?;
        for list in 0..LISTS {
            if self.victims.front(list).is_some() != (self.listed >> list & 1 == 1) {
                return Err(format!("victim list {list} has members and is not marked, or the reverse"));
            }
            if self.victims.iter(list).any(|chain| usize::from(self.chains[chain as usize].list) != list) {
                return Err(format!("victim list {list} has a chain of another"));
            }
        }
        for mode in [CellMode::Native, CellMode::Slc] {
            if self.spare.iter(mode as usize).any(|block| self.blocks[block as usize].mode != mode) {
                return Err(format!("a block not erased as {mode:?} is among those that are"));
            }
        }
        Ok(())
    }

    fn check_chain(&self, logical_block: u32, owned: &mut [bool]) -> Result<(), String> {
        let state = &self.chains[logical_block as usize];
        let (mut blocks, mut last) = (0, NONE);
        for (block, programmed, _) in self.chain(logical_block) {
            if std::mem::replace(&mut owned[block.index()], true) || self.blocks[block.index()].owner != logical_block {
                return Err(format!("block {} is in the chain of {logical_block} and not its own", block.0));
            }
            if self.block_mode(block) != state.mode || programmed > self.pages(state.mode) {
                return Err(format!("block {} has {programmed} pages programmed, or is in another mode", block.0));
            }
            (blocks, last) = (blocks + 1, block.0);
        }
        if blocks > 0 && last != state.last {
            return Err(format!("the chain of {logical_block} ends with {last} and not with {}", state.last));
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
