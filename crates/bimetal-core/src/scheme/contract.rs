//! The contract of a scheme: what its author writes, and what it may rely on.
//!
//! # What there is to write
//!
//! - [`SchemeSpec`], a `static`: name, summary, source, what it needs of a device, a version.
//! - Parameters, by [`parameters!`](crate::parameters): with ranges, units and sources. That declaration is the parser, the default and
//!   the help.
//! - The state, which derives [`Serialize`](serde::Serialize) and [`Deserialize`](serde::Deserialize), so that it is
//!   [saved](crate::save) and restored. Fields that never change say so by `save::fixed` and `save::sized`, and large tables are a
//!   [`Table`](crate::save::Table), whose length never does: by these the state of another device is refused.
//! - `new`: from a [`Shape`] and the parameters to the state, or the reason why the device does not suit it, and what to do.
//! - [`Scheme`] for every [`Media`]: the decisions.
//!
//! Most schemes are a policy over one of the engines: a [`Separation`](crate::region::log::Separation) over a
//! [`Log`](crate::region::log::Log) in [`OneRegion`](super::OneRegion) decides which pages share blocks and which block is collected, and
//! no more. `examples/own-scheme` is one in a crate of its own.
//!
//! # What it may rely on
//!
//! Requests lie within the logical capacity. `fill` is called before all requests or never. Verbs of the media do not fail: bad blocks
//! are handled below. A page is programmed once for each erase, and pages of a block in order. Regions are those that
//! [`SchemeSpec::regions`] asks for.
//!
//! # What it is held to
//!
//! It knows no clock, no file and no randomness beyond [`Shape::seed`]: the same requests lead to the same operations. It never allocates
//! once it is warm. [`Scheme::check`] finds everything by which serving could index out of range or go on for ever, as the state may come
//! from damaged bytes. `scheme::conformance`, behind the feature `conformance` of this crate, tries all that.
//!
//! # Joining
//!
//! [`add`](super::add) puts it into the registry of a program: then `compare`, `sweep` and all others know it by its name. A program with
//! `bimetal`'s commands is made with `bimetal_cli::Program`, which serves it from a store, too.
//!
//! # The simplest one
//!
//! Each write of a page copies its whole block to an erased one:
//!
//! ```
//! use bimetal_core::media::{Cause, CellMode, Media, Part, Stream};
//! use bimetal_core::request::{Op, Request};
//! use bimetal_core::save::Table;
//! use bimetal_core::scheme::conformance::{DEVICES, Subject, returns_what_was_written};
//! use bimetal_core::scheme::{self, Entry, Metrics, Regions, Scheme, SchemeSpec, Shape};
//! use bimetal_core::units::{BlockId, Geometry, Ppa, RegionId, Span};
//! use serde::{Deserialize, Serialize};
//!
//! static SPEC: SchemeSpec = SchemeSpec {
//!     name: "rewrite",
//!     summary: "one region, a block is copied for each page that is written",
//!     source: "none",
//!     regions: Regions::One,
//!     parameters: Parameters::specs,
//!     version: 1,
//! };
//!
//! bimetal_core::parameters! {
//!     SPEC.name;
//!     /// It has none.
//!     pub struct Parameters {}
//! }
//!
//! const REGION: RegionId = RegionId(0);
//!
//! #[derive(Debug, Serialize, Deserialize)]
//! struct Rewrite {
//!     #[serde(with = "bimetal_core::save::fixed")]
//!     geometry: Geometry,
//!     /// First the block of each logical block, then the erased ones.
//!     blocks: Table<u32>,
//!     /// By logical block: whether it has data.
//!     written: Table<bool>,
//! }
//!
//! fn new(shape: &Shape, _: Parameters) -> Result<Rewrite, String> {
//!     let geometry = shape.regions[0].geometry;
//!     let logical_pages = scheme::logical_pages(shape)?;
//!     let logical_blocks = logical_pages.div_ceil(geometry.pages_per_block.into()) as usize;
//!     if logical_blocks >= geometry.blocks as usize {
//!         return Err(format!("it needs a block beside {logical_blocks}; enlarge the region or lower the capacity"));
//!     }
//!     Ok(Rewrite { geometry, blocks: (0..geometry.blocks).collect(), written: vec![false; logical_blocks].into() })
//! }
//!
//! impl Rewrite {
//!     fn find(&self, page: u32) -> Option<Ppa> {
//!         let (logical, index) = (page / self.geometry.pages_per_block, page % self.geometry.pages_per_block);
//!         self.written[logical as usize].then(|| self.geometry.ppa(BlockId(self.blocks[logical as usize]), index))
//!     }
//!
//!     fn write<M: Media>(&mut self, media: &mut M, page: u32, host: Part<M::Data>) {
//!         let (pages, page_sectors) = (self.geometry.pages_per_block, self.geometry.page_sectors());
//!         let (logical, spare) = ((page / pages) as usize, self.written.len());
//!         let block = BlockId(self.blocks[spare]);
//!         media.erase(REGION, block, CellMode::Native, Cause::Gc);
//!         for (index, number) in (0..pages).zip(page / pages * pages..) {
//!             let to = self.geometry.ppa(block, index);
//!             match self.find(number) {
//!                 Some(from) if number != page => media.copy(REGION, from, to, Stream::ONLY, Cause::Gc),
//!                 None if number != page => media.program(REGION, to, &[], Stream::ONLY, Cause::Gc),
//!                 None => media.program(REGION, to, &[host], Stream::ONLY, Cause::Host),
//!                 Some(from) => {
//!                     let data = media.read(REGION, from, Cause::Host);
//!                     let end = host.to + host.sectors;
//!                     let before = Part { data, from: 0, to: 0, sectors: host.to };
//!                     let after = Part { data, from: end, to: end, sectors: page_sectors - end };
//!                     media.program(REGION, to, &[before, host, after], Stream::ONLY, Cause::Host);
//!                 }
//!             }
//!         }
//!         self.blocks.swap(logical, spare);
//!         self.written[logical] = true;
//!     }
//! }
//!
//! impl<M: Media> Scheme<M> for Rewrite {
//!     fn fill(&mut self, media: &mut M) {
//!         let data = media.host();
//!         for logical in 0..self.written.len() as u32 {
//!             self.write(media, logical * self.geometry.pages_per_block, Part { data, from: 0, to: 0, sectors: 0 });
//!         }
//!     }
//!
//!     fn serve(&mut self, media: &mut M, request: &Request) {
//!         let geometry = self.geometry;
//!         for Span { page, first, sectors, at } in geometry.spans(request) {
//!             match (request.op, self.find(page)) {
//!                 (Op::Write, _) => {
//!                     let data = media.host();
//!                     self.write(media, page, Part { data, from: at, to: first, sectors });
//!                 }
//!                 (Op::Read, Some(place)) => {
//!                     let data = media.read(REGION, place, Cause::Host);
//!                     media.deliver(data, first, at, sectors);
//!                 }
//!                 (Op::Read, None) => media.deliver_zeros(at, sectors),
//!                 (Op::Trim, _) => {}
//!             }
//!         }
//!     }
//!
//!     fn metrics(&self, _: &mut Metrics) {}
//!
//!     fn check(&self) -> Result<(), String> {
//!         let mut blocks = self.blocks.to_vec();
//!         blocks.sort_unstable();
//!         if blocks.into_iter().eq(0..self.geometry.blocks) { Ok(()) } else { Err("a block is used twice".into()) }
//!     }
//! }
//!
//! returns_what_was_written(&Subject::of(&SPEC, new), &DEVICES[0], &[], true, 100, 1);
//!
//! scheme::add(vec![Entry::of(&SPEC, new)])?;
//! assert_eq!(scheme::SCHEMES.last().unwrap().name, "rewrite");
//! assert!(scheme::settings("rewrite", &[("speed".into(), "high".into())]).is_err());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use super::ParameterSpec;
use crate::chip::Chip;
use crate::drive::Drive;
use crate::media::Media;
use crate::request::Request;
use crate::save::Save;
use crate::units::Geometry;

/// A management scheme over a medium. All of its state can be saved; [`restore`] reads it.
pub trait Scheme<M: Media>: Send + Save {
    /// Writes every logical unit once, in order and past all admission policy: the state in which measuring starts.
    /// The content is undefined. Called at most once, before any request.
    fn fill(&mut self, media: &mut M);

    /// Serves a host request. Its sectors lie within the logical capacity.
    fn serve(&mut self, media: &mut M, request: &Request);

    /// Requests that will be served soon, `near` sooner than `far`: their map entries may be brought into the
    /// processor's cache. Changes nothing.
    fn prefetch(&self, _far: &Request, _near: &Request) {}

    /// The host is idle: background work of about `budget_pages` page copies may be done.
    fn idle(&mut self, _media: &mut M, _budget_pages: u32) {}

    /// How many blocks, the first of the device's last region, run in SLC mode for good: they share no wear with others.
    fn fixed_slc_blocks(&self) -> u32 {
        0
    }

    /// Figures of its own: thresholds, hit rates, migrations, rejects, bytes of metadata.
    fn metrics(&self, metrics: &mut Metrics);

    /// Checks all invariants of the state.
    ///
    /// # Errors
    /// The first one that is broken.
    fn check(&self) -> Result<(), String>;
}

/// What a scheme knows of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionShape {
    /// The part: times, endurance, modes.
    pub chip: Chip,
    /// Blocks, pages, dies.
    pub geometry: Geometry,
}

/// What a scheme knows of its device.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Sectors that the host sees.
    pub logical_sectors: u64,
    /// The fast region first, the slow one last.
    pub regions: Vec<RegionShape>,
    /// The home disks, which together hold the logical sectors; none where all data are in flash.
    pub disks: Vec<Drive>,
    /// Seed of pseudo-random choices, for schemes that make any.
    pub seed: u64,
}

/// Which regions a scheme manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regions {
    /// One, of any cell.
    One,
    /// A fast one in front of a slow one.
    FastAndSlow,
    /// One whose blocks can run with one bit per cell; the capacity beyond the usual is the budget for that.
    DualMode,
    /// One in front of disks that are the home of all data.
    FlashOverDisk,
}

/// One line of the registry.
#[derive(Debug)]
pub struct SchemeSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// The paper, or what else defines it.
    pub source: &'static str,
    /// What it needs of a device.
    pub regions: Regions,
    /// Its parameters.
    pub parameters: fn() -> Vec<ParameterSpec>,
    /// Changes when the same requests lead to other operations, or the state to another form: a device that was used
    /// with another version is refused.
    pub version: u32,
}

/// Named figures of a scheme's own, in the order in which it gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    values: Vec<(&'static str, f64)>,
}

impl Metrics {
    /// Forgets all figures and keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// Adds a figure; its unit is part of its name.
    pub fn push(&mut self, name: &'static str, value: f64) {
        self.values.push((name, value));
    }

    /// Adds a count.
    pub fn count(&mut self, name: &'static str, value: u64) {
        self.push(name, value as f64);
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.values.iter().copied()
    }

    /// The figure of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.iter().find_map(|(known, value)| (known == name).then_some(value))
    }
}
