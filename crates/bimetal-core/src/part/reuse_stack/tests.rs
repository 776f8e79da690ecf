use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::part::random;
use crate::save::{Save, restore};

/// The same with a plain list, the most recent page first.
struct Naive {
    pages: Vec<u32>,
    capacity: usize,
}

impl Naive {
    fn position(&self, page: u32) -> Option<u32> {
        self.pages.iter().position(|&other| other == page).map(|position| position as u32)
    }

    fn remove(&mut self, page: u32) -> bool {
        let position = self.position(page);
        position.map(|position| self.pages.remove(position as usize)).is_some()
    }

    fn touch(&mut self, page: u32) -> Option<u32> {
        let position = self.position(page);
        self.remove(page);
        self.pages.insert(0, page);
        self.pages.truncate(self.capacity);
        position
    }
}

/// Uses, removals and look-ups; three quarters of them on a tenth of the pages.
fn agrees_with_a_list(capacity: u32, pages: u64, steps: usize, seed: u64) {
    let mut state = seed;
    let (mut stack, mut naive) =
        (ReuseStacks::<1>::new(capacity), Naive { pages: Vec::new(), capacity: capacity as usize });
    for step in 0..steps {
        let range = if random::below(&mut state, 4) == 0 { pages } else { pages.div_ceil(10) };
        let page = random::below(&mut state, range) as u32;
        match random::below(&mut state, 20) {
            0 => assert_eq!(stack.remove(page), naive.remove(page), "step {step}"),
            1..4 => assert_eq!(stack.position(page), naive.position(page), "step {step}"),
            _ => assert_eq!(stack.touch(page), naive.touch(page), "step {step}"),
        }
        assert_eq!(stack.len() as usize, naive.pages.len(), "step {step}");
        assert_eq!(stack.is_empty(), naive.pages.is_empty());
        if step % 16 == 0 {
            let position = random::below(&mut state, u64::from(capacity) + 1) as u32;
            let expected: Vec<u32> = naive.pages.iter().take(position as usize + 1).rev().copied().collect();
            let within = (position as usize) < naive.pages.len();
            let found: Vec<u32> = stack.towards_recent_from(position).collect();
            assert_eq!(found, if within { expected } else { Vec::new() }, "step {step}, from {position}");
        }
    }
    assert!((0..pages as u32).all(|page| stack.position(page) == naive.position(page)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn positions_are_those_of_a_list(capacity in 0u32..60, pages in 1u64..100, seed in any::<u64>()) {
        agrees_with_a_list(capacity, pages, 2000, seed);
    }
}

/// Reads and writes as in OP-FCL: a page that is written leaves the read stack, and stays in the write stack.
#[test]
fn a_page_is_in_one_of_two_stacks() {
    let mut state = 5;
    let mut stacks = ReuseStacks::<2>::new(300);
    let mut naive = [(); 2].map(|()| Naive { pages: Vec::new(), capacity: 300 });
    for step in 0..30_000 {
        let range = if random::below(&mut state, 3) == 0 { 2000 } else { 200 };
        let page = random::below(&mut state, range) as u32;
        let is_write = random::below(&mut state, 3) == 0;
        let told = naive.iter().position(|stack| stack.position(page).is_some());
        let to = if is_write { 1 } else { told.unwrap_or(0) };
        let touched = stacks.touch_in(page, |stack| {
            assert_eq!(stack, told, "step {step}");
            to
        });
        naive[1 - to].remove(page);
        assert_eq!(touched, (to, naive[to].touch(page)), "step {step}");
        assert_eq!(stacks.len() as usize, naive[0].pages.len() + naive[1].pages.len());
    }
}

/// Many blocks of stamps, and several compactions.
#[test]
fn positions_are_those_of_a_long_list() {
    agrees_with_a_list(3000, 5000, 60_000, 1);
    agrees_with_a_list(5000, 5000, 60_000, 2);
}

/// Runs `steps` random uses and removals on the stacks. Returns their answers.
fn work(stacks: &mut ReuseStacks<2>, state: &mut u64, steps: u32) -> Vec<Option<u32>> {
    let steps = (0..steps).map(|_| {
        let page = random::below(state, 500) as u32;
        match random::below(state, 10) {
            0 => stacks.remove(page).then_some(page),
            stack => stacks.touch_in(page, |_| stack as usize % 2).1,
        }
    });
    steps.collect()
}

fn saved(stacks: &ReuseStacks<2>) -> Vec<u8> {
    let mut bytes = Vec::new();
    stacks.save(&mut bytes);
    bytes
}

/// The index is not saved but rebuilt. Everything then continues as before, including compactions of the stamps.
#[test]
fn restored_stacks_go_on_alike() {
    let fresh = ReuseStacks::<2>::new(150);
    let (mut stacks, mut state) = (fresh.clone(), 6);
    for steps in [0, 1, 100, 1000, 200, 2000, 77, 3000] {
        work(&mut stacks, &mut state, steps);
        let bytes = saved(&stacks);
        // 1,112 stamps in either stack, a bit each, and the pages.
        assert!(bytes.len() <= 2 * 144 + 4 * stacks.len() as usize + 30, "{}", bytes.len());
        let mut restored = restore(&fresh, &bytes).unwrap();
        restored.check().unwrap();
        let after = work(&mut restored, &mut state.clone(), 1500);
        assert_eq!(work(&mut stacks, &mut state, 1500), after);
        assert_eq!(saved(&restored), saved(&stacks));
    }
}

#[test]
fn damaged_stacks_are_refused_or_work() {
    let fresh = ReuseStacks::<2>::new(20);
    let (mut stacks, mut refused) = (fresh.clone(), 0);
    work(&mut stacks, &mut 8, 2000);
    let bytes = saved(&stacks);
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= change;
            match restore(&fresh, &bytes) {
                Ok(mut restored) if restored.check().is_ok() => {
                    work(&mut restored, &mut 9, 2000);
                }
                _ => refused += 1,
            }
        }
    }
    assert!(refused > bytes.len(), "{refused} of {}", 3 * bytes.len());
}

#[test]
fn nothing_is_allocated_once_it_is_made() {
    let mut stack = ReuseStacks::<1>::new(2000);
    let mut state = 3;
    let allocations = allocation_counter::measure(|| {
        for _ in 0..50_000 {
            stack.touch(random::below(&mut state, 3000) as u32);
            stack.remove(random::below(&mut state, 3000) as u32);
        }
    });
    assert_eq!(allocations.count_total, 0);
    assert!(stack.bytes() < 33 * 2000 + 4_000, "{}", stack.bytes());
}
