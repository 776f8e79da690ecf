//! The number of valid pages of each block, and the block with the fewest.
//!
//! A block that can be a victim is *sealed*: it is full, and neither being written nor being erased. The victim is
//! found without lists: the counts form one dense table, and the minimum of every [`GROUP`] of counts is kept next to
//! it. An invalidation is then one decrement and one minimum.

use std::ops::Range;

use super::seal_order::SealOrder;
use crate::part::run_length::run_length;
use crate::save::Table;

use serde::{Deserialize, Serialize};

/// Added to the count of a block that is not sealed.
const UNSEALED: u32 = 1 << 31;

/// Number of blocks with a common minimum.
pub const GROUP: usize = 64;

/// Valid pages of each block of a table. The caller chooses the order of the entries.
#[derive(Debug, Serialize, Deserialize)]
pub struct ValidCounts {
    /// [`UNSEALED`] is added while a block is not sealed.
    counts: Table<u32>,
    /// A lower bound for each [`GROUP`] of `counts`; exact after [`ValidCounts::fewest`] has searched the group.
    group_minima: Table<u32>,
    #[serde(with = "crate::save::fixed")]
    pages_per_block: u32,
    /// Follows from the counts and the ages of blocks; `None` until a block is first chosen by its age.
    #[serde(skip)]
    order: Option<Box<SealOrder>>,
}

impl ValidCounts {
    /// Empty blocks, none sealed.
    pub fn new(entries: usize, pages_per_block: u32) -> Self {
        debug_assert!(pages_per_block < UNSEALED);
        let group_minima = vec![UNSEALED; entries.div_ceil(GROUP)];
        Self { counts: vec![UNSEALED; entries].into(), group_minima: group_minima.into(), pages_per_block, order: None }
    }

    /// Valid pages of a block.
    #[inline]
    pub fn valid_pages(&self, entry: usize) -> u32 {
        self.counts[entry] & !UNSEALED
    }

    /// Pages of a block.
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Whether a block can be a victim.
    #[inline]
    pub fn is_sealed(&self, entry: usize) -> bool {
        self.counts[entry] & UNSEALED == 0
    }

    /// Pages to be copied if the block were the victim. Larger than any number of pages if the block is not sealed.
    #[inline]
    pub fn cost(&self, entry: usize) -> u32 {
        self.counts[entry]
    }

    /// Prefetches a block's count into the processor's cache.
    #[inline(always)]
    pub fn prefetch(&self, entry: usize) {
        prefetch_index::prefetch_index(&self.counts, entry);
    }

    /// Pages of a block that is not sealed became valid.
    #[inline(always)]
    pub fn add(&mut self, entry: usize, pages: usize) {
        self.counts[entry] += pages as u32;
    }

    /// Pages of a block that is not sealed have moved away.
    #[inline]
    pub fn subtract(&mut self, entry: usize, pages: usize) {
        self.counts[entry] -= pages as u32;
    }

    /// A page of any block became invalid.
    #[inline(always)]
    pub fn invalidate(&mut self, entry: usize) {
        let valid = &mut self.counts[entry];
        *valid -= 1;
        let minimum = &mut self.group_minima[entry / GROUP];
        *minimum = (*minimum).min(*valid);
        if let Some(order) = &mut self.order {
            order.invalidated(entry, *valid);
        }
    }

    /// A block is full: it can be a victim.
    #[inline]
    pub fn seal(&mut self, entry: usize) {
        self.counts[entry] &= !UNSEALED;
        let minimum = &mut self.group_minima[entry / GROUP];
        *minimum = (*minimum).min(self.counts[entry]);
        if let Some(order) = &mut self.order {
            order.push(entry, &self.counts);
        }
    }

    /// Removes a victim from the candidates.
    #[inline]
    pub fn unseal(&mut self, entry: usize) {
        self.counts[entry] |= UNSEALED;
        if let Some(order) = &mut self.order {
            order.remove(entry);
        }
    }

    /// The sealed block with the fewest valid pages, the first among equals; `None` if no block has an invalid page.
    /// The range must begin at a group boundary, and no other range may have blocks in its last group.
    pub fn fewest(&mut self, entries: Range<usize>) -> Option<usize> {
        loop {
            let groups = entries.start / GROUP..entries.end.div_ceil(GROUP);
            let (group, bound) = first_minimum(&self.group_minima, groups)?;
            let counts = group * GROUP..((group + 1) * GROUP).min(entries.end);
            let (entry, valid) = first_minimum(&self.counts, counts)?;
            if bound.min(valid) >= self.pages_per_block {
                return None;
            }
            if valid == bound {
                return Some(entry);
            }
            self.group_minima[group] = valid;
        }
    }

    /// The sealed block with the highest score above 0, the first among equals, of those that are candidates. The score
    /// is one of a block's age and its valid pages; it must not fall with the age, nor grow with the pages. The order of
    /// ages must be that in which blocks were sealed. The range is as for [`Self::fewest`], and the same in every call
    /// for a die.
    pub fn best(
        &mut self,
        entries: Range<usize>,
        age: impl Fn(usize) -> u64,
        is_candidate: impl Fn(usize) -> bool,
        score: impl Fn(u64, u32) -> f64,
    ) -> Option<usize> {
        let order = self.order.get_or_insert_with(|| Box::new(SealOrder::new(self.counts.len())));
        let is_sealed = |entry: usize| self.counts[entry] & UNSEALED == 0;
        order.best(entries, &self.counts, is_sealed, age, is_candidate, score)
    }

    /// Checks that no bound exceeds the count of a sealed block of its group. The counts of other entries can be below
    /// it: a group has entries without a block, which a search does not see.
    ///
    /// # Errors
    /// The first bound that does.
    pub fn check(&self) -> Result<(), String> {
        for (group, counts) in self.counts.chunks(GROUP).enumerate() {
            if counts.iter().any(|&count| count < self.group_minima[group].min(UNSEALED)) {
                return Err(format!("a block of group {group} has fewer valid pages than the group's bound"));
            }
        }
        Ok(())
    }
}

/// Index and value of the smallest value in a range, the first among equals. Two passes, which the compiler vectorises.
fn first_minimum(values: &[u32], range: Range<usize>) -> Option<(usize, u32)> {
    let start = range.start;
    let values = &values[range];
    let minimum = values.iter().fold(u32::MAX, |least, &value| least.min(value));
    let index = run_length(values, |value| value == minimum);
    (index < values.len()).then_some((start + index, minimum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_are_found_among_sealed_blocks_only() {
        let mut counts = ValidCounts::new(200, 8);
        for entry in 0..200 {
            counts.add(entry, 8);
        }
        assert_eq!(counts.fewest(0..200), None, "no block is sealed");
        for entry in 0..199 {
            counts.seal(entry);
        }
        assert_eq!(counts.fewest(0..200), None, "all are full of valid pages");
        for (entry, invalid) in [(150, 3), (70, 2), (199, 7), (151, 3)] {
            for _ in 0..invalid {
                counts.invalidate(entry);
            }
        }
        assert_eq!(counts.fewest(0..200), Some(150));
        assert_eq!(counts.fewest(64..128), Some(70));
        counts.unseal(150);
        assert_eq!(counts.fewest(0..200), Some(151));
        counts.seal(199);
        assert_eq!((counts.fewest(0..200), counts.valid_pages(199)), (Some(199), 1));
        counts.check().unwrap();
    }

    /// Two dies of three blocks each. Where no block of a die is erased or full, the bound is above the counts of entries
    /// without a block.
    #[test]
    fn bounds_hold_for_full_blocks_only() {
        let mut counts = ValidCounts::new(67, 8);
        counts.add(0, 8);
        counts.seal(0);
        counts.invalidate(0);
        assert_eq!(counts.fewest(0..3), Some(0));
        counts.unseal(0);
        counts.subtract(0, 7);
        (0..3).for_each(|entry| counts.add(entry, 5));
        assert_eq!(counts.fewest(0..3), None);
        counts.check().unwrap();
        counts.add(1, 3);
        counts.seal(1);
        counts.invalidate(1);
        assert_eq!(counts.fewest(0..3), Some(1));
        counts.check().unwrap();
    }
}
