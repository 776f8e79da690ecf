//! The policy of a scheme over a [`Log`](super::Log): which pages are written together, and which block is collected.

use std::fmt::Debug;
use std::ops::Range;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Blocks, Packing};
use crate::media::CellMode;
use crate::region::page_table::PageTable;
use crate::region::valid_counts::ValidCounts;
use crate::request::Request;

/// A policy with `N` streams. Each stream has its own open block on each lane, so its pages share blocks only with each
/// other. A lane is a die; on pooled dies there is a chosen number of lanes.
///
/// Blocks are identified by their entries in the table of valid counts.
pub trait Separation<const N: usize>: Debug + Send + Serialize + DeserializeOwned {
    /// Whether dies are pooled, and copies of collected pages go to several streams. Otherwise all copies go to the last.
    /// Every stream has an open block on every lane, and a pool keeps `gc_free_blocks` for each die erased: on a device
    /// with few spare blocks per die more streams leave less spare area to collection.
    const POOLED: bool;

    /// Whether a victim is always emptied at once, even in idle time.
    const AT_ONCE: bool = false;

    /// Whether the policy opens blocks in SLC mode, in a log that has [room](super::Capacity::slc_pages) for them.
    const MODES: bool = false;

    /// How several pages of the log share a page of the media, if they do.
    #[inline(always)]
    fn packing(&self) -> Option<&Packing> {
        None
    }

    /// The places of `pages` pages in a page of the media stay empty.
    fn left_empty(&mut self, _pages: u32) {}

    /// The lane of a page on pooled dies; `None` if lanes take turns.
    fn lane(&self, _logical: u32) -> Option<u32> {
        None
    }

    /// The full block to be collected before a lane opens another block, if the lane has its maximum number of blocks.
    fn victim_at_limit(&self, _counts: &ValidCounts, _lane: u32) -> Option<usize> {
        None
    }

    /// The following page writes belong to this request. Behind a write buffer it is a run of sectors that left the buffer
    /// together.
    #[inline(always)]
    fn begin(&mut self, _request: &Request) {}

    /// The mode in which blocks of a stream are opened. Called only if [`Self::MODES`], and not for the last stream,
    /// which is native. The last stream takes the pages of a collected SLC-mode block without invalid pages, and pages
    /// that find no room in SLC mode.
    fn mode(&self, _stream: usize) -> CellMode {
        CellMode::Native
    }

    /// The mode in which a collected block is erased. A stream takes erased blocks of its own mode first; a block of
    /// the other mode is erased again.
    fn erased(&mut self, _block: usize) -> CellMode {
        CellMode::Native
    }

    /// The stream of a page being written. `old` is the block in which the page was valid until now, if any. Called
    /// once for each page.
    fn written(&mut self, logical: u32, old: Option<usize>) -> usize;

    /// The stream of a valid page copied from the block `victim`. Called only if [`Self::POOLED`].
    fn copied(&self, _logical: u32, _victim: usize) -> usize {
        N - 1
    }

    /// The block among `entries` to be collected next: by default the one with the fewest valid pages. `None` if no
    /// block has an invalid page.
    fn victim(&mut self, counts: &mut ValidCounts, entries: Range<usize>) -> Option<usize> {
        counts.fewest(entries)
    }

    /// Share of garbage, in percent of the pages in use, above which a block is collected after a write request even if
    /// enough blocks are erased. Garbage are the invalid pages of full blocks. 0: erased blocks alone decide.
    #[inline(always)]
    fn gc_garbage_percent(&self) -> f64 {
        0.0
    }

    /// A stream of a lane opens a block.
    fn opened(&mut self, _block: usize, _lane: u32, _stream: usize) {}

    /// A block is full.
    fn sealed(&mut self, _block: usize) {}

    /// Collection of a block begins.
    fn collected(&mut self, _block: usize) {}

    /// Pages of a block were collected in idle time, although enough blocks may have been erased.
    fn collected_in_idle_time(&mut self) {}

    /// Bytes that a controller would hold: the map of `logical_pages` pages, and the policy's own tables.
    fn metadata_bytes(&self, logical_pages: u32) -> u64 {
        u64::from(logical_pages) * 4
    }

    /// Checks its own state against the state of a log, which has already been checked.
    ///
    /// # Errors
    /// The first inconsistency.
    fn check(&self, _table: &PageTable, _blocks: &Blocks<N>) -> Result<(), String> {
        Ok(())
    }
}

/// Two streams: pages written by the host, and pages copied by garbage collection, which are colder.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct HostAndCopied;

impl Separation<2> for HostAndCopied {
    const POOLED: bool = false;

    #[inline(always)]
    fn written(&mut self, _: u32, _: Option<usize>) -> usize {
        0
    }
}
