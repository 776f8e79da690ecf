//! Which pages are hot: a counter of two bits for each, and measurements of the group of hot pages.
//!
//! A page counts up if it is overwritten while it is young: in the hot group, or in group 1 at an age below the
//! lifetime of blocks of the hot group. It counts down if it is overwritten later, or copied. It is hot at 3.
//!
//! A copy lowers the counter only when the page is overwritten: its group then shows the number of copies.

use serde::{Deserialize, Serialize};

use crate::save::Table;

/// The counter of a hot page: the largest of two bits.
const HOT: u8 = 3;
/// Subtracted from the counter of a page that was copied from the hot group, and from another one.
const LEFT_HOT: u8 = 2;
const COPIED: u8 = 1;
/// Windows over which the figures of the hot group are averaged.
const WINDOWS: f64 = 10.0;

/// Measured figures of the hot group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotGroup {
    /// Share of the host's writes that go to it.
    pub traffic: f64,
    /// Share of pages that are valid when its blocks are collected.
    pub valid: f64,
    /// Its full blocks.
    pub blocks: f64,
}

/// Place of a page that is overwritten.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its group.
    pub group: usize,
    /// Pages written since its block was full.
    pub age: u64,
}

/// The counters, and the window that is being measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct HotFilter {
    /// Four pages a byte.
    counters: Table<u8>,
    /// Mean lifetime of blocks of the hot group, in pages written.
    lifetime: u64,
    /// Pages to be overwritten in this window.
    left: u64,
    writes: u64,
    hot_writes: u64,
    /// Blocks of the hot group that were collected, the sum of their ages, and their valid pages.
    blocks: u64,
    ages: u64,
    valid_pages: u64,
    measured: Option<HotGroup>,
}

impl HotFilter {
    /// No page is hot. Counting starts after as many pages were overwritten as the log has.
    pub fn new(logical_pages: u64) -> Self {
        Self {
            counters: vec![0; logical_pages.div_ceil(4) as usize].into(),
            lifetime: logical_pages,
            left: 2 * logical_pages,
            writes: 0,
            hot_writes: 0,
            blocks: 0,
            ages: 0,
            valid_pages: 0,
            measured: None,
        }
    }

    /// The hot group, if any of its blocks was collected.
    pub fn measured(&self) -> Option<HotGroup> {
        self.measured
    }

    /// Counts a page that is written. Returns whether it is hot.
    #[inline]
    pub fn written(&mut self, logical: u32, from: Option<Place>) -> bool {
        let (byte, shift) = (logical as usize / 4, logical % 4 * 2);
        let mut counter = self.counters[byte] >> shift & HOT;
        if let Some(place) = from {
            self.left = self.left.saturating_sub(1);
            // The window before the first is not counted: it overwrites pages that were written when the device was
            // filled.
            if self.measured.is_some() || self.left < self.lifetime {
                counter = self.counted(counter, place);
                self.counters[byte] = self.counters[byte] & !(HOT << shift) | counter << shift;
            }
        }
        let is_hot = counter == HOT;
        self.writes += 1;
        self.hot_writes += u64::from(is_hot);
        is_hot
    }

    /// The counter of a page that is overwritten.
    fn counted(&self, counter: u8, place: Place) -> u8 {
        let was_hot = counter == HOT;
        let left_hot = if was_hot && place.group > 0 { LEFT_HOT } else { 0 };
        let copied = if place.group > 1 { COPIED } else { 0 };
        let counter = counter.saturating_sub(left_hot + copied);
        match place.group {
            0 => (counter + 1).min(HOT),
            1 if place.age <= self.lifetime => (counter + 1).min(HOT),
            1 => counter.saturating_sub(1),
            _ => counter,
        }
    }

    /// Counts a collected block of the hot group; `blocks` other blocks of it are full.
    pub fn collected(&mut self, age: u64, valid_pages: u32, pages_per_block: u32, blocks: u32) {
        self.blocks += 1;
        self.ages += age;
        self.valid_pages += u64::from(valid_pages);
        if self.left == 0 {
            self.end_window(pages_per_block, blocks);
        }
    }

    fn end_window(&mut self, pages_per_block: u32, blocks: u32) {
        if self.hot_writes > 0 {
            let valid = self.valid_pages as f64 / (self.blocks * u64::from(pages_per_block)) as f64;
            let traffic = self.hot_writes as f64 / self.writes as f64;
            let now = HotGroup { traffic, valid, blocks: f64::from(blocks) };
            let blend = |mean: f64, now: f64| mean + (now - mean) / WINDOWS;
            self.measured = Some(self.measured.map_or(now, |mean| HotGroup {
                traffic: blend(mean.traffic, now.traffic),
                valid: blend(mean.valid, now.valid),
                blocks: blend(mean.blocks, now.blocks),
            }));
        }
        let lifetime = self.ages / self.blocks;
        let longest = self.lifetime.saturating_mul(2);
        self.lifetime = if lifetime >= longest { self.lifetime / 2 * 3 } else { (lifetime + self.lifetime) / 2 }.max(1);
        self.left = self.lifetime;
        (self.writes, self.hot_writes, self.blocks, self.ages, self.valid_pages) = (0, 0, 0, 0, 0);
    }

    /// Bytes of the counters.
    pub fn metadata_bytes(&self) -> u64 {
        self.counters.len() as u64
    }

    /// Checks its figures for a log of `logical_pages` pages whose blocks have `pages_per_block` pages. `now` is the log's clock: pages
    /// written so far.
    ///
    /// # Errors
    /// A figure that is impossible.
    pub fn check(&self, logical_pages: usize, pages_per_block: u32, now: u64) -> Result<(), String> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let is_sound = self.measured.is_none_or(|hot| {
            share(hot.traffic) && share(hot.valid) && (0.0..=f64::from(u32::MAX)).contains(&hot.blocks)
        });
        let most = self.blocks.checked_mul(u64::from(pages_per_block));
        let fits = most.is_some_and(|most| self.valid_pages <= most) && self.hot_writes <= self.writes;
        let ages = self.blocks.checked_mul(now).is_some_and(|most| self.ages <= most);
        let lifetime = self.lifetime >= 1 && self.lifetime <= 1 << 62 && self.writes <= now;
        if !(is_sound && fits && ages && lifetime) || self.counters.len() != logical_pages.div_ceil(4) {
            return Err("the figures of hot pages contradict each other".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that counts, for 100 pages.
    fn filter() -> HotFilter {
        HotFilter { left: 50, ..HotFilter::new(100) }
    }

    fn at(group: usize, age: u64) -> Option<Place> {
        Some(Place { group, age })
    }

    #[test]
    fn a_page_is_hot_after_three_short_lives_and_not_after_a_copy() {
        let mut filter = filter();
        assert_eq!([5, 100, 100].map(|age| filter.written(7, at(1, age))), [false, false, true]);
        assert!(filter.written(7, at(0, 1000)), "the hot group keeps it, whatever its age");
        assert!(!filter.written(7, at(1, 5)), "it was copied from the hot group: 3 - 2 + 1");
        assert!(filter.written(7, at(1, 5)));
        assert!(!filter.written(7, at(2, 5)), "it was copied twice");
        assert!(!filter.written(6, at(1, 5)), "its neighbours have counters of their own");
    }

    #[test]
    fn a_long_life_counts_down() {
        let mut filter = filter();
        assert_eq!([5, 101, 5, 5, 5].map(|age| filter.written(7, at(1, age))), [false, false, false, false, true]);
    }

    #[test]
    fn the_first_overwriting_of_all_pages_is_not_counted() {
        let mut filter = HotFilter::new(100);
        assert!((0..100).all(|_| !filter.written(7, at(1, 1))));
        assert_eq!([1, 1, 1].map(|age| filter.written(7, at(1, age))), [false, false, true]);
    }

    #[test]
    fn the_lifetime_follows_that_of_hot_blocks() {
        let mut filter = HotFilter { left: 2, ..filter() };
        (0..3).for_each(|_| _ = filter.written(7, at(0, 1)));
        filter.collected(50, 2, 8, 3);
        assert_eq!(filter.lifetime, 75, "the mean of 100 and 50");
        assert_eq!(filter.measured(), Some(HotGroup { traffic: 1.0 / 3.0, valid: 0.25, blocks: 3.0 }));
        filter.left = 0;
        filter.collected(1000, 0, 8, 3);
        assert_eq!(filter.lifetime, 111, "half as long again at most");
        filter.check(100, 8, 10_000).unwrap();
        assert!(filter.check(104, 8, 10_000).is_err());
    }
}
