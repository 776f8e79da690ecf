//! An index from units to slots, for a log that holds a small part of all units and may hold any of them.
//!
//! ```text
//!  unit ──▶ in the log at all? one bit
//!    └─hash─▶ first slot of a chain ──▶ next slot of the chain ──▶ …
//! ```
//!
//! The unit of a slot is in the log's [`SlotTable`]. A chain links the slots whose units share a hash, and there are
//! several times as many chains as slots. A unit whose bit is set is in its chain, so a search never runs past the end
//! of a chain. Neighbouring units have neighbouring chains, so units that are used together share cache lines, as in a
//! full table of units.

use super::slot_table::SlotTable;

/// The end of a chain. Zeros take memory only when they are overwritten.
const END: u32 = 0;

/// 2^32 divided by the golden ratio.
const GOLDEN: u32 = 0x9e37_79b9;

/// Number of units with bits in one word.
const WORD: u32 = u64::BITS;

/// Number of consecutive units with consecutive chains: their heads fill half a cache line.
const NEIGHBOURS: u32 = 8;

/// Bounds on the number of chains per slot. With more chains, the first slot of a chain is more often the right one.
const CHAINS_PER_SLOT: (u64, u64) = (2, 8);

/// Units per chain, within these bounds; this costs half a byte per unit.
const UNITS_PER_CHAIN: u64 = 8;

/// The chains. They are not saved, because they follow from the units of the slots.
#[derive(Debug)]
pub struct SlotIndex {
    /// One bit for each unit that has a slot.
    present: Vec<u64>,
    /// By chain: its first slot plus 1.
    heads: Vec<u32>,
    /// By slot: the next slot of its chain plus 1.
    next: Vec<u32>,
    /// Number of groups of [`NEIGHBOURS`] chains.
    groups: u32,
}

impl SlotIndex {
    /// Builds the index of the units below `units` that a log's slots hold.
    pub fn of(slots: &SlotTable, units: u32) -> Self {
        let (least, most) = (slots.len() as u64 * CHAINS_PER_SLOT.0, slots.len() as u64 * CHAINS_PER_SLOT.1);
        let chains = (u64::from(units) / UNITS_PER_CHAIN).clamp(least, most);
        let groups = chains.div_ceil(u64::from(NEIGHBOURS)).max(1) as u32;
        let heads = vec![END; groups as usize * NEIGHBOURS as usize];
        let present = vec![0; units.div_ceil(WORD) as usize];
        let mut index = Self { present, heads, next: vec![END; slots.len()], groups };
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
        if !self.contains(unit) {
            return None;
        }
        let mut slot = self.heads[self.chain(unit)] - 1;
        while slots.unit(slot) != Some(unit) {
            slot = self.next[slot as usize] - 1;
        }
        Some(slot)
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
        let chain = self.chain(unit);
        self.next[slot as usize] = std::mem::replace(&mut self.heads[chain], slot + 1);
    }

    /// Removes a unit from the index.
    #[inline]
    pub fn unlink(&mut self, unit: u32, slot: u32) {
        self.present[(unit / WORD) as usize] &= !(1 << (unit % WORD));
        self.replace(unit, slot, self.next[slot as usize]);
    }

    /// Changes the slot of a unit from `from` to `to`.
    #[inline]
    pub fn relink(&mut self, unit: u32, from: u32, to: u32) {
        self.next[to as usize] = self.next[from as usize];
        self.replace(unit, from, to + 1);
    }

    /// Redirects the link that leads to `slot` in a unit's chain to `entry`.
    #[inline]
    fn replace(&mut self, unit: u32, slot: u32, entry: u32) {
        let chain = self.chain(unit);
        let mut at = self.heads[chain];
        if at == slot + 1 {
            self.heads[chain] = entry;
            return;
        }
        loop {
            let before = at as usize - 1;
            at = self.next[before];
            if at == slot + 1 {
                self.next[before] = entry;
                return;
            }
        }
    }

    /// Prefetches a unit's bit and the head of its chain into the processor's cache.
    #[inline]
    pub fn prefetch(&self, unit: u32) {
        prefetch_index::prefetch_index(&self.present, (unit / WORD) as usize);
        prefetch_index::prefetch_index(&self.heads, self.chain(unit));
    }

    /// Prefetches the slot of a unit whose bit and chain head are already in the processor's cache.
    #[inline]
    pub fn prefetch_slot(&self, slots: &SlotTable, unit: u32) {
        if self.contains(unit) {
            let slot = self.heads[self.chain(unit)] - 1;
            slots.prefetch(slot);
            prefetch_index::prefetch_index(&self.next, slot as usize);
        }
    }

    #[inline]
    fn chain(&self, unit: u32) -> usize {
        // Fibonacci hashing: the upper half is uniformly distributed for any distance between units (Knuth, volume 3,
        // section 6.4).
        let hash = (unit / NEIGHBOURS).wrapping_mul(GOLDEN);
        let group = (u64::from(hash) * u64::from(self.groups)) >> 32;
        // The order differs between groups. Otherwise units at equal distances could all have the same position in
        // their groups.
        group as usize * NEIGHBOURS as usize + ((unit ^ (hash >> 16)) % NEIGHBOURS) as usize
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

    /// Units that lie in a row or at equal distances must not end up in long chains.
    #[test]
    fn chains_of_regular_units_are_short() {
        for stride in [1, 2, 8, 64, 256, 4096, 40_503] {
            let mut slots = table();
            for slot in 0..slots.len() as u32 {
                slots.set(slot, slot * stride);
            }
            let index = SlotIndex::of(&slots, slots.len() as u32 * stride);
            let steps = |unit: u32, slot: u32| {
                let mut entry = index.heads[index.chain(unit)];
                let mut steps = 0;
                while entry != slot + 1 {
                    entry = index.next[entry as usize - 1];
                    steps += 1;
                }
                steps
            };
            let sum: u32 = (0..slots.len() as u32).map(|slot| steps(slot * stride, slot)).sum();
            let mean = f64::from(sum) / slots.len() as f64;
            // At a load of a, random keys are found after 1 + a/2 probes.
            assert!(mean < 0.3, "stride {stride}: {mean} steps");
        }
    }
}
