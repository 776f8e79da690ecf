//! `rwfcl`: a flash cache of fixed size, of which the cost model chooses the share for reads.
//!
//! RW-FCL, one of the two rivals of OP-FCL (Oh, Choi, Lee, Noh, FAST 2012, section 6). All else is in
//! [`super::flash_cache`].

use super::flash_cache::{Curve, FlashCache, Partitioning, PeriodUnit, Settings};
use super::{Regions, SchemeSpec, Shape};
use crate::model::cleaning::VictimUtilisation;
use crate::units::ByteSize;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "rwfcl",
    summary: "flash cache over disks, of fixed size: shares of reads and writes by a cost model",
    source: "Oh, Choi, Lee, Noh, FAST 2012",
    regions: Regions::FlashOverDisk,
    parameters: Parameters::specs,
    version: 3,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `rwfcl`.
    pub struct Parameters {
        /// Share of the flash that holds data, in percent; the rest is spare.
        pub cache_percent: f64 = 80.0, in 1.0..=99.0;
        /// Share of the cache that is for reads at first, in percent.
        pub initial_read_percent: f64 = 50.0, in 0.0..=100.0;
        /// Segment of the hit-rate curves and step of the sizes; between 1/256 and 1/16 of the flash.
        pub segment_bytes: ByteSize = ByteSize(256 << 20), in ByteSize(4096)..=ByteSize(1 << 40);
        /// Share of a period's counts that counts in the next one too; the authors' code halves.
        pub curve_keep: f64 = 0.0, in 0.0..=0.99;
        /// Whether hit-rate curves are measured from all pages or from a sample.
        pub curve: Curve = Curve::Exact;
        /// Share of the pages in the sample.
        pub sample_rate: f64 = 0.01, in 0.0001..=1.0;
        /// How full the victims of garbage collection are taken to be: as in the paper, or as greedy collection has them.
        pub victim: VictimUtilisation = VictimUtilisation::Fifo;
        /// Pages by which the sizes move with each request, at most.
        pub resize_pages: u32 = 128, in 1..=1_000_000;
        /// Whether destaged pages stay, as clean ones, if the read cache has room.
        pub keep_clean: bool = false;
        /// Reads and writes from one choice of sizes, and one checkpoint, to the next; or pages of them.
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
pub struct RwFcl;

impl RwFcl {
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
            partition: Some(Partitioning {
                adapts_utilisation: false,
                read_percent: parameters.initial_read_percent,
                segment_bytes: parameters.segment_bytes,
                curve_keep: parameters.curve_keep,
                sample_rate: parameters.curve.share(parameters.sample_rate),
                victim: parameters.victim,
                resize_pages: parameters.resize_pages,
                keep_clean: parameters.keep_clean,
            }),
        };
        FlashCache::with(shape, settings)
    }
}
