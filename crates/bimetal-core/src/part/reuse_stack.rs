//! An LRU stack that tells exact positions: how many other pages were used since a page was (its reuse distance).
//!
//! A page that is found at position `p` is a hit in every LRU cache of more than `p` pages (Mattson, Gecsei, Slutz,
//! Traiger: *Evaluation techniques for storage hierarchies*, IBM Systems Journal 1970). The ghost lists of OP-FCL (FAST
//! 2012 §5) divide an LRU list into segments and tell in which of them a page was; this tells the same for any number
//! of segments, without a boundary to move per segment and use.
//!
//! Uses are numbered. Each page has the number of its last use, its *slot*, and a position is the number of slots after
//! the page's own that are still some page's last. When the slots are used up, those move together, in order; that costs
//! the same, spread over the uses, whatever the capacity.

use crate::part::live_slots::LiveSlots;
use crate::part::page_index::PageIndex;

/// Slots per page of capacity: three uses of each page between moves.
const SLOTS_PER_PAGE: usize = 4;

/// Slots that there are at least.
const SLOTS_MIN: usize = 512;

/// How many slots ahead of the oldest page the index is told that a page will be looked up.
const PREFETCH_SLOTS: usize = 16;

/// The most recently used pages, in order.
#[derive(Clone, Debug)]
pub struct ReuseStack {
    capacity: u32,
    /// Slot of each page in the stack.
    index: PageIndex,
    /// Page of each slot; of no meaning where the slot is not live.
    pages: Vec<u32>,
    /// Which slots are the last use of a page in the stack.
    live: LiveSlots,
    /// The next use gets this slot.
    next: usize,
    /// No slot before this one is live.
    oldest: usize,
}

impl ReuseStack {
    /// An empty stack of at most `capacity` pages: some 33 bytes for each.
    pub fn new(capacity: u32) -> Self {
        let slots = capacity as usize * SLOTS_PER_PAGE + SLOTS_MIN;
        Self {
            capacity,
            // With a third more room than pages searches are shorter.
            index: PageIndex::new((u64::from(capacity) * 4 / 3) as u32 + 1),
            pages: vec![0; slots],
            live: LiveSlots::new(slots),
            next: 0,
            oldest: 0,
        }
    }

    /// Number of pages in it.
    pub fn len(&self) -> u32 {
        self.index.len()
    }

    /// Whether no page is in it.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Uses a page, which becomes the most recent one. Returns its position before, 0 being the most recent, or `None`
    /// if it was not in the stack; then the least recent page falls out if the stack was full.
    #[inline]
    pub fn touch(&mut self, page: u32) -> Option<u32> {
        if self.next == self.pages.len() {
            self.compact();
        }
        let slot = self.next;
        let previous = self.index.insert(page, slot as u32);
        let position = previous.map(|previous| {
            let before = self.live.through(previous as usize);
            self.live.clear(previous as usize);
            self.len() - before
        });
        self.pages[slot] = page;
        self.live.set(slot);
        self.next += 1;
        if self.len() > self.capacity {
            self.drop_oldest();
        }
        position
    }

    /// Uses a page that is in the stack, which becomes the most recent one; returns its position before, or `None` if it is
    /// not there.
    #[inline]
    pub fn touch_again(&mut self, page: u32) -> Option<u32> {
        self.index.get(page)?;
        self.touch(page)
    }

    /// The position of a page, 0 being the most recent one.
    #[inline]
    pub fn position(&self, page: u32) -> Option<u32> {
        self.index.get(page).map(|slot| self.len() - self.live.through(slot as usize))
    }

    /// Takes a page out; returns whether it was in.
    #[inline]
    pub fn remove(&mut self, page: u32) -> bool {
        let slot = self.index.remove(page);
        if let Some(slot) = slot {
            self.live.clear(slot as usize);
        }
        slot.is_some()
    }

    /// Brings what a use of a page needs first into the processor's cache.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        self.index.prefetch(page);
    }

    /// Bytes of memory that it holds.
    pub fn bytes(&self) -> usize {
        self.index.bytes() + size_of_val(&self.pages[..]) + self.live.bytes()
    }

    /// The page that was not used for longest falls out.
    #[inline]
    fn drop_oldest(&mut self) {
        self.oldest = self.live.first(self.oldest);
        if let Some(&soon) = self.pages.get(self.oldest + PREFETCH_SLOTS) {
            self.index.prefetch(soon);
        }
        let page = self.pages[self.oldest];
        self.remove(page);
    }

    /// Moves the live slots together, in order, so that there are unused ones again.
    #[cold]
    fn compact(&mut self) {
        let mut to = 0;
        let mut from = self.live.first(self.oldest);
        while to < self.len() as usize {
            self.pages[to] = self.pages[from];
            to += 1;
            from = self.live.first(from + 1);
        }
        for slot in 0..to {
            self.index.prefetch(self.pages[slot + PREFETCH_SLOTS]);
            self.index.insert(self.pages[slot], slot as u32);
        }
        self.live.set_first(to);
        self.next = to;
        self.oldest = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::part::random;

    /// The same by a plain list, the most recent page first.
    struct Naive {
        pages: Vec<u32>,
        capacity: usize,
    }

    impl Naive {
        fn position(&self, page: u32) -> Option<u32> {
            self.pages.iter().position(|&other| other == page).map(|position| position as u32)
        }

        fn remove(&mut self, page: u32) -> bool {
            let position = self.position(page);
            position.map(|position| self.pages.remove(position as usize)).is_some()
        }

        fn touch(&mut self, page: u32) -> Option<u32> {
            let position = self.position(page);
            self.remove(page);
            self.pages.insert(0, page);
            self.pages.truncate(self.capacity);
            position
        }
    }

    /// Uses, removals and questions; three quarters of them on a tenth of the pages.
    fn agrees_with_a_list(capacity: u32, pages: u64, steps: usize, seed: u64) {
        let mut state = seed;
        let (mut stack, mut naive) =
            (ReuseStack::new(capacity), Naive { pages: Vec::new(), capacity: capacity as usize });
        for step in 0..steps {
            let range = if random::below(&mut state, 4) == 0 { pages } else { pages.div_ceil(10) };
            let page = random::below(&mut state, range) as u32;
            match random::below(&mut state, 20) {
                0 => assert_eq!(stack.remove(page), naive.remove(page), "step {step}"),
                1..4 => assert_eq!(stack.position(page), naive.position(page), "step {step}"),
                _ => assert_eq!(stack.touch(page), naive.touch(page), "step {step}"),
            }
            assert_eq!(stack.len() as usize, naive.pages.len(), "step {step}");
            assert_eq!(stack.is_empty(), naive.pages.is_empty());
        }
        assert!((0..pages as u32).all(|page| stack.position(page) == naive.position(page)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn positions_are_those_of_a_list(capacity in 0u32..60, pages in 1u64..100, seed in any::<u64>()) {
            agrees_with_a_list(capacity, pages, 2000, seed);
        }
    }

    /// Many blocks, and several moves.
    #[test]
    fn positions_are_those_of_a_long_list() {
        agrees_with_a_list(3000, 5000, 60_000, 1);
        agrees_with_a_list(5000, 5000, 60_000, 2);
    }

    #[test]
    fn nothing_is_allocated_once_it_is_made() {
        let mut stack = ReuseStack::new(2000);
        let mut state = 3;
        let allocations = allocation_counter::measure(|| {
            for _ in 0..50_000 {
                stack.touch(random::below(&mut state, 3000) as u32);
                stack.remove(random::below(&mut state, 3000) as u32);
            }
        });
        assert_eq!(allocations.count_total, 0);
        assert!(stack.bytes() < 29 * 2000 + 10_000, "{}", stack.bytes());
    }
}
