//! Which units are in the log, and in which slots.

use super::Tiers;
use crate::region::Space;
use crate::units::Ppa;

impl<S: Space> Tiers<S> {
    /// The slot of a unit in the log, if it is there.
    #[inline]
    pub fn slot(&self, unit: u32) -> Option<u32> {
        match &self.index {
            None => self.slow.elsewhere(unit),
            Some(index) => index.slot(self.fast.slots(), unit),
        }
    }

    /// Whether a unit is in the log.
    #[inline]
    pub fn is_in_log(&self, unit: u32) -> bool {
        match &self.index {
            None => self.slow.elsewhere(unit).is_some(),
            Some(index) => index.contains(unit),
        }
    }

    /// Number of these consecutive units that are in the log.
    #[inline]
    pub fn count_in_log(&self, unit: u32, count: u32) -> u32 {
        (unit..unit + count).map(|unit| u32::from(self.is_in_log(unit))).sum()
    }

    /// Puts consecutive units into the first slots of a page. Older copies in the log become invalid, and slow pages
    /// all of whose units are in the log.
    #[inline]
    pub(super) fn put(&mut self, unit: u32, count: u32, page: Ppa) {
        for (unit, slot) in (unit..unit + count).zip(self.fast.slots().first_slot(page)..) {
            let old = self.slot(unit);
            match (&mut self.index, old) {
                (None, _) => self.slow.put_elsewhere(unit, slot),
                (Some(index), None) => index.link(unit, slot),
                (Some(index), Some(old)) => index.relink(unit, old, slot),
            }
            self.fast.put(unit, slot, old);
        }
        if self.index.is_some() {
            self.forget_covered(unit, count);
        }
    }

    /// Invalidates slow pages of these units if all units of the page are in the log.
    #[inline]
    fn forget_covered(&mut self, unit: u32, count: u32) {
        let per_page = self.units_per_slow_page;
        for logical in self.slow_page(unit)..=self.slow_page(unit + count - 1) {
            if self.slow.lookup(logical).is_some() && self.count_in_log(logical * per_page, per_page) == per_page {
                self.slow.invalidate(logical);
            }
        }
    }

    /// Invalidates the log's copy of a unit, if there is one.
    #[inline]
    pub(super) fn drop_unit(&mut self, unit: u32) {
        if let Some(slot) = self.slot(unit) {
            self.drop_slot(unit, slot);
        }
    }

    /// The same for a unit whose slot is known.
    #[inline]
    pub(super) fn drop_slot(&mut self, unit: u32, slot: u32) {
        match &mut self.index {
            None => _ = self.slow.invalidate(unit),
            Some(index) => index.unlink(unit, slot),
        }
        self.fast.clear(slot);
    }

    /// Moves the units of a page to the same positions of another one; `moved` gets old and new slots.
    #[inline]
    pub(super) fn relocate(&mut self, from: Ppa, to: Ppa, mut moved: impl FnMut(u32, u32)) {
        let slots = self.fast.slots();
        let (old, new, count) = (slots.first_slot(from), slots.first_slot(to), slots.slots());
        for (old, new) in (old..old + count).zip(new..) {
            let Some(unit) = self.fast.slots().unit(old) else { continue };
            match &mut self.index {
                None => self.slow.put_elsewhere(unit, new),
                Some(index) => index.relink(unit, old, new),
            }
            self.fast.put(unit, new, Some(old));
            moved(old, new);
        }
    }

    /// Prefetches the entries for the lookup of a unit's slot.
    #[inline]
    pub(super) fn prefetch_index(&self, unit: u32) {
        if let Some(index) = &self.index {
            index.prefetch(unit);
        }
    }

    /// Prefetches the entries of the unit in a slot, if there is one.
    #[inline]
    pub fn prefetch_unit(&self, slot: u32) {
        if let Some(unit) = self.fast.slots().unit(slot) {
            self.prefetch_index(unit);
            self.slow.prefetch_entry(self.slow_page(unit));
        }
    }

    /// Brings the data of the log that a write to a unit will change into the processor's cache: first (`far` ahead)
    /// the entry with its slot, later (`near`) the slot.
    #[inline]
    pub fn prefetch_slots(&self, far: u32, near: u32) {
        match &self.index {
            None => {
                self.slow.prefetch_entry(far);
                if let Some(slot) = self.slow.elsewhere(near) {
                    self.fast.slots().prefetch(slot);
                }
            }
            Some(index) => {
                index.prefetch(far);
                index.prefetch_slot(self.fast.slots(), near);
            }
        }
    }

    /// Checks that each unit in the log is found there, that no other is, and that no slow page is kept without need.
    pub(super) fn check_placement(&self) -> Result<(), String> {
        let (slots, per_page) = (self.fast.slots(), self.units_per_slow_page);
        let units = self.slow.logical_pages() * per_page;
        for slot in 0..slots.len() as u32 {
            let Some(unit) = slots.unit(slot) else { continue };
            if unit >= units || self.slot(unit) != Some(slot) {
                return Err(format!("unit {unit} is not in its recorded slot"));
            }
        }
        for logical in 0..self.slow.logical_pages() {
            let in_log = self.count_in_log(logical * per_page, per_page);
            if in_log == per_page && self.slow.lookup(logical).is_some() {
                return Err(format!("slow page {logical} is kept although all its units are in the log"));
            }
            if let Some(place) = self.slow.elsewhere(logical)
                && (per_page > 1 || place as usize >= slots.len() || slots.unit(place) != Some(logical))
            {
                return Err(format!("slow page {logical} is recorded in slot {place} of the log, but is not there"));
            }
        }
        Ok(())
    }
}
