//! `pc`: stands in for PCTrace of ComboFTL (2010), desktop applications on Windows XP.
//!
//! From the paper: 2,005 MB of address space, 7,837 MB written (table 3); sizes and times between writes as in `phone`
//! (section 6, figure 9), but two dominant sizes are hard to find (section 2, figure 2).
//!
//! Chosen before any scheme was run on it: as in [`phone`](super::phone), with the request sizes of Chang's Windows
//! disk (2010, figure 7a, table 3 and section 5.3.2; [`bimodal_ntfs`](super::bimodal_ntfs)) in whole pages. 68 % of the
//! requests are small, with 0.18 of the bytes (0.17 at Chang), and none is above 64 KiB. 3.1 GB are written between two
//! writes of the same large data.

use bimetal_core::scheme::ParameterError;
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Requests, Target, WorkloadSpec};

use super::phone::figure_9;
use super::rewrites::{self, Profile, Rewrites};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "pc",
    summary: "a desktop's Windows XP: as `phone`, with a smoother mix of sizes up to 64 KiB",
    source: "ComboFTL, JSA 2010, section 6, table 3, figure 9: stands in for PCTrace",
    parameters: Parameters::specs,
    targets,
    in_small: &[],
};

bimetal_core::parameters! {
    SPEC.name;
    /// Parameters of `pc`.
    pub struct Parameters {
        /// Number of requests; by default they write the 7,837 MB of table 3.
        pub requests: u64 = 535_600, in 1..=1_000_000_000;
        /// Bytes of the address space (table 3: 2,005 MB).
        pub span: ByteSize = ByteSize(2005 << 20);
        /// Divides `span` and the bytes between two writes of the same data; request sizes and number stay.
        pub scale: u32 = 1, in 1..=512;
        /// Share of requests that read (the paper ignores reads).
        pub read_share: f64 = 0.0, in 0.0..=1.0;
        /// Mean time between arrivals in microseconds, the same as in `phone`.
        pub interval_us: f64 = 20_000.0, in 0.0..=1e9;
    }
}

/// Request sizes in KiB, with their shares.
const SIZES: &[(u64, f64)] = &[(64, 0.1344), (32, 0.0704), (16, 0.0608), (8, 0.0544), (4, 0.68)];

/// Targets from table 3 and figure 9.
fn targets(settings: &[(String, String)]) -> Result<Vec<Target>, ParameterError> {
    let Parameters { requests, scale, read_share, .. } = Parameters::parse(settings)?;
    let part = requests as f64 * (1.0 - read_share) / Parameters::default().requests as f64;
    Ok([&rewrites::table_3(2005.0, 7837.0, scale, part)[..], &rewrites::figure_9(scale)].concat())
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
        assert!((written as f64 / f64::from(7837 << 10) / 1024.0 - 1.0).abs() < 0.005, "{written}");
        let end = requests.iter().map(Request::end).max().unwrap() * 512;
        assert!((2000 << 20..=2005 << 20).contains(&end), "{end}");
        assert_figure_9(&sizes);
        let small = &sizes[&4];
        let share = small.requests as f64 / requests.len() as f64;
        assert!((share - 0.68).abs() < 0.01, "{share}");
        let share = small.bytes as f64 / written as f64;
        assert!((share - 0.18).abs() < 0.01, "{share}");
    }
}
