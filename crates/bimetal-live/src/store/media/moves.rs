//! Moves of unchanged pages from one place in the files to another.
//!
//! A scheme reads pages and programs them unchanged elsewhere, or copies them, one after the other. The pages are
//! deferred until one is not adjacent to those before it. Then all are read with one call, directly into the write
//! buffer, verified, and labelled for their new places. The checksum of a page is the same in both places.

use bimetal_core::media::Part;
use bimetal_core::units::RegionId;

use super::{Carried, FileMedia, From, Io, PageRead};
use crate::store::frame::{PageSum, Tag, seal_label, verify_label};
use crate::store::region::Spot;

/// Bytes of frames in one move, unless a single frame has more.
const MOVED_BYTES: usize = 128 << 10;

/// A deferred move of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    source: Spot,
    target: Spot,
    /// Sequence number of its program.
    sequence: u64,
}

impl FileMedia {
    /// The page that a program takes completely and unchanged, if there is one.
    pub(super) fn moved(&self, region: RegionId, parts: &[Part<Carried>]) -> Option<Spot> {
        let [Part { data: Carried { from: From::Page(number), .. }, from: 0, to: 0, sectors }] = *parts else {
            return None;
        };
        let PageRead { region: source, spot, first: None } = self.pages[number as usize] else { return None };
        let (source, target) = (&self.regions[source.index()], &self.regions[region.index()]);
        spot.filter(|_| source.layout == target.layout && sectors as usize == target.layout.page_sectors())
    }

    /// Moves a page, now or together with the following ones. Its target is already allocated.
    pub(super) fn add_move(&mut self, region: RegionId, source: Option<Spot>, target: Spot) {
        if self.io == Io::Replay {
            return;
        }
        let Some(source) = source else {
            debug_assert!(false, "a page is moved that was not programmed");
            let sum = self.load_frame(region, None);
            return self.store_frame(region, &target, sum, self.sequence);
        };
        self.write_if_deferred(&source);
        let stride = self.regions[region.index()].layout.stride();
        let follows = |last: &Move| {
            source.is_behind(&last.source, stride)
                && target.is_behind(&last.target, stride)
                && target.place.slot == last.target.place.slot
        };
        let most = (MOVED_BYTES / stride).max(1);
        if self.moves.len() == most || !self.moves.last().is_none_or(follows) {
            self.write_moves();
        }
        self.moves.push(Move { source, target, sequence: self.sequence });
    }

    /// Performs the deferred moves.
    pub(super) fn write_moves(&mut self) {
        let mut moves = std::mem::take(&mut self.moves);
        let mut left = &moves[..];
        while let Some(Move { source, target, sequence }) = left.first() {
            let moved = self.move_at_once(left).unwrap_or_else(|| {
                let sum = self.load_frame(RegionId(source.place.region), Some(source));
                self.store_frame(RegionId(target.place.region), target, sum, *sequence);
                1
            });
            left = &left[moved..];
        }
        moves.clear();
        self.moves = moves;
    }

    /// Moves the first pages from their file to the write buffer. Returns their number; `None` if the first one is not
    /// in the file, or the file fails.
    fn move_at_once(&mut self, moves: &[Move]) -> Option<usize> {
        let Move { source, target, .. } = moves.first()?;
        let of_source = &self.regions[usize::from(source.place.region)];
        let count = moves.iter().take_while(|page| !of_source.is_waiting(&page.source)).count();
        if count == 0 || self.io != Io::Files || !self.held.is_empty() {
            return None;
        }
        let (file, seed, mut damaged) = (of_source.file(), self.seed, Vec::new());
        let region = &mut self.regions[usize::from(target.place.region)];
        let layout = region.layout;
        let moved = region.write_several(target, count, |frames| {
            file.read_at(source.offset, frames)?;
            for (frame, Move { source, target, sequence }) in frames.chunks_exact_mut(layout.stride()).zip(moves) {
                let sum = |frame: &[u8]| PageSum::of(&frame[..layout.page_bytes()], seed);
                let mut found = sum(frame);
                if let Err(error) = verify_label(&frame[layout.page_bytes()..], found, source.place, source.since) {
                    damaged.push((*source, error));
                    layout.clear(frame, Tag::UNREADABLE);
                    found = sum(frame);
                }
                seal_label(&mut frame[layout.page_bytes()..], found, target.place, *sequence);
            }
            Ok(())
        });
        let moved = moved.ok()?;
        for (spot, error) in damaged {
            self.note_damage(&spot, error);
        }
        Some(moved)
    }

    /// Whether a page will be moved to this place.
    pub(super) fn is_to_be_moved(&self, spot: &Spot) -> bool {
        let (Some(first), Some(last)) = (self.moves.first(), self.moves.last()) else { return false };
        first.target.place.region == spot.place.region
            && (first.target.offset..=last.target.offset).contains(&spot.offset)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use bimetal_core::chip;
    use bimetal_core::media::{Cause, Faults, Media, SimMedia, SimRegion, Stream};
    use bimetal_core::request::{Op, Request};
    use bimetal_core::units::{BlockId, Geometry};

    use super::super::testing::Memory;
    use super::*;
    use crate::store::arena::HostData;
    use crate::store::region::Region;

    const PAGES: u32 = 32;
    const PAGE_BYTES: u32 = 4096;
    const FAST: RegionId = RegionId(0);
    const SLOW: RegionId = RegionId(1);

    /// Media whose first region has a block of pages in its file, each filled with its number.
    fn filled() -> (FileMedia, [Arc<Memory>; 2], Geometry) {
        let chip = chip::find("chang-mlc").unwrap();
        let geometry = Geometry::new(PAGE_BYTES, PAGES, 4, 1).unwrap();
        let region = SimRegion { chip, geometry, channels: 1, faults: Faults::default() };
        let files = [(); 2].map(|()| Arc::new(Memory::new(64 << 20)));
        let regions =
            files.iter().zip(0..).map(|(file, id)| Region::new(Arc::clone(file) as _, id, geometry, false).unwrap());
        let sim = SimMedia::new(&[region.clone(), region], 1);
        let mut media = FileMedia::new(sim, regions.collect(), None, 1 << 16, 42);
        media.set_io(Io::Files);
        for page in 0..PAGES {
            let request = Request { arrival_ns: 0, sector: u64::from(page) * 8, sectors: 8, op: Op::Write, handle: 0 };
            media.begin(&request, HostData::Borrowed(&[page as u8; PAGE_BYTES as usize]), None);
            let data = Media::host(&media);
            let parts = [Part { data, from: 0, to: 0, sectors: 8 }];
            media.program(FAST, geometry.ppa(BlockId(0), page), &parts, Stream::ONLY, Cause::Host);
            media.end();
        }
        for leaving in media.leave().unwrap().0 {
            leaving.write().unwrap();
        }
        media.left();
        (media, files, geometry)
    }

    fn move_up_to(media: &mut FileMedia, geometry: &Geometry, pages: u32) {
        for page in (0..pages).map(|page| geometry.ppa(BlockId(0), page)) {
            let data = media.read(FAST, page, Cause::MigrateDown);
            let parts = [Part { data, from: 0, to: 0, sectors: 8 }];
            media.program(SLOW, page, &parts, Stream::ONLY, Cause::MigrateDown);
        }
    }

    /// The first byte and the tag of a page.
    fn content(media: &mut FileMedia, page: u32) -> (u8, Tag) {
        let spot = media.regions[SLOW.index()].spot(media.regions[SLOW.index()].geometry.ppa(BlockId(0), page));
        media.load_frame(SLOW, spot.as_ref());
        (media.frame.bytes()[0], media.regions[SLOW.index()].layout.tag(media.frame.bytes(), 0))
    }

    #[test]
    fn pages_that_follow_one_another_are_read_at_once() {
        let (mut media, files, geometry) = filled();
        media.begin_idle();
        move_up_to(&mut media, &geometry, PAGES);
        media.end_idle();
        let at_once = MOVED_BYTES / media.regions[FAST.index()].layout.stride();
        assert_eq!(files[0].reads.load(Ordering::Relaxed), u64::from(PAGES).div_ceil(at_once as u64));
        for page in 0..PAGES {
            let (byte, tag) = content(&mut media, page);
            assert_eq!((byte, tag.written().unwrap().0), (page as u8, u64::from(page) * 8));
        }
        assert_eq!(media.media_errors(), 0);
    }

    #[test]
    fn a_page_can_be_read_before_it_was_moved() {
        let (mut media, _, geometry) = filled();
        media.begin_idle();
        move_up_to(&mut media, &geometry, 5);
        assert!(media.moves.len() == 5 && content(&mut media, 4).0 == 4);
        assert!(media.moves.is_empty());
    }

    #[test]
    fn damage_is_found_and_stays_where_it_is() {
        let (mut media, files, geometry) = filled();
        let spot = media.regions[FAST.index()].spot(geometry.ppa(BlockId(0), 7)).unwrap();
        files[0].bytes.lock().unwrap()[spot.offset as usize + 100] ^= 1;
        media.begin_idle();
        move_up_to(&mut media, &geometry, PAGES);
        media.end_idle();
        assert_eq!(media.media_errors(), 1);
        for page in 0..PAGES {
            assert_eq!(content(&mut media, page).1.is_lost(), page == 7, "page {page}");
        }
        assert_eq!(media.media_errors(), 1, "its new frame is sound, and says that it is lost");
    }

    #[test]
    fn a_damaged_page_does_not_fill_the_log() {
        let (mut media, files, geometry) = filled();
        let spot = media.regions[FAST.index()].spot(geometry.ppa(BlockId(0), 7)).unwrap();
        files[0].bytes.lock().unwrap()[spot.offset as usize + 100] ^= 1;
        for _ in 0..300 {
            media.load_frame(FAST, Some(&spot));
        }
        assert_eq!((media.media_errors(), media.logged_errors), (300, 100));
    }
}
