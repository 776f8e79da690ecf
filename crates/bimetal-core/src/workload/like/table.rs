//! What is drawn from: how often each of several values came, and how often something was so.

use std::collections::BTreeMap;

use crate::part::random;

/// Values with how often they came.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    /// Each value with the number of times that it or one before it came.
    upto: Vec<(T, u64)>,
}

impl<T: Copy> Table<T> {
    /// A value, as often as it came; `None` of an empty table.
    pub(super) fn draw(&self, state: &mut u64) -> Option<T> {
        let &(_, all) = self.upto.last()?;
        let drawn = random::below(state, all);
        Some(self.upto[self.upto.partition_point(|&(_, upto)| upto <= drawn)].0)
    }

    /// Number of different values.
    pub(super) fn len(&self) -> usize {
        self.upto.len()
    }
}

impl<T> From<BTreeMap<T, u64>> for Table<T> {
    fn from(counts: BTreeMap<T, u64>) -> Self {
        let mut all = 0;
        let upto = |(value, count)| {
            all += count;
            (value, all)
        };
        Self { upto: counts.into_iter().map(upto).collect() }
    }
}

/// How often something was so, of how many times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ratio {
    so: u64,
    all: u64,
}

impl Ratio {
    pub(super) fn count(&mut self, so: bool) {
        self.so += u64::from(so);
        self.all += 1;
    }

    pub(super) fn add(&mut self, other: Self) {
        self.so += other.so;
        self.all += other.all;
    }

    pub(super) fn so(&self) -> u64 {
        self.so
    }

    /// Share of the times that it was so; there must be one.
    pub(super) fn share(&self) -> f64 {
        self.so as f64 / self.all as f64
    }

    pub(super) fn all(&self) -> u64 {
        self.all
    }

    /// Whether it is so this time; never without a count.
    pub(super) fn draw(&self, state: &mut u64) -> bool {
        self.all > 0 && random::below(state, self.all) < self.so
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_drawn_as_often_as_they_came() {
        let table = Table::from(BTreeMap::from([('a', 1), ('b', 7), ('c', 2)]));
        let mut state = 3;
        let drawn: Vec<char> = (0..10_000).map(|_| table.draw(&mut state).unwrap()).collect();
        for (value, expected) in [('a', 1000usize), ('b', 7000), ('c', 2000)] {
            let found = drawn.iter().filter(|&&other| other == value).count();
            assert!(found.abs_diff(expected) < 150, "{value}: {found}");
        }
        assert_eq!((table.len(), Table::<u8>::from(BTreeMap::new()).draw(&mut state)), (3, None));
        let (mut always, never) = (Ratio::default(), Ratio::default());
        always.count(true);
        assert!(always.draw(&mut state) && !never.draw(&mut state));
    }
}
