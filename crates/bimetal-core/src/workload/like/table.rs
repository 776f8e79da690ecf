//! Empirical distributions: frequencies of values, and shares.

use std::collections::BTreeMap;

use crate::part::random;

/// Values with their frequencies.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    /// Each value with the cumulative frequency up to it.
    upto: Vec<(T, u64)>,
}

impl<T: Copy> Table<T> {
    /// A random value by frequency; `None` if the table is empty.
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

/// The number of positive cases, and of all cases.
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

    /// The share of positive cases. There must be at least one case.
    pub(super) fn share(&self) -> f64 {
        self.so as f64 / self.all as f64
    }

    pub(super) fn all(&self) -> u64 {
        self.all
    }

    /// A random outcome with this share; always false without cases.
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
