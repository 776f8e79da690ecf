//! `phone`: stands in for PhoneTrace of ComboFTL (2010), applications of a mobile phone on FAT32.
//!
//! From the paper: 2,036 MB of address space, 10,475 MB written (table 3); many requests are smaller than 8 KB, and
//! most of their data are updated before the host has written 2 MB; data of requests larger than 32 KB return after
//! more than 1,024 MB (section 6, figure 9); one of its phones has two dominant sizes (section 2, figure 2); reads are
//! ignored. A MB is 2^20 bytes, as the amount of [`iozone`](super::iozone) confirms.
//!
//! Chosen before any scheme was run on it:
//! - Between the two bounds the MTBW increases linearly on logarithmic scales: 2 MB at 8 KiB, 45 MB at 16 KiB, 1,024 MB
//!   at 32 KiB. Requests of 4 KiB return after 1 MB on average, 86 % of them within 2 MB because they are drawn at
//!   random.
//! - Large data are files that are written in turn, as free clusters are taken. They fill the rest of the address
//!   space: 2.8 GB are written between two writes of the same data.
//! - The distribution of request sizes is not published. The values are those of Chang's Linux disk (2010, figure 7a
//!   and table 3; [`bimodal_ext3`](super::bimodal_ext3)) in whole pages: peaks at 8 and 256 sectors, 0.23 of the bytes
//!   in small writes.
//! - Extents: 8 and 16 KiB for small data, the pieces of tables, directories and small databases; 128 KiB for requests
//!   of 32 KiB; 1 MiB for files.
//! - Arrivals are not published, and the paper sums the times of operations. At 20 ms, writing the 3.7 pages of a mean
//!   request to MLC (table 1: 994 µs each) takes a fifth of the time.

use bimetal_core::scheme::ParameterError;
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Requests, Target, WorkloadSpec};

use super::rewrites::{self, Class, Order, Profile, Rewrites};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "phone",
    summary: "a phone's FAT32: small writes that return within 2 MB, files that return after more than 1,024 MB",
    source: "ComboFTL, JSA 2010, section 6, table 3, figure 9: stands in for PhoneTrace",
    parameters: Parameters::specs,
    targets,
    in_small: &[],
};

bimetal_core::parameters! {
    SPEC.name;
    /// Parameters of `phone`.
    pub struct Parameters {
        /// Number of requests; by default they write the 10,475 MB of table 3.
        pub requests: u64 = 733_100, in 1..=1_000_000_000;
        /// Bytes of the address space (table 3: 2,036 MB).
        pub span: ByteSize = ByteSize(2036 << 20);
        /// Divides `span` and the bytes between two writes of the same data; request sizes and number stay.
        pub scale: u32 = 1, in 1..=512;
        /// Share of requests that read (the paper ignores reads).
        pub read_share: f64 = 0.0, in 0.0..=1.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 20_000.0, in 0.0..=1e9;
    }
}

/// Request sizes in KiB, with their shares.
const SIZES: &[(u64, f64)] = &[(128, 0.069), (64, 0.021), (32, 0.018), (16, 0.018), (8, 0.024), (4, 0.85)];

/// The classes of figure 9, for request sizes in KiB in descending order.
pub(super) fn figure_9(sizes: &[(u64, f64)], scale: u32) -> Vec<Class> {
    let class = |&(kib, share): &(u64, f64)| {
        let (mtbw_mib, extent_kib, order) = match kib {
            0..8 => (Some(1), 8, Order::AtRandom),
            8..16 => (Some(2), 8, Order::AtRandom),
            16..32 => (Some(45), 16, Order::AtRandom),
            32..=32 => (Some(1024), 128, Order::AtRandom),
            _ => (None, 1024, Order::InTurn),
        };
        let mtbw = mtbw_mib.map(|mib: u64| (mib << 20) / u64::from(scale));
        Class { size: kib << 10, share, mtbw, extent: extent_kib << 10, order }
    };
    sizes.iter().map(class).collect()
}

/// Targets from table 3 and figure 9.
fn targets(settings: &[(String, String)]) -> Result<Vec<Target>, ParameterError> {
    let Parameters { requests, scale, read_share, .. } = Parameters::parse(settings)?;
    let part = requests as f64 * (1.0 - read_share) / Parameters::default().requests as f64;
    Ok([&rewrites::table_3(2036.0, 10_475.0, scale, part)[..], &rewrites::figure_9(scale)].concat())
}

/// The requests.
///
/// # Errors
/// An address space that is too small.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    let Parameters { requests, span, scale, read_share, interval_us } = *parameters;
    let classes = figure_9(SIZES, scale);
    let span = span.0 / u64::from(scale);
    Ok(Box::new(Rewrites::new(Profile { requests, span, read_share, interval_us, classes: &classes }, seed)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rewrites::tests::{assert_figure_9, by_size};
    use bimetal_core::request::{Op, Request};

    #[test]
    fn it_has_the_papers_profile() {
        let requests: Vec<Request> = generate(&Parameters::default(), 1).unwrap().collect();
        assert!(requests.iter().all(|request| request.op == Op::Write));
        let sizes = by_size(requests.iter().copied());
        let written: u64 = sizes.values().map(|written| written.bytes).sum();
        assert!((written as f64 / f64::from(10_475 << 10) / 1024.0 - 1.0).abs() < 0.005, "{written}");
        let end = requests.iter().map(Request::end).max().unwrap() * 512;
        assert!((2030 << 20..=2036 << 20).contains(&end), "{end}");
        let pages: u64 = sizes.values().map(|written| written.new_pages).sum();
        assert!((2030 << 8..=2036 << 8).contains(&pages), "{pages}");
        assert_figure_9(&sizes);
        let share = sizes[&4].bytes as f64 / written as f64;
        assert!((share - 0.23).abs() < 0.01, "{share}");
        let mut counts: Vec<(u64, u64)> = sizes.iter().map(|(&kib, written)| (written.requests, kib)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!((counts[0].1, counts[1].1), (4, 128));
    }

    #[test]
    fn scaled_down_it_stays_alike() {
        let parameters = Parameters { requests: 183_000, scale: 4, ..Parameters::default() };
        let sizes = by_size(generate(&parameters, 1).unwrap());
        for (kib, mib) in [(16, 45.0), (32, 1024.0), (128, 2868.0)] {
            let mtbw = sizes[&kib].mtbw / f64::from(1 << 20) * 4.0;
            assert!((mtbw / mib - 1.0).abs() < 0.05, "{kib} KiB: {mtbw}");
        }
    }
}
