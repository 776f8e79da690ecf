//! `search`: stands in for Search Engine of OP-FCL (2012): WebSearch1 of the UMass repository.
//!
//! | | KiB of a read, write | GiB read, written | reads | GiB touched, read, written |
//! |---|---|---|---|---|
//! | row | 15.1, 8.6 | 15.6, 0.001 | 0.99 | 5.4, 5.4, 0.1 |
//!
//! Table 1 of OP-FCL as it is remembered; our copy is damaged. The text of section 6.1 has 99 % reads and 1 % writes,
//! and 0.001 GiB cannot touch 0.1: one request in a hundred is a write here, 0.09 GiB in all, each to other pages,
//! which are read too.
//!
//! From the first 24,783 requests of the trace: sizes, arrivals (413 a second, coefficient of variation 1.3), and
//! that there is no locality: of 93,000 pages 300 came twice. So pages that were read before are all alike. A tenth
//! of the requests continue where the last one of their unit ended; here one in nine continues the last. Three units
//! of up to 16.7 GB are read alike (WebSearch2; gist.github.com/prtitrz/2706994), which makes the address space.

use super::sample::Bursts;
use super::server::{Row, Settings, Traffic};
use super::{Requests, WorkloadSpec};
use crate::units::ByteSize;

/// Registry line.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "search",
    summary: "a search engine: random reads of 8 to 32 KiB, none more likely than another",
    source: "OP-FCL, FAST 2012, table 1: stands in for UMass WebSearch1",
    parameters: Parameters::specs,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `search`.
    pub struct Parameters {
        /// Number of requests: by default those of the row.
        pub requests: u64 = 1_104_700, in 1..=1_000_000_000;
        /// Bytes of the address space (three units of WebSearch, end to end).
        pub span: ByteSize = ByteSize(50 << 30);
        /// Bytes of the pages that are touched in as many requests as the row has, from which on they repeat.
        pub used: ByteSize = ByteSize(5_530 << 20);
        /// Exponent of the ages of recent pages.
        pub recency: f64 = 0.0, in 0.0..=4.0;
        /// Share of the repeated requests that go to popular pages instead of recent ones.
        pub popular_share: f64 = 0.0, in 0.0..=1.0;
        /// Exponent of the popularity.
        pub popularity: f64 = 0.0, in 0.0..=4.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 2420.0, in 0.0..=1e9;
    }
}

/// Table 1 of OP-FCL; the GiB written from the text.
const ROW: Row = Row {
    reads: Traffic {
        gib: 15.6,
        set_gib: 5.4,
        sizes: &[(2, 0.603), (4, 0.122), (6, 0.078), (8, 0.197)],
        continued: 0.0,
    },
    writes: Traffic { gib: 0.09, set_gib: 0.09, sizes: &[(2, 0.9), (4, 0.1)], continued: 0.0 },
    set_gib: 5.4,
    extent: 256,
    bursts: Bursts { share: 0.7, short: 0.6 },
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
        let expected = Expected { mean_kib: [15.1, 8.8], read_share: 0.99, sequential: 0.11 };
        assert_row(&ROW, Parameters::default().requests, expected, |requests, small| {
            let defaults = Parameters::default();
            let [span, used] = [defaults.span, defaults.used].map(|size| ByteSize(size.0 / small));
            generate(&Parameters { requests, span, used, ..defaults }, 1).unwrap()
        });
    }
}
