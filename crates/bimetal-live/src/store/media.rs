//! `FileMedia`: flash and disk with data in files.
//!
//! The inner [`SimMedia`] counts and times every verb, so that a simulator and a device with the same operations have
//! the same counts. In addition, `FileMedia` moves bytes. During a replay of events it moves none, because the data are
//! already in place.
//!
//! Verbs cannot return errors, so errors are latched. A file that cannot be read or written is a *failure*: from then
//! on nothing is written any more. Pages that the scheme still programs are held in memory, so that all data that were
//! readable before remain readable. A page that lacks space in the file system is also held in memory, until there is
//! space. A damaged page is a *media error*: the loss mark travels with the data, and a host that reads one of these
//! sectors gets an error.

mod composed;
mod frames;
mod moves;
mod row;
#[cfg(test)]
mod testing;
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
use super::state::{Reader, Writer, bounded};
use composed::Composing;
use moves::Move;
use row::Row;

/// Destination of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// None, because they are in place: events are replayed.
    Replay,
    /// The files.
    Files,
    /// Memory, because the files must not change.
    Memory,
}

/// A page or sectors in transit: time when they are ready, and their place.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    ready: u64,
    from: From,
}

/// Place of sectors in transit.
#[derive(Clone, Copy, Debug)]
enum From {
    /// In memory, from this sector of the arena on.
    Arena(u32),
    /// In a page that was read, by its index among the pages of the request. Its bytes are loaded on demand: page reads
    /// that a scheme needs only for its map are counted and nothing else.
    Page(u32),
}

/// A page that the request has read.
#[derive(Clone, Copy, Debug)]
struct PageRead {
    region: RegionId,
    /// `None` if it was never programmed.
    spot: Option<Spot>,
    /// First sector in the arena, once the sectors are loaded.
    first: Option<u32>,
}

/// Reason why nothing is written any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The failed operation.
    pub what: String,
}

/// Frames held in memory, by region and offset in its file.
type Held = BTreeMap<(u8, u64), Vec<u8>>;

/// Regions in files, and a disk in a file if there is one.
pub struct FileMedia {
    sim: SimMedia,
    regions: Vec<Region>,
    disk: Option<HomeDisk>,
    seed: u32,
    io: Io,
    /// Last sequence number in use.
    sequence: u64,
    /// End of the last request on the modelled device, in nanoseconds.
    now_ns: u64,
    written: Bitmap,
    arena: Arena,
    pages: Vec<PageRead>,
    /// The frame of the page that is being read or written.
    frame: Buffer,
    /// Pages of a large write that are written next.
    row: Row,
    /// Pages that are moved next.
    moves: Vec<Move>,
    /// Pages that are composed next.
    composing: Composing,
    parts: Vec<Part<u64>>,
    request: Request,
    reading: Reading,
    held: Held,
    held_bytes: usize,
    releases: u64,
    failure: Option<Failure>,
    media_errors: u64,
    /// Damaged pages that were logged since the store was opened.
    logged_errors: u32,
    host: HostCounts,
    /// Whether the current event has done any work.
    is_busy: bool,
    /// Notes of a survey. During a survey no data are moved and nothing is counted.
    survey: Option<Box<Survey>>,
}

impl FileMedia {
    /// Erased regions and an unwritten disk, for a host with `sectors` sectors. Events are replayed until
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
            composing: Composing::default(),
            parts: Vec::new(),
            request: Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Read, handle: 0 },
            reading: Reading::default(),
            held: BTreeMap::new(),
            held_bytes: 0,
            releases: 0,
            failure: None,
            media_errors: 0,
            logged_errors: 0,
            host: HostCounts::default(),
            is_busy: false,
            survey: None,
        }
    }

    /// Sets the destination of bytes from now on.
    pub fn set_io(&mut self, io: Io) {
        self.io = io;
    }

    /// Begins a survey. From now on no data are moved and nothing is counted, and the media note the places of sectors
    /// in the files.
    pub fn begin_survey(&mut self) {
        self.survey = Some(Box::new(Survey::new(&self.regions)));
    }

    /// The notes of the current survey.
    pub fn survey(&self) -> Option<&Survey> {
        self.survey.as_deref()
    }

    /// The notes of the current survey, mutable, for the next request.
    pub fn survey_mut(&mut self) -> Option<&mut Survey> {
        self.survey.as_deref_mut()
    }

    /// Last sequence number in use.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Continues with the sequence number after this one.
    pub fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Begins a request, at a time on the modelled device or at the end of the last one. A write includes its data.
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

    /// Sectors that the host has trimmed: they read as zeros, even if the scheme still has data of them.
    pub fn forget(&mut self, sector: u64, sectors: u32) {
        self.host.add(&Request { arrival_ns: 0, sector, sectors, op: Op::Trim, handle: 0 });
        self.written.set(sector, u64::from(sectors), false);
    }

    /// End of the last request on the modelled device, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The plan of the last read, to be finished outside. The next read uses `spare`.
    pub fn take_reading(&mut self, spare: Reading) -> Reading {
        std::mem::replace(&mut self.reading, spare)
    }

    /// Notes that a read could not be finished: a file failed, or pages are damaged.
    pub fn note_misread(&mut self, misread: &Misread) {
        for (spot, error) in &misread.damaged {
            self.note_damage(spot, *error);
        }
        if let Some((region, error)) = &misread.unreadable {
            self.fail(format!("a page of region {region} cannot be read"), error);
        }
    }

    /// Number of commits after which slots were reused.
    pub fn releases(&self) -> u64 {
        self.releases
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.pages.clear();
        self.row.clear();
        self.moves.clear();
        self.composing.clear();
    }

    /// Begins background work.
    pub fn begin_idle(&mut self) {
        self.clear();
        // Following operations are not part of a request.
        self.request.sectors = 0;
        self.is_busy = false;
        self.sim.begin_background();
    }

    /// Ends background work.
    pub fn end_idle(&mut self) {
        self.write_deferred();
    }

    /// Whether the scheme used the last background time.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Reason why nothing is written any more, if there is one.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Stops all writing because of an error.
    pub fn fail(&mut self, what: impl Into<String>, error: &io::Error) {
        if self.failure.is_none() {
            let what = format!("{}: {error}", what.into());
            tracing::error!("{what}; the device is read-only from now on");
            self.failure = Some(Failure { what });
        }
        self.io = Io::Memory;
    }

    /// The counts and times.
    pub fn ledger(&self) -> &Ledger {
        self.sim.ledger()
    }

    /// Counts of the host's requests since the store was created. A large request counts as several.
    pub fn host(&self) -> HostCounts {
        self.host
    }

    /// Load of dies, channels and disks on the modelled device.
    pub fn servers(&self) -> Vec<Server> {
        self.sim.servers()
    }

    /// Number of damaged pages found.
    pub fn media_errors(&self) -> u64 {
        self.media_errors
    }

    /// Bitmap of the sectors that hold data.
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

    /// Bytes held in memory because the files must not change.
    pub fn held_bytes(&self) -> usize {
        let disk = if self.io == Io::Memory { self.disk.as_ref().map_or(0, |disk| disk.pending() * SECTOR) } else { 0 };
        self.held_bytes + disk
    }

    /// Sectors of the disk that wait for a commit.
    pub fn disk_pending(&self) -> usize {
        self.disk.as_ref().map_or(0, HomeDisk::pending)
    }

    /// Whether a region may run out of slots before the next commit.
    pub fn wants_commit(&self) -> bool {
        self.regions.iter().any(Region::wants_commit)
    }

    /// Whether a request must wait for a commit that frees slots.
    #[inline]
    pub fn lacks_slots(&self) -> bool {
        self.io == Io::Files && self.regions.iter().any(Region::lacks_slots)
    }

    /// Whether space must be allocated before a write is accepted.
    #[inline]
    pub fn lacks_room(&self) -> bool {
        !self.held.is_empty()
            || self.regions.iter().any(Region::lacks_room)
            || self.disk.as_ref().is_some_and(HomeDisk::lacks_room)
    }

    /// Whether the space for requests other than writes is used up, except for the space of commits.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        !self.held.is_empty() || self.regions.iter().any(Region::is_exhausted)
    }

    /// Writes data that lacked space, and allocates the space that a write may need.
    ///
    /// # Errors
    /// There is too little space, or the files cannot be written.
    pub fn make_room(&mut self) -> io::Result<()> {
        self.place_held()?;
        // A lack of space in one place does not delay allocation in another.
        let mut made = self.disk.as_mut().map_or(Ok(()), HomeDisk::place_waiting);
        for region in &mut self.regions {
            made = region.make_room().and(made);
        }
        made
    }

    /// Begins a commit whose pages are already in the files, because events are replayed.
    pub fn begin_commit(&mut self) {
        self.regions.iter_mut().for_each(Region::pass);
    }

    /// Begins a commit. Returns the pages that it writes, and whether they are few enough to be part of its batch.
    /// Otherwise they must be durable before the batch.
    ///
    /// # Errors
    /// The files cannot be written. After an error that [`is_full`](super::backing::is_full) the call can be repeated.
    pub fn leave(&mut self) -> io::Result<(Vec<Leaving>, bool)> {
        self.place_held()?;
        let waiting = self.regions.iter().try_fold(0, |sum, region| Some(sum + region.waiting_bytes()?));
        let are_few = waiting.is_some_and(|bytes| bytes <= FEW_BYTES);
        Ok((self.regions.iter_mut().filter_map(Region::leave).collect(), are_few))
    }

    /// Writes frames from the journal to their places. If `holds` is set, or there is no space, they are held in memory
    /// instead.
    ///
    /// # Errors
    /// The frames do not belong to this device, or the files fail.
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

    /// Files with writes that no commit has covered.
    pub fn take_dirty(&mut self) -> Vec<File> {
        let of_disk = self.disk.as_mut().and_then(HomeDisk::take_dirty);
        self.regions.iter_mut().filter_map(Region::take_dirty).chain(of_disk.into_iter().flatten()).collect()
    }

    /// Whether a commit has begun that is not durable.
    pub fn is_leaving(&self) -> bool {
        self.regions.iter().any(Region::is_leaving)
    }

    /// The oldest commit in progress is durable: slots and memory that it made superfluous are free.
    pub fn left(&mut self) {
        self.releases += 1;
        let punches = self.io == Io::Files;
        self.regions.iter_mut().for_each(|region| region.left(punches));
    }

    /// Appends its state to a checkpoint: `u64` sequence number, `u64` modelled time, `u64` media errors, the sectors'
    /// bits as a section, each region, then the host's counts and the simulated media, each as a section.
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
    /// The state does not fit this device.
    pub fn restore(&mut self, state: &mut Reader<'_>) -> Result<(), String> {
        self.sequence = state.u64().and_then(bounded)?;
        self.now_ns = state.u64().and_then(bounded)?;
        self.media_errors = state.u64().and_then(bounded)?;
        self.written.restore(state)?;
        for region in &mut self.regions {
            region.restore(state)?;
        }
        self.host = save::restore(&self.host, state.section()?).map_err(|error| error.to_string())?;
        let HostCounts { reads, writes, trims, read_sectors, write_sectors } = self.host;
        for count in [reads, writes, trims, read_sectors, write_sectors] {
            bounded(count.saturating_mul(SECTOR as u64))?;
        }
        self.sim = self.sim.restored(state.section()?).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Memory in bytes for the state of the device, and for buffers.
    pub fn memory_bytes(&self) -> (usize, usize) {
        let regions = self.regions.iter().map(Region::memory_bytes);
        let (known, waiting) = regions.fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1));
        let disk = self.disk.as_ref().map_or(0, HomeDisk::memory_bytes);
        let moves = self.moves.capacity() * size_of::<Move>();
        let deferred = self.row.memory_bytes() + moves + self.composing.memory_bytes();
        let frames = self.frame.capacity() + deferred;
        let buffers = self.arena.memory_bytes() + frames + self.reading.memory_bytes() + self.held_bytes;
        (self.written.memory_bytes() + known, buffers + waiting + disk)
    }
}
