use super::*;

const PAGES: u32 = 8;

/// 20 blocks of 8 pages for 100 logical pages.
fn midas() -> Midas {
    let geometry = Geometry::new(4096, PAGES, 20, 1).unwrap();
    let parameters = Parameters { victim: VictimPolicy::Greedy, ..Parameters::default() };
    Midas::new(&geometry, 100, &parameters, 20, 1)
}

/// Checks the policy for a log of `logical_pages` pages and `blocks` blocks.
fn check(midas: &Midas, logical_pages: u64, blocks: u32) -> Result<(), String> {
    let table = PageTable::new(Geometry::new(4096, PAGES, 20, 1)?, logical_pages);
    midas.check(&table, &Blocks::new((blocks, 1), 1, PAGES, 0))
}

/// Fills a block of a group; `valid` of its pages are valid.
fn fill(midas: &mut Midas, counts: &mut ValidCounts, block: usize, group: usize, valid: u32) {
    midas.clock_pages += 10;
    midas.opened(block, 0, group);
    counts.add(block, PAGES as usize);
    counts.seal(block);
    midas.sealed(block);
    (valid..PAGES).for_each(|_| counts.invalidate(block));
}

/// Groups 0 to 3, of which all but the last are queues of one block.
fn grouped() -> (Midas, ValidCounts) {
    let mut midas = midas();
    let counts = ValidCounts::new(20, PAGES);
    let found = Configuration {
        blocks: [2, 3, 2, 13, 0, 0, 0],
        last: 3,
        valid: [0.0, 0.5, 0.7, 0.9, 0.0, 0.0, 0.0],
        cost: 2.0,
    };
    midas.apply(&found);
    assert_eq!((midas.sizes[..3].to_vec(), midas.last()), (vec![1, 1, 1], 3));
    (midas, counts)
}

#[test]
fn it_begins_with_merged_groups_and_chains_of_copies() {
    let mut midas = midas();
    let mut counts = ValidCounts::new(20, PAGES);
    for (block, group, valid) in [(0, 0, 7), (1, 1, 5), (2, 4, 6)] {
        fill(&mut midas, &mut counts, block, group, valid);
    }
    assert_eq!([0, 1, 2].map(|block| midas.copied(9, block)), [1, 2, 4], "no further than four streams");
    assert_eq!(midas.victim(&mut counts, 0..20), Some(1));
    assert_eq!(midas.written(3, None), 1, "no page is hot at first");
}

#[test]
fn queues_that_are_too_long_give_their_oldest_block() {
    let (mut midas, mut counts) = grouped();
    for (block, group, valid) in [(5, 2, 7), (4, 2, 6), (3, 3, 1), (2, 1, 0)] {
        fill(&mut midas, &mut counts, block, group, valid);
    }
    let victim = midas.victim(&mut counts, 0..20).unwrap();
    assert_eq!((victim, midas.copied(9, victim)), (5, 3), "group 2 has two blocks and may have one");
    counts.unseal(victim);
    midas.collected(victim);
    let victim = midas.victim(&mut counts, 0..20).unwrap();
    assert_eq!((victim, midas.copied(9, victim)), (3, 3), "no queue is too long: the last group's emptiest");
    counts.unseal(victim);
    midas.collected(victim);
    assert_eq!(midas.victim(&mut counts, 0..20), Some(2), "the last group has no block left");
    check(&midas, 100, 20).unwrap();
}

#[test]
fn sizes_move_the_oldest_blocks_to_the_last_group() {
    let (mut midas, mut counts) = grouped();
    for block in 0..6 {
        fill(&mut midas, &mut counts, block, 1, 5);
    }
    fill(&mut midas, &mut counts, 6, 3, 5);
    let found = Configuration {
        blocks: [2, 4, 12, 0, 0, 0, 0],
        last: 2,
        valid: [0.0, 0.5, 0.9, 0.0, 0.0, 0.0, 0.0],
        cost: 2.0,
    };
    midas.apply(&found);
    assert_eq!(midas.groups[..7], [2, 2, 2, 2, 1, 1, 2]);
    assert_eq!(midas.full_blocks, [0, 2, 5, 0, 0, 0, 0]);
}

#[test]
fn a_group_with_more_valid_pages_than_predicted_is_merged_with_the_older_ones() {
    let (mut midas, mut counts) = grouped();
    let collect = |midas: &mut Midas, counts: &mut ValidCounts, valid: [u32; 4]| {
        for (group, valid) in valid.into_iter().enumerate() {
            fill(midas, counts, group, group, valid);
            midas.note_victim(group, counts.valid_pages(group));
            midas.collected(group);
            counts.unseal(group);
            counts.subtract(group, valid as usize);
            midas.collections = 0;
        }
        midas.compare();
    };
    // 4/8, 6/8, 7/8 against 0.5, 0.7, 0.9.
    collect(&mut midas, &mut counts, [1, 4, 6, 7]);
    midas.clock_pages = midas.measured.check_at;
    collect(&mut midas, &mut counts, [1, 4, 6, 7]);
    assert_eq!((midas.last(), midas.is_merged), (3, false), "all are regular");
    midas.clock_pages = midas.measured.check_at;
    collect(&mut midas, &mut counts, [1, 4, 7, 7]);
    assert_eq!((midas.last(), midas.is_merged), (2, true));
    assert_eq!(midas.copied(9, 2), 3, "copies go on up the chain");
    assert!(midas.measured.has_failed, "group 2 is of the first half of 3");
}

#[test]
fn collecting_without_end_merges_groups() {
    let (mut midas, mut counts) = grouped();
    (0..19).for_each(|block| fill(&mut midas, &mut counts, block, block % 4, 7));
    for _ in 0..COLLECTIONS_MAX {
        assert!(!midas.is_merged);
        midas.victim(&mut counts, 0..20).unwrap();
    }
    assert!(midas.is_merged);
    midas.written(3, None);
    assert_eq!(midas.collections, 0);
}

#[test]
fn a_state_that_contradicts_itself_is_found() {
    let (mut midas, mut counts) = grouped();
    fill(&mut midas, &mut counts, 0, 1, 5);
    check(&midas, 100, 20).unwrap();
    assert!(check(&midas, 101, 20).is_err() && check(&midas, 100, 21).is_err());
    midas.full_blocks[1] = 2;
    assert!(check(&midas, 100, 20).unwrap_err().contains("full blocks"));
}
