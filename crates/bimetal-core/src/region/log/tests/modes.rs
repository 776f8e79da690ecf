//! Blocks take a cell mode at each erase.

use super::*;

/// Even pages go to blocks in SLC mode and odd ones to native ones; copies stay where they are, or are native. The victim is the one that
/// was full first, as long as it has an invalid page.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TwoModes<const POOLED: bool> {
    wants_slc: bool,
    sealed: u64,
    sealed_at: Vec<u64>,
    is_slc: Vec<bool>,
}

impl<const POOLED: bool> TwoModes<POOLED> {
    fn new(blocks: usize) -> Self {
        Self { wants_slc: true, sealed: 0, sealed_at: vec![0; blocks], is_slc: vec![false; blocks] }
    }
}

impl<const POOLED: bool> Separation<3> for TwoModes<POOLED> {
    const POOLED: bool = POOLED;
    const MODES: bool = true;

    fn mode(&self, stream: usize) -> CellMode {
        if stream == 0 && self.wants_slc { CellMode::Slc } else { CellMode::Native }
    }

    fn erased(&mut self, block: usize) -> CellMode {
        if self.is_slc[block] { CellMode::Slc } else { CellMode::Native }
    }

    fn written(&mut self, logical: u32, _: Option<usize>) -> usize {
        logical as usize % 2
    }

    fn copied(&self, logical: u32, _: usize) -> usize {
        if logical.is_multiple_of(2) { 0 } else { 2 }
    }

    fn opened(&mut self, block: usize, _: u32, stream: usize) {
        self.is_slc[block] = stream == 0;
    }

    fn sealed(&mut self, block: usize) {
        self.sealed += 1;
        self.sealed_at[block] = self.sealed;
    }

    fn victim(&mut self, counts: &mut ValidCounts, entries: Range<usize>) -> Option<usize> {
        let with_garbage = |&block: &usize| counts.is_sealed(block) && counts.valid_pages(block) < 8;
        let oldest = entries.clone().filter(with_garbage).min_by_key(|&block| self.sealed_at[block]);
        oldest.or_else(|| counts.fewest(entries))
    }
}

/// Media of a chip with an SLC mode, for the log of a policy with both modes.
fn in_two_modes<const POOLED: bool>(
    geometry: Geometry,
    logical_pages: u64,
    layout: Layout,
) -> Result<(Checked<SimMedia>, Log<TwoModes<POOLED>, 3>), String> {
    let slc_pages = geometry.pages_per_block / 2;
    let mut chip = chip::find("chang-mlc").unwrap();
    chip.pages_per_block = geometry.pages_per_block;
    let mode = chip.slc_mode.as_mut().unwrap();
    mode.pages_per_block = slc_pages;
    let sim = SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1);
    let mut media = Checked::new(sim, &[(geometry, slc_pages)]);
    media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 8, op: Op::Write, handle: 0 }, 0);
    let capacity = Capacity { layout, slc_pages, ..Capacity::whole(&geometry, logical_pages) };
    let log = if POOLED {
        Log::pooled(REGION, geometry, capacity, COLLECTION, |blocks| TwoModes::new(blocks.entries()))
    } else {
        Log::with(REGION, geometry, capacity, COLLECTION, TwoModes::new)
    };
    Ok((media, log?))
}

fn modes_are_chosen_at_each_erase<const POOLED: bool>(stripe_pages: u32, dies: u32, layout: Layout) {
    let geometry = Geometry::new(4096, 16, 40 * dies, dies).unwrap().striped(stripe_pages);
    let pages = 16 * 28 * u64::from(dies);
    let (mut media, mut log) = in_two_modes::<POOLED>(geometry, pages, layout).unwrap();
    let case = format!("pooled {POOLED}, stripes of {stripe_pages}, {dies} dies, {layout:?}");
    let (mut state, mut most) = (3, 0);
    let mut random = |log: &mut Log<TwoModes<POOLED>, 3>, media: &mut Checked<SimMedia>| {
        for number in 0..20_000 {
            write(media, log, below(&mut state, pages) as u32);
            most = most.max(log.blocks().slc_blocks());
            if number % 50 == 0 {
                log.check().unwrap_or_else(|error| panic!("{case}: {error}"));
            }
        }
    };
    random(&mut log, &mut media);
    // Half of the pages are to be in SLC mode, as far as there is room.
    let programs =
        |media: &Checked<SimMedia>, row: usize| media.ledger().rows[row].counts.get(FlashOp::Program, Cause::Host);
    let in_slc = media.ledger().rows.iter().position(|row| row.mode == CellMode::Slc).unwrap();
    let share = programs(&media, in_slc) as f64 / 20_000.0;
    assert!(share > 0.0 && share < 0.52, "{case}: {share}");
    // Nobody wants that mode any longer: its blocks come back one by one.
    log.separation_mut().wants_slc = false;
    random(&mut log, &mut media);
    let before = programs(&media, in_slc);
    random(&mut log, &mut media);
    assert_eq!((log.blocks().slc_blocks(), programs(&media, in_slc)), (0, before), "{case}");
    assert!(most > 1, "{case}");
}

#[test]
fn blocks_take_the_mode_of_the_stream_that_opens_them() {
    for (stripe_pages, dies) in [(1, 1), (1, 3), (4, 2)] {
        modes_are_chosen_at_each_erase::<false>(stripe_pages, dies, Layout::Die);
        modes_are_chosen_at_each_erase::<true>(stripe_pages, dies, Layout::Die);
    }
    modes_are_chosen_at_each_erase::<false>(4, 2, Layout::Across);
    modes_are_chosen_at_each_erase::<true>(1, 3, Layout::Across);
}

/// If there is no room for blocks in SLC mode besides the open and erased blocks, all blocks are native, and everything
/// still works.
#[test]
fn with_the_least_spare_area_all_blocks_are_native() {
    let geometry = Geometry::new(4096, 16, 20, 1).unwrap();
    for spare_blocks in [4, 5, 6] {
        let pages = 16 * (20 - spare_blocks);
        let (mut media, mut log) = in_two_modes::<true>(geometry, pages, Layout::Die).unwrap();
        (0..pages as u32).for_each(|logical| write(&mut media, &mut log, logical));
        let (mut state, mut most) = (5, 0);
        for _ in 0..20_000 {
            write(&mut media, &mut log, below(&mut state, pages) as u32);
            most = most.max(log.blocks().slc_blocks());
        }
        log.check().unwrap();
        assert_eq!(most, 2 * (spare_blocks as u32 - 4), "a block in SLC mode lacks half of its pages");
    }
}
