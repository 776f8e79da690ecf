//! An index from units to slots, for a log that holds a small part of all units and may hold any of them.
//!
//! ```text
//!  unit ──▶ in the log at all? one bit
//!    └────▶ its slot in the chains of slots
//! ```
//!
//! The unit of a slot is in the log's [`SlotTable`]. The bits tell that a unit is not in the log without a look at its
//! chain.

use super::slot_chains::SlotChains;
use super::slot_table::SlotTable;

/// Number of units with bits in one word.
const WORD: u32 = u64::BITS;

/// Bounds on the number of chains per slot. With more chains, the first slot of a chain is more often the right one.
const CHAINS_PER_SLOT: (u64, u64) = (2, 8);

/// Units per chain, within these bounds; this costs half a byte per unit.
const UNITS_PER_CHAIN: u64 = 8;

/// The index. It is not saved, because it follows from the units of the slots.
#[derive(Debug)]
pub struct SlotIndex {
    /// One bit for each unit that has a slot.
    present: Vec<u64>,
    chains: SlotChains,
}

impl SlotIndex {
    /// Builds the index of the units below `units` that a log's slots hold.
    pub fn of(slots: &SlotTable, units: u32) -> Self {
        let (least, most) = (slots.len() as u64 * CHAINS_PER_SLOT.0, slots.len() as u64 * CHAINS_PER_SLOT.1);
        let chains = SlotChains::new(slots.len(), (u64::from(units) / UNITS_PER_CHAIN).clamp(least, most));
        let mut index = Self { present: vec![0; units.div_ceil(WORD) as usize], chains };
        for slot in 0..slots.len() as u32 {
            // Damaged slots may hold any unit, or the same unit twice. The check then finds a unit that is indexed in
            // another slot.
            if let Some(unit) = slots.unit(slot).filter(|&unit| unit < units) {
                index.link(unit, slot);
            }
        }
        index
    }

    /// The slot of a unit, if it has one.
    #[inline]
    pub fn slot(&self, slots: &SlotTable, unit: u32) -> Option<u32> {
        if self.contains(unit) { self.chains.find(unit, |slot| slots.unit(slot) == Some(unit)) } else { None }
    }

    /// Whether a unit has a slot.
    #[inline]
    pub fn contains(&self, unit: u32) -> bool {
        self.present[(unit / WORD) as usize] >> (unit % WORD) & 1 == 1
    }

    /// Adds a unit that has no slot, with slot `slot`.
    #[inline]
    pub fn link(&mut self, unit: u32, slot: u32) {
        self.present[(unit / WORD) as usize] |= 1 << (unit % WORD);
        self.chains.link(unit, slot);
    }

    /// Removes a unit from the index.
    #[inline]
    pub fn unlink(&mut self, unit: u32, slot: u32) {
        self.present[(unit / WORD) as usize] &= !(1 << (unit % WORD));
        self.chains.unlink(unit, slot);
    }

    /// Changes the slot of a unit from `from` to `to`.
    #[inline]
    pub fn relink(&mut self, unit: u32, from: u32, to: u32) {
        self.chains.relink(unit, from, to);
    }

    /// Prefetches a unit's bit and the head of its chain into the processor's cache.
    #[inline]
    pub fn prefetch(&self, unit: u32) {
        prefetch_index::prefetch_index(&self.present, (unit / WORD) as usize);
        self.chains.prefetch(unit);
    }

    /// Prefetches the slot of a unit whose bit and chain head are already in the processor's cache.
    #[inline]
    pub fn prefetch_slot(&self, slots: &SlotTable, unit: u32) {
        if self.contains(unit)
            && let Some(slot) = self.chains.first(unit)
        {
            slots.prefetch(slot);
            self.chains.prefetch_link(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::part::random::below;
    use crate::units::Geometry;

    fn table() -> SlotTable {
        SlotTable::new(Geometry::new(4096, 64, 4, 1).unwrap(), 64, 2).unwrap()
    }

    #[test]
    fn it_is_a_map_while_units_come_go_and_move() {
        let mut slots = table();
        let (mut index, mut map, mut random) = (SlotIndex::of(&slots, 600 * 37), BTreeMap::new(), 7);
        for step in 0..20_000 {
            let (unit, slot) = (below(&mut random, 600) as u32 * 37, below(&mut random, slots.len() as u64) as u32);
            assert_eq!(index.slot(&slots, unit), map.get(&unit).copied(), "step {step}");
            match map.get(&unit).copied() {
                Some(old) if slots.unit(slot).is_none() => {
                    index.relink(unit, old, slot);
                    slots.clear(old);
                    slots.set(slot, unit);
                    map.insert(unit, slot);
                }
                Some(old) => {
                    index.unlink(unit, old);
                    slots.clear(old);
                    map.remove(&unit);
                }
                None if slots.unit(slot).is_none() => {
                    index.link(unit, slot);
                    slots.set(slot, unit);
                    map.insert(unit, slot);
                }
                None => {}
            }
            if step % 1000 == 0 {
                index = SlotIndex::of(&slots, 600 * 37);
            }
        }
        assert!(map.len() > 100);
    }
}
