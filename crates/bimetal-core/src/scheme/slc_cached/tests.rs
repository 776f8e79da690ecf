use super::*;
use crate::chip;
use crate::media::{Faults, FlashOp, SimMedia, SimRegion, Simulation};
use crate::scheme::{ParameterSet, RegionShape, pslc_dynamic, pslc_static};
use crate::units::ByteSize;

/// Pages of 16 KiB hold four units.
const PAGE_SECTORS: u32 = 32;
const LOGICAL_BLOCKS: u32 = 8;
/// A block is folded when it is needed, not earlier.
const AT_ONCE: (&str, &str) = ("fold_in_steps", "false");

fn shape() -> Shape {
    shape_of(1)
}

/// This device with `dies` dies.
fn shape_of(dies: u32) -> Shape {
    let mut chip = chip::find("tlc-3d-2021").unwrap();
    (chip.pages_per_block, chip.slc_mode.as_mut().unwrap().pages_per_block) = (12, 4);
    let geometry = Geometry::new(chip.page_bytes, 12, (LOGICAL_BLOCKS + 7) * dies, dies).unwrap();
    let logical_sectors = u64::from(dies * LOGICAL_BLOCKS * 12 * PAGE_SECTORS);
    Shape { logical_sectors, regions: vec![RegionShape { chip, geometry }], disks: Vec::new(), seed: 1 }
}

struct Device<const DYNAMIC: bool> {
    media: SimMedia,
    scheme: SlcCached<DYNAMIC>,
}

fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|&(key, value)| (key.into(), value.into())).collect()
}

fn media(shape: &Shape) -> SimMedia {
    let RegionShape { chip, geometry } = shape.regions[0].clone();
    SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1)
}

/// 8 logical blocks of 12 pages, 4 blocks for the cache, 3 spare.
fn fixed(settings: &[(&str, &str)]) -> Device<false> {
    let parameters = pslc_static::Parameters::parse(&owned(settings)).unwrap();
    Device { media: media(&shape()), scheme: pslc_static::PslcStatic::new(&shape(), parameters).unwrap() }
}

fn dynamic(settings: &[(&str, &str)]) -> Device<true> {
    dynamic_on(&shape(), settings)
}

fn dynamic_on(shape: &Shape, settings: &[(&str, &str)]) -> Device<true> {
    let parameters = pslc_dynamic::Parameters::parse(&owned(settings)).unwrap();
    Device { media: media(shape), scheme: pslc_dynamic::PslcDynamic::new(shape, parameters).unwrap() }
}

impl<const DYNAMIC: bool> Device<DYNAMIC> {
    /// A request for `units` units from `unit` on.
    fn serve(&mut self, op: Op, unit: u32, units: u32) {
        let request = Request { arrival_ns: 0, sector: u64::from(unit) * 8, sectors: units * 8, op, handle: 0 };
        self.media.begin(&request, 0);
        self.scheme.serve(&mut self.media, &request);
        Scheme::<SimMedia>::check(&self.scheme).unwrap();
    }

    /// Writes whole pages.
    fn write(&mut self, page: u32, pages: u32) {
        self.serve(Op::Write, page * 4, pages * 4);
    }

    fn idle(&mut self, budget_pages: u32) {
        self.media.begin_background();
        self.scheme.idle(&mut self.media, budget_pages);
        Scheme::<SimMedia>::check(&self.scheme).unwrap();
    }

    fn count(&self, mode: CellMode, op: FlashOp, cause: Cause) -> u64 {
        self.media.ledger().rows[mode as usize].counts.get(op, cause)
    }

    /// Pages that folding has read from the cache, read from the main area, and programmed there.
    fn folded(&self) -> (u64, u64, u64) {
        let cause = Cause::MigrateDown;
        (
            self.count(CellMode::Slc, FlashOp::Read, cause),
            self.count(CellMode::Native, FlashOp::Read, cause),
            self.count(CellMode::Native, FlashOp::Program, cause),
        )
    }

    fn metric(&self, name: &str) -> u64 {
        let mut metrics = Metrics::default();
        Scheme::<SimMedia>::metrics(&self.scheme, &mut metrics);
        metrics.get(name).unwrap() as u64
    }
}

#[test]
fn the_cache_has_what_lies_beyond_the_usual_spare_area() {
    assert_eq!(fixed(&[]).scheme.least, 4, "collection takes three blocks");
    assert_eq!(fixed(&[("usual_spare_percent", "60")]).scheme.least, 2);
    assert_eq!(fixed(&[("budget", "400KiB")]).scheme.least, 2, "blocks of 192 KiB");
    assert_eq!(fixed(&[("gc_free_blocks", "3")]).scheme.least, 2);
    let refused = |settings: &[(&str, &str)]| {
        let parameters = pslc_static::Parameters::parse(&owned(settings)).unwrap();
        pslc_static::PslcStatic::new(&shape(), parameters).unwrap_err()
    };
    let error = refused(&[("usual_spare_percent", "90")]);
    assert!(error.contains("no block is left for a cache"), "{error}");
    let error = refused(&[("budget", "1MiB")]);
    assert!(error.contains("enlarge the spare area"), "{error}");
}

#[test]
fn folding_takes_along_what_the_cache_has_of_a_page_and_reads_the_rest() {
    let mut device = fixed(&[AT_ONCE]);
    device.write(0, 2);
    // Unit 9 is in a page of its own, then units 8, 10 and 11 of the same logical page in another.
    device.serve(Op::Write, 9, 1);
    device.serve(Op::Write, 10, 2);
    device.serve(Op::Write, 8, 1);
    device.serve(Op::Write, 20, 1);
    device.write(10, 10);
    assert_eq!((device.folded(), device.metric("cached_bytes")), ((0, 0, 0), (8 + 4 + 1 + 40) * 4096));
    // 16 pages are full; the next one waits until the first four are folded: logical pages 0, 1 and 2. The three pages that
    // hold parts of the last one are read; nothing of it was in the main area.
    device.write(30, 1);
    assert_eq!(device.folded(), (2 + 3, 0, 3));
    // Of the next four, one has nothing valid left, one has unit 20.
    device.write(40, 4);
    assert_eq!((device.folded(), device.metric("folded_units")), ((5 + 3, 0, 3 + 3), 12 + 1 + 8));
    // The page of unit 20 is now in the main area: the next write to it is completed from there.
    device.serve(Op::Write, 20, 1);
    device.write(50, 11);
    device.write(70, 5);
    assert_eq!(device.folded().1, 1);
    let mut metrics = Metrics::default();
    Scheme::<SimMedia>::metrics(&device.scheme, &mut metrics);
    let partial = metrics.get("partial_fold_ratio").unwrap() * device.metric("folded_pages") as f64;
    assert!((partial - 1.0).abs() < 1e-9, "{partial}");
}

#[test]
fn a_full_cache_is_passed_by_and_given_room_by_what_is_overwritten() {
    let mut device = fixed(&[("when_full", "direct")]);
    device.write(0, 16);
    device.write(20, 3);
    assert_eq!((device.metric("direct_pages"), device.folded()), (3, (0, 0, 0)));
    // Part of a page in the cache: only the written units are dropped.
    device.serve(Op::Write, 1, 2);
    assert_eq!((device.metric("direct_pages"), device.metric("cached_bytes")), (4, (64 - 2) * 4096));
    // All of the oldest block is superseded: it can be erased without folding.
    device.write(0, 4);
    assert_eq!(device.metric("direct_pages"), 8);
    device.write(0, 1);
    assert_eq!((device.metric("direct_pages"), device.folded()), (8, (0, 0, 0)));
    assert_eq!(device.count(CellMode::Slc, FlashOp::Erase, Cause::Gc), 1);
}

#[test]
fn idle_time_empties_the_cache_as_far_as_it_lasts_and_as_is_wanted() {
    let mut device = fixed(&[("idle_fold_percent", "50"), AT_ONCE]);
    device.write(0, 14);
    device.idle(3);
    assert_eq!((device.folded().2, device.metric("cache_free_blocks")), (3, 0));
    device.idle(3);
    assert_eq!((device.folded().2, device.metric("cache_free_blocks")), (6, 1));
    device.idle(100);
    assert_eq!((device.folded().2, device.metric("cache_free_blocks")), (8, 2), "half of the blocks may hold data");
    let mut device = fixed(&[("idle_fold", "false"), AT_ONCE]);
    device.write(0, 14);
    device.idle(100);
    assert_eq!(device.folded(), (0, 0, 0));
    let mut device = fixed(&[AT_ONCE]);
    device.write(0, 14);
    device.idle(100);
    assert_eq!((device.folded().2, device.metric("cache_free_blocks")), (12, 3), "a block that is open is left alone");
}

#[test]
fn rewritten_and_trimmed_data_are_never_folded() {
    let mut device = fixed(&[]);
    device.write(0, 8);
    device.write(0, 4);
    device.serve(Op::Trim, 16, 16);
    device.write(30, 4);
    device.write(50, 4);
    assert_eq!((device.folded(), device.metric("folded_pages")), ((0, 0, 0), 0));
    let mut metrics = Metrics::default();
    Scheme::<SimMedia>::metrics(&device.scheme, &mut metrics);
    assert_eq!(metrics.get("cache_rewrite_ratio"), Some(4.0 / 20.0));
}

#[test]
fn a_dynamic_cache_grows_into_blocks_without_data_and_gives_them_back() {
    let mut device = dynamic(&[AT_ONCE]);
    let blocks = |device: &Device<true>| (device.metric("cache_blocks"), device.metric("cache_allowed_blocks"));
    assert_eq!(blocks(&device), (4, 12));
    device.write(0, 28);
    assert_eq!(blocks(&device), (7, 11), "folding a block may take eight pages of the main area, less than a block");
    device.write(28, 16);
    assert_eq!((blocks(&device), device.folded()), ((11, 11), (0, 0, 0)), "all that there is runs in SLC mode");
    // Three blocks in SLC mode become one: two of them are used again.
    device.write(44, 12);
    assert_eq!((device.folded().2, device.metric("cache_blocks")), (16, 10));
    device.write(56, 40);
    assert_eq!(blocks(&device), (4, 4), "every page is mapped");
    device.serve(Op::Trim, 0, 48 * 4);
    let (least, allowed) = blocks(&device);
    assert!(least == 4 && (8..=10).contains(&allowed), "{allowed}");
    let before = device.metric("mode_changes");
    device.write(50, 24);
    let (now, _) = blocks(&device);
    assert!(
        now >= 7 && device.metric("mode_changes") == before + now - 4,
        "pages that were mapped take nothing: {now}"
    );
}

#[test]
fn a_dynamic_cache_takes_no_more_than_its_share() {
    let mut device = dynamic(&[("cache_percent_max", "40"), ("when_full", "direct")]);
    device.write(0, 30);
    assert_eq!((device.metric("cache_blocks"), device.metric("direct_pages")), (6, 30 - 24));
    assert_eq!(device.folded(), (0, 0, 0));
    assert_eq!(dynamic(&[("cache_percent_max", "0")]).metric("cache_allowed_blocks"), 4);
}

#[test]
fn blocks_of_a_dynamic_cache_are_exchanged_even_if_the_drive_is_full() {
    // Blocks that have been erased in SLC mode once: those that have ended a cycle without a page in them are few.
    let worn_blocks = |period: &str| {
        let mut device = dynamic(&[("exchange_period", period)]);
        device.media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Write, handle: 0 }, 0);
        device.scheme.fill(&mut device.media);
        // The same pages again and again: the main area alone would wear only a few blocks.
        (0..400).for_each(|step| device.write(step * 3 % 12, 3));
        (device.metric("mode_changes"), device.media.ledger().erases[0].iter().filter(|&&erases| erases > 5).count())
    };
    let (never, often) = (worn_blocks("0"), worn_blocks("8"));
    assert_eq!(never.0, 4, "the blocks that it has from the beginning");
    assert!(often.0 > 20 && often.1 > never.1, "{often:?} {never:?}");
}

#[test]
fn a_filled_drive_has_the_least_cache() {
    let mut device = dynamic(&[]);
    device.media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Write, handle: 0 }, 0);
    device.scheme.fill(&mut device.media);
    Scheme::<SimMedia>::check(&device.scheme).unwrap();
    assert_eq!(device.metric("cache_allowed_blocks"), 4);
    (0..300).for_each(|step| device.write(step * 7 % 90, 3));
    assert_eq!(device.metric("cache_blocks"), 4);
}

#[test]
fn folding_in_steps_keeps_up_with_writing() {
    let most_folded = |device: &mut Device<false>| {
        let folded = |device: &mut Device<false>, page: u32| {
            let before = device.folded().2;
            device.write(page * 7 % 96, 1);
            device.folded().2 - before
        };
        (0..400).map(|page| folded(device, page)).max().unwrap()
    };
    assert_eq!(most_folded(&mut fixed(&[])), 1);
    assert_eq!(most_folded(&mut fixed(&[AT_ONCE])), 4);
}

#[test]
fn a_dynamic_cache_shrinks_in_steps() {
    for when_full in ["fold", "direct", "direct-then-fold"] {
        let mut device = dynamic_on(&shape_of(4), &[("when_full", when_full), ("budget", "1536KiB")]);
        let folded: Vec<u64> = (0..2 * 384)
            .map(|page| {
                let before = device.folded().2;
                device.write(page % 384, 1);
                device.folded().2 - before
            })
            .collect();
        // Three pages of the cache make room for two native ones.
        let most = *folded[..300].iter().max().unwrap();
        assert!((1..=2).contains(&most), "{when_full}: {folded:?}");
        if when_full == "fold" {
            assert_eq!(folded[384..].iter().max(), Some(&1), "the drive is full, and the cache has its least");
        }
    }
}

#[test]
fn past_the_cache_until_no_block_is_left_and_folding_from_then_on() {
    let mut device = dynamic(&[("when_full", "direct-then-fold"), ("cache_percent_max", "40"), AT_ONCE]);
    // The cache has six blocks of four pages; 6 of 8 + 4 blocks are left for native data.
    device.write(0, 24);
    assert_eq!((device.metric("cache_blocks"), device.metric("direct_pages")), (6, 0));
    let mut pages = 24;
    while device.folded().2 == 0 {
        device.write(pages, 1);
        pages += 1;
    }
    // One more than fits beside the eight pages that folding a block may take.
    assert_eq!((pages, device.metric("direct_pages")), (24 + 6 * 12 - 8 + 1, u64::from(pages) - 24));
    assert_eq!(device.metric("cache_blocks"), 5);
}

#[test]
fn a_cache_that_is_larger_than_the_dies_are_many_uses_them_all() {
    let mut device = dynamic_on(&shape_of(4), &[("budget", "400KiB")]);
    assert_eq!((device.scheme.least, device.scheme.ring.width()), (2, 2));
    device.write(0, 8 * 4 * 4);
    assert_eq!(device.scheme.ring.width(), 4);
    let mut pages = [0; 4];
    device.scheme.ring.iter_written().for_each(|(block, written)| pages[block.index() % 4] += written);
    let (least, most) = (pages.iter().min().unwrap(), pages.iter().max().unwrap());
    assert!(most - least <= 4, "{pages:?}");
}

#[test]
fn the_cache_shrinks_along_a_published_curve() {
    // Intel 660p 1TB, a block for a GB of its 1,024 GB of QLC: 140 GB in SLC mode while the drive is empty, 12 from 80 % on.
    let geometry = Geometry::new(16 << 10, 64, 1024 + 96, 8).unwrap();
    let logical_pages = 1024 * 64;
    let size = |shrink_percent| Size {
        budget: ByteSize(48 << 20),
        usual_spare_percent: 0.0,
        most_percent: 50.0,
        shrink_percent,
    };
    let curve = size((0.0, 80.0)).curve(&geometry, logical_pages, 48, 16).unwrap();
    let cache_gb = |full_percent: u32| (48.0 + curve.pages(logical_pages / 100 * full_percent) as f64 / 64.0) / 4.0;
    for (full_percent, expected) in [(0, 140.0), (20, 108.0), (40, 76.0), (80, 12.0), (99, 12.0)] {
        let found = cache_gb(full_percent);
        assert!((found - expected).abs() < 0.5, "{full_percent} % full: {found} GB instead of {expected}");
    }
    let flat = size((30.0, 0.0)).curve(&geometry, logical_pages, 48, 16).unwrap();
    assert_eq!((flat.pages(logical_pages / 5), flat.pages(logical_pages)), (512 * 64, 0));
    let error = size((81.0, 80.0)).curve(&geometry, logical_pages, 48, 16).unwrap_err();
    assert!(error.contains("shrink_from_percent is 81"), "{error}");
}

#[test]
fn idle_folding_begins_high_ends_low_and_needs_time() {
    let settings = [("when_full", "direct"), ("idle_fold_start_percent", "60"), ("idle_fold_percent", "25")];
    let mut device = fixed(&settings);
    device.write(0, 8);
    device.idle(100);
    assert_eq!(device.folded().2, 0, "half of the blocks have data");
    device.write(8, 4);
    device.idle(4);
    device.idle(100);
    assert_eq!((device.folded().2, device.metric("cache_free_blocks")), (8, 3), "three quarters, down to one");
    let mut device = fixed(&[("idle_fold_min_pages", "10")]);
    device.write(0, 12);
    device.idle(9);
    assert_eq!(device.folded().2, 0);
    device.idle(10);
    assert_eq!(device.folded().2, 10);
}
