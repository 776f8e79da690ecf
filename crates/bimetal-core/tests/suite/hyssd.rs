//! Properties of HySSD on whole devices: all copies within a die are counted, the utilisation follows the model and the
//! lives, and the paper's claims that hold, on a small scale; `docs/papers/hyssd-2013.md` lists all claims.

use crate::support::{region, shape};
use bimetal_core::chip::Cell;
use bimetal_core::ledger::Row;
use bimetal_core::media::{Cause, FlashOp, SimMedia, SimRegion};
use bimetal_core::replay::{self, Fill, Outcome, Plan};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme;
use bimetal_core::workload;

/// The paper's devices divided by 128: 16 MiB of a fast part in front of 128 MiB of TLC, for 128 MiB of data. Blocks
/// are shorter, so that their number is that of a device of 2 GiB.
fn devices() -> [(&'static str, [SimRegion; 2]); 2] {
    ["hyssd-slc", "hyssd-mlc"].map(|fast| (fast, [region(fast, 16, 256, 1), region("hyssd-tlc", 48, 341, 1)]))
}

const LOGICAL_SECTORS: u64 = 128 << 11;
const PERIOD: (&str, &str) = ("period", "2048");

fn replayed(
    regions: &[SimRegion],
    name: &str,
    settings: &[(&str, &str)],
    requests: &[Request],
    plan: &Plan,
) -> Outcome {
    let settings: Vec<(String, String)> = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
    let mut media = SimMedia::new(regions, 1).serial();
    let mut scheme = scheme::build::<SimMedia>(name, &shape(regions, LOGICAL_SECTORS), &settings).unwrap();
    let outcome = replay::run(&mut media, &mut *scheme, requests, plan, &mut replay::to_the_end);
    scheme.check().unwrap();
    outcome
}

/// Steady state: the second of two passes.
const STEADY: Plan = Plan { passes: 2, measured_passes: 1, ..PLAN };
const PLAN: Plan = Plan {
    controller: None,
    arrivals: replay::Arrivals::Closed { depth: 1 },
    passes: 1,
    measured_passes: 1,
    fill: Fill::Device,
    intervals: 0,
    idle_after_ns: 0,
};

/// 4-KiB accesses by Zipf's law, a fifth of them reads.
fn zipf(requests: &str) -> Vec<Request> {
    let settings = [("span", "128MiB"), ("requests", requests), ("read_share", "0.2")];
    let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
    workload::build("zipf", &settings, 1).unwrap().collect()
}

fn mean_us(outcome: &Outcome) -> f64 {
    outcome.measured.reads.merged(&outcome.measured.writes).mean_ns() / 1e3
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    outcome.measured.metrics.get(name).unwrap()
}

/// One operation at a time, including copies within a die: time is the sum of all rows, and a copy counts as a read and
/// a program.
#[test]
fn copybacks_are_all_accounted_for() {
    for (_, regions) in devices() {
        let outcome = replayed(&regions, "hyssd", &[PERIOD], &zipf("60000"), &PLAN);
        assert_eq!(outcome.measured.simulated_ns, outcome.measured.ledger.busy().0);
        let of_row = |row: &Row| {
            let time = |op| Cause::ALL.iter().map(|&cause| row.time(op, cause).0).sum::<u64>();
            FlashOp::ALL.map(time).iter().sum::<u64>()
        };
        assert_eq!(outcome.measured.ledger.rows.iter().map(of_row).sum::<u64>(), outcome.measured.simulated_ns);
        for row in &outcome.measured.ledger.rows {
            let copied = row.counts.copybacks(Cause::Gc);
            assert_eq!(copied, row.counts.get(FlashOp::Read, Cause::Gc), "every copy stays within its die");
            assert_eq!(copied, row.counts.get(FlashOp::Program, Cause::Gc));
            assert_eq!(Cause::ALL.iter().map(|&cause| row.counts.copybacks(cause)).sum::<u64>(), copied);
        }
        let copies = outcome.measured.ledger.rows[1].counts.copybacks(Cause::Gc);
        assert!(copies > 1000 && metric(&outcome, "gc_copied_pages") >= copies as f64);
    }
}

/// Figures 3 and 5 and the claims about them: with a rising fixed utilisation, the response falls and rises again, and
/// so does the life; "Perf" is close to the best response, "Life" is close to the best life and costs little response.
#[test]
fn performance_and_lifetime_are_near_the_best_fixed_utilisation() {
    let requests = zipf("150000");
    for (part, regions) in devices() {
        let fixed: Vec<(f64, f64, f64)> = ["15", "30", "45", "60", "70", "80", "90", "97"]
            .iter()
            .map(|&percent| {
                let outcome =
                    replayed(&regions, "hyssd-static", &[("utilisation_percent", percent)], &requests, &STEADY);
                let utilisation = metric(&outcome, "utilisation");
                assert!((utilisation * 100.0 - percent.parse::<f64>().unwrap()).abs() < 1.0, "{utilisation}");
                (utilisation, mean_us(&outcome), metric(&outcome, "life"))
            })
            .collect();
        println!("{part}: {fixed:.3?}");
        let fastest = *fixed.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert!(fastest.0 > 0.5 && fastest.0 < 0.95, "{part}: an optimum inside, at {}", fastest.0);
        assert!(fixed[0].1 > 1.2 * fastest.1 && fixed[7].1 > 1.2 * fastest.1, "{part}");
        let falls = fixed.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
        assert!(fixed[..=falls].windows(2).all(|pair| pair[1].1 < pair[0].1), "{part}: one minimum");

        let goal = |goal| replayed(&regions, "hyssd", &[PERIOD, ("goal", goal)], &requests, &STEADY);
        let (perf, life) = (goal("performance"), goal("lifetime"));
        println!("{part}: Perf {:.0} us, Life {:.0} us", mean_us(&perf), mean_us(&life));
        assert!(mean_us(&perf) < 1.05 * fastest.1, "{part}: {} and {}", mean_us(&perf), fastest.1);
        let longest = fixed.iter().map(|row| row.2).fold(0.0, f64::max);
        assert!(metric(&life, "life") > 0.9 * longest, "{part}: {} and {longest}", metric(&life, "life"));
        assert!(metric(&life, "life") > metric(&perf, "life"), "{part}");
    }
}

/// The utilisation follows the workload: a growing hot set takes more of the fast SSD, as long as that pays.
#[test]
fn the_utilisation_follows_the_hot_set() {
    let (_, regions) = &devices()[0];
    let hot_mib = |mib: u64, number: u64| {
        let sectors = mib << 11;
        Request {
            arrival_ns: 0,
            sector: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (sectors / 8) * 8,
            sectors: 8,
            op: Op::Write,
            handle: 0,
        }
    };
    let requests: Vec<Request> =
        (0..60_000).map(|number| hot_mib([3, 9, 3][(number / 20_000) as usize], number)).collect();
    let outcome = replayed(regions, "hyssd", &[PERIOD, ("curve_keep", "0")], &requests, &Plan { intervals: 3, ..PLAN });
    let column = outcome.measured.metrics.iter().position(|(name, _)| name == "utilisation_performance").unwrap();
    let found: Vec<f64> = outcome.course.intervals.iter().map(|interval| interval.metrics[column]).collect();
    println!("{found:?}");
    // 3 and 9 of 16 MiB, to the next whole segment of the hit-rate curve.
    for (found, hot) in found.iter().zip([3.0 / 16.0, 9.0 / 16.0, 3.0 / 16.0]) {
        assert!((hot - 0.01..hot + 0.04).contains(found), "{found} for {hot}");
    }
}

/// The second reading: pages that are written once bypass the fast SSD.
#[test]
fn what_is_written_once_goes_to_the_slow_ssd() {
    let (_, regions) = &devices()[0];
    let once: Vec<Request> = (0..8000)
        .map(|page| Request { arrival_ns: 0, sector: page * 16, sectors: 16, op: Op::Write, handle: 0 })
        .collect();
    let programs = |reading| {
        let outcome = replayed(regions, "hyssd", &[PERIOD, ("reading", reading)], &once, &PLAN);
        [0, 1].map(|row| outcome.measured.ledger.rows[row].counts.get(FlashOp::Program, Cause::Host))
    };
    assert_eq!(programs("hot_set"), [0, 8000]);
    assert_eq!(programs("write_allocate"), [16_000, 0]);
}

/// The fast SSD must hold the pages for which the slow one has no room: the offset stops there, so that it can turn at
/// once when the lives do.
#[test]
fn the_offset_stops_where_the_utilisation_cannot_follow() {
    for (part, mut regions) in devices() {
        // The fast SSD wears out first, so that the utilisation falls.
        regions[0].chip.endurance = 50;
        let settings =
            [PERIOD, ("goal", "lifetime"), ("life_mode", "integrate"), ("initial_utilisation_percent", "30")];
        let outcome = replayed(&regions, "hyssd", &settings, &zipf("200000"), &Plan { intervals: 200, ..PLAN });
        let get = |name: &str| {
            let column = outcome.measured.metrics.iter().position(|(known, _)| known == name).unwrap();
            outcome.course.intervals.iter().map(|interval| interval.metrics[column]).collect::<Vec<f64>>()
        };
        let (offsets, targets) = (get("life_offset"), get("utilisation_target"));
        println!("{part}: {:?}", targets.iter().zip(&offsets).step_by(10).collect::<Vec<_>>());
        assert!(targets.iter().zip(&offsets).all(|(target, offset)| (target - 0.3 - offset).abs() < 0.011), "{part}");
    }
}

/// With a dead band the offset moves only while one life exceeds the other by that share. MLC and TLC wear out alike here.
#[test]
fn a_dead_band_keeps_the_offset() {
    let [_, (_, regions)] = devices();
    // The larger life by the smaller one at each move of the offset.
    let moves = |band: &'static str| {
        let settings = [PERIOD, ("goal", "lifetime"), ("life_band_percent", band)];
        let outcome = replayed(&regions, "hyssd", &settings, &zipf("100000"), &Plan { intervals: 1000, ..PLAN });
        let get = |name: &str| {
            let column = outcome.measured.metrics.iter().position(|(known, _)| known == name).unwrap();
            outcome.course.intervals.iter().map(|interval| interval.metrics[column]).collect::<Vec<f64>>()
        };
        let (offsets, fast, slow) = (get("life_offset"), get("life_fast"), get("life_slow"));
        let ratio = |at: usize| fast[at].max(slow[at]) / fast[at].min(slow[at]);
        // The lives change little between two samples.
        let moved = (1..offsets.len()).filter(|&at| offsets[at] != offsets[at - 1]);
        moved.map(|at| ratio(at - 1).max(ratio(at))).collect::<Vec<_>>()
    };
    let counts = ["0", "20", "1000"].map(|band| moves(band).len());
    println!("{counts:?} {:?}", moves("20"));
    assert!(counts[2] < counts[0] && counts[1] <= counts[0], "{counts:?}");
    assert!(moves("20").iter().all(|&ratio| ratio > 1.15));
}

/// The offset moves a step each period towards the SSD with more life left, whatever the optimum does.
#[test]
fn lifetime_moves_by_a_step_a_period() {
    for (part, regions) in devices() {
        assert_eq!(regions[1].chip.cell, Cell::Tlc);
        for mode in ["offset", "integrate"] {
            let settings = [PERIOD, ("goal", "lifetime"), ("life_mode", mode), ("initial_utilisation_percent", "40")];
            let requests = zipf("100000");
            let each = Plan { intervals: 1000, ..PLAN };
            let outcome = replayed(&regions, "hyssd", &settings, &requests, &each);
            let get = |name: &str| {
                let column = outcome.measured.metrics.iter().position(|(known, _)| known == name).unwrap();
                outcome.course.intervals.iter().map(|interval| interval.metrics[column]).collect::<Vec<f64>>()
            };
            let (offsets, targets) = (get("life_offset"), get("utilisation_target"));
            let (fast, slow, best) = (get("life_fast"), get("life_slow"), get("utilisation_performance"));
            let mut moves = 0;
            for at in 1..offsets.len() {
                let step = offsets[at] - offsets[at - 1];
                if step != 0.0 {
                    moves += 1;
                    assert!((step.abs() - 0.01).abs() < 1e-9, "{part}: {step}");
                    // Between two samples the lives hardly change: their order at either of them must agree.
                    let orders = [at - 1, at].map(|at| (fast[at] > slow[at]) == (step > 0.0));
                    assert!(orders.contains(&true), "{part}: {step} with {} and {}", fast[at], slow[at]);
                }
                let sum = if mode == "offset" { best[at] + offsets[at] } else { 0.4 + offsets[at] };
                if at >= 100 {
                    assert!((targets[at] - sum.clamp(0.01, 0.97)).abs() < 0.011, "{part}: {} {sum}", targets[at]);
                }
            }
            assert!(moves >= 10, "{part}, {mode}: {moves}");
        }
    }
}
