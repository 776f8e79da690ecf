//! `bimetal sweep`: many devices under many traces.

use std::collections::BTreeSet;
use std::path::Path;
#[cfg(not(feature = "parquet"))]
use std::path::PathBuf;

use bimetal_study::headline::extrapolated_remark;
use bimetal_study::sweep::export::{Table, without_left_out};
use bimetal_study::sweep::pareto;
use bimetal_study::sweep::results::Results;
use bimetal_study::sweep::row::{self, MORE_PASSES, Row};
use bimetal_study::sweep::source::Origin;
use bimetal_study::sweep::study::{Planned, Study};
use bimetal_study::sweep::{label, schedule};

use crate::args::SweepArgs;
use crate::failure::Failure;
use crate::files::Files;
use crate::number::{IN_BURSTS, LIVES, TIMES, common_unit, counted, dollars, significant, thousands};
use crate::progress::SweepBar;
use crate::table::{bold, plain, remark, right_aligned};
use crate::{header, output, warn};

/// Maximum number of failed points that are named.
const FAILURES_SHOWN: usize = 5;
/// Maximum number of lines of a front.
const FRONT_SHOWN: usize = 16;

/// Runs the command.
pub fn run(args: &SweepArgs) -> Result<(), Failure> {
    let name = args.study.display();
    let text = std::fs::read_to_string(&args.study)
        .map_err(|error| Failure::failed(format!("{name}: the study file cannot be read: {error}")))?;
    let folder = args.study.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let study = Study::parse(&text, folder).map_err(|error| Failure::failed(format!("{name}: {error}")))?;
    if args.dry_run {
        return output::print(&listed(&study));
    }
    let path = args.results.clone().unwrap_or_else(|| args.study.with_extension("results.jsonl"));
    files(args, &study, &path).check()?;
    let results = Results::open(&path, args.restart).map_err(Failure::failed)?;
    let rows = {
        let bar = SweepBar::new(study.points.len());
        schedule::run(&study.points, folder, Some(results), usize::from(args.jobs.unwrap_or(0)), &bar)
    };
    let (rows, left_out) = without_left_out(&study.points, rows.map_err(Failure::failed)?);
    warn_of(&rows);
    write(args, &rows)?;
    output::write_html(&args.html, || {
        bimetal_study::html::sweep(&study.title, &rows, left_out.len(), &output::command_line())
    })?;
    if !output::is_standard_output(&args.json) {
        output::print(&shown(&study, &rows, &left_out, &path))?;
    }
    let failed = rows.iter().filter(|row| row.failure.is_some()).count();
    if failed == rows.len() {
        let first = rows.iter().chain(&left_out).find_map(|row| row.failure.as_ref());
        let why = first.map_or_else(|| "there is none".to_owned(), |failure| failure.what.clone());
        return Err(Failure::failed(format!("no point of the study could be run: {why}")));
    }
    Ok(())
}

/// The files of the command, among them those that the study names.
fn files(args: &SweepArgs, study: &Study, results: &Path) -> Files {
    #[cfg(feature = "parquet")]
    let parquet = args.parquet.as_ref();
    #[cfg(not(feature = "parquet"))]
    let parquet: Option<&PathBuf> = None;
    let mut named = BTreeSet::new();
    for Planned { point, .. } in &study.points {
        named.extend(point.device.file.as_ref().map(|_| &point.device.name));
        if let Origin::Files { paths, .. } = &point.trace.from {
            named.extend(paths);
        }
    }
    Files::default()
        .reads([&args.study])
        .reads(named.into_iter().map(|path| args.study.with_file_name(path)))
        .appends("--results", "study.results.jsonl", results)
        .writes("--csv", "table.csv", args.csv.as_ref())
        .writes("--parquet", "table.parquet", parquet)
        .results(&args.json, &args.html)
}

/// Writes the requested tables.
fn write(args: &SweepArgs, rows: &[Row]) -> Result<(), Failure> {
    let table = Table::of(rows);
    if let Some(path) = &args.csv {
        let mut bytes = Vec::new();
        table.write_csv(&mut bytes)?;
        output::write_file(path, &bytes)?;
    }
    #[cfg(feature = "parquet")]
    if let Some(path) = &args.parquet {
        let mut bytes = Vec::new();
        bimetal_study::sweep::parquet_file::write(&table, &mut bytes)?;
        output::write_file(path, &bytes)?;
    }
    if args.json.json.is_some() {
        let mut bytes = Vec::new();
        table.write_json(&mut bytes)?;
        output::write_bytes(&args.json, &bytes)?;
    }
    Ok(())
}

/// Warns of the first failed points, and of the number of others.
fn warn_of(rows: &[Row]) {
    let failures = || rows.iter().filter_map(|row| Some((row, row.failure.as_ref()?)));
    for (row, failure) in failures().take(FAILURES_SHOWN) {
        warn(&format!("{}: {}", label::full(&row.point), failure.what));
    }
    let more = failures().count().saturating_sub(FAILURES_SHOWN);
    if more > 0 {
        warn(&format!("{} more failed; hint: `--csv` has all of them, with their errors", points(more)));
    }
}

fn points(count: usize) -> String {
    counted(count as u64, "point")
}

/// The points of a study.
fn listed(study: &Study) -> String {
    let row = |Planned { point, .. }: &Planned| {
        let settings = point.settings().into_iter().map(|(key, value)| format!("{key}={value}"));
        let rest = settings.collect::<Vec<_>>().join(" ");
        vec![
            point.trace.name.clone(),
            point.device.name.clone(),
            point.scheme.clone(),
            point.replay.arrivals.clone(),
            rest,
        ]
    };
    let heads = ["trace", "device", "scheme", "arrivals", "settings"];
    plain(&right_aligned(&heads, heads.len()), study.points.iter().map(row).collect())
        + &format!("{}\n", points(study.points.len()))
}

/// The numbers of points by outcome, and the best points of each trace.
fn shown(study: &Study, rows: &[Row], left_out: &[Row], path: &Path) -> String {
    let failed = rows.iter().filter(|row| row.failure.is_some()).count();
    let mut done = vec![format!("{} done", thousands((rows.len() - failed) as u64)), format!("{failed} failed")];
    if !left_out.is_empty() {
        done.push(format!("{} left out: schemes that a device does not allow", left_out.len()));
    }
    let title = if study.title.is_empty() { "Sweep" } else { &study.title };
    let mut text = format!("{}  {}: {}\n", bold(title), points(study.points.len()), done.join(", "));
    text += &remark(&format!("results are kept in {}", path.display()));
    let varying = label::Varying::of(rows);
    for group in pareto::groups(rows) {
        text += &front(rows, &group, &varying);
    }
    let notes = header::remarks(&row::notes(rows));
    if notes.is_empty() { text } else { format!("{text}\n{notes}") }
}

/// The best points of a trace: none is cheaper, faster and longer-lived at once.
fn front(rows: &[Row], group: &[usize], varying: &label::Varying) -> String {
    let mut best = pareto::of_group(rows, group, &pareto::USUAL);
    let figures = |at: &usize| rows[*at].figures.as_ref();
    best.sort_by(|a, b| {
        let order = |at: &usize| {
            figures(at).map_or((0.0, 0.0), |figures| (figures.key_figures.cost_usd, figures.response_us.mean))
        };
        let (a, b) = (order(a), order(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let Some(first) = group.first().map(|&at| &rows[at].point) else { return String::new() };
    let name = format!("{}, {}", first.trace.name, first.replay.arrivals);
    let mut text = format!("\n{}  {}\n", bold(&name), "no other point is cheaper, faster and longer-lived at once");
    if best.is_empty() {
        return text + &remark("none: every point failed, or is overloaded");
    }
    let more = best.len().saturating_sub(FRONT_SHOWN);
    best.truncate(FRONT_SHOWN);
    let of = || best.iter().filter_map(figures);
    let (time, us) = common_unit(TIMES, of().map(|figures| figures.response_us.mean), 1.0);
    let (life, years) = common_unit(LIVES, of().filter_map(|figures| figures.key_figures.lifetime_years), 1.0);
    let row = |at: &usize| {
        let figures = figures(at)?;
        let mark = if figures.overload == Default::default() { "" } else { IN_BURSTS };
        let point = &rows[*at].point;
        let mut cells = vec![varying.short(point)];
        cells.push(dollars(figures.key_figures.cost_usd));
        cells.extend(
            [figures.response_us.mean, figures.response_us.p99]
                .map(|value| format!("{mark}{}", significant(value / us))),
        );
        cells.push(figures.life(years));
        Some(cells)
    };
    let heads = [
        "point".to_owned(),
        "cost (USD)".to_owned(),
        format!("mean ({time})"),
        format!("99 % ({time})"),
        format!("life ({life})"),
    ];
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    text += &plain(&right_aligned(&heads, 1), best.iter().filter_map(row).collect());
    let extrapolated = of().filter(|figures| figures.is_extrapolated()).map(|figures| figures.lifetime_overwrites);
    text += &extrapolated_remark(extrapolated, MORE_PASSES).map(|text| remark(&text)).unwrap_or_default();
    if more > 0 {
        text += &remark(&format!("and {} more: `--html` shows all, `--csv` marks them `on_front`", points(more)));
    }
    text
}
