//! Wear of blocks, by region.

use serde::Serialize;

use super::{RegionDescription, mode_name};
use crate::chip::Chip;
use crate::ledger::Row;
use crate::media::{CellMode, FlashOp};
use crate::replay::Measured;

/// Erase counts of a region's blocks since the device was filled.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WearFigures {
    /// Region. Blocks that always stay in SLC mode are listed separately, with `:slc` behind its name.
    pub region: String,
    /// Number of blocks.
    pub blocks: u32,
    /// Sum of erase counts.
    pub erases_total: u64,
    /// Mean erase count.
    pub erases_mean: f64,
    /// Highest erase count.
    pub erases_max: u32,
    /// Standard deviation of the erase counts over all blocks.
    pub erases_stddev: f64,
    /// Cycles that a block lasts. If blocks change between cell modes: the mean that results from their mix of erases.
    pub endurance: f64,
    /// Share of the region's life that is used up: mean erase count divided by endurance.
    pub used: f64,
    /// Number of blocks by erase count, in bins of equal width from the least to the most worn block.
    pub erase_counts: Vec<EraseBin>,
}

/// Blocks of a region with erase counts in one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EraseBin {
    /// Lowest erase count of the range.
    pub from: u32,
    /// Highest erase count of the range.
    pub to: u32,
    /// Number of blocks.
    pub blocks: u32,
}

/// Largest number of bins in [`WearFigures::erase_counts`].
const BINS_MAX: u32 = 32;

/// Blocks that share their wear: those of a region. If some of them always stay in SLC mode, these and the others are
/// two groups.
pub(super) struct WearGroup<'a> {
    region: usize,
    name: String,
    chip: &'a Chip,
    /// Erase counts of its blocks.
    pub counts: &'a [u32],
    modes: &'static [CellMode],
    first_erases: FirstErases,
}

/// Erases in native mode of blocks that always stay in SLC mode: a block of a new device is erased once before it gets
/// this mode. The ledger counts them with the other blocks; they are wear of the blocks in SLC mode.
#[derive(Clone, Copy)]
struct FirstErases {
    /// Since the device was filled.
    total: u64,
    /// In the measured passes.
    measured: u64,
}

impl FirstErases {
    fn of(slc_blocks: &[u32], region: usize, measured: &Measured) -> Self {
        let before = measured.erased_before.iter().copied().chain(std::iter::repeat(0));
        let rows = measured.ledger.rows.iter().zip(before);
        let in_slc_mode = rows.filter(|(row, _)| row.region == region && row.mode == CellMode::Slc);
        let (since, before) = in_slc_mode
            .fold((0, 0), |(since, all), (row, before)| (since + row.counts.total(FlashOp::Erase), all + before));
        // Counts of blocks that failed start again, so that all blocks together can have fewer than the ledger.
        let total = erases_of(slc_blocks).saturating_sub(since + before);
        let earlier = measured.fixed_slc_erased_before.saturating_sub(before);
        Self { total, measured: total.saturating_sub(earlier) }
    }
}

pub(super) fn wear_groups<'a>(regions: &[RegionDescription<'a>], measured: &'a Measured) -> Vec<WearGroup<'a>> {
    const BOTH: &[CellMode] = &[CellMode::Native, CellMode::Slc];
    let mut groups = Vec::with_capacity(regions.len() + 1);
    for (index, region) in regions.iter().enumerate() {
        let fixed = if index + 1 == regions.len() { measured.fixed_slc_blocks as usize } else { 0 };
        let (slc, others) = measured.ledger.erases[index].split_at(fixed);
        let first_erases =
            if fixed > 0 { FirstErases::of(slc, index, measured) } else { FirstErases { total: 0, measured: 0 } };
        let group = |mode, counts, modes| {
            let name = mode_name(region.name, mode);
            WearGroup { region: index, name, chip: region.chip, counts, modes, first_erases }
        };
        if fixed > 0 {
            groups.push(group(CellMode::Slc, slc, &BOTH[1..]));
        }
        groups.push(group(CellMode::Native, others, if fixed > 0 { &BOTH[..1] } else { BOTH }));
    }
    groups
}

impl WearGroup<'_> {
    /// Block lives that the measured passes use up: an erase that ends a cycle in SLC mode counts against the endurance of
    /// that mode. A device that still has erased blocks fills more blocks than it erases, and will have to erase them:
    /// of both numbers the larger one counts.
    pub fn lives_used(&self, rows: &[Row]) -> f64 {
        let lives = self.own(rows.iter().map(|row| (row, 0)), self.first_erases.measured).map(|(row, erases)| {
            let pages = self.chip.pages_per_block(row.mode).max(1);
            let filled = row.counts.total(FlashOp::Program) as f64 / f64::from(pages);
            filled.max(erases as f64) / self.endurance(row.mode)
        });
        lives.sum()
    }

    /// Its rows of the ledger with their erases: those of the measured passes, and the given number of earlier ones.
    fn own<'r>(
        &self,
        rows: impl Iterator<Item = (&'r Row, u64)>,
        first_erases: u64,
    ) -> impl Iterator<Item = (&'r Row, u64)> {
        let own = rows.filter(|(row, _)| row.region == self.region && self.modes.contains(&row.mode));
        own.map(move |(row, more)| {
            let erases = row.counts.total(FlashOp::Erase) + more;
            let erases = match row.mode {
                CellMode::Slc => erases + first_erases,
                CellMode::Native => erases.saturating_sub(first_erases),
            };
            (row, erases)
        })
    }

    fn endurance(&self, mode: CellMode) -> f64 {
        f64::from(self.chip.endurance(mode).max(1))
    }

    pub fn figures(&self, measured: &Measured) -> WearFigures {
        let blocks = self.counts.len().max(1) as f64;
        let erases_total = erases_of(self.counts);
        let erases_mean = erases_total as f64 / blocks;
        let variance = self.counts.iter().map(|&count| square(f64::from(count) - erases_mean)).sum::<f64>() / blocks;
        let before = measured.erased_before.iter().copied().chain(std::iter::repeat(0));
        let (erases, lives) = self
            .own(measured.ledger.rows.iter().zip(before), self.first_erases.total)
            .fold((0, 0.0), |(all, lives), (row, erases)| {
                (all + erases, lives + erases as f64 / self.endurance(row.mode))
            });
        let idle = self.modes.first().map_or(1.0, |&mode| self.endurance(mode));
        let endurance = if erases == 0 { idle } else { erases as f64 / lives };
        WearFigures {
            region: self.name.clone(),
            blocks: self.counts.len() as u32,
            erases_total,
            erases_mean,
            erases_max: self.counts.iter().copied().max().unwrap_or(0),
            erases_stddev: variance.sqrt(),
            endurance,
            used: erases_mean / endurance,
            erase_counts: erase_bins(self.counts),
        }
    }
}

/// Sum of erase counts.
fn erases_of(counts: &[u32]) -> u64 {
    counts.iter().map(|&count| u64::from(count)).sum()
}

fn square(x: f64) -> f64 {
    x * x
}

/// Blocks by their erase counts.
fn erase_bins(counts: &[u32]) -> Vec<EraseBin> {
    let (Some(&least), Some(&most)) = (counts.iter().min(), counts.iter().max()) else { return Vec::new() };
    let width = (most - least) / BINS_MAX + 1;
    let mut bins: Vec<EraseBin> = (0..=(most - least) / width)
        .map(|bin| EraseBin {
            from: least + bin * width,
            to: (least + bin * width).saturating_add(width - 1),
            blocks: 0,
        })
        .collect();
    for count in counts {
        bins[((count - least) / width) as usize].blocks += 1;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_every_block_once_and_one_width() {
        assert_eq!(erase_bins(&[]), []);
        assert_eq!(erase_bins(&[7, 7]), [EraseBin { from: 7, to: 7, blocks: 2 }]);
        for most in [1, 31, 32, 33, 1000, u32::MAX] {
            let counts = [0, most / 2, most, most];
            let bins = erase_bins(&counts);
            assert!(bins.len() <= 32, "{most}: {}", bins.len());
            assert_eq!(bins.iter().map(|bin| bin.blocks).sum::<u32>(), 4);
            assert!(bins.windows(2).all(|pair| pair[0].to + 1 == pair[1].from));
            assert!(bins[0].from == 0 && bins.last().is_some_and(|bin| bin.to >= most && bin.blocks >= 2), "{most}");
        }
    }
}
