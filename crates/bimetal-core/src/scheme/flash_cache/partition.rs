//! The partition resizer: the pages of the flash for reads, for writes, and as spare area.

use serde::{Deserialize, Serialize};

use super::replacer::Kind;
use super::tracker::{Rates, WorkloadTracker};
use crate::model::opfcl::{CacheCost, CacheLoad, Partition};

/// Pages of both caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sizes {
    /// Of the read cache: clean pages.
    read: u32,
    /// Of the write cache: dirty pages.
    write: u32,
}

/// The division of pages, and its changes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Resizer {
    #[serde(with = "crate::save::fixed")]
    cost: CacheCost,
    /// Whether it chooses `u`, not only `r`.
    #[serde(with = "crate::save::fixed")]
    adapts_utilisation: bool,
    /// Steps of `u` and of `r`.
    #[serde(with = "crate::save::fixed")]
    steps: u32,
    /// Pages of both caches that the flash can hold.
    #[serde(with = "crate::save::fixed")]
    most: u32,
    /// Least number of pages of either cache.
    #[serde(with = "crate::save::fixed")]
    least: u32,
    /// Largest change of a limit with a request, in pages.
    #[serde(with = "crate::save::fixed")]
    stride: u32,
    chosen: Partition,
    limits: Sizes,
    targets: Sizes,
}

/// Constants of the resizer.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Pages of both caches that the flash can hold.
    pub most: u32,
    /// Least number of pages of either cache.
    pub least: u32,
    /// Largest change of a limit with a request, in pages.
    pub stride: u32,
    /// Steps of `u` and of `r`: the size of the flash divided by that of a segment.
    pub steps: u32,
}

impl Resizer {
    /// Initial caches: the share `utilisation` of the flash, `read_share` of it for reads.
    pub fn new(cost: CacheCost, adapts_utilisation: bool, bounds: Bounds, utilisation: f64, read_share: f64) -> Self {
        let Bounds { most, least, stride, steps } = bounds;
        let sizes = Sizes { read: 0, write: 0 };
        let chosen = Partition { utilisation, read_share, access_us: 0.0 };
        let mut resizer =
            Self { cost, adapts_utilisation, steps, most, least, stride, chosen, limits: sizes, targets: sizes };
        resizer.aim();
        resizer.limits = resizer.targets;
        resizer
    }

    /// Pages of a kind that may be cached now; both kinds together never exceed the pages that the flash can hold.
    #[inline]
    pub fn limit(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Clean => self.limits.read,
            Kind::Dirty => self.limits.write,
        }
    }

    /// The last choice, and its expected cost per access.
    pub fn chosen(&self) -> Partition {
        self.chosen
    }

    /// Chooses the sizes again, from the references tracked in the ending period.
    pub fn choose(&mut self, tracker: &WorkloadTracker, rates: Rates) {
        let Some(write_cache_share) = tracker.write_cache_share(rates) else { return };
        let load = CacheLoad {
            read_hits: |pages| tracker.read_hits(pages),
            write_hits: |pages| tracker.write_hits(pages),
            read_share_of_write_hits: tracker.read_share_of_write_hits(f64::from(self.targets.write)),
            write_cache_share,
        };
        self.chosen = match self.adapts_utilisation {
            false => self.cost.optimum_at(self.chosen.utilisation, &load, self.steps),
            true => self.cost.optimum(&load, self.steps, self.steps),
        };
        self.aim();
    }

    /// Sets the targets to the choice, within the bounds.
    fn aim(&mut self) {
        let pages = self.chosen.utilisation * self.cost.flash_pages;
        let both = (pages as u32).clamp(2 * self.least, self.most);
        let read = (self.chosen.read_share * f64::from(both)) as u32;
        let read = read.clamp(self.least, both - self.least);
        self.targets = Sizes { read, write: both - read };
    }

    /// Moves the limits towards the targets. A falling limit moves at full stride, so that the sum never exceeds the
    /// larger of the old and the new sum.
    #[inline]
    pub fn advance(&mut self) {
        if self.limits != self.targets {
            self.limits.read = towards(self.limits.read, self.targets.read, self.stride);
            self.limits.write = towards(self.limits.write, self.targets.write, self.stride);
        }
    }

    /// Checks that the limits are within the bounds.
    ///
    /// # Errors
    /// Limits out of bounds.
    pub fn check(&self) -> Result<(), String> {
        for Sizes { read, write } in [self.limits, self.targets] {
            if read < self.least || write < self.least || u64::from(read) + u64::from(write) > u64::from(self.most) {
                return Err(format!(
                    "{read} and {write} pages are not within {} each and {} together",
                    self.least, self.most
                ));
            }
        }
        Ok(())
    }
}

fn towards(limit: u32, target: u32, stride: u32) -> u32 {
    if limit < target { target.min(limit + stride) } else { target.max(limit.saturating_sub(stride)) }
}

#[cfg(test)]
mod tests {
    use super::super::tracker::ReadHits;
    use super::*;
    use crate::model::cleaning::{CleaningCost, FlashCosts, VictimUtilisation};

    fn resizer(adapts_utilisation: bool) -> Resizer {
        let costs =
            FlashCosts { read_us: 125.0, program_us: 300.0, copy_us: 225.0, erase_us: 1500.0, pages_per_block: 64 };
        let flash = CleaningCost::new(costs, VictimUtilisation::Fifo);
        let cost = CacheCost { flash, disk_read_us: 4557.0, disk_write_us: 4957.0, flash_pages: 1000.0 };
        let bounds = Bounds { most: 960, least: 10, stride: 100, steps: 16 };
        Resizer::new(cost, adapts_utilisation, bounds, 0.8, 0.5)
    }

    /// Reads of 50 pages in turn, writes to 600.
    fn tracker() -> WorkloadTracker {
        let mut tracker = WorkloadTracker::new(1000, 16, 1.0);
        for use_ in 0..10_000 {
            tracker.read(use_ % 50);
            tracker.write(100 + use_ % 600, ReadHits::Reads);
        }
        tracker
    }

    #[test]
    fn sizes_follow_the_load() {
        let mut resizer = resizer(true);
        assert_eq!((resizer.limit(Kind::Clean), resizer.limit(Kind::Dirty)), (400, 400));
        resizer.choose(&tracker(), Rates::Total);
        // 650 pages are used. All pages within a segment of 63 are assumed to be worth the same.
        let targets = resizer.targets;
        assert_eq!((resizer.chosen().utilisation, targets.read + targets.write), (0.75, 750));
        assert!(targets.read >= 63 && targets.write >= 600, "{targets:?}");
        let mut last = 800;
        while resizer.limits != targets {
            resizer.advance();
            resizer.check().unwrap();
            let both = resizer.limits.read + resizer.limits.write;
            assert!(both <= last, "the sum falls from what it was to what it will be");
            last = both;
        }
        assert_eq!(resizer.limits, targets);
    }

    #[test]
    fn a_given_utilisation_stays() {
        let mut resizer = resizer(false);
        resizer.choose(&tracker(), Rates::Total);
        assert_eq!((resizer.chosen().utilisation, resizer.targets.read + resizer.targets.write), (0.8, 800));
        assert!(resizer.targets.read < 400);
    }

    #[test]
    fn either_cache_keeps_a_group_and_both_fit_in() {
        let mut resizer = resizer(true);
        let mut only_reads = WorkloadTracker::new(1000, 16, 1.0);
        (0..10_000).for_each(|use_| only_reads.read(use_ % 930));
        resizer.choose(&only_reads, Rates::Total);
        assert_eq!((resizer.chosen().read_share, resizer.targets.write), (1.0, 10));
        assert!(resizer.targets.read + 10 <= 960);
        // A period of sequential requests gives no information: all sizes stay.
        let before = resizer.targets;
        resizer.choose(&WorkloadTracker::new(1000, 16, 1.0), Rates::Total);
        assert_eq!(resizer.targets, before);
    }
}
