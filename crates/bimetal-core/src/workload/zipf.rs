//! `zipf`: a few pages get most requests, and they are scattered over the span.

use super::sample::{Arrivals, Permutation, Zipf};
use super::{Requests, WorkloadSpec, request_sectors, target};
use crate::part::random;
use crate::request::{Op, Request};
use crate::units::ByteSize;

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "zipf",
    summary: "random reads and writes with Zipf popularity, the hot pages scattered",
    source: "scrambled Zipf of YCSB (Cooper et al., SoCC 2010), theta 0.99",
    parameters: Parameters::specs,
    targets: target::none,
    in_small: &[],
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `zipf`.
    pub struct Parameters {
        /// Number of requests.
        pub requests: u64 = 1_000_000, in 1..=1_000_000_000;
        /// Bytes of the device that are used.
        pub span: ByteSize = ByteSize(4 << 30);
        /// Bytes of a request, and of the units that differ in popularity.
        pub size: ByteSize = ByteSize(4 << 10);
        /// Exponent of the popularity: 0 is uniform, 0.99 gives the hottest 1 % of a million pages two thirds of all.
        pub theta: f64 = 0.99, in 0.0..=4.0;
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
    let Parameters { requests, span, size, theta, read_share, interval_us } = *parameters;
    let sectors = request_sectors(size, span)?;
    let units = span.0 / size.0;
    let zipf = Zipf::new(units, theta);
    let mut state = seed;
    let place = Permutation::new(units, random::split_mix(&mut state));
    let mut arrivals = Arrivals::new(interval_us);
    Ok(Box::new((0..requests).map(move |_| Request {
        arrival_ns: arrivals.next(&mut state),
        sector: place.of(zipf.draw(&mut state)) * u64::from(sectors),
        sectors,
        op: if random::unit(&mut state) < read_share { Op::Read } else { Op::Write },
        handle: 0,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_percent_takes_most_requests() {
        let parameters = Parameters { requests: 200_000, ..Parameters::default() };
        let mut counts = vec![0u32; 1 << 20];
        for request in generate(&parameters, 1).unwrap() {
            counts[request.sector as usize / 8] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hottest: u32 = counts[..10_486].iter().sum();
        assert!((0.62..0.72).contains(&(f64::from(hottest) / 200_000.0)), "{hottest}");
    }
}
