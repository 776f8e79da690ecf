//! An index of pages: a hash table of fixed size from pages to values, which never allocates after construction.
//!
//! Open addressing with linear probing, so that a look-up mostly costs one memory access. When an entry is removed, the
//! following entries move up to fill the gap, so no tombstones are needed. The hash is fixed, and no result depends on
//! the table's order.
//!
//! It is never saved: its owner can rebuild it from other state.

use crate::part::random;

/// Marks an empty entry.
const NONE: u32 = u32::MAX;

/// Entries per two pages of capacity. Half as many entries again as pages keep probe runs short and cost little memory.
const ENTRIES_PER_TWO: u64 = 3;

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: u32,
    value: u32,
}

/// A value for each of at most `capacity` pages.
#[derive(Clone, Debug)]
pub struct PageIndex {
    entries: Vec<Entry>,
    len: u32,
    capacity: u32,
}

impl PageIndex {
    /// An empty index for at most `capacity` pages: 12 bytes for each.
    pub fn new(capacity: u32) -> Self {
        // At least one entry always stays empty, so that every search ends there.
        let entries = u64::from(capacity) * ENTRIES_PER_TWO / 2 + 1;
        Self { entries: vec![Entry { page: NONE, value: 0 }; entries as usize], len: 0, capacity }
    }

    /// Number of pages in it.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no page is in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.entries[..])
    }

    /// The value of a page.
    #[inline]
    pub fn get(&self, page: u32) -> Option<u32> {
        let entry = self.entries[self.find(page)];
        (entry.page != NONE).then_some(entry.value)
    }

    /// Sets the value of a page and returns the previous value. `u32::MAX` is not a valid page.
    ///
    /// # Panics
    /// If a new page is inserted into a full index.
    #[inline]
    pub fn insert(&mut self, page: u32, value: u32) -> Option<u32> {
        self.update(page, |_| value)
    }

    /// Sets the value of a page to the result of `value`, which gets the previous value. Returns the previous value.
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn update(&mut self, page: u32, value: impl FnOnce(Option<u32>) -> u32) -> Option<u32> {
        let at = self.find(page);
        let entry = &mut self.entries[at];
        if entry.page != NONE {
            let previous = Some(entry.value);
            entry.value = value(previous);
            return previous;
        }
        assert!(self.len < self.capacity, "the index is full at {} pages", self.len);
        *entry = Entry { page, value: value(None) };
        self.len += 1;
        None
    }

    /// Removes a page and returns its value.
    #[inline]
    pub fn remove(&mut self, page: u32) -> Option<u32> {
        let at = self.find(page);
        let entry = self.entries[at];
        (entry.page != NONE).then(|| {
            self.close_up(at);
            entry.value
        })
    }

    /// Removes a page if it has this value.
    #[inline]
    pub fn remove_if(&mut self, page: u32, value: u32) {
        let at = self.find(page);
        let entry = self.entries[at];
        if entry.page != NONE && entry.value == value {
            self.close_up(at);
        }
    }

    /// Empties an entry and moves up the following entries as far as their home positions allow.
    #[inline]
    fn close_up(&mut self, mut hole: usize) {
        let mut at = hole;
        loop {
            at = self.after(at);
            let moved = self.entries[at];
            if moved.page == NONE {
                break;
            }
            // An entry may move back at most to its home position.
            if self.distance(self.home(moved.page), at) >= self.distance(hole, at) {
                self.entries[hole] = moved;
                hole = at;
            }
        }
        self.entries[hole].page = NONE;
        self.len -= 1;
    }

    /// Prefetches the entry where the search for a page begins into the processor's cache.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        prefetch_index::prefetch_index(&self.entries, self.home(page));
    }

    /// Pages and their values, in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.entries.iter().filter(|entry| entry.page != NONE).map(|entry| (entry.page, entry.value))
    }

    /// Position of a page, or of the empty entry where it would be inserted.
    #[inline]
    fn find(&self, page: u32) -> usize {
        debug_assert!(page != NONE, "that is no page");
        let mut at = self.home(page);
        loop {
            let found = self.entries[at].page;
            if found == page || found == NONE {
                return at;
            }
            at = self.after(at);
        }
    }

    /// Position where the search for a page begins.
    #[inline]
    fn home(&self, page: u32) -> usize {
        ((u64::from(random::hash(page, random::INDEX)) * self.entries.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.entries.len() { 0 } else { at + 1 }
    }

    /// Number of steps forward from one entry to another.
    #[inline]
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.entries.len() - from }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    #[test]
    fn a_full_index_still_finds_its_pages_and_refuses_one_more() {
        for capacity in [0, 1, 2, 3, 1000] {
            let mut index = PageIndex::new(capacity);
            (0..capacity).for_each(|page| assert_eq!(index.insert(page * 7, page), None));
            assert!((0..capacity).all(|page| index.get(page * 7) == Some(page)));
            assert_eq!((index.get(capacity * 7), index.remove(capacity * 7)), (None, None));
            assert_eq!((index.len(), index.is_empty()), (capacity, capacity == 0));
            assert!(std::panic::catch_unwind(move || index.insert(u32::MAX - 1, 0)).is_err());
        }
    }

    /// Pages that lie in a row or at equal distances must not end up in long runs.
    #[test]
    fn regular_pages_are_scattered() {
        const PAGES: u32 = 100_000;
        for stride in [1, 2, 64, 256, 4096, 40_503] {
            let mut index = PageIndex::new(PAGES);
            (0..PAGES).for_each(|page| assert_eq!(index.insert(page * stride, page), None));
            let steps = |page: u32| index.distance(index.home(page * stride), index.find(page * stride));
            let mean = (0..PAGES).map(steps).sum::<usize>() as f64 / f64::from(PAGES);
            // Knuth: at load a, random keys are found after (1 + 1/(1 - a))/2 probes: 2 at a load of 2/3, one step on.
            assert!((0.9..1.1).contains(&mean), "stride {stride}: {mean} steps");
        }
    }

    #[test]
    fn nothing_is_allocated_once_it_is_made() {
        let mut index = PageIndex::new(1000);
        let allocations = allocation_counter::measure(|| {
            for page in 0..10_000 {
                index.insert(page, page);
                if page >= 900 {
                    index.remove(page - 900);
                }
            }
        });
        assert_eq!((allocations.count_total, index.len()), (0, 900));
        assert_eq!(index.bytes(), 8 * 1501);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u32..3, 0u32..40, any::<u32>()), 0..500)) {
            let (mut index, mut map) = (PageIndex::new(40), BTreeMap::new());
            for (step, page, value) in steps {
                match step {
                    0 => prop_assert_eq!(index.insert(page, value), map.insert(page, value)),
                    1 => prop_assert_eq!(index.remove(page), map.remove(&page)),
                    _ => prop_assert_eq!(index.get(page), map.get(&page).copied()),
                }
                prop_assert_eq!(index.len() as usize, map.len());
            }
            prop_assert!((0..40).all(|page| index.get(page) == map.get(&page).copied()));
        }
    }
}
