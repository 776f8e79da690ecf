//! The family of flash caches: OP-FCL and its two baselines (Oh, Choi, Lee, Noh, FAST 2012, section 6).

use super::{
    CacheSettings, Curve, FlashCache, Partitioning, PeriodUnit, READ_LIMIT, Rates, ReadHits, SPARE, SequentialRule,
    WRITE_LIMIT,
};
use crate::model::cleaning::VictimUtilisation;
use crate::scheme::presets::presets;
use crate::scheme::{ParameterSet, Regions, SchemeSpec, Shape};
use crate::units::ByteSize;

/// Common parts of the family's registry lines.
const SHARED: SchemeSpec = SchemeSpec {
    name: "flash caches",
    summary: "flash cache over disks",
    source: "Oh, Choi, Lee, Noh, FAST 2012",
    regions: Regions::FlashOverDisk,
    parameters: Family::specs,
    adapts: &[],
    version: 7,
};

presets! {
    Family, SHARED;

    /// OP-FCL: in every period a cost model with measured hit-rate curves chooses the shares of the flash for reads,
    /// for writes, and as spare area.
    pub mod opfcl::OpFcl {
        name: "opfcl",
        summary: "flash cache over disks: read cache, write cache and spare area sized by a cost model",
        adapts: &[READ_LIMIT, WRITE_LIMIT, SPARE]
    }
    without ["cache_percent"],
    |shape, family| -> FlashCache {
        FlashCache::with(shape, family.settings_of(100.0 - family.initial_spare_percent, Some(family.partitioning(true))))
    }

    /// RW-FCL: a cache of fixed size, of which the cost model chooses the share for reads.
    pub mod rwfcl::RwFcl {
        name: "rwfcl",
        summary: "flash cache over disks, of fixed size: shares of reads and writes by a cost model",
        adapts: &[READ_LIMIT, WRITE_LIMIT]
    }
    without ["initial_spare_percent"],
    |shape, family| -> FlashCache {
        FlashCache::with(shape, family.settings_of(family.cache_percent, Some(family.partitioning(false))))
    }

    /// FP-FCL: a cache of fixed size with clean and dirty pages in one LRU order, like a drive of the time.
    pub mod fpfcl::FpFcl {
        name: "fpfcl",
        summary: "flash cache over disks, of fixed size: one LRU order of clean and dirty pages"
    }
    without [
        "initial_spare_percent", "initial_read_percent", "segment_bytes", "curve_keep", "rates", "read_hits", "curve", "sample_rate", "victim",
        "resize_pages", "keep_clean"
    ],
    |shape, family| -> FlashCache { FlashCache::with(shape, family.settings_of(family.cache_percent, None)) }
}

crate::parameters! {
    SHARED.name;
    /// Parameters of the family.
    pub struct Family {
        /// Initial spare area, in percent of the flash.
        pub initial_spare_percent: f64 = 5.0, in 1.0..=99.0;
        /// Share of the flash that holds data, in percent; the rest is spare.
        pub cache_percent: f64 = 80.0, in 1.0..=99.0;
        /// Initial share of the cache for reads, in percent.
        pub initial_read_percent: f64 = 50.0, in 0.0..=100.0;
        /// Segment of the hit-rate curves and step of the sizes; between 1/256 and 1/16 of the flash.
        pub segment_bytes: ByteSize = ByteSize(256 << 20), in ByteSize(4096)..=ByteSize(1 << 40);
        /// Share of a period's counts that is kept for the next one: the authors' code halves; the paper does not say.
        pub curve_keep: f64 = 0.5, in 0.0..=0.99;
        /// Time over which the request rates of both caches are measured: IO_R and IO_W of equation 6; the paper does
        /// not say.
        pub rates: Rates = Rates::Total;
        /// Hits of the read cache, H_R of equation 6: reads, or also writes to pages that were only read, which the
        /// authors' program counts.
        pub read_hits: ReadHits = ReadHits::Reads;
        /// Whether hit-rate curves are measured from all pages or from a sample.
        pub curve: Curve = Curve::Exact;
        /// Share of the pages in the sample.
        pub sample_rate: f64 = 0.01, in 0.0001..=1.0;
        /// Assumed utilisation of the victims of garbage collection: as in the paper, or that of greedy collection.
        pub victim: VictimUtilisation = VictimUtilisation::Fifo;
        /// Largest change of the sizes with each request, in pages.
        pub resize_pages: u32 = 128, in 1..=1_000_000;
        /// Whether destaged pages stay in the cache as clean pages if the read cache has room.
        pub keep_clean: bool = false;
        /// Length of a period, in reads and writes or in their pages. A period ends with a checkpoint, and with a
        /// choice of sizes if the cost model chooses them.
        pub period: u32 = 65_536, in 1..=1_000_000_000;
        /// Unit of a period.
        pub period_unit: PeriodUnit = PeriodUnit::Requests;
        /// Length beyond which consecutive requests bypass the cache; 0: never.
        pub sequential_unit: ByteSize = ByteSize(128 << 10);
        /// Whether consecutive requests as long as the unit bypass the cache, too, as in the authors' program, or only
        /// longer ones, as in the paper.
        pub sequential_rule: SequentialRule = SequentialRule::Longer;
        /// Largest number of dirty pages that are destaged together; less on a small device.
        pub destage_group: u32 = 128, in 1..=256;
        /// Blocks of a die that garbage collection keeps erased, in percent, and at least one.
        pub gc_free_percent: f64 = 1.0, in 0.0..=50.0;
        /// Whether the last page of each block holds the block's part of the map.
        pub summary_pages: bool = true;
        /// Whether a checkpoint of the map is written every period.
        pub checkpoint: bool = true;
    }
}

impl Family {
    fn settings_of(&self, cache_percent: f64, partition: Option<Partitioning>) -> CacheSettings {
        CacheSettings {
            cache_percent,
            sequential_unit: self.sequential_unit,
            sequential_rule: self.sequential_rule,
            destage_group: self.destage_group,
            gc_free_percent: self.gc_free_percent,
            summary_pages: self.summary_pages,
            checkpoint: self.checkpoint,
            period: self.period,
            period_unit: self.period_unit,
            partition,
        }
    }

    fn partitioning(&self, adapts_utilisation: bool) -> Partitioning {
        Partitioning {
            adapts_utilisation,
            read_percent: self.initial_read_percent,
            segment_bytes: self.segment_bytes,
            curve_keep: self.curve_keep,
            rates: self.rates,
            read_hits: self.read_hits,
            sample_rate: self.curve.share(self.sample_rate),
            victim: self.victim,
            resize_pages: self.resize_pages,
            keep_clean: self.keep_clean,
        }
    }
}
