//! Study files: the points to run.
//!
//! ```toml
//! title = "How much SLC?"
//!
//! [[traces]]                                   # without any: the built-in trace
//! files = ["web.csv.xz"]                       # beside the study file
//!
//! [replay]                                     # like the options of `compare`
//! repeat = 3
//! measure = 1
//!
//! [[grids]]                                    # every combination of its lists
//! scheme = ["chang", "comboftl"]
//! [grids.set]                                  # all keys that `--set` accepts
//! "fast.capacity" = ["16MiB", "32MiB"]
//! "slow.spare" = { from = "5%", to = "20%", count = 4 }
//! ```
//!
//! All errors that do not depend on the content of traces are found before the first point runs.

mod planner;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use bimetal_core::replay::Fill;
use bimetal_core::toml_file::{self, TomlFileError};
use bimetal_core::workload;
use serde::Deserialize;
use toml::Spanned;

use super::point::{Point, Replay};
use super::source::{Origin, TraceSource, pairs};
use super::values::{Scalar, Texts, Values};
use crate::arrivals;
use planner::Planner;

/// Largest number of points in a study.
pub const POINTS_MAX: usize = 1_000_000;
/// Name of the built-in trace.
const SAMPLE: &str = "sample";

/// A study.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its title.
    pub title: String,
    /// The points to run, in the order of results, without duplicates.
    pub points: Vec<Planned>,
}

/// A point of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The point.
    pub point: Point,
    /// Whether the point is left out if the device does not allow it, because its scheme comes from `all`.
    pub optional: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyTable {
    title: Option<String>,
    #[serde(default)]
    traces: Vec<Spanned<TraceTable>>,
    #[serde(default)]
    replay: ReplayTable,
    #[serde(default)]
    grids: Vec<GridTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TraceTable {
    name: Option<String>,
    files: Option<Spanned<Texts>>,
    format: Option<Spanned<String>>,
    time_unit: Option<Spanned<String>>,
    columns: Option<Spanned<String>>,
    objects: Option<Spanned<String>>,
    action: Option<Spanned<String>>,
    volumes: Option<Spanned<Vec<u64>>>,
    limit: Option<Spanned<u64>>,
    generate: Option<Spanned<String>>,
    #[serde(default)]
    set: BTreeMap<String, Spanned<Scalar>>,
    seed: Option<Spanned<u64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplayTable {
    arrivals: Option<Spanned<Texts>>,
    repeat: Option<Spanned<u32>>,
    measure: Option<Spanned<u32>>,
    fill: Option<Spanned<String>>,
    seed: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GridTable {
    trace: Option<Spanned<Texts>>,
    device: Option<Spanned<Texts>>,
    scheme: Option<Spanned<Texts>>,
    #[serde(default)]
    set: BTreeMap<String, Spanned<Values>>,
}

/// An error and its range of bytes in the file.
struct Wrong(Range<usize>, String);

impl Study {
    /// Parses a study file. `folder` is its folder, to which the paths in it are relative.
    ///
    /// # Errors
    /// The first error, with its line.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, TomlFileError> {
        let table = toml_file::parse(text)?;
        let in_file = |Wrong(span, what)| TomlFileError { line: toml_file::line_of(text, span.start), what };
        Self::of(table, folder).map_err(in_file)
    }

    /// Parses a study with the same fields as JSON.
    ///
    /// # Errors
    /// The first error, with the field in the syntax of a study file.
    pub fn from_json(json: &str, folder: &Path) -> Result<Self, String> {
        let table: toml::Table = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let text = toml::to_string(&table).map_err(|error| error.to_string())?;
        Self::parse(&text, folder).map_err(|TomlFileError { line, what }| {
            let field = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
            format!("`{field}`: {what}")
        })
    }

    fn of(table: StudyTable, folder: &Path) -> Result<Self, Wrong> {
        let traces = traces(table.traces, folder)?;
        let replays = replays(&table.replay)?;
        let grids = if table.grids.is_empty() { vec![GridTable::default()] } else { table.grids };
        let mut planner = Planner::new(traces, replays, table.replay.seed, folder);
        for grid in &grids {
            planner.add(grid)?;
        }
        Ok(Self { title: table.title.unwrap_or_default(), points: planner.into_points() })
    }
}

fn traces(tables: Vec<Spanned<TraceTable>>, folder: &Path) -> Result<Vec<TraceSource>, Wrong> {
    let mut traces: Vec<TraceSource> = Vec::new();
    for table in tables {
        let span = table.span();
        let trace = trace(table.into_inner(), &span, folder)?;
        if traces.iter().any(|known| known.name == trace.name) {
            return Err(Wrong(span, format!("there are two traces `{}`; give each a `name` of its own", trace.name)));
        }
        traces.push(trace);
    }
    if traces.is_empty() {
        traces.push(TraceSource { name: SAMPLE.into(), from: Origin::Sample, limit: None });
    }
    Ok(traces)
}

fn trace(table: TraceTable, span: &Range<usize>, folder: &Path) -> Result<TraceSource, Wrong> {
    let only = |what: &str, with: &str, given: Option<Range<usize>>| match given {
        Some(span) => Err(Wrong(span, format!("`{what}` is only for a trace with `{with}`; leave it out"))),
        None => Ok(()),
    };
    if let Some(limit) = table.limit.as_ref().filter(|limit| *limit.get_ref() == 0) {
        return Err(Wrong(limit.span(), "`limit` is 0: write the number of requests, at least 1".into()));
    }
    if table.files.is_none() {
        only("format", "files", table.format.as_ref().map(Spanned::span))?;
        only("time-unit", "files", table.time_unit.as_ref().map(Spanned::span))?;
        only("columns", "files", table.columns.as_ref().map(Spanned::span))?;
        only("objects", "files", table.objects.as_ref().map(Spanned::span))?;
        only("action", "files", table.action.as_ref().map(Spanned::span))?;
        only("volumes", "files", table.volumes.as_ref().map(Spanned::span))?;
    }
    if table.generate.is_none() {
        only("set", "generate", table.set.values().next().map(Spanned::span))?;
        only("seed", "generate", table.seed.as_ref().map(Spanned::span))?;
    }
    let limit = table.limit.map(Spanned::into_inner);
    let (name, from) = match (table.files, table.generate) {
        (Some(_), Some(generate)) => {
            return Err(Wrong(generate.span(), "a trace has `files` or `generate`, not both".into()));
        }
        (None, None) => (SAMPLE.to_owned(), Origin::Sample),
        (Some(files), None) => {
            let text = |value: Option<Spanned<String>>| value.map(Spanned::into_inner);
            let options = [&table.format, &table.time_unit, &table.columns, &table.objects, &table.action];
            let spans = options.map(|value| value.as_ref().map(Spanned::span));
            let (span, paths) = (files.span(), files.into_inner().0);
            let names: Vec<String> = paths.iter().map(|path| file_name(path)).collect();
            for path in &paths {
                let found = folder.join(path).metadata();
                let is_wrong = |why: &str| Wrong(span.clone(), format!("trace file `{path}` {why}"));
                match found {
                    Ok(metadata) if metadata.is_dir() => return Err(is_wrong("is a directory; name the files in it")),
                    Ok(_) => {}
                    Err(error) => return Err(is_wrong(&format!("cannot be read: {error}"))),
                }
            }
            if paths.is_empty() {
                return Err(Wrong(span, "`files` is empty; leave it out for the built-in trace".into()));
            }
            let volumes = table.volumes.map(Spanned::into_inner);
            let (format, time_unit) = (text(table.format), text(table.time_unit));
            let (columns, objects, action) = (text(table.columns), text(table.objects), text(table.action));
            let from = Origin::Files { paths, format, time_unit, columns, objects, action, volumes };
            let source = TraceSource { name: String::new(), from, limit: None };
            let place = || spans.into_iter().flatten().next().unwrap_or(span);
            source.options().map_err(|failure| Wrong(place(), failure.what))?;
            (names.join(" + "), source.from)
        }
        (None, Some(generate)) => {
            let set: BTreeMap<String, String> =
                table.set.iter().map(|(key, value)| (key.clone(), value.get_ref().0.clone())).collect();
            workload::settings(generate.get_ref(), &pairs(&set)).map_err(|error| {
                let place = table.set.values().next().filter(|_| workload::find(generate.get_ref()).is_ok());
                Wrong(place.map_or_else(|| generate.span(), Spanned::span), error.to_string())
            })?;
            let seed = table.seed.map_or(1, Spanned::into_inner);
            let workload = generate.into_inner();
            (workload.clone(), Origin::Generated { workload, set, seed })
        }
    };
    let name = table.name.unwrap_or(name);
    if name.is_empty() {
        return Err(Wrong(span.clone(), "a trace needs a `name`".into()));
    }
    Ok(TraceSource { name, from, limit })
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// One replay for each arrival mode.
fn replays(table: &ReplayTable) -> Result<Vec<Replay>, Wrong> {
    let usual = Replay::default();
    let repeat = table.repeat.as_ref().map_or(usual.repeat, |repeat| *repeat.get_ref());
    let measure = table.measure.as_ref().map_or(repeat, |measure| *measure.get_ref());
    let all = table.arrivals.as_ref().map_or_else(|| vec![usual.arrivals], |texts| texts.get_ref().0.clone());
    let fill: Fill = table
        .fill
        .as_ref()
        .map_or(Ok(Fill::default()), |fill| fill.get_ref().parse().map_err(|what| Wrong(fill.span(), what)))?;
    let of = |text: &String| {
        let parsed = arrivals::parse(text).map_err(|what| Wrong(span_of(table.arrivals.as_ref()), what))?;
        let replay = Replay { arrivals: arrivals::name(parsed), repeat, measure, fill: fill.to_string() };
        let place = || span_of(table.measure.as_ref().or(table.repeat.as_ref()));
        replay.plan().map_err(|what| Wrong(place(), what))?;
        Ok(replay)
    };
    all.iter().map(of).collect()
}

fn span_of<T>(value: Option<&Spanned<T>>) -> Range<usize> {
    value.map_or(0..0, Spanned::span)
}

#[cfg(test)]
mod tests;
