//! Speed of every registered scheme, compared with a bare loop of memory accesses, in one process.
//!
//! The bare loop performs only the memory accesses of any page-mapped device for the same host requests and copies: per
//! host read one look-up in a map of logical pages; per host write the look-up, the old page's validity and its block's
//! valid count, and map and owner of the new page; per copy the old page's owner, and map and owner of the new page;
//! the validity of consecutive new pages a word at a time. With fast pages in front of slow ones, each region has such
//! a map: a write to the fast one invalidates the slow copy, and a demoted page moves from one map to the other. A
//! cache in front of a disk has such a map of its slots, an index and an LRU order of the cached pages, and, if it
//! measures hit-rate curves, an index of the last used pages. It has no time, no garbage collection policy, no
//! accounting, and no disk.
//!
//! Speeds are million flash page operations (reads and programs) per second at steady state, garbage collection
//! active: the device is filled, aged by one pass of writes over its whole capacity, then measured.
//!
//! Then some schemes replay the first workload 32 requests at a time, alternately with and without a controller of
//! today in front of the device: the ratio is the cost of the controller.
//!
//! Usage: `cargo bench -p bimetal-study --bench replay -- [quick] [controller] [SCHEME…]`; `quick` omits the 64-GiB
//! devices, `controller` runs only the last part, names select schemes.

#![allow(clippy::expect_used, reason = "a bench that cannot be set up has nothing to measure")]

mod bare;
mod behind_controller;
mod case;

use std::time::Instant;

use bimetal_core::media::{FlashOp, SimMedia, Simulation};
use bimetal_core::replay::{self, Fill, Outcome, Plan};
use bimetal_core::scheme::{self, SCHEMES, SchemeSpec};

use bare::bare;
use behind_controller::{BEHIND_CONTROLLER, print_controllers};
use case::{Case, cases, device, requests, volumes};

struct Measured {
    outcome: Outcome,
    seconds: f64,
    /// Memory of the simulator in bytes: medium and scheme.
    bytes: i64,
}

fn simulate(case: &Case, spec: &SchemeSpec) -> Measured {
    let (regions, shape) = device(case, spec);
    let volumes = volumes(case, spec);
    let mut device = None;
    let memory = allocation_counter::measure(|| {
        let scheme = scheme::build::<SimMedia>(spec.name, &shape, &[]).expect("the device suits the scheme");
        device = Some((SimMedia::new(&regions, 1).with_disks(&volumes), scheme));
    });
    let (mut media, mut scheme) = device.expect("it was just made");
    let ageing = requests(case, case.logical_pages as usize, 1.0, 11);
    let measured = requests(case, case.requests, case.write_share, 12);
    replay::run(&mut media, &mut *scheme, &ageing, &Plan::default(), &mut replay::to_the_end);
    media.reset_counts();
    let started = Instant::now();
    let outcome = replay::run(
        &mut media,
        &mut *scheme,
        &measured,
        &Plan { fill: Fill::None, ..Plan::default() },
        &mut replay::to_the_end,
    );
    Measured { outcome, seconds: started.elapsed().as_secs_f64(), bytes: memory.bytes_current }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let quick = arguments.iter().any(|argument| argument == "quick");
    let only_controllers = arguments.iter().any(|argument| argument == "controller");
    let named: Vec<&SchemeSpec> =
        SCHEMES.iter().copied().filter(|spec| arguments.iter().any(|argument| argument == spec.name)).collect();
    let behind_controller: Vec<&SchemeSpec> = if named.is_empty() {
        SCHEMES.iter().copied().filter(|spec| BEHIND_CONTROLLER.contains(&spec.name)).collect()
    } else {
        named.clone()
    };
    let schemes = if named.is_empty() { SCHEMES.to_vec() } else { named };
    let cases = cases(quick);
    if only_controllers {
        return print_controllers(&cases[0], &behind_controller);
    }
    println!(
        "{:<17} {:<16} {:>12} {:>14} {:>14} {:>7} {:>6} {:>10}",
        "workload", "scheme", "M requests/s", "M page ops/s", "bare, same ops", "ratio", "WA", "bytes/page"
    );
    for case in &cases {
        for spec in &schemes {
            let Measured { outcome, seconds, bytes } = simulate(case, spec);
            let bare_seconds = bare(case, &outcome);
            let page_ops = outcome.measured.ledger.page_ops() as f64;
            let programs: u64 = outcome.measured.ledger.rows.iter().map(|row| row.counts.total(FlashOp::Program)).sum();
            println!(
                "{:<17} {:<16} {:>12.2} {:>14.1} {:>14.1} {:>7.2} {:>6.2} {:>10.1}",
                case.name,
                spec.name,
                case.requests as f64 / seconds / 1e6,
                page_ops / seconds / 1e6,
                page_ops / bare_seconds / 1e6,
                bare_seconds / seconds,
                programs as f64 / outcome.measured.host.writes as f64,
                bytes as f64 / case.logical_pages as f64,
            );
        }
    }
    println!();
    print_controllers(&cases[0], &behind_controller);
}
