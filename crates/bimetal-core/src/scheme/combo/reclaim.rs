//! Reclaiming the log: `GC_hot`, `GC_warm`, early migration (`ComboFTL` 2010 §4.1, §4.3), and the staying time.

use super::Combo;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::chances::{Chances, State};
use super::partitions::Partition;
use crate::media::{Cause, Media};
use crate::scheme::tiered::Survivors;
use crate::units::Ppa;

crate::choices! {
    /// The formula for the stay of a cold page in the log.
    pub enum StayingTime {
        /// `P (B_h + N B_w (1 - b) / a)`: `GC_hot` is called once in `P` page writes.
        Corrected = "corrected",
        /// `B_h P N B_w (1 - b) / a`, as printed.
        Printed = "printed",
    }
}

/// Destination of data at the tail of the hot partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HotTail {
    /// They go to the warm partition.
    Stays,
    /// They go to the warm partition if they were updated while they were in the hot one, else to the slow region (2Q,
    /// Fig. 6b).
    StaysIfUpdated,
    /// They go to the slow region: there is no warm partition (CLOCK).
    Leaves,
}

impl HotTail {
    /// Whether a unit at the tail of its partition is demoted to the slow region.
    #[inline]
    fn goes_down(self, chances: &Chances, state: State) -> bool {
        if state.is_in_warm() {
            return chances.exhausted(state);
        }
        match self {
            Self::Stays => false,
            Self::StaysIfUpdated => !state.is_updated(),
            Self::Leaves => true,
        }
    }
}

/// Shares of the pages of reclaimed blocks that were valid.
#[derive(Debug, Serialize, Deserialize)]
pub struct ValidShares {
    #[serde(with = "crate::save::fixed")]
    pages_per_block: u32,
    /// Valid pages and blocks of this period, by partition.
    valid: [u64; 2],
    blocks: [u64; 2],
    /// The shares of the last period with a reclaimed block: `α` and `β`.
    shares: [f64; 2],
}

impl ValidShares {
    /// Initial values: all pages of the hot partition valid, none of the warm one.
    pub fn new(pages_per_block: u32) -> Self {
        Self { pages_per_block, valid: [0; 2], blocks: [0; 2], shares: [1.0, 0.0] }
    }

    fn note(&mut self, partition: Partition, valid_pages: u32) {
        self.valid[partition as usize] += u64::from(valid_pages);
        self.blocks[partition as usize] += 1;
    }

    /// Ends a period.
    pub fn close_period(&mut self) {
        for partition in 0..2 {
            if self.blocks[partition] > 0 {
                let pages = self.blocks[partition] * u64::from(self.pages_per_block);
                self.shares[partition] = self.valid[partition] as f64 / pages as f64;
            }
        }
        (self.valid, self.blocks) = ([0; 2], [0; 2]);
    }

    /// Pages written to the hot partition while a cold page passes through both (§4.1), at least all pages of the hot
    /// one.
    ///
    /// Less than one valid page in a block counts as one, so that the time stays finite.
    pub fn staying_time(&self, formula: StayingTime, chances: u32, [hot, warm]: [u32; 2]) -> u64 {
        let pages = f64::from(self.pages_per_block);
        let (hot, warm, chances) = (f64::from(hot), f64::from(warm), f64::from(chances));
        let [alpha, beta] = self.shares;
        let calls = chances * warm * (1.0 - beta) / alpha.max(1.0 / pages);
        let time = match formula {
            StayingTime::Corrected => pages * (hot + calls),
            StayingTime::Printed => (hot * pages * calls).max(pages * hot),
        };
        time as u64
    }
}

impl Combo {
    /// The page of the hot partition for the host's next data.
    #[inline]
    pub(super) fn hot_page<M: Media>(&mut self, media: &mut M) -> Ppa {
        while self.partitions.is_short(Partition::Hot) {
            self.reclaim(media, Partition::Hot);
        }
        self.take_page(Partition::Hot)
    }

    fn take_page(&mut self, partition: Partition) -> Ppa {
        let (block, page) = self.partitions.next_page(partition);
        self.tiers.fast.slots().geometry().ppa(block, page)
    }

    /// Empties a partition's tail block: data without a chance left are demoted, the rest moves to the head of the warm
    /// partition.
    fn reclaim<M: Media>(&mut self, media: &mut M, partition: Partition) {
        let Some(block) = self.partitions.tail(partition) else { return };
        let slots = self.tiers.fast.slots();
        let geometry = *slots.geometry();
        let end = slots.first_slot(geometry.ppa(block, geometry.pages_per_block - 1)) + slots.slots();
        let mut survivors = Survivors::default();
        let mut valid_pages = 0;
        for page in 0..geometry.pages_per_block {
            let page = geometry.ppa(block, page);
            let first = self.tiers.fast.slots().first_slot(page);
            for slot in first..first + self.tiers.fast.units_per_page() {
                self.tiers.prefetch_emptied(slot, end, |slot| self.goes_down(slot));
            }
            if !self.tiers.fast.slots().is_valid(page) {
                continue;
            }
            valid_pages += 1;
            self.move_down(media, first..end);
            if self.tiers.fast.slots().is_valid(page) {
                self.move_on(media, page, partition, &mut survivors);
            }
        }
        self.copy(media, &mut survivors);
        self.valid_shares.note(partition, valid_pages);
        self.tiers.fast.erase(media, block, Cause::Gc);
        self.partitions.retire_tail(partition);
    }

    /// Whether the unit in a slot of a tail block is demoted to the slow region.
    #[inline]
    fn goes_down(&self, slot: u32) -> bool {
        self.hot_tail.goes_down(&self.chances, self.states[slot as usize])
    }

    /// Demotes the units of a page that have no chance left; its slots are the first of `slots`. Each unit is demoted
    /// together with those of its slow page among all of `slots` that have no chance left either.
    fn move_down<M: Media>(&mut self, media: &mut M, slots: Range<u32>) {
        for slot in slots.start..slots.start + self.tiers.fast.units_per_page() {
            let Self { states, chances, hot_tail, .. } = self;
            let goes_down = |slot: u32| hot_tail.goes_down(chances, states[slot as usize]);
            let Some(unit) = self.tiers.fast.slots().unit(slot).filter(|_| goes_down(slot)) else { continue };
            let rest = slot..slots.end;
            let moved = self.tiers.demote(media, unit, |slot| rest.contains(&slot) && goes_down(slot));
            self.counts.slc_to_mlc_pages += 1;
            self.period.moved_units += u64::from(moved);
            self.counts.demoted_units += u64::from(moved);
            if self.detection.follows_log() {
                self.detection.note_demoted(unit, moved);
            }
        }
    }

    /// Assigns the valid units of a tail page to the head of the warm partition.
    ///
    /// The survivors of a warm block need no more than the open block and the erased one that is kept. Each lap of the
    /// warm partition costs a unit a chance, so that laps without gain end.
    fn move_on<M: Media>(&mut self, media: &mut M, page: Ppa, partition: Partition, survivors: &mut Survivors) {
        if self.partitions.needs_block(Partition::Warm) || survivors.is_full() {
            self.copy(media, survivors);
        }
        if partition == Partition::Hot {
            while self.partitions.is_short(Partition::Warm) {
                self.reclaim(media, Partition::Warm);
            }
        }
        let to = self.take_page(Partition::Warm);
        let Self { states, chances, .. } = self;
        self.tiers.move_survivor(survivors, page, to, |old, new| {
            let state = states[old as usize].after_lap();
            states[new as usize] = state;
            chances.note_entered(state);
        });
    }

    /// Copies the assigned units.
    fn copy<M: Media>(&mut self, media: &mut M, survivors: &mut Survivors) {
        self.counts.slc_to_slc_pages += self.tiers.copy_survivors(media, survivors);
    }
}
