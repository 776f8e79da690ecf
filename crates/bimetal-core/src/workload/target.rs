//! Targets: published characteristics of the original trace, with which the generated one is compared.
//!
//! A workload declares its targets once, for any setting of its parameters. An amount that was published for a whole
//! trace is scaled in proportion for a shorter one; a ratio is not scaled.

use serde::Serialize;

use crate::profile::Profile;

/// Least number of requests for a judgement. Shorter workloads vary too much.
pub const JUDGED_REQUESTS: u64 = 10_000;

/// Comparison of a measured value with the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// It differs from the expected value by at most this share.
    Within(f64),
    /// It is equal or larger.
    AtLeast,
    /// It is equal or smaller.
    AtMost,
}

/// Extracts a value from a profile; `None` if the profile does not contain it.
pub type Measure = fn(&Profile) -> Option<f64>;

/// The targets of a workload for given parameters.
pub type Targets = fn(&[(String, String)]) -> Result<Vec<Target>, crate::scheme::ParameterError>;

/// One published characteristic.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The measured quantity, with its unit.
    pub name: &'static str,
    /// The paper with its section, table or figure.
    pub source: &'static str,
    /// The value in the source.
    pub published: f64,
    /// The expected value for the given parameters.
    pub expected: f64,
    /// Required accuracy of the generated value.
    pub goal: Goal,
    /// Extracts the value from a profile.
    pub measure: Measure,
}

/// A target and its result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Judged {
    /// The quantity, with its unit.
    pub name: &'static str,
    /// The paper with its section, table or figure.
    pub source: &'static str,
    /// The value in the source.
    pub published: f64,
    /// The expected value for the given parameters.
    pub expected: f64,
    /// Required accuracy of the generated value.
    pub goal: Goal,
    /// The value of the generated requests; `None` if it is undefined for them.
    pub measured: Option<f64>,
    /// Whether the goal was met; `None` if nothing was measured or there are too few requests.
    pub met: Option<bool>,
}

impl Target {
    /// A target that does not depend on parameters.
    pub fn new(name: &'static str, source: &'static str, published: f64, goal: Goal, measure: Measure) -> Self {
        Self { name, source, published, expected: published, goal, measure }
    }

    /// The same target, with the published amount scaled by `part`.
    pub fn of_part(self, part: f64) -> Self {
        Self { expected: self.published * part, ..self }
    }

    /// Compares a workload with the target.
    pub fn judge(&self, profile: &Profile) -> Judged {
        let &Self { name, source, published, expected, goal, measure } = self;
        let measured = measure(profile);
        let meets = |value: f64| match goal {
            Goal::Within(tolerance) => (value - expected).abs() <= tolerance * expected.abs(),
            Goal::AtLeast => value >= expected,
            Goal::AtMost => value <= expected,
        };
        let met = measured.filter(|_| profile.requests >= JUDGED_REQUESTS).map(meets);
        Judged { name, source, published, expected, goal, measured, met }
    }
}

/// The targets of a workload that is not modelled on a published one.
///
/// # Errors
/// None.
pub fn none(_: &[(String, String)]) -> Result<Vec<Target>, crate::scheme::ParameterError> {
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::CurvePlan;

    #[test]
    fn goals_are_judged_of_enough_requests() {
        let mut profile = Profile::of(&[], &CurvePlan { points: 0, sampling_rate: None });
        profile.requests = JUDGED_REQUESTS;
        let met = |published: f64, goal: Goal, profile: &Profile| {
            Target::new("requests", "-", published, goal, |profile| Some(profile.requests as f64))
                .of_part(0.5)
                .judge(profile)
                .met
        };
        assert_eq!(met(20_000.0, Goal::Within(0.0), &profile), Some(true));
        assert_eq!(met(21_000.0, Goal::Within(0.04), &profile), Some(false));
        assert_eq!(met(21_000.0, Goal::Within(0.05), &profile), Some(true));
        assert_eq!(met(20_002.0, Goal::AtLeast, &profile), Some(false));
        assert_eq!(met(20_002.0, Goal::AtMost, &profile), Some(true));
        let unknown = Target::new("-", "-", 1.0, Goal::AtLeast, |_| None);
        assert_eq!(unknown.judge(&profile).met, None);
        profile.requests -= 1;
        assert_eq!(met(20_000.0, Goal::AtMost, &profile), None);
    }
}
