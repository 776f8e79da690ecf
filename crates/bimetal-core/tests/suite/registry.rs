//! Properties of every registered scheme: golden counts, determinism, no allocation once warm, the same counts with all
//! arrivals.
//!
//! A new scheme is covered by its registry line. Accept its golden row with `INSTA_UPDATE=always cargo test`.

use crate::support::{TINY_SECTORS, checked, mixed_requests, tiny_media, tiny_regions, tiny_shape};
use allocation_counter::measure;
use bimetal_core::drive::{self, Drive, Model};
use bimetal_core::media::{Cause, DiskOp, FlashOp, SimMedia, Simulation, Volume};
use bimetal_core::part::random::split_mix;
use bimetal_core::replay::{self, Arrivals, Measured, Outcome, Plan};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, Regions, SCHEMES, SchemeSpec};

fn replay_tiny(spec: &SchemeSpec, plan: &Plan) -> Outcome {
    let mut media = tiny_media(spec);
    let mut scheme = scheme::build::<SimMedia>(spec.name, &tiny_shape(spec), &[]).unwrap();
    let requests = mixed_requests(42, 20_000, TINY_SECTORS);
    let outcome = replay::run(&mut media, &mut *scheme, &requests, plan, &mut replay::to_the_end);
    scheme.check().unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    outcome
}

/// Every count of a replay in text.
fn row(name: &str, measured: &Measured) -> String {
    let mut text = format!("{name}: simulated_us={}", measured.simulated_ns / 1000);
    for row in &measured.ledger.rows {
        for op in FlashOp::ALL {
            for cause in Cause::ALL {
                let count = row.counts.get(op, cause);
                if count > 0 {
                    text += &format!(" {}{:?}/{}/{}={count}", row.region, row.mode, op.name(), cause.name());
                }
            }
        }
    }
    for (disk, counts) in measured.ledger.disks.iter().enumerate() {
        for op in DiskOp::ALL {
            for cause in Cause::ALL {
                let accesses = counts.get(op, cause);
                if accesses.count > 0 {
                    text += &format!(" disk{disk}/{}/{}={}", op.name(), cause.name(), accesses.count);
                }
            }
        }
    }
    text + "\n"
}

#[test]
fn golden_rows() {
    let rows: String =
        SCHEMES.iter().map(|spec| row(spec.name, &replay_tiny(spec, &Plan::default()).measured)).collect();
    insta::assert_snapshot!(rows);
}

/// A changed row here, or a changed golden row, requires a new version of the scheme: old saved states cannot be used
/// any more.
#[test]
fn saved_forms() {
    let mut forms = String::new();
    for spec in SCHEMES {
        let mut media = tiny_media(spec);
        let mut scheme = scheme::build::<SimMedia>(spec.name, &tiny_shape(spec), &[]).unwrap();
        let requests = mixed_requests(42, 20_000, TINY_SECTORS);
        replay::run(&mut media, &mut *scheme, &requests, &Plan::default(), &mut replay::to_the_end);
        let mut bytes = Vec::new();
        scheme.save(&mut bytes);
        let sum = bytes.iter().fold(0u64, |sum, &byte| split_mix(&mut (sum ^ u64::from(byte))));
        forms += &format!("{} version {}: {} bytes, {sum:016x}\n", spec.name, spec.version, bytes.len());
    }
    insta::assert_snapshot!(forms);
}

#[test]
fn a_replay_is_the_same_every_time_and_on_checked_media() {
    for spec in SCHEMES {
        let plan = Plan { passes: 2, measured_passes: 1, intervals: 10, ..Plan::default() };
        let first = replay_tiny(spec, &plan);
        let second = replay_tiny(spec, &plan);
        assert_eq!(first.course.intervals, second.course.intervals);
        let [first, second] = [first.measured, second.measured];
        assert_eq!(row(spec.name, &first), row(spec.name, &second));
        assert_eq!(first.metrics, second.metrics);
        assert_eq!(first.ledger.erases, second.ledger.erases);

        let (mut media, mut scheme) = checked(spec);
        let requests = mixed_requests(42, 20_000, TINY_SECTORS);
        let third = replay::run(&mut media, &mut *scheme, &requests, &plan, &mut replay::to_the_end).measured;
        assert_eq!(row(spec.name, &first), row(spec.name, &third), "checking must not change what happens");
    }
}

#[test]
fn a_warm_replay_allocates_nothing() {
    for spec in SCHEMES {
        let mut media = tiny_media(spec);
        let mut scheme = scheme::build::<SimMedia>(spec.name, &tiny_shape(spec), &[]).unwrap();
        let requests = mixed_requests(7, 20_000, TINY_SECTORS);
        replay::run(&mut media, &mut *scheme, &requests, &Plan::default(), &mut replay::to_the_end);
        let allocations = measure(|| {
            for request in &requests {
                media.begin(request, 0);
                scheme.serve(&mut media, request);
                media.end();
            }
            media.begin_background();
            scheme.idle(&mut media, 100);
        });
        assert_eq!(allocations.count_total, 0, "`{}` allocated in a warm replay", spec.name);
    }
}

/// The replay makes its buffers before the first request: the number of allocations does not depend on the number of
/// requests.
#[test]
fn the_replay_loop_allocates_only_up_front() {
    let count = |passes| {
        let plan = Plan { passes, measured_passes: passes, ..Plan::default() };
        measure(|| drop(replay_tiny(SCHEMES[0], &plan))).count_total
    };
    assert_eq!(count(1), count(4));
}

/// One operation at a time, at depth 1: the responses add up to the sum of all operation times, as the papers count.
/// Regions have separate dies, which may work at the same time.
#[test]
fn at_one_operation_at_a_time_responses_are_the_sum_of_operation_times() {
    for spec in SCHEMES {
        let measured = replay_tiny(spec, &Plan::default()).measured;
        let responses = measured.reads.total_ns() + measured.writes.total_ns();
        let (simulated, busy) = (u128::from(measured.simulated_ns), u128::from(measured.ledger.busy().0));
        let trims_may_cost = measured.host.trims > 0;
        assert!(responses == simulated || (trims_may_cost && responses < simulated), "{}: {responses}", spec.name);
        assert_eq!(simulated, busy, "{}", spec.name);
    }
}

/// The same over disks of the constant model, whose sum follows from counts alone.
#[test]
fn accesses_of_a_constant_disk_take_positions_and_transfers() {
    for spec in SCHEMES.iter().filter(|spec| spec.regions == Regions::FlashOverDisk) {
        let drive = Drive { model: Model::Constant, queue: 0, ..drive::find("atlas-10k-iv").unwrap() };
        let volumes = [Volume { drive: drive.clone(), sectors: TINY_SECTORS }];
        let mut media = SimMedia::new(&tiny_regions(spec), 1).with_disks(&volumes).serial();
        let mut scheme = scheme::build::<SimMedia>(spec.name, &tiny_shape(spec), &[]).unwrap();
        // One page at a time, never two consecutive ones: no access continues another.
        let read = |number: u64| Request {
            arrival_ns: 0,
            sector: number * 37 % 512 * 16,
            sectors: 4,
            op: Op::Read,
            handle: 0,
        };
        let requests: Vec<Request> = (0..2_000).map(read).collect();
        let measured =
            replay::run(&mut media, &mut *scheme, &requests, &Plan::default(), &mut replay::to_the_end).measured;
        let reads = measured.ledger.disks[0].total(DiskOp::Read);
        assert!(reads.count > 500 && measured.ledger.disks[0].total(DiskOp::Write).count == 0, "{}", spec.name);
        let access_ns = (drive.read_position_us * 1000.0) as u64 + drive.transfer(4 * 512).0;
        assert_eq!(reads.busy.0, reads.count * access_ns, "{}", spec.name);
        let flash_ns: u64 = measured.ledger.rows.iter().map(|row| row.busy().0).sum();
        assert_eq!(measured.reads.total_ns(), u128::from(flash_ns + reads.busy.0), "{}", spec.name);
    }
}

#[test]
fn a_deeper_queue_never_takes_longer_and_operations_stay_the_same() {
    for spec in SCHEMES {
        let shallow = replay_tiny(spec, &Plan::default()).measured;
        let deep = replay_tiny(spec, &Plan { arrivals: Arrivals::Closed { depth: 8 }, ..Plan::default() }).measured;
        assert_eq!(shallow.ledger.busy(), deep.ledger.busy(), "{}", spec.name);
        assert!(deep.simulated_ns <= shallow.simulated_ns, "{}", spec.name);
    }
}
