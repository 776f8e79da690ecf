//! The capacity of a log: how much of its region holds data.

use super::lines::{Layout, Lines};
use crate::units::Geometry;

/// Capacity of a log: its pages and the blocks that it may use.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Logical pages.
    pub logical_pages: u64,
    /// Maximum number of logical pages that are valid at a time. The log's user must keep to it.
    pub valid_pages: u64,
    /// Data pages per block; they are the first pages of the block.
    pub data_pages: u32,
    /// Number of blocks, the first of the region, that are lent from the beginning.
    pub lent: u32,
    /// How blocks are laid out over the dies. With lines, no block is lent and all pages of a block are data pages.
    pub layout: Layout,
    /// Pages of a block in SLC mode if the policy opens blocks in it; otherwise 0. The capacity lost to blocks in SLC
    /// mode never exceeds the spare area without the open and erased blocks.
    pub slc_pages: u32,
}

impl Capacity {
    /// Capacity for `logical_pages` pages, all of which may be valid.
    pub fn whole(geometry: &Geometry, logical_pages: u64) -> Self {
        let data_pages = geometry.pages_per_block;
        Self { logical_pages, valid_pages: logical_pages, data_pages, lent: 0, layout: Layout::Die, slc_pages: 0 }
    }

    /// If the layout is lines, the same capacity on a geometry of one die whose blocks are the lines.
    pub(super) fn in_lines(self, geometry: Geometry) -> Result<(Self, Geometry, Option<Lines>), String> {
        if self.layout == Layout::Die || geometry.dies == 1 {
            return Ok((self, geometry, None));
        }
        debug_assert!(self.lent == 0 && self.data_pages == geometry.pages_per_block);
        let lines = Lines::new(geometry, self.slc_pages);
        let (data_pages, slc_pages) = (self.data_pages * geometry.dies, self.slc_pages * geometry.dies);
        Ok((Self { data_pages, slc_pages, ..self }, lines.geometry()?, Some(lines)))
    }
}

/// Checks that the valid pages fit next to the reserved blocks, and that page numbers fit their type.
pub(super) fn check_pages(geometry: &Geometry, capacity: &Capacity, room: u64, reserved: u32) -> Result<(), String> {
    let Capacity { logical_pages, valid_pages, data_pages, .. } = *capacity;
    if logical_pages >= u64::from(u32::MAX) {
        return Err(format!("{logical_pages} logical pages are more than 2^32; lower the capacity"));
    }
    if valid_pages > room {
        let needed = valid_pages.div_ceil(u64::from(data_pages)) + u64::from(reserved * geometry.dies);
        return Err(format!(
            "{} blocks leave too little spare area: {valid_pages} pages of {} bytes on {} dies need about \
             {needed} blocks ({reserved} per die stay free of data); enlarge the region or its spare area",
            geometry.blocks, geometry.page_bytes, geometry.dies
        ));
    }
    Ok(())
}
