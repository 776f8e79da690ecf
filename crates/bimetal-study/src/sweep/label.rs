//! Labels of points.

use std::collections::{BTreeMap, BTreeSet};

use super::point::Point;
use super::row::Row;
use bimetal_core::device::AUTO;

/// Scheme, trace, and every setting of a point that differs from the default.
pub fn full(point: &Point) -> String {
    let mut words = vec![format!("`{}` on {}", point.scheme, point.trace.name)];
    if point.device.name != AUTO {
        words.push(format!("device {}", point.device.name));
    }
    words.extend(point.settings().into_iter().map(|(key, value)| format!("{key}={value}")));
    words.join(", ")
}

/// The settings that differ between rows.
#[derive(Clone, Debug)]
pub struct Varying {
    /// Keys with all of their values, in the order of first use.
    keys: BTreeMap<String, Vec<String>>,
    devices: bool,
}

impl Varying {
    /// The varying settings of these rows. A setting that a scheme does not have does not vary because of that.
    pub fn of(rows: &[Row]) -> Self {
        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, value) in rows.iter().flat_map(|row| &row.point.set) {
            let values = keys.entry(key.clone()).or_default();
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        let mut schemes: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            schemes.entry(&row.point.scheme).or_default().push(row);
        }
        let some_alone = |key: &String| {
            let has = |row: &&Row| row.point.set.contains_key(key);
            schemes.values().any(|rows| rows.iter().any(has) && !rows.iter().all(has))
        };
        keys.retain(|key, values| values.len() > 1 || some_alone(key));
        let devices: BTreeSet<&String> = rows.iter().map(|row| &row.point.device.name).collect();
        Self { keys, devices: devices.len() > 1 }
    }

    /// Keys with all of their values.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.keys.iter().map(|(key, values)| (key.as_str(), values.as_slice()))
    }

    /// Whether the rows have different devices.
    pub fn devices(&self) -> bool {
        self.devices
    }

    /// The varying settings of a point.
    pub fn settings(&self, point: &Point) -> String {
        let own = self.keys.keys().filter_map(|key| Some(format!("{key}={}", point.set.get(key)?)));
        own.collect::<Vec<_>>().join(" ")
    }

    /// Scheme, device if devices differ, and varying settings of a point.
    pub fn short(&self, point: &Point) -> String {
        let mut words = vec![point.scheme.clone()];
        if self.devices {
            words.push(point.device.name.clone());
        }
        words.push(self.settings(point));
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }
}
