//! Restoring simulated flash from its saved state.

use super::{CellMode, SimMedia};
use crate::save::{self, RestoreError};

/// Upper bound of every clock: a century.
const FAR_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

/// Upper bound of erase counts: parts last at most 100,000 cycles.
const ERASES_MAX: u32 = 1 << 31;

impl SimMedia {
    /// Restores the state that [`Save::save`](crate::save::Save::save) wrote for a device made in the same way.
    ///
    /// # Errors
    /// Bytes that are damaged or belong to another device.
    pub fn restored(&self, bytes: &[u8]) -> Result<Self, RestoreError> {
        let mut media: Self = save::restore(self, bytes)?;
        media.note_special();
        media.check().map_err(RestoreError::Broken)?;
        Ok(media)
    }

    /// Checks cell modes, erase counts, clocks and queues.
    fn check(&self) -> Result<(), String> {
        for (index, flash) in self.regions.iter().enumerate() {
            let modes = flash.blocks.iter().map(|block| block.mode);
            let slc_blocks = modes.clone().filter(|&mode| mode == CellMode::Slc as u8).count();
            if modes.clone().any(|mode| mode > CellMode::Slc as u8) || slc_blocks != flash.slc_blocks as usize {
                return Err(format!(
                    "{slc_blocks} blocks of region {index} are in SLC mode, {} counted",
                    flash.slc_blocks
                ));
            }
        }
        if self.ledger.erases.iter().flatten().any(|&erases| erases > ERASES_MAX) {
            return Err("the erase count of a block is too large".into());
        }
        if self.now.max(self.completion) > FAR_NS {
            return Err("a time is too far in the future".into());
        }
        self.ledger.check()?;
        self.clocks.check(FAR_NS)?;
        self.disks.check(FAR_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Cause, Faults, FlashOp, Media, SimRegion, Simulation, Stream};
    use crate::request::{Op, Request};
    use crate::save::Save;
    use crate::units::{BlockId, Geometry, RegionId};

    const REGION: RegionId = RegionId(0);

    fn media(dies: u32) -> (SimMedia, Geometry) {
        let geometry = Geometry::new(2048, 64, 16, dies).unwrap();
        let chip = chip::find("chang-slc").unwrap();
        (SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1), geometry)
    }

    #[test]
    fn a_restored_device_goes_on() {
        let (mut original, geometry) = media(2);
        original.begin(&Request { arrival_ns: 0, sector: 0, sectors: 8, op: Op::Write, handle: 0 }, 1_000_000);
        original.erase(REGION, BlockId(0), CellMode::Native, Cause::Gc);
        let mut bytes = Vec::new();
        original.save(&mut bytes);
        let mut restored = media(2).0.restored(&bytes).unwrap();
        let ends = [&mut original, &mut restored].map(|media| {
            media.read(REGION, geometry.ppa(BlockId(0), 0), Cause::Host);
            media.end()
        });
        // The read waits for the erase, which takes 1.5 ms.
        assert!(ends[0] == ends[1] && ends[0] > 2_500_000, "{ends:?}");
        assert_eq!(restored.ledger().erases[0][0], 1);
        assert_eq!(restored.ledger().total(FlashOp::Read, Cause::Host), 1);
        assert!(matches!(media(4).0.restored(&bytes), Err(RestoreError::Foreign)));
    }

    #[test]
    fn a_restored_region_that_can_fail_still_fails() {
        let geometry = Geometry::new(2048, 64, 16, 1).unwrap();
        let faults = Faults { program_fail_ppm: 1_000_000, ..Faults::default() };
        let region = SimRegion { chip: chip::find("chang-slc").unwrap(), geometry, channels: 1, faults };
        let media = || SimMedia::new(std::slice::from_ref(&region), 1);
        let mut bytes = Vec::new();
        media().save(&mut bytes);
        let unchecked = save::restore(&media(), &bytes).unwrap();
        for mut restored in [media().restored(&bytes).unwrap(), unchecked] {
            restored.program(REGION, geometry.ppa(BlockId(0), 0), &[], Stream::ONLY, Cause::Host);
            assert_eq!(restored.ledger().faults[0].program_failures, 1);
        }
    }
}
