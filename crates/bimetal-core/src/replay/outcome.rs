//! What is measured on a device, counts and responses, and how a replay goes: both over time.

use serde::{Deserialize, Serialize};

use super::{Arrivals, Responses};
use crate::ledger::{Ledger, Server};
use crate::request::{Op, Request};
use crate::scheme::Metrics;

/// What the host asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounts {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Trim requests.
    pub trims: u64,
    /// Sectors read.
    pub read_sectors: u64,
    /// Sectors written.
    pub write_sectors: u64,
}

impl HostCounts {
    /// One more request.
    #[inline]
    pub fn add(&mut self, request: &Request) {
        match request.op {
            Op::Read => {
                self.reads += 1;
                self.read_sectors += u64::from(request.sectors);
            }
            Op::Write => {
                self.writes += 1;
                self.write_sectors += u64::from(request.sectors);
            }
            Op::Trim => self.trims += 1,
        }
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.trims
    }
}

/// A stretch of the replay, for figures over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Measured requests up to the end of this interval.
    pub host: HostCounts,
    /// Simulated time at its end, in nanoseconds since measuring started.
    pub end_ns: u64,
    /// Reads and writes within it.
    pub served: u64,
    /// Sum of their responses, in nanoseconds.
    pub response_total_ns: u128,
    /// The longest of their responses, in nanoseconds.
    pub response_max_ns: u64,
    /// Operations since measuring started: by ledger row, reads, programs and erases.
    pub ops: Vec<[u64; 3]>,
    /// Accesses since measuring started: by disk, reads and writes.
    pub disk_ops: Vec<[u64; 2]>,
    /// The scheme's own figures at its end.
    pub metrics: Vec<f64>,
}

/// A part of the measured requests: responses that grow from part to part show a queue that does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Reads and writes within it.
    pub served: u64,
    /// Sum of their responses, in nanoseconds.
    pub response_total_ns: u128,
}

/// How many parts of equally many requests the measured ones are cut into.
pub const STRETCHES: usize = 8;

/// What was measured on a device: in the passes of a replay, or by a store since it was made.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Operations and wear.
    pub ledger: Ledger,
    /// Responses of reads.
    pub reads: Responses,
    /// Responses of writes. Trims are not counted: they only change maps.
    pub writes: Responses,
    /// What the host asked for.
    pub host: HostCounts,
    /// Simulated time, from the first issue to the last completion, in nanoseconds.
    pub simulated_ns: u64,
    /// What the device's dies, channels and disks did.
    pub servers: Vec<Server>,
    /// The scheme's own figures.
    pub metrics: Metrics,
    /// Blocks that stay in SLC mode for good, the first of the last region.
    pub fixed_slc_blocks: u32,
}

/// How a replay went: whether the device kept up with the trace, and figures over time.
#[derive(Clone, Debug)]
pub struct Course {
    /// When requests were issued.
    pub arrivals: Arrivals,
    /// Open loop: how much longer the device took than the trace, in nanoseconds. Large values mean overload.
    pub backlog_ns: u64,
    /// Open loop: from the first measured arrival to the last, in nanoseconds.
    pub arrivals_ns: u64,
    /// The measured requests in [`STRETCHES`] parts, or fewer where there are fewer requests.
    pub stretches: Vec<Stretch>,
    /// The controller's figures; none on a device without one.
    pub controller: Metrics,
    /// Figures over time.
    pub intervals: Vec<Interval>,
}

/// What came of a replay.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was measured in its measured passes.
    pub measured: Measured,
    /// How it went.
    pub course: Course,
}
