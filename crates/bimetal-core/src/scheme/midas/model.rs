//! Predicts the write amplification of groups of given sizes, and finds the sizes with the least.
//!
//! A group is a queue: a block stays in it for the time in which the group is filled again. The intervals between
//! updates give the share of pages that are overwritten meanwhile; the others move to the next group. The last group
//! has no order; its share of valid pages is that of a log with hot and cold pages (Desnoyers, SYSTOR 2012). The copies
//! of a written page are a Markov chain over the groups.

use super::hot::HotGroup;
use super::intervals::{Distribution, UNITS_PER_BLOCK};
use crate::part::real::exp;

/// Largest number of groups, the hot one and the last one included.
pub const GROUPS: usize = 7;
/// Largest hot group that is tried, in blocks.
const HOT_BLOCKS_MAX: u32 = 29;
/// Gain in write amplification for which the first search makes the hot group a block larger.
const HOT_GAIN: f64 = 0.05;
/// Rounds in which each size is tried again.
const ROUNDS: usize = 4;
/// Margin, in blocks, between the time of the queues and the end of the epoch.
const EPOCH_MARGIN_BLOCKS: f64 = 50.0;
/// Intervals of the last group below this share of their mean are those of its hot pages.
const HOT_INTERVAL: f64 = 0.7;
/// Upper bound of the write amplification of the last group in the search.
const COST_MAX: f64 = 1000.0;
/// A measured hot group replaces a predicted one if it holds more valid pages, or gets fewer writes.
const HOT_VALID_MAX: f64 = 0.1;
const HOT_TRAFFIC_MIN: f64 = 0.15;

/// Sizes of groups in blocks, and their predicted write amplification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Configuration {
    /// Blocks of each group, the hot one first, its open blocks included; 0 for a missing group.
    pub blocks: [u32; GROUPS],
    /// The last group.
    pub last: usize,
    /// Share of pages that are valid when a block of a group is collected.
    pub valid: [f64; GROUPS],
    /// Write amplification.
    pub cost: f64,
}

/// Measured figures of the log.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Blocks for data.
    pub blocks: u32,
    /// Valid pages, in blocks.
    pub valid_blocks: f64,
    /// Blocks of the last group in which all pages are valid.
    pub untouched_blocks: f64,
    /// The hot group.
    pub hot: HotGroup,
}

/// Predicts costs.
#[derive(Debug)]
pub struct Model<'a> {
    intervals: &'a Distribution,
    known: Known,
    is_hot_measured: bool,
}

impl<'a> Model<'a> {
    /// A model of a log that is written to with these intervals.
    pub fn new(intervals: &'a Distribution, known: Known) -> Self {
        let is_hot_measured = known.hot.valid > HOT_VALID_MAX || known.hot.traffic < HOT_TRAFFIC_MIN;
        Self { intervals, known, is_hot_measured }
    }

    /// The sizes with the lowest cost, if there is a choice: groups are added while that helps, then each size is tried
    /// again.
    pub fn best(&self) -> Option<Configuration> {
        if self.intervals.total() == 0.0 {
            return None;
        }
        let mut best = self.best_hot()?;
        let mut longest = best;
        while longest.last + 1 < GROUPS {
            // Without its last group's head the configuration may be worse, and better again with another one.
            longest = self.best_size(longest, longest.last)?;
            if longest.cost < best.cost {
                best = longest;
            }
        }
        for _ in 0..ROUNDS {
            let before = best.cost;
            if !self.is_hot_measured {
                let sizes = (1..=HOT_BLOCKS_MAX).filter_map(|blocks| self.with(best, 0, blocks));
                best = sizes.fold(best, |best, other| if other.cost < best.cost { other } else { best });
            }
            for group in 1..=best.last.min(GROUPS - 2) {
                if let Some(other) = self.best_size(best, group).filter(|other| other.cost < best.cost) {
                    best = other;
                }
            }
            if best.cost >= before {
                break;
            }
        }
        (best.last > 1).then_some(best)
    }

    /// The best size of the hot group next to a single other one.
    fn best_hot(&self) -> Option<Configuration> {
        let mut start = Configuration { blocks: [0; GROUPS], last: 1, valid: [0.0; GROUPS], cost: f64::INFINITY };
        start.blocks[1] = self.known.blocks;
        if self.is_hot_measured {
            return self.with(start, 0, (self.known.hot.blocks + 1.0).round() as u32);
        }
        let mut best: Option<Configuration> = None;
        for blocks in 1..=HOT_BLOCKS_MAX {
            match self.with(start, 0, blocks) {
                Some(found) if best.is_none_or(|best| found.cost < best.cost - HOT_GAIN) => best = Some(found),
                _ => break,
            }
        }
        best
    }

    /// The best size of a group with the given sizes of the others; the last one gets the rest. If the group was the
    /// last, another one is added after it.
    fn best_size(&self, configuration: Configuration, group: usize) -> Option<Configuration> {
        let mut start = configuration;
        start.last = start.last.max(group + 1);
        let mut best: Option<Configuration> = None;
        let mut blocks = 1;
        while let Some(rest) = self.known.blocks.checked_sub(blocks).filter(|&rest| rest > 0) {
            if let Some(found) = self.with(start, group, blocks)
                && best.is_none_or(|best| found.cost < best.cost)
            {
                best = Some(found);
            }
            // In steps of a sixteenth: the cost is flat around its minimum.
            blocks += (blocks / 16).clamp(1, rest);
        }
        best
    }

    /// A configuration with another size of one group, and its predicted cost; `None` if it is not possible.
    fn with(&self, mut configuration: Configuration, group: usize, blocks: u32) -> Option<Configuration> {
        configuration.blocks[group] = blocks;
        let last = configuration.last;
        let used: u32 = configuration.blocks[..last].iter().sum();
        configuration.blocks[last] = self.known.blocks.checked_sub(used).filter(|&rest| rest > 0)?;
        self.predict(configuration)
    }

    /// Time until the pages of the hot group are overwritten, in units, and its share of the writes.
    fn hot_group(&self, blocks: u32) -> (f64, f64) {
        let total = self.intervals.total();
        let units = f64::from(UNITS_PER_BLOCK);
        let blocks = f64::from(blocks);
        if self.is_hot_measured {
            let traffic = self.known.hot.traffic;
            let time = if traffic > 0.0 { (blocks - 0.5) / traffic * units } else { 0.0 };
            return (time.min(self.intervals.epoch), traffic);
        }
        // The time in which as many pages are written to it as it has.
        let (mut from, mut to) = (0.0, self.intervals.epoch);
        for _ in 0..40 {
            let time = (from + to) / 2.0;
            if time / units * self.intervals.writes(time) / total < blocks { from = time } else { to = time }
        }
        (to, self.intervals.writes(to) / total)
    }

    /// Predicts shares of valid pages and the cost.
    fn predict(&self, mut configuration: Configuration) -> Option<Configuration> {
        let last = configuration.last;
        let units = f64::from(UNITS_PER_BLOCK);
        let intervals = self.intervals;
        let (mut past, traffic) = self.hot_group(configuration.blocks[0]);
        let hot_valid = if self.is_hot_measured { self.known.hot.valid } else { 0.0 };
        configuration.valid[0] = hot_valid;
        // Pages that move into a group for each page that the host writes.
        let mut flow = 1.0 - traffic + traffic * hot_valid;
        let mut copies = traffic * hot_valid;
        // Valid pages of all groups before the last, in blocks: pages that moved in, minus those overwritten since.
        let hot_flow = if self.is_hot_measured { traffic } else { 1.0 };
        let mut held = hot_flow * (past - intervals.integral(past) / intervals.total()) / units;
        for group in 1..last {
            let time = (f64::from(configuration.blocks[group]) - 0.5) / flow * units;
            if past + time >= intervals.epoch - EPOCH_MARGIN_BLOCKS.min(intervals.epoch / units / 8.0) * units {
                return None;
            }
            let (before, end) = (intervals.writes(past), past + time);
            let left = intervals.total() - before;
            let valid = 1.0 - (intervals.writes(end) - before) / left;
            if valid <= 0.0 || left <= 0.0 {
                return None;
            }
            let overwritten = intervals.integral(end) - intervals.integral(past) - time * before;
            held += flow * (time - overwritten / left) / units;
            configuration.valid[group] = valid;
            flow *= valid;
            copies += flow;
            past = end;
        }
        let valid = self.last_group(configuration.blocks[last], held, past)?;
        configuration.valid[last] = valid;
        configuration.cost = 1.0 + copies + flow * valid / (1.0 - valid);
        Some(configuration)
    }

    /// Share of valid pages in the victims of the last group; the other groups hold `held` blocks of valid pages, none
    /// older than `past`.
    fn last_group(&self, blocks: u32, held: f64, past: f64) -> Option<f64> {
        let untouched = self.known.untouched_blocks;
        let untouched = if untouched < 0.2 * f64::from(self.known.blocks) { 0.0 } else { untouched };
        let valid = self.known.valid_blocks - untouched - held;
        let spare_factor = (f64::from(blocks) - untouched) / valid;
        if valid <= 0.0 || spare_factor <= 1.0 {
            return None;
        }
        let cost = cost_of_hot_and_cold(spare_factor, self.hot_shares(past));
        (cost < COST_MAX).then(|| 1.0 - 1.0 / cost)
    }

    /// Among pages whose intervals are at least `past`, those with shorter ones: their shares of writes and of pages.
    fn hot_shares(&self, past: f64) -> (f64, f64) {
        let intervals = self.intervals;
        let (before, sum_before) = (intervals.writes(past), intervals.sum(past));
        let (writes, sum) = (intervals.total() - before, intervals.total_sum() - sum_before);
        if writes <= 0.0 || sum <= 0.0 {
            return (0.0, 0.0);
        }
        // A page with a given interval is written once per interval in the epoch: the number of pages is proportional
        // to writes times interval.
        let limit = (sum / writes * HOT_INTERVAL).max(past);
        ((intervals.writes(limit) - before) / writes, (intervals.sum(limit) - sum_before) / sum)
    }
}

/// Write amplification of a log with `spare_factor` pages for each valid one, where `writes` of all writes go to `pages` of all pages
/// (Desnoyers, SYSTOR 2012, hot and cold data).
fn cost_of_hot_and_cold(spare_factor: f64, (writes, pages): (f64, f64)) -> f64 {
    let part = |writes: f64, pages: f64, cost: f64| {
        let exponent = if pages > 0.0 { writes * spare_factor / (pages * cost) } else { f64::INFINITY };
        // Pages with such a high rate of writes are never valid.
        if writes <= 0.0 || exponent > 600.0 { 0.0 } else { writes / (exp(exponent) - 1.0) }
    };
    let (mut from, mut to) = (1.0, COST_MAX);
    for _ in 0..40 {
        let cost = (from + to) / 2.0;
        if 1.0 + part(writes, pages, cost) + part(1.0 - writes, 1.0 - pages, cost) > cost {
            from = cost
        } else {
            to = cost
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::super::intervals::tests::uniform;
    use super::*;

    const HOT: HotGroup = HotGroup { traffic: 0.0, valid: 0.0, blocks: 0.0 };

    /// Uniform writes to 312 blocks of 64 pages in 360: groups have no benefit.
    #[test]
    fn groups_do_not_help_uniform_writes() {
        let intervals = uniform(20_000, 64, 400_000);
        let known = Known { blocks: 360, valid_blocks: 312.5, untouched_blocks: 0.0, hot: HOT };
        let model = Model::new(&intervals, known);
        let one = model.best_hot().unwrap();
        let plain = cost_of_hot_and_cold(359.0 / 312.5, (0.0, 0.0));
        assert!((one.cost / plain - 1.0).abs() < 0.12, "{} and {plain}", one.cost);
        let best = model.best();
        assert!(best.is_none_or(|best| best.cost > 0.93 * one.cost), "{best:?}");
    }

    #[test]
    fn hot_and_cold_pages_cost_what_the_closed_form_says() {
        // One kind of pages: A = 1 / (1 - e^(-S/A)), the closed form of FIFO cleaning.
        let cost = cost_of_hot_and_cold(1.15, (0.5, 0.5));
        assert!((cost - 1.0 / (1.0 - exp(-1.15 / cost))).abs() < 1e-6, "{cost}");
        assert!((cost_of_hot_and_cold(1.15, (0.0, 0.0)) - cost).abs() < 1e-6);
        // A queue with hot and cold pages together costs more.
        assert!(cost_of_hot_and_cold(1.15, (0.9, 0.1)) > cost);
    }

    /// Three blocks of pages take 0.75 of all writes.
    #[test]
    fn hot_pages_get_a_group_of_their_own() {
        let mut intervals = super::super::intervals::Intervals::new(20_000, 64, 10, 400_000);
        let mut state = 3;
        while !intervals.is_complete() {
            let span = if crate::part::random::below(&mut state, 4) > 0 { 192 } else { 20_000 };
            intervals.written(crate::part::random::below(&mut state, span) as u32);
        }
        let intervals = intervals.distribution();
        let hot = HotGroup { traffic: 0.75, valid: 0.05, blocks: 4.0 };
        let known = Known { blocks: 350, valid_blocks: 312.5, untouched_blocks: 0.0, hot };
        let best = Model::new(&intervals, known).best().unwrap();
        let (_, traffic) = Model::new(&intervals, known).hot_group(best.blocks[0]);
        assert!((0.6..0.85).contains(&traffic), "{best:?}, {traffic}");
        assert_eq!(best.blocks.iter().sum::<u32>(), 350);
        assert!(best.last >= 2 && best.valid[best.last] < 1.0);
    }
}
