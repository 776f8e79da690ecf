//! `financial`: stands in for Financial of HySSD (2013) and OP-FCL (2012): Financial1 of the UMass repository, an
//! OLTP application of a bank.
//!
//! | | KiB of a read, write | GiB read, written | read by volume | GiB touched, read, written |
//! |---|---|---|---|---|
//! | row | 5.73, 7.2 | 6.76, 28.16 | 0.19 | 3.8, 1.2, 3.6 |
//!
//! Table I of HySSD; the working sets are those of table 1 of OP-FCL as they are remembered, since our copy of it is
//! damaged. Also published: 5,334,987 requests; those of 24 units, end to end in 24.4 GB.
//!
//! From the first 50,000 requests of the trace, which stand in the repositories of several simulators: the sizes of
//! requests, up to 48 KiB, with the shares of 4-KiB reads and of 48-KiB writes set so that the means are those of the
//! row; and the locality. Of 100 combinations of `recency`, `popular_share` and `popularity`, those taken come
//! nearest to where in LRU stacks of 16, 64, … 16,384 pages the trace's writes hit: 0.29, 0.50, 0.62, 0.65, 0.82,
//! 0.83 against 0.26, 0.49, 0.60, 0.69, 0.82, 0.87 here. Reads hit at 0.28, 0.52, 0.59, 0.60, 0.61, 0.65 against
//! 0.40, 0.53, 0.62, 0.74, 0.82, 0.82: the row has fewer new reads than the beginning of the trace. How the hits go
//! on from there to gigabytes, 50,000 requests cannot tell: that is an assumption, and a scheme's best cache size
//! depends on it. Gaps between arrivals vary as there (coefficient of variation 2.4 and 3.2 in two excerpts; 2.9
//! here); their mean is that of the whole trace, 12.1 hours as remembered.

use super::sample::Bursts;
use super::server::{Row, Settings, Traffic};
use super::{Requests, WorkloadSpec};
use crate::units::ByteSize;

/// Registry line.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "financial",
    summary: "an OLTP server: small writes, four fifths of all bytes, to recent pages",
    source: "HySSD, MSST 2013, table I; OP-FCL, FAST 2012, table 1: stands in for UMass Financial1",
    parameters: Parameters::specs,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `financial`.
    pub struct Parameters {
        /// Number of requests: by default those of the row.
        pub requests: u64 = 5_334_987, in 1..=1_000_000_000;
        /// Bytes of the address space (Financial1's units, end to end).
        pub span: ByteSize = ByteSize(24_400 << 20);
        /// Bytes of the pages that are touched in as many requests as the row has, from which on they repeat.
        pub used: ByteSize = ByteSize(3_891 << 20);
        /// Exponent of the ages of recent pages.
        pub recency: f64 = 1.6, in 0.0..=4.0;
        /// Share of the repeated requests that go to popular pages instead of recent ones.
        pub popular_share: f64 = 0.3, in 0.0..=1.0;
        /// Exponent of the popularity.
        pub popularity: f64 = 0.6, in 0.0..=4.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 8200.0, in 0.0..=1e9;
    }
}

/// Table I of HySSD, table 1 of OP-FCL.
const ROW: Row = Row {
    reads: Traffic { gib: 6.76, set_gib: 1.2, sizes: &[(1, 0.5675), (2, 0.4325)], continued: 0.0 },
    writes: Traffic {
        gib: 28.16,
        set_gib: 3.6,
        sizes: &[(1, 0.8578), (2, 0.05), (3, 0.022), (6, 0.006), (7, 0.002), (8, 0.005), (12, 0.0572)],
        continued: 0.0,
    },
    set_gib: 3.8,
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
        let expected = Expected { mean_kib: [5.73, 7.2], read_share: 0.19, sequential: 0.03 };
        assert_row(&ROW, Parameters::default().requests, expected, |requests, small| {
            let defaults = Parameters::default();
            let [span, used] = [defaults.span, defaults.used].map(|size| ByteSize(size.0 / small));
            generate(&Parameters { requests, span, used, ..defaults }, 1).unwrap()
        });
    }
}
