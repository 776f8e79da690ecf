//! Arrivals in bursts.

use bimetal_core::part::random;
use bimetal_core::workload::Arrivals;

/// Distribution of the gaps between arrivals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bursts {
    /// Share of the gaps that are short.
    pub(super) share: f64,
    /// Mean of the short gaps relative to the mean of all, below 1.
    pub(super) short: f64,
}

/// Arrivals in bursts: independent gaps from one of two exponential distributions.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    short: Arrivals,
    long_by_short: f64,
    share: f64,
}

impl Gaps {
    pub(super) fn new(mean_us: f64, Bursts { share, short }: Bursts) -> Self {
        let long = (1.0 - share * short) / (1.0 - share);
        Self { short: Arrivals::new(mean_us * short), long_by_short: long / short, share }
    }

    /// The arrival time of the next request in nanoseconds; the first one is 0.
    pub(super) fn next(&mut self, state: &mut u64) -> u64 {
        let longer = if random::unit(state) < self.share { 1.0 } else { self.long_by_short };
        self.short.next_after(longer, state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_keep_the_mean_and_vary_more() {
        let mut gaps = Gaps::new(250.0, Bursts { share: 0.9, short: 0.35 });
        let mut state = 1;
        let arrivals: Vec<u64> = (0..200_001).map(|_| gaps.next(&mut state)).collect();
        let gaps: Vec<f64> = arrivals.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 250_000.0).collect();
        let mean = gaps.iter().sum::<f64>() / 200_000.0;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 200_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        // Expected: 2 (0.9 0.35^2 + 0.1 6.85^2) - 1.
        assert!((variance / 8.605 - 1.0).abs() < 0.05, "{variance}");
    }
}
