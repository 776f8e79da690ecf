//! Valid units of a log block that is being emptied, on their way to other pages of the log.

use arrayvec::ArrayVec;

use super::Tiers;
use crate::media::{Cause, Media, Stream};
use crate::region::Space;
use crate::units::Ppa;

/// As many as a medium copies at once.
const SURVIVORS_MAX: usize = 64;

/// Pages whose valid units have been given consecutive pages of one block: they are copied at once.
#[derive(Debug, Default)]
pub struct Survivors {
    from: ArrayVec<Ppa, SURVIVORS_MAX>,
    /// Where the first of them goes.
    to: Option<Ppa>,
}

impl Survivors {
    /// Whether they have to be copied before there can be more.
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
    /// The valid units of a page of the log are in the same positions of another one from now on; `moved` is told the old
    /// and the new slot of each. The page itself follows with [`Tiers::copy_survivors`], which has to come before its
    /// block is erased and before the next page is one of another block.
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
