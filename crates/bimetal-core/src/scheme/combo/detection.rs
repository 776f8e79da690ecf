//! Hot data in the slow region: units or pages that hosts often write there. Their next writes go to the log, whatever
//! their size (`ComboFTL` 2010 §5.2).
//!
//! No data are moved: "following writes" of a hot unit are redirected. Writes by demotion to the slow region do not
//! count as heat, because they come from cold data.

use serde::{Deserialize, Serialize};

use crate::save::Table;

crate::choices! {
    /// Granularity of hot data.
    pub enum Granularity {
        /// Units of several logical blocks (hot unit detection).
        Unit = "unit",
        /// Pages (hot page detection).
        Page = "page",
        /// Nothing: there is no detection.
        None = "none",
    }
}

crate::choices! {
    /// Counting of hits and misses of hot units.
    pub enum HotHits {
        /// Units that became hot: hit if they were updated in the log before they cooled down, otherwise missed.
        Units = "units",
        /// Their pages in the log: hit at each update there, missed if they are demoted.
        Pages = "pages",
    }
}

/// Settings of the detection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DetectionSettings {
    /// Granularity of hot data.
    pub granularity: Granularity,
    /// Counting of hits and misses of hot units.
    pub hits: HotHits,
    /// Hit ratio below which fewer units are taken for hot.
    pub low: f64,
    /// Hit ratio above which more units are taken for hot.
    pub high: f64,
}

/// The hotness threshold starts at twice the pages of a unit (the count of one rewrite of the whole unit), changes by a
/// quarter, and stays within this factor below and above a unit's pages.
const THRESHOLD_RANGE: u32 = 8;

/// Writes that a page's counter must exceed.
const HOT_PAGE_WRITES: u32 = 1;

/// Counters of two bits for 32 pages.
const PAGES_PER_WORD: u32 = 32;

/// Heat of a unit of the slow region.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct UnitHeat {
    /// Pages written there by the host; pages that replace a valid one count twice (`N_count`). Halved periodically.
    count: u32,
    /// Mapping units of it that are in the log.
    resident: u32,
    /// Whether its writes go to the log.
    is_hot: bool,
    /// Whether it was updated in the log since it became hot.
    is_hit: bool,
}

/// The detection's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct Detection {
    #[serde(with = "crate::save::fixed")]
    settings: DetectionSettings,
    /// Mapping units that share a decision.
    #[serde(with = "crate::save::fixed")]
    group: u32,
    #[serde(with = "crate::save::sized")]
    units: Vec<UnitHeat>,
    /// Two bits for each page: writes there by the host.
    pages: Table<u64>,
    #[serde(with = "crate::save::fixed")]
    unit_pages: u32,
    /// The hotness threshold of units: δ.
    threshold: u32,
    /// Hits and misses of hot units in this period.
    hits: u32,
    misses: u32,
    /// Units found hot so far, and the number of them that were hit.
    declared: u64,
    hit: u64,
}

impl Detection {
    /// No unit is hot. The slow region has `pages` pages; a unit has `unit_pages` of them, with `page_units` mapping
    /// units each.
    pub fn new(settings: DetectionSettings, unit_pages: u32, pages: u32, page_units: u32) -> Self {
        let (group_pages, units, words) = match settings.granularity {
            Granularity::Unit => (unit_pages, pages.div_ceil(unit_pages), 0),
            Granularity::Page => (1, 0, pages.div_ceil(PAGES_PER_WORD)),
            // All decisions are the same: one is enough.
            Granularity::None => (pages, 0, 0),
        };
        Self {
            settings,
            group: group_pages * page_units,
            units: vec![UnitHeat::default(); units as usize],
            pages: vec![0; words as usize].into(),
            unit_pages,
            threshold: unit_pages.saturating_mul(2),
            hits: 0,
            misses: 0,
            declared: 0,
            hit: 0,
        }
    }

    /// Mapping units that share a decision; groups begin at multiples of this number.
    #[inline]
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Whether writes to this group of mapping units go to the log.
    #[inline]
    pub fn is_hot(&self, group: u32) -> bool {
        match self.settings.granularity {
            Granularity::Unit => self.units[group as usize].is_hot,
            Granularity::Page => self.page_count(group) > u64::from(HOT_PAGE_WRITES),
            Granularity::None => false,
        }
    }

    /// Counts a page that the host writes to the slow region; `replaces`: it replaces a valid one there.
    #[inline]
    pub fn note_slow_write(&mut self, page: u32, replaces: bool) {
        match self.settings.granularity {
            Granularity::Unit => {
                let unit = &mut self.units[(page / self.unit_pages) as usize];
                unit.count = unit.count.saturating_add(1 + u32::from(replaces));
                if unit.count > self.threshold && !unit.is_hot {
                    (unit.is_hot, unit.is_hit) = (true, false);
                    self.declared += 1;
                }
            }
            Granularity::Page => {
                let count = self.page_count(page);
                if count < 3 {
                    self.pages[(page / PAGES_PER_WORD) as usize] += 1 << (2 * (page % PAGES_PER_WORD));
                }
            }
            Granularity::None => {}
        }
    }

    fn page_count(&self, page: u32) -> u64 {
        self.pages[(page / PAGES_PER_WORD) as usize] >> (2 * (page % PAGES_PER_WORD)) & 3
    }

    /// Whether the detection needs to know which mapping units are in the log.
    #[inline]
    pub fn follows_log(&self) -> bool {
        self.settings.granularity == Granularity::Unit
    }

    /// Counts `written` mapping units of a unit written to the log; `updated` of them were in it before.
    #[inline]
    pub fn note_log_write(&mut self, unit: u32, written: u32, updated: u32) {
        let unit = &mut self.units[(unit / self.group) as usize];
        unit.resident += written - updated;
        if unit.is_hot && updated > 0 {
            let is_first = !unit.is_hit;
            unit.is_hit = true;
            self.hit += u64::from(is_first);
            self.hits = self.hits.saturating_add(match self.settings.hits {
                HotHits::Units => u32::from(is_first),
                HotHits::Pages => updated,
            });
        }
    }

    /// Counts `count` mapping units of a unit that have left the log.
    #[inline]
    pub fn note_left(&mut self, unit: u32, count: u32) {
        self.units[(unit / self.group) as usize].resident -= count;
    }

    /// Counts `count` mapping units of a unit demoted to the slow region. A hot unit without mapping units in the log
    /// is no longer hot.
    #[inline]
    pub fn note_demoted(&mut self, unit: u32, count: u32) {
        let unit = &mut self.units[(unit / self.group) as usize];
        unit.resident -= count;
        if !unit.is_hot {
            return;
        }
        unit.is_hot = unit.resident > 0;
        self.misses = self.misses.saturating_add(match self.settings.hits {
            HotHits::Units => u32::from(!unit.is_hot && !unit.is_hit),
            HotHits::Pages => count,
        });
    }

    /// Ends a decay period: only the recent past counts.
    pub fn decay(&mut self) {
        for unit in &mut self.units {
            unit.count /= 2;
            if unit.is_hot && unit.count < self.threshold / 2 {
                unit.is_hot = false;
                // Pages are judged when they leave the log.
                self.misses += u32::from(self.settings.hits == HotHits::Units && !unit.is_hit);
            }
        }
        for word in self.pages.as_mut_slice() {
            *word = *word >> 1 & 0x5555_5555_5555_5555;
        }
    }

    /// Ends an adjustment period: the threshold follows the hit ratio.
    pub fn adapt(&mut self) {
        let judged = self.hits + self.misses;
        if judged > 0 {
            let ratio = f64::from(self.hits) / f64::from(judged);
            let step = (self.threshold / 4).max(1);
            if ratio < self.settings.low {
                self.threshold = (self.threshold + step).min(self.unit_pages.saturating_mul(THRESHOLD_RANGE));
            } else if ratio > self.settings.high {
                self.threshold = (self.threshold - step).max(self.unit_pages / THRESHOLD_RANGE).max(1);
            }
        }
        (self.hits, self.misses) = (0, 0);
    }

    /// Threshold of a unit's or a page's counter, if there is detection.
    pub fn threshold(&self) -> Option<u32> {
        match self.settings.granularity {
            Granularity::Unit => Some(self.threshold),
            Granularity::Page => Some(HOT_PAGE_WRITES),
            Granularity::None => None,
        }
    }

    /// Units found hot so far, and the number of them that were updated in the log before they left it.
    pub fn totals(&self) -> (u64, u64) {
        (self.declared, self.hit)
    }

    /// Bytes of the counters.
    pub fn metadata_bytes(&self) -> u64 {
        (self.units.len() * 4 + self.pages.len() * 8) as u64
    }

    /// Checks the number of mapping units in the log, as `resident` counts it from a range of them.
    ///
    /// # Errors
    /// The first unit with another number.
    pub fn check(&self, resident: impl Fn(std::ops::Range<u32>) -> u32) -> Result<(), String> {
        for (index, unit) in (0..).zip(&self.units) {
            let counted = resident(index * self.group..(index + 1) * self.group);
            if counted != unit.resident {
                return Err(format!(
                    "unit {index} has {counted} mapping units in the log and counts {}",
                    unit.resident
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detection(granularity: Granularity) -> Detection {
        judged(granularity, HotHits::Units)
    }

    fn judged(granularity: Granularity, hits: HotHits) -> Detection {
        Detection::new(DetectionSettings { granularity, hits, low: 0.3, high: 0.7 }, 8, 80, 2)
    }

    #[test]
    fn a_unit_is_hot_once_it_is_written_more_than_the_threshold() {
        let mut detection = detection(Granularity::Unit);
        assert_eq!((detection.group(), detection.threshold()), (16, Some(16)));
        // All of unit 1 once more: equal to the threshold.
        for page in 8..16 {
            detection.note_slow_write(page, true);
            assert!(!detection.is_hot(1));
        }
        detection.note_slow_write(15, true);
        assert!(detection.is_hot(1) && !detection.is_hot(0));
    }

    fn heat(detection: &mut Detection, unit: u32) {
        while !detection.is_hot(unit) {
            detection.note_slow_write(unit * 8, true);
        }
    }

    #[test]
    fn a_unit_cools_down_with_its_last_data_in_the_log_or_with_time() {
        let mut detection = detection(Granularity::Unit);
        heat(&mut detection, 0);
        detection.note_log_write(3, 3, 0);
        detection.note_demoted(3, 2);
        assert!(detection.is_hot(0));
        detection.note_demoted(3, 1);
        assert!(!detection.is_hot(0));
        heat(&mut detection, 2);
        detection.decay();
        assert!(detection.is_hot(2), "9 of 18");
        detection.decay();
        assert!(!detection.is_hot(2));
        assert_eq!(detection.misses, 2);
    }

    #[test]
    fn the_threshold_follows_the_hit_ratio() {
        let mut detection = detection(Granularity::Unit);
        for unit in 0..10 {
            heat(&mut detection, unit);
            detection.note_log_write(unit * 16, 1, 0);
            // Three of ten are updated in the log: one hit each, whatever the number of updates.
            (0..2).for_each(|_| detection.note_log_write(unit * 16, 1, u32::from(unit < 3)));
            detection.note_left(unit * 16, if unit < 3 { 0 } else { 2 });
            detection.note_demoted(unit * 16, 1);
        }
        assert_eq!((detection.hits, detection.misses, detection.totals()), (3, 7, (10, 3)));
        detection.adapt();
        assert_eq!(detection.threshold, 16, "neither too low nor quite high");
        let after = |hits, misses, threshold| {
            let mut changed = Detection { hits, misses, threshold, ..self::detection(Granularity::Unit) };
            changed.adapt();
            changed.threshold
        };
        assert_eq!([after(0, 1, 8), after(3, 1, 8), after(0, 0, 8)], [10, 6, 8]);
        assert_eq!([after(0, 1, 64), after(1, 0, 1)], [64, 1]);
    }

    #[test]
    fn hits_may_be_counted_by_page() {
        let mut detection = judged(Granularity::Unit, HotHits::Pages);
        heat(&mut detection, 0);
        detection.note_log_write(0, 6, 0);
        (0..2).for_each(|_| detection.note_log_write(0, 2, 2));
        detection.note_demoted(0, 4);
        assert_eq!((detection.hits, detection.misses, detection.totals()), (4, 4, (1, 1)), "the unit was hit once");
        detection.note_demoted(0, 2);
        assert_eq!((detection.misses, detection.is_hot(0)), (6, false));
        // A unit that is no longer hot is not judged.
        detection.note_log_write(0, 2, 0);
        detection.note_demoted(0, 2);
        heat(&mut detection, 1);
        (0..2).for_each(|_| detection.decay());
        assert_eq!((detection.hits, detection.misses, detection.is_hot(1)), (4, 6, false));
    }

    #[test]
    fn a_page_is_hot_from_its_third_write_on() {
        let mut detection = detection(Granularity::Page);
        assert_eq!(detection.group(), 2);
        detection.note_slow_write(33, false);
        assert!(!detection.is_hot(33));
        detection.note_slow_write(33, true);
        assert!(detection.is_hot(33) && !detection.is_hot(32) && !detection.is_hot(34));
        (0..5).for_each(|_| detection.note_slow_write(33, true));
        detection.decay();
        assert!(!detection.is_hot(33), "3 is halved to 1");
        assert!(!detection.is_hot(34), "and nothing runs over");
    }
}
