//! Packed logs: several pages of the log, of whatever addresses, share a page of the media.
//!
//! ```text
//!  page of the media   | page 7 | page 912 | page 3 |  empty |      of the log
//! ```
//!
//! So the map can be finer than the pages that flash programs, such as one of 4 KiB on flash with pages of 64 KiB. A
//! page of the media is always programmed as a whole. With too few pages of the log for it, the rest stays empty: it is
//! invalid from the beginning. Collection reads a victim's valid pages, packs them into full pages, and leaves only the
//! last one partly empty.
//!
//! All dies share one queue of erased blocks, and there is one victim at a time, chosen among the blocks of all dies. A
//! lane prefers blocks of its own die, so that lanes work at the same time.
//!
//! A victim must gain a page of the media, however its pages are packed. So a policy chooses a victim that
//! [frees one](Packing::frees_a_page), and the spare area makes sure that there is one.

use arrayvec::ArrayVec;

use super::collect::Step;
use super::{Blocks, Capacity, Collection, Log, PACKED_MAX, Packing, Separation};
use crate::media::{Cause, Media, Part, Stream};
use crate::region::page_table::Run;
use crate::region::read_page;
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// Capacity for `logical_pages` pages in blocks that each have a page of the media to gain.
fn capacity(packing: &Packing, geometry: &Geometry, logical_pages: u64) -> Result<Capacity, String> {
    let gathered = u64::from(geometry.pages_per_block - packing.per_page());
    if gathered == 0 {
        return Err("a block of one page gains none when the pages that share it are collected; use a chip with more \
                    pages per block"
            .into());
    }
    let valid_pages = logical_pages.div_ceil(gathered).saturating_mul(u64::from(geometry.pages_per_block));
    Ok(Capacity { valid_pages, ..Capacity::whole(geometry, logical_pages) })
}

impl<P: Separation<N>, const N: usize> Log<P, N> {
    /// An erased region with pooled dies for `logical_pages` pages of `page_bytes` bytes, a divisor of the page of
    /// `media`. Victims are collected in steps. `separation` makes the policy, which keeps the packing.
    ///
    /// # Errors
    /// Too little spare area; the error says how much is needed.
    pub fn packed(
        region: RegionId,
        media: Geometry,
        (logical_pages, page_bytes): (u64, u32),
        collection: Collection,
        separation: impl FnOnce(&Blocks<N>, Packing) -> P,
    ) -> Result<Self, String> {
        let packing = Packing { media, per_page: media.page_bytes / page_bytes };
        let geometry = media.divided(packing.per_page)?;
        let capacity = capacity(&packing, &geometry, logical_pages)?;
        let policy = |blocks: &Blocks<N>| separation(blocks, packing);
        let log = Self::in_queues(region, (geometry, None), 1, capacity, collection, N as u64, policy)?;
        debug_assert!(log.separation.packing().is_some());
        Ok(Self { steps: vec![Step::default()], ..log })
    }

    /// Pages of the log in each page of the media.
    #[inline(always)]
    pub(super) fn per_page(&self) -> u32 {
        self.separation.packing().map_or(1, Packing::per_page)
    }

    /// Programs logical pages, no more than share a page of the media, collecting first if necessary. Older copies
    /// become invalid. They go to the stream of the last one.
    pub fn write_together<M: Media>(&mut self, media: &mut M, logical: &[u32], parts: &[Part<M::Data>], cause: Cause) {
        debug_assert!(!logical.is_empty() && logical.len() <= self.per_page() as usize);
        let stream = logical.iter().fold(0, |_, &logical| {
            let old = self.forget(logical);
            self.separation.written(logical, old)
        });
        self.write_pooled(media, stream, logical, parts, cause);
    }

    /// The rest of the page of the media that takes the next `pages` pages of a stream stays empty.
    #[inline(always)]
    pub(super) fn leave_empty(&mut self, lane: u32, stream: usize, pages: u32) {
        if let Some(packing) = self.separation.packing() {
            let empty = packing.per_page() - pages;
            self.blocks.skip(lane, stream, empty);
            self.separation.left_empty(empty);
        }
    }

    /// Packs valid pages of a die's victim into a page of the media. Returns the number of pages of the log that this
    /// takes, and 0 if the victim has no valid page.
    pub(super) fn copy_packed<M: Media>(&mut self, media: &mut M, die: u32) -> usize {
        let Some(victim) = self.blocks.victim(die) else { return 0 };
        let from = BlockId(victim.block);
        let Some(first) = self.table.valid_word(from, victim.page) else { return 0 };
        let (_, lane, stream) = self.of_one_stream(first, victim, die);
        let (block, page) = self.next_page(media, lane, stream);
        let geometry = *self.table.geometry();
        let (to, per_page) = (geometry.ppa(block, page), self.per_page());
        let mut parts: ArrayVec<Part<M::Data>, PACKED_MAX> = ArrayVec::new();
        let (mut run, mut last, mut next) = (Run::default(), None, victim.page);
        while (parts.len() as u32) < per_page
            && let Some(pages) = self.table.valid_word(from, next)
        {
            let copied = parts.len() as u32;
            self.table.move_run(pages, Ppa(to.0 + copied), per_page - copied, &mut run);
            for (&page, to) in run.pages().iter().zip(copied..) {
                let (place, index) = self.place_on_media(page);
                let data = read_page(media, self.region, place, Cause::Gc, &mut last);
                let sectors = geometry.page_sectors();
                parts.push(Part { data, from: index * sectors, to: to * sectors, sectors });
                next = geometry.page_of(page) + 1;
            }
        }
        let copied = parts.len() as u32;
        self.blocks.moved(die, copied, next);
        self.blocks.move_valid(from, block, copied);
        self.leave_empty(lane, stream, copied);
        self.fill(lane, stream, copied);
        media.program(self.region, self.on_media(to), &parts, Stream::new(stream), Cause::Gc);
        self.copied_pages += u64::from(copied);
        per_page as usize
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::chip;
    use crate::media::{Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
    use crate::part::random::below;
    use crate::region::Space;
    use crate::region::valid_counts::ValidCounts;
    use crate::request::{Op, Request};

    const REGION: RegionId = RegionId(0);
    /// The victim is the emptiest block.
    #[derive(Debug, Serialize, Deserialize)]
    struct Emptiest {
        packing: Packing,
        empty: u64,
    }

    impl Separation<2> for Emptiest {
        const POOLED: bool = true;

        fn packing(&self) -> Option<&Packing> {
            Some(&self.packing)
        }

        fn left_empty(&mut self, pages: u32) {
            self.empty += u64::from(pages);
        }

        fn written(&mut self, _: u32, _: Option<usize>) -> usize {
            0
        }

        fn victim(&mut self, counts: &mut ValidCounts, entries: Range<usize>) -> Option<usize> {
            counts.fewest(entries).filter(|&entry| self.packing.frees_a_page(counts.valid_pages(entry)))
        }
    }

    /// Pages of 4 KiB on media with blocks of 8 pages of `per_page` times as much.
    fn log(
        (blocks, dies): (u32, u32),
        pages: u64,
        per_page: u32,
    ) -> Result<(Checked<SimMedia>, Log<Emptiest, 2>), String> {
        let geometry = Geometry::new(per_page * 4096, 8, blocks, dies).unwrap();
        let mut chip = chip::find("chang-mlc").unwrap();
        chip.page_bytes = geometry.page_bytes;
        let sim = SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1);
        let mut media = Checked::new(sim, &[(geometry, 0)]);
        media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 32, op: Op::Write, handle: 0 }, 0);
        let collection = Collection { gc_free_blocks: 1, idle_gc: false };
        let policy = |_: &Blocks<2>, packing| Emptiest { packing, empty: 0 };
        Ok((media, Log::packed(REGION, geometry, (pages, 4096), collection, policy)?))
    }

    #[test]
    fn pages_of_any_addresses_share_a_page_that_is_read_once() {
        let (mut media, mut log) = log((10, 2), 100, 4).unwrap();
        log.write_together(&mut media, &[7, 99, 3], &[], Cause::Host);
        log.write_together(&mut media, &[8], &[], Cause::Host);
        let places = [7, 99, 3, 8].map(|page| log.place(page).unwrap());
        let (first, second) = (log.lookup(7).unwrap(), log.lookup(8).unwrap());
        assert_eq!(places, [(first, 0), (first, 8), (first, 16), (second, 0)]);
        assert_eq!((log.separation().empty, log.occupied()), (4, 4));
        let mut last = None;
        for page in [3, 7, 99, 8] {
            assert_eq!(log.read(&mut media, page, Cause::Host, &mut last).unwrap().1, log.place(page).unwrap().1);
        }
        assert!(log.read(&mut media, 4, Cause::Host, &mut last).is_none());
        assert_eq!(media.ledger().total(FlashOp::Read, Cause::Host), 2);
        log.check().unwrap();
    }

    #[test]
    fn lanes_write_to_blocks_of_their_dies() {
        let (mut media, mut log) = log((40, 4), 200, 4).unwrap();
        assert_eq!(log.blocks.lanes(), 4);
        (0..32).for_each(|page| log.write_together(&mut media, &[page], &[], Cause::Host));
        let media = log.separation().packing.media;
        let dies: Vec<u32> = (0..8).map(|page| media.die_of(media.block_of(log.lookup(page).unwrap()))).collect();
        assert_eq!(dies, [1, 2, 3, 0, 1, 2, 3, 0], "the lanes take turns");
    }

    /// With the least spare area there is, writes of one page to as many as fit are collected without a stop, whatever stays
    /// empty. Every place in a programmed page is a page written, a copy, or empty.
    #[test]
    fn valid_pages_are_packed_in_steps() {
        for (dies, per_page) in [(1, 4), (3, 4), (2, 3), (1, 16)] {
            // Seven pages of a block, and three blocks: two open ones and an erased one.
            let pages = u64::from(7 * per_page * 15);
            assert!(log((17, dies), pages, per_page).unwrap_err().contains("takes 3 spare blocks and there are 2"));
            let (mut media, mut log) = log((18, dies), pages, per_page).unwrap();
            let (mut state, mut written, mut most) = (5, 0, 0);
            for number in 0..20_000 {
                let first = below(&mut state, pages + 1 - u64::from(per_page)) as u32;
                let together: Vec<u32> = (first..=first + below(&mut state, u64::from(per_page)) as u32).collect();
                let before = log.copied_pages();
                log.write_together(&mut media, &together, &[], Cause::Host);
                written += together.len() as u64;
                most = most.max(log.copied_pages() - before);
                if number % 100 == 0 {
                    log.check().unwrap();
                }
            }
            let ledger = media.ledger();
            let [host, gc] = [Cause::Host, Cause::Gc].map(|cause| ledger.total(FlashOp::Program, cause));
            assert_eq!((host + gc) * u64::from(per_page), written + log.copied_pages() + log.separation().empty);
            assert!(log.erases() > 1000 && gc > 1000, "{} erases, {most} copies at most", log.erases());
            assert!(gc * u64::from(per_page) < log.copied_pages() * 11 / 10, "few copies leave a place empty");
        }
    }
}
