//! `sequential`: streams that each run repeatedly through their part of the span.

use super::sample::Arrivals;
use super::{Requests, WorkloadSpec, request_sectors, target};
use crate::part::random;
use crate::request::{Op, Request};
use crate::units::ByteSize;

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "sequential",
    summary: "one or more sequential streams of writes or reads",
    source: "the usual best case of a flash translation layer",
    parameters: Parameters::specs,
    targets: target::none,
    in_small: &[],
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `sequential`.
    pub struct Parameters {
        /// Number of requests.
        pub requests: u64 = 100_000, in 1..=1_000_000_000;
        /// Bytes of the device that are used.
        pub span: ByteSize = ByteSize(4 << 30);
        /// Bytes of a request.
        pub size: ByteSize = ByteSize(128 << 10);
        /// Streams that take turns at random, each in its own equal part of the span.
        pub streams: u32 = 1, in 1..=4096;
        /// Share of requests that read.
        pub read_share: f64 = 0.0, in 0.0..=1.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 1000.0, in 0.0..=1e9;
    }
}

/// The requests.
///
/// # Errors
/// Sizes that are not whole sectors or do not fit into a stream's part of the span.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    let Parameters { requests, span, size, streams, read_share, interval_us } = *parameters;
    let sectors = request_sectors(size, span)?;
    let part = ByteSize(span.0 / u64::from(streams));
    if size > part {
        return Err(format!(
            "a request of {size} does not fit into {part}, the part of the span of each of {streams} streams"
        ));
    }
    let per_stream = part.0 / size.0;
    let mut next = vec![0u64; streams as usize];
    let mut state = seed;
    let mut arrivals = Arrivals::new(interval_us);
    Ok(Box::new((0..requests).map(move |_| {
        let stream = random::below(&mut state, u64::from(streams));
        let position = &mut next[stream as usize];
        let sector = (stream * per_stream + *position) * u64::from(sectors);
        *position = (*position + 1) % per_stream;
        Request {
            arrival_ns: arrivals.next(&mut state),
            sector,
            sectors,
            op: if random::unit(&mut state) < read_share { Op::Read } else { Op::Write },
            handle: 0,
        }
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_continue_and_wrap() {
        let parameters = Parameters { requests: 10_000, span: ByteSize(32 << 20), streams: 4, ..Parameters::default() };
        let mut last = [None; 4];
        for request in generate(&parameters, 1).unwrap() {
            let stream = (request.sector / 16_384) as usize;
            if let Some(end) = last[stream] {
                assert!(request.sector == end || request.sector == stream as u64 * 16_384);
            }
            last[stream] = Some(request.end());
        }
        assert!(last.iter().all(Option::is_some));
    }

    #[test]
    fn a_part_that_is_too_small_is_named() {
        let parameters = Parameters { span: ByteSize(4 << 20), streams: 4096, ..Parameters::default() };
        let error = generate(&parameters, 1).map(drop).unwrap_err();
        assert!(error.contains("into 1KiB, the part of the span of each of 4096 streams"), "{error}");
    }
}
