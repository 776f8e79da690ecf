//! `midas` against the authors' simulator: sungkyun123/MiDAS-Simulation, commit a226265 (C++, FAST 2024), run with the same requests. A
//! device of 1 GB on 1 GiB in segments of 512 pages of 4 KiB, filled in order, then 8,000,000 Zipf writes over shuffled pages; write
//! amplification of the whole run, the filling included.

use bimetal_core::chip;
use bimetal_core::media::{Cause, Faults, FlashOp, SimMedia, SimRegion, Simulation};
use bimetal_core::part::{random, real};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{RegionShape, Shape, build};
use bimetal_core::units::Geometry;

const PAGES: u64 = 244_140;
const WRITES: u32 = 8_000_000;

/// Write amplification of a scheme.
fn measure(scheme: &str, exponent: f64) -> f64 {
    let chip = chip::find("chang-mlc").unwrap();
    let geometry = Geometry::new(4096, 512, 512, 1).unwrap();
    let shape = Shape {
        logical_sectors: PAGES * 8,
        regions: vec![RegionShape { chip: chip.clone(), geometry }],
        disks: Vec::new(),
        seed: 1,
    };
    let mut media = SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1);
    // It keeps four segments free between writes.
    let settings = [("gc_free_blocks", "3"), ("victim", "cost-benefit")];
    let settings = settings.map(|(key, value)| (key.to_string(), value.to_string()));
    let mut scheme = build::<SimMedia>(scheme, &shape, &settings).unwrap();
    scheme.fill(&mut media);
    let mut state = 7;
    let mut places: Vec<u64> = (0..PAGES).collect();
    for end in (1..PAGES as usize).rev() {
        places.swap(end, random::below(&mut state, end as u64 + 1) as usize);
    }
    let mut sum = 0.0;
    let mut weight = |rank: u64| {
        sum += real::pow(rank as f64, -exponent);
        sum
    };
    let weights: Vec<f64> = (1..=PAGES).map(&mut weight).collect();
    for _ in 0..WRITES {
        let drawn = random::unit(&mut state) * sum;
        let rank = weights.partition_point(|&weight| weight < drawn).min(places.len() - 1);
        let request = Request { arrival_ns: 0, sector: places[rank] * 8, sectors: 8, op: Op::Write, handle: 0 };
        media.begin(&request, 0);
        scheme.serve(&mut media, &request);
    }
    scheme.check().unwrap();
    let ledger = media.ledger();
    let host = ledger.total(FlashOp::Program, Cause::Host);
    (host + ledger.total(FlashOp::Program, Cause::Gc)) as f64 / host as f64
}

#[test]
fn write_amplification_is_about_that_of_the_authors_simulator() {
    for (exponent, theirs, bound) in [(1.1, 3.242, 0.07), (1.0, 4.550, 0.05)] {
        let ours = measure("midas", exponent);
        let off = ours / theirs - 1.0;
        println!("Zipf {exponent}: {ours:.3}, theirs {theirs:.3} ({:+.1} %)", off * 100.0);
        assert!(off.abs() < bound, "Zipf {exponent}: {ours} against {theirs}");
        let two_streams = measure("pagemap", exponent);
        println!("Zipf {exponent}: {two_streams:.3} with two streams");
        assert!(ours < two_streams, "Zipf {exponent}: groups bring nothing");
    }
}
