//! Managed regions: what holds maps and block states. A [`Space`] places pages and collects itself; decisions live in the schemes.

pub mod chains;
pub mod log;
pub mod page_table;
pub mod ring;
pub mod slot_index;
pub mod slot_table;
pub mod valid_counts;

use serde::Serialize;

use self::page_table::PageTable;
use crate::media::{Cause, Media, Part};
use crate::request::Request;
use crate::units::{Geometry, Ppa, RegionId};

/// A region of flash that places logical pages anywhere and collects itself.
pub trait Space: std::fmt::Debug + Send + Serialize {
    /// Which region of the device it is.
    fn region(&self) -> RegionId;

    /// Which logical page lies where.
    fn table(&self) -> &PageTable;

    /// Its blocks and pages; of blocks in lines, its lines.
    #[inline(always)]
    fn geometry(&self) -> &Geometry {
        self.table().geometry()
    }

    /// Number of logical pages.
    fn logical_pages(&self) -> u32 {
        self.table().logical_pages()
    }

    /// Where a logical page is, if anywhere.
    fn lookup(&self, logical: u32) -> Option<Ppa>;

    /// Forgets the copy of a logical page, and where it is outside of the region.
    fn invalidate(&mut self, logical: u32);

    /// The place outside of the region that [`Self::put_elsewhere`] gave a logical page.
    #[inline(always)]
    fn elsewhere(&self, logical: u32) -> Option<u32> {
        self.table().elsewhere(logical)
    }

    /// How many places outside of the region can be told from its pages.
    fn places_elsewhere(&self) -> u32 {
        self.table().places_elsewhere()
    }

    /// Forgets the copy of a logical page, which is at this place outside of the region until it is invalidated or written.
    fn put_elsewhere(&mut self, logical: u32, place: u32);

    /// What is written from now on belongs to this request. Most regions do not look at it.
    fn begin(&mut self, _request: &Request) {}

    /// Programs a logical page anywhere, after collecting if it must; an older copy is invalid from then on.
    fn write<M: Media>(&mut self, media: &mut M, logical: u32, parts: &[Part<M::Data>], cause: Cause);

    /// Collects in idle time, up to about `budget_pages` page copies. Returns the number of copies.
    fn idle<M: Media>(&mut self, media: &mut M, budget_pages: u32) -> u32;

    /// Brings a logical page's map entry into the processor's cache.
    #[inline]
    fn prefetch_entry(&self, logical: u32) {
        self.table().prefetch_map(logical);
    }

    /// Brings what a logical page's map entry points to into the processor's cache: what a write will change.
    fn prefetch_page(&self, logical: u32);

    /// Blocks erased so far.
    fn erases(&self) -> u64;

    /// Pages that collecting has copied so far.
    fn copied_pages(&self) -> u64;

    /// Bytes of mapping tables that a controller would keep.
    fn metadata_bytes(&self) -> u64;

    /// Checks all invariants.
    ///
    /// # Errors
    /// The first one that is broken.
    fn check(&self) -> Result<(), String>;
}
