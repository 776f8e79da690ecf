//! Response times of requests.
//!
//! Mean and maximum are exact; quantiles come from a histogram with three significant digits.

use hdrhistogram::Histogram;

/// Response times of one kind of request.
#[derive(Clone, Debug)]
pub struct Responses {
    histogram: Histogram<u64>,
    count: u64,
    total_ns: u128,
    max_ns: u64,
    /// The last response and how often in a row it occurred: equal responses are added to the histogram together.
    run: (u64, u64),
}

/// Responses above this many nanoseconds (13 days) share the histogram's last bucket; mean and maximum stay exact.
const HISTOGRAM_MAX_NS: u64 = 1 << 50;

impl Default for Responses {
    fn default() -> Self {
        Self::new()
    }
}

impl Responses {
    /// A set without responses.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, HISTOGRAM_MAX_NS, 3)
            .unwrap_or_else(|_| unreachable!("the bounds are constants within the histogram's limits"));
        Self { histogram, count: 0, total_ns: 0, max_ns: 0, run: (0, 0) }
    }

    /// Adds a response, in nanoseconds. The figures include it after [`Self::close_run`].
    #[inline]
    pub fn record(&mut self, response_ns: u64) {
        if response_ns != self.run.0 {
            self.close_run();
            self.run.0 = response_ns;
        }
        self.run.1 += 1;
    }

    /// Adds the last run of equal responses to the figures.
    pub fn close_run(&mut self) {
        let (response_ns, count) = self.run;
        self.run.1 = 0;
        if count > 0 {
            self.histogram.saturating_record_n(response_ns, count);
            self.count += count;
            self.total_ns += u128::from(response_ns) * u128::from(count);
            self.max_ns = self.max_ns.max(response_ns);
        }
    }

    pub(super) fn clear(&mut self) {
        self.histogram.clear();
        (self.count, self.total_ns, self.max_ns, self.run) = (0, 0, 0, (0, 0));
    }

    /// The responses of both sets.
    pub fn merged(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.histogram += &other.histogram;
        sum.count += other.count;
        sum.total_ns += other.total_ns;
        sum.max_ns = sum.max_ns.max(other.max_ns);
        sum
    }

    /// Number of requests.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all responses, in nanoseconds.
    pub fn total_ns(&self) -> u128 {
        self.total_ns
    }

    /// Mean, in nanoseconds; 0 without responses.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total_ns as f64 / self.count as f64 }
    }

    /// The response that a share of all (0 to 1) does not exceed, in nanoseconds, to three significant digits.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        self.histogram.value_at_quantile(share).min(self.max_ns)
    }

    /// The histogram in ascending order: for each bucket with responses its bounds in nanoseconds, both included, and the
    /// number of responses.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|bucket| {
            let high_ns = bucket.value_iterated_to();
            (self.histogram.lowest_equivalent(high_ns), high_ns, bucket.count_at_value())
        })
    }

    /// The longest response, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }
}
