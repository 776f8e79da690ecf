//! What a device will be like, without simulating it.
//!
//! From the trace: pages that requests touch, hit rates of written pages by the size of the fast region. From the parts: times and
//! cycles. From the models: write amplification under greedy cleaning (`model::write_amplification`), and the form of HySSD's cost
//! of a write, in which what misses the fast region is moved to the slow one. It is plain on purpose: writes are taken as uniform
//! over what is written, and a scheme as one of four layouts. Where requests arrive by themselves, those that come while a device
//! collects or migrates wait; how long depends so much on how busy it is that estimates are for all of that. How far off they are, by
//! scheme, parts and sizes, is learned from simulations ([`learn`](super::learn)).

use std::collections::BTreeMap;

use bimetal_core::chip::Chip;
use bimetal_core::media::CellMode;
use bimetal_core::model::write_amplification;
use bimetal_core::part::real::{ln, pow};
use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::request::{Op, Request, SECTOR_BYTES};
use bimetal_core::scheme::Regions;

use super::goals::{Measure, Outcome};
use super::space::{Candidate, Layout};

/// On each die a page map keeps one block erased and two open on average half full.
const BLOCKS_KEPT: f64 = 2.0;
/// Fuller than this no device is taken to be.
const UTILISATION_MAX: f64 = 0.98;
/// An open loop is estimated with so many times the stalls that are expected.
const STALLS: [f64; 11] = [0.0, 0.06, 0.125, 0.25, 0.5, 0.75, 1.5, 2.0, 3.0, 5.0, 8.0];
/// Most of the time for which a device is taken to be busy where it keeps up, and most requests that wait.
const BUSY_MAX: f64 = 0.95;
/// Lengths of waiting that are told apart.
const WAITS: usize = 8;
/// Responses of an open loop that are as near as that are taken together: there are many.
const NEAR: f64 = 1.03;

/// What a trace asks of devices.
#[derive(Clone, Debug)]
pub struct Load {
    requests: u64,
    /// By size of flash pages.
    by_page: BTreeMap<u32, PageLoad>,
    /// Sizes of caches of written pages in bytes, with the shares of writes and of reads that hit in them.
    hits: Vec<(f64, f64, f64)>,
    write_bytes: f64,
    /// Distinct bytes written.
    written_bytes: f64,
    /// Arrivals per second, unless the loop is closed.
    requests_per_s: Option<f64>,
    /// At which a life is counted.
    bytes_per_year: Option<f64>,
}

/// How requests touch pages of one size.
#[derive(Clone, Debug, Default)]
struct PageLoad {
    /// Requests by whether they write and how many pages they touch.
    requests: BTreeMap<(bool, u64), u64>,
    /// Pages written, and those of them of which only a part is.
    written: f64,
    partial: f64,
}

impl Load {
    /// Of these requests, on pages of these sizes.
    pub fn of(
        requests: &[Request],
        page_bytes: impl Iterator<Item = u32>,
        requests_per_s: Option<f64>,
        bytes_per_year: Option<f64>,
    ) -> Self {
        let profile = Profile::of(requests, &CurvePlan::default());
        let point = |point: &bimetal_core::hit_rates::HitRatePoint| {
            let or_none = |rate: Option<f64>| rate.unwrap_or(0.0);
            (point.cache_bytes as f64, or_none(point.writes_of_written), or_none(point.reads_of_written))
        };
        let hits = profile.hit_rates.iter().flat_map(|rates| rates.points.iter().map(point)).collect();
        Self {
            requests: profile.reads.requests + profile.writes.requests,
            by_page: page_bytes.map(|bytes| (bytes, PageLoad::of(requests, bytes))).collect(),
            hits,
            write_bytes: profile.writes.bytes as f64,
            written_bytes: profile.footprint.written_bytes as f64,
            requests_per_s,
            bytes_per_year,
        }
    }

    /// Shares of writes and of reads that hit in a cache of written pages of that size.
    fn hit_rates(&self, bytes: f64) -> (f64, f64) {
        let above = self.hits.partition_point(|&(size, ..)| size <= bytes);
        let below = above.checked_sub(1).map_or((0.0, 0.0, 0.0), |at| self.hits[at]);
        let Some(&above) = self.hits.get(above) else { return (below.1, below.2) };
        let share = (bytes - below.0) / (above.0 - below.0);
        (below.1 + share * (above.1 - below.1), below.2 + share * (above.2 - below.2))
    }

    /// What a candidate will come to, as far as it can be told.
    pub fn estimate(&self, candidate: &Candidate) -> Estimate {
        let device = self.device(&candidate.layout);
        let life = self.bytes_per_year.map_or(f64::INFINITY, |rate| device.life_bytes / rate);
        let outcome = |responses: &[(f64, f64)]| {
            let total: f64 = responses.iter().map(|&(_, weight)| weight).sum();
            let mean = responses.iter().map(|&(us, weight)| us * weight).sum::<f64>() / total.max(1.0);
            let quantile = |share: f64| {
                let mut left = share * total;
                let reached = responses.iter().find(|&&(_, weight)| {
                    left -= weight;
                    left <= 0.0
                });
                reached.or(responses.last()).map_or(0.0, |&(us, _)| us)
            };
            Outcome::new(|measure| match measure {
                Measure::Mean => mean,
                Measure::P50 => quantile(0.5),
                Measure::P95 => quantile(0.95),
                Measure::P99 => quantile(0.99),
                Measure::P999 => quantile(0.999),
                Measure::Life => life,
                Measure::Cost => candidate.cost_usd,
            })
        };
        let Some(pages) = self.by_page.get(&candidate.layout.host_page_bytes()) else {
            return Estimate::of(outcome(&[]));
        };
        let dies = f64::from(candidate.layout.dies);
        let responses = device.responses(pages, dies);
        let Some(rate) = self.requests_per_s else { return Estimate::of(outcome(&responses)) };
        let responses = together(&responses);
        // Work is the same on however many dies it is shared out to.
        let passes_per_us = rate / 1e6 / self.requests.max(1) as f64 / dies;
        let host = device.host_us(pages) * passes_per_us;
        let pages_per_us = pages.written * passes_per_us;
        let with_stalls = |times: f64| {
            let (responses, busy) = device.waiting(&responses, host, pages_per_us * times);
            outcome(&responses).at_busy(busy)
        };
        Estimate { expected: with_stalls(1.0), by_busy: STALLS.iter().map(|&times| with_stalls(times)).collect() }
    }

    fn device(&self, layout: &Layout) -> Expected {
        match (&layout.fast, &layout.slow) {
            (Some((fast, fast_bytes)), Some((slow, slow_bytes))) => {
                self.hybrid(layout, (fast, *fast_bytes as f64), (slow, *slow_bytes as f64))
            }
            (Some((fast, bytes)), None) => self.cache(layout, fast, *bytes as f64),
            (_, Some((slow, bytes))) => self.plain(layout, slow, *bytes as f64),
            (None, None) => Expected::default(),
        }
    }

    /// One region with a page map.
    fn plain(&self, layout: &Layout, chip: &Chip, bytes: f64) -> Expected {
        let cleaning = Cleaning::of(chip, bytes, layout.dies, layout.logical_bytes as f64, self.written_bytes);
        Expected {
            read_us: cleaning.read_us,
            write_us: cleaning.program_us,
            partial_us: cleaning.read_us,
            stalls: vec![cleaning.stall()],
            life_bytes: bytes * f64::from(chip.endurance)
                / (cleaning.amplification * self.fill(layout.host_page_bytes())),
        }
    }

    /// A fast region through which all writes go: what does not hit there moves on.
    fn hybrid(&self, layout: &Layout, (fast, fast_bytes): (&Chip, f64), (slow, slow_bytes): (&Chip, f64)) -> Expected {
        let (write_hits, read_hits) = self.hit_rates(fast_bytes);
        let misses = (1.0 - write_hits).max(0.0);
        let cleaning = Cleaning::of(slow, slow_bytes, layout.dies, layout.logical_bytes as f64, self.written_bytes);
        let per_slow_page = f64::from(fast.page_bytes) / f64::from(slow.page_bytes);
        let slow_pages = per_slow_page.clamp(1.0 / 8.0, 1.0);
        let moved_us = read_us(fast) + slow_pages * cleaning.program_us;
        let block = f64::from(fast.pages_per_block);
        let migration = Stall { per_page: 1.0 / block, us: misses * block * moved_us + erase_us(fast) };
        let collection = cleaning.stall();
        let collection = Stall { per_page: misses * slow_pages * collection.per_page, ..collection };
        let fill = self.fill(fast.page_bytes);
        let slow_life = slow_bytes * f64::from(slow.endurance) / (cleaning.amplification * fill * misses.max(1e-3));
        Expected {
            read_us: read_hits * read_us(fast) + (1.0 - read_hits) * cleaning.read_us,
            write_us: program_us(fast),
            partial_us: read_us(fast),
            stalls: vec![migration, collection],
            life_bytes: slow_life.min(fast_bytes * f64::from(fast.endurance) / fill),
        }
    }

    /// A cache of flash in front of a disk.
    fn cache(&self, layout: &Layout, chip: &Chip, bytes: f64) -> Expected {
        let (write_hits, read_hits) = self.hit_rates(bytes);
        let disk_us = layout.disk.as_ref().map_or(0.0, |disk| disk.read_position_us);
        let cleaning = Cleaning::of(chip, bytes, layout.dies, bytes * 0.9, bytes * 0.9);
        Expected {
            read_us: read_us(chip) + (1.0 - read_hits) * disk_us,
            write_us: program_us(chip) + (1.0 - write_hits) * 0.1 * disk_us,
            partial_us: read_us(chip),
            stalls: vec![cleaning.stall()],
            life_bytes: bytes * f64::from(chip.endurance) / (cleaning.amplification * self.fill(chip.page_bytes)),
        }
    }

    /// Bytes of pages written by bytes of requests.
    fn fill(&self, page_bytes: u32) -> f64 {
        let written = self.by_page.get(&page_bytes).map_or(0.0, |pages| pages.written * f64::from(page_bytes));
        (written / self.write_bytes.max(1.0)).max(1.0)
    }

    /// Requests of the trace.
    pub fn requests(&self) -> u64 {
        self.requests
    }
}

/// What a device is expected to come to.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// With as many stalls as are expected.
    pub expected: Outcome,
    /// In an open loop: with few to many stalls, so that it is idle to overloaded.
    by_busy: Vec<Outcome>,
}

impl Estimate {
    /// In a closed loop, in which nothing queues.
    pub fn of(expected: Outcome) -> Self {
        Self { expected, by_busy: Vec::new() }
    }

    /// What a measure is if the device is as busy as that, as a logarithm.
    pub fn ln_at(&self, measure: Measure, busy: f64) -> f64 {
        let value = |outcome: &Outcome| ln(outcome.of(measure).max(1e-9));
        let above = self.by_busy.partition_point(|outcome| outcome.busy() <= busy);
        let below = above.checked_sub(1).and_then(|at| self.by_busy.get(at));
        match (below, self.by_busy.get(above)) {
            (Some(below), Some(above)) => {
                let share = (busy - below.busy()) / (above.busy() - below.busy());
                value(below) + share * (value(above) - value(below))
            }
            (Some(end), None) | (None, Some(end)) => value(end),
            (None, None) => value(&self.expected),
        }
    }
}

impl Layout {
    /// Page size of what the host's writes go to.
    pub fn host_page_bytes(&self) -> u32 {
        let first = match self.regions {
            Regions::One => self.slow.as_ref(),
            _ => self.fast.as_ref(),
        };
        first.map_or(SECTOR_BYTES as u32, |(chip, _)| chip.page_bytes)
    }
}

impl PageLoad {
    fn of(requests: &[Request], page_bytes: u32) -> Self {
        let sectors = u64::from(page_bytes) / SECTOR_BYTES;
        let mut load = Self::default();
        for request in requests.iter().filter(|request| request.op != Op::Trim && request.sectors > 0) {
            let (first, end) = (request.sector / sectors, request.end().div_ceil(sectors));
            let is_write = request.op == Op::Write;
            *load.requests.entry((is_write, end - first)).or_default() += 1;
            if is_write {
                load.written += (end - first) as f64;
                let cut =
                    [request.sector, request.end()].iter().filter(|at| !at.is_multiple_of(sectors)).count() as f64;
                load.partial += cut.min((end - first) as f64);
            }
        }
        load
    }
}

fn read_us(chip: &Chip) -> f64 {
    (chip.times(CellMode::Native).0 + chip.transfer()).as_us()
}

fn program_us(chip: &Chip) -> f64 {
    (chip.times(CellMode::Native).1 + chip.transfer()).as_us()
}

fn erase_us(chip: &Chip) -> f64 {
    chip.times(CellMode::Native).2.as_us()
}

/// Greedy cleaning of a region.
struct Cleaning {
    read_us: f64,
    program_us: f64,
    amplification: f64,
    collections_per_page: f64,
    collection_us: f64,
}

impl Cleaning {
    /// What is never written lies still and takes no part.
    fn of(chip: &Chip, bytes: f64, dies: u32, logical: f64, written: f64) -> Self {
        let block = f64::from(chip.page_bytes) * f64::from(chip.pages_per_block);
        let spare = (bytes - logical - f64::from(dies) * BLOCKS_KEPT * block).max(0.0);
        let live = written.clamp(block, logical.max(block));
        let utilisation = (live / (live + spare)).clamp(0.01, UTILISATION_MAX);
        let amplification = write_amplification::greedy(utilisation, chip.pages_per_block);
        let pages = f64::from(chip.pages_per_block);
        let freed = pages / amplification;
        let (read_us, program_us) = (read_us(chip), program_us(chip));
        Self {
            read_us,
            program_us,
            amplification,
            collections_per_page: 1.0 / freed,
            collection_us: (pages - freed) * (read_us + program_us) + erase_us(chip),
        }
    }

    fn stall(&self) -> Stall {
        Stall { per_page: self.collections_per_page, us: self.collection_us }
    }
}

/// Responses that are near each other as one, the first; they are from short to long.
fn together(responses: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = Vec::new();
    for &(us, weight) in responses {
        match all.last_mut() {
            Some(last) if us <= last.0 * NEAR => last.1 += weight,
            _ => all.push((us, weight)),
        }
    }
    all
}

/// Work of its own that a device does before it goes on with the host's.
#[derive(Clone, Copy)]
struct Stall {
    /// How often, for each page that is written.
    per_page: f64,
    us: f64,
}

/// What a device does for a page.
#[derive(Default)]
struct Expected {
    read_us: f64,
    write_us: f64,
    /// Beyond a write, for a page of which only a part is written.
    partial_us: f64,
    /// What a page that is written may have to wait for.
    stalls: Vec<Stall>,
    /// Bytes that the host can write.
    life_bytes: f64,
}

impl Expected {
    /// All that the host asks for, without stalls.
    fn host_us(&self, pages: &PageLoad) -> f64 {
        let partial_us = pages.partial / pages.written.max(1.0) * self.partial_us;
        let of = |(&(is_write, count), &weight): (&(bool, u64), &u64)| {
            count as f64 * weight as f64 * if is_write { self.write_us + partial_us } else { self.read_us }
        };
        pages.requests.iter().map(of).sum()
    }

    /// Responses in an open loop, from short to long, and how busy the device is: `host` of the time with what the host asks for,
    /// the rest with stalls. Who comes while a stall lasts, or while what has queued behind it is worked off, waits, evenly from all
    /// of it to none; where little time is left, stalls meet each other and are the longer.
    fn waiting(&self, responses: &[(f64, f64)], host: f64, pages_per_us: f64) -> (Vec<(f64, f64)>, f64) {
        let stalled = |stall: &Stall| pages_per_us * stall.per_page * stall.us;
        let stalls: f64 = self.stalls.iter().map(stalled).sum();
        let busy = host + stalls;
        let left = 1.0 - host.min(BUSY_MAX);
        let longer = left / (1.0 - busy.min(BUSY_MAX));
        let fewer = (BUSY_MAX * left / stalls.max(1e-12)).min(1.0);
        let mut waits = Vec::with_capacity(1 + WAITS * self.stalls.len());
        for stall in &self.stalls {
            let share = stalled(stall) * fewer / left;
            let step = |at: usize| ((at as f64 + 0.5) / WAITS as f64 * stall.us * longer, share / WAITS as f64);
            waits.extend((0..WAITS).map(step));
        }
        waits.push((0.0, 1.0 - waits.iter().map(|&(_, share)| share).sum::<f64>()));
        let mut waiting: Vec<(f64, f64)> = responses
            .iter()
            .flat_map(|&(us, weight)| waits.iter().map(move |&(wait_us, share)| (us + wait_us, weight * share)))
            .collect();
        waiting.sort_by(|a, b| a.0.total_cmp(&b.0));
        (waiting, busy)
    }

    /// Responses with their weights, from short to long: of each size of requests those that stall, and the others.
    /// Pages of a request are on as many dies.
    fn responses(&self, pages: &PageLoad, dies: f64) -> Vec<(f64, f64)> {
        let partial_us = pages.partial / pages.written.max(1.0) * self.partial_us;
        let mut responses = Vec::with_capacity(2 * pages.requests.len());
        for (&(is_write, count), &weight) in &pages.requests {
            let (count, weight) = (count as f64, weight as f64);
            let rounds = (count / dies).ceil();
            if !is_write {
                responses.push((rounds * self.read_us, weight));
                continue;
            }
            let us = rounds * (self.write_us + partial_us);
            let mut undelayed = 1.0;
            for stall in &self.stalls {
                // At least one of so many pages brings one about.
                let delayed = (1.0 - pow((1.0 - stall.per_page).max(1e-9), count)).min(undelayed);
                let stalls = rounds * stall.per_page;
                responses.push((us + stalls / delayed.max(1e-12) * stall.us, weight * delayed));
                undelayed -= delayed;
            }
            responses.push((us, weight * undelayed));
        }
        responses.sort_by(|a, b| a.0.total_cmp(&b.0));
        responses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_during_a_stall_waits() {
        // A stall of 10 ms every 100 ms, and as much for the host.
        let device = Expected { stalls: vec![Stall { per_page: 0.01, us: 10_000.0 }], ..Expected::default() };
        let (responses, busy) = device.waiting(&[(100.0, 1.0)], 0.1, 1e-3);
        assert!((busy - 0.2).abs() < 1e-9);
        let waiting: f64 = responses.iter().filter(|&&(us, _)| us > 100.0).map(|&(_, weight)| weight).sum();
        let mean: f64 = responses.iter().map(|&(us, weight)| (us - 100.0) * weight).sum();
        assert!((waiting - 0.1 / 0.9).abs() < 1e-9, "{waiting}");
        // As of Pollaczek and Khinchine: time in stalls, times half of one, by what time is left.
        assert!((mean - 0.1 * 5000.0 / 0.8).abs() < 1e-6, "{mean}");
        // However much there is to do, requests are as many.
        let (responses, busy) = device.waiting(&[(100.0, 1.0)], 0.9, 1e-2);
        let all: f64 = responses.iter().map(|&(_, weight)| weight).sum();
        assert!(busy > 1.8 && (all - 1.0).abs() < 1e-9 && responses.iter().all(|&(_, weight)| weight >= 0.0));
    }

    #[test]
    fn between_estimates_lies_what_is_between() {
        let outcome = |us: f64, busy: f64| Outcome::new(|_| us).at_busy(busy);
        let by_busy = vec![outcome(100.0, 0.2), outcome(400.0, 0.6)];
        let estimate = Estimate { expected: outcome(100.0, 0.2), by_busy };
        let at = |busy| estimate.ln_at(Measure::Mean, busy);
        assert!((at(0.4) - ln(200.0)).abs() < 1e-9);
        assert_eq!((at(0.0), at(5.0)), (ln(100.0), ln(400.0)));
        assert_eq!(Estimate::of(outcome(7.0, 0.0)).ln_at(Measure::P99, 0.5), ln(7.0));
    }
}
