//! How response times are distributed, for formats of other programs: [`ResponseFigures`](super::ResponseFigures) has the
//! percentiles that reports show.

use crate::replay::Responses;

/// The distribution of response times in nanoseconds; all 0 without responses.
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
    /// Number of responses above the previous bound and up to each bound of [`Distribution::BOUNDS_NS`].
    pub counts: [u64; Distribution::BOUNDS_NS.len()],
}

impl Distribution {
    /// The percentiles that fio reports by default.
    pub const PERCENTILES: [f64; 17] =
        [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

    /// Upper bounds of fio's latency buckets, in nanoseconds: steps up to 1 us, 1 ms and 1 s, then 2 s and everything
    /// above.
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

    /// One pass over the histogram, because every report has a distribution, used or not.
    pub(super) fn of(responses: &Responses) -> Self {
        let (count, mean_ns, max_ns) = (responses.count() as f64, responses.mean_ns(), responses.max_ns());
        let mut distribution = Self {
            min_ns: responses.buckets().next().map_or(0, |(low_ns, ..)| low_ns),
            max_ns,
            stddev_ns: 0.0,
            percentiles_ns: [0; Self::PERCENTILES.len()],
            counts: [0; Self::BOUNDS_NS.len()],
        };
        let (mut seen, mut squares, mut percentile, mut bound) = (0, 0.0, 0, 0);
        for (low_ns, high_ns, responses) in responses.buckets() {
            seen += responses;
            squares += ((low_ns as f64 + high_ns as f64) / 2.0 - mean_ns).powi(2) * responses as f64;
            while Self::PERCENTILES.get(percentile).is_some_and(|percent| percent / 100.0 * count <= seen as f64) {
                distribution.percentiles_ns[percentile] = high_ns.min(max_ns);
                percentile += 1;
            }
            while Self::BOUNDS_NS[bound] < low_ns {
                bound += 1;
            }
            distribution.counts[bound] += responses;
        }
        distribution.stddev_ns = (squares / count.max(1.0)).sqrt();
        distribution
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
        // The standard deviation of the numbers from 1 to n is the root of (n² - 1) / 12.
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
