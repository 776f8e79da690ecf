//! The measured cases: workloads, and a device of each scheme for them.

use bimetal_core::media::{Faults, SimRegion, Volume};
use bimetal_core::part::random;
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{RegionShape, Regions, SchemeSpec, Shape};
use bimetal_core::units::Geometry;
use bimetal_core::{chip, drive};

pub const PAGE_BYTES: u64 = 4096;
pub const SECTORS_PER_PAGE: u64 = PAGE_BYTES / 512;

/// One workload on one size of device.
pub struct Case {
    pub name: &'static str,
    pub logical_pages: u64,
    /// Spare blocks per 1,000 logical blocks.
    pub spare_permille: u64,
    /// Share of writes, the rest are reads.
    pub write_share: f64,
    pub zipf: bool,
    pub requests: usize,
}

/// Zipf's law with exponent 0.99 over `items` ranks, by inversion of its continuous form; ranks are scattered.
struct Zipf {
    items: u64,
    total: f64,
}

impl Zipf {
    const EXPONENT: f64 = 0.01;

    fn new(items: u64) -> Self {
        Self { items, total: (items as f64).powf(Self::EXPONENT) - 1.0 }
    }

    fn draw(&self, state: &mut u64) -> u64 {
        let rank = (1.0 + random::unit(state) * self.total).powf(1.0 / Self::EXPONENT) as u64 - 1;
        (rank.min(self.items - 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.items
    }
}

/// Requests of a page each, drawn from a seed.
pub fn requests(case: &Case, count: usize, write_share: f64, seed: u64) -> Vec<Request> {
    let mut state = seed;
    let zipf = Zipf::new(case.logical_pages);
    (0..count)
        .map(|_| {
            let page = if case.zipf { zipf.draw(&mut state) } else { random::below(&mut state, case.logical_pages) };
            let op = if random::unit(&mut state) < write_share { Op::Write } else { Op::Read };
            Request { arrival_ns: 0, sector: page * SECTORS_PER_PAGE, sectors: SECTORS_PER_PAGE as u32, op, handle: 0 }
        })
        .collect()
}

/// The device of a case for a scheme: MLC with 256-page blocks, and other regions that the scheme needs.
fn regions(case: &Case, spec: &SchemeSpec) -> Vec<SimRegion> {
    let find = |name: &str| chip::find(name).unwrap_or_else(|| panic!("the catalogue has `{name}`"));
    let geometry = |page_bytes, pages, blocks| Geometry::new(page_bytes, pages, blocks, 1).expect("a sound geometry");
    let region = |chip, geometry| SimRegion { chip, geometry, channels: 1, faults: Faults::default() };
    let logical_blocks = case.logical_pages / 256;
    let blocks = (logical_blocks + logical_blocks * case.spare_permille / 1000) as u32;
    let fast_blocks = (case.logical_pages * PAGE_BYTES / 80 / (128 << 10)) as u32;
    let mlc = find("chang-mlc");
    match spec.regions {
        Regions::One => vec![region(mlc, geometry(4096, 256, blocks))],
        Regions::FlashOverDisk => vec![region(find("chang-slc"), geometry(4096, 64, fast_blocks))],
        Regions::DualMode => vec![region(mlc, geometry(4096, 256, blocks + fast_blocks / 4))],
        Regions::FastAndSlow => {
            vec![region(find("chang-slc"), geometry(2048, 64, fast_blocks)), region(mlc, geometry(4096, 256, blocks))]
        }
    }
}

/// The disk of a case for a scheme that has one.
pub fn volumes(case: &Case, spec: &SchemeSpec) -> Vec<Volume> {
    match spec.regions {
        Regions::FlashOverDisk => {
            vec![Volume { drive: drive::catalogue().remove(0), sectors: case.logical_pages * SECTORS_PER_PAGE }]
        }
        Regions::One | Regions::FastAndSlow | Regions::DualMode => Vec::new(),
    }
}

/// Regions for the simulator, and the shape for building the scheme.
pub fn device(case: &Case, spec: &SchemeSpec) -> (Vec<SimRegion>, Shape) {
    let regions = regions(case, spec);
    let shape = Shape {
        logical_sectors: case.logical_pages * SECTORS_PER_PAGE,
        regions: regions
            .iter()
            .map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry })
            .collect(),
        disks: volumes(case, spec).into_iter().map(|volume| volume.drive).collect(),
        seed: 1,
    };
    (regions, shape)
}

/// The workloads; `quick` leaves out those of 64 GiB.
pub fn cases(quick: bool) -> Vec<Case> {
    let gib = (1 << 30) / PAGE_BYTES;
    let mut cases = vec![
        // The workload of the comparison with other simulators: 10.1 % spare, 70 % writes.
        Case {
            name: "U4K 4 GiB",
            logical_pages: 4 * gib,
            spare_permille: 102,
            write_share: 0.7,
            zipf: false,
            requests: 3_000_000,
        },
        Case {
            name: "uniform 4 GiB",
            logical_pages: 4 * gib,
            spare_permille: 102,
            write_share: 1.0,
            zipf: false,
            requests: 2_000_000,
        },
        Case {
            name: "zipf 0.99 4 GiB",
            logical_pages: 4 * gib,
            spare_permille: 102,
            write_share: 1.0,
            zipf: true,
            requests: 4_000_000,
        },
    ];
    if !quick {
        cases.push(Case {
            name: "uniform 64 GiB",
            logical_pages: 64 * gib,
            spare_permille: 102,
            write_share: 1.0,
            zipf: false,
            requests: 4_000_000,
        });
        cases.push(Case {
            name: "zipf 0.99 64 GiB",
            logical_pages: 64 * gib,
            spare_permille: 102,
            write_share: 1.0,
            zipf: true,
            requests: 8_000_000,
        });
    }
    cases
}
