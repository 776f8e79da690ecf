//! The search for the cheapest device that meets goals, with few simulations.
//!
//! What a device costs is known; whether it meets the goals is believed with a probability, which every simulation
//! sharpens. Next comes the candidate that promises most: probability times what it would save. An aim is settled when
//! nothing cheaper than the best found has more than a small probability left; beliefs are often too sure of
//! themselves, so that simulations that are left are spent on what is unlikely, too.
//!
//! Successive halving, which drops candidates after replays of a part of the requests, finds the optimum less often for
//! as much work. On the spaces of `tests.rs`, each way with the work of replaying a fifth of the candidates in full,
//! some 54, at most:
//!
//! | | of 300 sets of goals in a closed loop | of 287 in an open loop | mean work |
//! |---|---|---|---|
//! | this search | 290 | 276 | 28 and 36 |
//! | halving: all on a 16th of the requests, what is left on a quarter, then in full | 263 | 222 | 44 and 48 |
//! | all on a 27th, then in full those that met the goals there, the cheapest first | 275 | 246 | 31 and 39 |
//! | all on a 48th, then likewise, what the 48th is off by corrected by the median so far | 267 | 250 | 28 and 39 |
//!
//! These are the best of 12 ladders by 10 rules of what is kept, chosen by hindsight. The first part of a trace says
//! too little of collection and of queues, which begin late. Halving would not do without estimates either: they choose
//! among thousands of devices those that are looked at ([`prune`](super::prune)).

use std::ops::ControlFlow;

use bimetal_core::part::real::{exp, ln};
use rayon::prelude::*;

use super::goals::{Cause, Goal, Measure, Outcome};
use super::learn::{Beliefs, ESTIMATED, Learned, Predicted};

/// Candidates that are simulated at once, whatever the number of threads: results do not depend on it.
pub const BATCH: usize = 2;
/// Less likely than this, a candidate is taken not to meet its goals. Half or twice as much makes no difference to what
/// is found.
const UNLIKELY: f64 = 0.005;

/// Farther from a goal for responses, as a logarithm, than any device that keeps up.
const BEHIND: f64 = 15.0;

/// What is looked for: the cheapest candidate that meets goals.
#[derive(Clone, Debug)]
pub struct Aim {
    /// The goals.
    pub goals: Vec<Goal>,
    /// Price of each candidate, in US dollars.
    pub costs: Vec<f64>,
}

impl Aim {
    fn is_met(&self, at: usize, outcome: &Outcome) -> bool {
        outcome.at_cost(self.costs[at]).meets(&self.goals)
    }

    /// The cheapest of what was tried that meets the goals; of equally cheap ones the first.
    pub fn cheapest(&self, tried: &[(usize, Option<Outcome>)]) -> Option<usize> {
        let meeting = tried.iter().filter(|(at, outcome)| outcome.is_some_and(|outcome| self.is_met(*at, &outcome)));
        meeting.map(|&(at, _)| at).min_by(|&a, &b| self.costs[a].total_cmp(&self.costs[b]).then(a.cmp(&b)))
    }
}

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was simulated, in this order; none where it failed.
    pub tried: Vec<(usize, Option<Outcome>)>,
    /// Whether nothing is likely to be cheaper than the best that was found for the first aim.
    pub is_settled: bool,
}

/// Simulates candidates: what each came to, none where it failed; or ends the search.
pub type Run<'a> = dyn FnMut(&[usize]) -> ControlFlow<(), Vec<Option<Outcome>>> + 'a;

/// Looks for the cheapest candidate of each aim within a number of simulations: of the first aim as long as there is a
/// cheaper candidate, since it is what is asked, however unlikely that one is; of the others until they are settled.
/// `run` simulates candidates and returns what they came to, in their order, or ends it.
pub fn search(candidates: &[Predicted], aims: &[Aim], simulations: usize, run: &mut Run<'_>) -> ControlFlow<(), Found> {
    let mut learned = Learned::default();
    let mut tried: Vec<(usize, Option<Outcome>)> = Vec::new();
    let open_beside = |tried: &[(usize, Option<Outcome>)], batch: &[usize], learned: &Learned| -> Vec<Open> {
        let is_open = |at: &usize| !batch.contains(at) && tried.iter().all(|(known, _)| known != at);
        let open: Vec<usize> = (0..candidates.len()).filter(is_open).collect();
        open.into_par_iter().map(|at| Open { at, beliefs: learned.beliefs(&candidates[at]) }).collect()
    };
    while tried.len() < simulations.min(candidates.len()) {
        let mut supposed = learned.clone();
        let mut batch: Vec<usize> = Vec::new();
        while batch.len() < BATCH.min(simulations - tried.len()) {
            let open = open_beside(&tried, &batch, &supposed);
            let Some(next) = next(aims, &tried, &open) else { break };
            supposed.suppose(&candidates[next]);
            batch.push(next);
        }
        if batch.is_empty() {
            break;
        }
        for (&at, outcome) in batch.iter().zip(run(&batch)?) {
            if let Some(outcome) = &outcome {
                learned.add(&candidates[at], outcome);
            }
            tried.push((at, outcome));
        }
    }
    let open = open_beside(&tried, &[], &learned);
    let most_likely = |aim: &Aim| {
        let promises = promises(aim, &tried, &open);
        promises.into_iter().map(|promise| promise.probability).fold(0.0, f64::max)
    };
    let is_settled = aims.first().is_none_or(|aim| most_likely(aim) <= UNLIKELY);
    ControlFlow::Continue(Found { tried, is_settled })
}

/// A candidate that was not simulated, with what is believed of it.
struct Open {
    at: usize,
    beliefs: Beliefs,
}

/// What a candidate promises for an aim.
struct Promise {
    at: usize,
    /// Of meeting its goals.
    probability: f64,
    /// The share of the price of the best found that it would save, by its probability.
    saving: f64,
}

/// What those candidates promise that are cheaper than the best found for an aim.
fn promises(aim: &Aim, tried: &[(usize, Option<Outcome>)], open: &[Open]) -> Vec<Promise> {
    let dearest = aim.costs.iter().copied().fold(0.0, f64::max);
    // Until something is found, even the dearest device is worth its simulation.
    let limit = aim.cheapest(tried).map_or(2.0 * dearest, |at| aim.costs[at]);
    let promise = |&Open { at, ref beliefs }: &Open| {
        let probability = probability(beliefs, aim.costs[at], &aim.goals);
        Promise { at, probability, saving: probability * (1.0 - aim.costs[at] / limit) }
    };
    open.iter().filter(|one| aim.costs[one.at] < limit).map(promise).collect()
}

/// The candidate that promises most for the first aim that is not settled.
fn next(aims: &[Aim], tried: &[(usize, Option<Outcome>)], open: &[Open]) -> Option<usize> {
    // Of equal ones the first.
    let best = |promises: &[Promise]| {
        let better = |best: Option<(usize, f64)>, one: &Promise| match best {
            Some((_, saving)) if saving >= one.saving => best,
            _ => Some((one.at, one.saving)),
        };
        promises.iter().fold(None, better).map(|(at, _)| at)
    };
    for (nth, aim) in aims.iter().enumerate() {
        let mut promises = promises(aim, tried, open);
        let is_first = nth == 0;
        if is_first && promises.iter().all(|promise| promise.probability <= UNLIKELY) {
            // Where nothing is likely to meet the goals, what comes near them says more.
            if let Some(nearest) = nearest(aim, tried, open) {
                return Some(nearest);
            }
        }
        promises.retain(|promise| is_first || promise.probability > UNLIKELY);
        if let Some(best) = best(&promises) {
            return Some(best);
        }
    }
    None
}

/// Where nothing that was tried meets an aim: the candidate that may come closer to it than what was tried, if there is
/// one.
fn nearest(aim: &Aim, tried: &[(usize, Option<Outcome>)], open: &[Open]) -> Option<usize> {
    let excess = |(at, outcome): &(usize, Option<Outcome>)| {
        Some(outcome.as_ref()?.at_cost(aim.costs[*at]).worst_excess(&aim.goals))
    };
    let closest = tried.iter().filter_map(excess).fold(f64::INFINITY, f64::min);
    if closest <= 1.0 {
        return None;
    }
    let may_come = |&Open { at, ref beliefs }: &Open| {
        let of = |goal: &Goal| match ESTIMATED.iter().position(|&measure| measure == goal.measure) {
            None => ln(aim.costs[at] / goal.limit),
            Some(of) => {
                let belief = beliefs.measures[of];
                let over = belief.mean - ln(goal.limit);
                let over = if goal.measure.is_more_better() { -over } else { over };
                // Responses of devices that fall behind say nothing, but by how much they do.
                let behind = beliefs.busy.mean - beliefs.busy.spread;
                if goal.measure.cause() == Cause::Latency && behind > 0.0 {
                    BEHIND + behind
                } else {
                    over - belief.spread
                }
            }
        };
        (at, aim.goals.iter().map(of).fold(f64::NEG_INFINITY, f64::max))
    };
    let best = open.iter().map(may_come).min_by(|a, b| a.1.total_cmp(&b.1));
    best.filter(|&(_, excess)| exp(excess) < closest).map(|(at, _)| at)
}

/// How likely a candidate is to meet all goals. Responses come and go together, so that the least likely of them
/// counts; life is on its own.
fn probability(beliefs: &Beliefs, cost_usd: f64, goals: &[Goal]) -> f64 {
    let of = |goal: &Goal| {
        if goal.measure == Measure::Cost {
            return if cost_usd <= goal.limit { 1.0 } else { 0.0 };
        }
        let at = ESTIMATED.iter().position(|&measure| measure == goal.measure);
        let Some(belief) = at.map(|at| beliefs.measures[at]) else { return 1.0 };
        let room = (ln(goal.limit) - belief.mean) / belief.spread;
        normal(if goal.measure.is_more_better() { -room } else { room })
    };
    let least = |cause| goals.iter().filter(|goal| goal.measure.cause() == cause).map(of).fold(1.0, f64::min);
    let is_timed = goals.iter().any(|goal| goal.measure.cause() == Cause::Latency);
    let keeps_up = if is_timed { normal(-beliefs.busy.mean / beliefs.busy.spread) } else { 1.0 };
    keeps_up.min(least(Cause::Latency)) * least(Cause::Wear) * least(Cause::Money)
}

/// Share of a normal distribution below a number of standard deviations, within 0.0002 (Bowling et al., Journal of
/// Industrial Engineering and Management 2(1), 2009).
fn normal(deviations: f64) -> f64 {
    let z = deviations.clamp(-8.0, 8.0);
    1.0 / (1.0 + exp(-(1.5976 * z + 0.07056 * z * z * z)))
}
