//! `FileMedia`: flash and disk whose bytes are in files.
//!
//! Every verb is counted and timed by the [`SimMedia`] inside, so that a simulator and a device that do the same count the
//! same. Beside that it moves bytes. While events are replayed it moves none: what they moved is in place.
//!
//! What the verbs cannot say is latched. A file that cannot be read or written is a *failure*: from then on nothing is
//! written any more, and what a scheme still programs is held in memory, so that all that was read before can still be
//! read. A page for which the file system has no room is held in memory, too, until there is some. A page that is damaged is a *media error*: the loss mark travels with the data, and a host that asks
//! for one of them is told.

mod frames;
mod moves;
mod row;
mod verbs;

use std::collections::BTreeMap;
use std::io;

use bimetal_core::ledger::{Ledger, Server};
use bimetal_core::media::{Part, SimMedia, Simulation};
use bimetal_core::replay::HostCounts;
use bimetal_core::request::{Op, Request};
use bimetal_core::save::{self, Save};
use bimetal_core::units::RegionId;

use super::arena::{Arena, HostData};
use super::backing::{File, is_full};
use super::bitmap::Bitmap;
use super::bytes::Buffer;
use super::frame::{SECTOR, Tag};
use super::home_disk::HomeDisk;
use super::limits::FEW_BYTES;
use super::places::Survey;
use super::reading::{Misread, Reading};
use super::region::{Leaving, Region, Spot};
use super::state::{Layout, Reader, Writer, bounded};
use moves::Move;
use row::Row;

/// What becomes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// They are where they belong: events are replayed.
    Replay,
    /// They go to the files.
    Files,
    /// They are held in memory: the files stay as they are.
    Memory,
}

/// A page or sectors on their way: when they are ready, and where they are.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    ready: u64,
    from: From,
}

/// Where sectors are that are on their way.
#[derive(Clone, Copy, Debug)]
enum From {
    /// In memory, from this sector of the arena on.
    Arena(u32),
    /// In a page that was read: its number among those of the request. Its bytes are loaded when somebody needs them: what a scheme
    /// reads for its map alone is counted and nothing else.
    Page(u32),
}

/// A page that was read by the request.
#[derive(Clone, Copy, Debug)]
struct PageRead {
    region: RegionId,
    /// None if it was never programmed.
    spot: Option<Spot>,
    /// Where its sectors are in the arena, once they are loaded.
    first: Option<u32>,
}

/// Why nothing is written any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What could not be done.
    pub what: String,
}

/// Regions in files, over a disk in a file if there is one.
pub struct FileMedia {
    sim: SimMedia,
    regions: Vec<Region>,
    disk: Option<HomeDisk>,
    seed: u32,
    io: Io,
    /// Last sequence number in use.
    sequence: u64,
    /// End of the last request, of the modelled device.
    now_ns: u64,
    written: Bitmap,
    arena: Arena,
    pages: Vec<PageRead>,
    /// The frame of a page that is read or written.
    frame: Buffer,
    /// Pages of a large write that are to be written next.
    row: Row,
    /// Pages that are to be moved next.
    moves: Vec<Move>,
    parts: Vec<Part<u64>>,
    request: Request,
    reading: Reading,
    held: BTreeMap<(u8, u64), Vec<u8>>,
    held_bytes: usize,
    releases: u64,
    failure: Option<Failure>,
    media_errors: u64,
    host: HostCounts,
    /// Whether the event that happens has done anything.
    is_busy: bool,
    /// The notes of a survey. With it no data are moved and nothing is counted.
    survey: Option<Box<Survey>>,
}

impl FileMedia {
    /// Erased regions and a disk never written, for a host that sees `sectors` sectors. Events are replayed until
    /// [`FileMedia::set_io`].
    pub fn new(sim: SimMedia, regions: Vec<Region>, disk: Option<HomeDisk>, sectors: u64, seed: u32) -> Self {
        let stride = regions.iter().map(|region| region.layout.stride()).max().unwrap_or(0);
        Self {
            sim,
            regions,
            disk,
            seed,
            io: Io::Replay,
            sequence: 0,
            now_ns: 0,
            written: Bitmap::new(sectors),
            arena: Arena::default(),
            pages: Vec::new(),
            frame: Buffer::new(stride),
            row: Row::default(),
            moves: Vec::new(),
            parts: Vec::new(),
            request: Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Read, handle: 0 },
            reading: Reading::default(),
            held: BTreeMap::new(),
            held_bytes: 0,
            releases: 0,
            failure: None,
            media_errors: 0,
            host: HostCounts::default(),
            is_busy: false,
            survey: None,
        }
    }

    /// Says what becomes of bytes from now on.
    pub fn set_io(&mut self, io: Io) {
        self.io = io;
    }

    /// Begins a survey: from now on no data are moved and nothing is counted, and the media note where sectors lie in the files.
    pub fn begin_survey(&mut self) {
        self.survey = Some(Box::default());
    }

    /// The notes of the survey that was begun.
    pub fn survey(&self) -> Option<&Survey> {
        self.survey.as_deref()
    }

    /// The notes of the survey, for the next request.
    pub fn survey_mut(&mut self) -> Option<&mut Survey> {
        self.survey.as_deref_mut()
    }

    /// Last sequence number in use.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Goes on with the sequence number after this one.
    pub fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Begins a request, at a time of the modelled device or when the last one ended. A write comes with its data.
    pub fn begin(&mut self, request: &Request, data: HostData<'_>, issue_ns: Option<u64>) {
        self.host.add(request);
        self.request = *request;
        self.clear();
        match request.op {
            Op::Write => {
                self.sequence += 1;
                if self.io != Io::Replay {
                    for (tag, sector) in self.arena.take_host(data).iter_mut().zip(request.sector..) {
                        *tag = Tag::new(sector, self.sequence);
                    }
                }
            }
            Op::Read if self.io != Io::Replay => {
                self.reading.begin(request.sector, request.sectors, &self.written);
            }
            Op::Read | Op::Trim => {}
        }
        self.sim.begin(request, issue_ns.unwrap_or(self.now_ns));
    }

    /// Ends the request.
    pub fn end(&mut self) {
        self.write_deferred();
        self.arena.give_back();
        match self.request.op {
            Op::Write => self.written.set(self.request.sector, u64::from(self.request.sectors), true),
            Op::Trim => self.written.set(self.request.sector, u64::from(self.request.sectors), false),
            Op::Read => {}
        }
        self.now_ns = self.sim.end();
    }

    /// Sectors that the host trimmed read as zeros, whatever the scheme has of them.
    pub fn forget(&mut self, sector: u64, sectors: u32) {
        self.host.add(&Request { arrival_ns: 0, sector, sectors, op: Op::Trim, handle: 0 });
        self.written.set(sector, u64::from(sectors), false);
    }

    /// When the last request ended on the modelled device, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The read that was served last, to be finished elsewhere. The next one uses `spare`.
    pub fn take_reading(&mut self, spare: Reading) -> Reading {
        std::mem::replace(&mut self.reading, spare)
    }

    /// A read could not be finished: a file has failed, or pages are damaged.
    pub fn note_misread(&mut self, misread: &Misread) {
        for (spot, error) in &misread.damaged {
            self.note_damage(spot, *error);
        }
        if let Some((region, error)) = &misread.unreadable {
            self.fail(format!("a page of region {region} cannot be read"), error);
        }
    }

    /// Commits after which slots were given to others.
    pub fn releases(&self) -> u64 {
        self.releases
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.pages.clear();
        self.row.clear();
        self.moves.clear();
    }

    /// Begins background work.
    pub fn begin_idle(&mut self) {
        self.clear();
        // There is none that what follows could be part of.
        self.request.sectors = 0;
        self.is_busy = false;
        self.sim.begin_background();
    }

    /// Ends it.
    pub fn end_idle(&mut self) {
        self.write_deferred();
    }

    /// Whether the scheme has used the background time that was begun last.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Why nothing is written any more, if so.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Writes nothing any more, because of that.
    pub fn fail(&mut self, what: impl Into<String>, error: &io::Error) {
        if self.failure.is_none() {
            let what = format!("{}: {error}", what.into());
            tracing::error!("{what}; the device is read-only from now on");
            self.failure = Some(Failure { what });
        }
        self.io = Io::Memory;
    }

    /// What was counted.
    pub fn ledger(&self) -> &Ledger {
        self.sim.ledger()
    }

    /// What the host has asked for since the store was made; a large request is several.
    pub fn host(&self) -> HostCounts {
        self.host
    }

    /// What its dies, channels and disks did on the modelled device.
    pub fn servers(&self) -> Vec<Server> {
        self.sim.servers()
    }

    /// Pages found damaged.
    pub fn media_errors(&self) -> u64 {
        self.media_errors
    }

    /// Which sectors hold data.
    pub fn written(&self) -> &Bitmap {
        &self.written
    }

    /// The regions.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The disk.
    pub fn disk(&mut self) -> Option<&mut HomeDisk> {
        self.disk.as_mut()
    }

    /// Bytes that are held in memory because the files stay as they are.
    pub fn held_bytes(&self) -> usize {
        let disk = if self.io == Io::Memory { self.disk.as_ref().map_or(0, |disk| disk.pending() * SECTOR) } else { 0 };
        self.held_bytes + disk
    }

    /// Sectors of the disk that wait for a commit.
    pub fn disk_pending(&self) -> usize {
        self.disk.as_ref().map_or(0, HomeDisk::pending)
    }

    /// Whether a region is short of slots before the next commit.
    pub fn wants_commit(&self) -> bool {
        self.regions.iter().any(Region::wants_commit)
    }

    /// Whether room must be taken before a write is accepted.
    #[inline]
    pub fn lacks_room(&self) -> bool {
        !self.held.is_empty()
            || self.regions.iter().any(Region::lacks_room)
            || self.disk.as_ref().is_some_and(HomeDisk::lacks_room)
    }

    /// Whether the room kept for requests other than writes is used up, but for that of commits.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        !self.held.is_empty() || self.regions.iter().any(Region::is_exhausted)
    }

    /// Writes what there was no room for, and takes room for what a write may lead to.
    ///
    /// # Errors
    /// There is too little, or the files cannot be written.
    pub fn make_room(&mut self) -> io::Result<()> {
        self.place_held()?;
        // What is kept ahead in one place does not wait for what is missing in another.
        let mut made = self.disk.as_mut().map_or(Ok(()), HomeDisk::place_waiting);
        for region in &mut self.regions {
            made = region.make_room().and(made);
        }
        made
    }

    /// A commit begins whose pages are in the files already: events are replayed.
    pub fn begin_commit(&mut self) {
        self.regions.iter_mut().for_each(Region::pass);
    }

    /// A commit begins: pages that it is to write. Whether they are so few that its batch has them; otherwise they are to be durable
    /// before it is.
    ///
    /// # Errors
    /// The files cannot be written. After one that [`is_full`](super::backing::is_full) it can be done again.
    pub fn leave(&mut self) -> io::Result<(Vec<Leaving>, bool)> {
        self.place_held()?;
        let waiting = self.regions.iter().try_fold(0, |sum, region| Some(sum + region.waiting_bytes()?));
        let are_few = waiting.is_some_and(|bytes| bytes <= FEW_BYTES);
        Ok((self.regions.iter_mut().filter_map(Region::leave).collect(), are_few))
    }

    /// Puts frames in place that were durable in the journal. If it `holds` them, or there is no room, they are held in memory.
    ///
    /// # Errors
    /// They are none of this device, or the files fail.
    pub fn put_back(&mut self, region: u8, offset: u64, frames: &[u8], holds: bool) -> Result<(), String> {
        let (held, held_bytes) = (&mut self.held, &mut self.held_bytes);
        let of_region = self.regions.get_mut(usize::from(region)).ok_or("it has pages of no region")?;
        of_region.put_back(offset, frames, self.seed, |of_region, offset, frame| {
            match if holds { Err(io::ErrorKind::StorageFull.into()) } else { of_region.write_through(offset, frame) } {
                Err(error) if is_full(&error) => {
                    let old = held.insert((region, offset), frame.to_vec());
                    *held_bytes += frame.len() - old.map_or(0, |old| old.len());
                    Ok(())
                }
                written => written,
            }
        })
    }

    /// Files to which anything was written that no commit has been told of.
    pub fn take_dirty(&mut self) -> Vec<File> {
        let of_disk = self.disk.as_mut().and_then(HomeDisk::take_dirty);
        self.regions.iter_mut().filter_map(Region::take_dirty).chain(of_disk.into_iter().flatten()).collect()
    }

    /// Whether a commit has begun that is not durable.
    pub fn is_leaving(&self) -> bool {
        self.regions.iter().any(Region::is_leaving)
    }

    /// The oldest of the commits that have begun is durable: what it made superfluous is free.
    pub fn left(&mut self) {
        self.releases += 1;
        let punches = self.io == Io::Files;
        self.regions.iter_mut().for_each(|region| region.left(punches));
    }

    /// Appends its state to a checkpoint: `u64` sequence number, `u64` modelled time, `u64` media errors, the sectors' bits as a
    /// section, each region, then what the host asked for and the simulated media, each as a section.
    pub fn save(&self, out: &mut Writer<'_>) {
        out.u64(self.sequence);
        out.u64(self.now_ns);
        out.u64(self.media_errors);
        self.written.save(out);
        self.regions.iter().for_each(|region| region.save(out));
        out.section(|bytes| self.host.save(bytes));
        out.section(|bytes| self.sim.save(bytes));
    }

    /// Reads its state from a checkpoint.
    ///
    /// # Errors
    /// It is not that of such a device.
    pub fn restore(&mut self, state: &mut Reader<'_>, layout: Layout) -> Result<(), String> {
        self.sequence = state.u64().and_then(bounded)?;
        self.now_ns = state.u64().and_then(bounded)?;
        self.media_errors = state.u64().and_then(bounded)?;
        self.written.restore(state, layout)?;
        for region in &mut self.regions {
            region.restore(state, layout)?;
        }
        self.host = save::restore(&self.host, state.section()?).map_err(|error| error.to_string())?;
        let HostCounts { reads, writes, trims, read_sectors, write_sectors } = self.host;
        for count in [reads, writes, trims, read_sectors, write_sectors] {
            bounded(count.saturating_mul(SECTOR as u64))?;
        }
        self.sim = self.sim.restored(state.section()?).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Bytes of memory that it takes for what it knows of the device, and for buffers.
    pub fn memory_bytes(&self) -> (usize, usize) {
        let regions = self.regions.iter().map(Region::memory_bytes);
        let (known, waiting) = regions.fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1));
        let disk = self.disk.as_ref().map_or(0, HomeDisk::memory_bytes);
        let deferred = self.row.memory_bytes() + self.moves.capacity() * size_of::<Move>();
        let frames = self.frame.capacity() + deferred;
        let buffers = self.arena.memory_bytes() + frames + self.reading.memory_bytes() + self.held_bytes;
        (self.written.memory_bytes() + known, buffers + waiting + disk)
    }
}
