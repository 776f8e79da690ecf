//! Orders of recency over a fixed set of indices: links in arrays, nothing allocated after construction.
//!
//! An index is in at most one list of a [`Lists`] at a time. The caller knows which list.

use serde::{Deserialize, Serialize};

use crate::save::Table;

const NONE: u32 = u32::MAX;
/// Predecessor of an index that is in no list.
const ABSENT: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

crate::save::words!(Link { previous: u32, next: u32 });

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ends {
    first: u32,
    last: u32,
}

/// Several doubly linked lists over the indices `0..count`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lists {
    links: Table<Link>,
    #[serde(with = "crate::save::sized")]
    ends: Vec<Ends>,
}

impl Lists {
    /// `lists` empty lists over `0..count`.
    pub fn new(count: usize, lists: usize) -> Self {
        debug_assert!(count < ABSENT as usize);
        let ends = vec![Ends { first: NONE, last: NONE }; lists];
        Self { links: vec![Link { previous: ABSENT, next: NONE }; count].into(), ends }
    }

    /// Number of lists.
    pub fn lists(&self) -> usize {
        self.ends.len()
    }

    /// Whether an index is in some list.
    #[inline]
    pub fn contains(&self, index: u32) -> bool {
        self.links[index as usize].previous != ABSENT
    }

    /// The first of a list: the oldest if new ones are pushed to the back.
    #[inline]
    pub fn front(&self, list: usize) -> Option<u32> {
        let first = self.ends[list].first;
        (first != NONE).then_some(first)
    }

    /// The last of a list.
    #[inline]
    pub fn back(&self, list: usize) -> Option<u32> {
        let last = self.ends[list].last;
        (last != NONE).then_some(last)
    }

    /// The index behind another one in its list.
    #[inline]
    pub fn after(&self, index: u32) -> Option<u32> {
        let next = self.links[index as usize].next;
        (next != NONE).then_some(next)
    }

    /// Appends an index that is in no list to a list.
    #[inline]
    pub fn push_back(&mut self, list: usize, index: u32) {
        debug_assert!(!self.contains(index));
        let last = std::mem::replace(&mut self.ends[list].last, index);
        self.links[index as usize] = Link { previous: last, next: NONE };
        if last == NONE {
            self.ends[list].first = index;
        } else {
            self.links[last as usize].next = index;
        }
    }

    /// Removes an index from its list.
    #[inline]
    pub fn remove(&mut self, list: usize, index: u32) {
        debug_assert!(self.contains(index));
        let Link { previous, next } = self.links[index as usize];
        if previous == NONE {
            self.ends[list].first = next;
        } else {
            self.links[previous as usize].next = next;
        }
        if next == NONE {
            self.ends[list].last = previous;
        } else {
            self.links[next as usize].previous = previous;
        }
        self.links[index as usize].previous = ABSENT;
    }

    /// Removes and returns the first index of a list.
    #[inline]
    pub fn pop_front(&mut self, list: usize) -> Option<u32> {
        let first = self.front(list)?;
        self.remove(list, first);
        Some(first)
    }

    /// Prefetches an index's links into the processor's cache.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        prefetch_index::prefetch_index(&self.links, index as usize);
    }

    /// The indices of a list from front to back.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.front(list), |&index| self.after(index))
    }

    /// Checks that every list leads from its first index to its last and back, and that no index is in two lists.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), String> {
        let mut listed = vec![false; self.links.len()];
        for (list, ends) in self.ends.iter().enumerate() {
            let (mut previous, mut index) = (NONE, ends.first);
            while index != NONE {
                let link = self.links.get(index as usize).filter(|link| link.previous == previous);
                let Some(link) = link.filter(|_| !std::mem::replace(&mut listed[index as usize], true)) else {
                    return Err(format!("index {index} is out of place in list {list}"));
                };
                (previous, index) = (index, link.next);
            }
            if previous != ends.last {
                return Err(format!("list {list} ends with {previous} and not with {}", ends.last));
            }
        }
        match (0..).zip(&listed).find(|&(index, &listed)| listed != self.contains(index)) {
            Some((index, listed)) => Err(format!("index {index}: found in a list: {listed}, recorded otherwise")),
            None => Ok(()),
        }
    }
}

/// Which of the indices `0..count` are cached: the most recently used ones.
#[derive(Debug, Serialize, Deserialize)]
pub struct LruCache {
    order: Lists,
    #[serde(with = "crate::save::fixed")]
    capacity: u32,
    cached: u32,
}

impl LruCache {
    /// An empty cache; with capacity 0 it never holds anything.
    pub fn new(count: usize, capacity: u32) -> Self {
        Self { order: Lists::new(count, 1), capacity, cached: 0 }
    }

    /// Uses an index: returns whether it was cached, and caches it, evicting the least recently used one if necessary.
    #[inline]
    pub fn touch(&mut self, index: u32) -> bool {
        if self.order.back(0) == Some(index) {
            return true;
        }
        let hit = self.order.contains(index);
        if hit {
            self.order.remove(0, index);
        } else if self.capacity == 0 {
            return false;
        } else if self.cached == self.capacity {
            self.order.pop_front(0);
        } else {
            self.cached += 1;
        }
        self.order.push_back(0, index);
        hit
    }

    /// Removes an index from the cache.
    pub fn forget(&mut self, index: u32) {
        if self.order.contains(index) {
            self.order.remove(0, index);
            self.cached -= 1;
        }
    }

    /// Checks the order and number of the cached indices.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), String> {
        self.order.check()?;
        let listed = self.order.iter(0).count();
        if listed != self.cached as usize || self.cached > self.capacity {
            return Err(format!("{listed} of at most {} are cached, {} counted", self.capacity, self.cached));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_order_through_removal() {
        let mut lists = Lists::new(6, 2);
        for index in [3, 1, 4, 5] {
            lists.push_back(0, index);
        }
        lists.push_back(1, 0);
        lists.remove(0, 1);
        lists.remove(0, 5);
        lists.push_back(0, 1);
        assert_eq!(lists.iter(0).collect::<Vec<_>>(), [3, 4, 1]);
        assert_eq!((lists.pop_front(0), lists.front(0), lists.back(0)), (Some(3), Some(4), Some(1)));
        assert_eq!(
            (lists.contains(5), lists.contains(0), lists.pop_front(1), lists.pop_front(1)),
            (false, true, Some(0), None)
        );
    }

    #[test]
    fn a_cache_evicts_the_least_recently_used() {
        let mut cache = LruCache::new(8, 2);
        let hits: Vec<bool> = [1, 2, 1, 3, 2, 3, 1].into_iter().map(|index| cache.touch(index)).collect();
        assert_eq!(hits, [false, false, true, false, false, true, false]);
        let mut none = LruCache::new(8, 0);
        assert!(!none.touch(1) && !none.touch(1));
    }
}
