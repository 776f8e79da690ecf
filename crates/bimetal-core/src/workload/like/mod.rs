//! A generator that is fitted to a trace: requests like those of the trace, as many as are wanted.
//!
//! Pages of 4 KiB are kept in an LRU stack, and a request goes to the page at a position of it, drawn as often as the
//! trace's requests found theirs there: the stack model of Mattson and others (IBM Systems Journal 1970), used to make
//! references by Thiébaut, Wolf and Stone (*Synthetic traces for trace-driven simulation of cache memories*, IEEE
//! Transactions on Computers 41(4), 1992). A request is drawn in this order, each from a table of counts:
//!
//! 1. its kind (read, write, trim) after the kind of the one before;
//! 2. whether it goes on where one of the last 32 of its kind ended, where which, how old its last page is (since when it
//!    was not touched, by quadruplings, or never), and whether it begins at a new one; by whether it has the kind of the
//!    one before, and whether the last of its kind went to new pages;
//! 3. if not, whether it begins at a new page, one that was never touched; by its kind and by how many of its kind were
//!    before, each doubling apart, because new pages get rarer;
//! 4. a new page lies beside touched ones, or in a touched extent of 1 MiB, or apart; of those apart, 256 places of the
//!    trace are kept, and others lie between them;
//! 5. otherwise it begins at a page of the stack, by its position (four bins for each doubling), again by how many
//!    were before, because the stack grows; by whether the page was read and written, how often it was touched
//!    (by doublings), how long the request was that last began there, if one did, and how old the last page is; of the
//!    pages in the bin that are looked at, the one most alike is taken;
//! 6. its length and alignment: those of the request that last began there, or drawn by what 1 to 5 gave;
//! 7. the gap to the next request, by in which quarter of all gaps the last one was, and in which eighth the mean of the
//!    logarithms of the last ones, some 32.
//!
//! Nothing else of the trace is kept. How often caches hit is not fitted, but follows: [`compare`] shows how well.
//!
//! Limits. What changes in the middle of a trace, as phases do, is averaged. Reads and writes do not know of each other
//! but by 1 and 5. Of a request, its first page and the age of its last one are drawn; those between are where they are.
//! Gaps know of some 32 before them, so that loads over longer times are smoother than the trace's. Beyond the
//! trace's length new pages get rarer as they did in its last two doublings. Trims make no page new again.

mod arrivals;
mod compare;
mod fit;
mod generator;
mod pages;
mod table;

pub use compare::{Compared, Comparison, Statistic, compare};

use crate::request::{Op, PAGE_BYTES, PAGE_SECTORS, Request};
use crate::workload::Requests;
use pages::{Age, Class, ROLES};
use table::{Ratio, Table};

/// Pages of an extent.
const EXTENT_PAGES: u64 = crate::compact::EXTENT_BYTES / PAGE_BYTES;

const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// Ends of requests that others go on from, for each kind.
const STREAMS: usize = 32;

/// References to pages that a fit follows at most: some minutes.
const REFERENCES_MAX: u64 = 1 << 29;

/// A trace that nothing can be fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// It carries no data.
    #[error("the trace has no reads and no writes to fit a generator to")]
    NoData,
    /// It reads or writes more than can be followed.
    #[error(
        "the trace reads and writes more than {} TiB, which takes too long to fit; hint: add `--limit` to take a part",
        (REFERENCES_MAX * PAGE_BYTES) >> 40
    )]
    TooLong,
    /// It touches more than can be addressed.
    #[error("the trace touches more than 16 TiB; hint: add `--limit` or `--volumes` to take a part")]
    TooLarge,
}

/// Length of a request, and where it begins within its page.
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

    /// Whether it begins and ends with pages.
    fn is_whole(self) -> bool {
        self.offset == 0 && u64::from(self.sectors).is_multiple_of(PAGE_SECTORS)
    }

    /// Pages that it touches.
    fn pages(self) -> u64 {
        (u64::from(self.offset) + u64::from(self.sectors)).div_ceil(PAGE_SECTORS)
    }
}

/// Which shapes a request has that goes on from another's end: those on touched pages, those on new ones, and those that
/// leave the one for the other.
fn continued(age: Age, leaves: bool) -> usize {
    usize::from(age == Age::NEW) + usize::from(leaves)
}

/// The first page of which a request has the first sector.
fn first_whole_page(sector: u64, sectors: u32) -> u64 {
    sector.div_ceil(PAGE_SECTORS).min((sector + u64::from(sectors) - 1) / PAGE_SECTORS)
}

/// Where a new page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Behind a touched page.
    Beside,
    /// In an extent that was touched.
    Within,
    /// In another one.
    Apart,
}

/// What is drawn for requests of one kind.
#[derive(Clone, Debug)]
struct Kind {
    /// Whose end a request goes on from, 0 being the last of its kind, or [`STREAMS`] for nobody's, and the age of its
    /// last page, and whether it leaves touched pages for new ones; by whether the one before was of the same kind, and
    /// whether the last of the kind was new.
    streams: [[Table<(u8, Age, bool)>; 2]; 2],
    /// Whether a request that goes on from nobody's end begins at a new page, by the power of two of those of its kind
    /// before.
    new: Vec<Ratio>,
    /// How that fades beyond the trace's length: the exponent of its power law.
    fading: f64,
    places: Table<Place>,
    /// Classes and bins of the pages that others begin at, and ages of their last pages; by how many requests were
    /// before, each quadrupling apart.
    reused: Vec<Table<(Class, u8, Age)>>,
    /// Whether such a request is like the last one there, by the role of the page.
    same: [Ratio; ROLES],
    /// Requests that go on from another's end.
    shapes_continued: [Table<Shape>; 3],
    shapes_new: Table<Shape>,
    /// Requests that begin at a touched page, by its role; those that end at a new one are apart.
    shapes_reused: [Table<Shape>; ROLES],
    shapes_leaving: Table<Shape>,
    /// Requests of the kind.
    requests: u64,
}

/// What was fitted.
#[derive(Clone, Debug)]
pub struct Model {
    requests: u64,
    span_pages: u64,
    touched_pages: u64,
    /// Kinds by the kind before; first, by none.
    kinds: [Table<u8>; 4],
    of_kind: [Kind; 3],
    /// New pages apart from others, in order of their addresses: all, or an even choice of them.
    apart: Vec<u32>,
    arrivals: arrivals::Arrivals,
}

impl Model {
    /// Fits a generator to a trace in the order of its arrivals.
    ///
    /// # Errors
    /// A trace without data or with too much.
    pub fn fit(requests: &[Request]) -> Result<Self, FitError> {
        fit::fit(requests)
    }

    /// `count` requests like those of the trace.
    pub fn generate(&self, requests: u64, seed: u64) -> Requests {
        Box::new(generator::Generator::new(self.clone(), requests, seed))
    }

    /// Requests of the trace.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Numbers that the model consists of.
    pub fn numbers(&self) -> usize {
        let of_kind = |kind: &Kind| {
            2 * kind.streams.iter().flatten().map(Table::len).sum::<usize>()
                + 2 * (kind.new.len() + ROLES)
                + kind.places.len()
                + 3 * kind.reused.iter().map(Table::len).sum::<usize>()
                + 2 * (kind.shapes_new.len() + kind.shapes_leaving.len())
                + 2 * kind.shapes_continued.iter().map(Table::len).sum::<usize>()
                + 2 * kind.shapes_reused.iter().map(Table::len).sum::<usize>()
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
        // One request, and one at the end of a large disk.
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
