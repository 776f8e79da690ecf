//! Building blocks of page-mapped schemes, in addition to the [`Log`](crate::region::log::Log) itself.

mod mapped;
mod one_region;
mod slots;

pub use mapped::{Map, MappedSpace, SlowRegion};
pub use one_region::{OneRegion, logical_pages};
pub use slots::Slots;
