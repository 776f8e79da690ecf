//! `bimetal generate`: a generated workload as a trace file, and its profile.

use std::path::{Path, PathBuf};

use bimetal_core::report::TraceFacts;
use bimetal_core::trace::Trace;
use bimetal_core::workload::like::{Compared, Statistic};
use bimetal_core::workload::{Goal, JUDGED_REQUESTS, Judged};
use bimetal_study::generate::{self, Like};
use bimetal_study::prepare::Workload;
use serde::Serialize;

use crate::args::{GenerateArgs, TraceArgs};
use crate::failure::Failure;
use crate::files::{Files, is_hyphen};
use crate::generated::{Generated, GeneratedLike};
use crate::number::{NOTHING, SIZES, TIMES, percent, significant, thousands, with_unit};
use crate::table::{Align, bold, plain, remark};
use crate::{convert, header, output, setup, warn};

/// Runs the command.
pub fn run(args: &GenerateArgs) -> Result<(), Failure> {
    match (&args.names[..], &args.like) {
        ([workload, output], None) => workload_of(args, workload, Path::new(output)),
        ([output], Some(like)) => like_of(args, like, Path::new(output)),
        ([workload, ..], Some(_)) => Err(Failure::usage(format!(
            "`{workload}` and `--like` are given; hint: name a workload and a file, or `--like TRACE` and a file"
        ))),
        (names, None) => Err(Failure::usage(format!(
            "only `{}` is given; hint: name a workload and a file, or `--like TRACE` and a file",
            names.join(" ")
        ))),
        ([], Some(_)) => Err(Failure::usage("no output file is given; hint: name it after `--like TRACE`")),
    }
}

fn workload_of(args: &GenerateArgs, workload: &str, to: &Path) -> Result<(), Failure> {
    if args.options.reads_otherwise() || args.options.limit.is_some() {
        let what = "options for reading a trace are given, but no trace; hint: `--like TRACE`, `--set requests=N`";
        return Err(Failure::usage(what));
    }
    check(args, None, to)?;
    let trace = generate::trace(workload, &args.set, args.seed)?;
    convert::write(&trace, to, &args.target)?;
    let generated = Generated {
        bimetal: env!("CARGO_PKG_VERSION"),
        workload: workload.to_owned(),
        settings: object(generate::settings(workload, &args.set)?),
        seed: args.seed,
        trace: facts(&trace),
        targets: generate::targets(workload, &args.set, &trace)?,
    };
    show(args, to, &generated, || header::trace(&generated.trace) + &targets(&generated.trace, &generated.targets))
}

fn like_of(args: &GenerateArgs, path: &Path, to: &Path) -> Result<(), Failure> {
    check(args, Some(path).filter(|path| !setup::is_sample(path)), to)?;
    let traces = if setup::is_sample(path) { Vec::new() } else { vec![path.to_owned()] };
    let source = read(traces, args)?;
    for warning in &source.warnings {
        warn(warning);
    }
    let Like { trace, settings, model_numbers, comparison } = generate::like(&source, &args.set, args.seed)?;
    convert::write(&trace, to, &args.target)?;
    let generated = GeneratedLike {
        bimetal: env!("CARGO_PKG_VERSION"),
        like: source.facts,
        settings: object(settings),
        seed: args.seed,
        trace: facts(&trace),
        model_numbers,
        comparison,
    };
    show(args, to, &generated, || {
        let of = |what: &str, facts: &TraceFacts| format!("{} {}", bold(what), header::trace(facts));
        of("like", &generated.like) + &of("generated", &generated.trace) + &compared(&generated)
    })
}

/// Refuses unwritable outputs, and those that are the same file as another one, before any work is done.
fn check(args: &GenerateArgs, like: Option<&Path>, to: &Path) -> Result<(), Failure> {
    if is_hyphen(to) && output::is_standard_output(&args.json) {
        return Err(Failure::usage(
            "`-` and `--json -` are both the standard output; hint: name a file for one of them",
        ));
    }
    Files::default().reads(like).writes("OUT", "out.bimetal", convert::file(to)).json(&args.json).check()?;
    convert::check(to, &args.target)
}

/// The trace to which a generator is fitted.
fn read(traces: Vec<PathBuf>, args: &GenerateArgs) -> Result<Workload, Failure> {
    setup::workload(&TraceArgs { traces, options: args.options.clone() })
}

fn facts(trace: &Trace) -> TraceFacts {
    TraceFacts::of(&trace.name, trace.format, &trace.requests)
}

fn object(settings: Vec<(String, String)>) -> serde_json::Map<String, serde_json::Value> {
    settings.into_iter().map(|(key, value)| (key, value.into())).collect()
}

/// Shows the profile of the generated requests. If the requests were written to a pipe, which may be the standard
/// output, only JSON is written, if requested.
fn show<T: Serialize>(args: &GenerateArgs, to: &Path, value: &T, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let is_stream = is_hyphen(to) || (to.exists() && !to.is_file());
    if is_stream { output::write_json(&args.json, value) } else { output::emit(&args.json, value, text) }
}

/// The targets and the results.
fn targets(trace: &TraceFacts, targets: &[Judged]) -> String {
    if targets.is_empty() {
        return String::new();
    }
    let in_part = targets.iter().any(|target| target.expected != target.published);
    let row = |target: &Judged| {
        let Judged { name, source: _, published, expected, goal, measured, met } = target;
        let bound = |value: f64| match goal {
            Goal::Within(_) => significant(value),
            Goal::AtLeast => format!("≥ {}", significant(value)),
            Goal::AtMost => format!("≤ {}", significant(value)),
        };
        let tolerance = match goal {
            Goal::Within(tolerance) if *tolerance > 0.0 => format!("± {:.0} %", tolerance * 100.0),
            _ => String::new(),
        };
        let met = match met {
            Some(true) => "yes",
            Some(false) => "no",
            None => NOTHING,
        };
        let measured = measured.map_or_else(|| NOTHING.to_owned(), significant);
        let mut row = vec![(*name).to_owned(), bound(*published)];
        row.extend(in_part.then(|| bound(*expected)));
        row.extend([measured, tolerance, met.to_owned()]);
        row
    };
    let heads = [("characteristic", Align::Left), ("published", Align::Right)].into_iter();
    let heads = heads.chain(in_part.then_some(("of this part", Align::Right)));
    let heads = heads.chain([("this trace", Align::Right), ("within", Align::Right), ("met", Align::Left)]);
    let heads: Vec<_> = heads.collect();
    let mut text = format!("\n{}\n", bold("Targets")) + &plain(&heads, targets.iter().map(row).collect());
    if trace.requests < JUDGED_REQUESTS {
        text += &remark(&format!("not judged: too random below {} requests", thousands(JUDGED_REQUESTS)));
    }
    text
}

/// Both traces side by side.
fn compared(generated: &GeneratedLike) -> String {
    let GeneratedLike { comparison, model_numbers, .. } = generated;
    let row = |row: &Compared| {
        let value = |value: f64| match row.unit {
            Statistic::Share => percent(value),
            Statistic::Bytes => with_unit(SIZES, value),
            Statistic::Microseconds => with_unit(TIMES, value),
            Statistic::Number => significant(value),
        };
        let difference = match row.unit {
            Statistic::Share => format!("{:+.1} pp", row.difference * 100.0),
            _ => format!("{:+.1} %", row.difference * 100.0),
        };
        vec![row.name.clone(), value(row.trace), value(row.generated), difference]
    };
    let heads = |what| [(what, Align::Left), ("trace", Align::Right), ("generated", Align::Right), ("", Align::Right)];
    let section = |title: &str, rows: &[Compared]| {
        format!("\n{}\n", bold(title)) + &plain(&heads(""), rows.iter().map(row).collect())
    };
    let compared = thousands(comparison.requests);
    remark(&format!("a model of {} numbers; the first {compared} requests of both", thousands(*model_numbers as u64)))
        + &section("Fitted", &comparison.fitted)
        + &section("Held back", &comparison.held_back)
}
