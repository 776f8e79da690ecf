//! What happens when: events into the scheme, commits, checkpoints.
//!
//! A commit makes durable, in this order: the pages that were programmed, then the batch of events that led to them, with
//! what they wrote to the home disk. The batch is what counts: without it the device is, after a crash, as the commit
//! before left it. Only then are slots of erased blocks given to others, and the home disk written in place.
//!
//! A full file system is no failure. A write is accepted only if there is room for what it may lead to: in regions that are
//! sparse, and in the journal. Trims use that room until half of it is left for commits; then the scheme is not told of them, and
//! their sectors read as zeros all the same. Pages for which there is no room in spite of this are held in memory and written with
//! the next write or commit that finds some, so that the device goes on by itself.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bimetal_core::replay::Responses;
use bimetal_core::request::Op;
use bimetal_core::scheme::Scheme;

use super::backing::is_full;
use super::event::Event;
use super::files::Files;
use super::frame::SECTOR;
use super::home_disk::HomeDisk;
use super::journal::{Header, Journal};
use super::media::FileMedia;
use super::superblock::{NUMBER_MAX, Superblock};
use crate::block_device::IoError;

/// When a store does what it must do now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Events in memory that force a commit: 16 bytes each, reads among them.
    pub events: usize,
    /// Sectors written to the home disk that force one.
    pub disk_sectors: usize,
    /// Bytes of journal that force a checkpoint; fewer do on a small device.
    pub journal_bytes: u64,
    /// Sectors of a read or write that are one event; larger requests are several.
    pub request_sectors: u32,
    /// Sectors of a trim that are one event.
    pub trim_sectors: u32,
    /// Bytes that a device that cannot be written to holds in memory, for what its scheme moves while it is read.
    pub held_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            events: 65_536,
            disk_sectors: 16_384,
            journal_bytes: 32 << 20,
            request_sectors: 256,
            trim_sectors: 131_072,
            held_bytes: 64 << 20,
        }
    }
}

/// The part of a device's capacity that its journal has before a checkpoint, and the least that it has.
const JOURNAL_PART: u64 = 8;
const JOURNAL_MIN: u64 = 1 << 20;
/// Events for which there is no room in the journal, as a multiple of those that force a commit, that are too many to wait.
const WAITING_MAX: usize = 16;

impl Limits {
    /// Bytes of journal that force a checkpoint of a device of so many sectors.
    pub fn journal_limit(&self, sectors: u64) -> u64 {
        self.journal_bytes
            .min((sectors * SECTOR as u64 / JOURNAL_PART).clamp(JOURNAL_MIN, Self::default().journal_bytes))
    }
}

/// How often things happened since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commits.
    pub commits: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Reads of sectors that are lost.
    pub failed_reads: u64,
}

/// How long the modelled device took for what the host asked since the store was opened.
#[derive(Clone, Debug, Default)]
pub struct Modelled {
    /// Reads.
    pub reads: Responses,
    /// Writes.
    pub writes: Responses,
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("no more is known")
}

/// A scheme, its media, and how they survive.
pub struct Engine {
    pub(super) files: Arc<Files>,
    pub(super) superblock: Superblock,
    pub(super) sectors: u64,
    pub(super) media: FileMedia,
    pub(super) scheme: Box<dyn Scheme<FileMedia>>,
    /// The scheme has panicked: its state is worth nothing any more.
    pub(super) is_broken: bool,
    pub(super) journal: Journal,
    pub(super) limits: Limits,
    /// Bytes of journal that force a checkpoint on this device, and those at which the next one is due.
    pub(super) journal_limit: u64,
    pub(super) checkpoint_at: u64,
    /// Bytes of journal that there must be room for before a write is accepted.
    pub(super) batch_bytes: u64,
    /// Writes are refused because the file system is full.
    pub(super) is_full: bool,
    /// Events since the last commit, whether the host would lose something with them, the number of the first, and the last
    /// sequence number before it.
    pub(super) pending: Vec<Event>,
    pub(super) changes_data: bool,
    pub(super) first_event: u64,
    pub(super) first_sequence: u64,
    pub(super) counts: Counts,
    pub(super) modelled: Modelled,
    /// When the host asks, on the modelled device; none asks as soon as it has its answer.
    pub(super) issue_ns: Option<u64>,
    /// When all that it asked for at once has ended there.
    pub(super) end_ns: u64,
    /// Since when the time of this opening is not in the superblock yet.
    pub(super) opened: Instant,
    /// Bytes held in memory from the beginning: what the journal has for the home disk, on a device opened to be read.
    pub(super) held_at_first: usize,
}

impl Engine {
    /// Asks the scheme for something. One that panics contradicts itself: a state that `check` takes for sound is not, or
    /// the scheme has a bug. What it would say from then on is worth nothing, so that it is asked no more, nothing more is
    /// written, and nothing more is read.
    pub(super) fn ask<T>(
        &mut self,
        what: &dyn Debug,
        ask: impl FnOnce(&mut dyn Scheme<FileMedia>, &mut FileMedia) -> T,
    ) -> Option<T> {
        if self.is_broken {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(|| ask(self.scheme.as_mut(), &mut self.media))) {
            Ok(answer) => Some(answer),
            Err(panic) => {
                self.is_broken = true;
                let reason = io::Error::other(panic_text(panic.as_ref()).to_owned());
                self.media.fail(format!("the scheme contradicts itself, asked for {what:?}"), &reason);
                None
            }
        }
    }

    /// Lets an event happen.
    fn apply(&mut self, event: &Event, payload: &[u8]) {
        let issue_ns = self.issue_ns;
        let end_ns = self.ask(event, |scheme, media| {
            if let Some(request) = event.request() {
                media.begin(&request, payload, issue_ns);
                scheme.serve(media, &request);
                media.end();
            }
            match *event {
                Event::Idle { pages } => {
                    media.begin_idle();
                    scheme.idle(media, pages);
                }
                Event::Forget { sector, sectors } => media.forget(sector, sectors),
                Event::Request { .. } => {}
            }
            media.now_ns()
        });
        self.end_ns = self.end_ns.max(end_ns.unwrap_or(0));
    }

    /// How long the modelled device takes for what `ask` does, in nanoseconds.
    pub(super) fn timed<T>(
        &mut self,
        issue_ns: Option<u64>,
        ask: impl FnOnce(&mut Self) -> Result<T, IoError>,
    ) -> Result<(T, u64), IoError> {
        self.issue_ns = issue_ns;
        let start_ns = issue_ns.unwrap_or(self.media.now_ns());
        self.end_ns = start_ns;
        let answer = ask(self);
        self.issue_ns = None;
        Ok((answer?, self.end_ns - start_ns))
    }

    /// Replays the batch that the journal has just read.
    ///
    /// # Errors
    /// It is not that of such a device, or the home disk cannot be written.
    pub(super) fn replay(&mut self, header: &Header, holds_disk: bool) -> Result<(), String> {
        if header.first_event != self.first_event {
            return Err(format!(
                "batch {} begins with event {}, not {}",
                header.batch, header.first_event, self.first_event
            ));
        }
        if header.sequence > NUMBER_MAX {
            return Err(format!("batch {} has a sequence number that cannot be", header.batch));
        }
        self.media.set_sequence(header.sequence);
        self.pending.clear();
        for bytes in self.journal.events() {
            let event = Event::decode(bytes, self.sectors);
            self.pending.push(event.ok_or_else(|| format!("batch {} has an event that cannot be", header.batch))?);
        }
        for number in 0..self.pending.len() {
            let event = self.pending[number];
            self.apply(&event, &[]);
            if let (true, Some(failure)) = (self.is_broken, self.media.failure()) {
                return Err(format!("batch {}: {}", header.batch, failure.what));
            }
        }
        self.first_event += self.pending.len() as u64;
        self.pending.clear();
        let (index, data) = self.journal.sectors();
        if !HomeDisk::can_be(index, self.sectors) {
            return Err(format!("batch {} has a sector that cannot be", header.batch));
        }
        if let Some(disk) = self.media.disk() {
            if holds_disk {
                disk.hold(index, data);
            } else {
                disk.apply(index, data).map_err(|error| format!("the home disk cannot be written: {error}"))?;
            }
        }
        self.media.release();
        self.first_sequence = self.media.sequence();
        Ok(())
    }

    /// Lets an event of the host happen, and commits if it is time.
    fn happen(&mut self, event: Event, payload: &[u8]) {
        self.pending.push(event);
        self.changes_data |= event.changes_data();
        self.apply(&event, payload);
        if self.media.failure().is_none()
            && (self.pending.len() >= self.limits.events
                || self.media.disk_pending() >= self.limits.disk_sectors
                || self.media.wants_commit())
        {
            // What forced it is not to blame for its failure; the next request that needs the files is told.
            self.commit().ok();
            if self.pending.len() >= WAITING_MAX * self.limits.events {
                let reason = io::Error::other(format!("{} events wait for it", self.pending.len()));
                self.media.fail("no room for a commit", &reason);
            }
        }
    }

    /// Makes sure that there is room for what a write may lead to.
    pub(super) fn admit(&mut self) -> Result<(), IoError> {
        if self.media.lacks_room() || self.journal.lacks_room(self.batch_bytes) {
            let made = self.media.make_room().and_then(|()| self.journal.make_room(self.batch_bytes));
            made.map_err(|error| self.told("a write", &error))?;
        }
        if self.is_full {
            tracing::warn!("there is room again: writes are accepted");
            self.is_full = false;
        }
        Ok(())
    }

    /// What the host is told of an error: that there is no room, or that the device has failed, which it has from then on.
    fn told(&mut self, what: &str, error: &io::Error) -> IoError {
        if !is_full(error) {
            self.media.fail(what, error);
            return IoError::Io;
        }
        if !self.is_full {
            tracing::warn!("no room for {what}: {error}; writes are refused until there is some");
            self.is_full = true;
        }
        IoError::NoSpace
    }

    /// Whether something may be written.
    pub(super) fn check_writable(&self, read_only: bool) -> Result<(), IoError> {
        match self.media.failure() {
            Some(_) => Err(IoError::Io),
            None if read_only => Err(IoError::ReadOnly),
            None => Ok(()),
        }
    }

    /// Whether a device that cannot be written to holds more in memory than it may.
    pub(super) fn holds_too_much(&self) -> bool {
        self.media.held_bytes() > self.held_at_first + self.limits.held_bytes
    }

    /// Reads sectors.
    pub(super) fn read(&mut self, mut sector: u64, out: &mut [u8], read_only: bool) -> Result<(), IoError> {
        for out in out.chunks_mut(self.limits.request_sectors as usize * SECTOR) {
            let sectors = (out.len() / SECTOR) as u32;
            let event = Event::Request { op: Op::Read, sector, sectors };
            if self.holds_too_much() && !read_only {
                return Err(IoError::Io);
            }
            if read_only || self.media.failure().is_some() {
                self.apply(&event, &[]);
            } else {
                self.happen(event, &[]);
            }
            match if self.is_broken { None } else { self.media.reply() } {
                Some(reply) => out.copy_from_slice(reply),
                None => {
                    self.counts.failed_reads += 1;
                    return Err(IoError::Io);
                }
            }
            sector += u64::from(sectors);
        }
        Ok(())
    }

    /// Writes sectors.
    pub(super) fn write(&mut self, mut sector: u64, data: &[u8]) -> Result<(), IoError> {
        for data in data.chunks(self.limits.request_sectors as usize * SECTOR) {
            let sectors = (data.len() / SECTOR) as u32;
            self.admit()?;
            self.happen(Event::Request { op: Op::Write, sector, sectors }, data);
            self.check_writable(false)?;
            sector += u64::from(sectors);
        }
        Ok(())
    }

    /// Gives sectors back; they read as zeros.
    pub(super) fn trim(&mut self, mut sector: u64, sectors: u64) -> Result<(), IoError> {
        let end = sector + sectors;
        while sector < end {
            let sectors = (end - sector).min(u64::from(self.limits.trim_sectors)) as u32;
            if self.media.is_exhausted() {
                self.admit().ok();
            }
            // A scheme may program pages for a trim. The room that is left is for commits.
            let event = if self.media.is_exhausted() {
                Event::Forget { sector, sectors }
            } else {
                Event::Request { op: Op::Trim, sector, sectors }
            };
            self.happen(event, &[]);
            self.check_writable(false)?;
            sector += u64::from(sectors);
        }
        Ok(())
    }

    /// Uses idle time for about so many page copies, if there is room for them. Returns whether anything was done.
    pub(super) fn idle(&mut self, pages: u32) -> Result<bool, IoError> {
        match self.admit() {
            Err(IoError::NoSpace) => return Ok(false),
            admitted => admitted?,
        }
        self.happen(Event::Idle { pages }, &[]);
        self.check_writable(false)?;
        Ok(self.media.is_busy())
    }

    /// Makes durable what the host would miss.
    pub(super) fn flush(&mut self) -> Result<(), IoError> {
        self.check_writable(false)?;
        if self.changes_data { self.commit() } else { Ok(()) }
    }

    /// Makes durable all that has happened.
    pub(super) fn commit(&mut self) -> Result<(), IoError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.try_commit() {
            return Err(self.told("a commit", &error));
        }
        self.counts.commits += 1;
        if self.journal.bytes() >= self.checkpoint_at { self.checkpoint() } else { Ok(()) }
    }

    fn try_commit(&mut self) -> io::Result<()> {
        self.media.sync_pages()?;
        self.journal.append(self.first_event, self.first_sequence, &self.pending, self.media.disk())?;
        // Durable: what follows is done again by recovery if it is cut short.
        self.first_event += self.pending.len() as u64;
        self.first_sequence = self.media.sequence();
        self.pending.clear();
        self.changes_data = false;
        self.media.release();
        let (index, data) = self.journal.sectors();
        self.media.disk().map_or(Ok(()), |disk| disk.apply(index, data))
    }
}
