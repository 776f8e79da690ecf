//! The behaviour of a write cache in SLC mode: fast until it is full, then as slow as the flash behind it.

use bimetal_core::chip;
use bimetal_core::media::{Cause, CellMode, Faults, FlashOp, SimMedia, SimRegion};
use bimetal_core::replay::{self, Arrivals, Fill, Outcome, Plan};
use bimetal_core::report::{RegionDescription, Report, TraceFacts};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme;
use bimetal_core::units::Geometry;

const PAGE: u64 = 16 << 10;
const REQUEST: u64 = 128 << 10;
const PAGES_PER_BLOCK: u32 = 384;
/// A third of them: the cells are TLC.
const SLC_PAGES_PER_BLOCK: u32 = 128;
const LOGICAL_BLOCKS: u32 = 64;
const LOGICAL: u64 = LOGICAL_BLOCKS as u64 * PAGES_PER_BLOCK as u64 * PAGE;
/// Size of the cache, in bytes of the native mode: 16 blocks.
const BUDGET: &str = "96MiB";
const CACHE_BLOCKS: u32 = 16;
const CACHE: u64 = CACHE_BLOCKS as u64 * SLC_PAGES_PER_BLOCK as u64 * PAGE;

/// 384 MiB of TLC with 16 blocks for the cache and 16 spare.
fn region(dies: u32) -> SimRegion {
    let mut chip = chip::find("tlc-3d-2021").unwrap();
    chip.pages_per_block = PAGES_PER_BLOCK;
    chip.slc_mode.as_mut().unwrap().pages_per_block = SLC_PAGES_PER_BLOCK;
    let geometry = Geometry::new(chip.page_bytes, PAGES_PER_BLOCK, LOGICAL_BLOCKS + 32, dies).unwrap();
    SimRegion { chip, geometry, channels: dies, faults: Faults::default() }
}

fn replayed(name: &str, settings: &[(&str, &str)], dies: u32, requests: &[Request], plan: &Plan) -> Outcome {
    let regions = [region(dies)];
    let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
    let shape = crate::support::shape(&regions, LOGICAL / 512);
    let mut scheme = scheme::build::<SimMedia>(name, &shape, &settings).unwrap();
    let mut media = SimMedia::new(&regions, 1);
    let outcome = replay::run(&mut media, &mut *scheme, requests, plan, &mut replay::to_the_end);
    scheme.check().unwrap();
    outcome
}

/// Sequential writes of `bytes` bytes, with an idle gap after every `burst` requests.
fn sequential(bytes: u64, burst: u64, gap_ns: u64) -> Vec<Request> {
    let request = |index: u64| Request {
        arrival_ns: index / burst * gap_ns,
        sector: index * REQUEST % LOGICAL / 512,
        sectors: (REQUEST / 512) as u32,
        op: Op::Write,
        handle: 0,
    };
    (0..bytes / REQUEST).map(request).collect()
}

fn means_us(outcome: &Outcome) -> Vec<f64> {
    let mean = |interval: &replay::Interval| interval.response_total_ns as f64 / interval.served as f64 / 1e3;
    outcome.course.intervals.iter().map(mean).collect()
}

/// Bytes written before the first interval that takes at least 1.5 times as long as the first.
fn cliff(outcome: &Outcome) -> u64 {
    let means = means_us(outcome);
    let slow = means.iter().position(|&mean| mean > 1.5 * means[0]).unwrap();
    outcome.course.intervals[slow].host.requests().saturating_sub(outcome.course.intervals[slow].served) * REQUEST
}

/// Time of the page programs of a request that has the device to itself, on one die.
fn request_us(mode: CellMode) -> f64 {
    let chip = region(1).chip;
    let (_, program, _) = chip.times(mode);
    (program + chip.transfer()).as_us() * (REQUEST / PAGE) as f64
}

/// An erased drive, one request after the other.
fn fresh(intervals: u32) -> Plan {
    Plan { fill: Fill::None, intervals, ..Plan::default() }
}

#[test]
fn a_fresh_drive_is_fast_until_its_cache_is_full() {
    let writes = sequential(LOGICAL, 1, 0);
    for dies in [1, 4] {
        // Folding in steps begins when the last blocks are opened, one on each die: with four dies, that is a whole
        // interval earlier.
        let in_steps = if dies == 4 { CACHE * 3 / 4 } else { CACHE };
        for (when_full, fold_in_steps, full) in
            [("fold", "false", CACHE), ("fold", "true", in_steps), ("direct", "true", CACHE)]
        {
            let settings = [("budget", BUDGET), ("when_full", when_full), ("fold_in_steps", fold_in_steps)];
            // 3072 requests, 256 of which fill the cache: the fifth interval begins with the cliff.
            let outcome = replayed("pslc-static", &settings, dies, &writes, &fresh(48));
            assert_eq!(cliff(&outcome), full, "{dies} dies, {when_full}, in steps: {fold_in_steps}");
        }
    }
}

#[test]
fn beyond_the_cliff_a_write_past_the_cache_takes_what_it_takes_natively() {
    let writes = sequential(LOGICAL, 1, 0);
    let settings = [("budget", BUDGET), ("when_full", "direct")];
    let outcome = replayed("pslc-static", &settings, 1, &writes, &fresh(48));
    let means = means_us(&outcome);
    // Each block of the cache is erased once before its first use: four of them in an interval of 64 requests.
    let erase_us = region(1).chip.times(CellMode::Native).2.as_us() * 4.0 / 64.0;
    for (interval, &mean) in means.iter().enumerate() {
        let expected = if interval < 4 { request_us(CellMode::Slc) + erase_us } else { request_us(CellMode::Native) };
        assert!((mean / expected - 1.0).abs() < 1e-9, "interval {interval}: {mean} us instead of {expected}");
    }
    assert_eq!(outcome.measured.metrics.get("direct_pages"), Some(((LOGICAL - CACHE) / PAGE) as f64));
}

#[test]
fn a_write_that_waits_for_folding_pays_for_both_modes() {
    let writes = sequential(LOGICAL, 1, 0);
    let outcome = replayed("pslc-static", &[("budget", BUDGET)], 1, &writes, &fresh(48));
    let chip = region(1).chip;
    let read_us = (chip.times(CellMode::Slc).0 + chip.transfer()).as_us() * (REQUEST / PAGE) as f64;
    // One erase in SLC mode for each block of the cache, that is for 16 requests.
    let erase_us = chip.times(CellMode::Slc).2.as_us() / 16.0;
    let expected = request_us(CellMode::Slc) + read_us + request_us(CellMode::Native) + erase_us;
    for (interval, &mean) in means_us(&outcome).iter().enumerate().skip(4) {
        assert!((mean / expected - 1.0).abs() < 1e-9, "interval {interval}: {mean} us instead of {expected}");
    }
    assert_eq!(outcome.measured.metrics.get("partial_fold_ratio"), Some(0.0));
    let ahead = u64::from(SLC_PAGES_PER_BLOCK);
    assert_eq!(outcome.measured.ledger.total(FlashOp::Program, Cause::MigrateDown), (LOGICAL - CACHE) / PAGE + ahead);
}

#[test]
fn a_cache_recovers_while_the_host_is_idle() {
    // Bursts of three quarters of the cache, one in two seconds: enough to fold all of it in between.
    let burst = CACHE * 3 / 4 / REQUEST;
    let writes = sequential(LOGICAL, burst, 2_000_000_000);
    let bursts = (writes.len() as u64 / burst) as u32;
    let plan = Plan { arrivals: Arrivals::Trace { speed: 1.0 }, ..fresh(bursts) };
    for dies in [1, 4] {
        let means = |idle_fold: &str| {
            let settings = [("budget", BUDGET), ("when_full", "direct"), ("idle_fold", idle_fold)];
            means_us(&replayed("pslc-static", &settings, dies, &writes, &plan))
        };
        let (with, without) = (means("true"), means("false"));
        let first = with[0];
        assert!(with.iter().all(|&mean| mean < 1.05 * first), "{dies} dies: {with:?}");
        assert!(without[1..].iter().all(|&mean| mean > 1.2 * first), "{dies} dies: {without:?}");
    }
}

#[test]
fn on_several_dies_idle_time_folds_as_much_as_all_of_them_can() {
    // One burst fills the cache, and the rest of a second is enough time for four dies to fold it, but not for one.
    let burst = CACHE / REQUEST;
    let writes = sequential(2 * CACHE, burst, 1_000_000_000);
    let plan = Plan { arrivals: Arrivals::Trace { speed: 1.0 }, ..fresh(2) };
    let direct = |dies| {
        let settings = [("budget", BUDGET), ("when_full", "direct")];
        replayed("pslc-static", &settings, dies, &writes, &plan).measured.metrics.get("direct_pages").unwrap()
    };
    assert!(direct(1) > 0.0);
    assert_eq!(direct(4), 0.0);
}

#[test]
fn a_dynamic_cache_is_larger_while_the_drive_is_empty() {
    let writes = sequential(2 * LOGICAL, 1, 0);
    for dies in [1, 4] {
        let outcome = replayed("pslc-dynamic", &[("budget", BUDGET)], dies, &writes, &fresh(192));
        // All of the drive is cache, except a block for folding, a block of room to fold ahead of need, and an erased
        // one on each die.
        let blocks = u64::from(CACHE_BLOCKS + LOGICAL_BLOCKS);
        let expected = blocks * u64::from(SLC_PAGES_PER_BLOCK) * PAGE;
        let found = cliff(&outcome);
        assert!((expected * 9 / 10..=expected).contains(&found), "{dies} dies: {found} instead of {expected}");
        assert!(found > 3 * CACHE, "a cache of fixed size is full after {CACHE}");

        let names: Vec<&str> = outcome.measured.metrics.iter().map(|(name, _)| name).collect();
        let series = |name: &str| {
            let index = names.iter().position(|&known| known == name).unwrap();
            outcome.course.intervals.iter().map(|interval| interval.metrics[index]).collect::<Vec<_>>()
        };
        let allowed = series("cache_allowed_blocks");
        assert!(allowed.is_sorted_by(|a, b| a + 1.0 >= *b), "{dies} dies: {allowed:?}");
        assert!(allowed[0] > f64::from(LOGICAL_BLOCKS) && allowed[95..].iter().all(|&blocks| blocks == 16.0));
        assert!(series("cache_blocks").iter().zip(&allowed).all(|(blocks, allowed)| blocks <= allowed));
    }
}

#[test]
fn a_drive_that_writes_past_a_full_cache_has_three_levels_of_speed() {
    // 39 of 96 blocks are cache: x = the pages of 39 blocks of SLC, then y native pages until all blocks are used.
    let x = 39 * u64::from(SLC_PAGES_PER_BLOCK);
    let y = u64::from(CACHE_BLOCKS + LOGICAL_BLOCKS - 39) * u64::from(PAGES_PER_BLOCK);
    let writes = sequential(LOGICAL, 1, 0);
    for (when_full, dies) in [("direct", 1), ("direct", 4), ("direct-then-fold", 1), ("direct-then-fold", 4)] {
        let settings = [("budget", BUDGET), ("when_full", when_full), ("cache_percent_max", "41")];
        let outcome = replayed("pslc-dynamic", &settings, dies, &writes, &fresh(96));
        let names: Vec<&str> = outcome.measured.metrics.iter().map(|(name, _)| name).collect();
        let folded = names.iter().position(|&name| name == "folded_pages").unwrap();
        let pages = |interval: usize| interval as u64 * LOGICAL / PAGE / 96;
        let first_fold = outcome.course.intervals.iter().position(|interval| interval.metrics[folded] > 0.0).unwrap();
        let found = pages(first_fold);
        assert!((found as f64 / (x + y) as f64 - 0.96).abs() < 0.04, "{when_full}, {dies} dies: {found} of {}", x + y);

        let means = means_us(&outcome);
        let level = |from: u64, to: u64| {
            let within = (0..96).filter(|&interval| pages(interval) >= from && pages(interval + 1) <= to);
            let chosen: Vec<f64> = within.map(|interval| means[interval]).collect();
            chosen.iter().sum::<f64>() / chosen.len() as f64
        };
        let (first, second) = (level(0, x), level(x + 256, found));
        let third = level(x + y, LOGICAL / PAGE);
        assert!(1.5 * first < second && 1.2 * second < third, "{when_full}, {dies} dies: {first} {second} {third}");
    }
}

#[test]
fn a_trim_gives_a_dynamic_cache_its_room_back() {
    let mut requests = sequential(LOGICAL, 1, 0);
    requests.push(Request { arrival_ns: 0, sector: 0, sectors: (LOGICAL / 2 / 512) as u32, op: Op::Trim, handle: 0 });
    let outcome = replayed("pslc-dynamic", &[("budget", BUDGET)], 1, &requests, &fresh(0));
    // The blocks without data, and a few for data that are only in the cache.
    let allowed =
        |outcome: &Outcome| outcome.measured.metrics.get("cache_allowed_blocks").unwrap() - f64::from(CACHE_BLOCKS);
    let without_data = f64::from(LOGICAL_BLOCKS) / 2.0;
    assert!((without_data..without_data + 8.0).contains(&allowed(&outcome)), "{}", allowed(&outcome));
    requests.extend(sequential(LOGICAL / 4, 1, 0));
    let outcome = replayed("pslc-dynamic", &[("budget", BUDGET)], 1, &requests, &fresh(0));
    let without_data = f64::from(LOGICAL_BLOCKS) / 4.0;
    assert!((without_data..without_data + 14.0).contains(&allowed(&outcome)), "{}", allowed(&outcome));
    assert!(outcome.measured.metrics.get("cache_blocks") > Some(f64::from(CACHE_BLOCKS)), "it has grown again");
}

#[test]
fn blocks_that_stay_in_slc_mode_wear_by_themselves() {
    let writes = sequential(20 * LOGICAL, 1, 0);
    let region = region(1);
    let report = |name: &str, passes: u32, measured_passes: u32| {
        let plan = Plan { passes, measured_passes, ..Plan::default() };
        let outcome = replayed(name, &[("budget", BUDGET)], 1, &writes, &plan);
        let described = [RegionDescription { name: "tlc", chip: &region.chip, geometry: region.geometry }];
        Report::of(
            name,
            &described,
            &[],
            &outcome.measured,
            Some(&outcome.course),
            &TraceFacts::of("test", "generated", &writes),
        )
    };
    let fixed = report("pslc-static", 1, 1);
    let [slc, main] = &fixed.wear[..] else { panic!("two groups: {:?}", fixed.wear) };
    assert_eq!((slc.region.as_str(), slc.blocks, slc.endurance), ("tlc:slc", CACHE_BLOCKS, 30_000.0));
    assert_eq!((main.region.as_str(), main.blocks, main.endurance), ("tlc", LOGICAL_BLOCKS + 16, 3_000.0));
    let written = 20.0 * LOGICAL as f64;
    let cycles = written / CACHE as f64;
    assert!((slc.erases_mean - cycles).abs() <= 1.0, "{} cycles instead of {cycles}", slc.erases_mean);
    // The first erase of a cache block is in native mode, and yet is wear of the cache.
    let lifetime = |report: &Report| report.key_figures.lifetime_host_bytes.unwrap();
    let expected = written / slc.used.max(main.used);
    assert!((lifetime(&fixed) / expected - 1.0).abs() < 1e-9, "{} for {expected}", lifetime(&fixed));
    // A later pass wears by the difference.
    let (two, three) = (report("pslc-static", 2, 2), report("pslc-static", 3, 3));
    let worn = three.wear.iter().zip(&two.wear).map(|(three, two)| three.used - two.used).fold(0.0, f64::max);
    let last = report("pslc-static", 3, 1);
    assert!((lifetime(&last) * worn / written - 1.0).abs() < 1e-9, "{} for {}", lifetime(&last), written / worn);

    let shared = report("pslc-dynamic", 1, 1);
    assert_eq!(shared.wear.len(), 1, "blocks change places");
    // What a device has worn does not depend on what is measured.
    assert_eq!(report("pslc-dynamic", 3, 1).wear, report("pslc-dynamic", 3, 3).wear);
    assert!((3_000.0..30_000.0).contains(&shared.wear[0].endurance));
}
