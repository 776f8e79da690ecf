//! Errors of serving a store, and warnings for its user.

use std::fmt;
use std::io;

use crate::block_device::IoError;
use crate::fuse::MountError;
use crate::nbd::ListenError;
use crate::ublk::AttachError;

/// Errors of serving a store.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nothing listens at an address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The socket cannot be in the store's directory, and no folder for a socket can be created elsewhere.
    #[error("{in_store}, and for a socket elsewhere: {elsewhere}")]
    NoPlace {
        /// Error in the store's directory.
        in_store: ListenError,
        /// Error elsewhere.
        elsewhere: io::Error,
    },
    /// The device is not shown as a file.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The device is no disk of this machine.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The limit of open files of this process is too low.
    #[error(
        "this process may have {limit} files open, and needs {needed} to serve one client; raise the limit (`ulimit -n`)"
    )]
    OpenFiles {
        /// The limit.
        limit: usize,
        /// Number of files needed for one client.
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
    /// `bimetal stat` gets no answer, as the store's directory is not writable.
    NoStat(ListenError),
    /// Fewer clients are served than requested, because of the limit of open files.
    FewerConnections {
        /// Maximum number of clients.
        served: usize,
        /// Requested maximum.
        wanted: usize,
        /// Limit of open files.
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
