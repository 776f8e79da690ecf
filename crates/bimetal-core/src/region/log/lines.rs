//! Lines: blocks of all dies that are written, collected and erased together; also called *superblocks*.
//!
//! ```text
//!            die 0    die 1    die 2
//!  line 0   |0 3 6|  |1 4 7|  |2 5 8|     numbers: the positions of pages in the line
//!  line 1   |0 3 6|  |1 4 7|  |2 5 8|
//! ```
//!
//! A log in lines has one open line per stream, regardless of the number of dies, and all dies work on it. The log
//! treats a line as a block of one large die. Only operations on the media translate a position in a line to its page.

use serde::{Deserialize, Serialize};

use super::{Log, Separation};
use crate::media::{Cause, CellMode, Media, Part, Stream};
use crate::units::{BlockId, Geometry, Ppa, greatest_common_divisor};

crate::choices! {
    /// How the blocks of a log lie on the dies.
    pub enum Layout {
        /// Each die has blocks of its own and is collected by itself.
        Die = "die",
        /// In lines across all dies.
        Across = "across",
    }
}

/// The layout of a region's lines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Lines {
    /// Geometry of the blocks that form the lines.
    blocks: Geometry,
    /// Number of consecutive pages of a line on one die.
    stripe_pages: u32,
}

impl Lines {
    /// Lines of blocks with geometry `blocks`. If `slc_pages` is not 0, it is the number of data pages of a block in
    /// SLC mode.
    pub fn new(blocks: Geometry, slc_pages: u32) -> Self {
        // The last stripe of a block must be whole in either mode.
        let whole = greatest_common_divisor(blocks.pages_per_block, slc_pages);
        Self { blocks, stripe_pages: greatest_common_divisor(blocks.stripe_pages, whole) }
    }

    /// The geometry of the log: one die, whose blocks are the lines.
    ///
    /// # Errors
    /// A line has more pages than can be addressed.
    pub fn geometry(&self) -> Result<Geometry, String> {
        self.blocks.in_lines().map(|lines| lines.striped(self.blocks.dies * self.stripe_pages))
    }

    /// The page at a position of a line.
    #[inline]
    fn page(&self, line: BlockId, position: u32) -> Ppa {
        let (stripe, dies) = (position / self.stripe_pages, self.blocks.dies);
        let page = stripe / dies * self.stripe_pages + position % self.stripe_pages;
        self.blocks.ppa(BlockId(line.0 * dies + stripe % dies), page)
    }

    /// Number of consecutive positions from `position` on that lie on the same die.
    fn run(&self, position: u32) -> usize {
        (self.stripe_pages - position % self.stripe_pages) as usize
    }

    /// The blocks of a line.
    fn blocks_of(&self, line: BlockId) -> impl Iterator<Item = BlockId> + use<> {
        let dies = self.blocks.dies;
        (line.0 * dies..(line.0 + 1) * dies).map(BlockId)
    }
}

/// Maximum number of pages that a medium copies in one call.
const RUN_MAX: usize = u64::BITS as usize;

impl<P: Separation<N>, const N: usize> Log<P, N> {
    /// The page on the media of a page of the log.
    #[inline(always)]
    pub(super) fn on_media(&self, page: Ppa) -> Ppa {
        self.place_on_media(page).0
    }

    /// The page on the media of a page of the log, and the index in it if several share it.
    #[inline(always)]
    pub(super) fn place_on_media(&self, page: Ppa) -> (Ppa, u32) {
        let geometry = self.table.geometry();
        let place = || (geometry.block_of(page), geometry.page_of(page));
        match (self.separation.packing(), &self.lines) {
            (None, None) => (page, 0),
            (Some(packing), _) => {
                let (block, position) = place();
                packing.page(block, position)
            }
            (None, Some(lines)) => {
                let (line, position) = place();
                (lines.page(line, position), 0)
            }
        }
    }

    #[inline(always)]
    pub(super) fn program<M: Media>(
        &self,
        media: &mut M,
        page: Ppa,
        parts: &[Part<M::Data>],
        stream: usize,
        cause: Cause,
    ) {
        media.program(self.region, self.on_media(page), parts, Stream::new(stream), cause);
    }

    /// Copies pages to consecutive pages of one block or line.
    #[inline]
    pub(super) fn copy_pages<M: Media>(&self, media: &mut M, from: &[Ppa], to: Ppa, stream: usize) {
        match &self.lines {
            None => media.copy_run(self.region, from, to, Stream::new(stream), Cause::Gc),
            Some(lines) => self.copy_across(lines, media, from, to, stream),
        }
    }

    fn copy_across<M: Media>(&self, lines: &Lines, media: &mut M, from: &[Ppa], to: Ppa, stream: usize) {
        let mut places = [Ppa::NONE; RUN_MAX];
        places.iter_mut().zip(from).for_each(|(place, &page)| *place = self.on_media(page));
        let (mut rest, mut to) = (&places[..from.len()], to);
        while !rest.is_empty() {
            let run = lines.run(self.table.geometry().page_of(to)).min(rest.len());
            media.copy_run(self.region, &rest[..run], self.on_media(to), Stream::new(stream), Cause::Gc);
            (rest, to) = (&rest[run..], Ppa(to.0 + run as u32));
        }
    }

    /// Erases a block, or all blocks of a line.
    pub(super) fn erase_block<M: Media>(&mut self, media: &mut M, block: BlockId, mode: CellMode) {
        match &self.lines {
            None => media.erase(self.region, block, mode, Cause::Gc),
            Some(lines) => lines.blocks_of(block).for_each(|block| media.erase(self.region, block, mode, Cause::Gc)),
        }
        self.erases += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_a_line_go_round_the_dies_and_fill_blocks_in_order() {
        for (stripe_pages, slc_pages, stripe) in [(1, 0, 1), (4, 0, 4), (4, 6, 2), (8, 0, 4)] {
            let blocks = Geometry::new(4096, 12, 10, 3).unwrap().striped(stripe_pages);
            let lines = Lines::new(blocks, slc_pages);
            let geometry = lines.geometry().unwrap();
            assert_eq!((lines.stripe_pages, geometry.blocks, geometry.pages_per_block), (stripe, 3, 36));
            let mut programmed = [0; 10];
            for position in 0..36 {
                let page = lines.page(BlockId(2), position);
                let block = blocks.block_of(page);
                assert_eq!(block.0, 6 + position / stripe % 3);
                assert_eq!(blocks.page_of(page), programmed[block.index()]);
                programmed[block.index()] += 1;
            }
            assert_eq!(lines.blocks_of(BlockId(2)).map(|block| programmed[block.index()]).collect::<Vec<_>>(), [12; 3]);
        }
    }
}
