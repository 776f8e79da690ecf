//! `2q-gclock`: every write to a log of SLC; what is updated while it is in the hot partition gets chances in the warm one,
//! all else goes down to MLC: the 2Q/GCLOCK of Im and Shin, *`ComboFTL`*, Journal of Systems Architecture 56, 2010 (§4.1,
//! Fig. 6b, table 4). See [`super::combo`].
//!
//! As every write goes to SLC, there is no threshold and nothing to be detected in MLC. Early migration is an addition of
//! `ComboFTL` to GCLOCK and is left out; the number of chances adapts as there.

use super::combo::chances::{self, CHANCES_MAX};
use super::combo::threshold::{Mode, Threshold};
use super::combo::{Combo, HotTail, Settings};
use super::space::{Map, SlowRegion};
use super::{Regions, SchemeSpec, Shape};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "2q-gclock",
    summary: "every write to a log of SLC with a queue for new data and one for data written again, the rest down to MLC",
    source: "rival in ComboFTL, JSA 2010",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    version: 5,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `2q-gclock`.
    pub struct Parameters {
        /// Whether the number of chances follows the update ratios of the warm sets (section 4.2).
        pub chances_mode: Mode = Mode::Dynamic;
        /// Laps of the warm partition that data get beyond the first, at the start: N (section 4.1).
        pub chances: u32 = 2, in 1..=CHANCES_MAX;
        /// Warm sets one of which must reach `update_low`: the observation window M (section 4.2).
        pub observation_window: u32 = 2, in 1..=CHANCES_MAX;
        /// Update ratio below which all of them are of no use: LB (sections 4.2, 6.4).
        pub update_low: f64 = 0.3, in 0.0..=1.0;
        /// Update ratio of the last warm set above which there is one chance more: UB (sections 4.2, 6.4).
        pub update_high: f64 = 0.7, in 0.0..=1.0;
        /// Share of the hot partition in the SLC blocks, in percent (section 4.1).
        pub hot_percent: u32 = 50, in 1..=99;
        /// Whether the partitions exchange blocks to wear evenly (section 4.1).
        pub boundary_shift: bool = true;
        /// How MLC is mapped (section 3.1).
        pub slow_map: Map = Map::Unit;
        /// Logical blocks of a unit of MLC: q. 0: 8, doubled while there are more units than spare blocks (sections 3.1, 5.1).
        pub unit_blocks: u32 = 0, in 0..=65_536;
        /// Erased MLC blocks at or below which MLC is collected.
        pub reserve_blocks: u32 = 2, in 1..=1024;
    }
}

/// `2q-gclock`.
#[derive(Debug)]
pub struct TwoQueueGclock;

impl TwoQueueGclock {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Too few blocks in either.
    #[expect(clippy::new_ret_no_self, reason = "it is one of several settings of the same scheme")]
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Combo, String> {
        let settings = Settings {
            hot_tail: HotTail::StaysIfUpdated,
            hot_percent: parameters.hot_percent,
            chances: chances::Settings {
                mode: parameters.chances_mode,
                start: parameters.chances,
                window: parameters.observation_window,
                low: parameters.update_low,
                high: parameters.update_high,
                early_migration: false,
            },
            boundary_shift: parameters.boundary_shift,
            ..Settings::clock(Threshold::UNBOUNDED)
        };
        let Parameters { slow_map: map, unit_blocks, reserve_blocks, .. } = parameters;
        let slow = SlowRegion::of(shape, map, unit_blocks, reserve_blocks)?;
        Combo::new(shape, &slow, &settings)
    }
}
