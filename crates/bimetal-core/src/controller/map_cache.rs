//! Cache of the map in a drive whose memory does not hold all of it: pages of the map by recency (DFTL: Gupta, Kim and
//! Urgaonkar, ASPLOS 2009).
//!
//! A page of the map is a flash page of entries of 4 bytes. A page that is not in the cache is read from flash before
//! the data; a changed page is programmed when it makes room for another. The places of map pages are not modelled,
//! only the time of their operations.

use crate::media::Simulation;
use crate::operation::FlashOp;
use crate::part::lru::Lists;
use crate::request::{Op, Request};
use crate::units::ByteSize;

/// Bytes of a page of the map, and of an entry.
const MAP_PAGE_BYTES: u64 = 4096;
const ENTRY_BYTES: u64 = 4;
const CACHED: usize = 0;

/// The cache's state.
#[derive(Debug)]
pub(super) struct MapCache {
    /// Sectors that a page of the map covers.
    page_sectors: u64,
    by_recency: Lists,
    is_changed: Vec<bool>,
    room: u32,
    hits: u64,
    misses: u64,
}

impl MapCache {
    /// An empty cache of `bytes` bytes for the map of `logical_sectors` sectors, an entry for each `mapping_sectors`.
    pub(super) fn new(bytes: ByteSize, mapping_sectors: u32, logical_sectors: u64) -> Self {
        let page_sectors = MAP_PAGE_BYTES / ENTRY_BYTES * u64::from(mapping_sectors);
        let pages = logical_sectors.div_ceil(page_sectors) as usize;
        Self {
            page_sectors,
            by_recency: Lists::new(pages, 1),
            is_changed: vec![false; pages],
            room: (bytes.0 / MAP_PAGE_BYTES).clamp(1, u64::from(u32::MAX)) as u32,
            hits: 0,
            misses: 0,
        }
    }

    /// Loads the map of a request that comes at `at_ns`. Returns when it is in memory.
    #[inline]
    pub(super) fn load<M: Simulation>(&mut self, media: &mut M, request: &Request, at_ns: u64) -> u64 {
        let (first, last) = (request.sector / self.page_sectors, (request.end() - 1) / self.page_sectors);
        (first..=last).fold(at_ns, |there_ns, page| there_ns.max(self.load_page(media, page as u32, request.op, at_ns)))
    }

    fn load_page<M: Simulation>(&mut self, media: &mut M, page: u32, op: Op, at_ns: u64) -> u64 {
        let mut there_ns = at_ns;
        if self.by_recency.contains(page) {
            self.hits += 1;
            self.by_recency.remove(CACHED, page);
        } else {
            self.misses += 1;
            if self.room > 0 {
                self.room -= 1;
            } else if let Some(oldest) = self.by_recency.pop_front(CACHED)
                && std::mem::take(&mut self.is_changed[oldest as usize])
            {
                media.access_map(FlashOp::Program, oldest, at_ns);
            }
            there_ns = media.access_map(FlashOp::Read, page, at_ns);
        }
        self.by_recency.push_back(CACHED, page);
        self.is_changed[page as usize] |= op != Op::Read;
        there_ns
    }

    pub(super) fn reset_counts(&mut self) {
        (self.hits, self.misses) = (0, 0);
    }

    /// Share of look-ups that found their page.
    pub(super) fn hit_ratio(&self) -> f64 {
        crate::scheme::ratio(self.hits, self.hits + self.misses)
    }
}
