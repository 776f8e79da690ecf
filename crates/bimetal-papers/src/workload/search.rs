//! `search`: stands in for Search Engine of OP-FCL (2012): WebSearch1 of the UMass repository.
//!
//! | | KiB of a read, write | GiB read, written | reads | GiB touched, read, written |
//! |---|---|---|---|---|
//! | row | 15.1, 8.6 | 15.6, 0.001 | 0.99 | 5.4, 5.4, 0.1 |
//!
//! Source: table 1 of OP-FCL from memory, because our copy is damaged. The text of section 6.1 has 99 % reads and 1 %
//! writes, and 0.001 GiB cannot touch 0.1 GiB. So one request in a hundred is a write here, 0.09 GiB in total, each to
//! a different page, which is read too.
//!
//! From the first 24,783 requests of the trace: sizes, arrivals (413 per second, coefficient of variation 1.3), and the
//! lack of locality: of 93,000 pages 300 occurred twice. So all pages that were read before are equally likely. A tenth
//! of the requests continue the last one of their unit; here one in nine continues the last one. Three units of up to
//! 16.7 GB are read equally (WebSearch2; gist.github.com/prtitrz/2706994), which gives the address space.

use bimetal_core::units::ByteSize;
use bimetal_core::workload::WorkloadSpec;

use super::bursts::Bursts;
use super::server::{Locality, Row, Traffic, server};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "search",
    summary: "a search engine: random reads of 8 to 32 KiB, none more likely than another",
    source: "OP-FCL, FAST 2012, table 1: stands in for UMass WebSearch1",
    parameters: Parameters::specs,
    targets,
    in_small: &[("requests", "69043"), ("used", "345MiB")],
};

server! {
    requests = 1_104_700;
    /// Bytes of the address space (three units of WebSearch, end to end).
    span = 50 << 30;
    used = 5_530 << 20;
    locality = Locality { recency: 0.0, popular_share: 0.0, popularity: 0.0, is_settled: false };
    interval_us = 2420.0;
}

/// The row of OP-FCL's table 1; the GiB written come from the text.
const ROW: Row = Row {
    source: "OP-FCL, FAST 2012, table 1 (as remembered); section 6.1",
    source_of_sets: "OP-FCL, FAST 2012, table 1 (as remembered); section 6.1",
    reads: Traffic {
        mean_kib: 15.1,
        gib: 15.6,
        set_gib: 5.4,
        sizes: &[(2, 0.603), (4, 0.122), (6, 0.078), (8, 0.197)],
        continued: 0.0,
    },
    writes: Traffic { mean_kib: 8.6, gib: 0.09, set_gib: 0.09, sizes: &[(2, 0.9), (4, 0.1)], continued: 0.0 },
    read_share: 0.99,
    set_gib: 5.4,
    extent: 256,
    bursts: Bursts { share: 0.7, short: 0.6 },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::server::tests::assert_row;

    #[test]
    fn it_has_the_row() {
        let defaults = Parameters::default();
        let requests = defaults.requests;
        let prefix = generate(&Parameters { requests: 100_000, ..defaults }, 1).unwrap();
        assert_row(&ROW, requests, prefix, 0.11);
    }
}
