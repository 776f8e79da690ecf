//! `bimetal grow`: replaces a store by a larger one.
//!
//! The larger store is filled in a sibling directory, and takes the name of the old one when it is complete. So a crash
//! leaves one complete store.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bimetal_core::device::Device;
use bimetal_core::units::ByteSize;
use bimetal_live::SECTOR_BYTES;
use bimetal_live::store::backing::Storage;
use bimetal_live::store::{Directory, NewStore, Read, StoreError, replace, source};
use bimetal_study::number::{SIZES, with_unit};

use super::{copy, create};
use crate::args::{GrowArgs, PlaceArgs};
use crate::failure::Failure;
use crate::inform;

pub fn run(args: &GrowArgs) -> Result<(), Failure> {
    let store = args.store.display();
    let refused = |error| Failure::store(&args.store, error);
    let storage: Arc<dyn Storage> = Arc::new(Directory::new(&args.store));
    // Its files stay locked until the new store has its name.
    let (mut old, _) = source(&storage, false).map_err(|error| match error {
        StoreError::InUse => Failure::failed(format!(
            "{store}: in use by another process; hint: stop its server, or copy it while it is served: `bimetal copy {store} NEW \
             --capacity {}`",
            args.capacity
        )),
        error => refused(error),
    })?;
    let contents = replace::contents(storage.as_ref()).map_err(refused)?;
    if let Some(outside) = contents.outside().next() {
        return Err(Failure::failed(format!(
            "{store}: `{outside}` is outside the store's directory and cannot grow; hint: `bimetal copy {store} NEW --capacity \
             {} --region NAME=PATH`",
            args.capacity
        )));
    }
    let bytes = old.sectors() * SECTOR_BYTES;
    if args.capacity.0 <= bytes {
        return Err(Failure::usage(format!(
            "{store} has {} already; hint: `--capacity` must be larger, and a store cannot become smaller",
            ByteSize(bytes)
        )));
    }
    let device = Device { logical: args.capacity, ..contents.device.scaled(args.capacity)? }.resolve()?.device;
    // The store itself takes part in the exchange, not a symbolic link to it.
    let place = args.store.canonicalize()?;
    let larger = sibling(&place)?;
    check_place(&place, &larger)?;
    // Files that are there are left over from an interrupted growth.
    let beside = PlaceArgs { region: Vec::new(), disk: None, sparse: contents.sparse, force: true };
    let new =
        create::make(&larger, &beside, |directory, options| NewStore::create(Arc::new(directory), &device, options))?;
    // A larger store without some of the data stays unfinished, so that the command can be repeated.
    let accept = |(_, lost): &Read| match lost.first() {
        None => Ok(()),
        Some(&(first, count)) => Err(Failure::failed(format!(
            "{store}: sectors {first} to {} cannot be read, so it cannot grow; hint: `bimetal copy` copies all others",
            first + count - 1
        ))),
    };
    let (sectors, _) = copy::fill(old.as_mut(), &args.store, new, &larger, accept)?;
    let failed = |what: &str, error| Failure::failed(format!("{}: {what}: {error}", larger.display()));
    keep_owner(&place, &larger).map_err(|error| failed("complete, but cannot get the owner of the store", error))?;
    replace::exchange(&place, &larger).map_err(|error| failed("complete, but cannot replace the store", error))?;
    drop(old);
    let copied = with_unit(SIZES, (sectors * SECTOR_BYTES) as f64);
    inform(&format!("{store}: {}; {copied} copied", create::summary(&device)));
    let is_gone = replace::retire(&larger, &place, &contents).map_err(|error| {
        let rest = larger.display();
        Failure::failed(format!(
            "{store}: it has grown, but the old store in {rest} cannot be removed: {error}; hint: remove that directory"
        ))
    })?;
    if !is_gone {
        inform(&format!(
            "note: some files that were in {store} and are not of the store are in {} now",
            larger.display()
        ));
    }
    Ok(())
}

/// The directory of the larger store, which has this absolute path without links: a sibling, so that the two can exchange names.
fn sibling(store: &Path) -> Result<PathBuf, Failure> {
    let Some(name) = store.file_name() else {
        return Err(Failure::usage(format!("{}: a store in the root of a file system cannot grow", store.display())));
    };
    let mut larger = name.to_owned();
    larger.push(".growing");
    Ok(store.with_file_name(larger))
}

/// Refuses a store that cannot change its name, and a directory in the place of the larger one unless an interrupted growth left it.
fn check_place(store: &Path, larger: &Path) -> Result<(), Failure> {
    let parent = store.parent().unwrap_or(store);
    if fs::metadata(store)?.dev() != fs::metadata(parent)?.dev() {
        return Err(Failure::failed(format!(
            "{}: it is the root of a mounted file system, whose name cannot change; hint: `bimetal copy {0} NEW --capacity BYTES`",
            store.display()
        )));
    }
    let is_left_over = match fs::symlink_metadata(larger) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(error.into()),
        Ok(found) if !found.is_dir() => false,
        _ if fs::read_dir(larger)?.next().is_none() => true,
        _ => matches!(replace::contents(&Directory::new(larger)), Err(StoreError::Unfinished)),
    };
    if is_left_over {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{}: the larger store is made here, and this is not what an interrupted growth leaves; hint: move it elsewhere, or \
         remove it if it is the old store of an earlier growth",
        larger.display()
    )))
}

/// Gives a directory and its files the owner and the permissions of another store.
fn keep_owner(store: &Path, larger: &Path) -> io::Result<()> {
    let of_files = fs::metadata(store.join(replace::SUPERBLOCK))?;
    let files = fs::read_dir(larger)?.map(|entry| entry.map(|entry| (entry.path(), &of_files)));
    for place in files.chain([Ok((larger.to_owned(), &fs::metadata(store)?))]) {
        let (path, wanted) = place?;
        let found = fs::metadata(&path)?;
        if (found.uid(), found.gid()) != (wanted.uid(), wanted.gid()) {
            chown(&path, Some(wanted.uid()), Some(wanted.gid()))?;
        }
        fs::set_permissions(&path, wanted.permissions())?;
    }
    Ok(())
}
