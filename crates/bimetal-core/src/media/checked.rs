//! A decorator for media that asserts every NAND rule and tracks the data.
//!
//! Each sector of each page carries a token, which says which version of which host sector it holds. Tokens travel with
//! [`Media::Data`], so a test can check for every read that the host got the data last written. All tests use this
//! medium; a measured replay never does, because it panics at the first broken rule.

use serde::{Deserialize, Serialize};

use super::{Cause, CellMode, Media, Part, Simulation, Stream};
use crate::ledger::{Ledger, Server};
use crate::operation::FlashOp;
use crate::request::{Op, Request};
use crate::save::Table;
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// A sector's content. 0 is undefined, [`Checked::ZEROS`] reads as zeros, any other value is a version written by the
/// host.
type Token = u64;

#[derive(Debug, Serialize, Deserialize)]
struct CheckedRegion {
    #[serde(with = "crate::save::fixed")]
    geometry: Geometry,
    #[serde(with = "crate::save::fixed")]
    pages_per_block: [u32; 2],
    /// Next page to program, by block.
    write_pointer: Table<u32>,
    #[serde(with = "crate::save::sized")]
    mode: Vec<CellMode>,
    /// Tokens by page slot and sector.
    tokens: Table<Token>,
}

/// A medium, with the state needed to check that it is used as NAND allows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Checked<M> {
    inner: M,
    #[serde(with = "crate::save::sized")]
    regions: Vec<CheckedRegion>,
    /// Tokens of the home disk by sector, up to the last sector written.
    disk: Vec<Token>,
    /// Tokens of the data read during this request; [`CheckedData::page`] is an offset into it.
    in_flight: Vec<Token>,
    /// Token of each sector of the host write being served.
    payload: Vec<Token>,
    /// Tokens delivered to the host, by sector of the read being served.
    reply: Vec<Token>,
    request_number: u64,
}

/// [`Media::Data`] of a checked medium.
#[derive(Clone, Copy, Debug)]
pub struct CheckedData<D> {
    inner: D,
    /// Offset and length in the in-flight tokens; `None` means the host's payload.
    page: Option<(usize, u32)>,
}

impl<D> CheckedData<D> {
    /// The tokens of the data: a range of the in-flight tokens, or the host's payload.
    fn tokens<'a>(&self, in_flight: &'a [Token], payload: &'a [Token]) -> &'a [Token] {
        match self.page {
            Some((start, sectors)) => &in_flight[start..start + sectors as usize],
            None => payload,
        }
    }
}

impl<M> Checked<M> {
    /// Token of a sector that was never written or has been trimmed.
    pub const ZEROS: u64 = u64::MAX;

    /// Wraps an erased medium; `regions` gives each region's geometry and its pages per block in SLC mode.
    pub fn new(inner: M, regions: &[(Geometry, u32)]) -> Self {
        let regions = regions
            .iter()
            .map(|&(geometry, slc_pages)| CheckedRegion {
                geometry,
                pages_per_block: [geometry.pages_per_block, slc_pages],
                write_pointer: vec![0; geometry.blocks as usize].into(),
                mode: vec![CellMode::Native; geometry.blocks as usize],
                tokens: vec![0; geometry.page_slots() * geometry.page_sectors() as usize].into(),
            })
            .collect();
        Self {
            inner,
            regions,
            disk: Vec::new(),
            in_flight: Vec::new(),
            payload: Vec::new(),
            reply: Vec::new(),
            request_number: 0,
        }
    }

    /// The token that the current write assigns to its sector number `index`.
    pub fn written_token(&self, index: u32) -> u64 {
        self.payload[index as usize]
    }

    /// The token delivered to the host for sector number `index` of the current read.
    pub fn read_token(&self, index: u32) -> u64 {
        self.reply[index as usize]
    }

    fn page_tokens(&self, region: RegionId, page: Ppa) -> std::ops::Range<usize> {
        let sectors = self.regions[region.index()].geometry.page_sectors() as usize;
        page.index() * sectors..(page.index() + 1) * sectors
    }

    /// Copies sectors of read data, or of the host's payload, to the disk.
    fn write_to_disk<D>(&mut self, data: &CheckedData<D>, from: u32, sector: u64, sectors: u32) {
        let (to, from, sectors) = (sector as usize, from as usize, sectors as usize);
        self.disk.resize(self.disk.len().max(to + sectors), 0);
        let source = data.tokens(&self.in_flight, &self.payload);
        self.disk[to..to + sectors].copy_from_slice(&source[from..from + sectors]);
    }

    fn assert_programmed(&self, region: RegionId, page: Ppa) {
        let checked = &self.regions[region.index()];
        let (block, index) = (checked.geometry.block_of(page), checked.geometry.page_of(page));
        let written = checked.write_pointer[block.index()];
        assert!(index < written, "read of page {index} of block {}, not programmed", block.0);
    }

    /// Asserts that `page` is the next free page of its block and takes it.
    fn take_next_page(&mut self, region: RegionId, page: Ppa) {
        let checked = &mut self.regions[region.index()];
        let (block, index) = (checked.geometry.block_of(page), checked.geometry.page_of(page));
        assert!(block.0 < checked.geometry.blocks, "program beyond the region: block {}", block.0);
        let limit = checked.pages_per_block[checked.mode[block.index()] as usize];
        assert!(index < limit, "program of page {index} in a block of {limit} pages");
        let next = &mut checked.write_pointer[block.index()];
        assert_eq!(index, *next, "pages of block {} must be programmed in order, each once per erase", block.0);
        *next += 1;
    }
}

impl<M: Media> Media for Checked<M> {
    type Data = CheckedData<M::Data>;

    fn host(&self) -> Self::Data {
        CheckedData { inner: self.inner.host(), page: None }
    }

    fn read(&mut self, region: RegionId, page: Ppa, cause: Cause) -> Self::Data {
        self.assert_programmed(region, page);
        let tokens = self.page_tokens(region, page);
        let start = self.in_flight.len();
        self.in_flight.extend_from_slice(&self.regions[region.index()].tokens[tokens.clone()]);
        CheckedData { inner: self.inner.read(region, page, cause), page: Some((start, tokens.len() as u32)) }
    }

    fn program(&mut self, region: RegionId, page: Ppa, parts: &[Part<Self::Data>], stream: Stream, cause: Cause) {
        self.take_next_page(region, page);
        let range = self.page_tokens(region, page);
        let tokens = &mut self.regions[region.index()].tokens[range];
        tokens.fill(0);
        let mut inner = Vec::with_capacity(parts.len());
        for part in parts {
            let source = part.data.tokens(&self.in_flight, &self.payload);
            let (from, to, sectors) = (part.from as usize, part.to as usize, part.sectors as usize);
            tokens[to..to + sectors].copy_from_slice(&source[from..from + sectors]);
            inner.push(Part { data: part.data.inner, from: part.from, to: part.to, sectors: part.sectors });
        }
        self.inner.program(region, page, &inner, stream, cause);
    }

    fn copy(&mut self, region: RegionId, from: Ppa, to: Ppa, stream: Stream, cause: Cause) {
        self.assert_programmed(region, from);
        self.take_next_page(region, to);
        let (source, target) = (self.page_tokens(region, from), self.page_tokens(region, to));
        self.regions[region.index()].tokens.as_mut_slice().copy_within(source, target.start);
        self.inner.copy(region, from, to, stream, cause);
    }

    fn erase(&mut self, region: RegionId, block: BlockId, mode: CellMode, cause: Cause) {
        let checked = &mut self.regions[region.index()];
        assert!(block.0 < checked.geometry.blocks, "erase beyond the region: block {}", block.0);
        assert!(mode == CellMode::Native || checked.pages_per_block[1] > 0, "the chip has no SLC mode");
        checked.write_pointer[block.index()] = 0;
        checked.mode[block.index()] = mode;
        self.inner.erase(region, block, mode, cause);
    }

    fn deliver(&mut self, data: Self::Data, from: u32, at: u32, sectors: u32) {
        let Some((start, length)) = data.page else { panic!("only pages that were read are delivered") };
        assert!(from + sectors <= length, "delivery beyond the page");
        let start = start + from as usize;
        self.reply[at as usize..(at + sectors) as usize]
            .copy_from_slice(&self.in_flight[start..start + sectors as usize]);
        self.inner.deliver(data.inner, from, at, sectors);
    }

    fn deliver_zeros(&mut self, at: u32, sectors: u32) {
        self.reply[at as usize..(at + sectors) as usize].fill(Self::ZEROS);
        self.inner.deliver_zeros(at, sectors);
    }

    fn fetch(&mut self, sector: u64, sectors: u32, cause: Cause) -> Self::Data {
        let start = self.in_flight.len();
        let end = sector as usize + sectors as usize;
        self.disk.resize(self.disk.len().max(end), 0);
        self.in_flight.extend_from_slice(&self.disk[sector as usize..end]);
        CheckedData { inner: self.inner.fetch(sector, sectors, cause), page: Some((start, sectors)) }
    }

    fn destage(&mut self, data: Self::Data, from: u32, sector: u64, sectors: u32, cause: Cause) {
        assert!(data.page.is_some(), "only what was read is destaged");
        self.write_to_disk(&data, from, sector, sectors);
        self.inner.destage(data.inner, from, sector, sectors, cause);
    }

    fn disk_write(&mut self, sector: u64, from: u32, sectors: u32) {
        let host = self.host();
        self.write_to_disk(&host, from, sector, sectors);
        self.inner.disk_write(sector, from, sectors);
    }
}

impl<M: Simulation> Simulation for Checked<M> {
    fn begin(&mut self, request: &Request, issue_ns: u64) {
        self.request_number += 1;
        self.in_flight.clear();
        self.reply.clear();
        self.payload.clear();
        match request.op {
            Op::Write => {
                let version = self.request_number << 32;
                self.payload.extend((0..u64::from(request.sectors)).map(|sector| version | sector));
            }
            Op::Read => self.reply.resize(request.sectors as usize, 0),
            Op::Trim => {}
        }
        self.inner.begin(request, issue_ns);
    }

    fn end(&mut self) -> u64 {
        self.inner.end()
    }

    fn begin_background(&mut self) {
        self.in_flight.clear();
        self.inner.begin_background();
    }

    fn access_map(&mut self, op: FlashOp, map_page: u32, at_ns: u64) -> u64 {
        self.inner.access_map(op, map_page, at_ns)
    }

    fn background_pages(&self, idle_ns: u64) -> u64 {
        self.inner.background_pages(idle_ns)
    }

    fn backlog_ns(&self, at_ns: u64) -> u64 {
        self.inner.backlog_ns(at_ns)
    }

    fn finish(&mut self) {
        self.inner.finish();
    }

    fn servers(&self) -> Vec<Server> {
        self.inner.servers()
    }

    fn ledger(&self) -> &Ledger {
        self.inner.ledger()
    }

    fn reset(&mut self) {
        self.inner.reset();
    }

    fn reset_counts(&mut self) {
        self.inner.reset_counts();
    }
}
