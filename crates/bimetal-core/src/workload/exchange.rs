//! `exchange`: stands in for Exchange of OP-FCL (2012) and HySSD (2013): a mail server of Microsoft's, traced by
//! Kavalanekar and others (IISWC 2008).
//!
//! | | KiB of a read, write | GiB read, written | read by volume | GiB touched, read, written |
//! |---|---|---|---|---|
//! | OP-FCL | 9.89, 12.4 | 114.36, 131.69 | 0.46 | 79.35, 74.12, 23.29 |
//! | HySSD | 9.81, 12.56 | 37.43, 41.34 | 0.48 | |
//!
//! Table 1 of OP-FCL, its volumes 2, 4 and 8, as it is remembered; our copy is damaged. HySSD's row (table I) is a
//! third of it, one volume presumably: `requests=7_500_000`. A third of the working set is 26 GiB, more than the 16
//! GB that HySSD's device has for the host; how the two went together the paper does not say. With `used` and `span`
//! of 16 GiB the working set is gone through 1.7 times.
//!
//! Assumed: reads are of one page of the mail database, 8 KiB, with some of 16 and 32; writes of 4 to 64 KiB. A
//! quarter of new pages are followed by the next: one request in six continues the one before. Locality and bursts
//! are those of [`financial`](super::financial), which were measured. The trace is of a day, hence 270 requests in a
//! second. Three disks of 128 GiB.

use super::sample::Bursts;
use super::server::{Row, Settings, Traffic};
use super::{Requests, WorkloadSpec};
use crate::units::ByteSize;

/// Registry line.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "exchange",
    summary: "a mail server: as many reads as writes, mostly of 8 KiB, over three disks",
    source: "OP-FCL, FAST 2012, table 1; HySSD, MSST 2013, table I: stands in for Exchange (IISWC 2008)",
    parameters: Parameters::specs,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `exchange`.
    pub struct Parameters {
        /// Number of requests: by default those of the row.
        pub requests: u64 = 23_259_000, in 1..=1_000_000_000;
        /// Bytes of the address space (three disks; assumed).
        pub span: ByteSize = ByteSize(384 << 30);
        /// Bytes of the pages that are touched in as many requests as the row has, from which on they repeat.
        pub used: ByteSize = ByteSize(81_254 << 20);
        /// Exponent of the ages of recent pages.
        pub recency: f64 = 1.6, in 0.0..=4.0;
        /// Share of the repeated requests that go to popular pages instead of recent ones.
        pub popular_share: f64 = 0.3, in 0.0..=1.0;
        /// Exponent of the popularity.
        pub popularity: f64 = 0.6, in 0.0..=4.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 3700.0, in 0.0..=1e9;
    }
}

/// Table 1 of OP-FCL.
const ROW: Row = Row {
    reads: Traffic { gib: 114.36, set_gib: 74.12, sizes: &[(2, 0.8879), (4, 0.05), (8, 0.0621)], continued: 0.25 },
    writes: Traffic {
        gib: 131.69,
        set_gib: 23.29,
        sizes: &[(1, 0.15), (2, 0.5864), (4, 0.15), (8, 0.08), (16, 0.0336)],
        continued: 0.25,
    },
    set_gib: 79.35,
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
        let expected = Expected { mean_kib: [9.89, 12.4], read_share: 0.46, sequential: 0.16 };
        assert_row(&ROW, Parameters::default().requests, expected, |requests, small| {
            let defaults = Parameters::default();
            let [span, used] = [defaults.span, defaults.used].map(|size| ByteSize(size.0 / small));
            generate(&Parameters { requests, span, used, ..defaults }, 1).unwrap()
        });
    }
}
