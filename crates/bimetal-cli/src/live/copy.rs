//! `bimetal copy`: copies a store to a new one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bimetal_core::device::Resolved;
use bimetal_core::units::ByteSize;
use bimetal_live::SECTOR_BYTES;
use bimetal_live::backup::wire::Served;
use bimetal_live::runtime::BACKUP_SOCKET;
use bimetal_live::store::backing::Storage;
use bimetal_live::store::{Directory, NewStore, Read, Source, StoreError, source};
use bimetal_study::number::{SIZES, thousands, with_unit};
use indicatif::ProgressBar;

use super::create;
use crate::args::CopyArgs;
use crate::failure::Failure;
use crate::progress::bar;
use crate::{inform, output, setup};

/// Device of a new store that differs from the old one.
const DEVICE: &str = "bare-dies";

pub fn run(args: &CopyArgs) -> Result<(), Failure> {
    refuse_itself(args)?;
    let mut old = open(args)?;
    let resolved = device(args, old.as_ref())?;
    let new = create::make(&args.new, &args.place, |directory, options| {
        NewStore::create(Arc::new(directory), &resolved.device, options)
    })?;
    resolved.notes.iter().for_each(|note| inform(&format!("note: {note}")));
    let (sectors, lost) = fill(old.as_mut(), &args.old, new, &args.new, |_| Ok(()))?;
    let bytes = with_unit(SIZES, (sectors * SECTOR_BYTES) as f64);
    inform(&format!("{}: {}; {bytes} copied", args.new.display(), create::summary(&resolved.device)));
    if lost.is_empty() {
        return Ok(());
    }
    for &(first, count) in &lost {
        output::print(&format!("sectors {first} to {} are lost\n", first + count - 1))?;
    }
    let lost = thousands(lost.iter().map(|&(_, count)| count).sum());
    Err(Failure::failed(format!(
        "{}: {lost} sectors cannot be read; they read as zeros in {}, and all others are copied",
        args.old.display(),
        args.new.display()
    )))
}

/// Writes the data of `old` to `new`, and completes it if `accept` accepts the result. Returns the number of copied
/// sectors, and runs of unreadable sectors.
pub fn fill(
    old: &mut dyn Source,
    old_path: &Path,
    new: NewStore,
    new_path: &Path,
    accept: impl FnOnce(&Read) -> Result<(), Failure>,
) -> Result<Read, Failure> {
    let bar = CopyBar::new(old.written_sectors() * SECTOR_BYTES);
    let mut unwritten = None;
    let read = old.read_all(&mut |sector, bytes| {
        bar.add(bytes.len() as u64);
        new.write(sector, bytes).map_err(|error| {
            unwritten = Some(error);
            io::ErrorKind::Other.into()
        })
    });
    drop(bar);
    let unfinished = |error: io::Error| Failure::failed(format!("{}: {error}; it is not complete", new_path.display()));
    if let Some(error) = unwritten {
        return Err(unfinished(error));
    }
    let read = read.map_err(|error| Failure::store(old_path, error))?;
    accept(&read)?;
    new.complete().map_err(unfinished)?;
    Ok(read)
}

/// Refuses one directory as both stores. A copy to itself would find the store in use, by this process.
fn refuse_itself(args: &CopyArgs) -> Result<(), Failure> {
    match (args.old.canonicalize(), args.new.canonicalize()) {
        (Ok(old), Ok(new)) if old == new => Err(Failure::usage(format!(
            "{}: a store cannot be copied to itself; hint: name another directory",
            args.old.display()
        ))),
        _ => Ok(()),
    }
}

fn open(args: &CopyArgs) -> Result<Box<dyn Source>, Failure> {
    let storage: Arc<dyn Storage> = Arc::new(Directory::new(&args.old));
    let (old, refusal) = match source(&storage, args.by_map) {
        Err(StoreError::InUse) => return served(args),
        opened => opened.map_err(|error| Failure::store(&args.old, error))?,
    };
    if let Some(refusal) = refusal {
        inform(&format!(
            "note: {} is read by its map, because its scheme cannot read it: {refusal}",
            args.old.display()
        ));
    }
    Ok(old)
}

/// A store that another process serves.
fn served(args: &CopyArgs) -> Result<Box<dyn Source>, Failure> {
    let socket = args.old.join(BACKUP_SOCKET);
    let old = args.old.display();
    if args.by_map || !socket.exists() {
        return Err(Failure::store(&args.old, StoreError::InUse));
    }
    let served = Served::connect(&socket);
    Ok(Box::new(served.map_err(|error| Failure::failed(format!("{old}: the server does not answer: {error}")))?))
}

/// The device of the new store: that of the old one, unless another one is requested.
fn device(args: &CopyArgs, old: &dyn Source) -> Result<Resolved, Failure> {
    let CopyArgs { scheme, capacity, device, set, .. } = args;
    let is_alike = scheme.is_none() && capacity.is_none() && device.is_none() && set.is_empty();
    let resolved = match old.device() {
        Some(device) if is_alike => device.resolve()?,
        like => {
            let scheme = scheme.as_ref().or(like.map(|device| &device.scheme));
            let scheme = scheme.ok_or_else(|| {
                let old = args.old.display();
                Failure::usage(format!(
                    "{old}: its scheme is unknown; hint: add `--scheme`, see `bimetal list schemes`"
                ))
            })?;
            let described = setup::device(device.as_deref().unwrap_or(DEVICE))?;
            let capacity = capacity.unwrap_or(ByteSize(old.sectors() * SECTOR_BYTES));
            create::fitted(described, scheme, Some(capacity), set)?
        }
    };
    let (sectors, needed) = (resolved.shape.logical_sectors, old.sectors());
    if sectors < needed {
        let [bytes, needed] = [sectors, needed].map(|sectors| ByteSize(sectors * SECTOR_BYTES));
        return Err(Failure::usage(format!(
            "the new store would have {bytes} and {} has {needed}; hint: `--capacity {needed}`",
            args.old.display()
        )));
    }
    Ok(resolved)
}

/// A bar for the bytes of a copy.
struct CopyBar {
    bar: ProgressBar,
}

impl CopyBar {
    /// Hidden without a terminal or with `--quiet`.
    fn new(bytes: u64) -> Self {
        let bar = bar(bytes, "copying {bar:40} {binary_bytes:>12} of {binary_total_bytes}, {eta} left");
        Self { bar }
    }

    /// Advances the bar by a number of bytes.
    fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
    }
}

impl Drop for CopyBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
