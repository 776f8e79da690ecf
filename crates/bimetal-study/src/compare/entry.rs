//! What is said of one scheme.

use bimetal_core::device::Device;
use bimetal_core::report::{self, Overload, Report, ResponseFigures};
use serde::{Deserialize, Serialize};

use super::parts::{DiskFacts, RegionFacts};
use crate::arrivals;

/// One scheme.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Entry {
    /// All figures.
    #[serde(flatten)]
    pub report: Report,
    /// When requests arrived in the replay of these figures: `closed:DEPTH` or `trace:SPEED`.
    pub arrivals: String,
    /// How much longer the device took than the trace, in seconds; 0 in a closed loop.
    pub backlog_s: f64,
    /// Service times of reads and writes: a closed loop of one request. None where there was no such replay.
    pub service_us: Option<ResponseFigures>,
    /// Service times of reads.
    pub service_read_us: Option<ResponseFigures>,
    /// Service times of writes.
    pub service_write_us: Option<ResponseFigures>,
    /// How many times the host wrote the logical capacity in the measured passes: what lifetimes are extrapolated from.
    pub lifetime_overwrites: f64,
    /// The device in full, as configured: a device file of its own.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub device: Device,
    /// What the regions amount to.
    pub regions: Vec<RegionFacts>,
    /// What the home disks amount to; none where all data are in flash.
    pub disks: Vec<DiskFacts>,
    /// Capacity of the slow region beyond the logical capacity, as a share of the logical capacity.
    pub spare: f64,
    /// Wear of the fast region by that of the slow one: Chang's BW.
    pub block_wearing: Option<f64>,
    /// Share of life used of the more worn region by that of the other: WLAFTL's Φ.
    pub phi: Option<f64>,
    /// Beside the first scheme of the comparison; none for that one itself.
    pub relative: Option<Relative>,
    /// What was rounded or adapted.
    pub notes: Vec<String>,
    /// How fast the simulation was.
    pub speed: Speed,
    /// How the mean response differs from seed to seed, where more than one was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

impl Entry {
    /// The mean response, over all seeds that were run; none where responses only say how long the trace is.
    pub fn mean_us(&self) -> Option<f64> {
        let mean_us = self.spread.map_or(self.report.response_us.mean, |spread| spread.mean_us);
        (!self.falls_behind()).then_some(mean_us)
    }

    /// Whether the device falls behind the trace more and more.
    pub fn falls_behind(&self) -> bool {
        self.report.load.overload == Overload::Growing
    }

    /// Whether a lifetime is known, and extrapolated from less than one overwrite of the device.
    pub fn is_extrapolated(&self) -> bool {
        self.report.key_figures.lifetime_host_bytes.is_some() && self.lifetime_overwrites < 1.0
    }

    /// Service times that stand beside responses of another replay.
    pub fn service_beside(&self) -> Option<&ResponseFigures> {
        self.service_us.as_ref().filter(|_| self.arrivals != arrivals::SERVICE)
    }

    /// Takes service times from a replay of one request at a time.
    pub(super) fn with_service_of(self, report: &Report) -> Self {
        Self {
            service_us: Some(report.response_us),
            service_read_us: Some(report.read_us),
            service_write_us: Some(report.write_us),
            ..self
        }
    }

    /// Whether a row of the report's operations is one of a disk.
    pub fn is_disk(&self, region: &str) -> bool {
        self.disks.iter().any(|disk| disk.name == region)
    }
}

/// The mean response over several seeds: those of the device, the next one, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Spread {
    /// How many seeds were run.
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
            seeds: means_us.len() as u32,
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

/// A scheme beside the first one of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Relative {
    /// The first scheme.
    pub to: String,
    /// Its total response by this one's: Chang's RS. None where responses of one of the two
    /// grow with the trace.
    pub response_speedup: Option<f64>,
    /// This one's energy by its: Chang's ES.
    pub energy: Option<f64>,
    /// The price of this one's flash by that of its: Chang's EC.
    pub cost: Option<f64>,
}

impl Relative {
    pub(super) fn of(first: &Report, report: &Report) -> Self {
        let compares = [first, report].iter().all(|report| report.load.overload != Overload::Growing);
        Self {
            to: first.scheme.clone(),
            response_speedup: report::response_speedup(first, report).filter(|_| compares),
            energy: report::energy_saving(first, report),
            cost: report::extra_cost(first, report),
        }
    }
}

/// How fast the simulation was. The only figures that differ from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Speed {
    /// Duration of all passes on this machine, without filling the device.
    pub wall_s: f64,
    /// Requests by that.
    pub requests_per_s: f64,
    /// Flash page reads and programs by that; those of unmeasured passes are taken to be as many as of measured ones.
    pub page_ops_per_s: f64,
}

/// Each scheme but the first is put beside the first.
pub(super) fn beside_the_first(mut results: Vec<Entry>) -> Vec<Entry> {
    if let Some((first, others)) = results.split_first_mut() {
        for other in others {
            other.relative = Some(Relative::of(&first.report, &other.report));
        }
    }
    results
}
