//! `conventional`: one block-mapped region with log-block chains, as in old flash drives and memory cards (Chang 2010
//! §3.5, the "conventional SSD" that the paper compares with, and its slow tier).
//!
//! Its operation and its departures from the paper are described in [`super::block_mapped`].

use serde::{Deserialize, Serialize};

use super::block_mapped::{Bare, BlockMapSettings, BlockMapped};
use super::{Metrics, Regions, Scheme, SchemeSpec, Shape};
use crate::media::Media;
use crate::region::chains::Victims;
use crate::request::{Op, Request};
use crate::units::RegionId;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "conventional",
    summary: "one region, block map with log-block chains, dual-pool wear levelling",
    source: "Chang, IEEE Trans. Computers 2010, section 3.5",
    regions: Regions::One,
    parameters: Parameters::specs,
    adapts: &[],
    version: 2,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `conventional`.
    pub struct Parameters {
        /// Erased blocks that are kept when a log block is taken; folding starts at this number (section 3.5).
        pub spare_low: u32 = 1, in 1..=1024;
        /// Number of chains whose second-level map is cached; 0: a scan at every access. 384 gives the p1 of table 3
        /// (section 3.5).
        pub map_cache_chains: u32 = 384, in 0..=1_000_000;
        /// Whether a map-cache miss reads all pages of the data block instead of one (section 3.5).
        pub scan_data_block: bool = false;
        /// Chain to fold if none can be switched (section 3.5).
        pub gc_victim: Victims = Victims::Longest;
        /// Whether blocks are exchanged by the dual-pool algorithm (section 5.1).
        pub wear_levelling: bool = true;
        /// Difference of erase counts at which blocks are exchanged, in cycles: TH (section 5.1).
        pub wear_threshold: u32 = 16, in 1..=1_000_000;
    }
}

/// The state of `conventional`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Conventional {
    blocks: BlockMapped,
}

impl Conventional {
    /// A scheme over the device's last region.
    ///
    /// # Errors
    /// Too few spare blocks.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let index = shape.regions.len().checked_sub(1).ok_or("it has no region")?;
        let settings = BlockMapSettings {
            spare_low: parameters.spare_low,
            map_cache_chains: parameters.map_cache_chains,
            scan_data_block: parameters.scan_data_block,
            gc_victim: parameters.gc_victim,
            wear_levelling: parameters.wear_levelling,
            wear_threshold: parameters.wear_threshold,
        };
        let region = RegionId(index as u8);
        let blocks = BlockMapped::new(region, &shape.regions[index], shape.logical_sectors, settings)?;
        Ok(Self { blocks })
    }
}

impl<M: Media> Scheme<M> for Conventional {
    fn fill(&mut self, media: &mut M) {
        self.blocks.fill(media);
    }

    #[inline]
    fn prefetch(&self, far: &Request, _near: &Request) {
        self.blocks.prefetch(far);
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        for span in self.blocks.spans(request) {
            match request.op {
                Op::Read => self.blocks.read_span(media, span),
                Op::Write => self.blocks.write_span(media, &mut Bare, span),
                Op::Trim => self.blocks.trim_span(span),
            }
        }
    }

    fn metrics(&self, metrics: &mut Metrics) {
        self.blocks.metrics(metrics);
        metrics.push("model_write_us", self.blocks.model_write_us());
        metrics.count("metadata_bytes", self.blocks.metadata_bytes());
    }

    fn check(&self) -> Result<(), String> {
        self.blocks.check()
    }
}
