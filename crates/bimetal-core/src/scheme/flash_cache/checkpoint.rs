//! Checkpoints of the mapping manager: the map as pages of flash.
//!
//! Two areas of blocks take turns, so that one complete checkpoint exists at all times. A checkpoint is not written at
//! once, but a page with each request; changes meanwhile are known from the summaries of the blocks. Its content is
//! left to the store below the seam; only its cost is modelled here.

use serde::{Deserialize, Serialize};

use crate::media::{Cause, CellMode, Media, Stream};
use crate::units::{BlockId, Geometry, RegionId};

/// Bytes of a cached page's entry: logical page, physical page.
const ENTRY_BYTES: u64 = 8;

/// The two areas, and the checkpoint being written.
#[derive(Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    #[serde(with = "crate::save::fixed")]
    geometry: Geometry,
    #[serde(with = "crate::save::fixed")]
    area_blocks: u32,
    /// Number of checkpoints begun.
    begun: u64,
    /// Pages of the latest checkpoint that are written, and those that are not.
    written: u32,
    pending: u32,
}

impl Checkpoint {
    /// Blocks for checkpoints of up to `cached_pages` cached pages; they are the first of the region.
    pub fn blocks(geometry: &Geometry, cached_pages: u64) -> u32 {
        2 * ((cached_pages * ENTRY_BYTES).div_ceil(geometry.block_bytes()) as u32).max(1)
    }

    /// No checkpoint written yet, in the first `blocks` blocks of a region, which are erased.
    pub fn new(region: RegionId, geometry: Geometry, blocks: u32) -> Self {
        Self { region, geometry, area_blocks: blocks / 2, begun: 0, written: 0, pending: 0 }
    }

    /// Begins a checkpoint of `cached_pages` pages, unless one is still being written.
    pub fn begin(&mut self, cached_pages: u32) {
        if self.pending == 0 {
            self.begun += 1;
            self.written = 0;
            let bytes = u64::from(cached_pages.max(1)) * ENTRY_BYTES;
            self.pending = bytes.div_ceil(u64::from(self.geometry.page_bytes)) as u32;
        }
    }

    /// Checks that written and pending pages fit into an area.
    ///
    /// # Errors
    /// The pages do not fit.
    pub fn check(&self) -> Result<(), String> {
        let (pages, room) = (
            u64::from(self.written) + u64::from(self.pending),
            u64::from(self.area_blocks) * u64::from(self.geometry.pages_per_block),
        );
        if pages > room || pages > 0 && self.begun == 0 {
            return Err(format!("checkpoint {} has {pages} pages and its area {room}", self.begun));
        }
        Ok(())
    }

    /// Writes up to `pages` pages of the checkpoint; returns their number.
    #[inline]
    pub fn write<M: Media>(&mut self, media: &mut M, pages: u32) -> u32 {
        let pages = pages.min(self.pending);
        for _ in 0..pages {
            self.write_page(media);
        }
        pages
    }

    fn write_page<M: Media>(&mut self, media: &mut M) {
        let pages_per_block = self.geometry.pages_per_block;
        let area = ((self.begun - 1) % 2) as u32;
        let block = BlockId(area * self.area_blocks + self.written / pages_per_block);
        let page = self.written % pages_per_block;
        if page == 0 && self.begun > 2 {
            media.erase(self.region, block, CellMode::Native, Cause::Meta);
        }
        media.program(self.region, self.geometry.ppa(block, page), &[], Stream::ONLY, Cause::Meta);
        self.written += 1;
        self.pending -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
    use crate::request::{Op, Request};

    #[test]
    fn two_areas_take_turns() {
        let geometry = Geometry::new(4096, 4, 12, 1).unwrap();
        let chip = chip::find("chang-mlc").unwrap();
        let sim = SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1);
        let mut media = Checked::new(sim, &[(geometry, 0)]);
        // 512 entries in a page, 2,048 in a block.
        assert_eq!([1, 2048, 2049].map(|pages| Checkpoint::blocks(&geometry, pages)), [2, 2, 4]);
        let mut checkpoint = Checkpoint::new(RegionId(0), geometry, 4);
        media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Write, handle: 0 }, 0);
        // Checked media assert that pages are programmed in order and once per erase.
        for cached in [4096, 2049, 600, 4096] {
            checkpoint.begin(cached);
            assert_eq!(checkpoint.write(&mut media, 1), 1);
            checkpoint.begin(7);
            checkpoint.write(&mut media, 100);
        }
        let ledger = media.ledger();
        assert_eq!(ledger.total(FlashOp::Program, Cause::Meta), 8 + 5 + 2 + 8);
        assert_eq!(ledger.total(FlashOp::Erase, Cause::Meta), 1 + 2);
        assert_eq!(&ledger.erases[0][..4], &[1, 0, 1, 1]);
    }
}
