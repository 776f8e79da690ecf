//! `cftl`: the policy of Chang's hybrid (IEEE Trans. Computers 2010) on page-mapped regions, a baseline of *WLAFTL*
//! (Chinese Journal of Computers 2018, section 4).
//!
//! Small writes, by the 2-means threshold on write sizes (§3.2), go to the circular log of SLC. Data that are still
//! valid in its oldest block are demoted. The paper compares all schemes under one address mapping; so the hash table
//! and the log blocks of [`super::chang`] are missing here, and the techniques that depend on them: copying tail data
//! back and the throttle. A large write supersedes the log's copies of its data.

use std::cmp::Ordering;

use super::fifo_log::{Admission, CycleTime, FifoLog, FifoLogSettings};
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
    version: 6,
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
        /// Erased SLC blocks below which the oldest block is collected; as in `wlaftl`.
        pub free_blocks: u32 = 4, in 1..=1_000_000;
        /// Erased MLC blocks of a die at or below which it is collected before the next write (FlashSim: 3).
        pub gc_free_blocks: u32 = 3, in 1..=1024;
    }
}

impl Admission for SizeHistogram {
    const KEEPS_UPDATES: bool = false;

    #[inline]
    fn note_write(&mut self, sectors: u32) {
        self.record(sectors);
    }

    #[inline]
    fn admits(&mut self, sectors: u32, _wear: impl FnOnce() -> Ordering) -> bool {
        sectors <= self.threshold_sectors()
    }

    fn threshold_bytes(&self) -> u64 {
        u64::from(self.threshold_sectors()) * SECTOR_BYTES
    }
}

/// The state of `cftl`.
pub type Cftl = FifoLog<SizeHistogram>;

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
        Self::over(shape, sizes, settings)
    }
}
