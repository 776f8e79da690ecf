//! `hyssd-static`: [`super::hyssd`] with a constant utilisation of the fast SSD (*HySSD*, MSST 2013, section III:
//! "Static", from 5 % to 97 %).

use serde::{Deserialize, Serialize};

use super::hybrid_ssd::{ClassifierSettings, HybridSettings, HybridSsd, Reading, Steering};
use super::{Regions, SchemeSpec, Shape};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "hyssd-static",
    summary: "hyssd with a fixed utilisation of the fast SSD",
    source: "HySSD, MSST 2013, section III",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    adapts: &[],
    version: 4,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `hyssd-static`.
    pub struct Parameters {
        /// Valid data in the fast SSD, in percent of its size: u_SLC (section III: 5 to 97).
        pub utilisation_percent: f64 = 50.0, in 0.0..=100.0;
        /// Which writes go to the fast SSD (section II-B has both; see `docs/papers/hyssd-2013.md`).
        pub reading: Reading = Reading::WriteAllocate;
        /// Erased blocks of a die at or below which either SSD collects it before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
    }
}

/// No steering.
#[derive(Debug, Serialize, Deserialize)]
pub struct Fixed;

impl Steering for Fixed {}

/// The state of `hyssd-static`.
pub type HySsdStatic = HybridSsd<Fixed>;

impl HySsdStatic {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Regions that together cannot hold the data.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let settings = HybridSettings {
            reading: parameters.reading,
            utilisation: parameters.utilisation_percent / 100.0,
            // The target never falls.
            excess_pages: 0,
            timeout: 0,
            gc_free_blocks: parameters.gc_free_blocks,
            classifier: ClassifierSettings { segments: 1, keep: 0.0, sample_rate: 1.0 },
        };
        Self::over(shape, settings, |_| Fixed)
    }
}
