//! The family of drives with a write cache in SLC mode: of a fixed size, or of all blocks without data.

use super::{ALLOWED_BLOCKS, CacheSettings, IdleFold, Size, SlcCached, WhenFull};
use crate::region::log::Collection;
use crate::scheme::presets::presets;
use crate::scheme::{ParameterSet, Regions, SchemeSpec, Shape};
use crate::units::ByteSize;

/// Common parts of the family's registry lines.
const SHARED: SchemeSpec = SchemeSpec {
    name: "drives of today",
    summary: "drive of today: page map behind a write cache in SLC mode",
    source: "drives with an SLC cache",
    regions: Regions::DualMode,
    parameters: Family::specs,
    adapts: &[],
    version: 6,
};

presets! {
    Family, SHARED;

    /// A cache of fixed size. Samsung's TurboWrite of 2013 is the model: 3 GB in front of 120 GB up to 12 GB in front
    /// of 1 TB of TLC; the drive writes at the speed of SLC until the cache is full and then at that of TLC, and moves
    /// the data down when it is idle (AnandTech, *Samsung SSD 840 EVO review*, July 2013). The management of the blocks
    /// is our reading.
    ///
    /// The cache always has the same blocks: they wear separately, with the endurance of SLC mode.
    pub mod pslc_static::PslcStatic {
        name: "pslc-static",
        summary: "drive of today: page map behind a write cache of fixed size in SLC mode, emptied when full or idle",
        source: "Samsung TurboWrite 2013, as in AnandTech's review of the 840 EVO"
    }
    without ["cache_percent_max", "shrink_from_percent", "shrink_to_percent", "exchange_period"],
    |shape, family| -> SlcCached<false> {
        let Family { budget, usual_spare_percent, .. } = family;
        let size = Size { budget, usual_spare_percent, most_percent: 0.0, shrink_percent: (0.0, 0.0) };
        SlcCached::with(shape, size, CacheSettings { exchange_period: 0, ..family.settings_of() })
    }

    /// A cache of the blocks without data. While little is stored, most of the drive is cache; the cache shrinks as the
    /// drive fills, down to a part that is kept for it. Drives of TLC and QLC have worked like this since about 2015;
    /// no maker publishes how. The policy of this scheme is our reading.
    pub mod pslc_dynamic::PslcDynamic {
        name: "pslc-dynamic",
        summary: "drive of today: page map behind a write cache in SLC mode that takes all blocks without data",
        source: "drives with a dynamic SLC cache",
        adapts: &[ALLOWED_BLOCKS]
    }
    without [],
    |shape, family| -> SlcCached<true> {
        let Family { budget, usual_spare_percent, cache_percent_max: most_percent, .. } = family;
        let shrink_percent = (family.shrink_from_percent, family.shrink_to_percent);
        let size = Size { budget, usual_spare_percent, most_percent, shrink_percent };
        SlcCached::with(shape, size, family.settings_of())
    }
}

crate::parameters! {
    SHARED.name;
    /// Parameters of the family.
    pub struct Family {
        /// Capacity that the cache always has, even on a full drive, in bytes of the native mode; 0: all beyond the
        /// usual spare area.
        pub budget: ByteSize = ByteSize(0);
        /// Usual spare area if `budget` is 0, in percent of the logical capacity; at least as much as collection takes.
        pub usual_spare_percent: f64 = 5.0, in 0.0..=100.0;
        /// Largest size of the cache, in percent of all blocks; never less than `budget`.
        pub cache_percent_max: f64 = 100.0, in 0.0..=100.0;
        /// Logical pages with data, in percent, from which on the cache shrinks from `cache_percent_max`. If this and
        /// `shrink_to_percent` are 0: when the data fill all blocks in SLC mode.
        pub shrink_from_percent: f64 = 0.0, in 0.0..=100.0;
        /// Logical pages with data, in percent, at which the cache has shrunk to `budget`, in a straight line; 0: a
        /// full drive. The cache never takes blocks with data.
        pub shrink_to_percent: f64 = 0.0, in 0.0..=100.0;
        /// What a write does if the cache is full: `fold` waits until the oldest data are folded; `direct` bypasses the
        /// cache, as in the 840 EVO; `direct-then-fold` bypasses it until no erased block is left and then waits, which
        /// never happens with a fixed cache.
        pub when_full: WhenFull = WhenFull::Fold;
        /// Whether data are folded page by page, ahead of need, so that no request waits for a whole block; `false`: a
        /// whole block when one is needed.
        pub fold_in_steps: bool = true;
        /// Whether idle time is used to fold the cache; `false`: data stay in the cache for reads until the space is
        /// needed.
        pub idle_fold: bool = true;
        /// Number of blocks with data at which folding in idle time ends, in percent of the blocks that the cache may
        /// have.
        pub idle_fold_percent: f64 = 0.0, in 0.0..=100.0;
        /// Number of blocks with data above which folding in idle time begins, in percent of the blocks that the cache
        /// may have: WriteBooster asks for a flush when little of its buffer is available. 0: as `idle_fold_percent`.
        pub idle_fold_start_percent: f64 = 0.0, in 0.0..=100.0;
        /// Shortest idle time that is used to fold, in page copies. A store gives idle time in steps of 64: above that it
        /// folds only for room.
        pub idle_fold_min_pages: u32 = 0, in 0..=1_000_000;
        /// Number of folded blocks after which a block is exchanged for one of the main area, so that all blocks wear
        /// evenly; 0: never.
        pub exchange_period: u32 = 64, in 0..=1_000_000;
        /// Erased blocks of a die at or below which its main area is collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// Whether the remaining idle time is used to collect up to twice `gc_free_blocks`.
        pub idle_gc: bool = false;
    }
}

impl Family {
    fn settings_of(&self) -> CacheSettings {
        CacheSettings {
            when_full: self.when_full,
            fold_in_steps: self.fold_in_steps,
            idle: IdleFold {
                is_on: self.idle_fold,
                from_percent: self.idle_fold_start_percent,
                to_percent: self.idle_fold_percent,
                min_pages: self.idle_fold_min_pages,
            },
            exchange_period: self.exchange_period,
            collection: Collection { gc_free_blocks: self.gc_free_blocks, idle_gc: self.idle_gc },
        }
    }
}
