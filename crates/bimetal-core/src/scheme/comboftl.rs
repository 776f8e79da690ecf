//! `comboftl`: a small part of an MLC chip in SLC mode in front of the rest (Im and Shin, *`ComboFTL`: Improving
//! performance and
//! lifespan of MLC flash memory using SLC flash buffer*, Journal of Systems Architecture 56, 2010). See [`super::combo`].
//!
//! Each technique of the paper can be switched off separately (§6.3, Fig. 12). The paper's baselines, `combo-static`
//! and `2q-gclock`, are presets.

use super::combo::chances::CHANCES_MAX;
use super::combo::detection::{Granularity, HotHits};
use super::combo::threshold::{Mode, Threshold};
use super::combo::{self, Combo, ComboSettings, HotTail, StayingTime, WarmBit};
use super::presets::presets;
use super::space::{Map, SlowRegion};
use super::tiered::THRESHOLD;
use super::{ParameterSet, Regions, SchemeSpec, Shape};
use crate::units::ByteSize;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "comboftl",
    summary: "small writes to a log of SLC with a hot and a warm partition, the rest to MLC, all bounds adaptive",
    source: "ComboFTL, JSA 2010",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    adapts: &[THRESHOLD, combo::MIGRATION_RATIO, combo::CHANCES, combo::HOT_THRESHOLD],
    version: 8,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `comboftl`.
    pub struct Parameters {
        /// Whether the threshold follows the traffic from SLC to MLC (section 3.2).
        pub threshold_mode: Mode = Mode::Dynamic;
        /// Largest write that goes to SLC (sections 3.2, 6.1). A threshold that follows the traffic starts at 8, 16, 32
        /// or 64 KiB; a fixed one may have any size.
        pub threshold: ByteSize = ByteSize(16 << 10);
        /// Target of the threshold: data demoted in a period, divided by the size of SLC; phi (section 3.2).
        pub migration_target: f64 = 0.1, in 0.0..=1.0;
        /// Accepted deviation from this target: epsilon (section 3.2).
        pub migration_tolerance: f64 = 0.05, in 0.0..=1.0;
        /// Whether the number of chances follows the update ratios of the warm sets (section 4.2).
        pub chances_mode: Mode = Mode::Dynamic;
        /// Initial number of further laps of data in the warm partition after the first: N. 0, fixed: no warm partition
        /// (section 4.1).
        pub chances: u32 = 2, in 0..=CHANCES_MAX;
        /// Number of warm sets of which one must reach `update_low`: the observation window M (section 4.2).
        pub observation_window: u32 = 2, in 1..=CHANCES_MAX;
        /// Update ratio below which all of these warm sets are useless: LB (sections 4.2, 6.4).
        pub update_low: f64 = 0.3, in 0.0..=1.0;
        /// Update ratio of the last warm set above which there is one more chance: UB (sections 4.2, 6.4).
        pub update_high: f64 = 0.7, in 0.0..=1.0;
        /// Whether data never updated in the warm partition leave it half-way (section 4.3).
        pub early_migration: bool = true;
        /// What happens to the warm bit of data that are updated in the hot partition (section 4.3).
        pub warm_bit: WarmBit = WarmBit::Keep;
        /// Share of the hot partition in the SLC blocks, in percent (section 4.1).
        pub hot_percent: u32 = 50, in 1..=99;
        /// Whether the partitions exchange blocks for even wear (section 4.1).
        pub boundary_shift: bool = true;
        /// Which data in MLC are detected as hot (section 5.2).
        pub detection: Granularity = Granularity::Unit;
        /// Counting of hits and misses of hot units: by unit or by page (section 5.2).
        pub hot_hits: HotHits = HotHits::Units;
        /// Share of hits below which fewer units are taken for hot (section 5.2).
        pub hot_hits_low: f64 = 0.3, in 0.0..=1.0;
        /// Share of hits above which more units are taken for hot (section 5.2).
        pub hot_hits_high: f64 = 0.7, in 0.0..=1.0;
        /// Assumed stay of a cold page in SLC: the period in which counters of hot data are halved (section 4.1).
        pub staying_time: StayingTime = StayingTime::Corrected;
        /// Mapping of MLC (section 3.1).
        pub slow_map: Map = Map::Unit;
        /// Logical blocks of a unit of MLC: q. 0: 8, doubled until there are fewer units than spare blocks (sections
        /// 3.1, 5.1).
        pub unit_blocks: u32 = 0, in 0..=65_536;
        /// Erased MLC blocks at or below which MLC is collected.
        pub reserve_blocks: u32 = 2, in 1..=1024;
    }
}

/// `comboftl`.
#[derive(Debug)]
pub struct ComboFtl;

impl ComboFtl {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Too few blocks in either region, or parameters that exclude each other.
    #[expect(clippy::new_ret_no_self, reason = "it is one of several settings of the same scheme")]
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Combo, String> {
        let threshold = match parameters.threshold_mode {
            Mode::Fixed => Threshold::fixed(parameters.threshold),
            Mode::Dynamic => {
                Threshold::dynamic(parameters.threshold, parameters.migration_target, parameters.migration_tolerance)?
            }
        };
        let settings = ComboSettings {
            threshold,
            warm_bit: parameters.warm_bit,
            detection: combo::detection::DetectionSettings {
                granularity: parameters.detection,
                hits: parameters.hot_hits,
                low: parameters.hot_hits_low,
                high: parameters.hot_hits_high,
            },
            staying_time: parameters.staying_time,
            ..parameters.partitions(HotTail::Stays)?
        };
        parameters.over(shape, &settings)
    }
}

impl Parameters {
    /// Every write goes to the log, in two partitions.
    fn partitions(&self, hot_tail: HotTail) -> Result<ComboSettings, String> {
        let (hot_tail, hot_percent) = match (self.chances, self.chances_mode) {
            (0, Mode::Dynamic) => return Err("with chances=0 there are none to adapt; set chances_mode=fixed".into()),
            (0, Mode::Fixed) => (HotTail::Leaves, 100),
            _ => (hot_tail, self.hot_percent),
        };
        let chances = combo::chances::ChanceSettings {
            mode: self.chances_mode,
            start: self.chances,
            window: self.observation_window,
            low: self.update_low,
            high: self.update_high,
            early_migration: self.early_migration,
        };
        let boundary_shift = self.boundary_shift;
        Ok(ComboSettings {
            hot_tail,
            hot_percent,
            chances,
            boundary_shift,
            ..ComboSettings::clock(Threshold::UNBOUNDED)
        })
    }

    fn over(&self, shape: &Shape, settings: &ComboSettings) -> Result<Combo, String> {
        let slow = SlowRegion::of(shape, self.slow_map, self.unit_blocks, self.reserve_blocks)?;
        Combo::new(shape, &slow, settings)
    }
}

presets! {
    super::Parameters, super::SPEC;

    /// The baseline (section 6.1, table 4): a fixed size decides which writes go to the log, and data at its tail are
    /// demoted. The paper has it with 8 KB, the default, and with 64 KB.
    pub mod combo_static::ComboStatic {
        name: "combo-static",
        summary: "writes up to a fixed size to a log of SLC whose tail goes down to MLC, the rest to MLC",
        source: "baseline of ComboFTL, JSA 2010",
        adapts: &[]
    }
    with ["threshold", "slow_map", "unit_blocks", "reserve_blocks"] default ["threshold" = "8KiB"],
    |shape, parameters| -> Combo {
        parameters.over(shape, &ComboSettings::clock(Threshold::fixed(parameters.threshold)))
    }

    /// The 2Q/GCLOCK of section 4.1, Fig. 6b and table 4: every write goes to the log; data that are updated in the hot
    /// partition get chances in the warm one, all other data are demoted. As every write goes to SLC, there is no
    /// threshold and no detection in MLC. Early migration is an addition of `ComboFTL` to GCLOCK and is left out; the
    /// number of chances adapts as in `ComboFTL`.
    pub mod two_queue_gclock::TwoQueueGclock {
        name: "2q-gclock",
        summary: "every write to a log of SLC with a queue for new data and one for data written again, the rest down to MLC",
        source: "rival in ComboFTL, JSA 2010",
        adapts: &[combo::CHANCES]
    }
    with [
        "chances_mode", "chances", "observation_window", "update_low", "update_high", "hot_percent", "boundary_shift", "slow_map",
        "unit_blocks", "reserve_blocks"
    ] default ["early_migration" = "false"],
    |shape, parameters| -> Combo { parameters.over(shape, &parameters.partitions(HotTail::StaysIfUpdated)?) }
}
