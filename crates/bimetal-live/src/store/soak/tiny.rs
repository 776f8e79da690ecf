//! Devices of a few hundred sectors, in the shape that each scheme requires.

use bimetal_core::device::{Capacity, Device, Disk, PartChoice, Region};
use bimetal_core::media::Faults;
use bimetal_core::part::random::{below, unit};
use bimetal_core::scheme::{self, Regions, SchemeSpec};
use bimetal_core::units::ByteSize;

use crate::store::media::FileMedia;

/// Bytes of a page, pages of a block.
type Layout = (u32, u32);

/// A shape of tiny devices.
#[derive(Clone, Copy, Debug)]
pub struct Tiny {
    /// Its special property.
    pub name: &'static str,
    logical_sectors: u64,
    fast: Layout,
    slow: Layout,
    dies: u32,
}

/// The shapes.
pub const TINY: &[Tiny] = &[
    Tiny {
        name: "small pages in front of larger ones",
        logical_sectors: 512,
        fast: (2048, 8),
        slow: (4096, 8),
        dies: 1,
    },
    Tiny { name: "equal pages on two dies", logical_sectors: 384, fast: (4096, 4), slow: (4096, 4), dies: 2 },
    Tiny {
        name: "a fast page over several slow ones, end within a block",
        logical_sectors: 419,
        fast: (8192, 6),
        slow: (2048, 12),
        dies: 1,
    },
    Tiny { name: "pages of a sector", logical_sectors: 200, fast: (512, 16), slow: (1024, 12), dies: 1 },
];

/// Fast blocks, and largest number of slow blocks tried beyond the minimum.
const FAST_BLOCKS: u64 = 12;
const SLOW_BLOCKS_MORE: u64 = 60;
/// Blocks of the smallest cache tried.
const CACHE_BLOCKS: u64 = 4;

impl Tiny {
    /// The device of a scheme, with the smallest spare area or cache that the scheme accepts. Settings are the scheme's
    /// defaults. With a seed other than 0 they are random, including settings that cause events on a
    /// tiny device that otherwise need a large one.
    ///
    /// # Errors
    /// The scheme refuses every size.
    pub fn device(&self, spec: &SchemeSpec, seed: u64) -> Result<Device, String> {
        let settings = if seed == 0 { Vec::new() } else { random_settings(spec, seed) };
        match self.with_settings(spec, &settings) {
            // There may be no valid combination.
            Err(_) if seed != 0 => self.with_settings(spec, &[]),
            device => device,
        }
    }

    fn with_settings(&self, spec: &SchemeSpec, settings: &[(String, String)]) -> Result<Device, String> {
        let mut refusal = String::new();
        for more in 0..SLOW_BLOCKS_MORE {
            let mut device = self.with_more_blocks(spec, more);
            for (key, value) in settings {
                device.parameters.insert(key.clone(), value.as_str().into());
            }
            let resolved = device.resolve().map_err(|error| error.to_string())?;
            match resolved.build::<FileMedia>() {
                Ok(_) => return Ok(device),
                Err(error) => refusal = error.to_string(),
            }
        }
        Err(refusal)
    }

    fn with_more_blocks(&self, spec: &SchemeSpec, more: u64) -> Device {
        let least = (self.logical_sectors * 512).div_ceil(u64::from(self.slow.0 * self.slow.1)) + 2;
        let blocks = least + more;
        let slow = self.region("slow", "chang-mlc", self.slow, blocks);
        let (regions, disks) = match spec.regions {
            Regions::One => (vec![slow], 0),
            Regions::FastAndSlow => (vec![self.region("fast", "chang-slc", self.fast, FAST_BLOCKS), slow], 0),
            Regions::DualMode => (vec![self.region("slow", "chang-mlc", self.slow, blocks + 6)], 0),
            Regions::FlashOverDisk => (vec![self.region("cache", "chang-slc", self.fast, CACHE_BLOCKS + more)], 2),
        };
        let disk = |number| Disk {
            name: format!("disk{number}"),
            drive: PartChoice::Named("atlas-10k-iv".into()),
            capacity: None,
        };
        Device {
            name: self.name.into(),
            summary: String::new(),
            scheme: spec.name.into(),
            logical: ByteSize(self.logical_sectors * 512),
            seed: 1,
            serial: false,
            fit_to_trace: false,
            controller: None,
            regions,
            disks: (0..disks).map(disk).collect(),
            parameters: Default::default(),
        }
    }

    fn region(&self, name: &str, chip: &str, (page_bytes, pages): Layout, blocks: u64) -> Region {
        let mut figures = toml::Table::new();
        figures.insert("base".into(), chip.into());
        figures.insert("page_bytes".into(), i64::from(page_bytes).into());
        figures.insert("pages_per_block".into(), i64::from(pages).into());
        if chip == "chang-mlc" {
            let mode = [
                ("pages_per_block", i64::from(pages / 2)),
                ("read_us", 25),
                ("program_us", 200),
                ("erase_us", 1500),
                ("endurance", 100),
            ];
            let mode: toml::Table = mode.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
            figures.insert("slc_mode".into(), mode.into());
        }
        let blocks = blocks.next_multiple_of(u64::from(self.dies));
        Region {
            name: name.into(),
            chip: PartChoice::Figures(figures),
            capacity: Capacity::Bytes(ByteSize(u64::from(page_bytes * pages) * blocks)),
            channels: 1,
            dies_per_channel: self.dies,
            mapping_unit: None,
            faults: Faults::default(),
        }
    }
}

/// A third of the parameters with other values: another word, a small number, a small size, any share.
fn random_settings(spec: &SchemeSpec, seed: u64) -> Vec<(String, String)> {
    let mut state = seed;
    let mut settings = Vec::new();
    for parameter in (spec.parameters)() {
        if below(&mut state, 3) > 0 {
            continue;
        }
        let accepts = parameter.accepts.as_str();
        let limits: Vec<f64> = accepts.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
        let value = if accepts.contains("whole number") {
            let large = parameter.default.parse().unwrap_or(0) >= 64;
            below(&mut state, if large { 60 } else { 8 }).to_string()
        } else if accepts.contains("size") {
            ["0", "512", "4KiB", "16KiB"][below(&mut state, 4) as usize].to_owned()
        } else if let [low, high] = limits[..] {
            format!("{:.3}", low + (high - low) * unit(&mut state))
        } else {
            let words: Vec<&str> = accepts.split('`').skip(1).step_by(2).collect();
            words.get(below(&mut state, words.len().max(1) as u64) as usize).copied().unwrap_or_default().to_owned()
        };
        let setting = (parameter.name.to_owned(), value);
        if scheme::settings(spec.name, std::slice::from_ref(&setting)).is_ok() {
            settings.push(setting);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_settings_are_possible() {
        for spec in scheme::SCHEMES {
            let defaults = TINY[0].device(spec, 0).unwrap();
            let others = (1..20).map(|seed| TINY[0].device(spec, seed).unwrap());
            let differ = others.filter(|device| device.parameters != defaults.parameters).count();
            assert!(differ >= 4, "{}: {differ} of 19", spec.name);
        }
    }
}
