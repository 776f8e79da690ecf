//! Estimated figures of a device, without a simulation.
//!
//! From the trace: the pages that requests touch, and hit rates of written pages by the size of the fast region. From
//! the parts: times and cycles. From the models: write amplification under greedy cleaning
//! (`model::write_amplification`), and the form of HySSD's cost of a write, where misses of the fast region move to the
//! slow one. The estimate is simple on purpose: writes are assumed uniform over the written data, and a scheme is one
//! of four layouts. A sample of the trace's requests runs through queues of dies ([`queue`](super::queue)). Waiting
//! times depend strongly on the utilisation of the device, so an open loop is estimated for several amounts of stalls.
//! The errors of estimates by scheme, parts and sizes are learned from simulations ([`learn`](super::learn)).

use std::collections::{BTreeMap, BTreeSet};

use bimetal_core::chip::Chip;
use bimetal_core::part::real::ln;
use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::request::{Op, Request, SECTOR_BYTES};

use super::DAYS_PER_YEAR;
use super::cleaning::{Cleaning, Stall, erase_us, program_us, read_us};
use super::goals::{Measure, Outcome, TB, Whole};
use super::layout::Layout;
use super::queue::{Pace, Quantiles, Sample, Service};

/// Factors on the expected stalls with which an open loop is estimated again.
const STALLS: [f64; 5] = [0.0, 0.3, 0.6, 1.7, 3.0];

/// The load that a trace puts on devices.
#[derive(Clone, Debug)]
pub struct Load {
    requests: u64,
    /// By page size of the flash.
    by_page: BTreeMap<u32, PageLoad>,
    /// Sizes of caches of written pages in bytes, with the shares of writes and of reads that hit in them.
    hits: Vec<(f64, f64, f64)>,
    write_bytes: f64,
    /// Distinct bytes written.
    written_bytes: f64,
    /// The sampled requests with their arrivals.
    sample: Sample,
    /// Arrival rate, unless the loop is closed.
    requests_per_s: Option<f64>,
    /// Write rate on which lives are based.
    bytes_per_year: Option<f64>,
}

/// Pages of one size that requests touch.
#[derive(Clone, Debug, Default)]
struct PageLoad {
    /// Number of requests by `(is_write, pages touched)`.
    requests: BTreeMap<(bool, u64), u64>,
    /// Pages written, and pages of these that are written only in part.
    written: f64,
    partial: f64,
}

impl Load {
    /// The load of these requests, for flash pages of these sizes.
    pub fn of(
        requests: &[Request],
        page_bytes: &BTreeSet<u32>,
        pace: Pace,
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
            by_page: page_bytes.iter().map(|&bytes| (bytes, PageLoad::of(requests, bytes))).collect(),
            hits,
            write_bytes: profile.writes.bytes as f64,
            written_bytes: profile.footprint.written_bytes as f64,
            sample: Sample::of(requests, page_bytes, pace),
            requests_per_s,
            bytes_per_year,
        }
    }

    /// Hit rates of writes and of reads in a cache of written pages with `bytes` bytes.
    fn hit_rates(&self, bytes: f64) -> (f64, f64) {
        let above = self.hits.partition_point(|&(size, ..)| size <= bytes);
        let below = above.checked_sub(1).map_or((0.0, 0.0, 0.0), |at| self.hits[at]);
        let Some(&above) = self.hits.get(above) else { return (below.1, below.2) };
        let share = (bytes - below.0) / (above.0 - below.0);
        (below.1 + share * (above.1 - below.1), below.2 + share * (above.2 - below.2))
    }

    /// The estimated figures of a device with this layout, price and scale.
    pub fn estimate(&self, layout: &Layout, whole: Whole, warranty_years: f64) -> Estimate {
        let device = self.device(layout);
        let host_bytes = device.life_bytes * whole.scale;
        let life = self.bytes_per_year.map_or(f64::INFINITY, |rate| host_bytes / rate);
        let capacity_days = layout.logical_bytes as f64 * whole.scale * warranty_years * DAYS_PER_YEAR;
        let outcome = |responses: &Quantiles| {
            Outcome::new(|measure| match measure {
                Measure::Mean => responses.mean(),
                Measure::P50 => responses.quantile(0.5),
                Measure::P95 => responses.quantile(0.95),
                Measure::P99 => responses.quantile(0.99),
                Measure::P999 => responses.quantile(0.999),
                Measure::Life => life,
                Measure::Tbw => host_bytes / TB,
                Measure::Dwpd => host_bytes / capacity_days,
                Measure::Cost => whole.cost_usd,
            })
        };
        let Some(pages) = self.by_page.get(&layout.host_page_bytes()) else {
            return Estimate::of(outcome(&Quantiles::default()));
        };
        let dies = layout.host_dies();
        let partial_us = pages.partial / pages.written.max(1.0) * device.partial_us;
        let responses = |times: f64| {
            let stalls = device.stalls.iter().map(|stall| Stall { per_page: stall.per_page * times, ..*stall });
            let write_us = device.write_us + partial_us;
            let service = Service { read_us: device.read_us, write_us, stalls: stalls.collect() };
            outcome(&self.sample.responses(&service, layout.host_page_bytes(), dies))
        };
        let Some(requests_per_s) = self.requests_per_s else { return Estimate::of(responses(1.0)) };
        // The total work does not depend on the number of dies that share it.
        let passes_per_us = requests_per_s / 1e6 / self.requests.max(1) as f64 / f64::from(dies);
        let host = device.host_us(pages) * passes_per_us;
        let with_stalls =
            |times: f64| responses(times).at_busy(device.busy(host, pages.written * passes_per_us * times));
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
        let cleaning =
            Cleaning::of(chip, bytes, layout.slow_die_count(), layout.logical_bytes as f64, self.written_bytes);
        Expected {
            read_us: cleaning.read_us,
            write_us: cleaning.program_us,
            partial_us: cleaning.read_us,
            stalls: vec![cleaning.stall()],
            life_bytes: bytes * f64::from(chip.endurance)
                / (cleaning.amplification * self.fill(layout.host_page_bytes())),
        }
    }

    /// A fast region in front of a slow one. All writes go through it, and misses move on to the slow region.
    fn hybrid(&self, layout: &Layout, (fast, fast_bytes): (&Chip, f64), (slow, slow_bytes): (&Chip, f64)) -> Expected {
        let (write_hits, read_hits) = self.hit_rates(fast_bytes);
        let misses = (1.0 - write_hits).max(0.0);
        let cleaning =
            Cleaning::of(slow, slow_bytes, layout.slow_die_count(), layout.logical_bytes as f64, self.written_bytes);
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

    /// A flash cache in front of a disk.
    fn cache(&self, layout: &Layout, chip: &Chip, bytes: f64) -> Expected {
        let (write_hits, read_hits) = self.hit_rates(bytes);
        let disk_us = layout.disk.as_ref().map_or(0.0, |disk| disk.read_position_us);
        let cleaning = Cleaning::of(chip, bytes, layout.slow_die_count(), bytes * 0.9, bytes * 0.9);
        Expected {
            read_us: read_us(chip) + (1.0 - read_hits) * disk_us,
            write_us: program_us(chip) + (1.0 - write_hits) * 0.1 * disk_us,
            partial_us: read_us(chip),
            stalls: vec![cleaning.stall()],
            life_bytes: bytes * f64::from(chip.endurance) / (cleaning.amplification * self.fill(chip.page_bytes)),
        }
    }

    /// Bytes of written pages divided by the written bytes of requests.
    fn fill(&self, page_bytes: u32) -> f64 {
        let written = self.by_page.get(&page_bytes).map_or(0.0, |pages| pages.written * f64::from(page_bytes));
        (written / self.write_bytes.max(1.0)).max(1.0)
    }
}

/// The estimated figures of a device.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// With the expected stalls.
    pub expected: Outcome,
    /// In an open loop: outcomes with few to many stalls, from an idle to an overloaded device.
    by_busy: Vec<Outcome>,
}

impl Estimate {
    /// An estimate of a closed loop, without a dependence on utilisation.
    pub fn of(expected: Outcome) -> Self {
        Self { expected, by_busy: Vec::new() }
    }

    /// The logarithm of a measure if the device has utilisation `busy`.
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

/// Estimated work of a device for a page.
#[derive(Default)]
struct Expected {
    read_us: f64,
    write_us: f64,
    /// Additional time of a write that covers only a part of the page.
    partial_us: f64,
    /// Stalls that a written page may have to wait for.
    stalls: Vec<Stall>,
    /// Bytes that the host can write.
    life_bytes: f64,
}

impl Expected {
    /// Time of all host work, without stalls.
    fn host_us(&self, pages: &PageLoad) -> f64 {
        let partial_us = pages.partial / pages.written.max(1.0) * self.partial_us;
        let of = |(&(is_write, count), &weight): (&(bool, u64), &u64)| {
            count as f64 * weight as f64 * if is_write { self.write_us + partial_us } else { self.read_us }
        };
        pages.requests.iter().map(of).sum()
    }

    /// Utilisation of a device that spends a share of the time on host work and programs a number of pages per
    /// microsecond.
    fn busy(&self, host: f64, pages_per_us: f64) -> f64 {
        host + self.stalls.iter().map(|stall| pages_per_us * stall.per_page * stall.us).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
