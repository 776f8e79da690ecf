//! `combo-static`: a fixed size decides which writes go to a log of SLC, and what its tail reaches goes down: the baseline
//! of Im and Shin, *`ComboFTL`*, Journal of Systems Architecture 56, 2010 (§6.1, table 4). See [`super::combo`].
//!
//! The paper has it with 8 KB, the default, and with 64 KB.

use super::combo::threshold::Threshold;
use super::combo::{Combo, Settings};
use super::space::{Map, SlowRegion};
use super::{Regions, SchemeSpec, Shape};
use crate::units::ByteSize;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "combo-static",
    summary: "writes up to a fixed size to a log of SLC whose tail goes down to MLC, the rest to MLC",
    source: "baseline of ComboFTL, JSA 2010",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    version: 5,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `combo-static`.
    pub struct Parameters {
        /// Largest write that goes to SLC; 8 and 64 KiB in the paper (section 6.1).
        pub threshold: ByteSize = ByteSize(8 << 10);
        /// How MLC is mapped (section 3.1).
        pub slow_map: Map = Map::Unit;
        /// Logical blocks of a unit of MLC: q. 0: 8, doubled while there are more units than spare blocks (sections 3.1, 5.1).
        pub unit_blocks: u32 = 0, in 0..=65_536;
        /// Erased MLC blocks at or below which MLC is collected.
        pub reserve_blocks: u32 = 2, in 1..=1024;
    }
}

/// `combo-static`.
#[derive(Debug)]
pub struct ComboStatic;

impl ComboStatic {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Too few blocks in either.
    #[expect(clippy::new_ret_no_self, reason = "it is one of several settings of the same scheme")]
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Combo, String> {
        let settings = Settings::clock(Threshold::fixed(parameters.threshold));
        let Parameters { slow_map: map, unit_blocks, reserve_blocks, .. } = parameters;
        let slow = SlowRegion::of(shape, map, unit_blocks, reserve_blocks)?;
        Combo::new(shape, &slow, &settings)
    }
}
