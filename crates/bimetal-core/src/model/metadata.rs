//! RAM for the metadata of HySSD (MSST 2013) and OP-FCL (FAST 2012), in bytes.
//!
//! The papers count only the ghost lists (OP-FCL, section 5: roughly 1 % of the flash cache). Here every number is a
//! word of four bytes. A list in order of use with a hash table for its entries has five words for each: address, two
//! neighbours, hash chain and a bucket.

const WORD: u64 = 4;

/// A page map: the place of each logical page.
pub fn page_map_bytes(logical_pages: u64) -> u64 {
    WORD * logical_pages
}

/// A list in order of use with a hash table for its entries: an LRU list, or a ghost list.
pub fn lru_list_bytes(entries: u64) -> u64 {
    5 * WORD * entries
}

/// HySSD: the map of all data and the classifier, a list of as many pages as fit into the fast SSD.
pub fn hyssd_bytes(logical_pages: u64, fast_pages: u64) -> u64 {
    page_map_bytes(logical_pages) + lru_list_bytes(fast_pages)
}

/// The ghost lists of OP-FCL: one for reads and one for writes, each as long as the flash.
pub fn ghost_lists_bytes(flash_pages: u64) -> u64 {
    2 * lru_list_bytes(flash_pages)
}

/// OP-FCL in total: the two lists of cached pages, which share the flash, each page with its place in it, and the ghost
/// lists.
pub fn opfcl_bytes(flash_pages: u64) -> u64 {
    lru_list_bytes(flash_pages) + page_map_bytes(flash_pages) + ghost_lists_bytes(flash_pages)
}
