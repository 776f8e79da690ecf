//! A point of a study: one trace on one device under one scheme. It is plain data, which can be written as JSON and
//! sent to any worker. The worker makes a [`Row`](super::row::Row) of it.

use std::collections::BTreeMap;

use bimetal_core::device::{self, AUTO, Device};
use bimetal_core::replay::{Fill, Plan};
use bimetal_core::scheme;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::source::{TraceSource, hex};
use crate::{arrivals, command};

/// One point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The requests.
    pub trace: TraceSource,
    /// The device.
    pub device: DeviceSource,
    /// Registry name of the scheme.
    pub scheme: String,
    /// Settings of the device and of the scheme. The scheme has every parameter among them.
    pub set: BTreeMap<String, String>,
    /// The replay of the requests.
    pub replay: Replay,
}

/// A device of a study.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceSource {
    /// The name of a preset, or the path of a device file relative to the study file.
    pub name: String,
    /// The text of the device file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl DeviceSource {
    /// The description.
    ///
    /// # Errors
    /// An unknown preset, or an invalid device file.
    pub fn device(&self) -> Result<Device, device::DeviceError> {
        match &self.file {
            Some(text) => Device::from_toml(text),
            None => device::preset(&self.name),
        }
    }
}

/// Parameters of a replay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// `closed:DEPTH` or `trace:SPEED`.
    pub arrivals: String,
    /// Number of passes over the trace.
    pub repeat: u32,
    /// Number of last passes that are measured.
    pub measure: u32,
    /// Data on the device before the first pass: `device`, `trace` or `none`.
    pub fill: String,
}

impl Default for Replay {
    /// The defaults of `compare`.
    fn default() -> Self {
        Self {
            arrivals: arrivals::name(Plan::default().arrivals),
            repeat: 1,
            measure: 1,
            fill: Fill::default().to_string(),
        }
    }
}

impl Replay {
    /// The plan for the replay driver.
    ///
    /// # Errors
    /// Invalid arrivals, or more measured passes than passes.
    pub fn plan(&self) -> Result<Plan, String> {
        if self.measure == 0 || self.measure > self.repeat {
            return Err(format!(
                "`measure` is {} and `repeat` is {}: measure at least 1 pass and at most all",
                self.measure, self.repeat
            ));
        }
        Ok(Plan {
            arrivals: arrivals::parse(&self.arrivals)?,
            passes: self.repeat,
            measured_passes: self.measure,
            fill: self.fill.parse()?,
            ..Plan::default()
        })
    }
}

/// Whether a setting chooses a part, which sets all figures of the part.
pub(super) fn is_part(key: &str) -> bool {
    key.ends_with(".chip") || key.ends_with(".drive")
}

impl Point {
    /// Settings in the order in which they are applied: parts first, since a part sets its own figures.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut settings: Vec<_> = self.set.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        settings.sort_by_key(|(key, _)| !is_part(key));
        settings
    }

    /// The key of a point in results: a fingerprint of everything that determines its figures. `trace` is the
    /// fingerprint of the trace.
    pub fn key(&self, trace: &str) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        let version = scheme::find(&self.scheme).map_or(0, |spec| spec.version);
        let sum = Sha256::digest(format!("{json}\n{trace}\n{version}\n{}\n", env!("CARGO_PKG_VERSION")));
        hex(&sum[..16])
    }

    /// The command that repeats the point, to run in the folder of the study file. None if no command can read the
    /// trace.
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
        if self.replay.fill != Fill::default().to_string() {
            option("--fill", &self.replay.fill);
        }
        let replay = command::line(words);
        let generate = self.trace.generator().map(command::line);
        Some(generate.map_or_else(|| replay.clone(), |generate| format!("{generate} | {replay}")))
    }
}

/// A point for tests.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::sweep::source::Origin;

    pub fn point() -> Point {
        Point {
            trace: TraceSource { name: "s".into(), from: Origin::Sample, limit: Some(500) },
            device: DeviceSource { name: AUTO.into(), file: None },
            scheme: "chang".into(),
            set: BTreeMap::from([("slow.bus_mb_per_s".into(), "50".into()), ("slow.chip".into(), "chang-mlc".into())]),
            replay: Replay { repeat: 3, measure: 3, ..Replay::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::point;
    use super::*;
    use crate::sweep::source::Origin;

    #[test]
    fn a_point_is_plain_data() {
        let json = serde_json::to_string(&point()).unwrap();
        let back: Point = serde_json::from_str(&json).unwrap();
        assert_eq!(back, point());
        assert_eq!(back.key("t"), point().key("t"));
        assert!(serde_json::from_str::<Point>(&json.replacen("\"scheme\"", "\"shceme\"", 1)).is_err());
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
        assert_ne!(changed(|point| point.replay.fill = Fill::None.to_string()), key);
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
        point.replay = Replay { arrivals: "trace:2.5".into(), fill: "trace".into(), ..Replay::default() };
        point.device.name = "my device.toml".into();
        point.set.clear();
        let command = "bimetal generate zipf /dev/stdout --to bimetal --seed 7 | bimetal replay - --limit 500 \
                       --device 'my device.toml' --scheme chang --arrivals trace:2.5 --fill trace";
        assert_eq!(point.command().as_deref(), Some(command));
        point.trace = TraceSource::in_memory("m");
        assert_eq!(point.command(), None);
    }
}
