//! Figs. 13 and 14 and table 5: adaptation of the threshold and of the number of chances to the workload.

use super::{COMBO_5, IOZONE_AT, PHONE_AT, WITH_WARM, replay};
use crate::Drawn;
use crate::claim::Kind;
use crate::experiment::Source;
use crate::finding::Finding;
use crate::lab::Lab;
use crate::reading::range;
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series};

/// Number of intervals of a replay, large enough that no interval has two adjustments.
const INTERVALS: u32 = 4000;

/// A step of ComboFTL's adjustments: figures before and after it.
struct Step {
    /// Number of served requests.
    requests: f64,
    before: Vec<Option<f64>>,
    after: Vec<Option<f64>>,
}

/// A replay divided into its adjustment periods.
pub(super) struct Steps {
    names: Vec<&'static str>,
    steps: Vec<Step>,
}

impl Steps {
    pub(super) fn run(lab: &Lab<'_>, source: &'static Source) -> Result<Self, StudyError> {
        let entry = &lab.run(&[replay(source, COMBO_5, &[]).intervals(INTERVALS)])?[0];
        Ok(Self::of(entry))
    }

    /// Least and largest number of chances after a period; none without a period.
    pub(super) fn chances(&self) -> Option<(f64, f64)> {
        let values: Vec<f64> = self.steps.iter().map(|step| self.after(step, "chances")).collect();
        (!values.is_empty()).then(|| range(&values))
    }

    fn of(entry: &Entry) -> Self {
        let names: Vec<&'static str> = entry.report.metrics.0.iter().map(|&(name, _)| name).collect();
        let periods = names.iter().position(|&name| name == "adjustments");
        let passed = |metrics: &[Option<f64>]| periods.and_then(|at| metrics.get(at).copied().flatten()).unwrap_or(0.0);
        let pairs = entry.report.intervals.windows(2);
        // If an interval had two adjustments, the figures of the first are lost.
        let stepped = pairs.filter(|pair| passed(&pair[1].metrics) == passed(&pair[0].metrics) + 1.0);
        let step = |pair: &[bimetal_core::report::IntervalFigures]| Step {
            requests: pair[1].requests as f64,
            before: pair[0].metrics.clone(),
            after: pair[1].metrics.clone(),
        };
        Self { steps: stepped.map(step).collect(), names }
    }

    fn figure(&self, metrics: &[Option<f64>], name: &str) -> f64 {
        let at = self.names.iter().position(|&known| known == name);
        at.and_then(|at| metrics.get(at).copied().flatten()).unwrap_or(f64::NAN)
    }

    fn before(&self, step: &Step, name: &str) -> f64 {
        self.figure(&step.before, name)
    }

    fn after(&self, step: &Step, name: &str) -> f64 {
        self.figure(&step.after, name)
    }

    /// A figure after each period, thinned to a readable number of points.
    fn curve(&self, legend: &str, name: &str) -> Series {
        const POINTS: usize = 50;
        let every = self.steps.len().div_ceil(POINTS).max(1);
        let points = self.steps.iter().step_by(every).map(|step| (step.requests, self.after(step, name)));
        Series::measured(legend, points.collect())
    }
}

/// The number of periods that satisfy a condition and have the consequence.
fn finding(
    replays: &[Steps],
    claim: &'static str,
    expected: &str,
    condition: impl Fn(&Steps, &Step) -> bool,
    consequence: impl Fn(&Steps, &Step) -> bool,
) -> Finding {
    let all = replays.iter().flat_map(|replay| replay.steps.iter().map(move |step| (replay, step)));
    let met: Vec<_> = all.filter(|(replay, step)| condition(replay, step)).collect();
    let held = met.iter().filter(|(replay, step)| consequence(replay, step)).count();
    let measured = format!("{held} of {} periods", met.len());
    if met.is_empty() {
        return Finding::not_judged(claim, expected, measured, "no such period");
    }
    Finding::fact(claim, expected, held == met.len(), measured)
}

/// One curve over the number of served requests.
fn plot(title: &str, y: &str, series: Series) -> Plot {
    Plot {
        title: title.into(),
        kind: PlotKind::Lines,
        x: Axis::linear("requests"),
        y: Axis::linear(y),
        series: vec![series],
    }
}

/// The migration ratio and its tolerance (section 3.2).
const PHI: f64 = 0.1;
const EPSILON: f64 = 0.05;

/// Range of the threshold in KiB.
const THRESHOLDS: (f64, f64) = (8.0, 64.0);

/// Fig. 13: the threshold and the migration ratio over time.
pub(super) fn fig13(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let mut replays = Vec::new();
    for source in WITH_WARM {
        replays.push(Steps::run(lab, source)?);
    }
    let steps = &replays[PHONE_AT];
    let ratio = |steps: &Steps, step: &Step| steps.after(step, "migration_ratio");
    let threshold =
        |steps: &Steps, step: &Step| (steps.before(step, "threshold_kib"), steps.after(step, "threshold_kib"));
    let findings = vec![
        finding(
            &replays,
            "a migration ratio of 0.02, below φ - ε, raises the threshold",
            "doubles or is at 64 KB, in every such period of any trace",
            |steps, step| ratio(steps, step) < PHI - EPSILON,
            |steps, step| threshold(steps, step).1 == (2.0 * threshold(steps, step).0).min(THRESHOLDS.1),
        )
        .of_kind(Kind::Arithmetic)
        .target("T7"),
        finding(
            &replays,
            "a migration ratio of 0.34, above φ + ε, lowers the threshold",
            "halves or is at 8 KB, in every such period of any trace",
            |steps, step| ratio(steps, step) > PHI + EPSILON,
            |steps, step| threshold(steps, step).1 == (0.5 * threshold(steps, step).0).max(THRESHOLDS.0),
        )
        .of_kind(Kind::Arithmetic)
        .target("T7"),
        finding(
            &replays,
            "between the two it stays",
            "as it was, in every such period of any trace",
            |steps, step| (PHI - EPSILON..=PHI + EPSILON).contains(&ratio(steps, step)),
            |steps, step| threshold(steps, step).1 == threshold(steps, step).0,
        )
        .of_kind(Kind::Arithmetic),
    ];
    Ok(Drawn {
        caption: "Phone, 5 % of the blocks in SLC mode, after adjustment periods; claims are of all traces.".into(),
        plots: vec![
            plot("Threshold", "threshold (KiB)", steps.curve("threshold", "threshold_kib")),
            plot("Migration ratio", "of the SLC region", steps.curve("migration ratio", "migration_ratio")),
        ],
        findings,
    })
}

/// The bounds for hit ratios of warm sets (section 6.4).
const LOWER: f64 = 0.3;
const UPPER: f64 = 0.7;

/// Hit ratios of the warm sets that the scheme reports.
const PHIS: [&str; 5] = ["phi_w0", "phi_w1", "phi_w2", "phi_w3", "phi_w4"];

/// Fig. 14 and table 5: the number of chances and the hit ratio of SLC over time.
pub(super) fn fig14(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let mut replays = Vec::new();
    for source in WITH_WARM {
        replays.push(Steps::run(lab, source)?);
    }
    let steps = &replays[IOZONE_AT];
    let chances = |steps: &Steps, step: &Step| (steps.before(step, "chances"), steps.after(step, "chances"));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number of a set; below the first is the first"
    )]
    // 0 if too few units entered a set for a judgement.
    let phi =
        |steps: &Steps, step: &Step, set: f64| PHIS.get(set as usize).map_or(f64::NAN, |name| steps.after(step, name));
    let (least, most) = steps.chances().unwrap_or((f64::INFINITY, 0.0));
    let findings = vec![
        finding(
            &replays,
            "φ(W_N) = 0.98, above the upper bound, adds a chance (table 5b)",
            "N + 1, in every such period of any trace",
            |steps, step| steps.after(step, "phi_wn") > UPPER,
            |steps, step| chances(steps, step).1 == chances(steps, step).0 + 1.0,
        )
        .of_kind(Kind::Arithmetic)
        .target("T6"),
        finding(
            &replays,
            "φ(W_N) and φ(W_N-1) below the lower bound, 0.28 and 0.21, take one away (table 5a)",
            "N - 1, in every such period of any trace with N > 0",
            |steps, step| {
                let old = chances(steps, step).0;
                let both = [phi(steps, step, old), phi(steps, step, old - 1.0)];
                old > 0.0 && both.iter().all(|&ratio| ratio > 0.0 && ratio < LOWER)
            },
            |steps, step| chances(steps, step).1 == chances(steps, step).0 - 1.0,
        )
        .of_kind(Kind::Arithmetic)
        .target("T6"),
        Finding::fact(
            "the number of chances changes over time, IOzone",
            "it does",
            most > least,
            format!("from {least} to {most}"),
        ),
    ];
    Ok(Drawn {
        caption:
            "IOzone, 5 % of the blocks in SLC mode, after adjustment periods. The observation window is 2 warm sets."
                .into(),
        plots: vec![
            plot("Chances", "N", steps.curve("chances", "chances")),
            plot("Hit ratio of SLC up to here", "of what is written to SLC", steps.curve("hit ratio", "slc_hit_ratio")),
        ],
        findings,
    })
}
