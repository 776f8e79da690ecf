//! The log's hot and warm partition (`ComboFTL` 2010 §4.1): two rings over the blocks of one region.
//!
//! "The boundary is shifted periodically" to balance wear. Here the rings exchange erased blocks: of two that differ by
//! more than a cycle, the more worn one goes to the partition that is erased less often, and both partitions keep their
//! size. A boundary between two halves of an array would have to be shifted all the way round for the same effect.

use serde::{Deserialize, Serialize};

use crate::region::ring::Ring;
use crate::save::Table;
use crate::units::BlockId;

/// A partition of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Partition {
    /// Where the host writes.
    Hot = 0,
    /// Data that stayed valid in the hot partition.
    Warm = 1,
}

/// Erased blocks that a partition keeps: for the survivors of its tail block, and for exchanges.
const ERASED_MIN: u32 = 1;

/// The partitions' state.
#[derive(Debug, Serialize, Deserialize)]
pub struct Partitions {
    rings: [Ring; 2],
    /// Number of blocks of each.
    blocks: [u32; 2],
    /// Erase count of each block.
    erases: Table<u32>,
    /// Erases so far, by the partition of the block at the time.
    erased: [u64; 2],
    /// Whether the partitions exchange blocks.
    #[serde(with = "crate::save::fixed")]
    balances: bool,
    shifts: u64,
}

impl Partitions {
    /// Partitions of `blocks` blocks in total, the hot one with `hot_percent` of them; at 100 the log is one ring. If
    /// `balances`, they exchange blocks to even out their wear.
    ///
    /// # Errors
    /// Too few blocks.
    pub fn new(blocks: u32, hot_percent: u32, pages_per_block: u32, balances: bool) -> Result<Self, String> {
        let least = ERASED_MIN + 1;
        let is_one = hot_percent >= 100;
        let needed = if is_one { least } else { 2 * least };
        if blocks < needed {
            return Err(format!(
                "the log needs at least {needed} fast blocks and there are {blocks}; enlarge the fast region"
            ));
        }
        let share = (u64::from(blocks) * u64::from(hot_percent)).div_ceil(100) as u32;
        let hot = if is_one { blocks } else { share.clamp(least, blocks - least) };
        let ring = |range| Ring::new(range, blocks, pages_per_block, 1, 1);
        Ok(Self {
            rings: [ring(0..hot), ring(hot..blocks)],
            blocks: [hot, blocks - hot],
            erases: vec![0; blocks as usize].into(),
            erased: [0; 2],
            balances,
            shifts: 0,
        })
    }

    /// Blocks of a partition.
    #[inline]
    pub fn blocks(&self, partition: Partition) -> u32 {
        self.blocks[partition as usize]
    }

    /// Whether the partition's next page takes an erased block.
    #[inline]
    pub fn needs_block(&self, partition: Partition) -> bool {
        self.rings[partition as usize].needs_block()
    }

    /// Whether a tail block must be reclaimed before the partition's next page is taken.
    #[inline]
    pub fn is_short(&self, partition: Partition) -> bool {
        let ring = &self.rings[partition as usize];
        ring.needs_block() && ring.erased() <= ERASED_MIN
    }

    /// The partition's next page.
    #[inline]
    pub fn next_page(&mut self, partition: Partition) -> (BlockId, u32) {
        let ring = &mut self.rings[partition as usize];
        if ring.needs_block() {
            ring.open_block();
        }
        ring.next_page()
    }

    /// The block that is reclaimed next.
    #[inline]
    pub fn tail(&self, partition: Partition) -> Option<BlockId> {
        self.rings[partition as usize].tail()
    }

    /// Records that the tail block was emptied and erased.
    pub fn retire_tail(&mut self, partition: Partition) {
        let Some(tail) = self.tail(partition) else { return };
        self.rings[partition as usize].retire_tail();
        self.erases[tail.index()] += 1;
        self.erased[partition as usize] += 1;
        if self.balances {
            self.exchange();
        }
    }

    /// The partitions exchange the erased blocks that they would open next, if the block of the partition that is erased
    /// more often is also more worn.
    fn exchange(&mut self) {
        let [Some(hot), Some(warm)] = [0, 1].map(|partition| self.rings[partition].iter_erased().next()) else {
            return;
        };
        let [hot_erases, warm_erases] = [hot, warm].map(|block| self.erases[block.index()]);
        let rate = |partition: usize| self.erased[partition] * u64::from(self.blocks[1 - partition]);
        let is_worn = if rate(0) > rate(1) { hot_erases > warm_erases + 1 } else { warm_erases > hot_erases + 1 };
        if !is_worn {
            return;
        }
        for (ring, new) in self.rings.iter_mut().zip([warm, hot]) {
            ring.remove_erased();
            ring.add_erased(new);
        }
        self.shifts += 1;
    }

    /// Blocks erased so far in a partition.
    pub fn erases(&self, partition: Partition) -> u64 {
        self.erased[partition as usize]
    }

    /// Pairs of blocks exchanged so far.
    pub fn shifts(&self) -> u64 {
        self.shifts
    }

    /// Blocks of a partition that hold data, oldest first, each with the number of its programmed pages.
    pub fn written(&self, partition: Partition) -> impl Iterator<Item = (BlockId, u32)> + '_ {
        self.rings[partition as usize].iter_written()
    }

    /// Checks that each block is in one place.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = vec![false; self.erases.len()];
        for (partition, ring) in self.rings.iter().enumerate() {
            ring.check(self.erases.len() as u32)?;
            let mut blocks = 0;
            for block in ring.iter_written().map(|(block, _)| block).chain(ring.iter_erased()) {
                if std::mem::replace(&mut seen[block.index()], true) {
                    return Err(format!("fast block {} is in two places", block.0));
                }
                blocks += 1;
            }
            if blocks != self.blocks[partition] {
                return Err(format!("partition {partition} has {blocks} blocks of {}", self.blocks[partition]));
            }
            if blocks > 0 && ring.erased() < ERASED_MIN {
                return Err(format!("partition {partition} has no erased block"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the pages of `blocks` blocks, all of which soon become invalid.
    fn turn(partitions: &mut Partitions, partition: Partition, blocks: u32) {
        for _ in 0..2 * blocks {
            while partitions.is_short(partition) {
                partitions.retire_tail(partition);
            }
            partitions.next_page(partition);
            partitions.check().unwrap();
        }
    }

    /// The paper's 5 % have 256 SLC blocks.
    #[test]
    fn partitions_wear_alike_whatever_their_number_of_blocks() {
        for blocks in [8, 256] {
            let mut partitions = Partitions::new(blocks, 50, 2, true).unwrap();
            let mut plain = Partitions::new(blocks, 50, 2, false).unwrap();
            // The hot partition is erased four times as often.
            for _ in 0..25 * blocks {
                for partitions in [&mut partitions, &mut plain] {
                    turn(partitions, Partition::Hot, 4);
                    turn(partitions, Partition::Warm, 1);
                }
            }
            let spread = |partitions: &Partitions| {
                partitions.erases.iter().max().unwrap() - partitions.erases.iter().min().unwrap()
            };
            assert!(spread(&partitions) <= 8 && spread(&plain) > 100, "{:?}", partitions.erases);
            assert!(partitions.shifts() > 0 && plain.shifts() == 0);
            let erases = [Partition::Hot, Partition::Warm].map(|partition| partitions.erases(partition));
            assert!(erases[0] > 7 * erases[1] / 2, "{erases:?}");
        }
    }

    #[test]
    fn partitions_less_than_a_cycle_apart_keep_their_blocks() {
        let mut partitions = Partitions::new(8, 50, 2, true).unwrap();
        turn(&mut partitions, Partition::Warm, 4);
        turn(&mut partitions, Partition::Hot, 4);
        assert_eq!(partitions.shifts(), 0);
    }

    #[test]
    fn partitions_have_their_share_and_at_least_two_blocks() {
        let blocks =
            |blocks, hot_percent| Partitions::new(blocks, hot_percent, 4, true).map(|partitions| partitions.blocks);
        assert_eq!(blocks(10, 50), Ok([5, 5]));
        assert_eq!(blocks(10, 1), Ok([2, 8]));
        assert_eq!(blocks(10, 99), Ok([8, 2]));
        assert_eq!(blocks(2, 100), Ok([2, 0]));
        assert!(
            blocks(3, 50).unwrap_err().contains("at least 4") && blocks(1, 100).unwrap_err().contains("at least 2")
        );
    }
}
