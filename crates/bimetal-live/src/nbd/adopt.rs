//! Listening sockets made by another process, such as systemd.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketType, getsockname, sockopt};

use super::listen::{Bound, ListenError, Listener, Remote};

impl Listener {
    /// Takes over a socket that listens already. `remote` and `encrypted` decide whether other machines may connect.
    /// The path of a Unix socket is not removed with the listener: that is up to the process that made it.
    ///
    /// # Errors
    /// It is not a listening stream socket at a path or over TCP, or machines that are not allowed could connect.
    pub fn adopt(fd: OwnedFd, remote: Remote, encrypted: bool) -> Result<Self, ListenError> {
        let passed = |_| ListenError::Passed("is no socket");
        if sockopt::socket_type(&fd).map_err(passed)? != SocketType::STREAM {
            return Err(ListenError::Passed("is not for streams"));
        }
        if !sockopt::socket_acceptconn(&fd).map_err(passed)? {
            return Err(ListenError::Passed("does not listen"));
        }
        let at = bound(getsockname(&fd).map_err(passed)?)?;
        if let Bound::Tcp(address) = at {
            remote.check(&address.to_string(), &[address], encrypted)?;
        }
        let listener = Self { fd, at };
        let system =
            |error: rustix::io::Errno| ListenError::System { address: listener.address(), source: error.into() };
        rustix::io::ioctl_fionbio(&listener.fd, true).map_err(system)?;
        Ok(listener)
    }
}

fn bound(name: SocketAddrAny) -> Result<Bound, ListenError> {
    if name.address_family() == AddressFamily::UNIX {
        let name = SocketAddrUnix::try_from(name).map_err(|_| ListenError::Passed("has no name"))?;
        let path = name.path().map(|path| PathBuf::from(OsStr::from_bytes(path.to_bytes())));
        return Ok(Bound::Unix(path.ok_or(ListenError::Passed("has no path"))?, None));
    }
    let address = SocketAddr::try_from(name).map_err(|_| ListenError::Passed("is of an unknown family"))?;
    Ok(Bound::Tcp(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::Address;
    use std::net::{TcpListener, UdpSocket};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn adopt(fd: impl Into<OwnedFd>) -> Result<Listener, ListenError> {
        Listener::adopt(fd.into(), Remote::Refused, false)
    }

    #[test]
    fn a_socket_that_listens_is_used_and_left_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = adopt(UnixListener::bind(&path).unwrap()).unwrap();
        assert_eq!(listener.address(), Address::Unix(path.clone()));
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        let _client = UnixStream::connect(&path).unwrap();
        assert!(listener.accept().is_ok());
        drop(listener);
        assert!(path.exists());
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        assert_eq!(adopt(tcp).unwrap().address(), Address::Tcp(address.to_string()));
    }

    #[test]
    fn others_are_refused_with_the_reason() {
        let says = |refused: Result<Listener, ListenError>, text: &str| {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        says(adopt(tempfile::tempfile().unwrap()), "is no socket");
        says(adopt(UdpSocket::bind("127.0.0.1:0").unwrap()), "is not for streams");
        says(adopt(UnixStream::pair().unwrap().0), "does not listen");
        let name =
            std::os::unix::net::SocketAddr::from_abstract_name(format!("bimetal-{}", std::process::id())).unwrap();
        says(adopt(UnixListener::bind_addr(&name).unwrap()), "has no path");
        says(adopt(TcpListener::bind("0.0.0.0:0").unwrap()), "other machines can reach");
        let wide = TcpListener::bind("0.0.0.0:0").unwrap();
        assert!(Listener::adopt(wide.into(), Remote::Encrypted, true).unwrap().address().is_remote());
    }
}
