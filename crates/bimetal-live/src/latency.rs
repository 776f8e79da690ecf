//! Histograms of durations, which any number of threads record at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets, in nanoseconds: 10 µs to 10 s, three to a decade. One more bucket counts longer durations.
const BOUNDS_NS: [u64; 19] = [
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];
const BUCKETS: usize = BOUNDS_NS.len() + 1;

/// A histogram of durations with fixed buckets. Recording takes two atomic additions: no lock, no allocation.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_NS.partition_point(|&bound| bound < ns);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// The counts now. A duration that is being recorded may be counted and not yet in the sum.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            counts: std::array::from_fn(|bucket| self.counts[bucket].load(Ordering::Relaxed)),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
        }
    }
}

/// The counts of a [`Histogram`] at one time; by default those of an empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    counts: [u64; BUCKETS],
    sum_ns: u64,
}

impl Snapshot {
    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all durations.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// Number of durations above `limit`, which is rounded down to the bound of a bucket.
    pub fn longer_than(&self, limit: Duration) -> u64 {
        let bucket = BOUNDS_NS.partition_point(|&bound| u128::from(bound) <= limit.as_nanos());
        self.counts[bucket..].iter().sum()
    }

    /// The upper bound of each bucket, in seconds, and its count, without those of earlier buckets. The last bound is
    /// infinite.
    pub fn buckets(&self) -> [(f64, u64); BUCKETS] {
        let bound_s = |bucket: usize| BOUNDS_NS.get(bucket).map_or(f64::INFINITY, |&ns| ns as f64 / 1e9);
        std::array::from_fn(|bucket| (bound_s(bucket), self.counts[bucket]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_up_to_the_bound_of_their_bucket() {
        let histogram = Histogram::default();
        for us in [0, 10, 11, 1_000_000, 1_000_001, 10_000_000, 60_000_000] {
            histogram.record(Duration::from_micros(us));
        }
        let counted = histogram.snapshot();
        assert_eq!((counted.count(), counted.sum()), (7, Duration::from_micros(72_000_022)));
        let filled: Vec<_> = counted.buckets().into_iter().filter(|&(_, count)| count > 0).collect();
        assert_eq!(filled, [(1e-5, 2), (2e-5, 1), (1.0, 1), (2.0, 1), (10.0, 1), (f64::INFINITY, 1)]);
        assert_eq!(counted.longer_than(Duration::from_secs(1)), 3);
        assert_eq!(counted.longer_than(Duration::from_secs(100)), 1);
        assert_eq!(counted.longer_than(Duration::ZERO), 7);
    }

    #[test]
    fn threads_record_side_by_side() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let histogram = &histogram;
                scope.spawn(move || (0..1000).for_each(|_| histogram.record(Duration::from_millis(thread))));
            }
        });
        let counted = histogram.snapshot();
        assert_eq!((counted.count(), counted.sum()), (4000, Duration::from_secs(6)));
        histogram.record(Duration::MAX);
        assert_eq!(histogram.snapshot().count(), 4001);
    }

    #[test]
    fn recording_allocates_nothing() {
        let histogram = Histogram::default();
        let allocated = allocation_counter::measure(|| histogram.record(Duration::from_millis(1)));
        assert_eq!(allocated.count_total, 0);
    }
}
