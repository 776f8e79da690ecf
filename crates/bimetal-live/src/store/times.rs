//! How long the work on the files of an open store takes.

use std::time::{Duration, Instant};

use crate::latency::{Histogram, Snapshot};

/// Times of the work on the files, measured by the thread that does it.
#[derive(Debug, Default)]
pub struct Clocks {
    commit: Histogram,
    sync: Histogram,
    checkpoint: Histogram,
}

/// How long it took since the store was opened.
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
    /// A commit that began then is durable.
    pub fn committed(&self, since: Instant) {
        self.commit.record(since.elapsed());
    }

    /// A file was synced.
    pub fn synced(&self, took: Duration) {
        self.sync.record(took);
    }

    /// A checkpoint that began then is durable.
    pub fn checkpointed(&self, since: Instant) {
        self.checkpoint.record(since.elapsed());
    }

    /// What was measured so far.
    pub fn times(&self) -> Times {
        let Self { commit, sync, checkpoint } = self;
        Times { commit: commit.snapshot(), sync: sync.snapshot(), checkpoint: checkpoint.snapshot() }
    }
}
