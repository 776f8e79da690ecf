//! Comparable devices for several schemes, made from one description or from a logical capacity alone.

use super::set::FIT_TO_TRACE;
use super::{Capacity, Device, DeviceError, Disk, PartChoice, Region, Resolved, preset};
use crate::chip::Chip;
use crate::media::SimMedia;
use crate::scheme::{BuildError, Regions, SchemeSpec};
use crate::units::ByteSize;

/// A template for the devices of several schemes.
///
/// A scheme of one region gets the slow region. A scheme that runs blocks of one region in either cell mode gets the
/// slow region, enlarged at the cost of the fast region. A scheme of two regions gets both. A cache gets the fast
/// region in front of a disk.
#[derive(Clone, Debug)]
pub struct Template {
    /// The description; with another logical capacity if it is fitted to a trace.
    device: Device,
    /// Logical capacity in the description, if the device is fitted to a trace: parts are scaled, and capacities that
    /// were not set grow until they suffice for a scheme.
    whole: Option<ByteSize>,
    /// By region.
    is_set: Vec<IsSet>,
}

/// Fields of a region that were set and therefore are not scaled.
#[derive(Clone, Copy, Debug, Default)]
struct IsSet {
    capacity: bool,
    block: bool,
}

/// The default preset for a trace: a drive of today.
pub const AUTO: &str = "auto";
/// The preset of two regions without a controller, for data in files and for other parts.
pub const BARE_DIES: &str = "bare-dies";

/// Least number of blocks of a fast region.
const FAST_BLOCKS_MIN: u32 = 16;
const LOGICAL_BYTES_MIN: u64 = 4 << 20;
/// Least capacity of a fitted device: blocks of a drive with many dies have a single wordline there.
const FITTED_BYTES_MIN: u64 = 128 << 20;
/// The home disk of a cache.
const HOME_DRIVE: &str = "nearline-18tb";
/// Parameter of schemes that run blocks in either cell mode: the capacity that they may use for SLC mode.
const BUDGET: &str = "budget";
/// Largest number of blocks of each die that may be added to a small slow region.
const GROWTH_MAX: u32 = 64;
/// A device that takes more memory than this is not small, and has enough spare area for every scheme.
const TRIED_BYTES_MAX: u64 = 256 << 20;

impl Template {
    /// A device exactly as described.
    pub fn fixed(device: Device) -> Self {
        let is_set = vec![IsSet { capacity: true, block: true }; device.regions.len()];
        Self { device, whole: None, is_set }
    }

    /// A device for a trace that touches this number of bytes: the described device, or [`AUTO`]. It is scaled to the
    /// trace if the device or a setting says so.
    ///
    /// # Errors
    /// A setting that is neither true nor false.
    pub fn for_trace(
        device: Option<Device>,
        settings: &[(String, String)],
        touched_bytes: u64,
    ) -> Result<Self, DeviceError> {
        let mut device = device.map_or_else(|| preset(AUTO), Ok)?;
        for (key, value) in settings.iter().filter(|(key, _)| key == FIT_TO_TRACE) {
            device.set(key, value)?;
        }
        Ok(if device.fit_to_trace { Self::fitted(device, touched_bytes) } else { Self::fixed(device) })
    }

    /// [`BARE_DIES`] for this number of bytes: dies without a controller, for data in files and for other parts.
    ///
    /// # Errors
    /// None that is known: the preset is part of the program.
    pub fn bare_dies(logical_bytes: u64) -> Result<Self, DeviceError> {
        Ok(Self::fitted(preset(BARE_DIES)?, logical_bytes))
    }

    /// The device scaled to this number of bytes.
    fn fitted(mut device: Device, logical_bytes: u64) -> Self {
        let whole = device.logical;
        let least = FITTED_BYTES_MIN.min(whole.0);
        device.logical = ByteSize(logical_bytes.max(least).next_multiple_of(LOGICAL_BYTES_MIN));
        let is_set = vec![IsSet::default(); device.regions.len()];
        Self { device, whole: Some(whole), is_set }
    }

    /// The description.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether it was fitted to a trace.
    pub fn is_automatic(&self) -> bool {
        self.whole.is_some()
    }

    /// Sets a field; see [`Device::set`]. Returns the index of its region, if it is a field of one.
    ///
    /// # Errors
    /// An unknown field, or an invalid value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<Option<usize>, DeviceError> {
        let region = self.device.set(key, value)?;
        if let Some(index) = region {
            match key.rsplit('.').next() {
                Some("capacity" | "spare") => self.is_set[index].capacity = true,
                Some("pages_per_block" | "slc_mode") => self.is_set[index].block = true,
                _ => {}
            }
        }
        Ok(region)
    }

    /// The device of a scheme, with these parameters set on top of those of the description.
    ///
    /// # Errors
    /// An invalid field, an unknown parameter, or a device on which the scheme cannot run.
    pub fn resolve(&self, spec: &SchemeSpec, settings: &[(String, String)]) -> Result<Resolved, DeviceError> {
        let mut notes = Vec::new();
        let mut device = self.adapted(spec, &mut notes)?;
        for (key, value) in settings {
            device.parameters.insert(key.clone(), super::toml_value(value));
        }
        let mut resolved = if self.is_automatic() { self.grown(device)? } else { device.resolve()? };
        notes.append(&mut resolved.notes);
        resolved.notes = notes;
        Ok(resolved)
    }

    fn adapted(&self, spec: &SchemeSpec, notes: &mut Vec<String>) -> Result<Device, DeviceError> {
        let mut device = self.scaled()?;
        if self.is_automatic() {
            if spec.regions != Regions::One {
                self.enlarge_small_fast_region(&mut device, notes)?;
            }
            round_up_to_blocks(&mut device)?;
        }
        if device.scheme != spec.name {
            device.parameters.clear();
            spec.name.clone_into(&mut device.scheme);
        }
        if self.is_automatic() && spec.regions != Regions::FlashOverDisk {
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

    /// The device at the logical capacity of the template. Fields that were set stay.
    fn scaled(&self) -> Result<Device, DeviceError> {
        let Some(whole) = self.whole else { return Ok(self.device.clone()) };
        let logical = self.device.logical;
        let mut scaled = Device { logical: whole, ..self.device.clone() }.scaled(logical)?;
        scaled.logical = logical;
        scaled.fit_to_trace = false;
        for ((scaled, region), is_set) in scaled.regions.iter_mut().zip(&self.device.regions).zip(&self.is_set) {
            if is_set.capacity {
                scaled.capacity = region.capacity;
            }
            if is_set.block {
                scaled.chip = region.chip.clone();
            }
        }
        // If the pages of all planes are smaller than the mapping unit of the described part, the region is mapped by
        // pages.
        for (region, chip) in scaled.regions.iter_mut().zip(chips(&self.device)?) {
            let together = u64::from(chip.page_bytes) * u64::from(chip.planes);
            region.mapping_unit = region.mapping_unit.filter(|unit| unit.0 <= together);
        }
        Ok(scaled)
    }

    /// Raises a fast region to its least size, unless its capacity was set.
    fn enlarge_small_fast_region(&self, device: &mut Device, notes: &mut Vec<String>) -> Result<(), DeviceError> {
        let (chips, logical) = (chips(device)?, device.logical);
        let ([fast, _], [chip, _]) = (device.regions.as_mut_slice(), chips.as_slice()) else { return Ok(()) };
        let least = u64::from(FAST_BLOCKS_MIN) * chip.block_bytes();
        if !self.is_set[0].capacity && fast.capacity.bytes(logical) < least {
            notes.push(format!(
                "`{}` has the minimum size, {}, which is more than {} of the logical capacity",
                fast.name,
                ByteSize(least),
                fast.capacity
            ));
            fast.capacity = Capacity::Bytes(ByteSize(least));
        }
        Ok(())
    }

    /// Adds blocks to the slow region until the scheme accepts the device, unless its capacity was set.
    fn grown(&self, mut device: Device) -> Result<Resolved, DeviceError> {
        let first = tried(&device);
        let (Err(DeviceError::Build(BuildError::Device { .. })), Some(false), []) =
            (&first, self.is_set.last().map(|is_set| is_set.capacity), device.disks.as_slice())
        else {
            return first;
        };
        let chip = chips(&device)?.pop();
        let (Some(chip), Some(slow)) = (chip, device.regions.len().checked_sub(1)) else { return first };
        let step =
            chip.block_bytes() * u64::from(device.regions[slow].channels * device.regions[slow].dies_per_channel);
        let before = device.regions[slow].capacity.bytes(device.logical);
        for added in 1..=u64::from(GROWTH_MAX) {
            device.regions[slow].capacity = Capacity::Bytes(ByteSize(before + added * step));
            if let Ok(mut resolved) = tried(&device) {
                let spare = format!("{:.1}", resolved.spare() * 100.0);
                let name = &device.regions[slow].name;
                resolved.notes.push(format!(
                    "the spare area of `{name}` was raised to {spare} %, the minimum for `{}` at this size",
                    device.scheme
                ));
                return Ok(resolved);
            }
        }
        first
    }
}

/// Resolves a device and tries its scheme. A large device is not tried, because its tables take time and memory.
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

/// Rounds shares of the logical capacity up to whole blocks, at least one on each die.
fn round_up_to_blocks(device: &mut Device) -> Result<(), DeviceError> {
    let chips = chips(device)?;
    for (region, chip) in device.regions.iter_mut().zip(&chips) {
        if let Capacity::Percent(_) = region.capacity {
            let dies = u64::from(region.channels) * u64::from(region.dies_per_channel);
            let blocks = region.capacity.bytes(device.logical).div_ceil(chip.block_bytes()).max(dies);
            region.capacity = Capacity::Bytes(ByteSize(blocks.saturating_mul(chip.block_bytes())));
        }
    }
    Ok(())
}

/// Gives the slow region the dies of the fast one: a drive with a controller has the same dies for schemes of one and
/// two regions.
fn give_dies(device: &mut Device, fast: &Region) {
    let has_controller = device.controller.is_some();
    if let Some(slow) = device.regions.last_mut().filter(|slow| has_controller && slow.channels == fast.channels) {
        slow.dies_per_channel += fast.dies_per_channel;
    }
}

fn home_disk() -> Disk {
    Disk { name: "disk".into(), drive: PartChoice::Named(HOME_DRIVE.into()), capacity: None }
}

/// Puts the fast region in front of disks, which replace the slow region.
fn put_over_disk(device: &mut Device, notes: &mut Vec<String>) {
    let Some(slow) = device.regions.pop() else { return };
    if device.disks.is_empty() {
        device.disks.push(home_disk());
    }
    let names: Vec<&str> = device.disks.iter().map(|disk| disk.name.as_str()).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    notes.push(format!("`{}` {is} used instead of `{}`", names.join("`, `"), slow.name));
}

/// Replaces the fast region by an amount of the slow one that costs the same.
fn exchange_for_slow(device: &mut Device, spec: &SchemeSpec, notes: &mut Vec<String>) -> Result<(), DeviceError> {
    let chips = chips(device)?;
    let fast = device.regions.remove(0);
    let (fast_chip, slow_chip) = (&chips[0], &chips[1]);
    if slow_chip.usd_per_gib <= 0.0 {
        let what = "needs a price to be exchanged for a fast region; set usd_per_gib".to_owned();
        return Err(device.wrong(format!("{}.chip", device.regions[0].name), what));
    }
    let bought = fast.capacity.bytes(device.logical) as f64 * fast_chip.usd_per_gib / slow_chip.usd_per_gib;
    let blocks = (bought / slow_chip.block_bytes() as f64).round() as u64;
    let extra = blocks.saturating_mul(slow_chip.block_bytes());
    let logical = device.logical;
    let slow = &mut device.regions[0];
    slow.capacity = Capacity::Bytes(ByteSize(slow.capacity.bytes(logical).saturating_add(extra)));
    if (spec.parameters)().iter().any(|parameter| parameter.name == BUDGET) {
        device.parameters.entry(BUDGET.to_owned()).or_insert(toml::Value::String(ByteSize(extra).to_string()));
    }
    if extra > 0 {
        notes.push(format!(
            "no region `{}`; {} MiB more of `{}` at equal cost",
            fast.name,
            extra as f64 / f64::from(1 << 20),
            slow.name
        ));
    }
    Ok(())
}
