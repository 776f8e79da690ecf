use super::*;
use crate::chip;
use crate::media::{Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
use crate::scheme::RegionShape;
use crate::scheme::wlaftl::{Parameters, Wlaftl};
use crate::units::Geometry;

/// 64 logical pages of 4 KiB behind 8 fast blocks of 8 pages of 2 KiB, 16 KiB each.
struct Device {
    media: Checked<SimMedia>,
    scheme: Wlaftl,
}

impl Device {
    fn new(settings: &[(&str, &str)]) -> Self {
        Self::build(settings).unwrap()
    }

    fn build(settings: &[(&str, &str)]) -> Result<Self, String> {
        let region = |name: &str, blocks| {
            let chip = chip::find(name).unwrap();
            let geometry = Geometry::new(chip.page_bytes, 8, blocks, 1).unwrap();
            SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
        };
        let regions = [region("wlaftl-slc", 8), region("wlaftl-mlc", 16)];
        let shapes = regions.iter().map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry });
        let shape = Shape { logical_sectors: 64 * 8, regions: shapes.collect(), disks: Vec::new(), seed: 1 };
        let settings: Vec<(String, String)> = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        let scheme = Wlaftl::new(&shape, Parameters::parse(&settings).unwrap())?;
        let geometries: Vec<_> = regions.iter().map(|region| (region.geometry, 0)).collect();
        Ok(Self { media: Checked::new(SimMedia::new(&regions, 1), &geometries), scheme })
    }

    fn serve(&mut self, op: Op, sector: u64, sectors: u32) {
        let request = Request { arrival_ns: 0, sector, sectors, op, handle: 0 };
        self.media.reset_counts();
        self.media.begin(&request, 0);
        self.scheme.serve(&mut self.media, &request);
        Scheme::<Checked<SimMedia>>::check(&self.scheme).unwrap();
    }

    fn programs(&self, region: usize, cause: Cause) -> u64 {
        self.media.ledger().rows[region].counts.get(FlashOp::Program, cause)
    }

    /// `Cycle_Time` of a unit, if it is in the log.
    fn cycles(&self, unit: u32) -> Option<u8> {
        self.scheme.tiers.slot(unit).map(|slot| self.scheme.cycles[slot as usize])
    }
}

#[test]
fn an_update_stays_however_large_and_new_data_follow_the_threshold() {
    let mut device = Device::new(&[]);
    device.serve(Op::Write, 0, 8);
    assert_eq!((device.programs(0, Cause::Host), device.programs(1, Cause::Host)), (2, 0), "4 KiB are small");
    device.serve(Op::Write, 8, 12);
    assert_eq!((device.programs(0, Cause::Host), device.programs(1, Cause::Host)), (0, 2), "6 KiB are not");
    device.serve(Op::Write, 8, 8);
    device.serve(Op::Write, 0, 16);
    assert_eq!((device.programs(0, Cause::Host), device.programs(1, Cause::Host)), (4, 0), "all of it is in the log");
    device.serve(Op::Write, 0, 24);
    assert_eq!((device.programs(0, Cause::Host), device.programs(1, Cause::Host)), (4, 1), "the rest goes by size");
    device.serve(Op::Write, 12, 8);
    assert_eq!((device.programs(0, Cause::Host), device.programs(1, Cause::Host)), (2, 0), "half is an update");
}

/// The laboratory's program has no rule for updates.
#[test]
fn updates_follow_the_threshold_if_they_are_to() {
    let mut device = Device::new(&[("keep_updates", "false")]);
    device.serve(Op::Write, 0, 8);
    device.serve(Op::Write, 8, 8);
    device.serve(Op::Write, 0, 16);
    assert_eq!((device.programs(0, Cause::Host), device.programs(1, Cause::Host)), (0, 2), "8 KiB are not small");
    assert_eq!((device.cycles(0), device.cycles(3)), (None, None), "the copies in the log are superseded");
}

#[test]
fn the_threshold_follows_whole_cycles_if_it_is_to() {
    let mut device = Device::new(&[("threshold_rule", "cycles"), ("threshold", "0")]);
    device.serve(Op::Write, 0, 16);
    assert_eq!((device.programs(0, Cause::Host), device.programs(1, Cause::Host)), (4, 0), "8 KiB at equal wear");
    device.serve(Op::Write, 16, 17);
    assert_eq!(device.programs(0, Cause::Host), 0);
}

#[test]
fn a_page_goes_round_as_often_as_it_may() {
    for laps in [0, 1, 3, 10] {
        let mut device = Device::new(&[("max_cycle_time", &laps.to_string()), ("free_blocks", "2")]);
        device.serve(Op::Write, 0, 8);
        let mut seen = vec![0];
        let mut hot = [16, 24, 32, 40].into_iter().cycle();
        while device.cycles(0).is_some() {
            device.serve(Op::Write, hot.next().unwrap(), 8);
            seen.extend(device.cycles(0));
        }
        seen.dedup();
        assert_eq!(seen, (0..=laps).collect::<Vec<u8>>());
        assert_eq!(device.programs(1, Cause::MigrateDown), 1, "a whole slow page");
        assert_eq!(device.scheme.counts.copied_back_pages, 2 * u64::from(laps));
        assert_eq!(device.scheme.counts.worn_units, 0);
    }
}

#[test]
fn an_updated_page_starts_again() {
    let mut device = Device::new(&[("free_blocks", "2")]);
    device.serve(Op::Write, 0, 8);
    let mut hot = [16, 24, 32, 40].into_iter().cycle();
    for update in 0..5 {
        while device.cycles(0) != Some(2) {
            device.serve(Op::Write, hot.next().unwrap(), 8);
        }
        let sectors = if update % 2 == 0 { 8 } else { 2 };
        device.serve(Op::Write, 0, sectors);
        assert_eq!((device.cycles(0), device.cycles(1)), (Some(0), Some(if sectors == 8 { 0 } else { 2 })));
        device.serve(Op::Write, 0, 8);
    }
    assert_eq!(device.scheme.counts.demoted_units, 0, "twelve laps");
}

/// The laboratory's program also counts the host's writes to a page.
#[test]
fn writes_count_if_they_are_to() {
    let mut device = Device::new(&[("cycle_time", "laps_and_writes"), ("max_cycle_time", "2"), ("free_blocks", "2")]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        device.serve(Op::Write, 0, 8);
        seen.extend(device.cycles(0));
    }
    assert_eq!(seen, [1, 2, 2, 2]);
    device.serve(Op::Write, 48, 8);
    let mut hot = [16, 24, 32, 40].into_iter().cycle();
    while device.cycles(0).is_some() {
        device.serve(Op::Write, hot.next().unwrap(), 8);
    }
    assert_eq!(device.cycles(12), Some(1), "what was written once was behind it");
    assert_eq!((device.scheme.counts.copied_back_pages, device.scheme.counts.demoted_units), (0, 2));
    device.serve(Op::Write, 0, 8);
    assert_eq!(device.cycles(0), Some(1), "it went down in between");
}

#[test]
fn alike_worn_regions_send_pages_round_or_down() {
    for rounds in [true, false] {
        let mut device = Device::new(&[("laps_at_equal_wear", &rounds.to_string()), ("free_blocks", "2")]);
        device.serve(Op::Write, 0, 8);
        for hot in [16, 24, 32, 40].into_iter().cycle().take(40) {
            device.serve(Op::Write, hot, 8);
        }
        assert!(device.scheme.wear_order().is_eq());
        assert_eq!(device.scheme.counts.copied_back_pages > 0, rounds);
        assert_eq!(device.scheme.counts.worn_units > 0, !rounds);
    }
}

#[test]
fn the_more_worn_log_sends_valid_pages_down_at_once() {
    // 80 erases of 8 blocks that last ten times as long are one cycle of the slow region.
    let mut device = Device::new(&[("threshold_step", "0"), ("free_blocks", "2")]);
    device.serve(Op::Write, 0, 8);
    let mut hot = 16;
    while device.scheme.tiers.fast.erases() < 80 {
        assert!(device.scheme.wear_order().is_eq());
        hot = if hot == 40 { 16 } else { hot + 8 };
        device.serve(Op::Write, hot, 8);
    }
    assert!(device.scheme.wear_order().is_gt());
    let worn_before = device.scheme.counts.worn_units;
    device.serve(Op::Write, 8, 8);
    while device.cycles(2).is_some() {
        assert_eq!(device.cycles(2), Some(0), "it does not go round");
        hot = if hot == 40 { 16 } else { hot + 8 };
        device.serve(Op::Write, hot, 8);
    }
    assert!(device.scheme.counts.worn_units >= worn_before + 2);
}

#[test]
fn half_a_slow_page_takes_its_other_half_along_if_that_is_due() {
    let mut device = Device::new(&[("max_cycle_time", "0"), ("free_blocks", "2")]);
    device.serve(Op::Write, 0, 8);
    device.serve(Op::Write, 4, 4);
    let hot = [16, 24, 32, 40];
    let mut writes = hot.iter().cycle();
    let mut down = 0;
    while device.cycles(0).is_some() || device.cycles(1).is_some() {
        device.serve(Op::Write, *writes.next().unwrap(), 8);
        down += device.programs(1, Cause::MigrateDown);
    }
    assert_eq!(down, 1, "both halves were in the tail block");
    for sector in [0, 4] {
        device.serve(Op::Write, sector, 4);
        (0..3).for_each(|_| device.serve(Op::Write, *writes.next().unwrap(), 8));
    }
    let mut down = 0;
    while device.cycles(0).is_some() || device.cycles(1).is_some() {
        device.serve(Op::Write, *writes.next().unwrap(), 8);
        down += device.programs(1, Cause::MigrateDown);
    }
    assert_eq!(down, 2, "the second half was younger");
}

#[test]
fn devices_that_are_too_small_are_refused_with_the_reason() {
    let error = |settings: &[(&str, &str)]| Device::build(settings).err().unwrap_or_default();
    assert_eq!(error(&[("free_blocks", "6")]), "");
    assert!(error(&[("free_blocks", "7")]).contains("takes at least 9 and there are 8"));
    assert!(error(&[("gc_free_blocks", "7")]).contains("9 spare blocks per die and there are 8"));
    assert!(error(&[("threshold", "2MiB")]).contains("above threshold_max 1MiB"));
}
