//! Valid units of a log block that is being emptied, on their way to other pages of the log.

use arrayvec::ArrayVec;

use super::Tiers;
use crate::media::{Cause, Media, Stream};
use crate::region::Space;
use crate::units::Ppa;

/// Largest number of pages that media copy at once.
const SURVIVORS_MAX: usize = 64;

/// Pages whose valid units were assigned to consecutive pages of one block, so that they are copied at once.
#[derive(Debug, Default)]
pub struct Survivors {
    from: ArrayVec<Ppa, SURVIVORS_MAX>,
    /// Target of the first of them.
    to: Option<Ppa>,
}

impl Survivors {
    /// Whether they must be copied before another page is added.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.from.is_full()
    }

    #[inline]
    fn push(&mut self, from: Ppa, to: Ppa) {
        let first = *self.to.get_or_insert(to);
        debug_assert_eq!(first.0 + self.from.len() as u32, to.0, "they go to consecutive pages");
        self.from.push(from);
    }
}

impl<S: Space> Tiers<S> {
    /// Assigns the valid units of a page of the log to the same positions of another one; `moved` gets the old and the
    /// new slot of each. The data follow with [`Tiers::copy_survivors`], which must be called before the old block is
    /// erased and before a page of another block is assigned.
    #[inline]
    pub fn move_survivor(&mut self, survivors: &mut Survivors, from: Ppa, to: Ppa, moved: impl FnMut(u32, u32)) {
        survivors.push(from, to);
        self.relocate(from, to, moved);
    }

    /// Copies the assigned units. Returns the number of pages.
    pub fn copy_survivors<M: Media>(&mut self, media: &mut M, survivors: &mut Survivors) -> u64 {
        let pages = survivors.from.len() as u64;
        if let Some(to) = survivors.to.take() {
            media.copy_run(self.fast.region(), &survivors.from, to, Stream::ONLY, Cause::Gc);
            survivors.from.clear();
        }
        pages
    }
}
