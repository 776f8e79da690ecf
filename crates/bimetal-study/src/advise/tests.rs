//! The search on spaces that are small enough to be enumerated: how often it finds the true optimum with simulations of
//! a fifth of the space.

use std::convert::Infallible;

use rayon::prelude::*;

use super::goals::{Outcome, Whole};
use super::search::{Aim, Search};
use super::*;
use crate::generate;
use crate::sweep::run::run_on;
use crate::{memory, sample};
use bimetal_core::part::random;
use bimetal_core::replay::to_the_end;

const SCHEMES: [&str; 4] = ["pagemap", "wlaftl", "hyssd", "pslc-dynamic"];
/// Dies of a device, so that two regions have one die each.
const DIES: u32 = 2;
const CHIPS: [&str; 5] = ["slc-2011", "mlc-2008", "tlc-3d-2018", "mlc-mqsim", "mlc-l95b"];

/// A small space with every candidate simulated.
struct Enumerated {
    name: String,
    predicted: Vec<Predicted>,
    costs: Vec<f64>,
    outcomes: Vec<Option<Outcome>>,
}

fn enumerated(name: &str, workload: Workload, arrivals: &str) -> Enumerated {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let (channels, dies_per_channel) = (Some(DIES), Some(1));
    let asked =
        Asked { schemes: names(&SCHEMES), chips: names(&CHIPS), channels, dies_per_channel, ..Asked::default() };
    let source = TraceSource { name: name.into(), from: crate::sweep::source::Origin::Sample, limit: None };
    let (repeat, measure) = usual_passes(&workload, workload.touched_bytes());
    let question = Question {
        goals: Vec::new(),
        asked,
        drives: vec!["none".into()],
        prices: PriceList::new(None, None, &[]).unwrap(),
        write_bytes_per_day: Some(1e9),
        replay: Replay { repeat, measure, arrivals: arrivals.into(), ..Replay::default() },
        simulations: None,
        jobs: 0,
    };
    let terms = terms(&workload.facts, &question);
    let space = Space::new(&question.asked, workload.touched_bytes(), &question.prices).unwrap();
    let trace = Loaded { workload: workload.compacted(), fingerprint: String::new() };
    let quiet = |_, _, _| ControlFlow::Continue(());
    let load = load(&trace, &space, &question, &terms);
    let selector = Selector { space: &space, load, goals: &[], terms: &terms, progress: &quiet };
    let (candidates, predicted) = candidates(&selector, &source, &question).unwrap();
    let outcomes = candidates.par_iter().map(|candidate| {
        let row = run_on(&candidate.point, &trace, &|bytes| memory::check_bytes(bytes), &mut to_the_end);
        let whole = Whole { cost_usd: candidate.cost_usd, scale: candidate.scale };
        Some(Outcome::of_figures(&row.figures?, whole, &terms))
    });
    let outcomes = outcomes.collect();
    let costs = candidates.iter().map(|candidate| candidate.cost_usd).collect();
    Enumerated { name: name.into(), predicted, costs, outcomes }
}

impl Enumerated {
    fn generated(workload: &str, settings: &[(&str, &str)], arrivals: &str) -> Self {
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let trace = generate::trace(workload, &settings, 7).unwrap();
        enumerated(workload, Workload::of(trace, None), arrivals)
    }

    /// Goals that some devices meet or almost meet: bounds from a random device, each loosened or tightened.
    fn goals(&self, random: &mut u64) -> Vec<Goal> {
        let measures = [Measure::P99, Measure::Life, Measure::Mean, Measure::P95];
        let done: Vec<&Outcome> = self.outcomes.iter().flatten().collect();
        let below = |random: &mut u64, bound: usize| usize::try_from(random::below(random, bound as u64)).unwrap();
        let first = below(random, measures.len());
        let count = 1 + below(random, 2);
        let mut goal = |step: usize| {
            let measure = measures[(first + step) % measures.len()];
            let value = done[below(random, done.len())].of(measure);
            let limit = value * (0.8 + 0.4 * random::unit(random));
            Goal { measure, limit }
        };
        (0..count).map(&mut goal).filter(|goal| goal.limit.is_finite() && goal.limit > 0.0).collect()
    }

    /// Whether the search finds the cheapest device that meets the goals, or that there is none; and the number of
    /// simulations.
    fn is_found(&self, goals: &[Goal]) -> (bool, usize) {
        let all: Vec<_> = self.outcomes.iter().copied().enumerate().collect();
        let aim = Aim { goals: goals.to_vec(), costs: self.costs.clone() };
        let truth = aim.cheapest(&all);
        let most = self.predicted.len() / SIMULATED;
        let mut run = |batch: &[usize]| Ok(batch.iter().map(|&at| self.outcomes[at]).collect());
        let mut search = Search::default();
        let done: Result<(), Infallible> = search.run(&self.predicted, std::slice::from_ref(&aim), most, &mut run);
        assert!(done.is_ok() && search.tried().len() <= most);
        let cost = |at: Option<usize>| at.map(|at| self.costs[at]);
        (cost(aim.cheapest(search.tried())) == cost(truth), search.tried().len())
    }
}

/// Sets of goals for each space.
const GOALS: usize = 100;

/// Percentage of goals for which the true optimum is found. With `--nocapture` it prints the result of every space.
fn found_percent(arrivals: &str) -> f64 {
    let sample = Workload::of(sample::open().unwrap(), Some(6000));
    let spaces = [
        enumerated("sample", sample, arrivals),
        Enumerated::generated("zipf", &[("requests", "12000"), ("span", "96MiB")], arrivals),
        Enumerated::generated("uniform", &[("requests", "12000"), ("span", "64MiB")], arrivals),
    ];
    let (mut found, mut asked) = (0, 0);
    for space in &spaces {
        let mut random = 11u64;
        let (mut own, mut simulations, mut count) = (0, 0, 0);
        for _ in 0..GOALS {
            let goals = space.goals(&mut random);
            if goals.is_empty() {
                continue;
            }
            let (is_found, used) = space.is_found(&goals);
            (own, simulations, count) = (own + usize::from(is_found), simulations + used, count + 1);
        }
        println!(
            "{} ({arrivals}): {} candidates, found {own} of {count}, {:.1} simulations",
            space.name,
            space.predicted.len(),
            simulations as f64 / count as f64
        );
        (found, asked) = (found + own, asked + count);
    }
    100.0 * found as f64 / asked as f64
}

#[test]
fn the_true_optimum_is_found_in_a_closed_loop() {
    let found = found_percent("closed:1");
    assert!(found >= 95.0, "{found:.1} %");
}

/// At half the speed of the trace, queues dominate the responses: some devices are overloaded, and many more wait for
/// garbage collection.
#[test]
fn the_true_optimum_is_found_in_an_open_loop() {
    let found = found_percent("trace:0.5");
    assert!(found >= 95.0, "{found:.1} %");
}

#[test]
fn a_size_between_those_of_the_series_is_found() {
    let settings = [("requests", "12000"), ("span", "128MiB")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let workload = || Workload::of(generate::trace("uniform", &settings, 7).unwrap(), None);
    let (repeat, measure) = usual_passes(&workload(), workload().touched_bytes());
    let source = TraceSource { name: "uniform".into(), from: crate::sweep::source::Origin::Sample, limit: None };
    let answer = |goals: &[Goal]| {
        let question = Question {
            goals: goals.to_vec(),
            asked: Asked {
                schemes: vec!["pagemap".into()],
                chips: vec!["tlc-3d-2018".into()],
                channels: Some(1),
                dies_per_channel: Some(1),
                ..Asked::default()
            },
            drives: vec!["none".into()],
            prices: PriceList::new(None, None, &[]).unwrap(),
            write_bytes_per_day: Some(1e9),
            replay: Replay { repeat, measure, arrivals: "closed:1".into(), ..Replay::default() },
            simulations: None,
            jobs: 0,
        };
        advise(workload(), &source, &question, &|_, _, _| ControlFlow::Continue(())).unwrap()
    };
    // No device meets this goal, so that all devices of the series are simulated.
    let mut series = answer(&[Goal { measure: Measure::Mean, limit: 1e-3 }]).simulated;
    series.sort_by(|a, b| a.cost_usd.total_cmp(&b.cost_usd));
    let years = |at: usize| series[at].life_years.unwrap();
    // Two of them that are several blocks apart.
    let is_far = |at: &usize| series[*at].cost_usd > 1.35 * series[at - 1].cost_usd;
    let at = (1..series.len()).find(is_far).unwrap();
    let goal = Goal { measure: Measure::Life, limit: years(at) / 1.15 };
    let found = answer(&[goal]).recommended.unwrap();
    assert!(found.meets && found.life_years.unwrap() >= goal.limit);
    let (dearer, cheaper) = (series[at].cost_usd, series[at - 1].cost_usd);
    assert!(cheaper < found.cost_usd && found.cost_usd < dearer, "{cheaper} < {} < {dearer}", found.cost_usd);
}
