//! A simulated device with its figures.

use serde::Serialize;

use super::goals::{Cause, Goal, Measure, Outcome, Terms};
use super::space::Candidate;
use crate::number::{EXTRAPOLATED, KNOWN_FROM_OVERWRITES, NOTHING};
use crate::sweep::row::Row;

/// Stands for the responses of an overloaded device.
pub const FALLS_BEHIND: &str = "falls behind";

/// Responses of reads and writes, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ResponseTimes {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
}

impl ResponseTimes {
    /// Made from a value of each measure; none if one is not finite.
    fn new(of: impl Fn(Measure) -> f64) -> Option<Self> {
        let of = |measure| finite(of(measure));
        Some(Self {
            mean: of(Measure::Mean)?,
            p50: of(Measure::P50)?,
            p95: of(Measure::P95)?,
            p99: of(Measure::P99)?,
            p999: of(Measure::P999)?,
        })
    }

    /// The value of a response measure; none for other measures.
    fn of(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Mean => Some(self.mean),
            Measure::P50 => Some(self.p50),
            Measure::P95 => Some(self.p95),
            Measure::P99 => Some(self.p99),
            Measure::P999 => Some(self.p999),
            Measure::Life | Measure::Tbw | Measure::Dwpd | Measure::Cost => None,
        }
    }
}

/// A device with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Choice {
    /// The device in words.
    pub device: String,
    /// Its scheme.
    pub scheme: String,
    /// All of its flash in native mode, in bytes.
    pub flash_bytes: f64,
    /// Channels of all regions.
    pub channels: u32,
    /// Dies of all regions.
    pub dies: u32,
    /// Price, in US dollars.
    pub cost_usd: f64,
    /// Responses with the arrivals of the answer's `replay`; none for an overloaded device.
    pub response_us: Option<ResponseTimes>,
    /// Responses with one request at a time, so that none waits; none if `response_us` comes from a closed loop.
    pub service_us: Option<ResponseTimes>,
    /// For an overloaded device: the time it took for the requests, relative to the time they took to arrive.
    pub overload: Option<f64>,
    /// Life in years; none if no page was programmed in the measured passes.
    pub life_years: Option<f64>,
    /// Host writes until wear-out, in bytes; none if no page was programmed in the measured passes.
    pub lifetime_host_bytes: Option<f64>,
    /// Number of times that the host overwrote the device in the measured passes. Life is extrapolated from them, and
    /// may be much shorter if they are less than 1.
    pub lifetime_overwrites: f64,
    /// Host writes until wear-out in terabytes of 10^12 bytes.
    pub tbw: Option<f64>,
    /// Drive writes per day: `tbw` divided by the logical capacity and the days of the warranty.
    pub dwpd: Option<f64>,
    /// For each goal, the factor by which it is missed: at most 1 if the goal is met, none if unknown.
    pub excess: Vec<Option<f64>>,
    /// Whether all goals are met.
    pub meets: bool,
    /// The command that repeats its figures; none if no command can read the trace.
    pub command: Option<String>,
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Description of a device, before its figures are known.
pub(super) struct Made {
    pub device: String,
    pub scheme: String,
    pub flash_bytes: f64,
    pub channels: u32,
    pub dies: u32,
    /// Size relative to the simulated device.
    pub scale: f64,
    pub command: Option<String>,
}

impl From<&Candidate> for Made {
    fn from(candidate: &Candidate) -> Self {
        Self {
            device: candidate.layout.words(candidate.scale),
            scheme: candidate.point.scheme.clone(),
            flash_bytes: candidate.layout.flash_bytes as f64 * candidate.scale,
            channels: candidate.layout.channels(),
            dies: candidate.layout.dies(),
            scale: candidate.scale,
            command: candidate.point.command(),
        }
    }
}

impl Choice {
    /// A remark if the device is overloaded, which only goals for responses exclude.
    pub(super) fn falls_behind(&self) -> Option<String> {
        self.overload.map(|_| {
            "this device falls behind the trace: its responses grow until the end; a goal for responses, such as \
             `--mean 10ms`, excludes such devices"
                .to_owned()
        })
    }

    /// A device with its row, and its row with one request at a time unless the first row is that already.
    pub(super) fn new(
        made: Made,
        (row, service): (&Row, Option<&Row>),
        outcome: &Outcome,
        goals: &[Goal],
        terms: &Terms,
    ) -> Self {
        let figures = row.figures.as_ref();
        let response_us = ResponseTimes::new(|measure| outcome.of(measure));
        let overload = || finite(figures?.simulated_s / terms.arriving?.measured_s);
        let worn = |measure| finite(outcome.of(measure)).filter(|&value| value > 0.0);
        let host_bytes = figures.and_then(|figures| figures.key_figures.lifetime_host_bytes);
        let one_at_a_time = |row: &Row| {
            let response = row.figures.as_ref()?.response_us;
            ResponseTimes::new(|measure| match measure {
                Measure::P50 => response.p50,
                Measure::P95 => response.p95,
                Measure::P99 => response.p99,
                Measure::P999 => response.p999,
                _ => response.mean,
            })
        };
        Self {
            device: made.device,
            scheme: made.scheme,
            flash_bytes: made.flash_bytes,
            channels: made.channels,
            dies: made.dies,
            cost_usd: outcome.of(Measure::Cost),
            overload: if response_us.is_none() { overload() } else { None },
            response_us,
            service_us: service.and_then(one_at_a_time),
            life_years: worn(Measure::Life),
            lifetime_host_bytes: host_bytes.map(|bytes| bytes * made.scale),
            lifetime_overwrites: figures.map_or(0.0, |figures| figures.lifetime_overwrites),
            tbw: worn(Measure::Tbw),
            dwpd: worn(Measure::Dwpd),
            excess: goals.iter().map(|goal| finite(goal.excess(outcome))).collect(),
            meets: outcome.meets(goals),
            command: made.command,
        }
    }

    /// Device and scheme in words.
    pub fn words(&self) -> String {
        format!("{}, scheme {}", self.device, self.scheme)
    }

    /// A measured value with its unit.
    pub fn shown(&self, measure: Measure) -> String {
        let none = if measure.cause() == Cause::Latency { FALLS_BEHIND } else { NOTHING };
        let mark = self.mark(measure);
        self.of(measure).map_or_else(|| none.to_owned(), |value| format!("{mark}{}", measure.shown(value)))
    }

    /// Whether its wear is extrapolated from less than one overwrite.
    pub fn is_extrapolated(&self) -> bool {
        self.lifetime_host_bytes.is_some() && self.lifetime_overwrites < KNOWN_FROM_OVERWRITES
    }

    /// The mark of a value that is extrapolated from less than one overwrite.
    pub fn mark(&self, measure: Measure) -> &'static str {
        if measure.cause() == Cause::Wear && self.is_extrapolated() { EXTRAPOLATED } else { "" }
    }

    /// The service time that corresponds to a response measure, with its unit.
    pub fn service(&self, response: Measure) -> String {
        let us = self.service_us.and_then(|all| all.of(response));
        us.map_or_else(|| NOTHING.to_owned(), |us| response.shown(us))
    }

    /// A measured value.
    pub fn of(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Cost => Some(self.cost_usd),
            Measure::Life => self.life_years,
            Measure::Tbw => self.tbw,
            Measure::Dwpd => self.dwpd,
            _ => self.response_us?.of(measure),
        }
    }
}
