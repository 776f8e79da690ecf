//! Measurements of a device (counts and responses), and the course of a replay over time.

use serde::{Deserialize, Serialize};

use super::{Arrivals, Responses};
use crate::ledger::{Ledger, Server};
use crate::request::{Op, Request};
use crate::scheme::Metrics;

/// Counts of host requests.
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
    /// Counts a request.
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

/// An interval of the replay, for figures over time.
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

/// A part of the measured requests. Responses that grow from part to part show a growing queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Reads and writes within it.
    pub served: u64,
    /// Sum of their responses, in nanoseconds.
    pub response_total_ns: u128,
}

/// Number of parts, of equally many requests each, into which the measured requests are divided.
pub const STRETCHES: usize = 8;

/// Measurements of a device: of the measured passes of a replay, or of a store since its creation.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Operations and wear.
    pub ledger: Ledger,
    /// Erases between the filling of the device and the measured passes, by row of the ledger; empty if there are none.
    pub erased_before: Vec<u64>,
    /// The same of the blocks that always stay in SLC mode.
    pub fixed_slc_erased_before: u64,
    /// Responses of reads.
    pub reads: Responses,
    /// Responses of writes. Trims are not counted: they only change maps.
    pub writes: Responses,
    /// Counts of host requests.
    pub host: HostCounts,
    /// Simulated time, from the first issue to the last completion, in nanoseconds.
    pub simulated_ns: u64,
    /// Work of the device's dies, channels and disks.
    pub servers: Vec<Server>,
    /// The scheme's own figures.
    pub metrics: Metrics,
    /// Number of blocks that always stay in SLC mode: the first blocks of the last region.
    pub fixed_slc_blocks: u32,
}

/// Course of a replay: whether the device kept up with the trace, and figures over time.
#[derive(Clone, Debug)]
pub struct Course {
    /// When requests were issued.
    pub arrivals: Arrivals,
    /// Open loop: time from the last arrival to the last completion, in nanoseconds. Large values mean overload.
    pub backlog_ns: u64,
    /// Open loop: from the first measured arrival to the last, in nanoseconds.
    pub arrivals_ns: u64,
    /// The measured requests in [`STRETCHES`] parts, or fewer if there are fewer requests.
    pub stretches: Vec<Stretch>,
    /// The controller's figures; none on a device without one.
    pub controller: Metrics,
    /// Figures over time.
    pub intervals: Vec<Interval>,
}

/// Result of a replay.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Measurements of its measured passes.
    pub measured: Measured,
    /// Its course over time.
    pub course: Course,
}
