//! Small devices in all shapes that schemes require, with sound blocks and with failing ones.

use super::Media;
use crate::chip::{self, Chip};
use crate::drive::{self, Drive};
use crate::media::{Checked, Faults, SimMedia, SimRegion, Volume};
use crate::part::random::below;
use crate::scheme::{RegionShape, Regions, Shape};
use crate::units::Geometry;

/// Page bytes, pages per block, blocks.
type Layout = (u32, u32, u32);

/// A small device in the shapes that schemes require.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Its special property.
    pub name: &'static str,
    logical_bytes: u64,
    fast: Layout,
    slow: Layout,
    dies: u32,
    faults: Faults,
}

const SOUND: Faults = Faults { program_fail_ppm: 0, erase_fail_ppm: 0, factory_bad_ppm: 0, replacement_blocks: 0 };
const FAULTY: Faults =
    Faults { program_fail_ppm: 100, erase_fail_ppm: 2000, factory_bad_ppm: 10_000, replacement_blocks: 1000 };

/// Devices of a few MiB; the slow regions have a little more than the spare area that any scheme requires.
pub const DEVICES: &[Device] = &[
    Device {
        name: "small pages in front of larger ones",
        logical_bytes: 4 << 20,
        fast: (2048, 16, 16),
        slow: (4096, 32, 42),
        dies: 1,
        faults: SOUND,
    },
    Device {
        name: "equal pages, failing blocks",
        logical_bytes: 4 << 20,
        fast: (4096, 16, 12),
        slow: (4096, 16, 80),
        dies: 2,
        faults: FAULTY,
    },
    Device {
        name: "blocks of 384 large pages",
        logical_bytes: 36 << 20,
        fast: (4096, 64, 10),
        slow: (8192, 384, 20),
        dies: 1,
        faults: SOUND,
    },
    Device {
        name: "a fast page over several slow ones, logical end within a block",
        logical_bytes: (5 << 20) + (68 << 10),
        fast: (8192, 8, 20),
        slow: (2048, 48, 70),
        dies: 1,
        faults: FAULTY,
    },
];

fn chip_of(name: &str, (page_bytes, pages_per_block, _): Layout) -> Chip {
    let mut chip = chip::find(name).unwrap_or_else(|| panic!("the catalogue has `{name}`"));
    // Few cycles, so that runs exceed them by far.
    (chip.page_bytes, chip.pages_per_block, chip.endurance) = (page_bytes, pages_per_block, chip.endurance / 1000);
    if let Some(mode) = &mut chip.slc_mode {
        mode.pages_per_block = pages_per_block / 2;
    }
    chip
}

fn region_of(chip: &str, layout: Layout, blocks: u32, dies: u32) -> RegionShape {
    let geometry = Geometry::new(layout.0, layout.1, blocks, dies).unwrap_or_else(|error| panic!("{error}"));
    RegionShape { chip: chip_of(chip, layout), geometry }
}

impl Device {
    /// A device of a few MiB with regions of a few large or many small blocks, on one die or several. Some schemes find it
    /// too small.
    pub(super) fn drawn(state: &mut u64) -> Self {
        let mut one_of = |values: &[u32]| values[below(state, values.len() as u64) as usize];
        let dies = one_of(&[1, 2, 3, 4]);
        let [fast_page, slow_page] = [&[2048, 4096, 8192], &[2048, 4096, 16384]].map(|bytes| one_of(bytes));
        let [fast_pages, slow_pages] = [&[4, 16, 32], &[4, 16, 48]].map(|pages| one_of(pages));
        let logical_bytes = one_of(&[512, 1000, 2000, 4096]) * 1024 + one_of(&[0, 512, 2560]);
        let fast_blocks = one_of(&[3, 5, 8, 20, 64]).next_multiple_of(dies);
        let spare_blocks = one_of(&[2, 4, 7, 12, 24]) * dies;
        let slow_blocks = (logical_bytes.div_ceil(slow_page * slow_pages) + spare_blocks).next_multiple_of(dies);
        Self {
            name: "drawn",
            logical_bytes: u64::from(logical_bytes),
            fast: (fast_page, fast_pages, fast_blocks),
            slow: (slow_page, slow_pages, slow_blocks),
            dies,
            faults: if one_of(&[0, 1]) == 0 { SOUND } else { FAULTY },
        }
    }

    /// The device as a scheme sees it.
    pub fn shape(&self, regions: Regions) -> Shape {
        let fast = region_of("chang-slc", self.fast, self.fast.2, self.dies);
        let slow = region_of("chang-mlc", self.slow, self.slow.2, self.dies);
        let dual = region_of("chang-mlc", self.slow, self.slow.2 + 12, self.dies);
        let disks = match regions {
            Regions::FlashOverDisk => drive::catalogue(),
            Regions::One | Regions::FastAndSlow | Regions::DualMode => Vec::new(),
        };
        let regions = match regions {
            Regions::One => vec![slow],
            Regions::FastAndSlow => vec![fast, slow],
            Regions::DualMode => vec![dual],
            // At most half as large as the disk.
            Regions::FlashOverDisk => vec![region_of("chang-slc", self.fast, 2 * self.fast.2, self.dies)],
        };
        Shape { logical_sectors: self.logical_bytes / 512, regions, disks, seed: 1 }
    }

    /// Its simulated media.
    pub(super) fn sim(&self, shape: &Shape) -> SimMedia {
        // Each disk has an equal part of the data, the first disk the first part.
        let disks = shape.disks.len() as u64;
        let volume = |(index, drive): (u64, &Drive)| {
            let sectors = shape.logical_sectors * (index + 1) / disks - shape.logical_sectors * index / disks;
            Volume { drive: drive.clone(), sectors }
        };
        let volumes: Vec<Volume> = (0..).zip(&shape.disks).map(volume).collect();
        SimMedia::new(&sim_regions(shape, self.faults), 7).with_disks(&volumes)
    }

    /// The same media, checked.
    pub(super) fn media(&self, shape: &Shape) -> Media {
        checked_media(shape, self.sim(shape))
    }
}

/// Simulated regions of a shape, with one channel each.
pub(crate) fn sim_regions(shape: &Shape, faults: Faults) -> Vec<SimRegion> {
    let sim =
        |region: &RegionShape| SimRegion { chip: region.chip.clone(), geometry: region.geometry, channels: 1, faults };
    shape.regions.iter().map(sim).collect()
}

/// Media of a shape, checked.
pub(crate) fn checked_media(shape: &Shape, sim: SimMedia) -> Media {
    let slc_pages = |chip: &Chip| chip.slc_mode.as_ref().map_or(0, |mode| mode.pages_per_block);
    let regions: Vec<(Geometry, u32)> =
        shape.regions.iter().map(|region| (region.geometry, slc_pages(&region.chip))).collect();
    Checked::new(sim, &regions)
}
