//! Small devices and workloads for the tests over the whole registry.

#![allow(dead_code, reason = "each test binary uses its own share of this module")]

use std::fs;
use std::path::Path;

use bimetal_core::media::{Cause, Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation, Volume};
use bimetal_core::part::{random, real};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, RegionShape, Regions, Scheme, SchemeSpec, Shape};
use bimetal_core::units::Geometry;
use bimetal_core::{chip, drive};

/// The page of comparisons with other programs has these rows of a table, one after the other.
pub fn assert_documented(rows: &[String]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checked.md");
    let rows = rows.join("\n");
    assert!(fs::read_to_string(page).unwrap().contains(&rows), "`docs/checked.md` must have these rows:\n{rows}");
}

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

/// A device of a few MiB that suits a scheme: 64 logical blocks of 64 KiB with a quarter of them spare, and the
/// additional parts that the scheme needs.
pub fn tiny_regions(spec: &SchemeSpec) -> Vec<SimRegion> {
    let slow = region("chang-mlc", 16, 80, 1);
    match spec.regions {
        Regions::One => vec![slow],
        Regions::DualMode => vec![region("chang-mlc", 16, 96, 1)],
        Regions::FastAndSlow => vec![region("chang-slc", 16, 24, 1), slow],
        Regions::FlashOverDisk => vec![region("chang-slc", 16, 48, 1)],
    }
}

/// The disk under [`tiny_regions`], if the scheme needs one.
pub fn tiny_volumes(spec: &SchemeSpec) -> Vec<Volume> {
    match spec.regions {
        Regions::FlashOverDisk => vec![Volume { drive: drive::catalogue().remove(0), sectors: TINY_SECTORS }],
        Regions::One | Regions::FastAndSlow | Regions::DualMode => Vec::new(),
    }
}

/// A tiny device as a scheme sees it.
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

/// Regions as a scheme sees them.
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

/// Media that check every rule, and the scheme on them.
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

/// A simulated device that serves one write of 4 KiB after the other, at once.
pub struct SimDevice {
    pub media: SimMedia,
    pub scheme: Box<dyn Scheme<SimMedia>>,
}

impl SimDevice {
    /// A scheme over regions, filled.
    pub fn filled(name: &str, settings: &[(&str, &str)], regions: &[SimRegion], logical_sectors: u64) -> Self {
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        let mut media = SimMedia::new(regions, 1);
        let mut scheme = scheme::build::<SimMedia>(name, &shape(regions, logical_sectors), &settings).unwrap();
        scheme.fill(&mut media);
        Self { media, scheme }
    }

    /// Writes a page of 4 KiB.
    pub fn write(&mut self, page: u64) {
        self.write_pages(page, 1);
    }

    /// Writes consecutive pages of 4 KiB with one request.
    pub fn write_pages(&mut self, first: u64, pages: u32) {
        let request = Request { arrival_ns: 0, sector: first * 8, sectors: pages * 8, op: Op::Write, handle: 0 };
        self.media.begin(&request, 0);
        self.scheme.serve(&mut self.media, &request);
    }

    /// Pages programmed for the host and by garbage collection, for each page of the host.
    pub fn write_amplification(&self) -> f64 {
        self.scheme.check().unwrap();
        let [host, gc] = [Cause::Host, Cause::Gc].map(|cause| self.media.ledger().total(FlashOp::Program, cause));
        (host + gc) as f64 / host as f64
    }
}

/// A Zipf distribution over pages in random order.
pub struct Zipf {
    /// By rank.
    pages: Vec<u64>,
    /// By rank: the weights up to it.
    sums: Vec<f64>,
}

impl Zipf {
    /// The distribution over pages below `pages`: rank r has the weight r^-`exponent`.
    pub fn new(pages: u64, exponent: f64, state: &mut u64) -> Self {
        let mut shuffled: Vec<u64> = (0..pages).collect();
        for end in (1..shuffled.len()).rev() {
            shuffled.swap(end, random::below(state, end as u64 + 1) as usize);
        }
        let mut sum = 0.0;
        let mut sum_to = |rank: u64| {
            sum += real::pow(rank as f64, -exponent);
            sum
        };
        Self { pages: shuffled, sums: (1..=pages).map(&mut sum_to).collect() }
    }

    /// A page.
    pub fn draw(&self, state: &mut u64) -> u64 {
        let last = self.sums.len() - 1;
        let drawn = random::unit(state) * self.sums[last];
        self.pages[self.sums.partition_point(|&sum| sum < drawn).min(last)]
    }
}
