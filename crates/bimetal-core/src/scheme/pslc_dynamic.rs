//! `pslc-dynamic`: a drive whose write cache takes the blocks that hold no data, and runs them with one bit per cell.
//!
//! While little is stored, most of the drive is cache; it shrinks as the drive fills, down to a part that is kept for it.
//! Drives of TLC and QLC have worked so since about 2015; none of their makers says how. What this scheme does is a
//! reading: see [`super::slc_cached`].

use super::slc_cached::{Settings, Size, SlcCached, WhenFull};
use super::space::PageSettings;
use super::{Regions, SchemeSpec, Shape};
use crate::units::ByteSize;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "pslc-dynamic",
    summary: "drive of today: page map behind a write cache in SLC mode that takes all blocks without data",
    source: "drives with a dynamic SLC cache",
    regions: Regions::DualMode,
    parameters: Parameters::specs,
    version: 2,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `pslc-dynamic`.
    pub struct Parameters {
        /// Capacity that the cache has however full the drive is, in bytes of the native mode; 0: all beyond the usual
        /// spare area.
        pub budget: ByteSize = ByteSize(0);
        /// Usual spare area where `budget` is 0, in percent of the logical capacity, and at least what collection takes.
        pub usual_spare_percent: f64 = 5.0, in 0.0..=100.0;
        /// Blocks that the cache takes at most, in percent of all blocks; it has those of `budget` in any case.
        pub cache_percent_max: f64 = 100.0, in 0.0..=100.0;
        /// What a write does that finds the cache full: fold the oldest block first, or go past the cache as in the 840
        /// EVO.
        pub when_full: WhenFull = WhenFull::Fold;
        /// Whether idle time is used to fold the cache.
        pub idle_fold: bool = true;
        /// Blocks with data at or below which it is not, in percent of those that the cache may have.
        pub idle_fold_percent: f64 = 0.0, in 0.0..=100.0;
        /// Blocks that are folded from one that is exchanged for a block of the main area to the next, so that all blocks
        /// wear alike; 0: never.
        pub exchange_period: u32 = 64, in 0..=1_000_000;
        /// Erased blocks of a die at or below which its main area is collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// Whether idle time that is left is used to collect up to twice `gc_free_blocks`.
        pub idle_gc: bool = false;
    }
}

/// The state of `pslc-dynamic`.
pub type PslcDynamic = SlcCached<true>;

impl PslcDynamic {
    /// A scheme over the device's last region, whose chip must have an SLC mode.
    ///
    /// # Errors
    /// No such mode, or too few blocks.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let Parameters { budget, usual_spare_percent, cache_percent_max: most_percent, .. } = parameters;
        let size = Size { budget, usual_spare_percent, most_percent };
        let settings = Settings {
            when_full: parameters.when_full,
            idle_fold: parameters.idle_fold,
            idle_fold_percent: parameters.idle_fold_percent,
            exchange_period: parameters.exchange_period,
            collection: PageSettings { gc_free_blocks: parameters.gc_free_blocks, idle_gc: parameters.idle_gc },
        };
        Self::with(shape, size, settings)
    }
}
