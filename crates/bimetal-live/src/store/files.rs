//! The files of an open store. Each is opened once, locked, and stays open as long as the store.
//!
//! No file is opened by its name again. So an open store does not depend on renames of its directory, on the process's
//! limit of open files, or on new files with the same names.

use std::sync::Arc;

use super::backing::{Access, Backing, File, Storage};
use super::error::{InFile, StoreError};
use super::label::{FileRole, Label};
use super::limits::Limits;
use super::names::{CHECKPOINTS, JOURNAL, MAP, SUMS, region_file};
use super::superblock::{Contents, SUPERBLOCK, Superblock};
use bimetal_core::device::Resolved;
use bimetal_core::scheme;

/// Options of opening a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// The files are not changed.
    pub read_only: bool,
    /// Regions and the home disk bypass the page cache.
    pub direct: bool,
    /// The store's directory was moved to another file system or restored from a backup, and its files outside belong
    /// to it: the original no longer exists.
    pub moved: bool,
    /// The store is incomplete and is opened to be filled.
    pub is_being_filled: bool,
    /// Number of this opening, which must be unique; the system's random numbers if `None`.
    pub opening: Option<u64>,
    /// Thresholds of commits and checkpoints.
    pub limits: Limits,
}

/// A file with a label.
struct Labelled {
    name: String,
    part: FileRole,
    file: File,
}

/// The open files of a store.
pub struct Files {
    /// The superblock, with the seal of the journal behind it.
    pub superblock: File,
    /// The two checkpoints.
    pub checkpoints: [File; 2],
    /// The regions in order, the home disk and its checksums if there is one, the journal.
    labelled: Vec<Labelled>,
    regions: usize,
    /// The map; `None` if the store is read-only, or if the file was missing and could not be created.
    pub map: Option<File>,
}

/// The superblock, its contents, and the device that they describe.
pub type Described = (Superblock, Contents, Resolved);

impl Files {
    /// Opens and locks all files of a store: exclusively, or shared if `read_only`.
    ///
    /// # Errors
    /// There is no store, another process has a file of it, or a file does not belong to this store.
    pub fn open(storage: &dyn Storage, options: &OpenOptions) -> Result<(Self, Described), StoreError> {
        let OpenOptions { read_only, direct, moved, .. } = *options;
        let access = if read_only { Access::Read } else { Access::Write };
        let open = |name: &str, direct| {
            let file = storage.open(name, access, direct).in_file(name)?;
            file.lock(read_only).in_file(name)?;
            Ok(File::from(file))
        };
        if !storage.exists(SUPERBLOCK).in_file(SUPERBLOCK)? {
            return Err(missing(storage));
        }
        let superblock_file = open(SUPERBLOCK, false).map_err(|error| match error {
            StoreError::FileInUse { .. } => StoreError::InUse,
            error => error,
        })?;
        let superblock = if options.is_being_filled {
            Superblock::read_latest(superblock_file.as_ref())?
        } else {
            Superblock::read(superblock_file.as_ref())?
        };
        let contents = superblock.contents.clone().ok_or(StoreError::Unfinished)?;
        check_version(&superblock, &contents)?;
        check_home(superblock_file.as_ref(), &superblock, &contents, moved)?;
        let resolved = contents.device.resolve()?;
        let mut labelled = Vec::new();
        for (name, part) in parts(&contents, &resolved)? {
            let is_direct = direct && matches!(part, FileRole::Region { .. } | FileRole::Disk { .. });
            let file = open(&name, is_direct)?;
            check_label(file.as_ref(), &name, part, &superblock)?;
            labelled.push(Labelled { name, part, file });
        }
        let checkpoints = open_checkpoints(storage, &superblock, read_only, |name| open(name, false))?;
        let map = if read_only { None } else { open_map(storage)? };
        let files = Self { superblock: superblock_file, checkpoints, labelled, regions: contents.regions.len(), map };
        Ok((files, (superblock, contents, resolved)))
    }

    /// The files of the regions.
    pub fn regions(&self) -> impl Iterator<Item = &File> {
        self.labelled[..self.regions].iter().map(|labelled| &labelled.file)
    }

    /// The home disk and its checksums, if there is one.
    pub fn disk(&self) -> Option<[&File; 2]> {
        match &self.labelled[self.regions..] {
            [image, sums, _] => Some([&image.file, &sums.file]),
            _ => None,
        }
    }

    /// The journal.
    pub fn journal(&self) -> &File {
        &self.labelled[self.labelled.len() - 1].file
    }

    /// Drops what memory has of the labelled files and does not wait to be written: see [`Backing::drop_cached`].
    ///
    /// # Errors
    /// Memory may still have it.
    pub fn drop_cached(&self) -> Result<(), StoreError> {
        self.labelled.iter().try_for_each(|Labelled { name, file, .. }| file.drop_cached().in_file(name))
    }

    /// Writes the number of an opening to all labels, durably.
    ///
    /// # Errors
    /// The write or the sync failed; the labels may not be durable.
    pub fn label(&self, store: u64, opening: u64) -> Result<(), StoreError> {
        for Labelled { name, part, file } in &self.labelled {
            Label { store, opening, part: *part }.write(file.as_ref()).in_file(name)?;
        }
        Ok(())
    }
}

/// The error of a directory without a superblock.
pub fn missing(storage: &dyn Storage) -> StoreError {
    let is_left = [JOURNAL, &region_file(0)].iter().any(|name| storage.exists(name).unwrap_or(false));
    if is_left { StoreError::NoSuperblock } else { StoreError::Missing }
}

/// Opens the files of the checkpoints. Only the one in use has data. A missing other one is made again; a store that is
/// only read never reads it.
fn open_checkpoints(
    storage: &dyn Storage,
    superblock: &Superblock,
    read_only: bool,
    open: impl Fn(&str) -> Result<File, StoreError>,
) -> Result<[File; 2], StoreError> {
    let in_use = superblock.checkpoint.map(|checkpoint| checkpoint.file as usize);
    let exists = |file: usize| storage.exists(CHECKPOINTS[file]).in_file(CHECKPOINTS[file]);
    let mut files = [None, None];
    for file in [0, 1] {
        let name = CHECKPOINTS[file];
        files[file] = match exists(file)? {
            true => Some(open(name)?),
            false if in_use == Some(file) => {
                return Err(StoreError::Damaged { file: name.into(), what: "it is missing".into() });
            }
            false if read_only => None,
            false => {
                let made = storage.open(name, Access::Create, false).in_file(name)?;
                made.lock(false).in_file(name)?;
                Some(made.into())
            }
        };
    }
    match files {
        [Some(first), second] => Ok([Arc::clone(&first), second.unwrap_or(first)]),
        [None, Some(second)] => Ok([Arc::clone(&second), second]),
        [None, None] => Err(StoreError::Damaged { file: CHECKPOINTS.join(", "), what: "they are missing".into() }),
    }
}

/// Opens the map's file, or creates it: stores of earlier versions have none.
fn open_map(storage: &dyn Storage) -> Result<Option<File>, StoreError> {
    let access = if storage.exists(MAP).in_file(MAP)? { Access::Write } else { Access::Create };
    let file = match storage.open(MAP, access, false) {
        Err(error) if access == Access::Create => {
            tracing::warn!("`{MAP}` cannot be made: {error}; the store can be read by its scheme only");
            return Ok(None);
        }
        opened => opened.in_file(MAP)?,
    };
    file.lock(false).in_file(MAP)?;
    Ok(Some(file.into()))
}

fn check_version(superblock: &Superblock, contents: &Contents) -> Result<(), StoreError> {
    let scheme = &contents.device.scheme;
    let (found, known) = (superblock.scheme_version, scheme::find(scheme)?.version);
    if found == known { Ok(()) } else { Err(StoreError::SchemeVersion { scheme: scheme.clone(), found, known }) }
}

/// Refuses a copied superblock whose files outside are the original's: its state is as old as the copy.
fn check_home(file: &dyn Backing, superblock: &Superblock, contents: &Contents, moved: bool) -> Result<(), StoreError> {
    let here = home(file)?;
    match contents.outside().next() {
        Some(outside) if here != superblock.home && !moved => Err(StoreError::Copied { file: outside.into() }),
        _ => Ok(()),
    }
}

/// Identity of the superblock's file, as the superblock stores it in `home`; 0 if there is none.
///
/// # Errors
/// The file's identity cannot be read.
pub fn home(superblock: &dyn Backing) -> Result<u64, StoreError> {
    Ok(superblock.identity().in_file(SUPERBLOCK)?.map_or(0, |identity| identity.lasting()))
}

/// Names and roles of the labelled files, in the order of [`Files`].
///
/// # Errors
/// The superblock names other files than the device needs.
pub fn parts(contents: &Contents, resolved: &Resolved) -> Result<Vec<(String, FileRole)>, StoreError> {
    if contents.regions.len() != resolved.regions.len() || contents.disk.is_none() != resolved.volumes.is_empty() {
        let what = "it does not name the files that the device has".into();
        return Err(StoreError::Damaged { file: SUPERBLOCK.into(), what });
    }
    let regions = resolved.regions.iter().zip(&contents.regions).zip(0..);
    let mut parts: Vec<_> =
        regions.map(|((region, file), id)| (file.clone(), FileRole::region(id, &region.geometry))).collect();
    if let Some(disk) = &contents.disk {
        parts.push((disk.clone(), FileRole::Disk { sectors: resolved.shape.logical_sectors }));
        parts.push((SUMS.into(), FileRole::Sums));
    }
    parts.push((JOURNAL.into(), FileRole::Journal));
    Ok(parts)
}

/// Checks that a file is the expected part of the store, as of its latest opening.
fn check_label(file: &dyn Backing, name: &str, part: FileRole, superblock: &Superblock) -> Result<(), StoreError> {
    let foreign = |what: String| StoreError::Foreign { file: name.into(), what };
    let Some(label) = Label::read(file, part.label_at()).in_file(name)? else {
        let what = format!("it has no label of {part}, or a damaged one");
        return Err(StoreError::Damaged { file: name.into(), what });
    };
    if label.store != superblock.store || label.part != part {
        let Label { store, part: found, .. } = label;
        return Err(foreign(format!(
            "it is {found} of store {store:016x}, not {part} of store {:016x}; put back the file that belongs here",
            superblock.store
        )));
    }
    if !superblock.openings.contains(&label.opening) {
        return Err(foreign(format!(
            "it is {part} of this store, but not as this store was last opened: one of them is an older copy, or was opened \
             elsewhere since; put the files together that belong together"
        )));
    }
    Ok(())
}
