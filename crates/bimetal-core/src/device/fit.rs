//! Comparable devices for several schemes, made from one description or from a logical capacity alone.

use super::set::FIT_TO_TRACE;
use super::{Capacity, Device, DeviceError, Disk, PartChoice, Region, Resolved};
use crate::chip::Chip;
use crate::media::{Faults, SimMedia};
use crate::scheme::{BuildError, Regions, SchemeSpec};
use crate::units::ByteSize;

/// A device from which those of several schemes are made.
///
/// A scheme of one region gets the slow one. A scheme that runs blocks of one region in either cell mode gets the slow
/// one, enlarged by as much as the fast region's money buys. A scheme of two regions gets both. A cache gets the fast one
/// in front of a disk.
#[derive(Clone, Debug)]
pub struct Template {
    device: Device,
    /// Fitted to a trace: what was not set may grow as far as a scheme needs it.
    automatic: bool,
    /// By region: whether its capacity was set.
    is_set: Vec<bool>,
}

/// Chang's 256 MB of SLC in front of 20 GB.
const FAST_PERCENT: f64 = 1.25;
const FAST_BLOCKS_MIN: u32 = 16;
/// 5 % of spare area, as Chang's 21 GB for 20 GB.
const SLOW_PERCENT: f64 = 105.0;
const LOGICAL_BYTES_MIN: u64 = 4 << 20;
/// A drive of many dies has blocks of a wordline at this capacity.
const FITTED_BYTES_MIN: u64 = 128 << 20;
/// The disk under a cache.
const HOME_DRIVE: &str = "nearline-18tb";
/// Parameter of schemes that run blocks in either cell mode: the capacity that they may give up for that.
const BUDGET: &str = "budget";
/// How many blocks of each die may be added to a small slow region.
const GROWTH_MAX: u32 = 64;
/// Above this much memory a device is not small, and has spare area enough for every scheme.
const TRIED_BYTES_MAX: u64 = 256 << 20;

impl Template {
    /// A device as it is described.
    pub fn fixed(device: Device) -> Self {
        let is_set = vec![true; device.regions.len()];
        Self { device, automatic: false, is_set }
    }

    /// A device for a trace that touches that many bytes: the one that is described, scaled down if it or a setting says so, or one
    /// that is made for the trace.
    ///
    /// # Errors
    /// A part that cannot be, or a setting that is neither true nor false.
    pub fn for_trace(
        device: Option<Device>,
        settings: &[(String, String)],
        touched_bytes: u64,
    ) -> Result<Self, DeviceError> {
        let Some(mut device) = device else { return Ok(Self::auto(touched_bytes)) };
        for (key, value) in settings.iter().filter(|(key, _)| key == FIT_TO_TRACE) {
            device.set(key, value)?;
        }
        if !device.fit_to_trace {
            return Ok(Self::fixed(device));
        }
        let logical = ByteSize(touched_bytes.max(FITTED_BYTES_MIN).next_multiple_of(LOGICAL_BYTES_MIN));
        let is_set = vec![false; device.regions.len()];
        Ok(Self { device: device.scaled(logical)?, automatic: true, is_set })
    }

    /// A device for that many bytes: Chang's MLC with 5 % spare area behind his SLC of 1.25 %, and for caches a disk
    /// in its place.
    pub fn auto(logical_bytes: u64) -> Self {
        let region = |name: &str, chip: &str, percent| Region {
            name: name.into(),
            chip: PartChoice::Named(chip.into()),
            capacity: Capacity::Percent(percent),
            channels: 1,
            dies_per_channel: 1,
            mapping_unit: None,
            faults: Faults::default(),
        };
        let device = Device {
            name: "auto".into(),
            summary: String::new(),
            scheme: String::new(),
            logical: ByteSize(logical_bytes.max(LOGICAL_BYTES_MIN)),
            seed: 1,
            serial: false,
            fit_to_trace: false,
            controller: None,
            regions: vec![region("slc", "chang-slc", FAST_PERCENT), region("mlc", "chang-mlc", SLOW_PERCENT)],
            disks: vec![home_disk()],
            parameters: Default::default(),
        };
        Self { device, automatic: true, is_set: vec![false; 2] }
    }

    /// The description.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether it was fitted to a trace.
    pub fn is_automatic(&self) -> bool {
        self.automatic
    }

    /// Sets a field; see [`Device::set`].
    ///
    /// # Errors
    /// An unknown field, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), DeviceError> {
        let region = self.device.set(key, value)?;
        if let Some(index) = region
            && (key.ends_with(".capacity") || key.ends_with(".spare"))
        {
            self.is_set[index] = true;
        }
        Ok(())
    }

    /// The device of a scheme, with these of its parameters set on top of the description's own.
    ///
    /// # Errors
    /// A field that cannot be, an unknown parameter, or a device on which the scheme cannot run.
    pub fn resolve(&self, spec: &SchemeSpec, settings: &[(String, String)]) -> Result<Resolved, DeviceError> {
        let mut notes = Vec::new();
        let mut device = self.adapted(spec, &mut notes)?;
        for (key, value) in settings {
            device.parameters.insert(key.clone(), super::toml_value(value));
        }
        let mut resolved = if self.automatic { self.grown(device)? } else { device.resolve()? };
        notes.append(&mut resolved.notes);
        resolved.notes = notes;
        Ok(resolved)
    }

    fn adapted(&self, spec: &SchemeSpec, notes: &mut Vec<String>) -> Result<Device, DeviceError> {
        let mut device = self.device.clone();
        if self.automatic {
            self.finish_automatic(&mut device, spec.regions != Regions::One, notes)?;
            round_up_to_blocks(&mut device)?;
        }
        if device.scheme != spec.name {
            device.parameters.clear();
            spec.name.clone_into(&mut device.scheme);
        }
        if self.automatic && spec.regions != Regions::FlashOverDisk {
            device.disks.clear();
        }
        match (spec.regions, device.regions.len()) {
            (Regions::One, 2) => {
                let fast = device.regions.remove(0);
                give_dies(&mut device, &fast);
            }
            (Regions::FlashOverDisk, 2) => put_over_disk(&mut device, notes),
            (Regions::DualMode, 2) => {
                let fast = device.regions[0].clone();
                exchange_for_slow(&mut device, spec, notes)?;
                give_dies(&mut device, &fast);
            }
            (Regions::FastAndSlow, 1) => {
                let what = format!(
                    "scheme `{}` needs a fast region in front of `{}`; add a [[region]] before it",
                    spec.name, device.regions[0].name
                );
                return Err(device.wrong("region", what));
            }
            _ => {}
        }
        Ok(device)
    }

    /// Small fast regions get their least size, and regions are called after their cells.
    fn finish_automatic(
        &self,
        device: &mut Device,
        fast_is_used: bool,
        notes: &mut Vec<String>,
    ) -> Result<(), DeviceError> {
        let chips = chips(device)?;
        for ((region, chip), other) in device.regions.iter_mut().zip(&chips).zip(chips.iter().rev()) {
            // A described region keeps its name.
            if chip.cell != other.cell && !device.fit_to_trace {
                region.name = format!("{:?}", chip.cell).to_ascii_lowercase();
            }
        }
        let least = u64::from(FAST_BLOCKS_MIN) * block_bytes(&chips[0]);
        let fast = &mut device.regions[0];
        if !self.is_set[0] && fast.capacity.bytes(device.logical) < least {
            fast.capacity = Capacity::Bytes(ByteSize(least));
            let why = format!(
                "`{}` has its least size, {}, more than {FAST_PERCENT} % of the logical capacity",
                fast.name,
                ByteSize(least)
            );
            if fast_is_used {
                notes.push(why);
            }
        }
        Ok(())
    }

    /// Adds blocks to the slow region until the scheme takes the device, unless its capacity was set.
    fn grown(&self, mut device: Device) -> Result<Resolved, DeviceError> {
        let first = tried(&device);
        let (Err(DeviceError::Build(BuildError::Device { .. })), Some(false), []) =
            (&first, self.is_set.last(), device.disks.as_slice())
        else {
            return first;
        };
        let chip = chips(&device)?.pop();
        let (Some(chip), Some(slow)) = (chip, device.regions.len().checked_sub(1)) else { return first };
        let step =
            block_bytes(&chip) * u64::from(device.regions[slow].channels * device.regions[slow].dies_per_channel);
        let before = device.regions[slow].capacity.bytes(device.logical);
        for added in 1..=u64::from(GROWTH_MAX) {
            device.regions[slow].capacity = Capacity::Bytes(ByteSize(before + added * step));
            if let Ok(mut resolved) = tried(&device) {
                let spare = format!("{:.1}", resolved.spare() * 100.0);
                let name = &device.regions[slow].name;
                resolved.notes.push(format!(
                    "the spare area of `{name}` was raised to {spare} %, the least with which `{}` runs at this size",
                    device.scheme
                ));
                return Ok(resolved);
            }
        }
        first
    }
}

/// Resolved, and taken by the scheme; a large device is not tried here, because its tables take time and memory.
fn tried(device: &Device) -> Result<Resolved, DeviceError> {
    let resolved = device.resolve()?;
    if resolved.memory_bytes() <= TRIED_BYTES_MAX {
        resolved.build::<SimMedia>()?;
    }
    Ok(resolved)
}

fn chips(device: &Device) -> Result<Vec<Chip>, DeviceError> {
    let chip =
        |region: &Region| region.chip.resolve().map_err(|what| device.wrong(format!("{}.chip", region.name), what));
    device.regions.iter().map(chip).collect()
}

/// At least 1, so that it can be divided by.
fn block_bytes(chip: &Chip) -> u64 {
    (u64::from(chip.page_bytes) * u64::from(chip.pages_per_block) * u64::from(chip.planes)).max(1)
}

/// Shares of the logical capacity become whole blocks, rounded up, at least one on each die.
fn round_up_to_blocks(device: &mut Device) -> Result<(), DeviceError> {
    let chips = chips(device)?;
    for (region, chip) in device.regions.iter_mut().zip(&chips) {
        if let Capacity::Percent(_) = region.capacity {
            let dies = u64::from(region.channels) * u64::from(region.dies_per_channel);
            let blocks = region.capacity.bytes(device.logical).div_ceil(block_bytes(chip)).max(dies);
            region.capacity = Capacity::Bytes(ByteSize(blocks.saturating_mul(block_bytes(chip))));
        }
    }
    Ok(())
}

/// A drive with a controller has the same dies for a scheme of one region as for one of two.
fn give_dies(device: &mut Device, fast: &Region) {
    let has_controller = device.controller.is_some();
    if let Some(slow) = device.regions.last_mut().filter(|slow| has_controller && slow.channels == fast.channels) {
        slow.dies_per_channel += fast.dies_per_channel;
    }
}

fn home_disk() -> Disk {
    Disk { name: "disk".into(), drive: PartChoice::Named(HOME_DRIVE.into()), capacity: None }
}

/// Puts the fast region in front of disks in place of the slow one.
fn put_over_disk(device: &mut Device, notes: &mut Vec<String>) {
    let Some(slow) = device.regions.pop() else { return };
    if device.disks.is_empty() {
        device.disks.push(home_disk());
    }
    let names: Vec<&str> = device.disks.iter().map(|disk| disk.name.as_str()).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    notes.push(format!("`{}` {is} in place of `{}`", names.join("`, `"), slow.name));
}

/// Trades the fast region for as much of the slow one as costs the same.
fn exchange_for_slow(device: &mut Device, spec: &SchemeSpec, notes: &mut Vec<String>) -> Result<(), DeviceError> {
    let chips = chips(device)?;
    let fast = device.regions.remove(0);
    let (fast_chip, slow_chip) = (&chips[0], &chips[1]);
    if slow_chip.usd_per_gib <= 0.0 {
        let what = "needs a price to be exchanged for a fast region; set usd_per_gib".to_owned();
        return Err(device.wrong(format!("{}.chip", device.regions[0].name), what));
    }
    let bought = fast.capacity.bytes(device.logical) as f64 * fast_chip.usd_per_gib / slow_chip.usd_per_gib;
    let blocks = (bought / block_bytes(slow_chip) as f64).round() as u64;
    let extra = blocks.saturating_mul(block_bytes(slow_chip));
    let logical = device.logical;
    let slow = &mut device.regions[0];
    slow.capacity = Capacity::Bytes(ByteSize(slow.capacity.bytes(logical).saturating_add(extra)));
    if (spec.parameters)().iter().any(|parameter| parameter.name == BUDGET) {
        device.parameters.entry(BUDGET.to_owned()).or_insert(toml::Value::String(ByteSize(extra).to_string()));
    }
    if extra > 0 {
        notes.push(format!(
            "`{}` has {} MiB more in place of `{}`, for the same money",
            slow.name,
            extra as f64 / f64::from(1 << 20),
            fast.name
        ));
    }
    Ok(())
}
