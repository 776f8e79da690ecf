//! Chains of slots: which slot may hold a unit.
//!
//! ```text
//!  unit ─hash─▶ first slot of a chain ──▶ next slot of the chain ──▶ …
//! ```
//!
//! A chain links the slots whose units share a hash. The units of the slots are in a table of the user. There are
//! several times as many chains as slots, so that most searches end at the first slot and take a branch that the
//! processor predicts. Neighbouring units have neighbouring chains, so units that are used together share cache lines,
//! as in a full table of units.

/// The end of a chain. Zeros take memory only when they are overwritten.
const END: u32 = 0;

/// 2^32 divided by the golden ratio.
const GOLDEN: u32 = 0x9e37_79b9;

/// Number of consecutive units with consecutive chains: their heads fill half a cache line.
const NEIGHBOURS: u32 = 8;

/// The chains. They are not saved, because they follow from the units of the slots.
#[derive(Debug)]
pub struct SlotChains {
    /// By chain: its first slot plus 1.
    heads: Vec<u32>,
    /// By slot: the next slot of its chain plus 1.
    next: Vec<u32>,
    /// Number of groups of [`NEIGHBOURS`] chains.
    groups: u32,
}

impl SlotChains {
    /// About `chains` empty chains for `slots` slots.
    pub fn new(slots: usize, chains: u64) -> Self {
        let groups = chains.div_ceil(u64::from(NEIGHBOURS)).max(1) as u32;
        Self { heads: vec![END; groups as usize * NEIGHBOURS as usize], next: vec![END; slots], groups }
    }

    /// The slot in a unit's chain that holds the unit according to `holds`.
    #[inline]
    pub fn find(&self, unit: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
        let mut entry = self.heads[self.chain(unit)];
        while let Some(slot) = entry.checked_sub(1) {
            if holds(slot) {
                return Some(slot);
            }
            entry = self.next[slot as usize];
        }
        None
    }

    /// Adds a slot that is in no chain to a unit's chain.
    #[inline]
    pub fn link(&mut self, unit: u32, slot: u32) {
        let chain = self.chain(unit);
        self.next[slot as usize] = std::mem::replace(&mut self.heads[chain], slot + 1);
    }

    /// Removes a slot from a unit's chain, which contains it.
    #[inline]
    pub fn unlink(&mut self, unit: u32, slot: u32) {
        self.replace(unit, slot, self.next[slot as usize]);
    }

    /// Puts the slot `to` in the place of the slot `from` in a unit's chain.
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

    /// Prefetches the head of a unit's chain into the processor's cache.
    #[inline]
    pub fn prefetch(&self, unit: u32) {
        prefetch_index::prefetch_index(&self.heads, self.chain(unit));
    }

    /// The first slot of a unit's chain: mostly the slot that holds the unit, if there is one.
    #[inline]
    pub fn first(&self, unit: u32) -> Option<u32> {
        self.heads[self.chain(unit)].checked_sub(1)
    }

    /// Prefetches the link from a slot to the next one into the processor's cache.
    #[inline]
    pub fn prefetch_link(&self, slot: u32) {
        prefetch_index::prefetch_index(&self.next, slot as usize);
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
    use super::*;

    /// Units that lie in a row or at equal distances must not end up in long chains.
    #[test]
    fn chains_of_regular_units_are_short() {
        const SLOTS: u32 = 512;
        for (stride, chains_per_slot) in [1, 2, 8, 64, 256, 4096, 40_503].into_iter().zip([2, 2, 2, 8, 8, 8, 8]) {
            let mut chains = SlotChains::new(SLOTS as usize, u64::from(SLOTS * chains_per_slot));
            (0..SLOTS).for_each(|slot| chains.link(slot * stride, slot));
            let steps = |slot: u32| {
                let tried = std::cell::Cell::new(0);
                let found = chains.find(slot * stride, |at| {
                    tried.set(tried.get() + 1);
                    at == slot
                });
                assert_eq!(found, Some(slot));
                tried.get() - 1
            };
            let mean = f64::from((0..SLOTS).map(steps).sum::<u32>()) / f64::from(SLOTS);
            // At a load of a, random keys are found after 1 + a/2 probes.
            assert!(mean < 0.3, "stride {stride}: {mean} steps");
        }
    }
}
