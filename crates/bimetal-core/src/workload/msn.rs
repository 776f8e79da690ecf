//! `msn`: stands in for MSN of OP-FCL (2012): a storage server of Microsoft's, traced by Kavalanekar and others
//! (IISWC 2008).
//!
//! | | KiB of a read, write | GiB read, written | read by volume | GiB touched, read, written |
//! |---|---|---|---|---|
//! | row | 11.48, 11.12 | 107.23, 74.01 | 0.59 | 37.98, 30.93, 23.03 |
//!
//! Table 1 of OP-FCL, its volumes 0, 1 and 4, as it is remembered; our copy is damaged.
//!
//! Assumed: reads are of 8 to 64 KiB, writes of 4 to 64 KiB, most of either 8 KiB. A third of new pages are followed
//! by the next: one request in nine continues the one before. Locality and bursts are those of
//! [`financial`](super::financial), which were measured. The trace is of six hours, hence 780 requests in a second.
//! Three disks of 128 GiB.

use super::sample::Bursts;
use super::server::{Row, Settings, Traffic};
use super::{Requests, WorkloadSpec};
use crate::units::ByteSize;

/// Registry line.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "msn",
    summary: "a storage server: more reads than writes, over three disks",
    source: "OP-FCL, FAST 2012, table 1: stands in for MSN storage (IISWC 2008)",
    parameters: Parameters::specs,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `msn`.
    pub struct Parameters {
        /// Number of requests: by default those of the row.
        pub requests: u64 = 16_770_100, in 1..=1_000_000_000;
        /// Bytes of the address space (three disks; assumed).
        pub span: ByteSize = ByteSize(384 << 30);
        /// Bytes of the pages that are touched in as many requests as the row has, from which on they repeat.
        pub used: ByteSize = ByteSize(38_892 << 20);
        /// Exponent of the ages of recent pages.
        pub recency: f64 = 1.6, in 0.0..=4.0;
        /// Share of the repeated requests that go to popular pages instead of recent ones.
        pub popular_share: f64 = 0.3, in 0.0..=1.0;
        /// Exponent of the popularity.
        pub popularity: f64 = 0.6, in 0.0..=4.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 1290.0, in 0.0..=1e9;
    }
}

/// Table 1 of OP-FCL.
const ROW: Row = Row {
    reads: Traffic {
        gib: 107.23,
        set_gib: 30.93,
        sizes: &[(2, 0.8121), (4, 0.1), (8, 0.07), (16, 0.0179)],
        continued: 0.33,
    },
    writes: Traffic {
        gib: 74.01,
        set_gib: 23.03,
        sizes: &[(1, 0.2), (2, 0.5614), (4, 0.15), (8, 0.07), (16, 0.0186)],
        continued: 0.33,
    },
    set_gib: 37.98,
    extent: 256,
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
        let expected = Expected { mean_kib: [11.48, 11.12], read_share: 0.59, sequential: 0.115 };
        assert_row(&ROW, Parameters::default().requests, expected, |requests, small| {
            let defaults = Parameters::default();
            let [span, used] = [defaults.span, defaults.used].map(|size| ByteSize(size.0 / small));
            generate(&Parameters { requests, span, used, ..defaults }, 1).unwrap()
        });
    }
}
