//! The Data Classifier (section II-A): the most recently written pages, and the share of reads and writes that hit
//! them.

use serde::{Deserialize, Serialize};

use crate::model::metadata::lru_list_bytes;
use crate::part::hit_curve::HitCurve;
use crate::part::reuse_tracker::{ReuseTracker, Touch};

/// Settings of the classifier.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClassifierSettings {
    /// Segments of the hit-rate curves.
    pub segments: u32,
    /// Share of the counts that is carried into the next period.
    pub keep: f64,
    /// Share of the pages that are tracked; 1 for all.
    pub sample_rate: f64,
}

/// Pages in the order in which they were written, and the hit-rate curves `H_w` and `H_r` over their number.
#[derive(Debug, Serialize, Deserialize)]
pub struct Classifier {
    tracker: ReuseTracker,
    /// Largest number of pages for which it measures hits: `B_SLC`.
    #[serde(with = "crate::save::fixed")]
    pages: u32,
    write_hits: HitCurve,
    read_hits: HitCurve,
    /// Page writes and reads, tracked or not, with the kept share of past periods.
    writes: f64,
    reads: f64,
    #[serde(with = "crate::save::fixed")]
    keep: f64,
}

impl Classifier {
    /// For a fast SSD with a raw capacity of `pages` pages.
    pub fn new(pages: u32, settings: &ClassifierSettings) -> Self {
        let curve = || HitCurve::new(settings.segments, pages.div_ceil(settings.segments).max(1));
        Self {
            tracker: ReuseTracker::sampled(pages, settings.sample_rate),
            pages,
            write_hits: curve(),
            read_hits: curve(),
            writes: 0.0,
            reads: 0.0,
            keep: settings.keep,
        }
    }

    /// Whether `pages` pages can be tracked.
    pub fn holds(pages: u32, settings: &ClassifierSettings) -> bool {
        <ReuseTracker>::holds(pages, settings.sample_rate)
    }

    /// Counts a page that is written. Returns its previous position in the order, 0 being the page written last; `None`
    /// if it is not among the tracked pages.
    #[inline]
    pub fn write(&mut self, page: u32) -> Option<u32> {
        self.writes += 1.0;
        match self.tracker.touch(page) {
            Touch::NotSampled => None,
            Touch::First => {
                self.write_hits.reference();
                None
            }
            Touch::Again(position) => {
                self.write_hits.reference();
                self.write_hits.hit(position);
                Some(position)
            }
        }
    }

    /// Counts a page that is read, without a change of order.
    #[inline]
    pub fn read(&mut self, page: u32) {
        self.reads += 1.0;
        if self.tracker.samples(page) {
            self.read_hits.reference();
            if let Some(position) = self.tracker.position(page) {
                self.read_hits.hit(position);
            }
        }
    }

    /// Removes a page that was trimmed.
    pub fn forget(&mut self, page: u32) {
        self.tracker.remove(page);
    }

    /// `H_w`: share of writes to the `pages` most recently written pages.
    pub fn write_hit_rate(&self, pages: f64) -> f64 {
        self.write_hits.rate(pages)
    }

    /// `H_r`: share of reads of the `pages` most recently written pages.
    pub fn read_hit_rate(&self, pages: f64) -> f64 {
        self.read_hits.rate(pages)
    }

    /// `IO_W`: share of writes among all page accesses; 1 before the first.
    pub fn write_share(&self) -> f64 {
        let all = self.writes + self.reads;
        if all > 0.0 { self.writes / all } else { 1.0 }
    }

    /// Ends a period.
    pub fn end_period(&mut self) {
        self.write_hits.end_period(self.keep);
        self.read_hits.end_period(self.keep);
        self.writes *= self.keep;
        self.reads *= self.keep;
    }

    /// Checks the order of pages.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        self.tracker.check()
    }

    /// Prefetches the entries for counting a page.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        self.tracker.prefetch(page);
    }

    /// Bytes of tables in a controller.
    pub fn metadata_bytes(&self) -> u64 {
        lru_list_bytes((f64::from(self.pages) * self.tracker.rate()).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: ClassifierSettings = ClassifierSettings { segments: 4, keep: 0.5, sample_rate: 1.0 };

    #[test]
    fn writes_order_pages_and_reads_only_ask() {
        let mut classifier = Classifier::new(8, &SETTINGS);
        let positions = [1, 2, 3, 1, 1].map(|page| classifier.write(page));
        assert_eq!(positions, [None, None, None, Some(2), Some(0)]);
        // The order is 1, 3, 2; segments have two pages.
        [2, 3, 9].into_iter().for_each(|page| classifier.read(page));
        assert_eq!([2.0, 4.0].map(|pages| classifier.write_hit_rate(pages)), [0.2, 0.4]);
        assert_eq!([2.0, 4.0].map(|pages| classifier.read_hit_rate(pages)), [1.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(classifier.write_share(), 5.0 / 8.0);
        classifier.forget(1);
        assert_eq!(classifier.write(1), None);
    }

    #[test]
    fn later_periods_count_more() {
        let mut classifier = Classifier::new(8, &SETTINGS);
        classifier.write(1);
        classifier.write(1);
        classifier.end_period();
        assert_eq!((classifier.write_hit_rate(8.0), classifier.write_share()), (0.5, 1.0));
        classifier.write(2);
        classifier.read(2);
        // Half a hit of a reference, plus another one; two halves of writes, plus one next to a read.
        assert_eq!((classifier.write_hit_rate(8.0), classifier.write_share()), (0.25, 2.0 / 3.0));
    }

    /// A page that is not tracked counts as an access and gives no information about hits.
    #[test]
    fn a_sample_estimates_the_same_curve() {
        let [exact, sampled] = [1.0, 0.1].map(|sample_rate| {
            let mut classifier = Classifier::new(20_000, &ClassifierSettings { sample_rate, segments: 64, keep: 1.0 });
            let mut state = 1;
            for _ in 0..200_000 {
                let hot = crate::part::random::below(&mut state, 4) > 0;
                let range = if hot { 4000 } else { 100_000 };
                classifier.write(crate::part::random::below(&mut state, range) as u32);
            }
            [1000.0, 5000.0, 20_000.0].map(|pages| classifier.write_hit_rate(pages))
        });
        for (exact, sampled) in exact.into_iter().zip(sampled) {
            assert!((exact - sampled).abs() < 0.03, "{exact} {sampled}");
        }
    }
}
