//! The cost of a controller of today.

use std::hint::black_box;
use std::time::Instant;

use bimetal_core::controller;
use bimetal_core::media::SimMedia;
use bimetal_core::replay::{self, Arrivals, Fill, Plan};
use bimetal_core::scheme::{self, SchemeSpec, Shape};
use bimetal_core::units::ByteSize;

use crate::case::{Case, device, requests, volumes};

/// Schemes measured behind a controller, unless others are named.
pub const BEHIND_CONTROLLER: [&str; 5] = ["pagemap", "pslc-dynamic", "wlaftl", "hyssd", "comboftl"];
/// Number of measurements with and without a controller; the shortest counts.
const ROUNDS: usize = 5;

/// A controller of today on a device of this shape.
fn controller(shape: &Shape) -> controller::Spec {
    let settings = controller::ControllerSettings {
        link_mb_per_s: 7100.0,
        half_duplex: false,
        command_us: 1.0,
        us_per_4kib: 0.25,
        read_latency_us: 20.0,
        write_latency_us: 14.0,
        buffer: ByteSize(32 << 20),
        power_protected: true,
        map_cache: None,
        fold_efficiency: 1.0,
    };
    controller::Spec { settings, wordline_sectors: 384, mapping_sectors: 8, logical_sectors: shape.logical_sectors }
}

/// Seconds for the requests without a controller and with one, on devices that were aged in the same way.
fn with_and_without(case: &Case, spec: &SchemeSpec) -> [f64; 2] {
    let (regions, shape) = device(case, spec);
    let ageing = requests(case, case.logical_pages as usize, 1.0, 11);
    let measured = requests(case, case.requests, case.write_share, 12);
    let plan = |controller| Plan { arrivals: Arrivals::Closed { depth: 32 }, controller, ..Plan::default() };
    let plans = [None, Some(controller(&shape))].map(plan);
    let mut devices = plans.map(|plan| {
        let mut scheme = scheme::build::<SimMedia>(spec.name, &shape, &[]).expect("the device suits the scheme");
        let mut media = SimMedia::new(&regions, 1).with_disks(&volumes(case, spec));
        replay::run(&mut media, &mut *scheme, &ageing, &plan, &mut replay::to_the_end);
        (media, scheme, Plan { fill: Fill::None, ..plan })
    });
    let mut least = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for ((media, scheme, plan), least) in devices.iter_mut().zip(&mut least) {
            let started = Instant::now();
            black_box(replay::run(media, &mut **scheme, &measured, plan, &mut replay::to_the_end));
            *least = least.min(started.elapsed().as_secs_f64());
        }
    }
    least
}

/// Prints the cost of a controller.
pub fn print_controllers(case: &Case, schemes: &[&SchemeSpec]) {
    println!("{:<17} {:<16} {:>22} {:>22} {:>7}", "", "", "M requests/s, without", "with a controller", "ratio");
    for spec in schemes {
        let [without, with] = with_and_without(case, spec);
        let speed = |seconds: f64| case.requests as f64 / seconds / 1e6;
        println!(
            "{:<17} {:<16} {:>22.2} {:>22.2} {:>7.2}",
            case.name,
            spec.name,
            speed(without),
            speed(with),
            without / with
        );
    }
}
