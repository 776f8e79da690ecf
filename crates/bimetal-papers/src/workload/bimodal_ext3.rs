//! `bimodal-ext3`: a month on a new ext3 disk, as described by Chang (2010).
//!
//! From the paper: like `bimodal-ntfs`, with more small writes of 8 sectors and large ones of 256 (figure 7a); small
//! writes have 0.23 of the data (table 3); only 2.2 GB of the 20-GB disk are in use (figure 10c); no sector is read
//! more than 64 times (figure 7d).
//!
//! Not stated in the paper, hence chosen: the shares of reads and of small writes; the sizes between the two peaks
//! (they give 0.23); and `hot_share`, `hot_extent` and `run`, fitted to the conventional device of table 3: `p2` =
//! 0.011 folds per page write, 0.012 here.

use bimetal_core::scheme::ParameterError;
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Requests, Target, WorkloadSpec};

use super::bimodal::{Bimodal, Published, Sizes, profile};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "bimodal-ext3",
    summary: "small hot writes and large cold ones in a tenth of a new ext3 disk, reads without locality",
    source: "Chang, IEEE TC 2010, sections 5.1 to 5.4, figures 7 and 10, table 3",
    parameters: Parameters::specs,
    targets,
    in_small: &[],
};

bimetal_core::parameters! {
    SPEC.name;
    /// Parameters of `bimodal-ext3`.
    pub struct Parameters {
        /// Number of requests.
        pub requests: u64 = 1_000_000, in 1..=1_000_000_000;
        /// Bytes of the disk (Chang: 20 GB).
        pub span: ByteSize = ByteSize(20 << 30);
        /// Bytes from the disk's start that the file system uses (Chang, figure 10c: 2.2 GB).
        pub used: ByteSize = ByteSize(2253 << 20);
        /// Divides `span`, `used` and `hot_set`: 16 makes a 1.25-GiB disk; request sizes and number stay.
        pub scale: u32 = 1, in 1..=1024;
        /// Bytes of the hot set of small writes (Chang, section 5.4: 16 MB).
        pub hot_set: ByteSize = ByteSize(16 << 20);
        /// Contiguous bytes of the hot set: a piece of the file table, of the journal, of an index.
        pub hot_extent: ByteSize = ByteSize(8 << 10);
        /// Exponent of the popularity within the hot set.
        pub theta: f64 = 0.99, in 0.0..=4.0;
        /// Share of write requests that are small (Chang, figure 7a: more than under NTFS).
        pub small_share: f64 = 0.85, in 0.0..=1.0;
        /// Share of small writes that go to the hot set; the rest is spread over the used part.
        pub hot_share: f64 = 0.99, in 0.0..=1.0;
        /// Mean length of the runs of large writes.
        pub run: ByteSize = ByteSize(2 << 20);
        /// Share of requests that read.
        pub read_share: f64 = 0.4, in 0.0..=1.0;
        /// Mean time between arrivals in microseconds, the same as in `bimodal-ntfs`.
        pub interval_us: f64 = 1_000_000.0, in 0.0..=1e9;
    }
}

const SMALL: Sizes = &[(8, 0.97), (4, 0.03)];
const LARGE: Sizes = &[(256, 0.46), (128, 0.14), (64, 0.12), (32, 0.12), (16, 0.16)];
const READ: Sizes = &[(8, 0.4), (16, 0.1), (32, 0.1), (64, 0.1), (128, 0.1), (256, 0.2)];

/// Targets from figures 7 and 10 and table 3.
fn targets(settings: &[(String, String)]) -> Result<Vec<Target>, ParameterError> {
    let published = Published { sizes_kib: [4.0, 128.0], small_bytes: 0.23, sector_reads: 64.0, used_gib: 2.2 };
    Ok(published.targets(Parameters::parse(settings)?.scale))
}

/// The requests.
///
/// # Errors
/// A span, used part or hot set that do not fit into each other.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    Ok(Box::new(Bimodal::new(profile!(parameters, SMALL, LARGE, READ), seed)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::bimodal::tests::shares;
    use bimetal_core::request::Request;

    #[test]
    fn it_has_the_papers_profile() {
        let parameters = Parameters { requests: 300_000, ..Parameters::default() };
        let requests: Vec<Request> = generate(&parameters, 1).unwrap().collect();
        let (of_requests, of_bytes, counts) = shares(&requests);
        assert!((of_requests - 0.85).abs() < 0.01, "{of_requests}");
        assert!((of_bytes - 0.23).abs() < 0.01, "{of_bytes}");
        assert_eq!((counts[0].0, counts[1].0), (8, 256));
        assert!(requests.iter().all(|request| request.end() <= (2253 << 20) / 512));
    }
}
