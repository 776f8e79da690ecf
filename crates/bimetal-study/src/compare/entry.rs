//! The result of one scheme.

use bimetal_core::device::Device;
use bimetal_core::report::{self, Overload, Report, ResponseFigures};
use serde::{Deserialize, Serialize};

use super::parts::{DiskFacts, RegionFacts};
use crate::arrivals;
use crate::number::KNOWN_FROM_OVERWRITES;

/// The result of one scheme.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Entry {
    /// All figures.
    #[serde(flatten)]
    pub report: Report,
    /// Arrival mode of the replay of these figures: `closed:DEPTH` or `trace:SPEED`.
    pub arrivals: String,
    /// Time by which the device took longer than the trace, in seconds; 0 in a closed loop.
    pub backlog_s: f64,
    /// Service times of reads and writes, measured in a closed loop with one request. None without such a replay.
    pub service_us: Option<ResponseFigures>,
    /// Service times of reads.
    pub service_read_us: Option<ResponseFigures>,
    /// Service times of writes.
    pub service_write_us: Option<ResponseFigures>,
    /// How many times the host wrote the logical capacity in the measured passes. Lifetimes are extrapolated from it.
    pub lifetime_overwrites: f64,
    /// The complete device as configured: a device file.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub device: Device,
    /// Facts about the regions.
    pub regions: Vec<RegionFacts>,
    /// Facts about the home disks; none if all data are in flash.
    pub disks: Vec<DiskFacts>,
    /// Capacity of the slow region beyond the logical capacity, as a share of the logical capacity.
    pub spare: f64,
    /// Wear of the fast region divided by wear of the slow one: Chang's BW.
    pub block_wearing: Option<f64>,
    /// Share of life used of the more worn region divided by the share of the other: WLAFTL's Φ.
    pub phi: Option<f64>,
    /// Comparison with the first scheme; none for the first scheme itself.
    pub relative: Option<Relative>,
    /// Notes on rounding and adaptation.
    pub notes: Vec<String>,
    /// Speed of the simulation.
    pub speed: Speed,
    /// Range of the mean response over the seeds, if there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

impl Entry {
    /// The mean response over all seeds. None for an overloaded device, whose responses only reflect the length of the
    /// trace, and if the trace has neither reads nor writes.
    pub fn mean_us(&self) -> Option<f64> {
        let mean_us = self.spread.map_or(self.report.response_us.mean, |spread| spread.mean_us);
        (self.serves() && !self.falls_behind()).then_some(mean_us)
    }

    /// Whether the trace has reads or writes. Trims have no responses.
    pub fn serves(&self) -> bool {
        self.report.response_us.count > 0
    }

    /// The mean service time; none if it was not measured.
    pub fn mean_service_us(&self) -> Option<f64> {
        self.service_us.filter(|_| self.serves()).map(|service| service.mean)
    }

    /// Whether the backlog of the device grows without end.
    pub fn falls_behind(&self) -> bool {
        self.report.load.overload == Overload::Growing
    }

    /// Whether the lifetime is known and extrapolated from less than one overwrite of the device.
    pub fn is_extrapolated(&self) -> bool {
        self.report.key_figures.lifetime_host_bytes.is_some() && self.lifetime_overwrites < KNOWN_FROM_OVERWRITES
    }

    /// Service times, if the responses come from another replay.
    pub fn service_beside(&self) -> Option<&ResponseFigures> {
        self.service_us.as_ref().filter(|_| self.arrivals != arrivals::SERVICE)
    }

    /// Adds the service times of a replay with one request at a time.
    pub(super) fn with_service_of(self, report: &Report) -> Self {
        Self {
            service_us: Some(report.response_us),
            service_read_us: Some(report.read_us),
            service_write_us: Some(report.write_us),
            ..self
        }
    }

    /// Whether an operations row of the report belongs to a disk.
    pub fn is_disk(&self, region: &str) -> bool {
        self.disks.iter().any(|disk| disk.name == region)
    }
}

/// The mean response over several consecutive seeds, starting with the seed of the device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Spread {
    /// Number of seeds.
    pub seeds: u32,
    /// Lowest mean response.
    pub min_us: f64,
    /// Highest mean response.
    pub max_us: f64,
    /// Mean of the mean responses.
    pub mean_us: f64,
}

impl Spread {
    pub(super) fn of(means_us: &[f64]) -> Self {
        Self {
            seeds: u32::try_from(means_us.len()).unwrap_or(u32::MAX),
            min_us: means_us.iter().copied().fold(f64::INFINITY, f64::min),
            max_us: means_us.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean_us: means_us.iter().sum::<f64>() / means_us.len() as f64,
        }
    }

    /// Half of the range from the lowest to the highest.
    pub fn half_range_us(&self) -> f64 {
        (self.max_us - self.min_us) / 2.0
    }
}

/// A scheme relative to the first one of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Relative {
    /// The first scheme.
    pub to: String,
    /// Mean response of the first scheme divided by that of this one, over all seeds: Chang's RS, because both serve the
    /// same requests. None if one of the two is overloaded.
    pub response_speedup: Option<f64>,
    /// Energy of this scheme divided by that of the first: Chang's ES.
    pub energy: Option<f64>,
    /// Price of this scheme's flash divided by that of the first: Chang's EC.
    pub cost: Option<f64>,
}

impl Relative {
    pub(super) fn of(first: &Entry, entry: &Entry) -> Self {
        let speedup = first.mean_us().zip(entry.mean_us()).map(|(first, mean)| first / mean);
        Self {
            to: first.report.scheme.clone(),
            response_speedup: speedup.filter(|speedup| speedup.is_finite()),
            energy: report::energy_saving(&first.report, &entry.report),
            cost: report::extra_cost(&first.report, &entry.report),
        }
    }
}

/// Speed of the simulation. No other figures differ between runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Speed {
    /// Duration of all passes on this machine, without filling the device.
    pub wall_s: f64,
    /// Requests per second of that time.
    pub requests_per_s: f64,
    /// Flash page reads and programs per second of that time. Unmeasured passes are assumed to have as many as measured
    /// ones.
    pub page_ops_per_s: f64,
}

/// Adds the comparison with the first scheme to every other scheme.
pub(super) fn beside_the_first(mut results: Vec<Entry>) -> Vec<Entry> {
    if let Some((first, others)) = results.split_first_mut() {
        for other in others {
            other.relative = Some(Relative::of(first, other));
        }
    }
    results
}

/// Names of all regions with wear counts, fast ones first.
pub fn worn_names(entries: &[Entry]) -> Vec<&str> {
    let mut ordered: Vec<&Entry> = entries.iter().collect();
    // Devices with more regions come first, because they determine the order.
    ordered.sort_by_key(|entry| std::cmp::Reverse(entry.report.wear.len()));
    let mut names: Vec<&str> = Vec::new();
    for name in ordered.iter().flat_map(|entry| entry.report.wear.iter().map(|wear| wear.region.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
