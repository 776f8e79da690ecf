//! The search for the cheapest device that meets goals, with few simulations.
//!
//! What a device costs is known; whether it meets the goals is believed with a probability, which every simulation sharpens. Next
//! comes the candidate that promises most: probability times what it would save. A set of goals is settled when nothing cheaper than
//! the best found has more than a small probability left.

use bimetal_core::part::real::{exp, ln};

use super::goals::{Cause, Goal, Measure, Outcome};
use super::learn::{ESTIMATED, Learned, Predicted};

/// Candidates that are simulated at once, whatever the number of threads: results do not depend on it.
pub const BATCH: usize = 2;
/// Less likely than this, a candidate is taken not to meet its goals.
const UNLIKELY: f64 = 0.02;

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was simulated, in this order; none where it failed.
    pub tried: Vec<(usize, Option<Outcome>)>,
    /// By set of goals: whether nothing is likely to be cheaper than the best that was found.
    pub is_settled: Vec<bool>,
}

impl Found {
    /// The cheapest of what was simulated that meets goals.
    pub fn cheapest(&self, candidates: &[Predicted], goals: &[Goal]) -> Option<usize> {
        cheapest(candidates, &self.tried, goals)
    }
}

/// Looks for the cheapest candidate of each set of goals, the first set first, with at most so many simulations. `run` simulates
/// candidates and returns what they came to, in their order.
pub fn search(
    candidates: &[Predicted],
    sets: &[Vec<Goal>],
    simulations: usize,
    run: &mut dyn FnMut(&[usize]) -> Vec<Option<Outcome>>,
) -> Found {
    let mut learned = Learned::default();
    let mut tried: Vec<(usize, Option<Outcome>)> = Vec::new();
    let mut is_settled = vec![false; sets.len()];
    while tried.len() < simulations.min(candidates.len()) {
        let mut supposed = learned.clone();
        let mut batch: Vec<usize> = Vec::new();
        while batch.len() < BATCH.min(simulations - tried.len()) {
            let is_open = |at: &usize| !batch.contains(at) && tried.iter().all(|(known, _)| known != at);
            let open: Vec<usize> = (0..candidates.len()).filter(is_open).collect();
            let Some(next) = next(candidates, sets, &tried, &open, &supposed, &mut is_settled, batch.is_empty()) else {
                break;
            };
            supposed.suppose(&candidates[next]);
            batch.push(next);
        }
        if batch.is_empty() {
            break;
        }
        for (&at, outcome) in batch.iter().zip(run(&batch)) {
            if let Some(outcome) = &outcome {
                learned.add(&candidates[at], outcome);
            }
            tried.push((at, outcome));
        }
    }
    Found { tried, is_settled }
}

/// The candidate that promises most for the first set that is not settled.
fn next(
    candidates: &[Predicted],
    sets: &[Vec<Goal>],
    tried: &[(usize, Option<Outcome>)],
    open: &[usize],
    learned: &Learned,
    is_settled: &mut [bool],
    may_settle: bool,
) -> Option<usize> {
    for (goals, is_settled) in sets.iter().zip(is_settled) {
        if *is_settled {
            continue;
        }
        let dearest = candidates.iter().map(|candidate| candidate.cost_usd).fold(0.0, f64::max);
        let best = cheapest(candidates, tried, goals).map(|at| candidates[at].cost_usd);
        let limit = best.unwrap_or(2.0 * dearest);
        let promising = open.iter().filter(|&&at| candidates[at].cost_usd < limit).map(|&at| {
            let probability = probability(learned, &candidates[at], goals);
            (at, probability, probability * (1.0 - candidates[at].cost_usd / limit))
        });
        let best_next =
            promising.filter(|&(_, probability, _)| probability > UNLIKELY).fold(None, |best, one| match best {
                Some((_, promise)) if promise >= one.2 => best,
                _ => Some((one.0, one.2)),
            });
        match best_next {
            Some((at, _)) => return Some(at),
            None if may_settle => *is_settled = true,
            None => return None,
        }
    }
    None
}

fn cheapest(candidates: &[Predicted], tried: &[(usize, Option<Outcome>)], goals: &[Goal]) -> Option<usize> {
    let meeting = tried.iter().filter(|(_, outcome)| outcome.is_some_and(|outcome| outcome.meets(goals)));
    meeting
        .map(|&(at, _)| at)
        .min_by(|&a, &b| candidates[a].cost_usd.total_cmp(&candidates[b].cost_usd).then(a.cmp(&b)))
}

/// How likely a candidate is to meet all goals. Responses come and go together, so that the least likely of them counts; life is on
/// its own.
pub fn probability(learned: &Learned, candidate: &Predicted, goals: &[Goal]) -> f64 {
    let beliefs = learned.beliefs(candidate);
    let of = |goal: &Goal| {
        if goal.measure == Measure::Cost {
            return if candidate.cost_usd <= goal.limit { 1.0 } else { 0.0 };
        }
        let at = ESTIMATED.iter().position(|&measure| measure == goal.measure);
        let Some(belief) = at.map(|at| beliefs[at]) else { return 1.0 };
        let room = (ln(goal.limit) - belief.mean) / belief.spread;
        normal(if goal.measure.is_more_better() { -room } else { room })
    };
    let least = |cause| goals.iter().filter(|goal| goal.measure.cause() == cause).map(of).fold(1.0, f64::min);
    [Cause::Latency, Cause::Wear, Cause::Money].into_iter().map(least).product()
}

/// Share of a normal distribution below so many standard deviations, within 0.0002 (Bowling et al., Journal of Industrial
/// Engineering and Management 2(1), 2009).
fn normal(deviations: f64) -> f64 {
    let z = deviations.clamp(-8.0, 8.0);
    1.0 / (1.0 + exp(-(1.5976 * z + 0.07056 * z * z * z)))
}
