//! Arrivals of requests while devices are judged: at the trace's own times, at those times scaled to an offered load,
//! or in a closed loop.

use std::fmt;
use std::str::FromStr;

use bimetal_core::replay::Arrivals;
use bimetal_core::report::TraceFacts;

use super::AdviceError;
use crate::arrivals;

/// An offered load: the trace's times are scaled to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfferedLoad {
    /// Arrivals faster than in the trace by this factor.
    Speed(f64),
    /// This number of requests per second on average.
    PerSecond(f64),
}

impl FromStr for OfferedLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| (1e-9..=1e12).contains(number));
        let trimmed = text.trim();
        let speed = trimmed.strip_suffix('x').and_then(number).map(Self::Speed);
        let read = speed.or_else(|| trimmed.strip_suffix("/s").and_then(number).map(Self::PerSecond));
        read.ok_or_else(|| {
            format!("`{text}` is not a load: write a factor of the trace's speed such as `2x`, or requests per second such as `5000/s`")
        })
    }
}

impl fmt::Display for OfferedLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Speed(times) => write!(f, "{times}x"),
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
        }
    }
}

/// The arrivals: as given, or at the trace's own times, or one request at a time if the trace has no times.
///
/// # Errors
/// Arrivals together with a load, a load for a trace without times, or a load too far from the trace's.
pub fn arriving(
    trace: &TraceFacts,
    asked: Option<Arrivals>,
    load: Option<OfferedLoad>,
) -> Result<Arrivals, AdviceError> {
    let has_times = trace.duration_s > 0.0;
    let Some(load) = load else {
        let usual = if has_times { Arrivals::Trace { speed: 1.0 } } else { Arrivals::Closed { depth: 1 } };
        return Ok(asked.unwrap_or(usual));
    };
    let refused = |what: String| Err(AdviceError::Refused(what));
    if asked.is_some() {
        return refused(format!(
            "`--load {load}` says when requests arrive, as `--arrivals` does; hint: leave one of them out"
        ));
    }
    if !has_times {
        return refused(format!(
            "`--load {load}` scales the times of the trace, which has none; hint: `--arrivals closed:8` keeps 8 requests outstanding"
        ));
    }
    let speed = match load {
        OfferedLoad::Speed(times) => times,
        OfferedLoad::PerSecond(rate) => rate / (trace.requests as f64 / trace.duration_s),
    };
    let scaled = Arrivals::Trace { speed };
    match arrivals::parse(&arrivals::name(scaled)) {
        Ok(parsed) => Ok(parsed),
        Err(_) => refused(format!(
            "`--load {load}` is {speed} times the load of the trace; hint: from 0.000001 to 1000000 times"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_core::request::{Op, Request};

    fn trace(gap_ns: u64) -> TraceFacts {
        let request =
            |number: u64| Request { arrival_ns: number * gap_ns, sector: 0, sectors: 8, op: Op::Write, handle: 0 };
        TraceFacts::of("t", "generated", &(0..101).map(request).collect::<Vec<_>>())
    }

    fn arrives(trace: &TraceFacts, asked: Option<&str>, load: Option<&str>) -> Result<String, String> {
        let asked = asked.map(|text| arrivals::parse(text).unwrap());
        let found = arriving(trace, asked, load.map(|text| text.parse().unwrap()));
        found.map(arrivals::name).map_err(|error| error.to_string())
    }

    #[test]
    fn the_traces_times_are_the_usual_where_it_has_some() {
        assert_eq!(arrives(&trace(1_000_000), None, None).unwrap(), "trace");
        assert_eq!(arrives(&trace(0), None, None).unwrap(), "closed:1");
        assert_eq!(arrives(&trace(1_000_000), Some("closed:4"), None).unwrap(), "closed:4");
    }

    #[test]
    fn loads_scale_the_traces_times() {
        assert_eq!(arrives(&trace(1_000_000), None, Some("2x")).unwrap(), "trace:2");
        assert_eq!(arrives(&trace(1_000_000), None, Some("1x")).unwrap(), "trace");
        // 101 requests within 0.1 s are 1,010 per second.
        assert_eq!(arrives(&trace(1_000_000), None, Some("505/s")).unwrap(), "trace:0.5");
    }

    #[test]
    fn loads_that_cannot_be_are_refused() {
        for text in ["2", "x", "-1x", "0x", "nan/s", "5000", "5000/m", "2x/s"] {
            let error = text.parse::<OfferedLoad>().unwrap_err();
            assert!(error.contains(text) && error.contains("5000/s"), "{error}");
        }
        let of = trace(1_000_000);
        assert!(arrives(&of, Some("trace"), Some("2x")).unwrap_err().contains("--arrivals"));
        assert!(arrives(&of, None, Some("9999999x")).unwrap_err().contains("1000000"));
        assert!(arrives(&trace(0), None, Some("2x")).unwrap_err().contains("has none"));
    }
}
