//! Dual-pool wear levelling: which blocks exchange their data, and when (Chang, *On efficient wear leveling for
//! large-scale flash-memory storage systems*, SAC 2007), as Chang 2010 §5.1 uses it on its MLC blocks.
//!
//! Every block is in the hot or in the cold pool. When the most worn hot block is more than a threshold (`TH`) ahead of
//! the least worn cold block, the data of the cold block move to the hot block, since they must be cold. Two more rules
//! move blocks that are in the wrong pool. This part keeps the counts and pools and reports the due exchange; the
//! caller moves the data.
//!
//! Chang 2010 gives only the algorithm's name and `TH`; the rules are those on which public implementations agree.

use serde::{Deserialize, Serialize};

use crate::save::Table;

/// A pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pool {
    /// Blocks that are erased often.
    Hot,
    /// Blocks whose data rarely change.
    Cold,
}

/// A binary heap of block numbers that records the position of each; the smallest key is on top.
#[derive(Debug, Serialize, Deserialize)]
struct Heap {
    order: Vec<u32>,
    /// Position of each block in `order`.
    places: Table<u32>,
    keys: Table<u32>,
}

const NONE: u32 = u32::MAX;

impl Heap {
    fn new(blocks: usize) -> Self {
        Self { order: Vec::with_capacity(blocks), places: vec![NONE; blocks].into(), keys: vec![0; blocks].into() }
    }

    fn top(&self) -> Option<u32> {
        self.order.first().copied()
    }

    fn insert(&mut self, block: u32, key: u32) {
        self.keys[block as usize] = key;
        self.places[block as usize] = self.order.len() as u32;
        self.order.push(block);
        self.rise(self.order.len() - 1);
    }

    fn remove(&mut self, block: u32) {
        let place = self.places[block as usize] as usize;
        self.order.swap_remove(place);
        self.places[block as usize] = NONE;
        if let Some(&moved) = self.order.get(place) {
            self.places[moved as usize] = place as u32;
            self.rise(place);
            self.sink(self.places[moved as usize] as usize);
        }
    }

    fn update(&mut self, block: u32, key: u32) {
        self.keys[block as usize] = key;
        self.rise(self.places[block as usize] as usize);
        self.sink(self.places[block as usize] as usize);
    }

    fn key_at(&self, place: usize) -> u32 {
        self.keys[self.order[place] as usize]
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.order.swap(one, other);
        self.places[self.order[one] as usize] = one as u32;
        self.places[self.order[other] as usize] = other as u32;
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.key_at(parent) <= self.key_at(place) {
                return;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let mut child = 2 * place + 1;
            if child >= self.order.len() {
                return;
            }
            if child + 1 < self.order.len() && self.key_at(child + 1) < self.key_at(child) {
                child += 1;
            }
            if self.key_at(place) <= self.key_at(child) {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }
}

/// Erase counts and pools of a region's blocks.
#[derive(Debug, Serialize, Deserialize)]
pub struct DualPool {
    /// Erase cycles (`EC`).
    erases: Table<u32>,
    /// Erase cycles since the block last changed pools in a swap (`EEC`).
    recent: Table<u32>,
    #[serde(with = "crate::save::sized")]
    pools: Vec<Pool>,
    hot_most_worn: Heap,
    hot_least_worn: Heap,
    hot_least_recent: Heap,
    cold_least_worn: Heap,
    cold_most_recent: Heap,
    #[serde(with = "crate::save::fixed")]
    threshold: u32,
}

impl DualPool {
    /// Unworn blocks, the lower half of them hot. The pools then find their own sizes.
    pub fn new(blocks: u32, threshold: u32) -> Self {
        let count = blocks as usize;
        let mut pool = Self {
            erases: vec![0; count].into(),
            recent: vec![0; count].into(),
            pools: vec![Pool::Hot; count],
            hot_most_worn: Heap::new(count),
            hot_least_worn: Heap::new(count),
            hot_least_recent: Heap::new(count),
            cold_least_worn: Heap::new(count),
            cold_most_recent: Heap::new(count),
            threshold,
        };
        for block in 0..blocks {
            pool.enter(block, if block < blocks.div_ceil(2) { Pool::Hot } else { Pool::Cold });
        }
        pool
    }

    /// Counts an erase.
    pub fn erased(&mut self, block: u32) {
        let index = block as usize;
        self.erases[index] += 1;
        self.recent[index] += 1;
        let (erases, recent) = (self.erases[index], self.recent[index]);
        match self.pools[index] {
            Pool::Hot => {
                self.hot_most_worn.update(block, !erases);
                self.hot_least_worn.update(block, erases);
                self.hot_least_recent.update(block, recent);
            }
            Pool::Cold => {
                self.cold_least_worn.update(block, erases);
                self.cold_most_recent.update(block, !recent);
            }
        }
    }

    /// Erase cycles of a block.
    pub fn erases(&self, block: u32) -> u32 {
        self.erases[block as usize]
    }

    /// The pool of a block.
    pub fn pool(&self, block: u32) -> Pool {
        self.pools[block as usize]
    }

    /// The most worn hot block and the least worn cold block, if their erase counts differ by more than the threshold.
    pub fn due(&self) -> Option<(u32, u32)> {
        let (worn, young) = (self.hot_most_worn.top()?, self.cold_least_worn.top()?);
        let ahead = self.erases(worn).saturating_sub(self.erases(young));
        (ahead > self.threshold).then_some((worn, young))
    }

    /// Moves a block to the other pool and resets its recent erases.
    pub fn change(&mut self, block: u32, to: Pool) {
        self.leave(block);
        self.recent[block as usize] = 0;
        self.enter(block, to);
    }

    /// A cold block that is erased more often than hot ones goes to the hot pool; a hot block far behind the most worn
    /// one goes to the cold pool. Neither moves data.
    pub fn resize(&mut self) {
        if let (Some(cold), Some(hot)) = (self.cold_most_recent.top(), self.hot_least_recent.top()) {
            let ahead = self.recent[cold as usize].saturating_sub(self.recent[hot as usize]);
            if ahead > self.threshold {
                self.leave(cold);
                self.enter(cold, Pool::Hot);
            }
        }
        if let (Some(worn), Some(young)) = (self.hot_most_worn.top(), self.hot_least_worn.top())
            && self.erases(worn) - self.erases(young) > 2 * self.threshold
        {
            self.leave(young);
            self.enter(young, Pool::Cold);
        }
    }

    fn enter(&mut self, block: u32, pool: Pool) {
        let (erases, recent) = (self.erases[block as usize], self.recent[block as usize]);
        self.pools[block as usize] = pool;
        match pool {
            Pool::Hot => {
                self.hot_most_worn.insert(block, !erases);
                self.hot_least_worn.insert(block, erases);
                self.hot_least_recent.insert(block, recent);
            }
            Pool::Cold => {
                self.cold_least_worn.insert(block, erases);
                self.cold_most_recent.insert(block, !recent);
            }
        }
    }

    fn leave(&mut self, block: u32) {
        match self.pools[block as usize] {
            Pool::Hot => {
                self.hot_most_worn.remove(block);
                self.hot_least_worn.remove(block);
                self.hot_least_recent.remove(block);
            }
            Pool::Cold => {
                self.cold_least_worn.remove(block);
                self.cold_most_recent.remove(block);
            }
        }
    }

    /// Number of hot blocks.
    pub fn hot_blocks(&self) -> u32 {
        self.hot_most_worn.order.len() as u32
    }

    /// Mean erase count of a pool; 0 if it is empty.
    pub fn mean_erases(&self, pool: Pool) -> f64 {
        let members = || self.pools.iter().zip(&self.erases).filter(|&(&member, _)| member == pool);
        let count = members().count();
        if count == 0 { 0.0 } else { members().map(|(_, &erases)| f64::from(erases)).sum::<f64>() / count as f64 }
    }

    /// Checks that every block is in exactly the heaps of its pool, and that each heap is ordered by current keys.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        let orders: [(&Heap, Pool, &[u32], bool, &str); 5] = [
            (&self.hot_most_worn, Pool::Hot, &self.erases, true, "most worn hot"),
            (&self.hot_least_worn, Pool::Hot, &self.erases, false, "least worn hot"),
            (&self.hot_least_recent, Pool::Hot, &self.recent, false, "least recently worn hot"),
            (&self.cold_least_worn, Pool::Cold, &self.erases, false, "least worn cold"),
            (&self.cold_most_recent, Pool::Cold, &self.recent, true, "most recently worn cold"),
        ];
        for (heap, pool, counts, descending, name) in orders {
            let places = heap.order.iter().map(|&block| heap.places.get(block as usize));
            let in_order = (0..).zip(places).all(|(place, known)| known == Some(&place));
            let listed = heap.places.iter().filter(|&&place| place != NONE).count();
            if !in_order || listed != heap.order.len() {
                return Err(format!("the order of {name} and the places of its blocks disagree"));
            }
            for (block, &member) in self.pools.iter().enumerate() {
                let place = heap.places[block];
                if (member == pool) != (place != NONE) {
                    return Err(format!("block {block} of pool {member:?} and the order of {name} disagree"));
                }
                if place == NONE {
                    continue;
                }
                let key = if descending { !counts[block] } else { counts[block] };
                let place = place as usize;
                let risen = place == 0 || heap.key_at((place - 1) / 2) <= heap.key_at(place);
                if heap.order[place] as usize != block || heap.keys[block] != key || !risen {
                    return Err(format!("block {block} is out of place in the order of {name}"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::random;

    #[test]
    fn orders_hold_under_random_erases_and_changes() {
        let mut state = 5;
        let mut pool = DualPool::new(37, 4);
        for _ in 0..20_000 {
            let block = random::below(&mut state, 37) as u32;
            pool.erased(block);
            if let Some((worn, young)) = pool.due() {
                let most = (0..37).filter(|&b| pool.pool(b) == Pool::Hot).map(|b| pool.erases(b)).max();
                let least = (0..37).filter(|&b| pool.pool(b) == Pool::Cold).map(|b| pool.erases(b)).min();
                assert_eq!((Some(pool.erases(worn)), Some(pool.erases(young))), (most, least));
                pool.change(worn, Pool::Cold);
                pool.change(young, Pool::Hot);
            }
            pool.resize();
        }
        pool.check().unwrap();
    }

    #[test]
    fn a_swap_is_due_only_beyond_the_threshold() {
        let mut pool = DualPool::new(4, 3);
        for _ in 0..3 {
            pool.erased(0);
        }
        assert_eq!(pool.due(), None);
        pool.erased(0);
        assert_eq!(pool.due(), Some((0, pool.due().unwrap().1)));
        assert_eq!(pool.pool(pool.due().unwrap().1), Pool::Cold);
    }

    #[test]
    fn resizing_moves_misplaced_blocks() {
        let mut pool = DualPool::new(4, 3);
        for _ in 0..4 {
            pool.erased(3);
        }
        pool.resize();
        assert_eq!((pool.pool(3), pool.hot_blocks()), (Pool::Hot, 3));
        for _ in 0..3 {
            pool.erased(3);
        }
        pool.resize();
        assert_eq!(pool.hot_blocks(), 2, "an unworn hot block is cold after all");
        pool.check().unwrap();
    }
}
