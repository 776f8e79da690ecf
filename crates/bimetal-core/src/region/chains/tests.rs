use super::*;

/// 3 logical blocks of 4 pages over 10 blocks.
fn chains(slc_pages: Option<u32>, choice: Victims) -> Chains {
    Chains::new(Geometry::new(4096, 4, 10, 1).unwrap(), slc_pages, 3, choice)
}

fn write(chains: &mut Chains, logical_block: u32, offset: u32) -> Ppa {
    let page = chains.next_free(logical_block).unwrap_or_else(|| {
        let mode = chains.mode(logical_block);
        let block = chains.next_spare(mode).unwrap();
        chains.take_spare(block, logical_block, mode);
        chains.append(block, false);
        chains.next_free(logical_block).unwrap()
    });
    chains.place(logical_block, chains.first_page(logical_block) + offset, page);
    chains.check().unwrap();
    page
}

fn write_all(chains: &mut Chains, logical_block: u32, offsets: impl IntoIterator<Item = u32>) {
    for offset in offsets {
        write(chains, logical_block, offset);
    }
}

#[test]
fn a_first_log_in_order_becomes_the_data_block() {
    let mut chains = chains(None, Victims::LeastRecent);
    write_all(&mut chains, 1, 0..3);
    assert!(chains.has_log(1) && !chains.switchable(1));
    let last = write(&mut chains, 1, 3);
    assert!(!chains.has_log(1) && chains.victim().is_none());
    assert_eq!((chains.lookup(7), chains.lookup(8)), (Some(last), None));
}

#[test]
fn a_full_log_in_order_is_the_first_victim() {
    let mut chains = chains(None, Victims::LeastRecent);
    write(&mut chains, 0, 2);
    write_all(&mut chains, 1, 0..4);
    assert_eq!(chains.victim(), Some(0));
    write_all(&mut chains, 1, 0..4);
    assert_eq!((chains.victim(), chains.switchable(1)), (Some(1), true));
    let (first, newest) = chains.switch(1);
    assert_eq!(chains.next(first), Some(newest));
    chains.release(first);
    chains.check().unwrap();
    assert_eq!((chains.victim(), chains.chain_blocks(1), chains.spare_blocks()), (Some(0), 1, 8));
}

#[test]
fn victims_are_chosen_by_recency_age_or_length() {
    let victim = |choice| {
        let mut chains = chains(None, choice);
        write(&mut chains, 0, 1);
        write_all(&mut chains, 1, std::iter::repeat_n(3, 5));
        write(&mut chains, 2, 1);
        write(&mut chains, 0, 1);
        chains.victim()
    };
    assert_eq!(victim(Victims::LeastRecent), Some(1));
    assert_eq!(victim(Victims::Oldest), Some(0));
    assert_eq!(victim(Victims::Longest), Some(1));
}

#[test]
fn a_block_is_replaced_in_the_middle_of_its_chain() {
    let mut chains = chains(None, Victims::LeastRecent);
    write_all(&mut chains, 0, std::iter::repeat_n(3, 9));
    let blocks: Vec<BlockId> = chains.chain(0).map(|(block, ..)| block).collect();
    let member = chains.member(blocks[1]).unwrap();
    assert_eq!(member, Member { owner: 0, position: 1, is_data: false });
    let new = chains.next_spare(CellMode::Native).unwrap();
    chains.take_spare(new, 0, CellMode::Native);
    chains.replace(blocks[1], member, new);
    chains.release(blocks[1]);
    chains.check().unwrap();
    assert_eq!(chains.chain(0).map(|(block, ..)| block).collect::<Vec<_>>(), [blocks[0], new, blocks[2]]);
    assert_eq!(chains.member(blocks[1]), None);
}

#[test]
fn a_data_block_in_slc_mode_takes_two() {
    let mut chains = chains(Some(2), Victims::LeastRecent);
    chains.set_mode(0, CellMode::Slc);
    assert_eq!((chains.data_width(CellMode::Native), chains.data_width(CellMode::Slc)), (1, 2));
    write_all(&mut chains, 0, 0..3);
    assert_eq!(chains.chain_blocks(0), 2);
    assert!(!chains.switchable(0), "two blocks would have to be switched");
}
