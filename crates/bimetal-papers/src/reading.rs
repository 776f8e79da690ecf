//! Helpers that extract figures from replays.

use std::sync::Arc;

use bimetal_study::compare::Entry;

/// A scheme's own figure at the end; NaN if the scheme does not report it.
pub fn metric(entry: &Entry, name: &str) -> f64 {
    let figures = &entry.report.metrics.0;
    figures.iter().find(|&&(known, _)| known == name).and_then(|&(_, value)| value).unwrap_or(f64::NAN)
}

/// A scheme's own figure at the end of each interval, by the number of measured requests so far.
pub fn metric_over_time(entry: &Entry, name: &str) -> Vec<(f64, f64)> {
    let Some(at) = entry.report.metrics.0.iter().position(|&(known, _)| known == name) else {
        return Vec::new();
    };
    let value = |metrics: &[Option<f64>]| metrics.get(at).copied().flatten().unwrap_or(f64::NAN);
    entry.report.intervals.iter().map(|interval| (interval.requests as f64, value(&interval.metrics))).collect()
}

/// Mean response in milliseconds.
pub fn response_ms(entry: &Entry) -> f64 {
    entry.report.response_us.mean / 1e3
}

/// A figure of each replay of a sweep, by the swept value.
pub fn curve(sweep: &[(f64, Arc<Entry>)], figure: impl Fn(&Entry) -> f64) -> Vec<(f64, f64)> {
    sweep.iter().map(|(x, entry)| (*x, figure(entry))).collect()
}

/// The y values of points.
pub fn heights(points: &[(f64, f64)]) -> Vec<f64> {
    points.iter().map(|&(_, y)| y).collect()
}

/// The y value at `x`; NaN if there is no point.
pub fn height_at(points: &[(f64, f64)], x: f64) -> f64 {
    points.iter().find(|point| point.0 == x).map_or(f64::NAN, |&(_, y)| y)
}

/// The points in the last half of a curve over time.
pub fn second_half(points: &[(f64, f64)]) -> &[(f64, f64)] {
    &points[points.len() / 2..]
}

/// A horizontal line over the width of a curve.
pub fn level(like: &[(f64, f64)], height: f64) -> Vec<(f64, f64)> {
    let ends = [like.first(), like.last()];
    ends.into_iter().flatten().map(|&(x, _)| (x, height)).collect()
}

/// The minimum and the maximum.
pub fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// The mean of some values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Seconds of all flash operations with these causes, in a region or, with `None`, in all; likewise for a kind of
/// operation.
pub fn time_s(entry: &Entry, region: Option<&str>, op: Option<&str>, causes: &[&str]) -> f64 {
    let wanted = |own: &str, asked: Option<&str>| asked.is_none_or(|asked| own == asked);
    let rows = entry.report.ops.iter().filter(|row| wanted(&row.region, region) && wanted(row.op, op));
    // A fold from 0, because the sum of no values is -0.
    rows.filter(|row| causes.contains(&row.cause)).fold(0.0, |time_us, row| time_us + row.time_us) / 1e6
}
