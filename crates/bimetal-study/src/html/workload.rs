//! The characteristics of the trace.

use bimetal_core::hit_rates::HitRatePoint;
use bimetal_core::profile::{HitClass, HotShare, Profile};
use bimetal_core::request::SECTOR_BYTES;

use super::Named;
use super::page::Page;
use super::table::Table;
use crate::characteristics::{self, share, size};
use crate::figure::{Axis, Plot, PlotKind, Series};
use crate::listing::Listing;
use crate::number::{SIZES, TIMES, common_unit, percent, plain, significant, thousands, with_unit};

/// The section's contents.
pub(super) fn section(page: &mut Page, profile: &Profile) {
    let Listing { heads, rows, .. } = characteristics::requests(profile);
    page.table(&Table::new(heads, rows));
    page.table(&facts(profile));
    let mut plots = vec![sizes(profile), updates(profile), hits(profile)];
    plots.extend(hot_set(profile));
    plots.push(footprint(profile));
    plots.extend(hit_rates(profile));
    page.plots(&plots);
}

fn facts(profile: &Profile) -> Table {
    let mut rows = vec![
        ("end of the last page", size(profile.footprint.span_bytes)),
        ("requests aligned to 4 KiB", share(profile.aligned_share)),
    ];
    if let Some(ratio) = profile.update_ratio {
        rows.push(("writes of a written sector, on average", significant(ratio)));
    }
    if let Some(hot) = &profile.hot_set {
        rows.push(("half of the page writes go to", size(hot.bytes_for_half)));
        rows.push(("90 % of the page writes go to", size(hot.bytes_for_90_percent)));
        rows.push(("writes of the hottest page", thousands(hot.writes_max)));
    }
    if let Some(arrivals) = &profile.arrivals {
        let time = |us: f64| with_unit(TIMES, us);
        if let Some(rate) = arrivals.requests_per_s {
            rows.push(("requests per second", significant(rate)));
        }
        rows.push(("median time between arrivals", time(arrivals.interval_p50_us)));
        rows.push(("its 99th percentile", time(arrivals.interval_p99_us)));
    }
    let heads = ["", "value"].map(str::to_owned).to_vec();
    Table::new(heads, rows.into_iter().map(|(label, value)| vec![label.to_owned(), value]).collect())
}

fn bars(title: &str, names: &str, values: &str, series: Vec<Series>) -> Plot {
    Plot { title: title.into(), kind: PlotKind::Bars, x: Axis::linear(names), y: Axis::linear(values), series }
}

/// The name of a size class: its smallest size.
fn class_name(sectors: u32) -> String {
    let bytes = (u64::from(sectors) * SECTOR_BYTES) as f64;
    let (unit, scale) = common_unit(SIZES, std::iter::once(bytes), 1.0);
    format!("{} {unit}", plain(bytes / scale))
}

fn sizes(profile: &Profile) -> Plot {
    let classes = || profile.sizes.iter().filter(|class| class.reads + class.writes > 0);
    let reads = classes().map(|class| (class_name(class.sectors), class.reads as f64)).collect();
    let writes = classes().map(|class| (class_name(class.sectors), class.writes as f64)).collect();
    let series = vec![Series::measured_by_name("reads", reads), Series::measured_by_name("writes", writes)];
    bars("Requests by size", "size, from", "requests", series)
}

fn updates(profile: &Profile) -> Plot {
    let ratio = profile.sizes.iter().filter_map(|class| Some((class.sectors, class.update_ratio?)));
    let points = ratio.map(|(sectors, ratio)| (class_name(sectors), ratio)).collect();
    bars(
        "Rewrites of sectors by size of the write",
        "size, from",
        "sectors written / distinct sectors written",
        vec![Series::measured_by_name("update ratio", points)],
    )
}

fn hits(profile: &Profile) -> Plot {
    let points = |classes: &[HitClass]| {
        let used = classes.iter().filter(|class| class.sectors > 0);
        used.map(|class| (class.hits as f64, class.sectors as f64)).collect()
    };
    Plot {
        title: "Sectors by how often they are read and written".into(),
        kind: PlotKind::Marks,
        x: Axis::logarithmic("times, from"),
        y: Axis::logarithmic("sectors"),
        series: vec![
            Series::measured("read", points(&profile.read_hits)),
            Series::measured("written", points(&profile.write_hits)),
        ],
    }
}

fn hot_set(profile: &Profile) -> Option<Plot> {
    let hot = profile.hot_set.as_ref()?;
    let point = |point: &HotShare| (format!("{} %", point.percent_of_pages), point.share_of_writes * 100.0);
    let points = hot.hottest.iter().map(point).collect();
    Some(bars(
        "Concentration of writes",
        "hottest of the written pages",
        "page writes to them (%)",
        vec![Series::measured_by_name("page writes (%)", points)],
    ))
}

fn footprint(profile: &Profile) -> Plot {
    let footprint = &profile.footprint;
    let mib = |bytes: u64| bytes as f64 / (1u64 << 20) as f64;
    let points = [
        ("touched", footprint.touched_bytes),
        ("read", footprint.read_bytes),
        ("written", footprint.written_bytes),
        ("read and written", footprint.both_bytes),
    ];
    let points = points.map(|(name, bytes)| (name.to_owned(), mib(bytes))).to_vec();
    bars("Footprint", "4-KiB pages", "size (MiB)", vec![Series::measured_by_name("size (MiB)", points)])
}

fn hit_rates(profile: &Profile) -> Option<Plot> {
    let rates = profile.hit_rates.as_ref()?;
    let series: [Named<HitRatePoint, Option<f64>>; 5] = [
        ("reads", |point| point.reads),
        ("writes", |point| point.writes),
        ("both", |point| point.all),
        ("reads, written pages only", |point| point.reads_of_written),
        ("writes, written pages only", |point| point.writes_of_written),
    ];
    let mib = |point: &HitRatePoint| point.cache_bytes as f64 / (1u64 << 20) as f64;
    let of = |(name, rate): Named<HitRatePoint, Option<f64>>| {
        let points = rates.points.iter().filter_map(|point| Some((mib(point), rate(point)? * 100.0)));
        Series::measured(name, points.collect())
    };
    let how = if rates.sampling_rate < 1.0 {
        format!(", from {} of the pages", percent(rates.sampling_rate))
    } else {
        String::new()
    };
    Some(Plot {
        title: format!("Hit rates of LRU caches{how}"),
        kind: PlotKind::Lines,
        x: Axis::logarithmic("size of the cache (MiB)"),
        y: Axis::linear("hit rate (%)"),
        series: series.into_iter().map(of).collect(),
    })
}
