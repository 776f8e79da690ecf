//! Calibrated stand-ins: their goals, and the accuracy of the fits.
//!
//! A calibrated stand-in is fitted to figures that a paper prints of its traces and of the baseline schemes, never to
//! figures of the proposed scheme. [`fit`] searches the settings; `examples/calibrate.rs` runs it. The result is in the
//! [`Source`]s, and a figure of each paper compares it with the goals again.

use std::collections::BTreeMap;

use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::workload;
use bimetal_study::StudyError;
use bimetal_study::figure::short;
use rayon::prelude::*;

use crate::Drawn;
use crate::claim::{Kind, StandIn};
use crate::experiment::{Fitted, Scale, Source};
use crate::finding::Finding;
use crate::lab::Lab;
use crate::pool::{Pool, QuietLab};

/// Measures a figure of a baseline or of a trace.
pub type Measure = fn(&Lab<'_>, &'static Source) -> Result<f64, StudyError>;

/// A setting of a workload and its value.
pub type Setting = (&'static str, &'static str);

/// A published figure that a calibrated stand-in is fitted to.
#[derive(Debug)]
pub struct Goal {
    /// The figure, with its place in the paper.
    pub claim: &'static str,
    /// Least value that the paper allows.
    pub low: f64,
    /// Largest value that the paper allows.
    pub high: f64,
    /// Best value between the two, if the paper states one.
    pub aim: Option<f64>,
    /// Measures the figure.
    pub measure: Measure,
}

/// The manner of a search.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Size of the replays.
    scale: Scale,
    /// Whether two settings are also changed at once, each by one step. It is needed if settings compensate each other.
    in_pairs: bool,
}

/// A search by quick replays.
pub const QUICK: Search = Search { scale: Scale::Quick, in_pairs: false };
/// A search by quick replays, also in pairs.
pub const QUICK_IN_PAIRS: Search = Search { in_pairs: true, ..QUICK };
/// A search by replays of the paper's size, also in pairs.
pub const FULL_IN_PAIRS: Search = Search { scale: Scale::Full, in_pairs: true };

/// The fit of a trace's calibrated stand-in.
#[derive(Debug)]
pub struct Calibration {
    /// The trace.
    pub source: &'static Source,
    /// Searched settings, each with its candidate values.
    pub grid: &'static [(&'static str, &'static [&'static str])],
    /// The manner of the search.
    pub search: Search,
    /// The goals of the fit.
    pub goals: &'static [Goal],
}

impl Goal {
    /// Distance of a value from the allowed range, relative to the nearest allowed value.
    fn miss(&self, value: f64) -> f64 {
        if value.is_nan() {
            return 1.0;
        }
        let nearest = value.clamp(self.low, self.high);
        ((value - nearest) / nearest).abs()
    }

    fn bounds(&self) -> String {
        match (self.low.is_finite(), self.high.is_finite()) {
            (true, true) => format!("{} to {}", short(self.low), short(self.high)),
            (true, false) => format!("at least {}", short(self.low)),
            _ => format!("at most {}", short(self.high)),
        }
    }
}

/// A trace compared with its goals: settings, the value of each goal, and the error.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The searched settings.
    pub settings: Vec<Setting>,
    /// The value of each goal.
    pub values: Vec<f64>,
    /// Sum of the squared misses. Among fits that meet all goals, the one closest to the aims is the best, so a
    /// hundredth of the squared distances from the aims is added.
    pub error: f64,
}

/// Weight of the squared distance from an aim, relative to a miss.
const AIM_WEIGHT: f64 = 0.01;

/// Error for each of the workload's own targets that is not met.
const UNMET: f64 = 1.0;

impl Calibration {
    /// Initial settings of searches: at a quarter, a half and three quarters of each list of values.
    fn starts(&self) -> [Vec<Setting>; 3] {
        [1, 2, 3]
            .map(|quarter| self.grid.iter().map(|&(name, values)| (name, values[values.len() * quarter / 4])).collect())
    }

    /// The same trace with other settings. It stays in memory until the program ends, like all sources.
    fn candidate(&self, settings: &[Setting]) -> &'static Source {
        let own = self.source;
        let fixed = own.calibrated.map_or(&[][..], |fitted| fitted.settings);
        let mut all: Vec<_> = fixed.to_vec();
        all.retain(|(name, _)| settings.iter().all(|(searched, _)| searched != name));
        all.extend(settings);
        let workload = own.calibrated.map_or(own.workload, |fitted| fitted.workload);
        let quick = own.calibrated.and_then(|fitted| fitted.quick);
        let calibrated = Some(Fitted { workload, settings: Vec::leak(all), quick });
        Box::leak(Box::new(Source { calibrated, ..*own }))
    }

    /// Runs the baselines on the trace with these settings.
    ///
    /// # Errors
    /// Invalid settings or replays.
    pub fn try_settings(&self, settings: &[Setting]) -> Result<Fit, StudyError> {
        let source = self.candidate(settings);
        let pool = Pool::new(self.search.scale, 1, BTreeMap::new(), &QuietLab);
        let lab = Lab::new(&pool, StandIn::Calibrated);
        let values = self.goals.iter().map(|goal| (goal.measure)(&lab, source)).collect::<Result<Vec<_>, _>>()?;
        let misses = self.goals.iter().zip(&values).map(|(goal, &value)| goal.miss(value).powi(2));
        let off =
            self.goals.iter().zip(&values).filter_map(|(goal, value)| Some((value / goal.aim? - 1.0).powi(2).min(1.0)));
        let error = misses.sum::<f64>() + AIM_WEIGHT * off.sum::<f64>() + unmet(&lab, source)?;
        Ok(Fit { settings: settings.to_vec(), values, error })
    }

    /// The settings with two values changed by one step each, if the search is in pairs.
    fn pairs(&self, here: &[Setting]) -> Vec<Vec<Setting>> {
        let steps = |at: usize| {
            let (name, values) = self.grid[at];
            let now = values.iter().position(|&value| value == here[at].1);
            let beside = now.map_or([None; 2], |now| [now.checked_sub(1), Some(now + 1)]);
            beside.into_iter().flatten().filter_map(move |step| Some((name, *values.get(step)?)))
        };
        let both = |first: usize, second: usize| {
            steps(first).flat_map(move |one| steps(second).map(move |other| (one, other))).map(move |(one, other)| {
                let mut settings = here.to_vec();
                (settings[first], settings[second]) = (one, other);
                settings
            })
        };
        let settings = if self.search.in_pairs { here.len() } else { 0 };
        (0..settings).flat_map(|first| (first + 1..settings).flat_map(move |second| both(first, second))).collect()
    }

    /// Searches the grid from several starts. One setting changes at a time, until no single change is an improvement.
    /// `tried` is called with each fit. Settings that a workload refuses are skipped; `None` if it refuses all.
    pub fn fit(&self, mut tried: impl FnMut(&Fit)) -> Option<Fit> {
        let mut known: Vec<(Vec<Setting>, Option<Fit>)> = Vec::new();
        // The best of these settings and of an earlier fit. Settings are tried in parallel.
        let mut best_of = |before: Option<Fit>, candidates: Vec<Vec<Setting>>| {
            let is_new = |settings: &&Vec<Setting>| known.iter().all(|(known, _)| known != *settings);
            let new: Vec<&Vec<Setting>> = candidates.iter().filter(is_new).collect();
            let fits: Vec<_> =
                new.par_iter().with_max_len(1).map(|settings| self.try_settings(settings).ok()).collect();
            fits.iter().flatten().for_each(&mut tried);
            let new: Vec<_> = new.into_iter().cloned().zip(fits).collect();
            known.extend(new);
            let fit_of = |settings| known.iter().find(|(known, _)| *known == settings).and_then(|(_, fit)| fit.clone());
            candidates.into_iter().map(fit_of).fold(before, better)
        };
        let mut best = None;
        for start in self.starts() {
            let (mut here, mut fit) = (start.clone(), best_of(None, vec![start]));
            loop {
                let before = here.clone();
                for (at, &(name, values)) in self.grid.iter().enumerate() {
                    let with = |&value| {
                        let mut settings = here.clone();
                        settings[at] = (name, value);
                        settings
                    };
                    fit = best_of(fit, values.iter().map(with).collect());
                    here = fit.as_ref().map_or(here, |fit| fit.settings.clone());
                }
                fit = best_of(fit, self.pairs(&here));
                here = fit.as_ref().map_or(here, |fit| fit.settings.clone());
                if here == before {
                    break;
                }
            }
            best = better(best, fit);
        }
        best
    }
}

/// The fit with the smaller error, the first if both are equal.
fn better(one: Option<Fit>, other: Option<Fit>) -> Option<Fit> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.error < one.error { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Error from the workload's own targets, which are published for the trace.
fn unmet(lab: &Lab<'_>, source: &'static Source) -> Result<f64, StudyError> {
    let judged = judged(lab, source)?;
    Ok(judged.iter().filter(|(_, met)| !met).count() as f64 * UNMET)
}

/// The workload's own targets, and whether each is met.
fn judged(lab: &Lab<'_>, source: &'static Source) -> Result<Vec<(String, bool)>, StudyError> {
    let (name, settings) = lab.generator(source);
    let Some(spec) = workload::WORKLOADS.iter().find(|spec| spec.name == name) else {
        return Ok(Vec::new());
    };
    let requests = lab.workload(source)?.requests;
    let profile = Profile::of(&requests, &CurvePlan { points: 0, sampling_rate: None });
    let targets = (spec.targets)(&settings).unwrap_or_default();
    let line = |judged: workload::Judged| (judged.name.to_owned(), judged.met != Some(false));
    Ok(targets.iter().map(|target| line(target.judge(&profile))).collect())
}

/// A goal, and the value for a trace.
struct Reached<'a> {
    trace: &'static str,
    goal: &'a Goal,
    value: f64,
}

/// The calibrated stand-ins compared with their goals: a claim for each goal, over all traces that have it.
///
/// # Errors
/// The first replay that fails.
pub(super) fn figure(lab: &Lab<'_>, calibrations: &[Calibration]) -> Result<Drawn, StudyError> {
    let mut claims: Vec<Vec<Reached<'_>>> = Vec::new();
    for calibration in calibrations {
        for goal in calibration.goals {
            let reached =
                Reached { trace: calibration.source.name, goal, value: (goal.measure)(lab, calibration.source)? };
            match claims.iter_mut().find(|alike| alike[0].goal.claim == goal.claim) {
                Some(alike) => alike.push(reached),
                None => claims.push(vec![reached]),
            }
        }
    }
    let finding = |alike: Vec<Reached<'_>>| {
        let each = |text: &dyn Fn(&Reached<'_>) -> String| {
            let texts = alike.iter().map(|reached| format!("{} {}", reached.trace, text(reached)));
            texts.collect::<Vec<_>>().join("; ")
        };
        let worst = alike.iter().map(|reached| reached.goal.miss(reached.value)).fold(0.0, f64::max);
        let reason = match worst {
            0.0 => "fitted".to_owned(),
            worst => format!("fitted; missed by up to {} %", short(worst * 100.0)),
        };
        let (bounds, values) = (each(&|reached| reached.goal.bounds()), each(&|reached| short(reached.value)));
        Finding::fact(alike[0].goal.claim, bounds, worst == 0.0, values).reason(reason).of_kind(Kind::Generator)
    };
    Ok(Drawn {
        caption: "What the calibrated stand-ins were fitted to: figures that the paper prints of its traces and of the schemes \
                  that its proposal is compared with."
            .into(),
        plots: Vec::new(),
        findings: claims.into_iter().map(finding).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_has_two_sides() {
        let goal = Goal { claim: "c", low: 1.0, high: 2.0, aim: Some(1.5), measure: |_, _| Ok(0.0) };
        assert_eq!([0.5, 1.0, 1.7, 3.0, f64::NAN].map(|value| goal.miss(value)), [0.5, 0.0, 0.0, 0.5, 1.0]);
        assert_eq!(goal.bounds(), "1 to 2");
    }
}
