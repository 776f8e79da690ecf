//! The answer, made from the simulated devices alone. Price sensitivity needs no further simulation.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use bimetal_core::part::real::pow;
use bimetal_core::report::TraceFacts;
use serde::Serialize;

use super::goals::{Cause, Goal, Measure, Outcome, Terms, missed_by};
use super::prices::{Kind, Listed, total};
use super::space::Candidate;
use crate::describe;
use crate::listing::Listing;
use crate::number::{LIVES, SIZES, dollars, significant, thousands, with_unit};
use crate::sweep::pareto;
use crate::sweep::point::Replay;
use crate::sweep::row::Row;

pub use super::choice::{Choice, ResponseTimes};
pub use super::drives_to_buy::{DriveToBuy, DrivesToBuy};

/// Price steps in each direction: four for each doubling, from a quarter of the price to four times the price.
const PRICE_STEPS: i32 = 8;
const STEPS_PER_DOUBLING: f64 = 4.0;
/// A device has noticeably more flash than another above this ratio.
const MORE_FLASH: f64 = 1.05;
/// Term for a response without waiting.
const SERVICE: &str = "service time";
/// Wear columns of tables.
pub const WEAR: [Measure; 3] = [Measure::Life, Measure::Tbw, Measure::Dwpd];
/// Number of devices that are named if none meets the goals.
const CLOSEST: usize = 3;

/// The complete answer, as written to JSON.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Answer {
    /// Version of this program.
    pub bimetal: &'static str,
    /// The trace.
    pub trace: TraceFacts,
    /// The replay of every simulation.
    pub replay: Replay,
    /// Goals for devices.
    pub goals: Vec<Goal>,
    /// Caveats that a user should know before trusting the answer.
    pub notes: Vec<String>,
    /// Host writes per day on which lives are based, in bytes; none if the trace has no duration.
    pub write_bytes_per_day: Option<f64>,
    /// Years on which drive writes per day are based: the lifetime goal, or 5.
    pub warranty_years: f64,
    /// Year of the price list.
    pub price_year: u16,
    /// Prices of the candidate parts.
    pub prices: Vec<Listed>,
    /// Number of candidate devices.
    pub candidates: usize,
    /// The searched numbers of dies.
    pub dies: Vec<u32>,
    /// Number of simulated candidates.
    pub simulations: usize,
    /// Number of simulations that failed.
    pub failed: usize,
    /// Whether it is unlikely that an unsimulated device is a cheaper answer.
    pub is_settled: bool,
    /// The cheapest device that meets all goals.
    pub recommended: Option<Choice>,
    /// If no device meets all goals: the devices that miss them by the smallest factor.
    pub closest: Vec<Choice>,
    /// The limit that rules out a cheaper device, or any device.
    pub binds: Option<Cause>,
    /// For each goal: the cheapest device that meets this goal, and the cheapest that meets all others.
    pub by_goal: Vec<ByGoal>,
    /// The Pareto front of price, response and life, cheapest first.
    pub front: Vec<Choice>,
    /// Changes of the answer with prices.
    pub sensitivity: Vec<Sensitivity>,
    /// Every simulated device, in the order of simulation.
    pub simulated: Vec<Choice>,
    /// Whole drives on the market instead of a composed device; none if the user excludes them.
    pub drives: Option<DrivesToBuy>,
}

impl Answer {
    /// The recommended device, or else the closest ones.
    pub fn chosen(&self) -> &[Choice] {
        self.recommended.as_ref().map_or(self.closest.as_slice(), std::slice::from_ref)
    }

    /// Whether a composed device or a drive meets all goals.
    pub fn is_found(&self) -> bool {
        let is_drive_found = |drives: &DrivesToBuy| drives.cheapest().is_some();
        self.recommended.is_some() || self.drives.as_ref().is_some_and(is_drive_found)
    }

    /// Whether no device meets all goals at any of the tried prices.
    pub fn is_out_of_reach(&self) -> bool {
        self.sensitivity.iter().flat_map(|one| &one.steps).all(|step| step.cost_usd.is_none())
    }

    /// The terms of the answer in words: replays, wear, prices, the search and its caveats.
    pub fn terms(&self) -> Vec<String> {
        let mut terms = vec![
            format!("every simulation: {}; devices filled before", self.replayed()),
            self.wear_terms(),
            format!("prices of {}: {}", self.price_year, self.price_list()),
            self.searched(),
        ];
        terms.extend(self.notes.iter().cloned());
        terms
    }

    /// The prices of each kind of parts.
    fn price_list(&self) -> String {
        let mut kinds: Vec<(&str, f64)> = Vec::new();
        for price in &self.prices {
            if !kinds.contains(&(price.kind, price.usd_per_gib)) {
                kinds.push((price.kind, price.usd_per_gib));
            }
        }
        let shown = kinds.iter().map(|(kind, usd)| format!("{} {}", kind.to_uppercase(), significant(*usd)));
        shown.collect::<Vec<_>>().join(", ") + " USD/GiB"
    }

    /// The searched devices and the number of simulations, in words.
    pub fn searched(&self) -> String {
        let settled = match &self.recommended {
            _ if self.is_settled => "",
            Some(_) => "; more simulations may find a cheaper one",
            None => "; a device that was not simulated may meet all goals",
        };
        let count = |count: usize| thousands(count as u64);
        let failed = if self.failed > 0 { format!(", of which {} failed", count(self.failed)) } else { String::new() };
        format!("{}, {} simulated{failed}{settled}", candidates(self.candidates, &self.dies), count(self.simulations))
    }

    /// The write rate on which lives are based, and the meaning of TBW and DWPD, in words.
    pub fn wear_terms(&self) -> String {
        let rate =
            self.write_bytes_per_day.map(|bytes| format!("lives at {} written a day; ", with_unit(SIZES, bytes)));
        format!(
            "{}TBW: host writes until wear-out; DWPD: TBW / (capacity x {})",
            rate.unwrap_or_default(),
            with_unit(LIVES, self.warranty_years)
        )
    }

    /// The arrivals and the number of passes, in words.
    pub fn replayed(&self) -> String {
        describe::passes(&self.replay.arrivals, self.replay.repeat, self.replay.measure)
    }

    /// The table head of the responses to which goals apply. In a closed loop of depth 1 they are service times.
    pub fn response_head(&self) -> String {
        let kind = if self.replay.arrivals == "closed:1" { SERVICE } else { "response" };
        self.head(kind)
    }

    /// The table head of additional service times with one request at a time; none in a closed loop.
    pub fn service_head(&self) -> Option<String> {
        (!self.replay.arrivals.starts_with("closed")).then(|| self.head(SERVICE))
    }

    fn head(&self, kind: &str) -> String {
        match response_of(&self.goals) {
            Measure::Mean => format!("mean {kind}"),
            Measure::P50 => format!("median {kind}"),
            other => format!("{kind}, {}", other.words()),
        }
    }

    /// The limit that rules out a cheaper device, or any device, and the price of each goal: one statement a line.
    pub fn binding(&self) -> Vec<String> {
        let what = match self.binds {
            Some(Cause::Latency) => "latency is the limit",
            Some(Cause::Wear) => "wear is the limit",
            Some(Cause::Money) => "the budget is the limit",
            None => "no goal is a limit: no cheaper device was simulated",
        };
        let mut lines = vec![what.to_owned()];
        lines.extend(self.recommended.as_ref().and_then(Choice::falls_behind));
        for one in &self.by_goal {
            let name = one.goal.measure.words();
            match (&one.without, one.costs_usd) {
                (Some(without), Some(costs)) if costs > 0.0 => {
                    let behind =
                        if without.overload.is_some() { ", but that device falls behind the trace" } else { "" };
                    lines.push(format!(
                        "without the goal for the {name}: {} USD less{}{behind}: {}",
                        dollars(costs),
                        self.more_flash(without),
                        without.words()
                    ));
                }
                (Some(without), None) if self.goals.len() > 1 => lines.push(format!(
                    "without the goal for the {name}: {} USD, {}",
                    dollars(without.cost_usd),
                    without.words()
                )),
                _ => {}
            }
            if one.alone.is_none() {
                lines.push(format!("no simulated device meets the goal for the {name}, even alone"));
            }
        }
        lines
    }

    /// A remark on the smaller amount of flash of the cheaper device, if the goal is met by more flash.
    fn more_flash(&self, cheaper: &Choice) -> String {
        let size = |choice: &Choice| with_unit(SIZES, choice.flash_bytes);
        match &self.recommended {
            Some(chosen) if chosen.flash_bytes > cheaper.flash_bytes * MORE_FLASH => {
                format!(", and {} of flash instead of {}", size(cheaper), size(chosen))
            }
            _ => String::new(),
        }
    }

    /// A measured value with its unit, and with a sign if it misses its goal by less than the digits show.
    pub fn shown(&self, choice: &Choice, measure: Measure) -> String {
        let goal = self.goals.iter().find(|goal| goal.measure == measure);
        let sign = goal.zip(choice.of(measure)).map_or("", |(goal, value)| goal.sign(value));
        format!("{sign}{}", choice.shown(measure))
    }

    /// For each goal: the figure of the device, and whether it meets the goal.
    pub fn verdicts(&self, choice: &Choice) -> Vec<Vec<String>> {
        let row = |(goal, excess): (&Goal, &Option<f64>)| {
            let verdict = match (excess, choice.overload) {
                (Some(excess), _) if *excess <= 1.0 => format!("met, {:.1} % to spare", (1.0 - excess) * 100.0),
                (Some(excess), _) => format!("missed {}", missed_by(*excess)),
                (None, Some(times)) if goal.measure.cause() == Cause::Latency => {
                    format!("missed: serving takes {} times as long as the arrivals", significant(times))
                }
                (None, _) => "missed".to_owned(),
            };
            let service = self.service_head().filter(|_| goal.measure.cause() == Cause::Latency);
            let beside = service.map_or_else(String::new, |_| format!(" (service {})", choice.service(goal.measure)));
            vec![goal.to_string(), self.shown(choice, goal.measure) + &beside, verdict]
        };
        self.goals.iter().zip(&choice.excess).map(row).collect()
    }

    /// Devices with price, responses and wear.
    pub fn listing(&self, choices: &[Choice]) -> Listing {
        let response = response_of(&self.goals);
        let service = self.service_head();
        let mut heads: Vec<String> = ["device", "scheme", "meets all goals", "cost (USD)"].map(str::to_owned).to_vec();
        heads.push(self.response_head());
        heads.extend(service.clone());
        heads.extend(WEAR.map(|measure| measure.words().to_owned()));
        let row = |choice: &Choice| {
            let mut row = vec![
                choice.device.clone(),
                choice.scheme.clone(),
                if choice.meets { "●".to_owned() } else { String::new() },
                dollars(choice.cost_usd),
                self.shown(choice, response),
            ];
            row.extend(service.as_ref().map(|_| choice.service(response)));
            row.extend(WEAR.map(|measure| self.shown(choice, measure)));
            row
        };
        Listing { heads, rows: choices.iter().map(row).collect(), text_columns: 3 }
    }
}

/// The effect of a single goal.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ByGoal {
    /// The goal.
    pub goal: Goal,
    /// The cheapest device that meets this goal.
    pub alone: Option<Choice>,
    /// The cheapest device that meets all other goals.
    pub without: Option<Choice>,
    /// Additional cost of this goal, in US dollars.
    pub costs_usd: Option<f64>,
}

/// Changes of the answer with the prices of a kind of parts.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Sensitivity {
    /// Kind of cells, or `disk`.
    pub kind: &'static str,
    /// Steps from a quarter of the prices to four times the prices.
    pub steps: Vec<PriceStep>,
}

/// The answer at other prices.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PriceStep {
    /// Factor on the prices.
    pub factor: f64,
    /// Price of the cheapest device that meets all goals, in US dollars.
    pub cost_usd: Option<f64>,
    /// The device, if it differs from the device at the next step towards a factor of 1.
    pub changes_to: Option<Choice>,
    /// Whether no device meets all goals any more.
    pub is_none: bool,
}

/// A simulated candidate.
#[derive(Clone, Debug)]
pub struct Simulated<'a> {
    /// The candidate.
    pub candidate: &'a Candidate,
    /// Its figures; none if the simulation failed.
    pub outcome: Option<Outcome>,
    /// Its row.
    pub row: &'a Row,
    /// Its row with one request at a time, unless `row` is that already.
    pub service: Option<&'a Row>,
}

/// Judgement of simulated devices.
#[derive(Debug)]
pub struct Judge<'a> {
    goals: &'a [Goal],
    terms: &'a Terms,
    done: Vec<(&'a Simulated<'a>, Outcome)>,
}

impl<'a> Judge<'a> {
    /// The judge of those simulations that did not fail.
    pub fn new(goals: &'a [Goal], terms: &'a Terms, simulated: &'a [Simulated<'a>]) -> Self {
        Self { goals, terms, done: simulated.iter().filter_map(|one| Some((one, one.outcome?))).collect() }
    }

    fn choice(&self, at: usize) -> Choice {
        let (one, outcome) = &self.done[at];
        Choice::new(one.candidate.into(), (one.row, one.service), outcome, self.goals, self.terms)
    }

    /// The cheapest device that meets the goals at these prices: its index and cost. Of equally cheap ones it is the
    /// best by its other figures, so that no other simulated device is better at the same price.
    fn cheapest(&self, goals: &[Goal], cost: impl Fn(&Candidate) -> f64) -> Option<(usize, f64)> {
        let priced = self.done.iter().enumerate().map(|(at, (one, outcome))| {
            let cost = cost(one.candidate);
            (at, cost, outcome.at_cost(cost))
        });
        let meeting = priced.filter(|(_, _, outcome)| outcome.meets(goals));
        let best = meeting.min_by(|a, b| a.1.total_cmp(&b.1).then_with(|| self.by_figures(&a.2, &b.2)));
        best.map(|(at, cost, _)| (at, cost))
    }

    /// The better figures first: the response of the goals, other responses, wear.
    fn by_figures(&self, a: &Outcome, b: &Outcome) -> Ordering {
        let order = |measure: Measure| {
            let order = a.of(measure).total_cmp(&b.of(measure));
            if measure.is_more_better() { order.reverse() } else { order }
        };
        let measures = [self.response(), Measure::Mean, Measure::P99].into_iter().chain(Measure::ALL);
        measures.map(order).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn cheapest_today(&self, goals: &[Goal]) -> Option<usize> {
        self.cheapest(goals, |candidate| candidate.cost_usd).map(|(at, _)| at)
    }

    /// The cheapest device that meets all goals.
    pub fn recommended(&self) -> Option<Choice> {
        self.cheapest_today(self.goals).map(|at| self.choice(at))
    }

    /// The devices that miss the goals by the smallest factors. Overloaded devices are ordered by simulated time.
    pub fn closest(&self) -> Vec<Choice> {
        let excess = |at: usize| self.done[at].1.worst_excess(self.goals);
        let took_s =
            |at: usize| self.done[at].0.row.figures.as_ref().map_or(f64::INFINITY, |figures| figures.simulated_s);
        let mut places: Vec<usize> = (0..self.done.len()).collect();
        places.sort_by(|&a, &b| excess(a).total_cmp(&excess(b)).then(took_s(a).total_cmp(&took_s(b))));
        places.into_iter().take(CLOSEST).map(|at| self.choice(at)).collect()
    }

    /// For each goal, its effect and its cost.
    pub fn by_goal(&self) -> Vec<ByGoal> {
        let best = self.cheapest_today(self.goals).map(|at| self.done[at].1.of(Measure::Cost));
        let of = |(at, goal): (usize, &Goal)| {
            let others: Vec<Goal> =
                self.goals.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, goal)| *goal).collect();
            let without = self.cheapest_today(&others).map(|at| self.choice(at));
            let costs = best.zip(without.as_ref()).map(|(best, without)| best - without.cost_usd);
            let alone = self.cheapest_today(&[*goal]).map(|at| self.choice(at));
            ByGoal { goal: *goal, alone, without, costs_usd: costs }
        };
        self.goals.iter().enumerate().map(of).collect()
    }

    /// The devices on the front of price, response and life. The response is the measure of the first response goal.
    pub fn front(&self) -> Vec<Choice> {
        let response = self.response();
        let of = |(_, outcome): &(&Simulated<'_>, Outcome)| {
            let us = outcome.of(response);
            vec![outcome.of(Measure::Cost), if us.is_finite() { us } else { f64::NAN }, -outcome.of(Measure::Life)]
        };
        let points: Vec<Vec<f64>> = self.done.iter().map(of).collect();
        let mut places = pareto::front(&points);
        places.sort_by(|&a, &b| points[a][0].total_cmp(&points[b][0]));
        places.into_iter().map(|at| self.choice(at)).collect()
    }

    /// The response measure that is shown.
    fn response(&self) -> Measure {
        response_of(self.goals)
    }

    /// All simulated devices.
    pub fn all(&self) -> Vec<Choice> {
        (0..self.done.len()).map(|at| self.choice(at)).collect()
    }

    /// The answer at other prices, for each kind of parts.
    pub fn sensitivity(&self) -> Vec<Sensitivity> {
        let kinds: BTreeSet<Kind> =
            self.done.iter().flat_map(|(one, _)| one.candidate.shares.iter().map(|&(kind, _)| kind)).collect();
        kinds.into_iter().map(|kind| self.sensitivity_of(kind)).collect()
    }

    fn sensitivity_of(&self, kind: Kind) -> Sensitivity {
        let at_factor = |factor: f64| {
            let cost =
                |candidate: &Candidate| total(&candidate.shares, |of| if of.follows(kind) { factor } else { 1.0 });
            self.cheapest(self.goals, cost)
        };
        let factor = |step: i32| pow(2.0, f64::from(step) / STEPS_PER_DOUBLING);
        let today = at_factor(1.0).map(|(at, _)| at);
        let mut steps: Vec<PriceStep> = Vec::new();
        // From a factor of 1 outwards, so that each change is recorded at the step where it happens.
        for direction in [-1, 1] {
            let mut last = today;
            for step in 1..=PRICE_STEPS {
                let factor = factor(direction * step);
                let found = at_factor(factor);
                let now = found.map(|(at, _)| at);
                let changes_to = now.filter(|_| now != last).map(|at| {
                    let mut choice = self.choice(at);
                    choice.cost_usd = found.map_or(choice.cost_usd, |(_, cost)| cost);
                    choice
                });
                steps.push(PriceStep {
                    factor,
                    cost_usd: found.map(|(_, cost)| cost),
                    changes_to,
                    is_none: now.is_none() && last.is_some(),
                });
                last = now;
            }
        }
        let cost_usd = at_factor(1.0).map(|(_, cost)| cost);
        steps.push(PriceStep { factor: 1.0, cost_usd, changes_to: None, is_none: false });
        steps.sort_by(|a, b| a.factor.total_cmp(&b.factor));
        Sensitivity { kind: kind.name(), steps }
    }
}

/// The number of candidate devices and their numbers of dies, in words.
fn candidates(count: usize, dies: &[u32]) -> String {
    let with = match dies {
        [] | [1] => "1 die".to_owned(),
        [dies] => format!("{dies} dies"),
        [first, .., last] => format!("{first} to {last} dies"),
    };
    format!("{} candidate devices of {with}", thousands(count as u64))
}

/// The response measure beside price and life: the measure of the first response goal, or the 99th percentile.
pub fn response_of(goals: &[Goal]) -> Measure {
    let of_goal = goals.iter().map(|goal| goal.measure).find(|measure| measure.cause() == Cause::Latency);
    of_goal.unwrap_or(Measure::P99)
}

/// The limit that rules out a cheaper device: the goal that costs most. If no device meets all goals, it is the goal
/// without which a device exists, or else the goal that the closest device misses most.
pub fn binds(recommended: Option<&Choice>, closest: &[Choice], by_goal: &[ByGoal]) -> Option<Cause> {
    if recommended.is_some() {
        let costs = |one: &&ByGoal| one.costs_usd.unwrap_or(0.0);
        let most = by_goal.iter().filter(|one| costs(one) > 0.0).max_by(|a, b| costs(a).total_cmp(&costs(b)));
        return most.map(|one| one.goal.measure.cause());
    }
    let opens = by_goal.iter().find(|one| one.without.is_some()).map(|one| one.goal.measure.cause());
    let missed = || {
        let excess = closest.first()?.excess.iter().zip(by_goal);
        let most = excess.max_by(|a, b| a.0.unwrap_or(f64::INFINITY).total_cmp(&b.0.unwrap_or(f64::INFINITY)));
        most.map(|(_, one)| one.goal.measure.cause())
    };
    opens.or_else(missed)
}

#[cfg(test)]
mod tests {
    use super::super::goals::Rate;
    use super::*;

    #[test]
    fn of_equally_cheap_devices_the_one_with_better_figures_is_first() {
        let rate = Rate { asked: None, of_trace: None };
        let terms = Terms { rate, arriving: None, warranty_years: 5.0 };
        let outcome = |mean: f64, p99: f64, years: f64| {
            Outcome::new(|measure| match measure {
                Measure::Mean => mean,
                Measure::P99 => p99,
                Measure::Life => years,
                _ => 1.0,
            })
        };
        let order = |measure, (a, b): (Outcome, Outcome)| {
            let goals = [Goal { measure, limit: 1.0 }];
            Judge::new(&goals, &terms, &[]).by_figures(&a, &b)
        };
        // The response of the goal comes before other responses, and all responses before wear.
        let split = || (outcome(1.0, 9.0, 5.0), outcome(2.0, 8.0, 9.0));
        assert_eq!(order(Measure::Mean, split()), Ordering::Less);
        assert_eq!(order(Measure::P99, split()), Ordering::Greater);
        assert_eq!(order(Measure::Life, (outcome(1.0, 9.0, 5.0), outcome(1.0, 9.0, 6.0))), Ordering::Greater);
        assert_eq!(order(Measure::Life, (outcome(1.0, 9.0, 5.0), outcome(f64::INFINITY, 9.0, 5.0))), Ordering::Less);
        assert_eq!(order(Measure::Life, (outcome(1.0, 9.0, 5.0), outcome(1.0, 9.0, 5.0))), Ordering::Equal);
    }

    #[test]
    fn candidates_are_counted_in_thousands() {
        assert_eq!(candidates(838, &[1]), "838 candidate devices of 1 die");
        assert_eq!(candidates(12_345, &[6]), "12,345 candidate devices of 6 dies");
        assert_eq!(candidates(1_234_567, &[1, 2, 128]), "1,234,567 candidate devices of 1 to 128 dies");
    }
}
