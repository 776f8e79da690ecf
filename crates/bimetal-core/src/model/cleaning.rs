//! The cost of cleaning in a page-mapped region that collects itself, by the region's utilisation: it is a part of the
//! cost of each page write (OP-FCL, FAST 2012, section 3; HySSD, MSST 2013, section II-B).
//!
//! Utilisation `u` is valid pages divided by physical ones. Departures: the papers use one relation between the region
//! and its victims, [`VictimUtilisation::Fifo`]; their simulator cleans greedily, for which there is
//! [`VictimUtilisation::Greedy`].

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::chip::{CellMode, Chip};
use crate::ledger::Timing;
use crate::model::write_amplification::{GreedyBalance, fifo_victim_utilisation};
use crate::units::Nanos;

/// Times of a flash part's operations, transfers included, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlashCosts {
    /// `C_PR`: reading a page.
    pub read_us: f64,
    /// `C_PROG`: programming a page.
    pub program_us: f64,
    /// `C_CP`: copying a page within the part.
    pub copy_us: f64,
    /// `C_E`: erasing a block.
    pub erase_us: f64,
    /// `N_P`: pages of a block.
    pub pages_per_block: u32,
}

impl FlashCosts {
    /// The times of a part, with each page on an otherwise idle channel. Without a copyback a copy is a read and a
    /// program. Pages that a die reads or programs together share the time: collection reads them in turn.
    pub fn of(chip: &Chip) -> Self {
        let timing = Timing::of(chip, CellMode::Native);
        let transfer_us = timing.transfer.as_us();
        let (read_us, program_us) = (timing.read.as_us() + transfer_us, timing.program.as_us() + transfer_us);
        let copy_read_us = timing.read.as_us() / f64::from(timing.read_group) + transfer_us;
        Self {
            read_us,
            program_us,
            copy_us: timing.copyback.map_or(copy_read_us + program_us, Nanos::as_us),
            erase_us: chip.erase_us,
            pages_per_block: chip.pages_per_block,
        }
    }

    /// The same for `pages` pages at a time: all costs are multiplied by their number.
    #[must_use]
    pub fn of_pages(self, pages: u32) -> Self {
        let pages = f64::from(pages);
        Self {
            read_us: self.read_us * pages,
            program_us: self.program_us * pages,
            copy_us: self.copy_us * pages,
            erase_us: self.erase_us * pages,
            ..self
        }
    }

    /// `C_GC` in the worst case, where all blocks are equally full: `ceil(u N_P) C_CP + C_E` (OP-FCL, equation 1).
    pub fn worst_collection_us(&self, utilisation: f64) -> f64 {
        (utilisation * f64::from(self.pages_per_block)).ceil() * self.copy_us + self.erase_us
    }

    /// `C_PW` in the worst case: `C_GC / floor((1 - u) N_P) + C_PROG` (OP-FCL, equation 2). Infinite if no page is
    /// freed.
    pub fn worst_page_write_us(&self, utilisation: f64) -> f64 {
        let pages = f64::from(self.pages_per_block);
        // From the valid pages, so that the two roundings agree: (1 - 0.8) 10 is a little less than 2.
        let won_pages = pages - (utilisation * pages).ceil();
        self.worst_collection_us(utilisation) / won_pages.max(0.0) + self.program_us
    }
}

crate::choices! {
    /// The assumed utilisation of the victims of garbage collection (`U`).
    pub enum VictimUtilisation {
        /// The block written longest ago is collected: the papers' table.
        Fifo = "fifo",
        /// The block with the fewest valid pages is collected.
        Greedy = "greedy",
    }
}

/// Intervals of the table of `U`.
const INTERVALS: usize = 2048;

/// The average cost of cleaning a region, by its utilisation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Inputs")]
pub struct CleaningCost {
    costs: FlashCosts,
    victim: VictimUtilisation,
    whole_pages: bool,
    /// `U` at multiples of 1 / [`INTERVALS`], computed at first use: each takes a search, and few are ever used.
    #[serde(skip)]
    victims: Vec<OnceLock<f64>>,
    /// Sums that all searches for greedy collection share.
    #[serde(skip)]
    balance: OnceLock<GreedyBalance>,
}

/// The inputs of the table: the saved form.
#[derive(Deserialize)]
struct Inputs {
    costs: FlashCosts,
    victim: VictimUtilisation,
    whole_pages: bool,
}

impl From<Inputs> for CleaningCost {
    fn from(Inputs { costs, victim, whole_pages }: Inputs) -> Self {
        let victims = (0..=INTERVALS).map(|_| OnceLock::new()).collect();
        Self { costs, victim, whole_pages, victims, balance: OnceLock::new() }
    }
}

impl CleaningCost {
    /// The cost in OP-FCL. `U` is interpolated in a table, to within 10^-7 for FIFO and, from 64 pages per block on,
    /// 2 10^-4 for greedy, whose function has an edge at every whole number of pages.
    pub fn new(costs: FlashCosts, victim: VictimUtilisation) -> Self {
        Inputs { costs, victim, whole_pages: false }.into()
    }

    /// The cost in HySSD: the same, with the pages that a collection frees rounded down (equations 1 and 2).
    pub fn in_whole_pages(self) -> Self {
        Self { whole_pages: true, ..self }
    }

    /// The part's times.
    pub fn costs(&self) -> &FlashCosts {
        &self.costs
    }

    /// `U(u)`: share of valid pages in a victim.
    #[inline]
    pub fn victim_utilisation(&self, utilisation: f64) -> f64 {
        let at = utilisation.clamp(0.0, 1.0) * INTERVALS as f64;
        let point = (at as usize).min(INTERVALS - 1);
        let (low, high) = (self.victim_at(point), self.victim_at(point + 1));
        low + (high - low) * (at - point as f64)
    }

    /// `U` at a multiple of 1 / [`INTERVALS`].
    #[inline]
    fn victim_at(&self, point: usize) -> f64 {
        *self.victims[point].get_or_init(|| self.exact_victim(point as f64 / INTERVALS as f64))
    }

    /// `U` itself, for a utilisation from 0 to 1.
    #[cold]
    fn exact_victim(&self, utilisation: f64) -> f64 {
        let pages_per_block = self.costs.pages_per_block;
        let pages = f64::from(pages_per_block);
        match self.victim {
            _ if utilisation <= 0.0 => 0.0,
            VictimUtilisation::Fifo if utilisation >= 1.0 => 1.0,
            VictimUtilisation::Greedy if utilisation >= 1.0 => (pages - 1.0) / pages,
            VictimUtilisation::Fifo => fifo_victim_utilisation(utilisation),
            VictimUtilisation::Greedy => {
                let balance = self.balance.get_or_init(|| GreedyBalance::new(pages_per_block));
                balance.victim_pages(utilisation) / pages
            }
        }
    }

    /// `C_GC = U(u) N_P C_CP + C_E`: cost of a collection in microseconds (OP-FCL, equation 3).
    #[inline]
    pub fn collection_us(&self, utilisation: f64) -> f64 {
        let valid_pages = self.victim_utilisation(utilisation) * f64::from(self.costs.pages_per_block);
        valid_pages * self.costs.copy_us + self.costs.erase_us
    }

    /// `C_PW = C_GC / ((1 - U(u)) N_P) + C_PROG`: cost of a page write in microseconds, including its share of the
    /// collections (OP-FCL, equation 4). Infinite if a collection frees no page, and for a full region.
    #[inline]
    pub fn page_write_us(&self, utilisation: f64) -> f64 {
        if utilisation >= 1.0 {
            return f64::INFINITY;
        }
        let won_pages = (1.0 - self.victim_utilisation(utilisation)) * f64::from(self.costs.pages_per_block);
        let won_pages = if self.whole_pages { won_pages.floor() } else { won_pages };
        self.collection_us(utilisation) / won_pages + self.costs.program_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;

    const OP_FCL: FlashCosts =
        FlashCosts { read_us: 125.0, program_us: 300.0, copy_us: 225.0, erase_us: 1500.0, pages_per_block: 64 };

    #[test]
    fn the_table_is_the_function() {
        for (victim, error) in [(VictimUtilisation::Fifo, 1e-7), (VictimUtilisation::Greedy, 2e-4)] {
            for pages_per_block in [64, 128, 384] {
                let cost = CleaningCost::new(FlashCosts { pages_per_block, ..OP_FCL }, victim);
                let mut last = 0.0;
                for step in 0..=7 * INTERVALS {
                    let utilisation = step as f64 / (7 * INTERVALS) as f64;
                    let (found, exact) = (cost.victim_utilisation(utilisation), cost.exact_victim(utilisation));
                    assert!((found - exact).abs() < error, "{victim} at {utilisation}: {found}, {exact}");
                    assert!(found >= last && found <= utilisation, "{victim} at {utilisation}: {found}");
                    last = found;
                }
            }
        }
    }

    /// At the limits: an empty region only pays for erases, a full one cannot be written.
    #[test]
    fn the_edges() {
        for victim in [VictimUtilisation::Fifo, VictimUtilisation::Greedy] {
            let cost = CleaningCost::new(OP_FCL, victim);
            assert_eq!(cost.page_write_us(0.0), 300.0 + 1500.0 / 64.0);
            assert_eq!([1.0, 1.5].map(|full| cost.page_write_us(full)), [f64::INFINITY; 2]);
        }
        // A victim with less than one page to free.
        let whole = CleaningCost::new(OP_FCL, VictimUtilisation::Fifo).in_whole_pages();
        assert!(whole.page_write_us(0.99).is_finite() && whole.page_write_us(0.995).is_infinite());
    }

    #[test]
    fn the_worst_case_is_no_better_than_the_average() {
        let fifo = CleaningCost::new(OP_FCL, VictimUtilisation::Fifo);
        let greedy = CleaningCost::new(OP_FCL, VictimUtilisation::Greedy);
        for percent in 1..98 {
            let utilisation = f64::from(percent) / 100.0;
            let worst = OP_FCL.worst_page_write_us(utilisation);
            assert!(worst >= fifo.page_write_us(utilisation), "at {percent} %");
            assert!(fifo.page_write_us(utilisation) >= greedy.page_write_us(utilisation), "at {percent} %");
        }
        // Half of 64 pages are copied, half are freed; one page more of either, and the copies are rounded up.
        assert_eq!(OP_FCL.worst_collection_us(0.5), 32.0 * 225.0 + 1500.0);
        assert_eq!(OP_FCL.worst_page_write_us(0.5), 8700.0 / 32.0 + 300.0);
        assert_eq!(OP_FCL.worst_collection_us(0.51), 33.0 * 225.0 + 1500.0);
        assert_eq!(OP_FCL.worst_page_write_us(0.51), 8925.0 / 31.0 + 300.0);
        assert_eq!(OP_FCL.worst_page_write_us(1.0), f64::INFINITY);
    }

    #[test]
    fn a_part_without_copies_reads_and_programs() {
        let slc = chip::find("slc-2006").unwrap();
        let costs = FlashCosts::of(&slc);
        // 2,112 bytes at 40 MB/s: 52.8 us.
        assert_eq!((costs.read_us, costs.program_us, costs.copy_us), (77.8, 352.8, 77.8 + 352.8));
        assert_eq!((costs.erase_us, costs.pages_per_block), (2000.0, 64));
        let copying = chip::find("hyssd-slc").unwrap();
        assert_eq!(FlashCosts::of(&copying).copy_us, 385.0);
        assert_eq!(FlashCosts::of(&Chip { copyback_us: None, ..copying }).copy_us, 485.0);
    }
}
