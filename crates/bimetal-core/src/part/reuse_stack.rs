//! LRU stacks that report exact positions: the number of other pages used since a page's last use (its reuse distance).
//!
//! A page at position `p` is a hit in every LRU cache of more than `p` pages (Mattson, Gecsei, Slutz, Traiger:
//! *Evaluation techniques for storage hierarchies*, IBM Systems Journal 1970). The ghost lists of OP-FCL (FAST 2012 §5)
//! divide an LRU list into segments and report the segment of a page. These stacks give the same result for any number
//! of segments, without moving a boundary per segment and use.
//!
//! The uses of a stack are numbered, around a ring. Each page has the number of its last use, its *stamp*. A position
//! is the number of later stamps that are still the last use of some page. When the next stamp still belongs to a page
//! that was not used for a whole round, all stamps are compacted in order. Spread over the uses, the cost of this does
//! not depend on the capacity, and it is zero if pages are evicted before.
//!
//! If a page is in at most one of several stacks, the stacks share one index of pages, so that a use looks the page up
//! once.

use serde::{Deserialize, Serialize, Serializer};

use crate::part::live_stamps::LiveStamps;
use crate::part::page_index::PageIndex;

/// Stamps per page of capacity: three uses of each page between compactions.
const STAMPS_PER_PAGE: usize = 4;

/// Minimum number of stamps.
const STAMPS_MIN: usize = 512;

/// Distance, in stamps, from the oldest page to the page whose index entry is prefetched.
const PREFETCH_STAMPS: usize = 32;

/// The most recently used pages, in order, in one or several stacks. A page is in at most one stack.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Saved<STACKS>")]
pub struct ReuseStacks<const STACKS: usize = 1> {
    /// Maximum number of pages per stack.
    #[serde(with = "crate::save::fixed")]
    capacity: u32,
    /// By page in a stack: `stamp * STACKS + stack`.
    #[serde(skip_serializing)]
    index: PageIndex,
    #[serde(with = "crate::save::array")]
    stacks: [Stack; STACKS],
}

/// The saved form. The index follows from the stacks.
#[derive(Deserialize)]
struct Saved<const STACKS: usize> {
    #[serde(with = "crate::save::fixed")]
    capacity: u32,
    #[serde(with = "crate::save::array")]
    stacks: [Stack; STACKS],
}

impl<const STACKS: usize> TryFrom<Saved<STACKS>> for ReuseStacks<STACKS> {
    type Error = &'static str;

    fn try_from(Saved { capacity, stacks }: Saved<STACKS>) -> Result<Self, Self::Error> {
        if capacity > Self::CAPACITY_MAX || stacks.iter().any(|stack| stack.pages.len() != stamps(capacity)) {
            return Err("another number of stamps than the capacity needs");
        }
        if stacks.iter().any(|stack| stack.len > capacity || stack.in_order().any(|(_, page)| page == u32::MAX)) {
            return Err("more pages than the capacity");
        }
        let mut restored = Self { capacity, index: Self::index(capacity), stacks };
        (0..STACKS).for_each(|number| restored.index_all(number));
        Ok(restored)
    }
}

/// The order of the pages of one stack.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "SavedStack")]
struct Stack {
    len: u32,
    /// Page of each stamp; without meaning if the stamp is not live.
    pages: Vec<u32>,
    /// Stamps that are the last use of a page in the stack.
    live: LiveStamps,
    /// Stamp of the next use.
    next: usize,
    /// Number of live stamps before it.
    before_next: u32,
    /// No stamp from `next` around the ring to this one is live.
    oldest: usize,
}

/// The saved form: pages of live stamps only, in the order of stamps.
#[derive(Deserialize)]
struct SavedStack {
    #[serde(with = "crate::save::fixed")]
    stamps: usize,
    live: LiveStamps,
    #[serde(with = "crate::save::list")]
    pages: Vec<u32>,
    next: usize,
    oldest: usize,
}

impl Serialize for Stack {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Borrowed instead of copied: an image of the state freezes the table in it.
        #[derive(Serialize)]
        struct Borrowed<'a> {
            #[serde(with = "crate::save::fixed")]
            stamps: usize,
            live: &'a LiveStamps,
            #[serde(with = "crate::save::list")]
            pages: Vec<u32>,
            next: usize,
            oldest: usize,
        }

        let pages = self.in_order().map(|(_, page)| page).collect();
        let (stamps, live) = (self.pages.len(), &self.live);
        Borrowed { stamps, live, pages, next: self.next, oldest: self.oldest }.serialize(serializer)
    }
}

impl TryFrom<SavedStack> for Stack {
    type Error = &'static str;

    fn try_from(SavedStack { stamps, live, pages: packed, next, oldest }: SavedStack) -> Result<Self, Self::Error> {
        if !live.are_among(stamps) || live.len() as usize != packed.len() {
            return Err("not every live stamp has a page");
        }
        if next >= stamps || oldest >= stamps {
            return Err("the next or the oldest stamp does not exist");
        }
        let mut pages = vec![0; stamps];
        live.iter().zip(&packed).for_each(|(stamp, &page)| pages[stamp] = page);
        let before_next = if next == 0 { 0 } else { live.through(next - 1) };
        Ok(Self { len: live.len(), pages, live, next, before_next, oldest })
    }
}

/// Number of stamps of a stack of `capacity` pages.
fn stamps(capacity: u32) -> usize {
    capacity as usize * STAMPS_PER_PAGE + STAMPS_MIN
}

impl Stack {
    fn new(capacity: u32) -> Self {
        let stamps = stamps(capacity);
        Self { len: 0, pages: vec![0; stamps], live: LiveStamps::new(stamps), next: 0, before_next: 0, oldest: 0 }
    }

    /// Live stamps and their pages, in the order of stamps.
    fn in_order(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.live.iter().map(|stamp| (stamp, self.pages[stamp]))
    }

    /// Number of live stamps after `stamp`.
    #[inline]
    fn after(&self, stamp: usize) -> u32 {
        let through = self.live.through(stamp);
        if stamp < self.next { self.before_next - through } else { self.before_next + self.len - through }
    }

    /// Makes a page the most recent one. A stamp must be available for it.
    #[inline]
    fn push(&mut self, page: u32) {
        self.pages[self.next] = page;
        self.live.set(self.next);
        self.len += 1;
        self.before_next += 1;
        self.next += 1;
        if self.next == self.pages.len() {
            (self.next, self.before_next) = (0, 0);
        }
    }

    #[inline]
    fn clear(&mut self, stamp: usize) {
        self.live.clear(stamp);
        self.len -= 1;
        self.before_next -= u32::from(stamp < self.next);
    }

    /// The first live stamp at or after `from`, around the ring. There must be one.
    #[inline]
    fn first(&self, from: usize) -> usize {
        let first = self.live.first(from);
        if first < self.pages.len() { first } else { self.live.first(0) }
    }

    /// Whether a stamp is available for the next use.
    #[inline]
    fn has_room(&mut self) -> bool {
        if self.next == self.oldest && self.len > 0 {
            self.oldest = self.first(self.oldest);
        }
        self.len == 0 || self.next != self.oldest
    }

    /// Checks that stamps and counts agree, and that `is_indexed` confirms for each live stamp that the index has it
    /// for its page.
    fn check(&self, is_indexed: impl Fn(u32, usize) -> bool) -> Result<(), String> {
        let stamps = self.pages.len();
        if self.next >= stamps || self.oldest >= stamps {
            return Err(format!("of {stamps} stamps {} is next and {} the oldest", self.next, self.oldest));
        }
        let counted =
            (self.live.iter().count() as u32, self.live.iter().filter(|&stamp| stamp < self.next).count() as u32);
        if counted != (self.len, self.before_next) || self.live.len() != self.len {
            return Err(format!("{counted:?} stamps are live, {:?} counted", (self.len, self.before_next)));
        }
        let ahead = |stamp: usize| (stamp + stamps - self.next) % stamps;
        if self.len > 0 && (self.next == self.oldest || ahead(self.first(self.next)) < ahead(self.oldest)) {
            return Err(format!("a stamp from {} to {} is live", self.next, self.oldest));
        }
        match self.in_order().find(|&(stamp, page)| !is_indexed(page, stamp)) {
            Some((stamp, page)) => Err(format!("page {page} has stamp {stamp}, but another one in the index")),
            None => Ok(()),
        }
    }

    /// The stamp `steps` after `stamp`, around the ring.
    #[inline]
    fn step(&self, stamp: usize, steps: usize) -> usize {
        let to = stamp + steps;
        if to < self.pages.len() { to } else { to - self.pages.len() }
    }
}

impl<const STACKS: usize> ReuseStacks<STACKS> {
    /// Maximum number of pages per stack, since the stamps of all stacks are encoded in 32 bits.
    pub const CAPACITY_MAX: u32 = (((1 << 32) / STACKS - STAMPS_MIN) / STAMPS_PER_PAGE) as u32;

    /// Empty stacks of at most `capacity` pages each; about 33 bytes per page.
    ///
    /// # Panics
    /// If `capacity` is more than [`Self::CAPACITY_MAX`].
    pub fn new(capacity: u32) -> Self {
        assert!(capacity <= Self::CAPACITY_MAX, "stamps of {capacity} pages do not fit into the index");
        let stack = Stack::new(capacity);
        Self { capacity, index: Self::index(capacity), stacks: std::array::from_fn(|_| stack.clone()) }
    }

    /// An empty index of the pages of all stacks.
    fn index(capacity: u32) -> PageIndex {
        // With a third more capacity than pages, at least half of the index is empty, so searches are short.
        let entries = u64::from(capacity) * STACKS as u64 * 4 / 3 + 1;
        PageIndex::new(entries as u32)
    }

    /// Number of pages in all stacks.
    pub fn len(&self) -> u32 {
        self.index.len()
    }

    /// Whether all stacks are empty.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Uses a page, which becomes the most recent one of a stack. `choose` gets the page's current stack and returns
    /// the new one. Returns the new stack and the page's previous position in it, 0 being the most recent, or `None` if
    /// the page was not in that stack. In that case the least recent page is evicted if the stack was full.
    #[inline]
    pub fn touch_in(&mut self, page: u32, choose: impl FnOnce(Option<usize>) -> usize) -> (usize, Option<u32>) {
        let mut to = 0;
        let stacks = &mut self.stacks;
        let previous = self.index.update(page, |previous| {
            to = choose(previous.map(|value| value as usize % STACKS));
            (stacks[to].next * STACKS + to) as u32
        });
        let position = previous.and_then(|value| {
            let (stamp, from) = (value as usize / STACKS, value as usize % STACKS);
            let position = (from == to).then(|| stacks[to].after(stamp));
            stacks[from].clear(stamp);
            position
        });
        stacks[to].push(page);
        if stacks[to].len > self.capacity {
            self.drop_oldest(to);
        }
        if !self.stacks[to].has_room() {
            self.compact(to);
        }
        (to, position)
    }

    /// Uses a page, which becomes the most recent one of the first stack. Returns its previous position there. The page
    /// must not be in another stack.
    #[inline]
    pub fn touch(&mut self, page: u32) -> Option<u32> {
        self.touch_in(page, |_| 0).1
    }

    /// The position of a page in its stack, 0 being the most recent.
    #[inline]
    pub fn position(&self, page: u32) -> Option<u32> {
        self.index.get(page).map(|value| self.stacks[value as usize % STACKS].after(value as usize / STACKS))
    }

    /// The pages of the first stack from a position on towards the most recent one; empty if the position is beyond the
    /// stack.
    pub fn towards_recent_from(&self, position: u32) -> impl Iterator<Item = u32> {
        let stack = &self.stacks[0];
        let stamps = stack.pages.len();
        let within = position < stack.len;
        // From the oldest stamp to the next one, each stamp has as many live ones after it as its predecessor, or one
        // fewer.
        let (mut low, mut high) = (0, (stack.next + stamps - stack.oldest) % stamps);
        while within && low < high {
            let middle = low.midpoint(high);
            if stack.after(stack.step(stack.oldest, middle)) > position { low = middle + 1 } else { high = middle }
        }
        let mut stamp = if within { stack.step(stack.oldest, low) } else { 0 };
        (0..if within { position + 1 } else { 0 }).map(move |_| {
            let page = stack.first(stamp);
            stamp = stack.step(page, 1);
            stack.pages[page]
        })
    }

    /// Removes a page. Returns whether it was in a stack.
    #[inline]
    pub fn remove(&mut self, page: u32) -> bool {
        let value = self.index.remove(page);
        if let Some(value) = value {
            self.stacks[value as usize % STACKS].clear(value as usize / STACKS);
        }
        value.is_some()
    }

    /// Prefetches the first data that a use of a page needs into the processor's cache.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        self.index.prefetch(page);
    }

    /// Checks that the stacks and their index agree.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        for (number, stack) in self.stacks.iter().enumerate() {
            if stack.len > self.capacity {
                return Err(format!("stack {number} has {} pages of at most {}", stack.len, self.capacity));
            }
            stack.check(|page, stamp| self.index.get(page) == Some((stamp * STACKS + number) as u32))?;
        }
        let pages: u32 = self.stacks.iter().map(|stack| stack.len).sum();
        if pages == self.len() { Ok(()) } else { Err(format!("{pages} pages are stacked and {} indexed", self.len())) }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let stacks = self.stacks.iter().map(|stack| size_of_val(&stack.pages[..]) + stack.live.bytes());
        self.index.bytes() + stacks.sum::<usize>()
    }

    /// Evicts the least recently used page of a stack.
    #[inline]
    fn drop_oldest(&mut self, of: usize) {
        let stack = &mut self.stacks[of];
        let oldest = stack.first(stack.oldest);
        // The prefetches of the index advance as far as the oldest stamp.
        let mut soon = stack.step(stack.oldest, PREFETCH_STAMPS);
        while stack.oldest != oldest {
            stack.oldest = stack.step(stack.oldest, 1);
            soon = stack.step(soon, 1);
            if stack.live.contains(soon) {
                self.index.prefetch(stack.pages[soon]);
            }
        }
        let page = stack.pages[oldest];
        self.remove(page);
    }

    /// Compacts the live stamps of a stack, in order, so that there are unused ones again.
    #[cold]
    fn compact(&mut self, of: usize) {
        let stack = &mut self.stacks[of];
        // A page keeps its stamp or gets an earlier one, counted from the oldest stamp.
        let first = stack.oldest;
        let (mut to, mut from) = (first, first);
        for _ in 0..stack.len {
            from = stack.first(from);
            stack.pages[to] = stack.pages[from];
            to = stack.step(to, 1);
            from = stack.step(from, 1);
        }
        let mut stamp = first;
        for _ in 0..stack.len {
            self.index.prefetch(stack.pages[stack.step(stamp, PREFETCH_STAMPS)]);
            self.index.insert(stack.pages[stamp], (stamp * STACKS + of) as u32);
            stamp = stack.step(stamp, 1);
        }
        stack.live.set_only(first, stack.len as usize, stack.pages.len());
        stack.next = stamp;
        stack.before_next = if stamp == 0 { 0 } else { stack.live.through(stamp - 1) };
    }

    /// Adds all pages of a stack to the index.
    fn index_all(&mut self, of: usize) {
        let stack = &self.stacks[of];
        let mut ahead = stack.in_order().skip(PREFETCH_STAMPS);
        for (stamp, page) in stack.in_order() {
            if let Some((_, page)) = ahead.next() {
                self.index.prefetch(page);
            }
            self.index.insert(page, (stamp * STACKS + of) as u32);
        }
    }
}

#[cfg(test)]
mod tests;
