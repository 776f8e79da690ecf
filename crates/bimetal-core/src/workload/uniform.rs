//! `uniform`: independent requests, uniform over a span. The closed forms of write amplification assume this workload.

use super::sample::Arrivals;
use super::{Requests, WorkloadSpec, request_sectors, target, whole_sectors};
use crate::part::random;
use crate::request::{Op, Request, SECTOR_BYTES};
use crate::units::ByteSize;

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "uniform",
    summary: "uniform random reads and writes of one size",
    source: "the usual worst case; defaults: 4 GiB of 4-KiB pages, 70 % writes, as simulators are compared on",
    parameters: Parameters::specs,
    targets: target::none,
    in_small: &[],
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `uniform`.
    pub struct Parameters {
        /// Number of requests.
        pub requests: u64 = 1_000_000, in 1..=1_000_000_000;
        /// Bytes of the device that are used.
        pub span: ByteSize = ByteSize(4 << 30);
        /// Bytes of a request.
        pub size: ByteSize = ByteSize(4 << 10);
        /// Requests start at multiples of this number of bytes.
        pub align: ByteSize = ByteSize(4 << 10);
        /// Share of requests that read.
        pub read_share: f64 = 0.3, in 0.0..=1.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 1000.0, in 0.0..=1e9;
    }
}

/// The requests.
///
/// # Errors
/// Sizes that are not whole sectors or do not fit into the span.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    let Parameters { requests, span, size, align, read_share, interval_us } = *parameters;
    let sectors = request_sectors(size, span)?;
    let align_sectors = u64::from(whole_sectors("an alignment", align, span)?);
    let positions = (span.0 / SECTOR_BYTES - u64::from(sectors)) / align_sectors + 1;
    let mut state = seed;
    let mut arrivals = Arrivals::new(interval_us);
    Ok(Box::new((0..requests).map(move |_| Request {
        arrival_ns: arrivals.next(&mut state),
        sector: random::below(&mut state, positions) * align_sectors,
        sectors,
        op: if random::unit(&mut state) < read_share { Op::Read } else { Op::Write },
        handle: 0,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_uniform_and_aligned() {
        let parameters = Parameters { requests: 100_000, span: ByteSize(1 << 20), ..Parameters::default() };
        let requests: Vec<Request> = generate(&parameters, 1).unwrap().collect();
        let mut counts = vec![0u32; 256];
        for request in &requests {
            assert_eq!((request.sector % 8, request.sectors), (0, 8));
            counts[request.sector as usize / 8] += 1;
        }
        assert!(counts.iter().all(|&count| (280..510).contains(&count)), "{counts:?}");
        let reads = requests.iter().filter(|request| request.op == Op::Read).count();
        assert!((29_000..31_000).contains(&reads), "{reads}");
    }
}
