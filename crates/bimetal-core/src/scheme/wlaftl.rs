//! `wlaftl`: SLC in front of page-mapped MLC, with equal wear of both (*WLAFTL*, Chinese Journal of Computers 2018).
//!
//! Algorithm 1: updates of data in SLC stay there; other writes go to SLC up to the threshold θ. On each write that is
//! not an update θ moves by Δθ: down while SLC is worn more than MLC, up while it is worn less. Algorithm 2, for the
//! oldest data in SLC, is in [`super::fifo_log`].
//!
//! Readings: sizes up to and including θ are small; a write is an update if all its data are in SLC; otherwise
//! the part of its data that is in SLC is updated there nevertheless; θ is bounded so that it can recover. The first
//! lines of Algorithm 1 are lost; `docs/papers/wlaftl-2018.md` gives the evidence.
//!
//! `wlaftl-static` is the same with a constant threshold (table 3).

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::fifo_log::{Admission, CycleTime, FifoLog, FifoLogSettings, HostWrite, WEAR_BALANCE, WearNow};
use super::presets::presets;
use super::tiered::THRESHOLD;
use super::{ParameterSet, Regions, SchemeSpec, Shape};
use crate::model::wear_balance::WearCompare;
use crate::units::ByteSize;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "wlaftl",
    summary: "updates and writes up to a threshold to a FIFO of SLC, threshold and demotion steered by relative wear",
    source: "WLAFTL, Chinese Journal of Computers 2018",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    adapts: &[THRESHOLD, WEAR_BALANCE],
    version: 7,
};

crate::choices! {
    /// How θ follows the wear.
    pub enum ThresholdRule {
        /// It moves by Δθ while one region is worn more (Algorithm 1).
        Steps = "steps",
        /// It follows from the whole cycles between the regions: the laboratory's program until July 2018.
        Cycles = "cycles",
    }
}

/// θ of the laboratory's program, in SLC pages of 2 KiB, if SLC is worn by at least these whole cycles more than MLC.
const OF_CYCLES: [(i64, u64); 5] = [(2, 0), (1, 1), (0, 4), (-1, 5), (-2, 6)];

/// The same if SLC is worn even less.
const OF_FEWER_CYCLES: u64 = 7;

/// A page of the laboratory's SLC, in bytes.
const LABORATORY_PAGE_BYTES: u64 = 2 << 10;

crate::parameters! {
    SPEC.name;
    /// Parameters of `wlaftl`.
    pub struct Parameters {
        /// Largest small write; if it adapts, the initial value: θ (section 4.1; table 3: 4, 8 and 16 KB).
        pub threshold: ByteSize = ByteSize(4 << 10), in ByteSize(0)..=ByteSize(1 << 30);
        /// How θ follows the wear. With `cycles` it is from 0 to 14 KiB, and the other parameters of θ have no effect.
        pub threshold_rule: ThresholdRule = ThresholdRule::Steps;
        /// Whether updates of data in SLC stay there whatever their size (Algorithm 1). The laboratory's program has no
        /// such rule.
        pub keep_updates: bool = true;
        /// Step of θ: Δθ (section 4.1).
        pub threshold_step: ByteSize = ByteSize(4 << 10), in ByteSize(0)..=ByteSize(1 << 30);
        /// Upper bound of θ; at least its initial value.
        pub threshold_max: ByteSize = ByteSize(1 << 20), in ByteSize(0)..=ByteSize(1 << 30);
        /// Writes of data not in SLC after which θ moves (Algorithm 1: each).
        pub threshold_interval: u32 = 1, in 1..=1_000_000_000;
        /// Laps of an SLC page in the log before it is demoted: Max_Cycle_Time (Algorithm 2, section 4.2).
        pub max_cycle_time: u32 = 3, in 0..=15;
        /// What is counted up to `max_cycle_time`: Cycle_Time (Algorithm 2).
        pub cycle_time: CycleTime = CycleTime::Laps;
        /// Whether pages stay for another lap while both regions are equally worn (Algorithm 2: "RWs <= RWm").
        pub laps_at_equal_wear: bool = true;
        /// Erased SLC blocks below which the oldest block is collected: SLC_Free_Block (Algorithm 2).
        pub free_blocks: u32 = 4, in 1..=1_000_000;
        /// How the regions' relative wear is compared: `[RW]` (Algorithms 1 and 2).
        pub wear_compare: WearCompare = WearCompare::Integer;
        /// Erased MLC blocks of a die at or below which it is collected before the next write (FlashSim: 3).
        pub gc_free_blocks: u32 = 3, in 1..=1024;
    }
}

/// θ and its controller.
#[derive(Debug, Serialize, Deserialize)]
pub struct Adaptive {
    bytes: u64,
    #[serde(with = "crate::save::fixed")]
    rule: ThresholdRule,
    #[serde(with = "crate::save::fixed")]
    keeps_updates: bool,
    #[serde(with = "crate::save::fixed")]
    step: u64,
    #[serde(with = "crate::save::fixed")]
    most: u64,
    #[serde(with = "crate::save::fixed")]
    interval: u32,
    writes: u32,
}

impl Admission for Adaptive {
    fn keeps_updates(&self) -> bool {
        self.keeps_updates
    }

    #[inline]
    fn admits(&mut self, write: HostWrite, wear: WearNow<'_>) -> bool {
        if self.rule == ThresholdRule::Cycles {
            self.bytes = of_cycles(wear.cycles_ahead());
            return write.bytes() <= self.bytes;
        }
        self.writes += 1;
        if self.writes >= self.interval {
            self.writes = 0;
            self.bytes = match wear.order() {
                Ordering::Equal => self.bytes,
                Ordering::Greater => self.bytes.saturating_sub(self.step),
                Ordering::Less => (self.bytes + self.step).min(self.most),
            };
        }
        write.bytes() <= self.bytes
    }

    fn threshold_bytes(&self) -> u64 {
        self.bytes
    }
}

/// θ in bytes if SLC is worn by `ahead` whole cycles more than MLC.
fn of_cycles(ahead: i64) -> u64 {
    let pages = OF_CYCLES.iter().find(|(least, _)| ahead >= *least).map_or(OF_FEWER_CYCLES, |(_, pages)| *pages);
    pages * LABORATORY_PAGE_BYTES
}

/// The state of `wlaftl`.
pub type Wlaftl = FifoLog<Adaptive>;

impl Wlaftl {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Too few blocks in either region, or a threshold that moves by steps and is above its bound.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let Parameters { threshold, threshold_max, threshold_rule, .. } = parameters;
        let bytes = match threshold_rule {
            ThresholdRule::Cycles => of_cycles(0),
            ThresholdRule::Steps if threshold > threshold_max => {
                return Err(format!(
                    "threshold {threshold} is above threshold_max {threshold_max}; change one of them"
                ));
            }
            ThresholdRule::Steps => threshold.0,
        };
        let admission = Adaptive {
            bytes,
            rule: threshold_rule,
            keeps_updates: parameters.keep_updates,
            step: parameters.threshold_step.0,
            most: threshold_max.0,
            interval: parameters.threshold_interval,
            writes: 0,
        };
        Self::over(shape, admission, parameters.settings_of())
    }
}

impl Parameters {
    fn settings_of(&self) -> FifoLogSettings {
        FifoLogSettings {
            free_blocks: self.free_blocks,
            max_cycle_time: self.max_cycle_time as u8,
            cycle_time: self.cycle_time,
            laps_at_equal_wear: self.laps_at_equal_wear,
            wear_compare: self.wear_compare,
            gc_free_blocks: self.gc_free_blocks,
        }
    }
}

presets! {
    super::Parameters, super::SPEC;

    /// With a constant threshold: the paper's baseline differs only in the threshold, as its name says. The choice of
    /// the oldest data in SLC that are demoted still follows the wear (Algorithm 2).
    pub mod wlaftl_static::WlaftlStatic {
        name: "wlaftl-static",
        summary: "wlaftl with a fixed threshold",
        source: "WLAFTL, Chinese Journal of Computers 2018, table 3",
        adapts: &[WEAR_BALANCE]
    }
    without ["threshold_rule", "threshold_step", "threshold_max", "threshold_interval"],
    |shape, parameters| -> FifoLog<Fixed> {
        let admission = Fixed { bytes: parameters.threshold.0, keeps_updates: parameters.keep_updates };
        FifoLog::over(shape, admission, parameters.settings_of())
    }
}

/// A constant threshold.
#[derive(Debug, Serialize, Deserialize)]
pub struct Fixed {
    #[serde(with = "crate::save::fixed")]
    bytes: u64,
    #[serde(with = "crate::save::fixed")]
    keeps_updates: bool,
}

impl Admission for Fixed {
    fn keeps_updates(&self) -> bool {
        self.keeps_updates
    }

    #[inline]
    fn admits(&mut self, write: HostWrite, _wear: WearNow<'_>) -> bool {
        write.bytes() <= self.bytes
    }

    fn threshold_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_laboratorys_threshold_follows_whole_cycles() {
        let kib = [3, 2, 1, 0, -1, -2, -3, -9].map(|ahead| of_cycles(ahead) >> 10);
        assert_eq!(kib, [0, 0, 2, 8, 10, 12, 14, 14]);
    }
}
