//! The file at which a device is mounted: what may be there before, and what is there afterwards.

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
/// The program that mounts for users who may not.
const HELPER: &str = "fusermount3";

/// A file to mount at.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// The file that was made for this, by device and inode: it is removed in the end.
    made: Option<(u64, u64)>,
}

/// Checks that a device can be shown at `file`.
///
/// # Errors
/// Something is there that would be hidden, or that is no regular file, or FUSE is not to be had on this machine.
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

/// Whether something is mounted at `file`. Linux before 5.8 does not tell; then its content tells what is hidden.
fn is_mounted(file: &Path) -> io::Result<bool> {
    let told = rustix::fs::statx(rustix::fs::CWD, file, AtFlags::empty(), StatxFlags::TYPE)?;
    Ok(told.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

impl Place {
    /// Takes `file`, which is made if it is not there.
    ///
    /// # Errors
    /// As of [`check`], and the file cannot be made.
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

    /// Where it is, from the root on.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts the file; if `lazy`, even if it is open: it is there no more, and those who have it open keep it.
    ///
    /// # Errors
    /// It is open, or the system refused.
    pub fn unmount(&self, lazy: bool) -> io::Result<()> {
        let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        match rustix::mount::unmount(&self.path, flags | UnmountFlags::NOFOLLOW) {
            Err(Errno::PERM) => {}
            // Nothing is mounted there: the user has unmounted it lazily.
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
        // Only our own file, as it was made: another process may have replaced it.
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
