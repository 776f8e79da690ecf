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
    /// The full block among `entries` to be collected, the first among equals, of those that are candidates; `None` if
    /// none of them has an invalid page. `age` returns the number of pages written since a block was full.
    pub fn best(
        self,
        counts: &mut ValidCounts,
        entries: Range<usize>,
        age: impl Fn(usize) -> u64,
        is_candidate: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let pages = f64::from(counts.pages_per_block());
        counts.best(entries, age, is_candidate, |age, valid| {
            let valid = f64::from(valid);
            let weight = match self {
                Self::Greedy => 1.0,
                // A block that has just become full must have a positive age.
                Self::CostBenefit => (age as f64 + 1.0).sqrt(),
            };
            // A block without valid pages costs nothing: the quotient is infinite.
            (pages - valid) / valid * weight
        })
    }
}

/// More page writes than any device takes in its life, so that sums of times do not overflow.
const CLOCK_MAX: u64 = 1 << 56;

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
                self.policy.best(counts, entries, |block| self.clock_pages - self.sealed_at[block], |_| true)
            }
        }
    }

    /// Checks its times.
    ///
    /// # Errors
    /// A block that was full later than now.
    pub fn check(&self) -> Result<(), String> {
        if self.clock_pages >= CLOCK_MAX {
            return Err(format!("{} pages were written, more than any device can take", self.clock_pages));
        }
        match self.sealed_at.iter().find(|&&sealed_at| sealed_at > self.clock_pages) {
            Some(sealed_at) => Err(format!("a block was full at {sealed_at}, later than {}", self.clock_pages)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::random::below;

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

    /// Against a search of all blocks, while blocks are sealed, lose pages and are collected. Dies have their own blocks.
    #[test]
    fn no_better_block_is_overlooked() {
        const PAGES: u32 = 16;
        const DIES: [Range<usize>; 2] = [0..200, 256..450];
        for (policy, pages_between) in [
            (VictimPolicy::CostBenefit, 1 << 30),
            (VictimPolicy::CostBenefit, 2),
            (VictimPolicy::CostBenefit, 40),
            (VictimPolicy::Greedy, 40),
        ] {
            let (mut state, mut now) = (5, 0);
            let mut counts = ValidCounts::new(450, PAGES);
            let mut full_at = vec![0; 450];
            let mut open: Vec<usize> = DIES.into_iter().flatten().collect();
            let mut collected = 0;
            for round in 0..40_000 {
                if open.len() > 40 {
                    now += below(&mut state, pages_between);
                    let block = open.swap_remove(below(&mut state, open.len() as u64) as usize);
                    counts.add(block, PAGES as usize);
                    counts.seal(block);
                    full_at[block] = now;
                }
                let block = below(&mut state, 450) as usize;
                if !(200..256).contains(&block) && counts.is_sealed(block) && counts.valid_pages(block) > 0 {
                    counts.invalidate(block);
                }
                if round % 8 > 0 {
                    continue;
                }
                let (age, is_candidate) =
                    (|block: usize| now - full_at[block], |block: usize| !block.is_multiple_of(7));
                let score = |block: usize| {
                    let valid = f64::from(counts.valid_pages(block));
                    let weight = if policy == VictimPolicy::Greedy { 1.0 } else { (age(block) as f64 + 1.0).sqrt() };
                    (f64::from(PAGES) - valid) / valid * weight
                };
                let die = DIES[below(&mut state, 2) as usize].clone();
                let worth = |&block: &usize| is_candidate(block) && counts.is_sealed(block) && score(block) > 0.0;
                let better = |best, block| if score(block) > score(best) { block } else { best };
                let expected = die.clone().filter(worth).reduce(better);
                assert_eq!(policy.best(&mut counts, die, age, is_candidate), expected, "round {round}");
                if let Some(block) = expected {
                    counts.unseal(block);
                    counts.subtract(block, counts.valid_pages(block) as usize);
                    open.push(block);
                    collected += 1;
                }
            }
            assert!(collected > 2000, "{collected}");
        }
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
