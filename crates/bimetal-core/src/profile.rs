//! What a workload is like: sizes, updates, hot set, footprint, hit rates, sequentiality, arrivals.
//!
//! Everything is exact but the hit rates of long traces, which are sampled. For the rest nothing is kept per sector or
//! page: starts and ends of requests are sorted and swept, so that time and memory depend on the number of requests and
//! not on their sizes or on the disk's; ten million requests take a few seconds and a few hundred megabytes.

use serde::Serialize;

use crate::hit_rates::{self, HitRates};
use crate::request::{Op, Request, SECTOR_BYTES};

/// Bytes of the aligned pages in which footprints and hot sets are counted.
pub const PAGE_BYTES: u64 = 4096;

const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Size classes: 1, 2, 4, … 1024 sectors; each reaches up to the next, the last is open.
const SIZE_CLASSES: usize = 11;

/// Hottest shares of the written pages for which [`HotSet`] is given, in percent.
const HOT_PERCENTS: [u32; 4] = [1, 5, 10, 20];

/// How hit rates are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePlan {
    /// Number of cache sizes; 0 for no hit rates.
    pub points: u32,
    /// Share of the pages that is looked at, above 0 and at most 1; `None` leaves it to the trace's length.
    pub sampling_rate: Option<f64>,
}

impl Default for CurvePlan {
    fn default() -> Self {
        Self { points: 20, sampling_rate: None }
    }
}

/// A workload's figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Requests of all kinds.
    pub requests: u64,
    /// Reads.
    pub reads: OpProfile,
    /// Writes.
    pub writes: OpProfile,
    /// Trims.
    pub trims: OpProfile,
    /// Reads and writes by size, as Chang (2010, figures 7a and 7b) shows them.
    pub sizes: Vec<SizeClass>,
    /// Sectors written by distinct sectors written; `None` without writes.
    pub update_ratio: Option<f64>,
    /// Sectors by how often they are written (Chang 2010, figure 7c).
    pub write_hits: Vec<HitClass>,
    /// Sectors by how often they are read (Chang 2010, figure 7d).
    pub read_hits: Vec<HitClass>,
    /// Writes of the sector that is written most.
    pub sector_writes_max: u64,
    /// Reads of the sector that is read most.
    pub sector_reads_max: u64,
    /// Distinct bytes touched.
    pub footprint: Footprint,
    /// How writes concentrate; `None` without writes.
    pub hot_set: Option<HotSet>,
    /// How often caches would hit; `None` without reads and writes, or with more of them than can be followed.
    pub hit_rates: Option<HitRates>,
    /// Share of reads and writes that begin where the previous read or write ended; `None` below two of them.
    pub sequential_share: Option<f64>,
    /// Share of reads and writes whose start and end are multiples of 4 KiB; `None` without any.
    pub aligned_share: Option<f64>,
    /// Arrivals of all requests; `None` below two of them.
    pub arrivals: Option<Arrivals>,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OpProfile {
    /// Number of requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean size in bytes; 0 without any.
    pub mean_bytes: f64,
    /// Share of them that begin where the previous one of their kind ended; `None` below two of them.
    pub sequential_share: Option<f64>,
}

/// Requests from `sectors` sectors up to the next class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SizeClass {
    /// Smallest size of the class in 512-byte sectors: a power of two.
    pub sectors: u32,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes that they write.
    pub write_bytes: u64,
    /// Sectors that writes of this class wrote by distinct sectors that they wrote; `None` without writes.
    pub update_ratio: Option<f64>,
}

/// Sectors that are hit from `hits` times up to the next class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HitClass {
    /// Smallest count of the class: a power of two.
    pub hits: u64,
    /// Number of sectors.
    pub sectors: u64,
}

/// Distinct bytes in aligned 4-KiB pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Of pages that are read.
    pub read_bytes: u64,
    /// Of pages that are written.
    pub written_bytes: u64,
    /// Of pages that are read and written.
    pub both_bytes: u64,
    /// Of pages that are read or written.
    pub touched_bytes: u64,
    /// From byte 0 to the end of the last page: the smallest disk that the trace fits on.
    pub span_bytes: u64,
}

/// How writes concentrate on 4-KiB pages. A request writes each page that it touches once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotSet {
    /// Share of page writes that go to the hottest pages, by percent of the pages ever written.
    pub hottest: Vec<HotShare>,
    /// Fewest bytes that take half of the page writes.
    pub bytes_for_half: u64,
    /// Fewest bytes that take nine tenths of the page writes.
    pub bytes_for_90_percent: u64,
    /// Writes of the page that is written most.
    pub writes_max: u64,
}

/// One point of the concentration curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HotShare {
    /// Hottest pages, in percent of the pages ever written.
    pub percent_of_pages: u32,
    /// Share of page writes that go to them.
    pub share_of_writes: f64,
}

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Arrivals {
    /// From the first to the last arrival, in seconds.
    pub duration_s: f64,
    /// Requests per second; `None` where all arrive at once.
    pub requests_per_s: Option<f64>,
    /// Bytes read and written per second; `None` where all arrive at once.
    pub bytes_per_s: Option<f64>,
    /// Mean time between arrivals in microseconds.
    pub interval_mean_us: f64,
    /// Median time between arrivals in microseconds.
    pub interval_p50_us: f64,
    /// 99th percentile of the time between arrivals in microseconds.
    pub interval_p99_us: f64,
    /// Longest time between arrivals in microseconds.
    pub interval_max_us: f64,
}

impl Profile {
    /// The figures of a trace in the order of its arrivals.
    pub fn of(requests: &[Request], curves: &CurvePlan) -> Self {
        let footprint = Footprint::of(requests);
        let sector_writes = Hits::of(requests.iter().filter(|request| request.op == Op::Write), 1);
        let sector_reads = Hits::of(requests.iter().filter(|request| request.op == Op::Read), 1);
        let aligned = data(requests).filter(|request| {
            request.sector.is_multiple_of(PAGE_SECTORS) && request.end().is_multiple_of(PAGE_SECTORS)
        });
        let (aligned, data_requests) = (aligned.count() as u64, data(requests).count() as u64);
        Self {
            requests: requests.len() as u64,
            reads: OpProfile::of(requests, Op::Read),
            writes: OpProfile::of(requests, Op::Write),
            trims: OpProfile::of(requests, Op::Trim),
            sizes: size_classes(requests),
            update_ratio: ratio(sector_writes.total(), sector_writes.distinct()),
            write_hits: sector_writes.classes(),
            read_hits: sector_reads.classes(),
            sector_writes_max: sector_writes.most(),
            sector_reads_max: sector_reads.most(),
            footprint,
            hot_set: HotSet::of(requests),
            hit_rates: hit_rates(requests, footprint.touched_bytes / PAGE_BYTES, curves),
            sequential_share: sequential_share(data(requests)),
            aligned_share: ratio(aligned, data_requests),
            arrivals: Arrivals::of(requests),
        }
    }
}

/// Caches of up to all pages that the trace touches.
fn hit_rates(requests: &[Request], touched_pages: u64, plan: &CurvePlan) -> Option<HitRates> {
    let rate = plan.sampling_rate.unwrap_or_else(|| hit_rates::default_rate(requests, touched_pages));
    HitRates::of(requests, &hit_rates::cache_sizes(touched_pages, plan.points), rate)
}

/// Number of distinct aligned 4-KiB pages that the requests touch.
pub fn distinct_pages<'a>(requests: impl Iterator<Item = &'a Request>) -> u64 {
    distinct(requests, PAGE_SECTORS)
}

/// The requests that carry data: reads and writes.
pub(crate) fn data(requests: &[Request]) -> impl Iterator<Item = &Request> {
    requests.iter().filter(|request| request.op != Op::Trim)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

/// First and one past the last aligned 4-KiB page that a request touches.
pub(crate) fn pages(request: &Request) -> (u64, u64) {
    units(request, PAGE_SECTORS)
}

/// First and one past the last unit of `unit_sectors` that a request touches.
fn units(request: &Request, unit_sectors: u64) -> (u64, u64) {
    (request.sector / unit_sectors, request.end().div_ceil(unit_sectors))
}

/// Number of distinct units that the requests touch.
fn distinct<'a>(requests: impl Iterator<Item = &'a Request>, unit_sectors: u64) -> u64 {
    let mut extents: Vec<(u64, u64)> = requests.map(|request| units(request, unit_sectors)).collect();
    extents.sort_unstable();
    let mut covered_to = 0;
    let mut length = 0;
    for (start, end) in extents {
        length += end.saturating_sub(covered_to.max(start));
        covered_to = covered_to.max(end);
    }
    length
}

fn sequential_share<'a>(requests: impl Iterator<Item = &'a Request>) -> Option<f64> {
    let mut end = None;
    let (mut count, mut continued) = (0, 0);
    for request in requests {
        count += 1;
        continued += u64::from(end == Some(request.sector));
        end = Some(request.end());
    }
    if count < 2 { None } else { ratio(continued, count) }
}

fn size_class(sectors: u32) -> usize {
    (sectors.max(1).ilog2() as usize).min(SIZE_CLASSES - 1)
}

fn size_classes(requests: &[Request]) -> Vec<SizeClass> {
    let class = |class: usize| {
        let of =
            |op: Op| requests.iter().filter(move |request| request.op == op && size_class(request.sectors) == class);
        let written: u64 = of(Op::Write).map(|request| u64::from(request.sectors)).sum();
        SizeClass {
            sectors: 1 << class,
            reads: of(Op::Read).count() as u64,
            writes: of(Op::Write).count() as u64,
            write_bytes: written * SECTOR_BYTES,
            update_ratio: ratio(written, distinct(of(Op::Write), 1)),
        }
    };
    (0..SIZE_CLASSES).map(class).collect()
}

impl OpProfile {
    fn of(requests: &[Request], op: Op) -> Self {
        let of_op = || requests.iter().filter(|request| request.op == op);
        let count = of_op().count() as u64;
        let bytes = of_op().map(Request::bytes).sum();
        Self {
            requests: count,
            bytes,
            mean_bytes: ratio(bytes, count).unwrap_or(0.0),
            sequential_share: sequential_share(of_op()),
        }
    }
}

impl Footprint {
    fn of(requests: &[Request]) -> Self {
        let of = |op: Op| distinct_pages(requests.iter().filter(|request| request.op == op));
        let (read, written, touched) = (of(Op::Read), of(Op::Write), distinct_pages(data(requests)));
        let end = data(requests).map(|request| units(request, PAGE_SECTORS).1).max().unwrap_or(0);
        Self {
            read_bytes: read * PAGE_BYTES,
            written_bytes: written * PAGE_BYTES,
            both_bytes: (read + written - touched) * PAGE_BYTES,
            touched_bytes: touched * PAGE_BYTES,
            span_bytes: end.saturating_mul(PAGE_BYTES),
        }
    }
}

/// How many units are hit how often: `units[n]` units are hit `n` times.
struct Hits {
    units: Vec<u64>,
}

impl Hits {
    /// Sweeps over the starts and ends of all requests: between two of them every unit is hit as often as requests are
    /// open.
    fn of<'a>(requests: impl Iterator<Item = &'a Request>, unit_sectors: u64) -> Self {
        let touched = requests.filter(|request| request.sectors > 0);
        let (mut starts, mut ends): (Vec<u64>, Vec<u64>) = touched.map(|request| units(request, unit_sectors)).unzip();
        starts.sort_unstable();
        ends.sort_unstable();
        let mut hits = vec![0];
        let (mut opened, mut at) = (0, 0);
        for (closed, &end) in ends.iter().enumerate() {
            while opened < starts.len() && starts[opened] < end {
                add(&mut hits, opened - closed, starts[opened] - at);
                at = starts[opened];
                opened += 1;
            }
            add(&mut hits, opened - closed, end - at);
            at = end;
        }
        Self { units: hits }
    }

    /// Hits of all units.
    fn total(&self) -> u64 {
        self.units.iter().enumerate().map(|(count, units)| count as u64 * units).sum()
    }

    /// Units that are hit at all.
    fn distinct(&self) -> u64 {
        self.units.iter().skip(1).sum()
    }

    /// Hits of the unit that is hit most.
    fn most(&self) -> u64 {
        self.units.len() as u64 - 1
    }

    fn classes(&self) -> Vec<HitClass> {
        let mut classes: Vec<HitClass> = Vec::new();
        for (count, &sectors) in self.units.iter().enumerate().skip(1) {
            let hits = 1 << count.ilog2();
            match classes.last_mut() {
                Some(class) if class.hits == hits => class.sectors += sectors,
                _ => classes.push(HitClass { hits, sectors }),
            }
        }
        classes
    }
}

fn add(hits: &mut Vec<u64>, count: usize, units: u64) {
    if units == 0 || count == 0 {
        return;
    }
    if hits.len() <= count {
        hits.resize(count + 1, 0);
    }
    hits[count] += units;
}

impl HotSet {
    fn of(requests: &[Request]) -> Option<Self> {
        let hits = Hits::of(requests.iter().filter(|request| request.op == Op::Write), PAGE_SECTORS);
        let (total, pages) = (hits.total(), hits.distinct());
        if total == 0 {
            return None;
        }
        let share = |percent: u32| HotShare {
            percent_of_pages: percent,
            share_of_writes: hits.of_hottest((pages * u64::from(percent)).div_ceil(100)) as f64 / total as f64,
        };
        Some(Self {
            hottest: HOT_PERCENTS.map(share).to_vec(),
            bytes_for_half: hits.fewest(total.div_ceil(2)) * PAGE_BYTES,
            bytes_for_90_percent: hits.fewest((total * 9).div_ceil(10)) * PAGE_BYTES,
            writes_max: hits.most(),
        })
    }
}

impl Hits {
    /// Hits of the `wanted` units that are hit most.
    fn of_hottest(&self, wanted: u64) -> u64 {
        let mut left = wanted;
        let mut sum = 0;
        for (count, &units) in self.units.iter().enumerate().rev() {
            let taken = units.min(left);
            sum += taken * count as u64;
            left -= taken;
        }
        sum
    }

    /// Fewest units that together are hit `wanted` times.
    fn fewest(&self, wanted: u64) -> u64 {
        let mut left = wanted;
        let mut sum = 0;
        for (count, &units) in self.units.iter().enumerate().skip(1).rev() {
            let taken = units.min(left.div_ceil(count as u64));
            sum += taken;
            left = left.saturating_sub(taken * count as u64);
        }
        sum
    }
}

impl Arrivals {
    fn of(requests: &[Request]) -> Option<Self> {
        let (first, last) = (requests.first()?.arrival_ns, requests.last()?.arrival_ns);
        let mut gaps: Vec<u64> =
            requests.windows(2).map(|pair| pair[1].arrival_ns.saturating_sub(pair[0].arrival_ns)).collect();
        if gaps.is_empty() {
            return None;
        }
        let duration_s = last.saturating_sub(first) as f64 / 1e9;
        let per_s = |amount: f64| (duration_s > 0.0).then(|| amount / duration_s);
        let count = gaps.len();
        let mut quantile_us = |percent: usize| {
            let rank = (count * percent).div_ceil(100).max(1) - 1;
            *gaps.select_nth_unstable(rank).1 as f64 / 1e3
        };
        Some(Self {
            duration_s,
            requests_per_s: per_s(count as f64),
            bytes_per_s: per_s(data(requests).map(Request::bytes).sum::<u64>() as f64),
            interval_mean_us: duration_s * 1e6 / count as f64,
            interval_p50_us: quantile_us(50),
            interval_p99_us: quantile_us(99),
            interval_max_us: quantile_us(100),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::part::random;
    use crate::workload;

    fn request(arrival_us: u64, op: Op, sector: u64, sectors: u32) -> Request {
        Request { arrival_ns: arrival_us * 1000, sector, sectors, op, handle: 0 }
    }

    #[test]
    fn a_small_trace_counted_by_hand() {
        let requests = [
            request(0, Op::Write, 0, 8),
            request(10, Op::Write, 8, 8),
            request(20, Op::Write, 0, 8),
            request(50, Op::Read, 12, 16),
            request(90, Op::Trim, 0, 8),
            request(100, Op::Write, 1, 2),
        ];
        let profile = Profile::of(&requests, &CurvePlan::default());
        assert_eq!((profile.reads.requests, profile.writes.requests, profile.trims.requests), (1, 4, 1));
        assert_eq!((profile.writes.bytes, profile.writes.mean_bytes), (26 * 512, 26.0 * 128.0));
        assert_eq!(profile.update_ratio, Some(26.0 / 16.0));
        assert_eq!(
            profile.sizes[3],
            SizeClass { sectors: 8, reads: 0, writes: 3, write_bytes: 12_288, update_ratio: Some(1.5) }
        );
        assert_eq!(
            profile.sizes[1],
            SizeClass { sectors: 2, reads: 0, writes: 1, write_bytes: 1024, update_ratio: Some(1.0) }
        );
        assert_eq!(profile.sizes[4].reads, 1);
        // Sectors 0 and 3 to 7 twice, 1 and 2 three times, 8 to 15 once.
        assert_eq!(profile.write_hits, [HitClass { hits: 1, sectors: 8 }, HitClass { hits: 2, sectors: 8 }]);
        let footprint = profile.footprint;
        assert_eq!((footprint.read_bytes, footprint.written_bytes, footprint.both_bytes), (12_288, 8192, 4096));
        assert_eq!((footprint.touched_bytes, footprint.span_bytes), (16_384, 16_384));
        let hot = profile.hot_set.unwrap();
        assert_eq!((hot.writes_max, hot.bytes_for_half, hot.bytes_for_90_percent), (3, 4096, 8192));
        assert_eq!(hot.hottest[3].share_of_writes, 0.75);
        assert_eq!(profile.sequential_share, Some(0.2));
        assert_eq!(profile.writes.sequential_share, Some(0.25));
        assert_eq!(profile.aligned_share, Some(0.6));
        let arrivals = profile.arrivals.unwrap();
        assert_eq!((arrivals.interval_mean_us, arrivals.interval_p50_us, arrivals.interval_max_us), (20.0, 10.0, 40.0));
        assert_eq!(arrivals.requests_per_s, Some(50_000.0));
    }

    #[test]
    fn an_empty_trace_has_no_ratios() {
        let profile = Profile::of(&[], &CurvePlan::default());
        assert_eq!((profile.update_ratio, profile.sequential_share, profile.arrivals), (None, None, None));
        assert_eq!((profile.hot_set, profile.aligned_share, profile.footprint), (None, None, Footprint::default()));
    }

    #[test]
    fn sweeping_agrees_with_counting_each_sector() {
        let mut state = 11;
        let mut requests = Vec::new();
        let mut counted = BTreeMap::new();
        for _ in 0..3000 {
            let (sector, sectors) = (random::below(&mut state, 500), 1 + random::below(&mut state, 40) as u32);
            requests.push(request(0, Op::Write, sector, sectors));
            for hit in sector..sector + u64::from(sectors) {
                *counted.entry(hit).or_insert(0u64) += 1;
            }
        }
        let hits = Hits::of(requests.iter(), 1);
        let mut expected = vec![0; hits.units.len()];
        for &count in counted.values() {
            expected[count as usize] += 1;
        }
        assert_eq!(hits.units, expected);
        assert_eq!(distinct(requests.iter(), 1), counted.len() as u64);
        let mut counts: Vec<u64> = counted.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(hits.of_hottest(7), counts[..7].iter().sum::<u64>());
        let wanted = hits.total() / 3;
        let fewest = hits.fewest(wanted) as usize;
        assert!(counts[..fewest].iter().sum::<u64>() >= wanted && counts[..fewest - 1].iter().sum::<u64>() < wanted);
    }

    /// The generated NTFS workload has what Chang's figure 7 shows of the real one.
    #[test]
    fn the_papers_workload_has_the_papers_profile() {
        let settings = [("requests".to_string(), "1000000".to_string())];
        let requests: Vec<Request> = workload::build("bimodal-ntfs", &settings, 1).unwrap().collect();
        let profile = Profile::of(&requests, &CurvePlan::default());
        let update_ratio = |class: usize| profile.sizes[class].update_ratio.unwrap();
        assert!(update_ratio(3) > 10.0 && update_ratio(7) < 2.0, "{:?}", profile.sizes);
        assert!(profile.write_hits.last().unwrap().hits >= 16_384, "{:?}", profile.write_hits);
        assert!(profile.read_hits.last().unwrap().hits <= 128, "{:?}", profile.read_hits);
        assert!(profile.footprint.span_bytes > 19 << 30);
    }
}
