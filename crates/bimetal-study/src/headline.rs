//! What each scheme of a comparison comes down to: the figures that fit on a line.

use bimetal_core::report::{Overload, Report};

use crate::compare::Entry;
use crate::number::{IN_BURSTS, LIVES, NOTHING, OVERLOAD, TIMES, Units, common_unit, dollars, significant};

/// A column: its head and a value for each scheme.
pub type Column = (String, Vec<String>);

/// Figures that share a unit, which is in the head.
fn scaled(head: &str, units: Units, entries: &[Entry], value: impl Fn(&Report) -> Option<f64>) -> Column {
    let values: Vec<Option<f64>> = entries.iter().map(|entry| value(&entry.report)).collect();
    let (unit, size) = common_unit(units, values.iter().copied().flatten(), 1.0);
    let shown = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), |value| significant(value / size));
    (format!("{head} ({unit})"), values.into_iter().map(shown).collect())
}

/// A figure of the responses: of a device that falls behind more and more it is none, and of one that does so in bursts it
/// is marked.
fn of_responses(head: &str, entries: &[Entry], value: impl Fn(&Report) -> f64) -> Column {
    let is = |report: &Report, overload| report.load.overload == overload;
    let (head, mut shown) =
        scaled(head, TIMES, entries, |report| (!is(report, Overload::Growing)).then(|| value(report)));
    for (shown, entry) in shown.iter_mut().zip(entries) {
        match entry.report.load.overload {
            Overload::None => {}
            Overload::Bursts => shown.insert_str(0, IN_BURSTS),
            Overload::Growing => OVERLOAD.clone_into(shown),
        }
    }
    (head, shown)
}

/// What the marks at figures of the responses mean, as far as there are any.
pub fn overload_remarks(entries: &[Entry]) -> Vec<String> {
    let remarks = [
        (
            Overload::Growing,
            format!("{OVERLOAD}: it falls behind more and more; responses only say how long the trace is"),
        ),
        (
            Overload::Bursts,
            format!("{IN_BURSTS} it falls behind in bursts: the queue is measured more than the device"),
        ),
    ];
    let holds = |overload| entries.iter().any(|entry| entry.report.load.overload == overload);
    remarks.into_iter().filter(|(overload, _)| holds(*overload)).map(|(_, text)| text).collect()
}

/// The columns: responses, speed-up over the first scheme, write amplification, life, cost.
pub fn columns(entries: &[Entry]) -> Vec<Column> {
    let speed_up = |entry: &Entry| {
        let ratio = entry.relative.as_ref().map_or(Some(1.0), |relative| relative.response_speedup);
        ratio.map_or_else(|| NOTHING.to_owned(), |ratio| format!("{ratio:.2}"))
    };
    let amplification = |entry: &Entry| entry.report.write_amplification.map_or_else(|| NOTHING.into(), significant);
    vec![
        of_responses("mean", entries, |report| report.response_us.mean),
        of_responses("99 %", entries, |report| report.response_us.p99),
        ("speed-up".into(), entries.iter().map(speed_up).collect()),
        ("write amp.".into(), entries.iter().map(amplification).collect()),
        scaled("life", LIVES, entries, |report| report.lifetime_years),
        ("cost (USD)".into(), entries.iter().map(|entry| dollars(entry.report.cost_usd)).collect()),
    ]
}
