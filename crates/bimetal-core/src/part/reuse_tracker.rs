//! Reuse distances of all pages, or of a sample of them.
//!
//! Sampling follows SHARDS (Waldspurger, Park, Garthwaite, Ahmad: *Efficient MRC construction with SHARDS*, FAST 2015):
//! pages whose hash is below a threshold are sampled, so a page is either always or never in the sample. Between two
//! uses of a sampled page, the share of the other pages that is seen equals the sampling rate. The page's position
//! divided by the rate therefore estimates its position among all pages. Time and memory shrink with the rate; a page
//! that is not sampled costs one hash.

use serde::{Deserialize, Serialize};

use crate::part::random;
use crate::part::reuse_stack::ReuseStacks;

/// The result of a use of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The page is not in the sample.
    NotSampled,
    /// It was not in the stack: never used, used too long ago, or removed.
    First,
    /// It was at this position among all pages, 0 being the most recent. Estimated if pages are sampled.
    Again(u32),
}

/// LRU stacks over all pages or over a sample. With several stacks, a page is in at most one of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReuseTracker<const STACKS: usize = 1> {
    stacks: ReuseStacks<STACKS>,
    /// Pages with a smaller hash are in the sample: 2^32 times the rate.
    #[serde(with = "crate::save::fixed")]
    threshold: u64,
    /// Number of pages that each sampled page stands for.
    #[serde(with = "crate::save::fixed")]
    pages_per_sample: f64,
}

/// Hashes are below this.
const HASHES: u64 = 1 << 32;

/// Threshold from which on prefetching pays.
const PREFETCHED: u64 = HASHES / 16;

impl<const STACKS: usize> ReuseTracker<STACKS> {
    /// Tracks every page; each stack reaches `capacity` pages deep.
    pub fn exact(capacity: u32) -> Self {
        Self::sampled(capacity, 1.0)
    }

    /// Tracks the share `rate` of the pages, above 0 and at most 1. Each stack holds about the sampled pages among the
    /// last `capacity` pages used.
    pub fn sampled(capacity: u32, rate: f64) -> Self {
        let (threshold, pages_per_sample) = threshold(rate);
        Self { stacks: ReuseStacks::new(sampled_pages(capacity, pages_per_sample)), threshold, pages_per_sample }
    }

    /// Whether stacks of this capacity are possible at this rate.
    pub fn holds(capacity: u32, rate: f64) -> bool {
        sampled_pages(capacity, threshold(rate).1) <= ReuseStacks::<STACKS>::CAPACITY_MAX
    }

    /// Share of the pages that are tracked.
    pub fn rate(&self) -> f64 {
        1.0 / self.pages_per_sample
    }

    /// Whether a page is tracked.
    #[inline]
    pub fn samples(&self, page: u32) -> bool {
        self.threshold == HASHES || u64::from(random::hash(page, random::SAMPLING)) < self.threshold
    }

    /// Uses a page, which becomes the most recent one of a stack. `choose` gets the page's current stack and returns
    /// the new one. Returns the new stack and the result of the use there. For a page that is not sampled, the returned
    /// stack has no meaning.
    #[inline]
    pub fn touch_in(&mut self, page: u32, choose: impl FnOnce(Option<usize>) -> usize) -> (usize, Touch) {
        if !self.samples(page) {
            return (0, Touch::NotSampled);
        }
        let (stack, position) = self.stacks.touch_in(page, choose);
        (stack, position.map_or(Touch::First, |position| Touch::Again(self.among_all(position))))
    }

    /// Uses a page, which becomes the most recent one of the first stack.
    #[inline]
    pub fn touch(&mut self, page: u32) -> Touch {
        self.touch_in(page, |_| 0).1
    }

    /// The position of a page among all pages, 0 being the most recent; `None` if it is not in the stack or not
    /// sampled.
    #[inline]
    pub fn position(&self, page: u32) -> Option<u32> {
        if self.samples(page) { self.stacks.position(page).map(|position| self.among_all(position)) } else { None }
    }

    /// Removes a page from its stack. Returns whether it was there.
    #[inline]
    pub fn remove(&mut self, page: u32) -> bool {
        self.samples(page) && self.stacks.remove(page)
    }

    /// Prefetches the first data that a use of a page needs into the processor's cache. For a small sample the hash
    /// would cost more than it saves.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        if self.threshold >= PREFETCHED && self.samples(page) {
            self.stacks.prefetch(page);
        }
    }

    /// Checks the stacks.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), String> {
        self.stacks.check()
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.stacks.bytes()
    }

    #[inline]
    fn among_all(&self, position: u32) -> u32 {
        (f64::from(position) * self.pages_per_sample) as u32
    }
}

/// The sampling threshold for a rate, and the number of pages that each sampled page stands for.
fn threshold(rate: f64) -> (u64, f64) {
    debug_assert!(rate > 0.0 && rate <= 1.0, "a rate of {rate}");
    let threshold = ((rate * HASHES as f64) as u64).clamp(1, HASHES);
    (threshold, HASHES as f64 / threshold as f64)
}

fn sampled_pages(capacity: u32, pages_per_sample: f64) -> u32 {
    (f64::from(capacity) / pages_per_sample).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_tracking_is_the_stack() {
        let mut tracker: ReuseTracker = ReuseTracker::exact(3);
        let touches = [1, 2, 1, 3, 4, 2, 4].map(|page| tracker.touch(page));
        use Touch::{Again, First};
        assert_eq!(touches, [First, First, Again(1), First, First, First, Again(1)]);
        assert_eq!((tracker.rate(), tracker.position(4), tracker.position(1)), (1.0, Some(0), None));
        assert!(tracker.remove(4) && !tracker.remove(4));
        assert_eq!(tracker.position(2), Some(0));
    }

    #[test]
    fn a_page_is_sampled_always_or_never() {
        let mut tracker: ReuseTracker = ReuseTracker::sampled(100_000, 0.01);
        let sampled: Vec<u32> = (0..100_000).filter(|&page| tracker.touch(page) != Touch::NotSampled).collect();
        // 1,000 are expected, with a standard deviation of 31.5.
        assert!((870..1130).contains(&sampled.len()), "{}", sampled.len());
        assert!((tracker.rate() - 0.01).abs() < 1e-9);
        for page in 0..100_000 {
            let position = tracker.position(page);
            assert_eq!(position.is_some(), sampled.binary_search(&page).is_ok());
            assert_eq!(tracker.samples(page), position.is_some());
            assert_eq!(tracker.remove(page), position.is_some());
        }
    }

    #[test]
    fn more_pages_than_slots_have_numbers_are_not_held() {
        assert!(ReuseTracker::<1>::holds((1 << 30) - 128, 1.0) && !ReuseTracker::<1>::holds((1 << 30) - 127, 1.0));
        assert!(ReuseTracker::<2>::holds((1 << 29) - 128, 1.0) && !ReuseTracker::<2>::holds((1 << 29) - 127, 1.0));
        assert!(ReuseTracker::<2>::holds(u32::MAX, 0.1));
    }
}
