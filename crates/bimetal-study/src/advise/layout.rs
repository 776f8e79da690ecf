//! The layout of a device, for estimates and descriptions.

use bimetal_core::chip::{Cell, Chip};
use bimetal_core::drive::Drive;
use bimetal_core::part::real::whole;
use bimetal_core::request::SECTOR_BYTES;
use bimetal_core::scheme::Regions;

use super::dies::Dies;
use crate::number::{SIZES, percent, significant, with_unit};

/// Ratio of raw to logical capacity from which spare area is no longer shown as a percentage.
const MANY: f64 = 10.0;

/// The layout of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The regions that its scheme needs.
    pub regions: Regions,
    /// The fast region, or the cells of the slow region in SLC mode: the part and its bytes.
    pub fast: Option<(Chip, u64)>,
    /// The slow region with its spare area.
    pub slow: Option<(Chip, u64)>,
    /// The disk.
    pub disk: Option<Drive>,
    /// Dies of the fast region, if it has its own.
    pub fast_dies: Option<Dies>,
    /// Dies of the slow region.
    pub slow_dies: Option<Dies>,
    /// All flash in native mode, in bytes.
    pub flash_bytes: u64,
    /// Logical capacity in bytes.
    pub logical_bytes: u64,
}

impl Layout {
    /// The layout of regions with their bytes and dies.
    pub fn of(
        regions: Regions,
        fast: Option<(Chip, u64, Dies)>,
        slow: Option<(Chip, u64, Dies)>,
        disk: Option<Drive>,
        logical_bytes: u64,
    ) -> Self {
        let bytes = |region: &Option<(Chip, u64, Dies)>| region.as_ref().map_or(0, |&(_, bytes, _)| bytes);
        let dies = |region: &Option<(Chip, u64, Dies)>| region.as_ref().map(|&(.., dies)| dies);
        let part = |region: Option<(Chip, u64, Dies)>| region.map(|(chip, bytes, _)| (chip, bytes));
        Self {
            regions,
            fast_dies: dies(&fast),
            slow_dies: dies(&slow),
            flash_bytes: bytes(&fast) + bytes(&slow),
            fast: part(fast),
            slow: part(slow),
            disk,
            logical_bytes,
        }
    }

    /// The same layout with a budget for blocks in SLC mode, in bytes of the slow region; `None` if its chip has no SLC
    /// mode.
    pub fn in_slc_mode(self, given_up: u64) -> Option<Self> {
        let (chip, bytes) = self.slow?;
        let mode = chip.slc_mode?;
        let fast = Chip {
            name: format!("{} in SLC mode", chip.name),
            cell: Cell::Pslc,
            pages_per_block: mode.pages_per_block,
            read_us: mode.read_us,
            program_us: mode.program_us,
            erase_us: mode.erase_us,
            endurance: mode.endurance,
            slc_mode: None,
            ..chip.clone()
        };
        let fast_bytes = whole(given_up as f64 * f64::from(mode.pages_per_block) / f64::from(chip.pages_per_block));
        Some(Self { fast: Some((fast, fast_bytes)), slow: Some((chip, bytes - given_up.min(bytes))), ..self })
    }

    /// Page size of the region that takes host writes.
    pub fn host_page_bytes(&self) -> u32 {
        let first = match self.regions {
            Regions::One => self.slow.as_ref(),
            _ => self.fast.as_ref(),
        };
        first.map_or(u32::try_from(SECTOR_BYTES).unwrap_or(u32::MAX), |(chip, _)| chip.page_bytes)
    }

    /// Dies of the region that takes host writes.
    pub fn host_dies(&self) -> u32 {
        self.fast_dies.or(self.slow_dies).map_or(1, Dies::count)
    }

    /// Dies of the slow region, or of all flash if there is only one region.
    pub fn slow_die_count(&self) -> u32 {
        self.slow_dies.or(self.fast_dies).map_or(1, Dies::count)
    }

    /// Number of all dies.
    pub fn dies(&self) -> u32 {
        [self.fast_dies, self.slow_dies].into_iter().flatten().map(Dies::count).sum()
    }

    /// Channels of all regions.
    pub fn channels(&self) -> u32 {
        [self.fast_dies, self.slow_dies].into_iter().flatten().map(|dies| dies.channels).sum()
    }

    /// The device in words, scaled by a factor.
    pub fn words(&self, scale: f64) -> String {
        let size = |bytes: u64| with_unit(SIZES, bytes as f64 * scale);
        let spare = |bytes: u64| match bytes as f64 / self.logical_bytes as f64 {
            ratio if ratio < MANY => format!("{} spare", percent((ratio - 1.0).max(0.0))),
            ratio => format!("{} times the logical capacity", significant(ratio)),
        };
        let fast = self.fast.as_ref().map(|(chip, bytes)| format!("{} of {}", size(*bytes), chip.name));
        let parts = match (&self.slow, &self.disk) {
            (Some((slow, bytes)), _) => {
                let slow = format!("{} of {} ({})", size(*bytes), slow.name, spare(*bytes));
                fast.map_or(slow.clone(), |fast| format!("{fast} in front of {slow}"))
            }
            (None, Some(disk)) => {
                format!("{} in front of {} of {}", fast.unwrap_or_default(), size(self.logical_bytes), disk.name)
            }
            (None, None) => fast.unwrap_or_default(),
        };
        let (dies, channels) = (self.dies(), self.channels());
        match dies {
            1 => format!("{parts}, 1 die"),
            _ => format!("{parts}, {dies} dies on {channels} channels"),
        }
    }
}
