//! Properties of WLAFTL and its baselines on whole devices: the threshold and the oldest data follow the relative wear,
//! every parameter has an effect, the baselines differ only as documented. The paper's claims that hold are in the
//! tests of `bimetal-papers`, on its traces; `docs/papers/wlaftl-2018.md` lists all claims.

use std::cmp::Ordering;

use crate::support::{TINY_SECTORS, region, shape};
use bimetal_core::ledger::{Ledger, Row};
use bimetal_core::media::{Cause, FlashOp, SimMedia, SimRegion};
use bimetal_core::part::random::below;
use bimetal_core::replay::{self, Measured, Outcome, Plan};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme;

/// 24 SLC blocks in front of 64 logical MLC blocks and 16 spare ones. 48 SLC erases are the same wear as 80 MLC erases.
fn small() -> [SimRegion; 2] {
    let mut regions = [region("wlaftl-slc", 16, 24, 1), region("wlaftl-mlc", 16, 80, 1)];
    regions[0].chip.endurance = 20_000;
    regions
}

fn replayed(name: &str, settings: &[(&str, &str)], requests: &[Request], plan: &Plan) -> Outcome {
    let regions = small();
    let settings: Vec<(String, String)> = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
    let mut media = SimMedia::new(&regions, 1).serial();
    let mut scheme = scheme::build::<SimMedia>(name, &shape(&regions, TINY_SECTORS), &settings).unwrap();
    let outcome = replay::run(&mut media, &mut *scheme, requests, plan, &mut replay::to_the_end);
    scheme.check().unwrap();
    outcome
}

/// Writes of 2 to 64 KiB, the small ones to a hot set, and reads.
fn mixture(count: u64) -> Vec<Request> {
    let mut state = 5;
    let request = |_| {
        let (op, sectors, span) = match below(&mut state, 20) {
            0..7 => (Op::Write, 8, TINY_SECTORS / 16),
            7..10 => (Op::Write, 4, TINY_SECTORS / 8),
            10..13 => (Op::Write, 16 + 8 * below(&mut state, 3), TINY_SECTORS / 4),
            13..15 => (Op::Write, 128, TINY_SECTORS),
            15 => (Op::Write, 1 + below(&mut state, 20), TINY_SECTORS),
            _ => (Op::Read, 16, TINY_SECTORS),
        };
        let sector = below(&mut state, (span - sectors) / 4) * 4;
        Request { arrival_ns: 0, sector, sectors: sectors as u32, op, handle: 0 }
    };
    (0..count).map(request).collect()
}

/// Every count of the ledger.
fn counts(ledger: &Ledger) -> Vec<u64> {
    let of_row = |row: &Row| FlashOp::ALL.map(|op| Cause::ALL.map(|cause| row.counts.get(op, cause))).concat();
    ledger.rows.iter().flat_map(of_row).collect()
}

/// The scheme's figures before each request, and after the last.
struct Story {
    names: Vec<&'static str>,
    states: Vec<Vec<f64>>,
}

impl Story {
    fn of(settings: &[(&str, &str)], requests: &[Request]) -> Self {
        let first = replayed("wlaftl", settings, &[], &Plan::default());
        let each = Plan { intervals: requests.len() as u32, ..Plan::default() };
        let outcome = replayed("wlaftl", settings, requests, &each);
        let mut states = vec![first.measured.metrics.iter().map(|(_, value)| value).collect::<Vec<_>>()];
        states.extend(outcome.course.intervals.iter().map(|interval| interval.metrics.clone()));
        assert_eq!(states.len(), requests.len() + 1);
        Self { names: outcome.measured.metrics.iter().map(|(name, _)| name).collect(), states }
    }

    fn get(&self, state: usize, name: &str) -> f64 {
        self.states[state][self.names.iter().position(|&known| known == name).unwrap()]
    }

    fn gain(&self, state: usize, name: &str) -> f64 {
        self.get(state + 1, name) - self.get(state, name)
    }

    /// Relative wear of SLC against MLC, from the counts of erases.
    fn wear(&self, state: usize, exact: bool) -> Ordering {
        let (slc, mlc) = (self.get(state, "slc_erases") as u64, self.get(state, "mlc_erases") as u64);
        if exact { (slc * 80).cmp(&(mlc * 48)) } else { (slc / 48).cmp(&(mlc / 80)) }
    }
}

/// Algorithm 1, line by line: θ stays on updates and at equal wear, goes down while SLC is worn more, up while it is
/// worn less; and writes that it admits go to SLC.
#[test]
fn the_threshold_goes_where_the_wear_says_at_every_write() {
    let requests = mixture(12_000);
    for exact in [false, true] {
        let word = if exact { "exact" } else { "integer" };
        let settings = [("wear_compare", word), ("threshold_max", "64KiB")];
        let story = Story::of(&settings, &requests);
        let mut seen = [0; 4];
        for (state, request) in requests.iter().enumerate() {
            let before = story.get(state, "threshold_kib");
            // Requests begin with a unit of 2 KiB, so that a request that is only partly in SLC finds fewer sectors
            // than it has.
            let is_update = story.gain(state, "updated_sectors") >= f64::from(request.sectors);
            let (expected, case) = match story.wear(state, exact) {
                _ if request.op == Op::Read || is_update => (before, 0),
                Ordering::Equal => (before, 1),
                Ordering::Greater => ((before - 4.0).max(0.0), 2),
                Ordering::Less => ((before + 4.0).min(64.0), 3),
            };
            seen[case] += 1;
            assert_eq!(story.get(state + 1, "threshold_kib"), expected, "request {state}: {request:?}");
        }
        println!("{word}: updates and reads, equal, down, up: {seen:?}");
        let rare = if exact { 1 } else { 500 };
        assert!(seen[0] > 500 && seen[1] >= rare && seen[2] > 500 && seen[3] > 500, "{seen:?}");
    }
}

/// Algorithm 2: while SLC is worn more, no page makes another lap; otherwise no page is demoted before its last lap.
#[test]
fn the_oldest_data_go_where_the_wear_says() {
    let requests = mixture(12_000);
    let story = Story::of(&[], &requests);
    let (mut worn, mut not_worn) = (0.0, 0.0);
    for state in 0..requests.len() {
        // Erases within the request may change the comparison.
        match (story.wear(state, false).is_gt(), story.wear(state + 1, false).is_gt()) {
            (true, true) => {
                assert_eq!(story.gain(state, "copied_back_pages"), 0.0, "request {state}");
                let down = story.gain(state, "demoted_sectors");
                assert_eq!(story.gain(state, "demoted_by_wear_sectors"), down, "request {state}");
                worn += down;
            }
            (false, false) => {
                assert_eq!(story.gain(state, "demoted_by_wear_sectors"), 0.0, "request {state}");
                not_worn += story.gain(state, "copied_back_pages");
            }
            _ => {}
        }
    }
    println!("{worn} sectors down while worn, {not_worn} pages round while not");
    assert!(worn > 1000.0 && not_worn > 1000.0);
}

/// A parameter, a value, and the settings with which it makes a difference.
type Change = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const LOG_CHANGES: &[Change] = &[("free_blocks", "9", &[]), ("gc_free_blocks", "6", &[])];
const WEAR_CHANGES: &[Change] = &[
    ("threshold", "16KiB", &[]),
    ("max_cycle_time", "0", &[]),
    ("max_cycle_time", "15", &[]),
    ("wear_compare", "exact", &[]),
    ("cycle_time", "laps_and_writes", &[]),
    ("laps_at_equal_wear", "false", &[]),
    ("keep_updates", "false", &[]),
];
const WLAFTL_CHANGES: &[Change] = &[
    ("threshold_rule", "cycles", &[]),
    ("threshold_step", "1KiB", &[]),
    ("threshold_max", "16KiB", &[]),
    ("threshold_interval", "100", &[]),
];
const CFTL_CHANGES: &[Change] = &[
    ("threshold_mode", "printed", &[]),
    ("threshold_mode", "mean", &[]),
    ("threshold_mode", "fixed", &[("initial_threshold", "4")]),
    ("initial_threshold", "2", &[]),
    ("threshold_period", "40", &[("initial_threshold", "2")]),
    ("histogram_halving", "true", &[("threshold_period", "20")]),
    ("wear_rule", "true", &[("threshold_mode", "fixed"), ("initial_threshold", "1024")]),
];

#[test]
fn every_parameter_changes_what_happens() {
    let requests = mixture(20_000);
    let schemes: [(&str, &[&[Change]]); 3] = [
        ("wlaftl", &[LOG_CHANGES, WEAR_CHANGES, WLAFTL_CHANGES]),
        ("wlaftl-static", &[LOG_CHANGES, WEAR_CHANGES]),
        ("cftl", &[LOG_CHANGES, CFTL_CHANGES]),
    ];
    for (name, changes) in schemes {
        for parameter in (scheme::find(name).unwrap().parameters)() {
            let tried = changes.iter().copied().flatten().any(|&(key, ..)| key == parameter.name);
            assert!(tried, "{} of {name} is not tried", parameter.name);
        }
        for &(key, value, beside) in changes.iter().copied().flatten() {
            let before = replayed(name, beside, &requests, &Plan::default()).measured;
            let settings: Vec<_> = beside.iter().copied().chain([(key, value)]).collect();
            let after = replayed(name, &settings, &requests, &Plan::default()).measured;
            assert_ne!(counts(&before.ledger), counts(&after.ledger), "{name}: {key}={value} changes nothing");
        }
    }
}

/// The baseline is the scheme without the control of the threshold.
#[test]
fn a_threshold_that_does_not_move_is_a_static_one() {
    let requests = mixture(20_000);
    for (threshold, cycles) in [("4KiB", "3"), ("16KiB", "1")] {
        let settings = [("threshold", threshold), ("max_cycle_time", cycles)];
        let fixed = replayed("wlaftl-static", &settings, &requests, &Plan::default()).measured;
        let settings = [settings[0], settings[1], ("threshold_step", "0")];
        let still = replayed("wlaftl", &settings, &requests, &Plan::default()).measured;
        assert_eq!(counts(&fixed.ledger), counts(&still.ledger));
        assert_eq!(fixed.metrics, still.metrics);
    }
}

/// If all writes are small, `cftl` with a fixed threshold does the same as a page map with a FIFO of SLC, that is, a
/// static threshold without cycles. It differs in large writes, which it does not keep in SLC.
#[test]
fn the_rival_gives_data_one_chance_and_takes_large_updates_out() {
    let (large, small): (Vec<_>, Vec<_>) =
        mixture(20_000).into_iter().filter(|request| request.sectors.is_multiple_of(4)).partition(|r| r.sectors > 8);
    let run = |name, settings: &[(&str, &str)], requests: &[Request]| {
        replayed(name, settings, requests, &Plan::default()).measured
    };
    let fixed = [("threshold_mode", "fixed"), ("initial_threshold", "8")];
    let once = [("max_cycle_time", "0")];
    let (rival, own) = (run("cftl", &fixed, &small), run("wlaftl-static", &once, &small));
    assert_eq!(counts(&rival.ledger), counts(&own.ledger));
    assert_eq!(rival.metrics.get("copied_back_pages"), Some(0.0));
    let both: Vec<Request> = small.into_iter().zip(large).flat_map(|(small, large)| [small, large]).collect();
    let (rival, own) = (run("cftl", &fixed, &both), run("wlaftl-static", &once, &both));
    let updated = |measured: &Measured| measured.metrics.get("updated_sectors").unwrap();
    assert!(updated(&own) > 1.2 * updated(&rival), "{} {}", updated(&own), updated(&rival));
}
