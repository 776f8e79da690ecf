//! Converts the command line to traces, devices and replays.

use std::ops::ControlFlow;
use std::path::Path;

use bimetal_core::device::{self, Device, DeviceError};
use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::replay::Plan;
use bimetal_core::trace::{DeviceChoice, Options, Trace};
use bimetal_study::prepare::Workload;
use bimetal_study::replays::Replays;
use bimetal_study::{input, sample};

use crate::args::{HtmlArgs, RunArgs, TraceArgs, TraceOptions};
use crate::failure::Failure;
use crate::progress::ReadBar;

/// Options for reading a trace.
pub fn reading(options: &TraceOptions) -> Options {
    let devices = options.volumes.clone().map_or(DeviceChoice::All, DeviceChoice::Only);
    Options {
        format: options.format,
        devices,
        time_unit: options.time_unit,
        action: options.action,
        columns: options.columns.clone(),
        objects: options.objects,
        limit: options.limit,
        ..Options::default()
    }
}

/// Reads traces, in the order given.
pub fn trace(paths: &[std::path::PathBuf], options: &TraceOptions) -> Result<Trace, Failure> {
    let options = reading(options);
    let bar = ReadBar::new();
    let progress = |done, total| {
        bar.at(done, total);
        ControlFlow::Continue(())
    };
    Ok(input::open_with_progress(paths, &options, &progress)?)
}

/// Name of the built-in trace, for options that must have a trace.
const SAMPLE: &str = "sample";

/// Whether this is the name of the built-in trace, and not a file.
pub fn is_sample(path: &Path) -> bool {
    path == Path::new(SAMPLE) && !path.exists()
}

/// Reads a trace, or the built-in one by its name.
pub fn named(path: &Path) -> Result<Workload, Failure> {
    let traces = if is_sample(path) { Vec::new() } else { vec![path.to_owned()] };
    workload(&TraceArgs { traces, options: TraceOptions::default() })
}

/// Reads the named traces, or the built-in one.
pub fn workload(args: &TraceArgs) -> Result<Workload, Failure> {
    if args.traces.is_empty() {
        if args.options.reads_otherwise() {
            let what = "options for reading a trace are given, but no trace; hint: name a trace file";
            return Err(Failure::usage(what));
        }
        return Ok(limited(sample::open()?, &args.options));
    }
    traces(&args.traces, &args.options)
}

/// Reads traces as one workload, in the order given.
pub fn traces(paths: &[std::path::PathBuf], options: &TraceOptions) -> Result<Workload, Failure> {
    Ok(limited(trace(paths, options)?, options))
}

fn limited(trace: Trace, options: &TraceOptions) -> Workload {
    Workload::of(trace, options.limit)
}

/// Number of intervals of figures over time in a report and in other programs' formats, unless the user gives one.
const INTERVALS: u32 = 60;

/// Number of intervals that the requested output needs; `None` if it has no figures over time.
pub fn intervals(run: &RunArgs) -> Option<u32> {
    let is_over_time = run.html.html.is_some() || run.export.iter().any(|export| export.format.is_over_time);
    is_over_time.then_some(INTERVALS)
}

/// The profile of a trace, if a report shows it.
pub fn profile(html: &HtmlArgs, workload: &Workload) -> Option<Profile> {
    html.html.is_some().then(|| workload.profile(&CurvePlan::default()))
}

/// The path of the device file with this name, unless it names a preset.
pub fn device_file(name: &str) -> Option<&Path> {
    let path = Path::new(name);
    let is_preset = device::PRESETS.iter().any(|preset| preset.name == name);
    (!is_preset && (path.exists() || looks_like_path(name))).then_some(path)
}

/// The named device.
pub fn device(name: &str) -> Result<Device, Failure> {
    let Some(path) = device_file(name) else { return Ok(device::preset(name)?) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::failed(format!("{name}: the device file cannot be read: {error}")))?;
    match Device::from_toml(&text) {
        Ok(device) => Ok(device),
        Err(error @ DeviceError::File(_)) => Err(Failure::failed(format!("{name}: {error}"))),
        Err(error) => Err(error.into()),
    }
}

fn looks_like_path(name: &str) -> bool {
    name.contains(std::path::MAIN_SEPARATOR) || name.ends_with(".toml")
}

/// All settings, including those of separate options.
pub fn settings(args: &RunArgs) -> Vec<(String, String)> {
    let seed = args.seed.map(|seed| ("seed".to_owned(), seed.to_string()));
    args.set.iter().cloned().chain(seed).collect()
}

/// Checks that the number of measured passes is at most the number of passes.
pub fn check_passes(args: &RunArgs) -> Result<(), Failure> {
    match args.measure {
        Some(measured) if measured > args.repeat => {
            Err(Failure::usage(format!("`--measure {measured}` is more than the {} passes of `--repeat`", args.repeat)))
        }
        _ => Ok(()),
    }
}

/// Parameters for replays of a workload.
pub fn replays(args: &RunArgs, intervals: u32, workload: &Workload) -> Replays {
    let plan = Plan {
        passes: args.repeat,
        measured_passes: args.measure.unwrap_or(args.repeat),
        fill: args.fill,
        intervals,
        ..Plan::default()
    };
    Replays::of(plan, args.arrivals, &workload.facts)
}
