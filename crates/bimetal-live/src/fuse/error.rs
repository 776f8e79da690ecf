//! Errors of showing a device as a file.

use std::io;
use std::path::PathBuf;

/// Why a device is not shown as a file.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The path is a directory.
    #[error("{}: it is a directory, and the device is shown as one file; name a file, such as `disk`", .0.display())]
    Directory(PathBuf),
    /// The path is not a regular file.
    #[error("{}: it is no regular file; name an empty file, or one that does not exist", .0.display())]
    NotRegular(PathBuf),
    /// The path is a file with data.
    #[error(
        "{}: it holds {bytes} bytes, which the device would hide; name an empty file, or one that does not exist",
        file.display()
    )]
    NotEmpty {
        /// The file.
        file: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// Another file system is mounted at the path.
    #[error("{file}: something is mounted there already; name another file, or run `umount {file}`", file = .0.display())]
    Mounted(PathBuf),
    /// The mount of a killed server is still present.
    #[error(
        "{file}: a server that was killed has left its mount there; run `umount {file}`, or `fusermount3 -u {file}` if you are \
         not root",
        file = .0.display()
    )]
    Stale(PathBuf),
    /// The kernel has no FUSE, or this process may not use it.
    #[error(
        "/dev/fuse: {source}; load the module (`modprobe fuse`), or give the container the device (`--device /dev/fuse`)"
    )]
    NoDriver {
        /// The system's error.
        source: io::Error,
    },
    /// This process may not mount, and the helper program for users is missing.
    #[error("{}: mounting takes root, or the program `fusermount3` of the package `fuse3`", .0.display())]
    NoHelper(PathBuf),
    /// The system refused the mount, a file or a thread.
    #[error("{}: {source}", file.display())]
    System {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
