//! How evenly two regions wear, each by its own endurance (Chang 2010, section 3.4; WLAFTL 2018, sections 3 and 4).
//!
//! The relative wear of a region is its mean erase count in cycles of the slow region: the fast region's is divided by
//! the ratio of the endurances. Equal relative wear is an equal share of life.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

crate::choices! {
    /// How relative wear is compared (the `[ ]` of WLAFTL's algorithms).
    pub enum WearCompare {
        /// By the whole cycles of the slow region that it amounts to.
        Integer = "integer",
        /// As it is; the two are equal only by chance.
        Exact = "exact",
    }
}

/// Relative wear of a fast and of a slow region.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RelativeWear {
    /// Erases of the fast region that make one cycle, times the slow region's endurance.
    fast_cycle: u64,
    slow_blocks: u32,
    slow_endurance: u32,
}

impl RelativeWear {
    /// From blocks and endurance (cycles) of the fast and of the slow region.
    pub fn new((fast_blocks, fast_endurance): (u32, u32), (slow_blocks, slow_endurance): (u32, u32)) -> Self {
        let fast_cycle = u64::from(fast_blocks) * u64::from(fast_endurance);
        Self { fast_cycle, slow_blocks, slow_endurance }
    }

    /// `RW_s` and `RW_m` after a number of erases of each region.
    pub fn values(&self, fast_erases: u64, slow_erases: u64) -> (f64, f64) {
        let fast = fast_erases as f64 * f64::from(self.slow_endurance) / self.fast_cycle as f64;
        (fast, slow_erases as f64 / f64::from(self.slow_blocks))
    }

    /// Compares the relative wear of the fast region with that of the slow one.
    #[inline]
    pub fn order(&self, fast_erases: u64, slow_erases: u64, compare: WearCompare) -> Ordering {
        match compare {
            WearCompare::Integer => self.cycles_ahead(fast_erases, slow_erases).cmp(&0),
            WearCompare::Exact => {
                let fast = u128::from(fast_erases) * u128::from(self.slow_endurance) * u128::from(self.slow_blocks);
                fast.cmp(&(u128::from(slow_erases) * u128::from(self.fast_cycle)))
            }
        }
    }

    /// Whole cycles of the slow region by which the fast one is worn more; negative if it is worn less.
    #[inline]
    pub fn cycles_ahead(&self, fast_erases: u64, slow_erases: u64) -> i64 {
        let fast = u128::from(fast_erases) * u128::from(self.slow_endurance) / u128::from(self.fast_cycle);
        fast as i64 - (slow_erases / u64::from(self.slow_blocks)) as i64
    }

    /// Whether the fast region is worn at least as much as the slow one; `false` while nothing is worn.
    #[inline]
    pub fn fast_leads(&self, fast_erases: u64, slow_erases: u64) -> bool {
        fast_erases > 0 && self.order(fast_erases, slow_erases, WearCompare::Exact).is_ge()
    }
}

/// `Φ`, the wear-levelling efficiency (WLAFTL 2018, section 4.1): the larger relative wear, or share of life used,
/// divided by the smaller. 1 is ideal; `None` if one region is not worn.
pub fn phi(fast: f64, slow: f64) -> Option<f64> {
    let ratio = fast.max(slow) / fast.min(slow);
    ratio.is_finite().then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_relative_to_endurance_and_size() {
        // 16 fast blocks of 100,000 cycles, 160 slow ones of 10,000: a ratio of ten for both.
        let wear = RelativeWear::new((16, 100_000), (160, 10_000));
        assert!(!wear.fast_leads(0, 0));
        assert!(wear.fast_leads(1, 0) && wear.fast_leads(100, 100) && !wear.fast_leads(99, 100));
        assert_eq!(wear.values(160, 160), (1.0, 1.0));
    }

    #[test]
    fn whole_cycles_of_the_slow_region_are_compared() {
        let wear = RelativeWear::new((16, 100_000), (160, 10_000));
        let order = |fast, slow| [WearCompare::Integer, WearCompare::Exact].map(|how| wear.order(fast, slow, how));
        assert_eq!(order(159, 0), [Ordering::Equal, Ordering::Greater]);
        assert_eq!(order(160, 159), [Ordering::Greater, Ordering::Greater]);
        assert_eq!(order(160, 319), [Ordering::Equal, Ordering::Less]);
        assert_eq!(order(319, 320), [Ordering::Less, Ordering::Less]);
        assert_eq!(order(320, 320), [Ordering::Equal, Ordering::Equal]);
        let ahead = [(159, 0), (160, 0), (480, 160), (160, 479)].map(|(fast, slow)| wear.cycles_ahead(fast, slow));
        assert_eq!(ahead, [0, 1, 2, -1]);
        // A fast region that lasts no longer than the slow one, of a quarter of the blocks.
        let equal = RelativeWear::new((4, 3000), (16, 3000));
        assert_eq!(equal.values(4, 16), (1.0, 1.0));
        assert_eq!(equal.order(3, 15, WearCompare::Integer), Ordering::Equal);
    }

    #[test]
    fn balance_is_one_at_best_and_undefined_for_the_unworn() {
        assert_eq!([phi(2.0, 8.0), phi(8.0, 2.0), phi(3.0, 3.0)], [Some(4.0), Some(4.0), Some(1.0)]);
        assert_eq!([phi(0.0, 1.0), phi(1.0, 0.0), phi(0.0, 0.0)], [None; 3]);
    }
}
