//! Properties of `ComboFTL` and its baselines on whole devices: decisions follow from the measurements, every parameter
//! has an effect, the six categories are rows of the ledger.

use bimetal_core::chip;
use bimetal_core::ledger::Ledger;
use bimetal_core::media::{Cause, Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
use bimetal_core::part::random::below;
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, Metrics, RegionShape, Scheme, Shape};
use bimetal_core::units::Geometry;

const SCHEMES: [&str; 4] = ["comboftl", "combo-static", "2q-gclock", "mixedftl"];

fn region(chip: &str, pages_per_block: u32, blocks: u32) -> SimRegion {
    let mut chip = chip::find(chip).unwrap();
    chip.pages_per_block = pages_per_block;
    let geometry = Geometry::new(chip.page_bytes, pages_per_block, blocks, 1).unwrap();
    SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
}

/// Pages of the fast region's blocks, and their number.
const FAST_PAGES: u32 = 8;
const FAST_BLOCKS: u32 = 24;
/// 64 logical blocks of 16 pages, and 20 more blocks.
const LOGICAL_PAGES: u64 = 64 * 16;
const SECTORS: u64 = 8 * LOGICAL_PAGES;

/// A device in use.
struct Device {
    media: Checked<SimMedia>,
    scheme: Box<dyn Scheme<Checked<SimMedia>>>,
}

impl Device {
    /// A filled device.
    fn new(name: &str, settings: &[(&str, &str)]) -> Self {
        let regions = [region("comboftl-mlc-slc-mode", FAST_PAGES, FAST_BLOCKS), region("comboftl-mlc", 16, 84)];
        let shapes = regions.iter().map(|r| RegionShape { chip: r.chip.clone(), geometry: r.geometry }).collect();
        let shape = Shape { logical_sectors: SECTORS, regions: shapes, disks: Vec::new(), seed: 1 };
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
        let mut scheme = scheme::build(name, &shape, &settings).unwrap_or_else(|error| panic!("{error}"));
        let mut media = Checked::new(SimMedia::new(&regions, 1), &regions.each_ref().map(|r| (r.geometry, 0)));
        scheme.fill(&mut media);
        media.reset();
        Self { media, scheme }
    }

    fn serve(&mut self, request: &Request) {
        self.media.begin(request, 0);
        self.scheme.serve(&mut self.media, request);
    }

    /// Writes whole pages.
    fn write(&mut self, page: u64, pages: u32) {
        self.serve(&Request { arrival_ns: 0, sector: page * 8, sectors: pages * 8, op: Op::Write, handle: 0 });
    }

    fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        self.scheme.metrics(&mut metrics);
        metrics
    }

    fn metric(&self, name: &str) -> f64 {
        self.metrics().get(name).unwrap_or_else(|| panic!("there is no metric `{name}`"))
    }

    fn programs(&self, region: usize, cause: Cause) -> u64 {
        let rows = self.media.ledger().rows.iter().filter(|row| row.region == region);
        rows.map(|row| row.counts.get(FlashOp::Program, cause)).sum()
    }
}

/// Small writes to a hot set that moves, other writes of all sizes, repeatedly rewritten runs, reads.
fn mixture(count: u64) -> Vec<Request> {
    let mut state = 77;
    let request = |number: u64| {
        let hot = number / 4000 * 700;
        let (op, sectors, place) = match below(&mut state, 20) {
            0..8 => (Op::Write, 8, hot + below(&mut state, 60) * 16),
            8..10 => (Op::Write, 16, below(&mut state, SECTORS)),
            10 => (Op::Write, 30, below(&mut state, SECTORS)),
            11 => (Op::Write, 64, below(&mut state, SECTORS / 128) * 128),
            12..14 => (Op::Write, 256, number / 3000 * 1024),
            14 => (Op::Write, 256, below(&mut state, SECTORS)),
            _ => (Op::Read, 16, below(&mut state, SECTORS)),
        };
        let sector = (place % SECTORS).min(SECTORS - sectors);
        Request { arrival_ns: 0, sector, sectors: sectors as u32, op, handle: 0 }
    };
    (0..count).map(request).collect()
}

fn replayed(name: &str, settings: &[(&str, &str)], requests: &[Request]) -> Device {
    let mut device = Device::new(name, settings);
    requests.iter().for_each(|request| device.serve(request));
    device.scheme.check().unwrap();
    device
}

/// Every count of the ledger.
fn counts(ledger: &Ledger) -> Vec<u64> {
    let all = |row: &bimetal_core::ledger::Row| {
        FlashOp::ALL.map(|op| Cause::ALL.map(|cause| row.counts.get(op, cause))).concat()
    };
    ledger.rows.iter().flat_map(all).collect()
}

/// A parameter, a value, and the settings with which it makes a difference.
type Change = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const SLOW_CHANGES: &[Change] = &[("slow_map", "page", &[]), ("unit_blocks", "1", &[]), ("reserve_blocks", "5", &[])];

const COMBO_CHANGES: &[Change] = &[
    ("threshold_mode", "fixed", &[]),
    ("threshold", "64KiB", &[("threshold_mode", "fixed")]),
    ("migration_target", "0.4", &[]),
    ("migration_tolerance", "0.5", &[]),
    ("chances_mode", "fixed", &[]),
    ("chances", "0", &[("chances_mode", "fixed")]),
    ("chances", "1", &[("chances_mode", "fixed")]),
    ("observation_window", "1", &[]),
    ("update_low", "0", &[("chances", "4")]),
    ("update_high", "0.1", &[]),
    ("early_migration", "false", &[("chances", "4"), ("chances_mode", "fixed")]),
    ("warm_bit", "reset", &[("chances", "4"), ("chances_mode", "fixed")]),
    ("hot_percent", "25", &[]),
    ("detection", "page", &[]),
    ("detection", "none", &[]),
    ("hot_hits", "pages", &[]),
    ("hot_hits_low", "1", &[("hot_hits_high", "0")]),
    ("hot_hits_high", "1", &[("hot_hits_low", "0")]),
    ("staying_time", "printed", &[]),
];

const GCLOCK_CHANGES: &[Change] = &[
    ("chances_mode", "fixed", &[]),
    ("chances", "1", &[("chances_mode", "fixed")]),
    ("observation_window", "1", &[]),
    ("update_low", "0", &[("chances", "4")]),
    ("update_high", "0", &[]),
    ("hot_percent", "25", &[]),
];

#[test]
fn every_parameter_changes_what_happens() {
    let requests = mixture(30_000);
    let static_changes: &[Change] = &[("threshold", "64KiB", &[])];
    let mixed_changes: &[Change] = &[("compact_percent", "10", &[])];
    for (name, own) in SCHEMES.into_iter().zip([COMBO_CHANGES, static_changes, GCLOCK_CHANGES, mixed_changes]) {
        let changes = || own.iter().chain(SLOW_CHANGES);
        for parameter in (scheme::find(name).unwrap().parameters)() {
            // It changes which blocks are erased, not how many.
            let is_tried = changes().any(|&(key, ..)| key == parameter.name) || parameter.name == "boundary_shift";
            assert!(is_tried, "{} of {name} is not tried", parameter.name);
        }
        for &(key, value, beside) in changes() {
            let mut settings = beside.to_vec();
            let before = counts(replayed(name, &settings, &requests).media.ledger());
            settings.push((key, value));
            let after = counts(replayed(name, &settings, &requests).media.ledger());
            assert_ne!(before, after, "{name}: {key}={value} changes nothing");
        }
    }
}

/// With all its additions switched off, `ComboFTL` equals the baseline.
#[test]
fn with_everything_switched_off_comboftl_is_its_baseline() {
    let requests = mixture(20_000);
    let off = [("threshold_mode", "fixed"), ("threshold", "64KiB"), ("chances_mode", "fixed"), ("chances", "0")];
    let combo = replayed("comboftl", &[&off[..], &[("detection", "none")]].concat(), &requests);
    let baseline = replayed("combo-static", &[("threshold", "64KiB")], &requests);
    assert_eq!(counts(combo.media.ledger()), counts(baseline.media.ledger()));
}

/// Fig. 10's categories are rows of the ledger.
#[test]
fn the_six_categories_are_rows_of_the_ledger() {
    let requests = mixture(20_000);
    for name in SCHEMES {
        let device = replayed(name, &[], &requests);
        let categories = [
            ("slc_pages", 0, Cause::Host),
            ("mlc_to_slc_pages", 0, Cause::MigrateUp),
            ("slc_to_slc_pages", 0, Cause::Gc),
            ("mlc_pages", 1, Cause::Host),
            ("slc_to_mlc_pages", 1, Cause::MigrateDown),
            ("mlc_to_mlc_pages", 1, Cause::Gc),
        ];
        let mut programs = 0;
        for (metric, region, cause) in categories {
            let pages = device.programs(region, cause);
            assert_eq!(device.metrics().get(metric).unwrap_or(0.0), pages as f64, "{name}: {metric}");
            programs += pages;
        }
        let all = device.media.ledger().rows.iter().map(|row| row.counts.total(FlashOp::Program)).sum::<u64>();
        assert_eq!(programs, all, "{name}: there is no other category");
    }
}

/// The threshold after each period of a run follows from the migration ratio of that period (section 3.2).
#[test]
fn the_threshold_follows_the_migration_ratio_in_every_period() {
    let mut device = Device::new("comboftl", &[]);
    let (mut before, mut moves) = (device.metrics(), [0; 3]);
    let mut written = 0;
    for request in mixture(60_000) {
        device.serve(&request);
        written += if request.op == Op::Write { u64::from(request.sectors) } else { 0 };
        let after = device.metrics();
        let figures = |metrics: &Metrics| ["threshold_kib", "adjustments"].map(|name| metrics.get(name).unwrap());
        let ([old, periods], [new, passed]) = (figures(&before), figures(&after));
        if passed == periods {
            assert_eq!(new, old);
            continue;
        }
        assert!(written >= u64::from(FAST_PAGES * FAST_BLOCKS) * 8, "a period is the size of the fast region");
        written = 0;
        let ratio = after.get("migration_ratio").unwrap();
        let expected = if ratio > 0.15 {
            (old / 2.0).max(8.0)
        } else if ratio < 0.05 {
            (old * 2.0).min(64.0)
        } else {
            old
        };
        assert_eq!(new, expected, "{ratio} in period {passed}");
        moves[if new < old { 0 } else { 1 + usize::from(new > old) }] += 1;
        before = after;
    }
    println!("down, as it was, up: {moves:?}");
    assert!(moves.iter().all(|&times| times > 3), "{moves:?}");
}

/// The number of chances after each period follows from the update ratios of that period (section 4.2).
#[test]
fn chances_follow_the_update_ratios_in_every_period() {
    let mut device = Device::new("comboftl", &[("threshold_mode", "fixed"), ("detection", "none")]);
    let (mut before, mut moves) = (device.metrics(), [0; 3]);
    for step in 0..120_000 {
        // Pages written in turn, in growing numbers, until they stay in the warm partition for several laps.
        let pages = 100 + step / 6000 * 8;
        device.write(if step % 10 == 0 { 512 + step / 10 % 400 } else { step % pages }, 1);
        let after = device.metrics();
        let figure = |metrics: &Metrics, name| metrics.get(name).unwrap();
        if figure(&after, "adjustments") == figure(&before, "adjustments") {
            continue;
        }
        let [old, new] = [&before, &after].map(|metrics| figure(metrics, "chances") as u32);
        before = after.clone();
        if old > 4 {
            continue;
        }
        let phi = |set| figure(&after, ["phi_w0", "phi_w1", "phi_w2", "phi_w3", "phi_w4"][set as usize]);
        assert_eq!(phi(old), figure(&after, "phi_wn"));
        let window = || (old.saturating_sub(1)..=old).map(phi);
        if phi(old) > 0.7 {
            assert_eq!(new, old + 1, "{:?}", window().collect::<Vec<_>>());
        } else if window().all(|ratio| ratio == 0.0) {
            // No updates, or too few units entered for a judgement.
            assert!(new == old || new == old.saturating_sub(1));
        } else if window().all(|ratio| ratio < 0.3) {
            assert_eq!(new, old.saturating_sub(1), "{:?}", window().collect::<Vec<_>>());
        } else {
            assert!(new == old || window().any(|ratio| ratio == 0.0), "{:?}", window().collect::<Vec<_>>());
        }
        moves[if new < old { 0 } else { 1 + usize::from(new > old) }] += 1;
    }
    println!("down, as it was, up: {moves:?}");
    assert!(moves.iter().all(|&times| times > 3), "{moves:?}");
}

/// Data that are never updated make a lap for each warm set, N + 1 of them, or half as many with early migration.
#[test]
fn cold_data_use_up_their_chances() {
    for (chances, early, laps) in
        [("0", "true", 0), ("1", "false", 2), ("1", "true", 1), ("4", "false", 5), ("4", "true", 3), ("5", "true", 3)]
    {
        let settings = [
            ("chances", chances),
            ("chances_mode", "fixed"),
            ("early_migration", early),
            ("threshold_mode", "fixed"),
            ("threshold", "4KiB"),
        ];
        let mut device = Device::new("comboftl", &settings);
        (0..3000).for_each(|page| device.write(page * 7 % LOGICAL_PAGES, 1));
        let [copied, moved] = ["slc_to_slc_pages", "slc_to_mlc_pages"].map(|name| device.metric(name) as u32);
        let in_log = FAST_PAGES * FAST_BLOCKS;
        assert!(moved > 2000 && copied >= laps * moved && copied <= laps * (moved + in_log), "{copied} {moved}");
    }
}

/// With 2Q/GCLOCK, data updated in the hot partition stay; other data are demoted at their first chance.
#[test]
fn two_queues_tell_new_data_from_data_written_again() {
    let mut device = Device::new("2q-gclock", &[]);
    (0..800).for_each(|page| device.write(page, 1));
    assert_eq!(device.metric("slc_to_slc_pages"), 0.0);
    assert!(device.metric("slc_to_mlc_pages") > 600.0);
    let moved = device.metric("slc_to_mlc_pages");
    for page in 0..60 {
        (0..2).for_each(|_| device.write(page, 1));
    }
    // Data that were new in the hot partition are demoted, data written twice make another lap.
    (0..30).for_each(|page| device.write(900 + page, 1));
    assert!(device.metric("slc_to_slc_pages") > 20.0 && device.metric("slc_to_mlc_pages") - moved < 110.0);
}

/// Large writes to a unit that is written again and again go to the log, until no data of the unit are left there.
#[test]
fn a_hot_unit_is_written_to_the_log() {
    let settings = [("threshold_mode", "fixed"), ("threshold", "8KiB"), ("unit_blocks", "2")];
    let mut device = Device::new("comboftl", &settings);
    // 32 pages of a unit, 1 + 1 for each page that is replaced: more than 64 after all of them and the first of the next.
    (0..8).for_each(|part| device.write(part * 4, 4));
    assert_eq!((device.metric("mlc_pages"), device.metric("mlc_to_slc_pages")), (32.0, 0.0));
    device.write(16, 4);
    assert_eq!(
        (device.metric("mlc_pages"), device.metric("mlc_to_slc_pages")),
        (36.0, 0.0),
        "decided by unit and write"
    );
    device.write(16, 12);
    assert_eq!((device.metric("mlc_pages"), device.metric("mlc_to_slc_pages")), (36.0, 12.0));
    // Part of it lies in the next unit.
    device.write(28, 8);
    assert_eq!((device.metric("mlc_pages"), device.metric("mlc_to_slc_pages")), (40.0, 16.0));
    assert_eq!((device.metric("hot_units_found"), device.metric("hot_unit_hit_ratio")), (1.0, 0.0));
    device.write(20, 4);
    assert_eq!(device.metric("hot_unit_hit_ratio"), 1.0);
    // Cold data displace it.
    (0..600).for_each(|page| device.write(100 + page, 1));
    let redirected = device.metric("mlc_to_slc_pages");
    device.write(0, 4);
    assert_eq!(device.metric("mlc_to_slc_pages"), redirected, "it is not hot any more");
    device.scheme.check().unwrap();
}

/// Without exchange the hot partition, which takes all writes, wears faster; with it all blocks wear evenly.
#[test]
fn exchanging_blocks_evens_out_the_partitions_wear() {
    let spread = |boundary_shift| {
        let device = replayed("comboftl", &[("boundary_shift", boundary_shift)], &mixture(120_000));
        let erases = &device.media.ledger().erases[0];
        let (least, most) = (erases.iter().min().unwrap(), erases.iter().max().unwrap());
        println!("boundary_shift={boundary_shift}: {least} to {most}, {} exchanges", device.metric("boundary_shifts"));
        (most - least, *most)
    };
    let ((with, most), (without, _)) = (spread("true"), spread("false"));
    assert!(most > 200 && 5 * with < without, "{with} {without}");
}

#[test]
fn devices_and_settings_that_do_not_go_together_are_refused_with_the_reason() {
    let error = |name: &str, fast_blocks, settings: &[(&str, &str)]| {
        let regions = [region("comboftl-mlc-slc-mode", 8, fast_blocks), region("comboftl-mlc", 16, 84)];
        let shapes = regions.iter().map(|r| RegionShape { chip: r.chip.clone(), geometry: r.geometry }).collect();
        let shape = Shape { logical_sectors: SECTORS, regions: shapes, disks: Vec::new(), seed: 1 };
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
        scheme::build::<SimMedia>(name, &shape, &settings).err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (name, least) in SCHEMES.into_iter().zip([4, 2, 4, 2]) {
        assert_eq!(error(name, least, &[]), "");
        assert!(error(name, least - 1, &[]).contains(&format!("at least {least} fast blocks")), "{name}");
    }
    assert!(error("comboftl", 24, &[("threshold", "4KiB")]).contains("8KiB, 16KiB, 32KiB or 64KiB"));
    assert_eq!(error("comboftl", 24, &[("threshold", "4KiB"), ("threshold_mode", "fixed")]), "");
    assert!(error("comboftl", 24, &[("chances", "0")]).contains("chances_mode=fixed"));
    assert!(error("comboftl", 24, &[("reserve_blocks", "30")]).contains("spare"));
}
