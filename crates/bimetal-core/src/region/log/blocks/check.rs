//! The invariants of a log's blocks.

use super::{Blocks, Open};
use crate::media::CellMode;
use crate::save::Queue;
use crate::units::BlockId;

impl<const N: usize> Blocks<N> {
    /// Checks that the counts agree with `valid`, the number of valid pages of each block, and that each block is
    /// erased, open, sealed, collected or lent. `reserved` blocks of each die hold no valid page at rest; `None` means
    /// that the dies are pooled. `is_written_beyond` returns whether a block has a valid page at or after a given page.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(
        &self,
        valid: &[u32],
        reserved: Option<u32>,
        is_written_beyond: impl Fn(BlockId, u32) -> bool,
    ) -> Result<(), String> {
        for (block, &counted) in valid.iter().enumerate() {
            let kept = self.valid_in(BlockId(block as u32));
            if counted != kept {
                return Err(format!("block {block} has {counted} valid pages and counts {kept}"));
            }
        }
        self.counts.check()?;
        self.check_unsealed(reserved.is_none(), is_written_beyond)?;
        let lent: Vec<BlockId> = self.lent().collect();
        for (die, space) in self.dies.iter().enumerate() {
            let counted: u32 = valid.iter().skip(die).step_by(self.dies.len()).sum();
            if counted != space.valid_pages || counted > space.valid_limit {
                return Err(format!("die {die} has {counted} valid pages and counts {}", space.valid_pages));
            }
            let lent = lent.iter().filter(|&&block| self.places[block.index()].die as usize == die);
            let (lent, held) = lent.fold((0, 0), |(lent, held), block| (lent + 1, held + valid[block.index()]));
            let most = ((space.end - space.first) as u32).saturating_sub(reserved.unwrap_or(0)) * self.data_pages;
            let slc: u32 = self.slc.iter().skip(die).step_by(self.dies.len()).map(|&slc| u32::from(slc)).sum();
            if held > 0 || lent * self.data_pages + slc * self.lacking() + space.valid_limit != most {
                return Err(format!(
                    "{lent} blocks of die {die} are lent, with {held} valid pages, and {slc} in SLC mode, or not as many"
                ));
            }
            if reserved.is_some() && space.erased() == 0 && space.victim.is_none() {
                return Err(format!("die {die} has no erased block"));
            }
        }
        self.check_slc()?;
        if reserved.is_none() && self.free_in_pool() == 0 && self.victims() == 0 {
            return Err("there is no erased block".into());
        }
        match self.lanes.get(self.next_die as usize) {
            Some(_) => Ok(()),
            None => Err(format!("lane {} is next of {}", self.next_die, self.lanes.len())),
        }
    }

    /// Checks that erased and open blocks and victims are not sealed, and that each block is in exactly one place, on
    /// its own die unless the dies are pooled.
    fn check_unsealed(&self, is_pooled: bool, is_written_beyond: impl Fn(BlockId, u32) -> bool) -> Result<(), String> {
        let mut is_used = vec![false; self.entries()];
        let mut take = |block: u32, die: Option<u32>| {
            let place = self.places.get(block as usize).filter(|place| die.is_none_or(|die| place.die == die));
            let entry = place.map(|place| place.entry as usize).filter(|&entry| !self.counts.is_sealed(entry));
            entry.is_some_and(|entry| !std::mem::replace(&mut is_used[entry], true))
        };
        for (die, space) in (0..).zip(&self.dies) {
            if let Some(Open { block, page, end }) = space.victim
                && (!take(block, Some(die)) || page > end || end != self.data_pages)
            {
                return Err(format!("block {block} of die {die} cannot be the one that is collected"));
            }
        }
        let open = self.open_blocks().map(|(lane, open)| (*open, (!is_pooled).then_some(lane)));
        let erased = (0..).zip(&self.dies).flat_map(|(die, space)| {
            let blocks = space.free.iter().flat_map(Queue::iter);
            blocks.map(move |block| (Open { block, page: 0, end: self.pages_of(block) }, Some(die)))
        });
        for (Open { block, page, end }, die) in open.chain(erased) {
            if !take(block, die) || page > end || end != self.pages_of(block) {
                return Err(format!("block {block} is not a block of its die to be written, or twice"));
            }
            if is_written_beyond(BlockId(block), page) {
                return Err(format!("block {block} has a valid page that is not yet written"));
            }
        }
        Ok(())
    }

    /// Data pages of a block in its mode.
    fn pages_of(&self, block: u32) -> u32 {
        match self.mode(BlockId(block)) {
            CellMode::Native => self.data_pages,
            CellMode::Slc => self.slc_pages,
        }
    }

    /// Checks that the number of blocks in SLC mode is as counted, and that none holds more pages than it has.
    fn check_slc(&self) -> Result<(), String> {
        if !self.slc.is_empty() && self.slc.len() != self.places.len() || self.slc.iter().any(|&slc| slc > 1) {
            return Err("blocks have modes that there are not".into());
        }
        let in_slc = (0..self.slc.len() as u32).filter(|&block| self.slc[block as usize] == 1);
        let (blocks, valid) =
            in_slc.fold((0, 0), |(blocks, valid), block| (blocks + 1, self.valid_in(BlockId(block)).max(valid)));
        let erased = self.dies.iter().flat_map(|die| &die.free).flat_map(Queue::iter);
        if blocks != self.slc_blocks || blocks > self.slc_blocks_max || valid > self.slc_pages {
            return Err(format!(
                "{blocks} blocks of up to {valid} valid pages are in SLC mode, {} are counted",
                self.slc_blocks
            ));
        }
        match erased.into_iter().find(|&block| self.mode(BlockId(block)) == CellMode::Slc) {
            Some(block) => Err(format!("block {block} is erased and takes room for its SLC mode")),
            None => Ok(()),
        }
    }
}
