//! `cftl`: the policy of Chang's hybrid (IEEE Trans. Computers 2010) on page-mapped regions, a baseline of *WLAFTL*
//! (Chinese Journal of Computers 2018, section 4).
//!
//! Small writes, by the 2-means threshold on write sizes (§3.2), go to the circular log of SLC. Data that are still
//! valid in its oldest block are demoted. The paper compares all schemes under one address mapping; so the hash table
//! and the log blocks of [`super::chang`] are missing here, and the techniques that depend on them: copying tail data
//! back and the throttle. A large write supersedes the log's copies of its data.

use serde::{Deserialize, Serialize};

use super::fifo_log::{Admission, CycleTime, FifoLog, FifoLogSettings, HostWrite, WearNow};
use super::{Regions, SchemeSpec, Shape};
use crate::model::wear_balance::WearCompare;
use crate::part::two_means::{Search, SizeHistogram};
use crate::request::SECTOR_BYTES;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "cftl",
    summary: "small writes, by clustering of sizes, to a FIFO of SLC, what is left at its tail to page-mapped MLC",
    source: "Chang, IEEE Trans. Computers 2010, as compared in WLAFTL 2018",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    adapts: &[],
    version: 7,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `cftl`.
    pub struct Parameters {
        /// How the threshold between small and large writes is found (Chang 2010, Algorithm 1).
        pub threshold_mode: Search = Search::Exhaustive;
        /// Initial threshold, in sectors (Chang 2010, section 3.2).
        pub initial_threshold: u32 = 8, in 1..=1024;
        /// Writes between two searches for the threshold (Chang 2010, section 3.2).
        pub threshold_period: u32 = 1000, in 1..=1_000_000_000;
        /// Whether the histogram of sizes is halved at each search.
        pub histogram_halving: bool = false;
        /// Whether SLC takes only updates of its data while it is worn more, in whole cycles, than MLC. The
        /// laboratory's program has this rule, Chang's paper has not.
        pub wear_rule: bool = false;
        /// Erased SLC blocks below which the oldest block is collected; as in `wlaftl`.
        pub free_blocks: u32 = 4, in 1..=1_000_000;
        /// Erased MLC blocks of a die at or below which it is collected before the next write (FlashSim: 3).
        pub gc_free_blocks: u32 = 3, in 1..=1024;
    }
}

/// The threshold on sizes, and the rule for wear.
#[derive(Debug, Serialize, Deserialize)]
pub struct SmallWrites {
    sizes: SizeHistogram,
    #[serde(with = "crate::save::fixed")]
    wear_rule: bool,
}

impl Admission for SmallWrites {
    fn keeps_updates(&self) -> bool {
        false
    }

    #[inline]
    fn note_write(&mut self, sectors: u32) {
        self.sizes.record(sectors);
    }

    #[inline]
    fn admits(&mut self, write: HostWrite, wear: WearNow<'_>) -> bool {
        let is_small = write.sectors <= self.sizes.threshold_sectors();
        is_small && (!self.wear_rule || write.is_update || wear.cycles_ahead() <= 0)
    }

    fn threshold_bytes(&self) -> u64 {
        u64::from(self.sizes.threshold_sectors()) * SECTOR_BYTES
    }
}

/// The state of `cftl`.
pub type Cftl = FifoLog<SmallWrites>;

impl Cftl {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Too few blocks in either region.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let sizes = SizeHistogram::new(
            parameters.threshold_mode,
            parameters.initial_threshold,
            parameters.threshold_period,
            parameters.histogram_halving,
        );
        // No page is copied back in the log: wear does not matter.
        let settings = FifoLogSettings {
            free_blocks: parameters.free_blocks,
            max_cycle_time: 0,
            cycle_time: CycleTime::Laps,
            laps_at_equal_wear: true,
            wear_compare: WearCompare::Integer,
            gc_free_blocks: parameters.gc_free_blocks,
        };
        Self::over(shape, SmallWrites { sizes, wear_rule: parameters.wear_rule }, settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::wear_balance::RelativeWear;

    #[test]
    fn a_worn_slc_takes_only_updates_if_wear_rules() {
        // 16 erases of SLC are a cycle.
        let wear = RelativeWear::new((16, 1), (16, 1));
        let mut admitted = Vec::new();
        for wear_rule in [false, true] {
            let mut small = SmallWrites { sizes: SizeHistogram::new(Search::Fixed, 8, 1000, false), wear_rule };
            for (erases, sectors, is_update) in [(15, 8, false), (16, 8, false), (16, 8, true), (16, 9, true)] {
                let wear = WearNow::new(&wear, WearCompare::Integer, (erases, 0));
                admitted.push(small.admits(HostWrite { sectors, is_update }, wear));
            }
        }
        assert_eq!(admitted, [true, true, true, false, true, false, true, false]);
    }
}
