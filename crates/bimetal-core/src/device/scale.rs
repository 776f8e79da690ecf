//! Smaller devices of the same make: the same number of dies and channels, smaller blocks. Larger ones have more
//! blocks.
//!
//! Caches that fill and blocks that are collected show over a part of a drive's capacity as they do over all of it, in
//! a part of the time. Speed and latency come from dies, channels and controller, which stay the same. A block shrinks
//! with the capacity, and its erase time with it, so that erases take the same share of the time.

use toml::{Table, Value};

use super::{Capacity, Device, DeviceError, PartChoice, Region};
use crate::chip::Chip;
use crate::scheme;
use crate::units::ByteSize;

/// The parameter of a scheme that is a part of the capacity.
const BUDGET: &str = "budget";

/// Least number of blocks of a die: the few open or erased blocks must be a small part of its spare area.
const DIE_BLOCKS_MIN: u64 = 128;

impl Device {
    /// The same device with a capacity of about `logical` bytes. A smaller one has smaller blocks, a larger one has
    /// more.
    ///
    /// # Errors
    /// An invalid part.
    pub fn scaled(&self, logical: ByteSize) -> Result<Self, DeviceError> {
        let mut device = self.clone();
        if logical == self.logical || logical.0 == 0 {
            return Ok(device);
        }
        let factor = logical.0 as f64 / self.logical.0 as f64;
        device.logical = ByteSize((logical.0 / SECTOR_ALIGNMENT).max(1) * SECTOR_ALIGNMENT);
        for region in &mut device.regions {
            self.scale_region(region, factor)?;
        }
        for disk in &mut device.disks {
            if let Some(Capacity::Bytes(bytes)) = &mut disk.capacity {
                bytes.0 = (bytes.0 as f64 * factor) as u64 / SECTOR_ALIGNMENT * SECTOR_ALIGNMENT;
            }
        }
        if device.disks.iter().all(|disk| disk.capacity.is_some())
            && let Some(last) = device.disks.last_mut()
        {
            // It takes the rest, so that the disks hold any capacity. The others are rounded.
            last.capacity = None;
        }
        if device.scheme.is_empty() {
            return Ok(device);
        }
        let parameters = (scheme::find(&device.scheme)?.parameters)();
        let sizes = parameters.iter().filter(|parameter| parameter.accepts == <ByteSize as scheme::Value>::accepts());
        // A larger device takes the same requests: thresholds and segments keep their sizes.
        for size in sizes.filter(|size| factor < 1.0 || size.name == BUDGET) {
            if let Some(value) = device.parameters.get_mut(size.name)
                && let Ok(bytes) = size_of(value)
            {
                *value = Value::String(ByteSize((bytes.0 as f64 * factor).round() as u64).to_string());
            }
        }
        Ok(device)
    }

    fn scale_region(&self, region: &mut Region, factor: f64) -> Result<(), DeviceError> {
        let wrong = |what| self.wrong(format!("{}.chip", region.name), what);
        let chip: Chip = region.chip.resolve().map_err(wrong)?;
        let bytes = region.capacity.bytes(self.logical) as f64 * factor;
        let dies = u64::from(region.channels) * u64::from(region.dies_per_channel);
        let page_bytes = u64::from(chip.page_bytes) * u64::from(chip.planes);
        if let Capacity::Bytes(capacity) = &mut region.capacity {
            capacity.0 = bytes as u64;
        }
        if factor > 1.0 {
            return Ok(());
        }
        // Whole wordlines, in SLC mode too.
        let wordlines = (bytes / (dies * DIE_BLOCKS_MIN * page_bytes) as f64) as u32 / chip.program_pages;
        let pages = (wordlines * chip.program_pages).clamp(chip.program_pages, chip.pages_per_block);
        if pages < chip.pages_per_block {
            region.chip = smaller_blocks(&region.chip, &chip, pages);
        }
        Ok(())
    }
}

/// A size in a device file: a number of bytes, or text.
fn size_of(value: &Value) -> Result<ByteSize, String> {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned).parse()
}

/// Logical capacities are multiples of this size, which is a multiple of every drive's mapping unit.
const SECTOR_ALIGNMENT: u64 = 64 << 10;

/// A part with `pages` pages in a block.
fn smaller_blocks(choice: &PartChoice, chip: &Chip, pages: u32) -> PartChoice {
    let share = f64::from(pages) / f64::from(chip.pages_per_block);
    let mut smaller = choice.clone();
    smaller.set("pages_per_block", Value::Integer(i64::from(pages)));
    smaller.set("erase_us", Value::Float(chip.erase_us * share));
    if let Some(slc) = &chip.slc_mode {
        let mut mode = Table::try_from(slc).unwrap_or_default();
        let slc_pages = (f64::from(slc.pages_per_block) * share).round().max(1.0);
        mode.insert("pages_per_block".into(), Value::Integer(slc_pages as i64));
        mode.insert("erase_us".into(), Value::Float(slc.erase_us * share));
        smaller.set("slc_mode", Value::Table(mode));
    }
    smaller
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::preset;

    #[test]
    fn a_scaled_drive_has_the_same_dies_and_shares() {
        let whole = preset("tlc-1tb-pslc").unwrap();
        let scaled = whole.scaled(ByteSize(8 << 30)).unwrap();
        let (whole, scaled) = (whole.resolve().unwrap(), scaled.resolve().unwrap());
        let (large, small) = (&whole.regions[0], &scaled.regions[0]);
        assert_eq!((large.channels, large.geometry.dies), (small.channels, small.geometry.dies));
        assert!((whole.spare() - scaled.spare()).abs() < 0.02, "{} {}", whole.spare(), scaled.spare());
        assert!(small.geometry.blocks / small.geometry.dies >= DIE_BLOCKS_MIN as u32);
        let erase_share = |chip: &Chip| chip.erase_us / f64::from(chip.pages_per_block);
        assert!((erase_share(&large.chip) / erase_share(&small.chip) - 1.0).abs() < 1e-9);
        let budget = |device: &Device| size_of(&device.parameters["budget"]).unwrap();
        let shares = [&whole.device, &scaled.device].map(|device| budget(device).0 as f64 / device.logical.0 as f64);
        assert!((shares[0] / shares[1] - 1.0).abs() < 1e-6, "{shares:?}");
    }

    #[test]
    fn a_larger_device_keeps_the_sizes_of_requests_and_has_disks_for_its_capacity() {
        let mut device = preset("opfcl-1").unwrap();
        device.disks[0].capacity = Some(Capacity::Bytes(device.logical));
        device.parameters.insert("sequential_unit".into(), Value::String("128KiB".into()));
        let logical = ByteSize(device.logical.0 + 37 * 512);
        let larger = Device { logical, ..device.scaled(logical).unwrap() };
        assert_eq!(larger.parameters["sequential_unit"], device.parameters["sequential_unit"]);
        assert_eq!(larger.resolve().unwrap().device.logical, logical);
    }

    #[test]
    fn a_larger_device_has_more_blocks_of_the_same_size() {
        let device = preset("tlc-1tb-pslc").unwrap();
        let blocks = |device: &Device| {
            let region = &device.resolve().unwrap().regions[0];
            (f64::from(region.geometry.blocks), region.chip.pages_per_block)
        };
        let (whole, larger) = (blocks(&device), blocks(&device.scaled(ByteSize(4_000_000_000_000)).unwrap()));
        assert!((larger.0 / whole.0 / 4.0 - 1.0).abs() < 0.01 && larger.1 == whole.1, "{whole:?} {larger:?}");
    }
}
