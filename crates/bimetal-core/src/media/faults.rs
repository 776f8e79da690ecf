//! Bad blocks and failing operations, handled below the seam.
//!
//! A region may keep replacement blocks that no scheme sees. A failing program or erase takes one of them: the failed
//! block is retired and its replacement gets the same address, so a scheme never sees holes. The cost of the
//! replacement, re-programming the pages written so far, is charged as `meta`. Data sheets give up to 3.9 % bad blocks
//! over a part's life and block replacement as the remedy.

use serde::{Deserialize, Serialize};

use crate::ledger::FaultCounts;

/// Failure rates of a region; by default nothing fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Failed programs per million.
    pub program_fail_ppm: u32,
    /// Failed erases per million.
    pub erase_fail_ppm: u32,
    /// Blocks per million that are bad when the part is new. They use up replacement blocks at once.
    pub factory_bad_ppm: u32,
    /// Replacement blocks, beyond the region's capacity.
    pub replacement_blocks: u32,
}

/// Draws failures from a seed, so that the same device fails in the same way on every machine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Injector {
    #[serde(with = "crate::save::fixed")]
    faults: Faults,
    state: u64,
    pub(super) counts: FaultCounts,
}

impl Injector {
    /// `None` if nothing can fail.
    pub(super) fn new(faults: Faults, blocks: u32, seed: u64) -> Option<Self> {
        let Faults { program_fail_ppm, erase_fail_ppm, factory_bad_ppm, .. } = faults;
        if program_fail_ppm == 0 && erase_fail_ppm == 0 && factory_bad_ppm == 0 {
            return None;
        }
        let mut injector = Self { faults, state: seed, counts: FaultCounts::default() };
        for _ in 0..blocks {
            if injector.draw(factory_bad_ppm) {
                injector.replace();
            }
        }
        Some(injector)
    }

    /// Whether the next program fails.
    pub(super) fn program_fails(&mut self) -> bool {
        let failed = self.draw(self.faults.program_fail_ppm);
        self.counts.program_failures += u64::from(failed);
        failed && self.replace()
    }

    /// Whether the next erase fails.
    pub(super) fn erase_fails(&mut self) -> bool {
        let failed = self.draw(self.faults.erase_fail_ppm);
        self.counts.erase_failures += u64::from(failed);
        failed && self.replace()
    }

    /// Takes a replacement block, if one is left.
    fn replace(&mut self) -> bool {
        if self.counts.blocks_replaced < u64::from(self.faults.replacement_blocks) {
            self.counts.blocks_replaced += 1;
            return true;
        }
        self.counts.failures_unreplaced += 1;
        false
    }

    fn draw(&mut self, ppm: u32) -> bool {
        ppm != 0 && crate::part::random::split_mix(&mut self.state) % 1_000_000 < u64::from(ppm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_come_at_their_rate_and_use_up_replacements() {
        let faults = Faults { program_fail_ppm: 10_000, replacement_blocks: 50, ..Faults::default() };
        let mut injector = Injector::new(faults, 100, 7).unwrap();
        let replaced = (0..100_000).filter(|_| injector.program_fails()).count();
        assert_eq!(replaced, 50);
        let counts = injector.counts;
        assert!((800..1200).contains(&counts.program_failures), "{counts:?}");
        assert_eq!(counts.failures_unreplaced, counts.program_failures - 50);
    }

    #[test]
    fn a_faultless_region_has_no_injector() {
        assert!(Injector::new(Faults { replacement_blocks: 5, ..Faults::default() }, 100, 7).is_none());
    }
}
