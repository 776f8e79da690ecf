//! The page replacer: the order in which cached pages leave.

use serde::{Deserialize, Serialize};

use crate::part::lru::Lists;
use crate::save::Table;

/// Whether the disk has the data of a cached page too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The disk has them: the page can be dropped.
    Clean = 0,
    /// Only the cache has them: the page must be destaged.
    Dirty = 1,
}

/// Cached pages by recency, identified by their slots: clean and dirty ones separately (the paper's read and write
/// cache), or all together.
#[derive(Debug, Serialize, Deserialize)]
pub struct Replacer {
    order: Lists,
    dirty: Table<bool>,
    pages: [u32; 2],
    #[serde(with = "crate::save::fixed")]
    unified: bool,
}

impl Replacer {
    /// No pages yet in `slots` slots; in one order if `unified`.
    pub fn new(slots: u32, unified: bool) -> Self {
        let order = Lists::new(slots as usize, if unified { 1 } else { 2 });
        Self { order, dirty: vec![false; slots as usize].into(), pages: [0; 2], unified }
    }

    /// Whether clean and dirty pages are in one order.
    pub fn is_unified(&self) -> bool {
        self.unified
    }

    /// Pages of a kind.
    #[inline]
    pub fn pages(&self, kind: Kind) -> u32 {
        self.pages[kind as usize]
    }

    /// Pages of both kinds.
    #[inline]
    pub fn all_pages(&self) -> u32 {
        self.pages[0] + self.pages[1]
    }

    /// Kind of the page in a slot.
    #[inline]
    pub fn kind(&self, slot: u32) -> Kind {
        if self.dirty[slot as usize] { Kind::Dirty } else { Kind::Clean }
    }

    #[inline]
    fn list(&self, kind: Kind) -> usize {
        if self.unified { 0 } else { kind as usize }
    }

    /// Whether a slot holds a page.
    pub fn contains(&self, slot: u32) -> bool {
        self.order.contains(slot)
    }

    /// Adds a page as the most recent one.
    #[inline]
    pub fn insert(&mut self, slot: u32, kind: Kind) {
        self.dirty[slot as usize] = kind == Kind::Dirty;
        self.pages[kind as usize] += 1;
        self.order.push_back(self.list(kind), slot);
    }

    /// Removes a page.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        let kind = self.kind(slot);
        self.pages[kind as usize] -= 1;
        self.order.remove(self.list(kind), slot);
    }

    /// Makes a page the most recent one.
    #[inline]
    pub fn touch(&mut self, slot: u32) {
        let list = self.list(self.kind(slot));
        if self.order.back(list) != Some(slot) {
            self.order.remove(list, slot);
            self.order.push_back(list, slot);
        }
    }

    /// The least recently used page of a kind; of both kinds if all are in one order.
    #[inline]
    pub fn oldest(&self, kind: Kind) -> Option<u32> {
        self.order.front(self.list(kind))
    }

    /// The page used after another one of the same order.
    #[inline]
    pub fn after(&self, slot: u32) -> Option<u32> {
        self.order.after(slot)
    }

    /// Prefetches the place of a slot in its order into the processor's cache.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        self.order.prefetch(slot);
        prefetch_index::prefetch_index(&self.dirty, slot as usize);
    }

    /// The dirty ones of the `pages` least recently used pages that [`Replacer::oldest`] gives, oldest first.
    pub fn oldest_dirty(&self, pages: u32) -> impl Iterator<Item = u32> + '_ {
        let oldest = self.order.iter(self.list(Kind::Dirty)).take(pages as usize);
        oldest.filter(|&slot| self.kind(slot) == Kind::Dirty)
    }

    /// Bytes of tables in a controller: two links and a bit per page.
    pub fn metadata_bytes(&self) -> u64 {
        self.dirty.len() as u64 * 8 + self.dirty.len().div_ceil(8) as u64
    }

    /// Checks that lists and counts agree.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<(), String> {
        self.order.check()?;
        let mut counted = [0; 2];
        for list in 0..if self.unified { 1 } else { 2 } {
            for slot in self.order.iter(list) {
                let kind = self.kind(slot);
                if self.list(kind) != list {
                    return Err(format!("slot {slot} is {kind:?} and in list {list}"));
                }
                counted[kind as usize] += 1;
            }
        }
        if counted != self.pages {
            return Err(format!("{counted:?} clean and dirty pages are listed, {:?} counted", self.pages));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Clean, Dirty};

    #[test]
    fn clean_and_dirty_pages_leave_apart() {
        let mut replacer = Replacer::new(8, false);
        for (slot, kind) in [(3, Clean), (1, Dirty), (4, Clean), (5, Dirty)] {
            replacer.insert(slot, kind);
        }
        replacer.touch(3);
        assert_eq!((replacer.oldest(Clean), replacer.oldest(Dirty)), (Some(4), Some(1)));
        replacer.remove(1);
        replacer.insert(1, Clean);
        assert_eq!((replacer.oldest(Dirty), replacer.pages(Clean), replacer.pages(Dirty)), (Some(5), 3, 1));
        replacer.check().unwrap();
    }

    #[test]
    fn in_one_order_the_oldest_is_of_either_kind() {
        let mut replacer = Replacer::new(8, true);
        for (slot, kind) in [(3, Clean), (1, Dirty), (4, Clean)] {
            replacer.insert(slot, kind);
        }
        replacer.touch(3);
        assert_eq!((replacer.oldest(Clean), replacer.oldest(Dirty)), (Some(1), Some(1)));
        assert_eq!((replacer.all_pages(), replacer.pages(Dirty)), (3, 1));
        replacer.insert(7, Dirty);
        let dirty = |pages| replacer.oldest_dirty(pages).collect::<Vec<_>>();
        assert_eq!([dirty(3), dirty(4)], [vec![1], vec![1, 7]]);
        replacer.check().unwrap();
    }
}
