//! Advice: the cheapest devices that meet goals under a trace, the Pareto front, and the sensitivity to prices.
//!
//! [`offered`] determines the arrivals of requests. [`space`] lists the candidate devices with their costs, within the
//! user's restrictions ([`asked`]), from [`parts`], numbers of [`dies`] and a price list ([`prices`]). [`estimate`]
//! estimates each candidate without a simulation, and [`select`] drops most of them by these estimates ([`prune`]). [`learn`] learns
//! the errors of estimates from simulations, and [`search`] chooses the next device to simulate. [`goals`] judge
//! devices, and [`answer`] is made from simulated devices alone. Besides composed devices, [`on_sale`] lists whole
//! drives on the market. All of these are simulated, and [`drives_to_buy`] reports their figures.

pub mod answer;
pub mod asked;
mod choice;
mod cleaning;
pub mod dies;
pub mod drives_to_buy;
pub mod estimate;
pub mod goals;
pub mod layout;
pub mod learn;
pub mod offered;
pub mod on_sale;
pub mod parts;
pub mod prices;
pub mod prune;
pub mod queue;
mod run;
pub mod search;
mod select;
pub mod space;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::arrivals;
use crate::prepare::Workload;
use crate::sweep::point::Replay;
use crate::sweep::source::{Loaded, TraceSource};
use answer::Answer;
use asked::Asked;
use bimetal_core::device::Template;
use bimetal_core::replay::Arrivals;
use bimetal_core::report::TraceFacts;
use bimetal_core::units::ByteSize;
use estimate::Load;
use goals::{Arriving, Cause, Goal, Measure, Rate, TB, Terms};
use learn::Predicted;
use offered::OfferedLoad;
use on_sale::Range;
use prices::PriceList;
use queue::Pace;
use select::{Kept, Selector};
use space::{Candidate, Space, Wanted};

/// By default one simulation for this number of candidates ...
const SIMULATED: usize = 5;
/// ... within these limits.
const SIMULATIONS: std::ops::RangeInclusive<usize> = 20..=80;
/// Most requests of a simulation, if the number of passes is not given.
const REQUESTS_MAX: u64 = 1_000_000;
/// Days in a year.
pub const DAYS_PER_YEAR: f64 = 365.25;
/// Years on which drive writes per day are based, without a lifetime goal.
const WARRANTY_YEARS: f64 = 5.0;

/// A question for advice.
#[derive(Clone, Debug)]
pub struct Question {
    /// Goals for devices.
    pub goals: Vec<Goal>,
    /// The user's restrictions of the candidate devices.
    pub asked: Asked,
    /// Names of candidate whole drives, `all` or `none`; by default the drives on the market (see [`on_sale`]).
    pub drives: Vec<String>,
    /// Prices of parts and drives.
    pub prices: PriceList,
    /// Host writes per day on which lives are based, in bytes; by default the rate of the trace, or of the offered
    /// load.
    pub write_bytes_per_day: Option<f64>,
    /// The replay of the trace.
    pub replay: Replay,
    /// Most simulations; by default a fifth of the candidates, within limits.
    pub simulations: Option<usize>,
    /// Number of parallel simulations; 0 means one for each processor.
    pub jobs: usize,
}

/// Reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdviceError {
    /// The question cannot be answered; the reason in a line.
    #[error("{0}")]
    Refused(String),
    /// The progress callback stopped it.
    #[error("advice was stopped")]
    Stopped,
}

impl From<asked::SpaceError> for AdviceError {
    fn from(error: asked::SpaceError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// The current phase of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Devices are listed and estimated.
    Estimating,
    /// Devices are checked against their schemes.
    Preparing,
    /// Devices are simulated.
    Simulating,
}

impl Phase {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Estimating => "estimating devices",
            Self::Preparing => "preparing devices",
            Self::Simulating => "simulating devices",
        }
    }
}

/// Called repeatedly from several threads with the phase, the completed work and its upper limit. It may stop the work.
pub type Progress<'a> = dyn Fn(Phase, usize, usize) -> ControlFlow<()> + Sync + 'a;

/// The replay of the trace in every simulation, from the given options. [`offered::arriving`] determines the arrivals.
/// By default, the passes write the logical capacity once before the measurement and once during it, unless that takes
/// too many requests.
///
/// # Errors
/// More measured passes than passes, or a load to which the trace cannot be scaled.
pub fn replay(
    workload: &Workload,
    capacity: Option<ByteSize>,
    arrivals: Option<Arrivals>,
    load: Option<OfferedLoad>,
    repeat: Option<u32>,
    measure: Option<u32>,
) -> Result<Replay, AdviceError> {
    let arrivals = offered::arriving(&workload.facts, arrivals, load)?;
    let touched = workload.touched_bytes();
    let logical = capacity.map_or(touched, |capacity| space::simulated_bytes(capacity.0, touched));
    let template = Template::bare_dies(logical).map_err(|error| AdviceError::Refused(error.to_string()))?;
    let usual = usual_passes(workload, template.device().logical.0);
    let (repeat, measure) = match (repeat, measure) {
        (None, None) => usual,
        (Some(repeat), None) => (repeat, repeat.div_ceil(2)),
        (None, Some(measure)) => (usual.0.max(measure), measure),
        (Some(repeat), Some(measure)) => (repeat, measure),
    };
    if measure > repeat {
        let what = format!("{measure} of {repeat} passes cannot be measured; hint: `--measure` is at most `--repeat`");
        return Err(AdviceError::Refused(what));
    }
    Ok(Replay { arrivals: arrivals::name(arrivals), repeat, measure, ..Replay::default() })
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

/// Answers a question about a trace.
///
/// # Errors
/// Goals that cannot be judged, no candidate device, or a stop by the caller.
pub fn advise(
    workload: Workload,
    source: &TraceSource,
    question: &Question,
    progress: &Progress<'_>,
) -> Result<Answer, AdviceError> {
    let facts = workload.facts.clone();
    let terms = terms(&facts, question);
    check(&workload, question, &terms)?;
    let touched = workload.touched_bytes();
    let least = question.asked.capacity.map_or(touched, |capacity| capacity.0.max(touched));
    let range = Range::new(&question.drives, &question.prices, least)?;
    tell(progress, Phase::Estimating, 0, 0)?;
    let space = Space::new(&question.asked, workload.touched_bytes(), &question.prices)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(question.jobs).build();
    let pool = pool.map_err(|error| AdviceError::Refused(format!("threads cannot be started: {error}")))?;
    let trace = Loaded { workload: workload.compacted(), fingerprint: String::new() };
    let load = load(&trace, &space, question, &terms);
    let selector = Selector { space: &space, load, goals: &question.goals, terms: &terms, progress };
    let (candidates, predicted) = pool.install(|| candidates(&selector, source, question))?;
    let study = run::Study { facts, question, selector, candidates, predicted, source, range };
    study.answer(&trace, &pool)
}

fn tell(progress: &Progress<'_>, phase: Phase, done: usize, of: usize) -> Result<(), AdviceError> {
    if progress(phase, done, of).is_break() { Err(AdviceError::Stopped) } else { Ok(()) }
}

/// The assumptions for judging figures.
fn terms(facts: &TraceFacts, question: &Question) -> Terms {
    let of_trace = facts.write_bytes as f64 / facts.duration_s * 86_400.0;
    let of_trace = (of_trace.is_finite() && of_trace > 0.0).then_some(of_trace);
    let speed = speed(&question.replay);
    // At twice the load, a device wears out in half the time.
    let of_load = speed.filter(|&speed| speed != 1.0).and_then(|speed| Some(of_trace? * speed));
    let life = question.goals.iter().find(|goal| goal.measure == Measure::Life);
    Terms {
        rate: Rate { asked: question.write_bytes_per_day.or(of_load), of_trace },
        arriving: speed.map(|speed| {
            let pass_s = facts.duration_s / speed;
            Arriving { pass_s, measured_s: pass_s * f64::from(question.replay.measure) }
        }),
        warranty_years: life.map_or(WARRANTY_YEARS, |goal| goal.limit),
    }
}

fn check(workload: &Workload, question: &Question, terms: &Terms) -> Result<(), AdviceError> {
    let refused = |what: String| Err(AdviceError::Refused(what));
    if question.goals.is_empty() {
        return refused("no goal is given; hint: add one, such as `--life 5y`, `--p99 2ms` or `--budget 20`".into());
    }
    if question.write_bytes_per_day == Some(0.0) {
        return refused("`--writes-per-day` is 0: without writes no device wears out; hint: leave it out".into());
    }
    if workload.facts.writes == 0
        && let Some(what) = unmeasured_wear(question)
    {
        return refused(what);
    }
    let is_life_asked = question.goals.iter().any(|goal| goal.measure == Measure::Life);
    if terms.rate.bytes_per_day().is_none() && workload.facts.writes > 0 && is_life_asked {
        return refused(
            "the trace has no duration, so its write rate is unknown; hint: give the rate, such as \
             `--writes-per-day 50GiB`"
                .into(),
        );
    }
    let touched = workload.touched_bytes();
    match question.asked.capacity.filter(|capacity| capacity.0 < touched) {
        Some(capacity) => refused(format!(
            "`--capacity {capacity}` is less than the {} MiB that the trace touches",
            touched.div_ceil(1 << 20)
        )),
        None => Ok(()),
    }
}

/// The goal for endurance that a trace without writes cannot measure. A life without a given rate is no such goal:
/// under this trace a device does not wear out.
fn unmeasured_wear(question: &Question) -> Option<String> {
    let is_asked = |measure: Measure| question.goals.iter().any(|goal| goal.measure == measure);
    let option = match [Measure::Tbw, Measure::Dwpd].into_iter().find(|&measure| is_asked(measure)) {
        Some(measure) => format!("--{}", measure.name()),
        None if is_asked(Measure::Life) => {
            question.write_bytes_per_day?;
            "--writes-per-day".to_owned()
        }
        None => return None,
    };
    Some(format!(
        "`{option}` asks for an endurance under writes, but the trace has none, so the wear of a device cannot be \
         measured; hint: leave `{option}` out, or take a trace with writes"
    ))
}

/// The candidate devices, the cheapest first, with their estimated figures.
fn candidates(
    selector: &Selector<'_>,
    source: &TraceSource,
    question: &Question,
) -> Result<(Vec<Candidate>, Vec<Predicted>), AdviceError> {
    let wanted = wanted(&question.goals, selector.terms, selector.space.capacity_bytes());
    let drafts = selector.space.drafts(&wanted, source, &question.replay);
    let Kept { candidates, first_refusal } = selector.kept(drafts)?;
    if candidates.is_empty() {
        let why = first_refusal.unwrap_or_else(|| "no chips, schemes and dies fit together".to_owned());
        return Err(AdviceError::Refused(format!(
            "there is no candidate device: {why}; hint: allow more `--chips`, `--schemes` or dies"
        )));
    }
    Ok(candidates.into_iter().unzip())
}

/// Limits for capacities beyond the usual ones, by the goals.
fn wanted(goals: &[Goal], terms: &Terms, capacity_bytes: f64) -> Wanted {
    let bytes = |goal: &Goal| match goal.measure {
        Measure::Life => terms.rate.bytes_per_day().unwrap_or(0.0) * DAYS_PER_YEAR * goal.limit,
        Measure::Tbw => goal.limit * TB,
        Measure::Dwpd => goal.limit * capacity_bytes * terms.warranty_years * DAYS_PER_YEAR,
        _ => 0.0,
    };
    Wanted {
        host_bytes: goals.iter().map(bytes).fold(0.0, f64::max),
        is_timed: goals.iter().any(|goal| goal.measure.cause() == Cause::Latency),
        budget_usd: goals.iter().find(|goal| goal.measure == Measure::Cost).map(|goal| goal.limit),
    }
}

fn load(trace: &Loaded, space: &Space<'_>, question: &Question, terms: &Terms) -> Load {
    let facts = &trace.workload.facts;
    let open = speed(&question.replay).filter(|_| facts.duration_s > 0.0);
    let pace = match arrivals::parse(&question.replay.arrivals) {
        Ok(Arrivals::Closed { depth }) => Pace::Closed(depth),
        _ => Pace::Open(open.unwrap_or(1.0)),
    };
    let requests_per_s = open.map(|speed| facts.requests as f64 / facts.duration_s * speed);
    let pages: BTreeSet<u32> = space.page_bytes().collect();
    let per_year = terms.rate.bytes_per_day().map(|bytes| bytes * DAYS_PER_YEAR);
    Load::of(&trace.workload.requests, &pages, pace, requests_per_s, per_year)
}

/// Speed-up of the arrivals over the trace; none in a closed loop.
fn speed(replay: &Replay) -> Option<f64> {
    match arrivals::parse(&replay.arrivals) {
        Ok(Arrivals::Trace { speed }) => Some(speed),
        _ => None,
    }
}
