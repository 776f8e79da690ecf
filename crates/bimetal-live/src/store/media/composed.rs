//! Pages that are composed of parts of others, such as a large page of one region of small pages of another.
//!
//! A scheme reads pages and programs their parts elsewhere. Such programs are deferred until several are due or one of
//! their pages is needed. Then the pages that they take parts of are read, adjacent ones with one call.

use std::io::IoSliceMut;

use bimetal_core::media::Part;
use bimetal_core::units::RegionId;

use super::{Carried, FileMedia, From, Io, PageRead};
use crate::store::frame::{PageSum, Tag, label_tag, verify_label};
use crate::store::region::Spot;

/// Sectors of deferred pages from which on they are written.
const DEFERRED_SECTORS: usize = 512;
/// Largest number of pages in one read.
const READ_PAGES: usize = 64;

/// A deferred program.
#[derive(Debug)]
struct Program {
    region: RegionId,
    target: Spot,
    sequence: u64,
    /// Number of its parts.
    parts: usize,
}

/// Deferred programs.
#[derive(Debug, Default)]
pub(super) struct Composing {
    programs: Vec<Program>,
    /// Parts of all of them, in order.
    parts: Vec<Part<Carried>>,
    sectors: usize,
    /// Adjacent pages to read, by their number in the request, and their labels.
    run: Vec<(u32, Spot)>,
    labels: Vec<u8>,
}

impl Composing {
    /// Removes all programs.
    pub(super) fn clear(&mut self) {
        self.programs.clear();
        self.parts.clear();
        self.sectors = 0;
    }

    /// Whether a page is the target of a program.
    pub(super) fn holds(&self, spot: &Spot) -> bool {
        let is_target = |program: &Program| {
            program.target.place.region == spot.place.region && program.target.offset == spot.offset
        };
        self.programs.iter().any(is_target)
    }

    /// Memory in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let programs = self.programs.capacity() * size_of::<Program>();
        let reads = self.run.capacity() * size_of::<(u32, Spot)>() + self.labels.capacity();
        programs + self.parts.capacity() * size_of::<Part<Carried>>() + reads
    }
}

impl FileMedia {
    /// Composes a page, now or together with the following ones. Its place is already allocated.
    pub(super) fn compose(&mut self, region: RegionId, target: Spot, parts: &[Part<Carried>]) {
        for part in parts {
            if let Some(PageRead { spot: Some(source), first: None, .. }) = self.page(part) {
                self.write_if_deferred(&source);
            }
        }
        let needs_page = |part| self.page(part).is_some_and(|page| page.first.is_none());
        if self.io != Io::Files || !parts.iter().any(needs_page) {
            return self.compose_now(region, &target, parts, self.sequence);
        }
        let composing = &mut self.composing;
        composing.programs.push(Program { region, target, sequence: self.sequence, parts: parts.len() });
        composing.parts.extend_from_slice(parts);
        composing.sectors += parts.iter().map(|part| part.sectors as usize).sum::<usize>();
        if composing.sectors >= DEFERRED_SECTORS {
            self.write_composed();
        }
    }

    /// Composes the deferred pages.
    pub(super) fn write_composed(&mut self) {
        if self.composing.programs.is_empty() {
            return;
        }
        let mut composing = std::mem::take(&mut self.composing);
        self.load_together(&mut composing);
        let mut parts = &composing.parts[..];
        for Program { region, target, sequence, parts: count } in &composing.programs {
            let (own, rest) = parts.split_at(*count);
            self.compose_now(*region, target, own, *sequence);
            parts = rest;
        }
        composing.clear();
        self.composing = composing;
    }

    fn compose_now(&mut self, region: RegionId, target: &Spot, parts: &[Part<Carried>], sequence: u64) {
        for part in parts {
            self.loaded(part.data);
        }
        self.store(region, target, parts, sequence);
    }

    /// The page of a part, unless its data are already in memory.
    fn page(&self, part: &Part<Carried>) -> Option<PageRead> {
        match part.data.from {
            From::Arena(_) => None,
            From::Page(number) => Some(self.pages[number as usize]),
        }
    }

    /// Loads the pages that are adjacent in a file. The others are loaded when they are needed.
    fn load_together(&mut self, composing: &mut Composing) {
        let Composing { parts, run, labels, .. } = composing;
        for part in parts.iter() {
            let From::Page(number) = part.data.from else { continue };
            if run.last().is_some_and(|&(last, _)| last == number) {
                continue;
            }
            let PageRead { region, spot: Some(spot), first: None } = self.pages[number as usize] else { continue };
            let stride = self.regions[region.index()].layout.stride();
            if run.len() == READ_PAGES || run.last().is_some_and(|(_, last)| !spot.is_behind(last, stride)) {
                self.load_run(run, labels);
                run.clear();
            }
            if self.pages[number as usize].first.is_none() && self.is_in_file(&spot) {
                run.push((number, spot));
            }
        }
        self.load_run(run, labels);
        run.clear();
    }

    /// Loads adjacent pages with one call. If their file cannot be read, they remain to be loaded.
    fn load_run(&mut self, run: &[(u32, Spot)], labels: &mut Vec<u8>) {
        let &[(_, first_spot), _, ..] = run else { return };
        let region = &self.regions[usize::from(first_spot.place.region)];
        let (file, layout) = (region.file(), region.layout);
        labels.resize(labels.len().max(run.len() * layout.label_bytes()), 0);
        let (count, sectors) = (run.len(), layout.page_sectors());
        let first = self.arena.take(count * sectors);
        let (bytes, tags) = self.arena.sectors_mut(first, (count * sectors) as u32);
        let mut places: [IoSliceMut<'_>; 2 * READ_PAGES] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let pages = bytes.chunks_exact_mut(layout.page_bytes()).zip(labels.chunks_exact_mut(layout.label_bytes()));
        for (places, (page, label)) in places.chunks_exact_mut(2).zip(pages) {
            places[0] = IoSliceMut::new(page);
            places[1] = IoSliceMut::new(label);
        }
        if file.read_vectored_at(first_spot.offset, &mut places[..2 * count]).is_err() {
            return;
        }
        let mut damaged = Vec::new();
        let pages = bytes.chunks_exact_mut(layout.page_bytes()).zip(tags.chunks_exact_mut(sectors));
        for (((number, spot), label), (at, (page, tags))) in
            run.iter().zip(labels.chunks_exact(layout.label_bytes())).zip(pages.enumerate())
        {
            match verify_label(label, PageSum::of(page, self.seed), spot.place, spot.since) {
                Ok(_) => tags.iter_mut().enumerate().for_each(|(sector, tag)| *tag = label_tag(label, sector)),
                Err(error) => {
                    page.fill(0);
                    tags.fill(Tag::UNREADABLE);
                    damaged.push((*spot, error));
                }
            }
            self.pages[*number as usize].first = Some(first + (at * sectors) as u32);
        }
        damaged.iter().for_each(|(spot, error)| self.note_damage(spot, *error));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use bimetal_core::chip;
    use bimetal_core::media::{Cause, Faults, Media, SimMedia, SimRegion, Stream};
    use bimetal_core::request::{Op, Request};
    use bimetal_core::units::{BlockId, Geometry, Ppa};

    use super::super::testing::Memory;
    use super::*;
    use crate::store::arena::HostData;
    use crate::store::region::Region;

    const PAGES: u32 = 32;
    const FAST: RegionId = RegionId(0);
    const SLOW: RegionId = RegionId(1);

    /// Media whose first region has a block of pages of 2 KiB in its file, each filled with its number; the second
    /// region has pages of 4 KiB.
    fn filled() -> (FileMedia, Arc<Memory>, [Geometry; 2]) {
        let geometries = [2048, 4096].map(|page_bytes| Geometry::new(page_bytes, PAGES, 4, 1).unwrap());
        let regions = geometries.map(|geometry| {
            let mut chip = chip::find("chang-mlc").unwrap();
            chip.page_bytes = geometry.page_bytes;
            SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
        });
        let files = [(); 2].map(|()| Arc::new(Memory::new(8 << 20)));
        let of_files = files.iter().zip(0..).zip(geometries);
        let in_files =
            of_files.map(|((file, id), geometry)| Region::new(Arc::clone(file) as _, id, geometry, false).unwrap());
        let mut media = FileMedia::new(SimMedia::new(&regions, 1), in_files.collect(), None, 1 << 16, 42);
        media.set_io(Io::Files);
        for page in 0..PAGES {
            let request = Request { arrival_ns: 0, sector: u64::from(page) * 4, sectors: 4, op: Op::Write, handle: 0 };
            media.begin(&request, HostData::Borrowed(&[page as u8; 2048]), None);
            let parts = [Part { data: Media::host(&media), from: 0, to: 0, sectors: 4 }];
            media.program(FAST, geometries[0].ppa(BlockId(0), page), &parts, Stream::ONLY, Cause::Host);
            media.end();
        }
        media.leave().unwrap().0.iter().for_each(|leaving| leaving.write().unwrap());
        media.left();
        let [fast, _] = files;
        (media, fast, geometries)
    }

    /// Composes slow page `to` of two fast pages.
    fn compose(media: &mut FileMedia, geometries: &[Geometry; 2], from: [u32; 2], to: u32) {
        let read = from.map(|page| media.read(FAST, geometries[0].ppa(BlockId(0), page), Cause::MigrateDown));
        let parts = [0, 1].map(|at| Part { data: read[at], from: 0, to: 4 * at as u32, sectors: 4 });
        media.program(SLOW, geometries[1].ppa(BlockId(0), to), &parts, Stream::ONLY, Cause::MigrateDown);
    }

    /// The first byte and the tag of both halves of a slow page.
    fn halves(media: &mut FileMedia, page: Ppa) -> [(u8, Tag); 2] {
        let (spot, layout) = (media.regions[SLOW.index()].spot(page), media.regions[SLOW.index()].layout);
        media.load_frame(SLOW, spot.as_ref());
        let frame = media.frame.bytes();
        [0, 4].map(|sector| (frame[sector * 512], layout.tag(frame, sector)))
    }

    #[test]
    fn adjacent_pages_are_read_at_once_and_found_again_in_others() {
        let (mut media, fast, geometries) = filled();
        media.begin_idle();
        (0..PAGES / 2).for_each(|to| compose(&mut media, &geometries, [2 * to, 2 * to + 1], to));
        // Twice the same page, and two that are not adjacent.
        compose(&mut media, &geometries, [7, 7], PAGES / 2);
        compose(&mut media, &geometries, [20, 3], PAGES / 2 + 1);
        media.end_idle();
        assert_eq!(fast.reads.load(Ordering::Relaxed), 1 + 4, "32 pages together, and 4 alone");
        let expected = (0..PAGES / 2).map(|to| [2 * to, 2 * to + 1]).chain([[7, 7], [20, 3]]);
        for (to, from) in (0..).zip(expected) {
            let halves = halves(&mut media, geometries[1].ppa(BlockId(0), to));
            let found = halves.map(|(byte, tag)| (u64::from(byte), tag.written().unwrap().0));
            assert_eq!(found, from.map(|page| (u64::from(page), u64::from(page) * 4)), "page {to}");
        }
        assert_eq!(media.media_errors(), 0);
    }

    #[test]
    fn a_page_can_be_read_before_it_is_composed() {
        let (mut media, _, geometries) = filled();
        media.begin_idle();
        compose(&mut media, &geometries, [4, 5], 0);
        let first = geometries[1].ppa(BlockId(0), 0);
        // A part of the first page goes to the next one.
        let data = media.read(SLOW, first, Cause::Gc);
        let part = Part { data, from: 4, to: 0, sectors: 4 };
        media.program(SLOW, geometries[1].ppa(BlockId(0), 1), &[part], Stream::ONLY, Cause::Gc);
        assert_eq!(media.composing.programs.len(), 1, "the first page is written, and the second is deferred");
        assert_eq!(halves(&mut media, geometries[1].ppa(BlockId(0), 1)).map(|half| half.0), [5, 0]);
        assert!(media.composing.programs.is_empty());
        media.end_idle();
    }

    #[test]
    fn damage_stays_where_it_is() {
        let (mut media, fast, geometries) = filled();
        let spot = media.regions[FAST.index()].spot(geometries[0].ppa(BlockId(0), 7)).unwrap();
        fast.bytes.lock().unwrap()[spot.offset as usize + 100] ^= 1;
        media.begin_idle();
        (0..PAGES / 2).for_each(|to| compose(&mut media, &geometries, [2 * to, 2 * to + 1], to));
        media.end_idle();
        assert_eq!(media.media_errors(), 1);
        for to in 0..PAGES / 2 {
            let lost = halves(&mut media, geometries[1].ppa(BlockId(0), to)).map(|(_, tag)| tag.is_lost());
            assert_eq!(lost, [false, to == 3], "page {to}");
        }
    }
}
