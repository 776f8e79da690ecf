//! Responses, operations and the schemes' own figures over the measured requests.

use bimetal_core::report::{IntervalAccesses, IntervalFigures, IntervalOps, Report};

use super::Named;
use super::page::Page;
use super::times::{Time, main_time};
use crate::compare::Entry;
use crate::figure::{Axis, Plot, PlotKind, Points, Series};

/// The sections; none where nothing was measured over time.
pub(super) fn sections(page: &mut Page, entries: &[Entry]) {
    let reports: Vec<&Report> =
        entries.iter().map(|entry| &entry.report).filter(|report| report.intervals.len() > 1).collect();
    let Some(intervals) = reports.iter().map(|report| report.intervals.len()).max() else { return };
    page.folded_section("Over time");
    let hint = "; a click on a name in a legend hides it, a double click shows it alone";
    let hint = if reports.len() > 1 { hint } else { "" };
    page.paragraph(&format!("The measured requests in {intervals} intervals{hint}."));
    let mut plots = responses(&reports, main_time(entries));
    if let [report] = reports.as_slice() {
        plots.extend(operations(report));
    }
    page.plots(&plots);
    page.folded_section("Adaptation over time");
    page.paragraph(if entries.len() == 1 {
        "The scheme's own figures that change, at the end of each interval."
    } else {
        "The schemes' own figures that rise and fall, at the end of each interval; `bimetal replay` shows the counts too."
    });
    page.plots(&metrics(&reports));
}

fn line(title: impl Into<String>, y: Axis, series: Vec<Series>) -> Plot {
    Plot { title: title.into(), kind: PlotKind::Lines, x: Axis::linear("measured requests"), y, series }
}

fn over(report: &Report, value: impl Fn(&IntervalFigures) -> Option<f64>) -> Vec<(f64, f64)> {
    report.intervals.iter().filter_map(|interval| Some((interval.requests as f64, value(interval)?))).collect()
}

/// Mean responses; of one scheme the longest too.
fn responses(reports: &[&Report], time: Time) -> Vec<Plot> {
    let axis = || Axis::logarithmic(format!("{} (ms)", time.name));
    let positive = |us: f64| (us > 0.0).then_some(us / 1e3);
    let mean = |report: &Report| over(report, |interval| positive(interval.response_mean_us));
    let longest = |report: &Report| over(report, |interval| positive(interval.response_max_us));
    if let [report] = reports {
        let series = vec![Series::measured("mean", mean(report)), Series::measured("longest", longest(report))];
        return vec![line(format!("{} within each interval", time.title), axis(), series)];
    }
    let of = |points: &dyn Fn(&Report) -> Vec<(f64, f64)>| {
        reports.iter().map(|report| Series::measured(&report.scheme, points(report))).collect()
    };
    vec![
        line(format!("Mean {} within each interval", time.name), axis(), of(&mean)),
        line(format!("Longest {} within each interval", time.name), axis(), of(&longest)),
    ]
}

/// What a region or a disk did within each interval.
fn operations(report: &Report) -> Vec<Plot> {
    let Some(first) = report.intervals.first() else { return Vec::new() };
    let mut plots = Vec::new();
    for (index, row) in first.ops.iter().enumerate() {
        let counts: [Named<IntervalOps, u64>; 3] = [
            ("pages read", |ops| ops.read),
            ("pages programmed", |ops| ops.program),
            ("blocks erased", |ops| ops.erase),
        ];
        let of = |(name, count): Named<IntervalOps, u64>| {
            Series::measured(name, over(report, |interval| interval.ops.get(index).map(|ops| count(ops) as f64)))
        };
        let title = format!("Operations of {} within each interval", row.region);
        plots.push(line(title, Axis::linear("operations"), counts.into_iter().map(of).collect()));
    }
    for (index, row) in first.disks.iter().enumerate() {
        let of = |name: &str, count: &dyn Fn(&IntervalAccesses) -> u64| {
            Series::measured(name, over(report, |interval| interval.disks.get(index).map(|disk| count(disk) as f64)))
        };
        let series = vec![of("reads", &|disk| disk.read), of("writes", &|disk| disk.write)];
        plots.push(line(format!("Accesses to {} within each interval", row.disk), Axis::linear("accesses"), series));
    }
    plots
}

/// A diagram for each of the schemes' own figures: of one scheme all that change, of several those that are no counts.
fn metrics(reports: &[&Report]) -> Vec<Plot> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in reports.iter().flat_map(|report| &report.metrics.0) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let points = |report: &Report, name: &str| {
        let index = report.metrics.0.iter().position(|(known, _)| *known == name)?;
        Some(over(report, |interval| interval.metrics.get(index).copied().flatten()))
    };
    let plot = |name: &str| {
        let has = |report: &&Report| Some(Series::measured(&report.scheme, points(report, name)?));
        line(
            name.replace('_', " "),
            Axis::linear(name.replace('_', " ")),
            reports.iter().filter_map(has).filter(|series| !series.is_empty()).collect(),
        )
    };
    let is_shown = |plot: &Plot| {
        plot.series.iter().any(|series| {
            let Points::Numbers(points) = &series.points else { return false };
            let mut steps = points.windows(2).map(|pair| pair[1].1 - pair[0].1);
            if reports.len() == 1 { steps.any(|step| step != 0.0) } else { steps.any(|step| step < 0.0) }
        })
    };
    names.into_iter().map(plot).filter(is_shown).collect()
}
