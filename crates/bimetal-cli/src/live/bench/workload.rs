//! Workloads of a benchmark, and the measured requests.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::REQUEST_BYTES;

/// A workload, in words of fio.
#[derive(Clone, Copy)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) rw: &'static str,
    pub(super) bytes: u32,
    /// Outstanding requests.
    pub(super) depth: u16,
    /// Clients, each with its own connection.
    pub(super) clients: u16,
    /// Whether each write is followed by a flush.
    pub(super) syncs: bool,
    /// Whether another client writes and flushes at the same time.
    pub(super) beside_writer: bool,
}

impl Workload {
    pub(super) const fn new(name: &'static str, rw: &'static str, bytes: u32, depth: u16) -> Self {
        Self { name, rw, bytes, depth, clients: 1, syncs: false, beside_writer: false }
    }

    pub(super) const fn connected(name: &'static str, rw: &'static str, bytes: u32, depth: u16) -> Self {
        Self { clients: 4, ..Self::new(name, rw, bytes, depth) }
    }

    pub(super) const fn synchronous(name: &'static str, clients: u16) -> Self {
        Self { clients, syncs: true, ..Self::new(name, "randwrite", REQUEST_BYTES, 1) }
    }
}

/// Requests of a client.
pub(super) struct Requests {
    pub(super) per_second: f64,
    pub(super) count: f64,
    /// 99th percentile of their durations, in microseconds.
    pub(super) p99_us: f64,
    /// The longest duration, in microseconds. A flush after a write is a request of its own here.
    pub(super) longest_us: f64,
    /// Processor time of a client in this process.
    pub(super) own_cpu_seconds: f64,
}

impl Requests {
    /// Requests of this thread, which has done nothing else, within `elapsed`. There is at least one.
    pub(super) fn in_process(elapsed: Duration, mut durations: Vec<Duration>) -> Self {
        let count = durations.len();
        let (_, &mut p99, longer) = durations.select_nth_unstable((count * 99).div_ceil(100) - 1);
        let longest = longer.iter().copied().fold(p99, Duration::max);
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        Self {
            per_second: count as f64 / elapsed.as_secs_f64(),
            count: count as f64,
            p99_us: p99.as_secs_f64() * 1e6,
            longest_us: longest.as_secs_f64() * 1e6,
            own_cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        }
    }
}
