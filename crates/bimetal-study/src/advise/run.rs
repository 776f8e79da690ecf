//! Simulations of candidates, and the answer made from them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::answer::{self, Answer, DriveToBuy, DrivesToBuy, Judge, Simulated};
use super::choice::Choice;
use super::drives_to_buy::made;
use super::goals::{Cause, Goal, Outcome, Terms, Whole};
use super::learn::Predicted;
use super::on_sale::{OnSale, Range};
use super::prices::{Kind, total};
use super::search::{Aim, BATCH, Search};
use super::select::Selector;
use super::space::{Candidate, sort_by_price};
use super::{AdviceError, Phase, Question, SIMULATED, SIMULATIONS, speed, wanted};
use crate::arrivals;
use crate::headline::extrapolated_remark;
use crate::number::{SIZES, TIMES, significant, with_unit};
use crate::sweep::failure::FailureKind;
use crate::sweep::point::{Point, Replay};
use crate::sweep::row::Row;
use crate::sweep::run::run_on;
use crate::sweep::schedule::Gate;
use crate::sweep::source::{Loaded, TraceSource};
use bimetal_core::replay::Arrivals;
use bimetal_core::report::TraceFacts;

/// Prices at which the search also runs, for each kind of parts, so that the answer shows its sensitivity.
const PRICE_FACTORS: [f64; 4] = [0.25, 4.0, 0.5, 2.0];

/// Most simulations of devices between the sizes of the series ...
const FINER_SIMULATIONS: usize = 8;
/// ... and at most one of this number of all simulations.
const FINER_SHARE: usize = 4;

/// Duration in seconds below which the write rate of a trace may be that of a moment.
const SHORT_S: f64 = 600.0;

/// Below this write amplification the write buffer of a drive takes most of the writes.
const BUFFERED: f64 = 0.5;

/// A question with all its candidates.
pub(super) struct Study<'a> {
    pub facts: TraceFacts,
    pub question: &'a Question,
    pub selector: Selector<'a>,
    pub candidates: Vec<Candidate>,
    pub predicted: Vec<Predicted>,
    pub source: &'a TraceSource,
    /// Whole drives; none if no drives are wanted.
    pub range: Option<Range>,
}

/// Result of a candidate: its row, and in an open loop also its row with one request at a time.
struct Ran {
    row: Row,
    service: Option<Row>,
}

/// Means of simulations.
struct Simulator<'a> {
    trace: &'a Loaded,
    pool: &'a ThreadPool,
    gate: Gate,
    /// The limit for all simulations.
    most: usize,
}

/// A search with the results of its candidates.
#[derive(Default)]
struct Searched {
    search: Search,
    ran: BTreeMap<usize, Ran>,
}

impl Study<'_> {
    fn terms(&self) -> &Terms {
        self.selector.terms
    }

    /// The answer to the question.
    pub fn answer(mut self, trace: &Loaded, pool: &ThreadPool) -> Result<Answer, AdviceError> {
        let simulations = self.simulations();
        let of_finer = FINER_SIMULATIONS.min(simulations / FINER_SHARE);
        let most = simulations + self.range.as_ref().map_or(0, |range| range.drives.len());
        let simulator = Simulator { trace, pool, gate: Gate::default(), most };
        let mut searched = Searched::default();
        let aims = aims(&self.question.goals, &self.candidates);
        self.search(&mut searched, &aims, simulations - of_finer, &simulator)?;
        let is_settled = aims.first().is_none_or(|aim| searched.search.is_settled(&self.predicted, aim));
        if of_finer > 0 {
            for (candidate, predicted) in pool.install(|| self.finer(&searched.search))? {
                self.candidates.push(candidate);
                self.predicted.push(predicted);
            }
            let aim = Aim { goals: self.question.goals.clone(), costs: costs(&self.candidates) };
            let simulations = searched.ran.len() + of_finer;
            self.search(&mut searched, &[aim], simulations, &simulator)?;
        }
        let Searched { search, ran } = searched;
        let simulated: Vec<Simulated<'_>> = (search.tried().iter())
            .filter_map(|(at, outcome)| {
                let Ran { row, service } = ran.get(at)?;
                let service = service.as_ref();
                Some(Simulated { candidate: &self.candidates[*at], outcome: *outcome, row, service })
            })
            .collect();
        if let [Simulated { row: Row { failure: Some(first), .. }, .. }, ..] = simulated.as_slice()
            && simulated.iter().all(|one| one.outcome.is_none())
        {
            return Err(AdviceError::Refused(format!("all simulations failed, the first: {}", first.what)));
        }
        let offered = self.range.as_ref().map(|range| -> Result<_, AdviceError> {
            let points: Vec<Point> = range.drives.iter().map(|drive| self.point(drive, trace)).collect();
            let points: Vec<&Point> = points.iter().collect();
            let mut of_drives = Vec::new();
            for batch in points.chunks(BATCH) {
                of_drives.extend(self.ran(batch, simulated.len() + of_drives.len(), &simulator)?);
            }
            Ok((self.drives(range, &of_drives), buffered(range, &of_drives)))
        });
        let (drives, remark) = offered.transpose()?.unzip();
        let mut answer = self.judged(&simulated, is_settled, drives);
        answer.notes.extend(remark.flatten());
        Ok(answer)
    }

    /// The limit for simulations of candidates.
    fn simulations(&self) -> usize {
        let (least, most) = (*SIMULATIONS.start(), *SIMULATIONS.end());
        // Large devices take long to fill.
        let most = if self.selector.space.scale() > 1.0 { least } else { most };
        let usual = self.candidates.len().div_ceil(SIMULATED).clamp(least, most);
        self.question.simulations.unwrap_or(usual + FINER_SIMULATIONS)
    }

    /// Searches the candidates until a number of simulations.
    fn search(
        &self,
        searched: &mut Searched,
        aims: &[Aim],
        simulations: usize,
        simulator: &Simulator<'_>,
    ) -> Result<(), AdviceError> {
        let Searched { search, ran } = searched;
        search.run(&self.predicted, aims, simulations, &mut |batch| {
            let points: Vec<&Point> = batch.iter().map(|&at| &self.candidates[at].point).collect();
            let of_batch = self.ran(&points, ran.len(), simulator)?;
            let outcomes = of_batch.iter().zip(batch).map(|(ran, &at)| self.outcome(ran, at)).collect();
            ran.extend(batch.iter().copied().zip(of_batch));
            Ok(outcomes)
        })
    }

    /// Devices between those of the series that may be cheaper than the cheapest simulated one. That one meets all goals
    /// but perhaps the budget, because a smaller device may be within the budget.
    fn finer(&self, search: &Search) -> Result<Vec<(Candidate, Predicted)>, AdviceError> {
        let space = self.selector.space;
        let is_other = |goal: &&Goal| goal.measure.cause() != Cause::Money;
        let goals: Vec<Goal> = self.question.goals.iter().filter(is_other).copied().collect();
        let aim = Aim { goals, costs: costs(&self.candidates) };
        let Some(limit_usd) = aim.cheapest(search.tried()).map(|at| aim.costs[at]) else { return Ok(Vec::new()) };
        // A device between two sizes costs more than half of the larger one.
        let larger = search.hopeful(&self.predicted, &aim, 2.0 * limit_usd);
        let key = |candidate: &Candidate| (candidate.point.scheme.clone(), candidate.point.set.clone());
        let mut known: BTreeSet<_> = self.candidates.iter().map(key).collect();
        let mut drafts: Vec<Candidate> =
            larger.into_iter().flat_map(|at| space.between(&self.candidates[at])).collect();
        drafts.retain(|draft| draft.cost_usd < limit_usd && known.insert(key(draft)));
        sort_by_price(&mut drafts);
        Ok(self.selector.kept(drafts)?.candidates)
    }

    /// The figures of the drives in a range, if wear spreads over the whole drive.
    fn drives(&self, range: &Range, ran: &[Ran]) -> DrivesToBuy {
        let (mut offered, mut failed) = (Vec::new(), Vec::new());
        for (drive, ran) in range.drives.iter().zip(ran) {
            match self.drive(drive, ran) {
                Ok(drive) => offered.push(drive),
                Err(what) => failed.push(format!("{}: {what}", drive.product.title)),
            }
        }
        DrivesToBuy::new(range, offered, failed)
    }

    /// The point of a drive. If the trace fills only a part of the requested capacity, a full-size write buffer would
    /// take more of its writes than it takes of the writes to a whole drive.
    fn point(&self, drive: &OnSale, trace: &Loaded) -> Point {
        let touched = trace.workload.touched_bytes();
        let is_part = self.question.asked.capacity.is_some_and(|capacity| capacity.0 > touched);
        let buffer = if is_part { drive.scaled_buffer(touched) } else { None };
        drive.point(self.source, &self.question.replay, buffer)
    }

    fn drive(&self, drive: &OnSale, ran: &Ran) -> Result<DriveToBuy, String> {
        let Some(figures) = &ran.row.figures else {
            return Err(ran.row.failure.as_ref().map(|failure| failure.what.clone()).unwrap_or_default());
        };
        let scale = drive.capacity_bytes as f64 / figures.logical_bytes as f64;
        let outcome = Outcome::of_figures(figures, Whole { cost_usd: drive.cost_usd, scale }, self.terms());
        let made = made(drive, scale, ran.row.point.command());
        let rows = (&ran.row, ran.service.as_ref());
        let choice = Choice::new(made, rows, &outcome, &self.question.goals, self.terms());
        Ok(DriveToBuy::new(drive, self.question.prices.is_quoted(&drive.product.name), scale, choice))
    }

    /// The results of a batch of points, after a number of simulations.
    fn ran(&self, points: &[&Point], done: usize, simulator: &Simulator<'_>) -> Result<Vec<Ran>, AdviceError> {
        let progress = self.selector.progress;
        let served = &|| progress(Phase::Simulating, done, simulator.most);
        let ran = simulator.pool.install(|| self.simulated(points, simulator, served));
        let is_end = progress(Phase::Simulating, done + ran.len(), simulator.most).is_break();
        if is_end || ran.iter().any(was_stopped) { Err(AdviceError::Stopped) } else { Ok(ran) }
    }

    fn simulated(
        &self,
        points: &[&Point],
        simulator: &Simulator<'_>,
        served: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Vec<Ran> {
        let gate = &simulator.gate;
        let run = |point: &Point| run_on(point, simulator.trace, &|bytes| gate.enter(bytes), &mut |_| served());
        let one_at_a_time = |point: &Point| {
            let arrivals = arrivals::name(Arrivals::Closed { depth: 1 });
            Point { replay: Replay { arrivals, ..point.replay.clone() }, ..point.clone() }
        };
        let simulate = |&point: &&Point| {
            let service = || self.terms().arriving.map(|_| run(&one_at_a_time(point)));
            let (row, service) = rayon::join(|| run(point), service);
            Ran { row, service }
        };
        points.par_iter().map(simulate).collect()
    }

    fn outcome(&self, ran: &Ran, at: usize) -> Option<Outcome> {
        let whole = Whole { cost_usd: self.candidates[at].cost_usd, scale: self.candidates[at].scale };
        Some(Outcome::of_figures(ran.row.figures.as_ref()?, whole, self.terms()))
    }

    /// The judgement of all simulations.
    fn judged(&self, simulated: &[Simulated<'_>], is_settled: bool, drives: Option<DrivesToBuy>) -> Answer {
        let goals = self.question.goals.as_slice();
        let judge = Judge::new(goals, self.terms(), simulated);
        let (recommended, by_goal) = (judge.recommended(), judge.by_goal());
        let closest = if recommended.is_some() { Vec::new() } else { judge.closest() };
        let parts: BTreeMap<&str, _> =
            self.candidates.iter().flat_map(Candidate::chips).map(|chip| (chip.name.as_str(), chip)).collect();
        let prices = &self.question.prices;
        let left_out = self.left_out(closest.first());
        let mut notes = self.notes(simulated);
        let is_settled = is_settled && left_out.is_none();
        notes.extend(left_out);
        Answer {
            bimetal: env!("CARGO_PKG_VERSION"),
            notes,
            trace: self.facts.clone(),
            replay: self.question.replay.clone(),
            goals: goals.to_vec(),
            write_bytes_per_day: self.terms().rate.bytes_per_day(),
            warranty_years: self.terms().warranty_years,
            price_year: prices.year,
            prices: parts.into_values().filter_map(|chip| prices.listed(chip)).collect(),
            candidates: self.candidates.len(),
            dies: self.selector.space.die_counts(),
            simulations: simulated.len(),
            failed: simulated.iter().filter(|one| one.outcome.is_none()).count(),
            is_settled,
            binds: answer::binds(recommended.as_ref(), &closest, &by_goal),
            recommended,
            closest,
            by_goal,
            front: judge.front(),
            sensitivity: judge.sensitivity(),
            simulated: judge.all(),
            drives,
        }
    }

    /// A caveat if the closest device misses a goal for wear, and the candidates end before the budget does: a larger
    /// device, which was not simulated, may meet the goal.
    fn left_out(&self, closest: Option<&Choice>) -> Option<String> {
        let goals = &self.question.goals;
        let is_missed = |(goal, excess): &(&Goal, &Option<f64>)| {
            goal.measure.cause() == Cause::Wear && excess.is_none_or(|excess| excess > 1.0)
        };
        let (missed, _) = goals.iter().zip(&closest?.excess).find(is_missed)?;
        if !self.selector.space.leaves_out_larger(&wanted(goals, self.terms(), self.selector.space.capacity_bytes())) {
            return None;
        }
        let flash_bytes = |candidate: &Candidate| candidate.layout.flash_bytes as f64 * candidate.scale;
        let most = self.candidates.iter().map(flash_bytes).fold(0.0, f64::max);
        Some(format!(
            "no candidate device has more than {} of flash: life, TBW and DWPD grow with the raw capacity, so a larger \
             device, which was not simulated, may meet the goal for the {}",
            with_unit(SIZES, most),
            missed.measure.words()
        ))
    }

    /// Caveats that a user should know before trusting the answer.
    fn notes(&self, simulated: &[Simulated<'_>]) -> Vec<String> {
        let mut notes = Vec::new();
        if self.terms().arriving.is_none() && self.facts.duration_s <= 0.0 {
            notes.push(
                "the trace has no times: a request is sent when an earlier request is served, so responses include no queueing in \
                 bursts"
                    .to_owned(),
            );
        }
        let scale = self.selector.space.scale();
        if scale > 1.0 {
            let (whole, simulated) =
                (self.selector.space.capacity_bytes(), self.selector.space.capacity_bytes() / scale);
            notes.push(format!(
                "devices of {} are simulated at {} with as many dies: prices, lives and TBW are {} times the figures that the commands \
                 print, responses are the same",
                with_unit(SIZES, whole),
                with_unit(SIZES, simulated),
                significant(scale)
            ));
        }
        let is_scaled_load = speed(&self.question.replay).is_some_and(|speed| speed != 1.0);
        if is_scaled_load && self.question.write_bytes_per_day.is_none() {
            notes.push(
                "lives are at the offered load; the commands print lives at the write rate of the trace".to_owned(),
            );
        }
        let prices = &self.question.prices;
        let chips: BTreeMap<&str, _> =
            self.candidates.iter().flat_map(Candidate::chips).map(|chip| (chip.name.as_str(), chip)).collect();
        let older: BTreeSet<(&str, u16)> =
            chips.values().filter_map(|chip| Some((chip.cell.name(), prices.earlier_year(chip)?))).collect();
        for (cells, year) in older {
            notes.push(format!(
                "there is no price of {} of {}: that of {year} applies; `--prices` or `--price {cells}=USD` sets it",
                cells.to_uppercase(),
                prices.year
            ));
        }
        let unused: Vec<&str> = prices.given_chips().filter(|name| !chips.contains_key(name)).collect();
        if !unused.is_empty() {
            notes.push(format!(
                "the price of {} has no effect: no candidate has this chip; see `--chips`",
                unused.join(", ")
            ));
        }
        let rate = self.terms().rate;
        if rate.asked.is_none() && rate.of_trace.is_some() && self.facts.duration_s < SHORT_S {
            let lasts = with_unit(TIMES, self.facts.duration_s * 1e6);
            notes.push(format!(
                "the trace lasts {lasts}: lives assume its write rate at all times; `--writes-per-day` sets another rate"
            ));
        }
        let figures = simulated.iter().filter_map(|one| one.row.figures.as_ref());
        let overwrites = figures.filter(|figures| figures.is_extrapolated()).map(|figures| figures.lifetime_overwrites);
        notes.extend(extrapolated_remark(overwrites, "`--repeat` and `--measure`"));
        notes
    }
}

/// A caveat about drives whose write buffer, which is not scaled down as far as their flash, takes most writes.
fn buffered(range: &Range, ran: &[Ran]) -> Option<String> {
    let is_buffered = |ran: &Ran| {
        let figures = ran.row.figures.as_ref()?;
        Some(figures.key_figures.write_amplification? < BUFFERED)
    };
    let drives = range.drives.iter().zip(ran).filter(|(_, ran)| is_buffered(ran) == Some(true));
    let titles: Vec<&str> = drives.map(|(drive, _)| drive.product.title.as_str()).collect();
    (!titles.is_empty()).then(|| {
        format!(
            "less than half of the writes reach the flash of {}: the write buffer is larger for a scaled drive than for \
             the whole one, whose life, TBW and DWPD may be much shorter",
            titles.join(", ")
        )
    })
}

fn was_stopped(ran: &Ran) -> bool {
    let is_stop = |row: &Row| row.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Stopped);
    is_stop(&ran.row) || ran.service.as_ref().is_some_and(is_stop)
}

/// The prices of candidates, in US dollars.
fn costs(candidates: &[Candidate]) -> Vec<f64> {
    candidates.iter().map(|candidate| candidate.cost_usd).collect()
}

/// The sets of goals: all goals, all but one, and each alone. If simulations remain, also all goals at other prices.
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
    let today = costs(candidates);
    let mut aims: Vec<Aim> = sets.into_iter().map(|goals| Aim { goals, costs: today.clone() }).collect();
    let kinds: BTreeSet<Kind> =
        candidates.iter().flat_map(|candidate| candidate.shares.iter().map(|&(kind, _)| kind)).collect();
    for factor in PRICE_FACTORS {
        for &kind in &kinds {
            let cost =
                |candidate: &Candidate| total(&candidate.shares, |of| if of.follows(kind) { factor } else { 1.0 });
            aims.push(Aim { goals: goals.to_vec(), costs: candidates.iter().map(cost).collect() });
        }
    }
    aims
}
