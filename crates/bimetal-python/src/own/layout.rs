//! A device for schemes in Python: pages of one size, and blocks numbered across all regions.
//!
//! A page is as large as the largest flash page of the device. In a region of smaller flash pages it consists of
//! several consecutive ones in one block. A *place* is the position of a page: the block's number times the pages of
//! the largest block, plus the position in the block.

use bimetal_core::chip::CellMode;
use bimetal_core::scheme::Shape;
use bimetal_core::units::{BlockId, Division, Geometry, Ppa, RegionId};
use serde::Serialize;

/// No place, or no page.
pub const NONE: u32 = u32::MAX;

/// A region.
#[derive(Debug)]
pub struct Tier {
    /// The region below the seam.
    pub region: RegionId,
    /// Its flash pages.
    pub geometry: Geometry,
    /// Flash pages of a page.
    pub pieces: u32,
    /// The number of its first block.
    first: u32,
    /// Pages of a block in native and in SLC mode; 0 if the chip has no SLC mode.
    pages: [u32; 2],
}

/// Description of a region for `__init__` of a scheme.
#[derive(Debug, Serialize)]
pub struct Facts {
    cell: &'static str,
    first_block: u32,
    blocks: u32,
    pages_per_block: u32,
    slc_pages_per_block: u32,
    dies: u32,
    endurance: u32,
}

/// A device.
#[derive(Debug)]
pub struct Layout {
    /// The host's sectors, as pages.
    pub division: Division,
    /// Pages that the host sees.
    pub pages: u32,
    /// Places from a block to the next.
    pub stride: u32,
    tiers: Vec<Tier>,
}

impl Layout {
    /// The layout of a device.
    ///
    /// # Errors
    /// The reason why it has none, and the remedy.
    pub fn of(shape: &Shape) -> Result<Self, String> {
        let sizes = shape.regions.iter().map(|region| region.geometry.page_sectors());
        let page_sectors = sizes.max().ok_or("it has no region")?;
        let (mut tiers, mut first): (Vec<Tier>, u64) = (Vec::with_capacity(shape.regions.len()), 0);
        for (index, region) in shape.regions.iter().enumerate() {
            let geometry = region.geometry;
            let pieces = page_sectors / geometry.page_sectors();
            let slc_pages = region.chip.slc_mode.as_ref().map_or(0, |mode| mode.pages_per_block);
            let pages = [geometry.pages_per_block / pieces, slc_pages.min(geometry.pages_per_block) / pieces];
            if !page_sectors.is_multiple_of(geometry.page_sectors()) || pages[0] == 0 {
                let bytes = page_sectors * 512;
                return Err(format!("a page of {bytes} bytes is no whole number of flash pages in every region"));
            }
            let region = RegionId(u8::try_from(index).map_err(|_| "it has too many regions")?);
            tiers.push(Tier { region, geometry, pieces, first: u32::try_from(first).unwrap_or(NONE), pages });
            first += u64::from(geometry.blocks);
        }
        let stride = tiers.iter().map(|tier| tier.pages[0]).max().unwrap_or(0);
        let pages = u32::try_from(shape.logical_sectors.div_ceil(page_sectors.into())).unwrap_or(NONE);
        if pages == NONE || first * u64::from(stride) >= u64::from(NONE) {
            return Err("it has more than 2^32 pages; make it smaller".into());
        }
        Ok(Self { division: Division::by(page_sectors), pages, stride, tiers })
    }

    /// Number of blocks of all regions.
    pub fn blocks(&self) -> u32 {
        self.tiers.last().map_or(0, |tier| tier.first + tier.geometry.blocks)
    }

    /// The region of a block.
    pub fn tier(&self, block: u32) -> &Tier {
        let after = self.tiers.partition_point(|tier| tier.first <= block);
        &self.tiers[after.saturating_sub(1)]
    }

    /// The block of a place.
    pub fn block_of(&self, place: u32) -> u32 {
        place / self.stride
    }

    /// Pages of a block in a mode.
    pub fn pages_per_block(&self, block: u32, mode: CellMode) -> u32 {
        self.tier(block).pages[mode as usize]
    }

    /// The region of a place, and the first of its consecutive flash pages.
    pub fn flash(&self, place: u32) -> (&Tier, Ppa) {
        let tier = self.tier(self.block_of(place));
        (tier, tier.geometry.ppa(tier.block(self.block_of(place)), place % self.stride * tier.pieces))
    }

    /// The descriptions of the regions for `__init__` of a scheme.
    pub fn facts(&self, shape: &Shape) -> Vec<Facts> {
        let fact = |(tier, region): (&Tier, &bimetal_core::scheme::RegionShape)| Facts {
            cell: region.chip.cell.name(),
            first_block: tier.first,
            blocks: tier.geometry.blocks,
            pages_per_block: tier.pages[0],
            slc_pages_per_block: tier.pages[1],
            dies: tier.geometry.dies,
            endurance: region.chip.endurance,
        };
        self.tiers.iter().zip(&shape.regions).map(fact).collect()
    }
}

impl Tier {
    /// A block below the seam.
    pub fn block(&self, block: u32) -> BlockId {
        BlockId(block - self.first)
    }
}
