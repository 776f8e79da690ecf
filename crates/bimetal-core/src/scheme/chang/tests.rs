use super::*;
use crate::chip::{self, Chip};
use crate::media::{Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
use crate::part::probed_hash::Entry;
use crate::scheme::RegionShape;
use crate::units::Geometry;

struct Device {
    media: Checked<SimMedia>,
    chang: Chang,
}

impl Device {
    /// 6 fast blocks of 4 pages of 2 KiB; 8 logical blocks of 8 pages of 4 KiB over 11 blocks, all written.
    fn new(settings: &[(&str, &str)]) -> Self {
        let region = |name: &str, pages: u32, blocks: u32| {
            let chip = Chip { pages_per_block: pages, ..chip::find(name).unwrap() };
            let geometry = Geometry::new(chip.page_bytes, pages, blocks, 1).unwrap();
            SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
        };
        let regions = [region("chang-slc", 4, 6), region("chang-mlc", 8, 11)];
        let shapes = regions.iter().map(|r| RegionShape { chip: r.chip.clone(), geometry: r.geometry }).collect();
        let shape = Shape { logical_sectors: 8 * 64, regions: shapes, disks: Vec::new(), seed: 1 };
        let mut all = vec![("hash_entries".to_string(), "200".to_string()), ("throttle".into(), "false".into())];
        if !settings.iter().any(|&(key, _)| key == "hash_key") {
            all.push(("hash_key".into(), "sector".into()));
        }
        all.extend(settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())));
        let mut chang = Chang::new(&shape, Parameters::parse(&all).unwrap()).unwrap();
        let geometries = regions.each_ref().map(|region| (region.geometry, 0));
        let mut media = Checked::new(SimMedia::new(&regions, 1), &geometries);
        chang.fill(&mut media);
        media.reset();
        Self { media, chang }
    }

    fn serve(&mut self, op: Op, sector: u64, sectors: u32) {
        let request = Request { arrival_ns: 0, sector, sectors, op, handle: 0 };
        self.media.begin(&request, 0);
        self.chang.serve(&mut self.media, &request);
        Scheme::<Checked<SimMedia>>::check(&self.chang).unwrap();
    }

    /// Fills the rest of the log with small writes that replace each other.
    fn push_log(&mut self, pages: u32) {
        (0..pages / 2).for_each(|_| self.serve(Op::Write, 504, 8));
    }

    fn fast(&self, op: FlashOp, cause: Cause) -> u64 {
        self.media.ledger().rows[0].counts.get(op, cause)
    }

    fn slow(&self, op: FlashOp, cause: Cause) -> u64 {
        self.media.ledger().rows[1].counts.get(op, cause)
    }

    fn entry(&self, sector: u32) -> Option<Entry> {
        self.chang.tier.hash.find(sector).map(|bucket| self.chang.tier.hash.entry(bucket))
    }
}

#[test]
fn small_writes_go_to_the_log_and_large_ones_supersede_them() {
    let mut device = Device::new(&[]);
    device.serve(Op::Write, 4, 8);
    assert_eq!((device.fast(FlashOp::Program, Cause::Host), device.slow(FlashOp::Program, Cause::Host)), (2, 0));
    let small = [0, 7].map(|index| device.media.written_token(index));
    device.serve(Op::Write, 8, 64);
    let large = device.media.written_token(0);
    assert_eq!(device.slow(FlashOp::Program, Cause::Host), 8);
    device.serve(Op::Read, 0, 16);
    let read = [0, 4, 8, 15].map(|index| device.media.read_token(index));
    assert_eq!(read, [0, small[0], large, large + 7]);
    assert_ne!(read[2], small[1]);
    assert_eq!((device.entry(7).is_some(), device.entry(8)), (true, None));
}

#[test]
fn a_read_takes_each_fast_page_once_and_the_rest_from_the_slow_page() {
    let mut device = Device::new(&[]);
    device.serve(Op::Write, 2, 4);
    device.serve(Op::Read, 0, 8);
    assert_eq!((device.fast(FlashOp::Read, Cause::Host), device.slow(FlashOp::Read, Cause::Host)), (1, 1));
    device.serve(Op::Read, 2, 4);
    assert_eq!((device.fast(FlashOp::Read, Cause::Host), device.slow(FlashOp::Read, Cause::Host)), (2, 1));
}

#[test]
fn tail_data_go_down_only_where_there_is_a_log_block() {
    for (has_log, writeback) in [(false, true), (true, true), (false, false)] {
        let mut device = Device::new(&[("slc_writeback", if writeback { "true" } else { "false" })]);
        if has_log {
            device.serve(Op::Write, 16, 16);
        }
        device.serve(Op::Write, 0, 8);
        device.push_log(22);
        let copied = device.fast(FlashOp::Program, Cause::Gc);
        let moved = device.slow(FlashOp::Program, Cause::MigrateDown);
        assert_eq!((copied > 0, moved > 0), (!has_log && writeback, has_log || !writeback));
        assert_eq!(device.entry(0).is_some(), copied > 0);
        assert!(device.fast(FlashOp::Erase, Cause::Gc) > 0);
    }
}

#[test]
fn a_fold_takes_what_the_log_holds_and_leaves_a_trace() {
    for joins in [true, false] {
        let mut device = Device::new(&[("mlc_writeback", if joins { "true" } else { "false" })]);
        device.serve(Op::Write, 1, 6);
        device.serve(Op::Write, 16, 16);
        for block in 1..4 {
            device.serve(Op::Write, block * 64, 16);
        }
        assert!(!device.chang.slow.chains().has_log(0), "folded");
        assert_eq!(device.fast(FlashOp::Read, Cause::MigrateDown), if joins { 2 } else { 0 });
        assert_eq!(matches!(device.entry(3), Some(Entry::Virtual(0))), joins);
        device.serve(Op::Read, 0, 8);
        assert_eq!(device.fast(FlashOp::Read, Cause::Host), if joins { 0 } else { 2 });
    }
}

#[test]
fn a_write_without_buckets_for_all_its_sectors_leaves_none() {
    let mut device = Device::new(&[("hash_entries", "12"), ("hash_probes", "3")]);
    device.serve(Op::Write, 0, 8);
    device.serve(Op::Write, 64, 8);
    assert_eq!((device.chang.counts.hash_rejects, device.chang.tier.hash.used()), (1, 8));
    assert_eq!(device.slow(FlashOp::Program, Cause::Host), 1);
}

#[test]
fn the_throttle_accepts_what_is_written_twice() {
    let mut device = Device::new(&[("throttle", "true"), ("k_period", "1000")]);
    // An erase of the log, none of the slow region: worn more than its share.
    while device.chang.counts.erases == 0 {
        device.push_log(2);
    }
    device.serve(Op::Write, 0, 8);
    assert_eq!((device.chang.counts.throttle_rejects, device.slow(FlashOp::Program, Cause::Host)), (1, 1));
    assert!(matches!(device.entry(0), Some(Entry::Virtual(_))));
    device.serve(Op::Write, 4, 8);
    assert_eq!(device.chang.counts.throttle_rejects, 2, "only half of it is known");
    device.serve(Op::Write, 0, 8);
    assert!(matches!(device.entry(0), Some(Entry::Regular(_))));
}

#[test]
fn a_large_write_or_a_trim_removes_what_the_throttle_remembers() {
    for (op, sectors, is_kept) in [(Op::Write, 8, true), (Op::Write, 16, false), (Op::Trim, 8, false)] {
        let mut device = Device::new(&[("throttle", "true"), ("k_period", "1000")]);
        while device.chang.counts.erases == 0 {
            device.push_log(2);
        }
        device.serve(Op::Write, 0, 8);
        assert!((0..8).all(|sector| matches!(device.entry(sector), Some(Entry::Virtual(_)))));
        device.serve(op, 0, sectors);
        let rejects = device.chang.counts.throttle_rejects;
        device.serve(Op::Write, 0, 8);
        assert_eq!((device.chang.counts.throttle_rejects == rejects, rejects), (is_kept, 1), "{op:?} of {sectors}");
    }
}

#[test]
fn a_log_of_nothing_but_valid_data_is_forced_down() {
    let mut device = Device::new(&[("hash_probes", "64")]);
    // 12 pages of data without log blocks fill most of the log.
    (0..8).for_each(|block| device.serve(Op::Write, block * 64, 8));
    assert!(device.slow(FlashOp::Program, Cause::MigrateDown) == 0);
    (0..8).for_each(|block| device.serve(Op::Write, block * 64 + 8, 8));
    assert!(device.slow(FlashOp::Program, Cause::MigrateDown) > 0);
}

#[test]
fn a_trim_takes_whole_pages_from_both_regions() {
    let mut device = Device::new(&[]);
    device.serve(Op::Write, 0, 8);
    device.serve(Op::Trim, 0, 12);
    device.serve(Op::Read, 0, 16);
    assert_eq!([0, 7].map(|index| device.media.read_token(index)), [Checked::<SimMedia>::ZEROS; 2]);
    assert_eq!(device.media.read_token(8), 0);
    assert_eq!(device.chang.tier.hash.used(), 0);
}

#[test]
fn page_keys_take_along_what_a_write_leaves_of_a_page() {
    let mut device = Device::new(&[("hash_key", "page")]);
    device.serve(Op::Write, 0, 8);
    let small = device.media.written_token(0);
    assert_eq!((device.chang.tier.hash.used(), device.fast(FlashOp::Program, Cause::Host)), (2, 2));
    // A part of the first page, which is here, and of a third, which is in the slow region.
    let mut written = Vec::new();
    for (sector, fast_reads, slow_reads) in [(1, 1, 0), (9, 1, 1)] {
        device.serve(Op::Write, sector, 2);
        written.push(device.media.written_token(0));
        let reads = [device.fast(FlashOp::Read, Cause::Host), device.slow(FlashOp::Read, Cause::Host)];
        assert_eq!(reads, [fast_reads, slow_reads]);
    }
    let [first, over] = written[..] else { unreachable!() };
    assert_eq!((device.chang.tier.hash.used(), device.fast(FlashOp::Program, Cause::Host)), (3, 4));
    assert_eq!(device.slow(FlashOp::Program, Cause::Host), 0);
    device.serve(Op::Read, 0, 16);
    let read: Vec<u64> = (0..16).map(|index| device.media.read_token(index)).collect();
    assert_eq!(read[3..9], [small + 3, small + 4, small + 5, small + 6, small + 7, 0]);
    assert_eq!((read[0], read[1], read[9..].to_vec()), (small, first, vec![over, over + 1, 0, 0, 0, 0, 0]));
    // From the middle of one page to the middle of another.
    device.serve(Op::Write, 2, 4);
    let across = device.media.written_token(0);
    device.serve(Op::Read, 0, 8);
    let read: Vec<u64> = (0..8).map(|index| device.media.read_token(index)).collect();
    assert_eq!(read[..2], [small, first]);
    assert_eq!(read[2..], [across, across + 1, across + 2, across + 3, small + 6, small + 7]);
}
