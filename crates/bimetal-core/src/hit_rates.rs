//! Hit-rate curves of a whole trace: the share of its references that caches of several sizes would have served.
//!
//! There are two caches of 4-KiB pages, each with LRU replacement. One holds every page that is read or written, like
//! the cache of an operating system or in front of a disk. The other holds only pages that are written; a read of a
//! page in it is a hit but does not change the order. It is a write buffer of fast flash, like HySSD's data classifier
//! (MSST 2013). A request refers once to each page that it touches. Trims are left out.
//!
//! One pass gives all sizes: a page at position `p` of the LRU stack is a hit in every cache of more than `p` pages.
//! Long traces are sampled, with the correction of SHARDS-adj (Waldspurger et al., FAST 2015 §3): if the sample has
//! more or fewer references than its share, the reason is that it contains or lacks the hottest pages, which hit in any
//! cache. The difference therefore counts as hits of the smallest cache. A read of a page that is not yet written hits
//! in no cache of written pages, so there the correction is for the other reads, which are counted exactly.

use std::borrow::Cow;

use fixedbitset::FixedBitSet;
use serde::Serialize;

use crate::compact::Extents;
use crate::part::reuse_tracker::{ReuseTracker, Touch};
use crate::request::{Op, PAGE_BYTES, Request, data};

/// Traces of at most this number of page references are not sampled by default.
const EXACT_REFERENCES: u64 = 1 << 22;

/// Number of pages that are sampled by default; the power of two below may halve it. The error falls with its square
/// root.
const SAMPLED_PAGES: u64 = 1 << 17;

/// Traces with more references to pages than this (64 TiB of reads and writes) have no curves, which would take
/// minutes.
const REFERENCES_MAX: u64 = 1 << 34;

/// Number of references that are collected before their look-ups, so that memory can be prefetched.
const BATCH: usize = 4096;

/// Number of references by which memory is prefetched ahead.
const AHEAD: usize = 32;

/// Hit rates by cache size.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HitRates {
    /// Share of the pages that were sampled; at 1 the figures are exact.
    pub sampling_rate: f64,
    /// From the smallest to the largest cache.
    pub points: Vec<HitRatePoint>,
}

/// Hit rates of caches of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HitRatePoint {
    /// Size of the cache in bytes.
    pub cache_bytes: u64,
    /// Share of reads that hit in a cache of the pages read and written; `None` without reads.
    pub reads: Option<f64>,
    /// Share of writes that hit in it; `None` without writes.
    pub writes: Option<f64>,
    /// Share of reads and writes that hit in it.
    pub all: Option<f64>,
    /// Share of reads that hit in a cache of the pages written.
    pub reads_of_written: Option<f64>,
    /// Share of writes that hit in it.
    pub writes_of_written: Option<f64>,
}

impl HitRates {
    /// The hit rates of caches of these sizes, in pages from small to large, from a sample of the share `rate` of all
    /// pages, above 0 and at most 1. `None` if the trace has no references or too many.
    pub fn of(requests: &[Request], sizes: &[u32], rate: f64) -> Option<Self> {
        let largest = *sizes.last()?;
        if !(1..=REFERENCES_MAX).contains(&references(requests)) || !<ReuseTracker>::holds(largest, rate) {
            return None;
        }
        let requests = with_short_addresses(requests)?;
        let mut caches = Caches::new(sizes, ReuseTracker::sampled(largest, rate));
        let is_sampled = caches.all.rate() < 1.0;
        let pages = data(&requests).map(|request| request.pages().1).max()?;
        let mut written = FixedBitSet::with_capacity(if is_sampled { pages as usize } else { 0 });
        let mut batch = Vec::with_capacity(BATCH);
        for request in data(&requests) {
            let (first, end) = request.pages();
            let is_write = request.op == Op::Write;
            caches.references[usize::from(is_write)] += end - first;
            if is_sampled && is_write {
                written.insert_range(first as usize..end as usize);
            } else if is_sampled {
                caches.reads_of_written += written.count_ones(first as usize..end as usize) as u64;
            }
            for page in first as u32..end as u32 {
                if caches.all.samples(page) {
                    caches.sampled_of_written += u64::from(!is_write && written.contains(page as usize));
                    if batch.len() == BATCH {
                        caches.refer(&batch);
                        batch.clear();
                    }
                    batch.push(Reference { page, is_write });
                }
            }
        }
        caches.refer(&batch);
        Some(Self { sampling_rate: caches.all.rate(), points: caches.points() })
    }
}

/// `points` cache sizes in pages, from a thousandth of `pages` pages up to all, each larger than the previous one by
/// the same factor; equal sizes appear once.
pub fn cache_sizes(pages: u64, points: u32) -> Vec<u32> {
    use crate::part::real::pow;
    let steps = f64::from(points.saturating_sub(1).max(1));
    let size =
        |step: u32| (pages as f64 * pow(1000.0, -f64::from(step) / steps)).round().min(f64::from(u32::MAX)) as u32;
    let mut sizes: Vec<u32> = (0..points).rev().map(size).filter(|&size| size > 0).collect();
    sizes.dedup();
    sizes
}

/// The default share of sampled pages, for a trace that touches `pages` pages: a power of two.
pub fn default_rate(requests: &[Request], pages: u64) -> f64 {
    if references(requests) <= EXACT_REFERENCES {
        return 1.0;
    }
    1.0 / pages.div_ceil(SAMPLED_PAGES).max(1).next_power_of_two() as f64
}

/// References to pages of all reads and writes.
pub(crate) fn references(requests: &[Request]) -> u64 {
    let of = |request: &Request| {
        let (first, end) = request.pages();
        end - first
    };
    data(requests).map(of).fold(0, u64::saturating_add)
}

/// The requests with page numbers of 32 bits: if there are larger ones, touched addresses are compacted.
pub(crate) fn with_short_addresses(requests: &[Request]) -> Option<Cow<'_, [Request]>> {
    let fits = |requests: &[Request]| data(requests).all(|request| request.pages().1 <= u64::from(u32::MAX));
    if fits(requests) {
        return Some(Cow::Borrowed(requests));
    }
    let mut moved = requests.to_vec();
    Extents::of(requests).compact(&mut moved);
    fits(&moved).then_some(Cow::Owned(moved))
}

/// A read or a write of a sampled page.
#[derive(Clone, Copy, Debug)]
struct Reference {
    page: u32,
    is_write: bool,
}

/// Both caches; in arrays of two, reads come first.
struct Caches<'a> {
    sizes: &'a [u32],
    all: ReuseTracker,
    written: ReuseTracker,
    /// References, sampled or not.
    references: [u64; 2],
    /// References to sampled pages.
    sampled: [u64; 2],
    /// Reads of pages that were written before, sampled or not; not counted if all pages are sampled.
    reads_of_written: u64,
    /// The same of sampled pages.
    sampled_of_written: u64,
    hits_of_all: [Hits; 2],
    hits_of_written: [Hits; 2],
}

impl<'a> Caches<'a> {
    fn new(sizes: &'a [u32], empty: ReuseTracker) -> Self {
        let hits = || [Hits(vec![0; sizes.len()]), Hits(vec![0; sizes.len()])];
        Self {
            sizes,
            written: empty.clone(),
            all: empty,
            references: [0; 2],
            sampled: [0; 2],
            reads_of_written: 0,
            sampled_of_written: 0,
            hits_of_all: hits(),
            hits_of_written: hits(),
        }
    }

    fn refer(&mut self, batch: &[Reference]) {
        for (at, &Reference { page, is_write }) in batch.iter().enumerate() {
            if let Some(ahead) = batch.get(at + AHEAD) {
                self.all.prefetch(ahead.page);
                self.written.prefetch(ahead.page);
            }
            let kind = usize::from(is_write);
            self.sampled[kind] += 1;
            self.hits_of_all[kind].count(self.sizes, position(self.all.touch(page)));
            let of_written = if is_write { position(self.written.touch(page)) } else { self.written.position(page) };
            self.hits_of_written[kind].count(self.sizes, of_written);
        }
    }

    fn points(&self) -> Vec<HitRatePoint> {
        let point = |(at, &pages): (usize, &u32)| {
            let missed = |hits: &Hits, kind: usize| self.sampled[kind] - hits.up_to(at);
            let [reads, writes] = [0, 1].map(|kind| missed(&self.hits_of_all[kind], kind));
            let [read_references, write_references] = self.references;
            HitRatePoint {
                cache_bytes: u64::from(pages) * PAGE_BYTES,
                reads: self.rate(reads, read_references),
                writes: self.rate(writes, write_references),
                all: self.rate(reads + writes, read_references + write_references),
                reads_of_written: (read_references > 0)
                    .then(|| self.reads_of_written(self.hits_of_written[0].up_to(at)) / read_references as f64),
                writes_of_written: self.rate(missed(&self.hits_of_written[1], 1), write_references),
            }
        };
        self.sizes.iter().enumerate().map(point).collect()
    }

    /// The number of reads that hit in a cache of the pages written if `sampled_hits` sampled ones hit.
    fn reads_of_written(&self, sampled_hits: u64) -> f64 {
        if self.all.rate() >= 1.0 {
            return sampled_hits as f64;
        }
        let sampled_misses = self.sampled_of_written.saturating_sub(sampled_hits) as f64;
        (self.reads_of_written as f64 - sampled_misses / self.all.rate()).max(0.0)
    }

    /// The share of references that hit if `sampled_misses` sampled ones miss: surplus and missing references of the
    /// sample count as hits.
    fn rate(&self, sampled_misses: u64, references: u64) -> Option<f64> {
        let expected = references as f64 * self.all.rate();
        (references > 0).then(|| ((expected - sampled_misses as f64) / expected).max(0.0))
    }
}

/// Hits in the cache of each size that miss in the next smaller one.
struct Hits(Vec<u64>);

impl Hits {
    /// Counts a reference to a page at this position, or to a page without one.
    #[inline]
    fn count(&mut self, sizes: &[u32], position: Option<u32>) {
        if let Some(position) = position {
            let fits = sizes.partition_point(|&size| size <= position);
            if let Some(hits) = self.0.get_mut(fits) {
                *hits += 1;
            }
        }
    }

    /// Hits in the cache of this size.
    fn up_to(&self, at: usize) -> u64 {
        self.0[..=at].iter().sum()
    }
}

fn position(touch: Touch) -> Option<u32> {
    match touch {
        Touch::Again(position) => Some(position),
        Touch::First | Touch::NotSampled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::random;
    use crate::profile::distinct_pages;
    use crate::workload;

    const PAGE_SECTORS: u64 = PAGE_BYTES / 512;

    fn on_pages(page: u64, pages: u32, op: Op) -> Request {
        Request { arrival_ns: 0, sector: page * PAGE_SECTORS, sectors: pages * PAGE_SECTORS as u32, op, handle: 0 }
    }

    /// Reads and writes of one to four pages, a tenth of them of the first tenth of the pages.
    fn mixed(count: usize, pages: u64, seed: u64) -> Vec<Request> {
        let mut state = seed;
        let mut draw = |bound: u64| random::below(&mut state, bound);
        let one = |_| {
            let range = if draw(10) == 0 { pages / 10 } else { pages };
            on_pages(draw(range), 1 + draw(4) as u32, [Op::Read, Op::Write, Op::Trim][draw(5) as usize / 2])
        };
        (0..count).map(one).collect()
    }

    fn column(rates: &HitRates, of: fn(&HitRatePoint) -> Option<f64>) -> Vec<f64> {
        rates.points.iter().map(|point| of(point).unwrap()).collect()
    }

    #[test]
    fn a_few_references_counted_by_hand() {
        let (read, write) = (|page| on_pages(page, 1, Op::Read), |page| on_pages(page, 1, Op::Write));
        // Positions: none, none, 1, 1, none, 1, 2; in the cache of written pages: none, none, 0, none, none, none, 0.
        let requests = [write(7), read(8), write(7), read(8), read(9), read(8), write(7)];
        let rates = HitRates::of(&requests, &[1, 2, 3], 1.0).unwrap();
        assert_eq!(rates.sampling_rate, 1.0);
        assert_eq!(rates.points.iter().map(|point| point.cache_bytes).collect::<Vec<_>>(), [4096, 8192, 12_288]);
        assert_eq!(column(&rates, |point| point.reads), [0.0, 0.5, 0.5]);
        assert_eq!(column(&rates, |point| point.writes), [0.0, 1.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(column(&rates, |point| point.all), [0.0, 3.0 / 7.0, 4.0 / 7.0]);
        assert_eq!(column(&rates, |point| point.reads_of_written), [0.0; 3]);
        assert_eq!(column(&rates, |point| point.writes_of_written), [2.0 / 3.0; 3]);
    }

    /// A cache as a plain list, the most recent page first. Returns whether the page was in it.
    fn use_in(cache: &mut Vec<u64>, size: usize, page: u64, enters: bool) -> bool {
        let found = cache.iter().position(|&cached| cached == page);
        if enters {
            found.map(|at| cache.remove(at));
            cache.insert(0, page);
            cache.truncate(size);
        }
        found.is_some()
    }

    #[test]
    fn every_point_is_what_a_cache_of_that_size_gives() {
        let requests = mixed(3000, 400, 5);
        let sizes = cache_sizes(distinct_pages(data(&requests)), 20);
        let rates = HitRates::of(&requests, &sizes, 1.0).unwrap();
        for (point, &size) in rates.points.iter().zip(&sizes) {
            let (mut all, mut written) = (Vec::new(), Vec::new());
            let (mut references, mut hits, mut hits_of_written) = ([0.0; 2], [0.0; 2], [0.0; 2]);
            for request in data(&requests) {
                let is_write = request.op == Op::Write;
                let kind = usize::from(is_write);
                let (first, end) = request.pages();
                for page in first..end {
                    references[kind] += 1.0;
                    hits[kind] += f64::from(use_in(&mut all, size as usize, page, true));
                    hits_of_written[kind] += f64::from(use_in(&mut written, size as usize, page, is_write));
                }
            }
            let given = [point.reads, point.writes, point.reads_of_written, point.writes_of_written];
            let expected = [
                hits[0] / references[0],
                hits[1] / references[1],
                hits_of_written[0] / references[0],
                hits_of_written[1] / references[1],
            ];
            for (given, expected) in given.into_iter().zip(expected) {
                assert!((given.unwrap() - expected).abs() < 1e-12, "{given:?} and {expected} at {size} pages");
            }
        }
        let largest = rates.points.last().unwrap();
        assert_eq!(u64::from(*sizes.last().unwrap()), distinct_pages(data(&requests)));
        assert!(largest.all > rates.points[0].all, "{rates:?}");
    }

    /// The misses of the sampled pages, divided by the rate R, are right on average, with a standard deviation of
    /// sqrt((1 - R) / R * sum of m²) over all pages of m misses each. The position that stands for a size of s pages is
    /// also right on average, with sqrt((1 - R) / R * s), by which the curve is shifted to the left or right. Four of
    /// both are allowed.
    #[test]
    fn a_sample_is_as_near_as_its_size_allows() {
        const RATE: f64 = 1.0 / 16.0;
        let settings = [("requests", "400000"), ("span", "1GiB"), ("read_share", "0.5")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        for seed in 1..=3 {
            let requests: Vec<Request> = workload::build("zipf", &settings, seed).unwrap().collect();
            let sizes = cache_sizes(distinct_pages(requests.iter()), 12);
            let exact = column(&HitRates::of(&requests, &sizes, 1.0).unwrap(), |point| point.all);
            let sampled = HitRates::of(&requests, &sizes, RATE).unwrap();
            assert_eq!(sampled.sampling_rate, RATE);
            let sampled = column(&sampled, |point| point.all);
            for (at, &size) in sizes.iter().enumerate() {
                let mut misses = vec![0.0; 1 << 18];
                let mut tracker: ReuseTracker = ReuseTracker::exact(size);
                for request in &requests {
                    let page = request.pages().0 as u32;
                    misses[page as usize] += f64::from(tracker.touch(page) == Touch::First);
                }
                let squares: f64 = misses.iter().map(|misses| misses * misses).sum();
                let (before, after) = (at.saturating_sub(1), (at + 1).min(sizes.len() - 1));
                let rate_per_page = (exact[after] - exact[before]) / f64::from(sizes[after] - sizes[before]);
                let variance = squares / (requests.len() as f64).powi(2) + f64::from(size) * rate_per_page.powi(2);
                let allowed = 4.0 * ((1.0 - RATE) / RATE * variance).sqrt();
                let error = (sampled[at] - exact[at]).abs();
                assert!(error < allowed, "seed {seed}, {size} pages: {error} of {allowed}");
                assert!(size < 10_000 || allowed < 0.03, "the bound says something: {allowed} at {size} pages");
            }
        }
    }

    /// A few hot pages get most of the reads. Whether they are in the sample must not matter, for any cache.
    #[test]
    fn a_sample_without_the_hottest_pages_is_corrected_for_both_caches() {
        let settings = [("requests", "60000"), ("span", "128MiB"), ("read_share", "0.3")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        for seed in 1..=6 {
            let requests: Vec<Request> = workload::build("zipf", &settings, seed).unwrap().collect();
            let pages = distinct_pages(requests.iter()) as u32;
            let sizes = [pages / 3, pages];
            let [exact, sampled] = [1.0, 1.0 / 4.0].map(|rate| HitRates::of(&requests, &sizes, rate).unwrap());
            for of in [|point: &HitRatePoint| point.reads, |point: &HitRatePoint| point.reads_of_written] {
                for (exact, sampled) in column(&exact, of).into_iter().zip(column(&sampled, of)) {
                    assert!((sampled - exact).abs() < 0.03, "seed {seed}: {sampled} for {exact}");
                }
            }
        }
    }

    #[test]
    fn large_addresses_move_together() {
        let requests = mixed(2000, 300, 9);
        let far = |request: &Request| Request { sector: request.sector + (1 << 45), ..*request };
        let sizes = cache_sizes(300, 8);
        let moved: Vec<Request> = requests.iter().map(far).collect();
        assert_eq!(HitRates::of(&moved, &sizes, 1.0), HitRates::of(&requests, &sizes, 1.0));
    }

    #[test]
    fn traces_without_or_with_too_many_references_have_no_curve() {
        let trim = on_pages(0, 10, Op::Trim);
        let huge = [Request { sectors: u32::MAX, ..on_pages(0, 1, Op::Read) }; 40];
        for requests in [&[][..], &[trim], &huge] {
            assert_eq!(HitRates::of(requests, &[1, 2], 1.0), None);
        }
        assert_eq!(HitRates::of(&[on_pages(0, 1, Op::Read)], &[], 1.0), None);
        let reads = HitRates::of(&[on_pages(0, 1, Op::Read); 2], &[1], 1.0).unwrap().points[0];
        assert_eq!((reads.reads, reads.writes, reads.all), (Some(0.5), None, Some(0.5)));
        assert_eq!((reads.reads_of_written, reads.writes_of_written), (Some(0.0), None));
    }

    #[test]
    fn sizes_grow_evenly_up_to_all_pages() {
        assert_eq!(cache_sizes(1_000_000, 4), [1000, 10_000, 100_000, 1_000_000]);
        assert_eq!(cache_sizes(5, 20), [1, 2, 3, 5]);
        assert_eq!((cache_sizes(0, 20), cache_sizes(1000, 0), cache_sizes(1000, 1)), (vec![], vec![], vec![1000]));
    }

    #[test]
    fn long_traces_of_many_pages_are_sampled() {
        let write = |pages| on_pages(0, pages, Op::Write);
        assert_eq!(default_rate(&[write(1 << 22)], 1 << 22), 1.0);
        let long = [write(1 << 22), write(1)];
        assert_eq!(default_rate(&long, 1 << 22), 1.0 / 32.0);
        assert_eq!(default_rate(&long, (1 << 22) + 1), 1.0 / 64.0);
        assert_eq!(default_rate(&long, 1 << 17), 1.0);
    }
}
