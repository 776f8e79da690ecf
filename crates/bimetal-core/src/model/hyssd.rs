//! The cost model of HySSD (MSST 2013, section II-B): the cost of an access by the utilisation of the fast SSD.
//!
//! Sizes are counted in mapping units of one size, here called pages, on both sides. A cost is that of one page of
//! either device, as printed. If a page of the slow SSD is larger, the caller must choose the costs accordingly.

use serde::{Deserialize, Serialize};

use super::cleaning::CleaningCost;

/// Two SSDs, the data that they share, and the costs of their operations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HybridCost {
    /// The fast SSD's cost of cleaning.
    #[serde(with = "crate::save::fixed")]
    pub fast: CleaningCost,
    /// The slow SSD's cost of cleaning.
    #[serde(with = "crate::save::fixed")]
    pub slow: CleaningCost,
    /// `S_SLC`: physical pages of the fast SSD.
    #[serde(with = "crate::save::fixed")]
    pub fast_pages: f64,
    /// `S_TLC`: physical pages of the slow SSD.
    #[serde(with = "crate::save::fixed")]
    pub slow_pages: f64,
    /// `D_HYBRID`: pages of data in both together.
    pub data_pages: f64,
}

/// Observations of a workload.
#[derive(Clone, Copy, Debug)]
pub struct HybridLoad<W, R> {
    /// `H_w`: share of writes that go to the `pages` most recently written pages.
    pub write_hits: W,
    /// `H_r`: share of reads that go to them.
    pub read_hits: R,
    /// `IO_W`: share of writes among all requests. The rest are reads, `IO_R`.
    pub write_share: f64,
}

/// The best use of the fast SSD.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HybridOptimum {
    /// `u_SLC`: utilisation of the fast SSD.
    pub utilisation: f64,
    /// `C_HYSSD` at this utilisation, in microseconds.
    pub access_us: f64,
}

impl HybridCost {
    /// `D_SLC` and `D_TLC`: pages of data in the fast and in the slow SSD at this utilisation of the fast one.
    pub fn sizes(&self, utilisation: f64) -> (f64, f64) {
        let fast = utilisation * self.fast_pages;
        (fast, self.data_pages - fast)
    }

    /// `u_TLC` at this utilisation of the fast SSD.
    pub fn slow_utilisation(&self, utilisation: f64) -> f64 {
        self.sizes(utilisation).1 / self.slow_pages
    }

    /// `C_PW_HY` in microseconds: each write goes to the fast SSD; a write that does not hit there first moves a page
    /// to the slow one. Infinite if one of them has no room.
    pub fn page_write_us(&self, utilisation: f64, hit_rate: f64) -> f64 {
        let demotion_us = self.fast.costs().read_us + self.slow.page_write_us(self.slow_utilisation(utilisation));
        if demotion_us.is_infinite() {
            return f64::INFINITY;
        }
        self.fast.page_write_us(utilisation) + (1.0 - hit_rate) * demotion_us
    }

    /// `C_PR_HY` in microseconds.
    pub fn page_read_us(&self, hit_rate: f64) -> f64 {
        hit_rate * self.fast.costs().read_us + (1.0 - hit_rate) * self.slow.costs().read_us
    }

    /// `C_HYSSD` in microseconds (equation 3).
    pub fn access_us<W, R>(&self, utilisation: f64, load: &HybridLoad<W, R>) -> f64
    where
        W: Fn(f64) -> f64,
        R: Fn(f64) -> f64,
    {
        let pages = self.sizes(utilisation).0;
        let write_us = self.page_write_us(utilisation, (load.write_hits)(pages));
        if write_us.is_infinite() {
            return f64::INFINITY;
        }
        write_us * load.write_share + self.page_read_us((load.read_hits)(pages)) * (1.0 - load.write_share)
    }

    /// The cheapest of these utilisations; the first of equals. `None` if the data fit at none of them.
    pub fn optimum<W, R>(
        &self,
        load: &HybridLoad<W, R>,
        utilisations: impl IntoIterator<Item = f64>,
    ) -> Option<HybridOptimum>
    where
        W: Fn(f64) -> f64,
        R: Fn(f64) -> f64,
    {
        let mut best = None;
        let mut least_us = f64::INFINITY;
        for utilisation in utilisations {
            let access_us = self.access_us(utilisation, load);
            if access_us < least_us {
                least_us = access_us;
                best = Some(HybridOptimum { utilisation, access_us });
            }
        }
        best
    }
}

/// `L_x = E_LEFT / E_USED`: remaining erases of a region divided by its past erases. Infinite for an unworn region,
/// negative beyond its endurance.
pub fn remaining_life(endurance: u32, mean_erases: f64) -> f64 {
    if mean_erases <= 0.0 { f64::INFINITY } else { (f64::from(endurance) - mean_erases) / mean_erases }
}

/// `L_HYSSD`: the remaining life of the region that wears out first (equation 4).
pub fn hybrid_life(fast: f64, slow: f64) -> f64 {
    fast.min(slow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cleaning::{FlashCosts, VictimUtilisation};

    fn st_ssd() -> HybridCost {
        let slc =
            FlashCosts { read_us: 135.0, program_us: 350.0, copy_us: 385.0, erase_us: 1500.0, pages_per_block: 128 };
        let tlc =
            FlashCosts { read_us: 350.0, program_us: 2500.0, copy_us: 2450.0, erase_us: 3000.0, pages_per_block: 384 };
        let [fast, slow] = [slc, tlc].map(|costs| CleaningCost::new(costs, VictimUtilisation::Fifo).in_whole_pages());
        let gib = f64::from(1 << 18);
        HybridCost { fast, slow, fast_pages: 2.0 * gib, slow_pages: 16.0 * gib, data_pages: 16.0 * gib }
    }

    fn percents() -> impl Iterator<Item = f64> {
        (0..100).map(|percent| f64::from(percent) / 100.0)
    }

    #[test]
    fn write_cost_is_the_printed_sum() {
        let model = st_ssd();
        for (utilisation, hits) in [(0.3, 0.1), (0.6, 0.5), (0.9, 0.95)] {
            let (fast, slow) =
                (model.fast.page_write_us(utilisation), model.slow.page_write_us(1.0 - utilisation / 8.0));
            let printed = hits * fast + (1.0 - hits) * (135.0 + slow + fast);
            assert!((model.page_write_us(utilisation, hits) / printed - 1.0).abs() < 1e-12);
        }
        assert_eq!(model.page_read_us(0.25), 0.25 * 135.0 + 0.75 * 350.0);
    }

    #[test]
    fn the_optimum_holds_what_hits() {
        let model = st_ssd();
        let load = |hot_pages: f64, hits: f64| HybridLoad {
            write_hits: move |pages: f64| (pages / hot_pages).min(1.0) * hits,
            read_hits: |pages: f64| (pages / f64::from(1 << 20)).min(1.0),
            write_share: 0.5,
        };
        let optimum = |hot: f64, hits: f64| model.optimum(&load(hot * model.fast_pages, hits), percents()).unwrap();
        // Without misses, more than the hot data in the fast SSD only costs.
        assert_eq!([0.4, 0.8].map(|hot| optimum(hot, 1.0).utilisation), [0.4, 0.8]);
        // With misses, more than the hot data relieves the slow SSD.
        let missing = optimum(0.4, 0.9);
        assert!(missing.utilisation > 0.5 && missing.utilisation < 0.9, "{missing:?}");
        assert_eq!(model.access_us(missing.utilisation, &load(0.4 * model.fast_pages, 0.9)), missing.access_us);
        // More than all pages.
        let full = HybridCost { data_pages: 18.0 * f64::from(1 << 18), ..model };
        assert_eq!(full.optimum(&load(1e5, 1.0), percents()), None);
        assert!(full.access_us(0.5, &load(1e5, 1.0)).is_infinite());
    }

    #[test]
    fn life_is_that_of_the_weaker() {
        assert_eq!(remaining_life(60_000, 20_000.0), 2.0);
        assert_eq!(remaining_life(500, 1000.0), -0.5);
        assert_eq!(remaining_life(500, 0.0), f64::INFINITY);
        assert_eq!(hybrid_life(remaining_life(60_000, 20_000.0), remaining_life(500, 400.0)), 0.25);
    }
}
