//! The page map's write amplification under uniform random writes against the published closed forms.

use bimetal_core::chip;
use bimetal_core::media::{Cause, Faults, FlashOp, SimMedia, SimRegion, Simulation};
use bimetal_core::model::write_amplification::{fifo, greedy, greedy_closed_form, usable_blocks};
use bimetal_core::part::random;
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{RegionShape, Scheme, Shape, build};
use bimetal_core::units::Geometry;

const PAGE_BYTES: u32 = 4096;

struct Device {
    media: SimMedia,
    scheme: Box<dyn Scheme<SimMedia>>,
    logical_pages: u64,
    random: u64,
}

impl Device {
    /// A filled `pagemap` device.
    fn new(logical_pages: u64, blocks: u32, pages_per_block: u32, dies: u32) -> Self {
        let chip = chip::find("chang-slc").unwrap();
        let geometry = Geometry::new(PAGE_BYTES, pages_per_block, blocks, dies).unwrap();
        let shape = Shape {
            logical_sectors: logical_pages * 8,
            regions: vec![RegionShape { chip: chip.clone(), geometry }],
            disks: Vec::new(),
            seed: 1,
        };
        let mut media = SimMedia::new(&[SimRegion { chip, geometry, channels: dies, faults: Faults::default() }], 1);
        let mut scheme = build::<SimMedia>("pagemap", &shape, &[]).unwrap();
        scheme.fill(&mut media);
        Self { media, scheme, logical_pages, random: 42 }
    }

    /// Writes uniform random pages, never the same sequence twice: a repeated sequence correlates with the places of
    /// pages.
    fn write(&mut self, writes: u64) {
        for _ in 0..writes {
            let page = random::below(&mut self.random, self.logical_pages);
            let request = Request { arrival_ns: 0, sector: page * 8, sectors: 8, op: Op::Write, handle: 0 };
            self.media.begin(&request, 0);
            self.scheme.serve(&mut self.media, &request);
        }
    }

    /// Write amplification of `measured` device writes in steady state, after `warm` ones.
    fn write_amplification(&mut self, warm: u64, measured: u64) -> f64 {
        self.write(warm * self.logical_pages);
        self.media.reset_counts();
        self.write(measured * self.logical_pages);
        let ledger = self.media.ledger();
        let host = ledger.total(FlashOp::Program, Cause::Host);
        assert_eq!(host, measured * self.logical_pages);
        (host + ledger.total(FlashOp::Program, Cause::Gc)) as f64 / host as f64
    }
}

/// Logical pages divided by usable physical pages: one block of each die stays erased and two are open.
fn utilisation(logical_pages: u64, blocks: u32, pages_per_block: u32, dies: u32) -> f64 {
    logical_pages as f64 / (usable_blocks(blocks, dies, 2 * dies) * f64::from(pages_per_block))
}

#[test]
fn greedy_agrees_with_the_closed_form_at_five_spare_areas() {
    const PAGES_PER_BLOCK: u32 = 64;
    const LOGICAL_BLOCKS: u32 = 2048;
    let logical_pages = u64::from(LOGICAL_BLOCKS * PAGES_PER_BLOCK);
    for spare_per_mille in [70, 102, 150, 250, 400] {
        let blocks = LOGICAL_BLOCKS + LOGICAL_BLOCKS * spare_per_mille / 1000;
        let measured = Device::new(logical_pages, blocks, PAGES_PER_BLOCK, 1).write_amplification(6, 6);
        let utilisation = utilisation(logical_pages, blocks, PAGES_PER_BLOCK, 1);
        let expected = greedy(utilisation, PAGES_PER_BLOCK);
        println!(
            "{spare_per_mille} per mille spare: measured {measured:.4}, greedy {expected:.4} ({:+.2} %), FIFO {:.4}",
            (measured / expected - 1.0) * 100.0,
            fifo(utilisation)
        );
        // The sum of Desnoyers' model, and his closed form for it.
        for expected in [expected, greedy_closed_form(utilisation, PAGES_PER_BLOCK)] {
            let off = (measured / expected - 1.0).abs();
            assert!(off < 0.02, "{spare_per_mille} per mille: {measured} against {expected}");
        }
        assert!(measured < fifo(utilisation), "greedy is no worse than FIFO");
    }
}

/// With few pages per block, victims come from two states, and Desnoyers' logarithm is off by 4 %.
#[test]
fn with_few_pages_the_sum_is_closer_than_the_logarithm() {
    let (logical_pages, blocks, pages_per_block) = (4096 * 16, 4096 + 205, 16);
    let measured = Device::new(logical_pages, blocks, pages_per_block, 1).write_amplification(8, 8);
    let utilisation = utilisation(logical_pages, blocks, pages_per_block, 1);
    let off = |expected: f64| (measured / expected - 1.0).abs();
    let (sum, logarithm) = (greedy(utilisation, pages_per_block), greedy_closed_form(utilisation, pages_per_block));
    println!("16 pages: measured {measured:.4}, sum {sum:.4}, logarithm {logarithm:.4}");
    assert!(off(sum) < 0.01 && off(sum) < off(logarithm), "{measured} against {sum} and {logarithm}");
}

/// 4 GiB on 8 x 564 blocks of 256 pages, as one die and as eight that are collected separately. Desnoyers' own untimed
/// simulator (sssl-ftlsim, ACM TOS 2014) gives 5.57 for one.
#[test]
fn greedy_agrees_with_an_independent_simulator() {
    let (logical_pages, blocks, pages_per_block) = (1 << 20, 8 * 564, 256);
    for dies in [1, 8] {
        let measured = Device::new(logical_pages, blocks, pages_per_block, dies).write_amplification(4, 2);
        let expected = greedy(utilisation(logical_pages, blocks, pages_per_block, dies), pages_per_block);
        println!(
            "{dies} dies: measured {measured:.4}, greedy {expected:.4} ({:+.2} %)",
            (measured / expected - 1.0) * 100.0
        );
        assert!((measured / 5.57 - 1.0).abs() < 0.02, "{dies} dies: {measured} against 5.57");
        assert!((measured / expected - 1.0).abs() < 0.02, "{dies} dies: {measured} against {expected}");
    }
}
