//! Counts of connections, and of requests that never reach the device.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of connections, kept while a server runs.
#[derive(Debug, Default)]
pub struct Tally {
    open: AtomicU64,
    accepted: AtomicU64,
    turned_away: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
}

/// Counts of connections at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionFigures {
    /// Open now.
    pub open: u64,
    /// Accepted since the server was created, including open ones.
    pub accepted: u64,
    /// Refused because a limit was reached.
    pub turned_away: u64,
    /// Ended by the server: idle, stalled, or in breach of the protocol.
    pub dropped: u64,
    /// Requests that the protocol forbids, answered with an error before they reach the device.
    pub refused: u64,
}

/// A connection that is open.
#[derive(Debug)]
pub(crate) struct Open<'t>(&'t Tally);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tally {
    /// A client was given a place.
    pub(crate) fn accept(&self) -> Open<'_> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(self)
    }

    /// A client was refused.
    pub(super) fn turn_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// A client was dropped.
    pub(super) fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests were refused because the protocol forbids them.
    pub(super) fn refuse(&self, requests: u64) {
        if requests > 0 {
            self.refused.fetch_add(requests, Ordering::Relaxed);
        }
    }

    /// The counts now.
    pub fn figures(&self) -> ConnectionFigures {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConnectionFigures {
            open: count(&self.open),
            accepted: count(&self.accepted),
            turned_away: count(&self.turned_away),
            dropped: count(&self.dropped),
            refused: count(&self.refused),
        }
    }
}
