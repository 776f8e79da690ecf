//! Simulated waiting against queueing theory: Poisson arrivals at one server with constant service time (M/D/1), either
//! a die or a disk of the constant model.

use crate::support::{region, shape};
use bimetal_core::drive::{self, Drive, Model};
use bimetal_core::media::{Media, SimMedia, Simulation, Volume};
use bimetal_core::model::queueing::wait_of_equal_services;
use bimetal_core::part::{random, real};
use bimetal_core::replay::{self, Arrivals, Plan};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme;

const SEED: u64 = 20_260_101;
/// Number of requests: at 90 % utilisation their mean wait has a standard error of about 0.5 %.
const REQUESTS: usize = 3_000_000;
const TOLERANCE: f64 = 0.03;

/// Aligned reads of 8 sectors at random places, with exponential gaps.
fn poisson_reads(mean_gap_ns: f64, logical_sectors: u64) -> Vec<Request> {
    let mut state = SEED;
    let mut arrival_ns = 0.0;
    let mut request = || {
        arrival_ns -= mean_gap_ns * real::ln(1.0 - random::unit(&mut state));
        let sector = random::below(&mut state, logical_sectors / 8) * 8;
        Request { arrival_ns: arrival_ns as u64, sector, sectors: 8, op: Op::Read, handle: 0 }
    };
    (0..REQUESTS).map(|_| request()).collect()
}

fn assert_wait(what: &str, utilisation: f64, response_ns: f64, service_ns: f64) {
    let (wait, expected) = (response_ns - service_ns, wait_of_equal_services(utilisation, service_ns));
    let off = wait / expected - 1.0;
    println!("{what} at {utilisation}: {:+.2} % (seed {SEED})", off * 100.0);
    assert!(off.abs() < TOLERANCE, "{what} at {utilisation} (seed {SEED}): waits {wait} ns instead of {expected} ns");
}

#[test]
fn reads_of_one_die_wait_as_long_as_theory_says() {
    let regions = [region("chang-mlc", 16, 80, 1)];
    let shape = shape(&regions, 64 * 128);
    let service_ns = regions[0].chip.read_us * 1000.0;
    for utilisation in [0.5, 0.7, 0.9] {
        let requests = poisson_reads(service_ns / utilisation, shape.logical_sectors);
        let mut media = SimMedia::new(&regions, 1);
        let mut scheme = scheme::build::<SimMedia>("pagemap", &shape, &[]).unwrap();
        let plan = Plan { arrivals: Arrivals::Trace { speed: 1.0 }, ..Plan::default() };
        let outcome = replay::run(&mut media, &mut *scheme, &requests, &plan, &mut replay::to_the_end);
        assert_wait("a die", utilisation, outcome.measured.reads.mean_ns(), service_ns);
    }
}

#[test]
fn reads_of_a_disk_wait_as_long_as_theory_says() {
    let drive = Drive { model: Model::Constant, ..drive::find("atlas-10k-iv").unwrap() };
    let sectors = 200_000_000;
    let service_ns = drive.read_position_us * 1000.0 + drive.transfer(4096).0 as f64;
    for utilisation in [0.5, 0.7, 0.9] {
        let regions = [region("chang-slc", 16, 16, 1)];
        let mut media = SimMedia::new(&regions, 1).with_disks(&[Volume { drive: drive.clone(), sectors }]);
        let mut responses_ns = 0.0;
        for request in poisson_reads(service_ns / utilisation, sectors) {
            media.begin(&request, request.arrival_ns);
            media.disk_read(request.sector, 0, request.sectors);
            responses_ns += (media.end() - request.arrival_ns) as f64;
        }
        assert_wait("a disk", utilisation, responses_ns / REQUESTS as f64, service_ns);
    }
}
