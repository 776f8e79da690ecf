//! The socket for clients, and its URI.

use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::ServeError;
use crate::nbd::{Address, Export, ListenError, Listener, Options, Server};

/// Name of the socket for clients in the store's directory.
pub const NBD_SOCKET: &str = "nbd.sock";

/// The place of the socket for clients.
#[derive(Debug, Default)]
pub enum Listen {
    /// A Unix socket in the store's directory. It is in a private folder if the directory is not writable and the store was opened
    /// read-only, or if its path is too long for clients.
    #[default]
    InStore,
    /// At this address.
    At(Address),
    /// A listening socket made by another process.
    Passed(Listener),
}

/// The server, and the private folder of its socket if it has one.
pub(super) fn listen(
    directory: &Path,
    listen: Listen,
    export: Export,
    options: Options,
) -> Result<(Server, Option<TempDir>), ServeError> {
    let read_only = export.read_only;
    let bind = |address: &Address| Server::bind(address, export.clone(), options.clone());
    match listen {
        Listen::At(address) => return Ok((bind(&address)?, None)),
        Listen::Passed(listener) => return Ok((Server::with(listener, export, options)?, None)),
        Listen::InStore => {}
    }
    let path = directory.join(NBD_SOCKET);
    // Clients get the absolute path, in the URI.
    let addressable = std::path::absolute(&path).map(|path| Address::Unix(path).check_length());
    match addressable.unwrap_or(Ok(())).and_then(|()| bind(&Address::Unix(path))) {
        Ok(server) => Ok((server, None)),
        Err(in_store) if matches!(in_store, ListenError::TooLong(_)) || read_only && is_unwritable(&in_store) => {
            let server = private_folder().and_then(|folder| {
                let server = bind(&Address::Unix(folder.path().join(NBD_SOCKET)));
                Ok((server.map_err(io::Error::other)?, Some(folder)))
            });
            server.map_err(|elsewhere| ServeError::NoPlace { in_store, elsewhere })
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the directory of the socket is not writable.
fn is_unwritable(error: &ListenError) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error, ListenError::System { source, .. } if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem))
}

/// A folder for a socket, accessible only to this user.
fn private_folder() -> io::Result<TempDir> {
    let own = std::fs::Permissions::from_mode(0o700);
    let make = |parent: PathBuf| {
        let folder = tempfile::Builder::new().prefix("bimetal-").permissions(own.clone()).tempdir_in(parent)?;
        // The umask may have removed some permissions.
        std::fs::set_permissions(folder.path(), own.clone())?;
        Ok(folder)
    };
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|runtime| !runtime.is_empty()) {
        Some(runtime) => make(runtime.into()).or_else(|_: io::Error| make(std::env::temp_dir())),
        None => make(std::env::temp_dir()),
    }
}

/// The URI of an export at `address`, in the form that the NBD project defines.
///
/// # Errors
/// The address is a relative path, and the current directory is unknown.
pub fn uri(address: &Address, export: &str, tls: bool) -> io::Result<String> {
    let scheme = if tls { "nbds" } else { "nbd" };
    let export = percent_encoded(export.as_bytes());
    Ok(match address {
        Address::Unix(path) => {
            let path = std::path::absolute(path)?;
            format!("{scheme}+unix:///{export}?socket={}", percent_encoded(path.as_os_str().as_bytes()))
        }
        Address::Tcp(address) => {
            // At all addresses of this machine: certificates have names of machines.
            let all = address.parse::<SocketAddr>().ok().filter(|address| address.ip().is_unspecified());
            let host = all.map_or_else(|| address.clone(), |all| format!("localhost:{}", all.port()));
            format!("{scheme}://{host}/{export}")
        }
    })
}

/// Percent-encodes bytes for a URI (RFC 3986, section 2).
fn percent_encoded(bytes: &[u8]) -> String {
    let encode = |&byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    bytes.iter().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_says_where_and_what() {
        let unix = Address::Unix("/run/a b/nbd.sock".into());
        assert_eq!(uri(&unix, "", false).unwrap(), "nbd+unix:///?socket=/run/a%20b/nbd.sock");
        assert_eq!(uri(&unix, "ü?", true).unwrap(), "nbds+unix:///%C3%BC%3F?socket=/run/a%20b/nbd.sock");
        let tcp = Address::Tcp("[::1]:10809".into());
        assert_eq!(uri(&tcp, "disk", false).unwrap(), "nbd://[::1]:10809/disk");
        for all in ["0.0.0.0:10809", "[::]:10809"] {
            assert_eq!(uri(&Address::Tcp(all.into()), "", true).unwrap(), "nbds://localhost:10809/");
        }
        assert!(uri(&Address::Unix("s".into()), "", false).unwrap().starts_with("nbd+unix:///?socket=/"));
    }

    #[test]
    fn a_private_folder_is_for_its_user_alone() {
        let folder = private_folder().unwrap();
        assert_eq!(std::fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
