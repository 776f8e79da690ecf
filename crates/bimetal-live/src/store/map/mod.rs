//! The map: places of all sectors that hold data in the files, independent of the scheme and of its saved state.
//!
//! The close of a store writes the map last. So a program without the scheme, or with another version of it, can still
//! read the data. The map belongs to one opening. A superblock that is marked as closed confirms the map by the
//! opening's number, and any later opening for writing invalidates it before other changes. The file is little-endian,
//! and each CRC is seeded with the store's number:
//!
//! ```text
//! 0      u32   CRC-32C of bytes 4 to 64
//! 4      u32   magic `BMMP`
//! 8      u32   format of the map: 1
//! 12     u32   0
//! 16     u64   number of the store
//! 24     u64   number of the opening that wrote it
//! 32     u64   sectors of the device
//! 40     u64   chunks
//! 48     u64   runs
//! 56     u64   sectors in them
//! 64           zeros
//! 4,096        chunks of 65,536 bytes each
//! ```
//!
//! A chunk:
//!
//! ```text
//! 0    u32   CRC-32C of all that follows in the chunk
//! 4    u32   magic `BMMC`
//! 8    u64   number of the opening
//! 16   u64   number of the chunk, from 0
//! 24   u32   runs in it
//! 28         zeros
//! 40         2,729 runs of 24 bytes, those that are not used zeros
//! ```
//!
//! A run of consecutive sectors that are adjacent in a file:
//!
//! ```text
//! 0    u64   first sector
//! 8    u32   number of sectors
//! 12   u32   slot of the first one
//! 16   u16   page within the slot
//! 18   u16   sector within the page
//! 20   u8    region; 255: on the home disk, at the sector's own number; 254: nowhere, the sectors are lost
//! 21         zeros
//! ```
//!
//! Runs ascend and do not overlap. The last sector of a page is followed by the first one of the next page in the same
//! slot. Sectors in no run were never written or have been trimmed, and read as zeros.

mod reader;
mod survey;

use std::io;

use bimetal_core::media::Media;
use bimetal_core::request::Request;
use bimetal_core::scheme::{Metrics, Scheme};
use serde::Serialize;

use super::backing::Backing;
use super::bytes::{Buffer, put_u32, put_u64, u32_at, u64_at};
use super::checkpoint;
use super::commit::Committer;
use super::crc32c::{crc32c, crc32c_append};
use super::engine::Engine;
use super::frame::SECTORS_MAX;
use super::home_disk::HomeDisk;
use super::open;
use super::places::{Place, page_sectors};
use bimetal_core::device::Resolved;

pub use reader::Mapped;
use survey::{NOTED_MAX, survey};

const MAGIC: u32 = u32::from_le_bytes(*b"BMMP");
const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"BMMC");
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 64;
const FIRST_CHUNK: u64 = 4096;
const CHUNK_BYTES: usize = 64 << 10;
const CHUNK_HEAD_BYTES: usize = 40;
const RUN_BYTES: usize = 24;
const RUNS_MAX: usize = (CHUNK_BYTES - CHUNK_HEAD_BYTES) / RUN_BYTES;
const HOME_DISK: u8 = 255;
const NOWHERE: u8 = 254;

/// Consecutive sectors in adjacent places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MapRun {
    sector: u64,
    sectors: u32,
    place: Place,
}

impl MapRun {
    fn encode(&self, bytes: &mut [u8]) {
        let (slot, page, within, region) = match self.place {
            Place::Flash { region, slot, page, sector } => (slot, page, sector, region),
            Place::Disk(_) => (0, 0, 0, HOME_DISK),
            Place::Nowhere => (0, 0, 0, NOWHERE),
        };
        put_u64(bytes, 0, self.sector);
        put_u32(bytes, 8, self.sectors);
        put_u32(bytes, 12, slot);
        bytes[16..18].copy_from_slice(&page.to_le_bytes());
        bytes[18..20].copy_from_slice(&within.to_le_bytes());
        bytes[20] = region;
    }

    fn decode(bytes: &[u8]) -> Self {
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let sector = u64_at(bytes, 0);
        let place = match bytes[20] {
            HOME_DISK => Place::Disk(sector),
            NOWHERE => Place::Nowhere,
            region => Place::Flash { region, slot: u32_at(bytes, 12), page: short(16), sector: short(18) },
        };
        Self { sector, sectors: u32_at(bytes, 8), place }
    }
}

impl Committer {
    /// Writes the map of a store that is being closed. A store without a map is equally good, except for programs that
    /// do not know its scheme.
    pub(super) fn write_map(&mut self, engine: &mut Engine, resolved: &Resolved) {
        let waits = engine.media.disk().is_some_and(|disk: &mut HomeDisk| disk.lacks_room());
        let written = match self.files.map.clone() {
            // Data that are only in the journal can only be read with the scheme.
            _ if self.journal.bytes() > 0 || waits => Err(io::Error::other("there was no room for a checkpoint")),
            Some(file) => self.try_map(file.as_ref(), engine, resolved),
            None => return,
        };
        if let Err(error) = written {
            tracing::warn!("no map of the data was written: {error}; the store can be read by its scheme only");
            self.clear_map();
        }
    }

    fn try_map(&self, file: &dyn Backing, engine: &mut Engine, resolved: &Resolved) -> io::Result<()> {
        let page_sectors = page_sectors(engine.media.regions());
        let (store, opening) = (self.superblock.store, self.superblock.openings[0]);
        let mut map = Writer::new(file, store, opening, engine.sectors, page_sectors)?;
        // The scheme must not be called after this, because the survey adds reads to its figures.
        engine.last_figures = Some(engine.figures());
        let reload = |engine: &mut Engine| self.reload(engine, resolved);
        let surveyed = survey(engine, NOTED_MAX, reload, &mut |sector, sectors, place| map.add(sector, sectors, place));
        engine.is_broken = true;
        surveyed?;
        map.finish().map(|_| ())
    }

    /// Returns scheme and media to the state of the last checkpoint. The current state is dropped first, because memory
    /// is only available for one of them.
    fn reload(&self, engine: &mut Engine, resolved: &Resolved) -> io::Result<()> {
        let (Some(checkpoint), Some(contents)) = (&self.superblock.checkpoint, &self.superblock.contents) else {
            return Err(io::Error::other("there is no checkpoint"));
        };
        engine.scheme = Box::new(Gone);
        engine.media = open::open_media(&self.files, &self.superblock, contents, resolved).map_err(io::Error::other)?;
        let loaded = checkpoint::load(&self.files, &self.superblock, checkpoint, resolved, &mut engine.media);
        engine.scheme = loaded.map_err(io::Error::other)?.0;
        Ok(())
    }

    /// Releases the space of a map that does not match the store's state. It is invalid in any case.
    pub(super) fn clear_map(&self) {
        if let Some(map) = &self.files.map
            && map.length().is_ok_and(|bytes| bytes > 0)
        {
            map.set_len(0).ok();
        }
    }
}

/// Replaces a dropped scheme.
#[derive(Serialize)]
struct Gone;

impl<M: Media> Scheme<M> for Gone {
    fn fill(&mut self, _: &mut M) {}

    fn serve(&mut self, _: &mut M, _: &Request) {}

    fn metrics(&self, _: &mut Metrics) {}

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The header of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the store.
    pub store: u64,
    /// Number of the opening that wrote it.
    pub opening: u64,
    /// Sectors of the device.
    pub sectors: u64,
    chunks: u64,
    runs: u64,
    /// Number of sectors in runs.
    pub mapped: u64,
}

impl Header {
    fn encode(&self, seed: u32) -> Buffer {
        let mut buffer = Buffer::new(FIRST_CHUNK as usize);
        let bytes = buffer.bytes_mut();
        bytes.fill(0);
        put_u32(bytes, 4, MAGIC);
        put_u32(bytes, 8, FORMAT);
        let numbers = [self.store, self.opening, self.sectors, self.chunks, self.runs, self.mapped];
        for (number, at) in numbers.into_iter().zip((16..).step_by(8)) {
            put_u64(bytes, at, number);
        }
        let sum = crc32c_append(seed, &bytes[4..HEADER_BYTES]);
        put_u32(bytes, 0, sum);
        buffer
    }

    /// Reads the header, or returns the reason why there is none.
    fn read(file: &dyn Backing, seed: u32) -> io::Result<Result<Self, String>> {
        let mut bytes = [0; HEADER_BYTES];
        file.read_at(0, &mut bytes)?;
        if u32_at(&bytes, 4) != MAGIC {
            return Ok(Err("there is no map in it".into()));
        }
        if u32_at(&bytes, 8) != FORMAT {
            return Ok(Err(format!("it has format {} and this program knows format {FORMAT}", u32_at(&bytes, 8))));
        }
        if u32_at(&bytes, 0) != crc32c_append(seed, &bytes[4..]) {
            return Ok(Err("its checksum is wrong".into()));
        }
        let [store, opening, sectors, chunks, runs, mapped] = [16, 24, 32, 40, 48, 56].map(|at| u64_at(&bytes, at));
        if sectors >= SECTORS_MAX {
            return Ok(Err(format!("{sectors} sectors are more than a device can have")));
        }
        Ok(Ok(Self { store, opening, sectors, chunks, runs, mapped }))
    }
}

/// Writes a map, run by run in ascending order. Memory for one chunk is enough.
pub struct Writer<'a> {
    file: &'a dyn Backing,
    seed: u32,
    page_sectors: Vec<u32>,
    header: Header,
    last: Option<MapRun>,
    /// The place of the next sector if it continues the last run.
    next: Option<Place>,
    chunk: Buffer,
    filled: usize,
}

impl<'a> Writer<'a> {
    /// Begins the map of a device of `sectors` sectors for one opening of a store. `page_sectors` are the sectors of a
    /// page, by region.
    ///
    /// # Errors
    /// The file cannot be emptied.
    pub fn new(
        file: &'a dyn Backing,
        store: u64,
        opening: u64,
        sectors: u64,
        page_sectors: Vec<u32>,
    ) -> io::Result<Self> {
        file.set_len(0)?;
        let header = Header { store, opening, sectors, chunks: 0, runs: 0, mapped: 0 };
        let seed = crc32c(&store.to_le_bytes());
        Ok(Self {
            file,
            seed,
            page_sectors,
            header,
            last: None,
            next: None,
            chunk: Buffer::new(CHUNK_BYTES),
            filled: 0,
        })
    }

    /// Adds adjacent sectors from this place on, in one slot or on the home disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, sector: u64, sectors: u32, place: Place) -> io::Result<()> {
        let place = match place {
            Place::Disk(found) if found != sector => Place::Nowhere,
            place => place,
        };
        self.header.mapped += u64::from(sectors);
        let follows = self.next == Some(place);
        self.next = place.after(sectors, &self.page_sectors);
        if let Some(run) = &mut self.last {
            if follows
                && sector == run.sector + u64::from(run.sectors)
                && let Some(longer) = run.sectors.checked_add(sectors)
            {
                run.sectors = longer;
                return Ok(());
            }
            let run = *run;
            self.put(&run)?;
        }
        self.last = Some(MapRun { sector, sectors, place });
        Ok(())
    }

    fn put(&mut self, run: &MapRun) -> io::Result<()> {
        if self.filled == 0 {
            self.chunk.bytes_mut().fill(0);
        }
        let at = CHUNK_HEAD_BYTES + self.filled * RUN_BYTES;
        run.encode(&mut self.chunk.bytes_mut()[at..at + RUN_BYTES]);
        self.filled += 1;
        self.header.runs += 1;
        if self.filled == RUNS_MAX { self.write_chunk() } else { Ok(()) }
    }

    fn write_chunk(&mut self) -> io::Result<()> {
        let number = self.header.chunks;
        let bytes = self.chunk.bytes_mut();
        put_u32(bytes, 4, CHUNK_MAGIC);
        put_u64(bytes, 8, self.header.opening);
        put_u64(bytes, 16, number);
        put_u32(bytes, 24, self.filled as u32);
        let sum = crc32c_append(self.seed, &bytes[4..]);
        put_u32(bytes, 0, sum);
        self.file.write_at(FIRST_CHUNK + number * CHUNK_BYTES as u64, bytes)?;
        self.header.chunks += 1;
        self.filled = 0;
        Ok(())
    }

    /// Completes the map and makes it durable.
    ///
    /// # Errors
    /// The file cannot be written, or the map may not be durable.
    pub fn finish(mut self) -> io::Result<Header> {
        if let Some(run) = self.last.take() {
            self.put(&run)?;
        }
        if self.filled > 0 {
            self.write_chunk()?;
        }
        self.file.write_at(0, self.header.encode(self.seed).bytes())?;
        self.file.sync()?;
        Ok(self.header)
    }
}

/// Hands the runs of a map to `take`, in order.
///
/// # Errors
/// Errors of `take`, a read error of the file, or, as text, an error in the map.
fn each_run(
    file: &dyn Backing,
    header: &Header,
    seed: u32,
    mut take: impl FnMut(&MapRun) -> io::Result<()>,
) -> io::Result<Result<(), String>> {
    let mut chunk = Buffer::new(CHUNK_BYTES);
    let (mut next, mut runs) = (0, 0);
    for number in 0..header.chunks {
        let Some(at) = number.checked_mul(CHUNK_BYTES as u64).and_then(|at| at.checked_add(FIRST_CHUNK)) else {
            return Ok(Err("it has more chunks than there can be".into()));
        };
        file.read_at(at, chunk.bytes_mut())?;
        let bytes = chunk.bytes();
        let filled = u32_at(bytes, 24) as usize;
        let is_own = (u64_at(bytes, 8), u64_at(bytes, 16)) == (header.opening, number);
        if u32_at(bytes, 4) != CHUNK_MAGIC
            || u32_at(bytes, 0) != crc32c_append(seed, &bytes[4..])
            || !is_own
            || filled > RUNS_MAX
        {
            return Ok(Err(format!("chunk {number} is damaged")));
        }
        for bytes in bytes[CHUNK_HEAD_BYTES..].chunks_exact(RUN_BYTES).take(filled) {
            let run = MapRun::decode(bytes);
            let end = run.sector.checked_add(u64::from(run.sectors));
            match end.filter(|&end| run.sector >= next && run.sectors > 0 && end <= header.sectors) {
                Some(end) => next = end,
                None => return Ok(Err(format!("chunk {number} has sectors that cannot be"))),
            }
            take(&run)?;
            runs += 1;
        }
    }
    if runs != header.runs {
        return Ok(Err(format!("it has {runs} runs instead of {}", header.runs)));
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::backing::{Access, Storage};
    use crate::store::crash_backing::CrashStorage;
    use crate::store::names::MAP;

    const PAGE_SECTORS: [u32; 2] = [4, 8];

    fn flash(region: u8, slot: u32, page: u16, sector: u16) -> Place {
        Place::Flash { region, slot, page, sector }
    }

    fn written(storage: &CrashStorage, sectors: impl IntoIterator<Item = (u64, Place)>) -> (Box<dyn Backing>, Header) {
        let file = storage.open(MAP, Access::Create, false).unwrap();
        let mut writer = Writer::new(file.as_ref(), 7, 8, 1 << 30, PAGE_SECTORS.to_vec()).unwrap();
        for (sector, place) in sectors {
            writer.add(sector, 1, place).unwrap();
        }
        let header = writer.finish().unwrap();
        (file, header)
    }

    fn read(file: &dyn Backing) -> Result<Vec<MapRun>, String> {
        let seed = crc32c(&7_u64.to_le_bytes());
        let header = Header::read(file, seed).unwrap()?;
        let mut runs = Vec::new();
        each_run(file, &header, seed, |run| {
            runs.push(*run);
            Ok(())
        })
        .unwrap()?;
        Ok(runs)
    }

    #[test]
    fn sectors_that_lie_one_behind_the_other_are_a_run() {
        let storage = CrashStorage::new();
        let sectors = [
            (10, flash(0, 5, 1, 2)),
            (11, flash(0, 5, 1, 3)),
            (12, flash(0, 5, 2, 0)),
            (13, flash(1, 5, 2, 1)),
            (15, flash(1, 5, 2, 2)),
            (16, Place::Disk(16)),
            (17, Place::Disk(17)),
            (18, Place::Disk(20)),
            (19, Place::Nowhere),
            (20, flash(0, 6, 0, 0)),
        ];
        let (file, header) = written(&storage, sectors);
        let run = |sector, sectors, place| MapRun { sector, sectors, place };
        let expected = [
            run(10, 3, flash(0, 5, 1, 2)),
            run(13, 1, flash(1, 5, 2, 1)),
            run(15, 1, flash(1, 5, 2, 2)),
            run(16, 2, Place::Disk(16)),
            run(18, 2, Place::Nowhere),
            run(20, 1, flash(0, 6, 0, 0)),
        ];
        assert_eq!(read(file.as_ref()).unwrap(), expected);
        assert_eq!((header.mapped, header.runs, header.chunks), (10, 6, 1));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let storage = CrashStorage::new();
        let sectors = (0..3000).map(|sector| (sector, flash(0, (sector % 7) as u32, 0, 0)));
        let (file, header) = written(&storage, sectors);
        assert_eq!((header.chunks, read(file.as_ref()).unwrap().len()), (2, 3000));
        let chunk = FIRST_CHUNK as usize;
        let places = (0..HEADER_BYTES).chain((chunk..chunk + 2 * CHUNK_BYTES).step_by(501));
        for byte in places {
            storage.flip(MAP, byte * 8 + byte % 8);
            assert!(read(file.as_ref()).is_err(), "byte {byte}");
            storage.flip(MAP, byte * 8 + byte % 8);
        }
        assert!(read(file.as_ref()).is_ok());
    }

    /// A user with access to the files can recompute checksums.
    #[test]
    fn figures_that_cannot_be_are_refused() {
        let storage = CrashStorage::new();
        let (file, header) = written(&storage, [(10, flash(0, 5, 1, 2))]);
        let far = Header { sectors: u64::MAX, ..header };
        for wrong in
            [far, Header { chunks: u64::MAX, ..header }, Header { runs: 2, ..header }, Header { sectors: 10, ..header }]
        {
            let seed = crc32c(&7_u64.to_le_bytes());
            file.write_at(0, wrong.encode(seed).bytes()).unwrap();
            assert!(read(file.as_ref()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_empty_device_has_an_empty_map() {
        let storage = CrashStorage::new();
        let (file, header) = written(&storage, []);
        assert_eq!((read(file.as_ref()).unwrap(), header.chunks), (vec![], 0));
    }
}
