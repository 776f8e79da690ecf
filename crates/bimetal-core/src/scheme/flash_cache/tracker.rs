//! The workload tracker: hit rates of caches of other sizes (the paper's section 5, after Patterson et al., SOSP
//! 1995).
//!
//! It keeps two LRU orders of logical pages, of reads and of writes, each as long as the flash has pages. A read of a
//! page in the order of writes is a read hit of the write cache; any other read moves the page to the order of reads,
//! which the page leaves when it is written. Positions are counted by segments; the paper's ghost lists, which are
//! divided into segments, give the same counts.

use serde::{Deserialize, Serialize};

use crate::part::hit_curve::HitCurve;
use crate::part::reuse_tracker::{ReuseTracker, Touch};

crate::choices! {
    /// How hit-rate curves are measured.
    pub enum Curve {
        /// From every page.
        Exact = "exact",
        /// From a sample of the pages.
        Sampled = "sampled",
    }
}

impl Curve {
    /// The tracked share of the pages, if a sample has `sample_rate` of them.
    pub fn share(self, sample_rate: f64) -> f64 {
        match self {
            Self::Exact => 1.0,
            Self::Sampled => sample_rate,
        }
    }
}

crate::choices! {
    /// Time over which the request rates of the two caches are measured: `IO_R` and `IO_W` of equation 6.
    pub enum Rates {
        /// Since the start, as in the authors' program.
        Total = "total",
        /// The period, and the kept share of earlier ones, like hits.
        Period = "period",
    }
}

crate::choices! {
    /// Uses of a page in the order of reads that are hits of the read cache: `H_R` of equation 6.
    pub enum ReadHits {
        /// Reads.
        Reads = "reads",
        /// Also a write, with which the page leaves the order, as in the authors' program.
        ReadsAndWrites = "reads_and_writes",
    }
}

/// The order of pages that were read and not written.
const READ: usize = 0;

/// The order of pages that were written.
const WRITTEN: usize = 1;

/// The curves of the current period.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkloadTracker {
    /// The orders of reads and of writes: a page is in one of them at most.
    orders: ReuseTracker<2>,
    read_cache: HitCurve,
    write_cache: HitCurve,
    /// Reads among the hits of `write_cache`.
    read_hits_of_write_cache: HitCurve,
    /// Tracked pages that either cache has served so far: reads, and writes.
    served: [u64; 2],
}

impl WorkloadTracker {
    /// Curves up to `pages` pages in `segments` segments, from the share `sample_rate` of the pages.
    pub fn new(pages: u32, segments: u32, sample_rate: f64) -> Self {
        let curve = HitCurve::new(segments, pages.div_ceil(segments).max(1));
        Self {
            orders: ReuseTracker::sampled(pages, sample_rate),
            read_cache: curve.clone(),
            write_cache: curve.clone(),
            read_hits_of_write_cache: curve,
            served: [0; 2],
        }
    }

    /// Whether `pages` pages can be tracked.
    pub fn holds(pages: u32, sample_rate: f64) -> bool {
        ReuseTracker::<2>::holds(pages, sample_rate)
    }

    /// Counts a page that the host reads.
    #[inline]
    pub fn read(&mut self, page: u32) {
        let (order, touch) = self.orders.touch_in(page, |order| order.unwrap_or(READ));
        if touch == Touch::NotSampled {
            // The order of the page is unknown.
            return;
        }
        self.served[order] = self.served[order].saturating_add(1);
        if order == READ {
            count(&mut self.read_cache, touch);
        } else {
            count(&mut self.write_cache, touch);
            if let Touch::Again(position) = touch {
                self.read_hits_of_write_cache.hit(position);
            }
        }
    }

    /// Counts a page that the host writes.
    #[inline]
    pub fn write(&mut self, page: u32, read_hits: ReadHits) {
        let position = match read_hits {
            ReadHits::Reads => None,
            ReadHits::ReadsAndWrites => self.orders.position(page),
        };
        let mut before = None;
        let (_, touch) = self.orders.touch_in(page, |order| {
            before = order;
            WRITTEN
        });
        if touch != Touch::NotSampled {
            self.served[WRITTEN] = self.served[WRITTEN].saturating_add(1);
        }
        if let (Some(READ), Some(position)) = (before, position) {
            count(&mut self.read_cache, Touch::Again(position));
        }
        count(&mut self.write_cache, touch);
    }

    /// `H_R`: hit rate of the read cache if it had `pages` pages.
    pub fn read_hits(&self, pages: f64) -> f64 {
        self.read_cache.rate(pages)
    }

    /// `H_W`: hit rate of the write cache, reads included, if it had `pages` pages.
    pub fn write_hits(&self, pages: f64) -> f64 {
        self.write_cache.rate(pages)
    }

    /// `h'`: share of reads among the hits of a write cache of `pages` pages.
    pub fn read_share_of_write_hits(&self, pages: f64) -> f64 {
        let hits = self.write_cache.hits_below(pages);
        if hits > 0.0 { self.read_hits_of_write_cache.hits_below(pages) / hits } else { 0.0 }
    }

    /// `IO_W`: share of the pages that the write cache serves; `None` if nothing was counted in the period.
    pub fn write_cache_share(&self, rates: Rates) -> Option<f64> {
        let (read, written) = (self.read_cache.references(), self.write_cache.references());
        let [all_read, all_written] = self.served.map(|pages| pages as f64);
        (read + written > 0.0).then(|| match rates {
            Rates::Total => all_written / (all_read + all_written),
            Rates::Period => written / (read + written),
        })
    }

    /// Ends a period and keeps the share `keep` of its counts.
    pub fn end_period(&mut self, keep: f64) {
        self.read_cache.end_period(keep);
        self.write_cache.end_period(keep);
        self.read_hits_of_write_cache.end_period(keep);
    }

    /// Prefetches the entries for a use of a page.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        self.orders.prefetch(page);
    }

    /// Checks the orders of pages.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        self.orders.check()
    }

    /// Bytes of memory that the orders take.
    pub fn bytes(&self) -> u64 {
        self.orders.bytes() as u64
    }
}

/// Counts a page by the result of its use.
#[inline]
fn count(curve: &mut HitCurve, touch: Touch) {
    match touch {
        Touch::NotSampled => {}
        Touch::First => curve.reference(),
        Touch::Again(position) => {
            curve.reference();
            curve.hit(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_written_pages_count_for_the_write_cache() {
        let mut tracker = WorkloadTracker::new(8, 4, 1.0);
        assert_eq!(tracker.write_cache_share(Rates::Total), None);
        tracker.write(1, ReadHits::Reads);
        tracker.read(1);
        tracker.read(2);
        tracker.read(3);
        tracker.read(2);
        assert_eq!([Rates::Total, Rates::Period].map(|rates| tracker.write_cache_share(rates)), [Some(0.4); 2]);
        // Page 2 was used again behind one other: two pages, a segment, hold it.
        assert_eq!([1.0, 2.0, 8.0].map(|pages| tracker.read_hits(pages)), [1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0]);
        assert_eq!((tracker.write_hits(2.0), tracker.read_share_of_write_hits(2.0)), (0.5, 1.0));
        tracker.write(1, ReadHits::Reads);
        assert_eq!((tracker.write_hits(2.0), tracker.read_share_of_write_hits(2.0)), (2.0 / 3.0, 0.5));
    }

    #[test]
    fn a_write_takes_a_page_from_the_read_pages() {
        let mut tracker = WorkloadTracker::new(8, 4, 1.0);
        tracker.read(1);
        tracker.write(1, ReadHits::Reads);
        tracker.read(2);
        tracker.end_period(0.0);
        assert_eq!((tracker.write_cache_share(Rates::Period), tracker.read_hits(8.0)), (None, 0.0));
        tracker.read(1);
        tracker.read(2);
        assert_eq!(tracker.write_cache_share(Rates::Period), Some(0.5));
        assert_eq!(tracker.write_cache_share(Rates::Total), Some(0.4), "of all five");
        assert_eq!((tracker.read_hits(8.0), tracker.write_hits(8.0)), (1.0, 1.0), "orders outlive periods");
    }

    #[test]
    fn rates_of_a_sample_are_those_of_all_pages() {
        let [exact, sampled] = [1.0, 0.05].map(|sample_rate| {
            let mut tracker = WorkloadTracker::new(40_000, 64, sample_rate);
            (0..10_000).for_each(|page| tracker.write(page, ReadHits::Reads));
            (0..20_000).for_each(|page| tracker.read(page));
            [Rates::Total, Rates::Period].map(|rates| tracker.write_cache_share(rates).unwrap())
        });
        assert_eq!(exact, [2.0 / 3.0; 2]);
        assert!(sampled.iter().all(|rate| (rate - 2.0 / 3.0).abs() < 0.05), "{sampled:?}");
    }

    #[test]
    fn a_write_of_a_read_page_can_count_as_a_hit_of_the_read_cache() {
        for (read_hits, rates) in [(ReadHits::Reads, [0.0, 0.0]), (ReadHits::ReadsAndWrites, [0.0, 1.0 / 3.0])] {
            let mut tracker = WorkloadTracker::new(8, 4, 1.0);
            tracker.read(1);
            (2..4).for_each(|page| tracker.read(page));
            // Behind two others: in the second segment of two pages. Only the first write takes it from the order of reads.
            (0..2).for_each(|_| tracker.write(1, read_hits));
            let hits = [2.0, 4.0].map(|pages| tracker.read_hits(pages) * tracker.read_cache.references() / 3.0);
            assert_eq!(hits, rates, "{read_hits:?}");
            assert_eq!(tracker.write_cache_share(Rates::Total), Some(0.4));
        }
    }
}
