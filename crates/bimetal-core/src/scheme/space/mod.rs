//! What page-mapped schemes are built over, beside the [`Log`](crate::region::log::Log) itself.

mod mapped;
mod one_region;
mod slots;
mod unit_space;

pub use mapped::{Map, MappedSpace, SlowRegion};
pub use one_region::{OneRegion, logical_pages};
pub use slots::Slots;
pub use unit_space::{Settings as UnitSettings, UnitSpace, default_unit_blocks};
