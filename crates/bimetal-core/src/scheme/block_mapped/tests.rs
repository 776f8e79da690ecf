use super::*;
use crate::chip;
use crate::media::{Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
use crate::request::Op;
use crate::units::Geometry;

const SETTINGS: BlockMapSettings = BlockMapSettings {
    spare_low: 1,
    map_cache_chains: 2,
    scan_data_block: false,
    gc_victim: Victims::LeastRecent,
    wear_levelling: false,
    wear_threshold: 1,
};

struct Device {
    media: Checked<SimMedia>,
    blocks: BlockMapped,
}

impl Device {
    /// 4 logical blocks of 8 pages over `blocks` blocks.
    fn new(blocks: u32, settings: BlockMapSettings) -> Self {
        let mut chip = chip::find("chang-mlc").unwrap();
        chip.pages_per_block = 8;
        let geometry = Geometry::new(4096, 8, blocks, 1).unwrap();
        let region = SimRegion { chip: chip.clone(), geometry, channels: 1, faults: Faults::default() };
        let media = Checked::new(SimMedia::new(&[region], 1), &[(geometry, 4)]);
        let shape = RegionShape { chip, geometry };
        Self { media, blocks: BlockMapped::new(RegionId(0), &shape, 4 * 64, settings).unwrap() }
    }

    fn filled(blocks: u32, settings: BlockMapSettings) -> Self {
        let mut device = Self::new(blocks, settings);
        device.serve(Op::Write, 0, 0);
        device.blocks.fill(&mut device.media);
        device.media.reset();
        device
    }

    fn serve(&mut self, op: Op, sector: u64, sectors: u32) {
        let request = Request { arrival_ns: 0, sector, sectors, op, handle: 0 };
        self.media.begin(&request, 0);
        for span in self.blocks.spans(&request) {
            match op {
                Op::Read => self.blocks.read_span(&mut self.media, span),
                Op::Write => self.blocks.write_span(&mut self.media, &mut Bare, span),
                Op::Trim => self.blocks.trim_span(span),
            }
        }
        self.blocks.check().unwrap();
    }

    fn count(&self, op: FlashOp, cause: Cause) -> u64 {
        self.media.ledger().total(op, cause)
    }
}

#[test]
fn spans_cross_pages_and_logical_blocks() {
    let device = Device::new(6, SETTINGS);
    let request = Request { arrival_ns: 0, sector: 54, sectors: 20, op: Op::Read, handle: 0 };
    let spans: Vec<_> = device.blocks.spans(&request).map(|s| (s.block, s.logical, s.first, s.sectors, s.at)).collect();
    assert_eq!(spans, [(0, 6, 6, 2, 0), (0, 7, 0, 8, 2), (1, 8, 0, 8, 10), (1, 9, 0, 2, 18)]);
}

#[test]
fn rewriting_a_block_in_order_costs_an_erase_and_no_copy() {
    let mut device = Device::filled(6, SETTINGS);
    for _ in 0..5 {
        device.serve(Op::Write, 64, 64);
    }
    assert_eq!(device.count(FlashOp::Program, Cause::Host), 40);
    assert_eq!(device.count(FlashOp::Program, Cause::Fold) + device.count(FlashOp::Read, Cause::Fold), 0);
    assert_eq!((device.count(FlashOp::Erase, Cause::Fold), device.blocks.counts.switch_merges), (4, 4));
}

#[test]
fn a_fold_copies_a_block_and_erases_its_chain() {
    let mut device = Device::filled(6, SETTINGS);
    device.serve(Op::Write, 8, 8);
    device.serve(Op::Write, 72, 8);
    assert_eq!(device.count(FlashOp::Program, Cause::Fold), 8);
    assert_eq!(device.count(FlashOp::Erase, Cause::Fold), 2);
    assert_eq!((device.blocks.counts.folds, device.blocks.counts.forced_folds), (1, 1));
    assert!(!device.blocks.chains().has_log(0) && device.blocks.chains().has_log(1));
}

#[test]
fn part_of_a_page_reads_the_rest_once() {
    let mut device = Device::filled(6, SETTINGS);
    device.serve(Op::Write, 3, 2);
    assert_eq!(device.count(FlashOp::Read, Cause::Host), 1);
    let written = [0, 1].map(|index| device.media.written_token(index));
    device.serve(Op::Read, 0, 8);
    let read: Vec<u64> = (0..8).map(|index| device.media.read_token(index)).collect();
    assert_eq!(read, [0, 0, 0, written[0], written[1], 0, 0, 0]);
}

#[test]
fn a_map_cache_miss_scans_the_log_and_one_page_of_the_data_block() {
    for (scan_data_block, scanned) in [(false, 1 + 3), (true, 8 + 3)] {
        let mut device = Device::filled(8, BlockMapSettings { scan_data_block, ..SETTINGS });
        (0..3).for_each(|_| device.serve(Op::Write, 16, 8));
        device.serve(Op::Write, 64, 8);
        device.serve(Op::Write, 128, 8);
        assert_eq!(device.count(FlashOp::Read, Cause::Scan), 0, "the map of a new log is known");
        device.serve(Op::Read, 192, 8);
        device.serve(Op::Read, 64, 8);
        assert_eq!(device.count(FlashOp::Read, Cause::Scan), 0, "without a log there is no map, and it takes no room");
        device.serve(Op::Read, 0, 8);
        assert_eq!(device.count(FlashOp::Read, Cause::Scan), scanned);
    }
}

#[test]
fn trimmed_pages_cost_no_copy_and_read_as_zeros() {
    let mut device = Device::filled(6, SETTINGS);
    device.serve(Op::Write, 0, 8);
    device.serve(Op::Trim, 24, 44);
    device.serve(Op::Read, 24, 8);
    assert_eq!(device.media.read_token(7), Checked::<SimMedia>::ZEROS);
    device.serve(Op::Write, 128, 8);
    assert_eq!(device.count(FlashOp::Program, Cause::Fold), 3, "pages after the last written one are left erased");
    device.serve(Op::Read, 64, 8);
    assert_eq!(device.media.read_token(0), 0, "a page of which a part is trimmed stays");
}

#[test]
fn a_sparse_block_keeps_its_offsets() {
    let mut device = Device::new(6, SETTINGS);
    device.serve(Op::Write, 40, 8);
    let token = device.media.written_token(0);
    (1..4).for_each(|block| device.serve(Op::Write, block * 64 + 8, 8));
    device.serve(Op::Write, 128, 8);
    device.serve(Op::Write, 32, 8);
    device.serve(Op::Read, 40, 8);
    assert_eq!(device.media.read_token(0), token);
    device.serve(Op::Read, 0, 8);
    assert_eq!(device.media.read_token(0), Checked::<SimMedia>::ZEROS);
}

#[test]
fn cold_data_move_into_worn_blocks() {
    let settings = BlockMapSettings { wear_levelling: true, ..SETTINGS };
    let mut device = Device::filled(6, settings);
    (0..400).for_each(|step| device.serve(Op::Write, step % 2 * 8, 8));
    let erases = &device.media.ledger().erases[0];
    let spread = erases.iter().max().unwrap() - erases.iter().min().unwrap();
    assert!(device.blocks.counts.wear_swaps > 3 && spread <= 6, "{erases:?}");
    assert!(device.count(FlashOp::Erase, Cause::WearLevel) > 0);
}
