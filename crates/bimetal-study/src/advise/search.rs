//! The search for the cheapest device that meets goals, with few simulations.
//!
//! The cost of a device is known. Whether it meets the goals is only known with a probability, which every simulation
//! refines. The next candidate is the one with the largest probability times saving. An aim is settled when no
//! candidate cheaper than the best one has more than a small probability. Beliefs are often too confident, so remaining
//! simulations are spent on unlikely candidates, too.
//!
//! Successive halving, which drops candidates after replays of a part of the requests, finds the optimum less often
//! with the same work. The table compares both on the spaces of `tests.rs`. Each method has at most the work of
//! replaying a fifth of the candidates in full, some 54:
//!
//! | | of 300 sets of goals in a closed loop | of 287 in an open loop | mean work |
//! |---|---|---|---|
//! | this search | 290 | 276 | 28 and 36 |
//! | halving: all on a 16th of the requests, the remaining ones on a quarter, then in full | 263 | 222 | 44 and 48 |
//! | all on a 27th, then those that met the goals there in full, cheapest first | 275 | 246 | 31 and 39 |
//! | all on a 48th, then likewise, with the error of the 48th corrected by the median so far | 267 | 250 | 28 and 39 |
//!
//! These are the best of 12 ladders by 10 rules for keeping candidates, chosen in hindsight. The first part of a trace
//! shows too little of garbage collection and of queues, which begin late. Halving would also need estimates to choose
//! its candidates among thousands of devices ([`prune`](super::prune)).

use bimetal_core::part::real::{exp, ln};
use rayon::prelude::*;

use super::goals::{Cause, Goal, Measure, Outcome};
use super::learn::{Beliefs, ESTIMATED, Learned, Predicted};

/// Number of candidates in a batch. It does not depend on the number of threads, so that results do not either.
pub const BATCH: usize = 2;
/// A candidate less likely than this is assumed to miss its goals. Half or twice the value does not change the result.
const UNLIKELY: f64 = 0.005;

/// Logarithmic distance from a response goal that exceeds that of any device that keeps up.
const BEHIND: f64 = 15.0;

/// A search target: the cheapest candidate that meets goals.
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

    /// The cheapest tried candidate that meets the goals; of equally cheap ones the first.
    pub fn cheapest(&self, tried: &[(usize, Option<Outcome>)]) -> Option<usize> {
        let meeting = tried.iter().filter(|(at, outcome)| outcome.is_some_and(|outcome| self.is_met(*at, &outcome)));
        meeting.map(|&(at, _)| at).min_by(|&a, &b| self.costs[a].total_cmp(&self.costs[b]).then(a.cmp(&b)))
    }
}

/// Simulates candidates and returns their outcomes, none for failures; an error ends the search.
pub type Run<'a, E> = dyn FnMut(&[usize]) -> Result<Vec<Option<Outcome>>, E> + 'a;

/// The state of a search.
#[derive(Clone, Debug, Default)]
pub struct Search {
    learned: Learned,
    /// The simulated candidates, in order; the outcome is none if the simulation failed.
    tried: Vec<(usize, Option<Outcome>)>,
}

impl Search {
    /// The simulated candidates, in order; the outcome is none if the simulation failed.
    pub fn tried(&self) -> &[(usize, Option<Outcome>)] {
        &self.tried
    }

    /// Searches the cheapest candidate of each aim until a number of simulations. The first aim is the user's question:
    /// its search continues as long as there is a cheaper candidate, however unlikely. The other aims are searched until
    /// they are settled. `run` simulates candidates and returns their outcomes in order, or ends the search. A later
    /// search may add candidates behind those of the former.
    ///
    /// # Errors
    /// The error of `run`.
    pub fn run<E>(
        &mut self,
        candidates: &[Predicted],
        aims: &[Aim],
        simulations: usize,
        run: &mut Run<'_, E>,
    ) -> Result<(), E> {
        while self.tried.len() < simulations.min(candidates.len()) {
            let mut supposed = self.learned.clone();
            let mut batch: Vec<usize> = Vec::new();
            while batch.len() < BATCH.min(simulations - self.tried.len()) {
                let open = self.open_beside(candidates, &batch, &supposed);
                let Some(next) = next(aims, &self.tried, &open) else { break };
                supposed.suppose(&candidates[next]);
                batch.push(next);
            }
            if batch.is_empty() {
                break;
            }
            for (&at, outcome) in batch.iter().zip(run(&batch)?) {
                if let Some(outcome) = &outcome {
                    self.learned.add(&candidates[at], outcome);
                }
                self.tried.push((at, outcome));
            }
        }
        Ok(())
    }

    /// Whether a candidate cheaper than the best one for an aim is unlikely to meet its goals.
    pub fn is_settled(&self, candidates: &[Predicted], aim: &Aim) -> bool {
        let open = self.open_beside(candidates, &[], &self.learned);
        promises(aim, &self.tried, &open).iter().all(|promise| promise.probability <= UNLIKELY)
    }

    /// The candidates that meet the goals of an aim or are likely enough to meet them, each with a price below a limit.
    pub fn hopeful(&self, candidates: &[Predicted], aim: &Aim, limit_usd: f64) -> Vec<usize> {
        let open = self.open_beside(candidates, &[], &self.learned);
        let likely = open.iter().filter(|one| probability(&one.beliefs, aim.costs[one.at], &aim.goals) > UNLIKELY);
        let meeting =
            self.tried.iter().filter(|(at, outcome)| outcome.is_some_and(|outcome| aim.is_met(*at, &outcome)));
        let mut hopeful: Vec<usize> = likely.map(|one| one.at).chain(meeting.map(|&(at, _)| at)).collect();
        hopeful.retain(|&at| aim.costs[at] < limit_usd);
        hopeful.sort_unstable();
        hopeful
    }

    /// The candidates that are neither simulated nor in a batch, with the beliefs about them.
    fn open_beside(&self, candidates: &[Predicted], batch: &[usize], learned: &Learned) -> Vec<Open> {
        let is_open = |at: &usize| !batch.contains(at) && self.tried.iter().all(|(known, _)| known != at);
        let open: Vec<usize> = (0..candidates.len()).filter(is_open).collect();
        open.into_par_iter().map(|at| Open { at, beliefs: learned.beliefs(&candidates[at]) }).collect()
    }
}

/// An unsimulated candidate with the belief about it.
struct Open {
    at: usize,
    beliefs: Beliefs,
}

/// The prospect of a candidate for an aim.
struct Promise {
    at: usize,
    /// Probability that the candidate meets the goals.
    probability: f64,
    /// Saving as a share of the best candidate's price, weighted by the probability.
    saving: f64,
}

/// The prospects of the candidates that are cheaper than the best one for an aim.
fn promises(aim: &Aim, tried: &[(usize, Option<Outcome>)], open: &[Open]) -> Vec<Promise> {
    let dearest = aim.costs.iter().copied().fold(0.0, f64::max);
    // As long as no candidate meets the goals, even the most expensive device is worth a simulation.
    let limit = aim.cheapest(tried).map_or(2.0 * dearest, |at| aim.costs[at]);
    let promise = |&Open { at, ref beliefs }: &Open| {
        let probability = probability(beliefs, aim.costs[at], &aim.goals);
        Promise { at, probability, saving: probability * (1.0 - aim.costs[at] / limit) }
    };
    open.iter().filter(|one| aim.costs[one.at] < limit).map(promise).collect()
}

/// The candidate with the best prospect for the first aim that is not settled.
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
            // If no candidate is likely to meet the goals, one that comes close to them is more informative.
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

/// If no tried candidate meets an aim: the candidate that may come closer to the goals than all tried ones, if there is
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
                // Responses of overloaded devices carry no information except the degree of the overload.
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

/// The probability that a candidate meets all goals. Responses are strongly correlated, so only the least likely
/// response goal counts. Life is independent.
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

/// Normal distribution function, within 0.0002 (Bowling et al., Journal of Industrial Engineering and Management 2(1),
/// 2009).
fn normal(deviations: f64) -> f64 {
    let z = deviations.clamp(-8.0, 8.0);
    1.0 / (1.0 + exp(-(1.5976 * z + 0.07056 * z * z * z)))
}
