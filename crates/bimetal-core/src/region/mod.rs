//! Managed regions: flash regions with their maps and block states. A [`Space`] places pages and collects itself; the
//! schemes make the decisions.

pub mod chains;
pub mod log;
pub mod page_table;
pub mod ring;
mod seal_order;
pub mod slot_chains;
pub mod slot_index;
pub mod slot_table;
pub mod valid_counts;

use serde::Serialize;

use self::page_table::PageTable;
use crate::media::{Cause, Media, Part};
use crate::request::Request;
use crate::units::{Geometry, Ppa, RegionId};

/// The page last read into the controller. Consecutive reads from one page cost one page read.
pub type LastRead<D> = Option<(Ppa, D)>;

/// Reads a page, unless it was the last one read.
#[inline(always)]
pub fn read_page<M: Media>(
    media: &mut M,
    region: RegionId,
    page: Ppa,
    cause: Cause,
    last: &mut LastRead<M::Data>,
) -> M::Data {
    let data = match *last {
        Some((known, data)) if known == page => data,
        _ => media.read(region, page, cause),
    };
    *last = Some((page, data));
    data
}

/// A region of flash that places logical pages anywhere and collects itself.
pub trait Space: std::fmt::Debug + Send + Serialize {
    /// The region's number on the device.
    fn region(&self) -> RegionId;

    /// The mapping table, from logical to physical pages.
    fn table(&self) -> &PageTable;

    /// Its geometry in blocks and pages. If its blocks are grouped in lines, a block here is a line.
    #[inline(always)]
    fn geometry(&self) -> &Geometry {
        self.table().geometry()
    }

    /// Number of logical pages.
    fn logical_pages(&self) -> u32 {
        self.table().logical_pages()
    }

    /// The physical page of a logical page, or `None` if the page is not in the region.
    fn lookup(&self, logical: u32) -> Option<Ppa>;

    /// The physical page of a logical page, and the logical page's first sector in it: not 0 only where several share a
    /// physical page.
    #[inline(always)]
    fn place(&self, logical: u32) -> Option<(Ppa, u32)> {
        Some((self.lookup(logical)?, 0))
    }

    /// Reads the physical page of a logical page, unless it was the last one read. Returns it and the logical page's
    /// first sector in it; `None` if the page is not in the region.
    #[inline]
    fn read<M: Media>(
        &self,
        media: &mut M,
        logical: u32,
        cause: Cause,
        last: &mut LastRead<M::Data>,
    ) -> Option<(M::Data, u32)> {
        let (page, first) = self.place(logical)?;
        Some((read_page(media, self.region(), page, cause, last), first))
    }

    /// Invalidates the copy of a logical page, and forgets its place outside of the region. Returns whether there was a
    /// copy.
    fn invalidate(&mut self, logical: u32) -> bool;

    /// The place outside of the region that [`Self::put_elsewhere`] gave a logical page.
    #[inline(always)]
    fn elsewhere(&self, logical: u32) -> Option<u32> {
        self.table().elsewhere(logical)
    }

    /// Number of places outside of the region that the page table can encode besides the region's own pages.
    fn places_elsewhere(&self) -> u32 {
        self.table().places_elsewhere()
    }

    /// Invalidates the copy of a logical page and records `place`, its place outside of the region, until the page is
    /// invalidated or written.
    fn put_elsewhere(&mut self, logical: u32, place: u32);

    /// The following writes belong to this request. Most regions ignore it.
    fn begin(&mut self, _request: &Request) {}

    /// Programs a logical page at any place, collecting first if necessary. An older copy becomes invalid.
    fn write<M: Media>(&mut self, media: &mut M, logical: u32, parts: &[Part<M::Data>], cause: Cause);

    /// The writes of the request have ended. Most regions ignore it.
    fn end<M: Media>(&mut self, _media: &mut M) {}

    /// Collects in idle time, with about `budget_pages` page copies. Returns the number of pages copied. By default
    /// idle time is not used.
    fn idle<M: Media>(&mut self, _media: &mut M, _budget_pages: u32) -> u32 {
        0
    }

    /// Prefetches a logical page's map entry into the processor's cache.
    #[inline]
    fn prefetch_entry(&self, logical: u32) {
        self.table().prefetch_map(logical);
    }

    /// Prefetches the data that a logical page's map entry points to, which a write will change, into the processor's
    /// cache.
    fn prefetch_page(&self, logical: u32);

    /// Blocks erased so far.
    fn erases(&self) -> u64;

    /// Pages copied by garbage collection so far.
    fn copied_pages(&self) -> u64;

    /// Bytes of mapping tables that a controller would hold.
    fn metadata_bytes(&self) -> u64;

    /// Checks all invariants.
    ///
    /// # Errors
    /// The first broken invariant.
    fn check(&self) -> Result<(), String>;
}
