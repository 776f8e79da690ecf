//! How large the cache is, and what happens when it is full.

use crate::units::{ByteSize, Geometry};

crate::choices! {
    /// What a write does that finds the cache full.
    pub enum WhenFull {
        /// The oldest block of the cache is folded first.
        Fold = "fold",
        /// It goes to the main area. The cache is emptied in idle time.
        Direct = "direct",
    }
}

/// How much of the region is the cache's, whatever the host has written.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Bytes of native capacity; 0: all beyond the usual spare area.
    pub budget: ByteSize,
    /// Usual spare area, in percent of the logical capacity.
    pub usual_spare_percent: f64,
    /// Blocks of a cache that grows, at most, in percent of all blocks.
    pub most_percent: f64,
}

impl Size {
    /// Blocks of the cache on a region for `logical_pages` logical pages, each die of which is to keep
    /// `gc_free_blocks` blocks erased. What is beyond the usual spare area is shared evenly among the dies.
    ///
    /// # Errors
    /// None are left for it.
    pub fn blocks(&self, geometry: &Geometry, logical_pages: u64, gc_free_blocks: u32) -> Result<u32, String> {
        let dies = u64::from(geometry.dies);
        let logical = logical_pages.div_ceil(u64::from(geometry.pages_per_block) * dies);
        let usual = (logical as f64 * self.usual_spare_percent / 100.0).ceil() as u64;
        let blocks = match self.budget.0 {
            0 => {
                let others = logical + usual.max(u64::from(gc_free_blocks) + 2);
                u64::from(geometry.blocks / geometry.dies).saturating_sub(others) * dies
            }
            bytes => bytes / geometry.block_bytes(),
        };
        if blocks == 0 {
            return Err(format!(
                "no block is left for a cache: {} blocks on {dies} dies hold {logical} blocks of data and {} of spare \
                 area per die; enlarge the region, lower usual_spare_percent or set a budget of at least {}",
                geometry.blocks,
                usual.max(u64::from(gc_free_blocks) + 2),
                ByteSize(geometry.block_bytes())
            ));
        }
        Ok(blocks.min(u64::from(geometry.blocks)) as u32)
    }
}
