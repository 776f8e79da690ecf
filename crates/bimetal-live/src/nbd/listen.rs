//! Where clients connect: a Unix socket for the user who serves, or TCP on the loopback; wider if that is wanted.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 64;

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A path: `unix:PATH`.
    Unix(PathBuf),
    /// A host and a port: `tcp:HOST:PORT`, an IPv6 address in brackets. Port 0 lets the system choose.
    Tcp(String),
}

impl FromStr for Address {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", address)) => match address.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(Self::Tcp(address.into())),
                _ => Err(ListenError::Address(text.into())),
            },
            _ => Err(ListenError::Address(text.into())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// Why nothing listens at an address.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The text is not an address.
    #[error("`{0}` is not an address; write `unix:PATH` or `tcp:HOST:PORT`")]
    Address(String),
    /// Another server listens there.
    #[error("another server listens at `{}`; stop it or choose another path", .0.display())]
    InUse(PathBuf),
    /// There is something that is not a socket.
    #[error("`{}` exists and is not a socket; remove it or choose another path", .0.display())]
    NotSocket(PathBuf),
    /// The address is reached from other machines.
    #[error(
        "`{address}` is {found}, which other machines can reach; use the loopback address, or say that remote clients \
         are wanted"
    )]
    Remote {
        /// What was asked for.
        address: String,
        /// What it stands for.
        found: SocketAddr,
    },
    /// The system refused.
    #[error("cannot listen at `{address}`: {source}")]
    System {
        /// What was asked for.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
}

/// A socket that clients connect to. A Unix socket's path goes with it.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    at: Bound,
}

#[derive(Debug)]
enum Bound {
    /// The path, and device and inode of the socket that is ours.
    Unix(PathBuf, (u64, u64)),
    Tcp(SocketAddr),
}

impl Listener {
    /// Listens at `address`; beyond the loopback only if `remote`.
    pub fn bind(address: &Address, remote: bool) -> Result<Self, ListenError> {
        let system = |source: io::Error| ListenError::System { address: address.clone(), source };
        match address {
            Address::Unix(path) => {
                remove_stale(path)?;
                bind_unix(path).map_err(system)
            }
            Address::Tcp(text) => {
                let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(system)?.collect();
                if let Some(&found) = found.iter().find(|found| !remote && !found.ip().is_loopback()) {
                    return Err(ListenError::Remote { address: text.clone(), found });
                }
                let listener = TcpListener::bind(&found[..]).map_err(system)?;
                listener.set_nonblocking(true).map_err(system)?;
                let at = Bound::Tcp(listener.local_addr().map_err(system)?);
                Ok(Self { fd: listener.into(), at })
            }
        }
    }

    /// Where it listens, with the port that was chosen.
    pub fn address(&self) -> Address {
        match &self.at {
            Bound::Unix(path, _) => Address::Unix(path.clone()),
            Bound::Tcp(address) => Address::Tcp(address.to_string()),
        }
    }

    /// Takes a client that is waiting; an error of the kind `WouldBlock` if there is none.
    pub fn accept(&self) -> io::Result<OwnedFd> {
        let socket = rustix::net::accept_with(&self.fd, SocketFlags::CLOEXEC)?;
        if let Bound::Tcp(_) = self.at {
            rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
            rustix::net::sockopt::set_socket_keepalive(&socket, true)?;
        }
        Ok(socket)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Only what is still ours: somebody may have put another socket there.
        if let Bound::Unix(path, ours) = &self.at
            && inode(path).is_ok_and(|there| there == *ours)
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::warn!(path = %path.display(), %error, "the socket could not be removed");
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<Listener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Before it has a path, so that nobody else can connect in between.
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&fd, &SocketAddrUnix::new(path)?)?;
    let ours = inode(path)?;
    let listener = Listener { fd, at: Bound::Unix(path.into(), ours) };
    rustix::net::listen(&listener.fd, BACKLOG)?;
    Ok(listener)
}

/// Removes the socket of a server that did not get to it.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let system = |source| ListenError::System { address: Address::Unix(path.into()), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(ListenError::NotSocket(path.into())),
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ListenError::InUse(path.into())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path).map_err(system),
        // Somebody else's, or a server too busy to take another client.
        Err(error) => Err(system(error)),
    }
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    fn unix(path: &Path) -> Address {
        Address::Unix(path.into())
    }

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["unix:/run/x:y.sock", "unix:rel.sock", "tcp:localhost:10809", "tcp:[::1]:0", "tcp:127.0.0.1:1"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "unix:", "/run/x.sock", "tcp:", "tcp:host", "tcp:host:", "tcp::5", "tcp:host:65536", "udp:a:1"]
        {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("write `unix:PATH` or `tcp:HOST:PORT`"), "{error}");
        }
    }

    #[test]
    fn only_its_user_may_connect_and_the_path_goes_with_the_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = Listener::bind(&unix(&path), false).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(listener.address(), unix(&path));
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "what a killed server leaves");
        let first = Listener::bind(&unix(&path), false).unwrap();
        assert!(matches!(Listener::bind(&unix(&path), false), Err(ListenError::InUse(_))));
        // Another one that was put in its place is left alone.
        std::fs::remove_file(&path).unwrap();
        let second = Listener::bind(&unix(&path), false).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        std::fs::write(&path, "text").unwrap();
        assert!(matches!(Listener::bind(&unix(&path), false), Err(ListenError::NotSocket(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
        let long = folder.path().join("x".repeat(120));
        assert!(matches!(Listener::bind(&unix(&long), false), Err(ListenError::System { .. })));
    }

    #[test]
    fn other_machines_connect_only_if_that_is_said() {
        for address in ["tcp:0.0.0.0:0", "tcp:[::]:0"] {
            let error = Listener::bind(&address.parse().unwrap(), false).unwrap_err();
            assert!(matches!(error, ListenError::Remote { .. }), "{error}");
        }
        assert!(Listener::bind(&"tcp:0.0.0.0:0".parse().unwrap(), true).is_ok());
        let local = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap(), false).unwrap();
        assert!(
            matches!(local.address(), Address::Tcp(text) if text.starts_with("127.0.0.1:") && !text.ends_with(":0"))
        );
        assert_eq!(local.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
