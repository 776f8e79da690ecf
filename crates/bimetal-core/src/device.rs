//! Devices: the parts of a drive and the scheme that runs it, as a TOML file or a preset.
//!
//! ```toml
//! name = "example"
//! scheme = "pagemap"
//! logical = "20GiB"                                      # what the host sees
//!
//! [[region]]                                             # the fast region first, the slow one last
//! name = "mlc"
//! chip = { base = "chang-mlc", endurance = 5000 }        # or just "chang-mlc"
//! capacity = "21GiB"                                     # raw; or "105%" of the logical capacity
//! channels = 2
//! dies_per_channel = 4
//!
//! [parameters]                                           # of the scheme
//! gc_free_blocks = 2
//! ```
//!
//! A drive of today has a `[controller]` above `[[region]]`, and maps parts of a page:
//!
//! ```toml
//! [controller]
//! link_mb_per_s = 3500                                   # host link, protocol included
//! buffer = "8MiB"                                        # write buffer; all fields: `controller::ControllerSettings`
//!
//! [[region]]
//! name = "tlc"
//! chip = "tlc-3d-2019"
//! mapping_unit = "4KiB"
//! # ...
//! ```
//!
//! A cache has one region and, above `[parameters]`, the disks that are the home of its data:
//!
//! ```toml
//! [[disk]]
//! name = "disk"
//! drive = "atlas-10k-iv"                                 # or a table of figures with a base
//! capacity = "50%"                                       # of the logical capacity; by default an equal share of the rest
//! ```
//!
//! [`Device::resolve`] turns the description into the inputs of a scheme and of simulated media. A [`Template`] makes
//! comparable devices for several schemes, from a description or from a logical capacity alone.

mod fit;
mod part_choice;
mod presets;
mod resolve;
mod scale;
mod set;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::controller;
use crate::media::Faults;
use crate::scheme::BuildError;
use crate::toml_file::{self, TomlFileError};
use crate::units::ByteSize;

pub use fit::{AUTO, BARE_DIES, Template};
pub use part_choice::{Part, PartChoice};
pub use presets::{PRESETS, Preset, preset};
pub use resolve::Resolved;
pub use set::{DEVICE_KEYS, is_device_key};

/// A drive: regions of flash, and the scheme that manages them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Name in tables.
    pub name: String,
    /// Description in a line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The scheme that runs it; empty if any scheme may.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheme: String,
    /// Capacity that the host sees.
    pub logical: ByteSize,
    /// Seed of all pseudo-random numbers.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Whether it does one operation at a time, over all regions and dies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serial: bool,
    /// Whether it is scaled to the data that a trace touches: the same number of dies and channels, smaller blocks or
    /// more of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fit_to_trace: bool,
    /// Host link, write buffer and firmware of a drive of today; the papers' devices have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<controller::ControllerSettings>,
    /// The fast region first, the slow one last.
    #[serde(rename = "region")]
    pub regions: Vec<Region>,
    /// Home disks, if the flash is a cache.
    #[serde(rename = "disk", default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// Parameters of the scheme; the others have their defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, toml::Value>,
}

/// A hard disk that is the home of a part of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Name in tables.
    pub name: String,
    /// The drive.
    pub drive: PartChoice,
    /// Part of the logical capacity on this disk; the first part is on the first disk. Disks without it share the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
}

/// Flash of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Name in tables.
    pub name: String,
    /// The part.
    pub chip: PartChoice,
    /// Raw capacity. The part beyond the logical capacity is spare area.
    pub capacity: Capacity,
    /// Channels to the controller.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub channels: u32,
    /// Dies on each channel.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub dies_per_channel: u32,
    /// Bytes that an entry of the map covers: a page, a part of one, or pages of several planes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping_unit: Option<ByteSize>,
    /// Injected failures.
    #[serde(default, skip_serializing_if = "is_faultless")]
    pub faults: Faults,
}

fn default_seed() -> u64 {
    1
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

fn is_faultless(faults: &Faults) -> bool {
    *faults == Faults::default()
}

/// A raw capacity: a size, or a share of the device's logical capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// Bytes.
    Bytes(ByteSize),
    /// Percent of the logical capacity.
    Percent(f64),
}

impl Capacity {
    /// In bytes, on a device with this logical capacity.
    pub fn bytes(self, logical: ByteSize) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.0,
            Self::Percent(percent) => (logical.0 as f64 * percent / 100.0).round() as u64,
        }
    }
}

impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().ends_with('%') { parse_percent(text).map(Self::Percent) } else { text.parse().map(Self::Bytes) }
    }
}

/// A percentage from 0 to 100 000, with or without its sign.
fn parse_percent(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let percent = number.parse().ok().filter(|percent| (0.0..=100_000.0).contains(percent));
    percent.ok_or_else(|| format!("`{text}` is not a share such as 5% or 1.25%"))
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Serialize for Capacity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Capacity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a size such as `256MiB`, or a share of the logical capacity such as `105%`")]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => Ok(Self::Bytes(ByteSize(bytes))),
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// An invalid device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The file is not TOML, or has a wrong field.
    #[error(transparent)]
    File(#[from] TomlFileError),
    /// An invalid field.
    #[error("device `{device}`, `{field}`: {what}")]
    Field {
        /// Name of the device.
        device: String,
        /// The field, with its region.
        field: String,
        /// What is wrong and what to do.
        what: String,
    },
    /// A setting that names no field.
    #[error("`{key}` is no setting of device `{device}`; it has: {known}")]
    Setting {
        /// Name of the device.
        device: String,
        /// The key that was given.
        key: String,
        /// The keys there are.
        known: String,
    },
    /// No preset with this name.
    #[error("there is no device `{name}`; there are: {known}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The scheme refuses the device.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl Device {
    /// Reads a device file.
    ///
    /// # Errors
    /// Text that is not TOML, and unknown or missing fields.
    pub fn from_toml(text: &str) -> Result<Self, DeviceError> {
        Ok(toml_file::parse(text)?)
    }

    /// Writes a device file.
    ///
    /// # Errors
    /// A number too large for TOML.
    pub fn to_toml(&self) -> Result<String, DeviceError> {
        toml::to_string(self).map_err(|error| self.wrong("device", error.to_string()))
    }

    fn wrong(&self, field: impl Into<String>, what: impl Into<String>) -> DeviceError {
        DeviceError::Field { device: self.name.clone(), field: field.into(), what: what.into() }
    }

    /// The parameters as a scheme reads them.
    pub fn settings(&self) -> Vec<(String, String)> {
        let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.parameters.iter().map(|(key, value)| (key.clone(), text(value))).collect()
    }
}

/// A value with TOML's types: a number, true or false, or else text.
fn toml_value(text: &str) -> toml::Value {
    if let Ok(whole) = text.parse::<i64>() {
        return toml::Value::Integer(whole);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => toml::Value::Float(number),
        _ => match text {
            "true" => toml::Value::Boolean(true),
            "false" => toml::Value::Boolean(false),
            _ => toml::Value::String(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests;
