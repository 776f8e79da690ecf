//! The registries and catalogues for `list --json` and Python: one object for each entry.

use bimetal_core::chip::{self, Chip};
use bimetal_core::device::{self, Device, DeviceError, PRESETS};
use bimetal_core::drive::{self, Drive};
use bimetal_core::scheme::{Adaptation, ParameterSpec, Regions, SCHEMES, SchemeSpec};
use bimetal_core::trace::{FORMATS, Format};
use bimetal_core::workload::{Goal, WORKLOADS, WorkloadSpec};
use serde::Serialize;

use crate::number::{NOTHING, SIZES, significant, thousands, with_unit};
use crate::writer::WRITERS;

/// A scheme.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct SchemeItem {
    /// Registry name.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// The paper, or another definition.
    pub source: &'static str,
    /// The regions that it manages, in words.
    pub regions: &'static str,
    /// Its parameters.
    pub parameters: Vec<ParameterSpec>,
    /// The figures by which it adapts to the requests.
    pub adapts: Vec<Adaptation>,
}

/// A flash part with all its figures.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ChipItem {
    /// One-line description.
    pub summary: String,
    /// Its figures.
    #[serde(flatten)]
    pub chip: Chip,
}

/// A hard disk with all its figures.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct DriveItem {
    /// One-line description.
    pub summary: String,
    /// Its figures.
    #[serde(flatten)]
    pub drive: Drive,
}

/// A device preset.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct DeviceItem {
    /// Name of the preset.
    pub name: &'static str,
    /// One-line description.
    pub summary: String,
    /// The complete device description.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub device: Device,
}

/// A trace format.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FormatItem {
    /// Its name.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// The fields of a record, in a line.
    pub layout: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Default unit of its time stamps; none if the format fixes the unit.
    pub time_unit: Option<String>,
    /// Whether Bimetal can write traces in this format.
    pub written: bool,
}

/// A generated workload.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct WorkloadItem {
    /// Its name.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// The paper, or another definition.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: Vec<ParameterSpec>,
    /// Published characteristics of the original workload.
    pub targets: Vec<TargetItem>,
}

/// A published characteristic of a workload.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct TargetItem {
    /// The measured quantity, with its unit.
    pub name: &'static str,
    /// The paper with its section, table or figure.
    pub source: &'static str,
    /// The value in the source.
    pub published: f64,
    /// Required accuracy of the generated value.
    pub goal: Goal,
}

/// The regions that a scheme requires, in words.
pub fn regions(regions: Regions) -> &'static str {
    match regions {
        Regions::One => "one",
        Regions::FastAndSlow => "fast and slow",
        Regions::DualMode => "one, in two cell modes",
        Regions::FlashOverDisk => "one, over disks",
    }
}

impl SchemeItem {
    /// The catalogue entry of a scheme.
    pub fn of(spec: &SchemeSpec) -> Self {
        let (parameters, adapts) = ((spec.parameters)(), spec.adapts.to_vec());
        let regions = regions(spec.regions);
        Self { name: spec.name, summary: spec.summary, source: spec.source, regions, parameters, adapts }
    }
}

impl ChipItem {
    /// The catalogue entry of a flash part.
    pub fn of(chip: Chip) -> Self {
        let (page, block) = (u64::from(chip.page_bytes), u64::from(chip.page_bytes) * u64::from(chip.pages_per_block));
        let summary = format!(
            "{}, {} pages in {} blocks; {} / {} / {} µs to read / program / erase; {} cycles",
            format!("{:?}", chip.cell).to_uppercase(),
            with_unit(SIZES, page as f64),
            with_unit(SIZES, block as f64),
            chip.read_us,
            chip.program_us,
            chip.erase_us,
            chip.endurance
        );
        Self { summary, chip }
    }
}

impl DriveItem {
    /// The catalogue entry of a hard disk.
    pub fn of(drive: Drive) -> Self {
        let rpm = drive.mechanics.as_ref().map_or_else(|| NOTHING.to_owned(), |parts| thousands(u64::from(parts.rpm)));
        let summary = format!(
            "{}, {rpm} rpm; {} / {} ms to reach the first sector of a read / write in the constant model; {} MB/s",
            with_unit(SIZES, drive.capacity.0 as f64),
            significant(drive.read_position_us / 1e3),
            significant(drive.write_position_us / 1e3),
            drive.mb_per_s
        );
        Self { summary, drive }
    }
}

impl DeviceItem {
    /// The catalogue entry of a preset.
    ///
    /// # Errors
    /// None, unless the program file is damaged.
    pub fn of(preset: &device::Preset) -> Result<Self, DeviceError> {
        let device = device::preset(preset.name)?;
        Ok(Self { name: preset.name, summary: device.summary.clone(), device })
    }
}

impl FormatItem {
    /// The catalogue entry of a trace format.
    pub fn of(format: &Format) -> Self {
        Self {
            name: format.name,
            summary: format.summary,
            layout: format.layout,
            aliases: format.aliases,
            time_unit: format.time_unit.map(|unit| unit.to_string()),
            written: WRITERS.iter().any(|writer| writer.format == format.name),
        }
    }
}

impl WorkloadItem {
    /// The catalogue entry of a workload.
    pub fn of(spec: &WorkloadSpec) -> Self {
        let targets = (spec.targets)(&[]).unwrap_or_default().into_iter().map(|target| TargetItem {
            name: target.name,
            source: target.source,
            published: target.published,
            goal: target.goal,
        });
        Self {
            name: spec.name,
            summary: spec.summary,
            source: spec.source,
            parameters: (spec.parameters)(),
            targets: targets.collect(),
        }
    }
}

/// Every scheme.
pub fn schemes() -> Vec<SchemeItem> {
    SCHEMES.iter().map(|spec| SchemeItem::of(spec)).collect()
}

/// Every flash part.
pub fn chips() -> Vec<ChipItem> {
    chip::catalogue().into_iter().map(ChipItem::of).collect()
}

/// Every hard disk.
pub fn drives() -> Vec<DriveItem> {
    drive::catalogue().into_iter().map(DriveItem::of).collect()
}

/// Every device preset.
///
/// # Errors
/// None, unless the program file is damaged.
pub fn devices() -> Result<Vec<DeviceItem>, DeviceError> {
    PRESETS.iter().map(DeviceItem::of).collect()
}

/// Every trace format.
pub fn formats() -> Vec<FormatItem> {
    FORMATS.iter().map(|format| FormatItem::of(format)).collect()
}

/// Every workload.
pub fn workloads() -> Vec<WorkloadItem> {
    WORKLOADS.iter().map(|spec| WorkloadItem::of(spec)).collect()
}
