//! Common code of `financial`, `home`, `search`, `exchange` and `msn`: servers for which a table gives mean request
//! sizes, bytes read and written, and working sets (HySSD 2013, table I; OP-FCL 2012, table 1).
//!
//! Pages of 4 KiB are in three parts: only read, read and written, only written. Their sizes follow from the working
//! sets. Reads of a part, and likewise writes, go to
//!
//! - *new* pages in order, once through the part during the row's number of requests. These are all misses of an
//!   infinite cache. In servers with runs, the next request continues this one with some probability;
//! - *recent* pages, by their age in pages written since, with a Zipf distribution;
//! - *popular* pages: those that were new first, also with a Zipf distribution. They are in a few regions.
//!
//! Repeated requests of both kinds use only pages that were already new (unless `settled`, which lets any page be
//! popular). So a prefix of the stream resembles the whole, with a smaller working set. If `used` and `requests` are
//! divided by the same number, the whole is scaled down without other changes. After the row's number of requests, the
//! pages are new once more.
//!
//! In pages that are read and written, reads are half a round away from writes. The rows do not state their relation,
//! and in the first 10,000 requests of Financial1 one read in twenty is of data written before. Requests begin and end
//! at multiples of 4 KiB, as in the rows. Data are in extents that are scattered over the address space.

use bimetal_core::part::random;
use bimetal_core::part::real::whole;
use bimetal_core::request::{Op, Request, SECTOR_BYTES};
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Goal, Permutation, Requests, Target, Zipf, choose};

use super::bursts::{Bursts, Gaps};
use super::{sectors, share};

const PAGE_BYTES: u64 = 4096;
const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;
const GIB_PAGES: f64 = (1 << 18) as f64;

/// Reads or writes of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// Mean KiB of a request, as published; `sizes` approximate it.
    pub(super) mean_kib: f64,
    /// Total GiB.
    pub(super) gib: f64,
    /// GiB of the pages that they touch.
    pub(super) set_gib: f64,
    /// Sizes of requests in pages with their shares, which add up to 1.
    pub(super) sizes: &'static [(u32, f64)],
    /// Probability that a request for new pages is continued by the next one.
    pub(super) continued: f64,
}

/// A row, and additional assumptions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The source of the row.
    pub(super) source: &'static str,
    /// The source of its working sets.
    pub(super) source_of_sets: &'static str,
    pub(super) reads: Traffic,
    pub(super) writes: Traffic,
    /// Share of reads in all bytes, as published.
    pub(super) read_share: f64,
    /// GiB of all touched pages.
    pub(super) set_gib: f64,
    /// Contiguous pages on the disk, at least as many as the largest request has.
    pub(super) extent: u64,
    pub(super) bursts: Bursts,
}

/// Settings of the user.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerSettings {
    pub(super) requests: u64,
    /// Bytes of the address space.
    pub(super) span: ByteSize,
    /// Bytes of all touched pages: the row's working set.
    pub(super) used: ByteSize,
    pub(super) interval_us: f64,
    pub(super) locality: Locality,
}

/// The choice of pages by repeated requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Locality {
    /// Exponent of the ages.
    pub(super) recency: f64,
    /// Share of the repeated requests that go to popular pages, not to recent ones.
    pub(super) popular_share: f64,
    /// Exponent of the popularity.
    pub(super) popularity: f64,
    /// Whether any page of the part can be popular, and not only pages that were already new.
    pub(super) is_settled: bool,
}

/// The locality of the first requests of Financial1, for servers with unknown locality.
pub(super) const LOCALITY_OF_FINANCIAL: Locality =
    Locality { recency: 1.6, popular_share: 0.3, popularity: 0.6, is_settled: false };

/// Declares the parameters of a server, its generator over `ROW` and its targets.
macro_rules! server {
    (
        requests = $requests:expr;
        #[doc = $span_doc:literal]
        span = $span:expr;
        used = $used:expr;
        locality = $locality:expr;
        interval_us = $interval_us:expr;
    ) => {
        bimetal_core::parameters! {
            SPEC.name;
            /// Parameters of a server.
            pub struct Parameters {
                /// Number of requests; by default that of the row.
                pub requests: u64 = $requests, in 1..=1_000_000_000;
                #[doc = $span_doc]
                pub span: ByteSize = ByteSize($span);
                /// Bytes of all touched pages. Half of the default is touched by half of the row's requests; after them the pages repeat.
                pub used: ByteSize = ByteSize($used);
                /// Exponent of the ages of recent pages.
                pub recency: f64 = $locality.recency, in 0.0..=4.0;
                /// Share of the repeated requests that go to popular pages instead of recent ones.
                pub popular_share: f64 = $locality.popular_share, in 0.0..=1.0;
                /// Exponent of the popularity.
                pub popularity: f64 = $locality.popularity, in 0.0..=4.0;
                /// Whether any page can be popular, and not only one that was requested before: as if the server had run for long.
                pub settled: bool = $locality.is_settled;
                /// Mean time between arrivals in microseconds.
                pub interval_us: f64 = $interval_us, in 0.0..=1e9;
            }
        }

        /// The requests.
        ///
        /// # Errors
        /// An address space or a working set that is too small.
        pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<bimetal_core::workload::Requests, String> {
            let Parameters { requests, span, used, recency, popular_share, popularity, settled, interval_us } =
                *parameters;
            let is_settled = settled;
            let locality = $crate::workload::server::Locality { recency, popular_share, popularity, is_settled };
            let settings = $crate::workload::server::ServerSettings { requests, span, used, interval_us, locality };
            ROW.generate(settings, seed)
        }

        /// The row as targets, scaled to the given requests and working set.
        fn targets(
            settings: &[(String, String)],
        ) -> Result<Vec<bimetal_core::workload::Target>, bimetal_core::scheme::ParameterError> {
            let (row, here) = (Parameters::default(), Parameters::parse(settings)?);
            let part = |here: u64, row: u64| here as f64 / row as f64;
            Ok(ROW.targets(part(here.requests, row.requests), part(here.used.0, row.used.0)))
        }
    };
}
pub(super) use server;

/// The reads or writes of a part.
#[derive(Debug)]
struct Stream {
    op: Op,
    /// First page of the part.
    first: u64,
    /// Pages of the part.
    pages: u64,
    /// The page of the part where a round begins.
    start: u64,
    /// Pages that were new in this round. All of them count after the first round.
    touched: u64,
    /// Whether this is not the first round.
    again: bool,
    is_settled: bool,
    ages: Zipf,
    ranks: Zipf,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    New,
    Recent,
    Popular,
}

/// The generator.
#[derive(Debug)]
struct Server {
    left: u64,
    state: u64,
    gaps: Gaps,
    reads: Traffic,
    writes: Traffic,
    streams: Vec<Stream>,
    /// Streams and orders, each with its probability for a request that does not continue another.
    starts: Vec<((usize, Order), f64)>,
    /// The stream that the next request continues.
    running: Option<usize>,
    extent: u64,
    /// Order of the extents in the address space.
    places: Permutation,
}

impl Traffic {
    fn mean_pages(&self) -> f64 {
        self.sizes.iter().map(|&(pages, share)| f64::from(pages) * share).sum()
    }

    fn requests_of(&self, gib: f64) -> f64 {
        gib * GIB_PAGES / self.mean_pages()
    }
}

impl Row {
    /// GiB that are only read, read and written, and only written.
    fn parts_gib(&self) -> [f64; 3] {
        let (read, written) = (self.reads.set_gib, self.writes.set_gib);
        [self.set_gib - written, read + written - self.set_gib, self.set_gib - read]
    }

    /// The requests.
    ///
    /// # Errors
    /// An address space or a working set that is too small.
    pub(super) fn generate(&self, settings: ServerSettings, seed: u64) -> Result<Requests, String> {
        let [span, used] = [settings.span, settings.used].map(|size| size.0 / PAGE_BYTES / self.extent);
        if used > span {
            return Err(format!(
                "{} cannot be used of a span of {}, in extents of {}; set a smaller `used` or a larger `span`",
                settings.used,
                settings.span,
                ByteSize(self.extent * PAGE_BYTES)
            ));
        }
        let parts = self.parts(used)?;
        let mut streams = Vec::new();
        let mut shares = Vec::new();
        for (op, traffic, parts) in [(Op::Read, &self.reads, &parts[..2]), (Op::Write, &self.writes, &parts[1..])] {
            for &PageShare { gib, first, pages, both } in parts.iter().filter(|part| part.pages > 0) {
                let repeated_gib = (traffic.gib - traffic.set_gib) * gib / traffic.set_gib;
                let start = if both && op == Op::Read { pages / 2 } else { 0 };
                let [ages, ranks] =
                    [settings.locality.recency, settings.locality.popularity].map(|theta| Zipf::new(pages, theta));
                let (stream, is_settled) = (streams.len(), settings.locality.is_settled);
                streams.push(Stream { op, first, pages, start, touched: 0, again: false, is_settled, ages, ranks });
                let popular = settings.locality.popular_share;
                // Only the first requests of runs are started here.
                shares.push(((stream, Order::New), traffic.requests_of(gib) * (1.0 - traffic.continued)));
                shares.push(((stream, Order::Recent), traffic.requests_of(repeated_gib) * (1.0 - popular)));
                shares.push(((stream, Order::Popular), traffic.requests_of(repeated_gib) * popular));
            }
        }
        let all: f64 = shares.iter().map(|(_, requests)| requests).sum();
        let mut state = seed;
        Ok(Box::new(Server {
            left: settings.requests,
            gaps: Gaps::new(settings.interval_us, self.bursts),
            reads: self.reads,
            writes: self.writes,
            streams,
            starts: shares.into_iter().map(|(of, requests)| (of, requests / all)).collect(),
            running: None,
            extent: self.extent,
            places: Permutation::new(span, random::split_mix(&mut state)),
            state,
        }))
    }

    /// Targets from the row for a part of its requests and of its working set. A round through the working set takes
    /// the same part of the requests. A shorter stream reads and writes proportionally fewer pages. Of the pages that
    /// are both read and written, reads and writes reach different ones until half a round.
    pub(super) fn targets(&self, requests: f64, used: f64) -> Vec<Target> {
        const KIB: f64 = 1024.0;
        const GIB: f64 = (1 << 30) as f64;
        let Self { source, source_of_sets, reads, writes, read_share, set_gib, .. } = *self;
        let round = (requests / used).min(1.0);
        let [_, both_gib, _] = self.parts_gib();
        let read_and_written = both_gib * (2.0 * round - 1.0).max(0.0);
        let touched_gib = (reads.set_gib + writes.set_gib) * round - read_and_written;
        let mean = |name, published, measure| Target::new(name, source, published, Goal::Within(0.03), measure);
        let amount = |name, published, measure| Target::new(name, source, published, Goal::Within(0.05), measure);
        let set = |name, published, part, measure| {
            Target::new(name, source_of_sets, published, Goal::Within(0.05), measure).of_part(part * used)
        };
        vec![
            mean("mean size of a read (KiB)", reads.mean_kib, |profile| Some(profile.reads.mean_bytes / KIB)),
            mean("mean size of a write (KiB)", writes.mean_kib, |profile| Some(profile.writes.mean_bytes / KIB)),
            amount("read (GiB)", reads.gib, |profile| Some(profile.reads.bytes as f64 / GIB)).of_part(requests),
            amount("written (GiB)", writes.gib, |profile| Some(profile.writes.bytes as f64 / GIB)).of_part(requests),
            amount("share of bytes that are read", read_share, |profile| {
                share(profile.reads.bytes, profile.reads.bytes + profile.writes.bytes)
            }),
            set("pages touched (GiB)", set_gib, touched_gib / set_gib, |profile| {
                Some(profile.footprint.touched_bytes as f64 / GIB)
            }),
            set("pages read (GiB)", reads.set_gib, round, |profile| Some(profile.footprint.read_bytes as f64 / GIB)),
            set("pages written (GiB)", writes.set_gib, round, |profile| {
                Some(profile.footprint.written_bytes as f64 / GIB)
            }),
        ]
    }

    /// The parts, with `extents` extents in total: at least one for each part in the row. The last part takes rounding
    /// remainders.
    fn parts(&self, extents: u64) -> Result<[PageShare; 3], String> {
        let sizes = self.parts_gib();
        let present = |gib: f64| gib > 1e-9;
        let mut left = sizes.iter().filter(|&&gib| present(gib)).count() as u64;
        if extents < left {
            return Err(format!(
                "{left} kinds of pages need at least {}; set a larger `used`",
                ByteSize(left * self.extent * PAGE_BYTES)
            ));
        }
        let mut first = 0;
        Ok([0, 1, 2].map(|index| {
            let gib = sizes[index];
            let mut length = 0;
            if present(gib) {
                left -= 1;
                let most = extents - first - left;
                let share = whole((gib / self.set_gib * extents as f64).round());
                length = if left == 0 { most } else { share.clamp(1, most) };
            }
            let part = PageShare { gib, first: first * self.extent, pages: length * self.extent, both: index == 1 };
            first += length;
            part
        }))
    }
}

/// Pages of one kind.
#[derive(Clone, Copy, Debug)]
struct PageShare {
    /// Their size in the row, in GiB.
    gib: f64,
    first: u64,
    pages: u64,
    /// Whether they are read and written.
    both: bool,
}

impl Stream {
    /// The page of the part where a request begins, before it is fitted into an extent.
    fn page(&self, order: Order, state: &mut u64) -> u64 {
        let next = self.start + self.touched;
        // Draws beyond the pages so far are spread over them.
        let so_far = if self.again { self.pages } else { self.touched.max(1) };
        let page = match order {
            Order::New => next,
            Order::Recent => next + self.pages - 1 - self.ages.draw(state) % so_far,
            Order::Popular if self.is_settled => self.start + self.ranks.draw(state),
            Order::Popular => self.start + self.ranks.draw(state) % so_far,
        };
        page % self.pages
    }

    /// Continues after a request for new pages that ends at `end`.
    fn advance(&mut self, end: u64) {
        self.touched = (end + self.pages - self.start - 1) % self.pages + 1;
        if self.touched == self.pages {
            self.touched = 0;
            self.again = true;
        }
    }
}

impl Iterator for Server {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        let arrival_ns = self.gaps.next(&mut self.state);
        let (index, order) = match self.running {
            Some(index) => (index, Order::New),
            None => choose(&mut self.state, &self.starts)?,
        };
        let stream = &mut self.streams[index];
        let traffic = if stream.op == Op::Read { &self.reads } else { &self.writes };
        let pages = u64::from(choose(&mut self.state, traffic.sizes)?);
        let page = stream.page(order, &mut self.state);
        let in_extent = (page % self.extent).min(self.extent - pages);
        let page = page - page % self.extent + in_extent;
        self.running = None;
        if matches!(order, Order::New) {
            stream.advance(page + pages);
            let continued = random::unit(&mut self.state) < traffic.continued;
            self.running = continued.then_some(index);
        }
        let place = self.places.of((stream.first + page) / self.extent) * self.extent + in_extent;
        let sectors = sectors(pages * PAGE_BYTES);
        Some(Request { arrival_ns, sector: place * PAGE_SECTORS, sectors, op: stream.op, handle: 0 })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

/// Common code of these workloads' tests.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use bimetal_core::part::reuse_stack::ReuseStacks;
    use bimetal_core::profile::{CurvePlan, Profile};

    fn close(found: f64, expected: f64, tolerance: f64, what: &str) {
        assert!((found / expected - 1.0).abs() <= tolerance, "{what}: {found} is not {expected} within {tolerance}");
    }

    /// Checks that the row's targets do not cover: the row's consistency, and the assumed share of requests that
    /// continue the previous one.
    pub(in crate::workload) fn assert_row(row: &Row, requests: u64, prefix: Requests, sequential: f64) {
        let published = row.reads.requests_of(row.reads.gib) + row.writes.requests_of(row.writes.gib);
        close(requests as f64, published, 0.04, "requests");
        for traffic in [&row.reads, &row.writes] {
            close(traffic.sizes.iter().map(|(_, share)| share).sum(), 1.0, 1e-9, "shares of sizes");
            assert!(traffic.sizes.iter().all(|&(pages, _)| u64::from(pages) <= row.extent));
        }
        let found = Profile::of(&prefix.collect::<Vec<_>>(), &CurvePlan::default()).sequential_share.unwrap();
        assert!((found - sequential).abs() < 0.01, "sequential share {found}");
    }

    /// Hit rates of page accesses of one kind in LRU stacks of these sizes in pages, and finally in an infinite one.
    pub(in crate::workload) fn hits(requests: &[Request], op: Op, stacks: &[u32]) -> Vec<f64> {
        let mut stack = ReuseStacks::<1>::new(1 << 20);
        let mut counts = vec![0u64; stacks.len() + 1];
        let mut accesses = 0;
        for request in requests.iter().filter(|request| request.op == op) {
            for page in request.sector / PAGE_SECTORS..request.end() / PAGE_SECTORS {
                accesses += 1;
                if let Some(position) = stack.touch(u32::try_from(page).unwrap()) {
                    *counts.last_mut().unwrap() += 1;
                    for (count, _) in counts.iter_mut().zip(stacks).filter(|(_, pages)| position < **pages) {
                        *count += 1;
                    }
                }
            }
        }
        counts.iter().map(|&count| count as f64 / accesses as f64).collect()
    }
}
