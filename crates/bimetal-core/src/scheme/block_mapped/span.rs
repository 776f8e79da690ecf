//! A request cut into logical pages.

use crate::media::CellMode;
use crate::region::chains::Chains;
use crate::request::Request;

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

/// The spans of a request, in order.
#[derive(Clone, Debug)]
pub struct Spans {
    logical: u32,
    block: u32,
    /// Pages of the logical block from this one on.
    pages_left: u32,
    first: u32,
    at: u32,
    total: u32,
    page_sectors: u32,
    pages_per_block: u32,
}

impl Spans {
    /// The spans of a request over these chains.
    #[inline]
    pub fn new(chains: &Chains, request: &Request) -> Self {
        let pages_per_block = chains.pages(CellMode::Native);
        let (logical, first) = chains.geometry().logical_page(request.sector);
        let block = chains.block_of(logical);
        Self {
            logical,
            block,
            pages_left: pages_per_block - (logical - block * pages_per_block),
            first,
            at: 0,
            total: request.sectors,
            page_sectors: chains.geometry().page_sectors(),
            pages_per_block,
        }
    }
}

impl Iterator for Spans {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        if self.at >= self.total {
            return None;
        }
        let sectors = (self.page_sectors - self.first).min(self.total - self.at);
        let span = Span { logical: self.logical, block: self.block, first: self.first, sectors, at: self.at };
        self.at += sectors;
        self.first = 0;
        self.logical += 1;
        self.pages_left -= 1;
        if self.pages_left == 0 {
            self.block += 1;
            self.pages_left = self.pages_per_block;
        }
        Some(span)
    }
}
