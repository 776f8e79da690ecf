//! The contents of a log's pages: each page holds several units, each in its own slot.
//!
//! A unit is what an entry of the log's map stands for: a disk sector or a mapping unit. A slot's number is the number
//! of its page, shifted, plus its position in the page. Pages are numbered in the cell mode of the log's blocks, so
//! that the table for blocks with one bit per cell is no larger than necessary.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{LastRead, read_page};
use crate::media::{Cause, Media};
use crate::save::Table;
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// An invalid slot. Zeros take memory only when they are overwritten, and much of a table may never be written.
const INVALID: u32 = 0;

/// The units of all slots.
#[derive(Debug, Serialize, Deserialize)]
pub struct SlotTable {
    #[serde(with = "crate::save::fixed")]
    geometry: Geometry,
    #[serde(with = "crate::save::fixed")]
    pages_per_block: u32,
    #[serde(with = "crate::save::fixed")]
    page_bits: u32,
    #[serde(with = "crate::save::fixed")]
    slots: u32,
    #[serde(with = "crate::save::fixed")]
    slot_bits: u32,
    /// The unit of a valid slot, plus 1.
    entries: Table<u32>,
}

impl SlotTable {
    /// A table of invalid slots, with `slots` slots per page and `pages_per_block` pages per block.
    ///
    /// # Errors
    /// The slot numbers do not fit in 32 bits.
    pub fn new(geometry: Geometry, pages_per_block: u32, slots: u32) -> Result<Self, String> {
        let page_bits = pages_per_block.next_power_of_two().trailing_zeros();
        let slot_bits = slots.next_power_of_two().trailing_zeros();
        let count = u64::from(geometry.blocks) << (page_bits + slot_bits);
        if count >= 1 << 31 {
            return Err(format!(
                "{} blocks of {pages_per_block} pages with {slots} units each exceed the 2^31 units of a log",
                geometry.blocks
            ));
        }
        Ok(Self {
            geometry,
            pages_per_block,
            page_bits,
            slots,
            slot_bits,
            entries: vec![INVALID; count as usize].into(),
        })
    }

    /// The region's geometry in blocks and pages.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Pages per block in the log's cell mode.
    #[inline]
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Units per page.
    #[inline]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// The largest slot number plus 1.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no slot.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first slot of a page.
    #[inline]
    pub fn first_slot(&self, page: Ppa) -> u32 {
        let (block, page) = (self.geometry.block_of(page), self.geometry.page_of(page));
        (block.0 << self.page_bits | page) << self.slot_bits
    }

    /// The range from the first slot of a block to its last. Some numbers in the range may not be slots.
    #[inline]
    pub fn slots_of(&self, block: BlockId) -> Range<u32> {
        let slot = |page| self.first_slot(self.geometry.ppa(block, page));
        slot(0)..slot(self.pages_per_block - 1) + self.slots
    }

    /// The page of a slot, and its position in it.
    #[inline]
    pub fn page_of(&self, slot: u32) -> (Ppa, u32) {
        let page = slot >> self.slot_bits;
        let in_block = page & ((1 << self.page_bits) - 1);
        (self.geometry.ppa(BlockId(page >> self.page_bits), in_block), slot & ((1 << self.slot_bits) - 1))
    }

    /// Reads the page of a slot of `region`, unless it is the page last read. Returns the page's data and the slot's
    /// position in the page.
    #[inline(always)]
    pub fn read<M: Media>(
        &self,
        media: &mut M,
        region: RegionId,
        slot: u32,
        cause: Cause,
        last: &mut LastRead<M::Data>,
    ) -> (M::Data, u32) {
        let (page, position) = self.page_of(slot);
        (read_page(media, region, page, cause, last), position)
    }

    /// The block of a slot.
    #[inline]
    pub fn block_of(&self, slot: u32) -> BlockId {
        BlockId(slot >> (self.slot_bits + self.page_bits))
    }

    /// The unit in a slot, or `None` if the slot is invalid.
    #[inline]
    pub fn unit(&self, slot: u32) -> Option<u32> {
        self.entries[slot as usize].checked_sub(1)
    }

    /// Whether a slot is the first of a block.
    #[inline]
    pub fn is_first_of_block(&self, slot: u32) -> bool {
        slot.is_multiple_of(1 << (self.page_bits + self.slot_bits))
    }

    /// Whether any slot of a page is valid.
    #[inline]
    pub fn is_valid(&self, page: Ppa) -> bool {
        let first = self.first_slot(page) as usize;
        self.entries[first..first + self.slots as usize].iter().any(|&entry| entry != INVALID)
    }

    /// Records that a slot holds `unit`.
    #[inline]
    pub fn set(&mut self, slot: u32, unit: u32) {
        self.entries[slot as usize] = unit + 1;
    }

    /// Marks a slot as invalid.
    #[inline]
    pub fn clear(&mut self, slot: u32) {
        self.entries[slot as usize] = INVALID;
    }

    /// Prefetches a slot's entry into the processor's cache.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        prefetch_index::prefetch_index(&self.entries, slot as usize);
    }

    /// Checks that valid slots are in programmed pages, of which each block has `programmed` many; returns their number.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self, written: impl Iterator<Item = (BlockId, u32)>) -> Result<u32, String> {
        let mut programmed = vec![0; self.geometry.blocks as usize];
        for (block, pages) in written {
            let Some(programmed) = programmed.get_mut(block.index()).filter(|_| pages <= self.pages_per_block) else {
                return Err(format!("the log has no block {} of {pages} programmed pages", block.0));
            };
            *programmed = pages;
        }
        let mut valid = 0;
        for slot in 0..self.entries.len() as u32 {
            let Some(unit) = self.unit(slot) else { continue };
            let (page, position) = self.page_of(slot);
            let block = self.geometry.block_of(page);
            if !self.geometry.has_page(page) {
                return Err(format!("slot {slot} with unit {unit} is none"));
            }
            if position >= self.slots || self.geometry.page_of(page) >= programmed[block.index()] {
                return Err(format!("unit {unit} is in a page of block {} that is not in the log", block.0));
            }
            valid += 1;
        }
        Ok(valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_know_their_page_and_their_unit() {
        let geometry = Geometry::new(1536, 2, 4, 1).unwrap();
        let mut table = SlotTable::new(geometry, 2, 3).unwrap();
        let page = geometry.ppa(BlockId(0), 0);
        let slot = table.first_slot(page) + 2;
        table.set(slot, 77);
        assert!(table.is_first_of_block(slot - 2) && !table.is_first_of_block(slot));
        assert_eq!((table.page_of(slot), table.unit(slot), table.is_valid(page)), ((page, 2), Some(77), true));
        assert_eq!(table.check([(BlockId(0), 1)].into_iter()), Ok(1));
        table.clear(slot);
        assert!(!table.is_valid(page));
        table.set(table.first_slot(geometry.ppa(BlockId(1), 0)), 5);
        assert!(table.check([(BlockId(0), 1)].into_iter()).is_err(), "block 1 is not written yet");
    }

    #[test]
    fn blocks_with_one_bit_per_cell_take_a_smaller_table() {
        let geometry = Geometry::new(16384, 1536, 10, 1).unwrap();
        let table = SlotTable::new(geometry, 384, 4).unwrap();
        assert_eq!(table.len(), 10 * 512 * 4);
        let page = geometry.ppa(BlockId(7), 383);
        let slot = table.first_slot(page) + 3;
        assert_eq!((table.page_of(slot), table.block_of(slot)), ((page, 3), BlockId(7)));
        assert_eq!(table.slots_of(BlockId(7)), 7 * 2048..slot + 1);
    }
}
