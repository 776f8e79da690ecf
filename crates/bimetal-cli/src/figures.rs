//! The figures of one scheme in full.

use bimetal_core::report::{Figure, IntervalFigures, KeyFigures, MetricFigures, Overload, Report, ResponseFigures};
use bimetal_study::compare::Entry;
use bimetal_study::listing::{self, Listing, Rows, Sheet};
use bimetal_study::{headline, scale};

use crate::number::{self, IN_BURSTS, NOTHING, TIMES, common_unit, percent, significant, thousands, with_unit};
use crate::table::{bold, pairs, plain, remark, right_aligned, sheet, sparkline};

/// All tables.
pub fn all(entry: &Entry) -> String {
    let report = &entry.report;
    let sections = [
        (format!("Scheme {}", report.scheme), summary(entry)),
        ("Service time".to_owned(), service(entry)),
        (main_title(entry).to_owned(), responses(entry)),
        ("Operations".to_owned(), listed(listing::operations(report))),
        ("Wear since the device was filled".to_owned(), wear(report)),
        ("Figures of the scheme".to_owned(), metrics(&report.metrics)),
        ("Figures of the controller".to_owned(), metrics(&report.controller)),
        ("Over time".to_owned(), over_time(&report.intervals, main_title(entry))),
    ];
    let shown = sections.iter().filter(|(_, text)| !text.is_empty());
    shown.map(|(title, text)| format!("\n{}\n{text}", bold(title))).collect()
}

fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| NOTHING.to_owned(), show)
}

fn summary(entry: &Entry) -> String {
    let report = &entry.report;
    let regions = entry.regions.iter().map(|region| format!("{} {}", region.name, percent(region.busy)));
    let disks = entry.disks.iter().map(|disk| format!("{} {}", disk.name, percent(disk.busy)));
    let mut rows = vec![
        ("simulated time", with_unit(TIMES, report.simulated_s * 1e6)),
        ("busy", regions.chain(disks).collect::<Vec<_>>().join(", ")),
    ];
    rows.extend(KeyFigures::ALL.iter().map(|figure| (figure.title, key_figure(entry, figure))));
    if entry.falls_behind() {
        let trend = &report.load.response_trend_us;
        let (late, most) = (number::behind(entry.backlog_s), trend.last().copied().unwrap_or_default());
        rows.insert(
            1,
            ("falls behind", format!("by {late}; responses {} up to {}", sparkline(trend), with_unit(TIMES, most))),
        );
    }
    let parameters = entry.device.settings().into_iter().map(|(key, value)| format!("{key}={value}"));
    let parameters = parameters.collect::<Vec<_>>();
    if !parameters.is_empty() {
        rows.push(("parameters", parameters.join(" ")));
    }
    pairs(rows.into_iter().map(|(label, value)| (label.to_owned(), value)).collect())
}

/// A figure with its unit. An extrapolated figure also shows the number of overwrites on which it is based.
fn key_figure(entry: &Entry, figure: &Figure<KeyFigures>) -> String {
    if (figure.of)(&entry.report.key_figures).is_none() {
        return NOTHING.to_owned();
    }
    let (unit, size) = scale::of_figure(std::slice::from_ref(entry), figure);
    let text = format!("{} {unit}", headline::shown(entry, figure, size));
    if !(figure.is_extrapolated() && entry.is_extrapolated()) {
        return text.trim_end().to_owned();
    }
    format!("{text} (from {} overwrites; use `--repeat` and `--measure`)", significant(entry.lifetime_overwrites))
}

/// Title for the times of the main replay.
fn main_title(entry: &Entry) -> &'static str {
    if headline::time_name(&entry.arrivals) == "service" { "Service time" } else { "Response" }
}

/// Service times, in addition to responses.
fn service(entry: &Entry) -> String {
    let reads_and_writes = entry.service_read_us.as_ref().zip(entry.service_write_us.as_ref());
    let Some((all, (reads, writes))) = entry.service_beside().zip(reads_and_writes) else { return String::new() };
    times([("all", all), ("reads", reads), ("writes", writes)], "")
}

/// Times of the main replay.
fn responses(entry: &Entry) -> String {
    if entry.falls_behind() {
        return remark(&format!(
            "none: the device falls behind by {}, so responses would only reflect the length of the trace",
            number::behind(entry.backlog_s)
        ));
    }
    let report = &entry.report;
    let mark = if report.load.overload == Overload::Bursts { IN_BURSTS } else { "" };
    times([("all", &report.response_us), ("reads", &report.read_us), ("writes", &report.write_us)], mark)
}

/// Mean and percentiles in one unit.
fn times(kinds: [(&str, &ResponseFigures); 3], mark: &str) -> String {
    let kinds = || kinds.into_iter().filter(|(_, figures)| figures.count > 0);
    if kinds().next().is_none() {
        return remark("none: the trace has neither reads nor writes");
    }
    let (unit, us) = common_unit(TIMES, kinds().map(|(_, figures)| figures.mean), 1.0);
    let row = |(name, figures): (&str, &ResponseFigures)| {
        let time = |figure: &Figure<ResponseFigures>| {
            optional((figure.of)(figures), |us_of| format!("{mark}{}", significant(us_of / us)))
        };
        [name.to_owned(), thousands(figures.count)].into_iter().chain(ResponseFigures::ALL.iter().map(time)).collect()
    };
    // The unit appears once, for all columns.
    let head = |(nth, figure): (usize, &Figure<ResponseFigures>)| {
        if nth == 0 { number::labelled(figure.head, unit) } else { figure.head.to_owned() }
    };
    let heads: Vec<String> = ["".to_owned(), "count".to_owned()]
        .into_iter()
        .chain(ResponseFigures::ALL.iter().enumerate().map(head))
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    plain(&right_aligned(&heads, 1), kinds().map(row).collect())
}

/// The table of a listing.
pub fn listed(Listing { heads, rows, text_columns }: Listing) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    plain(&right_aligned(&heads, text_columns), rows)
}

fn wear(report: &Report) -> String {
    let mut text = listed(listing::wear(report));
    for faults in &report.faults {
        text.push_str(&format!(
            "  {}: {} programs and {} erases failed, {} blocks replaced, {} failures without a replacement\n",
            faults.region,
            thousands(faults.counts.program_failures),
            thousands(faults.counts.erase_failures),
            thousands(faults.counts.blocks_replaced),
            thousands(faults.counts.failures_unreplaced)
        ));
    }
    text
}

fn metrics(figures: &MetricFigures) -> String {
    let rows = figures.0.iter();
    pairs(rows.map(|&(name, value)| (name.replace('_', " "), optional(value, number::plain))).collect())
}

/// Maximum number of intervals in a list; more intervals are drawn.
const LISTED_MAX: usize = 24;

fn over_time(intervals: &[IntervalFigures], title: &str) -> String {
    if intervals.len() < 2 {
        return String::new();
    }
    let means: Vec<f64> = intervals.iter().map(|interval| interval.response_mean_us).collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let text = format!("  mean {}  {}  up to {}\n", title.to_lowercase(), sparkline(&means), with_unit(TIMES, most));
    if intervals.len() > LISTED_MAX {
        return text;
    }
    let regions: Vec<&str> = intervals[0].ops.iter().map(|ops| ops.region.as_str()).collect();
    let (end, end_s) = common_unit(TIMES, intervals.iter().map(|interval| interval.end_s * 1e6), 1.0);
    let (unit, us) = common_unit(TIMES, means.iter().copied(), 1.0);
    let times = ["mean", "longest"].map(|name| format!("{} ({unit})\n{name}", title.to_lowercase()));
    let heads: Vec<String> = ["requests".to_owned(), format!("time\n({end})")]
        .into_iter()
        .chain(times)
        .chain(regions.iter().flat_map(|region| ["programs", "erases"].map(|op| format!("{region}\n{op}"))))
        .chain(intervals[0].disks.iter().flat_map(|ops| ["reads", "writes"].map(|op| format!("{}\n{op}", ops.disk))))
        .collect();
    let row = |interval: &IntervalFigures| {
        let times = [interval.end_s * 1e6 / end_s, interval.response_mean_us / us, interval.response_max_us / us];
        std::iter::once(thousands(interval.requests))
            .chain(times.map(significant))
            .chain(interval.ops.iter().flat_map(|ops| [thousands(ops.program), thousands(ops.erase)]))
            .chain(interval.disks.iter().flat_map(|ops| [thousands(ops.read), thousands(ops.write)]))
            .collect()
    };
    let rows = intervals.iter().map(row).collect();
    text + &sheet(&Sheet { heads, groups: vec![Rows { title: None, rows }] })
}
