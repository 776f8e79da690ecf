//! The size threshold between small and large writes: two clusters of request sizes (Chang 2010 §3.2, Algorithm 1).
//!
//! Writes are counted by size, rounded to a power of two. The best split of the histogram into two groups, each with a
//! centroid, separates small writes, which are taken for hot data, from large ones; the threshold is the centroid of
//! the small ones.
//!
//! Departures: the printed objective measures distances to the split instead of the centroid, so that it is 0 where
//! split and centroids coincide; here each count weighs its distance to its group's centroid. The printed iteration,
//! which starts at 0 and alternates, sticks at a threshold of one or two sectors on bimodal histograms like those of the
//! paper, which reports eight; [`Search::Exhaustive`] tries all ten splits, [`Search::Printed`] is the iteration.

use serde::{Deserialize, Serialize};

crate::choices! {
    /// How the threshold is searched.
    pub enum Search {
        /// The best of all splits.
        Exhaustive = "exhaustive",
        /// Alternating steps from 0, as printed.
        Printed = "printed",
        /// No clusters: slightly more than the mean size of the period's writes, as in the CFTL of WLAFTL's laboratory.
        Mean = "mean",
        /// No search: the initial threshold stays.
        Fixed = "fixed",
    }
}

/// By how much the largest small write is above the mean, in sectors (the laboratory's CFTL).
const ABOVE_MEAN_SECTORS: u32 = 3;

/// Counters: sizes of 1 to 1,024 sectors.
pub const SIZES: usize = 11;

/// The exponent of the nearest power of two, by ratio, within the counters.
#[inline]
pub fn size_class(sectors: u32) -> usize {
    // log2(n) rounded is the integer part of log2(2 n^2) / 2.
    let doubled_square = 2 * u64::from(sectors.min(1024)).pow(2);
    doubled_square.max(1).ilog2() as usize / 2
}

/// Number of writes of each size (`c`), and the resulting threshold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SizeHistogram {
    counts: [u64; SIZES],
    /// Sum of the sizes since the last search, in sectors.
    sectors: u64,
    threshold: u32,
    writes_since_search: u32,
    #[serde(with = "crate::save::fixed")]
    period: u32,
    #[serde(with = "crate::save::fixed")]
    halving: bool,
    #[serde(with = "crate::save::fixed")]
    search: Search,
}

impl SizeHistogram {
    /// An empty histogram: the threshold stays at `threshold` sectors until `period` writes have come.
    pub fn new(search: Search, threshold: u32, period: u32, halving: bool) -> Self {
        Self { counts: [0; SIZES], sectors: 0, threshold, writes_since_search: 0, period, halving, search }
    }

    /// Counts a write; once in a period the threshold is searched again.
    #[inline]
    pub fn record(&mut self, sectors: u32) {
        self.counts[size_class(sectors)] += 1;
        self.sectors = self.sectors.saturating_add(u64::from(sectors));
        self.writes_since_search += 1;
        if self.writes_since_search >= self.period {
            self.writes_since_search = 0;
            self.adapt();
        }
    }

    /// Largest small write, in sectors.
    #[inline]
    pub fn threshold_sectors(&self) -> u32 {
        self.threshold
    }

    #[cold]
    fn adapt(&mut self) {
        let sectors = std::mem::take(&mut self.sectors);
        let small = match self.search {
            Search::Exhaustive => exhaustive(&self.counts).map(|exponent| 1 << exponent),
            Search::Printed => Some(1 << printed(&self.counts)),
            Search::Mean => Some((sectors / u64::from(self.period)).min(1024) as u32 + ABOVE_MEAN_SECTORS),
            Search::Fixed => None,
        };
        if let Some(threshold) = small {
            self.threshold = threshold;
        }
        if self.halving {
            for count in &mut self.counts {
                *count /= 2;
            }
        }
    }
}

/// Sum over a group of the counts' distances to a centroid.
fn spread(counts: &[u64; SIZES], group: std::ops::Range<usize>, centroid: usize) -> u64 {
    group.map(|size| counts[size] * size.abs_diff(centroid) as u64).sum()
}

/// The lowest centroid of a group with the least spread.
fn centroid(counts: &[u64; SIZES], group: std::ops::Range<usize>) -> (u64, usize) {
    let spreads = (0..SIZES).map(|centroid| (spread(counts, group.clone(), centroid), centroid));
    spreads.min().unwrap_or((0, 0))
}

/// The centroid of small writes at the best split, the lowest of equals. `None` if there is nothing to split: all
/// writes have one size.
pub fn exhaustive(counts: &[u64; SIZES]) -> Option<usize> {
    let total: u64 = counts.iter().sum();
    let mut small = 0;
    let mut best: Option<(u64, usize)> = None;
    for split in 1..SIZES {
        small += counts[split - 1];
        if small == 0 || small == total {
            continue;
        }
        let (below, exponent) = centroid(counts, 0..split);
        let (above, _) = centroid(counts, split..SIZES);
        if best.is_none_or(|(least, _)| below + above < least) {
            best = Some((below + above, exponent));
        }
    }
    best.map(|(_, exponent)| exponent)
}

/// The centroid at which the alternation of Algorithm 1 stops, with the corrected objective.
pub fn printed(counts: &[u64; SIZES]) -> usize {
    let mut split = 1;
    loop {
        let (below, small) = centroid(counts, 0..split);
        let (above, large) = centroid(counts, split..SIZES);
        let of_split = |split| (spread(counts, 0..split, small) + spread(counts, split..SIZES, large), split);
        let (least, next) = (1..SIZES).map(of_split).min().unwrap_or((0, split));
        if least >= below + above {
            return small;
        }
        split = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peaks at 8 and 128 sectors, as NTFS writes in the paper's Fig. 7a.
    const NTFS: [u64; SIZES] = [40, 60, 90, 800, 110, 60, 80, 420, 10, 5, 2];
    /// Peaks at 8 and 256 sectors, as ext3.
    const EXT3: [u64; SIZES] = [20, 30, 70, 1100, 120, 60, 50, 40, 330, 10, 5];

    #[test]
    fn the_mean_is_of_the_writes_of_the_period() {
        let mut sizes = SizeHistogram::new(Search::Mean, 8, 4, false);
        [8, 16, 8, 8].into_iter().for_each(|sectors| sizes.record(sectors));
        assert_eq!(sizes.threshold_sectors(), 10 + 3);
        [2, 2, 2].into_iter().for_each(|sectors| sizes.record(sectors));
        assert_eq!(sizes.threshold_sectors(), 13);
        sizes.record(2);
        assert_eq!(sizes.threshold_sectors(), 2 + 3);
    }

    #[test]
    fn bimodal_histograms_give_eight_sectors() {
        assert_eq!((exhaustive(&NTFS), exhaustive(&EXT3)), (Some(3), Some(3)));
    }

    #[test]
    fn the_printed_iteration_sticks_at_the_smallest_sizes() {
        assert_eq!((printed(&NTFS), printed(&EXT3)), (1, 1));
        let more_of_one = |mut counts: [u64; SIZES]| {
            counts.swap(0, 1);
            counts
        };
        assert_eq!((printed(&more_of_one(NTFS)), printed(&more_of_one(EXT3))), (0, 0));
    }

    #[test]
    fn sizes_round_to_the_nearest_power_by_ratio() {
        for (sectors, class) in
            [(1, 0), (2, 1), (3, 2), (5, 2), (6, 3), (8, 3), (11, 3), (12, 4), (724, 9), (725, 10), (5000, 10)]
        {
            assert_eq!(size_class(sectors), class, "{sectors}");
        }
    }

    #[test]
    fn one_size_alone_leaves_the_threshold() {
        let mut counts = [0; SIZES];
        assert_eq!(exhaustive(&counts), None);
        counts[7] = 1000;
        assert_eq!(exhaustive(&counts), None);
        let mut histogram = SizeHistogram::new(Search::Exhaustive, 8, 10, false);
        (0..100).for_each(|_| histogram.record(128));
        assert_eq!(histogram.threshold_sectors(), 8);
    }

    #[test]
    fn period_halving_and_search_matter() {
        let run = |search, period, halving| {
            let mut histogram = SizeHistogram::new(search, 8, period, halving);
            for step in 0..400 {
                let small = if step < 200 { 4 } else { 16 };
                histogram.record(if step % 4 == 0 { 512 } else { small });
            }
            histogram.threshold_sectors()
        };
        assert_eq!(run(Search::Exhaustive, 100, true), 16, "halving follows the change");
        assert_eq!(run(Search::Exhaustive, 100, false), 4, "all writes together were as often of 4 sectors as of 16");
        assert_eq!(run(Search::Exhaustive, 1000, false), 8, "no period has ended");
        assert_eq!(run(Search::Fixed, 100, true), 8);
        assert_eq!(run(Search::Printed, 100, false), 1);
    }
}
