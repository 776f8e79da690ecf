//! `pagemap`: one region, page-mapped, two streams, greedy garbage collection. The plain baseline.
//!
//! The mapping unit is the flash page. A write that covers part of a page reads the old page and programs the merged
//! one (read-modify-write). Host writes go to the dies in turn. Each die is collected separately, in the foreground,
//! when it has only `gc_free_blocks` erased blocks left. Copied pages have their own open blocks. Write amplification
//! under uniform random writes depends only on the spare area; [`crate::model::write_amplification`] has the closed
//! forms.

use serde::{Deserialize, Serialize};

use super::space::{OneRegion, logical_pages};
use super::{Regions, SchemeSpec, Shape};
use crate::region::log::{Blocks, Capacity, Collection, Layout, Log, Separation, VictimPolicy, Victims};
use crate::region::page_table::PageTable;
use crate::region::valid_counts::ValidCounts;
use crate::units::RegionId;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "pagemap",
    summary: "one region, page map, greedy garbage collection",
    source: "baseline; greedy cleaning as in Desnoyers, SYSTOR 2012",
    regions: Regions::One,
    parameters: Parameters::specs,
    adapts: &[],
    version: 5,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `pagemap`.
    pub struct Parameters {
        /// Erased blocks of a die at or below which it is collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// Share of garbage (invalid pages of full blocks), in percent of the pages in use, above which a block is collected after
        /// each write request, as in log-structured stores (SepBIT, FAST 2022, section 2.1). 0 means that only erased blocks count.
        pub gc_garbage_percent: f64 = 0.0, in 0.0..=90.0;
        /// Whether idle time is used to collect up to twice `gc_free_blocks`, as far as the spare area allows.
        pub idle_gc: bool = false;
        /// How the block to be collected is chosen.
        pub victim: VictimPolicy = VictimPolicy::Greedy;
        /// Whether each die has its own blocks, or blocks form lines across all dies, which are written and collected
        /// together.
        pub layout: Layout = Layout::Die;
    }
}

/// Two streams, host writes and copies, and a choice of victims.
#[derive(Debug, Serialize, Deserialize)]
pub struct TwoStreams {
    victims: Victims,
    #[serde(with = "crate::save::fixed")]
    gc_garbage_percent: f64,
}

impl Separation<2> for TwoStreams {
    const POOLED: bool = false;

    #[inline(always)]
    fn written(&mut self, _: u32, _: Option<usize>) -> usize {
        self.victims.note_written();
        0
    }

    fn victim(&mut self, counts: &mut ValidCounts, entries: std::ops::Range<usize>) -> Option<usize> {
        self.victims.choose(counts, entries)
    }

    #[inline(always)]
    fn gc_garbage_percent(&self) -> f64 {
        self.gc_garbage_percent
    }

    fn sealed(&mut self, block: usize) {
        self.victims.note_sealed(block);
    }

    fn check(&self, _: &PageTable, _: &Blocks<2>) -> Result<(), String> {
        self.victims.check()
    }
}

/// The state of `pagemap`.
pub type PageMapped = OneRegion<Log<TwoStreams, 2>>;

impl PageMapped {
    /// A scheme over the device's only region.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let (geometry, pages) = (shape.regions[0].geometry, logical_pages(shape)?);
        let Parameters { victim, gc_free_blocks, gc_garbage_percent, idle_gc, layout } = parameters;
        let collection = Collection { gc_free_blocks, idle_gc };
        let separation = |blocks| TwoStreams { victims: Victims::new(victim, blocks), gc_garbage_percent };
        let capacity = Capacity { layout, ..Capacity::whole(&geometry, pages) };
        Log::with(RegionId(0), geometry, capacity, collection, separation).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Cause, Faults, FlashOp, SimMedia, SimRegion, Simulation};
    use crate::request::{Op, Request};
    use crate::scheme::{RegionShape, Scheme};
    use crate::units::Geometry;

    /// 32 logical pages of 4 KiB on 8 blocks of 8.
    fn device() -> (SimMedia, PageMapped) {
        let chip = chip::find("chang-mlc").unwrap();
        let geometry = Geometry::new(4096, 8, 8, 1).unwrap();
        let shape = Shape {
            logical_sectors: 32 * 8,
            regions: vec![RegionShape { chip: chip.clone(), geometry }],
            disks: Vec::new(),
            seed: 1,
        };
        let scheme = PageMapped::new(&shape, Parameters::default()).unwrap();
        (SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1), scheme)
    }

    /// Host reads and programs of a request.
    fn cost(media: &mut SimMedia, scheme: &mut PageMapped, op: Op, sector: u64, sectors: u32) -> (u64, u64) {
        media.reset_counts();
        let request = Request { arrival_ns: 0, sector, sectors, op, handle: 0 };
        media.begin(&request, 0);
        scheme.serve(media, &request);
        let ledger = media.ledger();
        (ledger.total(FlashOp::Read, Cause::Host), ledger.total(FlashOp::Program, Cause::Host))
    }

    #[test]
    fn part_of_a_page_is_read_modified_and_written() {
        let (mut media, mut scheme) = device();
        assert_eq!(cost(&mut media, &mut scheme, Op::Write, 3, 2), (0, 1), "there is nothing to read yet");
        assert_eq!(cost(&mut media, &mut scheme, Op::Write, 3, 2), (1, 1));
        assert_eq!(cost(&mut media, &mut scheme, Op::Write, 0, 8), (0, 1));
        // Part of page 0, all of page 1, part of page 2, which was never written.
        assert_eq!(cost(&mut media, &mut scheme, Op::Write, 6, 11), (1, 3));
        assert_eq!(cost(&mut media, &mut scheme, Op::Read, 6, 11), (3, 0));
    }

    #[test]
    fn a_trim_gives_back_whole_pages() {
        let (mut media, mut scheme) = device();
        cost(&mut media, &mut scheme, Op::Write, 0, 24);
        cost(&mut media, &mut scheme, Op::Trim, 4, 16);
        assert_eq!(cost(&mut media, &mut scheme, Op::Read, 0, 24), (2, 0), "page 1 is gone, pages 0 and 2 are not");
        Scheme::<SimMedia>::check(&scheme).unwrap();
    }

    #[test]
    fn too_little_spare_area_is_refused_with_what_it_takes() {
        let chip = chip::find("chang-mlc").unwrap();
        let geometry = Geometry::new(4096, 8, 8, 1).unwrap();
        let shape = Shape {
            logical_sectors: 48 * 8,
            regions: vec![RegionShape { chip, geometry }],
            disks: Vec::new(),
            seed: 1,
        };
        let error = PageMapped::new(&shape, Parameters::default()).unwrap_err();
        assert!(error.contains("spare"), "{error}");
    }
}
