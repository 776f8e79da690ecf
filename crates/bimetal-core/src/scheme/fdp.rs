//! `fdp`: the host says which writes belong together (*Flexible Data Placement*, NVM Express technical proposal 4146, in NVM Command Set
//! 1.1 and Base 2.1).
//!
//! ```text
//! write with placement handle 0 … 7 ─▶ its reclaim unit handle: a stream each
//! valid page that is copied: isolation=initial ─▶ a stream for copies of all handles
//!                            isolation=persistent ─▶ the stream that it was in
//! ```
//!
//! A *reclaim unit* is collected and erased as a whole: here a block, on drives a line of blocks across all dies. Dies
//! are pooled; a reclaim unit handle writes to blocks on several of them. All are one reclaim group.
//!
//! Handle 0 is the default, for writes without a handle and for writes with a handle that the device does not have, as
//! in NVMe. If no block is erased, a copied page goes to any block with room, even of another handle; drives keep
//! blocks for that.

use serde::{Deserialize, Serialize};

use super::space::{OneRegion, logical_pages};
use super::{Regions, SchemeSpec, Shape};
use crate::region::log::{Blocks, Capacity, Collection, Log, Separation, VictimPolicy, Victims};
use crate::region::page_table::PageTable;
use crate::region::valid_counts::ValidCounts;
use crate::request::Request;
use crate::save::Table;
use crate::units::RegionId;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "fdp",
    summary: "one region, streams by the placement handles of the host",
    source: "NVM Express TP4146, Flexible Data Placement, 2022",
    regions: Regions::One,
    parameters: Parameters::specs,
    adapts: &[],
    version: 2,
};

crate::choices! {
    /// Whether pages of several handles share blocks once they are copied.
    pub enum Isolation {
        /// They do: initially isolated reclaim unit handles.
        Initial = "initial",
        /// They do not: persistently isolated reclaim unit handles.
        Persistent = "persistent",
    }
}

crate::parameters! {
    SPEC.name;
    /// Parameters of `fdp`.
    pub struct Parameters {
        /// Number of placement handles, including the handle of writes without one (NVMe: reclaim unit handles).
        pub handles: u32 = 4, in 1..=8;
        /// Whether copied pages of all handles share blocks (initially isolated), or stay with their handle (persistently isolated).
        pub isolation: Isolation = Isolation::Initial;
        /// Erased blocks for each die at or below which blocks are collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// Whether idle time is used to collect up to twice `gc_free_blocks`, as far as the spare area allows.
        pub idle_gc: bool = false;
        /// How the block to be collected is chosen.
        pub victim: VictimPolicy = VictimPolicy::Greedy;
    }
}

/// Largest number of handles, and the stream of copies behind their streams.
const HANDLES: usize = 8;
const STREAMS: usize = HANDLES + 1;

/// The policy's state: the streams of blocks.
#[derive(Debug, Serialize, Deserialize)]
pub struct Fdp {
    victims: Victims,
    #[serde(with = "crate::save::fixed")]
    handles: u8,
    #[serde(with = "crate::save::fixed")]
    isolation: Isolation,
    /// The stream of the next write. It is not saved, because each write names its handle first.
    #[serde(skip)]
    stream: u8,
    /// By block: the stream that filled it.
    streams: Table<u8>,
}

impl Fdp {
    fn new(parameters: &Parameters, blocks: usize) -> Self {
        Self {
            victims: Victims::new(parameters.victim, blocks),
            handles: parameters.handles as u8,
            isolation: parameters.isolation,
            stream: 0,
            streams: vec![0; blocks].into(),
        }
    }
}

impl Separation<STREAMS> for Fdp {
    const POOLED: bool = true;

    fn begin(&mut self, request: &Request) {
        self.stream = if request.handle < self.handles { request.handle } else { 0 };
    }

    fn written(&mut self, _: u32, _: Option<usize>) -> usize {
        self.victims.note_written();
        usize::from(self.stream)
    }

    fn copied(&self, _: u32, victim: usize) -> usize {
        match self.isolation {
            Isolation::Initial => HANDLES,
            Isolation::Persistent => usize::from(self.streams[victim]),
        }
    }

    fn victim(&mut self, counts: &mut ValidCounts, entries: std::ops::Range<usize>) -> Option<usize> {
        self.victims.choose(counts, entries)
    }

    fn opened(&mut self, block: usize, _: u32, stream: usize) {
        self.streams[block] = stream as u8;
    }

    fn sealed(&mut self, block: usize) {
        self.victims.note_sealed(block);
    }

    fn check(&self, _: &PageTable, blocks: &Blocks<STREAMS>) -> Result<(), String> {
        self.victims.check()?;
        if self.streams.len() != blocks.entries() || self.streams.iter().any(|&stream| usize::from(stream) >= STREAMS) {
            return Err("a block has a stream that does not exist".into());
        }
        Ok(())
    }
}

/// The state of `fdp`.
pub type FdpMapped = OneRegion<Log<Fdp, STREAMS>>;

impl FdpMapped {
    /// A scheme over the device's only region.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let (geometry, pages) = (shape.regions[0].geometry, logical_pages(shape)?);
        let collection = Collection { gc_free_blocks: parameters.gc_free_blocks, idle_gc: parameters.idle_gc };
        let streams = u64::from(parameters.handles) + u64::from(parameters.isolation == Isolation::Initial);
        let separation = |blocks: &Blocks<STREAMS>| Fdp::new(&parameters, blocks.entries());
        Log::pooled_with(RegionId(0), geometry, Capacity::whole(&geometry, pages), collection, streams, separation)
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;
    use crate::units::Geometry;

    fn fdp(isolation: Isolation) -> Fdp {
        Fdp::new(&Parameters { handles: 3, isolation, ..Parameters::default() }, 4)
    }

    #[test]
    fn writes_go_to_the_stream_of_their_handle_and_of_others_to_the_first() {
        let mut fdp = fdp(Isolation::Initial);
        let mut written = |handle| {
            fdp.begin(&Request { arrival_ns: 0, sector: 0, sectors: 8, op: Op::Write, handle });
            [fdp.written(7, None), fdp.written(8, Some(1))]
        };
        assert_eq!([0, 1, 2, 3, 255].map(&mut written), [[0, 0], [1, 1], [2, 2], [0, 0], [0, 0]]);
    }

    #[test]
    fn copies_share_a_stream_unless_handles_are_isolated_for_good() {
        for (isolation, streams) in [(Isolation::Initial, [8, 8]), (Isolation::Persistent, [2, 0])] {
            let mut fdp = fdp(isolation);
            fdp.opened(1, 0, 2);
            assert_eq!([1, 0].map(|block| fdp.copied(7, block)), streams);
            let table = PageTable::new(Geometry::new(4096, 4, 4, 1).unwrap(), 9);
            let blocks = |blocks| Blocks::new((blocks, 1), 1, 4, 0);
            fdp.check(&table, &blocks(4)).unwrap();
            assert!(fdp.check(&table, &blocks(5)).is_err());
            fdp.streams[2] = 9;
            assert!(fdp.check(&table, &blocks(4)).is_err());
        }
    }
}
