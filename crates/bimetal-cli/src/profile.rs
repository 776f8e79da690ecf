//! `bimetal profile`: characteristics of a workload.

use bimetal_core::hit_rates::{HitRatePoint, HitRates};
use bimetal_core::profile::{CurvePlan, HitClass, OpProfile, Profile, SizeClass};

use crate::args::ProfileArgs;
use crate::failure::Failure;
use crate::files::Files;
use crate::number::{NOTHING, SIZES, TIMES, percent, significant, thousands, with_unit};
use crate::profiled::Profiled;
use crate::table::{Align, bold, pairs, plain, remark, right_aligned};
use crate::{header, output, setup, warn};

/// Runs the command.
pub fn run(args: &ProfileArgs) -> Result<(), Failure> {
    Files::default().reads(&args.trace.traces).json(&args.json).check()?;
    let workload = setup::workload(&args.trace)?;
    for warning in &workload.warnings {
        warn(warning);
    }
    let curves = CurvePlan { points: args.curve_points, sampling_rate: args.sample };
    workload.check_sample(&curves).map_err(|error| Failure::usage(format!("`--sample`: {error}")))?;
    let profiled = Profiled {
        bimetal: env!("CARGO_PKG_VERSION"),
        profile: workload.profile(&curves),
        trace: workload.facts,
        warnings: workload.warnings,
    };
    output::emit(&args.json, &profiled, || {
        let profile = &profiled.profile;
        let sections = [
            ("Requests", requests(profile)),
            ("Addresses", addresses(profile)),
            ("Sizes", sizes(&profile.sizes)),
            ("Sectors by how often they are hit", hits(profile)),
            ("Hit rates by cache size", hit_rates(profile)),
            ("Arrivals", arrivals(profile)),
        ];
        let shown = sections.iter().filter(|(_, text)| !text.is_empty());
        let sections: String = shown.map(|(title, text)| format!("\n{}\n{text}", bold(title))).collect();
        header::trace(&profiled.trace) + &sections
    })
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), percent)
}

fn size(bytes: u64) -> String {
    with_unit(SIZES, bytes as f64)
}

fn requests(profile: &Profile) -> String {
    let kinds = [("reads", &profile.reads), ("writes", &profile.writes), ("trims", &profile.trims)];
    let row = |(name, of): (&str, &OpProfile)| {
        let values =
            [thousands(of.requests), size(of.bytes), with_unit(SIZES, of.mean_bytes), share(of.sequential_share)];
        std::iter::once(name.to_owned()).chain(values).collect()
    };
    let rows = kinds.into_iter().filter(|(_, of)| of.requests > 0).map(row).collect();
    plain(&right_aligned(&["", "count", "bytes", "mean size", "sequential"], 1), rows)
}

fn addresses(profile: &Profile) -> String {
    let footprint = &profile.footprint;
    let mut rows = vec![
        ("touched 4-KiB pages", size(footprint.touched_bytes)),
        ("of them read", size(footprint.read_bytes)),
        ("of them written", size(footprint.written_bytes)),
        ("of them read and written", size(footprint.both_bytes)),
        ("end of the last page", size(footprint.span_bytes)),
        ("requests aligned to 4 KiB", share(profile.aligned_share)),
        (
            "writes of a written sector",
            profile
                .update_ratio
                .map_or_else(|| NOTHING.to_owned(), |ratio| format!("{} on average", significant(ratio))),
        ),
    ];
    if let Some(hot) = &profile.hot_set {
        rows.push(("half of the page writes", format!("go to {}", size(hot.bytes_for_half))));
        rows.push(("90 % of the page writes", format!("go to {}", size(hot.bytes_for_90_percent))));
        let curve =
            hot.hottest.iter().map(|point| format!("{} %: {}", point.percent_of_pages, percent(point.share_of_writes)));
        rows.push(("share of the hottest pages", curve.collect::<Vec<_>>().join(", ")));
        rows.push(("writes of the hottest page", thousands(hot.writes_max)));
    }
    pairs(rows.into_iter().map(|(label, value)| (label.to_owned(), value)).collect())
}

fn sizes(classes: &[SizeClass]) -> String {
    let used = |class: &&SizeClass| class.reads + class.writes > 0;
    let row = |class: &SizeClass| {
        let ratio = class.update_ratio.map_or_else(|| NOTHING.to_owned(), significant);
        vec![size(u64::from(class.sectors) * 512), thousands(class.reads), thousands(class.writes), ratio]
    };
    let heads = ["from", "reads", "writes", "writes of a written sector"].map(|head| (head, Align::Right));
    plain(&heads, classes.iter().filter(used).map(row).collect())
}

fn hits(profile: &Profile) -> String {
    let sectors = |classes: &[HitClass], hits: u64| {
        let found = classes.iter().find(|class| class.hits == hits).map(|class| class.sectors);
        found.filter(|&sectors| sectors > 0).map_or_else(|| NOTHING.to_owned(), thousands)
    };
    let mut counts: Vec<u64> = profile.write_hits.iter().chain(&profile.read_hits).map(|class| class.hits).collect();
    counts.sort_unstable();
    counts.dedup();
    let row = |hits: u64| vec![thousands(hits), sectors(&profile.read_hits, hits), sectors(&profile.write_hits, hits)];
    let rows: Vec<Vec<String>> = counts.into_iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    plain(&["from", "sectors read", "sectors written"].map(|head| (head, Align::Right)), rows)
}

fn hit_rates(profile: &Profile) -> String {
    let Some(HitRates { sampling_rate, points }) = &profile.hit_rates else { return String::new() };
    let how = if *sampling_rate < 1.0 {
        format!("estimated from {} of the pages", percent(*sampling_rate))
    } else {
        "exact".to_owned()
    };
    let what = "LRU caches of all accessed 4-KiB pages, and of written pages only; reads look in both";
    let touched = profile.footprint.touched_bytes as f64;
    let row = |point: &HitRatePoint| {
        let sizes = [size(point.cache_bytes), percent(point.cache_bytes as f64 / touched)];
        let rates = [point.reads, point.writes, point.all, point.reads_of_written, point.writes_of_written].map(share);
        sizes.into_iter().chain(rates).collect()
    };
    let heads = ["size", "of all pages", "reads", "writes", "both", "written: reads", "writes"];
    remark(&format!("{what}; {how}"))
        + &plain(&heads.map(|head| (head, Align::Right)), points.iter().map(row).collect())
}

fn arrivals(profile: &Profile) -> String {
    let Some(arrivals) = &profile.arrivals else { return String::new() };
    let time = |us: f64| with_unit(TIMES, us);
    let rate = arrivals.requests_per_s.map_or_else(|| NOTHING.to_owned(), significant);
    let bytes = arrivals.bytes_per_s.map_or_else(|| NOTHING.to_owned(), |rate| format!("{}/s", with_unit(SIZES, rate)));
    let rows = [
        ("duration", time(arrivals.duration_s * 1e6)),
        ("requests per second", rate),
        ("bytes per second", bytes),
        ("mean interval", time(arrivals.interval_mean_us)),
        ("median interval", time(arrivals.interval_p50_us)),
        ("99th percentile", time(arrivals.interval_p99_us)),
        ("longest interval", time(arrivals.interval_max_us)),
    ];
    pairs(rows.into_iter().map(|(label, value)| (label.to_owned(), value)).collect())
}
