//! `dac`: pages move up a class when they are overwritten, and down one when they are copied (*Dynamic dAta Clustering*: Chiang, Lee,
//! Chang, Software: Practice and Experience 1999).
//!
//! ```text
//!            ── overwritten ─▶
//! class 0     1     2     3     4     5        cold … hot: a stream each
//!            ◀─ copied ──
//! ```
//!
//! Data written for the first time are in the coldest class. Pages of a class share blocks, whether the host or the
//! collection wrote them. So the class of a page is that of its block, and no table by page is needed.

use serde::{Deserialize, Serialize};

use super::space::{OneRegion, logical_pages};
use super::{Regions, SchemeSpec, Shape};
use crate::region::log::{Blocks, Capacity, Collection, Log, Separation, VictimPolicy, Victims};
use crate::region::page_table::PageTable;
use crate::region::valid_counts::ValidCounts;
use crate::save::Table;
use crate::units::RegionId;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "dac",
    summary: "one region, six streams: up when overwritten, down when copied",
    source: "Chiang, Lee, Chang, DAC, Software: Practice and Experience 1999",
    regions: Regions::One,
    parameters: Parameters::specs,
    adapts: &[],
    version: 3,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `dac`.
    pub struct Parameters {
        /// Erased blocks for each die at or below which blocks are collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// Share of garbage (invalid pages of full blocks), in percent of the pages in use, above which a block is collected after
        /// each write request, as in log-structured stores (SepBIT, FAST 2022, section 2.1). 0 means that only erased blocks count.
        pub gc_garbage_percent: f64 = 0.0, in 0.0..=90.0;
        /// Whether idle time is used to collect up to twice `gc_free_blocks`, as far as the spare area allows.
        pub idle_gc: bool = false;
        /// How the block to be collected is chosen.
        pub victim: VictimPolicy = VictimPolicy::CostBenefit;
    }
}

/// Classes: streams.
const CLASSES: usize = 6;

/// State of `dac` per block.
#[derive(Debug, Serialize, Deserialize)]
pub struct Dac {
    victims: Victims,
    #[serde(with = "crate::save::fixed")]
    gc_garbage_percent: f64,
    /// By block: its class.
    classes: Table<u8>,
}

impl Separation<CLASSES> for Dac {
    const POOLED: bool = true;

    fn written(&mut self, _: u32, old: Option<usize>) -> usize {
        self.victims.note_written();
        old.map_or(0, |block| (usize::from(self.classes[block]) + 1).min(CLASSES - 1))
    }

    fn copied(&self, _: u32, victim: usize) -> usize {
        usize::from(self.classes[victim].saturating_sub(1))
    }

    fn victim(&mut self, counts: &mut ValidCounts, entries: std::ops::Range<usize>) -> Option<usize> {
        self.victims.choose(counts, entries)
    }

    fn opened(&mut self, block: usize, _: u32, stream: usize) {
        self.classes[block] = stream as u8;
    }

    #[inline(always)]
    fn gc_garbage_percent(&self) -> f64 {
        self.gc_garbage_percent
    }

    fn sealed(&mut self, block: usize) {
        self.victims.note_sealed(block);
    }

    fn check(&self, _: &PageTable, blocks: &Blocks<CLASSES>) -> Result<(), String> {
        self.victims.check()?;
        if self.classes.len() != blocks.entries() || self.classes.iter().any(|&class| usize::from(class) >= CLASSES) {
            return Err("a block has a class that does not exist".into());
        }
        Ok(())
    }
}

/// The state of `dac`.
pub type DacMapped = OneRegion<Log<Dac, CLASSES>>;

impl DacMapped {
    /// A scheme over the device's only region.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let (geometry, pages) = (shape.regions[0].geometry, logical_pages(shape)?);
        let collection = Collection { gc_free_blocks: parameters.gc_free_blocks, idle_gc: parameters.idle_gc };
        let separation = |blocks: &Blocks<CLASSES>| {
            let blocks = blocks.entries();
            let Parameters { victim, gc_garbage_percent, .. } = parameters;
            Dac { victims: Victims::new(victim, blocks), gc_garbage_percent, classes: vec![0; blocks].into() }
        };
        Log::pooled(RegionId(0), geometry, Capacity::whole(&geometry, pages), collection, separation).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Geometry;

    #[test]
    fn overwritten_pages_go_up_and_copied_ones_down() {
        let victims = Victims::new(VictimPolicy::Greedy, 3);
        let mut dac = Dac { victims, gc_garbage_percent: 0.0, classes: vec![0; 3].into() };
        assert_eq!((dac.written(1, None), dac.written(1, Some(0)), dac.copied(1, 0)), (0, 1, 0));
        dac.opened(1, 0, 5);
        assert_eq!((dac.written(1, Some(1)), dac.copied(1, 1)), (5, 4));
        let table = PageTable::new(Geometry::new(4096, 4, 4, 1).unwrap(), 9);
        let blocks = |blocks| Blocks::new((blocks, 1), 1, 4, 0);
        dac.check(&table, &blocks(3)).unwrap();
        assert!(dac.check(&table, &blocks(4)).is_err());
    }
}
