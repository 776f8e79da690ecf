//! A region with a selectable map: by units, as in `ComboFTL`, or by pages.

use serde::{Deserialize, Serialize};

use crate::media::{Cause, Media, Part};
use crate::region::Space;
use crate::region::log::{Collection, Log, UnitSettings, Units, default_unit_blocks};
use crate::region::page_table::PageTable;
use crate::scheme::Shape;
use crate::units::{Geometry, Ppa, RegionId};

crate::choices! {
    /// How a region is mapped.
    pub enum Map {
        /// A page lies anywhere within the blocks of its unit.
        Unit = "unit",
        /// A page lies anywhere.
        Page = "page",
    }
}

/// A region with either map.
#[derive(Debug, Serialize, Deserialize)]
pub enum MappedSpace {
    /// Mapped by units.
    Unit(Log<Units, 1>),
    /// Mapped by pages.
    Page(Log),
}

/// A device's last region, and its map.
#[derive(Clone, Copy, Debug)]
pub struct SlowRegion {
    region: RegionId,
    geometry: Geometry,
    logical_pages: u64,
    map: Map,
    unit_blocks: u32,
    reserve_blocks: u32,
}

impl SlowRegion {
    /// The last region of `shape`. Units have `unit_blocks` logical blocks, or [`default_unit_blocks`] if that is 0.
    /// The region is collected when it has only `reserve_blocks` erased blocks left; if it is mapped by pages, this
    /// applies to each of its dies.
    ///
    /// # Errors
    /// A device without regions.
    pub fn of(shape: &Shape, map: Map, unit_blocks: u32, reserve_blocks: u32) -> Result<Self, String> {
        let geometry = shape.regions.last().ok_or("it has no region")?.geometry;
        let region = RegionId((shape.regions.len() - 1) as u8);
        let logical_pages = shape.logical_sectors.div_ceil(u64::from(geometry.page_sectors()));
        let unit_blocks = match unit_blocks {
            0 => default_unit_blocks(&geometry, logical_pages),
            blocks => blocks,
        };
        Ok(Self { region, geometry, logical_pages, map, unit_blocks, reserve_blocks })
    }

    /// Logical blocks per unit, even if the region is mapped by pages.
    pub fn unit_blocks(&self) -> u32 {
        self.unit_blocks
    }

    /// The region, erased.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn space(&self) -> Result<MappedSpace, String> {
        let Self { region, geometry, logical_pages, unit_blocks, reserve_blocks, .. } = *self;
        let idle_gc = false;
        match self.map {
            Map::Unit => {
                let settings = UnitSettings { unit_blocks, reserve_blocks, idle_gc };
                Log::by_units(region, geometry, logical_pages, settings).map(MappedSpace::Unit)
            }
            Map::Page => {
                let settings = Collection { gc_free_blocks: reserve_blocks, idle_gc };
                Log::new(region, geometry, logical_pages, settings).map(MappedSpace::Page)
            }
        }
    }
}

/// Evaluates the same expression for either map.
macro_rules! either {
    ($this:expr, $space:ident => $action:expr) => {
        match $this {
            MappedSpace::Unit($space) => $action,
            MappedSpace::Page($space) => $action,
        }
    };
}

impl Space for MappedSpace {
    fn region(&self) -> RegionId {
        either!(self, space => space.region())
    }

    #[inline(always)]
    fn table(&self) -> &PageTable {
        either!(self, space => space.table())
    }

    #[inline(always)]
    fn lookup(&self, logical: u32) -> Option<Ppa> {
        either!(self, space => space.lookup(logical))
    }

    #[inline(always)]
    fn invalidate(&mut self, logical: u32) -> bool {
        either!(self, space => space.invalidate(logical))
    }

    #[inline(always)]
    fn put_elsewhere(&mut self, logical: u32, place: u32) {
        either!(self, space => space.put_elsewhere(logical, place));
    }

    #[inline]
    fn write<M: Media>(&mut self, media: &mut M, logical: u32, parts: &[Part<M::Data>], cause: Cause) {
        either!(self, space => space.write(media, logical, parts, cause));
    }

    #[inline]
    fn prefetch_page(&self, logical: u32) {
        either!(self, space => space.prefetch_page(logical));
    }

    fn erases(&self) -> u64 {
        either!(self, space => space.erases())
    }

    fn copied_pages(&self) -> u64 {
        either!(self, space => space.copied_pages())
    }

    fn metadata_bytes(&self) -> u64 {
        either!(self, space => space.metadata_bytes())
    }

    fn check(&self) -> Result<(), String> {
        either!(self, space => space.check())
    }
}
