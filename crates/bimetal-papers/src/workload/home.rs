//! `home`: stands in for Home of OP-FCL (2012), the file server of a research group's home directories (FIU).
//!
//! | | KiB of a read, write | GiB read, written | read by volume | GiB touched, read, written |
//! |---|---|---|---|---|
//! | row | 22.2, 3.9 | 15.3, 66.8 | 0.18 | 17.2, 13.5, 5.0 |
//!
//! Source: table 1 of OP-FCL from memory, because our copy is damaged. Only its 5.0 is legible, which agrees. Writes
//! are single pages of 4 KiB here. Nearly every read is of data not read before.
//!
//! Assumed: reads have one page, or 32 to 128 KiB. They come in runs of five, which are files read to the end, and new
//! writes in runs of two: one request in eleven continues the previous one. Locality and bursts are those of
//! [`financial`](super::financial), which were measured. The trace covers three weeks, hence ten requests per second.
//! The address space has 64 GiB.

use bimetal_core::units::ByteSize;
use bimetal_core::workload::WorkloadSpec;

use super::bursts::Bursts;
use super::server::{LOCALITY_OF_FINANCIAL, Row, Traffic, server};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "home",
    summary: "a file server of home directories: single pages written again and again, files read once",
    source: "OP-FCL, FAST 2012, table 1: stands in for FIU homes",
    parameters: Parameters::specs,
    targets,
    in_small: &[("requests", "1139625"), ("used", "1100MiB")],
};

server! {
    requests = 18_234_000;
    /// Bytes of the address space (assumed).
    span = 64 << 30;
    used = 17_613 << 20;
    locality = LOCALITY_OF_FINANCIAL;
    interval_us = 99_500.0;
}

/// The row of OP-FCL's table 1.
const ROW: Row = Row {
    source: "OP-FCL, FAST 2012, table 1 (as remembered)",
    source_of_sets: "OP-FCL, FAST 2012, table 1 (as remembered)",
    reads: Traffic {
        mean_kib: 22.2,
        gib: 15.3,
        set_gib: 13.5,
        sizes: &[(1, 0.6855), (8, 0.15), (16, 0.1), (32, 0.0645)],
        continued: 0.8,
    },
    writes: Traffic { mean_kib: 3.9, gib: 66.8, set_gib: 5.0, sizes: &[(1, 1.0)], continued: 0.5 },
    read_share: 0.18,
    set_gib: 17.2,
    extent: 1024,
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
        assert_row(&ROW, requests, prefix, 0.09);
    }

    #[test]
    fn too_little_space_is_refused() {
        let error = |settings: Parameters| generate(&settings, 1).map(|_| ()).unwrap_err();
        assert!(error(Parameters { span: ByteSize(1 << 30), ..Parameters::default() }).contains("smaller `used`"));
        assert!(error(Parameters { used: ByteSize(2 << 20), ..Parameters::default() }).contains("larger `used`"));
    }
}
