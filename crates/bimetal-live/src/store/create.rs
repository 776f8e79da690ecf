//! Making a store.
//!
//! The superblock says from the first moment that a store is being made, and says only at the end that it is one: a store
//! that was cut short is made again over what is there.

use bimetal_core::device::{Device, Resolved};
use bimetal_core::scheme;

use super::backing::{Access, Backing, Storage};
use super::checkpoint::CHECKPOINTS;
use super::error::{InFile, StoreError};
use super::frame::{SECTOR, SECTORS_MAX};
use super::home_disk::SUM_BYTES;
use super::media::FileMedia;
use super::region::Label;
use super::superblock::{Contents, Power, SUPERBLOCK, Superblock};

/// The journal's file.
pub const JOURNAL: &str = "journal";
/// The file of the home disk's checksums.
pub const SUMS: &str = "disk.sums";
/// The file of the home disk, unless it is given.
pub const DISK: &str = "disk.image";

/// The file of a region, unless it is given.
pub fn region_file(region: usize) -> String {
    format!("region{region}.flash")
}

/// How a store is made.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// For some regions, by their names in the device: the file or block device that they are in. Others are in files of
    /// the store's directory.
    pub regions: Vec<(String, String)>,
    /// The file or block device of the home disk, if it is not to be in the store's directory. A block device should be
    /// empty: what is on it counts as never written.
    pub disk: Option<String>,
    /// Whether the store may be larger than what is free now: a write that finds no room makes the device read-only.
    pub sparse: bool,
    /// Number of the store, which no other should have; drawn by the system if there is none.
    pub number: Option<u64>,
}

/// Makes a store for a device.
///
/// # Errors
/// A store that is there, a device that cannot be, files that cannot be made, or too little room.
pub fn create(storage: &dyn Storage, device: &Device, options: &CreateOptions) -> Result<(), StoreError> {
    let resolved = device.resolve()?;
    // What the scheme has to say against the device it says before there are any files.
    resolved.build::<FileMedia>()?;
    if resolved.shape.logical_sectors >= SECTORS_MAX {
        return Err(unsuitable(
            "device",
            format!("a store has less than 2^47 sectors, not {}", resolved.shape.logical_sectors),
        ));
    }
    refuse_existing(storage)?;
    let contents = contents(&resolved, options)?;
    check_room(storage, &resolved, &contents, options)?;
    let number = options.number.map_or_else(random_number, Ok)?;
    let mut superblock = Superblock {
        is_complete: false,
        store: number,
        generation: 0,
        sequence: 0,
        first_batch: 1,
        checkpoint: None,
        scheme_version: scheme::find(&resolved.device.scheme)?.version,
        power: Power { is_off: true, ..Power::default() },
        contents: None,
    };
    let superblock_file = storage.open(SUPERBLOCK, Access::Create, false).in_file(SUPERBLOCK)?;
    superblock_file.lock(false).map_err(|_| StoreError::InUse)?;
    superblock.write(superblock_file.as_ref()).in_file(SUPERBLOCK)?;
    storage.sync().in_file(".")?;
    make_files(storage, &resolved, &contents, number)?;
    storage.sync().in_file(".")?;
    superblock.is_complete = true;
    superblock.contents = Some(contents);
    // Both copies, so that one that is damaged is not the only one.
    for generation in [1, 2] {
        superblock.generation = generation;
        superblock.write(superblock_file.as_ref()).in_file(SUPERBLOCK)?;
    }
    Ok(())
}

fn unsuitable(file: &str, what: impl Into<String>) -> StoreError {
    StoreError::Unsuitable { file: file.into(), what: what.into() }
}

fn random_number() -> Result<u64, StoreError> {
    let mut bytes = [0; 8];
    let drawn = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    drawn.map_err(std::io::Error::from).in_file("the system's random numbers")?;
    Ok(u64::from_le_bytes(bytes))
}

/// A store that was never completed may be made again; anything else stays.
fn refuse_existing(storage: &dyn Storage) -> Result<(), StoreError> {
    if !storage.exists(SUPERBLOCK).in_file(SUPERBLOCK)? {
        return Ok(());
    }
    let file = storage.open(SUPERBLOCK, Access::Read, false).in_file(SUPERBLOCK)?;
    match Superblock::read(file.as_ref()) {
        Err(StoreError::Unfinished) => {
            let mut head = [0; SECTOR];
            file.read_at(0, &mut head).in_file(SUPERBLOCK)?;
            let is_ours = Superblock::read_copies(file.as_ref()).in_file(SUPERBLOCK)?.iter().any(Result::is_ok);
            if is_ours || head.iter().all(|&byte| byte == 0) { Ok(()) } else { Err(StoreError::Exists) }
        }
        Err(error @ StoreError::Io { .. }) => Err(error),
        // Who made it may have been killed before it was durable: what is said to be there has to stay.
        Ok(_) => file.sync().in_file(SUPERBLOCK).and(Err(StoreError::Exists)),
        Err(_) => Err(StoreError::Exists),
    }
}

/// Names of the files.
fn contents(resolved: &Resolved, options: &CreateOptions) -> Result<Contents, StoreError> {
    for (name, file) in &options.regions {
        if !resolved.device.regions.iter().any(|region| region.name == *name) {
            let known: Vec<&str> = resolved.device.regions.iter().map(|region| region.name.as_str()).collect();
            return Err(unsuitable(file, format!("the device has no region `{name}`; it has: {}", known.join(", "))));
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
        device: resolved.device.clone(),
    })
}

/// Bytes that the files take when all of the store is in use, those given apart.
fn check_room(
    storage: &dyn Storage,
    resolved: &Resolved,
    contents: &Contents,
    options: &CreateOptions,
) -> Result<(), StoreError> {
    let regions = resolved.regions.iter().zip(&contents.regions).zip(0..);
    let in_store = regions.filter(|((_, file), _)| !options.regions.iter().any(|(_, given)| given == *file));
    let flash: u64 = in_store.map(|((region, _), id)| Label::new(0, id, &region.geometry).file_bytes()).sum();
    let sectors = if resolved.volumes.is_empty() { 0 } else { resolved.shape.logical_sectors };
    let image = if options.disk.is_some() { 0 } else { sectors * SECTOR as u64 };
    let needed = flash + image + sectors * SUM_BYTES as u64;
    match storage.free_bytes() {
        Some(free) if free < needed && !options.sparse => Err(StoreError::NoSpace { needed, free }),
        _ => Ok(()),
    }
}

fn make_files(storage: &dyn Storage, resolved: &Resolved, contents: &Contents, number: u64) -> Result<(), StoreError> {
    for ((region, file), id) in resolved.regions.iter().zip(&contents.regions).zip(0..) {
        let label = Label::new(number, id, &region.geometry);
        let backing = storage.open(file, Access::Create, false).in_file(file)?;
        if backing.is_fixed() {
            let (length, needed) = (backing.length().in_file(file)?, label.file_bytes());
            if length < needed {
                return Err(unsuitable(file, format!("it has {length} bytes and the region takes {needed}")));
            }
        }
        backing.write_at(0, &label.encode()).in_file(file)?;
        backing.sync().in_file(file)?;
    }
    if let Some(file) = &contents.disk {
        let (bytes, backing) = (resolved.shape.logical_sectors * SECTOR as u64, create_file(storage, file)?);
        if !backing.is_fixed() {
            backing.set_len(bytes).in_file(file)?;
        } else if backing.length().in_file(file)? < bytes {
            return Err(unsuitable(file, format!("the home disk takes {bytes} bytes, and that is more than it has")));
        }
        backing.sync().in_file(file)?;
        create_file(storage, SUMS)?.sync().in_file(SUMS)?;
    }
    for file in CHECKPOINTS.iter().chain([&JOURNAL]) {
        create_file(storage, file)?.sync().in_file(file)?;
    }
    Ok(())
}

fn create_file(storage: &dyn Storage, file: &str) -> Result<Box<dyn Backing>, StoreError> {
    storage.open(file, Access::Create, false).in_file(file)
}
