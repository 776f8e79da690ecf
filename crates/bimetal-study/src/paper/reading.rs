//! What figures read off replays.

use crate::compare::Entry;

/// A scheme's own figure at the end; not a number where it has none.
pub fn metric(entry: &Entry, name: &str) -> f64 {
    let figures = &entry.report.metrics.0;
    figures.iter().find(|&&(known, _)| known == name).and_then(|&(_, value)| value).unwrap_or(f64::NAN)
}

/// Seconds of all flash operations of these causes, in a region or, with `None`, in all; likewise of one kind or of all.
pub fn time_s(entry: &Entry, region: Option<&str>, op: Option<&str>, causes: &[&str]) -> f64 {
    let wanted = |own: &str, asked: Option<&str>| asked.is_none_or(|asked| own == asked);
    let rows = entry.report.ops.iter().filter(|row| wanted(&row.region, region) && wanted(row.op, op));
    // The sum of nothing is -0.
    rows.filter(|row| causes.contains(&row.cause)).fold(0.0, |time_us, row| time_us + row.time_us) / 1e6
}
