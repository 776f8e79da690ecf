use super::*;
use crate::chip;
use crate::controller::{ControllerSettings, Spec};
use crate::media::{Cause, Faults, SimMedia, SimRegion};
use crate::part::random::below;
use crate::scheme::{RegionShape, Shape, build};
use crate::units::{ByteSize, Geometry};

const LOGICAL_PAGES: u64 = 64;

/// 25 µs to read a page, 200 µs to program one, 1,500 µs to erase a block of 8.
fn device(settings: &[(&str, &str)]) -> (SimMedia, Box<dyn Scheme<SimMedia>>) {
    let chip = chip::find("chang-slc").unwrap();
    let geometry = Geometry::new(2048, 8, 20, 1).unwrap();
    let shape = Shape {
        logical_sectors: LOGICAL_PAGES * 4,
        regions: vec![RegionShape { chip: chip.clone(), geometry }],
        disks: Vec::new(),
        seed: 1,
    };
    let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
    let scheme = build::<SimMedia>("pagemap", &shape, &settings).unwrap();
    (SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1), scheme)
}

fn page(op: Op, page: u64, arrival_us: u64) -> Request {
    Request { arrival_ns: arrival_us * 1000, sector: page * 4, sectors: 4, op, handle: 0 }
}

fn replayed(requests: &[Request], plan: &Plan) -> Outcome {
    let (mut media, mut scheme) = device(&[]);
    run(&mut media, &mut *scheme, requests, plan, &mut to_the_end)
}

fn random_writes(count: u64, gap_us: u64) -> Vec<Request> {
    let mut state = 5;
    (0..count).map(|index| page(Op::Write, below(&mut state, LOGICAL_PAGES), index * gap_us)).collect()
}

const OPEN: Arrivals = Arrivals::Trace { speed: 1.0 };

#[test]
fn responses_in_an_open_loop_include_queueing() {
    let requests = [page(Op::Read, 1, 100), page(Op::Read, 2, 100), page(Op::Read, 3, 110), page(Op::Read, 4, 900)];
    let outcome = replayed(&requests, &Plan { arrivals: OPEN, ..Plan::default() });
    // 25, then 50, then 75 minus the 10 µs by which it arrived later, then 25 again.
    assert_eq!(outcome.measured.reads.total_ns(), (25 + 50 + 65 + 25) * 1000);
    assert_eq!(outcome.measured.reads.max_ns(), 65_000);
    assert_eq!(outcome.measured.simulated_ns, 825_000);
    assert_eq!(outcome.course.backlog_ns, 25_000);
}

#[test]
fn passes_of_a_trace_with_one_time_follow_each_other() {
    let requests = [0, 1, 2].map(|number| page(Op::Read, number, 7));
    for (requests, longest_ns) in [(&requests[..], 75_000), (&requests[..1], 25_000)] {
        let plan = Plan { arrivals: OPEN, passes: 10, measured_passes: 2, ..Plan::default() };
        let outcome = replayed(requests, &plan);
        assert_eq!(outcome.measured.reads.max_ns(), longest_ns);
        assert_eq!(outcome.measured.simulated_ns, 2 * longest_ns);
    }
    // With times, a pass begins one interval after the last arrival: here when the previous pass ends.
    let requests = [0, 1, 2].map(|number| page(Op::Read, number, number * 25));
    let plan = Plan { arrivals: OPEN, passes: 4, measured_passes: 4, ..Plan::default() };
    let outcome = replayed(&requests, &plan);
    assert_eq!((outcome.measured.reads.max_ns(), outcome.measured.simulated_ns), (25_000, 300_000));
}

#[test]
fn speed_brings_arrivals_together() {
    let requests = [page(Op::Read, 1, 0), page(Op::Read, 2, 40)];
    let response = |speed| {
        let plan = Plan { arrivals: Arrivals::Trace { speed }, ..Plan::default() };
        replayed(&requests, &plan).measured.reads.max_ns()
    };
    assert_eq!((response(1.0), response(4.0)), (25_000, 40_000));
}

#[test]
fn a_closed_loop_ignores_time_stamps_and_keeps_its_depth() {
    let requests: Vec<_> = (0..10).map(|index| page(Op::Read, index, index * 1_000_000)).collect();
    let outcome = replayed(&requests, &Plan::default());
    assert_eq!((outcome.measured.reads.max_ns(), outcome.measured.simulated_ns), (25_000, 250_000));
    let outcome = replayed(&requests, &Plan { arrivals: Arrivals::Closed { depth: 4 }, ..Plan::default() });
    // One die serves them one after the other; each waits for the three before it.
    assert_eq!((outcome.measured.reads.max_ns(), outcome.measured.simulated_ns), (100_000, 250_000));
}

#[test]
fn only_the_last_passes_are_measured() {
    let requests = random_writes(500, 0);
    let all = replayed(&requests, &Plan { passes: 3, measured_passes: 3, ..Plan::default() });
    let last = replayed(&requests, &Plan { passes: 3, measured_passes: 1, ..Plan::default() });
    assert_eq!((all.measured.host.writes, last.measured.host.writes), (1500, 500));
    assert_eq!(last.measured.ledger.total(FlashOp::Program, Cause::Host), 500);
    assert_eq!(last.measured.writes.count(), 500);
    assert_eq!(
        all.measured.ledger.erases, last.measured.ledger.erases,
        "wear is that of the device, not of the measurement"
    );
    for (row, (all_row, last_row)) in all.measured.ledger.rows.iter().zip(&last.measured.ledger.rows).enumerate() {
        let erases = [all_row, last_row].map(|row| row.counts.total(FlashOp::Erase));
        assert_eq!(all.measured.erased_before[row] + erases[0], last.measured.erased_before[row] + erases[1]);
    }
    assert!(all.measured.erased_before[0] == 0 && last.measured.erased_before[0] > 0);
    assert!(last.measured.simulated_ns < all.measured.simulated_ns);
}

#[test]
fn less_data_on_a_device_leave_more_erased_blocks() {
    let requests: Vec<_> = random_writes(2000, 0).into_iter().filter(|request| request.sector < 128).collect();
    let outcome = |fill| replayed(&requests, &Plan { fill, ..Plan::default() }).measured;
    let [whole, trace, none] = [Fill::Device, Fill::Trace, Fill::None].map(outcome);
    assert!(requests.len() > 500);
    for measured in [&whole, &trace, &none] {
        assert_eq!(measured.host.writes, requests.len() as u64, "the fill is not measured");
        assert_eq!(measured.ledger.total(FlashOp::Program, Cause::Host), requests.len() as u64);
    }
    // Each block that is full before is erased sooner.
    let erases = |measured: &Measured| measured.ledger.total(FlashOp::Erase, Cause::Gc);
    let erases = [&whole, &trace, &none].map(erases);
    assert!(erases[0] > erases[1] && erases[1] > erases[2] && erases[2] > 0, "{erases:?}");
}

#[test]
fn intervals_add_up() {
    let requests = random_writes(1003, 0);
    let outcome = replayed(&requests, &Plan { intervals: 7, ..Plan::default() });
    assert_eq!(outcome.course.intervals.len(), 7);
    assert_eq!(outcome.course.intervals.iter().map(|interval| interval.served).sum::<u64>(), 1003);
    let responses: u128 = outcome.course.intervals.iter().map(|interval| interval.response_total_ns).sum();
    assert_eq!(responses, outcome.measured.writes.total_ns());
    let last = outcome.course.intervals.last().unwrap();
    assert_eq!((last.host.requests(), last.end_ns), (1003, outcome.measured.simulated_ns));
    assert_eq!(last.ops[0], FlashOp::ALL.map(|op| outcome.measured.ledger.rows[0].counts.total(op)));
}

/// Data that leave the write buffer at the end, and trims behind the last write, belong to the last interval.
#[test]
fn the_last_interval_has_everything_up_to_the_end() {
    let settings = ControllerSettings {
        link_mb_per_s: 500.0,
        half_duplex: false,
        command_us: 0.0,
        us_per_4kib: 0.0,
        read_latency_us: 0.0,
        write_latency_us: 0.0,
        buffer: ByteSize(1 << 20),
        power_protected: false,
        map_cache: None,
        fold_efficiency: 1.0,
    };
    let controller = Spec { settings, wordline_sectors: 4, mapping_sectors: 4, logical_sectors: LOGICAL_PAGES * 4 };
    let writes: Vec<Request> = (0..12).map(|number| page(Op::Write, number, 0)).collect();
    let with_trim = [&writes[..], &[page(Op::Trim, 3, 0)]].concat();
    for (requests, intervals) in [(&writes, 12), (&writes, 5), (&with_trim, 6), (&with_trim, 13), (&Vec::new(), 4)] {
        for controller in [None, Some(controller.clone())] {
            let plan = Plan { intervals, controller, fill: Fill::None, ..Plan::default() };
            let outcome = replayed(requests, &plan);
            let programs = outcome.measured.ledger.total(FlashOp::Program, Cause::Host);
            let last = outcome.course.intervals.last();
            let found = last.map_or((0, 0), |last| (last.host.requests(), last.ops[0].iter().sum::<u64>()));
            assert_eq!(found, (requests.len() as u64, programs), "{intervals} intervals");
            assert!(programs == 12 || requests.is_empty());
        }
    }
}

#[test]
fn idle_time_takes_garbage_collection_off_the_host() {
    // 20 ms between writes: each is alone, and the device is idle before the next.
    let requests = random_writes(2000, 20_000);
    let plan = Plan { arrivals: OPEN, idle_after_ns: 1_000_000, ..Plan::default() };
    let mean = |idle_gc: &str| {
        let (mut media, mut scheme) = device(&[("idle_gc", idle_gc)]);
        let outcome = run(&mut media, &mut *scheme, &requests, &plan, &mut to_the_end);
        assert!(outcome.measured.ledger.total(FlashOp::Erase, Cause::Gc) > 100);
        scheme.check().unwrap();
        outcome.measured.writes.mean_ns()
    };
    let (with, without) = (mean("true"), mean("false"));
    assert!(with < without / 1.5, "{with} {without}");
    assert!(with >= 200_000.0, "no write takes less than a program");
}

#[test]
fn a_replay_that_is_stopped_ends_there() {
    let requests = random_writes(3 * PROGRESS_STEP, 0);
    for arrivals in [OPEN, Arrivals::Closed { depth: 1 }, Arrivals::Closed { depth: 4 }] {
        let (mut media, mut scheme) = device(&[]);
        let plan = Plan { arrivals, passes: 2, measured_passes: 2, ..Plan::default() };
        let mut calls = Vec::new();
        let outcome = run(&mut media, &mut *scheme, &requests, &plan, &mut |served| {
            calls.push(served);
            if served == 2 * PROGRESS_STEP { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(calls, [PROGRESS_STEP, 2 * PROGRESS_STEP]);
        assert_eq!(
            (outcome.measured.host.writes, outcome.measured.writes.count()),
            (2 * PROGRESS_STEP, 2 * PROGRESS_STEP)
        );
        scheme.check().unwrap();
    }
}

#[test]
fn nothing_to_replay_is_no_trouble() {
    for arrivals in [OPEN, Arrivals::Closed { depth: 1 }] {
        let outcome = replayed(&[], &Plan { arrivals, intervals: 5, ..Plan::default() });
        assert_eq!((outcome.measured.host.requests(), outcome.measured.simulated_ns), (0, 0));
        assert_eq!(outcome.measured.reads.mean_ns(), 0.0);
    }
}
