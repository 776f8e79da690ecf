//! Report figures: pure functions of the measurements of a replay, the parts of the device and the trace.
//!
//! [`Report`] is one entry of `results` in the JSON that `compare` and `replay` write; the caller adds the
//! configuration of the device and the speed of the simulation itself. Every figure is deterministic, and none is ever
//! NaN or infinite: an undefined figure is `None` (`null`).
//!
//! Operations, responses, energy, write amplification and lifetime cover the measured passes. Erase counts of blocks
//! cover all passes since the device was filled, because wear is a state.

mod distribution;
mod figure;
mod intervals;
mod key;
mod load;
mod streams;
mod wear;

use serde::{Deserialize, Serialize, Serializer};

use crate::chip::Chip;
use crate::ledger::{DiskCounts, FaultCounts, Row};
use crate::media::{Cause, CellMode, DiskOp, FlashOp, Volume};
use crate::model::wear_balance;
use crate::profile;
use crate::replay::{Course, Measured, Responses};
use crate::request::{PAGE_BYTES, Request, data};
use crate::scheme::Metrics;
use crate::units::Geometry;
use figure::figures;
use wear::wear_groups;

pub use distribution::Distribution;
pub use figure::{Better, Figure, Shown, Unit};
pub use intervals::{IntervalAccesses, IntervalFigures, IntervalOps};
pub use key::{KeyFigures, cost_usd, energy_j};
pub use load::{LoadFigures, Overload};
pub use streams::StreamFigures;
pub use wear::{EraseBin, WearFigures};

/// Seconds of a Julian year, 365.25 days.
pub const YEAR_S: f64 = 365.25 * 86_400.0;

/// A region as the figures need it, in the order of the device.
#[derive(Clone, Copy, Debug)]
pub struct RegionDescription<'a> {
    /// Name in tables and JSON, such as `slc`.
    pub name: &'a str,
    /// Endurance, supply, price.
    pub chip: &'a Chip,
    /// Blocks and pages.
    pub geometry: Geometry,
}

/// A disk as the figures need it, in the order of the device.
#[derive(Clone, Copy, Debug)]
pub struct DiskDescription<'a> {
    /// Name in tables and JSON, such as `disk`.
    pub name: &'a str,
    /// What is on it.
    pub volume: &'a Volume,
}

/// Facts about the trace, in every result file.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TraceFacts {
    /// File name or workload.
    pub name: String,
    /// Format it was read from, or `generated`.
    pub format: String,
    /// Requests of all kinds.
    pub requests: u64,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Trim requests.
    pub trims: u64,
    /// Bytes read, in whole sectors as a device moves them.
    pub read_bytes: u64,
    /// Bytes written, in whole sectors.
    pub write_bytes: u64,
    /// Bytes of the distinct aligned 4-KiB pages that are read or written.
    pub footprint_bytes: u64,
    /// From the first to the last arrival, in seconds.
    pub duration_s: f64,
}

impl TraceFacts {
    /// Facts about one pass over a trace, independent of the number of replayed passes.
    pub fn of(name: &str, format: &str, requests: &[Request]) -> Self {
        let (mut counts, mut bytes, mut first_ns, mut last_ns) = ([0; 3], [0; 3], u64::MAX, 0);
        for request in requests {
            counts[request.op as usize] += 1;
            bytes[request.op as usize] += request.bytes();
            first_ns = first_ns.min(request.arrival_ns);
            last_ns = last_ns.max(request.arrival_ns);
        }
        let [reads, writes, trims] = counts;
        let [read_bytes, write_bytes, _] = bytes;
        Self {
            name: name.into(),
            format: format.into(),
            requests: requests.len() as u64,
            reads,
            writes,
            trims,
            read_bytes,
            write_bytes,
            footprint_bytes: profile::distinct_pages(data(requests)) * PAGE_BYTES,
            duration_s: last_ns.saturating_sub(first_ns) as f64 / 1e9,
        }
    }
}

figures! {
    /// Response times in microseconds; all 0 where `count` is 0.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
    pub struct ResponseFigures(count: u64 = "Number of requests.") {
        /// Mean, exact.
        mean: f64 = "mean", "mean", Microsecond, Lower, Shown::Table(0);
        /// Median; percentiles have three significant digits.
        p50: f64 = "median", "median", Microsecond, Lower, Shown::Page;
        /// 95th percentile.
        p95: f64 = "95th percentile", "95 %", Microsecond, Lower, Shown::Page;
        /// 99th percentile.
        p99: f64 = "99th percentile", "99 %", Microsecond, Lower, Shown::Table(1);
        /// 99.9th percentile.
        p999: f64 = "99.9th percentile", "99.9 %", Microsecond, Lower, Shown::Page;
        /// Longest, exact.
        max: f64 = "longest", "longest", Microsecond, Lower, Shown::Details;
    }
}

impl ResponseFigures {
    /// The figures of a set of responses.
    pub fn of(responses: &Responses) -> Self {
        let quantile_us = |share: f64| responses.quantile_ns(share) as f64 / 1e3;
        Self {
            count: responses.count(),
            mean: responses.mean_ns() / 1e3,
            p50: quantile_us(0.5),
            p95: quantile_us(0.95),
            p99: quantile_us(0.99),
            p999: quantile_us(0.999),
            max: responses.max_ns() as f64 / 1e3,
        }
    }
}

/// One kind of operation, for one cause, in one region and cell mode.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OpFigures {
    /// Region or disk; `:slc` behind the name of a region marks blocks in SLC mode.
    pub region: String,
    /// `read`, `program` or `erase`; of a disk `read` or `write`.
    pub op: &'static str,
    /// Why: `host`, `gc`, `fold`, `migrate_up` and so on.
    pub cause: &'static str,
    /// How often.
    pub count: u64,
    /// Bytes of the pages read or programmed, or of the blocks erased, in this cell mode; for a disk, bytes read or
    /// written.
    pub bytes: u64,
    /// Array and channel time, in microseconds; for a disk, time of the accesses.
    pub time_us: f64,
}

/// Failures of a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FaultFigures {
    /// Region.
    pub region: String,
    /// What failed and was replaced.
    #[serde(flatten)]
    pub counts: FaultCounts,
}

/// Figures of a scheme or a controller, written as an object in their order; a value that is not a finite number is
/// `null`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricFigures(pub Vec<(&'static str, Option<f64>)>);

impl MetricFigures {
    fn of(metrics: &Metrics) -> Self {
        Self(metrics.iter().map(|(name, value)| (name, finite(value))).collect())
    }
}

impl Serialize for MetricFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// One scheme on one device under one trace.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// Registry name.
    pub scheme: String,
    /// Responses of reads and writes.
    pub response_us: ResponseFigures,
    /// Responses of reads.
    pub read_us: ResponseFigures,
    /// Responses of writes.
    pub write_us: ResponseFigures,
    /// Distribution of the responses of reads, which is not written as JSON.
    #[serde(skip)]
    pub read_distribution: Distribution,
    /// Distribution of the responses of writes.
    #[serde(skip)]
    pub write_distribution: Distribution,
    /// Simulated time of the measured passes, in seconds.
    pub simulated_s: f64,
    /// Load of the device, and whether it was overloaded.
    pub load: LoadFigures,
    /// Operations by region, mode, operation and cause; only those that took place.
    pub ops: Vec<OpFigures>,
    /// Programs by region, mode and stream; only streams that were used.
    pub streams: Vec<StreamFigures>,
    /// Erase counts by region.
    pub wear: Vec<WearFigures>,
    /// Main figures of the device.
    #[serde(flatten)]
    pub key_figures: KeyFigures,
    /// The scheme's own figures, since the device was filled: passes that are not measured are included.
    #[schemars(with = "std::collections::BTreeMap<String, Option<f64>>")]
    pub metrics: MetricFigures,
    /// The controller's figures; none on a device without one.
    #[schemars(with = "std::collections::BTreeMap<String, Option<f64>>")]
    pub controller: MetricFigures,
    /// Figures over time, one entry for each interval of the plan.
    pub intervals: Vec<IntervalFigures>,
    /// Failures by region; only regions in which something failed.
    pub faults: Vec<FaultFigures>,
}

impl Report {
    /// All figures of the measurements under `trace`. `regions` and `disks` are those of the device, in its order; only
    /// a replay has a `course`.
    pub fn of(
        scheme: &str,
        regions: &[RegionDescription<'_>],
        disks: &[DiskDescription<'_>],
        measured: &Measured,
        course: Option<&Course>,
        trace: &TraceFacts,
    ) -> Self {
        debug_assert_eq!(regions.len(), measured.ledger.erases.len());
        let groups = wear_groups(regions, measured);
        let over_time = course.map_or(&[][..], |course| &course.intervals);
        Self {
            scheme: scheme.into(),
            response_us: ResponseFigures::of(&measured.reads.merged(&measured.writes)),
            read_us: ResponseFigures::of(&measured.reads),
            write_us: ResponseFigures::of(&measured.writes),
            read_distribution: Distribution::of(&measured.reads),
            write_distribution: Distribution::of(&measured.writes),
            simulated_s: measured.simulated_ns as f64 / 1e9,
            load: LoadFigures::of(regions, disks, measured, course),
            ops: [ops(regions, &measured.ledger.rows), disk_ops(disks, &measured.ledger.disks)].concat(),
            streams: streams::figures(regions, &measured.ledger.rows),
            wear: groups.iter().map(|group| group.figures(measured)).collect(),
            key_figures: KeyFigures::of(regions, disks, &groups, measured, trace),
            metrics: MetricFigures::of(&measured.metrics),
            controller: course.map_or_else(MetricFigures::default, |course| MetricFigures::of(&course.controller)),
            intervals: intervals::figures(regions, disks, &measured.ledger.rows, over_time),
            faults: faults(regions, measured),
        }
    }

    /// Wear of the region with this name.
    pub fn wear_of(&self, region: &str) -> Option<&WearFigures> {
        self.wear.iter().find(|wear| wear.region == region)
    }

    /// Operations of a kind in a region and mode, over all causes.
    pub fn count(&self, region: &str, op: FlashOp) -> u64 {
        self.ops.iter().filter(|row| row.region == region && row.op == op.name()).map(|row| row.count).sum()
    }
}

/// `RS`, response speed-up (Chang 2010, section 5.1): total response of the conventional device divided by that of the
/// hybrid one; above 1 the hybrid is faster. `None` if the hybrid has served nothing.
pub fn response_speedup(conventional: &Report, hybrid: &Report) -> Option<f64> {
    let total = |report: &Report| report.response_us.mean * report.response_us.count as f64;
    finite(total(conventional) / total(hybrid))
}

/// `BW`, block-wearing ratio (Chang 2010, section 5.1): mean erase count of the fast region divided by that of the slow
/// one. The fast region outlives the slow one as long as this is not above the ratio of their endurances. `None` if the
/// slow region has not been erased.
pub fn block_wearing(fast: &WearFigures, slow: &WearFigures) -> Option<f64> {
    finite(fast.erases_mean / slow.erases_mean)
}

/// `Φ`, how evenly two regions wear (WLAFTL 2018, section 4.1): the larger share of life used divided by the smaller; 1
/// is ideal. `None` if one of them has not been erased.
pub fn phi(fast: &WearFigures, slow: &WearFigures) -> Option<f64> {
    wear_balance::phi(fast.used, slow.used)
}

/// `ES`, the paper's energy-saving ratio (Chang 2010, section 5.1): energy of the hybrid device divided by that of the
/// conventional one; 0.54 saves 46 %. `None` if the conventional device has done nothing.
pub fn energy_saving(conventional: &Report, hybrid: &Report) -> Option<f64> {
    finite(hybrid.key_figures.energy_j / conventional.key_figures.energy_j)
}

/// `EC`, extra-cost ratio (Chang 2010, section 5.1): price of the hybrid device's flash divided by that of the
/// conventional one.
pub fn extra_cost(conventional: &Report, hybrid: &Report) -> Option<f64> {
    finite(hybrid.key_figures.cost_usd / conventional.key_figures.cost_usd)
}

/// The value if it is a finite number.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn row_name(regions: &[RegionDescription<'_>], row: &Row) -> String {
    mode_name(regions[row.region].name, row.mode)
}

fn mode_name(region: &str, mode: CellMode) -> String {
    match mode {
        CellMode::Native => region.into(),
        CellMode::Slc => format!("{region}:slc"),
    }
}

/// Bytes that one operation of a row reads, programs or erases.
fn op_bytes(regions: &[RegionDescription<'_>], row: &Row, op: FlashOp) -> u64 {
    let RegionDescription { chip, geometry, .. } = regions[row.region];
    let page = u64::from(geometry.page_bytes);
    match (op, row.mode) {
        (FlashOp::Read | FlashOp::Program, _) => page,
        (FlashOp::Erase, CellMode::Native) => geometry.block_bytes(),
        (FlashOp::Erase, CellMode::Slc) => page * u64::from(chip.pages_per_block(CellMode::Slc)),
    }
}

fn ops(regions: &[RegionDescription<'_>], rows: &[Row]) -> Vec<OpFigures> {
    let mut figures = Vec::new();
    for row in rows {
        for op in FlashOp::ALL {
            for cause in Cause::ALL {
                let count = row.counts.get(op, cause);
                if count != 0 {
                    figures.push(OpFigures {
                        region: row_name(regions, row),
                        op: op.name(),
                        cause: cause.name(),
                        count,
                        bytes: count * op_bytes(regions, row, op),
                        time_us: row.time(op, cause).as_us(),
                    });
                }
            }
        }
    }
    figures
}

fn disk_ops(disks: &[DiskDescription<'_>], counts: &[DiskCounts]) -> Vec<OpFigures> {
    let mut figures = Vec::new();
    for (disk, counts) in disks.iter().zip(counts) {
        for op in DiskOp::ALL {
            for cause in Cause::ALL {
                let accesses = counts.get(op, cause);
                if accesses.count != 0 {
                    figures.push(OpFigures {
                        region: disk.name.into(),
                        op: op.name(),
                        cause: cause.name(),
                        count: accesses.count,
                        bytes: accesses.bytes(),
                        time_us: accesses.busy.as_us(),
                    });
                }
            }
        }
    }
    figures
}

fn faults(regions: &[RegionDescription<'_>], measured: &Measured) -> Vec<FaultFigures> {
    let failed = measured.ledger.faults.iter().zip(regions).filter(|&(&counts, _)| counts != FaultCounts::default());
    failed.map(|(&counts, region)| FaultFigures { region: region.name.into(), counts }).collect()
}

#[cfg(test)]
mod tests;
