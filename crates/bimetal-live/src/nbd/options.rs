//! Limits and time limits of a server, and access to it.

use std::time::Duration;

use super::listen::Remote;
use crate::clients::Patience;

/// Limits and time limits of a server, and access to it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of connections. One more is refused, or replaces the one idle longest, see `gives_way_after`.
    pub connections: usize,
    /// Maximum number of TCP connections from one IPv4 address or one IPv6 /64.
    pub connections_per_address: usize,
    /// Memory limit for the buffers of all connections together, unread replies included, in bytes.
    pub memory_bytes: usize,
    /// Time limit for the negotiation.
    pub negotiation: Duration,
    /// Time in which a client must complete a message, read a reply, or move at least 64 KiB of either.
    pub stall: Duration,
    /// The same for a message or reply whose memory other connections wait for.
    pub loan: Duration,
    /// Time without a request after which a client is dropped; zero means no limit.
    pub idle: Duration,
    /// Idle time after which a client is replaced by a new one when all places are taken.
    pub gives_way_after: Duration,
    /// Time for clients to read their replies when the server stops.
    pub farewell: Duration,
    /// Time for which the socket of a busy client is polled before its thread sleeps; zero never polls.
    pub poll: Duration,
    /// Whether connections from other machines are allowed.
    pub remote: Remote,
    /// TLS configuration; if set, every client must use TLS.
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
    /// Whether clients must use TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether clients must use TLS.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn is_encrypted(&self) -> bool {
        false
    }

    pub(super) fn patience(&self) -> Patience {
        Patience { stall: self.stall, idle: self.idle }
    }

    /// Idle time after which a client is replaced, at most the limit after which it is dropped anyway.
    pub(super) fn gives_way_after(&self) -> Duration {
        if self.idle.is_zero() { self.gives_way_after } else { self.gives_way_after.min(self.idle) }
    }
}
