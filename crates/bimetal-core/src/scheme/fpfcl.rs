//! `fpfcl`: a flash cache of fixed size with clean and dirty pages in one LRU order, as a drive of the time would be used.
//!
//! FP-FCL, one of the two rivals of OP-FCL (Oh, Choi, Lee, Noh, FAST 2012, section 6). All else is in
//! [`super::flash_cache`].

use super::flash_cache::{FlashCache, PeriodUnit, Settings};
use super::{Regions, SchemeSpec, Shape};
use crate::units::ByteSize;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "fpfcl",
    summary: "flash cache over disks, of fixed size: one LRU order of clean and dirty pages",
    source: "Oh, Choi, Lee, Noh, FAST 2012",
    regions: Regions::FlashOverDisk,
    parameters: Parameters::specs,
    version: 3,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `fpfcl`.
    pub struct Parameters {
        /// Share of the flash that holds data, in percent; the rest is spare.
        pub cache_percent: f64 = 80.0, in 1.0..=99.0;
        /// Reads and writes from one checkpoint to the next; or pages of them.
        pub period: u32 = 65_536, in 1..=1_000_000_000;
        /// What a period counts.
        pub period_unit: PeriodUnit = PeriodUnit::Requests;
        /// Length from which on requests that follow each other go past the cache; 0: never.
        pub sequential_unit: ByteSize = ByteSize(128 << 10);
        /// Dirty pages that are destaged together, at most; less on a small device.
        pub destage_group: u32 = 128, in 1..=256;
        /// Blocks of a die that garbage collection keeps erased, in percent, and at least one.
        pub gc_free_percent: f64 = 1.0, in 0.0..=50.0;
        /// Whether the last page of each block holds the block's part of the map.
        pub summary_pages: bool = true;
        /// Whether a checkpoint of the map is written every period.
        pub checkpoint: bool = true;
    }
}

/// Makes the scheme, which is a [`FlashCache`].
#[derive(Debug)]
pub struct FpFcl;

impl FpFcl {
    /// A cache in the device's region, before its disks.
    ///
    /// # Errors
    /// A region that is too small, or no disk.
    #[expect(clippy::new_ret_no_self, reason = "the registry names the type")]
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<FlashCache, String> {
        let settings = Settings {
            cache_percent: parameters.cache_percent,
            sequential_unit: parameters.sequential_unit,
            destage_group: parameters.destage_group,
            gc_free_percent: parameters.gc_free_percent,
            summary_pages: parameters.summary_pages,
            checkpoint: parameters.checkpoint,
            period: parameters.period,
            period_unit: parameters.period_unit,
            partition: None,
        };
        FlashCache::with(shape, settings)
    }
}
