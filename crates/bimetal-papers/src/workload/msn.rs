//! `msn`: stands in for MSN of OP-FCL (2012), a storage server of Microsoft traced by Kavalanekar and others (IISWC
//! 2008).
//!
//! | | KiB of a read, write | GiB read, written | read by volume | GiB touched, read, written |
//! |---|---|---|---|---|
//! | row | 11.48, 11.12 | 107.23, 74.01 | 0.59 | 37.98, 30.93, 23.03 |
//!
//! Source: table 1 of OP-FCL, volumes 0, 1 and 4, from memory, because our copy is damaged.
//!
//! Assumed: reads have 8 to 64 KiB, writes 4 to 64 KiB, most of both 8 KiB. A third of new pages are followed by the
//! next page: one request in nine continues the previous one. Locality and bursts are those of
//! [`financial`](super::financial), which were measured. The trace covers six hours, hence 780 requests per second.
//! There are three disks of 128 GiB.

use bimetal_core::units::ByteSize;
use bimetal_core::workload::WorkloadSpec;

use super::bursts::Bursts;
use super::server::{LOCALITY_OF_FINANCIAL, Row, Traffic, server};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "msn",
    summary: "a storage server: more reads than writes, over three disks",
    source: "OP-FCL, FAST 2012, table 1: stands in for MSN storage (IISWC 2008)",
    parameters: Parameters::specs,
    targets,
    in_small: &[("requests", "1048131"), ("used", "2430MiB")],
};

server! {
    requests = 16_770_100;
    /// Bytes of the address space (three disks; assumed).
    span = 384 << 30;
    used = 38_892 << 20;
    locality = LOCALITY_OF_FINANCIAL;
    interval_us = 1290.0;
}

/// The row of OP-FCL's table 1.
const ROW: Row = Row {
    source: "OP-FCL, FAST 2012, table 1 (as remembered)",
    source_of_sets: "OP-FCL, FAST 2012, table 1 (as remembered)",
    reads: Traffic {
        mean_kib: 11.48,
        gib: 107.23,
        set_gib: 30.93,
        sizes: &[(2, 0.8121), (4, 0.1), (8, 0.07), (16, 0.0179)],
        continued: 0.33,
    },
    writes: Traffic {
        mean_kib: 11.12,
        gib: 74.01,
        set_gib: 23.03,
        sizes: &[(1, 0.2), (2, 0.5614), (4, 0.15), (8, 0.07), (16, 0.0186)],
        continued: 0.33,
    },
    read_share: 0.59,
    set_gib: 37.98,
    extent: 256,
    bursts: Bursts { share: 0.9, short: 0.35 },
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
        assert_row(&ROW, requests, prefix, 0.115);
    }
}
