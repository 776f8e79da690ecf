//! The bare loop: memory accesses and nothing else.

use std::hint::black_box;
use std::time::Instant;

use bimetal_core::ledger::Row;
use bimetal_core::media::{Cause, CellMode, FlashOp};
use bimetal_core::part::lru::Lists;
use bimetal_core::part::page_index::PageIndex;
use bimetal_core::region::slot_chains::SlotChains;
use bimetal_core::replay::Outcome;
use bimetal_core::request::{Op, Request};

use crate::case::{Case, SECTORS_PER_PAGE, requests};

/// A page map without policy: the memory that reads, writes and copies must access. New pages and pages to copy are
/// taken in order.
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

    /// A map of `logical` pages on `physical` ones. The map of a log is empty at first.
    fn new(logical: usize, physical: usize, is_log: bool) -> Self {
        let blocks = physical.div_ceil(256).max(1);
        let owner: Vec<u32> = (0..blocks * 256).map(|page| (page % logical) as u32).collect();
        let map = (0..logical as u32).map(|page| if is_log { Self::NONE } else { page }).collect();
        let (valid_pages, valid) = (vec![256; blocks], vec![u64::MAX; blocks * 4]);
        Self { map, victim: owner.len() / 2, owner, valid_pages, valid, next: 0 }
    }

    /// Writes a new copy of a page, and invalidates the old one.
    fn write(&mut self, logical: usize) {
        let old = std::mem::replace(&mut self.map[logical], self.next as u32);
        self.drop_copy(old);
        self.take(logical as u32);
    }

    /// Invalidates a page's copy.
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

    /// The next page to move.
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

/// An event with a steady rate.
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

/// The last used pages, up to the number of pages of the flash, from which hit-rate curves are measured. Each use has
/// its own place.
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

/// The same for a cache: a used page replaces the least recently used one. A cache that measures hit-rate curves has
/// ghosts of the pages read and of the pages written.
fn bare_cache(requests: &[Request], outcome: &Outcome) -> f64 {
    let row = &outcome.measured.ledger.rows[0];
    let blocks = outcome.measured.ledger.erases[0].len();
    let slots = (blocks * 64) as u32 / 10 * 9;
    let (mut index, mut order) = (SlotChains::new(slots as usize, u64::from(slots) * 4), Lists::new(slots as usize, 1));
    let mut pages = vec![u32::MAX; slots as usize];
    let mut flash = BareMap::new(slots as usize, blocks * 64, false);
    let moved = [Cause::Gc, Cause::Meta].map(|cause| row.counts.get(FlashOp::Program, cause)).iter().sum();
    let mut copies = Rate::new(moved, requests.len() as u64);
    (0..slots).for_each(|slot| order.push_back(0, slot));
    let measures = outcome.measured.metrics.get("tracker_bytes").is_some();
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
        let cached = index.find(page, |slot| pages[slot as usize] == page);
        let slot = cached.or(order.front(0)).unwrap_or(0);
        order.remove(0, slot);
        order.push_back(0, slot);
        if cached.is_none() {
            let old = std::mem::replace(&mut pages[slot as usize], page);
            if old != u32::MAX {
                index.unlink(old, slot);
            }
            index.link(page, slot);
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

/// Performs only the memory accesses of the same requests, copies and migrations. Returns seconds.
pub fn bare(case: &Case, outcome: &Outcome) -> f64 {
    let requests = requests(case, case.requests, case.write_share, 12);
    if !outcome.measured.ledger.disks.is_empty() {
        return bare_cache(&requests, outcome);
    }
    let writes = outcome.measured.host.writes;
    // A device with a log of fast pages has a map of each region.
    let (fast_rows, slow_rows): (Vec<&Row>, Vec<&Row>) = outcome
        .measured
        .ledger
        .rows
        .iter()
        .partition(|row| row.mode == CellMode::Slc || row.region < last_region(outcome));
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
    // Units of a request: one for each of its fast pages, at least one.
    let units = (fast_host.per_write.round() as usize).max(1);
    let fast_pages = fast_rows.iter().map(|row| outcome.measured.ledger.erases[row.region].len()).sum::<usize>() * 64;
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
    outcome.measured.ledger.rows.iter().map(|row| row.region).max().unwrap_or(0)
}
