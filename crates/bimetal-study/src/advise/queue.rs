//! Estimated responses: a sample of the trace's requests runs through queues of dies.
//!
//! In an open loop, bursts determine the percentiles of real traces. So arrivals come from the trace instead of a
//! distribution. Each die serves pages in the order of arrival. Pages of a write go to the dies in round-robin order,
//! pages of a read to the dies given by their addresses. Garbage collection and migration stall a die after each fixed
//! number of written pages.

use std::collections::{BTreeMap, BTreeSet};

use bimetal_core::request::{Op, Request, SECTOR_BYTES};

use super::cleaning::Stall;

/// Largest number of requests in a sample, and the number of runs of consecutive requests that sample a larger trace.
const REQUESTS_MAX: usize = 12_288;
const RUNS: usize = 8;
/// Upper limit of the simulated depth of a closed loop.
const DEPTH_MAX: u32 = 1024;
/// Steps of the histogram within each doubling, as a power of two.
const STEPS_LOG2: u32 = 4;
/// Bits of a float below these steps.
const SHIFT: u32 = 52 - STEPS_LOG2;
/// Steps from 1/16 µs on, over 50 doublings.
const FIRST_STEP: u64 = (1023 - 4) << STEPS_LOG2;
const STEPS: usize = 50 << STEPS_LOG2;

/// Sampled requests of a trace, by page size of the flash.
#[derive(Clone, Debug)]
pub struct Sample {
    pace: Pace,
    by_page: BTreeMap<u32, Vec<Visit>>,
}

/// A request in the queues of dies.
#[derive(Clone, Copy, Debug)]
struct Visit {
    at_us: f64,
    first_page: u64,
    pages: u32,
    is_write: bool,
    /// Whether it is the first of its run, so that the queues are empty.
    is_first: bool,
}

/// The arrival mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Arrivals faster than in the trace by this factor.
    Open(f64),
    /// A request arrives as soon as fewer than this number are outstanding.
    Closed(u32),
}

/// Service times of dies.
#[derive(Clone, Debug)]
pub struct Service {
    /// Read of a page, in microseconds.
    pub read_us: f64,
    /// Write of a page, in microseconds.
    pub write_us: f64,
    /// Stalls of a die.
    pub stalls: Vec<Stall>,
}

impl Sample {
    /// A sample of requests with these arrivals.
    pub fn of(requests: &[Request], page_bytes: &BTreeSet<u32>, pace: Pace) -> Self {
        let speed = if let Pace::Open(speed) = pace { speed } else { 1.0 };
        let runs: Vec<&[Request]> = if requests.len() <= REQUESTS_MAX {
            vec![requests]
        } else {
            let length = REQUESTS_MAX / RUNS;
            let start = |run: usize| run * (requests.len() - length) / (RUNS - 1);
            (0..RUNS).map(|run| &requests[start(run)..start(run) + length]).collect()
        };
        let visits = |page_bytes: u32| {
            let sectors = u64::from(page_bytes) / SECTOR_BYTES;
            let visit = |(nth, request): (usize, &Request)| {
                let first_page = request.sector / sectors;
                Visit {
                    at_us: request.arrival_ns as f64 / 1e3 / speed,
                    first_page,
                    pages: u32::try_from(request.end().div_ceil(sectors) - first_page).unwrap_or(u32::MAX),
                    is_write: request.op == Op::Write,
                    is_first: nth == 0,
                }
            };
            let served = |run: &&[Request]| -> Vec<Visit> {
                let served = run.iter().filter(|request| request.op != Op::Trim && request.sectors > 0);
                served.enumerate().map(visit).collect()
            };
            runs.iter().flat_map(served).collect()
        };
        Self { pace, by_page: page_bytes.iter().map(|&bytes| (bytes, visits(bytes))).collect() }
    }

    /// Responses with `dies` dies.
    pub fn responses(&self, service: &Service, page_bytes: u32, dies: u32) -> Quantiles {
        let mut queues = Queues::new(service, dies);
        let mut histogram = Histogram::default();
        let depth = if let Pace::Closed(depth) = self.pace { depth.clamp(1, DEPTH_MAX) as usize } else { 0 };
        // In a closed loop of depth `n`, a request is sent when the `n`th request before it has been served.
        let mut done = vec![0.0; depth];
        for (nth, &visit) in self.by_page.get(&page_bytes).into_iter().flatten().enumerate() {
            let mut visit = visit;
            if depth > 0 {
                visit.at_us = done[nth % depth];
            } else if visit.is_first {
                queues.free_at_us.fill(0.0);
            }
            let done_us = if visit.is_write { queues.write(&visit) } else { queues.read(&visit) };
            if depth > 0 {
                done[nth % depth] = done_us;
            }
            histogram.add(done_us - visit.at_us);
        }
        histogram.quantiles()
    }
}

struct Queues<'a> {
    service: &'a Service,
    free_at_us: Vec<f64>,
    /// For each die, one after the other, and each kind of stall: the elapsed share of the distance to the next stall.
    due: Vec<f64>,
    next_die: usize,
}

impl<'a> Queues<'a> {
    fn new(service: &'a Service, dies: u32) -> Self {
        let dies = dies.max(1) as usize;
        // The stalls of the dies are spread over time.
        let apart = |die: usize| (die as f64 + 0.5) / dies as f64;
        let due = (0..dies).flat_map(|die| service.stalls.iter().map(move |_| apart(die))).collect();
        Self { service, free_at_us: vec![0.0; dies], due, next_die: 0 }
    }

    /// The dies that take part in a request, starting from a die, each with its number of pages. They go around without
    /// a division for each die, because estimates take a third of the time of `advise`.
    fn shared(first: usize, dies: usize, pages: usize) -> impl Iterator<Item = (usize, f64)> {
        let (each, more) = if pages < dies { (0, pages) } else { (pages / dies, pages % dies) };
        let around = (first..dies).chain(0..first).take(pages);
        around.enumerate().map(move |(nth, die)| (die, (each + usize::from(nth < more)) as f64))
    }

    fn write(&mut self, visit: &Visit) -> f64 {
        let (dies, kinds) = (self.free_at_us.len(), self.service.stalls.len());
        let mut done_us = visit.at_us;
        for (die, pages) in Self::shared(self.next_die, dies, visit.pages as usize) {
            let mut busy_us = pages * self.service.write_us;
            for (stall, due) in self.service.stalls.iter().zip(&mut self.due[die * kinds..]) {
                *due += pages * stall.per_page;
                if *due >= 1.0 {
                    busy_us += due.floor() * stall.us;
                    *due = due.fract();
                }
            }
            done_us = done_us.max(self.serve(die, visit.at_us, busy_us));
        }
        self.next_die = (self.next_die + visit.pages as usize) % dies;
        done_us
    }

    fn read(&mut self, visit: &Visit) -> f64 {
        let dies = self.free_at_us.len();
        let first = usize::try_from(visit.first_page % dies as u64).unwrap_or_default();
        let mut done_us = visit.at_us;
        for (die, pages) in Self::shared(first, dies, visit.pages as usize) {
            done_us = done_us.max(self.serve(die, visit.at_us, pages * self.service.read_us));
        }
        done_us
    }

    fn serve(&mut self, die: usize, at_us: f64, busy_us: f64) -> f64 {
        let done_us = self.free_at_us[die].max(at_us) + busy_us;
        self.free_at_us[die] = done_us;
        done_us
    }
}

/// Responses with their weights, in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    responses: Vec<(f64, f64)>,
    total: f64,
}

impl Quantiles {
    /// Made from responses in microseconds with their weights.
    pub fn of(mut responses: Vec<(f64, f64)>) -> Self {
        responses.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = responses.iter().map(|&(_, weight)| weight).sum();
        Self { responses, total }
    }

    /// Mean, in microseconds.
    pub fn mean(&self) -> f64 {
        self.responses.iter().map(|&(us, weight)| us * weight).sum::<f64>() / self.total.max(1.0)
    }

    /// The response that this share of the responses does not exceed, in microseconds.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut left = share * self.total;
        let reached = self.responses.iter().find(|&&(_, weight)| {
            left -= weight;
            left <= 0.0
        });
        reached.or(self.responses.last()).map_or(0.0, |&(us, _)| us)
    }
}

/// Counts and sums of responses by their leading bits.
struct Histogram {
    steps: Vec<(f64, f64)>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { steps: vec![(0.0, 0.0); STEPS] }
    }
}

impl Histogram {
    fn add(&mut self, us: f64) {
        let step = usize::try_from((us.to_bits() >> SHIFT).saturating_sub(FIRST_STEP)).unwrap_or(usize::MAX);
        let (sum, count) = &mut self.steps[step.min(STEPS - 1)];
        *sum += us;
        *count += 1.0;
    }

    fn quantiles(self) -> Quantiles {
        let filled = self.steps.into_iter().filter(|&(_, count)| count > 0.0);
        Quantiles::of(filled.map(|(sum, count)| (sum / count, count)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(gap_us: u64, count: u64) -> Sample {
        let request = |number: u64| Request {
            arrival_ns: number * gap_us * 1000,
            sector: number * 8,
            sectors: 8,
            op: Op::Write,
            handle: 0,
        };
        let requests: Vec<Request> = (0..count).map(request).collect();
        Sample::of(&requests, &BTreeSet::from([4096]), Pace::Open(1.0))
    }

    fn service(stalls: Vec<Stall>) -> Service {
        Service { read_us: 10.0, write_us: 100.0, stalls }
    }

    #[test]
    fn requests_wait_for_those_before_them_and_dies_share_them() {
        // A page arrives every 50 µs at a die that takes 100 µs: the n-th waits for n times 50 µs.
        let one = writes(50, 101).responses(&service(Vec::new()), 4096, 1);
        assert!((one.mean() - (100.0 + 50.0 * 50.0)).abs() < 1e-6, "{}", one.mean());
        let two = writes(50, 101).responses(&service(Vec::new()), 4096, 2);
        assert!((two.mean() - 100.0).abs() < 1e-6 && two.quantile(0.999) < 101.0, "{}", two.mean());
    }

    #[test]
    fn who_comes_during_a_stall_waits() {
        // A stall of 10 ms after every 100 pages, which arrive every millisecond.
        let stalls = vec![Stall { per_page: 0.01, us: 10_000.0 }];
        let found = writes(1000, 10_000).responses(&service(stalls), 4096, 1);
        // The first waits for 10 ms, the next for 9.1, and so on.
        let waits: f64 = (0..11).map(|nth| 10_000.0 - 900.0 * f64::from(nth)).sum();
        assert!((found.mean() - 100.0 - waits / 100.0).abs() < 5.0, "{}", found.mean());
        assert_eq!(found.quantile(0.5), 100.0);
        assert!(found.quantile(0.999) > 9_000.0);
    }

    #[test]
    fn in_a_closed_loop_none_waits_for_more_than_its_depth() {
        let requests: Vec<Request> = (0..1000)
            .map(|number| Request { arrival_ns: 0, sector: number * 8, sectors: 8, op: Op::Write, handle: 0 })
            .collect();
        let mean = |depth| {
            let sample = Sample::of(&requests, &BTreeSet::from([4096]), Pace::Closed(depth));
            sample.responses(&service(Vec::new()), 4096, 1).mean()
        };
        assert!((mean(1) - 100.0).abs() < 1e-6 && (mean(4) - 400.0).abs() < 2.0, "{}", mean(4));
    }

    #[test]
    fn a_large_trace_is_sampled_by_runs() {
        let found = writes(50, 200_000).responses(&service(Vec::new()), 4096, 1);
        let length = (REQUESTS_MAX / RUNS) as f64;
        assert!((found.mean() - (100.0 + 50.0 * (length - 1.0) / 2.0)).abs() < 1.0, "{}", found.mean());
    }
}
