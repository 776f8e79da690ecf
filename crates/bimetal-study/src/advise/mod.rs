//! Advice: the cheapest devices that meet goals under a trace, the best of all prices, and how that moves with prices.
//!
//! [`space`] lists the devices that come into question, with what they cost by a price list ([`prices`]). [`estimate`] says what each
//! will be like without simulating it, [`learn`] how far off that is, by what was simulated, and [`search`] which to simulate next.
//! [`goals`] are what devices are held against, and [`answer`] is made from what was simulated alone.

pub mod answer;
pub mod estimate;
pub mod goals;
pub mod learn;
pub mod prices;
pub mod search;
pub mod space;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use rayon::prelude::*;

use crate::arrivals;
use crate::prepare::Workload;
use crate::sweep::point::{Replay, run_on};
use crate::sweep::row::{FailureKind, Row};
use crate::sweep::schedule::Gate;
use crate::sweep::source::{Loaded, TraceSource};
use answer::{Answer, Judge, Simulated};
use bimetal_core::device::Template;
use bimetal_core::replay::Arrivals;
use bimetal_core::units::ByteSize;
use estimate::Load;
use goals::{Goal, Measure, Outcome, Rate};
use learn::Predicted;
use prices::{Kind, PriceList, total};
use search::Aim;
use space::{Asked, Candidate};

/// Simulations, if their number is not given: a tenth of the candidates, and so many at least.
const SIMULATIONS_MIN: usize = 20;
/// Most requests of a simulation, if passes are not given.
const REQUESTS_MAX: u64 = 1_000_000;
/// Prices of a kind of parts at which devices are looked for, too, so that it is seen how the answer moves.
const PRICE_FACTORS: [f64; 4] = [0.25, 4.0, 0.5, 2.0];
const DAYS_PER_YEAR: f64 = 365.25;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// What devices are to achieve.
    pub goals: Vec<Goal>,
    /// Which devices come into question.
    pub asked: Asked,
    /// What they cost.
    pub prices: PriceList,
    /// Bytes a day at which a life is counted; without them the rate of the trace.
    pub write_bytes_per_day: Option<f64>,
    /// How the trace is replayed.
    pub replay: Replay,
    /// Most simulations; without a number a tenth of the candidates.
    pub simulations: Option<usize>,
    /// How many run at once; 0 is as many as there are processors.
    pub jobs: usize,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdviceError {
    /// What is asked cannot be answered, in a line.
    #[error("{0}")]
    Refused(String),
    /// It was stopped by whoever watched its progress.
    #[error("advice was stopped")]
    Stopped,
}

impl From<space::SpaceError> for AdviceError {
    fn from(error: space::SpaceError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// How a trace is replayed in every simulation, from what is given of it. By default its passes turn a device over once before it is
/// measured, and once while it is: as many as write its logical capacity, as long as there are not too many requests.
///
/// # Errors
/// More passes measured than there are.
pub fn replay(
    workload: &Workload,
    capacity: Option<ByteSize>,
    arrivals: Arrivals,
    repeat: Option<u32>,
    measure: Option<u32>,
) -> Result<Replay, AdviceError> {
    let logical = capacity.map_or(workload.touched_bytes(), |capacity| capacity.0);
    let usual = usual_passes(workload, Template::auto(logical).device().logical.0);
    let (repeat, measure) = match (repeat, measure) {
        (None, None) => usual,
        (Some(repeat), None) => (repeat, repeat.div_ceil(2)),
        (None, Some(measure)) => (usual.0.max(measure), measure),
        (Some(repeat), Some(measure)) => (repeat, measure),
    };
    if measure > repeat {
        let what = format!("{measure} passes cannot be measured of {repeat}; hint: `--measure` is at most `--repeat`");
        return Err(AdviceError::Refused(what));
    }
    Ok(Replay { arrivals: arrivals::name(arrivals), repeat, measure, fill: true })
}

fn usual_passes(workload: &Workload, logical_bytes: u64) -> (u32, u32) {
    if workload.facts.writes == 0 {
        return (1, 1);
    }
    let written = workload.facts.write_bytes.max(1);
    let most = (REQUESTS_MAX / 2 / workload.facts.requests.max(1)).max(1);
    let passes = u32::try_from(logical_bytes.div_ceil(written).clamp(1, most)).unwrap_or(u32::MAX / 2);
    (2 * passes, passes)
}

/// Answers a question about a trace. `progress` is told over and over, from several threads, how many simulations are done, and of
/// how many at most, and may stop them.
///
/// # Errors
/// Goals that cannot be judged, no device that comes into question, and having been stopped.
pub fn advise(
    workload: Workload,
    source: &TraceSource,
    question: &Question,
    progress: &(dyn Fn(usize, usize) -> ControlFlow<()> + Sync),
) -> Result<Answer, AdviceError> {
    let goals = question.goals.as_slice();
    if goals.is_empty() {
        return Err(AdviceError::Refused(
            "no goal is given; hint: add one, such as `--life 5y`, `--p99 2ms` or `--budget 20`".into(),
        ));
    }
    let facts = workload.facts.clone();
    let of_trace = facts.write_bytes as f64 / facts.duration_s * 86_400.0;
    let of_trace = (of_trace.is_finite() && of_trace > 0.0).then_some(of_trace);
    let rate = Rate { asked: question.write_bytes_per_day, of_trace };
    let per_day = rate.bytes_per_day();
    if per_day.is_none() && facts.writes > 0 && goals.iter().any(|goal| goal.measure == Measure::Life) {
        return Err(AdviceError::Refused(
            "the trace has no duration, so that it has no rate at which devices wear; hint: give one, such as \
             `--writes-per-day 50GiB`"
                .into(),
        ));
    }
    let touched = workload.touched_bytes();
    if let Some(capacity) = question.asked.capacity.filter(|capacity| capacity.0 < touched) {
        return Err(AdviceError::Refused(format!(
            "`--capacity {capacity}` is less than the {} MiB that the trace touches",
            touched.div_ceil(1 << 20)
        )));
    }
    let candidates = space::candidates(&question.asked, source, touched, &question.replay, &question.prices)?;
    let trace = Loaded { workload: workload.compacted(), fingerprint: String::new() };
    let load = load(&trace, &candidates, question, per_day);
    let arrival_s = speed(&question.replay).map(|speed| facts.duration_s / speed * f64::from(question.replay.measure));
    let simulations = question.simulations.unwrap_or_else(|| candidates.len().div_ceil(10).max(SIMULATIONS_MIN));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(question.jobs).build();
    let pool = pool.map_err(|error| AdviceError::Refused(format!("threads cannot be started: {error}")))?;
    let predict = |candidate: &Candidate| Predicted::new(candidate, load.estimate(candidate));
    let predicted: Vec<Predicted> = pool.install(|| candidates.par_iter().map(predict).collect());
    let mut rows: BTreeMap<usize, Row> = BTreeMap::new();
    let gate = Gate::default();
    let mut run = |batch: &[usize]| {
        let done = rows.len();
        let simulate = |&at: &usize| {
            run_on(&candidates[at].point, &trace, &|bytes| gate.enter(bytes), &mut |_| progress(done, simulations))
        };
        let ran: Vec<Row> = pool.install(|| batch.par_iter().map(simulate).collect());
        let was_stopped = |row: &Row| row.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Stopped);
        if progress(done + ran.len(), simulations).is_break() || ran.iter().any(was_stopped) {
            return ControlFlow::Break(());
        }
        let outcomes = ran.iter().zip(batch).map(|(row, &at)| {
            let figures = row.figures.as_ref()?;
            Some(Outcome::of_figures(figures, candidates[at].cost_usd, rate, arrival_s))
        });
        let outcomes = outcomes.collect();
        rows.extend(batch.iter().copied().zip(ran));
        ControlFlow::Continue(outcomes)
    };
    let found = search::search(&predicted, &aims(goals, &candidates), simulations, &mut run);
    let ControlFlow::Continue(found) = found else { return Err(AdviceError::Stopped) };
    let simulated: Vec<Simulated<'_>> = (found.tried.iter())
        .filter_map(|(at, outcome)| {
            Some(Simulated { candidate: &candidates[*at], outcome: *outcome, row: rows.get(at)? })
        })
        .collect();
    if let [Simulated { row: Row { failure: Some(first), .. }, .. }, ..] = simulated.as_slice()
        && simulated.iter().all(|one| one.outcome.is_none())
    {
        return Err(AdviceError::Refused(format!("all simulations failed, the first: {}", first.what)));
    }
    let judge = Judge::new(goals, arrival_s, &simulated);
    let (recommended, by_goal) = (judge.recommended(), judge.by_goal());
    let closest = if recommended.is_some() { Vec::new() } else { judge.closest() };
    let parts: BTreeMap<&str, _> = (candidates.iter())
        .flat_map(|candidate| {
            let layout = &candidate.layout;
            [layout.fast.as_ref(), layout.slow.as_ref()]
                .into_iter()
                .flatten()
                .map(|(chip, _)| (chip.name.as_str(), chip))
        })
        .filter(|(name, _)| bimetal_core::chip::find(name).is_some())
        .collect();
    Ok(Answer {
        bimetal: env!("CARGO_PKG_VERSION"),
        trace: facts,
        replay: question.replay.clone(),
        goals: goals.to_vec(),
        write_bytes_per_day: per_day,
        price_year: question.prices.year,
        prices: parts.into_values().filter_map(|chip| question.prices.listed(chip)).collect(),
        candidates: candidates.len(),
        channels: question.asked.channels.unwrap_or(1),
        dies_per_channel: question.asked.dies_per_channel.unwrap_or(1),
        simulations: found.tried.len(),
        failed: found.tried.iter().filter(|(_, outcome)| outcome.is_none()).count(),
        is_settled: found.is_settled,
        binds: answer::binds(recommended.as_ref(), &closest, &by_goal),
        recommended,
        closest,
        by_goal,
        front: judge.front(),
        sensitivity: judge.sensitivity(),
        simulated: judge.all(),
    })
}

/// All goals, then all but one, then each alone; and as far as there are simulations left, all goals at other prices.
fn aims(goals: &[Goal], candidates: &[Candidate]) -> Vec<Aim> {
    let but = |at: usize| goals.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, goal)| *goal).collect();
    let alone = |at: usize| vec![goals[at]];
    let mut sets: Vec<Vec<Goal>> = vec![goals.to_vec()];
    for set in (0..goals.len()).map(but).chain((0..goals.len()).map(alone)) {
        let set: Vec<Goal> = set;
        if !set.is_empty() && !sets.contains(&set) {
            sets.push(set);
        }
    }
    let today: Vec<f64> = candidates.iter().map(|candidate| candidate.cost_usd).collect();
    let mut aims: Vec<Aim> = sets.into_iter().map(|goals| Aim { goals, costs: today.clone() }).collect();
    let kinds: BTreeSet<Kind> =
        candidates.iter().flat_map(|candidate| candidate.shares.iter().map(|&(kind, _)| kind)).collect();
    for factor in PRICE_FACTORS {
        for &kind in &kinds {
            let cost = |candidate: &Candidate| total(&candidate.shares, |of| if of == kind { factor } else { 1.0 });
            aims.push(Aim { goals: goals.to_vec(), costs: candidates.iter().map(cost).collect() });
        }
    }
    aims
}

fn load(trace: &Loaded, candidates: &[Candidate], question: &Question, per_day: Option<f64>) -> Load {
    let facts = &trace.workload.facts;
    let rate = speed(&question.replay)
        .map(|speed| facts.requests as f64 / facts.duration_s * speed)
        .filter(|rate| rate.is_finite());
    let pages = candidates.iter().flat_map(|candidate| {
        let layout = &candidate.layout;
        [layout.fast.as_ref(), layout.slow.as_ref()].into_iter().flatten().map(|(chip, _)| chip.page_bytes)
    });
    Load::of(&trace.workload.requests, pages, rate, per_day.map(|bytes| bytes * DAYS_PER_YEAR))
}

/// How many times as fast as in the trace requests arrive; none of a closed loop.
fn speed(replay: &Replay) -> Option<f64> {
    match arrivals::parse(&replay.arrivals) {
        Ok(Arrivals::Trace { speed }) => Some(speed),
        _ => None,
    }
}
