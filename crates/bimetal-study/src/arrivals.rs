//! Arrival modes as users write them: `closed`, `closed:32`, `trace`, `trace:2.5`.

use bimetal_core::replay::Arrivals;

/// Largest number of outstanding requests in a closed loop.
const DEPTH_MAX: u32 = 65_536;
/// Name of the arrival mode that measures service times.
pub const SERVICE: &str = "closed:1";

/// Slowest and fastest speed-up of a trace's clock.
const SPEED_RANGE: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Parses an arrival mode.
///
/// # Errors
/// The text is not an arrival mode. The message lists the valid ones.
pub fn parse(text: &str) -> Result<Arrivals, String> {
    let (kind, number) = match text.split_once(':') {
        Some((kind, number)) => (kind, Some(number)),
        None => (text, None),
    };
    match kind {
        "closed" => {
            let depth =
                number.map_or(Some(1), |number| number.parse().ok().filter(|depth| (1..=DEPTH_MAX).contains(depth)));
            let depth = depth.ok_or_else(|| format!("the queue depth of `{text}` is not within 1 to {DEPTH_MAX}"))?;
            Ok(Arrivals::Closed { depth })
        }
        "trace" => {
            let speed =
                number.map_or(Some(1.0), |number| number.parse().ok().filter(|speed| SPEED_RANGE.contains(speed)));
            let speed = speed.ok_or_else(|| format!("the speed of `{text}` is not within 0.000001 to 1000000"))?;
            Ok(Arrivals::Trace { speed })
        }
        _ => Err(format!("`{text}` is not one of `closed`, `closed:DEPTH`, `trace`, `trace:SPEED`")),
    }
}

/// The text that [`parse`] reads as these arrivals.
pub fn name(arrivals: Arrivals) -> String {
    match arrivals {
        Arrivals::Closed { depth } => format!("closed:{depth}"),
        Arrivals::Trace { speed: 1.0 } => "trace".into(),
        Arrivals::Trace { speed } => format!("trace:{speed}"),
    }
}

/// The depth of a closed loop with this [`name`]; `None` for a trace's clock.
pub fn depth(name: &str) -> Option<String> {
    name.strip_prefix("closed:").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_parse_back() {
        for text in ["closed:1", "closed:32", "trace", "trace:2.5"] {
            assert_eq!(name(parse(text).unwrap()), text);
        }
        assert_eq!(parse("closed"), Ok(Arrivals::Closed { depth: 1 }));
        for text in ["", "open", "closed:", "closed:0", "closed:-1", "trace:0", "trace:nan", "trace:inf", "closed:1:2"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
