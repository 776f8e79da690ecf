//! Victim selection: which full block is collected.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::region::valid_counts::ValidCounts;
use crate::save::Table;

crate::choices! {
    /// How the block to be collected is chosen.
    pub enum VictimPolicy {
        /// The one with the fewest valid pages.
        Greedy = "greedy",
        /// The one with the largest (1 - u)/u · √age, where u is its share of valid pages, and its age the pages written since it was full
        /// (Rosenblum and Ousterhout, ACM TOCS 1992, section 3.6; with the root as in SepBIT, FAST 2022).
        CostBenefit = "cost-benefit",
    }
}

impl VictimPolicy {
    /// The full block among `entries` to be collected, the first among equals; `None` if no block has an invalid page.
    /// `age` returns the number of pages written since a block was full.
    pub fn best(
        self,
        counts: &ValidCounts,
        entries: impl Iterator<Item = usize>,
        age: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        let pages = f64::from(counts.pages_per_block());
        counts.best(entries, |block, valid| {
            let valid = f64::from(valid);
            let weight = match self {
                Self::Greedy => 1.0,
                // A block that has just become full must have a positive age.
                Self::CostBenefit => (age(block) as f64 + 1.0).sqrt(),
            };
            // A block without valid pages costs nothing: the quotient is infinite.
            (pages - valid) / valid * weight
        })
    }
}

/// Chooses among full blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Victims {
    #[serde(with = "crate::save::fixed")]
    policy: VictimPolicy,
    /// Pages written from outside so far.
    clock_pages: u64,
    /// By block: the clock when it was last full. Empty where the policy does not ask for it.
    sealed_at: Table<u64>,
}

impl Victims {
    /// A policy for a log of `blocks` blocks.
    pub fn new(policy: VictimPolicy, blocks: usize) -> Self {
        let entries = if policy == VictimPolicy::CostBenefit { blocks } else { 0 };
        Self { policy, clock_pages: 0, sealed_at: vec![0; entries].into() }
    }

    /// Pages written from outside so far.
    #[inline]
    pub fn clock_pages(&self) -> u64 {
        self.clock_pages
    }

    /// A page is written from outside.
    #[inline]
    pub fn note_written(&mut self) {
        self.clock_pages += 1;
    }

    /// A block is full.
    #[inline]
    pub fn note_sealed(&mut self, block: usize) {
        if let Some(sealed_at) = self.sealed_at.get_mut(block) {
            *sealed_at = self.clock_pages;
        }
    }

    /// The block among `entries` to be collected; `None` if no block has an invalid page.
    pub fn choose(&self, counts: &mut ValidCounts, entries: Range<usize>) -> Option<usize> {
        match self.policy {
            VictimPolicy::Greedy => counts.fewest(entries),
            VictimPolicy::CostBenefit => {
                self.policy.best(counts, entries, |block| self.clock_pages - self.sealed_at[block])
            }
        }
    }

    /// Checks its times.
    ///
    /// # Errors
    /// A block that was full later than now.
    pub fn check(&self) -> Result<(), String> {
        match self.sealed_at.iter().find(|&&sealed_at| sealed_at > self.clock_pages) {
            Some(sealed_at) => Err(format!("a block was full at {sealed_at}, later than {}", self.clock_pages)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three blocks of 10 pages: an old one with 8 valid pages, a younger one with 6, and one that is just full with 5.
    fn choose(policy: VictimPolicy) -> Option<usize> {
        let mut counts = ValidCounts::new(3, 10);
        let mut victims = Victims::new(policy, 3);
        for (block, valid, written) in [(0, 8, 9_000), (1, 6, 100), (2, 5, 0)] {
            counts.add(block, 10);
            counts.seal(block);
            victims.note_sealed(block);
            (valid..10).for_each(|_| counts.invalidate(block));
            (0..written).for_each(|_| victims.note_written());
        }
        victims.check().unwrap();
        victims.choose(&mut counts, 0..3)
    }

    #[test]
    fn the_greedy_choice_is_the_emptiest_and_the_other_weighs_its_age() {
        assert_eq!(choose(VictimPolicy::Greedy), Some(2));
        assert_eq!(choose(VictimPolicy::CostBenefit), Some(0), "0.25 · √9100 > 0.67 · √100 > 1 · √1");
    }

    #[test]
    fn full_blocks_are_no_victims_and_empty_ones_are_the_first() {
        let mut counts = ValidCounts::new(2, 10);
        let mut victims = Victims::new(VictimPolicy::CostBenefit, 2);
        (0..2).for_each(|block| {
            counts.add(block, 10);
            counts.seal(block);
            victims.note_sealed(block);
        });
        victims.note_written();
        assert_eq!(victims.choose(&mut counts, 0..2), None);
        (0..10).for_each(|_| counts.invalidate(1));
        assert_eq!(victims.choose(&mut counts, 0..2), Some(1));
    }
}
