//! Devices of a few hundred sectors, in the shape that each scheme asks for.

use bimetal_core::device::{Capacity, Device, Disk, PartChoice, Region};
use bimetal_core::media::Faults;
use bimetal_core::scheme::{Regions, SchemeSpec};
use bimetal_core::units::ByteSize;

use crate::store::media::FileMedia;

/// Page bytes, pages of a block.
type Layout = (u32, u32);

/// A shape of tiny devices.
#[derive(Clone, Copy, Debug)]
pub struct Tiny {
    /// What is special about it.
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

/// Fast blocks, and the most slow blocks that are tried.
const FAST_BLOCKS: u64 = 12;
const SLOW_BLOCKS_MAX: u64 = 400;

impl Tiny {
    /// The device of a scheme: with as little spare area as the scheme takes.
    ///
    /// # Errors
    /// The scheme refuses every size.
    pub fn device(&self, spec: &SchemeSpec) -> Result<Device, String> {
        let logical_bytes = self.logical_sectors * 512;
        let slow_block = u64::from(self.slow.0 * self.slow.1);
        let least = logical_bytes.div_ceil(slow_block) + 2;
        let mut refusal = String::new();
        for blocks in least..least + SLOW_BLOCKS_MAX {
            let device = self.with_slow_blocks(spec, blocks);
            let resolved = device.resolve().map_err(|error| error.to_string())?;
            match resolved.build::<FileMedia>() {
                Ok(_) => return Ok(device),
                Err(error) => refusal = error.to_string(),
            }
        }
        Err(refusal)
    }

    fn with_slow_blocks(&self, spec: &SchemeSpec, blocks: u64) -> Device {
        let slow = self.region("slow", "chang-mlc", self.slow, blocks);
        // A cache has half of what is on the disk, at most.
        let cache =
            (blocks * u64::from(self.slow.0 * self.slow.1) / u64::from(self.fast.0 * self.fast.1) / 2).max(FAST_BLOCKS);
        let (regions, disks) = match spec.regions {
            Regions::One => (vec![slow], 0),
            Regions::FastAndSlow => (vec![self.region("fast", "chang-slc", self.fast, FAST_BLOCKS), slow], 0),
            Regions::DualMode => (vec![self.region("slow", "chang-mlc", self.slow, blocks + 6)], 0),
            Regions::FlashOverDisk => (vec![self.region("cache", "chang-slc", self.fast, cache)], 2),
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
            faults: Faults::default(),
        }
    }
}
