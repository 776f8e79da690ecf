//! Properties of Chang's schemes on whole devices: every parameter has an effect, wear is even, the hash table behaves
//! as in the paper's Fig. 11.

use bimetal_core::chip;
use bimetal_core::ledger::Ledger;
use bimetal_core::media::{Cause, Faults, FlashOp, SimMedia, SimRegion};
use bimetal_core::part::random::below;
use bimetal_core::replay::{self, Measured, Plan};
use bimetal_core::report::{self, RegionDescription, Report, TraceFacts};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, RegionShape, Shape};
use bimetal_core::units::Geometry;

fn region(chip: &str, pages_per_block: u32, blocks: u32) -> SimRegion {
    let mut chip = chip::find(chip).unwrap();
    chip.pages_per_block = pages_per_block;
    if let Some(mode) = &mut chip.slc_mode {
        mode.pages_per_block = pages_per_block / 2;
    }
    let geometry = Geometry::new(chip.page_bytes, pages_per_block, blocks, 1).unwrap();
    SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
}

fn replayed(
    name: &str,
    regions: &[SimRegion],
    logical_sectors: u64,
    settings: &[(&str, &str)],
    requests: &[Request],
) -> Measured {
    let shape = Shape {
        logical_sectors,
        regions: regions
            .iter()
            .map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry })
            .collect(),
        disks: Vec::new(),
        seed: 1,
    };
    let settings: Vec<(String, String)> = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
    let mut media = SimMedia::new(regions, 1).serial();
    let mut scheme = scheme::build::<SimMedia>(name, &shape, &settings).unwrap();
    let measured = replay::run(&mut media, &mut *scheme, requests, &Plan::default(), &mut replay::to_the_end).measured;
    scheme.check().unwrap();
    measured
}

/// A small device for a scheme: 64 logical blocks of 16 pages.
fn small(name: &str) -> Vec<SimRegion> {
    match name {
        "chang" => {
            let mut fast = region("chang-slc", 16, 24);
            // Low endurance, so that the throttle acts at times.
            fast.chip.endurance = 2500;
            vec![fast, region("chang-mlc", 16, 72)]
        }
        "density-control" => vec![region("chang-mlc", 16, 84)],
        _ => vec![region("chang-mlc", 16, 72)],
    }
}

const SMALL_SECTORS: u64 = 64 * 128;

/// Small writes to a hot set that moves, other small writes, bulk writes, reads.
fn mixture(count: u64) -> Vec<Request> {
    let mut state = 77;
    let request = |number: u64| {
        let hot = number / 4000 * 700;
        let (op, sectors, place) = match below(&mut state, 20) {
            0..9 => (Op::Write, 8, hot + below(&mut state, 40) * 16),
            9..11 => (Op::Write, 1 + below(&mut state, 20), below(&mut state, SMALL_SECTORS)),
            11 => (Op::Write, 2, below(&mut state, SMALL_SECTORS)),
            12..14 => (Op::Write, 128, below(&mut state, 64) * 128),
            14 => (Op::Write, 100, below(&mut state, SMALL_SECTORS)),
            _ => (Op::Read, 16, below(&mut state, SMALL_SECTORS)),
        };
        let sector = (place % SMALL_SECTORS).min(SMALL_SECTORS - sectors);
        Request { arrival_ns: 0, sector, sectors: sectors as u32, op, handle: 0 }
    };
    (0..count).map(request).collect()
}

/// A parameter, a value, and the settings with which it makes a difference.
type Change = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const SLOW_CHANGES: &[Change] = &[
    ("spare_low", "5", &[]),
    ("map_cache_chains", "3", &[]),
    ("scan_data_block", "true", &[("map_cache_chains", "3")]),
    ("gc_victim", "oldest", &[]),
    ("wear_levelling", "false", &[]),
    ("wear_threshold", "2", &[]),
];

const CHANG_CHANGES: &[Change] = &[
    ("gc_victim", "least_recent", &[]),
    ("threshold_mode", "printed", &[]),
    ("threshold_mode", "fixed", &[("initial_threshold", "2")]),
    ("initial_threshold", "64", &[]),
    ("threshold_period", "50", &[("initial_threshold", "64")]),
    ("histogram_halving", "true", &[("threshold_period", "20")]),
    ("k", "6", &[]),
    ("k_step", "5", &[("k_period", "20")]),
    ("k_period", "20", &[]),
    ("k_min_percent", "50", &[("k_period", "20")]),
    ("throttle", "false", &[]),
    ("hash_entries", "450", &[]),
    ("hash_key", "sector", &[]),
    ("hash_probing", "quadratic", &[]),
    ("hash_probes", "1", &[]),
    ("slc_writeback", "false", &[]),
    ("mlc_writeback", "false", &[]),
    ("update_window", "30", &[]),
    ("update_weight", "1", &[("update_window", "30"), ("update_low", "0.95")]),
    ("update_low", "1", &[("update_window", "30")]),
    ("update_high", "1", &[("update_window", "30"), ("update_low", "0.95")]),
];

const DENSITY_CHANGES: &[Change] = &[
    ("gc_victim", "least_recent", &[("budget", "64KiB")]),
    ("budget", "64KiB", &[]),
    ("usual_spare_percent", "15", &[]),
    ("hot_accesses", "200", &[]),
    ("cold_accesses", "100", &[]),
    ("ageing_period", "1000", &[]),
];

/// Every count of the ledger.
fn counts(ledger: &Ledger) -> Vec<u64> {
    let of_row = |row: &bimetal_core::ledger::Row| {
        let counts = row.counts.clone();
        FlashOp::ALL.map(|op| Cause::ALL.map(|cause| counts.get(op, cause))).concat()
    };
    ledger.rows.iter().flat_map(of_row).collect()
}

#[test]
fn every_parameter_changes_what_happens() {
    let requests = mixture(30_000);
    let schemes = [
        ("conventional", &[][..], SLOW_CHANGES),
        ("chang", CHANG_CHANGES, SLOW_CHANGES),
        ("density-control", DENSITY_CHANGES, SLOW_CHANGES),
    ];
    for (name, own, shared) in schemes {
        let changes = || own.iter().chain(shared);
        for parameter in (scheme::find(name).unwrap().parameters)() {
            assert!(changes().any(|&(key, ..)| key == parameter.name), "{} of {name} is not tried", parameter.name);
        }
        for &(key, value, beside) in changes() {
            // A hash table that is neither idle nor full.
            let mut settings =
                if name == "chang" && key != "hash_entries" { vec![("hash_entries", "600")] } else { vec![] };
            settings.extend(beside);
            let before = replayed(name, &small(name), SMALL_SECTORS, &settings, &requests);
            settings.push((key, value));
            let after = replayed(name, &small(name), SMALL_SECTORS, &settings, &requests);
            assert_ne!(counts(&before.ledger), counts(&after.ledger), "{name}: {key}={value} changes nothing");
        }
    }
}

/// 4 GiB with 5 % spare area and 256 MiB of SLC, the paper's proportions to the hot data.
fn large() -> Vec<SimRegion> {
    vec![region("chang-slc", 64, 2048), region("chang-mlc", 128, 8601)]
}

const LARGE_SECTORS: u64 = 8 << 20;

/// Writes of 8 sectors to `places` places and a few elsewhere, and writes of 128 sectors anywhere.
fn bimodal(count: usize, places: u64) -> Vec<Request> {
    let mut state = 3;
    let hot: Vec<u64> = (0..places).map(|_| below(&mut state, LARGE_SECTORS / 8 - 1) * 8).collect();
    let request = |_| {
        let (sectors, sector) = match below(&mut state, 200) {
            0..169 => (8, hot[below(&mut state, places) as usize]),
            169 => (8, below(&mut state, LARGE_SECTORS / 8 - 1) * 8),
            _ => (128, below(&mut state, LARGE_SECTORS / 128 - 1) * 128),
        };
        Request { arrival_ns: 0, sector, sectors, op: Op::Write, handle: 0 }
    };
    (0..count).map(request).collect()
}

/// Fig. 11: the number of valid pages in the SLC lies between the two smaller table sizes. With keys of a fast page the
/// rejects fall as in the paper and level off at eight probes. With keys of a sector they fall, too, but a write of
/// eight sectors next to eight taken buckets finds none within eight probes, so that more probes still help. Quadratic
/// probing rejects less than linear in both cases, contrary to the paper's result for its smallest table.
#[test]
fn hash_rejects_fall_with_table_size_and_level_off_beyond_eight_probes() {
    let rejects = |requests: &[Request], key: &str, entries: &str, probes: &str| {
        let settings = [("hash_entries", entries), ("hash_key", key), ("hash_probes", probes)];
        let measured = replayed("chang", &large(), LARGE_SECTORS, &settings, requests);
        measured.metrics.get("hash_rejects").unwrap()
    };
    let requests = bimodal(150_000, 8000);
    let [small, middle, large] = ["16384", "32768", "65536"].map(|entries| rejects(&requests, "page", entries, "8"));
    assert!(small > 3.0 * middle && middle >= large, "{small} {middle} {large}");
    let (few, many) = (rejects(&requests, "page", "32768", "1"), rejects(&requests, "page", "32768", "32"));
    assert!(middle - many < 0.1 * (few - middle), "{few} {middle} {many}");

    let requests = bimodal(150_000, 2000);
    let sizes = ["16384", "32768", "65536"].map(|entries| rejects(&requests, "sector", entries, "8"));
    assert!(sizes.is_sorted_by(|larger, smaller| larger > smaller), "{sizes:?}");
    assert!(rejects(&requests, "sector", "65536", "32") < 0.1 * sizes[2], "{sizes:?}");
}

#[test]
fn wear_is_even_in_both_regions() {
    let mut requests = mixture(200_000);
    for request in &mut requests {
        // The upper half of the device stays cold.
        if request.op == Op::Write && request.sector >= SMALL_SECTORS / 2 {
            request.sector -= SMALL_SECTORS / 2;
        }
    }
    let spread = |erases: &[u32]| erases.iter().max().unwrap() - erases.iter().min().unwrap();
    let mut regions = small("chang");
    regions[0].chip.endurance = 100_000;
    let settings = [("hash_entries", "2000")];
    let measured = replayed("chang", &regions, SMALL_SECTORS, &settings, &requests);
    assert!(measured.ledger.rows[0].counts.total(FlashOp::Erase) > 1000);
    assert!(spread(&measured.ledger.erases[0]) <= 1, "{:?}", measured.ledger.erases[0]);
    let slow = &measured.ledger.erases[1];
    println!("slow spread {} of {}", spread(slow), slow.iter().max().unwrap());
    // The rules allow a cold block with hot data in it to run ahead until they notice: hence more than 2 TH.
    assert!(slow.iter().max() > Some(&500) && spread(slow) <= 6 * 16, "{slow:?}");
    let without = [("hash_entries", "2000"), ("wear_levelling", "false")];
    let uneven = replayed("chang", &regions, SMALL_SECTORS, &without, &requests);
    assert!(spread(&uneven.ledger.erases[1]) > 5 * spread(slow), "{:?}", uneven.ledger.erases[1]);
}

#[test]
fn the_throttle_keeps_relative_wear_in_proportion() {
    let requests = mixture(60_000);
    let settings = [("hash_entries", "2000")];
    let measured = replayed("chang", &small("chang"), SMALL_SECTORS, &settings, &requests);
    let wear = |name| measured.metrics.get(name).unwrap();
    println!("relative wear {} {}", wear("relative_wear_slc"), wear("relative_wear_mlc"));
    assert!(measured.metrics.get("throttle_rejects").unwrap() > 100.0);
    let free = replayed("chang", &small("chang"), SMALL_SECTORS, &[settings[0], ("throttle", "false")], &requests);
    let free_wear = free.metrics.get("relative_wear_slc").unwrap() / free.metrics.get("relative_wear_mlc").unwrap();
    println!("ratio {} with, {free_wear} without", wear("relative_wear_slc") / wear("relative_wear_mlc"));
    assert!(wear("relative_wear_slc") < 1.1 * wear("relative_wear_mlc") && free_wear > 1.2);
}

/// All operations draw the same power, so the energy ratio times the speed-up is 1 (ES * RS, section 5.6): a check of the
/// response accounting by the energy accounting.
#[test]
fn energy_ratio_times_speed_up_is_one() {
    let requests = mixture(20_000);
    let facts = TraceFacts::of("mixture", "generated", &requests);
    let report = |name: &str| {
        let regions = small(name);
        let described: Vec<_> = regions
            .iter()
            .map(|region| RegionDescription { name: "", chip: &region.chip, geometry: region.geometry })
            .collect();
        let measured = replayed(name, &regions, SMALL_SECTORS, &[], &requests);
        Report::of(name, &described, &[], &measured, None, &facts)
    };
    let conventional = report("conventional");
    for name in ["chang", "density-control"] {
        let other = report(name);
        let speed_up = report::response_speedup(&conventional, &other).unwrap();
        let energy_ratio = report::energy_saving(&conventional, &other).unwrap();
        assert!((energy_ratio * speed_up - 1.0).abs() < 1e-6, "{name}: {energy_ratio} x {speed_up}");
        assert!((speed_up - 1.0).abs() > 0.001, "{name}: the check says nothing if nothing differs");
    }
}

/// The paper's RAM: 164 KB for L2P and LB of 20 GiB, and 160 KB for 32,768 entries of 24 + 16 bits.
#[test]
fn metadata_takes_what_the_paper_says() {
    let logical_sectors = 40 << 20;
    let mlc = region("chang-mlc", 128, 43_008);
    let bytes = |name: &str, regions: &[SimRegion], settings: &[(&str, &str)]| {
        let shape = Shape {
            logical_sectors,
            regions: regions
                .iter()
                .map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry })
                .collect(),
            disks: Vec::new(),
            seed: 1,
        };
        let settings: Vec<(String, String)> = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        let scheme = scheme::build::<SimMedia>(name, &shape, &settings).unwrap();
        let mut metrics = scheme::Metrics::default();
        scheme.metrics(&mut metrics);
        metrics.get("metadata_bytes").unwrap()
    };
    let tables = bytes("conventional", std::slice::from_ref(&mlc), &[]);
    assert_eq!(tables, 164.0 * 1024.0);
    let both = bytes("chang", &[region("chang-slc", 64, 1024), mlc], &[("hash_key", "page")]);
    assert_eq!(both - tables, 160.0 * 1024.0);
}

#[test]
fn devices_that_are_too_small_are_refused_with_the_reason() {
    let build = |name: &str, regions: Vec<SimRegion>, settings: &[(&str, &str)]| {
        let regions =
            regions.iter().map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry }).collect();
        let settings: Vec<(String, String)> = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        let shape = Shape { logical_sectors: SMALL_SECTORS, regions, disks: Vec::new(), seed: 1 };
        scheme::build::<SimMedia>(name, &shape, &settings).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let mlc = |blocks| region("chang-mlc", 16, blocks);
    assert_eq!(build("conventional", vec![mlc(66)], &[]), "");
    assert!(build("conventional", vec![mlc(65)], &[]).contains("take 66 blocks and the region has 65"));
    let slc = |blocks| region("chang-slc", 16, blocks);
    assert_eq!(build("chang", vec![slc(4), mlc(66)], &[]), "");
    assert!(build("chang", vec![slc(3), mlc(66)], &[]).contains("at least 4 fast blocks"));
    assert!(build("chang", vec![slc(9), mlc(66)], &[("k", "8")]).contains("above 7, the most for 9 blocks"));
    assert!(build("density-control", vec![slc(90)], &[]).contains("no SLC mode"));
    assert!(build("density-control", vec![mlc(70)], &[("budget", "1MiB")]).contains("take"));
}
