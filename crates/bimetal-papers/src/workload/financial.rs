//! `financial`: stands in for Financial of HySSD (2013) and OP-FCL (2012): Financial1 of the UMass repository, a bank's
//! OLTP application.
//!
//! | | KiB of a read, write | GiB read, written | read by volume | GiB touched, read, written |
//! |---|---|---|---|---|
//! | row | 5.73, 7.2 | 6.76, 28.16 | 0.19 | 3.8, 1.2, 3.6 |
//!
//! Source: table I of HySSD. The working sets are those of table 1 of OP-FCL from memory, because our copy is damaged.
//! Also published: 5,334,987 requests; 24 units, which span 24.4 GB end to end.
//!
//! From the first 50,000 requests of the trace, which are in the repositories of several simulators: the sizes of
//! requests, up to 48 KiB, and the locality. The shares of 4-KiB reads and of 48-KiB writes are set so that the means
//! are those of the row. `recency`, `popular_share` and `popularity` are the best of 100 combinations by the hit rates
//! of the trace's writes in LRU stacks of 16, 64, … 16,384 pages: 0.29, 0.50, 0.62, 0.65, 0.82, 0.83, and 0.26, 0.49,
//! 0.60, 0.69, 0.82, 0.87 here. Reads hit at 0.28, 0.52, 0.59, 0.60, 0.61, 0.65, and at 0.40, 0.53, 0.62, 0.74, 0.82,
//! 0.82 here: the row has fewer new reads than the beginning of the trace. The first 50,000 requests do not show how
//! hit rates continue to gigabytes. That is an assumption, and a scheme's best cache size depends on it. Gaps between
//! arrivals vary as in the trace (coefficient of variation 2.4 and 3.2 in two excerpts, 2.9 here). Their mean is that
//! of the whole trace, 12.1 hours from memory.

use bimetal_core::units::ByteSize;
use bimetal_core::workload::WorkloadSpec;

use super::bursts::Bursts;
use super::server::{LOCALITY_OF_FINANCIAL, Row, Traffic, server};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "financial",
    summary: "an OLTP server: small writes, four fifths of all bytes, to recent pages",
    source: "HySSD, MSST 2013, table I; OP-FCL, FAST 2012, table 1: stands in for UMass Financial1",
    parameters: Parameters::specs,
    targets,
    in_small: &[("requests", "333436"), ("used", "243MiB")],
};

server! {
    requests = 5_334_987;
    /// Bytes of the address space (Financial1's units, end to end).
    span = 24_400 << 20;
    used = 3_891 << 20;
    locality = LOCALITY_OF_FINANCIAL;
    interval_us = 8200.0;
}

/// The rows of HySSD's table I and OP-FCL's table 1.
const ROW: Row = Row {
    source: "HySSD, MSST 2013, table I",
    source_of_sets: "OP-FCL, FAST 2012, table 1 (as remembered)",
    reads: Traffic { mean_kib: 5.73, gib: 6.76, set_gib: 1.2, sizes: &[(1, 0.5675), (2, 0.4325)], continued: 0.0 },
    writes: Traffic {
        mean_kib: 7.2,
        gib: 28.16,
        set_gib: 3.6,
        sizes: &[(1, 0.8578), (2, 0.05), (3, 0.022), (6, 0.006), (7, 0.002), (8, 0.005), (12, 0.0572)],
        continued: 0.0,
    },
    read_share: 0.19,
    set_gib: 3.8,
    extent: 256,
    bursts: Bursts { share: 0.9, short: 0.35 },
};

#[cfg(test)]
mod tests {
    use bimetal_core::profile::{CurvePlan, Profile};
    use bimetal_core::request::{Op, Request};

    use super::*;
    use crate::workload::server::tests::{assert_row, hits};

    #[test]
    fn it_has_the_row() {
        let defaults = Parameters::default();
        let requests = defaults.requests;
        let prefix = generate(&Parameters { requests: 100_000, ..defaults }, 1).unwrap();
        assert_row(&ROW, requests, prefix, 0.03);
    }

    fn generated(settings: &[(&str, &str)]) -> Vec<Request> {
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
        generate(&Parameters::parse(&settings).unwrap(), 1).unwrap().collect()
    }

    /// The first 50,000 requests of the real trace: 51,908 pages written, 78,913 read.
    #[test]
    fn locality_is_that_of_the_real_trace() {
        let requests = generated(&[("requests", "50000")]);
        let stacks = [16, 64, 256, 1024, 4096, 16_384];
        let written = hits(&requests, Op::Write, &stacks);
        let read = hits(&requests, Op::Read, &stacks);
        println!("written {written:.3?}\nread {read:.3?}");
        for (found, real) in written.iter().zip([0.294, 0.495, 0.619, 0.652, 0.824, 0.829]) {
            assert!((found - real).abs() < 0.05, "{found} {real}");
        }
        // Later the trace has fewer hits: 0.60, 0.61, 0.65. A third of its first reads are new, but only a sixth of the
        // row's.
        for (found, real) in read.iter().zip([0.281, 0.516, 0.589]) {
            assert!((found - real).abs() < 0.13, "{found} {real}");
        }
    }

    /// A prefix has the miss rate of the whole in an infinite cache, and so does the scaled-down whole.
    #[test]
    fn a_prefix_is_like_the_whole() {
        let whole = generated(&[("requests", "1333747"), ("used", "950MiB"), ("span", "4GiB")]);
        let prefix = &whole[..whole.len() / 16];
        let small = generated(&[("requests", "83359"), ("used", "60MiB"), ("span", "1GiB")]);
        for op in [Op::Read, Op::Write] {
            let [whole, prefix, small] = [&whole, prefix, &small].map(|requests| hits(requests, op, &[]).remove(0));
            println!("{op:?}: {whole:.3} {prefix:.3} {small:.3}");
            assert!((prefix - whole).abs() < 0.02 && (small - whole).abs() < 0.02);
        }
    }

    /// In pages that are read and written, reads are half a round away from writes: up to there the two share no pages.
    #[test]
    fn a_part_of_a_round_meets_the_targets() {
        for requests in ["83359", "166718", "250077"] {
            let settings = [("requests", requests), ("used", "243MiB")];
            let profile = Profile::of(&generated(&settings), &CurvePlan { points: 0, sampling_rate: None });
            for target in targets(&settings.map(|(key, value)| (key.to_owned(), value.to_owned()))).unwrap() {
                let judged = target.judge(&profile);
                assert_eq!(judged.met, Some(true), "{requests}: {judged:?}");
            }
        }
    }

    /// After the row's number of requests, all pages have been touched, and none is touched for the first time.
    #[test]
    fn the_working_set_is_gone_through_again() {
        let settings = [("used", "60MiB"), ("span", "96MiB")];
        let touched = |requests| {
            let settings = [&[("requests", requests)], &settings[..]].concat();
            Profile::of(&generated(&settings), &CurvePlan::default()).footprint.touched_bytes
        };
        let once = touched("90000");
        assert!(once > 59 << 20 && once <= 60 << 20, "{once}");
        assert!(touched("300000") <= 60 << 20);
    }
}
