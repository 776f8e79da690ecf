//! A hit-rate curve: the share of references that a cache would have served, by its size.
//!
//! Positions in an LRU stack are counted by segments of equal size, as the ghost lists of OP-FCL (FAST 2012 §5) and the
//! data classifier of HySSD (MSST 2013) keep them; within a segment hits are taken to lie evenly. A reference found at
//! position `p` is a hit in every cache of more than `p` pages.

use serde::{Deserialize, Serialize};

use crate::save::Table;

/// Hits by stack segment, and the number of references counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HitCurve {
    #[serde(with = "crate::save::fixed")]
    segment_pages: u32,
    /// 2^64 divided by `segment_pages`, rounded up, so that the segment of a position is found without a division.
    #[serde(with = "crate::save::fixed")]
    inverse: u128,
    hits: Table<f64>,
    references: f64,
}

impl HitCurve {
    /// An empty curve with `segments` segments of `segment_pages` pages each. Hits beyond the last segment are not
    /// counted.
    pub fn new(segments: u32, segment_pages: u32) -> Self {
        debug_assert!(segment_pages > 0, "a segment holds pages");
        let inverse = (1u128 << 64).div_ceil(u128::from(segment_pages));
        Self { segment_pages, inverse, hits: vec![0.0; segments as usize].into(), references: 0.0 }
    }

    /// Counts a reference, hit or not.
    #[inline]
    pub fn reference(&mut self) {
        self.references += 1.0;
    }

    /// Counts a hit at a stack position; 0 is the most recent page. The reference itself is counted by
    /// [`Self::reference`].
    #[inline]
    pub fn hit(&mut self, position: u32) {
        // Exact: the error of the inverse, below 1, times a position is below 2^64 by any segment.
        let segment = (u128::from(position) * self.inverse) >> 64;
        if let Some(hits) = self.hits.get_mut(segment as usize) {
            *hits += 1.0;
        }
    }

    /// Number of references counted, including the kept share of past periods.
    pub fn references(&self) -> f64 {
        self.references
    }

    /// Hits of a cache of `pages` pages: linear within a segment, and constant beyond the last.
    pub fn hits_below(&self, pages: f64) -> f64 {
        let segments = (pages / f64::from(self.segment_pages)).max(0.0);
        let whole = (segments as usize).min(self.hits.len());
        let part = self.hits.get(whole).map_or(0.0, |hits| hits * (segments - whole as f64));
        self.hits[..whole].iter().sum::<f64>() + part
    }

    /// Share of the references that a cache of `pages` pages serves; 0 without references.
    pub fn rate(&self, pages: f64) -> f64 {
        if self.references > 0.0 { self.hits_below(pages) / self.references } else { 0.0 }
    }

    /// Ends a period and keeps the share `keep` of the counts. 0 resets the counts, 0.5 halves them.
    pub fn end_period(&mut self, keep: f64) {
        self.references *= keep;
        for hits in self.hits.as_mut_slice() {
            *hits *= keep;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_counted_by_segment_and_lie_evenly_in_it() {
        let mut curve = HitCurve::new(3, 10);
        assert_eq!(curve.rate(30.0), 0.0);
        (0..8).for_each(|_| curve.reference());
        for position in [0, 9, 10, 19, 19, 29, 30, u32::MAX] {
            curve.hit(position);
        }
        let below = |pages: f64| curve.hits_below(pages);
        assert_eq!([0.0, 10.0, 20.0, 30.0].map(below), [0.0, 2.0, 5.0, 6.0]);
        assert_eq!([-1.0, 5.0, 12.5, 25.0, 1e9].map(below), [0.0, 1.0, 2.75, 5.5, 6.0]);
        assert_eq!((curve.rate(20.0), curve.references()), (5.0 / 8.0, 8.0));
    }

    #[test]
    fn a_period_ends_with_a_share_kept() {
        let mut curve = HitCurve::new(2, 4);
        for position in [0, 5, 5] {
            curve.reference();
            curve.hit(position);
        }
        curve.end_period(0.5);
        assert_eq!((curve.references(), curve.hits_below(4.0), curve.hits_below(8.0)), (1.5, 0.5, 1.5));
        curve.reference();
        assert_eq!(curve.rate(8.0), 0.6);
        curve.end_period(0.0);
        assert_eq!((curve.references(), curve.hits_below(8.0)), (0.0, 0.0));
    }
}
