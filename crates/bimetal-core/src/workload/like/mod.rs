//! A generator that is fitted to a trace. It generates any number of requests that resemble the trace.
//!
//! Pages of 4 KiB are kept in an LRU stack. A request goes to the page at a position of the stack, with the
//! distribution of positions in the trace: the stack model of Mattson and others (IBM Systems Journal 1970), used to
//! make references by Thiébaut, Wolf and Stone (*Synthetic traces for trace-driven simulation of cache memories*, IEEE
//! Transactions on Computers 41(4), 1992). The parts of a request are drawn in this order, each from a table of counts:
//!
//! 1. Its kind (read, write, trim). It depends on the previous kind.
//! 2. Whether it continues at the end of one of the last 32 requests of its kind. If so, also which one, the age of its
//!    last page (since its last touch, by quadruplings, or never touched), and whether it leaves touched pages for new
//!    ones. This depends on whether the previous request has the same kind, and whether the last request of its kind
//!    went to new pages.
//! 3. Otherwise, whether it begins at a new page, which was never touched. This depends on its kind and on the number
//!    of previous requests of its kind, by doublings, because new pages become rarer.
//! 4. A new page is next to touched ones, or in a touched extent of 64 KiB, or far from others. Of the last group, 256
//!    places of the trace are kept, and others lie between them.
//! 5. Otherwise it begins at a page of the stack. The position (four bins for each doubling) again depends on the
//!    number of previous requests, because the stack grows. Further properties are drawn along with the position:
//!    whether the page was read and written, how often it was touched (by doublings), the length of the last request
//!    that began there, if there was one, and the age of the last page. Among a limited number of pages in the bin, the
//!    most similar one is used.
//! 6. Its length and alignment: those of the last request that began there, if that is as long as drawn, or drawn
//!    depending on 1 to 5.
//! 7. The gap to the next request. It depends on the quartile of the last gap among all gaps, and on the octile of the
//!    mean logarithm of the last 32 or so gaps.
//!
//! Nothing else of the trace is kept. Hit rates of caches are not fitted but follow; [`compare`] shows how accurately.
//!
//! Limits. Changes during a trace, such as phases, are averaged. Reads and writes depend on each other only by 1 and 5.
//! Only the first page of a request and the age of its last page are drawn, not the pages between them. Gaps depend on
//! some 32 gaps before them, so that loads over longer times are smoother than in the trace. Beyond the trace's length,
//! new pages become rarer as in its last two doublings. Trims do not make pages new again.

mod arrivals;
mod compare;
mod fit;
mod generator;
mod pages;
mod table;

pub use compare::{Compared, Comparison, Statistic, compare};

use crate::request::{Op, PAGE_BYTES, PAGE_SECTORS, Request};
use crate::workload::Requests;
use pages::{Age, Class, MEMORY_PER_PAGE, ROLES};
use table::{Ratio, Table};

/// Pages of an extent.
const EXTENT_PAGES: u64 = crate::compact::EXTENT_BYTES / PAGE_BYTES;

const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// Number of remembered ends of requests that others may continue, for each kind.
const STREAMS: usize = 32;

/// Largest number of page references in a fit, which takes some minutes.
const REFERENCES_MAX: u64 = 1 << 29;

/// A trace to which no model can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// The trace has no reads or writes.
    #[error("the trace has no reads and no writes to fit a generator to")]
    NoData,
    /// The trace reads or writes more pages than a fit can follow.
    #[error(
        "the trace reads and writes more than {} TiB, which takes too long to fit; hint: add `--limit` to take a part",
        (REFERENCES_MAX * PAGE_BYTES) >> 40
    )]
    TooLong,
    /// The trace touches more than can be addressed.
    #[error("the trace touches more than 16 TiB; hint: add `--limit` or `--volumes` to take a part")]
    TooLarge,
}

/// Length of a request, and its start within the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    sectors: u32,
    /// Sectors from the beginning of the page.
    offset: u8,
}

impl Shape {
    fn of(request: &Request) -> Self {
        Self { sectors: request.sectors, offset: (request.sector % PAGE_SECTORS) as u8 }
    }

    /// Whether it consists of whole pages.
    fn is_whole(self) -> bool {
        self.offset == 0 && u64::from(self.sectors).is_multiple_of(PAGE_SECTORS)
    }

    /// Number of pages that it touches.
    fn pages(self) -> u64 {
        (u64::from(self.offset) + u64::from(self.sectors)).div_ceil(PAGE_SECTORS)
    }
}

/// Index of the shapes of a request that continues another: on touched pages, on new pages, or from touched to new
/// pages.
fn continued(age: Age, leaves: bool) -> usize {
    usize::from(age == Age::NEW) + usize::from(leaves)
}

/// The first page whose first sector the request contains, or else its last page.
fn first_whole_page(sector: u64, sectors: u32) -> u64 {
    sector.div_ceil(PAGE_SECTORS).min((sector + u64::from(sectors) - 1) / PAGE_SECTORS)
}

/// Place of a new page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Directly after a touched page.
    Beside,
    /// In a touched extent.
    Within,
    /// In an untouched extent.
    Apart,
}

/// The tables of one kind of request.
#[derive(Clone, Debug)]
struct Kind {
    /// The rank of the stream that a request continues, 0 for the most recent of its kind, or [`STREAMS`] for none; the
    /// age of its last page; and whether it leaves touched pages for new ones. By whether the previous request has the
    /// same kind, and whether the last of the kind went to new pages.
    streams: [[Table<(u8, Age, bool)>; 2]; 2],
    /// Whether a request that continues no other begins at a new page, by the power of two of the number of previous
    /// requests of its kind.
    new: Vec<Ratio>,
    /// Exponent of the power law by which new pages become rarer beyond the trace's length.
    fading: f64,
    places: Table<Place>,
    /// Classes and bins of the pages at which other requests begin, and ages of their last pages. By the number of
    /// previous requests, in quadruplings.
    reused: Vec<Table<(Class, u8, Age)>>,
    /// Whether a request repeats the last one at its first page, by the role of the page.
    same: [Ratio; ROLES],
    /// Shapes of requests that continue another.
    shapes_continued: [Table<Shape>; 3],
    shapes_new: Table<Shape>,
    /// Shapes of requests that repeat the last one at their first page, by its role.
    shapes_same: [Table<Shape>; ROLES],
    /// Shapes of other requests that begin at a touched page, by its role. Those that end at a new page are separate.
    shapes_reused: [Table<Shape>; ROLES],
    shapes_leaving: Table<Shape>,
    /// Number of requests of the kind.
    requests: u64,
}

/// Bytes of memory that the fit to a trace takes that touches this number of pages.
pub fn fit_memory_bytes(touched_pages: u64) -> u64 {
    touched_pages.saturating_mul(MEMORY_PER_PAGE)
}

/// The fitted model.
#[derive(Clone, Debug)]
pub struct Model {
    requests: u64,
    span_pages: u64,
    touched_pages: u64,
    /// Kinds by the previous kind; index 0 before the first request.
    kinds: [Table<u8>; 4],
    of_kind: [Kind; 3],
    /// New pages far from others, in order of their addresses: all of them, or evenly spaced quantiles.
    apart: Vec<u32>,
    arrivals: arrivals::Arrivals,
}

impl Model {
    /// Fits a model to a trace in order of arrival.
    ///
    /// # Errors
    /// A trace without data or with too much.
    pub fn fit(requests: &[Request]) -> Result<Self, FitError> {
        fit::fit(requests)
    }

    /// `requests` requests that resemble the trace.
    pub fn generate(&self, requests: u64, seed: u64) -> Requests {
        Box::new(generator::Generator::new(self.clone(), requests, seed))
    }

    /// Bytes of memory that the generation of `requests` requests takes, without the requests.
    pub fn memory_bytes(&self, requests: u64) -> u64 {
        self.capacity(requests) * MEMORY_PER_PAGE
    }

    /// Largest number of touched pages among `requests` requests: room for twice the trace's pages for each time that
    /// its number of requests is generated. Beyond it no new pages are used.
    fn capacity(&self, requests: u64) -> u64 {
        let rounds = requests.div_ceil(self.requests).saturating_add(1);
        self.touched_pages.saturating_mul(rounds).min(self.span_pages).min(u64::from(u32::MAX) / 8)
    }

    /// Number of requests in the trace.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Number of numbers in the model.
    pub fn numbers(&self) -> usize {
        let of_kind = |kind: &Kind| {
            2 * kind.streams.iter().flatten().map(Table::len).sum::<usize>()
                + 2 * (kind.new.len() + ROLES)
                + kind.places.len()
                + 3 * kind.reused.iter().map(Table::len).sum::<usize>()
                + 2 * (kind.shapes_new.len() + kind.shapes_leaving.len())
                + 2 * kind.shapes_continued.iter().map(Table::len).sum::<usize>()
                + 2 * kind.shapes_same.iter().chain(&kind.shapes_reused).map(Table::len).sum::<usize>()
        };
        self.of_kind.iter().map(of_kind).sum::<usize>()
            + self.kinds.iter().map(Table::len).sum::<usize>()
            + self.apart.len()
            + self.arrivals.numbers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SECTOR_BYTES;
    use crate::workload;

    fn workload(name: &str, settings: &[(&str, &str)]) -> Vec<Request> {
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
        workload::build(name, &settings, 1).unwrap().collect()
    }

    fn compared(trace: &[Request]) -> Comparison {
        let model = Model::fit(trace).unwrap();
        let generated: Vec<Request> = model.generate(trace.len() as u64, 7).collect();
        assert_eq!(generated, model.generate(trace.len() as u64, 7).collect::<Vec<_>>());
        let comparison = compare(trace, &generated, 7).unwrap();
        println!("{} numbers for {} requests", model.numbers(), trace.len());
        for row in comparison.fitted.iter().chain(&comparison.held_back) {
            println!("  {:60} {:>14.4} {:>14.4} {:>+8.3}", row.name, row.trace, row.generated, row.difference);
        }
        comparison
    }

    #[test]
    fn a_fit_gives_a_workload_back() {
        let small = [("requests", "100000"), ("span", "400MiB")];
        for (name, settings) in
            [("zipf", &small[..]), ("uniform", &small), ("sequential", &[("requests", "20000"), ("span", "1GiB")])]
        {
            println!("{name}");
            let comparison = compared(&workload(name, settings));
            for row in &comparison.fitted {
                assert!(row.difference.abs() < 0.1, "{name}: {row:?}");
            }
            for row in comparison.held_back.iter().filter(|row| row.name.starts_with("hits, cache")) {
                assert!(row.difference.abs() < 0.05, "{name}: {row:?}");
            }
        }
    }

    /// Few requests fill most of the stack of pages. Small requests that find no page of their own there stay small.
    #[test]
    fn rare_large_requests_stay_rare() {
        let comparison = compared(&workload("kv-cache", &[("requests", "50000"), ("span", "128MiB")]));
        let size = comparison.fitted.iter().filter(|row| row.name.starts_with("mean size"));
        assert!(size.clone().all(|row| row.difference.abs() < 0.3), "{:?}", size.collect::<Vec<_>>());
    }

    #[test]
    fn more_or_fewer_requests_go_on_alike() {
        let trace = workload("zipf", &[("requests", "20000"), ("span", "64MiB")]);
        let model = Model::fit(&trace).unwrap();
        let generate = |requests, seed| model.generate(requests, seed).collect::<Vec<_>>();
        let long = generate(60_000, 1);
        assert_eq!((long.len(), long[..5000] == generate(5000, 1)), (60_000, true));
        assert_ne!(long[..5000], generate(5000, 2));
        assert!(long.is_sorted_by_key(|request| request.arrival_ns));
        assert!(long.iter().all(|request| request.sectors > 0 && request.end() <= (64 << 20) / SECTOR_BYTES));
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let request = |op, sector, sectors| Request { arrival_ns: 0, sector, sectors, op, handle: 0 };
        assert_eq!(Model::fit(&[]).unwrap_err(), FitError::NoData);
        assert_eq!(Model::fit(&[request(Op::Trim, 0, 8)]).unwrap_err(), FitError::NoData);
        let long = vec![request(Op::Read, 0, u32::MAX); 2];
        assert_eq!(Model::fit(&long).unwrap_err(), FitError::TooLong);
        // One request, also at the end of a large disk.
        for sector in [0, 7, 1 << 40] {
            let model = Model::fit(&[request(Op::Write, sector, 9)]).unwrap();
            assert_eq!(model.generate(100, 1).filter(|request| request.sectors == 9).count(), 100);
        }
    }

    #[test]
    fn trims_stay_trims() {
        let request = |nth: u64| {
            let op = [Op::Write, Op::Read, Op::Trim][(nth % 3) as usize];
            Request { arrival_ns: nth * 1000, sector: nth * 7 % 512 * 8, sectors: 8, op, handle: 0 }
        };
        let trace: Vec<Request> = (0..3000).map(request).collect();
        let generated: Vec<Request> = Model::fit(&trace).unwrap().generate(3000, 1).collect();
        assert_eq!(generated.iter().filter(|request| request.op == Op::Trim).count(), 1000);
    }
}
