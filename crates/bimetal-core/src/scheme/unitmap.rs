//! `unitmap`: one region on `ComboFTL`'s unit-based page map, with nothing in front of it (Im and Shin, JSA 2010, sections
//! 3.1, 5.1 and 6.1).
//!
//! On a region of SLC this is the paper's "SLC-only", on MLC its "MLC-only": the references of `ComboFTL`. A unit of
//! consecutive logical blocks has its own physical blocks, up to a limit, and a page map within them. No data move
//! between regions, and there is no detection of hot data.
//!
//! The paper gives neither the unit's size nor its limit nor when blocks are collected: the defaults here are choices, and the
//! limit is explained with [`crate::region::log::Units`].

use super::space::{OneRegion, logical_pages};
use super::{Regions, SchemeSpec, Shape};
use crate::region::log::{Log, UnitSettings, Units, default_unit_blocks};
use crate::units::RegionId;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "unitmap",
    summary: "one region, page map within units of a few blocks: ComboFTL's SLC-only and MLC-only",
    source: "Im and Shin, JSA 2010, sections 3.1 and 6.1",
    regions: Regions::One,
    parameters: Parameters::specs,
    adapts: &[],
    version: 4,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `unitmap`.
    pub struct Parameters {
        /// Logical blocks of a unit; 0: 8, doubled until there are fewer units than spare blocks. Fig. 4 has 1 and 2.
        pub unit_blocks: u32 = 0, in 0..=65_536;
        /// Erased blocks at or below which units are collected before one of them takes another.
        pub reserve_blocks: u32 = 2, in 1..=1024;
        /// Whether idle time is used to collect up to twice `reserve_blocks`, as far as the spare area allows.
        pub idle_gc: bool = false;
    }
}

/// The state of `unitmap`.
pub type UnitMapped = OneRegion<Log<Units, 1>>;

impl UnitMapped {
    /// A scheme over the device's only region.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let (geometry, logical_pages) = (shape.regions[0].geometry, logical_pages(shape)?);
        let Parameters { unit_blocks, reserve_blocks, idle_gc } = parameters;
        let unit_blocks = match unit_blocks {
            0 => default_unit_blocks(&geometry, logical_pages),
            blocks => blocks,
        };
        let settings = UnitSettings { unit_blocks, reserve_blocks, idle_gc };
        Log::by_units(RegionId(0), geometry, logical_pages, settings).map(Self)
    }
}
