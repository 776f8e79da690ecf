//! The figures of one scheme in full.

use bimetal_core::report::{IntervalFigures, Overload, Report, ResponseFigures};
use bimetal_study::compare::Entry;
use bimetal_study::listing::{self, Listing};

use crate::number::{
    self, IN_BURSTS, NOTHING, OVERLOAD, RATES, SIZES, TIMES, dollars, percent, significant, thousands, with_unit,
};
use crate::table::{bold, pairs, plain, right_aligned, sparkline, width};

/// All tables.
pub fn all(entry: &Entry) -> String {
    let report = &entry.report;
    let sections = [
        (format!("Scheme {}", report.scheme), summary(entry)),
        ("Response".to_owned(), responses(report)),
        ("Operations".to_owned(), listed(listing::operations(report))),
        ("Wear".to_owned(), wear(report)),
        ("Figures of the scheme".to_owned(), metrics(report)),
        ("Over time".to_owned(), over_time(&report.intervals)),
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
        ("write amplification", optional(report.write_amplification, |value| format!("{} x", significant(value)))),
        ("host writes until worn", optional(report.lifetime_host_bytes, |bytes| with_unit(SIZES, bytes))),
        ("life at the trace's rate", optional(report.lifetime_years, |years| format!("{} years", significant(years)))),
        ("energy", format!("{} J", significant(report.energy_j))),
        ("cost", format!("{} USD", dollars(report.cost_usd))),
    ];
    if report.load.overload == Overload::Growing {
        let (behind, trend) = (report.load.backlog_s * 1e6, &report.load.response_trend_us);
        let most = trend.last().copied().unwrap_or_default();
        let what = format!("{} behind at the end", with_unit(TIMES, behind));
        rows.insert(
            1,
            ("overload", format!("{what}; responses grow {} to {}", sparkline(trend), with_unit(TIMES, most))),
        );
    }
    let parameters = entry.device.settings().into_iter().map(|(key, value)| format!("{key}={value}"));
    let parameters = parameters.collect::<Vec<_>>();
    if !parameters.is_empty() {
        rows.push(("parameters", wrapped(&parameters)));
    }
    let speed = format!("{} requests/s", with_unit(RATES, entry.speed.requests_per_s));
    rows.push(("simulated at", speed));
    pairs(rows.into_iter().map(|(label, value)| (label.to_owned(), value)).collect())
}

/// Words on lines of the terminal's width, indented as the values of [`summary`].
fn wrapped(words: &[String]) -> String {
    const INDENT: &str = "\n                            ";
    let width = width() + 1 - INDENT.len();
    let mut text = String::new();
    let mut used = 0;
    for word in words {
        if used > 0 && used + word.len() > width {
            text.push_str(INDENT);
            used = 0;
        } else if used > 0 {
            text.push(' ');
        }
        text.push_str(word);
        used += word.len() + 1;
    }
    text
}

fn responses(report: &Report) -> String {
    let kinds = [("all", &report.response_us), ("reads", &report.read_us), ("writes", &report.write_us)];
    let kinds = kinds.into_iter().filter(|(_, figures)| figures.count > 0);
    let row = |(name, figures): (&str, &ResponseFigures)| {
        let ResponseFigures { count, mean, p50, p95, p99, p999, max } = *figures;
        let shown = |us| match report.load.overload {
            Overload::Growing => OVERLOAD.to_owned(),
            Overload::Bursts => format!("{IN_BURSTS}{}", with_unit(TIMES, us)),
            Overload::None => with_unit(TIMES, us),
        };
        let times = [mean, p50, p95, p99, p999, max].map(shown);
        [name.to_owned(), thousands(count)].into_iter().chain(times).collect()
    };
    let heads = ["", "count", "mean", "median", "95 %", "99 %", "99.9 %", "longest"];
    plain(&right_aligned(&heads, 1), kinds.map(row).collect())
}

/// A table of what is listed.
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

fn metrics(report: &Report) -> String {
    let rows = report.metrics.0.iter();
    pairs(rows.map(|&(name, value)| (name.replace('_', " "), optional(value, number::plain))).collect())
}

/// More intervals than this are drawn, not listed.
const LISTED_MAX: usize = 24;

fn over_time(intervals: &[IntervalFigures]) -> String {
    if intervals.len() < 2 {
        return String::new();
    }
    let means: Vec<f64> = intervals.iter().map(|interval| interval.response_mean_us).collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let text = format!("  mean response  {}  up to {}\n", sparkline(&means), with_unit(TIMES, most));
    if intervals.len() > LISTED_MAX {
        return text;
    }
    let regions: Vec<&str> = intervals[0].ops.iter().map(|ops| ops.region.as_str()).collect();
    let heads: Vec<String> = ["requests", "time", "mean response", "longest"]
        .map(str::to_owned)
        .into_iter()
        .chain(regions.iter().flat_map(|region| [format!("{region} programs"), format!("{region} erases")]))
        .chain(intervals[0].disks.iter().flat_map(|ops| [format!("{} reads", ops.disk), "writes".to_owned()]))
        .collect();
    let row = |interval: &IntervalFigures| {
        let times = [interval.end_s * 1e6, interval.response_mean_us, interval.response_max_us];
        std::iter::once(thousands(interval.requests))
            .chain(times.map(|us| with_unit(TIMES, us)))
            .chain(interval.ops.iter().flat_map(|ops| [thousands(ops.program), thousands(ops.erase)]))
            .chain(interval.disks.iter().flat_map(|ops| [thousands(ops.read), thousands(ops.write)]))
            .collect()
    };
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    text + &plain(&right_aligned(&heads, 0), intervals.iter().map(row).collect())
}
