//! `bimetal compare`: schemes side by side.
//!
//! One screen: the best scheme, a line of main figures for each, and its page operations by purpose. `--details` adds
//! all counts.

use bimetal_core::media::{Cause, DiskOp, FlashOp};
use bimetal_study::compare::{self, Comparison, Entry};
use bimetal_study::describe;
use bimetal_study::headline::{self, Column};
use bimetal_study::listing::Sheet;
use bimetal_study::prepare::{Schemes, prepare};
use bimetal_study::ranking::Ranking;
use bimetal_study::verdict::Verdict;

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::files::Files;
use crate::number::{NOTHING, significant, thousands};
use crate::progress::Bars;
use crate::table::{bold, indented, sheet};
use crate::{details, header, output, setup, warn};

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let run = &args.run;
    let intervals = setup::intervals(run).unwrap_or(0);
    setup::check_passes(run)?;
    let schemes = schemes(&args.schemes)?;
    let device = setup::device(&run.device)?;
    Files::default().replay(&args.trace, run).check()?;
    let workload = setup::workload(&args.trace)?;
    let profile = setup::profile(&run.html, &workload);
    let prepared = prepare(workload, Some(device), &schemes, &setup::settings(run))?;
    let seeds = args.seeds.map_or(1, u32::from);
    let replays = setup::replays(run, intervals, &prepared.workload);
    let bars = Bars::new(&prepared.runs, replays.requests(&prepared.workload.facts, seeds));
    let comparison = compare::run(&prepared, &replays, seeds, usize::from(args.jobs.unwrap_or(0)), &bars)?;
    for warning in &comparison.warnings {
        warn(warning);
    }
    output::write_exports(&run.export, &comparison)?;
    output::write_report(&run.html, &comparison, args.sort, profile.as_ref())?;
    let ranking = Ranking::of(&comparison.results, args.sort);
    output::emit(&run.json, &comparison, || text(&comparison, &ranking, args.details))
}

/// The named schemes. A repeated name would have no row of its own.
fn schemes(names: &[String]) -> Result<Schemes, Failure> {
    if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(Failure::usage(format!("`--schemes` names `{twice}` twice; hint: name each scheme once")));
    }
    Ok(Schemes::named(names)?)
}

fn text(comparison: &Comparison, ranking: &Ranking, with_details: bool) -> String {
    let mut text = header::replay(comparison);
    let entries = &comparison.results;
    text.push_str(&header::remarks(&describe::notes(entries)));
    text.push('\n');
    if let Some(verdict) = Verdict::of(entries, ranking) {
        text.extend(verdict.lines().iter().map(|line| indented(line, 2)));
        text.push('\n');
    }
    text.push_str(&sheet(&headline::sheet(entries, ranking)));
    text.push_str(&header::remarks(&headline::remarks(entries, ranking)));
    text.push('\n');
    let (unit, operations) = page_operations(entries, ranking);
    text.push_str(&format!("  {}\n{}", bold(&format!("Page operations{unit}")), sheet(&operations)));
    if with_details {
        text.push('\n');
        text.push_str(&details::text(&ranking.arranged(entries)));
    }
    text
}

/// Purposes of page reads and programs.
const PURPOSES: &[(&str, &[Cause])] = &[
    ("host", &[Cause::Host]),
    ("collecting", &[Cause::Gc, Cause::Fold]),
    ("migrating", &[Cause::MigrateUp, Cause::MigrateDown]),
    ("other", &[Cause::WearLevel, Cause::Scan, Cause::Meta]),
];

/// Units of counts, and their words in a title.
const COUNTS: [(&str, f64); 4] = [("", 1.0), (", thousands", 1e3), (", millions", 1e6), (", billions", 1e9)];
/// Counts of at least this value are shown in a larger unit, so that seven columns are always enough.
const COUNT_MAX: f64 = 1e5;

/// Page operations of each scheme by purpose, and their unit. The purposes add up to all operations, without accesses
/// to disks.
fn page_operations(entries: &[Entry], ranking: &Ranking) -> (&'static str, Sheet) {
    let count = |entry: &Entry, causes: &[Cause]| -> u64 {
        let pages = [FlashOp::Read, FlashOp::Program].map(FlashOp::name);
        let counted = entry.report.ops.iter().filter(|row| pages.contains(&row.op) && !entry.is_disk(&row.region));
        counted.filter(|row| causes.iter().any(|cause| cause.name() == row.cause)).map(|row| row.count).sum()
    };
    let most = entries.iter().map(|entry| count(entry, &Cause::ALL)).max().unwrap_or(0) as f64;
    let fits = |(_, size): &&(&str, f64)| most / size < COUNT_MAX;
    let (unit, size) = *COUNTS.iter().find(fits).unwrap_or(&COUNTS[0]);
    let shown = |count: u64| if size > 1.0 { significant(count as f64 / size) } else { thousands(count) };
    let column = |head: &str, causes: &[Cause]| {
        (head.to_owned(), entries.iter().map(|entry| shown(count(entry, causes))).collect())
    };
    let mut columns: Vec<Column> = PURPOSES.iter().map(|&(head, causes)| column(head, causes)).collect();
    columns.push(column("= all", &Cause::ALL));
    if entries.iter().any(|entry| !entry.disks.is_empty()) {
        let of_disks =
            |op: DiskOp| entries.iter().map(|entry| accesses(entry, op).map_or_else(nothing, shown)).collect();
        columns.push(("disk\nreads".into(), of_disks(DiskOp::Read)));
        columns.push(("disk\nwrites".into(), of_disks(DiskOp::Write)));
    }
    (unit, headline::grouped(ranking, |place| entries[place].report.scheme.clone(), columns))
}

fn nothing() -> String {
    NOTHING.to_owned()
}

/// Number of reads or writes of a scheme's disks, if it has any.
fn accesses(entry: &Entry, op: DiskOp) -> Option<u64> {
    let of_disks = entry.report.ops.iter().filter(|row| row.op == op.name() && entry.is_disk(&row.region));
    (!entry.disks.is_empty()).then(|| of_disks.map(|row| row.count).sum())
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
