//! Replacement of a store by another: their directories exchange names atomically, then the files of the old store are
//! removed.
//!
//! A crash before the exchange leaves the old store, and a crash after it the new one. There is always exactly one
//! complete store.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::backing::{Access, Storage};
use super::error::{InFile, StoreError};
use super::files;
use super::names::{CHECKPOINTS, JOURNAL, MAP, SUMS};
pub use super::superblock::SUPERBLOCK;
use super::superblock::{Contents, Superblock};

/// The files and the device of a store, from its superblock. No other file is opened.
///
/// # Errors
/// There is no complete store, or this program cannot parse its description.
pub fn contents(storage: &dyn Storage) -> Result<Contents, StoreError> {
    if !storage.exists(SUPERBLOCK).in_file(SUPERBLOCK)? {
        return Err(files::missing(storage));
    }
    let file = storage.open(SUPERBLOCK, Access::Read, false).in_file(SUPERBLOCK)?;
    Superblock::read(file.as_ref())?.contents.ok_or(StoreError::Unfinished)
}

/// Exchanges the names of two directories with the same parent, durably and atomically.
///
/// # Errors
/// The names are unchanged: a directory is missing, or the file system does not support the exchange.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?;
    let parent = one.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Removes the files of the old store after the exchange, moves other files of its directory `old` to that of the new
/// store, and removes `old`. A file whose name `new` has, or that cannot move, stays, and so does `old`: then this returns
/// `false`.
///
/// # Errors
/// A file of the old store cannot be removed.
pub fn retire(old: &Path, new: &Path, contents: &Contents) -> io::Result<bool> {
    let regions = contents.regions.iter().chain(&contents.disk).map(String::as_str);
    // The superblock first, so that the rest after a crash is not a store.
    for name in [SUPERBLOCK, JOURNAL, MAP, SUMS].into_iter().chain(CHECKPOINTS).chain(regions) {
        match fs::remove_file(old.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    for other in fs::read_dir(old)? {
        let other = other?;
        let _ = renameat_with(CWD, other.path(), CWD, new.join(other.file_name()), RenameFlags::NOREPLACE);
    }
    Ok(fs::remove_dir(old).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_exchange_names_and_only_files_of_the_store_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| parent.path().join(name));
        for (directory, text) in [(&one, "1"), (&other, "2")] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join(SUPERBLOCK), text).unwrap();
        }
        fs::write(one.join("notes"), "kept").unwrap();
        fs::write(one.join("list"), "old").unwrap();
        fs::write(other.join("list"), "new").unwrap();
        exchange(&one, &other).unwrap();
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!([&one, &other].map(|directory| read(&directory.join(SUPERBLOCK))), ["2", "1"]);
        let device = bimetal_core::device::preset("bare-dies").unwrap();
        let contents = Contents { regions: vec!["region0.flash".into()], disk: None, sparse: true, device };
        assert!(!retire(&other, &one, &contents).unwrap(), "it has a file whose name is taken");
        assert_eq!(["notes", "list"].map(|name| read(&one.join(name))), ["kept", "new"]);
        assert!(!other.join(SUPERBLOCK).exists() && read(&other.join("list")) == "old");
        fs::remove_file(other.join("list")).unwrap();
        assert!(retire(&other, &one, &contents).unwrap() && !other.exists() && one.join(SUPERBLOCK).exists());
        assert!(exchange(&one, &other).is_err());
        fs::create_dir_all(other.join(JOURNAL)).unwrap();
        assert!(retire(&other, &one, &contents).is_err(), "not a file");
    }
}
