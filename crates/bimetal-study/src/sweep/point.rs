//! A point of a study: one trace on one device under one scheme. It is plain data that can be written as JSON and sent to any
//! worker, who makes a [`Row`] of it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bimetal_core::device::{self, AUTO, Device};
use bimetal_core::replay::{Plan, Progress};
use bimetal_core::scheme;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::row::{Failure, FailureKind, Figures, Row};
use super::source::{Loaded, TraceSource, hex};
use crate::compare::Speed;
use crate::{StudyError, arrivals, command, compare, memory, prepare};

/// One point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The requests.
    pub trace: TraceSource,
    /// The device.
    pub device: DeviceSource,
    /// Registry name of the scheme.
    pub scheme: String,
    /// Settings of the device and of the scheme, which has all of the latter.
    pub set: BTreeMap<String, String>,
    /// How the requests are replayed.
    pub replay: Replay,
}

/// A device of a study.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSource {
    /// The name of a preset, or the path of a device file beside the study file.
    pub name: String,
    /// The text of the device file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl DeviceSource {
    /// The description.
    ///
    /// # Errors
    /// An unknown preset, or a file that is none of a device.
    pub fn device(&self) -> Result<Device, device::DeviceError> {
        match &self.file {
            Some(text) => Device::from_toml(text),
            None => device::preset(&self.name),
        }
    }
}

/// How requests are replayed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// `closed:DEPTH` or `trace:SPEED`.
    pub arrivals: String,
    /// How often the trace is replayed.
    pub repeat: u32,
    /// How many of the last times are measured.
    pub measure: u32,
    /// Whether the device is filled before.
    pub fill: bool,
}

impl Default for Replay {
    /// As `compare` does without options.
    fn default() -> Self {
        Self { arrivals: arrivals::name(Plan::default().arrivals), repeat: 1, measure: 1, fill: true }
    }
}

impl Replay {
    /// What the driver takes.
    ///
    /// # Errors
    /// Arrivals that cannot be, more measured passes than there are.
    pub fn plan(&self) -> Result<Plan, String> {
        if self.measure == 0 || self.measure > self.repeat {
            return Err(format!(
                "`measure` is {}, and `repeat` {}: measure 1 of them or more",
                self.measure, self.repeat
            ));
        }
        Ok(Plan {
            arrivals: arrivals::parse(&self.arrivals)?,
            passes: self.repeat,
            measured_passes: self.measure,
            fill: self.fill,
            ..Plan::default()
        })
    }
}

/// Whether a setting chooses a part, with all of its figures.
pub(super) fn is_part(key: &str) -> bool {
    key.ends_with(".chip") || key.ends_with(".drive")
}

impl Point {
    /// Settings in the order in which they are made: a part first, since it brings its own figures.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut settings: Vec<_> = self.set.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        settings.sort_by_key(|(key, _)| !is_part(key));
        settings
    }

    /// What it is known by: a fingerprint of everything that its figures follow from. `trace` is that of the trace's content.
    pub fn key(&self, trace: &str) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        let version = scheme::find(&self.scheme).map_or(0, |spec| spec.version);
        let sum = Sha256::digest(format!("{json}\n{trace}\n{version}\n{}\n", env!("CARGO_PKG_VERSION")));
        hex(&sum[..16])
    }

    /// The command that repeats it, in the folder of the study file; none where no command can read the trace.
    pub fn command(&self) -> Option<String> {
        let mut words: Vec<String> = vec!["bimetal".into(), "replay".into()];
        words.extend(self.trace.words()?);
        let mut option = |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
        if self.device.name != AUTO {
            option("--device", &self.device.name);
        }
        option("--scheme", &self.scheme);
        for (key, value) in self.settings() {
            option("--set", &format!("{key}={value}"));
        }
        option("--arrivals", &self.replay.arrivals);
        if self.replay.repeat != 1 {
            option("--repeat", &self.replay.repeat.to_string());
        }
        if self.replay.measure != self.replay.repeat {
            option("--measure", &self.replay.measure.to_string());
        }
        if !self.replay.fill {
            words.push("--no-fill".into());
        }
        let replay = command::line(words);
        let generate = self.trace.generator().map(command::line);
        Some(generate.map_or_else(|| replay.clone(), |generate| format!("{generate} | {replay}")))
    }
}

/// Runs a point on its own: `folder` is that of the study file. Whatever goes wrong is in the row, also that `served` ended it.
pub fn run(point: &Point, folder: &Path, served: Progress<'_>) -> Row {
    match point.trace.load(folder) {
        Ok(trace) => run_on(point, &trace, &|bytes| memory::check_bytes(bytes), served),
        Err(failure) => Row::failed(point, "", failure),
    }
}

/// Runs a point on its trace. `admit` is asked before so many bytes of memory are taken, and what it returns is kept as long as
/// they are in use; `served` is told how many requests have been served, and may end it.
pub(crate) fn run_on<P>(
    point: &Point,
    trace: &Loaded,
    admit: &dyn Fn(u64) -> Result<P, StudyError>,
    served: Progress<'_>,
) -> Row {
    // What was being built when a scheme panicked is dropped with it; the trace is only read.
    let result = catch_unwind(AssertUnwindSafe(|| figures(point, trace, admit, served)));
    let result = result.unwrap_or_else(|panic| Err(Failure::panic(panic.as_ref())));
    match result {
        Ok((figures, speed)) => Row::done(point, &trace.fingerprint, figures, speed),
        Err(failure) => Row::failed(point, &trace.fingerprint, failure),
    }
}

fn figures<P>(
    point: &Point,
    trace: &Loaded,
    admit: &dyn Fn(u64) -> Result<P, StudyError>,
    served: Progress<'_>,
) -> Result<(Figures, Speed), Failure> {
    let device = point.device.device().map_err(StudyError::from)?;
    let scheme = scheme::find(&point.scheme).map_err(device::DeviceError::from).map_err(StudyError::from)?;
    let plan = point.replay.plan().map_err(|what| Failure { kind: FailureKind::Refused, what })?;
    let (workload, resolved) = prepare::prepare_one(trace.workload.clone(), device, scheme, &point.settings())?;
    let _permit = admit(resolved.memory_bytes())?;
    let entry = compare::entry(&resolved, &workload.requests, &workload.facts, &plan, served)?;
    let speed = entry.speed;
    Ok((Figures::of(entry, &workload.facts), speed))
}

#[cfg(test)]
mod tests {
    use bimetal_core::replay::to_the_end;

    use super::*;
    use crate::sweep::source::Origin;

    fn point() -> Point {
        Point {
            trace: TraceSource { name: "s".into(), from: Origin::Sample, limit: Some(500) },
            device: DeviceSource { name: AUTO.into(), file: None },
            scheme: "chang".into(),
            set: BTreeMap::from([("slow.bus_mb_per_s".into(), "50".into()), ("slow.chip".into(), "chang-mlc".into())]),
            replay: Replay { repeat: 3, measure: 3, ..Replay::default() },
        }
    }

    #[test]
    fn a_point_is_plain_data() {
        let json = serde_json::to_string(&point()).unwrap();
        let back: Point = serde_json::from_str(&json).unwrap();
        assert_eq!(back, point());
        assert_eq!(back.key("t"), point().key("t"));
        assert!(serde_json::from_str::<Point>(&json.replacen("\"scheme\"", "\"shceme\"", 1)).is_err());
        let row = run(&back, Path::new("."), &mut to_the_end);
        assert_eq!(row.failure, None);
        assert_eq!(row.without_speed(), run(&point(), Path::new("."), &mut to_the_end).without_speed());
    }

    #[test]
    fn whatever_changes_figures_changes_what_a_point_is_known_by() {
        let key = point().key("t");
        assert_eq!(key.len(), 32);
        assert_ne!(point().key("u"), key);
        let changed = |change: fn(&mut Point)| {
            let mut point = point();
            change(&mut point);
            point.key("t")
        };
        assert_ne!(changed(|point| point.scheme = "pagemap".into()), key);
        assert_ne!(changed(|point| point.trace.limit = None), key);
        assert_ne!(changed(|point| point.replay.fill = false), key);
        assert_ne!(changed(|point| point.device.file = Some(String::new())), key);
        assert_ne!(changed(|point| drop(point.set.pop_first())), key);
    }

    #[test]
    fn commands_say_what_differs_from_the_usual() {
        let command = "bimetal replay --limit 500 --scheme chang --set slow.chip=chang-mlc --set slow.bus_mb_per_s=50 \
                       --arrivals closed:1 --repeat 3";
        assert_eq!(point().command().as_deref(), Some(command));
        let mut point = point();
        point.trace.from = Origin::Generated { workload: "zipf".into(), set: BTreeMap::new(), seed: 7 };
        point.replay = Replay { arrivals: "trace:2.5".into(), fill: false, ..Replay::default() };
        point.device.name = "my device.toml".into();
        point.set.clear();
        let command = "bimetal generate zipf /dev/stdout --to bimetal --seed 7 | bimetal replay - --limit 500 \
                       --device 'my device.toml' --scheme chang --arrivals trace:2.5 --no-fill";
        assert_eq!(point.command().as_deref(), Some(command));
        point.trace = TraceSource::in_memory("m");
        assert_eq!(point.command(), None);
    }

    #[test]
    fn what_goes_wrong_is_in_the_row() {
        let failure = |change: fn(&mut Point)| {
            let mut point = point();
            change(&mut point);
            let row = run(&point, Path::new("."), &mut to_the_end);
            assert!(row.figures.is_none() && row.speed.is_none());
            row.failure.unwrap()
        };
        let refused = failure(|point| drop(point.set.insert("slow.spare".into(), "0%".into())));
        assert!(refused.kind == FailureKind::Refused && refused.what.contains("spare"), "{refused:?}");
        let large = failure(|point| drop(point.set.insert("logical".into(), "900TiB".into())));
        assert_eq!(large.kind, FailureKind::Refused, "{large:?}");
        let unknown = failure(|point| point.scheme = "nosuch".into());
        assert!(unknown.what.contains("pagemap"), "{unknown:?}");
        let trace = Origin::Files {
            paths: vec!["none".into()],
            format: None,
            time_unit: None,
            columns: None,
            action: None,
            volumes: None,
        };
        let mut point = point();
        point.trace.from = trace;
        assert_eq!(run(&point, Path::new("."), &mut to_the_end).failure.unwrap().kind, FailureKind::Trace);
    }

    #[test]
    fn too_little_memory_and_a_panic_are_failed_points() {
        let trace = point().trace.load(Path::new(".")).unwrap();
        let refuse = |bytes: u64| -> Result<(), _> {
            assert!(bytes > 0);
            Err(StudyError::Memory { needed_mib: 2, available_mib: 1 })
        };
        let failure = run_on(&point(), &trace, &refuse, &mut to_the_end).failure.unwrap();
        assert!(failure.kind == FailureKind::Memory && failure.may_pass(), "{failure:?}");
        let row = run_on(&point(), &trace, &|_| -> Result<(), _> { panic!("a {}", "wall") }, &mut to_the_end);
        let failure = row.failure.unwrap();
        assert!(failure.kind == FailureKind::Panic && failure.what.contains("a wall"), "{failure:?}");
    }
}
