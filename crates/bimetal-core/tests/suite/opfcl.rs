//! Properties of OP-FCL and its baselines on whole devices: accesses cost what the paper's model says, sizes follow the
//! load, every parameter has an effect. At the end, the paper's claims that hold, on a small scale;
//! `docs/papers/opfcl-2012.md` lists all claims.

use crate::support::{region, shape};
use bimetal_core::drive::{self, Drive, Model};
use bimetal_core::ledger::{DiskCounts, Ledger, Row};
use bimetal_core::media::{Cause, FlashOp, SimMedia, SimRegion, Simulation, Volume};
use bimetal_core::operation::DiskOp;
use bimetal_core::part::random::{below, unit};
use bimetal_core::replay::{self, Arrivals, Outcome, Plan};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, Scheme, Shape};
use bimetal_core::workload;

/// 16 MiB of flash in 64 blocks of 64 pages of 4 KiB.
const BLOCKS: u32 = 64;
const FLASH_PAGES: u64 = 64 * BLOCKS as u64;
/// The disk has 128 MiB.
const LOGICAL_PAGES: u64 = 8 * FLASH_PAGES;
const PAGE: u64 = 8;

fn flash() -> [SimRegion; 1] {
    [region("opfcl-slc", 64, BLOCKS, 1)]
}

/// The paper's disk as the constants of table 2, without a queue.
fn disk() -> Drive {
    Drive { model: Model::Constant, queue: 0, ..drive::find("atlas-10k-iv").unwrap() }
}

type Cache = (SimMedia, Box<dyn Scheme<SimMedia>>);

fn cache(name: &str, settings: &[(&str, &str)]) -> Cache {
    let settings: Vec<(String, String)> = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
    let volume = Volume { drive: disk(), sectors: LOGICAL_PAGES * PAGE };
    let shape = Shape { disks: vec![disk()], ..shape(&flash(), LOGICAL_PAGES * PAGE) };
    let media = SimMedia::new(&flash(), 1).with_disks(&[volume]).serial();
    (media, scheme::build(name, &shape, &settings).unwrap())
}

fn replayed(name: &str, settings: &[(&str, &str)], requests: &[Request], plan: &Plan) -> Outcome {
    let (mut media, mut scheme) = cache(name, settings);
    let outcome = replay::run(&mut media, &mut *scheme, requests, plan, &mut replay::to_the_end);
    scheme.check().unwrap();
    outcome
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    outcome.measured.metrics.get(name).unwrap()
}

fn request(op: Op, sector: u64, sectors: u64) -> Request {
    Request { arrival_ns: 0, sector, sectors: sectors as u32, op, handle: 0 }
}

/// Time of a request on an idle device, in nanoseconds.
fn time_ns((media, scheme): &mut Cache, request: Request) -> u64 {
    let start = media.end();
    media.begin(&request, start);
    scheme.serve(media, &request);
    media.end() - start
}

/// `C_PR`, `C_PROG`, `C_DR` and `C_DW` in nanoseconds: the flash's 100 us of transfer are rounded up in the chip's rate.
const READ: u64 = 125_000;
const PROGRAM: u64 = 300_000;
const DISK_READ: u64 = 4_556_889;
const DISK_WRITE: u64 = 4_956_889;

#[test]
fn an_access_costs_what_the_model_charges() {
    for name in ["opfcl", "rwfcl", "fpfcl"] {
        let mut settings = vec![("destage_group", "1"), ("checkpoint", "false"), ("summary_pages", "false")];
        let share = if name == "opfcl" { ("initial_spare_percent", "50") } else { ("cache_percent", "50") };
        settings.push(share);
        let mut cache = cache(name, &settings);
        cache.1.fill(&mut cache.0);
        assert_eq!(time_ns(&mut cache, request(Op::Read, 8, PAGE)), DISK_READ + PROGRAM, "{name}: read miss");
        assert_eq!(time_ns(&mut cache, request(Op::Read, 8, PAGE)), READ, "read hit");
        assert_eq!(time_ns(&mut cache, request(Op::Write, 8, PAGE)), PROGRAM, "write miss, with room");
        assert_eq!(time_ns(&mut cache, request(Op::Write, 8, PAGE)), PROGRAM, "write hit");
        assert_eq!(time_ns(&mut cache, request(Op::Read, 8, PAGE)), READ, "read hit in the write cache");
        // A full write cache, or a full cache, with dirty pages that are not used again; accesses to the disk never
        // continue.
        for page in 0..FLASH_PAGES / 2 {
            cache.0.end();
            time_ns(&mut cache, request(Op::Write, (2 * page + 3) * PAGE, PAGE));
        }
        let miss = time_ns(&mut cache, request(Op::Write, (2 * FLASH_PAGES + 3) * PAGE, PAGE));
        let collection = miss - (READ + DISK_WRITE + PROGRAM);
        // At times with a collection: an erase and copies.
        assert!(collection == 0 || collection >= 1_500_000, "{name}: write miss, full: {miss}");
    }
}

#[test]
fn part_of_a_page_is_completed_once() {
    let mut cache = cache("opfcl", &[]);
    cache.1.fill(&mut cache.0);
    assert_eq!(time_ns(&mut cache, request(Op::Write, 3, 2)), PROGRAM, "no fetch before a write");
    assert_eq!(time_ns(&mut cache, request(Op::Read, 3, 2)), READ, "what was written is there");
    assert_eq!(time_ns(&mut cache, request(Op::Write, 4, 2)), READ + PROGRAM, "joined in flash");
    assert_eq!(time_ns(&mut cache, request(Op::Read, 2, 2)), READ + DISK_READ + PROGRAM, "sector 2 is on the disk");
    assert_eq!(time_ns(&mut cache, request(Op::Read, 0, PAGE)), READ, "the page is whole");
    // A run of missing pages is one access: one positioning, and the transfer of all.
    let transfer = DISK_READ - 4_500_000;
    let run = time_ns(&mut cache, request(Op::Read, 80, 4 * PAGE));
    assert!(run.abs_diff(4_500_000 + 4 * transfer + 4 * PROGRAM) < 4, "{run}");
}

#[test]
fn what_was_never_written_or_is_trimmed_takes_no_work() {
    let mut cache = cache("opfcl", &[("sequential_unit", "0")]);
    assert_eq!(time_ns(&mut cache, request(Op::Read, 0, 1024)), 0);
    time_ns(&mut cache, request(Op::Write, 0, 64));
    time_ns(&mut cache, request(Op::Trim, 4, 56));
    assert_eq!(time_ns(&mut cache, request(Op::Read, 8, 48)), 0, "whole pages are gone");
    assert_eq!(time_ns(&mut cache, request(Op::Read, 0, 64)), 2 * READ, "the first and the last are not");
    assert!(cache.0.ledger().disks.iter().all(|disk| disk.busy().0 == 0));
}

/// Reads and writes of pages by Zipf's law, each over different pages.
fn mixture(count: u64, read_share: f64, read_pages: u64, written_pages: u64, seed: u64) -> Vec<Request> {
    let zipf = |pages: u64, seed: u64| {
        let settings: Vec<(String, String)> =
            [("requests", count.to_string()), ("span", (pages * 4096).to_string()), ("theta", "0.9".into())]
                .map(|(key, value)| (key.to_string(), value))
                .into();
        workload::build("zipf", &settings, seed).unwrap()
    };
    let mut state = seed;
    zipf(read_pages, seed)
        .zip(zipf(written_pages, seed + 1))
        .map(|(read, write)| {
            if unit(&mut state) < read_share {
                Request { op: Op::Read, arrival_ns: 0, ..read }
            } else {
                Request { op: Op::Write, arrival_ns: 0, sector: write.sector + read_pages * PAGE, ..write }
            }
        })
        .collect()
}

const PERIOD: (&str, &str) = ("period", "5000");

#[test]
fn sizes_follow_the_load() {
    let phases = [
        mixture(20_000, 1.0, 3 * FLASH_PAGES, FLASH_PAGES, 1),
        mixture(20_000, 0.0, FLASH_PAGES, 3 * FLASH_PAGES, 2),
        mixture(20_000, 0.0, FLASH_PAGES, FLASH_PAGES / 8, 3),
    ];
    // Earlier periods do not count, so that sizes follow at once.
    let settings = [PERIOD, ("curve_keep", "0"), ("rates", "period")];
    let outcome = replayed("opfcl", &settings, &phases.concat(), &Plan { intervals: 60, ..Plan::default() });
    let position = |name| outcome.measured.metrics.iter().position(|(known, _)| known == name).unwrap();
    let at = |interval: usize, name| outcome.course.intervals[interval].metrics[position(name)];
    let first = replayed("opfcl", &[PERIOD], &[], &Plan::default());
    let flash = metric(&first, "over_provisioned_mib");
    assert!((metric(&first, "read_limit_mib") + metric(&first, "write_limit_mib")) / flash > 0.9, "5 % spare at first");
    // Reads over more than the flash: most of it is for reads.
    assert!(at(19, "read_limit_mib") / flash > 0.75 && at(19, "clean_mib") / flash > 0.75);
    // Writes over more than the flash: much of it is for writes, but also much is spare.
    let written = at(39, "write_limit_mib") / flash;
    assert!((0.4..0.9).contains(&written) && at(39, "read_limit_mib") / flash < 0.1, "{written}");
    // Writes to an eighth of the flash: little more than that.
    assert!(at(59, "dirty_mib") / flash < 0.3, "{}", at(59, "dirty_mib") / flash);
    assert!(at(59, "over_provisioned_mib") / flash > 0.6);
}

/// Sizes move step by step, faster in idle time, and never beyond the pages that the flash holds (`check`).
#[test]
fn idle_time_empties_the_write_cache_to_its_limit() {
    let few = mixture(6000, 0.0, FLASH_PAGES, FLASH_PAGES / 16, 5);
    let requests = [mixture(20_000, 0.0, FLASH_PAGES, 2 * FLASH_PAGES, 4), few].concat();
    let spread = |gap_ns: u64| -> Vec<Request> {
        (0..).zip(&requests).map(|(index, request)| Request { arrival_ns: index * gap_ns, ..*request }).collect()
    };
    let excess = |gap_ns| {
        let plan = Plan { arrivals: Arrivals::Trace { speed: 1.0 }, idle_after_ns: 1_000_000, ..Plan::default() };
        let settings = [PERIOD, ("resize_pages", "100000"), ("initial_read_percent", "0")];
        let outcome = replayed("opfcl", &settings, &spread(gap_ns), &plan);
        (metric(&outcome, "dirty_mib") - metric(&outcome, "write_limit_mib"), metric(&outcome, "destaged_pages"))
    };
    let (busy, idle) = (excess(0), excess(50_000_000));
    assert!(idle.0 <= 0.0 && idle.0 <= busy.0, "{busy:?} {idle:?}");
    assert!(idle.1 > 0.0);
}

#[test]
fn a_stream_goes_past_the_cache() {
    let hot = mixture(30_000, 0.5, FLASH_PAGES / 3, FLASH_PAGES / 3, 6);
    let stream = |index: u64| {
        // A page longer than 128 KiB.
        let sector = (2 * FLASH_PAGES + index * 33 % (5 * FLASH_PAGES)) * PAGE;
        request(if index.is_multiple_of(2) { Op::Read } else { Op::Write }, sector, 264)
    };
    let requests: Vec<Request> = (0..)
        .zip(&hot)
        .flat_map(|(index, &hot)| [Some(hot), (index % 10 == 0).then(|| stream(index / 10))].into_iter().flatten())
        .collect();
    let hit_rate = |unit, requests: &[Request]| {
        let outcome = replayed("fpfcl", &[("sequential_unit", unit)], requests, &Plan::default());
        (metric(&outcome, "read_hit_rate"), metric(&outcome, "sequential_ratio"), outcome)
    };
    let (alone, _, _) = hit_rate("128KiB", &hot);
    let (past, sequential, outcome) = hit_rate("128KiB", &requests);
    let (through, none, _) = hit_rate("0", &requests);
    assert!((past - alone).abs() < 1e-9, "{past} {alone}: the stream leaves no trace");
    assert!(through < past - 0.1, "{through} {past}");
    assert!((sequential - 1.0 / 11.0).abs() < 1e-3 && none == 0.0);
    let host = |op| outcome.measured.ledger.disks[0].get(op, Cause::Host).count;
    assert_eq!((host(DiskOp::Read), host(DiskOp::Write)), (1500, 1500));
}

/// Every count of the ledger.
fn counts(ledger: &Ledger) -> Vec<u64> {
    let of_row = |row: &Row| FlashOp::ALL.map(|op| Cause::ALL.map(|cause| row.counts.get(op, cause))).concat();
    let of_disk = |disk: &DiskCounts| DiskOp::ALL.map(|op| Cause::ALL.map(|cause| disk.get(op, cause).count)).concat();
    ledger.rows.iter().flat_map(of_row).chain(ledger.disks.iter().flat_map(of_disk)).collect()
}

#[test]
fn every_parameter_acts() {
    let mut state = 8;
    let streams = (0..300).map(|index| request(Op::Read, below(&mut state, 1000) * PAGE + index % 3 * 32, 32));
    let mut requests = mixture(40_000, 0.4, FLASH_PAGES, FLASH_PAGES, 7);
    // Streams as long as the sequential unit, and longer ones.
    let streams = streams.zip([224, 300].into_iter().cycle());
    requests.extend(streams.flat_map(|(first, sectors)| [first, Request { sector: first.end(), sectors, ..first }]));
    requests.extend(mixture(10_000, 0.1, FLASH_PAGES, 2 * FLASH_PAGES, 9));
    // Pages that are read and written.
    let settings = [("requests", "40000"), ("span", "32MiB"), ("theta", "0.9"), ("read_share", "0.5")];
    let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let shared: Vec<Request> = workload::build("zipf", &settings, 10).unwrap().collect();
    let with = |name, key, value| {
        let mut settings = vec![("period", "2000"), (key, value)];
        if key == "sample_rate" {
            settings.push(("curve", "sampled"));
        }
        // Fine steps, so that small differences of costs matter.
        if ["read_hits", "victim"].contains(&key) {
            settings.push(("segment_bytes", "64KiB"));
        }
        // A flash that is nearly full, so that the utilisation of victims matters.
        if key == "victim" {
            settings.extend((name == "rwfcl").then_some(("cache_percent", "95")));
        }
        let requests = if key == "read_hits" { &shared } else { &requests };
        counts(&replayed(name, &settings, requests, &Plan::default()).measured.ledger)
    };
    for spec in ["opfcl", "rwfcl", "fpfcl"].map(|name| scheme::find(name).unwrap()) {
        for parameter in (spec.parameters)() {
            let (first, second) = match parameter.name {
                "initial_spare_percent" | "cache_percent" => ("40", "95"),
                "initial_read_percent" => ("0", "100"),
                "period" => ("2000", "9000"),
                "period_unit" => ("requests", "pages"),
                "segment_bytes" => ("64KiB", "1MiB"),
                "curve_keep" => ("0", "0.5"),
                "rates" => ("total", "period"),
                "read_hits" => ("reads", "reads_and_writes"),
                "curve" => ("exact", "sampled"),
                "sample_rate" => ("0.1", "0.5"),
                "victim" => ("fifo", "greedy"),
                "resize_pages" => ("1", "128"),
                "sequential_unit" => ("128KiB", "4KiB"),
                "sequential_rule" => ("longer", "as_long"),
                "destage_group" => ("1", "64"),
                "keep_clean" | "summary_pages" | "checkpoint" => ("false", "true"),
                "gc_free_percent" => ("1", "10"),
                other => panic!("`{other}` has no test"),
            };
            let (name, key) = (spec.name, parameter.name);
            assert!(with(name, key, first) != with(name, key, second), "`{key}` of `{name}` changes nothing");
        }
    }
}

/// Mean response in microseconds, collecting time in seconds, hit rate and erases of a run.
#[derive(Clone, Copy, Debug)]
struct Figures {
    mean_us: f64,
    collecting_s: f64,
    hit_rate: f64,
    erases: u64,
}

fn figures(name: &str, settings: &[(&str, &str)], requests: &[Request]) -> Figures {
    let outcome = replayed(name, settings, requests, &Plan::default());
    let row = &outcome.measured.ledger.rows[0];
    let collecting: u64 = FlashOp::ALL.iter().map(|&op| row.time(op, Cause::Gc).0).sum();
    Figures {
        mean_us: outcome.measured.reads.merged(&outcome.measured.writes).mean_ns() / 1e3,
        collecting_s: collecting as f64 / 1e9,
        hit_rate: metric(&outcome, "hit_rate"),
        erases: outcome.measured.ledger.erases[0].iter().map(|&count| u64::from(count)).sum(),
    }
}

const SWEEP: [&str; 8] = ["20", "30", "40", "50", "60", "70", "80", "90"];

fn sweep(name: &str, requests: &[Request]) -> Vec<Figures> {
    let one = |percent| {
        let settings: &[(&str, &str)] =
            if name == "fpfcl" { &[("cache_percent", percent)] } else { &[("cache_percent", percent), PERIOD] };
        figures(name, settings, requests)
    };
    SWEEP.iter().map(|&percent| one(percent)).collect()
}

fn best(sweep: &[Figures]) -> (usize, f64) {
    let mean = |index: &usize| sweep[*index].mean_us;
    let index = (0..sweep.len()).min_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
    (index, sweep[index].mean_us)
}

/// The trends of Fig. 6 to 8 and 14: a larger cache hits more and collects more, so that with writes the best size is
/// neither the smallest nor the largest; OP-FCL is as good as the best fixed size and wears the flash less than large
/// caches do.
#[test]
fn caching_less_is_better_where_data_are_written() {
    let requests = mixture(120_000, 0.3, FLASH_PAGES, 2 * FLASH_PAGES, 10);
    let adaptive = figures("opfcl", &[PERIOD], &requests);
    for name in ["rwfcl", "fpfcl"] {
        let sweep = sweep(name, &requests);
        for pair in sweep.windows(2) {
            assert!(pair[1].hit_rate > pair[0].hit_rate && pair[1].collecting_s >= pair[0].collecting_s, "{pair:?}");
        }
        let (index, mean_us) = best(&sweep);
        assert!((1..SWEEP.len() - 1).contains(&index), "{name}: {sweep:#?}");
        assert!(adaptive.mean_us < 1.05 * mean_us, "{name}: {adaptive:?}, best at {} %: {mean_us}", SWEEP[index]);
        assert!(adaptive.erases < sweep[SWEEP.len() - 1].erases, "{name}");
    }
}

/// The trend of the Search Engine trace in Fig. 6: with reads only, a larger cache is better, and separating reads and
/// writes makes no difference.
#[test]
fn caching_more_is_better_where_data_are_read() {
    let requests = mixture(120_000, 0.99, 3 * FLASH_PAGES, FLASH_PAGES / 8, 11);
    let (rw, fp) = (sweep("rwfcl", &requests), sweep("fpfcl", &requests));
    let adaptive = figures("opfcl", &[PERIOD], &requests).mean_us;
    assert_eq!((best(&rw).0, best(&fp).0), (SWEEP.len() - 1, SWEEP.len() - 1), "{rw:#?}");
    for (rw, fp) in rw.iter().zip(&fp).skip(2) {
        assert!((rw.mean_us / fp.mean_us - 1.0).abs() < 0.05, "{rw:?} {fp:?}");
    }
    assert!(adaptive < 1.05 * best(&rw).1, "{adaptive} {:?}", best(&rw));
}
