//! Control of the fast tier over time: the utilisation throttle's period and bound (Chang 2010 §3.4, Algorithm 2), the
//! monitor that suspends the write-back policy (§3.6), and the guard against endless copying.

use serde::{Deserialize, Serialize};

/// The bound on the log's length (`k`), lowered while the throttle is active and raised while it is not.
#[derive(Debug, Serialize, Deserialize)]
pub struct LogBound {
    blocks: u32,
    #[serde(with = "crate::save::fixed")]
    least: u32,
    #[serde(with = "crate::save::fixed")]
    most: u32,
    #[serde(with = "crate::save::fixed")]
    step: u32,
    #[serde(with = "crate::save::fixed")]
    period: u32,
    throttled: u32,
    relaxed: u32,
}

impl LogBound {
    /// A bound that starts at `most`.
    pub fn new(least: u32, most: u32, step: u32, period: u32) -> Self {
        Self { blocks: most, least: least.min(most), most, step, period, throttled: 0, relaxed: 0 }
    }

    /// Largest distance of the head from the tail, in blocks.
    #[inline]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The limits of [`LogBound::blocks`].
    pub fn limits(&self) -> (u32, u32) {
        (self.least, self.most)
    }

    /// Counts a small write while the throttle is active.
    #[inline]
    pub fn note_throttled(&mut self) {
        self.throttled += 1;
    }

    /// Counts a rejected write: once in a period the bound is lowered.
    pub fn note_rejected(&mut self) {
        if self.throttled >= self.period {
            self.throttled = 0;
            self.blocks = self.blocks.saturating_sub(self.step).max(self.least);
        }
    }

    /// Counts a small write while the throttle is not active: once in a period the bound is raised.
    #[inline]
    pub fn note_relaxed(&mut self) {
        self.relaxed += 1;
        if self.relaxed >= self.period {
            self.relaxed = 0;
            self.blocks = (self.blocks + self.step).min(self.most);
        }
    }
}

/// Share of updates in the traffic to the fast tier, and whether it is stable.
#[derive(Debug, Serialize, Deserialize)]
pub struct UpdateMonitor {
    #[serde(with = "crate::save::fixed")]
    window_writes: u32,
    #[serde(with = "crate::save::fixed")]
    weight: f64,
    #[serde(with = "crate::save::fixed")]
    low: f64,
    #[serde(with = "crate::save::fixed")]
    high: f64,
    writes: u32,
    updated_sectors: u64,
    sectors: u64,
    /// Exponential moving average of the share.
    baseline: Option<f64>,
    stable: bool,
}

impl UpdateMonitor {
    /// Measures windows of `window_writes` accepted writes; unstable below `low` and stable again from `high` on, both
    /// as fractions of the usual share.
    pub fn new(window_writes: u32, weight: f64, low: f64, high: f64) -> Self {
        let baseline = None;
        Self { window_writes, weight, low, high, writes: 0, updated_sectors: 0, sectors: 0, baseline, stable: true }
    }

    /// Counts an accepted write.
    #[inline]
    pub fn record(&mut self, sectors: u32, updated_sectors: u32) {
        self.writes += 1;
        self.sectors += u64::from(sectors);
        self.updated_sectors += u64::from(updated_sectors);
        if self.writes >= self.window_writes {
            self.close_window();
        }
    }

    fn close_window(&mut self) {
        let share = self.updated_sectors as f64 / self.sectors as f64;
        (self.writes, self.updated_sectors, self.sectors) = (0, 0, 0);
        let usual = *self.baseline.get_or_insert(share);
        self.stable = share >= usual * if self.stable { self.low } else { self.high };
        if self.stable {
            self.baseline = Some(usual + self.weight * (share - usual));
        }
    }

    /// Whether the share of updates is as usual.
    #[inline]
    pub fn stable(&self) -> bool {
        self.stable
    }
}

/// Prevents the log from copying the same data for ever: after a lap that made room for less than a block, half a lap
/// of tail blocks is emptied by force.
#[derive(Debug, Serialize, Deserialize)]
pub struct LapGuard {
    #[serde(with = "crate::save::fixed")]
    blocks: u32,
    #[serde(with = "crate::save::fixed")]
    pages_per_block: u32,
    collected: u32,
    host_pages: u32,
    forced: u32,
}

impl LapGuard {
    /// For a log of `blocks` blocks.
    pub fn new(blocks: u32, pages_per_block: u32) -> Self {
        Self { blocks, pages_per_block, collected: 0, host_pages: 0, forced: 0 }
    }

    /// Counts a page for the host.
    #[inline]
    pub fn note_host_page(&mut self) {
        self.host_pages += 1;
    }

    /// Called before a tail block is collected; returns whether it is emptied by force.
    pub fn next_is_forced(&mut self) -> bool {
        self.collected += 1;
        if self.collected == self.blocks {
            if self.host_pages < self.pages_per_block {
                self.forced = self.blocks / 2;
            }
            (self.collected, self.host_pages) = (0, 0);
        }
        let forced = self.forced > 0;
        self.forced -= u32::from(forced);
        forced
    }

    /// Checks the counts.
    ///
    /// # Errors
    /// More blocks than the log has.
    pub fn check(&self) -> Result<(), String> {
        if self.collected >= self.blocks.max(1) || self.forced > self.blocks {
            return Err(format!("{} and {} of {} blocks of a lap", self.collected, self.forced, self.blocks));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_steps_once_a_period_between_its_limits() {
        let mut bound = LogBound::new(4, 126, 100, 10);
        for _ in 0..9 {
            bound.note_throttled();
            bound.note_rejected();
        }
        assert_eq!(bound.blocks(), 126);
        bound.note_throttled();
        assert_eq!(bound.blocks(), 126, "an accepted write does not lower it");
        bound.note_throttled();
        bound.note_rejected();
        assert_eq!(bound.blocks(), 26);
        for _ in 0..20 {
            bound.note_throttled();
            bound.note_rejected();
        }
        assert_eq!(bound.blocks(), 4);
        (0..20).for_each(|_| bound.note_relaxed());
        assert_eq!(bound.blocks(), 126);
    }

    #[test]
    fn a_drop_of_updates_is_unstable_until_they_are_back() {
        let mut monitor = UpdateMonitor::new(10, 0.125, 0.8, 0.95);
        let mut window = |updated| {
            (0..10).for_each(|_| monitor.record(8, updated));
            monitor.stable()
        };
        assert_eq!([8, 8, 7, 6, 7, 8, 8].map(&mut window), [true, true, true, false, false, true, true]);
    }

    #[test]
    fn a_lap_without_gain_forces_half_a_lap() {
        let mut guard = LapGuard::new(6, 4);
        let forced: Vec<bool> = (0..10).map(|_| guard.next_is_forced()).collect();
        assert_eq!(forced.iter().filter(|&&forced| forced).count(), 3);
        assert!(forced[5..8].iter().all(|&forced| forced));
        let mut guard = LapGuard::new(6, 4);
        (0..60).for_each(|_| {
            guard.note_host_page();
            assert!(!guard.next_is_forced());
        });
    }
}
