//! What a workload is like: sizes, updates, hot set, footprint, sequentiality, arrivals.

use crate::request::{Request, SECTOR_BYTES};

/// Bytes of the aligned pages in which footprints and hot sets are counted.
pub const PAGE_BYTES: u64 = 4096;

const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Number of distinct aligned 4-KiB pages that the requests touch.
pub fn distinct_pages<'a>(requests: impl Iterator<Item = &'a Request>) -> u64 {
    let mut extents: Vec<(u64, u64)> =
        requests.map(|request| (request.sector / PAGE_SECTORS, request.end().div_ceil(PAGE_SECTORS))).collect();
    distinct(&mut extents)
}

/// Length of the union of half-open extents, which are sorted in place.
fn distinct(extents: &mut [(u64, u64)]) -> u64 {
    extents.sort_unstable();
    let mut covered_to = 0;
    let mut length = 0;
    for &(start, end) in extents.iter() {
        length += end.saturating_sub(start.max(covered_to));
        covered_to = end.max(covered_to);
    }
    length
}
