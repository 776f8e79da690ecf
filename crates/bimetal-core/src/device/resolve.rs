//! From the description of a device to the inputs of a scheme and of simulated media.

use super::{Capacity, Device, DeviceError, Disk, PartChoice, Region, toml_value};
use crate::chip::{CellMode, Chip};
use crate::controller;
use crate::drive::Drive;
use crate::media::{SimMedia, SimRegion, Volume};
use crate::report::{DiskDescription, RegionDescription};
use crate::request::SECTOR_BYTES;
use crate::scheme::{self, BuildError, Platform, RegionShape, Regions, Scheme, SchemeSpec, Shape};
use crate::units::{ByteSize, Geometry};

/// A device ready to be built.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The device in full: parts with all figures, capacities in whole blocks, every parameter of the scheme.
    pub device: Device,
    /// The device as the scheme sees it.
    pub shape: Shape,
    /// Its simulated regions.
    pub regions: Vec<SimRegion>,
    /// Its simulated home disks.
    pub volumes: Vec<Volume>,
    /// The controller in front of its scheme, if it has one.
    pub controller: Option<controller::Spec>,
    /// Every parameter of the scheme.
    pub settings: Vec<(String, String)>,
    /// Notes on rounding and adaptation, one line each.
    pub notes: Vec<String>,
}

impl Device {
    /// Checks everything that can be checked without building the device.
    ///
    /// # Errors
    /// The first invalid field, with a remedy.
    pub fn resolve(&self) -> Result<Resolved, DeviceError> {
        if self.scheme.is_empty() {
            return Err(self.wrong("scheme", "missing; set it to the name of a scheme"));
        }
        let spec = scheme::find(&self.scheme)?;
        self.check_regions(spec)?;
        if self.logical.0 == 0 || !self.logical.0.is_multiple_of(SECTOR_BYTES) {
            return Err(self.wrong("logical", format!("{} bytes is no multiple of 512 above 0", self.logical.0)));
        }
        let mut notes = Vec::new();
        let mut device = self.clone();
        let mut regions = Vec::with_capacity(self.regions.len());
        for (region, configured) in self.regions.iter().zip(&mut device.regions) {
            let (chip, made) = self.resolve_region(region, &mut notes)?;
            configured.chip = PartChoice::of(&chip);
            configured.capacity = Capacity::Bytes(ByteSize(made.geometry.capacity_bytes()));
            regions.push(made);
        }
        let volumes = self.resolve_disks()?;
        for (configured, volume) in device.disks.iter_mut().zip(&volumes) {
            configured.drive = PartChoice::of(&volume.drive);
            configured.capacity = Some(Capacity::Bytes(ByteSize(volume.sectors * SECTOR_BYTES)));
        }
        let raw: u64 = regions.iter().map(|region| region.geometry.capacity_bytes()).sum();
        if volumes.is_empty() && self.logical.0 > raw {
            let what =
                format!("{} bytes exceed the {raw} bytes of all regions; lower it or enlarge a region", self.logical.0);
            return Err(self.wrong("logical", what));
        }
        let settings = scheme::settings(&self.scheme, &self.settings())?;
        device.parameters = settings.iter().map(|(key, value)| (key.clone(), toml_value(value))).collect();
        let shapes = regions.iter().map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry });
        let shape = Shape {
            logical_sectors: self.logical.0 / SECTOR_BYTES,
            regions: shapes.collect(),
            disks: volumes.iter().map(|volume| volume.drive.clone()).collect(),
            seed: self.seed,
        };
        let controller = self.resolve_controller(regions.last())?;
        Ok(Resolved { device, shape, regions, volumes, controller, settings, notes })
    }

    /// The controller, for a device with this slow region.
    fn resolve_controller(&self, slow: Option<&SimRegion>) -> Result<Option<controller::Spec>, DeviceError> {
        let (Some(settings), Some(slow)) = (&self.controller, slow) else { return Ok(None) };
        settings.check().map_err(|(field, what)| self.wrong(format!("controller.{field}"), what))?;
        if self.serial {
            let what = "a serial device does one operation at a time and has no controller; remove one of the two";
            return Err(self.wrong("serial", what));
        }
        if settings.buffer.0 > 0 && self.logical.0 > controller::BUFFERED_MAX {
            let what = format!(
                "a write buffer is simulated for up to {}, and the device has {}; set it to 0, or use a smaller device",
                ByteSize(controller::BUFFERED_MAX),
                self.logical
            );
            return Err(self.wrong("controller.buffer", what));
        }
        let mapping_sectors = slow.geometry.page_sectors();
        Ok(Some(controller::Spec {
            settings: settings.clone(),
            wordline_sectors: slow.chip.program_group(CellMode::Native) * mapping_sectors,
            mapping_sectors,
            logical_sectors: self.logical.0 / SECTOR_BYTES,
        }))
    }

    fn check_regions(&self, spec: &SchemeSpec) -> Result<(), DeviceError> {
        let (needed, what) = match spec.regions {
            Regions::One => (1, "one region"),
            Regions::FastAndSlow => (2, "two regions, the fast one first"),
            Regions::DualMode => (1, "one region of a chip with an slc_mode"),
            Regions::FlashOverDisk => (1, "one region in front of disks"),
        };
        if self.regions.len() != needed {
            let what = format!("scheme `{}` needs {what}; the device has {}", spec.name, self.regions.len());
            return Err(self.wrong("region", what));
        }
        match (spec.regions, self.disks.len()) {
            (Regions::FlashOverDisk, 0) => {
                let what = format!("scheme `{}` needs a home disk; add a [[disk]]", spec.name);
                return Err(self.wrong("disk", what));
            }
            (Regions::FlashOverDisk, _) | (_, 0) => {}
            _ => {
                let what = format!("scheme `{}` keeps all data in flash; remove every [[disk]]", spec.name);
                return Err(self.wrong("disk", what));
            }
        }
        let mut names: Vec<&str> = self.regions.iter().map(|region| region.name.as_str()).collect();
        names.extend(self.disks.iter().map(|disk| disk.name.as_str()));
        names.sort_unstable();
        names.dedup();
        if names.len() < self.regions.len() + self.disks.len() || names.contains(&"") {
            return Err(self.wrong("region.name", "each region and each disk needs a different name"));
        }
        Ok(())
    }

    /// The drives, and the number of sectors on each.
    fn resolve_disks(&self) -> Result<Vec<Volume>, DeviceError> {
        let logical = self.logical.0 / SECTOR_BYTES;
        let given = |disk: &Disk| disk.capacity.map(|capacity| capacity.bytes(self.logical) / SECTOR_BYTES);
        let mut left = logical.saturating_sub(self.disks.iter().filter_map(given).sum());
        let mut sharing = self.disks.iter().filter(|disk| disk.capacity.is_none()).count() as u64;
        let mut volumes = Vec::with_capacity(self.disks.len());
        for disk in &self.disks {
            let drive: Drive = disk.drive.resolve().map_err(|what| self.wrong(format!("{}.drive", disk.name), what))?;
            let sectors = given(disk).unwrap_or_else(|| {
                let share = left / sharing;
                (left, sharing) = (left - share, sharing - 1);
                share
            });
            if sectors * SECTOR_BYTES > drive.capacity.0 {
                let what = format!(
                    "{} bytes exceed the {} bytes of `{}`; add a [[disk]] or take a larger drive",
                    sectors * SECTOR_BYTES,
                    drive.capacity.0,
                    drive.name
                );
                return Err(self.wrong(format!("{}.capacity", disk.name), what));
            }
            volumes.push(Volume { drive, sectors });
        }
        let held: u64 = volumes.iter().map(|volume| volume.sectors).sum();
        if !volumes.is_empty() && held != logical {
            let what = format!(
                "the disks hold {} bytes of the logical {}; leave out the capacity of one disk, to give it the rest",
                held * SECTOR_BYTES,
                self.logical.0
            );
            return Err(self.wrong("disk.capacity", what));
        }
        Ok(volumes)
    }

    /// The chip of a region, and the region with mapping units as the pages of its chip.
    fn resolve_region(&self, region: &Region, notes: &mut Vec<String>) -> Result<(Chip, SimRegion), DeviceError> {
        let wrong = |field: &str, what: String| self.wrong(format!("{}.{field}", region.name), what);
        let whole: Chip = region.chip.resolve().map_err(|what| wrong("chip", what))?;
        let unit = region.mapping_unit.map_or(u64::from(whole.page_bytes), |unit| unit.0);
        let unit = u32::try_from(unit).unwrap_or(u32::MAX);
        let chip = whole.in_units(unit).map_err(|what| wrong("mapping_unit", what))?;
        if region.channels == 0 || region.dies_per_channel == 0 {
            return Err(wrong("channels", "a region needs at least 1 channel and 1 die per channel".into()));
        }
        let dies = region.channels.saturating_mul(region.dies_per_channel);
        // Everything but the number of blocks is checked first, so that the division below is sound.
        let block = Geometry::new(chip.page_bytes, chip.pages_per_block, dies, dies)
            .map_err(|what| wrong("chip", what))?
            .block_bytes();
        let faults = region.faults;
        if faults.program_fail_ppm.max(faults.erase_fail_ppm).max(faults.factory_bad_ppm) > 1_000_000 {
            return Err(wrong("faults", "a rate exceeds 1000000 per million".into()));
        }
        let bytes = region.capacity.bytes(self.logical);
        let blocks = u32::try_from(bytes / block)
            .map_err(|_| wrong("capacity", format!("{} is more than 2^32 blocks; lower it", region.capacity)))?;
        let geometry = Geometry::new(chip.page_bytes, chip.pages_per_block, blocks, dies)
            .map_err(|what| wrong("capacity", format!("{} is not possible: {what}", region.capacity)))?
            .striped(chip.read_group());
        if geometry.capacity_bytes() != bytes && matches!(region.capacity, Capacity::Bytes(_)) {
            notes.push(format!(
                "`{}.capacity`: {} is no multiple of its {} blocks and was rounded down to {blocks} blocks",
                region.name,
                region.capacity,
                ByteSize(block)
            ));
        }
        Ok((whole, SimRegion { chip, geometry, channels: region.channels, faults }))
    }
}

impl Resolved {
    /// Its regions and disks as the report needs them.
    pub fn described(&self) -> (Vec<RegionDescription<'_>>, Vec<DiskDescription<'_>>) {
        let regions = self.device.regions.iter().zip(&self.regions);
        let disks = self.device.disks.iter().zip(&self.volumes);
        (
            regions
                .map(|(named, made)| RegionDescription { name: &named.name, chip: &made.chip, geometry: made.geometry })
                .collect(),
            disks.map(|(named, volume)| DiskDescription { name: &named.name, volume }).collect(),
        )
    }

    /// Builds the scheme over media.
    ///
    /// # Errors
    /// A device that does not suit the scheme.
    pub fn build<M: Platform>(&self) -> Result<Box<dyn Scheme<M>>, BuildError> {
        scheme::build(&self.device.scheme, &self.shape, &self.settings)
    }

    /// Makes the simulated media.
    pub fn media(&self) -> SimMedia {
        let media = SimMedia::new(&self.regions, self.device.seed).with_disks(&self.volumes);
        let media = match &self.controller {
            Some(controller) => media.folding_at(controller.settings.fold_efficiency),
            None => media,
        };
        if self.device.serial { media.serial() } else { media }
    }

    /// Spare area of the slow region, as a share of the logical capacity; 0 if disks hold all data.
    pub fn spare(&self) -> f64 {
        if !self.volumes.is_empty() {
            return 0.0;
        }
        let raw = self.regions.last().map_or(0, |region| region.geometry.capacity_bytes());
        raw as f64 / self.device.logical.0 as f64 - 1.0
    }

    /// Estimate of the memory that its simulation takes, in bytes: mapping tables and block states.
    pub fn memory_bytes(&self) -> u64 {
        // Map entry, owner and bits of each page, a few words for each block; schemes differ by small factors.
        const PER_PAGE: u64 = 16;
        const PER_BLOCK: u64 = 64;
        let region = |region: &SimRegion| {
            region.geometry.page_slots() as u64 * PER_PAGE + u64::from(region.geometry.blocks) * PER_BLOCK
        };
        self.regions.iter().map(region).sum()
    }
}
