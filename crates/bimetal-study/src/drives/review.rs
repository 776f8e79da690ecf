//! Measured and claimed figures: `reviews.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bimetal_core::device::{Device, DeviceError, preset};
use bimetal_core::units::ByteSize;
use serde::{Deserialize, Serialize};

/// A figure of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// One stream of 1-MiB writes over an empty drive: MB/s while the cache absorbs them.
    CacheMbPerS,
    /// GB written until the first drop.
    CacheGb,
    /// MB/s after the first drop.
    AfterMbPerS,
    /// GB written until the second drop.
    SecondGb,
    /// MB/s after the second drop.
    LastMbPerS,
    /// MB/s over the whole drive.
    FillMbPerS,
    /// MB/s of 128-KiB reads with 32 outstanding.
    ReadMbPerS,
    /// MB/s of 128-KiB writes with 32 outstanding, into the cache.
    WriteMbPerS,
    /// Random 4-KiB reads per second with one outstanding.
    #[serde(rename = "read_qd1_iops")]
    ReadQd1,
    /// Random 4-KiB writes per second with one outstanding.
    #[serde(rename = "write_qd1_iops")]
    WriteQd1,
    /// Random 4-KiB reads per second with many outstanding.
    #[serde(rename = "read_deep_iops")]
    ReadDeep,
    /// Random 4-KiB writes per second with many outstanding, into the cache.
    #[serde(rename = "write_deep_iops")]
    WriteDeep,
    /// Random 4-KiB writes per second over a full drive, after two overwrites.
    #[serde(rename = "write_steady_iops")]
    WriteSteady,
    /// Bytes programmed for each byte of sequential writes over an empty drive.
    WriteAmplificationSequential,
    /// The same for random 4-KiB writes over a full drive, after three overwrites.
    WriteAmplification,
    /// The same for Zipf-distributed writes with exponent 0.8 and scattered popular pages.
    WriteAmplificationZipf,
    /// The same with adjacent popular pages.
    WriteAmplificationZipfInOrder,
}

impl Figure {
    /// All figures, in the order of tables.
    pub const ALL: [Self; 17] = [
        Self::CacheMbPerS,
        Self::CacheGb,
        Self::AfterMbPerS,
        Self::SecondGb,
        Self::LastMbPerS,
        Self::FillMbPerS,
        Self::ReadMbPerS,
        Self::WriteMbPerS,
        Self::ReadQd1,
        Self::WriteQd1,
        Self::ReadDeep,
        Self::WriteDeep,
        Self::WriteSteady,
        Self::WriteAmplificationSequential,
        Self::WriteAmplification,
        Self::WriteAmplificationZipf,
        Self::WriteAmplificationZipfInOrder,
    ];

    /// A short title.
    pub fn title(self) -> &'static str {
        match self {
            Self::CacheMbPerS => "write, in the cache (MB/s)",
            Self::CacheGb => "until the first drop (GB)",
            Self::AfterMbPerS => "write, after 1st drop (MB/s)",
            Self::SecondGb => "until the second drop (GB)",
            Self::LastMbPerS => "write, after 2nd drop (MB/s)",
            Self::FillMbPerS => "write, whole drive (MB/s)",
            Self::ReadMbPerS => "read 128K QD32 (MB/s)",
            Self::WriteMbPerS => "write 128K QD32 (MB/s)",
            Self::ReadQd1 => "read 4K QD1 (IOPS)",
            Self::WriteQd1 => "write 4K QD1 (IOPS)",
            Self::ReadDeep => "read 4K, deep (IOPS)",
            Self::WriteDeep => "write 4K, deep (IOPS)",
            Self::WriteSteady => "write 4K, steady (IOPS)",
            Self::WriteAmplificationSequential => "write amplification, sequential",
            Self::WriteAmplification => "write amplification, uniform",
            Self::WriteAmplificationZipf => "write amplification, Zipf 0.8",
            Self::WriteAmplificationZipfInOrder => "write amplification, Zipf packed",
        }
    }
}

/// Kind of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Mark {
    /// Measured by a reviewer.
    #[serde(rename = "M")]
    Measured,
    /// Claimed by the maker.
    #[serde(rename = "C")]
    Claimed,
}

impl Mark {
    /// The letter in tables and files.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Measured => "M",
            Self::Claimed => "C",
        }
    }
}

/// Role of a drive in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Constants were fitted to it.
    Fitted,
    /// Predicted with the constants of the others.
    Predicted,
    /// A device of the user, without a review.
    #[serde(skip_deserializing)]
    Unreviewed,
}

impl Role {
    /// The name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::Predicted => "predicted",
            Self::Unreviewed => "unreviewed",
        }
    }
}

/// A fact about a product, with its source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// The page that states it.
    pub source: String,
}

/// A drive and its published performance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// Name on the command line: the name of its device, or another one for a part of a drive.
    pub name: String,
    /// The preset.
    pub device: String,
    /// Maker and model.
    pub title: String,
    /// Year of its release, if a page states it.
    #[serde(default)]
    pub released: Option<Sourced<u16>>,
    /// Host writes that its warranty covers, in TB of 10^12 bytes, if a page states it.
    #[serde(default)]
    pub rated_tbw: Option<Sourced<f64>>,
    /// Fitted or predicted.
    pub role: Role,
    /// Used capacity, if it is only a part of the drive.
    #[serde(default)]
    pub partition: Option<ByteSize>,
    /// Outstanding requests in the deep figures.
    #[serde(default = "deep")]
    pub depth: u32,
    /// Bytes programmed for each byte of data before any garbage collection: parity and metadata, which the simulated
    /// device lacks. They also apply to every copy of data.
    #[serde(default = "one")]
    pub overhead: f64,
    /// Figures that served as input of the construction. They do not count.
    #[serde(default)]
    pub inputs: Vec<Figure>,
    /// The figures to predict, each with its published value and kind of source, if there is one.
    pub figures: BTreeMap<Figure, Option<(f64, Mark)>>,
    /// The pages that state the figures.
    pub sources: Vec<String>,
    /// Caveats for the reader.
    #[serde(default)]
    pub note: String,
    /// The device itself, if it is not a preset.
    #[serde(skip)]
    own: Option<Device>,
}

fn deep() -> u32 {
    128
}

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
struct File {
    drive: Vec<Review>,
}

static REVIEWS: LazyLock<Vec<Review>> = LazyLock::new(|| {
    let file: Result<File, _> = toml::from_str(include_str!("reviews.toml"));
    file.map(|file| file.drive).unwrap_or_else(|error| unreachable!("reviews.toml: {error}"))
});

/// Every drive of the list.
pub fn reviews() -> &'static [Review] {
    &REVIEWS
}

/// Least logical capacity: short tests use a small part of a drive, which must have room for them.
const LOGICAL_MIN: ByteSize = ByteSize(1 << 30);

impl Review {
    /// A review of an unreviewed device: every figure is to be predicted, and none is known.
    ///
    /// # Errors
    /// The device is too small for the tests.
    pub fn of_device(device: Device) -> Result<Self, DeviceError> {
        if device.logical < LOGICAL_MIN {
            let what = format!("{} is too small to be measured as a drive; it takes {LOGICAL_MIN}", device.logical);
            return Err(DeviceError::Field { device: device.name, field: "logical".into(), what });
        }
        Ok(Self {
            name: device.name.clone(),
            device: device.name.clone(),
            title: device.name.clone(),
            released: None,
            rated_tbw: None,
            role: Role::Unreviewed,
            partition: None,
            depth: deep(),
            overhead: one(),
            inputs: Vec::new(),
            figures: Figure::ALL.iter().map(|&figure| (figure, None)).collect(),
            sources: Vec::new(),
            note: device.summary.clone(),
            own: Some(device),
        })
    }

    /// The device, limited to the used capacity.
    ///
    /// # Errors
    /// An invalid preset.
    pub fn made(&self) -> Result<Device, DeviceError> {
        let mut device = self.own.clone().map_or_else(|| preset(&self.device), Ok)?;
        if let Some(partition) = self.partition {
            device.logical = partition;
        }
        Ok(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drive_is_complete() {
        for review in reviews() {
            let device = review.made().unwrap_or_else(|error| panic!("{}: {error}", review.name));
            device.resolve().unwrap_or_else(|error| panic!("{}: {error}", review.name));
            assert!(device.controller.is_some() && !review.figures.is_empty(), "{}", review.name);
            assert!(review.sources.iter().all(|source| source.starts_with("http")), "{}", review.name);
            assert!(!review.sources.is_empty() && review.depth > 1, "{}", review.name);
            assert!((1.0..1.2).contains(&review.overhead), "{}", review.name);
            let released = review.released.iter().map(|year| (&year.source, (2000..2100).contains(&year.value)));
            let rated = review.rated_tbw.iter().map(|tbw| (&tbw.source, tbw.value > 0.0));
            for (source, is_likely) in released.chain(rated) {
                assert!(is_likely && source.starts_with("http"), "{}: {source}", review.name);
            }
            assert!(
                review.figures.values().all(|known| known.is_some_and(|(value, _)| value > 0.0)),
                "{}",
                review.name
            );
            assert!(review.inputs.iter().all(|input| review.figures.contains_key(input)), "{}", review.name);
            assert_eq!(reviews().iter().filter(|other| other.name == review.name).count(), 1, "{}", review.name);
        }
        let of = |role| reviews().iter().filter(|review| review.role == role).count();
        assert!(reviews().len() >= 16 && of(Role::Predicted) >= of(Role::Fitted));
    }

    #[test]
    fn a_device_without_a_review_has_every_figure_and_no_value() {
        let device = preset("tlc-1tb-pslc").unwrap();
        let review = Review::of_device(device.clone()).unwrap();
        assert_eq!(review.made().unwrap(), device);
        assert!(review.figures.len() == Figure::ALL.len() && review.figures.values().all(Option::is_none));
        let small = Device { logical: ByteSize(1 << 20), ..device };
        assert!(Review::of_device(small).unwrap_err().to_string().contains("`logical`: 1MiB is too small"));
    }
}
