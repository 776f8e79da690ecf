use serde::{Deserialize, Serialize};

use super::*;
use crate::chip;
use crate::media::{Cause, Checked, Faults, FlashOp, SimMedia, Simulation};
use crate::part::random::below;
use crate::scheme::RegionShape;
use crate::scheme::conformance::{checked_media, sim_regions};
use crate::units::Geometry;

type Tested = Checked<SimMedia>;

/// Utilisations that are requested one after the other, at the end of each period.
#[derive(Debug, Serialize, Deserialize)]
struct Script {
    period: u32,
    utilisations: Vec<f64>,
}

impl Steering for Script {
    fn period(&self) -> Option<u32> {
        Some(self.period)
    }

    fn end_period(&mut self, _pair: &Pair, _classifier: &Classifier) -> Option<f64> {
        self.utilisations.pop()
    }
}

const SETTINGS: HybridSettings = HybridSettings {
    reading: Reading::WriteAllocate,
    utilisation: 0.5,
    excess_pages: 1,
    timeout: 0,
    gc_free_blocks: 1,
    classifier: ClassifierSettings { segments: 4, keep: 0.5, sample_rate: 1.0 },
};

/// Blocks of eight pages of these sizes, for 128 logical pages of 8 KiB.
fn shape((fast_bytes, fast_blocks): (u32, u32), (slow_bytes, slow_blocks): (u32, u32)) -> Shape {
    let region = |name: &str, page_bytes, blocks| {
        let mut chip = chip::find(name).unwrap();
        (chip.page_bytes, chip.pages_per_block, chip.endurance) = (page_bytes, 8, 10_000);
        RegionShape { chip, geometry: Geometry::new(page_bytes, 8, blocks, 1).unwrap() }
    };
    let regions = vec![region("chang-slc", fast_bytes, fast_blocks), region("chang-mlc", slow_bytes, slow_blocks)];
    Shape { logical_sectors: 128 * 16, regions, disks: Vec::new(), seed: 1 }
}

fn media(shape: &Shape) -> Tested {
    checked_media(shape, SimMedia::new(&sim_regions(shape, Faults::default()), 1))
}

/// 4-KiB pages in front of 8-KiB pages: the fast SSD has a raw capacity of 64 pages, and 52 slots.
fn small(settings: HybridSettings, steering: Script) -> (Tested, HybridSsd<Script>) {
    let shape = shape((4096, 16), (8192, 24));
    (media(&shape), HybridSsd::over(&shape, settings, |_| steering).unwrap())
}

fn still() -> Script {
    Script { period: 1, utilisations: Vec::new() }
}

fn filled(settings: HybridSettings, steering: Script) -> (Tested, HybridSsd<Script>) {
    let (mut media, mut scheme) = small(settings, steering);
    media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Write, handle: 0 }, 0);
    scheme.fill(&mut media);
    (media, scheme)
}

/// Serves a request; returns the number of some operations.
fn serve<const N: usize>(
    (media, scheme): &mut (Tested, HybridSsd<Script>),
    (op, sector, sectors): (Op, u64, u32),
    counted: [(usize, FlashOp, Cause); N],
) -> [u64; N] {
    media.reset_counts();
    let request = Request { arrival_ns: 0, sector, sectors, op, handle: 0 };
    media.begin(&request, 0);
    scheme.serve(media, &request);
    Scheme::<Tested>::check(scheme).unwrap();
    counted.map(|(row, op, cause)| media.ledger().rows[row].counts.get(op, cause))
}

/// Reads and programs of a request, by region and cause.
const ALL: [(usize, FlashOp, Cause); 9] = [
    (0, FlashOp::Read, Cause::Host),
    (0, FlashOp::Read, Cause::MigrateDown),
    (0, FlashOp::Program, Cause::Host),
    (0, FlashOp::Program, Cause::MigrateUp),
    (1, FlashOp::Read, Cause::Host),
    (1, FlashOp::Read, Cause::MigrateUp),
    (1, FlashOp::Program, Cause::Host),
    (1, FlashOp::Program, Cause::MigrateDown),
    (1, FlashOp::Read, Cause::MigrateDown),
];

#[test]
fn a_page_moves_as_a_whole() {
    let mut device = filled(SETTINGS, still());
    let (in_slow, in_fast) = (0, 127);
    assert_eq!((device.1.pair.slot(in_slow), device.1.pair.slot(in_fast).is_some()), (None, true));
    assert_eq!(device.1.pair.fast_pages(), 32, "half of 64");
    // Half of a page in the slow SSD: the other half is promoted, and another page is demoted.
    assert_eq!(serve(&mut device, (Op::Write, 0, 8), ALL), [0, 2, 1, 1, 0, 1, 0, 1, 0]);
    // From now on it is written in the fast SSD: a flash page, part of one, parts of two.
    assert_eq!(serve(&mut device, (Op::Write, 8, 8), ALL), [0, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(serve(&mut device, (Op::Write, 9, 2), ALL), [1, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(serve(&mut device, (Op::Write, 7, 2), ALL), [2, 0, 2, 0, 0, 0, 0, 0, 0]);
    // A whole page needs no data of the old one.
    assert_eq!(serve(&mut device, (Op::Write, 16, 16), ALL), [0, 2, 2, 0, 0, 0, 0, 1, 0]);
    // Reads move nothing.
    assert_eq!(serve(&mut device, (Op::Read, 4, 8), ALL), [2, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(serve(&mut device, (Op::Read, 32, 16), ALL), [0, 0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(device.1.pair.fast_pages(), 32);
    assert_eq!((device.1.pair.promoted_pages(), device.1.pair.destaged_pages()), (2, 2));
}

#[test]
fn a_fast_page_may_hold_several_slow_ones() {
    let shape = shape((8192, 16), (2048, 96));
    let mut device = (media(&shape), HybridSsd::over(&shape, SETTINGS, |_| still()).unwrap());
    device.0.begin(&Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Write, handle: 0 }, 0);
    device.1.fill(&mut device.0);
    // Three quarters of the page do not come from the host.
    assert_eq!(serve(&mut device, (Op::Write, 4, 4), ALL), [0, 1, 1, 0, 0, 3, 0, 4, 0]);
    assert_eq!(serve(&mut device, (Op::Write, 14, 1), ALL), [1, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(serve(&mut device, (Op::Read, 30, 4), ALL), [0, 0, 0, 0, 2, 0, 0, 0, 0]);
}

#[test]
fn what_was_never_written_takes_no_operation() {
    let mut device = small(SETTINGS, still());
    assert_eq!(serve(&mut device, (Op::Read, 0, 64), ALL), [0; 9]);
    assert_eq!(serve(&mut device, (Op::Write, 2, 2), ALL), [0, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(serve(&mut device, (Op::Read, 0, 64), ALL), [1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(device.1.pair.promoted_pages(), 0);
    // A page without its second half is demoted without it.
    for page in 1..=32 {
        serve(&mut device, (Op::Write, page * 16, 16), []);
    }
    assert_eq!((device.1.pair.slot(0), device.1.pair.destaged_pages()), (None, 1));
    assert_eq!(serve(&mut device, (Op::Read, 0, 64), ALL), [6, 0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn a_trim_gives_back_whole_flash_pages() {
    let mut device = filled(SETTINGS, still());
    let last = 127 * 16;
    serve(&mut device, (Op::Trim, last, 12), []);
    assert_eq!(serve(&mut device, (Op::Read, last, 16), ALL)[0], 1, "the second half is still there");
    serve(&mut device, (Op::Trim, last, 16), []);
    assert_eq!((device.1.pair.slot(127), device.1.pair.fast_pages()), (None, 31));
    serve(&mut device, (Op::Trim, 0, 15), []);
    assert_eq!(serve(&mut device, (Op::Read, 0, 16), ALL)[4], 1, "a slow page stays");
    serve(&mut device, (Op::Trim, 0, 16), []);
    assert_eq!(serve(&mut device, (Op::Read, 0, 16), ALL), [0; 9]);
}

#[test]
fn too_many_pages_go_down_with_the_next_misses() {
    let mut device = filled(SETTINGS, Script { period: 1, utilisations: vec![0.25] });
    serve(&mut device, (Op::Write, 0, 16), []);
    assert_eq!((device.1.target, device.1.pair.fast_pages()), (16, 32));
    // A hit moves nothing; a miss demotes one page to make room and one beyond the target.
    serve(&mut device, (Op::Write, 0, 16), []);
    assert_eq!(device.1.pair.fast_pages(), 32);
    for left in [31, 30, 29] {
        serve(&mut device, (Op::Write, u64::from(left) * 64, 16), []);
        assert_eq!(device.1.pair.fast_pages(), left);
    }
    for page in 0..40 {
        serve(&mut device, (Op::Write, page * 32, 16), []);
    }
    assert_eq!(device.1.pair.fast_pages(), 16);
}

#[test]
fn idle_time_sends_down_what_is_too_many_and_old() {
    let settings = HybridSettings { excess_pages: 0, timeout: 10, ..SETTINGS };
    let mut device = filled(settings, Script { period: 1, utilisations: vec![0.25] });
    serve(&mut device, (Op::Write, 0, 16), []);
    let idle = |device: &mut (Tested, HybridSsd<Script>), budget| {
        device.0.begin_background();
        device.1.idle(&mut device.0, budget);
        Scheme::<Tested>::check(&device.1).unwrap();
        device.1.pair.fast_pages()
    };
    assert_eq!(idle(&mut device, 100), 32, "nothing is older than ten writes");
    for _ in 0..10 {
        serve(&mut device, (Op::Write, 0, 16), []);
    }
    assert_eq!([idle(&mut device, 5), idle(&mut device, 100), idle(&mut device, 100)], [27, 16, 16]);
    assert!(device.1.pair.slot(0).is_some(), "the page written last stays");
}

#[test]
fn the_hot_set_is_what_was_written_last() {
    let settings = HybridSettings { reading: Reading::HotSet, ..SETTINGS };
    let mut device = filled(settings, still());
    // Written for the first time, a page stays where it is; part of a flash page is completed there.
    assert_eq!(serve(&mut device, (Op::Write, 0, 8), ALL), [0, 0, 0, 0, 1, 0, 1, 0, 0]);
    // Written again, it goes to the fast SSD.
    assert_eq!(serve(&mut device, (Op::Write, 0, 16), ALL), [0, 2, 2, 0, 0, 0, 0, 1, 0]);
    assert!(device.1.pair.slot(0).is_some());
    // A page of the fast SSD that is not hot is demoted when it is written, together with the rest of its data.
    let cold = 127 * 16;
    assert!(device.1.pair.slot(127).is_some());
    assert_eq!(serve(&mut device, (Op::Write, cold, 4), ALL), [0, 2, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(device.1.pair.slot(127), None);
    // 32 other pages later it is no longer hot.
    for page in 1..40 {
        serve(&mut device, (Op::Write, page * 16, 16), []);
    }
    assert_eq!(serve(&mut device, (Op::Write, 127 * 16, 16), ALL)[6], 1);
}

/// The slow SSD holds 85 of 128 pages, the fast one up to 52: data move in both directions at the limits of capacity.
#[test]
fn data_survive_where_there_is_hardly_room() {
    for (reading, fast, slow) in [
        (Reading::WriteAllocate, (4096, 17), (8192, 13)),
        (Reading::HotSet, (4096, 17), (8192, 13)),
        (Reading::WriteAllocate, (8192, 10), (2048, 43)),
        (Reading::HotSet, (8192, 10), (2048, 43)),
    ] {
        let shape = shape(fast, slow);
        let steering = Script { period: 7, utilisations: (0..500).map(|n| f64::from(n * 37 % 100) / 100.0).collect() };
        let settings = HybridSettings { reading, excess_pages: 3, ..SETTINGS };
        let mut device = (media(&shape), HybridSsd::over(&shape, settings, |_| steering).unwrap());
        device.0.begin(&Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Write, handle: 0 }, 0);
        device.1.fill(&mut device.0);
        assert!(device.1.pair.fast_limits().0 > 40, "{:?}", device.1.pair.fast_limits());
        let mut written = vec![0; 128 * 16];
        let mut state = 3;
        for _ in 0..4000 {
            let sectors = 1 + below(&mut state, 60);
            let sector = below(&mut state, 128 * 16 - sectors);
            let span = sector as usize..(sector + sectors) as usize;
            if below(&mut state, 3) > 0 {
                serve(&mut device, (Op::Write, sector, sectors as u32), []);
                for (index, token) in written[span].iter_mut().enumerate() {
                    *token = device.0.written_token(index as u32);
                }
            } else {
                serve(&mut device, (Op::Read, sector, sectors as u32), []);
                for (index, &token) in written[span].iter().enumerate() {
                    assert_eq!(device.0.read_token(index as u32), token, "sector {}", sector + index as u64);
                }
            }
            if below(&mut state, 20) == 0 {
                device.0.begin_background();
                device.1.idle(&mut device.0, 4);
            }
        }
    }
}

#[test]
fn too_little_room_for_the_data_is_refused() {
    let over = |fast, slow| {
        let steering = |_: &Pair| still();
        HybridSsd::over(&shape(fast, slow), SETTINGS, steering).map(|_| ()).unwrap_err()
    };
    let error = over((4096, 12), (8192, 13));
    assert!(error.contains("hold at most 115 of 128 logical pages of 8192 bytes"), "{error}");
    let error = over((4096, 3), (8192, 30));
    assert!(error.contains("enlarge the fast region"), "{error}");
    let settings = HybridSettings {
        reading: Reading::HotSet,
        classifier: ClassifierSettings { sample_rate: 0.1, ..SETTINGS.classifier },
        ..SETTINGS
    };
    let error = HybridSsd::over(&shape((4096, 16), (8192, 24)), settings, |_| still()).map(|_| ()).unwrap_err();
    assert!(error.contains("set curve to exact"), "{error}");
}
