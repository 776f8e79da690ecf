//! Random choices of generators: arrivals, a Zipf distribution, a permutation, weighted choices.

use crate::part::random;
use crate::part::real::{exp, ln};

/// Poisson arrivals: independent, exponentially distributed gaps.
#[derive(Clone, Debug)]
pub struct Arrivals {
    now_ns: u64,
    mean_ns: f64,
}

impl Arrivals {
    /// Arrivals with a mean gap, in microseconds.
    pub fn new(mean_us: f64) -> Self {
        Self { now_ns: 0, mean_ns: mean_us * 1e3 }
    }

    /// The arrival time of the next request in nanoseconds; the first one is 0.
    pub fn next(&mut self, state: &mut u64) -> u64 {
        self.next_after(1.0, state)
    }

    /// The same, with the gap after this request multiplied by a factor.
    pub fn next_after(&mut self, longer: f64, state: &mut u64) -> u64 {
        let arrival_ns = self.now_ns;
        // 1 - unit is above 0, so its logarithm is finite.
        let gap_ns = -ln(1.0 - random::unit(state)) * self.mean_ns * longer;
        self.now_ns = arrival_ns.saturating_add(gap_ns as u64);
        arrival_ns
    }
}

/// Ranks with a Zipf distribution: rank `k` from 1 to `n` has a probability proportional to `k^-theta`.
///
/// Rejection-inversion (Hörmann and Derflinger, *Rejection-inversion to generate variates from monotone discrete
/// distributions*, ACM TOMACS 6(3), 1996): exact for every `n` and `theta`, constant time, no table. Its logarithm and
/// exponential are those of [`crate::part::real`], so that every machine draws the same ranks.
#[derive(Clone, Debug)]
pub struct Zipf {
    items: f64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// A distribution over `items` ranks, at least 1, with exponent `theta`, from 0 (uniform) to 4.
    pub fn new(items: u64, theta: f64) -> Self {
        debug_assert!(items > 0 && (0.0..=4.0).contains(&theta));
        let mut zipf = Self { items: items as f64, theta, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.items + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank, from 0 (the most frequent) to `items - 1`.
    pub fn draw(&self, state: &mut u64) -> u64 {
        loop {
            let area = self.integral_last + random::unit(state) * (self.integral_first - self.integral_last);
            let x = self.inverse(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.items);
            if rank - x <= self.shortcut || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    /// `x^-theta`.
    fn density(&self, x: f64) -> f64 {
        exp(-self.theta * ln(x))
    }

    /// Integral of the density from 1 to `x`: `(x^(1 - theta) - 1) / (1 - theta)`, and `ln x` for theta 1.
    fn integral(&self, x: f64) -> f64 {
        let log = ln(x);
        let y = (1.0 - self.theta) * log;
        // (e^y - 1) / y, by its series where the difference would cancel.
        let ratio = if y.abs() > 1e-5 { (exp(y) - 1.0) / y } else { 1.0 + y / 2.0 * (1.0 + y / 3.0) };
        ratio * log
    }

    fn inverse(&self, area: f64) -> f64 {
        let y = (area * (1.0 - self.theta)).max(-1.0 + 1e-15);
        // ln(1 + y) / y
        let ratio = if y.abs() > 1e-5 { ln(1.0 + y) / y } else { 1.0 - y * (0.5 - y / 3.0) };
        exp(ratio * area)
    }
}

/// A pseudo-random permutation of the numbers below `items` from a key, in constant memory: a Feistel network over the
/// next even power of two. Results of at least `items` are fed in again (cycle walking).
#[derive(Clone, Debug)]
pub struct Permutation {
    items: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// A permutation of `items` numbers, at least 1 and at most 2^62.
    pub fn new(items: u64, seed: u64) -> Self {
        debug_assert!(items > 0 && items <= 1 << 62);
        let bits = items.next_power_of_two().trailing_zeros();
        let mut state = seed;
        Self { items, half_bits: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| random::split_mix(&mut state)) }
    }

    /// The image of `item`, which must be below `items`.
    pub fn of(&self, item: u64) -> u64 {
        debug_assert!(item < self.items);
        let mut value = item;
        loop {
            value = self.round_trip(value);
            if value < self.items {
                return value;
            }
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            let mut state = right ^ key;
            (left, right) = (right, left ^ random::split_mix(&mut state) & mask);
        }
        left << self.half_bits | right
    }
}

/// One of several values, by weights that add up to 1. The last value takes any missing weight.
pub fn choose<T: Copy>(state: &mut u64, choices: &[(T, f64)]) -> Option<T> {
    let mut left = random::unit(state);
    for &(value, weight) in choices {
        if left < weight {
            return Some(value);
        }
        left -= weight;
    }
    choices.last().map(|&(value, _)| value)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "libm is what the tests compare with")]
mod tests {
    use super::*;

    #[test]
    fn zipf_frequencies_follow_the_law() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.2, 2.5, 4.0] {
            let zipf = Zipf::new(1000, theta);
            let total: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-theta)).sum();
            let mut counts = vec![0u32; 1000];
            let mut state = 5;
            let draws = 400_000;
            for _ in 0..draws {
                counts[zipf.draw(&mut state) as usize] += 1;
            }
            for rank in [1usize, 2, 3, 5, 10, 100, 1000] {
                let expected = (rank as f64).powf(-theta) / total * f64::from(draws);
                let off = (f64::from(counts[rank - 1]) - expected).abs();
                assert!(off < 5.0 * expected.sqrt().max(1.0), "theta {theta}, rank {rank}: off by {off} of {expected}");
            }
        }
        let one = Zipf::new(1, 0.99);
        assert_eq!(one.draw(&mut 9), 0);
    }

    #[test]
    fn zipf_ranks_are_fixed() {
        let zipf = Zipf::new(1 << 20, 0.99);
        let mut state = 1;
        let ranks: Vec<u64> = (0..8).map(|_| zipf.draw(&mut state)).collect();
        assert_eq!(ranks, [375, 26, 0, 2196, 2199, 20, 3, 706]);
    }

    #[test]
    fn a_permutation_hits_everything_once() {
        for items in [1, 2, 3, 7, 64, 1000, 4097] {
            let permutation = Permutation::new(items, 3);
            let mut hits: Vec<u64> = (0..items).map(|item| permutation.of(item)).collect();
            hits.sort_unstable();
            assert_eq!(hits, (0..items).collect::<Vec<_>>());
        }
    }

    #[test]
    fn arrivals_have_their_mean() {
        let mut arrivals = Arrivals::new(250.0);
        let mut state = 1;
        let last = (0..100_001).map(|_| arrivals.next(&mut state)).last().unwrap();
        assert!((last as f64 / 100_000.0 / 250_000.0 - 1.0).abs() < 0.02);
    }
}
