//! The logical pages of a request, with their logical blocks.

use crate::media::CellMode;
use crate::region::chains::Chains;
use crate::request::Request;
use crate::units;

/// The part of a request that falls on one logical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Logical page.
    pub logical: u32,
    /// Its logical block.
    pub block: u32,
    /// First sector within the page.
    pub first: u32,
    /// Number of sectors.
    pub sectors: u32,
    /// First sector within the request.
    pub at: u32,
}

/// The spans of a request over these chains, in order.
#[inline]
pub fn spans(chains: &Chains, request: &Request) -> impl Iterator<Item = Span> + use<> {
    let pages_per_block = chains.pages(CellMode::Native);
    let mut block = chains.block_of(chains.geometry().logical_page(request.sector).0);
    // Only the first page is divided by the pages of a block.
    let mut end = (block + 1) * pages_per_block;
    chains.geometry().spans(request).map(move |units::Span { page: logical, first, sectors, at }| {
        if logical == end {
            (block, end) = (block + 1, end + pages_per_block);
        }
        Span { logical, block, first, sectors, at }
    })
}
