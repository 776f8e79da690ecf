//! Speed of every registered scheme beside a bare loop of memory accesses, in one process.
//!
//! The bare loop does only what any page-mapped device must do to memory for the same host requests and copies: per
//! host read one look-up in a map of logical pages; per host write the look-up, the old page's validity and its block's
//! valid count, and map and owner of the new page; per copy the old page's owner, and map and owner of the new page; the
//! validity of consecutive new pages a word at a time. Where fast pages lie in front of slow ones, each has such a map: a
//! write to the fast ones makes the slow copy invalid, a page that goes down leaves one map and enters the other. A cache in
//! front of a disk has such a map of its slots, an index and an LRU order of the pages in them, and, if it measures hit-rate
//! curves, an index of the pages used last. It knows no time, no garbage collection policy, no accounting, and no disk.
//!
//! Speeds are million flash page operations (reads and programs) per second at steady state, garbage collection
//! active: the device is filled, aged by one pass of writes over its whole capacity, then measured.
//!
//! Then some schemes replay the first workload 32 requests at a time, with a controller of today in front of the device and without
//! one, in turn: the ratio says what the controller costs.
//!
//! Usage: `cargo bench -p bimetal-study --bench replay -- [quick] [controller] [SCHEME…]`; `quick` leaves the 64-GiB devices out,
//! `controller` everything but the last part, names leave out all other schemes.

#![allow(clippy::expect_used, reason = "a bench that cannot be set up has nothing to measure")]

use std::hint::black_box;
use std::time::Instant;

use bimetal_core::ledger::Row;
use bimetal_core::media::{Cause, CellMode, Faults, FlashOp, SimMedia, SimRegion, Simulation, Volume};
use bimetal_core::part::lru::Lists;
use bimetal_core::part::page_index::PageIndex;
use bimetal_core::part::random;
use bimetal_core::replay::{self, Arrivals, Outcome, Plan};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, RegionShape, Regions, SCHEMES, SchemeSpec, Shape};
use bimetal_core::units::{ByteSize, Geometry};
use bimetal_core::{chip, controller, drive};

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
            Request { arrival_ns: 0, sector: page * SECTORS_PER_PAGE, sectors: SECTORS_PER_PAGE as u32, op, handle: 0 }
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
        Regions::FlashOverDisk => vec![region(find("chang-slc"), geometry(4096, 64, fast_blocks))],
        Regions::DualMode => vec![region(mlc, geometry(4096, 256, blocks + fast_blocks / 4))],
        Regions::FastAndSlow => {
            vec![region(find("chang-slc"), geometry(2048, 64, fast_blocks)), region(mlc, geometry(4096, 256, blocks))]
        }
    }
}

struct Measured {
    outcome: Outcome,
    seconds: f64,
    /// Memory of the simulator: medium and scheme.
    bytes: i64,
}

fn volumes(case: &Case, spec: &SchemeSpec) -> Vec<Volume> {
    match spec.regions {
        Regions::FlashOverDisk => {
            vec![Volume { drive: drive::catalogue().remove(0), sectors: case.logical_pages * SECTORS_PER_PAGE }]
        }
        Regions::One | Regions::FastAndSlow | Regions::DualMode => Vec::new(),
    }
}

fn device(case: &Case, spec: &SchemeSpec) -> (Vec<SimRegion>, Shape) {
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

fn simulate(case: &Case, spec: &SchemeSpec) -> Measured {
    let (regions, shape) = device(case, spec);
    let volumes = volumes(case, spec);
    let mut device = None;
    let memory = allocation_counter::measure(|| {
        let scheme = scheme::build::<SimMedia>(spec.name, &shape, &[]).expect("the device suits the scheme");
        device = Some((SimMedia::new(&regions, 1).with_disks(&volumes), scheme));
    });
    let (mut media, mut scheme) = device.expect("it was just made");
    let ageing = requests(case, case.logical_pages as usize, 1.0, 11);
    let measured = requests(case, case.requests, case.write_share, 12);
    replay::run(&mut media, &mut *scheme, &ageing, &Plan::default(), &mut replay::to_the_end);
    media.reset_counts();
    let started = Instant::now();
    let outcome = replay::run(
        &mut media,
        &mut *scheme,
        &measured,
        &Plan { fill: false, ..Plan::default() },
        &mut replay::to_the_end,
    );
    Measured { outcome, seconds: started.elapsed().as_secs_f64(), bytes: memory.bytes_current }
}

/// A page map without policy: what reads, writes and copies must touch. New pages and pages to copy come one after the
/// other.
struct BareMap {
    map: Vec<u32>,
    owner: Vec<u32>,
    valid_pages: Vec<u32>,
    valid: Vec<u64>,
    next: usize,
    victim: usize,
}

impl BareMap {
    const NONE: u32 = u32::MAX;

    /// `logical` pages, of which the map knows none if it is a log's, on `physical` ones.
    fn new(logical: usize, physical: usize, is_log: bool) -> Self {
        let blocks = physical.div_ceil(256).max(1);
        let owner: Vec<u32> = (0..blocks * 256).map(|page| (page % logical) as u32).collect();
        let map = (0..logical as u32).map(|page| if is_log { Self::NONE } else { page }).collect();
        let (valid_pages, valid) = (vec![256; blocks], vec![u64::MAX; blocks * 4]);
        Self { map, victim: owner.len() / 2, owner, valid_pages, valid, next: 0 }
    }

    /// A page gets a new copy, the old one is not valid any more.
    fn write(&mut self, logical: usize) {
        let old = std::mem::replace(&mut self.map[logical], self.next as u32);
        self.drop_copy(old);
        self.take(logical as u32);
    }

    /// A page's copy is not valid any more.
    fn forget(&mut self, logical: usize) {
        let old = std::mem::replace(&mut self.map[logical], Self::NONE);
        self.drop_copy(old);
    }

    fn drop_copy(&mut self, old: u32) {
        if old != Self::NONE {
            let old = old as usize;
            self.valid_pages[old / 256] = self.valid_pages[old / 256].wrapping_sub(1);
            self.valid[old / 64] &= !(1 << (old % 64));
        }
    }

    fn take(&mut self, logical: u32) {
        self.owner[self.next] = logical;
        // Consecutive pages become valid a word at a time.
        if self.next.is_multiple_of(64) {
            self.valid[self.next / 64] = u64::MAX;
        }
        self.next = if self.next + 1 == self.owner.len() { 0 } else { self.next + 1 };
    }

    /// The next page that is to be moved.
    fn next_victim(&mut self) -> u32 {
        let moved = self.owner[self.victim];
        self.victim = if self.victim + 1 == self.owner.len() { 0 } else { self.victim + 1 };
        moved
    }

    fn copy(&mut self) {
        let moved = self.next_victim();
        self.map[moved as usize] = self.next as u32;
        self.take(moved);
    }
}

/// Something that happens at a steady rate.
struct Rate {
    per_write: f64,
    owed: f64,
}

impl Rate {
    fn new(count: u64, writes: u64) -> Self {
        Self { per_write: count as f64 / writes.max(1) as f64, owed: 0.0 }
    }

    fn due(&mut self) -> u32 {
        self.owed += self.per_write;
        let due = self.owed as u32;
        self.owed -= f64::from(due);
        due
    }
}

/// The pages used last, as many as the flash has: what hit-rate curves are measured from. Each use has a place of its own.
struct Ghosts {
    index: PageIndex,
    pages: Vec<u32>,
    live: Vec<u64>,
    oldest: usize,
    capacity: u32,
}

impl Ghosts {
    fn new(capacity: u32, uses: usize) -> Self {
        let live = vec![0; uses / 64 + 1];
        Self { index: PageIndex::new(capacity + 1), pages: Vec::with_capacity(uses), live, oldest: 0, capacity }
    }

    fn touch(&mut self, page: u32) {
        let place = self.pages.len();
        self.pages.push(page);
        self.live[place / 64] |= 1 << (place % 64);
        if let Some(old) = self.index.insert(page, place as u32) {
            self.live[old as usize / 64] &= !(1 << (old % 64));
        }
        if self.index.len() > self.capacity {
            while self.live[self.oldest / 64] & (1 << (self.oldest % 64)) == 0 {
                self.oldest += 1;
            }
            self.forget(self.pages[self.oldest]);
        }
    }

    fn forget(&mut self, page: u32) {
        if let Some(old) = self.index.remove(page) {
            self.live[old as usize / 64] &= !(1 << (old % 64));
        }
    }
}

/// The same for a cache: pages come when they are used, in place of those that were not for longest. One that measures
/// hit-rate curves has ghosts of what was read and of what was written.
fn bare_cache(requests: &[Request], outcome: &Outcome) -> f64 {
    let row = &outcome.ledger.rows[0];
    let blocks = outcome.ledger.erases[0].len();
    let slots = (blocks * 64) as u32 / 10 * 9;
    let (mut index, mut order) = (PageIndex::new(slots), Lists::new(slots as usize, 1));
    let mut pages = vec![u32::MAX; slots as usize];
    let mut flash = BareMap::new(slots as usize, blocks * 64, false);
    let moved = [Cause::Gc, Cause::Meta].map(|cause| row.counts.get(FlashOp::Program, cause)).iter().sum();
    let mut copies = Rate::new(moved, requests.len() as u64);
    (0..slots).for_each(|slot| order.push_back(0, slot));
    let measures = outcome.metrics.get("tracker_bytes").is_some();
    let mut ghosts = measures.then(|| [(); 2].map(|()| Ghosts::new(blocks as u32 * 64, requests.len())));
    let started = Instant::now();
    let mut sum = 0u32;
    for request in requests {
        let page = (request.sector / SECTORS_PER_PAGE) as u32;
        if let Some([read, written]) = &mut ghosts {
            if request.op == Op::Read {
                read.touch(page);
            } else {
                read.forget(page);
                written.touch(page);
            }
        }
        let cached = index.get(page);
        let slot = cached.or(order.front(0)).unwrap_or(0);
        order.remove(0, slot);
        order.push_back(0, slot);
        if cached.is_none() {
            let old = std::mem::replace(&mut pages[slot as usize], page);
            if old != u32::MAX {
                index.remove(old);
            }
            index.insert(page, slot);
        }
        if request.op == Op::Read && cached.is_some() {
            sum = sum.wrapping_add(flash.map[slot as usize]);
        } else {
            flash.write(slot as usize);
        }
        (0..copies.due()).for_each(|_| flash.copy());
    }
    black_box((sum, &flash.map, &flash.valid_pages, ghosts.map(|ghosts| ghosts.map(|ghosts| ghosts.oldest))));
    started.elapsed().as_secs_f64()
}

/// The memory accesses of the same requests, copies and migrations, and nothing else. Returns seconds.
fn bare(case: &Case, outcome: &Outcome) -> f64 {
    let requests = requests(case, case.requests, case.write_share, 12);
    if !outcome.ledger.disks.is_empty() {
        return bare_cache(&requests, outcome);
    }
    let writes = outcome.host.writes;
    // A device with a log of fast pages has a map of either region.
    let (fast_rows, slow_rows): (Vec<&Row>, Vec<&Row>) =
        outcome.ledger.rows.iter().partition(|row| row.mode == CellMode::Slc || row.region < last_region(outcome));
    let programs = |rows: &[&Row], causes: &[Cause]| -> u64 {
        rows.iter().flat_map(|row| causes.iter().map(|&cause| row.counts.get(FlashOp::Program, cause))).sum()
    };
    let (host, down) = ([Cause::Host, Cause::MigrateUp], [Cause::MigrateDown]);
    let copies = [Cause::Gc, Cause::Fold, Cause::WearLevel, Cause::Scan, Cause::Meta];
    let mut fast_host = Rate::new(programs(&fast_rows, &host), writes);
    let mut slow_host = Rate::new(programs(&slow_rows, &host), writes);
    let mut migrations = Rate::new(programs(&slow_rows, &down), writes);
    let mut fast_copies = Rate::new(programs(&fast_rows, &copies), writes);
    let mut slow_copies = Rate::new(programs(&slow_rows, &copies) + programs(&fast_rows, &down), writes);
    let logical_pages = case.logical_pages as usize;
    let mut slow = BareMap::new(logical_pages, logical_pages / 1000 * (1000 + case.spare_permille as usize), false);
    // As many units to a request as it has fast pages, at least one.
    let units = (fast_host.per_write.round() as usize).max(1);
    let fast_pages = fast_rows.iter().map(|row| outcome.ledger.erases[row.region].len()).sum::<usize>() * 64;
    let mut fast = BareMap::new(logical_pages * units, fast_pages.max(256), true);
    let started = Instant::now();
    let mut sum = 0u32;
    for request in &requests {
        let logical = (request.sector / SECTORS_PER_PAGE) as usize;
        if request.op == Op::Read {
            sum = sum.wrapping_add(slow.map[logical]);
            continue;
        }
        for unit in 0..fast_host.due() as usize {
            fast.write(logical * units + unit % units);
            if unit == 0 {
                slow.forget(logical);
            }
        }
        for _ in 0..slow_host.due() {
            slow.write(logical);
        }
        for _ in 0..migrations.due() {
            let unit = fast.next_victim() as usize;
            fast.forget(unit);
            slow.write(unit / units);
        }
        for _ in 0..fast_copies.due() {
            fast.copy();
        }
        for _ in 0..slow_copies.due() {
            slow.copy();
        }
    }
    black_box((sum, &slow.map, &slow.valid_pages, &fast.map, &fast.valid_pages));
    started.elapsed().as_secs_f64()
}

/// Position of the device's last region, the slow one.
fn last_region(outcome: &Outcome) -> usize {
    outcome.ledger.rows.iter().map(|row| row.region).max().unwrap_or(0)
}

/// Schemes that are measured behind a controller unless others are named.
const BEHIND_CONTROLLER: [&str; 5] = ["pagemap", "pslc-dynamic", "wlaftl", "hyssd", "comboftl"];
/// Times that either is measured; the shortest counts.
const ROUNDS: usize = 5;

/// A controller of today on a device of this shape.
fn controller(shape: &Shape) -> controller::Spec {
    let settings = controller::ControllerSettings {
        link_mb_per_s: 7100.0,
        half_duplex: false,
        command_us: 1.0,
        us_per_4kib: 0.25,
        read_latency_us: 20.0,
        write_latency_us: 14.0,
        buffer: ByteSize(32 << 20),
        power_protected: true,
        map_cache: None,
        fold_efficiency: 1.0,
    };
    controller::Spec { settings, wordline_sectors: 384, mapping_sectors: 8, logical_sectors: shape.logical_sectors }
}

/// Seconds that requests take without a controller and with one, on devices that were aged alike.
fn with_and_without(case: &Case, spec: &SchemeSpec) -> [f64; 2] {
    let (regions, shape) = device(case, spec);
    let ageing = requests(case, case.logical_pages as usize, 1.0, 11);
    let measured = requests(case, case.requests, case.write_share, 12);
    let plan = |controller| Plan { arrivals: Arrivals::Closed { depth: 32 }, controller, ..Plan::default() };
    let plans = [None, Some(controller(&shape))].map(plan);
    let mut devices = plans.map(|plan| {
        let mut scheme = scheme::build::<SimMedia>(spec.name, &shape, &[]).expect("the device suits the scheme");
        let mut media = SimMedia::new(&regions, 1).with_disks(&volumes(case, spec));
        replay::run(&mut media, &mut *scheme, &ageing, &plan, &mut replay::to_the_end);
        (media, scheme, Plan { fill: false, ..plan })
    });
    let mut least = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for ((media, scheme, plan), least) in devices.iter_mut().zip(&mut least) {
            let started = Instant::now();
            black_box(replay::run(media, &mut **scheme, &measured, plan, &mut replay::to_the_end));
            *least = least.min(started.elapsed().as_secs_f64());
        }
    }
    least
}

fn print_controllers(case: &Case, schemes: &[&SchemeSpec]) {
    println!("{:<17} {:<16} {:>22} {:>22} {:>7}", "", "", "M requests/s, without", "with a controller", "ratio");
    for spec in schemes {
        let [without, with] = with_and_without(case, spec);
        let speed = |seconds: f64| case.requests as f64 / seconds / 1e6;
        println!(
            "{:<17} {:<16} {:>22.2} {:>22.2} {:>7.2}",
            case.name,
            spec.name,
            speed(without),
            speed(with),
            without / with
        );
    }
}

/// The workloads; `quick` leaves out those of 64 GiB.
fn cases(quick: bool) -> Vec<Case> {
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
    cases
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let quick = arguments.iter().any(|argument| argument == "quick");
    let only_controllers = arguments.iter().any(|argument| argument == "controller");
    let named: Vec<&SchemeSpec> =
        SCHEMES.iter().copied().filter(|spec| arguments.iter().any(|argument| argument == spec.name)).collect();
    let behind_controller: Vec<&SchemeSpec> = if named.is_empty() {
        SCHEMES.iter().copied().filter(|spec| BEHIND_CONTROLLER.contains(&spec.name)).collect()
    } else {
        named.clone()
    };
    let schemes = if named.is_empty() { SCHEMES.to_vec() } else { named };
    let cases = cases(quick);
    if only_controllers {
        return print_controllers(&cases[0], &behind_controller);
    }
    println!(
        "{:<17} {:<16} {:>12} {:>14} {:>14} {:>7} {:>6} {:>10}",
        "workload", "scheme", "M requests/s", "M page ops/s", "bare, same ops", "ratio", "WA", "bytes/page"
    );
    for case in &cases {
        for spec in &schemes {
            let Measured { outcome, seconds, bytes } = simulate(case, spec);
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
    println!();
    print_controllers(&cases[0], &behind_controller);
}
