//! Full blocks in the order in which they became full, to find the best victim without a look at all of them.
//!
//! ```text
//! places     0 … 31              32 … 63              64 …
//! blocks    |17 – 4 … 80 –|     |3 52 – … – 9|       |21 66 30 …      – a collected block
//!            oldest: 17           oldest: 3
//!            fewest: 12 pages     fewest: 40 pages
//! ```
//!
//! Blocks that became full at about the same time form a group of [`GROUP`]. A score that grows with the age and falls
//! with the number of valid pages is for no block of a group above that of an imagined block which is as old as the
//! oldest and has as few valid pages as any. Only groups for which this exceeds the best score so far are searched.

use std::ops::Range;

/// Places of a group.
const GROUP: usize = 32;
/// The first entry of a die is a multiple of this.
const ENTRIES: usize = 64;
/// No place, no block, or a group without blocks.
const NONE: u32 = u32::MAX;

/// The place of the first block of the die whose entries begin with this one. A die has half as many places again as
/// blocks, so that the places of collected blocks are rarely closed up.
const fn first_place(entry: usize) -> usize {
    entry / 2 * 3
}

/// The order of the blocks of each die.
#[derive(Debug)]
pub struct SealOrder {
    /// By entry: its place.
    places: Vec<u32>,
    /// By place: the entry.
    entries: Vec<u32>,
    /// By group of places: a lower bound for the valid pages of its blocks.
    fewest: Vec<u32>,
    /// The dies whose order is kept, by their first entry.
    dies: Vec<Die>,
}

#[derive(Debug)]
struct Die {
    first_entry: usize,
    /// The next place.
    next: usize,
    end: usize,
}

impl SealOrder {
    /// For a table of `entries` entries. The order of no die is kept yet.
    pub fn new(entries: usize) -> Self {
        let places = first_place(entries.next_multiple_of(ENTRIES));
        Self {
            places: vec![NONE; entries],
            entries: vec![NONE; places],
            fewest: vec![NONE; places / GROUP],
            dies: Vec::with_capacity(entries.div_ceil(ENTRIES)),
        }
    }

    /// The places of the die that has these entries, once its order is kept.
    fn places_of(&self, entries: &Range<usize>) -> Option<Range<usize>> {
        let die = self.dies.binary_search_by_key(&entries.start, |die| die.first_entry).ok()?;
        Some(first_place(entries.start)..self.dies[die].next)
    }

    /// Keeps the order of the die that has these entries. `sealed` are its full blocks, the oldest first.
    fn keep(&mut self, entries: &Range<usize>, counts: &[u32], sealed: &[usize]) -> Range<usize> {
        let at = self.dies.partition_point(|die| die.first_entry < entries.start);
        let (first, end) = (first_place(entries.start), first_place(entries.end.next_multiple_of(ENTRIES)));
        self.dies.insert(at, Die { first_entry: entries.start, next: first, end });
        sealed.iter().for_each(|&entry| self.push(entry, counts));
        first..self.dies[at].next
    }

    /// A block became full.
    pub fn push(&mut self, entry: usize, counts: &[u32]) {
        let Some(die) = self.dies.partition_point(|die| die.first_entry <= entry).checked_sub(1) else { return };
        // The entries behind the last die whose order is kept.
        if first_place(entry) >= self.dies[die].end {
            return;
        }
        if self.dies[die].next == self.dies[die].end {
            self.close_up(die, counts);
        }
        let place = self.dies[die].next;
        self.dies[die].next += 1;
        self.put(entry, place, counts);
    }

    fn put(&mut self, entry: usize, place: usize, counts: &[u32]) {
        (self.places[entry], self.entries[place]) = (place as u32, entry as u32);
        let fewest = &mut self.fewest[place / GROUP];
        *fewest = (*fewest).min(counts[entry]);
    }

    /// Closes up the places of collected blocks.
    #[cold]
    fn close_up(&mut self, die: usize, counts: &[u32]) {
        let first = first_place(self.dies[die].first_entry);
        let end = self.dies[die].end;
        self.fewest[first / GROUP..end / GROUP].fill(NONE);
        let mut next = first;
        for place in first..end {
            let entry = std::mem::replace(&mut self.entries[place], NONE);
            if entry != NONE {
                self.put(entry as usize, next, counts);
                next += 1;
            }
        }
        self.dies[die].next = next;
    }

    /// A full block is about to be collected.
    pub fn remove(&mut self, entry: usize) {
        let place = std::mem::replace(&mut self.places[entry], NONE);
        if place != NONE {
            self.entries[place as usize] = NONE;
        }
    }

    /// A block has only `valid` valid pages left.
    #[inline]
    pub fn invalidated(&mut self, entry: usize, valid: u32) {
        let place = self.places[entry];
        if place != NONE {
            let fewest = &mut self.fewest[place as usize / GROUP];
            *fewest = (*fewest).min(valid);
        }
    }

    /// The full block of a die with the highest score above 0, the first among equals, of those that are candidates.
    /// `entries` are those of the die.
    pub fn best(
        &mut self,
        entries: Range<usize>,
        counts: &[u32],
        is_sealed: impl Fn(usize) -> bool,
        age: impl Fn(usize) -> u64,
        is_candidate: impl Fn(usize) -> bool,
        score: impl Fn(u64, u32) -> f64,
    ) -> Option<usize> {
        let places = self.places_of(&entries).unwrap_or_else(|| {
            let mut sealed: Vec<usize> = entries.clone().filter(|&entry| is_sealed(entry)).collect();
            sealed.sort_by_key(|&entry| std::cmp::Reverse(age(entry)));
            self.keep(&entries, counts, &sealed)
        });
        let (mut best, mut highest) = (None, 0.0);
        for group in places.start / GROUP..places.end.div_ceil(GROUP) {
            let of_group = &self.entries[group * GROUP..(group + 1) * GROUP];
            let fewest = &mut self.fewest[group];
            let oldest = of_group.iter().find(|&&entry| entry != NONE);
            let Some(&oldest) = oldest.filter(|_| *fewest != NONE) else {
                *fewest = NONE;
                continue;
            };
            if score(age(oldest as usize), *fewest) < highest {
                continue;
            }
            *fewest = NONE;
            for &entry in of_group.iter().filter(|&&entry| entry != NONE) {
                let (block, valid) = (entry as usize, counts[entry as usize]);
                *fewest = (*fewest).min(valid);
                if !is_candidate(block) {
                    continue;
                }
                let score = score(age(block), valid);
                if score > highest || score == highest && best.is_some_and(|best| block < best) {
                    (best, highest) = (Some(block), score);
                }
            }
        }
        best
    }
}
