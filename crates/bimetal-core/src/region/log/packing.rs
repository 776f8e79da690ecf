//! How several pages of a packed log share a page of the media.

use serde::{Deserialize, Serialize};

use crate::units::{BlockId, Geometry, Ppa};

/// Largest number of pages of a log in a page of the media: sectors of the largest page.
pub const PACKED_MAX: usize = 128;

/// The number of pages of a log in each page of the media.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Packing {
    /// Geometry of the media.
    pub(super) media: Geometry,
    pub(super) per_page: u32,
}

impl Packing {
    /// Pages of the log in each page of the media.
    #[inline]
    pub fn per_page(&self) -> u32 {
        self.per_page
    }

    /// Whether a victim with `valid` valid pages fills fewer pages of the media when these are packed.
    pub fn frees_a_page(&self, valid: u32) -> bool {
        valid.div_ceil(self.per_page) < self.media.pages_per_block
    }

    /// Whether a block lies on a die of this lane of `lanes`.
    pub(super) fn is_of_lane(&self, block: u32, lane: u32, lanes: u32) -> bool {
        block % self.media.dies % lanes == lane
    }

    /// The page of the media at a position of a block, and the index in it.
    #[inline]
    pub(super) fn page(&self, block: BlockId, position: u32) -> (Ppa, u32) {
        let (page, index) = if self.per_page.is_power_of_two() {
            // As on nearly all devices; it saves a division.
            (position >> self.per_page.trailing_zeros(), position & (self.per_page - 1))
        } else {
            (position / self.per_page, position % self.per_page)
        };
        (self.media.ppa(block, page), index)
    }
}
