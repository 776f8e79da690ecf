//! Errors of serving a store, and warnings for its user.

use std::fmt;
use std::io;

use crate::block_device::IoError;
use crate::fuse::MountError;
use crate::nbd::ListenError;

/// Why a store is not served, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nothing listens at an address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The directory of the store cannot be written to, and no folder for a socket can be made elsewhere.
    #[error("{in_store}, and for a socket elsewhere: {elsewhere}")]
    NoPlace {
        /// Why not in the store's directory.
        in_store: ListenError,
        /// Why not elsewhere.
        elsewhere: io::Error,
    },
    /// The device is not shown as a file.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// This process may have too few files open.
    #[error(
        "this process may have {limit} files open, and needs {needed} to serve one client; raise the limit (`ulimit -n`)"
    )]
    OpenFiles {
        /// The limit.
        limit: usize,
        /// The least that is enough.
        needed: usize,
    },
    /// A file of the store failed while it was served. Data that were durable before remain so.
    #[error("{0}; the device was read-only from then on")]
    Failed(String),
    /// The store was not closed.
    #[error(transparent)]
    Close(IoError),
    /// The system refused a thread, a pipe or a socket.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A limitation of a service that has started.
#[derive(Debug)]
pub enum Warning {
    /// Nothing answers `bimetal stat`, as the store's directory cannot be written to.
    NoStat(ListenError),
    /// Fewer clients are served than were asked for, as this process may have too few files open.
    FewerConnections {
        /// Clients at once.
        served: usize,
        /// Those that were asked for.
        wanted: usize,
        /// Files that may be open.
        limit: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStat(error) => write!(f, "{error}; `bimetal stat` opens the store itself"),
            Self::FewerConnections { served, wanted, limit } => write!(
                f,
                "only {served} of {wanted} connections are served: this process may have {limit} files open, and keeps \
                 some for the store; raise the limit (`ulimit -n`)"
            ),
        }
    }
}
