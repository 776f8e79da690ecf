//! Reads of the host, planned under the engine's lock and performed without it.
//!
//! The plan names the page of each sector. Sectors of pages in memory are copied at once. Frames in the files are read afterwards, frames
//! that follow one another with one read. A commit may free a slot meanwhile and another block may get it. The frame names its block, so
//! that the read notices, and the store plans it again.

use std::io;
use std::sync::Arc;

use super::bitmap::Bitmap;
use super::bytes::Buffer;
use super::files::File;
use super::frame::{FrameError, Layout, SECTOR, Tag};
use super::region::{Region, Spot};

/// Bytes of frames that are read at once, unless a frame has more.
const RUN_BYTES: usize = 160 << 10;

/// Where pages are read from.
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

/// What is known of a sector that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sector {
    /// Nothing was written there.
    Zeros,
    /// Its bytes are there.
    Here,
    /// It is in a page.
    Owed,
}

/// Sectors of a page that are to be read from its file.
#[derive(Clone, Copy, Debug)]
struct Piece {
    spot: Spot,
    from: u32,
    at: u32,
    sectors: u32,
}

/// A read of the host.
#[derive(Debug, Default)]
pub struct Reading {
    first_sector: u64,
    sectors: Vec<Sector>,
    /// Bytes of the sectors that are here.
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    frames: Buffer,
}

/// Why sectors could not be read.
#[derive(Debug, Default)]
pub struct Misread {
    /// The region whose file could not be read, and what that said.
    pub unreadable: Option<(u8, io::Error)>,
    /// Pages that are damaged, or others than they should be.
    pub damaged: Vec<(Spot, FrameError)>,
}

impl Reading {
    /// Begins to read sectors of which `written` says which hold data.
    pub fn begin(&mut self, sector: u64, sectors: u32, written: &Bitmap) {
        self.first_sector = sector;
        let state = |sector| if written.get(sector) { Sector::Owed } else { Sector::Zeros };
        self.sectors.clear();
        self.sectors.extend((sector..sector + u64::from(sectors)).map(state));
        self.bytes.resize(sectors as usize * SECTOR, 0);
        self.pieces.clear();
    }

    /// Sectors from `at` on are in a page of a file, from its sector `from` on.
    pub fn plan(&mut self, spot: Spot, from: u32, at: u32, sectors: u32) {
        self.pieces.push(Piece { spot, from, at, sectors });
    }

    /// Takes sectors from `at` on from memory.
    pub fn take(&mut self, at: u32, bytes: &[u8], tags: &[Tag]) {
        for ((at, &tag), bytes) in (at as usize..).zip(tags).zip(bytes.chunks_exact(SECTOR)) {
            take(&mut self.sectors[at], self.first_sector + at as u64, tag, bytes, &mut self.bytes[at * SECTOR..]);
        }
    }

    /// Reads what is in the files, and hands all of it out.
    ///
    /// # Errors
    /// Why sectors are missing.
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
        let mut pieces = &self.pieces[..];
        while let Some(first) = pieces.first() {
            let (file, layout) = &sources.regions[usize::from(first.spot.place.region)];
            let stride = layout.stride();
            let follows = |two: &&[Piece]| two[1].spot.is_behind(&two[0].spot, stride);
            let most = pieces.len().min((RUN_BYTES / stride).max(1));
            let count = 1 + pieces[..most].windows(2).take_while(follows).count();
            let (run, rest) = pieces.split_at(count);
            pieces = rest;
            self.frames.resize(count * stride);
            if let Err(error) = file.read_at(first.spot.offset, self.frames.bytes_mut()) {
                misread.unreadable = Some((first.spot.place.region, error));
                break;
            }
            for (piece, frame) in run.iter().zip(self.frames.bytes().chunks_exact(stride)) {
                if let Err(error) = layout.verify(frame, piece.spot.place, piece.spot.since, sources.seed) {
                    misread.damaged.push((piece.spot, error));
                    continue;
                }
                for (from, at) in (piece.from as usize..).zip(piece.at as usize..).take(piece.sectors as usize) {
                    let (sector, bytes) = (self.first_sector + at as u64, &frame[from * SECTOR..(from + 1) * SECTOR]);
                    take(&mut self.sectors[at], sector, layout.tag(frame, from), bytes, &mut out[at * SECTOR..]);
                }
            }
        }
        if self.sectors.contains(&Sector::Owed) { Err(misread) } else { Ok(()) }
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.frames.capacity() + self.pieces.capacity() * size_of::<Piece>()
    }
}

/// Takes the bytes of a sector if it is still owed and these are its own.
#[inline]
fn take(state: &mut Sector, sector: u64, tag: Tag, bytes: &[u8], out: &mut [u8]) {
    if *state == Sector::Owed && tag.is(sector) {
        out[..SECTOR].copy_from_slice(bytes);
        *state = Sector::Here;
    }
}
