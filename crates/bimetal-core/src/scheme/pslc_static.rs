//! `pslc-static`: a drive with a write cache of fixed size, of blocks that run with one bit per cell.
//!
//! Samsung's TurboWrite of 2013 is the model: 3 GB in front of 120 GB up to 12 GB in front of 1 TB of TLC; the drive writes
//! at the speed of SLC until the cache is full and from then on at that of TLC, and moves the data down when it is idle
//! (AnandTech, *Samsung SSD 840 EVO review*, July 2013). How the blocks are managed is a reading: see
//! [`super::slc_cached`].
//!
//! The cache's blocks stay the cache's: they wear at their own pace, in the endurance of SLC mode.

use super::slc_cached::{IdleFold, Settings, Size, SlcCached, WhenFull};
use super::{Regions, SchemeSpec, Shape};
use crate::region::log::Collection;
use crate::units::ByteSize;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "pslc-static",
    summary: "drive of today: page map behind a write cache of fixed size in SLC mode, emptied when full or idle",
    source: "Samsung TurboWrite 2013, as in AnandTech's review of the 840 EVO",
    regions: Regions::DualMode,
    parameters: Parameters::specs,
    version: 4,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `pslc-static`.
    pub struct Parameters {
        /// Capacity of the cache's blocks, in bytes of the native mode; 0: all beyond the usual spare area.
        pub budget: ByteSize = ByteSize(0);
        /// Usual spare area where `budget` is 0, in percent of the logical capacity, and at least what collection takes.
        pub usual_spare_percent: f64 = 5.0, in 0.0..=100.0;
        /// What a write does that finds the cache full: wait until the oldest data are folded, go past the cache as in the 840 EVO,
        /// or go past it until no erased block is left and wait from then on, which a fixed cache never comes to.
        pub when_full: WhenFull = WhenFull::Fold;
        /// Whether data are folded a page at a time, ahead of need, so that no request waits for a whole block; `false`: a block
        /// at once when one is needed.
        pub fold_in_steps: bool = true;
        /// Whether idle time is used to fold the cache; `false`: data stay for reads until the space is needed.
        pub idle_fold: bool = true;
        /// Blocks with data at or below which it is not, in percent of the cache's blocks.
        pub idle_fold_percent: f64 = 0.0, in 0.0..=100.0;
        /// Blocks with data above which idle time is used to fold, down to `idle_fold_percent`: WriteBooster's flush is asked for
        /// where little of its buffer is available. In percent of the cache's blocks; 0: as `idle_fold_percent`.
        pub idle_fold_start_percent: f64 = 0.0, in 0.0..=100.0;
        /// Page copies for which there must be time: the drive does not begin to fold in shorter breaks.
        pub idle_fold_min_pages: u32 = 0, in 0..=1_000_000;
        /// Erased blocks of a die at or below which its main area is collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// Whether idle time that is left is used to collect up to twice `gc_free_blocks`.
        pub idle_gc: bool = false;
    }
}

/// The state of `pslc-static`.
pub type PslcStatic = SlcCached<false>;

impl PslcStatic {
    /// A scheme over the device's last region, whose chip must have an SLC mode.
    ///
    /// # Errors
    /// No such mode, or too few blocks.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let Parameters { budget, usual_spare_percent, .. } = parameters;
        let size = Size { budget, usual_spare_percent, most_percent: 0.0, shrink_percent: (0.0, 0.0) };
        let settings = Settings {
            when_full: parameters.when_full,
            fold_in_steps: parameters.fold_in_steps,
            idle: IdleFold {
                is_on: parameters.idle_fold,
                from_percent: parameters.idle_fold_start_percent,
                to_percent: parameters.idle_fold_percent,
                min_pages: parameters.idle_fold_min_pages,
            },
            exchange_period: 0,
            collection: Collection { gc_free_blocks: parameters.gc_free_blocks, idle_gc: parameters.idle_gc },
        };
        Self::with(shape, size, settings)
    }
}
