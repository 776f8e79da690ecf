//! Durations of file operations in an open store.

use std::time::{Duration, Instant};

use crate::latency::{Histogram, Snapshot};

/// Histograms of the durations, measured by the threads that do the work.
#[derive(Debug, Default)]
pub struct Clocks {
    commit: Histogram,
    sync: Histogram,
    checkpoint: Histogram,
}

/// Durations since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Commits: pages and journal, until both are durable.
    pub commit: Snapshot,
    /// Syncs, each of one file.
    pub sync: Snapshot,
    /// Checkpoints, until they are durable.
    pub checkpoint: Snapshot,
}

impl Clocks {
    /// A commit that began at `since` is durable.
    pub fn committed(&self, since: Instant) {
        self.commit.record(since.elapsed());
    }

    /// A file was synced.
    pub fn synced(&self, took: Duration) {
        self.sync.record(took);
    }

    /// A checkpoint that began at `since` is durable.
    pub fn checkpointed(&self, since: Instant) {
        self.checkpoint.record(since.elapsed());
    }

    /// The measurements so far.
    pub fn times(&self) -> Times {
        let Self { commit, sync, checkpoint } = self;
        Times { commit: commit.snapshot(), sync: sync.snapshot(), checkpoint: checkpoint.snapshot() }
    }
}
