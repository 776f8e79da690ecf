use super::*;
use crate::chip;
use crate::media::{Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation, Stream};
use crate::part::random::below;
use crate::scheme::RegionShape;
use crate::units::Geometry;

/// 256 units of 4 KiB behind a cache of 8 chunks of 16 units; slow pages of `slow_kib` KiB, blocks of 64 units.
struct Device {
    media: Checked<SimMedia>,
    scheme: Csal,
}

impl Device {
    fn new(slow_kib: u32, slow_blocks: u32) -> Result<Self, String> {
        Self::on_dies(slow_kib, slow_blocks, 1)
    }

    fn on_dies(slow_kib: u32, slow_blocks: u32, dies: u32) -> Result<Self, String> {
        let region = |name: &str, page_bytes, pages_per_block, blocks| {
            let mut chip = chip::find(name).unwrap();
            chip.page_bytes = page_bytes;
            let geometry = Geometry::new(page_bytes, pages_per_block, blocks, dies).unwrap().striped(dies);
            SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
        };
        let regions =
            [region("chang-slc", 4096, 16, 8), region("chang-mlc", slow_kib << 10, 256 / slow_kib, slow_blocks)];
        let shapes = regions.iter().map(|region| RegionShape { chip: region.chip.clone(), geometry: region.geometry });
        let shape = Shape { logical_sectors: 256 * 8, regions: shapes.collect(), disks: Vec::new(), seed: 1 };
        let scheme = Csal::new(&shape, Parameters::default())?;
        let geometries: Vec<_> = regions.iter().map(|region| (region.geometry, 0)).collect();
        Ok(Self { media: Checked::new(SimMedia::new(&regions, 1), &geometries), scheme })
    }

    fn serve(&mut self, op: Op, sector: u64, sectors: u32) {
        let request = Request { arrival_ns: 0, sector, sectors, op, handle: 0 };
        self.media.begin(&request, 0);
        self.scheme.serve(&mut self.media, &request);
        self.media.end();
    }

    /// Programs and reads of a region because of `cause`.
    fn count(&self, region: usize, op: FlashOp, cause: Cause) -> u64 {
        self.media.ledger().rows[region].counts.get(op, cause)
    }
}

#[test]
fn compaction_begins_when_four_fifths_of_the_chunks_are_full() {
    let mut device = Device::new(16, 10).unwrap();
    // 80 % of 8 chunks are 7, in addition to the one that is being written.
    for unit in 0..16 * 7 {
        device.serve(Op::Write, unit * 8, 8);
        assert_eq!(device.count(1, FlashOp::Program, Cause::MigrateDown), 0, "unit {unit}");
    }
    (0..4).for_each(|unit| device.serve(Op::Write, (200 + unit) * 8, 8));
    assert_eq!(device.count(1, FlashOp::Program, Cause::MigrateDown), 1, "a page of the slow region has four units");
    assert_eq!(device.count(0, FlashOp::Read, Cause::MigrateDown), 4);
    assert_eq!([0, 3, 4].map(|unit| device.scheme.tiers.slow.lookup(unit).is_some()), [true, true, false]);
    Scheme::<Checked<SimMedia>>::check(&device.scheme).unwrap();
}

#[test]
fn what_was_overwritten_in_the_cache_never_goes_down() {
    let mut device = Device::new(64, 10).unwrap();
    for round in 0..100 {
        (0..16).for_each(|unit| device.serve(Op::Write, unit * 8, 8));
        assert_eq!(device.scheme.counts.compacted, 0, "round {round}");
    }
    assert!(device.scheme.tiers.fast.erases() > 90);
    Scheme::<Checked<SimMedia>>::check(&device.scheme).unwrap();
}

/// Slow pages of 64 KiB: units of any addresses share one, and the writes of all causes add up.
#[test]
fn small_writes_share_pages_of_the_slow_region() {
    for slow_kib in [4, 16, 64] {
        let mut device = Device::new(slow_kib, 10).unwrap();
        device.scheme.fill(&mut device.media);
        device.media.reset_counts();
        let before = device.scheme.tiers.slow.separation().padded_units();
        let mut state = 3;
        (0..6000).for_each(|_| device.serve(Op::Write, below(&mut state, 256) * 8, 8));
        let per_page = u64::from(device.scheme.units_per_slow_page());
        assert_eq!(per_page, u64::from(slow_kib / 4));
        let [down, gc] = [Cause::MigrateDown, Cause::Gc].map(|cause| device.count(1, FlashOp::Program, cause));
        let of_stream = |stream, cause| device.media.ledger().rows[1].counts.of_stream(Stream::new(stream), cause);
        assert_eq!([of_stream(0, Cause::MigrateDown), of_stream(1, Cause::Gc)], [down, gc], "a stream each");
        let padded = device.scheme.tiers.slow.separation().padded_units() - before;
        assert_eq!(device.count(0, FlashOp::Program, Cause::Host), 6000);
        assert_eq!(device.count(1, FlashOp::Program, Cause::Host), 0);
        let moved = device.scheme.counts.compacted + device.scheme.tiers.slow.copied_pages();
        assert_eq!((down + gc) * per_page, moved + padded);
        assert!(device.scheme.counts.compacted < 6000 && gc > 0, "{slow_kib} KiB");
        Scheme::<Checked<SimMedia>>::check(&device.scheme).unwrap();
    }
}

/// Open blocks on several dies, some of them full at the same time.
#[test]
fn streams_write_to_several_dies() {
    for (slow_blocks, dies) in [(14, 2), (17, 3), (24, 4)] {
        let mut device = Device::on_dies(16, slow_blocks, dies).unwrap();
        device.scheme.fill(&mut device.media);
        let mut state = 5;
        for round in 0..8000 {
            device.serve(Op::Write, below(&mut state, 256) * 8, 8);
            if round % 100 == 0 {
                Scheme::<Checked<SimMedia>>::check(&device.scheme).unwrap();
            }
        }
        assert!(device.scheme.tiers.slow.erases() > 50 && device.scheme.tiers.slow.copied_pages() > 0, "{dies} dies");
    }
}

#[test]
fn part_of_a_unit_is_completed_from_where_it_is() {
    let mut device = Device::new(64, 10).unwrap();
    device.serve(Op::Write, 0, 16);
    device.serve(Op::Write, 3, 10);
    assert_eq!(
        device.count(0, FlashOp::Read, Cause::Host),
        2,
        "each page of the cache holds a unit, and both were cut"
    );
    device.serve(Op::Trim, 4, 12);
    let tiers = &device.scheme.tiers;
    let is_there = |unit: u32| tiers.is_in_log(unit) || tiers.slow.lookup(unit).is_some();
    assert_eq!([0, 1].map(is_there), [true, false]);
    device.serve(Op::Read, 0, 16);
    Scheme::<Checked<SimMedia>>::check(&device.scheme).unwrap();
}

#[test]
fn idle_time_makes_room_down_to_the_threshold() {
    let mut device = Device::new(16, 10).unwrap();
    (0..16 * 7 + 2).for_each(|unit| device.serve(Op::Write, unit * 8, 8));
    device.scheme.idle(&mut device.media, 1000);
    assert_eq!((device.scheme.ring.written(), device.scheme.is_full()), (7, false));
    Scheme::<Checked<SimMedia>>::check(&device.scheme).unwrap();
}

#[test]
fn too_small_a_device_is_refused_with_what_it_takes() {
    let error = Device::new(64, 6).err().unwrap();
    assert!(error.contains("spare"), "{error}");
}
