//! `bimetal compare`: schemes side by side.
//!
//! One screen: a line for each scheme with what it comes down to, and what its page operations were for. `--details` adds
//! all that was counted.

use bimetal_core::media::{Cause, DiskOp, FlashOp};
use bimetal_study::compare::{self, Comparison, Entry};
use bimetal_study::describe;
use bimetal_study::headline::{self, Column};
use bimetal_study::prepare::{Schemes, prepare};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::number::{NOTHING, RATES, SIZES, thousands, with_unit};
use crate::progress::Bars;
use crate::table::{plain, remark, right_aligned};
use crate::{details, header, output, setup, warn};

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let run = &args.run;
    let plan = setup::plan(run, if run.html.html.is_some() { setup::REPORT_INTERVALS } else { 0 })?;
    let schemes = Schemes::named(&args.schemes)?;
    let device = setup::device(&run.device)?;
    output::check(&run.json, &run.html)?;
    let workload = setup::workload(&args.trace)?;
    let profile = setup::profile(&run.html, &workload);
    let prepared = prepare(workload, device, &schemes, &setup::settings(run))?;
    let bars = Bars::new(&prepared.runs, prepared.workload.requests.len() as u64 * u64::from(plan.passes));
    let comparison = compare::run(&prepared, &plan, usize::from(args.jobs.unwrap_or(0)), &bars)?;
    for warning in &comparison.warnings {
        warn(warning);
    }
    output::write_report(&run.html, &comparison, profile.as_ref())?;
    output::emit(&run.json, &comparison, || text(&comparison, args.details))
}

fn text(comparison: &Comparison, with_details: bool) -> String {
    let mut text = header::replay(comparison);
    let entries = &comparison.results;
    if let Some(entry) = entries.first() {
        let logical = with_unit(SIZES, entry.device.logical.0 as f64);
        text.push_str(&remark(&format!("device {}: {logical} logical capacity for each scheme", entry.device.name)));
    }
    text.push_str(&header::remarks(&describe::notes(entries)));
    text.push('\n');
    text.push_str(&summary(entries));
    text.push_str(&header::remarks(&headline::overload_remarks(entries)));
    text.push('\n');
    text.push_str(&page_operations(entries));
    if with_details {
        text.push('\n');
        text.push_str(&details::text(entries));
    }
    text
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

/// What each scheme comes down to, and how fast it was simulated.
fn summary(entries: &[Entry]) -> String {
    let mut columns = headline::columns(entries);
    let speed = |entry: &Entry| with_unit(RATES, entry.speed.requests_per_s);
    columns.push(("requests/s".into(), entries.iter().map(speed).collect()));
    lines(entries, columns)
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
