//! Why a device is not shown as a file.

use std::io;
use std::path::PathBuf;

/// Why a device is not shown as a file.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// A directory is there.
    #[error("{}: it is a directory, and the device is shown as one file; name a file, such as `disk`", .0.display())]
    Directory(PathBuf),
    /// Something is there that is no regular file.
    #[error("{}: it is no regular file; name an empty file, or one that does not exist", .0.display())]
    NotRegular(PathBuf),
    /// A file with data is there.
    #[error(
        "{}: it holds {bytes} bytes, which the device would hide; name an empty file, or one that does not exist",
        file.display()
    )]
    NotEmpty {
        /// Which file.
        file: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// Something is mounted there.
    #[error("{file}: something is mounted there already; name another file, or run `umount {file}`", file = .0.display())]
    Mounted(PathBuf),
    /// The mount of a server that was killed is there.
    #[error(
        "{file}: a server that was killed has left its mount there; run `umount {file}`, or `fusermount3 -u {file}` if you are \
         not root",
        file = .0.display()
    )]
    Stale(PathBuf),
    /// The kernel has no FUSE, or not for this process.
    #[error(
        "/dev/fuse: {source}; load the module (`modprobe fuse`), or give the container the device (`--device /dev/fuse`)"
    )]
    NoDriver {
        /// The system's error.
        source: io::Error,
    },
    /// This process may not mount, and the program that does it for users is missing.
    #[error("{}: mounting takes root, or the program `fusermount3` of the package `fuse3`", .0.display())]
    NoHelper(PathBuf),
    /// The system refused to mount, or a file or a thread.
    #[error("{}: {source}", file.display())]
    System {
        /// Which file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
