//! The sectors that requests cover, and how often they do, found from their sorted starts and ends.
//!
//! Between two neighbouring starts or ends, every sector is hit once by each open request. So time and memory depend on
//! the number of requests, not on their sizes or on the disk's.

use super::{InTurn, Join};
use crate::request::Request;

/// Starts and ends of requests in sectors, each in order.
#[derive(Debug, Default)]
pub struct Spans {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl Spans {
    /// The spans of these requests.
    pub fn of<'a>(requests: impl Iterator<Item = &'a Request>) -> Self {
        let mut spans = Self::default();
        requests.for_each(|request| spans.push(request));
        spans.sorted(&InTurn)
    }

    /// Adds a request, which covers nothing if it has no sectors. Afterwards the spans must be [sorted](Self::sorted).
    pub fn push(&mut self, request: &Request) {
        if request.sectors > 0 {
            self.starts.push(request.sector);
            self.ends.push(request.end());
        }
    }

    /// With starts and ends in order.
    pub fn sorted(mut self, join: &impl Join) -> Self {
        join.join(|| self.starts.sort_unstable(), || self.ends.sort_unstable());
        self
    }

    /// The spans of several sets together.
    pub fn merged(parts: impl IntoIterator<Item = Self>) -> Self {
        let merge = |parts: Vec<Vec<u64>>| {
            let mut parts = parts.into_iter().filter(|part| !part.is_empty());
            let mut all = parts.next().unwrap_or_default();
            parts.for_each(|part| all.extend(part));
            // The stable sort finds parts that are already in order.
            all.sort();
            all
        };
        let (starts, ends) = parts.into_iter().map(|part| (part.starts, part.ends)).unzip();
        Self { starts: merge(starts), ends: merge(ends) }
    }

    /// Number of units of `UNIT` sectors by how often they are hit. A request hits each unit that it touches once.
    pub fn hits<const UNIT: u64>(&self) -> Hits {
        let mut units = vec![0];
        self.sweep::<UNIT>(|open, length| {
            if open >= units.len() {
                units.resize(2 * open, 0);
            }
            units[open] += length;
        });
        units[0] = 0;
        let most = units.iter().rposition(|&units| units > 0).unwrap_or(0);
        units.truncate(most + 1);
        Hits { units }
    }

    /// Number of distinct units of `UNIT` sectors that are touched.
    pub fn distinct<const UNIT: u64>(&self) -> u64 {
        let mut touched = 0;
        self.sweep::<UNIT>(|open, length| touched += if open > 0 { length } else { 0 });
        touched
    }

    /// Calls `tell` for each step from a start or an end to the next, with the number of open requests and the length
    /// in units.
    fn sweep<const UNIT: u64>(&self, mut tell: impl FnMut(usize, u64)) {
        let (mut opened, mut closed, mut at) = (0, 0, 0);
        while closed < self.ends.len() {
            let end = self.ends[closed].div_ceil(UNIT);
            let start = self.starts.get(opened).map_or(u64::MAX, |start| start / UNIT);
            // There is no branch on which of them comes first, because that cannot be predicted.
            let opens = start < end;
            let next = if opens { start } else { end };
            tell(opened - closed, next - at);
            at = next;
            opened += usize::from(opens);
            closed += usize::from(!opens);
        }
    }
}

/// Number of units by how often they are hit: `units[n]` units are hit `n` times.
#[derive(Debug)]
pub struct Hits {
    units: Vec<u64>,
}

impl Hits {
    /// Numbers of hits, from 1 on, and the number of units with each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        (1..).zip(self.units.iter().skip(1).copied())
    }

    /// Hits of all units.
    pub fn total(&self) -> u64 {
        self.iter().map(|(count, units)| count * units).sum()
    }

    /// Units that are hit at least once.
    pub fn distinct(&self) -> u64 {
        self.units.iter().skip(1).sum()
    }

    /// Hits of the unit that is hit most.
    pub fn most(&self) -> u64 {
        self.units.len() as u64 - 1
    }

    /// Hits of the `wanted` units that are hit most.
    pub fn of_hottest(&self, wanted: u64) -> u64 {
        let mut left = wanted;
        let mut sum = 0;
        for (count, &units) in self.units.iter().enumerate().rev() {
            let taken = units.min(left);
            sum += taken * count as u64;
            left -= taken;
        }
        sum
    }

    /// Smallest number of units that together are hit `wanted` times.
    pub fn fewest(&self, wanted: u64) -> u64 {
        let mut left = wanted;
        let mut sum = 0;
        for (count, &units) in self.units.iter().enumerate().skip(1).rev() {
            let taken = units.min(left.div_ceil(count as u64));
            sum += taken;
            left = left.saturating_sub(taken * count as u64);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::part::random;
    use crate::request::Op;

    /// Random writes, some without sectors, and the number of writes to each unit of `unit` sectors.
    fn writes(unit: u64) -> (Vec<Request>, BTreeMap<u64, u64>) {
        let mut state = 11;
        let mut counted = BTreeMap::new();
        let requests = (0..3000).map(|_| {
            let (sector, sectors) = (random::below(&mut state, 500), random::below(&mut state, 40) as u32);
            for hit in sector / unit..(sector + u64::from(sectors)).div_ceil(unit) {
                *counted.entry(hit).or_insert(0) += u64::from(sectors > 0);
            }
            Request { arrival_ns: 0, sector, sectors, op: Op::Write, handle: 0 }
        });
        let requests = requests.collect();
        counted.retain(|_, &mut count| count > 0);
        (requests, counted)
    }

    #[test]
    fn sweeping_agrees_with_counting_each_unit() {
        let check = |unit: u64, hits: fn(&Spans) -> Hits, distinct: fn(&Spans) -> u64| {
            let (requests, counted) = writes(unit);
            let spans = Spans::of(requests.iter());
            let hits = hits(&spans);
            let mut expected = vec![0; hits.units.len()];
            counted.values().for_each(|&count| expected[count as usize] += 1);
            assert_eq!(hits.units, expected);
            assert_eq!((distinct(&spans), hits.distinct()), (counted.len() as u64, counted.len() as u64));
            let mut counts: Vec<u64> = counted.values().copied().collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!((hits.most(), hits.total()), (counts[0], counts.iter().sum()));
            assert_eq!(hits.of_hottest(7), counts[..7].iter().sum::<u64>());
            let wanted = hits.total() / 3;
            let fewest = hits.fewest(wanted) as usize;
            assert!(counts[..fewest].iter().sum::<u64>() >= wanted);
            assert!(counts[..fewest - 1].iter().sum::<u64>() < wanted);
        };
        check(1, Spans::hits::<1>, Spans::distinct::<1>);
        check(8, Spans::hits::<8>, Spans::distinct::<8>);
    }

    #[test]
    fn spans_merged_are_those_of_all_requests() {
        let (requests, _) = writes(1);
        let parts = [&requests[..1000], &requests[1000..1001], &requests[1001..]].map(|part| Spans::of(part.iter()));
        let (merged, all) = (Spans::merged(parts), Spans::of(requests.iter()));
        assert_eq!((merged.starts, merged.ends), (all.starts, all.ends));
        assert_eq!(Spans::default().hits::<8>().most(), 0);
    }
}
