//! Address compaction: the extents of an address space that a trace touches, moved next to each other.
//!
//! Traces of large volumes touch a small part of them. Moving the touched 64-KiB extents together, in order, lets a
//! small device hold them. Offsets within an extent stay, so block-mapped schemes see the original locality; extents
//! that were neighbours remain neighbours, so a request that crosses from one to the next stays in one piece.

use std::ops::Range;

use crate::request::{Op, Request, SECTOR_BYTES, data};
use crate::touched;

/// Bytes of an extent.
pub const EXTENT_BYTES: u64 = 64 << 10;

const EXTENT_SECTORS: u64 = EXTENT_BYTES / SECTOR_BYTES;

/// A run of touched extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExtentRun {
    /// First extent, and one past the last.
    from: u64,
    to: u64,
    /// Touched extents before this run.
    base: u64,
}

/// The extents that reads and writes touch. Trims touch none: they only concern existing data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents {
    runs: Vec<ExtentRun>,
    span_bytes: u64,
}

/// Number of ranges that are collected before they are merged.
const MERGE_AT: usize = 1 << 20;

impl Extents {
    /// The extents of these requests.
    pub fn of(requests: &[Request]) -> Self {
        let touched =
            data(requests).map(|request| request.sector / EXTENT_SECTORS..(request.end() - 1) / EXTENT_SECTORS + 1);
        let ranges = match touched::bitmap(touched.clone()) {
            Some(bits) => touched::runs(&bits).collect(),
            None => sorted(touched),
        };
        let mut base = 0;
        let run = |Range { start: from, end: to }: Range<u64>| {
            let run = ExtentRun { from, to, base };
            base += to - from;
            run
        };
        let end = data(requests).map(Request::end).max().unwrap_or(0);
        Self { runs: ranges.into_iter().map(run).collect(), span_bytes: end.saturating_mul(SECTOR_BYTES) }
    }

    /// Number of touched extents.
    pub fn count(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.base + run.to - run.from)
    }

    /// Bytes of the touched extents: the size of the address space after [`Extents::compact`].
    pub fn touched_bytes(&self) -> u64 {
        self.count() * EXTENT_BYTES
    }

    /// Bytes up to the end of the last request.
    pub fn span_bytes(&self) -> u64 {
        self.span_bytes
    }

    /// Runs of touched extents, in sectors and in order. The last one ends with the last request.
    pub fn into_runs(self) -> impl Iterator<Item = Range<u64>> {
        let end = self.span_bytes / SECTOR_BYTES;
        self.runs.into_iter().map(move |run| run.from * EXTENT_SECTORS..end.min(run.to * EXTENT_SECTORS))
    }

    /// Moves the requests; the parts of trims outside of touched extents are dropped.
    pub fn compact(&self, requests: &mut Vec<Request>) {
        let mut latest = 0;
        requests.retain_mut(|request| {
            let (from, to) = match request.op {
                Op::Trim => (self.place(request.sector, &mut latest), self.place(request.end(), &mut latest)),
                Op::Read | Op::Write => {
                    let from = self.place(request.sector, &mut latest);
                    (from, from + u64::from(request.sectors))
                }
            };
            request.sector = from;
            // A trim may become shorter, never longer.
            request.sectors = (to - from) as u32;
            to > from
        });
    }

    /// The new place of a sector. A sector between the runs goes to the beginning of the next run.
    #[inline]
    fn place(&self, sector: u64, latest: &mut usize) -> u64 {
        let extent = sector / EXTENT_SECTORS;
        let within = |run: &ExtentRun| run.from <= extent && extent < run.to;
        if !self.runs.get(*latest).is_some_and(within) {
            *latest = self.runs.partition_point(|run| run.to <= extent);
        }
        match self.runs.get(*latest) {
            Some(run) if run.from <= extent => {
                (run.base + extent - run.from) * EXTENT_SECTORS + sector % EXTENT_SECTORS
            }
            Some(run) => run.base * EXTENT_SECTORS,
            None => self.count() * EXTENT_SECTORS,
        }
    }
}

/// The union of these ranges, as ranges in order that neither overlap nor touch.
fn sorted(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut union: Vec<Range<u64>> = Vec::new();
    let mut merge_at = MERGE_AT;
    for range in ranges {
        match union.last_mut() {
            Some(last) if last.start <= range.start && range.start <= last.end => last.end = last.end.max(range.end),
            _ => union.push(range),
        }
        if union.len() >= merge_at {
            merge(&mut union);
            merge_at = union.len() + MERGE_AT;
        }
    }
    merge(&mut union);
    union
}

/// Sorts ranges and joins those that overlap or touch.
fn merge(ranges: &mut Vec<Range<u64>>) {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let joined = next.start <= last.end;
        if joined {
            last.end = last.end.max(next.end);
        }
        joined
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(op: Op, sector: u64, sectors: u32) -> Request {
        Request { arrival_ns: 0, sector, sectors, op, handle: 0 }
    }

    #[test]
    fn touched_extents_move_together_in_order() {
        let mut requests = vec![
            request(Op::Write, 10 * 128 + 5, 8),
            request(Op::Read, 3 * 128 + 120, 16),
            request(Op::Write, 1 << 40, 1),
            request(Op::Trim, 0, 5 * 128),
            request(Op::Trim, 6 * 128, 128),
        ];
        let extents = Extents::of(&requests);
        assert_eq!((extents.count(), extents.touched_bytes()), (4, 256 << 10));
        assert_eq!(extents.span_bytes(), ((1 << 40) + 1) * 512);
        extents.compact(&mut requests);
        let places: Vec<(u64, u32)> = requests.iter().map(|request| (request.sector, request.sectors)).collect();
        assert_eq!(places, [(2 * 128 + 5, 8), (120, 16), (3 * 128, 1), (0, 2 * 128)]);
    }

    #[test]
    fn nothing_touches_nothing() {
        let mut requests = vec![request(Op::Trim, 0, 8)];
        let extents = Extents::of(&requests);
        assert_eq!((extents.count(), extents.span_bytes()), (0, 0));
        extents.compact(&mut requests);
        assert!(requests.is_empty());
    }

    proptest! {
        #[test]
        fn a_bitmap_and_sorting_find_the_same(raw in prop::collection::vec((0u64..3000, 1u64..200), 0..60)) {
            let ranges = raw.into_iter().map(|(start, length)| start..start + length);
            let bits = touched::bitmap(ranges.clone()).unwrap();
            prop_assert_eq!(touched::runs(&bits).collect::<Vec<_>>(), sorted(ranges));
        }

        /// Order, overlap and offsets within extents stay.
        #[test]
        fn compaction_keeps_what_schemes_see(raw in prop::collection::vec((0u64..100_000, 1u32..5000), 1..60)) {
            let before: Vec<Request> = raw.iter().map(|&(sector, sectors)| request(Op::Write, sector * 37, sectors)).collect();
            let extents = Extents::of(&before);
            let mut after = before.clone();
            extents.compact(&mut after);
            for (x, moved_x) in before.iter().zip(&after) {
                prop_assert_eq!(x.sector % EXTENT_SECTORS, moved_x.sector % EXTENT_SECTORS);
                prop_assert_eq!(x.sectors, moved_x.sectors);
                prop_assert!(moved_x.end() * SECTOR_BYTES <= extents.touched_bytes());
                for (y, moved_y) in before.iter().zip(&after) {
                    prop_assert_eq!(x.sector.cmp(&y.sector), moved_x.sector.cmp(&moved_y.sector));
                    prop_assert_eq!(x.end() <= y.sector, moved_x.end() <= moved_y.sector);
                }
            }
        }
    }
}
