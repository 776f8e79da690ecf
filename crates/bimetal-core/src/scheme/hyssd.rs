//! `hyssd`: SLC or MLC in front of TLC, with the utilisation of the fast one from a cost model (*HySSD*, MSST 2013).
//!
//! Once a period of page writes the Analyser takes the hit-rate curves of the Data Classifier and searches the
//! utilisation of the fast SSD with the lowest cost of an access (equation 3): the higher, the more hits in the fast
//! SSD and the emptier the slow one, but the more each write in the fast one costs. With the goal `lifetime` the
//! utilisation is shifted towards the SSD that has more of its life left (section II-B, "Lifetime Management").
//! [`super::hybrid_ssd`] moves the data.
//!
//! Readings: the period is 65,536 page writes, as OP-FCL's is in requests; utilisations are tried in steps of 1
//! % from 1 to 97 %; lifetime shifts by 1 % a period. `docs/papers/hyssd-2013.md` gives the reasons.

use serde::{Deserialize, Serialize};

use super::hybrid_ssd::{
    Classifier, ClassifierSettings, HybridSettings, HybridSsd, Pair, Reading, Steering, UTILISATION, UTILISATION_TARGET,
};
use super::{Metrics, RegionShape, Regions, SchemeSpec, Shape};
use crate::model::cleaning::{CleaningCost, FlashCosts, VictimUtilisation};
use crate::model::hyssd::{HybridCost, HybridLoad, HybridOptimum};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "hyssd",
    summary: "two page-mapped SSDs, the fast one as full as a cost model finds best for response or for lifetime",
    source: "HySSD, MSST 2013",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    adapts: &[UTILISATION_TARGET, UTILISATION],
    version: 5,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `hyssd`.
    pub struct Parameters {
        /// Goal for the utilisation of the fast SSD: "Perf" or "Life" (section III).
        pub goal: Goal = Goal::Performance;
        /// Which writes go to the fast SSD (section II-B has both; see `docs/papers/hyssd-2013.md`).
        pub reading: Reading = Reading::WriteAllocate;
        /// Page writes after which the Analyser runs: N (not given; OP-FCL has 2^16 requests).
        pub period: u32 = 65_536, in 1..=1_000_000_000;
        /// Utilisation of the fast SSD until the Analyser first runs, in percent.
        pub initial_utilisation_percent: f64 = 50.0, in 0.0..=100.0;
        /// Assumed utilisation of the victims of garbage collection: U (section II-B: the table for FIFO).
        pub victim: VictimUtilisation = VictimUtilisation::Fifo;
        /// Unit of the model's costs: one page of either chip, or the unit of placement.
        pub cost_of: CostOf = CostOf::Unit;
        /// How the utilisation follows lifetime.
        pub life_mode: LifeMode = LifeMode::Offset;
        /// Step of the utilisation in each period, in percent of the fast SSD (section II-B: "incremented").
        pub life_step_percent: f64 = 1.0, in 0.01..=100.0;
        /// By how much one life must exceed the other for the utilisation to move, in percent of the other; 0 as
        /// printed.
        pub life_band_percent: f64 = 0.0, in 0.0..=1000.0;
        /// Pages that a write demotes in addition to the one that it replaces, while the fast SSD has more than its
        /// target.
        pub excess_pages: u32 = 1, in 0..=1_000_000;
        /// Age of a page, in page writes, above which idle time demotes it while the fast SSD has more than its target
        /// (section II-C: "some specified time").
        pub timeout: u64 = 65_536, in 0..=1_000_000_000;
        /// Segments of the hit-rate curves.
        pub segments: u32 = 64, in 1..=4096;
        /// Share of the curves' counts that is kept from period to period.
        pub curve_keep: f64 = 0.5, in 0.0..=1.0;
        /// Pages of the curves: all, or a sample (SHARDS, FAST 2015).
        pub curve: Curve = Curve::Exact;
        /// Share of the pages in the sample.
        pub sample_rate: f64 = 0.01, in 0.000_001..=1.0;
        /// Erased blocks of a die at or below which either SSD collects it before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
    }
}

crate::choices! {
    /// Goal of the fast SSD's utilisation.
    pub enum Goal {
        /// Lowest cost of an access.
        Performance = "performance",
        /// Lowest cost, shifted towards the SSD with more life left.
        Lifetime = "lifetime",
    }
}

crate::choices! {
    /// Unit of the model's costs.
    pub enum CostOf {
        /// A page of either chip, as printed, whatever their sizes.
        FlashPage = "flash_page",
        /// The unit of placement: all of its flash pages.
        Unit = "unit",
    }
}

crate::choices! {
    /// How the utilisation follows lifetime.
    pub enum LifeMode {
        /// The best utilisation for performance plus an offset: "additionally adjusts the performance optimized
        /// utilization".
        Offset = "offset",
        /// Step by step from the first utilisation, independent of the best one for performance.
        Integrate = "integrate",
    }
}

crate::choices! {
    /// Pages from which hit-rate curves are made.
    pub enum Curve {
        /// All pages.
        Exact = "exact",
        /// A sample of the pages.
        Sampled = "sampled",
    }
}

/// Utilisations that the Analyser tries, in percent.
const PERCENTS: std::ops::RangeInclusive<u32> = 1..=97;

/// The Analyser, and the controller for lifetime.
#[derive(Debug, Serialize, Deserialize)]
pub struct Analyser {
    #[serde(with = "crate::save::fixed")]
    period: u32,
    #[serde(with = "crate::save::fixed")]
    goal: Goal,
    #[serde(with = "crate::save::fixed")]
    life_mode: LifeMode,
    #[serde(with = "crate::save::fixed")]
    life_step: f64,
    /// Factor by which one life must exceed the other for the utilisation to move.
    #[serde(with = "crate::save::fixed")]
    life_band: f64,
    model: HybridCost,
    /// The utilisation that was last found best for performance.
    best: HybridOptimum,
    /// Shift of the utilisation for lifetime.
    offset: f64,
    /// The requested utilisation.
    utilisation: f64,
}

impl Analyser {
    fn new(shape: &Shape, pair: &Pair, parameters: &Parameters) -> Self {
        let cost = |region: &RegionShape, flash_pages: u32| {
            let flash_pages = if parameters.cost_of == CostOf::Unit { flash_pages } else { 1 };
            let costs = FlashCosts::of(&region.chip).of_pages(flash_pages);
            CleaningCost::new(costs, parameters.victim).in_whole_pages()
        };
        let (fast, slow) = (&shape.regions[0], &shape.regions[shape.regions.len() - 1]);
        let (fast_pages, slow_pages) = pair.sizes();
        let model = HybridCost {
            fast: cost(fast, pair.fast_per_page()),
            slow: cost(slow, pair.slow_per_page()),
            fast_pages,
            slow_pages,
            data_pages: 0.0,
        };
        let utilisation = parameters.initial_utilisation_percent / 100.0;
        Self {
            period: parameters.period,
            goal: parameters.goal,
            life_mode: parameters.life_mode,
            life_step: parameters.life_step_percent / 100.0,
            life_band: 1.0 + parameters.life_band_percent / 100.0,
            model,
            best: HybridOptimum { utilisation, access_us: 0.0 },
            offset: 0.0,
            utilisation,
        }
    }

    /// Searches the utilisation with the lowest cost of an access.
    fn analyse(&mut self, pair: &Pair, classifier: &Classifier) {
        self.model.data_pages = f64::from(pair.fast_pages()) + pair.slow_pages();
        let load = HybridLoad {
            write_hits: |pages| classifier.write_hit_rate(pages),
            read_hits: |pages| classifier.read_hit_rate(pages),
            write_share: classifier.write_share(),
        };
        let (least, most) = pair.fast_limits();
        let possible = f64::from(least)..=f64::from(most);
        let tried = PERCENTS.map(|percent| f64::from(percent) / 100.0);
        let tried = tried.filter(|utilisation| possible.contains(&(utilisation * self.model.fast_pages)));
        if let Some(best) = self.model.optimum(&load, tried) {
            self.best = best;
        }
    }

    /// Moves the utilisation a step towards the SSD with more life left.
    fn follow_life(&mut self, pair: &Pair) {
        let ((fast, slow), (fewest, largest)) = (pair.lives(), pair.fast_limits());
        let least = (f64::from(*PERCENTS.start()) / 100.0).max(f64::from(fewest) / self.model.fast_pages);
        let most = (f64::from(*PERCENTS.end()) / 100.0).min(f64::from(largest) / self.model.fast_pages).max(least);
        // If the utilisation cannot follow, the offset stays.
        let step = if fast > slow * self.life_band && self.utilisation < most {
            self.life_step
        } else if slow > fast * self.life_band && self.utilisation > least {
            -self.life_step
        } else {
            0.0
        };
        self.offset += step;
        let sum = match self.life_mode {
            LifeMode::Offset => self.best.utilisation + self.offset,
            LifeMode::Integrate => self.utilisation + step,
        };
        self.utilisation = sum.clamp(least, most);
    }
}

impl Steering for Analyser {
    fn period(&self) -> Option<u32> {
        Some(self.period)
    }

    fn end_period(&mut self, pair: &Pair, classifier: &Classifier) -> Option<f64> {
        self.analyse(pair, classifier);
        match self.goal {
            Goal::Performance => self.utilisation = self.best.utilisation,
            Goal::Lifetime => self.follow_life(pair),
        }
        Some(self.utilisation)
    }

    fn metrics(&self, metrics: &mut Metrics) {
        metrics.push("utilisation_performance", self.best.utilisation);
        metrics.push("life_offset", self.offset);
        metrics.push("model_access_us", self.best.access_us);
    }
}

/// The state of `hyssd`.
pub type HySsd = HybridSsd<Analyser>;

impl HySsd {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Regions that together cannot hold the data.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let sample_rate = match parameters.curve {
            Curve::Exact => 1.0,
            Curve::Sampled => parameters.sample_rate,
        };
        let settings = HybridSettings {
            reading: parameters.reading,
            utilisation: parameters.initial_utilisation_percent / 100.0,
            excess_pages: parameters.excess_pages,
            timeout: parameters.timeout,
            gc_free_blocks: parameters.gc_free_blocks,
            classifier: ClassifierSettings { segments: parameters.segments, keep: parameters.curve_keep, sample_rate },
        };
        Self::over(shape, settings, |pair| Analyser::new(shape, pair, &parameters))
    }
}
