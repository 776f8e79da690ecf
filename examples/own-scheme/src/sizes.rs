//! `by-size`: one region, page-mapped, three streams: pages of small writes, pages of large ones, and pages that are copied.
//!
//! An example, not a good scheme. Its idea: data of small writes are overwritten soon, data of large writes stay valid, so
//! if each kind has its own blocks, fewer pages are copied when a block is collected.

use std::ops::Range;

use bimetal_core::region::log::{Blocks, Capacity, Collection, Log, Separation, VictimPolicy, Victims};
use bimetal_core::region::page_table::PageTable;
use bimetal_core::region::valid_counts::ValidCounts;
use bimetal_core::request::{Request, SECTOR_BYTES};
use bimetal_core::scheme::{OneRegion, Regions, SchemeSpec, Shape, logical_pages};
use bimetal_core::units::{ByteSize, RegionId};
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
        /// Length of a large write, at least.
        pub large: ByteSize = ByteSize(32 << 10), in ByteSize(512)..=ByteSize(1 << 40);
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
    large_sectors: u32,
    /// Whether the current request is a large write.
    is_large: bool,
}

impl Separation<STREAMS> for BySize {
    /// All copies go to the last stream, and each die is collected separately.
    const POOLED: bool = false;

    fn begin(&mut self, request: &Request) {
        self.is_large = request.sectors >= self.large_sectors;
    }

    fn written(&mut self, _: u32, _: Option<usize>) -> usize {
        self.victims.note_written();
        if self.is_large { LARGE } else { SMALL }
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
    let Parameters { large, gc_free_blocks, victim } = parameters;
    let large_sectors = large.0.div_ceil(SECTOR_BYTES) as u32;
    let collection = Collection { gc_free_blocks, idle_gc: false };
    let separation = |blocks| BySize { victims: Victims::new(victim, blocks), large_sectors, is_large: false };
    Log::with(RegionId(0), geometry, Capacity::whole(&geometry, pages), collection, separation).map(OneRegion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_core::request::Op;
    use bimetal_core::scheme::conformance::{self, Subject};

    #[test]
    fn it_is_held_to_what_all_schemes_are() {
        conformance::holds(&Subject::of(&SPEC, new), &[("large", "8KiB")]);
    }

    #[test]
    fn pages_of_large_writes_share_blocks() {
        let victims = Victims::new(VictimPolicy::Greedy, 9);
        let mut policy = BySize { victims, large_sectors: 64, is_large: false };
        let mut stream = |sectors| {
            policy.begin(&Request { arrival_ns: 0, sector: 0, sectors, op: Op::Write, handle: 0 });
            policy.written(0, None)
        };
        assert_eq!([8, 63, 64, 256, 1].map(&mut stream), [SMALL, SMALL, LARGE, LARGE, SMALL]);
    }
}
