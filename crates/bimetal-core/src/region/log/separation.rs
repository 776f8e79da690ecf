//! The decisions of schemes over a [`Log`](super::Log): which pages are written together, and which block is collected.

use std::fmt::Debug;
use std::ops::Range;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Blocks;
use crate::media::CellMode;
use crate::region::page_table::PageTable;
use crate::region::valid_counts::ValidCounts;
use crate::request::Request;

/// A policy with `N` streams. Each stream has an open block of its own on each lane: each die, or, where dies are pooled, one of some
/// lanes. So its pages share blocks with each other only.
///
/// Blocks are numbered by their entries in the table of valid counts.
pub trait Separation<const N: usize>: Debug + Send + Serialize + DeserializeOwned {
    /// Whether dies are pooled, and copies of collected pages go to several streams. Otherwise all copies go to the last.
    const POOLED: bool;

    /// Whether a victim is emptied at once, even in idle time.
    const AT_ONCE: bool = false;

    /// Whether there are blocks in SLC mode, in a log that has [room](super::Capacity::slc_pages) for them.
    const MODES: bool = false;

    /// The lane of a page on pooled dies; none if lanes take turns.
    fn lane(&self, _logical: u32) -> Option<u32> {
        None
    }

    /// The full block that is to be collected before a lane opens one more, if it has as many as it may have.
    fn victim_at_limit(&self, _counts: &ValidCounts, _lane: u32) -> Option<usize> {
        None
    }

    /// Pages that are written from now on belong to this request.
    #[inline(always)]
    fn begin(&mut self, _request: &Request) {}

    /// The mode in which blocks of a stream are opened. Only asked if [`Self::MODES`], and not for the last stream, which is native: what a
    /// block in SLC mode that is full of valid pages holds goes there. So does what finds no room in SLC mode.
    fn mode(&self, _stream: usize) -> CellMode {
        CellMode::Native
    }

    /// The mode in which a block is erased whose pages have been copied. A stream takes blocks of its mode first; others are erased again.
    fn erased(&mut self, _block: usize) -> CellMode {
        CellMode::Native
    }

    /// The stream of a page that is written now, and was valid in the block `old` until now, if anywhere. Called once for each page.
    fn written(&mut self, logical: u32, old: Option<usize>) -> usize;

    /// The stream of a valid page of the block `victim`. Only asked if [`Self::POOLED`].
    fn copied(&self, _logical: u32, _victim: usize) -> usize {
        N - 1
    }

    /// The block among `entries` to be collected next: by default the one with the fewest valid pages. None if all are full of valid
    /// pages.
    fn victim(&mut self, counts: &mut ValidCounts, entries: Range<usize>) -> Option<usize> {
        counts.fewest(entries)
    }

    /// A stream of a lane begins to fill a block.
    fn opened(&mut self, _block: usize, _lane: u32, _stream: usize) {}

    /// A block is full.
    fn sealed(&mut self, _block: usize) {}

    /// The pages of a block are going to be copied.
    fn collected(&mut self, _block: usize) {}

    /// Bytes that a controller would keep: the map of `logical_pages` pages, and the policy's own tables.
    fn metadata_bytes(&self, logical_pages: u32) -> u64 {
        u64::from(logical_pages) * 4
    }

    /// Checks its own state against that of a log, which has been checked.
    ///
    /// # Errors
    /// The first disagreement.
    fn check(&self, _table: &PageTable, _blocks: &Blocks<N>) -> Result<(), String> {
        Ok(())
    }
}

/// Two streams: pages that are written, and pages that garbage collection copies, which are colder.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct HostAndCopied;

impl Separation<2> for HostAndCopied {
    const POOLED: bool = false;

    #[inline(always)]
    fn written(&mut self, _: u32, _: Option<usize>) -> usize {
        0
    }
}
