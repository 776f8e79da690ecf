//! Which writes are small: the threshold θ, and how it follows the traffic from the fast region to the slow one
//! (`ComboFTL` 2010 §3.2).

use serde::{Deserialize, Serialize};

use crate::request::SECTOR_BYTES;
use crate::units::ByteSize;

crate::choices! {
    /// Whether a quantity follows the workload.
    pub enum Mode {
        /// It adapts.
        Dynamic = "dynamic",
        /// It is constant.
        Fixed = "fixed",
    }
}

/// The threshold moves between these, by powers of two: 8, 16, 32 and 64 KiB.
const SECTORS_MIN: u32 = (8 << 10) / SECTOR_BYTES as u32;
const SECTORS_MAX: u32 = (64 << 10) / SECTOR_BYTES as u32;

/// The threshold's state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Threshold {
    sectors: u32,
    #[serde(with = "crate::save::fixed")]
    mode: Mode,
    /// Target of the migration ratio (φ), and the accepted deviation (ε).
    #[serde(with = "crate::save::fixed")]
    target: f64,
    #[serde(with = "crate::save::fixed")]
    tolerance: f64,
}

impl Threshold {
    /// Every write is small.
    pub const UNBOUNDED: Self = Self { sectors: u32::MAX, mode: Mode::Fixed, target: 0.0, tolerance: 0.0 };

    /// A constant threshold.
    pub fn fixed(size: ByteSize) -> Self {
        let sectors = u32::try_from(size.0 / SECTOR_BYTES).unwrap_or(u32::MAX);
        Self { sectors, ..Self::UNBOUNDED }
    }

    /// A threshold that starts at `start`, for a migration ratio of `target` ± `tolerance`.
    ///
    /// # Errors
    /// A start that is not a possible value.
    pub fn dynamic(start: ByteSize, target: f64, tolerance: f64) -> Result<Self, String> {
        let Self { sectors, .. } = Self::fixed(start);
        if !(SECTORS_MIN..=SECTORS_MAX).contains(&sectors) || !start.0.is_power_of_two() {
            return Err(format!("a dynamic threshold starts with 8KiB, 16KiB, 32KiB or 64KiB, not {start}"));
        }
        Ok(Self { sectors, mode: Mode::Dynamic, target, tolerance })
    }

    /// Whether a write of `sectors` sectors is small.
    #[inline]
    pub fn admits(&self, sectors: u32) -> bool {
        sectors <= self.sectors
    }

    /// The largest small write, in KiB, if not all are small.
    pub fn kib(&self) -> Option<f64> {
        (self.sectors < u32::MAX).then(|| f64::from(self.sectors) * SECTOR_BYTES as f64 / 1024.0)
    }

    /// Ends a period; `migration_ratio` is the amount of demoted data divided by the size of the fast region.
    pub fn adapt(&mut self, migration_ratio: f64) {
        if self.mode == Mode::Fixed {
            return;
        }
        if migration_ratio > self.target + self.tolerance {
            self.sectors = (self.sectors / 2).max(SECTORS_MIN);
        } else if migration_ratio < self.target - self.tolerance {
            self.sectors = (self.sectors * 2).min(SECTORS_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kib(kib: u64) -> ByteSize {
        ByteSize(kib << 10)
    }

    /// Fig. 13: 0.02 at (a), 0.34 at (b), with φ = 0.1 and ε = 0.05.
    #[test]
    fn the_papers_two_points_move_it_as_they_did() {
        for (ratio, after) in [(0.02, 32.0), (0.34, 8.0), (0.05, 16.0), (0.15, 16.0), (0.1, 16.0)] {
            let mut threshold = Threshold::dynamic(kib(16), 0.1, 0.05).unwrap();
            threshold.adapt(ratio);
            assert_eq!(threshold.kib(), Some(after), "{ratio}");
        }
    }

    #[test]
    fn it_stays_on_its_ladder() {
        let mut threshold = Threshold::dynamic(kib(32), 0.1, 0.05).unwrap();
        let mut steps = |ratio: f64| {
            let step = |_| {
                threshold.adapt(ratio);
                threshold.kib().unwrap()
            };
            [(); 4].map(step)
        };
        assert_eq!(steps(0.0), [64.0, 64.0, 64.0, 64.0]);
        assert_eq!(steps(1.0), [32.0, 16.0, 8.0, 8.0]);
        for start in [kib(4), kib(128), kib(24), ByteSize(0)] {
            assert!(Threshold::dynamic(start, 0.1, 0.05).is_err(), "{start}");
        }
    }

    #[test]
    fn a_fixed_one_stays_and_admits_its_own_size() {
        let mut threshold = Threshold::fixed(kib(64));
        threshold.adapt(1.0);
        assert!(threshold.admits(128) && !threshold.admits(129));
        assert!(Threshold::UNBOUNDED.admits(u32::MAX) && Threshold::UNBOUNDED.kib().is_none());
    }
}
