//! How a server treats its clients.

use std::time::Duration;

use super::listen::{ListenError, Remote};
use super::pool::Pool;
use crate::clients::Patience;

/// How a server treats its clients.
#[derive(Clone, Debug)]
pub struct Options {
    /// Clients at once; one more is turned away, or takes the place of one that is idle.
    pub connections: usize,
    /// Clients at once of one address over TCP: of one IPv4 address, or of one /64 of IPv6.
    pub connections_per_address: usize,
    /// Memory for all connections together, in bytes: for their buffers, and for what they do not read.
    pub memory_bytes: usize,
    /// Time for a client to say what it wants.
    pub negotiation: Duration,
    /// Time for a client to complete a message, or to take its replies, or at least 64 KiB of them.
    pub stall: Duration,
    /// Time for a client to do the same with a message or a reply so large that others have to wait for its memory.
    pub loan: Duration,
    /// How long a client may ask for nothing; zero is for ever.
    pub idle: Duration,
    /// After how long a client that asks for nothing gives way to a new one if all places are taken.
    pub gives_way_after: Duration,
    /// Time for a client to take its replies when the server is to stop.
    pub farewell: Duration,
    /// How long a client that asks often is polled before its thread sleeps; zero never polls.
    pub poll: Duration,
    /// Whether other machines may connect, where the address allows it.
    pub remote: Remote,
    /// With what every client must be protected.
    #[cfg(feature = "tls")]
    pub tls: Option<super::TlsServer>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 32,
            connections_per_address: 16,
            memory_bytes: 256 << 20,
            negotiation: Duration::from_secs(10),
            stall: Duration::from_secs(60),
            loan: Duration::from_secs(2),
            idle: Duration::from_secs(24 * 60 * 60),
            gives_way_after: Duration::from_secs(60),
            farewell: Duration::from_millis(500),
            poll: Duration::from_micros(100),
            remote: Remote::Refused,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl Options {
    /// Whether a server can have these options.
    ///
    /// # Errors
    /// So many connections do not fit into that memory.
    pub fn check(&self) -> Result<(), ListenError> {
        Pool::new(self).map(drop)
    }

    /// Whether clients must use TLS.
    #[cfg(feature = "tls")]
    pub(super) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether clients must use TLS.
    #[cfg(not(feature = "tls"))]
    pub(super) fn is_encrypted(&self) -> bool {
        false
    }

    pub(super) fn patience(&self) -> Patience {
        Patience { stall: self.stall, idle: self.idle }
    }

    /// After how long an idle client gives way. One that would be dropped anyway does so before.
    pub(super) fn gives_way_after(&self) -> Duration {
        if self.idle.is_zero() { self.gives_way_after } else { self.gives_way_after.min(self.idle) }
    }
}
