//! Those of the claims of WLAFTL that hold, on stand-ins of its traces, on a small scale; `docs/papers/wlaftl-2018.md` has them all.

use bimetal_core::chip;
use bimetal_core::ledger::{Ledger, Row};
use bimetal_core::media::{Cause, Faults, FlashOp, SimMedia, SimRegion};
use bimetal_core::replay::{self, Measured, Plan};
use bimetal_core::request::Request;
use bimetal_core::scheme::{self, RegionShape, Shape};
use bimetal_core::units::Geometry;

use crate::generated;

/// Every count of the ledger.
fn counts(ledger: &Ledger) -> Vec<u64> {
    let of_row = |row: &Row| FlashOp::ALL.map(|op| Cause::ALL.map(|cause| row.counts.get(op, cause))).concat();
    ledger.rows.iter().flat_map(of_row).collect()
}

/// A die of `blocks` blocks of a chip.
fn region(chip_name: &str, pages_per_block: u32, blocks: u32) -> SimRegion {
    let mut chip = chip::find(chip_name).unwrap();
    chip.pages_per_block = pages_per_block;
    let geometry = Geometry::new(chip.page_bytes, pages_per_block, blocks, 1).unwrap();
    SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
}

/// The paper's device, and its traces, divided by this.
const SCALE: u32 = 32;

/// The paper's traces with the length of their stand-ins.
const TRACES: [(&str, u64); 6] = [
    ("fin1", 5_334_987),
    ("sys", 3_756_389),
    ("test1", 3_181_345),
    ("test2", 2_879_205),
    ("iotrace1", 2_916_474),
    ("iotrace2", 9_033_809),
];

fn trace((name, requests): (&str, u64), theta: &str) -> Vec<Request> {
    let (scale, requests) = (SCALE.to_string(), (requests / u64::from(SCALE)).to_string());
    let settings = [("trace", name), ("scale", &scale), ("requests", &requests), ("theta", theta)];
    generated("wlaftl", &settings)
}

/// A replay on the paper's device with this much SLC, in MiB before the division.
fn on_the_device(slc_mib: u32, name: &str, requests: &[Request]) -> Measured {
    let regions = [region("wlaftl-slc", 64, slc_mib * 8 / SCALE), region("wlaftl-mlc", 128, 4096 / SCALE)];
    let shapes = regions.iter().map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry });
    let logical_sectors = 3828 / u64::from(SCALE) * 1024;
    let shape = Shape { logical_sectors, regions: shapes.collect(), disks: Vec::new(), seed: 1 };
    let mut media = SimMedia::new(&regions, 1).serial();
    let mut scheme = scheme::build::<SimMedia>(name, &shape, &[]).unwrap();
    replay::run(&mut media, &mut *scheme, requests, &Plan::default(), &mut replay::to_the_end).measured
}

fn metric(measured: &Measured, name: &str) -> f64 {
    measured.metrics.get(name).unwrap()
}

/// Table 3 and section 4.3: the regions wear more evenly than with a static threshold of 4 KB and than under CFTL, which
/// erases MLC much more often. Test1 has no large writes.
#[test]
fn both_regions_wear_in_step() {
    for named in TRACES {
        let requests = trace(named, "0.99");
        let run = |scheme| on_the_device(512, scheme, &requests);
        let (own, still, rival) = (run("wlaftl"), run("wlaftl-static"), run("cftl"));
        let [phi, still_phi, rival_phi] = [&own, &still, &rival].map(|measured| metric(measured, "phi"));
        println!("{}: {phi:.2}, static {still_phi:.2}, cftl {rival_phi:.2}", named.0);
        assert!(phi < if named.0 == "test1" { 2.0 } else { 1.4 });
        assert!(phi < still_phi || named.0 == "test1");
        assert!(phi < rival_phi);
        assert!(metric(&own, "mlc_erases") < 0.65 * metric(&rival, "mlc_erases"), "35 % fewer");
    }
}

/// Table 3, Test1: where neither region has worn by a whole cycle the threshold does not move.
#[test]
fn below_a_cycle_of_wear_the_threshold_is_static() {
    let requests = trace(TRACES[2], "1.5");
    let (own, still) = (on_the_device(512, "wlaftl", &requests), on_the_device(512, "wlaftl-static", &requests));
    assert!(metric(&own, "relative_wear_slc") > 0.5 && metric(&own, "relative_wear_slc") < 1.0);
    assert!(metric(&own, "relative_wear_mlc") < 1.0);
    assert_eq!(counts(&own.ledger), counts(&still.ledger));
}

/// Fig. 5b: the more SLC, the fewer erases of MLC.
#[test]
fn more_slc_saves_mlc() {
    for named in [TRACES[1], TRACES[4]] {
        let requests = trace(named, "0.99");
        let erases = [32, 64, 128, 256, 512].map(|mib| metric(&on_the_device(mib, "wlaftl", &requests), "mlc_erases"));
        println!("{}: {erases:?}", named.0);
        assert!(erases.is_sorted_by(|less, more| *less > 1.1 * *more), "{erases:?}");
    }
}
