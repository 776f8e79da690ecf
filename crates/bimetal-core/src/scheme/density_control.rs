//! `density-control`: logical blocks that are accessed often run with one bit per cell (after Kgil, Roberts and Mudge,
//! *Improving NAND flash based disk caches*, ISCA 2008, as Chang 2010 §5.3.1 compares with it).
//!
//! One block-mapped region ([`super::block_mapped`]). A logical block whose access counter reaches a bound is folded
//! into blocks in SLC mode, which are faster and hold half as much, so that it takes twice the blocks; capacity beyond
//! the usual spare area is the budget for them. A logical block that has cooled down is folded back.
//!
//! The paper gives the idea and the budget; counters, bounds and ageing are our reading. A data block in SLC
//! mode takes two blocks, of which one counts against the budget. The unused part of the budget is free capacity like
//! any other (a block is "switched back to MLC mode to increase free capacity", section 5.1): it serves for log blocks.

use serde::{Deserialize, Serialize};

use super::block_mapped::{Bare, BlockMapSettings, BlockMapped};
use super::{Adaptation, Metrics, Regions, Scheme, SchemeSpec, Shape};
use crate::media::{Cause, CellMode, Media};
use crate::region::chains::Victims;
use crate::request::{Op, Request};
use crate::save::Table;
use crate::units::{ByteSize, RegionId};

/// The data in SLC mode.
const SLC_MODE_BLOCKS: Adaptation = Adaptation {
    metric: "slc_mode_logical_blocks",
    title: "Logical blocks in SLC mode",
    unit: "logical blocks",
    meaning: "The logical blocks accessed most run with one bit per cell, as far as the budget allows.",
};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "density-control",
    summary: "block-mapped MLC whose most accessed logical blocks run in SLC mode, on extra capacity",
    source: "Kgil, Roberts, Mudge, ISCA 2008, as in Chang 2010",
    regions: Regions::DualMode,
    parameters: Parameters::specs,
    adapts: &[SLC_MODE_BLOCKS],
    version: 2,
};

crate::parameters! {
    SPEC.name;
    #[derive(Serialize, Deserialize)]
    /// Parameters of `density-control`.
    pub struct Parameters {
        /// Capacity for blocks in SLC mode, in bytes of MLC; 0: all beyond the usual spare area (section 5.3.1).
        pub budget: ByteSize = ByteSize(0);
        /// Usual spare area if `budget` is 0, in percent of the logical capacity; at least as much as folding takes.
        pub usual_spare_percent: f64 = 5.0, in 0.0..=100.0;
        /// Accesses to a logical block, in pages, from which on it moves to SLC mode.
        pub hot_accesses: u32 = 64, in 1..=255;
        /// Accesses below which it returns to MLC mode.
        pub cold_accesses: u32 = 8, in 0..=255;
        /// Page accesses after which all counters are halved.
        pub ageing_period: u32 = 1_048_576, in 1..=2_000_000_000;
        /// Erased blocks that are kept when a log block is taken; at least as many as a data block in SLC mode has
        /// (section 3.5).
        pub spare_low: u32 = 2, in 1..=1024;
        /// Number of chains whose second-level map is cached; 0: a scan at every access. 384 gives the p1 of table 3
        /// (section 3.5).
        pub map_cache_chains: u32 = 384, in 0..=1_000_000;
        /// Whether a map-cache miss reads all pages of the data block instead of one (section 3.5).
        pub scan_data_block: bool = false;
        /// Chain to fold if none can be switched (section 3.5).
        pub gc_victim: Victims = Victims::Longest;
        /// Whether blocks are exchanged by the dual-pool algorithm (section 5.1).
        pub wear_levelling: bool = true;
        /// Difference of erase counts at which blocks are exchanged, in cycles: TH (section 5.1).
        pub wear_threshold: u32 = 16, in 1..=1_000_000;
    }
}

const NONE: u32 = u32::MAX;

/// The state of `density-control`.
#[derive(Debug, Serialize, Deserialize)]
pub struct DensityControl {
    blocks: BlockMapped,
    /// Accesses of each logical block: saturating, halved periodically.
    accesses: Table<u8>,
    until_ageing: u32,
    /// Logical blocks in SLC mode, in no order, and the position of each in this list.
    members: Vec<u32>,
    positions: Table<u32>,
    /// The member that is checked next: whether it is still hot.
    cursor: usize,
    /// Blocks beyond the usual number, for data in SLC mode.
    #[serde(with = "crate::save::fixed")]
    budget: u32,
    /// Additional blocks of a data block in SLC mode.
    #[serde(with = "crate::save::fixed")]
    extra: u32,
    #[serde(with = "crate::save::fixed")]
    parameters: Parameters,
    to_slc: u64,
    to_mlc: u64,
}

impl DensityControl {
    /// A scheme over the device's last region, whose chip must have an SLC mode.
    ///
    /// # Errors
    /// No such mode, or too few blocks.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let region = shape.regions.last().ok_or("it has no region")?;
        let geometry = region.geometry;
        let mode = region.chip.slc_mode.as_ref().filter(|mode| mode.pages_per_block > 0);
        let Some(mode) = mode.filter(|mode| mode.pages_per_block <= geometry.pages_per_block) else {
            return Err(format!("its chip `{}` has no SLC mode", region.chip.name));
        };
        let width = geometry.pages_per_block.div_ceil(mode.pages_per_block);
        let logical_blocks = (shape.logical_sectors * 512).div_ceil(geometry.block_bytes());
        let spare_low = parameters.spare_low.max(width);
        let usual = (logical_blocks as f64 * parameters.usual_spare_percent / 100.0).ceil() as u64;
        let budget = match parameters.budget.0 {
            0 => u64::from(geometry.blocks).saturating_sub(logical_blocks + usual.max(u64::from(spare_low) + 1)),
            bytes => bytes / geometry.block_bytes(),
        };
        let kept = logical_blocks + u64::from(spare_low) + 1;
        if budget + kept > u64::from(geometry.blocks) {
            return Err(format!(
                "{logical_blocks} logical blocks, a budget of {budget}, {spare_low} blocks kept erased and a log block take {} \
                 blocks and the region has {}; enlarge the region or lower the budget",
                budget + kept,
                geometry.blocks
            ));
        }
        let budget = budget as u32;
        let settings = BlockMapSettings {
            spare_low,
            map_cache_chains: parameters.map_cache_chains,
            scan_data_block: parameters.scan_data_block,
            gc_victim: parameters.gc_victim,
            wear_levelling: parameters.wear_levelling,
            wear_threshold: parameters.wear_threshold,
        };
        let id = RegionId((shape.regions.len() - 1) as u8);
        let blocks = BlockMapped::new(id, region, shape.logical_sectors, settings)?;
        let extra = width - 1;
        let members_max = budget.checked_div(extra).unwrap_or(u32::MAX).min(blocks.chains().logical_blocks());
        Ok(Self {
            blocks,
            accesses: vec![0; logical_blocks as usize].into(),
            until_ageing: parameters.ageing_period,
            members: Vec::with_capacity(members_max as usize),
            positions: vec![NONE; logical_blocks as usize].into(),
            cursor: 0,
            budget,
            extra,
            parameters,
            to_slc: 0,
            to_mlc: 0,
        })
    }

    /// Counts a page access, and promotes the logical block if it is hot.
    #[inline]
    fn note_access<M: Media>(&mut self, media: &mut M, block: u32) {
        let accesses = &mut self.accesses[block as usize];
        *accesses = accesses.saturating_add(1);
        let hot = u32::from(*accesses) >= self.parameters.hot_accesses;
        self.until_ageing -= 1;
        if self.until_ageing == 0 {
            self.until_ageing = self.parameters.ageing_period;
            for accesses in self.accesses.as_mut_slice() {
                *accesses /= 2;
            }
        }
        if hot && self.positions[block as usize] == NONE && self.blocks.chains().is_mapped(block) {
            self.promote(media, block);
        }
    }

    /// Additional blocks that data take in SLC mode.
    fn extra_blocks(&self) -> u32 {
        self.members.len() as u32 * self.extra
    }

    /// Whether another data block can go to SLC mode.
    fn budget_allows_one_more(&self) -> bool {
        self.extra_blocks() + self.extra <= self.budget
    }

    /// Puts a hot logical block into SLC mode if the budget allows it or a member is accessed less than half as often.
    fn promote<M: Media>(&mut self, media: &mut M, block: u32) {
        if !self.budget_allows_one_more() {
            let accesses = self.accesses[block as usize];
            // The search is long, so it runs only at multiples of `hot_accesses`; the count ends at 255.
            if !u32::from(accesses).is_multiple_of(self.parameters.hot_accesses) {
                return;
            }
            let coldest = self.members.iter().copied().min_by_key(|&member| self.accesses[member as usize]);
            let Some(coldest) = coldest.filter(|&member| self.accesses[member as usize] < accesses / 2) else { return };
            self.demote(media, coldest);
        }
        // Log blocks may have taken the needed blocks. A fold for room may also find that all pages of this logical
        // block were trimmed and leave it without a block: then nothing is left to put into SLC mode.
        if !self.blocks.make_room(media, &mut Bare, self.extra) || !self.blocks.chains().is_mapped(block) {
            return;
        }
        self.positions[block as usize] = self.members.len() as u32;
        self.members.push(block);
        self.to_slc += 1;
        self.blocks.fold(media, &mut Bare, block, CellMode::Slc, Cause::MigrateUp);
    }

    fn demote<M: Media>(&mut self, media: &mut M, block: u32) {
        let position = std::mem::replace(&mut self.positions[block as usize], NONE);
        self.members.swap_remove(position as usize);
        if let Some(&moved) = self.members.get(position as usize) {
            self.positions[moved as usize] = position;
        }
        self.to_mlc += 1;
        self.blocks.fold(media, &mut Bare, block, CellMode::Native, Cause::MigrateDown);
    }

    /// Checks one member, and demotes it if it has cooled down.
    fn review<M: Media>(&mut self, media: &mut M) {
        self.cursor = if self.cursor + 1 < self.members.len() { self.cursor + 1 } else { 0 };
        if let Some(&member) = self.members.get(self.cursor)
            && u32::from(self.accesses[member as usize]) < self.parameters.cold_accesses
        {
            self.demote(media, member);
        }
    }
}

impl<M: Media> Scheme<M> for DensityControl {
    fn fill(&mut self, media: &mut M) {
        self.blocks.fill(media);
    }

    #[inline]
    fn prefetch(&self, far: &Request, _near: &Request) {
        self.blocks.prefetch(far);
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        for span in self.blocks.spans(request) {
            match request.op {
                Op::Read => self.blocks.read_span(media, span),
                Op::Write => self.blocks.write_span(media, &mut Bare, span),
                Op::Trim => {
                    self.blocks.trim_span(span);
                    continue;
                }
            }
            self.note_access(media, span.block);
        }
        if request.op == Op::Write {
            self.review(media);
        }
    }

    fn metrics(&self, metrics: &mut Metrics) {
        metrics.count(SLC_MODE_BLOCKS.metric, self.members.len() as u64);
        metrics.count("slc_mode_extra_blocks", u64::from(self.extra_blocks()));
        metrics.count("slc_mode_budget_blocks", u64::from(self.budget));
        metrics.count("folds_to_slc_mode", self.to_slc);
        metrics.count("folds_to_mlc_mode", self.to_mlc);
        self.blocks.metrics(metrics);
        metrics.count("metadata_bytes", self.blocks.metadata_bytes() + self.accesses.len() as u64);
    }

    fn check(&self) -> Result<(), String> {
        self.blocks.check()?;
        if self.extra_blocks() > self.budget {
            return Err(format!("{} logical blocks in SLC mode, {} blocks for it", self.members.len(), self.budget));
        }
        let mut members = (0..).zip(&self.members);
        let knows = |member: u32, position: u32| self.positions.get(member as usize) == Some(&position);
        if let Some((position, member)) = members.find(|&(position, &member)| !knows(member, position)) {
            return Err(format!("logical block {member} is member {position}, but another position is recorded"));
        }
        if self.cursor > self.positions.len() {
            return Err(format!("the next member is {} of {}", self.cursor, self.members.len()));
        }
        for (block, &position) in self.positions.iter().enumerate() {
            let slc = self.blocks.chains().mode(block as u32) == CellMode::Slc;
            let member = self.members.get(position as usize) == Some(&(block as u32));
            if slc != member || member != (position != NONE) {
                return Err(format!("logical block {block} is in SLC mode: {slc}, a member: {member}"));
            }
            let data_blocks =
                self.blocks.chains().chain(block as u32).filter(|&(_, _, is_data)| is_data).count() as u32;
            if slc && data_blocks != self.extra + 1 {
                return Err(format!("logical block {block} is in SLC mode and has {data_blocks} data blocks"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Faults, FlashOp, SimMedia, SimRegion, Simulation};
    use crate::scheme::RegionShape;
    use crate::units::Geometry;

    /// 8 logical blocks of 8 pages over 8 + 3 + 2 blocks.
    fn device(settings: &[(&str, &str)]) -> (SimMedia, DensityControl) {
        let mut chip = chip::find("chang-mlc").unwrap();
        chip.pages_per_block = 8;
        chip.slc_mode.as_mut().unwrap().pages_per_block = 4;
        let geometry = Geometry::new(4096, 8, 13, 1).unwrap();
        let region = SimRegion { chip: chip.clone(), geometry, channels: 1, faults: Faults::default() };
        let shape = Shape {
            logical_sectors: 8 * 64,
            regions: vec![RegionShape { chip, geometry }],
            disks: Vec::new(),
            seed: 1,
        };
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        let mut scheme = DensityControl::new(&shape, Parameters::parse(&settings).unwrap()).unwrap();
        let mut media = SimMedia::new(&[region], 1);
        Scheme::<SimMedia>::fill(&mut scheme, &mut media);
        media.reset();
        (media, scheme)
    }

    fn serve(media: &mut SimMedia, scheme: &mut DensityControl, op: Op, block: u64, times: u32) {
        for _ in 0..times {
            let request = Request { arrival_ns: 0, sector: block * 64, sectors: 8, op, handle: 0 };
            media.begin(&request, 0);
            scheme.serve(media, &request);
            Scheme::<SimMedia>::check(scheme).unwrap();
        }
    }

    #[test]
    fn the_budget_is_what_lies_beyond_the_usual_spare_area() {
        assert_eq!(device(&[]).1.budget, 2);
        assert_eq!(device(&[("usual_spare_percent", "50")]).1.budget, 1);
        assert_eq!(device(&[("budget", "32KiB")]).1.budget, 1);
    }

    #[test]
    fn the_unused_budget_serves_log_blocks() {
        let (mut media, mut scheme) = device(&[("hot_accesses", "255")]);
        let folded = |media: &SimMedia| media.ledger().rows[0].counts.get(FlashOp::Erase, Cause::Fold);
        // 13 blocks: 8 with data, 2 kept erased. The other 3, of which the budget is 2, are log blocks before any fold.
        (0..3).for_each(|block| serve(&mut media, &mut scheme, Op::Write, block, 1));
        assert_eq!((scheme.blocks.chains().spare_blocks(), folded(&media)), (2, 0));
        serve(&mut media, &mut scheme, Op::Write, 3, 1);
        assert!(folded(&media) > 0);
    }

    #[test]
    fn hot_blocks_go_to_slc_mode_while_the_budget_lasts() {
        let (mut media, mut scheme) = device(&[("hot_accesses", "4")]);
        (0..3).for_each(|block| serve(&mut media, &mut scheme, Op::Read, block, 5));
        assert_eq!(scheme.members, [0, 1]);
        let slc = &media.ledger().rows[1];
        assert_eq!((slc.mode, slc.counts.get(FlashOp::Program, Cause::MigrateUp)), (CellMode::Slc, 16));
        serve(&mut media, &mut scheme, Op::Read, 0, 1);
        assert!(media.ledger().rows[1].counts.get(FlashOp::Read, Cause::Host) > 0);
        // More than twice as hot as the coldest of them.
        serve(&mut media, &mut scheme, Op::Read, 2, 12);
        assert!(scheme.members.contains(&2) && scheme.members.len() == 2);
    }

    #[test]
    fn a_trimmed_block_that_was_folded_for_room_stays_empty() {
        let (mut media, mut scheme) = device(&[("hot_accesses", "4")]);
        [7, 0, 1].into_iter().for_each(|block| serve(&mut media, &mut scheme, Op::Write, block, 1));
        assert_eq!(scheme.blocks.chains().spare_blocks(), 2);
        let trim = Request { arrival_ns: 0, sector: 7 * 64, sectors: 64, op: Op::Trim, handle: 0 };
        scheme.serve(&mut media, &trim);
        serve(&mut media, &mut scheme, Op::Read, 7, 4);
        assert!(scheme.members.is_empty() && !scheme.blocks.chains().is_mapped(7));
        assert_eq!(scheme.blocks.chains().spare_blocks(), 4);
    }

    #[test]
    fn blocks_that_cool_down_go_back() {
        let (mut media, mut scheme) = device(&[("hot_accesses", "4"), ("cold_accesses", "3"), ("ageing_period", "10")]);
        serve(&mut media, &mut scheme, Op::Read, 0, 4);
        assert_eq!(scheme.members, [0]);
        serve(&mut media, &mut scheme, Op::Write, 5, 1);
        assert_eq!(scheme.members, [0]);
        serve(&mut media, &mut scheme, Op::Read, 6, 3);
        serve(&mut media, &mut scheme, Op::Read, 7, 2);
        serve(&mut media, &mut scheme, Op::Write, 5, 1);
        assert!(scheme.members.is_empty() && scheme.to_mlc == 1);
        assert_eq!(media.ledger().rows[0].counts.get(FlashOp::Program, Cause::MigrateDown), 8);
    }
}
