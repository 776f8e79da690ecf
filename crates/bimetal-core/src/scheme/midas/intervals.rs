//! Lifetimes of pages: the distribution of update intervals, from a sample of the pages.
//!
//! Time is counted in pages that the host writes, intervals in units of a quarter of a block. An epoch is some
//! capacities long. The sample is every `sampling`-th logical page; each of its intervals is counted. The shortest
//! intervals, those within a unit, belong to few and very hot pages that a sample may miss. Therefore all pages are
//! watched in ten units of the epoch, and the share of writes that repeat a page there is assumed for the whole epoch.

use serde::{Deserialize, Serialize};

use crate::save::Table;

/// Units of a block.
pub const UNITS_PER_BLOCK: u32 = 4;
/// Units of the epoch in which all pages are watched.
const WATCHED_UNITS: u64 = 10;
/// Intervals below this many units are counted unit by unit, longer ones in sixteenths of a power of two.
const EXACT: u64 = 64;
const STEPS_LOG2: u32 = 4;
/// Up to 2^32 units.
const CLASSES: usize = EXACT as usize + (32 - EXACT.ilog2() as usize) * (1 << STEPS_LOG2);

/// The class of an interval in units.
fn class(units: u64) -> usize {
    if units < EXACT {
        return units as usize;
    }
    let log2 = units.ilog2();
    let step = (units >> (log2 - STEPS_LOG2)) as usize % (1 << STEPS_LOG2);
    (EXACT as usize + ((log2 - EXACT.ilog2()) << STEPS_LOG2) as usize + step).min(CLASSES - 1)
}

/// The shortest interval of a class, in units.
fn shortest(class: usize) -> f64 {
    let Some(beyond) = class.checked_sub(EXACT as usize) else { return class as f64 };
    let (log2, step) = (EXACT.ilog2() + (beyond >> STEPS_LOG2) as u32, beyond as u64 % (1 << STEPS_LOG2));
    (((1 << STEPS_LOG2) + step) << (log2 - STEPS_LOG2)) as f64
}

/// The intervals measured in this epoch.
#[derive(Debug, Serialize, Deserialize)]
pub struct Intervals {
    /// Distance of the pages in the sample.
    #[serde(with = "crate::save::fixed")]
    sampling: u32,
    #[serde(with = "crate::save::fixed")]
    unit_pages: u32,
    #[serde(with = "crate::save::fixed")]
    logical_pages: u64,
    /// Length of the epoch, and of the longest epoch.
    epoch_pages: u64,
    #[serde(with = "crate::save::fixed")]
    longest_pages: u64,
    /// Pages written in this epoch.
    now: u64,
    /// By watched page: twice the time of its last write in this epoch, from 1; plus one if it was the only one. 0
    /// without a write.
    written: Table<u64>,
    counts: Table<u64>,
    /// Pages written in this unit, if it is watched.
    #[serde(with = "crate::save::list")]
    in_unit: Vec<u32>,
    /// Number of repeated writes of a page within a watched unit.
    again: u64,
    #[serde(skip)]
    current: CurrentUnit,
}

/// The current unit. It follows from the other fields and avoids a division for each page written.
#[derive(Debug, Default)]
struct CurrentUnit {
    /// Pages written in the epoch at the unit's end; 0 if it is not computed yet.
    end: u64,
    /// Whether all pages are watched.
    is_watched: bool,
    /// 2^64 / sampling, rounded up: multiples are found without division (Lemire, Kaser, Kurz 2019).
    reciprocal: u64,
}

impl Intervals {
    /// No measurements yet. Epochs have `epoch_pages` pages, and can become eight times as long.
    pub fn new(logical_pages: u64, pages_per_block: u32, sampling: u32, epoch_pages: u64) -> Self {
        let unit_pages = (pages_per_block / UNITS_PER_BLOCK).max(1);
        // Short enough for the classes, and long enough for the watched units.
        let least = u64::from(unit_pages) * (WATCHED_UNITS + 1);
        let epoch_pages = epoch_pages.max(least);
        Self {
            sampling,
            unit_pages,
            logical_pages,
            epoch_pages,
            longest_pages: 8 * epoch_pages,
            now: 0,
            written: vec![0; logical_pages.div_ceil(u64::from(sampling)) as usize].into(),
            counts: vec![0; CLASSES].into(),
            in_unit: Vec::with_capacity(unit_pages as usize),
            again: 0,
            current: CurrentUnit::default(),
        }
    }

    /// Length of the epoch.
    pub fn epoch_pages(&self) -> u64 {
        self.epoch_pages
    }

    /// Whether the epoch has ended.
    pub fn is_complete(&self) -> bool {
        self.now >= self.epoch_pages
    }

    /// Counts a page that the host writes.
    #[inline]
    pub fn written(&mut self, logical: u32) {
        if self.is_complete() {
            return;
        }
        if self.now >= self.current.end {
            self.begin_unit();
        }
        if self.current.is_watched {
            self.watch(logical);
        }
        self.now += 1;
        if self.is_sampled(logical) {
            let last = &mut self.written[(logical / self.sampling) as usize];
            match *last / 2 {
                0 => *last = self.now * 2 + 1,
                then => {
                    *last = self.now * 2;
                    self.counts[class((self.now - then) / u64::from(self.unit_pages))] += 1;
                }
            }
        }
    }

    /// Begins a unit, or continues it after a restore.
    fn begin_unit(&mut self) {
        let pages = u64::from(self.unit_pages);
        let unit = self.now / pages;
        let spacing = self.epoch_pages / pages / (WATCHED_UNITS + 1);
        let is_watched = unit.is_multiple_of(spacing) && (1..=WATCHED_UNITS).contains(&(unit / spacing));
        if is_watched && self.now == unit * pages {
            self.in_unit.clear();
        }
        let reciprocal = (u64::MAX / u64::from(self.sampling)).wrapping_add(1);
        self.current = CurrentUnit { end: (unit + 1) * pages, is_watched, reciprocal };
    }

    /// Whether a page is in the sample: whether `sampling` divides its number.
    #[inline]
    fn is_sampled(&self, logical: u32) -> bool {
        let reciprocal = self.current.reciprocal;
        reciprocal.wrapping_mul(u64::from(logical)) <= reciprocal.wrapping_sub(1)
    }

    /// Counts a page written in a watched unit.
    fn watch(&mut self, logical: u32) {
        if self.in_unit.contains(&logical) {
            self.again += 1;
        } else {
            self.in_unit.push(logical);
        }
    }

    /// Begins the next epoch; twice as long as this one if `doubled`, up to the longest.
    pub fn begin(&mut self, doubled: bool) {
        if doubled {
            self.epoch_pages = (2 * self.epoch_pages).min(self.longest_pages);
        }
        self.now = 0;
        self.current = CurrentUnit::default();
        self.again = 0;
        self.written.fill(0);
        self.counts.fill(0);
        self.in_unit.clear();
    }

    /// The distribution of intervals in this epoch.
    pub fn distribution(&self) -> Distribution {
        let epoch = self.epoch_pages as f64 / f64::from(self.unit_pages);
        let mut counts = [0.0; CLASSES];
        counts[0] = self.again as f64 * epoch / WATCHED_UNITS as f64 / f64::from(self.sampling);
        for (class, count) in counts.iter_mut().enumerate().skip(1) {
            // The epoch cuts off the first and the last interval of this length of each page.
            let units = shortest(class);
            let cut = (epoch % units + units / 2.0) / epoch;
            *count = self.counts[class] as f64 * (1.0 + cut);
        }
        counts[class(epoch as u64)] += self.written.iter().filter(|&&last| last % 2 == 1).count() as f64;
        Distribution::new(&counts, epoch)
    }

    /// Bytes of its tables.
    pub fn metadata_bytes(&self) -> u64 {
        (self.written.len() + self.counts.len()) as u64 * 8
    }

    /// Checks its times and pages.
    ///
    /// # Errors
    /// A figure that is impossible.
    pub fn check(&self) -> Result<(), String> {
        let is_late = self.written.iter().any(|&last| last / 2 > self.now) || self.now > self.epoch_pages;
        // A longest epoch is eight times the first one: there are four possible lengths.
        let is_length = (0..4).any(|log2| self.epoch_pages << log2 == self.longest_pages);
        let is_unit = self.in_unit.len() <= self.unit_pages as usize
            && self.in_unit.iter().all(|&page| u64::from(page) < self.logical_pages);
        let is_counted = self.counts.iter().all(|&count| count <= self.now) && self.again <= self.now;
        if is_late || !is_length || !is_unit || !is_counted {
            return Err("the figures of update intervals contradict each other".into());
        }
        Ok(())
    }
}

/// The distribution of writes over the time since the last write of their page.
#[derive(Debug)]
pub struct Distribution {
    /// By class: writes with shorter intervals, their integral over time, and the sum of their intervals.
    writes: [f64; CLASSES + 1],
    integrals: [f64; CLASSES + 1],
    sums: [f64; CLASSES + 1],
    /// Units of the epoch.
    pub epoch: f64,
}

impl Distribution {
    fn new(counts: &[f64; CLASSES], epoch: f64) -> Self {
        let [mut writes, mut integrals, mut sums] = [[0.0; CLASSES + 1]; 3];
        for (class, count) in counts.iter().enumerate() {
            let (from, to) = (shortest(class), shortest(class + 1));
            writes[class + 1] = writes[class] + count;
            integrals[class + 1] = integrals[class] + (to - from) * (writes[class] + count / 2.0);
            sums[class + 1] = sums[class] + count * (from + to) / 2.0;
        }
        Self { writes, integrals, sums, epoch }
    }

    /// The class of a time, the time since its beginning, and the rate of writes in it.
    fn within(&self, units: f64) -> (usize, f64, f64) {
        let class = class(units.max(0.0) as u64);
        let from = shortest(class);
        let width = shortest(class + 1) - from;
        (class, (units - from).clamp(0.0, width), (self.writes[class + 1] - self.writes[class]) / width)
    }

    /// Number of all writes.
    pub fn total(&self) -> f64 {
        self.writes[CLASSES]
    }

    /// Number of writes less than `units` units after the previous one of their page.
    pub fn writes(&self, units: f64) -> f64 {
        let (class, since, rate) = self.within(units);
        self.writes[class] + since * rate
    }

    /// The integral of [`Self::writes`] from 0 on.
    pub fn integral(&self, units: f64) -> f64 {
        let (class, since, rate) = self.within(units);
        self.integrals[class] + since * (self.writes[class] + since * rate / 2.0)
    }

    /// The sum of all intervals shorter than `units` units.
    pub fn sum(&self, units: f64) -> f64 {
        let (class, since, rate) = self.within(units);
        self.sums[class] + since * rate * (shortest(class) + since / 2.0)
    }

    /// The sum of all intervals.
    pub fn total_sum(&self) -> f64 {
        self.sums[CLASSES]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::part::random;
    use crate::save::{self, Save};

    /// The distribution of uniform writes.
    pub fn uniform(pages: u64, pages_per_block: u32, epoch_pages: u64) -> Distribution {
        let mut intervals = Intervals::new(pages, pages_per_block, 10, epoch_pages);
        let mut state = 3;
        while !intervals.is_complete() {
            intervals.written(random::below(&mut state, pages) as u32);
        }
        intervals.check().unwrap();
        intervals.distribution()
    }

    #[test]
    fn the_sample_is_every_page_whose_number_is_a_multiple() {
        for sampling in [1, 2, 3, 10, 64, 100, 9_999, 10_000] {
            let mut intervals = Intervals::new(1 << 20, 64, sampling, 100_000);
            intervals.begin_unit();
            for logical in (0..30_000).chain(u32::MAX - 30_000..=u32::MAX) {
                assert_eq!(intervals.is_sampled(logical), logical % sampling == 0, "{logical} by {sampling}");
            }
        }
    }

    /// Ten units of an epoch of eleven times three, of 16 pages each: the third, the sixth and so on.
    #[test]
    fn all_pages_are_watched_in_ten_units_of_an_epoch() {
        let mut intervals = Intervals::new(1000, 64, 10, 33 * 16);
        for epoch in 0..2 {
            for page in 0..33 * 16 {
                intervals.written(page);
                let unit = page / 16;
                let is_watched = unit > 0 && unit % 3 == 0;
                assert_eq!(intervals.current.is_watched, is_watched, "page {page} of epoch {epoch}");
                assert!(!is_watched || intervals.in_unit.len() as u32 == page % 16 + 1);
            }
            intervals.check().unwrap();
            intervals.begin(false);
        }
    }

    #[test]
    fn it_goes_on_in_the_middle_of_a_unit_when_restored() {
        let mut intervals = Intervals::new(1000, 64, 10, 33 * 16);
        (0..3 * 16 + 5).for_each(|page| intervals.written(page));
        let mut bytes = Vec::new();
        intervals.save(&mut bytes);
        let mut restored = save::restore(&intervals, &bytes).unwrap();
        for page in (0..40).chain(0..40) {
            intervals.written(page);
            restored.written(page);
        }
        assert_eq!(format!("{restored:?}"), format!("{intervals:?}"));
    }

    #[test]
    fn classes_follow_each_other() {
        for units in (0..10_000).chain([1 << 20, (1 << 31) + 12_345]) {
            let class = class(units);
            let holds = shortest(class) <= units as f64 && (units as f64) < shortest(class + 1);
            assert!(holds, "{units} is in class {class} from {}", shortest(class));
        }
        assert_eq!(class(1 << 40), CLASSES - 1);
    }

    /// Intervals of uniform writes have an exponential distribution; its mean is the number of pages.
    #[test]
    fn uniform_writes_have_exponential_intervals() {
        let found = uniform(20_000, 64, 400_000);
        let share = |pages: f64| found.writes(pages / 16.0) / found.total();
        for (pages, expected) in [(2_000.0, 0.095), (20_000.0, 0.632), (60_000.0, 0.95)] {
            assert!((share(pages) - expected).abs() < 0.01, "{pages}: {}", share(pages));
        }
        let mean = found.total_sum() * 16.0 / found.total();
        assert!((mean / 20_000.0 - 1.0).abs() < 0.05, "{mean}");
    }

    #[test]
    fn integrals_and_sums_are_those_of_the_counts() {
        let found = uniform(20_000, 64, 400_000);
        let steps = 20_000;
        let end = 3_000.0;
        let width = end / f64::from(steps);
        let (mut integral, mut sum) = (0.0, 0.0);
        for step in 0..steps {
            let units = (f64::from(step) + 0.5) * width;
            integral += found.writes(units) * width;
            sum += (found.writes(units + width / 2.0) - found.writes(units - width / 2.0)) * units;
        }
        assert!((found.integral(end) / integral - 1.0).abs() < 1e-4);
        assert!((found.sum(end) / sum - 1.0).abs() < 1e-4);
    }

    /// One page in a hundred takes half of all writes: a sample of one in ten pages may miss it.
    #[test]
    fn the_shortest_intervals_are_those_of_all_pages() {
        let mut intervals = Intervals::new(1000, 64, 10, 100_000);
        let mut state = 3;
        while !intervals.is_complete() {
            let hot = random::below(&mut state, 2) == 0;
            intervals.written(if hot { 7 } else { random::below(&mut state, 1000) as u32 });
        }
        let found = intervals.distribution();
        let share = found.writes(1.0) / found.total();
        assert!((0.42..0.55).contains(&share), "{share}");
    }
}
