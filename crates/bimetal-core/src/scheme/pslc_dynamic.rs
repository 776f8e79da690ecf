//! `pslc-dynamic`: a drive whose write cache takes the blocks that hold no data, and runs them with one bit per cell.
//!
//! While little is stored, most of the drive is cache; it shrinks as the drive fills, down to a part that is kept for it.
//! Drives of TLC and QLC have worked so since about 2015; none of their makers says how. What this scheme does is a
//! reading: see [`super::slc_cached`].

use super::slc_cached::{IdleFold, Settings, Size, SlcCached, WhenFull};
use super::{Regions, SchemeSpec, Shape};
use crate::region::log::Collection;
use crate::units::ByteSize;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "pslc-dynamic",
    summary: "drive of today: page map behind a write cache in SLC mode that takes all blocks without data",
    source: "drives with a dynamic SLC cache",
    regions: Regions::DualMode,
    parameters: Parameters::specs,
    version: 4,
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
        /// Logical pages with data, in percent, from which on the cache shrinks from `cache_percent_max`. With
        /// `shrink_to_percent` 0, too: from when the data fill all blocks in SLC mode.
        pub shrink_from_percent: f64 = 0.0, in 0.0..=100.0;
        /// Logical pages with data, in percent, at which it has shrunk to `budget`, in a straight line. It never takes blocks
        /// with data. 0: a full drive.
        pub shrink_to_percent: f64 = 0.0, in 0.0..=100.0;
        /// What a write does that finds the cache full: wait until the oldest data are folded, go past the cache as in the 840 EVO,
        /// or go past it until no erased block is left and wait from then on.
        pub when_full: WhenFull = WhenFull::Fold;
        /// Whether data are folded a page at a time, ahead of need, so that no request waits for a whole block; `false`: a block
        /// at once when one is needed.
        pub fold_in_steps: bool = true;
        /// Whether idle time is used to fold the cache; `false`: data stay for reads until the space is needed.
        pub idle_fold: bool = true;
        /// Blocks with data at or below which it is not, in percent of those that the cache may have.
        pub idle_fold_percent: f64 = 0.0, in 0.0..=100.0;
        /// Blocks with data above which idle time is used to fold, down to `idle_fold_percent`: WriteBooster's flush is asked for
        /// where little of its buffer is available. In percent of those that the cache may have; 0: as `idle_fold_percent`.
        pub idle_fold_start_percent: f64 = 0.0, in 0.0..=100.0;
        /// Page copies for which there must be time: the drive does not begin to fold in shorter breaks.
        pub idle_fold_min_pages: u32 = 0, in 0..=1_000_000;
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
        let shrink_percent = (parameters.shrink_from_percent, parameters.shrink_to_percent);
        let size = Size { budget, usual_spare_percent, most_percent, shrink_percent };
        let settings = Settings {
            when_full: parameters.when_full,
            fold_in_steps: parameters.fold_in_steps,
            idle: IdleFold {
                is_on: parameters.idle_fold,
                from_percent: parameters.idle_fold_start_percent,
                to_percent: parameters.idle_fold_percent,
                min_pages: parameters.idle_fold_min_pages,
            },
            exchange_period: parameters.exchange_period,
            collection: Collection { gc_free_blocks: parameters.gc_free_blocks, idle_gc: parameters.idle_gc },
        };
        Self::with(shape, size, settings)
    }
}
