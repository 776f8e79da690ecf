//! The network block device protocol, server side: a state machine without I/O under plain threads.
//!
//! [`Connection`] is the protocol: it consumes the bytes that a client sent and prepares the replies. [`Server`] owns
//! sockets and threads. The thread of a connection receives all available bytes, serves each complete request directly
//! from this buffer, lets the device read directly into the send buffer, and sends all replies at once. Requests of one
//! connection are served in order; connections run in parallel.
//!
//! The protocol is specified in `proto.md` of the NetworkBlockDevice project. `docs/design/nbd.md` lists the
//! implemented parts, limits and errors.

mod accept;
mod adopt;
mod buffer;
mod connection;
mod execute;
mod listen;
mod mode;
mod negotiation;
mod options;
mod pool;
pub mod proto;
mod reply;
mod server;
mod socket;
mod tally;
#[cfg(feature = "tls")]
mod tls;
mod transmission;

use crate::block_device::{BlockDevice, SECTOR_BYTES};

pub use accept::Stop;
pub(crate) use accept::{Arrival, next_arrival};
pub use buffer::{Input, Output};
pub use connection::{Close, Connection, Next};
pub use listen::{Address, ListenError, Listener, Remote};
pub use options::Options;
pub use pool::MEMORY_BYTES_MIN;
pub use proto::STRING_BYTES_MAX as EXPORT_NAME_BYTES_MAX;
pub use server::Server;
pub(crate) use socket::Timed;
pub use tally::{ConnectionFigures, Tally};
#[cfg(feature = "tls")]
pub use tls::{TlsError, TlsServer};

/// Maximum data of a request in bytes, in either direction. Requests without data may be longer.
pub const MAX_PAYLOAD_BYTES: usize = 32 << 20;
/// Maximum data of an option in bytes: a name of maximum length and some hundred queries.
pub const MAX_OPTION_BYTES: usize = 32 << 10;
/// Maximum number of options in a negotiation.
pub const MAX_OPTIONS: u32 = 64;
/// Replies are sent at the latest when they reach this number of bytes.
const OUTPUT_BATCH_BYTES: usize = 256 << 10;

/// Properties of an exported device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The name that clients request; they may also request the empty name. At most 4096 bytes.
    pub name: String,
    /// Description for users. At most 4096 bytes.
    pub description: String,
    /// Whether writes are refused, even if the device accepts them.
    pub read_only: bool,
}

impl Export {
    fn answers_to(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }
}

/// Limits that requests are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Geometry {
    bytes: u64,
    read_only: bool,
}

impl Geometry {
    fn of(device: &dyn BlockDevice, export: &Export) -> Self {
        Self { bytes: device.sectors() * SECTOR_BYTES, read_only: export.read_only || device.read_only() }
    }
}
