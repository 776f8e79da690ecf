//! Claims compared with measured values. Every verdict is computed here.

use std::fmt::Display;

use bimetal_study::figure::short;

use crate::claim::{Kind, Verdict};

/// A claim of a paper, and its verdict: a [`Claim`](crate::claim::Claim) without the names of paper and figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub(super) claim: &'static str,
    pub(super) kind: Kind,
    pub(super) target: Option<&'static str>,
    pub(super) expected: String,
    pub(super) measured: String,
    pub(super) verdict: Verdict,
    pub(super) reason: String,
    pub(super) explanation: Option<&'static str>,
    pub(super) calibrated_explanation: Option<&'static str>,
    pub(super) is_fitted: bool,
}

impl Finding {
    /// A statement that was tested and is true or false. `expected` is the paper's value, `measured` the measured one.
    pub fn fact(claim: &'static str, expected: impl Display, held: bool, measured: impl Display) -> Self {
        Self {
            claim,
            kind: Kind::Result,
            target: None,
            expected: expected.to_string(),
            measured: measured.to_string(),
            verdict: Verdict::of(held),
            reason: if held { "as expected".into() } else { "not as expected".into() },
            explanation: None,
            calibrated_explanation: None,
            is_fitted: false,
        }
    }

    /// A number in the paper. The claim holds within the share `tolerance` of it. NaN cannot be judged.
    pub fn about(claim: &'static str, paper: f64, tolerance: f64, measured: f64) -> Self {
        if measured.is_nan() {
            return Self::unmeasured(claim, format!("{} ± {} %", short(paper), short(tolerance * 100.0)));
        }
        let off = measured / paper - 1.0;
        let percent = (off.abs() * 100.0, if off < 0.0 { "below" } else { "above" });
        Self {
            reason: format!("{} % {} the paper's figure", short(percent.0), percent.1),
            ..Self::fact(
                claim,
                format!("{} ± {} %", short(paper), short(tolerance * 100.0)),
                off.abs() <= tolerance,
                short(measured),
            )
        }
    }

    /// A number that must lie within bounds, of which one may be infinite. NaN cannot be judged.
    pub fn between(claim: &'static str, low: f64, high: f64, measured: f64) -> Self {
        let expected = match (low.is_finite(), high.is_finite()) {
            (true, false) => format!("at least {}", short(low)),
            (false, true) => format!("at most {}", short(high)),
            _ => format!("{} to {}", short(low), short(high)),
        };
        if measured.is_nan() {
            return Self::unmeasured(claim, expected);
        }
        let reason = if measured < low {
            format!("{} below the lower bound", short(low - measured))
        } else if measured > high {
            format!("{} above the upper bound", short(measured - high))
        } else {
            "within the bounds".into()
        };
        Self { reason, ..Self::fact(claim, expected, (low..=high).contains(&measured), number(measured)) }
    }

    /// A number with a least value. NaN cannot be judged.
    pub fn at_least(claim: &'static str, low: f64, measured: f64) -> Self {
        Self::between(claim, low, f64::INFINITY, measured)
    }

    /// A number with a largest value. NaN cannot be judged.
    pub fn at_most(claim: &'static str, high: f64, measured: f64) -> Self {
        Self::between(claim, f64::NEG_INFINITY, high, measured)
    }

    /// A number that must be below a limit. NaN cannot be judged.
    pub fn below(claim: &'static str, limit: f64, measured: f64) -> Self {
        Self::beyond(claim, format!("below {}", short(limit)), measured < limit, measured)
    }

    /// A number that must be above a limit. NaN cannot be judged.
    pub fn above(claim: &'static str, limit: f64, measured: f64) -> Self {
        Self::beyond(claim, format!("above {}", short(limit)), measured > limit, measured)
    }

    fn beyond(claim: &'static str, expected: String, held: bool, measured: f64) -> Self {
        if measured.is_nan() {
            return Self::unmeasured(claim, expected);
        }
        Self::fact(claim, expected, held, number(measured))
    }

    /// The position of the best point on a curve with points `step` apart. It holds if our position is at most a step
    /// from the paper's, and our value at the paper's position is worse than our best by at most the share `tolerance`.
    pub fn best_at(
        claim: &'static str,
        paper: f64,
        best: Best,
        (step, tolerance): (f64, f64),
        points: &[(f64, f64)],
    ) -> Self {
        let found = match best {
            Best::Lowest => lowest(points),
            Best::Highest => highest(points),
        };
        let there = points.iter().find(|&&(x, _)| x == paper);
        let (Some(((x, value), _)), Some(&(_, there))) = (found, there) else {
            return Self::not_judged(claim, short(paper), "nothing", "the place was not tried");
        };
        let worse = match best {
            Best::Lowest => there / value - 1.0,
            Best::Highest => 1.0 - there / value,
        };
        let held = (x - paper).abs() <= step && worse <= tolerance;
        let percent = short(worse * 100.0);
        Self {
            reason: format!("at the paper's place {percent} % worse than at ours"),
            ..Self::fact(
                claim,
                format!(
                    "{} ± {}, and at {} no more than {} % worse",
                    short(paper),
                    short(step),
                    short(paper),
                    short(tolerance * 100.0)
                ),
                held,
                format!("{}; at {} {percent} % worse", short(x), short(paper)),
            )
        }
    }

    /// A claim that cannot be judged here, with the reason.
    pub fn not_judged(claim: &'static str, expected: impl Display, measured: impl Display, why: impl Display) -> Self {
        Self { verdict: Verdict::NotJudged, reason: why.to_string(), ..Self::fact(claim, expected, true, measured) }
    }

    /// A claim about a figure that this replay does not have, such as the wear of a region that was never erased.
    fn unmeasured(claim: &'static str, expected: String) -> Self {
        Self::not_judged(claim, expected, "nothing", "the replay does not have this figure")
    }

    /// The same claim, which these replays cannot decide.
    pub fn undecided(self, why: impl Display) -> Self {
        Self::not_judged(self.claim, self.expected, self.measured, why).of_kind(self.kind)
    }

    /// Sets the expected value in words, if the figures alone do not say where it is from.
    pub fn expected(mut self, expected: impl Display) -> Self {
        self.expected = expected.to_string();
        self
    }

    /// Sets the kind of statement, if it is not a result.
    pub fn of_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the reason, a line that replaces the one made from the figures.
    pub fn reason(mut self, reason: impl Display) -> Self {
        self.reason = reason.to_string();
        self
    }

    /// Sets the reason why the claim does not hold on the generated workloads, if it does not: the result of an
    /// experiment, which the paper's page reports. It does not apply to a user's own trace.
    pub fn unless(mut self, explanation: &'static str) -> Self {
        self.explanation = Some(explanation);
        self
    }

    /// The same for calibrated stand-ins.
    pub fn unless_calibrated(mut self, explanation: &'static str) -> Self {
        self.calibrated_explanation = Some(explanation);
        self
    }

    /// Marks a figure to which calibrated stand-ins are fitted, so that on them it is no result about a scheme.
    pub fn fitted(mut self) -> Self {
        self.is_fitted = true;
        self
    }

    /// Sets the acceptance target of the specification to which it belongs, such as `T20`.
    pub fn target(mut self, target: &'static str) -> Self {
        self.target = Some(target);
        self
    }
}

/// The direction of the best point on a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// The lowest point.
    Lowest,
    /// The highest point.
    Highest,
}

/// A measured number; a ratio to nothing is infinite.
fn number(measured: f64) -> String {
    if measured.is_infinite() { "infinite".into() } else { short(measured) }
}

/// Numbers as a list.
pub fn row(numbers: impl IntoIterator<Item = f64>) -> String {
    numbers.into_iter().map(short).collect::<Vec<_>>().join("; ")
}

/// Whether each value is at least the previous one, except for the share `slack` of it, and the last exceeds the first
/// by more than that share: a flat curve does not rise.
pub fn rises(values: &[f64], slack: f64) -> bool {
    let ends = values.first().zip(values.last());
    values.windows(2).all(|pair| pair[1] >= pair[0] * (1.0 - slack))
        && ends.is_some_and(|(first, last)| *last > first * (1.0 + slack))
}

/// Whether each value is at most the previous one, except for the share `slack` of it, and the last is below the first
/// by more than that share.
pub fn falls(values: &[f64], slack: f64) -> bool {
    let ends = values.first().zip(values.last());
    values.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + slack))
        && ends.is_some_and(|(first, last)| *last < first * (1.0 - slack))
}

/// The first point with the lowest value, and whether it is an inner point: neither the first nor the last.
pub fn lowest(points: &[(f64, f64)]) -> Option<((f64, f64), bool)> {
    let at = (0..points.len()).min_by(|&a, &b| points[a].1.total_cmp(&points[b].1))?;
    Some((points[at], at > 0 && at + 1 < points.len()))
}

/// The first point with the highest value, and whether it is an inner point.
pub fn highest(points: &[(f64, f64)]) -> Option<((f64, f64), bool)> {
    let negated: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x, -y)).collect();
    lowest(&negated).map(|((x, y), inside)| ((x, -y), inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_from_numbers() {
        assert_eq!(Finding::about("c", 2.0, 0.1, 1.81).verdict, Verdict::Held);
        assert_eq!(Finding::about("c", 2.0, 0.1, 2.21).verdict, Verdict::NotHeld);
        assert_eq!(Finding::about("c", 2.0, 0.1, 2.5).reason, "25 % above the paper's figure");
        assert_eq!(Finding::between("c", 1.0, 2.0, 2.5).reason, "0.500 above the upper bound");
        assert_eq!(Finding::between("c", 1.0, 2.0, 1.0).verdict, Verdict::Held);
        assert_eq!(Finding::about("c", 2.0, 0.1, f64::NAN).verdict, Verdict::NotJudged);
        assert_eq!(Finding::between("c", 1.0, 2.0, f64::NAN).verdict, Verdict::NotJudged);
        assert_eq!(Finding::not_judged("c", 1, 2, "why").verdict, Verdict::NotJudged);
    }

    #[test]
    fn places_of_the_best() {
        let points = [(10.0, 3.0), (20.0, 1.04), (30.0, 1.0), (40.0, 2.0)];
        let verdict = |paper, best, points| Finding::best_at("c", paper, best, (10.0, 0.05), points).verdict;
        assert_eq!(verdict(30.0, Best::Lowest, &points), Verdict::Held);
        assert_eq!(verdict(20.0, Best::Lowest, &points), Verdict::Held, "a step away, and nearly as good");
        assert_eq!(verdict(40.0, Best::Lowest, &points), Verdict::NotHeld, "a step away, and worse");
        assert_eq!(verdict(10.0, Best::Highest, &points), Verdict::Held);
        assert_eq!(verdict(20.0, Best::Highest, &points), Verdict::NotHeld);
        assert_eq!(verdict(15.0, Best::Lowest, &points), Verdict::NotJudged);
        assert_eq!(
            verdict(20.0, Best::Lowest, &[(20.0, 1.0), (40.0, 0.99)]),
            Verdict::NotHeld,
            "as good, but far away"
        );
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            row([0.0, 0.01234, 0.5, 1.0, 12.34, 1234.5, f64::INFINITY]),
            "0; 0.012; 0.500; 1; 12.3; 1,235; none"
        );
    }

    #[test]
    fn shapes() {
        assert!(rises(&[1.0, 2.0, 1.99], 0.01) && !rises(&[1.0, 2.0, 1.9], 0.01));
        assert!(falls(&[2.0, 1.0, 1.0], 0.0) && !falls(&[1.0, 1.1], 0.05));
        assert!(!rises(&[1.0, 1.0, 1.04], 0.05) && !falls(&[1.0, 0.99, 1.0], 0.05), "flat");
        assert_eq!(lowest(&[(1.0, 3.0), (2.0, 1.0), (3.0, 1.0)]), Some(((2.0, 1.0), true)));
        assert_eq!(highest(&[(1.0, 3.0), (2.0, 1.0)]), Some(((1.0, 3.0), false)));
        assert_eq!(lowest(&[]), None);
    }
}
