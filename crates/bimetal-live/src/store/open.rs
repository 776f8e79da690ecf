//! Opening a store: recovery in named steps, each of which can be interrupted and repeated.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bimetal_core::device::Resolved;

use super::backing::Storage;
use super::checkpoint;
use super::commit::{Committer, FLIGHTS_MAX, Spare, Unsynced};
use super::create::random_number;
use super::engine::{Counts, Engine, Modelled, panic_text};
use super::error::{InFile, StoreError};
use super::files::{self, Described, Files, OpenOptions};
use super::home_disk::HomeDisk;
use super::journal::{self, Journal};
use super::media::{FileMedia, Io};
use super::names::JOURNAL;
use super::region::Region;
use super::superblock::{Contents, SUPERBLOCK, Superblock};
use super::syncs::Syncs;
use super::times::Clocks;

/// Sequence numbers that each opening skips. It is more than a process uses, so no page that a crash invalidated has
/// the number of a later one.
const SEQUENCE_STEP: u64 = 1 << 40;

/// The work of opening a store.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// Whether it had been closed: nothing that a client was told is missing.
    pub was_closed: bool,
    /// Bytes of the checkpoint.
    pub checkpoint_bytes: u64,
    /// Commits replayed.
    pub batches: u64,
    /// Events replayed.
    pub events: u64,
    /// Sectors of the home disk restored from the journal.
    pub disk_sectors: u64,
    /// The steps and the duration of each.
    pub steps: Vec<(&'static str, Duration)>,
}

impl Recovery {
    fn step<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let start = Instant::now();
        let result = work(self);
        self.steps.push((name, start.elapsed()));
        result
    }
}

/// An opened store: engine and committer, the resolved device, and the work of recovery.
type Opened = (Engine, Committer, Resolved, Recovery);

/// Opens a store in the state of its last commit.
///
/// The contents of its files are checked as they are read. A panic in spite of these checks is returned as an error.
pub(super) fn load(storage: &dyn Storage, options: &OpenOptions) -> Result<Opened, StoreError> {
    unpanicked(|| {
        let mut recovery = Recovery::default();
        let (files, described) = recovery.step("load superblock", |_| Files::open(storage, options))?;
        load_files(Arc::new(files), described, options, recovery)
    })
}

/// Returns a store whose files are open to the state of its last commit.
pub(super) fn reload(files: &Arc<Files>, options: &OpenOptions) -> Result<Opened, StoreError> {
    unpanicked(|| {
        let superblock = Superblock::read(files.superblock.as_ref())?;
        let contents = superblock.contents.clone().ok_or(StoreError::Unfinished)?;
        let resolved = contents.device.resolve()?;
        load_files(Arc::clone(files), (superblock, contents, resolved), options, Recovery::default())
    })
}

fn unpanicked(load: impl FnOnce() -> Result<Opened, StoreError>) -> Result<Opened, StoreError> {
    catch_unwind(AssertUnwindSafe(load))
        .unwrap_or_else(|panic| Err(StoreError::Contradiction { what: panic_text(panic.as_ref()).into() }))
}

fn load_files(
    files: Arc<Files>,
    (superblock, contents, resolved): Described,
    options: &OpenOptions,
    mut recovery: Recovery,
) -> Result<Opened, StoreError> {
    recovery.was_closed = superblock.power.is_off;
    if !recovery.was_closed && !options.read_only {
        // After a failed sync of the process before, memory may have batches and pages that the disk does not have.
        // Later batches would be lost together with them.
        files.drop_cached()?;
    }
    let described = (superblock, contents, &resolved);
    let (mut engine, mut committer) =
        recovery.step("load checkpoint", |recovery| load_checkpoint(files, described, options, recovery))?;
    recovery.step("replay journal", |recovery| replay(&mut engine, &mut committer, options.read_only, recovery))?;
    let damaged = |what| StoreError::Damaged { file: JOURNAL.into(), what };
    recovery.step("check", |recovery| {
        // The state of a checkpoint was checked when it was loaded.
        if recovery.events == 0 { Ok(()) } else { engine.scheme.check().map_err(damaged) }
    })?;
    recovery.step("serve", |_| {
        if options.read_only {
            engine.media.set_io(Io::Memory);
            engine.held_at_first = engine.media.held_bytes();
            return Ok(());
        }
        committer.begin_opening(&mut engine, options.opening.map_or_else(random_number, Ok)?)?;
        engine.media.set_io(Io::Files);
        engine.media.end_replay();
        warn_of_cut_files(&engine, &committer)?;
        // Space is reserved at once. If there is too little, the first write gets the error.
        committer.make_room(&mut engine).ok();
        Ok(())
    })?;
    Ok((engine, committer, resolved, recovery))
}

/// Warns of files that were cut. Their other pages can still be read.
fn warn_of_cut_files(engine: &Engine, committer: &Committer) -> Result<(), StoreError> {
    let names = committer.superblock.contents.iter().flat_map(|contents| &contents.regions);
    for (region, name) in engine.media.regions().iter().zip(names) {
        let missing = region.missing_bytes().in_file(name)?;
        if missing > 0 {
            tracing::warn!("`{name}` is at least {missing} bytes too short: data are lost; run `bimetal check`");
        }
    }
    Ok(())
}

/// Loads the last checkpoint and positions the journal behind it.
fn load_checkpoint(
    files: Arc<Files>,
    (superblock, contents, resolved): (Superblock, Contents, &Resolved),
    options: &OpenOptions,
    recovery: &mut Recovery,
) -> Result<(Engine, Committer), StoreError> {
    let mut media = open_media(&files, &superblock, &contents, resolved)?;
    let (sectors, limits) = (resolved.shape.logical_sectors, options.limits);
    let room_bytes = journal::room_bytes(sectors, contents.disk.is_some());
    let [file, seal] = [files.journal(), &files.superblock].map(Arc::clone);
    let mut journal = Journal::new(file, seal, superblock.seed(), superblock.journal, room_bytes);
    if !options.read_only {
        // The journal may have been read from the page cache only: it must be durable before new state is built on it.
        journal.file().sync().in_file(JOURNAL)?;
    }
    let (scheme, first_event) = match &superblock.checkpoint {
        Some(checkpoint) => {
            recovery.checkpoint_bytes = checkpoint.bytes;
            checkpoint::load(&files, &superblock, checkpoint, resolved, &mut media)?
        }
        None => (resolved.build::<FileMedia>()?, 0),
    };
    // As after any commit, blocks that were erased in the last events of the checkpoint keep their slots until the next
    // commit.
    media.begin_commit();
    let first_sequence = media.sequence();
    journal.begin_after(first_sequence);
    let journal_limit = limits.journal_limit(sectors);
    let engine = Engine {
        sectors,
        media,
        scheme,
        is_broken: false,
        limits,
        is_full: false,
        pending: Vec::with_capacity(limits.events),
        releases: Vec::with_capacity(FLIGHTS_MAX),
        first_event,
        first_sequence,
        changed: first_event,
        durable: first_event,
        journal_bytes: 0,
        lacks_journal: false,
        journal_memory_bytes: 0,
        counts: Counts::default(),
        modelled: Modelled::default(),
        image: None,
        last_figures: None,
        held_at_first: 0,
    };
    let clocks = Arc::new(Clocks::default());
    let committer = Committer {
        files,
        superblock,
        journal,
        journal_limit,
        checkpoint_at: checkpoint::due_at(journal_limit),
        underway: None,
        checkpoint_from: 0,
        written: Unsynced::default(),
        is_kept_up: false,
        is_checkpoint_taken: false,
        sectors,
        room_bytes: 2 * journal::batch_bytes(&limits, sectors, contents.disk.is_some()),
        opened: Instant::now(),
        unfinished: None,
        flights: VecDeque::with_capacity(FLIGHTS_MAX),
        spare: Spare::new(limits.events),
        syncs: Syncs::new(Arc::clone(&clocks)),
        clocks,
    };
    Ok((engine, committer))
}

impl Committer {
    /// Begins the opening with number `opening`: afterwards all files of the store have the number, and no copy of them
    /// has.
    ///
    /// No label has the number before the superblock has it. Until all labels have it, the superblock names the
    /// previous opening, too.
    fn begin_opening(&mut self, engine: &mut Engine, opening: u64) -> Result<(), StoreError> {
        let files = Arc::clone(&self.files);
        let (store, [latest, before]) = (self.superblock.store, self.superblock.openings);
        if latest != before {
            // The previous opening was cut short here: its superblock may be in the page cache only.
            files.superblock.sync().in_file(SUPERBLOCK)?;
            files.label(store, latest)?;
        }
        let used = self.superblock.sequence.max(engine.media.sequence());
        engine.first_sequence = used + SEQUENCE_STEP;
        engine.media.set_sequence(engine.first_sequence);
        let home = files::home(files.superblock.as_ref())?;
        let opened = |superblock: &mut Superblock| {
            superblock.sequence = used + SEQUENCE_STEP;
            superblock.power.cycles += 1;
            superblock.power.unsafe_shutdowns += u64::from(!superblock.power.is_off);
            superblock.power.is_off = false;
            superblock.openings = [opening, latest];
            superblock.home = home;
        };
        self.write_superblock(opened).in_file(SUPERBLOCK)?;
        self.clear_map();
        files.label(store, opening)?;
        self.write_superblock(|superblock| superblock.openings = [opening; 2]).in_file(SUPERBLOCK)
    }
}

/// The erased media over the files that hold their bytes.
pub(super) fn open_media(
    files: &Files,
    superblock: &Superblock,
    contents: &Contents,
    resolved: &Resolved,
) -> Result<FileMedia, StoreError> {
    let mut regions = Vec::with_capacity(resolved.regions.len());
    for ((file, region), (id, name)) in files.regions().zip(&resolved.regions).zip((0..).zip(&contents.regions)) {
        regions.push(Region::new(Arc::clone(file), id, region.geometry, contents.sparse).in_file(name)?);
    }
    let disk = files.disk().map(|files| {
        let [image, sums] = files.map(Arc::clone);
        HomeDisk::new(image, sums, superblock.seed())
    });
    Ok(FileMedia::new(resolved.media(), regions, disk, resolved.shape.logical_sectors, superblock.seed()))
}

fn replay(
    engine: &mut Engine,
    committer: &mut Committer,
    read_only: bool,
    recovery: &mut Recovery,
) -> Result<(), StoreError> {
    let in_journal = |source| StoreError::Journal { file: JOURNAL.into(), source };
    let journal = &mut committer.journal;
    while let Some(header) = journal.read_next().map_err(in_journal)? {
        let damaged = |what| StoreError::Damaged { file: JOURNAL.into(), what };
        engine.replay(journal.record(), read_only).map_err(damaged)?;
        recovery.batches += 1;
        recovery.events += u64::from(header.events);
        recovery.disk_sectors += u64::from(header.sectors);
    }
    // Every batch that was read from the journal is durable.
    while engine.media.is_leaving() {
        engine.left();
    }
    committer.note_journal(engine);
    Ok(())
}
