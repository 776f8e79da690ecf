//! What a device will be like, without simulating it.
//!
//! From the trace: pages that requests touch, hit rates of written pages by the size of the fast region. From the parts: times and
//! cycles. From the models: write amplification under greedy cleaning (`model::write_amplification`), and the form of HySSD's cost
//! of a write, in which what misses the fast region is moved to the slow one. It is plain on purpose: writes are taken as uniform
//! over what is written, and a scheme as one of four layouts. How far off that is, by scheme, parts and sizes, is learned from
//! simulations ([`learn`](super::learn)).

use std::collections::BTreeMap;

use bimetal_core::chip::Chip;
use bimetal_core::media::CellMode;
use bimetal_core::model::write_amplification;
use bimetal_core::part::real::pow;
use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::request::{Op, Request, SECTOR_BYTES};
use bimetal_core::scheme::Regions;

use super::goals::{Measure, Outcome};
use super::space::{Candidate, Layout};

/// On each die a page map keeps one block erased and two open on average half full.
const BLOCKS_KEPT: f64 = 2.0;
/// Fuller than this no device is taken to be.
const UTILISATION_MAX: f64 = 0.98;
/// Busier than this no device is taken to be: what queues has no end.
const BUSY_MAX: f64 = 0.98;

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

    /// The outcome of a candidate, as far as it can be told.
    pub fn estimate(&self, candidate: &Candidate) -> Outcome {
        let device = self.device(&candidate.layout);
        let page_bytes = candidate.layout.host_page_bytes();
        let pages = self.by_page.get(&page_bytes);
        let dies = f64::from(candidate.layout.dies);
        let responses = |dies: f64| pages.map_or_else(Vec::new, |pages| device.responses(pages, dies));
        let mean_of = |responses: &[(f64, f64)]| {
            let total: f64 = responses.iter().map(|&(_, weight)| weight).sum();
            (responses.iter().map(|&(us, weight)| us * weight).sum::<f64>() / total.max(1.0), total)
        };
        // Work is the same on however many dies it is shared out to.
        let (work, _) = mean_of(&responses(1.0));
        let busy = self.requests_per_s.map_or(0.0, |rate| (rate * work / dies / 1e6).min(BUSY_MAX));
        let responses = responses(dies);
        let (mean, total) = mean_of(&responses);
        let quantile = |share: f64| {
            let mut left = share * total;
            let reached = responses.iter().find(|&&(_, weight)| {
                left -= weight;
                left <= 0.0
            });
            reached.or(responses.last()).map_or(0.0, |&(us, _)| us) / (1.0 - busy)
        };
        let life = self.bytes_per_year.map_or(f64::INFINITY, |rate| device.life_bytes / rate);
        Outcome::new(|measure| match measure {
            Measure::Mean => mean / (1.0 - busy),
            Measure::P50 => quantile(0.5),
            Measure::P95 => quantile(0.95),
            Measure::P99 => quantile(0.99),
            Measure::P999 => quantile(0.999),
            Measure::Life => life,
            Measure::Cost => candidate.cost_usd,
        })
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
            collections_per_page: cleaning.collections_per_page,
            collection_us: cleaning.collection_us,
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
        let moved_us = read_us(fast) + per_slow_page.clamp(1.0 / 8.0, 1.0) * cleaning.write_us();
        let block = f64::from(fast.pages_per_block);
        let fill = self.fill(fast.page_bytes);
        let slow_life = slow_bytes * f64::from(slow.endurance) / (cleaning.amplification * fill * misses.max(1e-3));
        Expected {
            read_us: read_hits * read_us(fast) + (1.0 - read_hits) * cleaning.read_us,
            write_us: program_us(fast),
            partial_us: read_us(fast),
            collections_per_page: 1.0 / block,
            collection_us: misses * block * moved_us + erase_us(fast),
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
            collections_per_page: cleaning.collections_per_page,
            collection_us: cleaning.collection_us,
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

    /// A page with its share of cleaning.
    fn write_us(&self) -> f64 {
        self.program_us + self.collections_per_page * self.collection_us
    }
}

/// What a device does for a page.
#[derive(Default)]
struct Expected {
    read_us: f64,
    write_us: f64,
    /// Beyond a write, for a page of which only a part is written.
    partial_us: f64,
    collections_per_page: f64,
    collection_us: f64,
    /// Bytes that the host can write.
    life_bytes: f64,
}

impl Expected {
    /// Responses with their weights, from short to long: of each size of requests those that a collection delays, and the others.
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
            let collections = count * self.collections_per_page;
            // At least one of so many pages brings one about.
            let delayed = 1.0 - pow((1.0 - self.collections_per_page).max(1e-9), count);
            responses.push((us, weight * (1.0 - delayed)));
            responses
                .push((us + rounds / count * collections / delayed.max(1e-12) * self.collection_us, weight * delayed));
        }
        responses.sort_by(|a, b| a.0.total_cmp(&b.0));
        responses
    }
}
