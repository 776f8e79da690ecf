//! Interface of a layer with newer data over the block-mapped region.

use std::ops::Range;

use crate::media::{Media, PageMerge};

/// A layer over the block-mapped region that may hold newer sectors.
pub trait Overlay {
    /// Sectors of a logical page of which the overlay holds the valid copy.
    fn newer_sectors(&self, logical: u32) -> u32;

    /// Number of these logical pages before the first one with newer sectors.
    fn run_without_newer(&self, pages: Range<u32>) -> u32;

    /// Whether a fold includes the overlay's data.
    fn joins_folds(&self) -> bool;

    /// Reads the newer sectors of a logical page into `merge` and removes them from the overlay: a fold writes them.
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
    fn run_without_newer(&self, pages: Range<u32>) -> u32 {
        pages.end - pages.start
    }

    #[inline]
    fn joins_folds(&self) -> bool {
        false
    }

    fn pull<M: Media>(&mut self, _media: &mut M, _logical: u32, _merge: &mut PageMerge<M::Data>) {}
}
