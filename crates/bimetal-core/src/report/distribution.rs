//! How response times are distributed, for formats of other programs: [`ResponseFigures`](super::ResponseFigures) has the
//! percentiles that reports show.

use crate::replay::Responses;

/// The distribution of response times in nanoseconds; all 0 where there was none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    /// Shortest, to three significant digits.
    pub min_ns: u64,
    /// Longest, exact.
    pub max_ns: u64,
    /// Standard deviation, to three significant digits of each response.
    pub stddev_ns: f64,
    /// By percentile of [`Distribution::PERCENTILES`], to three significant digits.
    pub percentiles_ns: [u64; Distribution::PERCENTILES.len()],
    /// Number of responses above the bound before and up to each bound of [`Distribution::BOUNDS_NS`].
    pub counts: [u64; Distribution::BOUNDS_NS.len()],
}

impl Distribution {
    /// The percentiles that fio reports unless it is told otherwise.
    pub const PERCENTILES: [f64; 17] =
        [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

    /// Upper bounds of fio's latency buckets, in nanoseconds: to 1 us, 1 ms, 1 s, then 2 s and all above.
    pub const BOUNDS_NS: [u64; 32] = {
        const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
        let mut bounds = [u64::MAX; 32];
        let mut at = 0;
        while at < 30 {
            bounds[at] = STEPS[at % 10] * [1, 1_000, 1_000_000][at / 10];
            at += 1;
        }
        bounds[30] = 2_000_000_000;
        bounds
    };

    pub(super) fn of(responses: &Responses) -> Self {
        Self {
            min_ns: responses.min_ns(),
            max_ns: responses.max_ns(),
            stddev_ns: responses.stddev_ns(),
            percentiles_ns: Self::PERCENTILES.map(|percent| responses.quantile_ns(percent / 100.0)),
            counts: std::array::from_fn(|at| {
                let below = at.checked_sub(1).map_or(0, |before| responses.count_up_to(Self::BOUNDS_NS[before]));
                responses.count_up_to(Self::BOUNDS_NS[at]) - below
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_the_moments_of_its_responses() {
        let mut responses = Responses::new();
        (1..=1000).for_each(|response_us| responses.record(response_us * 1000));
        responses.close_run();
        let distribution = Distribution::of(&responses);
        assert_eq!((distribution.min_ns / 1000, distribution.max_ns), (1, 1_000_000));
        let near =
            |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 0.002, "{value} for {expected}");
        // Of the numbers from 1 to n it is the root of (n² - 1) / 12.
        near(distribution.stddev_ns, 1000.0 * (999_999.0_f64 / 12.0).sqrt());
        for (percent, response_ns) in Distribution::PERCENTILES.into_iter().zip(distribution.percentiles_ns) {
            near(response_ns as f64, (percent * 10.0).ceil() * 1000.0);
        }
        assert_eq!(distribution.counts.iter().sum::<u64>(), 1000);
        // Up to 750 us and to 1 ms.
        assert_eq!((distribution.counts[18], distribution.counts[19]), (250, 250));
        let none = Distribution::of(&Responses::new());
        assert_eq!((none.min_ns, none.max_ns, none.stddev_ns, none.percentiles_ns), (0, 0, 0.0, [0; 17]));
    }
}
