//! Opening a store: named steps, each of which may be cut short and done again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bimetal_core::device::Resolved;
use bimetal_core::scheme;

use super::backing::{Access, Backing, Storage};
use super::checkpoint;
use super::create::{JOURNAL, SUMS};
use super::engine::{Counts, Engine, Limits, Modelled, panic_text};
use super::error::{InFile, StoreError};
use super::home_disk::HomeDisk;
use super::journal::Journal;
use super::media::{FileMedia, Io};
use super::region::{LABEL_BYTES, Label, Region};
use super::superblock::{Contents, SUPERBLOCK, Superblock};

/// Sequence numbers that are left out with each opening: more than a process uses, so that no page that a crash has made
/// void has the number of a later one.
const SEQUENCE_STEP: u64 = 1 << 40;

/// How a store is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// The files stay as they are.
    pub read_only: bool,
    /// Pages and the home disk go past the page cache.
    pub direct: bool,
    /// When it commits, and the like.
    pub limits: Limits,
}

/// What opening a store took.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// Bytes of the checkpoint.
    pub checkpoint_bytes: u64,
    /// Commits that were replayed.
    pub batches: u64,
    /// Events in them.
    pub events: u64,
    /// Sectors of the home disk that were put in place again.
    pub disk_sectors: u64,
    /// The steps, and how long each took.
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

/// What opening a store comes to: what serves it, the device that it is, and what it took.
type Opened = (Engine, Resolved, Recovery);

/// Opens a store: its state is that of its last commit.
///
/// What its files say is checked as it is read. Should they lead to a panic all the same, that is an error like others.
pub(super) fn load(storage: Arc<dyn Storage>, options: &OpenOptions) -> Result<Opened, StoreError> {
    catch_unwind(AssertUnwindSafe(|| load_checked(storage, options)))
        .unwrap_or_else(|panic| Err(StoreError::Contradiction { what: panic_text(panic.as_ref()).into() }))
}

fn load_checked(storage: Arc<dyn Storage>, options: &OpenOptions) -> Result<Opened, StoreError> {
    let mut recovery = Recovery::default();
    let (superblock_file, superblock) =
        recovery.step("load superblock", |_| load_superblock(storage.as_ref(), options.read_only))?;
    let contents = superblock.contents.clone().ok_or(StoreError::Unfinished)?;
    let resolved = contents.device.resolve()?;
    let mut engine = recovery.step("load checkpoint", |recovery| {
        let mut media = open_media(storage.as_ref(), &superblock, &contents, &resolved, options)?;
        let access = if options.read_only { Access::Read } else { Access::Write };
        let file = storage.open(JOURNAL, access, false).in_file(JOURNAL)?;
        let seal = storage.open(SUPERBLOCK, access, false).in_file(SUPERBLOCK)?;
        let journal = Journal::new(file, seal, superblock.seed(), superblock.first_batch);
        if !options.read_only {
            // What is read may be in the page cache only: it must not be lost once something has been built on it.
            journal.sync().in_file(JOURNAL)?;
        }
        let (scheme, first_event) = match &superblock.checkpoint {
            Some(checkpoint) => {
                recovery.checkpoint_bytes = checkpoint.bytes;
                checkpoint::load(storage.as_ref(), &superblock, checkpoint, &resolved, &mut media)?
            }
            None => (resolved.build::<FileMedia>()?, 0),
        };
        let first_sequence = media.sequence();
        Ok(Engine {
            storage,
            superblock,
            superblock_file,
            sectors: resolved.shape.logical_sectors,
            media,
            scheme,
            is_broken: false,
            journal,
            limits: options.limits,
            pending: Vec::with_capacity(options.limits.events),
            changes_data: false,
            first_event,
            first_sequence,
            counts: Counts::default(),
            modelled: Modelled::default(),
            issue_ns: None,
            end_ns: 0,
            opened: Instant::now(),
            held_at_first: 0,
        })
    })?;
    recovery.step("replay journal", |recovery| replay(&mut engine, options.read_only, recovery))?;
    let damaged = |what| StoreError::Damaged { file: JOURNAL.into(), what };
    recovery.step("check", |_| engine.scheme.check().map_err(damaged))?;
    recovery.step("serve", |_| {
        if options.read_only {
            engine.media.set_io(Io::Memory);
            engine.held_at_first = engine.media.held_bytes();
            return Ok(());
        }
        let used = engine.superblock.sequence.max(engine.media.sequence());
        engine.first_sequence = used + SEQUENCE_STEP;
        engine.media.set_sequence(engine.first_sequence);
        let opened = |superblock: &mut Superblock, _: u64| {
            superblock.sequence = used + SEQUENCE_STEP;
            superblock.power.cycles += 1;
            superblock.power.unsafe_shutdowns += u64::from(!superblock.power.is_off);
            superblock.power.is_off = false;
        };
        engine.write_superblock(opened).in_file(SUPERBLOCK)?;
        engine.media.set_io(Io::Files);
        Ok(())
    })?;
    Ok((engine, resolved, recovery))
}

fn load_superblock(storage: &dyn Storage, read_only: bool) -> Result<(Box<dyn Backing>, Superblock), StoreError> {
    if !storage.exists(SUPERBLOCK).in_file(SUPERBLOCK)? {
        return Err(StoreError::Missing);
    }
    let access = if read_only { Access::Read } else { Access::Write };
    let file = storage.open(SUPERBLOCK, access, false).in_file(SUPERBLOCK)?;
    file.lock(read_only).map_err(|_| StoreError::InUse)?;
    let superblock = Superblock::read(file.as_ref())?;
    let device = &superblock.contents.as_ref().ok_or(StoreError::Unfinished)?.device;
    let known = scheme::find(&device.scheme)?.version;
    if superblock.scheme_version != known {
        let (scheme, found) = (device.scheme.clone(), superblock.scheme_version);
        return Err(StoreError::SchemeVersion { scheme, found, known });
    }
    Ok((file, superblock))
}

/// The media, erased, over the files that hold their bytes.
fn open_media(
    storage: &dyn Storage,
    superblock: &Superblock,
    contents: &Contents,
    resolved: &Resolved,
    options: &OpenOptions,
) -> Result<FileMedia, StoreError> {
    let access = if options.read_only { Access::Read } else { Access::Write };
    let mut regions = Vec::with_capacity(resolved.regions.len());
    if contents.regions.len() != resolved.regions.len() || contents.disk.is_none() != resolved.volumes.is_empty() {
        let what = "it does not name the files that the device has".into();
        return Err(StoreError::Damaged { file: SUPERBLOCK.into(), what });
    }
    for ((region, file), id) in resolved.regions.iter().zip(&contents.regions).zip(0..) {
        let backing = storage.open(file, access, options.direct).in_file(file)?;
        let mut label = super::bytes::Buffer::new(LABEL_BYTES);
        backing.read_at(0, label.bytes_mut()).in_file(file)?;
        if Label::decode(label.bytes()) != Some(Label::new(superblock.store, id, &region.geometry)) {
            let what = format!("it is not region {id} of this store, or its label is damaged");
            return Err(StoreError::Damaged { file: file.clone(), what });
        }
        regions.push(Region::new(backing, id, region.geometry).in_file(file)?);
    }
    let disk = match &contents.disk {
        Some(file) => {
            let image = storage.open(file, access, options.direct).in_file(file)?;
            let sums = storage.open(SUMS, access, false).in_file(SUMS)?;
            Some(HomeDisk::new(image, sums, superblock.seed()))
        }
        None => None,
    };
    Ok(FileMedia::new(resolved.media(), regions, disk, resolved.shape.logical_sectors, superblock.seed()))
}

fn replay(engine: &mut Engine, read_only: bool, recovery: &mut Recovery) -> Result<(), StoreError> {
    let in_journal = |source| StoreError::Journal { file: JOURNAL.into(), source };
    while let Some(header) = engine.journal.read_next().map_err(in_journal)? {
        let damaged = |what| StoreError::Damaged { file: JOURNAL.into(), what };
        engine.replay(&header, read_only).map_err(damaged)?;
        recovery.batches += 1;
        recovery.events += u64::from(header.events);
        recovery.disk_sectors += u64::from(header.sectors);
    }
    Ok(())
}
