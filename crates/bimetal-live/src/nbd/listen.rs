//! Listening for clients: at a Unix socket for the serving user, or over TCP on the loopback, or on other interfaces if
//! requested.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::socket_path::{PATH_BYTES, SocketPath, connect, is_addressable};

/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 64;
/// Mode of a Unix socket: only the serving user may connect.
const SOCKET_MODE: u32 = 0o600;
/// Silence on a TCP connection before the first keepalive probe.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// Time between keepalive probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Unanswered keepalive probes before the connection is closed.
const KEEPALIVE_PROBES: u32 = 6;
/// Send buffer of a TCP connection in the kernel, which doubles the value. With the kernel's larger default a slow
/// reader shows no progress for seconds, and looks like a client that does not read.
const SEND_BUFFER_BYTES: usize = 208 << 10;
/// Time after which unacknowledged data close the connection.
const UNACKNOWLEDGED_MS: u32 = 60_000;

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

impl Address {
    /// Checks a literal IP address against `remote` without resolving names, and the length of a path.
    ///
    /// # Errors
    /// Other machines can reach the address, and `remote` does not allow that; or the path is too long for clients.
    pub fn check(&self, remote: Remote, encrypted: bool) -> Result<(), ListenError> {
        match self {
            Self::Tcp(text) => text.parse().map_or(Ok(()), |found| remote.check(text, &[found], encrypted)),
            Self::Unix(_) => self.check_length(),
        }
    }

    /// Checks that clients of any kind can connect to the path of a Unix socket.
    ///
    /// # Errors
    /// The path is too long for the address of a socket.
    pub(crate) fn check_length(&self) -> Result<(), ListenError> {
        match self {
            Self::Unix(path) if !is_addressable(path) => Err(ListenError::TooLong(path.clone())),
            Self::Unix(_) | Self::Tcp(_) => Ok(()),
        }
    }

    /// Whether other machines can reach this address.
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Tcp(text) => text.parse().is_ok_and(|found: SocketAddr| !found.ip().is_loopback()),
            Self::Unix(_) => false,
        }
    }
}

/// Whether connections from other machines are allowed on TCP addresses that they can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remote {
    /// Not at all.
    #[default]
    Refused,
    /// Only with TLS.
    Encrypted,
    /// With or without TLS. Without it, anyone who can reach the address has full access.
    Plaintext,
}

impl Remote {
    pub(super) fn check(self, address: &str, found: &[SocketAddr], encrypted: bool) -> Result<(), ListenError> {
        let Some(&found) = found.iter().find(|found| !found.ip().is_loopback()) else { return Ok(()) };
        match self {
            Self::Refused => Err(ListenError::Remote { address: address.into(), found }),
            Self::Encrypted if !encrypted => Err(ListenError::Plaintext { address: address.into(), found }),
            Self::Encrypted | Self::Plaintext => Ok(()),
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
    /// The address of a socket has no room for the path.
    #[error("the path of the socket `{}` is longer than {} bytes; choose a shorter path", .0.display(), PATH_BYTES)]
    TooLong(PathBuf),
    /// The path is not a socket.
    #[error("`{}` exists and is not a socket; remove it or choose another path", .0.display())]
    NotSocket(PathBuf),
    /// The address is reached from other machines.
    #[error(
        "other machines can reach `{address}` ({found}); use the loopback address, or say that remote clients are wanted"
    )]
    Remote {
        /// The requested address.
        address: String,
        /// The resolved address.
        found: SocketAddr,
    },
    /// The address is reached from other machines, and nothing is encrypted.
    #[error(
        "other machines can reach `{address}` ({found}), and nothing would be encrypted; use TLS, which metrics do not have, \
         or say that plaintext is wanted"
    )]
    Plaintext {
        /// The requested address.
        address: String,
        /// The resolved address.
        found: SocketAddr,
    },
    /// The socket that was passed to this process cannot be used.
    #[error("the socket that was passed {0}; pass one that listens for streams, at a path or over TCP")]
    Passed(&'static str),
    /// More sockets were passed to this process than it can use.
    #[error("{0} sockets were passed to this process, and it serves one; pass that one only")]
    PassedMany(usize),
    /// The memory limit is too small for the number of connections.
    #[error("{connections} connections need at least {} MiB of memory, and {} are given", needed >> 20, given >> 20)]
    Memory {
        /// Connections at once.
        connections: usize,
        /// Bytes that the connections need.
        needed: usize,
        /// Bytes that the connections may use.
        given: usize,
    },
    /// The system refused.
    #[error("cannot listen at `{address}`: {source}")]
    System {
        /// The requested address.
        address: Address,
        /// Error of the system.
        source: io::Error,
    },
}

/// A socket to which clients connect. Dropping it removes the path of a Unix socket.
#[derive(Debug)]
pub struct Listener {
    pub(super) fd: OwnedFd,
    pub(super) at: Bound,
}

#[derive(Debug)]
pub(super) enum Bound {
    /// The path, and device and inode of the socket if this listener must remove it.
    Unix(PathBuf, Option<(u64, u64)>),
    Tcp(SocketAddr),
}

impl Listener {
    /// Listens at `address` for programs of any kind. `remote` and `encrypted` decide whether other machines may connect.
    ///
    /// # Errors
    /// Nothing can listen there, not all clients could connect, or machines that are not allowed could.
    pub fn bind(address: &Address, remote: Remote, encrypted: bool) -> Result<Self, ListenError> {
        address.check_length()?;
        Self::bind_at_any_length(address, remote, encrypted)
    }

    /// Listens at `address`, whose path may be too long for clients that do not use [`connect`].
    ///
    /// # Errors
    /// Nothing can listen there, or machines that are not allowed could connect.
    pub(crate) fn bind_at_any_length(address: &Address, remote: Remote, encrypted: bool) -> Result<Self, ListenError> {
        let system = |source: io::Error| ListenError::System { address: address.clone(), source };
        match address {
            Address::Unix(path) => {
                remove_stale(path)?;
                bind_unix(path).map_err(system)
            }
            Address::Tcp(text) => {
                let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(system)?.collect();
                remote.check(text, &found, encrypted)?;
                let listener = TcpListener::bind(&found[..]).map_err(system)?;
                listener.set_nonblocking(true).map_err(system)?;
                let at = Bound::Tcp(listener.local_addr().map_err(system)?);
                Ok(Self { fd: listener.into(), at })
            }
        }
    }

    /// Address at which it listens, with the chosen port.
    pub fn address(&self) -> Address {
        match &self.at {
            Bound::Unix(path, _) => Address::Unix(path.clone()),
            Bound::Tcp(address) => Address::Tcp(address.to_string()),
        }
    }

    /// Accepts a waiting client. Returns its socket and address, or an error of kind `WouldBlock` if no client waits.
    pub(crate) fn accept(&self) -> io::Result<(OwnedFd, Option<IpAddr>)> {
        let (socket, peer) = rustix::net::acceptfrom_with(&self.fd, SocketFlags::CLOEXEC)?;
        if let Bound::Unix(..) = self.at {
            return Ok((socket, None));
        }
        sockopt::set_tcp_nodelay(&socket, true)?;
        sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)?;
        sockopt::set_socket_keepalive(&socket, true)?;
        sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL)?;
        sockopt::set_tcp_keepcnt(&socket, KEEPALIVE_PROBES)?;
        sockopt::set_tcp_user_timeout(&socket, UNACKNOWLEDGED_MS)?;
        Ok((socket, peer.and_then(|peer| SocketAddr::try_from(peer).ok()).map(|peer| peer.ip())))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Only the own socket is removed: another process may have replaced it.
        if let Bound::Unix(path, Some(ours)) = &self.at
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
    // Before the socket has a path, so that no other user can connect in between.
    rustix::fs::fchmod(&fd, Mode::from_raw_mode(SOCKET_MODE))?;
    rustix::net::bind(&fd, &SocketPath::of(path)?.address()?)?;
    let ours = inode(path)?;
    let listener = Listener { fd, at: Bound::Unix(path.into(), Some(ours)) };
    restore_mode(path, ours)?;
    rustix::net::listen(&listener.fd, BACKLOG)?;
    Ok(listener)
}

/// Restores the mode of the socket at `path`, which the process's umask may have reduced. Another file at the path is
/// left unchanged.
fn restore_mode(path: &Path, ours: (u64, u64)) -> io::Result<()> {
    let held = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let found = rustix::fs::fstat(&held)?;
    if (found.st_dev, found.st_ino) != ours {
        return Err(io::Error::other("something else has taken its place"));
    }
    if found.st_mode & 0o777 == SOCKET_MODE {
        return Ok(());
    }
    // The mode of the file behind an `O_PATH` descriptor can be changed by this path only.
    let held_path = format!("/proc/self/fd/{}", held.as_raw_fd());
    std::fs::set_permissions(held_path, std::fs::Permissions::from_mode(SOCKET_MODE))
}

/// Removes the socket that a killed server left.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let system = |source| ListenError::System { address: Address::Unix(path.into()), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(ListenError::NotSocket(path.into())),
        Ok(_) => {}
    }
    match connect(path) {
        Ok(_) => Err(ListenError::InUse(path.into())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path).map_err(system),
        // A socket of another user, or a server with too many waiting clients.
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

    fn bind(address: &Address) -> Result<Listener, ListenError> {
        Listener::bind(address, Remote::Refused, false)
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
        let listener = bind(&unix(&path)).unwrap();
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
        let first = bind(&unix(&path)).unwrap();
        assert!(matches!(bind(&unix(&path)), Err(ListenError::InUse(_))));
        // Another socket in its place is left unchanged.
        std::fs::remove_file(&path).unwrap();
        let second = bind(&unix(&path)).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        std::fs::write(&path, "text").unwrap();
        assert!(matches!(bind(&unix(&path)), Err(ListenError::NotSocket(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
        let long = folder.path().join("x".repeat(120));
        assert!(matches!(bind(&unix(&long)), Err(ListenError::TooLong(_))));
        assert!(matches!(
            Listener::bind_at_any_length(&unix(&long), Remote::Refused, false),
            Err(ListenError::System { .. })
        ));
    }

    #[test]
    fn other_machines_connect_only_if_that_is_said() {
        for address in ["tcp:0.0.0.0:0", "tcp:[::]:0"] {
            let address: Address = address.parse().unwrap();
            for encrypted in [false, true] {
                let error = Listener::bind(&address, Remote::Refused, encrypted).unwrap_err();
                assert!(matches!(error, ListenError::Remote { .. }), "{error}");
                assert!(matches!(address.check(Remote::Refused, encrypted), Err(ListenError::Remote { .. })));
                assert!(address.check(Remote::Plaintext, encrypted).is_ok());
            }
            let error = Listener::bind(&address, Remote::Encrypted, false).unwrap_err();
            assert!(matches!(error, ListenError::Plaintext { .. }), "{error}");
            assert!(matches!(address.check(Remote::Encrypted, false), Err(ListenError::Plaintext { .. })));
            assert!(address.check(Remote::Encrypted, true).is_ok());
        }
        let wide = "tcp:0.0.0.0:0".parse().unwrap();
        assert!(Listener::bind(&wide, Remote::Encrypted, true).unwrap().address().is_remote());
        assert!(Listener::bind(&wide, Remote::Plaintext, false).is_ok());
        let local = bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(
            matches!(local.address(), Address::Tcp(text) if text.starts_with("127.0.0.1:") && !text.ends_with(":0"))
        );
        assert!(!local.address().is_remote());
        assert_eq!(local.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_peer_that_vanishes_is_missed() {
        let listener = bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        let Address::Tcp(address) = listener.address() else { panic!("not TCP") };
        let _client = std::net::TcpStream::connect(address).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        assert_eq!(peer, Some("127.0.0.1".parse().unwrap()));
        assert!(sockopt::socket_keepalive(&socket).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&socket).unwrap(), Duration::from_secs(60));
        assert_eq!(sockopt::tcp_keepintvl(&socket).unwrap(), Duration::from_secs(10));
        assert_eq!(sockopt::tcp_keepcnt(&socket).unwrap(), 6);
        assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 60_000);
    }
}
