mod modes;

use std::ops::Range;

use super::*;
use crate::chip;
use crate::media::{CellMode, Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
use crate::part::random::below;
use crate::region::valid_counts::ValidCounts;
use crate::request::{Op, Request};

const REGION: RegionId = RegionId(0);
const COLLECTION: Collection = Collection { gc_free_blocks: 1, idle_gc: false };

/// Media that are served one endless request.
fn media(geometry: Geometry) -> Checked<SimMedia> {
    let chip = chip::find("chang-mlc").unwrap();
    let sim = SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1);
    let mut media = Checked::new(sim, &[(geometry, 0)]);
    media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 8, op: Op::Write, handle: 0 }, 0);
    media
}

/// 16 logical pages on two dies of 5 blocks of 4 pages.
fn small() -> (Checked<SimMedia>, Log) {
    let geometry = Geometry::new(4096, 4, 10, 2).unwrap();
    (media(geometry), Log::new(REGION, geometry, 16, COLLECTION).unwrap())
}

fn write<P: Separation<N>, const N: usize>(media: &mut Checked<SimMedia>, log: &mut Log<P, N>, logical: u32) {
    log.write(media, logical, &[], Cause::Host);
}

fn place<P: Separation<N>, const N: usize>(log: &Log<P, N>, logical: u32) -> (u32, u32) {
    let page = log.lookup(logical).unwrap();
    (log.geometry().block_of(page).0, log.geometry().page_of(page))
}

#[test]
fn pages_go_to_the_dies_in_turn_and_fill_blocks_in_order() {
    let (mut media, mut log) = small();
    (0..6).for_each(|logical| write(&mut media, &mut log, logical));
    let places: Vec<_> = (0..6).map(|logical| place(&log, logical)).collect();
    assert_eq!(places, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
    log.invalidate(4);
    assert_eq!((log.lookup(4), log.occupied()), (None, 5));
    log.check().unwrap();
}

#[test]
fn a_die_takes_a_stripe_before_the_next_one() {
    let geometry = Geometry::new(4096, 8, 12, 2).unwrap().striped(4);
    let (mut media, mut log) = (media(geometry), Log::new(REGION, geometry, 40, COLLECTION).unwrap());
    (0..10).for_each(|logical| write(&mut media, &mut log, logical));
    let dies: Vec<u32> = (0..10).map(|logical| place(&log, logical).0 % 2).collect();
    assert_eq!(dies, [0, 0, 0, 0, 1, 1, 1, 1, 0, 0]);
}

/// Two dies, each with room for 8 valid pages: the two blocks besides the open ones and an erased one.
#[test]
fn the_victim_has_the_fewest_valid_pages_and_its_pages_are_found_again() {
    let (mut media, mut log) = small();
    (0..16).for_each(|logical| write(&mut media, &mut log, logical));
    assert!(!log.collect_victim(&mut media, 0), "full blocks of valid pages cannot be collected");
    // Die 0 has pages 0, 2, 4, 6 in block 0 and 8, 10, 12, 14 in block 2.
    [2, 8, 12].into_iter().for_each(|logical| _ = log.invalidate(logical));
    assert!(log.collect_victim(&mut media, 0));
    let moved: Vec<_> = [10, 14].map(|logical| place(&log, logical)).into();
    assert_eq!((moved, place(&log, 4), log.copied_pages()), (vec![(4, 0), (4, 1)], (0, 2), 2));
    assert_eq!((log.erases(), log.blocks.free(0), log.occupied()), (1, 3, 13));
    log.check().unwrap();
    assert!(!log.collect_victim(&mut media, 1));
}

#[test]
fn a_region_takes_no_more_valid_pages_than_it_can_collect() {
    let geometry = Geometry::new(4096, 4, 10, 2).unwrap();
    assert!(Log::new(REGION, geometry, 17, COLLECTION).unwrap_err().contains("spare"));
    let sparse = |valid_pages| Capacity { valid_pages, ..Capacity::whole(&geometry, 1000) };
    assert!(Log::with(REGION, geometry, sparse(17), COLLECTION, |_| HostAndCopied).is_err());
    let mut log = Log::with(REGION, geometry, sparse(16), COLLECTION, |_| HostAndCopied).unwrap();
    let mut media = media(geometry);
    (0..1000).step_by(67).for_each(|logical| write(&mut media, &mut log, logical));
    assert_eq!((log.logical_pages(), log.occupied(), log.room()), (1000, 15, 16));
    assert!(log.lookup(938).is_some() && log.lookup(999).is_none());
    log.invalidate(67);
    assert_eq!(log.occupied(), 14);
    log.check().unwrap();
}

#[test]
fn a_lent_block_takes_no_page_and_leaves_room_for_fewer() {
    let geometry = Geometry::new(4096, 4, 10, 2).unwrap();
    let mut media = media(geometry);
    let capacity = Capacity { valid_pages: 8, ..Capacity::whole(&geometry, 16) };
    let mut log = Log::with(REGION, geometry, capacity, COLLECTION, |_| HostAndCopied).unwrap();
    let lent: Vec<_> = (0..3).map(|_| log.lend(&mut media, 1)).collect();
    assert_eq!((lent, log.room()), (vec![Some(BlockId(1)), Some(BlockId(3)), None], 8));
    (0..8).for_each(|logical| write(&mut media, &mut log, logical));
    assert!((0..8).all(|logical| place(&log, logical).0.is_multiple_of(2)), "die 1 takes none");
    log.check().unwrap();
    log.give_back(BlockId(3));
    assert_eq!((log.room(), log.lent().collect::<Vec<_>>()), (12, vec![BlockId(1)]));
    write(&mut media, &mut log, 8);
    assert_eq!(place(&log, 8).0 % 2, 1);
    log.check().unwrap();
}

/// Allows 20 % of garbage.
#[derive(Debug, Serialize, Deserialize)]
struct LittleGarbage;

impl Separation<2> for LittleGarbage {
    const POOLED: bool = false;

    fn written(&mut self, _: u32, _: Option<usize>) -> usize {
        0
    }

    fn gc_garbage_percent(&self) -> f64 {
        20.0
    }
}

#[test]
fn a_block_is_collected_after_a_request_that_leaves_too_much_garbage() {
    let geometry = Geometry::new(4096, 8, 64, 2).unwrap();
    let mut media = media(geometry);
    let capacity = Capacity::whole(&geometry, 200);
    let mut log = Log::with(REGION, geometry, capacity, COLLECTION, |_| LittleGarbage).unwrap();
    (0..200).for_each(|logical| write(&mut media, &mut log, logical));
    let mut state = 3;
    for request in 0..2000 {
        let first = below(&mut state, 197) as u32;
        (first..first + 4).for_each(|logical| write(&mut media, &mut log, logical));
        let counts = log.blocks.counts();
        let full: Vec<_> = (0..log.blocks.entries()).filter(|&entry| counts.is_sealed(entry)).collect();
        let garbage: u32 = full.iter().map(|&entry| 8 - counts.valid_pages(entry)).sum();
        let open: u32 = log.blocks.open_blocks().map(|(_, open)| open.page).sum();
        let used = full.len() as u32 * 8 + open;
        assert_eq!(log.blocks.garbage(), (u64::from(garbage), u64::from(used)), "after request {request}");
        let before = log.erases();
        log.end(&mut media);
        assert_eq!(log.erases() - before, u64::from(garbage * 5 > used), "after request {request}");
    }
    log.check().unwrap();
    assert!(log.erases() > 1000 && log.copied_pages() > 0, "{} erases", log.erases());
}

/// A die without garbage must not hide that of the others, even if it has the fewest erased blocks.
#[test]
fn garbage_is_collected_on_any_die() {
    let geometry = Geometry::new(4096, 8, 64, 2).unwrap();
    let mut media = media(geometry);
    let capacity = Capacity::whole(&geometry, 200);
    let mut log = Log::with(REGION, geometry, capacity, COLLECTION, |_| LittleGarbage).unwrap();
    // Pages that stay on die 0, and one that is written again and again on die 1.
    for cold in 0..100 {
        write(&mut media, &mut log, cold);
        write(&mut media, &mut log, 199);
        log.end(&mut media);
    }
    log.check().unwrap();
    let (garbage, used) = log.blocks.garbage();
    assert!(log.erases() > 5 && garbage * 5 <= used, "{} erases, {garbage} of {used} pages", log.erases());
}

/// The most copies between two writes, and all copies.
fn copies(stripe_pages: u32) -> (u64, u64) {
    let geometry = Geometry::new(4096, 128, 200, 2).unwrap().striped(stripe_pages);
    let (mut media, mut log) = (media(geometry), Log::new(REGION, geometry, 170 * 128, COLLECTION).unwrap());
    let (mut state, mut most) = (5, 0);
    for number in 0..80_000 {
        let before = log.copied_pages();
        write(&mut media, &mut log, below(&mut state, 170 * 128) as u32);
        most = most.max(log.copied_pages() - before);
        if number % 1000 == 0 {
            log.check().unwrap();
        }
    }
    (most, log.copied_pages())
}

#[test]
fn in_steps_no_write_waits_for_a_whole_victim_and_no_more_is_copied() {
    let ((whole_most, whole), (step_most, steps)) = (copies(1), copies(4));
    println!("at once: {whole_most} at most, {whole} in all; in steps: {step_most}, {steps}");
    assert!(whole_most > 100 && step_most <= 64, "a step copies what a word of the map of valid pages has");
    // It chooses a victim earlier by one block of a hundred on a die.
    assert!((steps as f64 / whole as f64 - 1.0).abs() < 0.05);
}

#[test]
fn a_block_ends_with_its_summary_and_collecting_skips_it() {
    let geometry = Geometry::new(4096, 8, 12, 1).unwrap();
    let mut media = media(geometry);
    assert!(Log::largest(REGION, geometry, COLLECTION, 9, true).is_err());
    let mut log = Log::largest(REGION, geometry, COLLECTION, 1, true).unwrap();
    assert_eq!((log.logical_pages(), log.room()), (56, 56));
    let mut state = 5;
    for _ in 0..500 {
        write(&mut media, &mut log, below(&mut state, 56) as u32);
        log.check().unwrap();
    }
    let ledger = media.ledger();
    let data = ledger.total(FlashOp::Program, Cause::Host) + ledger.total(FlashOp::Program, Cause::Gc);
    let summaries = ledger.total(FlashOp::Program, Cause::Meta);
    assert!(log.erases() > 20 && log.copied_pages() > 0);
    // Two blocks may be open.
    assert!((data / 7 - 2..=data / 7).contains(&summaries), "{summaries} summaries of {data} pages");
    assert_eq!(ledger.total(FlashOp::Read, Cause::Gc), log.copied_pages(), "no summary is copied");
}

/// Two streams for what is written and three for what is copied, by the numbers of pages.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Mixed {
    opened: u64,
    sealed: u64,
    collected: u64,
}

impl Separation<5> for Mixed {
    const POOLED: bool = true;

    fn written(&mut self, logical: u32, _: Option<usize>) -> usize {
        logical as usize % 2
    }

    fn copied(&self, logical: u32, _: usize) -> usize {
        2 + logical as usize % 3
    }

    fn opened(&mut self, _: usize, _: u32, _: usize) {
        self.opened += 1;
    }

    fn sealed(&mut self, _: usize) {
        self.sealed += 1;
    }

    fn collected(&mut self, _: usize) {
        self.collected += 1;
    }
}

fn pooled(geometry: Geometry, logical_pages: u64) -> Result<Log<Mixed, 5>, String> {
    Log::pooled(REGION, geometry, Capacity::whole(&geometry, logical_pages), COLLECTION, |_| Mixed::default())
}

#[test]
fn pages_of_a_victim_go_to_several_streams_and_lanes() {
    for stripe_pages in [1, 4] {
        let geometry = Geometry::new(4096, 100, 120, 4).unwrap().striped(stripe_pages);
        let mut log = pooled(geometry, 60 * 100).unwrap();
        let (mut media, mut state) = (media(geometry), 5);
        for number in 0..30_000 {
            write(&mut media, &mut log, below(&mut state, 6000) as u32);
            if number % 100 == 0 {
                log.check().unwrap();
            }
        }
        let (lanes, &Mixed { opened, sealed, collected }) = (log.blocks.lanes(), log.separation());
        assert_eq!(collected - log.erases(), u64::from(log.blocks.victims()));
        assert!(
            lanes == 3 && opened > sealed && opened <= sealed + 15 && log.copied_pages() > 1000,
            "{opened} {sealed}"
        );
    }
}

/// With the least spare area there is, pages of five streams are still collected.
#[test]
fn the_least_spare_area_is_enough_for_all_streams() {
    for (stripe_pages, dies) in [(1, 1), (4, 1), (1, 3), (4, 3)] {
        let geometry = Geometry::new(4096, 16, 18, dies).unwrap().striped(stripe_pages);
        // Five open blocks, and an erased one for each die.
        let data_blocks = u64::from(18 - 5 - dies);
        let refused = pooled(geometry, 16 * (data_blocks + 1)).unwrap_err();
        assert!(refused.contains(&format!("takes {} spare blocks", 5 + dies)), "{refused}");
        let pages = 16 * data_blocks;
        let (mut log, mut media, mut state) = (pooled(geometry, pages).unwrap(), media(geometry), 5);
        (0..pages).for_each(|logical| write(&mut media, &mut log, logical as u32));
        for _ in 0..20_000 {
            write(&mut media, &mut log, below(&mut state, pages) as u32);
        }
        log.check().unwrap();
    }
}

/// Data that are overwritten in their order are spread over all dies, whatever the lanes.
#[test]
fn all_dies_are_written_to() {
    let geometry = Geometry::new(4096, 16, 160, 8).unwrap().striped(4);
    let (mut log, mut media) = (pooled(geometry, 16 * 100).unwrap(), media(geometry));
    for logical in (0..1600).step_by(2).cycle().take(20_000) {
        write(&mut media, &mut log, logical);
    }
    let mut pages = [0; 8];
    (0..1600).step_by(2).for_each(|logical| pages[place(&log, logical).0 as usize % 8] += 1);
    assert!(pages.iter().all(|pages| (80..=120).contains(pages)), "800 pages on 8 dies: {pages:?}");
}

#[test]
fn lines_are_written_on_all_dies_and_erased_together() {
    let geometry = Geometry::new(4096, 4, 32, 4).unwrap();
    let capacity = Capacity { layout: Layout::Across, ..Capacity::whole(&geometry, 64) };
    let (mut media, mut log) =
        (media(geometry), Log::with(REGION, geometry, capacity, COLLECTION, |_| HostAndCopied).unwrap());
    (0..64).for_each(|logical| write(&mut media, &mut log, logical));
    let on_media = |log: &Log, logical| {
        let page = log.lookup(logical).unwrap();
        (geometry.block_of(page).0, geometry.page_of(page))
    };
    assert_eq!(
        [0, 1, 3, 4, 15, 16].map(|logical| on_media(&log, logical)),
        [(0, 0), (1, 0), (3, 0), (0, 1), (3, 3), (4, 0)]
    );
    let mut state = 5;
    for _ in 0..2000 {
        let before = log.copied_pages();
        write(&mut media, &mut log, below(&mut state, 64) as u32);
        assert!(log.copied_pages() - before <= 15, "no write waits for all pages of a line");
        log.check().unwrap();
    }
    let erases = &media.ledger().erases[0];
    assert!(
        log.erases() > 100 && erases.chunks(4).all(|line| line.iter().all(|&erases| erases == line[0])),
        "{erases:?}"
    );
}

#[test]
fn copies_are_made_within_the_budget_and_a_victim_is_taken_up_again() {
    for dies in [1, 2] {
        let geometry = Geometry::new(4096, 64, 20 * dies, dies).unwrap();
        let pages = 16 * 64 * dies;
        let (mut media, mut log) = (media(geometry), Log::new(REGION, geometry, u64::from(pages), COLLECTION).unwrap());
        let mut state = 5;
        (0..3 * pages).for_each(|_| write(&mut media, &mut log, below(&mut state, u64::from(pages)) as u32));
        let (copied, erases) = (log.copied_pages(), log.erases());
        for _ in 0..100 {
            assert_eq!(log.collect(&mut media, 7), 7);
            log.check().unwrap();
        }
        assert_eq!(log.copied_pages() - copied, 700);
        assert!(log.erases() - erases >= 10, "{} blocks", log.erases() - erases);
        while log.collect(&mut media, 1000) == 1000 {}
        assert_eq!(log.collect(&mut media, 1000), 0, "no block has an invalid page");
        log.check().unwrap();
    }
}

/// Dies work at the same time: what one die could do in the time of all would keep it busy when the host returns.
#[test]
fn idle_time_is_shared_by_the_dies() {
    let geometry = Geometry::new(4096, 16, 80, 4).unwrap();
    let settings = Collection { gc_free_blocks: 2, idle_gc: true };
    let (mut media, mut log) = (media(geometry), Log::new(REGION, geometry, 900, settings).unwrap());
    let mut state = 3;
    (0..900).for_each(|logical| write(&mut media, &mut log, logical));
    (0..4000).for_each(|_| write(&mut media, &mut log, below(&mut state, 900) as u32));
    let collects = |log: &Log| -> Vec<bool> { (0..4).map(|die| log.blocks.victim(die).is_some()).collect() };
    assert_eq!(collects(&log), [false; 4]);
    assert_eq!(log.idle(&mut media, 4), 4);
    assert_eq!(collects(&log), [true; 4]);
    // Dies with nothing left to collect leave their share to the others.
    assert!(log.idle(&mut media, 10_000) > 0);
    assert!((0..4).all(|die| log.erased(die) == log.idle_blocks));
    log.check().unwrap();
}
