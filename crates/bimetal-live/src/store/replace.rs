//! A store in place of another: their directories exchange names in one step, then the files of the other are removed.
//!
//! A crash before the exchange leaves the old store, a crash after it the new one: there is never none, and never half of one.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::backing::{Access, Storage};
use super::error::{InFile, StoreError};
use super::names::{CHECKPOINTS, JOURNAL, MAP, SUMS};
use super::superblock::{Contents, SUPERBLOCK, Superblock};

/// The files and the device of a store, as its superblock says. Nothing is opened but that.
///
/// # Errors
/// There is no store that was made to the end, or this program cannot read its description.
pub fn contents(storage: &dyn Storage) -> Result<Contents, StoreError> {
    if !storage.exists(SUPERBLOCK).in_file(SUPERBLOCK)? {
        return Err(StoreError::Missing);
    }
    let file = storage.open(SUPERBLOCK, Access::Read, false).in_file(SUPERBLOCK)?;
    Superblock::read(file.as_ref())?.contents.ok_or(StoreError::Unfinished)
}

/// Two directories of one parent exchange their names, durably and in one step.
///
/// # Errors
/// They keep their names: one is missing, or the file system cannot do this.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?;
    let parent = one.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Removes the files of a store from its directory, and the directory if nothing else is in it. Returns whether it is gone.
///
/// # Errors
/// A file cannot be removed.
pub fn remove(directory: &Path, contents: &Contents) -> io::Result<bool> {
    let regions = contents.regions.iter().chain(&contents.disk).map(String::as_str);
    // The superblock first: what is left by a crash is no store.
    for name in [SUPERBLOCK, JOURNAL, MAP, SUMS].into_iter().chain(CHECKPOINTS).chain(regions) {
        match fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(fs::remove_dir(directory).is_ok())
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
        exchange(&one, &other).unwrap();
        let read = |directory: &Path| fs::read_to_string(directory.join(SUPERBLOCK)).unwrap();
        assert_eq!([read(&one), read(&other)], ["2", "1"]);
        let device = bimetal_core::device::preset("bare-dies").unwrap();
        let contents = Contents { regions: vec!["region0.flash".into()], disk: None, sparse: true, device };
        assert!(
            !remove(&other, &contents).unwrap() && other.join("notes").exists() && !other.join(SUPERBLOCK).exists()
        );
        assert!(remove(&one, &contents).unwrap() && !one.exists());
        assert!(exchange(&one, &other).is_err());
    }
}
