//! Properties of a workload: sizes, updates, hot set, footprint, hit rates, sequentiality, arrivals.
//!
//! Everything is exact but the hit rates of long traces, which are sampled. For the other figures nothing is kept per
//! sector or page: [`Spans`] of requests are swept. Ten million requests take one or two seconds and a few hundred
//! megabytes.

mod spans;

use serde::Serialize;

use crate::hit_rates::{self, HitRates};
use crate::request::{Op, PAGE_BYTES, PAGE_SECTORS, Request, SECTOR_BYTES, data};
use crate::touched;
use spans::{Hits, Spans};

/// Size classes: 1, 2, 4, … 1024 sectors; each reaches up to the next, the last is open.
const SIZE_CLASSES: usize = 11;

/// Hottest shares of the written pages for which [`HotSet`] is given, in percent.
const HOT_PERCENTS: [u32; 4] = [1, 5, 10, 20];

/// Settings of the hit rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePlan {
    /// Number of cache sizes; 0 for no hit rates.
    pub points: u32,
    /// Share of the pages that is sampled, above 0 and at most 1; `None`: depends on the trace's length.
    pub sampling_rate: Option<f64>,
}

impl Default for CurvePlan {
    fn default() -> Self {
        Self { points: 20, sampling_rate: None }
    }
}

/// Figures of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
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
    /// Sectors written divided by distinct sectors written; `None` without writes.
    pub update_ratio: Option<f64>,
    /// Number of sectors by how often they are written (Chang 2010, figure 7c).
    pub write_hits: Vec<HitClass>,
    /// Number of sectors by how often they are read (Chang 2010, figure 7d).
    pub read_hits: Vec<HitClass>,
    /// Writes of the sector that is written most.
    pub sector_writes_max: u64,
    /// Reads of the sector that is read most.
    pub sector_reads_max: u64,
    /// Distinct bytes touched.
    pub footprint: Footprint,
    /// Concentration of writes; `None` without writes.
    pub hot_set: Option<HotSet>,
    /// Hit rates of caches; `None` without reads and writes, or with too many of them.
    pub hit_rates: Option<HitRates>,
    /// Share of reads and writes that begin where the previous read or write ended; `None` with fewer than two of them.
    pub sequential_share: Option<f64>,
    /// Share of reads and writes whose start and end are multiples of 4 KiB; `None` without any.
    pub aligned_share: Option<f64>,
    /// Arrivals of all requests; `None` with fewer than two of them.
    pub arrivals: Option<Arrivals>,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OpProfile {
    /// Number of requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean size in bytes; 0 without any.
    pub mean_bytes: f64,
    /// Share of them that begin where the previous one of their kind ended; `None` with fewer than two of them.
    pub sequential_share: Option<f64>,
}

/// Requests of at least `sectors` sectors, up to the next class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SizeClass {
    /// Smallest size of the class in 512-byte sectors: a power of two.
    pub sectors: u32,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes that they write.
    pub write_bytes: u64,
    /// Sectors written by writes of this class, divided by the distinct ones; `None` without writes.
    pub update_ratio: Option<f64>,
}

/// Sectors that are hit at least `hits` times, up to the next class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct HitClass {
    /// Smallest count of the class: a power of two.
    pub hits: u64,
    /// Number of sectors.
    pub sectors: u64,
}

/// Distinct bytes in aligned 4-KiB pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
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

/// Concentration of writes on 4-KiB pages. A request writes each page that it touches once.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HotSet {
    /// Share of page writes that go to the hottest pages, by percent of the pages ever written.
    pub hottest: Vec<HotShare>,
    /// Fewest bytes that get half of the page writes.
    pub bytes_for_half: u64,
    /// Fewest bytes that receive 90 % of the page writes.
    pub bytes_for_90_percent: u64,
    /// Writes of the page that is written most.
    pub writes_max: u64,
}

/// One point of the concentration curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HotShare {
    /// Hottest pages, in percent of the pages ever written.
    pub percent_of_pages: u32,
    /// Share of page writes that go to them.
    pub share_of_writes: f64,
}

/// Arrivals of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Arrivals {
    /// From the first to the last arrival, in seconds.
    pub duration_s: f64,
    /// Requests per second; `None` if all arrive at once.
    pub requests_per_s: Option<f64>,
    /// Bytes read and written per second; `None` if all arrive at once.
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
        Self::joined(requests, distinct_pages(data(requests)), curves, &InTurn)
    }

    /// The same with the known number of [`distinct_pages`] of reads and writes; `join` evaluates the parts that take
    /// long.
    pub fn joined(requests: &[Request], touched_pages: u64, curves: &CurvePlan, join: &impl Join) -> Self {
        let (places, (arrivals, hit_rates)) = join.join(
            || Places::of(requests, touched_pages, join),
            || (Arrivals::of(requests), hit_rates(requests, touched_pages, curves)),
        );
        let Places { tally, footprint, write_hits, read_hits, page_writes } = places;
        let Tally { reads, writes, trims, data, aligned, sizes, .. } = tally;
        Self {
            requests: requests.len() as u64,
            update_ratio: ratio(write_hits.total(), write_hits.distinct()),
            write_hits: hit_classes(&write_hits),
            read_hits: hit_classes(&read_hits),
            sector_writes_max: write_hits.most(),
            sector_reads_max: read_hits.most(),
            footprint,
            hot_set: HotSet::of(&page_writes),
            hit_rates,
            sequential_share: data.sequential_share(),
            aligned_share: ratio(aligned, data.requests),
            arrivals,
            reads: reads.profile(),
            writes: writes.profile(),
            trims: trims.profile(),
            sizes,
        }
    }
}

/// Evaluates two independent parts of a calculation, in turn or at once.
pub trait Join: Sync {
    /// The results of both.
    fn join<A: Send, B: Send>(&self, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B);
}

/// Evaluates one part after the other.
#[derive(Clone, Copy, Debug)]
pub struct InTurn;

impl Join for InTurn {
    fn join<A: Send, B: Send>(&self, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
        (a(), b())
    }
}

/// Requests counted, and how often they hit sectors and pages.
struct Places {
    /// Without spans.
    tally: Tally,
    footprint: Footprint,
    /// By sector.
    write_hits: Hits,
    /// By sector.
    read_hits: Hits,
    /// By page.
    page_writes: Hits,
}

impl Places {
    fn of(requests: &[Request], touched_pages: u64, join: &impl Join) -> Self {
        let mut tally = Tally { sizes: size_classes(), ..Tally::default() };
        requests.iter().for_each(|request| tally.add(request));
        let (reads, writes) = (std::mem::take(&mut tally.read_spans), std::mem::take(&mut tally.write_spans));
        let sizes = &mut tally.sizes;
        let of_reads = || {
            let reads = reads.sorted(join);
            (reads.hits::<1>(), reads.distinct::<PAGE_SECTORS>())
        };
        let of_writes = || {
            let writes = writes.map(|spans| spans.sorted(join));
            for (size, spans) in sizes.iter_mut().zip(&writes) {
                size.update_ratio = ratio(size.write_bytes / SECTOR_BYTES, spans.distinct::<1>());
            }
            let writes = Spans::merged(writes);
            join.join(|| writes.hits::<1>(), || writes.hits::<PAGE_SECTORS>())
        };
        let ((read_hits, pages_read), (write_hits, page_writes)) = join.join(of_reads, of_writes);
        let footprint = Footprint::of(pages_read, page_writes.distinct(), touched_pages, tally.end);
        Self { tally, footprint, write_hits, read_hits, page_writes }
    }
}

/// Counts of one pass over the requests.
#[derive(Default)]
struct Tally {
    reads: Kind,
    writes: Kind,
    trims: Kind,
    /// Reads and writes.
    data: Kind,
    /// Reads and writes whose start and end are multiples of a page.
    aligned: u64,
    /// One past the last sector of reads and writes.
    end: u64,
    sizes: Vec<SizeClass>,
    read_spans: Spans,
    /// By size class.
    write_spans: [Spans; SIZE_CLASSES],
}

impl Tally {
    fn add(&mut self, request: &Request) {
        let Request { op, sector, sectors, .. } = *request;
        if op == Op::Trim {
            return self.trims.add(request);
        }
        self.data.add(request);
        self.end = self.end.max(request.end());
        self.aligned += u64::from((sector | request.end()).is_multiple_of(PAGE_SECTORS));
        let class = (sectors.max(1).ilog2() as usize).min(SIZE_CLASSES - 1);
        if op == Op::Read {
            self.reads.add(request);
            self.sizes[class].reads += 1;
            self.read_spans.push(request);
        } else {
            self.writes.add(request);
            self.sizes[class].writes += 1;
            self.sizes[class].write_bytes += request.bytes();
            self.write_spans[class].push(request);
        }
    }
}

/// Counts of requests of one kind.
#[derive(Default)]
struct Kind {
    requests: u64,
    sectors: u64,
    /// End of the last request.
    end: u64,
    /// Requests that begin at the end of the previous one.
    continued: u64,
}

impl Kind {
    #[inline]
    fn add(&mut self, request: &Request) {
        self.continued += u64::from(self.requests > 0 && request.sector == self.end);
        self.requests += 1;
        self.sectors += u64::from(request.sectors);
        self.end = request.end();
    }

    fn sequential_share(&self) -> Option<f64> {
        if self.requests < 2 { None } else { ratio(self.continued, self.requests) }
    }

    fn profile(&self) -> OpProfile {
        let bytes = self.sectors * SECTOR_BYTES;
        let mean_bytes = ratio(bytes, self.requests).unwrap_or(0.0);
        OpProfile { requests: self.requests, bytes, mean_bytes, sequential_share: self.sequential_share() }
    }
}

/// Hit rates of caches of up to all pages that the trace touches.
fn hit_rates(requests: &[Request], touched_pages: u64, plan: &CurvePlan) -> Option<HitRates> {
    let rate = plan.sampling_rate.unwrap_or_else(|| hit_rates::default_rate(requests, touched_pages));
    HitRates::of(requests, &hit_rates::cache_sizes(touched_pages, plan.points), rate)
}

/// Number of distinct aligned 4-KiB pages that the requests touch.
pub fn distinct_pages<'a>(requests: impl Iterator<Item = &'a Request> + Clone) -> u64 {
    let pages = requests.clone().filter(|request| request.sectors > 0).map(|request| {
        let (first, end) = request.pages();
        first..end
    });
    match touched::bitmap(pages) {
        Some(bits) => bits.count_ones(..) as u64,
        None => Spans::of(requests).distinct::<PAGE_SECTORS>(),
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

/// All size classes, without requests.
fn size_classes() -> Vec<SizeClass> {
    (0..SIZE_CLASSES).map(|class| SizeClass { sectors: 1 << class, ..SizeClass::default() }).collect()
}

fn hit_classes(hits: &Hits) -> Vec<HitClass> {
    let mut classes: Vec<HitClass> = Vec::new();
    for (count, sectors) in hits.iter() {
        let hits = 1 << count.ilog2();
        match classes.last_mut() {
            Some(class) if class.hits == hits => class.sectors += sectors,
            _ => classes.push(HitClass { hits, sectors }),
        }
    }
    classes
}

impl Footprint {
    /// Footprint of reads and writes, which touch these numbers of pages and end before the sector `end`.
    fn of(read: u64, written: u64, touched: u64, end: u64) -> Self {
        Self {
            read_bytes: read * PAGE_BYTES,
            written_bytes: written * PAGE_BYTES,
            both_bytes: (read + written - touched) * PAGE_BYTES,
            touched_bytes: touched * PAGE_BYTES,
            span_bytes: end.div_ceil(PAGE_SECTORS).saturating_mul(PAGE_BYTES),
        }
    }
}

impl HotSet {
    /// Concentration of the writes of pages.
    fn of(hits: &Hits) -> Option<Self> {
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

impl Arrivals {
    /// Arrivals of `requests`; `None` for fewer than two.
    fn of(requests: &[Request]) -> Option<Self> {
        let (first, last) = (requests.first()?.arrival_ns, requests.last()?.arrival_ns);
        let mut gaps: Vec<u64> =
            requests.windows(2).map(|pair| pair[1].arrival_ns.saturating_sub(pair[0].arrival_ns)).collect();
        let longest = *gaps.iter().max()?;
        let bytes: u64 = data(requests).map(Request::bytes).sum();
        let duration_s = last.saturating_sub(first) as f64 / 1e9;
        let per_s = |amount: f64| (duration_s > 0.0).then(|| amount / duration_s);
        let count = gaps.len();
        let rank = |percent: usize| (count * percent).div_ceil(100).max(1) - 1;
        let us = |ns: u64| ns as f64 / 1e3;
        let (_, &mut median, longer) = gaps.select_nth_unstable(rank(50));
        let p99 = match rank(99) - rank(50) {
            0 => median,
            after => *longer.select_nth_unstable(after - 1).1,
        };
        Some(Self {
            duration_s,
            requests_per_s: per_s(count as f64),
            bytes_per_s: per_s(bytes as f64),
            interval_mean_us: duration_s * 1e6 / count as f64,
            interval_p50_us: us(median),
            interval_p99_us: us(p99),
            interval_max_us: us(longest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::random;

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
    fn a_bitmap_and_spans_count_the_same_pages() {
        let mut state = 5;
        let mut draw = |bound: u64| random::below(&mut state, bound);
        let one = |_| request(0, Op::Write, draw(200_000), draw(40) as u32);
        let requests: Vec<Request> = (0..3000).map(one).collect();
        let counted = Spans::of(requests.iter()).distinct::<PAGE_SECTORS>();
        assert_eq!(distinct_pages(requests.iter()), counted);
        let far = |request: &Request| Request { sector: request.sector + (1 << 50), ..*request };
        assert_eq!(distinct_pages(requests.iter().map(far).collect::<Vec<_>>().iter()), counted);
    }

    #[test]
    fn an_empty_trace_has_no_ratios() {
        let profile = Profile::of(&[], &CurvePlan::default());
        assert_eq!((profile.update_ratio, profile.sequential_share, profile.arrivals), (None, None, None));
        assert_eq!((profile.hot_set, profile.aligned_share, profile.footprint), (None, None, Footprint::default()));
    }
}
