//! Goals for a device, and their verdicts.

use std::fmt;

use serde::{Serialize, Serializer};

use super::DAYS_PER_YEAR;
use crate::number::{LIVES, TIMES, Units, dollars, significant, with_unit};
use crate::sweep::row::Figures;

/// A measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Mean response of reads and writes, in microseconds.
    Mean,
    /// Median response.
    P50,
    /// 95th percentile of the responses.
    P95,
    /// 99th percentile of the responses.
    P99,
    /// 99.9th percentile of the responses.
    P999,
    /// Life at the write rate of the trace, in years.
    Life,
    /// Host writes until wear-out, in terabytes of 10^12 bytes.
    Tbw,
    /// Drive writes per day: host writes until wear-out divided by the logical capacity and the days of the warranty.
    Dwpd,
    /// Price, in US dollars.
    Cost,
}

/// Terabytes written; the base unit is the terabyte of 10^12 bytes.
pub const WRITTEN: Units = &[("MB", 1e-6), ("GB", 1e-3), ("TB", 1.0), ("PB", 1e3), ("EB", 1e6)];
/// Bytes of a terabyte.
pub const TB: f64 = 1e12;

/// Limit that can make a device miss a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The device is too slow.
    Latency,
    /// It is worn out too soon.
    Wear,
    /// It is too expensive.
    Money,
}

impl Measure {
    /// All measures, in display order.
    pub const ALL: [Self; 9] =
        [Self::Mean, Self::P50, Self::P95, Self::P99, Self::P999, Self::Life, Self::Tbw, Self::Dwpd, Self::Cost];

    /// Name of its goal on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Life => "life",
            Self::Tbw => "tbw",
            Self::Dwpd => "dwpd",
            Self::Cost => "budget",
        }
    }

    /// Its name in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Mean => "mean response",
            Self::P50 => "median response",
            Self::P95 => "95th percentile",
            Self::P99 => "99th percentile",
            Self::P999 => "99.9th percentile",
            Self::Life => "life",
            Self::Tbw => "TBW",
            Self::Dwpd => "DWPD",
            Self::Cost => "cost",
        }
    }

    /// The limit, if a goal of this measure is missed.
    pub fn cause(self) -> Cause {
        match self {
            Self::Life | Self::Tbw | Self::Dwpd => Cause::Wear,
            Self::Cost => Cause::Money,
            _ => Cause::Latency,
        }
    }

    /// Whether larger values are better.
    pub fn is_more_better(self) -> bool {
        self.cause() == Cause::Wear
    }

    /// A value with its unit.
    pub fn shown(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => "none".into(),
            Self::Life => with_unit(LIVES, value),
            Self::Tbw => with_unit(WRITTEN, value),
            Self::Dwpd => significant(value),
            Self::Cost => format!("{} USD", dollars(value)),
            _ => with_unit(TIMES, value),
        }
    }
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A bound on a measure: the least life, or the most of any other measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Goal {
    /// The measure, written as the name of its option.
    #[schemars(with = "String")]
    pub measure: Measure,
    /// The bound, in microseconds, years, terabytes, drive writes per day or US dollars.
    pub limit: f64,
}

impl Goal {
    /// Parses a bound: `2ms`, `5y`, `600TB`, `20`. Units may be in capital letters or not.
    ///
    /// # Errors
    /// The text is not a bound. The message gives valid examples.
    pub fn parse(measure: Measure, text: &str) -> Result<Self, String> {
        let (units, such): (&[(&str, f64)], _) = match measure {
            Measure::Life => (&[("y", 1.0), ("d", 1.0 / 365.25), ("h", 1.0 / 8766.0)], "a life such as 5y, 90d or 12h"),
            Measure::Tbw => (
                &[("gb", 1e-3), ("tb", 1.0), ("pb", 1e3), ("eb", 1e6)],
                "an amount of written data such as 600TB, 1.2PB or 500GB",
            ),
            Measure::Dwpd => (&[("dwpd", 1.0), ("", 1.0)], "a number of drive writes per day such as 1 or 0.3"),
            Measure::Cost => (&[("usd", 1.0), ("", 1.0)], "an amount of US dollars such as 20 or 7.50"),
            _ => {
                (&[("ns", 1e-3), ("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)], "a time such as 500us, 2ms or 1s")
            }
        };
        let text = text.trim();
        let lower = text.to_lowercase();
        let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| (1e-9..=1e12).contains(number));
        let read = |&(unit, size): &(&str, f64)| number(lower.strip_suffix(unit)?).map(|number| number * size);
        let limit = units.iter().find_map(read).ok_or_else(|| format!("`{text}` is not {such}"))?;
        Ok(Self { measure, limit })
    }

    /// The factor by which the goal is missed, or at most 1 if it is met.
    pub fn excess(&self, outcome: &Outcome) -> f64 {
        let value = outcome.of(self.measure);
        if self.measure.is_more_better() { self.limit / value } else { value / self.limit }
    }

    /// The sign of a value that misses the goal although it is displayed like the limit; empty for any other value.
    pub fn sign(&self, value: f64) -> &'static str {
        let shown = |value| self.measure.shown(value);
        match self.measure.is_more_better() {
            true if value < self.limit && shown(value) == shown(self.limit) => "<",
            false if value > self.limit && shown(value) == shown(self.limit) => ">",
            _ => "",
        }
    }

    /// Whether the goal is met.
    pub fn is_met(&self, outcome: &Outcome) -> bool {
        self.excess(outcome) <= 1.0
    }
}

/// How far a goal is missed, in words, by the factor.
pub fn missed_by(excess: f64) -> String {
    match significant(excess) {
        factor if factor == significant(1.0) => "by less than 1 %".to_owned(),
        factor => format!("by a factor of {factor}"),
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = if self.measure.is_more_better() { "at least" } else { "at most" };
        write!(f, "{} {bound} {}", self.measure.words(), self.measure.shown(self.limit))
    }
}

/// The figures of a device to which goals apply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// By [`Measure::ALL`]. Responses of an overloaded device are infinite.
    values: [f64; Measure::ALL.len()],
    /// Utilisation of the busiest part in an open loop; above 1 the device is overloaded. 0 in a closed loop.
    busy: f64,
}

/// The write rate on which lives are based, in bytes per day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The rate given by the user, or the rate of a trace that is replayed at another speed than its own.
    pub asked: Option<f64>,
    /// The rate of the trace at its own times, if it has a duration.
    pub of_trace: Option<f64>,
}

impl Rate {
    /// The rate that applies.
    pub fn bytes_per_day(self) -> Option<f64> {
        self.asked.or(self.of_trace)
    }
}

/// Arrival times of an open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arriving {
    /// Duration of a pass through the trace, in seconds.
    pub pass_s: f64,
    /// Duration of the measured passes, in seconds.
    pub measured_s: f64,
}

/// A device is overloaded if the backlog at the end of a replay exceeds this share of a pass ...
const BEHIND_SHARE: f64 = 0.01;
/// ... and also this number of seconds.
const BEHIND_S: f64 = 1.0;

impl Arriving {
    /// Whether a device is overloaded that ends a replay this number of seconds after the last arrival.
    pub fn falls_behind(self, backlog_s: f64) -> bool {
        backlog_s > BEHIND_SHARE * self.pass_s && backlog_s > BEHIND_S
    }
}

/// Assumptions for judging figures, identical for all devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The write rate on which lives are based.
    pub rate: Rate,
    /// Arrival times; none in a closed loop.
    pub arriving: Option<Arriving>,
    /// Years on which drive writes per day are based.
    pub warranty_years: f64,
}

/// Properties of a device that are not in the figures, if it is simulated at a fraction of its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whole {
    /// Price, in US dollars.
    pub cost_usd: f64,
    /// Size relative to the simulated device.
    pub scale: f64,
}

impl Outcome {
    /// The outcome for the figures of a replay.
    pub fn of_figures(figures: &Figures, whole: Whole, terms: &Terms) -> Self {
        let response = &figures.response_us;
        let host_bytes = match figures.key_figures.lifetime_host_bytes {
            Some(bytes) => bytes * whole.scale,
            // Without writes there is no wear. Without programmed pages nothing is known.
            None if figures.write_us.count == 0 => f64::INFINITY,
            None => 0.0,
        };
        let life = match (figures.key_figures.lifetime_years, terms.rate.asked, terms.rate.bytes_per_day()) {
            _ if host_bytes.is_infinite() => f64::INFINITY,
            // The value of the replay, bit for bit.
            (Some(years), None, _) => years * whole.scale,
            (_, _, bytes) => bytes.map_or(0.0, |bytes| host_bytes / bytes / DAYS_PER_YEAR),
        };
        let capacity_days = figures.logical_bytes as f64 * whole.scale * terms.warranty_years * DAYS_PER_YEAR;
        let falls_behind = terms.arriving.is_some_and(|arriving| arriving.falls_behind(figures.backlog_s));
        let value = |measure| match measure {
            Measure::Life => life,
            Measure::Tbw => host_bytes / TB,
            Measure::Dwpd => host_bytes / capacity_days,
            Measure::Cost => whole.cost_usd,
            _ if falls_behind => f64::INFINITY,
            Measure::Mean => response.mean,
            Measure::P50 => response.p50,
            Measure::P95 => response.p95,
            Measure::P99 => response.p99,
            Measure::P999 => response.p999,
        };
        let busy = terms
            .arriving
            .map_or(0.0, |arriving| figures.utilisation * (figures.simulated_s / arriving.measured_s).max(1.0));
        Self { busy, ..Self::new(value) }
    }

    /// Made from a value of each measure.
    pub fn new(value: impl Fn(Measure) -> f64) -> Self {
        Self { values: Measure::ALL.map(value), busy: 0.0 }
    }

    /// The same outcome with this utilisation.
    pub fn at_busy(mut self, busy: f64) -> Self {
        self.busy = busy;
        self
    }

    /// Utilisation of the busiest part in an open loop; above 1 the device is overloaded. 0 in a closed loop.
    pub fn busy(&self) -> f64 {
        self.busy
    }

    /// The value of a measure, in the unit of [`Goal::limit`].
    pub fn of(&self, measure: Measure) -> f64 {
        self.values[measure as usize]
    }

    /// The same outcome at another price.
    pub fn at_cost(mut self, cost_usd: f64) -> Self {
        self.values[Measure::Cost as usize] = cost_usd;
        self
    }

    /// Whether all goals are met.
    pub fn meets(&self, goals: &[Goal]) -> bool {
        goals.iter().all(|goal| goal.is_met(self))
    }

    /// The largest factor by which a goal is missed, 0 without goals.
    pub fn worst_excess(&self, goals: &[Goal]) -> f64 {
        goals.iter().map(|goal| goal.excess(self)).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_have_units() {
        let limit = |measure, text| Goal::parse(measure, text).map(|goal| goal.limit);
        assert_eq!(limit(Measure::P99, "2ms"), Ok(2000.0));
        assert_eq!(limit(Measure::Mean, " 500 us"), Ok(500.0));
        assert_eq!(limit(Measure::P50, "0.5s"), Ok(500_000.0));
        assert_eq!(limit(Measure::Life, "5y"), Ok(5.0));
        assert_eq!(limit(Measure::Life, "365.25d"), Ok(1.0));
        assert_eq!(limit(Measure::Life, "8766h"), Ok(1.0));
        assert_eq!(limit(Measure::Cost, "20"), Ok(20.0));
        assert_eq!(limit(Measure::Cost, "7.50 USD"), Ok(7.5));
        assert_eq!(limit(Measure::Tbw, "600TB"), Ok(600.0));
        assert_eq!(limit(Measure::Tbw, "1.2 PB"), Ok(1200.0));
        assert_eq!(limit(Measure::Tbw, "600tb"), Ok(600.0));
        assert_eq!(limit(Measure::Tbw, "1EB"), Ok(1e6));
        assert_eq!(limit(Measure::Dwpd, "0.3"), Ok(0.3));
        assert_eq!(limit(Measure::Dwpd, "3DWPD"), Ok(3.0));
        assert_eq!(limit(Measure::P50, "500ns"), Ok(0.5));
        for (measure, text, said) in [
            (Measure::Tbw, "600", "1.2PB"),
            (Measure::Tbw, "600TiB", "1.2PB"),
            (Measure::Dwpd, "1y", "0.3"),
            (Measure::P99, "2", "500us"),
            (Measure::P99, "-2ms", "500us"),
            (Measure::P99, "5y", "500us"),
            (Measure::Life, "5", "90d"),
            (Measure::Life, "0y", "90d"),
            (Measure::Cost, "nan", "dollars"),
            (Measure::Cost, "5y", "dollars"),
        ] {
            let error = limit(measure, text).unwrap_err();
            assert!(error.contains(said) && error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_device_falls_behind_by_a_share_of_the_trace_and_by_a_second() {
        let arriving = |pass_s| Arriving { pass_s, measured_s: 2.0 * pass_s };
        assert!(arriving(50.0).falls_behind(1.1) && !arriving(50.0).falls_behind(0.9));
        assert!(arriving(1000.0).falls_behind(10.1) && !arriving(1000.0).falls_behind(9.9));
    }

    #[test]
    fn a_value_that_looks_like_the_limit_it_misses_has_a_sign() {
        let sign = |measure, limit, value| Goal { measure, limit }.sign(value);
        assert_eq!(sign(Measure::Life, 8.0, 7.999), "<");
        assert_eq!([8.0, 8.001, 7.9].map(|years| sign(Measure::Life, 8.0, years)), [""; 3]);
        assert_eq!(sign(Measure::P99, 20_000.0, 20_001.0), ">");
        assert_eq!([20_000.0, 19_999.0, 20_100.0].map(|us| sign(Measure::P99, 20_000.0, us)), [""; 3]);
        assert_eq!([1.0001, 1.2].map(missed_by), ["by less than 1 %", "by a factor of 1.20"]);
    }

    #[test]
    fn a_goal_is_missed_by_a_factor() {
        let outcome = Outcome::new(|measure| match measure {
            Measure::Life => 2.5,
            Measure::P99 => 3000.0,
            _ => f64::INFINITY,
        });
        let goal = |measure, limit| Goal { measure, limit };
        assert_eq!(goal(Measure::Life, 5.0).excess(&outcome), 2.0);
        assert_eq!(goal(Measure::P99, 2000.0).excess(&outcome), 1.5);
        assert!(goal(Measure::P99, 3000.0).is_met(&outcome));
        assert_eq!(outcome.worst_excess(&[goal(Measure::Life, 5.0), goal(Measure::P99, 2000.0)]), 2.0);
        assert!(!outcome.meets(&[goal(Measure::Mean, 1e9)]), "overloaded");
        assert!(outcome.meets(&[]) && outcome.at_cost(3.0).meets(&[goal(Measure::Cost, 3.0)]));
    }
}
