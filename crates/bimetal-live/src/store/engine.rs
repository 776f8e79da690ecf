//! The engine feeds events to the scheme and collects the changes for the next commit.
//!
//! A full file system is not a failure. A write is accepted only if there is enough space for its consequences, in
//! sparse regions and in the journal. Trims may use that space until half of it is left for commits. After that the
//! scheme is not told of trims, but their sectors read as zeros all the same. If pages still lack space, they are held
//! in memory and written with the next write or commit that finds space. So the device resumes without intervention.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bimetal_core::replay::Responses;
use bimetal_core::request::Op;
use bimetal_core::save::Image;
use bimetal_core::scheme::{Metrics, Scheme};

use super::arena::HostData;
use super::backing::is_full;
use super::event::Event;
use super::frame::SECTOR;
use super::home_disk::HomeDisk;
use super::limits::{Limits, NUMBER_MAX};
use super::media::FileMedia;
use super::reading::{Misread, Reading};
use super::record::Record;
use crate::block_device::IoError;

/// Limit of events that wait for journal space, as a multiple of the number that forces a commit.
const WAITING_MAX: usize = 16;

/// Counts since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commits.
    pub commits: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Reads of lost sectors.
    pub failed_reads: u64,
}

/// Response times on the modelled device since the store was opened.
#[derive(Clone, Debug, Default)]
pub struct Modelled {
    /// Reads.
    pub reads: Responses,
    /// Writes.
    pub writes: Responses,
}

/// The message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("no more is known")
}

/// Figures of a scheme: its metrics, and its number of blocks that are always in SLC mode.
pub(super) type Figures = (Metrics, u32);

/// A scheme, its media, and the changes since the last commit.
pub struct Engine {
    pub(super) sectors: u64,
    pub(super) media: FileMedia,
    pub(super) scheme: Box<dyn Scheme<FileMedia>>,
    /// Whether the scheme has panicked, so that its state is worthless.
    pub(super) is_broken: bool,
    pub(super) limits: Limits,
    /// Whether writes are refused because the file system is full.
    pub(super) is_full: bool,
    /// Events that no commit has taken yet. For each batch that became durable meanwhile: the number of events before
    /// that moment. Then the number of the first event, and the last sequence number before it.
    pub(super) pending: Vec<Event>,
    pub(super) releases: Vec<u32>,
    pub(super) first_event: u64,
    pub(super) first_sequence: u64,
    /// Number after the last event that changed host data, and number after the last durable event.
    pub(super) changed: u64,
    pub(super) durable: u64,
    /// Bytes of journal since the last checkpoint, and whether it lacks the space that a write may need.
    pub(super) journal_bytes: u64,
    pub(super) lacks_journal: bool,
    pub(super) journal_memory_bytes: usize,
    pub(super) counts: Counts,
    pub(super) modelled: Modelled,
    /// The checkpoint in progress. Tables hand over chunks to it before they change.
    pub(super) image: Option<Image>,
    /// The last figures of the scheme, if it must not be called any more.
    pub(super) last_figures: Option<Figures>,
    /// Bytes held in memory from the start: the journal's data for the home disk, on a read-only device.
    pub(super) held_at_first: usize,
}

impl Engine {
    /// Calls the scheme. If the scheme panics, it contradicts itself: its state is inconsistent although `check`
    /// accepted it, or the scheme has a bug. Its further results would be worthless, so it is not called any more, and
    /// nothing more is written or read.
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

    /// Figures of the scheme; empty if it has panicked.
    pub(super) fn figures(&mut self) -> Figures {
        if let Some(figures) = &self.last_figures {
            return figures.clone();
        }
        let figures = self.ask(&"figures", |scheme, _| {
            let mut metrics = Metrics::default();
            scheme.metrics(&mut metrics);
            (metrics, scheme.fixed_slc_blocks())
        });
        figures.unwrap_or_default()
    }

    /// Applies an event, at a time on the modelled device or at the end of the previous request.
    fn apply(&mut self, event: &Event, data: HostData<'_>, issue_ns: Option<u64>) {
        self.ask(event, |scheme, media| {
            if let Some(request) = event.request() {
                media.begin(&request, data, issue_ns);
                scheme.serve(media, &request);
                media.end();
            }
            match *event {
                Event::Idle { pages } => {
                    media.begin_idle();
                    scheme.idle(media, pages);
                    media.end_idle();
                }
                Event::Forget { sector, sectors } => media.forget(sector, sectors),
                Event::Request { .. } => {}
            }
        });
    }

    /// Number of the last event plus 1.
    pub(super) fn events(&self) -> u64 {
        self.first_event + self.pending.len() as u64
    }

    /// Replays the batch that the journal has just read.
    ///
    /// # Errors
    /// The batch does not fit this device, or the home disk cannot be written.
    pub(super) fn replay(&mut self, record: &Record, holds: bool) -> Result<(), String> {
        let header = record.header();
        if header.first_event != self.first_event {
            return Err(format!(
                "batch {} begins with event {}, not {}",
                header.batch, header.first_event, self.first_event
            ));
        }
        let mut releases = record.releases().peekable();
        if !record.releases().is_sorted() || record.releases().any(|events| events > header.events) {
            return Err(format!(
                "batch {} has fewer events than happened before ones before it were durable",
                header.batch
            ));
        }
        if header.sequence > NUMBER_MAX {
            return Err(format!("batch {} has a sequence number that cannot be", header.batch));
        }
        self.media.set_sequence(header.sequence);
        self.pending.clear();
        for bytes in record.events() {
            let event = Event::decode(bytes, self.sectors);
            self.pending.push(event.ok_or_else(|| format!("batch {} has an event that cannot be", header.batch))?);
        }
        for number in 0..self.pending.len() {
            // Slots become free at the same event as in the original run.
            while releases.next_if_eq(&(number as u32)).is_some() {
                self.media.left();
            }
            let event = self.pending[number];
            self.apply(&event, HostData::NONE, None);
            if let (true, Some(failure)) = (self.is_broken, self.media.failure()) {
                return Err(format!("batch {}: {}", header.batch, failure.what));
            }
        }
        releases.for_each(|_| self.media.left());
        self.first_event += self.pending.len() as u64;
        self.pending.clear();
        for (region, offset, frames) in record.runs() {
            let put_back = self.media.put_back(region, offset, frames, holds);
            put_back.map_err(|error| format!("batch {}: {error}", header.batch))?;
        }
        let (index, data) = record.sectors();
        if !HomeDisk::can_be(index, self.sectors) {
            return Err(format!("batch {} has a sector that cannot be", header.batch));
        }
        if let Some(disk) = self.media.disk() {
            if holds {
                disk.hold(index, data);
            } else {
                disk.apply(index, data).map_err(|error| format!("the home disk cannot be written: {error}"))?;
            }
        }
        self.durable = self.first_event;
        self.media.begin_commit();
        self.first_sequence = self.media.sequence();
        Ok(())
    }

    /// A batch is durable, so the slots that wait for it are free. The next batch records that.
    pub(super) fn left(&mut self) {
        self.media.left();
        self.releases.push(self.pending.len() as u32);
    }

    /// Applies an event of the host.
    fn happen(&mut self, event: Event, data: HostData<'_>, issue_ns: Option<u64>) {
        self.pending.push(event);
        if event.changes_data() {
            self.changed = self.events();
        }
        self.apply(&event, data, issue_ns);
    }

    /// If too many events wait for a commit: the number after the last event, which must be committed before the next
    /// request.
    pub(super) fn commit_due(&self) -> Option<u64> {
        let is_due = self.media.failure().is_none()
            && (self.pending.len() >= self.limits.events
                || self.media.disk_pending() >= self.limits.disk_sectors
                || self.image.as_ref().is_some_and(|image| image.ready_bytes() >= self.limits.waiting_bytes)
                || self.media.wants_commit());
        is_due.then(|| self.events())
    }

    /// A due commit failed. If too many events wait for it, the device has failed.
    pub(super) fn bound_pending(&mut self) {
        if self.pending.len() >= WAITING_MAX * self.limits.events {
            let reason = io::Error::other(format!("{} events wait for it", self.pending.len()));
            self.media.fail("no room for a commit", &reason);
        }
    }

    /// Whether space must be allocated before a write is accepted.
    #[inline]
    pub(super) fn lacks_room(&self) -> bool {
        self.media.lacks_room() || self.lacks_journal
    }

    /// Notes that a write is accepted, because there is enough space.
    pub(super) fn admit(&mut self) {
        if self.is_full {
            tracing::warn!("there is room again: writes are accepted");
            self.is_full = false;
        }
    }

    /// The error that the host gets: a lack of space, or an I/O error, after which the device has failed.
    pub(super) fn told(&mut self, what: &str, error: &io::Error) -> IoError {
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

    /// Checks that the device is writable.
    pub(super) fn check_writable(&self, read_only: bool) -> Result<(), IoError> {
        match self.media.failure() {
            Some(_) => Err(IoError::Io),
            None if read_only => Err(IoError::ReadOnly),
            None => Ok(()),
        }
    }

    /// Whether a read-only device holds more in memory than its limit.
    pub(super) fn holds_too_much(&self) -> bool {
        self.media.held_bytes() > self.held_at_first + self.limits.held_bytes
    }

    /// Serves a read of at most one event's sectors. Returns their places.
    pub(super) fn read(
        &mut self,
        sector: u64,
        sectors: u32,
        issue_ns: Option<u64>,
        read_only: bool,
        spare: Reading,
    ) -> Result<Reading, IoError> {
        let event = Event::Request { op: Op::Read, sector, sectors };
        if self.holds_too_much() && !read_only {
            return Err(IoError::Io);
        }
        if read_only || self.media.failure().is_some() {
            self.apply(&event, HostData::NONE, issue_ns);
        } else {
            self.happen(event, HostData::NONE, issue_ns);
        }
        if self.is_broken {
            self.counts.failed_reads += 1;
            return Err(IoError::Io);
        }
        Ok(self.media.take_reading(spare))
    }

    /// Notes that sectors of a served read could not be read.
    pub(super) fn misread(&mut self, misread: &Misread) -> IoError {
        self.media.note_misread(misread);
        self.counts.failed_reads += 1;
        IoError::Io
    }

    /// Writes the sectors of at most one event.
    pub(super) fn write(&mut self, sector: u64, data: HostData<'_>, issue_ns: Option<u64>) -> Result<(), IoError> {
        self.admit();
        let sectors = (data.bytes().len() / SECTOR) as u32;
        self.happen(Event::Request { op: Op::Write, sector, sectors }, data, issue_ns);
        self.check_writable(false)
    }

    /// Trims the sectors of at most one event. They then read as zeros.
    pub(super) fn trim(&mut self, sector: u64, sectors: u32) -> Result<(), IoError> {
        // A scheme may program pages for a trim, but the remaining space is reserved for commits.
        let event = if self.media.is_exhausted() {
            Event::Forget { sector, sectors }
        } else {
            Event::Request { op: Op::Trim, sector, sectors }
        };
        self.happen(event, HostData::NONE, None);
        self.check_writable(false)
    }

    /// Lets the scheme use idle time for about `pages` page copies. Returns whether it did anything.
    pub(super) fn idle(&mut self, pages: u32) -> Result<bool, IoError> {
        self.admit();
        self.happen(Event::Idle { pages }, HostData::NONE, None);
        self.check_writable(false)?;
        Ok(self.media.is_busy())
    }
}
