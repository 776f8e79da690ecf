//! The file over which a device is mounted: checks before mounting, unmounting and removal.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::error::MountError;

/// The kernel's side of FUSE.
const DRIVER: &str = "/dev/fuse";
/// The program that mounts for users without that privilege.
const HELPER: &str = "fusermount3";

/// A file to mount at.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// Device and inode of the file, if it was created for the mount. Such a file is removed at the end.
    made: Option<(u64, u64)>,
}

/// Checks that a device can be shown at `file`.
///
/// # Errors
/// The mount would hide data, the path is not a regular file, or this machine has no usable FUSE.
pub fn check(file: &Path) -> Result<(), MountError> {
    let system = |source: io::Error| MountError::System { file: file.into(), source };
    match found(file) {
        Ok(Some(there)) if there.is_dir() => return Err(MountError::Directory(file.into())),
        Ok(Some(there)) if !there.is_file() => return Err(MountError::NotRegular(file.into())),
        Ok(Some(_)) if is_mounted(file).map_err(system)? => return Err(MountError::Mounted(file.into())),
        Ok(Some(there)) if there.len() > 0 => {
            return Err(MountError::NotEmpty { file: file.into(), bytes: there.len() });
        }
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
            return Err(MountError::Stale(file.into()));
        }
        Err(error) => return Err(system(error)),
    }
    match File::options().read(true).write(true).open(DRIVER) {
        Ok(_) => Ok(()),
        Err(source) => Err(MountError::NoDriver { source }),
    }
}

fn found(file: &Path) -> io::Result<Option<Metadata>> {
    match file.metadata() {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file system is mounted at `file`. Linux before 5.8 does not report this; then only the content of the file
/// is checked.
fn is_mounted(file: &Path) -> io::Result<bool> {
    let told = rustix::fs::statx(rustix::fs::CWD, file, AtFlags::empty(), StatxFlags::TYPE)?;
    Ok(told.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

impl Place {
    /// Takes `file`, which is created if it is missing.
    ///
    /// # Errors
    /// The errors of [`check`], and the file cannot be created.
    pub fn take(file: &Path) -> Result<Self, MountError> {
        check(file)?;
        let system = |source: io::Error| MountError::System { file: file.into(), source };
        let made = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
            Ok(made) => Some(inode(&made.metadata().map_err(system)?)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            Err(error) => return Err(system(error)),
        };
        let mut place = Self { path: file.into(), made };
        place.path = file.canonicalize().map_err(system)?;
        Ok(place)
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts the file. If `lazy`, it is unmounted even if it is open; processes that have it open keep it.
    ///
    /// # Errors
    /// It is open, or the system refused.
    pub fn unmount(&self, lazy: bool) -> io::Result<()> {
        let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        match rustix::mount::unmount(&self.path, flags | UnmountFlags::NOFOLLOW) {
            Err(Errno::PERM) => {}
            // Not mounted any more: the user has unmounted it lazily.
            Err(Errno::INVAL) => return Ok(()),
            done => return Ok(done?),
        }
        let mut helper = Command::new(HELPER);
        helper.arg(if lazy { "-uz" } else { "-u" }).arg("--").arg(&self.path).stdin(Stdio::null());
        let ran = helper.output()?;
        if ran.status.success() {
            return Ok(());
        }
        Err(io::Error::other(String::from_utf8_lossy(&ran.stderr).trim().to_owned()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Removes only the file that was created here, and only if it is empty: another process may have replaced it.
        let is_ours = |there: Metadata| Some(inode(&there)) == self.made && there.len() == 0;
        if self.made.is_some()
            && self.path.symlink_metadata().is_ok_and(is_ours)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(file = %self.path.display(), %error, "the file could not be removed");
        }
    }
}

fn inode(there: &Metadata) -> (u64, u64) {
    (there.dev(), there.ino())
}
