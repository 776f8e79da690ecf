//! Current dies, which sense the pages of all planes together and program all pages of a wordline at once.
//!
//! Pages of a block are ordered by plane, then by page of the wordline. A group of pages that are sensed together
//! consists of one page per plane. A wordline consists of as many groups as a cell has bits. A programmed page waits in
//! its die's registers until its wordline is full.

use super::{SimBlock, SimMedia};
use crate::operation::{Cause, FlashOp, Stream};
use crate::units::{Ppa, RegionId};

impl SimMedia {
    /// A page read by a die that senses pages together.
    pub(super) fn read_grouped(&mut self, region: RegionId, page: Ppa, cause: Cause) -> u64 {
        let flash = &self.regions[region.index()];
        let SimBlock { die, mode } = flash.blocks[flash.geometry.block_of(page).index()];
        let timing = &flash.timing[usize::from(mode)];
        let group = page.0 - flash.geometry.page_of(page) % timing.read_group;
        let (end, together) = if self.background {
            (self.now, self.clocks.defer_read_grouped(die, group, timing))
        } else {
            self.clocks.read_grouped((die, mode), self.now, group, cause == Cause::Host, timing)
        };
        let counts = &mut self.ledger.rows[flash.rows[usize::from(mode)]].counts;
        if together {
            counts.add_sensed_together(cause);
        } else {
            counts.add(FlashOp::Read, cause);
        }
        self.completion = self.completion.max(end);
        end
    }

    /// A page program by a die that programs pages together.
    pub(super) fn program_grouped(&mut self, region: RegionId, page: Ppa, ready: u64, stream: Stream, cause: Cause) {
        let flash = &self.regions[region.index()];
        let SimBlock { die, mode } = flash.blocks[flash.geometry.block_of(page).index()];
        let timing = &flash.timing[usize::from(mode)];
        self.ledger.rows[flash.rows[usize::from(mode)]].counts.add_programs(stream, cause, 1);
        let share = timing.program_for(cause);
        if self.background {
            self.clocks.defer(die, share + timing.transfer);
            return;
        }
        let last = (flash.geometry.page_of(page) + 1).is_multiple_of(timing.program_group);
        let times = (timing.transfer, share * u64::from(timing.program_group));
        let end = self.clocks.program_grouped(die, (self.now, ready.max(self.now)), last, times);
        self.completion = self.completion.max(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::{self, CellMode, Chip};
    use crate::media::{Faults, Media, Part, SimRegion, Simulation};
    use crate::request::{Op, Request};
    use crate::units::{BlockId, Geometry};

    const REGION: RegionId = RegionId(0);
    const REQUEST: Request = Request { arrival_ns: 0, sector: 0, sectors: 8, op: Op::Write, handle: 0 };
    /// 58 us to sense, 1,724.6 us to program a wordline of 24 units of 4 KiB, 3,500 us to erase, 20 us to suspend; here without
    /// spare area, and with 10 us on the channel for each unit.
    const WORDLINE: u32 = 24;

    fn media(dies: u32, change: impl FnOnce(&mut Chip)) -> (SimMedia, Geometry) {
        let mut chip = Chip { spare_bytes: 0, bus_mb_per_s: 409.6, ..chip::find("bics4-tlc").unwrap() };
        change(&mut chip);
        let chip = chip.in_units(4096).unwrap();
        let geometry = Geometry::new(4096, chip.pages_per_block, 8, dies).unwrap().striped(chip.read_group());
        assert_eq!((geometry.stripe_pages, chip.program_group(CellMode::Native)), (8, WORDLINE));
        (SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1), geometry)
    }

    fn program(media: &mut SimMedia, geometry: &Geometry, block: u32, pages: std::ops::Range<u32>) {
        for page in pages {
            let parts = [Part { data: media.host(), from: 0, to: 0, sectors: 8 }];
            media.program(REGION, geometry.ppa(BlockId(block), page), &parts, Stream::ONLY, Cause::Host);
        }
    }

    #[test]
    fn a_wordline_is_programmed_when_it_is_full() {
        let (mut media, geometry) = media(1, |_| ());
        media.begin(&REQUEST, 0);
        program(&mut media, &geometry, 0, 0..WORDLINE - 1);
        assert!(media.end().abs_diff(230_000 + 1_724_600) < 50, "as if the wordline were programmed now");
        assert_eq!(media.clocks.free_at(0), 0);
        program(&mut media, &geometry, 0, WORDLINE - 1..WORDLINE);
        assert!(media.end().abs_diff(240_000 + 1_724_600) < 50);
        // The next wordline is loaded meanwhile, and only that one.
        program(&mut media, &geometry, 0, WORDLINE..2 * WORDLINE);
        assert!(media.end().abs_diff(240_000 + 2 * 1_724_600) < 50);
        program(&mut media, &geometry, 0, 2 * WORDLINE..2 * WORDLINE + 1);
        assert!(media.end().abs_diff(240_000 + 3 * 1_724_600 + 10_000) < 2_000_000);
        let row = &media.ledger().rows[0];
        let busy_us = 2.0 * 1_724.6 + 1_724.6 / f64::from(WORDLINE);
        assert!((row.on_die().as_us() - busy_us).abs() < 0.2, "{:?}", row.on_die());
    }

    #[test]
    fn pages_of_a_group_are_sensed_together_for_one_request() {
        let (mut media, geometry) = media(1, |_| ());
        let mut read = |at, pages: &[u32]| {
            media.begin(&REQUEST, at);
            for &page in pages {
                media.read(REGION, geometry.ppa(BlockId(0), page), Cause::Host);
            }
            (media.end() - at, media.ledger().rows[0].counts.sensed_together(Cause::Host))
        };
        assert_eq!(read(0, &[0]), (68_000, 0));
        assert_eq!(read(1_000_000, &[0, 1, 7]), (58_000 + 30_000, 2), "one sensing, three transfers");
        assert_eq!(
            read(2_000_000, &[7, 8]),
            (2 * 58_000 + 10_000, 2),
            "two groups: a transfer while the next is sensed"
        );
        assert_eq!(media.ledger().rows[0].on_die().as_us(), 4.0 * 58.0);
    }

    #[test]
    fn planes_that_read_by_themselves_take_the_die_for_a_share_of_the_time() {
        let reads = |independent_reads| {
            let (mut media, geometry) = media(1, |chip| chip.independent_reads = independent_reads);
            media.begin(&REQUEST, 0);
            for block in 0..8 {
                media.read(REGION, geometry.ppa(BlockId(block), block * 8), Cause::Host);
            }
            media.end()
        };
        assert_eq!((reads(1), reads(2)), (8 * 58_000 + 10_000, 7 * 29_000 + 58_000 + 10_000));
    }

    #[test]
    fn a_read_of_the_host_suspends_a_program_or_an_erase() {
        for (suspend_us, wait_us) in [(Some(20.0), 20), (None, 3_400)] {
            let (mut media, geometry) = media(1, |chip| chip.suspend_us = suspend_us);
            media.begin(&REQUEST, 0);
            media.erase(REGION, BlockId(1), CellMode::Native, Cause::Gc);
            media.begin(&REQUEST, 100_000);
            media.read(REGION, geometry.ppa(BlockId(0), 0), Cause::Host);
            assert_eq!(media.end(), 100_000 + (wait_us + 58 + 10) * 1000, "{suspend_us:?}");
            // The erase continues afterwards: the operations that suspended it delay its end.
            media.begin(&REQUEST, 200_000);
            media.erase(REGION, BlockId(2), CellMode::Native, Cause::Gc);
            let waited = if suspend_us.is_some() { 78_000 } else { 58_000 };
            assert_eq!(media.end(), 2 * 3_500_000 + waited);
        }
    }

    #[test]
    fn a_read_of_quick_cells_does_not_wait_for_slow_cells_of_another_die() {
        let (mut media, geometry) = media(2, |_| ());
        for block in 0..2 {
            media.erase(REGION, BlockId(block), if block == 1 { CellMode::Slc } else { CellMode::Native }, Cause::Gc);
        }
        let [native, slc] =
            [CellMode::Native, CellMode::Slc].map(|mode| media.ledger().rows[mode as usize].timing.read.0);
        assert!(native > 2 * slc, "{native} {slc}");
        media.reset();
        media.begin(&REQUEST, 0);
        media.read(REGION, geometry.ppa(BlockId(0), 0), Cause::Host);
        media.begin(&REQUEST, 1_000);
        let end = media.read(REGION, geometry.ppa(BlockId(1), 0), Cause::Host);
        assert_eq!(end, 1_000 + slc + 10_000, "the channel is idle");
    }

    #[test]
    fn collection_does_not_suspend() {
        let (mut media, geometry) = media(1, |_| ());
        media.begin(&REQUEST, 0);
        media.erase(REGION, BlockId(1), CellMode::Native, Cause::Gc);
        media.read(REGION, geometry.ppa(BlockId(0), 0), Cause::Gc);
        assert_eq!(media.end(), 3_500_000 + 58_000 + 10_000);
    }

    #[test]
    fn transfers_of_one_die_do_not_hold_up_those_of_another() {
        let (mut media, geometry) = media(2, |_| ());
        media.begin(&REQUEST, 0);
        // Die 0 has a wordline in its array and one in its registers: the next one has to wait.
        program(&mut media, &geometry, 0, 0..2 * WORDLINE + 1);
        media.begin(&REQUEST, 500_000);
        program(&mut media, &geometry, 1, 0..1);
        assert!(media.end().abs_diff(510_000 + 1_724_600) < 50);
    }

    #[test]
    fn folding_takes_longer_where_the_controller_does() {
        let (media, geometry) = media(1, |_| ());
        let mut media = media.folding_at(0.25);
        media.begin(&REQUEST, 0);
        for page in 0..WORDLINE {
            media.program(REGION, geometry.ppa(BlockId(0), page), &[], Stream::ONLY, Cause::MigrateDown);
        }
        let end = media.end();
        assert!(end.abs_diff(240_000 + 4 * 1_724_600) < 100, "{end}");
    }
}
