//! `by-size`: one region, page-mapped, three streams: pages of small writes, pages of large ones, and pages that are copied.
//!
//! Data of small writes are overwritten soon; data of large writes stay valid. If each kind has its own blocks, blocks
//! of the first kind are nearly empty when they are collected. A page belongs to a large write if enough consecutive
//! pages were written before it.

use std::ops::Range;

use bimetal_core::region::log::{Blocks, Capacity, Collection, Log, Separation, VictimPolicy, Victims};
use bimetal_core::region::page_table::PageTable;
use bimetal_core::region::valid_counts::ValidCounts;
use bimetal_core::scheme::{OneRegion, Regions, SchemeSpec, Shape, logical_pages};
use bimetal_core::units::RegionId;
use serde::{Deserialize, Serialize};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "by-size",
    summary: "one region, streams for small writes, large writes and copies",
    source: "an example of a scheme in a crate of its own",
    regions: Regions::One,
    parameters: Parameters::specs,
    adapts: &[],
    version: 1,
};

bimetal_core::parameters! {
    SPEC.name;
    /// Parameters of `by-size`.
    pub struct Parameters {
        /// Number of consecutively written pages from which they count as a large write.
        pub large_pages: u32 = 8, in 1..=1_000_000;
        /// Erased blocks of a die at or below which it is collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// How the block to be collected is chosen.
        pub victim: VictimPolicy = VictimPolicy::Greedy;
    }
}

/// Streams.
const SMALL: usize = 0;
const LARGE: usize = 1;
const STREAMS: usize = 3;

/// The policy: which pages share blocks, and which block is collected.
#[derive(Debug, Serialize, Deserialize)]
pub struct BySize {
    victims: Victims,
    #[serde(with = "bimetal_core::save::fixed")]
    large_pages: u32,
    /// The page that would continue the write, and how many pages it has so far.
    next: u32,
    run: u32,
}

impl Separation<STREAMS> for BySize {
    /// All copies go to the last stream, and each die is collected separately.
    const POOLED: bool = false;

    fn written(&mut self, logical: u32, _: Option<usize>) -> usize {
        self.victims.note_written();
        self.run = if logical == self.next { self.run.saturating_add(1) } else { 1 };
        self.next = logical.wrapping_add(1);
        if self.run >= self.large_pages { LARGE } else { SMALL }
    }

    fn victim(&mut self, counts: &mut ValidCounts, entries: Range<usize>) -> Option<usize> {
        self.victims.choose(counts, entries)
    }

    fn sealed(&mut self, block: usize) {
        self.victims.note_sealed(block);
    }

    fn check(&self, _: &PageTable, _: &Blocks<STREAMS>) -> Result<(), String> {
        self.victims.check()
    }
}

/// A scheme over the device's only region.
///
/// # Errors
/// Too little spare area.
pub fn new(shape: &Shape, parameters: Parameters) -> Result<OneRegion<Log<BySize, STREAMS>>, String> {
    let (geometry, pages) = (shape.regions[0].geometry, logical_pages(shape)?);
    let Parameters { large_pages, gc_free_blocks, victim } = parameters;
    let collection = Collection { gc_free_blocks, idle_gc: false };
    let separation = |blocks| BySize { victims: Victims::new(victim, blocks), large_pages, next: 0, run: 0 };
    Log::with(RegionId(0), geometry, Capacity::whole(&geometry, pages), collection, separation).map(OneRegion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_core::scheme::conformance::{self, Subject};

    #[test]
    fn it_is_held_to_what_all_schemes_are() {
        conformance::holds(&Subject::of(&SPEC, new), &[("large_pages", "2")]);
    }

    #[test]
    fn pages_that_follow_each_other_are_of_a_large_write() {
        let victims = Victims::new(VictimPolicy::Greedy, 9);
        let mut policy = BySize { victims, large_pages: 3, next: 0, run: 0 };
        assert_eq!([7, 8, 9, 10, 3].map(|page| policy.written(page, None)), [SMALL, SMALL, LARGE, LARGE, SMALL]);
    }
}
