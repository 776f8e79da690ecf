//! `home`: stands in for Home of OP-FCL (2012): the file server of a research group's home directories (FIU).
//!
//! | | KiB of a read, write | GiB read, written | read by volume | GiB touched, read, written |
//! |---|---|---|---|---|
//! | row | 22.2, 3.9 | 15.3, 66.8 | 0.18 | 17.2, 13.5, 5.0 |
//!
//! Table 1 of OP-FCL as it is remembered; our copy is damaged and has only the 5.0 left, which agrees. Writes are
//! single pages of 4 KiB here. Nearly every read is of something not read before.
//!
//! Assumed: reads are of one page, or of 32 to 128 KiB; they come in runs of five, files read to the end, and new
//! writes in runs of two: one request in eleven continues the one before. Locality and bursts are those of
//! [`financial`](super::financial), which were measured. The trace is of three weeks, hence ten requests in a second.
//! The address space is 64 GiB.

use super::sample::Bursts;
use super::server::{Row, Settings, Traffic};
use super::{Requests, WorkloadSpec};
use crate::units::ByteSize;

/// Registry line.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "home",
    summary: "a file server of home directories: single pages written again and again, files read once",
    source: "OP-FCL, FAST 2012, table 1: stands in for FIU homes",
    parameters: Parameters::specs,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `home`.
    pub struct Parameters {
        /// Number of requests: by default those of the row.
        pub requests: u64 = 18_234_000, in 1..=1_000_000_000;
        /// Bytes of the address space (assumed).
        pub span: ByteSize = ByteSize(64 << 30);
        /// Bytes of the pages that are touched in as many requests as the row has, from which on they repeat.
        pub used: ByteSize = ByteSize(17_613 << 20);
        /// Exponent of the ages of recent pages.
        pub recency: f64 = 1.6, in 0.0..=4.0;
        /// Share of the repeated requests that go to popular pages instead of recent ones.
        pub popular_share: f64 = 0.3, in 0.0..=1.0;
        /// Exponent of the popularity.
        pub popularity: f64 = 0.6, in 0.0..=4.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 99_500.0, in 0.0..=1e9;
    }
}

/// Table 1 of OP-FCL.
const ROW: Row = Row {
    reads: Traffic {
        gib: 15.3,
        set_gib: 13.5,
        sizes: &[(1, 0.6855), (8, 0.15), (16, 0.1), (32, 0.0645)],
        continued: 0.8,
    },
    writes: Traffic { gib: 66.8, set_gib: 5.0, sizes: &[(1, 1.0)], continued: 0.5 },
    set_gib: 17.2,
    extent: 1024,
    bursts: Bursts { share: 0.9, short: 0.35 },
};

/// The requests.
///
/// # Errors
/// An address space or a working set that is too small.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    let Parameters { requests, span, used, recency, popular_share, popularity, interval_us } = *parameters;
    ROW.generate(Settings { requests, span, used, interval_us, recency, popular_share, popularity }, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::server::tests::{Expected, assert_row};

    #[test]
    fn it_has_the_row() {
        let expected = Expected { mean_kib: [22.2, 4.0], read_share: 0.186, sequential: 0.09 };
        assert_row(&ROW, Parameters::default().requests, expected, |requests, small| {
            let defaults = Parameters::default();
            let [span, used] = [defaults.span, defaults.used].map(|size| ByteSize(size.0 / small));
            generate(&Parameters { requests, span, used, ..defaults }, 1).unwrap()
        });
    }
}
