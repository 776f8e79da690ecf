//! Size of the cache, and its policy when it is full.

use serde::{Deserialize, Serialize};

use crate::region::log::Collection;
use crate::units::{ByteSize, Geometry};

crate::choices! {
    /// Policy for writes while the cache is full.
    pub enum WhenFull {
        /// The oldest block of the cache is folded first.
        Fold = "fold",
        /// The write goes to the main area. The cache is emptied in idle time, and as far as its size requires.
        Direct = "direct",
        /// The write goes to the main area while that has erased blocks; then the cache is folded for more.
        DirectThenFold = "direct-then-fold",
    }
}

/// Choices for the drive.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CacheSettings {
    /// Policy for writes while the cache is full.
    pub when_full: WhenFull,
    /// Whether blocks are folded page by page ahead of need, or all at once when one is needed.
    pub fold_in_steps: bool,
    /// Use of idle time.
    pub idle: IdleFold,
    /// Number of folded blocks of a dynamic cache after which one is exchanged; 0: no exchange.
    pub exchange_period: u32,
    /// Collection of the main area.
    pub collection: Collection,
}

/// Use of idle time for emptying the cache.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct IdleFold {
    /// Whether idle time is used.
    pub is_on: bool,
    /// Share of the cache's blocks with data above which folding begins, in percent; [`Self::to_percent`] if that is
    /// more.
    pub from_percent: f64,
    /// Share at which folding ends, in percent.
    pub to_percent: f64,
    /// Shortest idle time that is used, in page copies.
    pub min_pages: u32,
}

/// Size of the cache in the region.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Bytes of native capacity; 0: all beyond the usual spare area.
    pub budget: ByteSize,
    /// Usual spare area, in percent of the logical capacity.
    pub usual_spare_percent: f64,
    /// Largest size of a cache that grows, in percent of all blocks.
    pub most_percent: f64,
    /// Fill levels at which the cache begins to shrink and has shrunk to its least size, in percent of the logical
    /// pages. Both 0: it has all blocks until the data do not fit into them in SLC mode, and its least size on a full
    /// drive.
    pub shrink_percent: (f64, f64),
}

/// Largest size of the cache by the fill level of the drive: a straight line with an upper limit. Sizes are in pages of
/// native blocks, beyond the blocks that the cache always has.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Curve {
    /// Mapped logical pages at two points of the line, which ends at the second with size 0.
    points: (u32, u32),
    /// Size at the first point.
    from_pages: u32,
    /// Largest size.
    pub most_pages: u32,
}

impl Curve {
    /// The line at this number of mapped logical pages; before its first point it continues upwards.
    pub fn line_pages(&self, mapped: u32) -> i64 {
        let (from, to) = self.points;
        match to.saturating_sub(mapped) {
            0 => 0,
            _ if from == to => i64::from(u32::MAX),
            left => (u64::from(self.from_pages) * u64::from(left) / u64::from(to - from)) as i64,
        }
    }

    /// The size at this number of mapped logical pages.
    pub fn pages(&self, mapped: u32) -> i64 {
        self.line_pages(mapped).min(i64::from(self.most_pages))
    }
}

impl Size {
    /// Blocks of the cache on a region for `logical_pages` logical pages, each die of which keeps `gc_free_blocks`
    /// blocks erased. The capacity beyond the usual spare area is shared evenly among the dies.
    ///
    /// # Errors
    /// No blocks are left for the cache.
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

    /// The curve of a cache of at least `least` blocks of `slc_pages` pages each in SLC mode, on a region of `geometry`.
    ///
    /// # Errors
    /// The cache would grow as the drive fills.
    pub fn curve(&self, geometry: &Geometry, logical_pages: u32, least: u32, slc_pages: u32) -> Result<Curve, String> {
        let (from, to) = match self.shrink_percent {
            (from, 0.0) if from > 0.0 => (from, 100.0),
            percent => percent,
        };
        if from > to {
            return Err(format!(
                "shrink_from_percent is {from} and shrink_to_percent {to}; the cache shrinks as the drive fills, so the \
                 first must not be larger"
            ));
        }
        let logical_blocks = logical_pages.div_ceil(geometry.pages_per_block);
        let most = (f64::from(geometry.blocks) * self.most_percent / 100.0) as u32;
        let most_pages = most.saturating_sub(least).min(logical_blocks) * geometry.pages_per_block;
        let pages = |percent: f64| (f64::from(logical_pages) * percent / 100.0) as u32;
        if to > 0.0 {
            return Ok(Curve { points: (pages(from), pages(to)), from_pages: most_pages, most_pages });
        }
        // However large `least` is: data are folded before the drive is full, not all at once.
        let fit = (u64::from(least) + u64::from(logical_blocks)) * u64::from(slc_pages);
        let from = fit.min(u64::from(logical_pages) * 3 / 4) as u32;
        Ok(Curve { points: (from, logical_pages), from_pages: logical_blocks * geometry.pages_per_block, most_pages })
    }
}
