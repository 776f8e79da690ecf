//! `exchange`: stands in for Exchange of OP-FCL (2012) and HySSD (2013), a mail server of Microsoft traced by
//! Kavalanekar and others (IISWC 2008).
//!
//! | | KiB of a read, write | GiB read, written | read by volume | GiB touched, read, written |
//! |---|---|---|---|---|
//! | OP-FCL | 9.89, 12.4 | 114.36, 131.69 | 0.46 | 79.35, 74.12, 23.29 |
//! | HySSD | 9.81, 12.56 | 37.43, 41.34 | 0.48 | |
//!
//! Source: table 1 of OP-FCL, volumes 2, 4 and 8, from memory, because our copy is damaged. HySSD's row (table I) is a
//! third of it, presumably one volume: `requests=7_500_000`. A third of the working set is 26 GiB, more than the 16 GB
//! that HySSD's device has for the host. The paper does not explain this. With `used` and `span` of 16 GiB the working
//! set is covered 1.7 times.
//!
//! Assumed: reads are mostly one page of the mail database, 8 KiB, with some of 16 and 32 KiB; writes have 4 to 64 KiB.
//! A quarter of new pages are followed by the next page: one request in six continues the previous one. Locality and
//! bursts are those of [`financial`](super::financial), which were measured. The trace covers a day, hence 270 requests
//! per second. There are three disks of 128 GiB.

use bimetal_core::units::ByteSize;
use bimetal_core::workload::WorkloadSpec;

use super::bursts::Bursts;
use super::server::{LOCALITY_OF_FINANCIAL, Row, Traffic, server};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "exchange",
    summary: "a mail server: as many reads as writes, mostly of 8 KiB, over three disks",
    source: "OP-FCL, FAST 2012, table 1; HySSD, MSST 2013, table I: stands in for Exchange (IISWC 2008)",
    parameters: Parameters::specs,
    targets,
    in_small: &[("requests", "1453687"), ("used", "5078MiB")],
};

server! {
    requests = 23_259_000;
    /// Bytes of the address space (three disks; assumed).
    span = 384 << 30;
    used = 81_254 << 20;
    locality = LOCALITY_OF_FINANCIAL;
    interval_us = 3700.0;
}

/// The row of OP-FCL's table 1.
const ROW: Row = Row {
    source: "OP-FCL, FAST 2012, table 1 (as remembered)",
    source_of_sets: "OP-FCL, FAST 2012, table 1 (as remembered)",
    reads: Traffic {
        mean_kib: 9.89,
        gib: 114.36,
        set_gib: 74.12,
        sizes: &[(2, 0.8879), (4, 0.05), (8, 0.0621)],
        continued: 0.25,
    },
    writes: Traffic {
        mean_kib: 12.4,
        gib: 131.69,
        set_gib: 23.29,
        sizes: &[(1, 0.15), (2, 0.5864), (4, 0.15), (8, 0.08), (16, 0.0336)],
        continued: 0.25,
    },
    read_share: 0.46,
    set_gib: 79.35,
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
        assert_row(&ROW, requests, prefix, 0.16);
    }
}
