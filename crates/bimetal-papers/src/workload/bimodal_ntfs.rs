//! `bimodal-ntfs`: a month on an aged NTFS disk, as described by Chang (2010).
//!
//! From the paper: most writes have 8 sectors and the second most 128 (figure 7a); 68 % of write requests are small and
//! go to SLC (section 5.3.2), with 0.17 of the data (table 3); small writes hit few sectors, some more than 16,384 times
//! in a month, and large ones hardly any twice (figures 7b, 7c); the live set of small writes is some 16 MB (section
//! 5.4: a hash table of 32,768 sectors suffices); reads have no temporal locality (figure 7d); writes are spread over
//! the whole 20-GB disk and large files are fragmented (figure 10a); 1,534,627 writes in one month.
//!
//! Not stated in the paper, hence chosen: the share of reads; the sizes between the two peaks (they give 0.17); and
//! `hot_share`, `hot_extent` and `run`. These three determine how often a block-mapped device folds. They are fitted to
//! the conventional device of table 3: `p2` = 0.028 folds per page write, 0.031 here. The same extent and hot share fit
//! `bimodal-ext3`.

use bimetal_core::scheme::ParameterError;
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Goal, Requests, Target, WorkloadSpec};

use super::bimodal::{Bimodal, Published, Sizes, profile};
use super::{share, writes_of};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "bimodal-ntfs",
    summary: "small hot writes and large cold ones over a whole aged NTFS disk, reads without locality",
    source: "Chang, IEEE TC 2010, sections 5.1 to 5.4, figures 7 and 10, table 3",
    parameters: Parameters::specs,
    targets,
    in_small: &[],
};

bimetal_core::parameters! {
    SPEC.name;
    /// Parameters of `bimodal-ntfs`.
    pub struct Parameters {
        /// Number of requests.
        pub requests: u64 = 1_000_000, in 1..=1_000_000_000;
        /// Bytes of the disk (Chang: 20 GB).
        pub span: ByteSize = ByteSize(20 << 30);
        /// Bytes from the disk's start that the file system uses (Chang, figure 10a: all).
        pub used: ByteSize = ByteSize(20 << 30);
        /// Divides `span`, `used` and `hot_set`: 16 makes a 1.25-GiB disk; request sizes and number stay.
        pub scale: u32 = 1, in 1..=1024;
        /// Bytes of the hot set of small writes (Chang, section 5.4: 16 MB).
        pub hot_set: ByteSize = ByteSize(16 << 20);
        /// Contiguous bytes of the hot set: a piece of the file table, of the journal, of an index.
        pub hot_extent: ByteSize = ByteSize(8 << 10);
        /// Exponent of the popularity within the hot set.
        pub theta: f64 = 0.99, in 0.0..=4.0;
        /// Share of write requests that are small (Chang, section 5.3.2: 0.68).
        pub small_share: f64 = 0.68, in 0.0..=1.0;
        /// Share of small writes that go to the hot set; the rest is spread over the used part.
        pub hot_share: f64 = 0.99, in 0.0..=1.0;
        /// Mean length of the runs of large writes.
        pub run: ByteSize = ByteSize(384 << 10);
        /// Share of requests that read.
        pub read_share: f64 = 0.4, in 0.0..=1.0;
        /// Mean time between arrivals in microseconds (1,534,627 writes in 30 days).
        pub interval_us: f64 = 1_000_000.0, in 0.0..=1e9;
    }
}

const SMALL: Sizes = &[(8, 0.90), (1, 0.05), (2, 0.03), (4, 0.02)];
const LARGE: Sizes = &[(128, 0.42), (64, 0.22), (32, 0.19), (16, 0.17)];
const READ: Sizes = &[(8, 0.4), (16, 0.1), (32, 0.15), (64, 0.15), (128, 0.2)];

/// Targets from figures 7 and 10 and sections 5.1 and 5.3.2.
fn targets(settings: &[(String, String)]) -> Result<Vec<Target>, ParameterError> {
    /// Writes of the traced month, and its days.
    const WRITES: f64 = 1_534_627.0;
    const DAYS: f64 = 30.0;
    let Parameters { requests, scale, read_share, .. } = Parameters::parse(settings)?;
    let published = Published { sizes_kib: [4.0, 64.0], small_bytes: 0.17, sector_reads: 256.0, used_gib: 20.0 };
    let of_month = requests as f64 * (1.0 - read_share) / WRITES;
    let mut targets = published.targets(scale);
    targets.extend([
        Target::new(
            "share of writes up to 4 KiB",
            "Chang, IEEE TC 2010, section 5.3.2",
            0.68,
            Goal::Within(0.02),
            |profile| share(writes_of(profile, 0..=8).0, profile.writes.requests),
        ),
        Target::new(
            "writes of the sector written most",
            "Chang, IEEE TC 2010, figure 7c",
            16_384.0,
            Goal::AtLeast,
            |profile| Some(profile.sector_writes_max as f64),
        )
        .of_part(of_month),
        Target::new(
            "writes per day",
            "Chang, IEEE TC 2010, section 5.3.2",
            WRITES / DAYS,
            Goal::Within(0.05),
            |profile| {
                let seconds = profile.arrivals.map(|arrivals| arrivals.duration_s).filter(|&seconds| seconds > 0.0)?;
                Some(profile.writes.requests as f64 / seconds * 86_400.0)
            },
        ),
    ]);
    Ok(targets)
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
    use bimetal_core::request::{Op, Request};

    #[test]
    fn it_has_the_papers_profile() {
        let parameters = Parameters { requests: 300_000, ..Parameters::default() };
        let requests: Vec<Request> = generate(&parameters, 1).unwrap().collect();
        let (of_requests, of_bytes, counts) = shares(&requests);
        assert!((of_requests - 0.68).abs() < 0.01, "{of_requests}");
        assert!((of_bytes - 0.17).abs() < 0.01, "{of_bytes}");
        assert_eq!((counts[0].0, counts[1].0), (8, 128));
        // Figure 10a: every part of the disk is written.
        let mut hits = [0u32; 64];
        for request in requests.iter().filter(|request| request.op == Op::Write && request.sectors >= 16) {
            hits[(request.sector * 64 / ((20u64 << 30) / 512)) as usize] += 1;
        }
        assert!(hits.iter().all(|&count| count > 300), "{hits:?}");
    }
}
