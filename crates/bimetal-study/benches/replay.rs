//! Speed of every registered scheme beside a bare loop of memory accesses, in one process.
//!
//! The bare loop does only what any page-mapped device must do to memory for the same host requests and copies: per
//! host read one look-up in a map of logical pages; per host write the look-up, the old page's validity and its block's
//! valid count, and map and owner of the new page; per copy the old page's owner, and map and owner of the new page; the
//! validity of consecutive new pages a word at a time. It knows no time, no garbage collection policy, no regions and no accounting.
//!
//! Speeds are million flash page operations (reads and programs) per second at steady state, garbage collection
//! active: the device is filled, aged by one pass of writes over its whole capacity, then measured.
//!
//! Usage: `cargo bench -p bimetal-study --bench replay -- [quick] [SCHEME…]`; `quick` leaves the 64-GiB devices out, names
//! leave out all other schemes.

#![allow(clippy::expect_used, reason = "a bench that cannot be set up has nothing to measure")]

use std::hint::black_box;
use std::time::Instant;

use bimetal_core::chip;
use bimetal_core::media::{Faults, FlashOp, SimMedia, SimRegion, Simulation};
use bimetal_core::part::random;
use bimetal_core::replay::{self, Outcome, Plan};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, RegionShape, Regions, SCHEMES, SchemeSpec, Shape};
use bimetal_core::units::Geometry;

const PAGE_BYTES: u64 = 4096;
const SECTORS_PER_PAGE: u64 = PAGE_BYTES / 512;

/// One workload on one size of device.
struct Case {
    name: &'static str,
    logical_pages: u64,
    /// Spare blocks per 1,000 logical blocks.
    spare_permille: u64,
    /// Share of writes, the rest are reads.
    write_share: f64,
    zipf: bool,
    requests: usize,
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

fn requests(case: &Case, count: usize, write_share: f64, seed: u64) -> Vec<Request> {
    let mut state = seed;
    let zipf = Zipf::new(case.logical_pages);
    (0..count)
        .map(|_| {
            let page = if case.zipf { zipf.draw(&mut state) } else { random::below(&mut state, case.logical_pages) };
            let op = if random::unit(&mut state) < write_share { Op::Write } else { Op::Read };
            Request { arrival_ns: 0, sector: page * SECTORS_PER_PAGE, sectors: SECTORS_PER_PAGE as u32, op }
        })
        .collect()
}

/// The device of a case for a scheme: MLC with 256-page blocks, and what the scheme needs beside it.
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
        Regions::DualMode => vec![region(mlc, geometry(4096, 256, blocks + fast_blocks / 4))],
        Regions::FastAndSlow => {
            vec![region(find("chang-slc"), geometry(2048, 64, fast_blocks)), region(mlc, geometry(4096, 256, blocks))]
        }
    }
}

struct Run {
    outcome: Outcome,
    seconds: f64,
    /// Memory of the simulator: medium and scheme.
    bytes: i64,
}

fn simulate(case: &Case, spec: &SchemeSpec) -> Run {
    let regions = regions(case, spec);
    let shape = Shape {
        logical_sectors: case.logical_pages * SECTORS_PER_PAGE,
        regions: regions
            .iter()
            .map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry })
            .collect(),
        seed: 1,
    };
    let mut device = None;
    let memory = allocation_counter::measure(|| {
        let scheme = scheme::build::<SimMedia>(spec.name, &shape, &[]).expect("the device suits the scheme");
        device = Some((SimMedia::new(&regions, 1), scheme));
    });
    let (mut media, mut scheme) = device.expect("it was just made");
    let ageing = requests(case, case.logical_pages as usize, 1.0, 11);
    let measured = requests(case, case.requests, case.write_share, 12);
    replay::run(&mut media, &mut *scheme, &ageing, &Plan::default(), &mut |_| {});
    media.reset_counts();
    let started = Instant::now();
    let outcome =
        replay::run(&mut media, &mut *scheme, &measured, &Plan { fill: false, ..Plan::default() }, &mut |_| {});
    Run { outcome, seconds: started.elapsed().as_secs_f64(), bytes: memory.bytes_current }
}

/// The memory accesses of the same requests and as many copies, and nothing else. Returns seconds.
fn bare(case: &Case, outcome: &Outcome) -> f64 {
    let requests = requests(case, case.requests, case.write_share, 12);
    let host_programs = outcome.host.writes.max(1);
    let programs: u64 = outcome.ledger.rows.iter().map(|row| row.counts.total(FlashOp::Program)).sum();
    let copies_per_write = programs.saturating_sub(host_programs) as f64 / host_programs as f64;
    let blocks = (case.logical_pages / 256 * (1000 + case.spare_permille) / 1000) as usize;
    let mut map: Vec<u32> = (0..case.logical_pages as u32).collect();
    let mut owner: Vec<u32> = (0..(blocks * 256) as u32).map(|page| page % case.logical_pages as u32).collect();
    let mut valid_pages = vec![256u32; blocks];
    let mut valid = vec![u64::MAX; blocks * 256 / 64];
    let started = Instant::now();
    let (mut next, mut victim, mut owed) = (0usize, owner.len() / 2, 0.0);
    let mut sum = 0u32;
    for request in &requests {
        let logical = (request.sector / SECTORS_PER_PAGE) as usize;
        if request.op == Op::Read {
            sum = sum.wrapping_add(map[logical]);
            continue;
        }
        let old = std::mem::replace(&mut map[logical], next as u32) as usize;
        valid_pages[old / 256] = valid_pages[old / 256].wrapping_sub(1);
        valid[old / 64] &= !(1 << (old % 64));
        owner[next] = logical as u32;
        next = if next + 1 == owner.len() { 0 } else { next + 1 };
        owed += copies_per_write;
        while owed >= 1.0 {
            owed -= 1.0;
            let moved = owner[victim];
            victim = if victim + 1 == owner.len() { 0 } else { victim + 1 };
            map[moved as usize] = next as u32;
            owner[next] = moved;
            next = if next + 1 == owner.len() { 0 } else { next + 1 };
        }
        // Consecutive pages become valid a word at a time.
        valid[next / 64] = u64::MAX;
    }
    black_box((sum, &map, &valid_pages, &valid));
    started.elapsed().as_secs_f64()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let quick = arguments.iter().any(|argument| argument == "quick");
    let named: Vec<_> = SCHEMES.iter().filter(|spec| arguments.iter().any(|argument| argument == spec.name)).collect();
    let schemes: Vec<_> = if named.is_empty() { SCHEMES.iter().collect() } else { named };
    let gib = (1 << 30) / PAGE_BYTES;
    let mut cases = vec![
        // The workload of the peers' comparison: 10.1 % spare, 70 % writes.
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
    println!(
        "{:<17} {:<16} {:>12} {:>14} {:>14} {:>7} {:>6} {:>10}",
        "workload", "scheme", "M requests/s", "M page ops/s", "bare, same ops", "ratio", "WA", "bytes/page"
    );
    for case in &cases {
        for spec in &schemes {
            let Run { outcome, seconds, bytes } = simulate(case, spec);
            let bare_seconds = bare(case, &outcome);
            let page_ops = outcome.ledger.page_ops() as f64;
            let programs: u64 = outcome.ledger.rows.iter().map(|row| row.counts.total(FlashOp::Program)).sum();
            println!(
                "{:<17} {:<16} {:>12.2} {:>14.1} {:>14.1} {:>7.2} {:>6.2} {:>10.1}",
                case.name,
                spec.name,
                case.requests as f64 / seconds / 1e6,
                page_ops / seconds / 1e6,
                page_ops / bare_seconds / 1e6,
                bare_seconds / seconds,
                programs as f64 / outcome.host.writes as f64,
                bytes as f64 / case.logical_pages as f64,
            );
        }
    }
}
