//! Creation of a store.
//!
//! Every existing file or block device with the name of one of the store's files is examined first, and refused if it
//! holds data. Nothing changes before all of them have been examined. The superblock marks the store as unfinished from
//! the start, and as complete only at the end. If the creation is interrupted, the store can be created again over the
//! remaining files.

use bimetal_core::device::{Device, Resolved};
use bimetal_core::scheme;

use super::backing::{Access, Backing, Identity, Storage};
use super::error::{InFile, StoreError};
use super::files;
use super::frame::{SECTOR, SECTORS_MAX};
use super::home_disk::SUM_BYTES;
use super::journal;
use super::label::{FileRole, Label};
use super::limits::checkpoint_room_bytes;
use super::media::FileMedia;
use super::names::{CHECKPOINTS, DISK, MAP, region_file};
use super::region;
use super::superblock::{self, Contents, Power, SUPERBLOCK, Start, Superblock};

/// Options of creating a store.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// File or block device of a region, by the region's name in the device. Other regions get files in the store's
    /// directory.
    pub regions: Vec<(String, String)>,
    /// File or block device of the home disk; a file in the store's directory if `None`.
    pub disk: Option<String>,
    /// Whether files grow as they are written, and may together exceed the free space: a write without space is then
    /// refused. Otherwise all space is allocated at once.
    pub sparse: bool,
    /// Whether existing contents of files and block devices may be lost. Files in use are refused regardless.
    pub force: bool,
    /// Whether the store stays incomplete until its first opening has filled and completed it.
    pub is_to_be_filled: bool,
    /// Number of the store, and of its first opening. Both must be unique; the system's random numbers if `None`.
    pub number: Option<u64>,
}

/// Creates a store for a device.
///
/// # Errors
/// Existing data, an invalid device, files that cannot be created, or too little space.
pub fn create(storage: &dyn Storage, device: &Device, options: &CreateOptions) -> Result<(), StoreError> {
    let resolved = device.resolve()?;
    // A scheme that cannot run on the device is refused before any file exists.
    resolved.build::<FileMedia>()?;
    if resolved.shape.logical_sectors >= SECTORS_MAX {
        return Err(unsuitable(
            "device",
            format!("a store has less than 2^47 sectors, not {}", resolved.shape.logical_sectors),
        ));
    }
    let contents = contents(&resolved, options)?;
    let mut site = Site::examine(storage, &resolved, &contents, options)?;
    check_room(storage, &site.planned, &contents, options)?;
    let number = options.number.map_or_else(random_number, Ok)?;
    let opening = options.number.map_or_else(random_number, Ok)?;
    let superblock_file = site.take(storage, SUPERBLOCK)?;
    let mut superblock = Superblock {
        is_complete: false,
        store: number,
        generation: 0,
        sequence: 0,
        journal: Start::of_file(1),
        checkpoint: None,
        scheme_version: scheme::find(&resolved.device.scheme)?.version,
        power: Power { is_off: true, ..Power::default() },
        openings: [opening; 2],
        home: files::home(superblock_file.as_ref())?,
        contents: None,
    };
    superblock.write(superblock_file.as_ref()).in_file(SUPERBLOCK)?;
    storage.sync().in_file(".")?;
    site.make(storage, number, opening)?;
    storage.sync().in_file(".")?;
    superblock.is_complete = !options.is_to_be_filled;
    superblock.contents = Some(contents);
    superblock::take_room(superblock_file.as_ref()).in_file(SUPERBLOCK)?;
    // Both copies are written, so that damage to one leaves the other.
    for generation in [1, 2] {
        superblock.generation = generation;
        superblock.write(superblock_file.as_ref()).in_file(SUPERBLOCK)?;
    }
    Ok(())
}

fn unsuitable(file: &str, what: impl Into<String>) -> StoreError {
    StoreError::Unsuitable { file: file.into(), what: what.into() }
}

/// An unpredictable random number.
///
/// # Errors
/// The system provides none.
pub fn random_number() -> Result<u64, StoreError> {
    let mut bytes = [0; 8];
    let drawn = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    drawn.map_err(std::io::Error::from).in_file("the system's random numbers")?;
    Ok(u64::from_le_bytes(bytes))
}

/// Names of the store's files.
fn contents(resolved: &Resolved, options: &CreateOptions) -> Result<Contents, StoreError> {
    for (name, file) in &options.regions {
        if !resolved.device.regions.iter().any(|region| region.name == *name) {
            let known: Vec<&str> = resolved.device.regions.iter().map(|region| region.name.as_str()).collect();
            return Err(unsuitable(file, format!("the device has no region `{name}`; it has: {}", known.join(", "))));
        }
    }
    for (index, (name, file)) in options.regions.iter().enumerate() {
        let earlier = &options.regions[..index];
        if earlier.iter().any(|(known, _)| known == name) {
            return Err(unsuitable(file, format!("region `{name}` already has a file; give one for each region")));
        }
        let of_disk = options.disk.as_ref().filter(|disk| *disk == file).map(|_| "the disk".to_owned());
        let of_region = earlier.iter().find(|(_, known)| known == file).map(|(other, _)| format!("region `{other}`"));
        if let Some(other) = of_disk.or(of_region) {
            return Err(unsuitable(file, format!("it is the same file as `{file}` of {other}; give each its own")));
        }
    }
    if let (Some(file), true) = (&options.disk, resolved.volumes.is_empty()) {
        return Err(unsuitable(file, format!("scheme `{}` has no home disk; leave it out", resolved.device.scheme)));
    }
    let file_of = |(index, region): (usize, &bimetal_core::device::Region)| {
        let given = options.regions.iter().find(|(name, _)| *name == region.name).map(|(_, file)| file.clone());
        given.unwrap_or_else(|| region_file(index))
    };
    let disk = (!resolved.volumes.is_empty()).then(|| options.disk.clone().unwrap_or_else(|| DISK.into()));
    Ok(Contents {
        regions: resolved.device.regions.iter().enumerate().map(file_of).collect(),
        disk,
        sparse: options.sparse,
        device: resolved.device.clone(),
    })
}

/// A planned file of the store.
struct Planned {
    name: String,
    /// Role of the file; `None` for the superblock, the checkpoints and the map, which have no label.
    part: Option<FileRole>,
    /// Bytes that the file takes when the whole store is in use, and whether they are allocated at once even in a
    /// sparse store.
    bytes: u64,
    is_kept_ready: bool,
}

/// All files of a store, the superblock first.
fn plan(resolved: &Resolved, contents: &Contents) -> Result<Vec<Planned>, StoreError> {
    let sectors = resolved.shape.logical_sectors;
    let ready = |name: &str, part, bytes| Planned { name: name.into(), part, bytes, is_kept_ready: true };
    let mut planned = vec![ready(SUPERBLOCK, None, superblock::FILE_BYTES)];
    for (name, part) in files::parts(contents, resolved)? {
        let bytes = match part {
            FileRole::Region { .. } => region::file_bytes(part),
            FileRole::Disk { sectors } => sectors * SECTOR as u64 + Label::BYTES as u64,
            FileRole::Sums => Label::BYTES as u64 + sectors * SUM_BYTES as u64,
            FileRole::Journal => journal::room_bytes(sectors, contents.disk.is_some()),
        };
        let is_kept_ready = part == FileRole::Journal || !contents.sparse;
        planned.push(Planned { name, part: Some(part), bytes, is_kept_ready });
    }
    planned.extend(CHECKPOINTS.map(|name| ready(name, None, checkpoint_room_bytes(sectors))));
    planned.push(ready(MAP, None, 0));
    Ok(planned)
}

/// Bytes of the files in the store's own directory when the whole store is in use.
///
/// # Errors
/// The device has no such store.
pub(super) fn full_bytes(resolved: &Resolved, contents: &Contents) -> Result<u64, StoreError> {
    let is_outside = |file: &&Planned| contents.outside().any(|outside| outside == file.name);
    Ok(plan(resolved, contents)?.iter().filter(|file| !is_outside(file)).map(|file| file.bytes).sum())
}

/// The location of a new store: its planned files and those of them that exist, each locked.
struct Site {
    planned: Vec<Planned>,
    existing: Vec<(String, Box<dyn Backing>)>,
}

impl Site {
    /// Examines every existing file without changing any.
    fn examine(
        storage: &dyn Storage,
        resolved: &Resolved,
        contents: &Contents,
        options: &CreateOptions,
    ) -> Result<Self, StoreError> {
        let mut site = Self { planned: plan(resolved, contents)?, existing: Vec::new() };
        let mut identities: Vec<(Identity, String)> = Vec::new();
        let mut unfinished = None;
        for Planned { name, part, bytes, .. } in &site.planned {
            if !storage.exists(name).in_file(name)? {
                continue;
            }
            let file = storage.open(name, Access::Write, false).in_file(name)?;
            if let Some(identity) = file.identity().in_file(name)? {
                if let Some((_, other)) = identities.iter().find(|(known, _)| *known == identity) {
                    return Err(unsuitable(name, format!("it is the same file as `{other}`; give each its own")));
                }
                identities.push((identity, name.clone()));
            }
            let is_superblock = name == SUPERBLOCK;
            file.claim().in_file(name).map_err(|error| match error {
                StoreError::FileInUse { .. } if is_superblock => StoreError::InUse,
                error => error,
            })?;
            if file.is_fixed() && file.length().in_file(name)? < *bytes {
                let length = file.length().in_file(name)?;
                return Err(unsuitable(
                    name,
                    format!("it has {length} bytes and {bytes} are needed; choose a larger one"),
                ));
            }
            if is_superblock {
                unfinished = examine_superblock(file.as_ref(), options.force)?;
            } else {
                let is_given =
                    options.regions.iter().any(|(_, given)| given == name) || options.disk.as_ref() == Some(name);
                let is_ours = match unfinished {
                    None => false,
                    Some(_) if !is_given => true,
                    Some(store) => is_labelled(file.as_ref(), name, *part, store)?,
                };
                if !is_ours && !options.force {
                    refuse_occupied(file.as_ref(), name)?;
                }
            }
            site.existing.push((name.clone(), file));
        }
        Ok(site)
    }

    /// Returns the file `name`, empty: the existing one or a new one.
    fn take(&mut self, storage: &dyn Storage, name: &str) -> Result<Box<dyn Backing>, StoreError> {
        match self.existing.iter().position(|(existing, _)| existing == name) {
            Some(at) => {
                let (_, file) = self.existing.swap_remove(at);
                file.clear().in_file(name)?;
                Ok(file)
            }
            None => {
                let file = storage.open(name, Access::Create, false).in_file(name)?;
                file.lock(false).in_file(name)?;
                Ok(file)
            }
        }
    }

    /// Creates all files except the superblock.
    fn make(&mut self, storage: &dyn Storage, store: u64, opening: u64) -> Result<(), StoreError> {
        for Planned { name, part, bytes, is_kept_ready } in std::mem::take(&mut self.planned).into_iter().skip(1) {
            let file = self.take(storage, &name)?;
            if is_kept_ready {
                file.allocate(0, bytes).in_file(&name)?;
            }
            if let Some(part) = part {
                Label { store, opening, part }.write(file.as_ref()).in_file(&name)?;
            }
            file.sync().in_file(&name)?;
        }
        Ok(())
    }
}

/// Examines an existing superblock. An unfinished store may be created again; any other store is refused. Returns the
/// number of an unfinished store if its creation may have left other files.
fn examine_superblock(file: &dyn Backing, force: bool) -> Result<Option<u64>, StoreError> {
    match Superblock::read(file) {
        Err(StoreError::Unfinished) => {
            let copies = Superblock::read_copies(file).in_file(SUPERBLOCK)?;
            let begun = copies.iter().flatten().next().map(|superblock| superblock.store);
            if begun.is_none() && !force {
                refuse_occupied(file, SUPERBLOCK)?;
            }
            Ok(begun)
        }
        Err(error @ StoreError::Io { .. }) => Err(error),
        _ if force => Ok(None),
        // The creating process may have been killed before the superblock was durable. The store is reported as
        // existing, so it must be durable first.
        Ok(_) => file.sync().in_file(SUPERBLOCK).and(Err(StoreError::Exists)),
        Err(_) => Err(StoreError::Exists),
    }
}

/// Whether a file that the user named is already part of the unfinished store `store`.
fn is_labelled(file: &dyn Backing, name: &str, part: Option<FileRole>, store: u64) -> Result<bool, StoreError> {
    let Some(part) = part else { return Ok(false) };
    let label = Label::read(file, part.label_at()).in_file(name)?;
    Ok(label.is_some_and(|label| label.store == store && label.part == part))
}

fn refuse_occupied(file: &dyn Backing, name: &str) -> Result<(), StoreError> {
    match file.occupant().in_file(name)? {
        Some(occupant) => Err(StoreError::Occupied { file: name.into(), occupant }),
        None => Ok(()),
    }
}

/// Checks that the files in the store's directory fit into the free space.
fn check_room(
    storage: &dyn Storage,
    planned: &[Planned],
    contents: &Contents,
    options: &CreateOptions,
) -> Result<(), StoreError> {
    let is_outside = |file: &Planned| contents.outside().any(|outside| outside == file.name);
    let is_taken = |file: &&Planned| !is_outside(file) && (file.is_kept_ready || !options.sparse);
    let needed = planned.iter().filter(is_taken).map(|file| file.bytes).sum();
    match storage.free_bytes() {
        Some(free) if free < needed => Err(StoreError::NoSpace { needed, free, sparse: options.sparse }),
        _ => Ok(()),
    }
}
