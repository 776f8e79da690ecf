//! Unix sockets at paths of any length.
//!
//! The address of a Unix socket has room for a path of 107 bytes. A socket at a longer path is reached through its open directory, whose
//! path in `/proc` is short.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::net::SocketAddrUnix;

/// Bytes of a path that the address of a socket has room for, without the zero byte that most programs need at its end.
pub(crate) const PATH_BYTES: usize = 107;

/// Whether the address of a socket has room for `path`. Other programs cannot connect to a socket at a longer path.
pub(crate) fn is_addressable(path: &Path) -> bool {
    path.as_os_str().len() <= PATH_BYTES
}

/// A path to a socket that fits into an address.
#[derive(Debug)]
pub(crate) struct SocketPath {
    path: PathBuf,
    /// The path leads through this descriptor.
    _directory: Option<OwnedFd>,
}

impl SocketPath {
    /// The shortened path to `path`, or `path` itself if it is short or is the name of a file alone.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !is_addressable(path));
        let Some((parent, name)) = parent.zip(path.file_name()) else {
            return Ok(Self { path: path.into(), _directory: None });
        };
        let directory = rustix::fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _directory: Some(directory) })
    }

    /// The address of the socket, valid while this exists.
    pub(crate) fn address(&self) -> io::Result<SocketAddrUnix> {
        Ok(SocketAddrUnix::new(&self.path)?)
    }
}

/// Connects to the socket at `path`.
///
/// # Errors
/// No server listens there, or the system refuses.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(SocketPath::of(path)?.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_longest_path_of_an_address_is_used_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let of_length = |length: usize| {
            let directory =
                folder.path().join("x".repeat(length - folder.path().as_os_str().len() - "/".len() - "/s".len()));
            std::fs::create_dir(&directory).unwrap();
            directory.join("s")
        };
        let (longest, longer) = (of_length(PATH_BYTES), of_length(PATH_BYTES + 1));
        assert!(is_addressable(&longest) && UnixListener::bind(&longest).is_ok());
        assert!(!is_addressable(&longer) && UnixListener::bind(&longer).is_err());
        let listens = UnixListener::bind(SocketPath::of(&longer).unwrap().path).unwrap();
        assert!(longer.exists() && connect(&longer).is_ok() && listens.accept().is_ok());
    }
}
