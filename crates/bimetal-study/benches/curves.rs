//! Speed of hit-rate curves, and of tracking reuse distances beside a replay.
//!
//! *Curves*: 20 cache sizes from ten million requests of 4 KiB over 64 GiB, on one core, from requests in memory to
//! figures: sampled at a rate of 0.01, as by `mrcProfiler` of libCacheSim, and exact.
//!
//! *Tracking*: each page of a replay's requests goes through a tracker as deep as the device. The additional time in
//! the replay of a page map is the cost for a scheme that tracks its hit rates.

#![allow(clippy::expect_used, reason = "a bench that cannot be set up has nothing to measure")]

use std::hint::black_box;
use std::time::Instant;

use bimetal_core::hit_rates::HitRates;
use bimetal_core::media::{Faults, SimMedia, SimRegion, Volume};
use bimetal_core::part::hit_curve::HitCurve;
use bimetal_core::part::reuse_tracker::{ReuseTracker, Touch};
use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::replay::{self, Fill, Plan};
use bimetal_core::request::{PAGE_BYTES, Request};
use bimetal_core::save::Save;
use bimetal_core::scheme::{self, Metrics, RegionShape, Regions, SCHEMES, Scheme, SchemeSpec, Shape};
use bimetal_core::units::Geometry;
use bimetal_core::{chip, drive, workload};

const PAGE_SECTORS: u64 = PAGE_BYTES / 512;
const GIB_PAGES: u32 = (1 << 30) / PAGE_BYTES as u32;

/// Each figure is the best of `RUNS` runs.
const RUNS: usize = 5;

fn requests(workload: &str, settings: &[(&str, &str)]) -> Vec<Request> {
    let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    workload::build(workload, &settings, 1).expect("the workload is sound").collect()
}

/// The shortest of a few durations, in seconds.
fn seconds<T>(mut work: impl FnMut() -> T) -> f64 {
    let times = (0..RUNS).map(|_| {
        let started = Instant::now();
        black_box(work());
        started.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// A scheme whose requested pages are counted by a tracker of reuse distances before they are served. Without a tracker
/// it is the reference for the others.
struct Tracked {
    scheme: Box<dyn Scheme<SimMedia>>,
    tracker: Option<ReuseTracker>,
    curve: HitCurve,
}

impl Save for Tracked {
    fn save(&self, out: &mut Vec<u8>) {
        self.scheme.save(out);
    }
}

impl Scheme<SimMedia> for Tracked {
    fn fill(&mut self, media: &mut SimMedia) {
        self.scheme.fill(media);
    }

    fn serve(&mut self, media: &mut SimMedia, request: &Request) {
        let page = (request.sector / PAGE_SECTORS) as u32;
        match self.tracker.as_mut().map_or(Touch::NotSampled, |tracker| tracker.touch(page)) {
            Touch::NotSampled => {}
            Touch::First => self.curve.reference(),
            Touch::Again(position) => {
                self.curve.reference();
                self.curve.hit(position);
            }
        }
        self.scheme.serve(media, request);
    }

    fn prefetch(&self, far: &Request, near: &Request) {
        if let Some(tracker) = &self.tracker {
            tracker.prefetch((far.sector / PAGE_SECTORS) as u32);
        }
        self.scheme.prefetch(far, near);
    }

    fn idle(&mut self, media: &mut SimMedia, budget_pages: u32) {
        self.scheme.idle(media, budget_pages);
    }

    fn metrics(&self, metrics: &mut Metrics) {
        self.scheme.metrics(metrics);
    }

    fn check(&self) -> Result<(), String> {
        self.scheme.check()
    }
}

/// A device of a scheme for `pages` pages: MLC with 10 % spare area, or a disk, behind an SLC region of an eighth of
/// its size.
fn device(spec: &SchemeSpec, pages: u32) -> (Vec<SimRegion>, Vec<Volume>) {
    let region = |chip: &str, block_pages: u32, blocks: u32| SimRegion {
        chip: chip::find(chip).expect("the catalogue has it"),
        geometry: Geometry::new(PAGE_BYTES as u32, block_pages, blocks, 1).expect("a sound geometry"),
        channels: 1,
        faults: Faults::default(),
    };
    let (slow, fast) = (region("chang-mlc", 256, pages / 256 * 1102 / 1000), region("chang-slc", 64, pages / 64 / 8));
    let disk = || Volume { drive: drive::catalogue().remove(0), sectors: u64::from(pages) * PAGE_SECTORS };
    match spec.regions {
        Regions::One | Regions::DualMode => (vec![slow], vec![]),
        Regions::FastAndSlow => (vec![fast, slow], vec![]),
        Regions::FlashOverDisk => (vec![fast], vec![disk()]),
    }
}

/// Seconds of a replay on an aged device, with a tracker of a rate beside the scheme or without.
fn replay_seconds(spec: &SchemeSpec, set: &[(&str, &str)], pages: u32, requests: &[Request], rate: Option<f64>) -> f64 {
    let (regions, volumes) = device(spec, pages);
    let shape = |region: &SimRegion| RegionShape { chip: region.chip.clone(), geometry: region.geometry };
    let shape = Shape {
        logical_sectors: u64::from(pages) * PAGE_SECTORS,
        regions: regions.iter().map(shape).collect(),
        disks: volumes.iter().map(|volume| volume.drive.clone()).collect(),
        seed: 1,
    };
    let set: Vec<_> = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let mut media = SimMedia::new(&regions, 1).with_disks(&volumes);
    let scheme = scheme::build::<SimMedia>(spec.name, &shape, &set).expect("the device suits the scheme");
    let tracker = rate.map(|rate| ReuseTracker::sampled(pages, rate));
    let mut scheme = Tracked { scheme, tracker, curve: HitCurve::new(64, pages / 64) };
    let plan = Plan::default();
    replay::run(&mut media, &mut scheme, requests, &plan, &mut replay::to_the_end);
    seconds(|| {
        replay::run(
            &mut media,
            &mut scheme,
            requests,
            &Plan { fill: Fill::None, ..plan.clone() },
            &mut replay::to_the_end,
        )
    })
}

fn curves() {
    let requests = requests("zipf", &[("requests", "10000000"), ("span", "64GiB"), ("read_share", "0.5")]);
    let pages = 64 * GIB_PAGES;
    let sizes: Vec<u32> = (1..=20).map(|step| pages / 20 * step).collect();
    println!("{:<44} {:>8} {:>14}", "20-point curves of 10 million requests", "seconds", "M requests/s");
    for (name, rate) in [("sampled at 0.001", 0.001), ("sampled at 0.01", 0.01), ("exact", 1.0)] {
        let seconds = seconds(|| HitRates::of(&requests, &sizes, rate));
        println!("{name:<44} {seconds:>8.3} {:>14.1}", requests.len() as f64 / seconds / 1e6);
    }
    for (name, points) in [("whole profile without curves", 0), ("whole profile, sampled as by default", 20)] {
        let seconds = seconds(|| Profile::of(&requests, &CurvePlan { points, sampling_rate: None }));
        println!("{name:<44} {seconds:>8.3} {:>14.1}", requests.len() as f64 / seconds / 1e6);
    }
}

/// Trackers as deep as the device in front of a page map, the fastest scheme; then schemes with their own trackers, as
/// deep as their fast flash.
fn tracking() {
    println!("\n{:<12} {:<10} {:<18} {:>12} {:>8}", "workload", "scheme", "tracking", "M requests/s", "share");
    for (workload, gib) in [("zipf", 4), ("uniform", 4), ("zipf", 64)] {
        let (span, pages) = (format!("{gib}GiB"), gib * GIB_PAGES);
        let requests = requests(workload, &[("requests", "4000000"), ("span", &span), ("read_share", "0.3")]);
        let show = |scheme: &str, tracking: &str, seconds: f64, base: f64| {
            let speed = requests.len() as f64 / seconds / 1e6;
            println!(
                "{:<12} {scheme:<10} {tracking:<18} {speed:>12.2} {:>8.2}",
                format!("{workload} {span}"),
                base / seconds
            );
        };
        let pagemap = SCHEMES.iter().find(|spec| spec.name == "pagemap").expect("it is registered");
        let replay = |rate| replay_seconds(pagemap, &[], pages, &requests, rate);
        let untracked = replay(None);
        show("pagemap", "none", untracked, untracked);
        show("pagemap", "sampled at 0.01", replay(Some(0.01)), untracked);
        show("pagemap", "exact", replay(Some(1.0)), untracked);
        for spec in SCHEMES.iter().filter(|spec| (spec.parameters)().iter().any(|parameter| parameter.name == "curve"))
        {
            let replay = |curve| replay_seconds(spec, &[("curve", curve)], pages, &requests, None);
            let sampled = replay("sampled");
            show(spec.name, "sampled", sampled, sampled);
            show(spec.name, "exact", replay("exact"), sampled);
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted =
        |name: &str| !arguments.iter().any(|a| a == "curves" || a == "tracking") || arguments.iter().any(|a| a == name);
    if wanted("curves") {
        curves();
    }
    if wanted("tracking") {
        tracking();
    }
}
