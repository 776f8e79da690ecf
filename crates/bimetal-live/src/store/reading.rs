//! Host reads, planned under the engine's lock and performed without it.
//!
//! The plan names the page of each sector. Sectors of pages in memory are copied at once. Frames in the files are read
//! afterwards, adjacent frames with one read: complete pages go directly into the host's buffer, their labels beside
//! it. Meanwhile a commit may free a slot, and another block may get it. The frame names its block, so the read detects
//! this, and the store plans it again.

use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;

use super::backing::File;
use super::bitmap::Bitmap;
use super::bytes::Buffer;
use super::frame::{FrameError, Layout, PageSum, SECTOR, Tag, label_tag, verify_label};
use super::region::{Region, Spot};

/// Largest number of frames in one read.
const RUN_FRAMES: usize = 64;

/// Files from which pages are read.
#[derive(Clone)]
pub struct Sources {
    regions: Arc<[(File, Layout)]>,
    seed: u32,
}

impl Sources {
    /// The files of these regions.
    pub fn new(regions: &[Region], seed: u32) -> Self {
        Self { regions: regions.iter().map(|region| (region.file(), region.layout)).collect(), seed }
    }
}

/// State of a sector in a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sector {
    /// Never written or trimmed.
    Zeros,
    /// Its bytes are in memory.
    Here,
    /// Its bytes are in a page that must be read.
    Owed,
}

/// Sectors of a page to read from its file.
#[derive(Clone, Copy, Debug)]
struct Piece {
    spot: Spot,
    from: u32,
    at: u32,
    sectors: u32,
    /// Whether the page is read directly into the host's buffer: the host wants all of it, and none of it is in memory.
    is_in_place: bool,
}

impl Piece {
    fn range(&self) -> Range<usize> {
        self.at as usize..(self.at + self.sectors) as usize
    }

    fn bytes(&self) -> Range<usize> {
        self.at as usize * SECTOR..(self.at + self.sectors) as usize * SECTOR
    }
}

/// A host read.
#[derive(Debug, Default)]
pub struct Reading {
    first_sector: u64,
    sectors: Vec<Sector>,
    /// Bytes of the sectors that are in memory.
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// Labels of the frames in a run, and those pages that are not read directly.
    labels: Vec<u8>,
    pages: Vec<u8>,
    /// A single frame without adjacent ones.
    frame: Buffer,
}

/// Reason why sectors could not be read.
#[derive(Debug, Default)]
pub struct Misread {
    /// The region whose file could not be read, and the error.
    pub unreadable: Option<(u8, io::Error)>,
    /// Pages that are damaged or misplaced.
    pub damaged: Vec<(Spot, FrameError)>,
}

impl Reading {
    /// Begins a read. `written` is the bitmap of sectors that hold data.
    pub fn begin(&mut self, sector: u64, sectors: u32, written: &Bitmap) {
        self.first_sector = sector;
        let state = |sector| if written.get(sector) { Sector::Owed } else { Sector::Zeros };
        self.sectors.clear();
        self.sectors.extend((sector..sector + u64::from(sectors)).map(state));
        self.bytes.resize(sectors as usize * SECTOR, 0);
        self.pieces.clear();
    }

    /// Plans to read sectors from a page in a file: `at` is the first one in the request, `from` in the page.
    pub fn plan(&mut self, spot: Spot, from: u32, at: u32, sectors: u32) {
        self.pieces.push(Piece { spot, from, at, sectors, is_in_place: false });
    }

    /// Takes sectors from memory, from index `at` in the request on.
    pub fn take(&mut self, at: u32, bytes: &[u8], tags: &[Tag]) {
        for ((at, &tag), bytes) in (at as usize..).zip(tags).zip(bytes.chunks_exact(SECTOR)) {
            take(&mut self.sectors[at], self.first_sector + at as u64, tag, bytes, &mut self.bytes[at * SECTOR..]);
        }
    }

    /// Reads the planned pages, and returns all sectors in `out`.
    ///
    /// # Errors
    /// The reason why sectors are missing.
    pub fn finish(&mut self, sources: &Sources, out: &mut [u8]) -> Result<(), Misread> {
        for ((state, out), bytes) in
            self.sectors.iter().zip(out.chunks_exact_mut(SECTOR)).zip(self.bytes.chunks_exact(SECTOR))
        {
            match state {
                Sector::Zeros => out.fill(0),
                Sector::Here => out.copy_from_slice(bytes),
                Sector::Owed => {}
            }
        }
        let mut misread = Misread::default();
        let mut done = 0;
        while done < self.pieces.len() && misread.unreadable.is_none() {
            let left = &self.pieces[done..];
            let first = left[0].spot.place.region;
            let source = &sources.regions[usize::from(first)];
            let follows = |two: &&[Piece]| two[1].spot.is_behind(&two[0].spot, source.1.stride());
            let count = 1 + left[..left.len().min(RUN_FRAMES)].windows(2).take_while(follows).count();
            let run = done..done + count;
            let read = if count == 1 {
                self.read_one(done, source, sources.seed, out, &mut misread.damaged)
            } else {
                self.read_run(run.clone(), source, sources.seed, out, &mut misread.damaged)
            };
            misread.unreadable = read.err().map(|error| (first, error));
            done = run.end;
        }
        if self.sectors.contains(&Sector::Owed) { Err(misread) } else { Ok(()) }
    }

    /// Reads the frame of a piece.
    fn read_one(
        &mut self,
        number: usize,
        (file, layout): &(File, Layout),
        seed: u32,
        out: &mut [u8],
        damaged: &mut Vec<(Spot, FrameError)>,
    ) -> io::Result<()> {
        let piece = self.pieces[number];
        self.frame.resize(layout.stride());
        file.read_at(piece.spot.offset, self.frame.bytes_mut())?;
        let (page, label) = self.frame.bytes().split_at(layout.page_bytes());
        match verify_label(label, PageSum::of(page, seed), piece.spot.place, piece.spot.since) {
            Ok(_) => take_page(&mut self.sectors, self.first_sector, &piece, page, label, out),
            Err(error) => damaged.push((piece.spot, error)),
        }
        Ok(())
    }

    /// Reads the frames of adjacent pieces with one call.
    fn read_run(
        &mut self,
        run: Range<usize>,
        (file, layout): &(File, Layout),
        seed: u32,
        out: &mut [u8],
        damaged: &mut Vec<(Spot, FrameError)>,
    ) -> io::Result<()> {
        let (page_bytes, label_bytes) = (layout.page_bytes(), layout.label_bytes());
        let pieces = &mut self.pieces[run];
        grow(&mut self.labels, pieces.len() * label_bytes);
        grow(&mut self.pages, pieces.len() * page_bytes);
        let mut places: [IoSliceMut<'_>; 2 * RUN_FRAMES] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let (mut left, mut left_at) = (&mut *out, 0);
        let aside = self.pages.chunks_exact_mut(page_bytes).zip(self.labels.chunks_exact_mut(label_bytes));
        for ((piece, places), (aside, label)) in pieces.iter_mut().zip(places.chunks_exact_mut(2)).zip(aside) {
            let bytes = piece.bytes();
            piece.is_in_place = bytes.len() == page_bytes
                && bytes.start >= left_at
                && self.sectors[piece.range()].iter().all(|&sector| sector == Sector::Owed);
            let page = if piece.is_in_place {
                let (_, rest) = std::mem::take(&mut left).split_at_mut(bytes.start - left_at);
                let (page, rest) = rest.split_at_mut(page_bytes);
                (left, left_at) = (rest, bytes.end);
                page
            } else {
                aside
            };
            places[0] = IoSliceMut::new(page);
            places[1] = IoSliceMut::new(label);
        }
        file.read_vectored_at(pieces[0].spot.offset, &mut places[..2 * pieces.len()])?;
        let aside = self.pages.chunks_exact(page_bytes).zip(self.labels.chunks_exact(label_bytes));
        for (piece, (aside, label)) in pieces.iter().zip(aside) {
            let sum = PageSum::of(if piece.is_in_place { &out[piece.bytes()] } else { aside }, seed);
            if let Err(error) = verify_label(label, sum, piece.spot.place, piece.spot.since) {
                damaged.push((piece.spot, error));
            } else if piece.is_in_place {
                for (at, sector) in piece.range().zip(0..) {
                    if label_tag(label, sector).is(self.first_sector + at as u64) {
                        self.sectors[at] = Sector::Here;
                    }
                }
            } else {
                take_page(&mut self.sectors, self.first_sector, piece, aside, label, out);
            }
        }
        Ok(())
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        let buffers = self.bytes.capacity() + self.labels.capacity() + self.pages.capacity() + self.frame.capacity();
        buffers + self.pieces.capacity() * size_of::<Piece>()
    }
}

/// Makes the vector at least `len` bytes long, with undefined contents.
fn grow(bytes: &mut Vec<u8>, len: usize) {
    if bytes.len() < len {
        bytes.resize(len, 0);
    }
}

/// Takes those sectors of a page that are still missing.
fn take_page(states: &mut [Sector], first: u64, piece: &Piece, page: &[u8], label: &[u8], out: &mut [u8]) {
    for (from, at) in (piece.from as usize..).zip(piece.range()) {
        let (sector, bytes) = (first + at as u64, &page[from * SECTOR..(from + 1) * SECTOR]);
        take(&mut states[at], sector, label_tag(label, from), bytes, &mut out[at * SECTOR..]);
    }
}

/// Takes the bytes of a sector if it is still missing and the tag matches.
#[inline]
fn take(state: &mut Sector, sector: u64, tag: Tag, bytes: &[u8], out: &mut [u8]) {
    if *state == Sector::Owed && tag.is(sector) {
        out[..SECTOR].copy_from_slice(bytes);
        *state = Sector::Here;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::backing::{Access, Storage};
    use crate::store::crash_backing::CrashStorage;
    use crate::store::directory::Directory;
    use crate::store::frame::Place;

    const SEED: u32 = 5;
    const PAGE_SECTORS: u32 = 4;

    fn spot(layout: &Layout, page: u32) -> Spot {
        let place = Place { region: 0, slot: 0, page, block: 3 };
        Spot { place, since: 1, offset: 4096 + u64::from(page) * layout.stride() as u64 }
    }

    /// A file of adjacent pages with host sectors 100 and following. Each sector is filled with its number.
    fn sources(storage: &dyn Storage, pages: u32) -> Sources {
        let layout = Layout::new(PAGE_SECTORS * SECTOR as u32);
        let file = File::from(storage.open("f", Access::Create, false).unwrap());
        for page in 0..pages {
            let mut frame = vec![0; layout.stride()];
            for sector in 0..PAGE_SECTORS as usize {
                let host = 100 + u64::from(page * PAGE_SECTORS) + sector as u64;
                frame[sector * SECTOR..(sector + 1) * SECTOR].fill(host as u8);
                layout.set_tag(&mut frame, sector, Tag::new(host, 1));
            }
            let spot = spot(&layout, page);
            layout.seal(&mut frame, spot.place, 1, SEED);
            file.write_at(spot.offset, &frame).unwrap();
        }
        Sources { regions: [(file, layout)].into(), seed: SEED }
    }

    /// A read of sectors 98 to 98 + 2 + 5 pages. The first two sectors were never written.
    fn planned(sources: &Sources) -> Reading {
        let mut written = Bitmap::new(200);
        written.set(100, 100, true);
        written.set(109, 1, false);
        let mut reading = Reading::default();
        reading.begin(98, 2 + 5 * PAGE_SECTORS, &written);
        for page in 0..5 {
            reading.plan(spot(&sources.regions[0].1, page), 0, 2 + page * PAGE_SECTORS, PAGE_SECTORS);
        }
        reading
    }

    fn expected() -> Vec<Option<u8>> {
        (98..98 + 22_u8).map(|sector| Some(if sector < 100 || sector == 109 { 0 } else { sector })).collect()
    }

    /// The byte value that fills each sector; `None` if its bytes differ.
    fn fills(out: &[u8]) -> Vec<Option<u8>> {
        let fill = |sector: &[u8]| sector.iter().all(|&byte| byte == sector[0]).then_some(sector[0]);
        out.chunks(SECTOR).map(fill).collect()
    }

    #[test]
    fn pages_in_a_row_are_read_with_one_call_and_those_with_gaps_beside_the_others() {
        let storage = CrashStorage::new();
        let sources = sources(&storage, 5);
        let mut reading = planned(&sources);
        let (mut out, before) = (vec![9; 22 * SECTOR], storage.reads());
        reading.finish(&sources, &mut out).unwrap();
        assert_eq!((fills(&out), storage.reads() - before), (expected(), 1));
        let in_place: Vec<bool> = reading.pieces.iter().map(|piece| piece.is_in_place).collect();
        assert_eq!(in_place, [true, true, false, true, true], "a trimmed sector reads as zeros");
    }

    #[test]
    fn real_files_are_read_alike_and_zeros_beyond_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let sources = sources(&Directory::new(folder.path()), 4);
        let mut out = vec![9; 22 * SECTOR];
        let misread = planned(&sources).finish(&sources, &mut out).unwrap_err();
        assert_eq!(fills(&out)[..18], expected()[..18]);
        assert_eq!(misread.damaged.len(), 1);
        assert_eq!(misread.damaged[0].0.place.page, 4, "it is not in the file");
    }

    #[test]
    fn damage_in_a_row_is_found_and_the_other_pages_are_there() {
        let storage = CrashStorage::new();
        let sources = sources(&storage, 5);
        for at in [spot(&sources.regions[0].1, 1).offset + 7, spot(&sources.regions[0].1, 4).offset - 400] {
            storage.flip("f", at as usize * 8);
        }
        let mut out = vec![9; 22 * SECTOR];
        let misread = planned(&sources).finish(&sources, &mut out).unwrap_err();
        let damaged: Vec<_> = misread.damaged.iter().map(|(spot, error)| (spot.place.page, *error)).collect();
        assert_eq!(damaged, [(1, FrameError::Checksum), (3, FrameError::Checksum)]);
        let fills = fills(&out);
        assert!([0..6, 10..14, 18..22].into_iter().all(|there| fills[there.clone()] == expected()[there]));
    }

    #[test]
    fn ends_of_a_read_are_parts_of_pages() {
        let storage = CrashStorage::new();
        let sources = sources(&storage, 3);
        let layout = sources.regions[0].1;
        let mut written = Bitmap::new(200);
        written.set(100, 100, true);
        let mut reading = Reading::default();
        reading.begin(101, 10, &written);
        // The last sectors of a page, a complete page, and the first sectors of another one.
        reading.plan(spot(&layout, 0), 1, 0, 3);
        reading.plan(spot(&layout, 1), 0, 3, PAGE_SECTORS);
        reading.plan(spot(&layout, 2), 0, 7, 3);
        let mut out = vec![9; 10 * SECTOR];
        reading.finish(&sources, &mut out).unwrap();
        assert_eq!(fills(&out), (101..111).map(Some).collect::<Vec<_>>());
    }
}
