//! Arrival times: each gap depends on the preceding gaps.

use std::collections::BTreeMap;

use super::table::Table;
use crate::part::random;
use crate::request::Request;

/// Number of classes of levels.
const LEVELS: usize = 8;

/// Lateness, in mean gaps, from which on long gaps are halved. Below it they are shortened in proportion.
const LATE: f64 = 1000.0;

/// Approximate number of gaps in the moving average of a level.
const MEMORY: i64 = 32;

/// The gaps of one bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    shortest_ns: u64,
    longest_ns: u64,
    mean_ns: u64,
}

/// The distribution of gaps after each class of preceding gaps.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// Upper limits of the first three quartiles of gaps.
    quarters_ns: [u64; 3],
    /// Upper limits of the first seven octiles of levels.
    eighths: [i64; LEVELS - 1],
    /// Gaps by the quartile of the previous gap and the octile of the previous level.
    gaps: Vec<Table<Gap>>,
    mean_ns: f64,
}

/// State of the process: the last gap, and the mean logarithm of recent gaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    gap_ns: u64,
    level: i64,
}

impl Pace {
    fn first(gap_ns: u64) -> Self {
        Self { gap_ns, level: i64::from(bin(gap_ns)) << 16 }
    }

    fn after(self, gap_ns: u64) -> Self {
        Self { gap_ns, level: self.level + ((i64::from(bin(gap_ns)) << 16) - self.level) / MEMORY }
    }
}

/// The bin of a gap: four bins for each doubling.
fn bin(gap_ns: u64) -> u32 {
    gap_ns.checked_ilog2().map_or(0, |power| power * 4 + ((u128::from(gap_ns) << 2 >> power) as u32 - 3))
}

impl Arrivals {
    pub(super) fn of(requests: &[Request]) -> Self {
        let gap = |pair: &[Request]| pair[1].arrival_ns.saturating_sub(pair[0].arrival_ns);
        let gaps: Vec<u64> = requests.windows(2).map(gap).collect();
        let mut pace = Pace::first(gaps.first().copied().unwrap_or(0));
        let before = |&gap: &u64| {
            let before = pace;
            pace = pace.after(gap);
            before
        };
        let paces: Vec<Pace> = gaps.iter().map(before).collect();
        let mut sorted = gaps.clone();
        sorted.sort_unstable();
        let quarters_ns = [1, 2, 3].map(|quarter| sorted.get(sorted.len() * quarter / 4).copied().unwrap_or(0));
        let mut levels: Vec<i64> = paces.iter().map(|pace| pace.level).collect();
        levels.sort_unstable();
        let eighth = |nth: usize| levels.get(levels.len() * (nth + 1) / LEVELS).copied().unwrap_or(0);
        let mean_ns = gaps.iter().map(|&gap| gap as f64).sum::<f64>() / gaps.len().max(1) as f64;
        let mut arrivals = Self { quarters_ns, eighths: std::array::from_fn(eighth), gaps: Vec::new(), mean_ns };
        // Shortest, longest, sum and count of the gaps in each bin.
        let mut bins: Vec<BTreeMap<u32, (u64, u64, u64, u64)>> = vec![BTreeMap::new(); 4 * LEVELS];
        for (&gap, &pace) in gaps.iter().zip(&paces) {
            let (shortest, longest, sum, count) =
                bins[arrivals.state(pace)].entry(bin(gap)).or_insert((u64::MAX, 0, 0, 0));
            (*shortest, *longest) = (gap.min(*shortest), gap.max(*longest));
            *sum = sum.saturating_add(gap);
            *count += 1;
        }
        let gap =
            |(shortest_ns, longest_ns, sum, count)| (Gap { shortest_ns, longest_ns, mean_ns: sum / count }, count);
        arrivals.gaps =
            bins.into_iter().map(|bins| bins.into_values().map(gap).collect::<BTreeMap<_, _>>().into()).collect();
        arrivals
    }

    fn state(&self, pace: Pace) -> usize {
        let quarter = self.quarters_ns.iter().filter(|&&longest| pace.gap_ns > longest).count();
        let eighth = self.eighths.iter().filter(|&&highest| pace.level > highest).count();
        quarter * LEVELS + eighth
    }

    /// The initial pace: that of a median gap.
    pub(super) fn pace(&self) -> Pace {
        Pace::first(self.quarters_ns[1])
    }

    /// The next gap; 0 if there are no gaps to draw from.
    pub(super) fn next(&self, pace: &mut Pace, state: &mut u64) -> u64 {
        let drawn = self.gaps[self.state(*pace)].draw(state);
        // The trace never had this pace, so any state that it had will do.
        let Some(gap) = drawn.or_else(|| self.gaps.iter().find_map(|gaps| gaps.draw(state))) else { return 0 };
        // Uniform around the mean of the bin, as far as the bin extends on both sides.
        let half = (gap.mean_ns - gap.shortest_ns).min(gap.longest_ns - gap.mean_ns);
        let gap_ns = gap.mean_ns - half + random::below(state, 2 * half + 1);
        *pace = pace.after(gap_ns);
        gap_ns
    }

    /// The gap after the last of `given` requests, which arrived at `now_ns`. Paces are not as frequent as in the
    /// trace. So gaps above the mean are shortened while the requests are late relative to the trace's mean rate, and
    /// lengthened while they are early.
    pub(super) fn next_by(&self, now_ns: u64, given: u64, pace: &mut Pace, state: &mut u64) -> u64 {
        let gap_ns = self.next(pace, state) as f64;
        if gap_ns <= self.mean_ns {
            return gap_ns as u64;
        }
        let late_ns = now_ns as f64 - self.mean_ns * given as f64;
        (gap_ns * (1.0 - (late_ns / (2.0 * self.mean_ns * LATE)).clamp(-0.5, 0.5))) as u64
    }

    /// Number of numbers in the model.
    pub(super) fn numbers(&self) -> usize {
        1 + self.quarters_ns.len() + self.eighths.len() + 4 * self.gaps.iter().map(Table::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;

    /// Bursts of 200 requests 1 µs apart, then 200 requests 1 ms apart.
    #[test]
    fn bursts_stay_together() {
        let mut now_ns = 0;
        let request = |nth: u64| {
            now_ns += if (nth / 200).is_multiple_of(2) { 1000 } else { 1_000_000 };
            Request { arrival_ns: now_ns, sector: 0, sectors: 8, op: Op::Read, handle: 0 }
        };
        let requests: Vec<Request> = (0..20_000).map(request).collect();
        let arrivals = Arrivals::of(&requests);
        let (mut pace, mut state) = (arrivals.pace(), 1);
        let gaps: Vec<u64> = (0..20_000).map(|_| arrivals.next(&mut pace, &mut state)).collect();
        let mean = gaps.iter().sum::<u64>() / 20_000;
        assert!((400_000..600_000).contains(&mean), "{mean}");
        let changes = gaps.windows(2).filter(|pair| (pair[0] > 10_000) != (pair[1] > 10_000)).count();
        assert!((50..200).contains(&changes), "{changes}");
    }
}
