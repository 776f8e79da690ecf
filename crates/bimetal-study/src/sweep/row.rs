//! The result of a point: its figures, and everything needed to repeat it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bimetal_core::report::{KeyFigures, Overload, ResponseFigures, TraceFacts};
use bimetal_core::scheme;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::point::Point;
use crate::compare::{Entry, Speed};
use crate::number::{EXTRAPOLATED, KNOWN_FROM_OVERWRITES, NOTHING, counted, significant};

/// The result of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Row {
    /// Key of the point in results.
    pub key: String,
    /// The point itself.
    pub point: Point,
    /// Fingerprint of the trace; empty if the trace cannot be read.
    pub trace_fingerprint: String,
    /// Version of the scheme.
    pub scheme_version: u32,
    /// Version of this program.
    pub bimetal: String,
    /// The command that repeats the point, in the folder of the study file.
    pub command: String,
    /// Reason why there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The figures, unless the point failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// Speed of the simulation: the only fields that may differ when the point is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
}

/// The settings of a study that measure more passes.
pub const MORE_PASSES: &str = "`repeat` and `measure` in the `[replay]` of the study";

/// Maximum number of notes on rows.
const NOTES_SHOWN: usize = 5;

/// Changes that were made to devices so that schemes can run, each with the number of its points.
pub fn notes(rows: &[Row]) -> Vec<String> {
    let noted = rows.iter().filter_map(|row| Some((row, row.figures.as_ref()?)));
    let notes =
        noted.flat_map(|(row, figures)| figures.notes.iter().map(|note| (row.point.scheme.as_str(), note.as_str())));
    most_frequent(notes, "notes")
}

/// The reasons why points have no figures, each with the number of its points.
pub fn failures(rows: &[Row]) -> Vec<String> {
    let failed = rows.iter().filter_map(|row| Some((row.point.scheme.as_str(), row.failure.as_ref()?.what.as_str())));
    most_frequent(failed, "failures")
}

/// Texts about points of a scheme, the most frequent ones first.
fn most_frequent<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>, of_which: &str) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| Reverse(count));
    let line = |&((scheme, text), count): &((&str, &str), usize)| {
        format!("`{scheme}`, {}: {text}", counted(count as u64, "point"))
    };
    let mut lines: Vec<String> = counts.iter().take(NOTES_SHOWN).map(line).collect();
    if counts.len() > NOTES_SHOWN {
        let more = counts.len() - NOTES_SHOWN;
        lines.push(format!("and {more} more such {of_which}: the results as CSV and JSON have those of each point"));
    }
    lines
}

/// The figures of a point. Times are in microseconds unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figures {
    /// Requests of the trace.
    pub requests: u64,
    /// Logical capacity.
    pub logical_bytes: u64,
    /// Spare area of the slow region, as a share of the logical capacity.
    pub spare: f64,
    /// Whether responses measure the queue more than the device.
    pub overload: Overload,
    /// The busiest part.
    pub bottleneck: String,
    /// Share of the simulated time for which that part was busy.
    pub utilisation: f64,
    /// Responses of reads and writes.
    pub response_us: ResponseFigures,
    /// Responses of reads.
    pub read_us: ResponseFigures,
    /// Responses of writes.
    pub write_us: ResponseFigures,
    /// Simulated time of the measured passes, in seconds.
    pub simulated_s: f64,
    /// Open loop: how much longer the device took than the trace, in seconds. Not written to files.
    #[serde(skip)]
    pub backlog_s: f64,
    /// Reads and writes divided by the simulated time. For a closed loop it is the device's throughput.
    pub throughput_per_s: Option<f64>,
    /// Cost, life and other key figures.
    #[serde(flatten)]
    pub key_figures: KeyFigures,
    /// How many times the host wrote the logical capacity in the measured passes. Lives are extrapolated from it.
    pub lifetime_overwrites: f64,
    /// The regions.
    pub regions: Vec<RegionRow>,
    /// Wear of the regions. Blocks that always stay in SLC mode have their own entry.
    pub wear: Vec<WearRow>,
    /// The disks.
    pub disks: Vec<DiskRow>,
    /// The scheme's own figures, such as hit rates.
    pub metrics: Vec<(String, Option<f64>)>,
    /// Notes on rounding and adaptation.
    pub notes: Vec<String>,
    /// The complete device, as the text of a device file.
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
    /// Name of the region, with suffix `:slc` for blocks that stay in SLC mode.
    pub name: String,
    /// Mean erase count.
    pub erases_mean: f64,
    /// Used share of their life.
    pub used: f64,
}

/// A disk of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DiskRow {
    /// Name.
    pub name: String,
    /// Name of the drive.
    pub drive: String,
    /// Logical capacity on this disk.
    pub capacity_bytes: u64,
}

impl Figures {
    /// The figures of a replay of the trace.
    pub(super) fn of(entry: Entry, trace: &TraceFacts) -> Self {
        // A device that was parsed or constructed contains only numbers that TOML can represent.
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
            lifetime_overwrites: entry.lifetime_overwrites,
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

    /// Whether the lifetime is known and extrapolated from less than one overwrite of the device.
    pub fn is_extrapolated(&self) -> bool {
        self.key_figures.lifetime_years.is_some() && self.lifetime_overwrites < KNOWN_FROM_OVERWRITES
    }

    /// The life in a unit of `years` years, marked if it is extrapolated.
    pub fn life(&self, years: f64) -> String {
        let mark = if self.is_extrapolated() { EXTRAPOLATED } else { "" };
        let life = self.key_figures.lifetime_years;
        life.map_or_else(|| NOTHING.to_owned(), |life| format!("{mark}{}", significant(life / years)))
    }

    /// Whether the responses reflect the device, and not mainly the queue.
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

    /// The row without the fields that depend on the machine.
    pub fn without_speed(&self) -> Self {
        Self { speed: None, ..self.clone() }
    }
}
