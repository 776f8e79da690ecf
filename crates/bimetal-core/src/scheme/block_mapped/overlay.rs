//! What may hold newer data than the block-mapped region under it.

use crate::media::{Media, PageMerge};

/// What lies over the block-mapped region and may hold newer sectors than it.
pub trait Overlay {
    /// Sectors of a logical page of which the overlay holds the valid copy.
    fn newer_sectors(&self, logical: u32) -> u32;

    /// Whether a fold takes in what the overlay holds.
    fn joins_folds(&self) -> bool;

    /// Reads the newer sectors of a logical page into `merge` and gives them up: a fold writes them.
    fn pull<M: Media>(&mut self, media: &mut M, logical: u32, merge: &mut PageMerge<M::Data>);
}

/// No overlay: the region holds everything.
#[derive(Debug)]
pub struct Bare;

impl Overlay for Bare {
    #[inline]
    fn newer_sectors(&self, _logical: u32) -> u32 {
        0
    }

    #[inline]
    fn joins_folds(&self) -> bool {
        false
    }

    fn pull<M: Media>(&mut self, _media: &mut M, _logical: u32, _merge: &mut PageMerge<M::Data>) {}
}
