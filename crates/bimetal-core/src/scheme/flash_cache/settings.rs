//! Settings of a cache.

use serde::{Deserialize, Serialize};

use super::tracker::Rates;
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
    /// Share of the flash that holds data, in percent; the first where the cost model chooses it.
    pub cache_percent: f64,
    /// Length beyond which a stream of requests is sequential; 0: none is.
    pub sequential_unit: ByteSize,
    /// Dirty pages that are destaged together, at most.
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
    /// How reads and writes are kept apart. If they are not, clean and dirty pages are in one order.
    pub partition: Option<Partitioning>,
}

/// Choices for a cache of reads and one of writes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Partitioning {
    /// Whether the cost model chooses the utilisation, not only the share of the read cache.
    pub adapts_utilisation: bool,
    /// Share of the read cache, in percent, until the model chooses.
    pub read_percent: f64,
    /// Size of a segment of the hit-rate curves, and of a step of Algorithm 1.
    pub segment_bytes: ByteSize,
    /// Share of past periods' counts that is kept.
    pub curve_keep: f64,
    /// Over what time the rates of both caches are measured.
    pub rates: Rates,
    /// Share of the pages that is tracked.
    pub sample_rate: f64,
    /// How full victims of collection are taken to be.
    pub victim: VictimUtilisation,
    /// Pages by which a limit moves with a request.
    pub resize_pages: u32,
    /// Whether destaged pages stay, as clean ones, if the read cache has room.
    pub keep_clean: bool,
}
