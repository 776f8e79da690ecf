//! What pages that leave the cache change is brought into the processor's cache: they were used long ago.

use super::FlashCache;
use super::replacer::Kind;

/// Pages of a group whose state is prefetched together.
pub(super) const BATCH: usize = 16;

impl FlashCache {
    /// Prefetches what the destaging of the pages from `at` on changes, a batch ahead: entries that are scattered are
    /// found together, and those of a whole group would not stay in the nearest cache.
    pub(super) fn prefetch_destaged(&self, group: &[(u32, u32)], at: usize) {
        let batch = |from: usize| group.iter().skip(from).take(BATCH);
        if at == 0 {
            batch(0).for_each(|&(page, slot)| self.mapping.prefetch_cached(page, slot));
        }
        batch(at + BATCH).for_each(|&(page, slot)| self.mapping.prefetch_cached(page, slot));
        batch(at).for_each(|&(_, slot)| self.mapping.prefetch_flash(slot));
    }

    /// Prefetches the state that is dropped with the clean page that leaves next, and the slot of the one after it. They
    /// were used long ago.
    #[inline]
    pub(super) fn prefetch_oldest(&self) {
        let Some(slot) = self.replacer.oldest(Kind::Clean) else { return };
        self.mapping.prefetch_cached(self.mapping.slots().page_of(slot), slot);
        if let Some(next) = self.replacer.after(slot) {
            self.replacer.prefetch(next);
            self.mapping.slots().prefetch_page_of(next);
        }
    }
}
