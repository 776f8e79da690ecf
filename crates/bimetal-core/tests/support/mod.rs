//! Small devices and workloads that the tests over the whole registry share.

#![allow(dead_code, reason = "each test binary uses its own share of this module")]

use bimetal_core::media::{Checked, Faults, SimMedia, SimRegion, Volume};
use bimetal_core::part::random;
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, RegionShape, Regions, Scheme, SchemeSpec, Shape};
use bimetal_core::units::Geometry;
use bimetal_core::{chip, drive};

/// A region of `blocks` blocks of a catalogue chip, with its block shortened to `pages_per_block`.
pub fn region(chip_name: &str, pages_per_block: u32, blocks: u32, dies: u32) -> SimRegion {
    let mut chip = chip::find(chip_name).unwrap_or_else(|| panic!("the catalogue has `{chip_name}`"));
    chip.pages_per_block = pages_per_block;
    if let Some(slc) = &mut chip.slc_mode {
        slc.pages_per_block = pages_per_block / 2;
    }
    let geometry = Geometry::new(chip.page_bytes, pages_per_block, blocks, dies).unwrap();
    SimRegion { chip, geometry, channels: dies, faults: Faults::default() }
}

/// A device of a few MiB that suits a scheme: 64 logical blocks of 64 KiB with a quarter of them spare, and what the
/// scheme needs beside it.
pub fn tiny_regions(spec: &SchemeSpec) -> Vec<SimRegion> {
    let slow = region("chang-mlc", 16, 80, 1);
    match spec.regions {
        Regions::One => vec![slow],
        Regions::DualMode => vec![region("chang-mlc", 16, 96, 1)],
        Regions::FastAndSlow => vec![region("chang-slc", 16, 24, 1), slow],
        Regions::FlashOverDisk => vec![region("chang-slc", 16, 48, 1)],
    }
}

/// The disk under [`tiny_regions`], where the scheme needs one.
pub fn tiny_volumes(spec: &SchemeSpec) -> Vec<Volume> {
    match spec.regions {
        Regions::FlashOverDisk => vec![Volume { drive: drive::catalogue().remove(0), sectors: TINY_SECTORS }],
        Regions::One | Regions::FastAndSlow | Regions::DualMode => Vec::new(),
    }
}

/// What a scheme sees of a tiny device.
pub fn tiny_shape(spec: &SchemeSpec) -> Shape {
    let disks = tiny_volumes(spec).into_iter().map(|volume| volume.drive).collect();
    Shape { disks, ..shape(&tiny_regions(spec), TINY_SECTORS) }
}

/// A tiny device that does one operation at a time.
pub fn tiny_media(spec: &SchemeSpec) -> SimMedia {
    SimMedia::new(&tiny_regions(spec), 1).with_disks(&tiny_volumes(spec)).serial()
}

/// Sectors that the host sees of [`tiny_regions`].
pub const TINY_SECTORS: u64 = 64 * 128;

/// What a scheme sees of regions.
pub fn shape(regions: &[SimRegion], logical_sectors: u64) -> Shape {
    let regions =
        regions.iter().map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry }).collect();
    Shape { logical_sectors, regions, disks: Vec::new(), seed: 1 }
}

/// A scheme over a checked tiny device.
pub fn checked(spec: &SchemeSpec) -> CheckedDevice {
    let geometries: Vec<_> = tiny_regions(spec)
        .iter()
        .map(|region| (region.geometry, region.chip.slc_mode.map_or(0, |slc| slc.pages_per_block)))
        .collect();
    let media = Checked::new(tiny_media(spec), &geometries);
    let scheme =
        scheme::build(spec.name, &tiny_shape(spec), &[]).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    (media, scheme)
}

/// A medium that checks every rule, and the scheme on it.
pub type CheckedDevice = (Checked<SimMedia>, Box<dyn Scheme<Checked<SimMedia>>>);

/// A mixture of small hot writes, large cold ones, reads and some trims.
pub fn mixed_requests(seed: u64, count: usize, logical_sectors: u64) -> Vec<Request> {
    let mut state = seed;
    (0..count)
        .map(|index| {
            let kind = random::below(&mut state, 100);
            let op = match kind {
                0..70 => Op::Write,
                70..98 => Op::Read,
                _ => Op::Trim,
            };
            let small = random::below(&mut state, 100) < 75;
            let span = if small { logical_sectors / 16 } else { logical_sectors };
            let longest = if small { 16 } else { 256 };
            let sectors = 1 + random::below(&mut state, longest.min(logical_sectors / 4));
            let sector = random::below(&mut state, span.max(sectors + 1) - sectors);
            Request { arrival_ns: index as u64 * 1_000_000, sector, sectors: sectors as u32, op, handle: 0 }
        })
        .collect()
}
