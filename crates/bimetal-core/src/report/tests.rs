use super::*;
use crate::chip;
use crate::media::{Faults, SimMedia, SimRegion};
use crate::replay::{Plan, run, to_the_end};
use crate::request::Op;
use crate::scheme::{RegionShape, Shape, build};

fn writes(count: u64) -> Vec<Request> {
    let request = |number: u64| Request {
        arrival_ns: number * 1_000_000,
        sector: number * 8 % 4096,
        sectors: 8,
        op: if number % 4 == 3 { Op::Read } else { Op::Write },
        handle: 0,
    };
    (0..count).map(request).collect()
}

fn replayed(requests: &[Request], plan: &Plan) -> Report {
    let chip = chip::find("chang-mlc").unwrap();
    let geometry = Geometry::new(chip.page_bytes, chip.pages_per_block, 16, 1).unwrap();
    let region = SimRegion { chip: chip.clone(), geometry, channels: 1, faults: Faults::default() };
    let mut media = SimMedia::new(&[region], 1);
    let shape = Shape {
        logical_sectors: 8192,
        regions: vec![RegionShape { chip: chip.clone(), geometry }],
        disks: Vec::new(),
        seed: 1,
    };
    let mut scheme = build::<SimMedia>("pagemap", &shape, &[]).unwrap();
    let outcome = run(&mut media, scheme.as_mut(), requests, plan, &mut to_the_end);
    let regions = [RegionDescription { name: "mlc", chip: &chip, geometry }];
    Report::of(
        "pagemap",
        &regions,
        &[],
        &outcome.measured,
        Some(&outcome.course),
        &TraceFacts::of("test", "generated", requests),
    )
}

#[test]
fn figures_follow_from_counts() {
    let report = replayed(&writes(4000), &Plan::default());
    let (reads, programs, erases) = (
        report.count("mlc", FlashOp::Read),
        report.count("mlc", FlashOp::Program),
        report.count("mlc", FlashOp::Erase),
    );
    assert_eq!(report.response_us.count, 4000);
    assert_eq!(report.read_us.count, 1000);
    assert_eq!(report.read_us.max, 60.0);
    assert!(erases > 0 && programs >= 3000);
    assert_eq!(report.key_figures.write_amplification, Some(programs as f64 / 3000.0));
    let energy_uj = reads as f64 * 2.97 + programs as f64 * 39.6 + erases as f64 * 74.25;
    assert!((report.key_figures.energy_j * 1e6 - energy_uj).abs() < 1e-6 * energy_uj);
    assert_eq!(report.key_figures.cost_usd, 3.0 * 16.0 * 512.0 / (1 << 20) as f64);
    let time_us: f64 = report.ops.iter().map(|row| row.time_us).sum();
    assert!((time_us - report.simulated_s * 1e6).abs() < 1.0, "one die at depth 1 is never idle");
    let lifetime = report.key_figures.lifetime_host_bytes.unwrap();
    let filled = programs as f64 / f64::from(chip::find("chang-mlc").unwrap().pages_per_block);
    assert!(filled > erases as f64, "some blocks were still erased");
    assert!((lifetime - 3000.0 * 4096.0 * 10_000.0 * 16.0 / filled).abs() < 1.0);
    let years = lifetime / (3000.0 * 4096.0 / 3.999) / YEAR_S;
    assert!((report.key_figures.lifetime_years.unwrap() / years - 1.0).abs() < 1e-12);
}

#[test]
fn intervals_add_up_to_the_whole() {
    let report = replayed(&writes(4000), &Plan { intervals: 7, ..Plan::default() });
    assert_eq!(report.intervals.len(), 7);
    let erases: u64 = report.intervals.iter().flat_map(|interval| &interval.ops).map(|ops| ops.erase).sum();
    assert_eq!(erases, report.count("mlc", FlashOp::Erase));
    assert_eq!(report.intervals[6].requests, 4000);
    assert_eq!(report.intervals[6].metrics.len(), report.metrics.0.len());
}

#[test]
fn nothing_undefined_is_a_number() {
    let idle = replayed(&[], &Plan { intervals: 3, ..Plan::default() });
    assert_eq!(
        (idle.key_figures.write_amplification, idle.key_figures.lifetime_host_bytes, idle.key_figures.lifetime_years),
        (None, None, None)
    );
    assert_eq!(idle.response_us, ResponseFigures::default());
    assert_eq!(idle.ops, []);
    let busy = replayed(&writes(400), &Plan::default());
    assert_eq!(response_speedup(&busy, &idle), None);
    assert_eq!(energy_saving(&idle, &busy), None);
    assert_eq!(block_wearing(&busy.wear[0], &idle.wear[0]), None);
    assert_eq!(MetricFigures(vec![("nan", finite(f64::NAN))]).0[0].1, None);
}

#[test]
fn ratios_compare_as_the_paper_does() {
    let report = replayed(&writes(4000), &Plan::default());
    let mut slower = report.clone();
    slower.response_us.mean *= 1.8;
    slower.key_figures.energy_j *= 2.0;
    assert!((response_speedup(&slower, &report).unwrap() - 1.8).abs() < 1e-12);
    assert_eq!(energy_saving(&slower, &report), Some(0.5));
    assert_eq!(extra_cost(&slower, &report), Some(1.0));
    assert_eq!(block_wearing(&report.wear[0], &report.wear[0]), Some(1.0));
    let mut fast = report.wear[0].clone();
    fast.used *= 0.25;
    assert_eq!(phi(&fast, &report.wear[0]), Some(4.0));
    assert_eq!(phi(&report.wear[0], &fast), Some(4.0));
}

#[test]
fn trace_facts_count_a_page_once() {
    let facts = TraceFacts::of("test", "generated", &writes(1024));
    assert_eq!((facts.requests, facts.reads, facts.writes, facts.trims), (1024, 256, 768, 0));
    assert_eq!(facts.footprint_bytes, 512 * 4096);
    assert_eq!(facts.duration_s, 1.023);
}
