//! Responses, operations and the figures by which schemes adapt, over the measured requests.

use std::slice;

use bimetal_core::report::{IntervalAccesses, IntervalFigures, IntervalOps, Report};
use bimetal_core::scheme::{self, Adaptation};

use super::Named;
use super::page::Page;
use super::times::{Time, main_time};
use crate::compare::Entry;
use crate::figure::{Axis, Plot, PlotKind, Points, Series};
use crate::scale::Scale;

/// Adds the sections; none without measurements over time.
pub(super) fn sections(page: &mut Page, entries: &[Entry]) {
    let reports: Vec<&Report> =
        entries.iter().map(|entry| &entry.report).filter(|report| report.intervals.len() > 1).collect();
    let Some(intervals) = reports.iter().map(|report| report.intervals.len()).max() else { return };
    page.folded_section("Over time");
    let hint = "; a click on a name in a legend hides it, a double click shows it alone";
    let hint = if reports.len() > 1 { hint } else { "" };
    page.paragraph(&format!("The measured requests in {intervals} intervals{hint}."));
    let mut plots = responses(&reports, main_time(entries), Scale::of(entries).time);
    if let [report] = reports.as_slice() {
        plots.extend(operations(report));
    }
    page.plots(&plots);
    adaptation(page, &reports);
    if let [report] = reports.as_slice() {
        counts(page, report);
    }
}

/// The figures by which schemes adapt, at the end of each interval: an explanation of each, and its plot if it changed.
fn adaptation(page: &mut Page, reports: &[&Report]) {
    let (mut sentences, mut plots) = (Vec::new(), Vec::new());
    for adaptation in adaptations(reports) {
        let Adaptation { metric, title, unit, meaning } = adaptation;
        let series: Vec<Series> = reports
            .iter()
            .filter(|report| adapts(report).contains(adaptation))
            .map(|report| Series::measured(&report.scheme, metric_over(report, metric)))
            .filter(|series| !series.is_empty())
            .collect();
        // A parameter can switch off an adaptation.
        if series.is_empty() {
            continue;
        }
        let changes = series.iter().any(changes);
        sentences.push(format!("{title} (`{metric}`): {meaning}{}", if changes { "" } else { " It did not change." }));
        if changes {
            plots.push(line(*title, Axis::linear(*unit), series));
        }
    }
    if sentences.is_empty() {
        return;
    }
    page.folded_section("Adaptation over time");
    page.list("facts", &sentences);
    page.plots(&plots);
}

/// The other figures of a single scheme that change over time.
fn counts(page: &mut Page, report: &Report) {
    let adaptations = adaptations(slice::from_ref(&report));
    let names = report.metrics.0.iter().map(|(name, _)| *name);
    let others = names.filter(|name| adaptations.iter().all(|adaptation| adaptation.metric != *name));
    let plots: Vec<Plot> = others
        .map(|name| (name, Series::measured(&report.scheme, metric_over(report, name))))
        .filter(|(_, series)| changes(series))
        .map(|(name, series)| line(name.replace('_', " "), Axis::linear(name.replace('_', " ")), vec![series]))
        .collect();
    if !plots.is_empty() {
        page.folded_section("Other figures of the scheme over time");
        page.plots(&plots);
    }
}

/// The figures by which the schemes adapt, without duplicates.
fn adaptations(reports: &[&Report]) -> Vec<&'static Adaptation> {
    let mut found = Vec::new();
    for adaptation in reports.iter().flat_map(|report| adapts(report)) {
        if !found.contains(&adaptation) {
            found.push(adaptation);
        }
    }
    found
}

fn adapts(report: &Report) -> &'static [Adaptation] {
    scheme::find(&report.scheme).map_or(&[], |spec| spec.adapts)
}

/// A figure of the scheme at the end of each interval; empty if the scheme does not report it.
fn metric_over(report: &Report, name: &str) -> Vec<(f64, f64)> {
    let index = report.metrics.0.iter().position(|(known, _)| *known == name);
    index.map_or_else(Vec::new, |index| over(report, |interval| interval.metrics.get(index).copied().flatten()))
}

fn changes(series: &Series) -> bool {
    let Points::Numbers(points) = &series.points else { return false };
    points.windows(2).any(|pair| pair[0].1 != pair[1].1)
}

fn line(title: impl Into<String>, y: Axis, series: Vec<Series>) -> Plot {
    Plot { title: title.into(), kind: PlotKind::Lines, x: Axis::linear("measured requests"), y, series }
}

fn over(report: &Report, value: impl Fn(&IntervalFigures) -> Option<f64>) -> Vec<(f64, f64)> {
    report.intervals.iter().filter_map(|interval| Some((interval.requests as f64, value(interval)?))).collect()
}

/// Mean responses; for a single scheme also the longest ones.
fn responses(reports: &[&Report], time: Time, (unit, size): (&str, f64)) -> Vec<Plot> {
    let axis = || Axis::logarithmic(format!("{} ({unit})", time.name));
    let positive = |us: f64| (us > 0.0).then_some(us / size);
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

/// Operations of each region or disk within each interval.
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
