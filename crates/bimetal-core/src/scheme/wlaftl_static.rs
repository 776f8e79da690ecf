//! `wlaftl-static`: [`super::wlaftl`] with a threshold that stays (*WLAFTL*, Chinese Journal of Computers 2018, table 3: 4, 8
//! and 16 KB).
//!
//! What becomes of the oldest data in SLC still follows the wear (Algorithm 2): the paper's baseline differs in the
//! threshold alone, as its name says.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::fifo_log::{Admission, FifoLog, Settings};
use super::{Regions, SchemeSpec, Shape};
use crate::model::wear_balance::WearCompare;
use crate::request::SECTOR_BYTES;
use crate::units::ByteSize;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "wlaftl-static",
    summary: "wlaftl with a fixed threshold",
    source: "WLAFTL, Chinese Journal of Computers 2018, table 3",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    version: 4,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `wlaftl-static`.
    pub struct Parameters {
        /// Largest write that is small: θ (table 3: 4, 8 and 16 KB).
        pub threshold: ByteSize = ByteSize(4 << 10), in ByteSize(0)..=ByteSize(1 << 30);
        /// How often an SLC page goes round before it goes down: Max_Cycle_Time (Algorithm 2, section 4.2).
        pub max_cycle_time: u32 = 3, in 0..=15;
        /// Erased SLC blocks below which the oldest block is collected: SLC_Free_Block (Algorithm 2).
        pub free_blocks: u32 = 4, in 1..=1_000_000;
        /// How the regions' relative wear is compared: `[RW]` (Algorithm 2).
        pub wear_compare: WearCompare = WearCompare::Integer;
        /// Erased MLC blocks of a die at or below which it is collected before the next write (FlashSim: 3).
        pub gc_free_blocks: u32 = 3, in 1..=1024;
    }
}

/// A threshold, in bytes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Fixed(#[serde(with = "crate::save::fixed")] u64);

impl Admission for Fixed {
    const KEEPS_UPDATES: bool = true;

    #[inline]
    fn admits(&mut self, sectors: u32, _wear: impl FnOnce() -> Ordering) -> bool {
        u64::from(sectors) * SECTOR_BYTES <= self.0
    }

    fn threshold_bytes(&self) -> u64 {
        self.0
    }
}

/// The state of `wlaftl-static`.
pub type WlaftlStatic = FifoLog<Fixed>;

impl WlaftlStatic {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Too few blocks in either.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let settings = Settings {
            free_blocks: parameters.free_blocks,
            max_cycle_time: parameters.max_cycle_time as u8,
            wear_compare: parameters.wear_compare,
            gc_free_blocks: parameters.gc_free_blocks,
        };
        Self::over(shape, Fixed(parameters.threshold.0), settings)
    }
}
