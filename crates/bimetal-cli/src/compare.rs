//! `bimetal compare`: schemes side by side.
//!
//! One screen: a line for each scheme with what it comes down to, and what its page operations were for. `--details` adds
//! all that was counted.

use bimetal_core::media::{Cause, DiskOp, FlashOp};
use bimetal_core::report::{Overload, Report};
use bimetal_study::compare::{self, Comparison, Entry};
use bimetal_study::prepare::{Schemes, prepare};

use crate::args::CompareArgs;
use crate::details::{self, LIVES};
use crate::failure::Failure;
use crate::number::{
    IN_BURSTS, NOTHING, OVERLOAD, RATES, SIZES, TIMES, common_unit, significant, thousands, with_unit,
};
use crate::progress::Bars;
use crate::table::{plain, remark, right_aligned};
use crate::{header, output, setup, warn};

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let plan = setup::plan(&args.run, 0)?;
    let schemes = Schemes::named(&args.schemes)?;
    let device = setup::device(&args.run.device)?;
    let prepared = prepare(setup::workload(&args.trace)?, device, &schemes, &setup::settings(&args.run))?;
    let bars = Bars::new(&prepared.runs, prepared.workload.requests.len() as u64 * u64::from(plan.passes));
    let comparison = compare::run(&prepared, &plan, usize::from(args.jobs.unwrap_or(0)), &bars)?;
    for warning in &comparison.warnings {
        warn(warning);
    }
    output::emit(&args.run.json, &comparison, || text(&comparison, args.details))
}

fn text(comparison: &Comparison, with_details: bool) -> String {
    let mut text = header::replay(comparison);
    let entries = &comparison.results;
    if let Some(entry) = entries.first() {
        let logical = with_unit(SIZES, entry.device.logical.0 as f64);
        text.push_str(&remark(&format!("device {}: {logical} logical capacity for each scheme", entry.device.name)));
    }
    text.push_str(&notes(entries));
    text.push('\n');
    text.push_str(&summary(entries));
    text.push_str(&overload_remarks(entries));
    text.push('\n');
    text.push_str(&page_operations(entries));
    if with_details {
        text.push('\n');
        text.push_str(&details::text(entries));
    }
    text
}

/// What was rounded or adapted, each note once with the schemes that it is about.
fn notes(entries: &[Entry]) -> String {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in entries {
        for note in &entry.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, schemes)) => schemes.push(&entry.report.scheme),
                None => notes.push((note, vec![&entry.report.scheme])),
            }
        }
    }
    notes.iter().map(|(note, schemes)| remark(&format!("{}: {note}", schemes.join(", ")))).collect()
}

/// A column: its head and a value for each scheme.
type Column = (String, Vec<String>);

/// Figures that share a unit, which is in the head.
fn scaled(
    head: &str,
    units: &'static [(&'static str, f64)],
    entries: &[Entry],
    value: impl Fn(&Report) -> Option<f64>,
) -> Column {
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

/// What the marks of [`of_responses`] mean.
fn overload_remarks(entries: &[Entry]) -> String {
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
    remarks.iter().filter(|(overload, _)| holds(*overload)).map(|(_, text)| remark(text)).collect()
}

/// A line for each scheme.
fn lines(entries: &[Entry], columns: Vec<Column>) -> String {
    let heads: Vec<&str> = std::iter::once("scheme").chain(columns.iter().map(|(head, _)| head.as_str())).collect();
    let row = |(index, entry): (usize, &Entry)| {
        std::iter::once(entry.report.scheme.clone())
            .chain(columns.iter().map(|(_, values)| values[index].clone()))
            .collect()
    };
    plain(&right_aligned(&heads, 1), entries.iter().enumerate().map(row).collect())
}

/// What each scheme comes down to.
fn summary(entries: &[Entry]) -> String {
    let speed_up = |entry: &Entry| {
        let ratio = entry.relative.as_ref().map_or(Some(1.0), |relative| relative.response_speedup);
        ratio.map_or_else(|| NOTHING.to_owned(), |ratio| format!("{ratio:.2}"))
    };
    let amplification = |entry: &Entry| entry.report.write_amplification.map_or_else(|| NOTHING.into(), significant);
    lines(
        entries,
        vec![
            of_responses("mean", entries, |report| report.response_us.mean),
            of_responses("99 %", entries, |report| report.response_us.p99),
            ("speed-up".into(), entries.iter().map(speed_up).collect()),
            ("write amp.".into(), entries.iter().map(amplification).collect()),
            scaled("life", LIVES, entries, |report| report.lifetime_years),
            ("cost (USD)".into(), entries.iter().map(|entry| format!("{:.2}", entry.report.cost_usd)).collect()),
            ("requests/s".into(), entries.iter().map(|entry| with_unit(RATES, entry.speed.requests_per_s)).collect()),
        ],
    )
}

/// What page reads and programs are for.
const PURPOSES: &[(&str, &[Cause])] = &[
    ("host", &[Cause::Host]),
    ("collecting", &[Cause::Gc, Cause::Fold]),
    ("migrating", &[Cause::MigrateUp, Cause::MigrateDown]),
    ("other", &[Cause::WearLevel, Cause::Scan, Cause::Meta]),
];

/// What the page operations of each scheme were for; the purposes add up to all. Accesses to disks are none of them.
fn page_operations(entries: &[Entry]) -> String {
    let count = |entry: &Entry, causes: &[Cause]| -> u64 {
        let pages = [FlashOp::Read, FlashOp::Program].map(FlashOp::name);
        let counted = entry.report.ops.iter().filter(|row| pages.contains(&row.op) && !entry.is_disk(&row.region));
        counted.filter(|row| causes.iter().any(|cause| cause.name() == row.cause)).map(|row| row.count).sum()
    };
    let column = |head: &str, causes: &[Cause]| {
        (head.to_owned(), entries.iter().map(|entry| thousands(count(entry, causes))).collect())
    };
    let mut columns: Vec<Column> = PURPOSES.iter().map(|&(head, causes)| column(head, causes)).collect();
    columns.push(column("= page operations", &Cause::ALL));
    if entries.iter().any(|entry| !entry.disks.is_empty()) {
        let accesses = |op: DiskOp| entries.iter().map(|entry| accesses(entry, op)).collect();
        columns.push(("disk reads".into(), accesses(DiskOp::Read)));
        columns.push(("writes".into(), accesses(DiskOp::Write)));
    }
    lines(entries, columns)
}

/// How often the disks of a scheme that has them were read or written.
fn accesses(entry: &Entry, op: DiskOp) -> String {
    if entry.disks.is_empty() {
        return NOTHING.to_owned();
    }
    let of_disks = entry.report.ops.iter().filter(|row| row.op == op.name() && entry.is_disk(&row.region));
    thousands(of_disks.map(|row| row.count).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_one_purpose() {
        let mut causes: Vec<Cause> = PURPOSES.iter().flat_map(|&(_, causes)| causes).copied().collect();
        causes.sort_by_key(|&cause| cause as u8);
        assert_eq!(causes, Cause::ALL);
    }
}
