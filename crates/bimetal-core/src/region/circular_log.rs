//! Flash as a circular log: written at the head, reclaimed at the tail, block after block (Chang 2010 §3.3).
//!
//! ```text
//!   erased    tail ............... head    erased
//!  |_______|#######|#######|#######|###___|_______|
//! ```
//!
//! Blocks are erased strictly in turn, so that their wear differs by one cycle at most. A page holds several units (disk
//! sectors); the log knows which unit each slot of a page holds, if it is still valid. At rest at least one erased block
//! is outside, and two while the head is being moved on, so that all of a tail block can be copied to the head.

use crate::units::{BlockId, Geometry, Ppa};

const NONE: u32 = u32::MAX;

/// The log's state.
#[derive(Debug)]
pub struct CircularLog {
    geometry: Geometry,
    /// Slots of a page; a slot's number is that of the page, shifted by `slot_bits`, and its position.
    slots: u32,
    slot_bits: u32,
    units: Vec<u32>,
    head: u32,
    /// Next page of the head block.
    head_page: u32,
    tail: u32,
}

impl CircularLog {
    /// An empty log over an erased region, with `slots` units in a page.
    ///
    /// # Errors
    /// A region with more slots than numbers.
    pub fn new(geometry: Geometry, slots: u32) -> Result<Self, String> {
        let slot_bits = slots.next_power_of_two().trailing_zeros();
        let count = geometry.page_slots() << slot_bits;
        if count >= 1 << 31 {
            return Err(format!("a fast region of {} blocks has more than 2^31 sectors", geometry.blocks));
        }
        Ok(Self { geometry, slots, slot_bits, units: vec![NONE; count], head: 0, head_page: 0, tail: 0 })
    }

    /// Blocks and pages.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Units of a page.
    #[inline]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// The first slot of a page.
    #[inline]
    pub fn first_slot(&self, page: Ppa) -> u32 {
        page.0 << self.slot_bits
    }

    /// The page of a slot, and its position in it.
    #[inline]
    pub fn page_of(&self, slot: u32) -> (Ppa, u32) {
        (Ppa(slot >> self.slot_bits), slot & ((1 << self.slot_bits) - 1))
    }

    /// The unit that a slot holds, if it is valid.
    #[inline]
    pub fn unit(&self, slot: u32) -> Option<u32> {
        let unit = self.units[slot as usize];
        (unit != NONE).then_some(unit)
    }

    /// Whether a page holds anything valid.
    #[inline]
    pub fn is_valid(&self, page: Ppa) -> bool {
        let first = self.first_slot(page) as usize;
        self.units[first..first + self.slots as usize].iter().any(|&unit| unit != NONE)
    }

    /// A slot holds a unit.
    #[inline]
    pub fn set(&mut self, slot: u32, unit: u32) {
        self.units[slot as usize] = unit;
    }

    /// What a slot holds is no longer valid.
    #[inline]
    pub fn clear(&mut self, slot: u32) {
        self.units[slot as usize] = NONE;
    }

    /// The block being written.
    #[inline]
    pub fn head(&self) -> BlockId {
        BlockId(self.head)
    }

    /// The block reclaimed next.
    #[inline]
    pub fn tail(&self) -> BlockId {
        BlockId(self.tail)
    }

    /// Blocks that the head is ahead of the tail.
    #[inline]
    pub fn distance(&self) -> u32 {
        if self.head >= self.tail { self.head - self.tail } else { self.head + self.geometry.blocks - self.tail }
    }

    /// Whether a block lies from tail to head.
    pub fn contains(&self, block: BlockId) -> bool {
        let behind =
            if self.head >= block.0 { self.head - block.0 } else { self.head + self.geometry.blocks - block.0 };
        behind <= self.distance()
    }

    /// Whether the head block has no free page.
    #[inline]
    pub fn head_full(&self) -> bool {
        self.head_page == self.geometry.pages_per_block
    }

    /// Takes the next page of the head block, which is not full.
    #[inline]
    pub fn next_page(&mut self) -> Ppa {
        let page = self.geometry.ppa(BlockId(self.head), self.head_page);
        self.head_page += 1;
        page
    }

    /// Goes on with the erased block after the head.
    pub fn advance(&mut self) {
        debug_assert!(self.head_full() && self.distance() + 1 < self.geometry.blocks);
        self.head = self.after(self.head);
        self.head_page = 0;
    }

    /// The tail block holds nothing valid and is erased.
    pub fn retire_tail(&mut self) {
        debug_assert_ne!(self.head, self.tail);
        self.tail = self.after(self.tail);
    }

    fn after(&self, block: u32) -> u32 {
        if block + 1 == self.geometry.blocks { 0 } else { block + 1 }
    }

    /// Checks that valid slots are in programmed pages between tail and head; returns their number.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<u32, String> {
        let mut valid = 0;
        for slot in 0..self.units.len() as u32 {
            let Some(unit) = self.unit(slot) else { continue };
            let (page, position) = self.page_of(slot);
            let block = self.geometry.block_of(page);
            let programmed = block.0 != self.head || self.geometry.page_of(page) < self.head_page;
            if position >= self.slots || !self.contains(block) || !programmed {
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
    fn head_and_tail_go_round() {
        let geometry = Geometry::new(1536, 2, 4, 1).unwrap();
        let mut log = CircularLog::new(geometry, 3).unwrap();
        let mut pages = Vec::new();
        for _ in 0..10 {
            if log.head_full() {
                log.advance();
            }
            while log.distance() > 2 {
                log.retire_tail();
            }
            let page = log.next_page();
            pages.push((geometry.block_of(page).0, geometry.page_of(page)));
        }
        assert_eq!(pages, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1), (0, 0), (0, 1)]);
        assert_eq!((log.tail(), log.distance()), (BlockId(2), 2));
    }

    #[test]
    fn slots_know_their_page_and_their_unit() {
        let geometry = Geometry::new(1536, 2, 4, 1).unwrap();
        let mut log = CircularLog::new(geometry, 3).unwrap();
        let page = log.next_page();
        let slot = log.first_slot(page) + 2;
        log.set(slot, 77);
        assert_eq!((log.page_of(slot), log.unit(slot), log.is_valid(page)), ((page, 2), Some(77), true));
        assert_eq!(log.check(), Ok(1));
        log.clear(slot);
        assert!(!log.is_valid(page));
        log.set(log.first_slot(geometry.ppa(BlockId(1), 0)), 5);
        assert!(log.check().is_err(), "block 1 is not written yet");
    }
}
