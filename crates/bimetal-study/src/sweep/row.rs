//! What came out of a point: its figures, and all that is needed to repeat it.

use bimetal_core::report::{KeyFigures, Overload, ResponseFigures, TraceFacts};
use bimetal_core::scheme;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::point::Point;
use crate::compare::{Entry, Speed};

/// What came out of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Row {
    /// What the point is found again by.
    pub key: String,
    /// The point itself.
    pub point: Point,
    /// What the content of the trace is known by; empty if the trace cannot be read.
    pub trace_fingerprint: String,
    /// Version of the scheme.
    pub scheme_version: u32,
    /// Version of this program.
    pub bimetal: String,
    /// The command that repeats it, in the folder of the study file.
    pub command: String,
    /// Why there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The figures, unless it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// How fast the simulation was: all that may differ when it is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
}

/// The figures of a point. Times are in microseconds where it is not said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figures {
    /// Requests of the trace.
    pub requests: u64,
    /// Capacity that the host sees.
    pub logical_bytes: u64,
    /// What the slow region has beyond that, as a share of it.
    pub spare: f64,
    /// Whether responses measure the queue more than the device.
    pub overload: Overload,
    /// What was busiest.
    pub bottleneck: String,
    /// Share of the simulated time for which that worked.
    pub utilisation: f64,
    /// Responses of reads and writes.
    pub response_us: ResponseFigures,
    /// Responses of reads.
    pub read_us: ResponseFigures,
    /// Responses of writes.
    pub write_us: ResponseFigures,
    /// Simulated time of the measured passes, in seconds.
    pub simulated_s: f64,
    /// Open loop: how much longer the device took than the trace, in seconds. Not kept in rows that are written.
    #[serde(skip)]
    pub backlog_s: f64,
    /// Requests by that; of a closed loop what the device can do.
    pub throughput_per_s: Option<f64>,
    /// What the device comes to.
    #[serde(flatten)]
    pub key_figures: KeyFigures,
    /// The regions.
    pub regions: Vec<RegionRow>,
    /// Their wear; blocks that stay in SLC mode for good are on their own.
    pub wear: Vec<WearRow>,
    /// The disks.
    pub disks: Vec<DiskRow>,
    /// The scheme's own figures, such as hit rates.
    pub metrics: Vec<(String, Option<f64>)>,
    /// What was rounded or adapted.
    pub notes: Vec<String>,
    /// The device in full, as a device file.
    pub device: String,
}

/// A region of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RegionRow {
    /// Name.
    pub name: String,
    /// Name of the part.
    pub chip: String,
    /// Blocks.
    pub blocks: u32,
    /// Raw capacity.
    pub capacity_bytes: u64,
}

/// Wear of blocks of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WearRow {
    /// Region; with `:slc` behind its name where blocks stay in SLC mode.
    pub name: String,
    /// Mean of their erase counts.
    pub erases_mean: f64,
    /// Share of their life that is used up.
    pub used: f64,
}

/// A disk of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DiskRow {
    /// Name.
    pub name: String,
    /// Name of the drive.
    pub drive: String,
    /// How much of the logical capacity is on it.
    pub capacity_bytes: u64,
}

impl Figures {
    /// The figures of a replay of that trace.
    pub(super) fn of(entry: Entry, trace: &TraceFacts) -> Self {
        // A device that was read or made has only numbers that can be written.
        let device = entry.device.to_toml().unwrap_or_default();
        let report = entry.report;
        let throughput = report.response_us.count as f64 / report.simulated_s;
        Self {
            requests: trace.requests,
            logical_bytes: entry.device.logical.0,
            spare: entry.spare,
            overload: report.load.overload,
            bottleneck: report.load.bottleneck,
            utilisation: report.load.utilisation,
            response_us: report.response_us,
            read_us: report.read_us,
            write_us: report.write_us,
            simulated_s: report.simulated_s,
            backlog_s: report.load.backlog_s,
            throughput_per_s: throughput.is_finite().then_some(throughput),
            key_figures: report.key_figures,
            regions: (entry.regions.into_iter())
                .map(|region| RegionRow {
                    name: region.name,
                    chip: region.chip,
                    blocks: region.blocks,
                    capacity_bytes: region.capacity_bytes,
                })
                .collect(),
            wear: (report.wear.into_iter())
                .map(|wear| WearRow { name: wear.region, erases_mean: wear.erases_mean, used: wear.used })
                .collect(),
            disks: (entry.disks.into_iter())
                .map(|disk| DiskRow { name: disk.name, drive: disk.drive, capacity_bytes: disk.capacity_bytes })
                .collect(),
            metrics: report.metrics.0.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            notes: entry.notes,
            device,
        }
    }

    /// Whether responses say something about the device.
    pub fn is_judged(&self) -> bool {
        self.overload != Overload::Growing
    }
}

impl Row {
    fn of(point: &Point, trace: &str) -> Self {
        Self {
            key: point.key(trace),
            point: point.clone(),
            trace_fingerprint: trace.to_owned(),
            scheme_version: scheme::find(&point.scheme).map_or(0, |spec| spec.version),
            bimetal: env!("CARGO_PKG_VERSION").to_owned(),
            command: point.command().unwrap_or_default(),
            failure: None,
            figures: None,
            speed: None,
        }
    }

    pub(super) fn done(point: &Point, trace: &str, figures: Figures, speed: Speed) -> Self {
        Self { figures: Some(figures), speed: Some(speed), ..Self::of(point, trace) }
    }

    pub(super) fn failed(point: &Point, trace: &str, failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::of(point, trace) }
    }

    /// What is the same whenever and wherever it is run.
    pub fn without_speed(&self) -> Self {
        Self { speed: None, ..self.clone() }
    }
}
