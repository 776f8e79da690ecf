//! Places of a region's blocks in its file. Each block has a slot, which it gets with its first program after an erase.
//!
//! An erase parks the slot. Until the next commit is durable, a crash leads back to a state that still has its data
//! there. The order in which slots are assigned depends only on the operations. So a replay gives the same map, and the
//! map is only saved in checkpoints.

use std::collections::VecDeque;
use std::io;

use bimetal_core::save::Table;

use super::state::{Reader, Writer};

const NONE: u32 = u32::MAX;

/// The slots of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Slot of each block.
    of_block: Table<u32>,
    /// Free slots, as a stack. The space of the lowest `punched` of them has been released to the file system.
    free: Vec<u32>,
    punched: u32,
    /// Slots whose block was erased since the last durable commit, and the number of them that each commit in progress
    /// will free, oldest first.
    parked: Vec<u32>,
    leaving: VecDeque<u32>,
    /// Number of slots ever used.
    total: u32,
    /// Number of further slots for which space was allocated since the store was opened.
    ahead: u32,
}

impl Slots {
    /// A map in which no block has data.
    pub fn new(blocks: u32) -> Self {
        let room = blocks as usize;
        Self {
            of_block: vec![NONE; room].into(),
            free: Vec::with_capacity(room),
            punched: 0,
            parked: Vec::with_capacity(room),
            leaving: VecDeque::new(),
            total: 0,
            ahead: 0,
        }
    }

    /// The slot of a block, if it has one.
    #[inline]
    pub fn of(&self, block: usize) -> Option<u32> {
        Some(self.of_block[block]).filter(|&slot| slot != NONE)
    }

    /// The last slot with a block, if any has one.
    pub fn last_in_use(&self) -> Option<u32> {
        self.of_block.iter().copied().filter(|&slot| slot != NONE).max()
    }

    /// Gives a block a slot.
    pub fn attach(&mut self, block: usize) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.total += 1;
            self.ahead = self.ahead.saturating_sub(1);
            self.total - 1
        });
        self.punched = self.punched.min(self.free.len() as u32);
        self.of_block[block] = slot;
        slot
    }

    /// Parks the slot of a block.
    pub fn detach(&mut self, block: usize) {
        let slot = std::mem::replace(&mut self.of_block[block], NONE);
        if slot != NONE {
            self.parked.push(slot);
        }
    }

    /// Number of slots that wait for the next commit.
    pub fn parked(&self) -> u32 {
        self.parked.len() as u32
    }

    /// Begins a commit. The parked slots become free when it is durable.
    pub fn leave(&mut self) {
        let before: u32 = self.leaving.iter().sum();
        self.leaving.push_back(self.parked() - before);
    }

    /// Whether a commit has begun that is not durable.
    pub fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// The oldest commit in progress is durable: the slots that were parked when it began are free. Calls `punch` with
    /// the slots that are not needed soon, which are all but the last `kept` freed ones.
    pub fn release(&mut self, kept: u32, mut punch: impl FnMut(u32)) {
        let freed = self.leaving.pop_front().unwrap_or(0);
        self.free.extend(self.parked.drain(..freed as usize));
        while self.free.len() as u32 - self.punched > kept {
            punch(self.free[self.punched as usize]);
            self.punched += 1;
        }
    }

    /// The free slots.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// The free slots whose space has been released.
    pub fn released(&self) -> &[u32] {
        &self.free[..self.punched as usize]
    }

    /// Number of slots that are free or were never used, of `most` in the file.
    pub fn left(&self, most: u32) -> u32 {
        self.free.len() as u32 + most.saturating_sub(self.total)
    }

    /// Number of slots that have space in the file and are the next to be assigned.
    #[inline]
    pub fn ready(&self) -> u32 {
        let unpunched = self.free.len() as u32 - self.punched;
        // Released slots are assigned before slots that were never used.
        if self.punched > 0 { unpunched } else { unpunched + self.ahead }
    }

    /// Prepares `wanted` slots. Calls `take_room` with each that needs space.
    ///
    /// # Errors
    /// The errors of `take_room`. Slots that got space are ready.
    pub fn make_ready(&mut self, wanted: u32, mut take_room: impl FnMut(u32) -> io::Result<()>) -> io::Result<()> {
        while self.ready() < wanted {
            if self.punched > 0 {
                take_room(self.free[self.punched as usize - 1])?;
                self.punched -= 1;
            } else {
                take_room(self.total + self.ahead)?;
                self.ahead += 1;
            }
        }
        Ok(())
    }

    /// Checks that it is a valid map of `blocks` blocks. Files may contain anything.
    ///
    /// # Errors
    /// The inconsistency.
    fn check(&self, blocks: u32) -> Result<(), String> {
        if self.of_block.len() != blocks as usize {
            return Err(format!("{} blocks have slots instead of {blocks}", self.of_block.len()));
        }
        let in_use = self.of_block.iter().filter(|&&slot| slot != NONE);
        let mut slots: Vec<u32> = in_use.chain(&self.free).chain(&self.parked).copied().collect();
        slots.sort_unstable();
        if slots.len() as u64 != u64::from(self.total) || slots.iter().zip(0..).any(|(&slot, number)| slot != number) {
            return Err("a slot is in two places, or in none".into());
        }
        if self.punched as usize > self.free.len() {
            return Err("more slots were given back than are free".into());
        }
        Ok(())
    }

    /// Appends the map to a checkpoint.
    pub fn save(&self, out: &mut Writer<'_>) {
        out.table(&self.of_block);
        out.list(&self.free);
        out.list(&self.parked);
        out.u32(self.punched);
        out.u32(self.total);
    }

    /// Reads the map of `blocks` blocks from a checkpoint.
    ///
    /// # Errors
    /// The map is invalid.
    pub fn restore(state: &mut Reader<'_>, blocks: u32) -> Result<Self, String> {
        let mut slots = Self::new(blocks);
        state.table(&mut slots.of_block)?;
        state.list(&mut slots.free)?;
        state.list(&mut slots.parked)?;
        slots.punched = state.u32()?;
        slots.total = state.u32()?;
        slots.check(blocks)?;
        Ok(slots)
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.of_block.memory_bytes() + (self.free.capacity() + self.parked.capacity()) * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_only_after_a_commit() {
        let mut slots = Slots::new(4);
        assert_eq!((slots.attach(0), slots.attach(1)), (0, 1));
        slots.detach(0);
        slots.detach(3);
        assert_eq!((slots.of(0), slots.parked()), (None, 1));
        assert_eq!(slots.attach(2), 2, "slot 0 still holds what a crash leads back to");
        slots.leave();
        slots.detach(1);
        slots.release(9, |_| panic!("nothing is to be punched"));
        assert_eq!((slots.attach(0), slots.total, slots.parked()), (0, 3, 1));
        assert_eq!(slots.attach(3), 3, "slot 1 waits for the next commit");
        slots.check(4).unwrap();
    }

    #[test]
    fn commits_under_way_free_their_slots_one_after_the_other() {
        let mut slots = Slots::new(4);
        let release = |slots: &mut Slots| slots.release(9, |_| panic!("nothing is to be punched"));
        (0..3).for_each(|block| assert_eq!(slots.attach(block), block as u32));
        for block in 0..3 {
            slots.detach(block);
            slots.leave();
        }
        assert_eq!(slots.attach(3), 3);
        release(&mut slots);
        assert_eq!((slots.attach(0), slots.attach(1), slots.parked()), (0, 4, 2));
        release(&mut slots);
        release(&mut slots);
        assert_eq!((slots.attach(2), slots.parked()), (2, 0));
        slots.check(4).unwrap();
        slots.detach(0);
        slots.leave();
        release(&mut slots);
        release(&mut slots);
        assert_eq!((slots.attach(0), slots.leaving.len()), (0, 0));
    }

    #[test]
    fn what_is_freed_beyond_the_reserve_is_given_back_once() {
        let mut slots = Slots::new(8);
        (0..8).for_each(|block| assert_eq!(slots.attach(block), block as u32));
        (0..6).for_each(|block| slots.detach(block));
        let mut punched = Vec::new();
        slots.leave();
        slots.release(2, |slot| punched.push(slot));
        assert_eq!(punched, [0, 1, 2, 3]);
        slots.release(2, |slot| punched.push(slot));
        assert_eq!(punched.len(), 4);
        // Slots with space are assigned first, then the released ones return into use.
        assert_eq!([0, 1, 2].map(|block| slots.attach(block)), [5, 4, 3]);
        slots.detach(0);
        slots.leave();
        slots.release(0, |slot| punched.push(slot));
        assert_eq!(punched, [0, 1, 2, 3, 5]);
        slots.check(8).unwrap();
    }
}
