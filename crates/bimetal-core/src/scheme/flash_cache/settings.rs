//! Settings of a cache.

use serde::{Deserialize, Serialize};

use super::detector::SequentialRule;
use super::tracker::{Rates, ReadHits};
use crate::model::cleaning::VictimUtilisation;
use crate::units::ByteSize;

crate::choices! {
    /// Unit of a period.
    pub enum PeriodUnit {
        /// Reads and writes.
        Requests = "requests",
        /// Pages that they touch.
        Pages = "pages",
    }
}

/// Choices for a cache.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CacheSettings {
    /// Share of the flash that holds data, in percent; the initial share if the cost model chooses it.
    pub cache_percent: f64,
    /// Length beyond which a stream of requests is sequential; 0: never.
    pub sequential_unit: ByteSize,
    /// Whether a stream of just that length is sequential.
    pub sequential_rule: SequentialRule,
    /// Largest number of dirty pages that are destaged together.
    pub destage_group: u32,
    /// Blocks of a die that collection keeps erased, in percent.
    pub gc_free_percent: f64,
    /// Whether the last page of each block is its summary.
    pub summary_pages: bool,
    /// Whether the map is written as a checkpoint every period.
    pub checkpoint: bool,
    /// Length of a period.
    pub period: u32,
    /// Its unit.
    pub period_unit: PeriodUnit,
    /// Division into a read cache and a write cache. Without it, clean and dirty pages are in one order.
    pub partition: Option<Partitioning>,
}

/// Choices for a read cache and a write cache.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Partitioning {
    /// Whether the cost model chooses the utilisation, not only the share of the read cache.
    pub adapts_utilisation: bool,
    /// Share of the read cache, in percent, until the model first chooses.
    pub read_percent: f64,
    /// Size of a segment of the hit-rate curves, and of a step of Algorithm 1.
    pub segment_bytes: ByteSize,
    /// Share of past periods' counts that is kept.
    pub curve_keep: f64,
    /// Time over which the rates of both caches are measured.
    pub rates: Rates,
    /// Uses that are hits of the read cache.
    pub read_hits: ReadHits,
    /// Share of the pages that is tracked.
    pub sample_rate: f64,
    /// Assumed utilisation of the victims of collection.
    pub victim: VictimUtilisation,
    /// Largest change of a limit with a request, in pages.
    pub resize_pages: u32,
    /// Whether destaged pages stay in the cache as clean pages if the read cache has room.
    pub keep_clean: bool,
}
