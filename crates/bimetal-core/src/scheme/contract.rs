//! The contract of a scheme: what its author writes, what the scheme may rely on, and what the conformance tests
//! require.
//!
//! # What to write
//!
//! - [`SchemeSpec`], a `static`: name, summary, source, required regions, version.
//! - Parameters, declared by [`parameters!`](crate::parameters) with ranges, units and sources. That declaration is the
//!   parser, the default values and the help text.
//! - The state, which derives [`Serialize`](serde::Serialize) and [`Deserialize`](serde::Deserialize), so that it can
//!   be [saved](crate::save) and restored. Constant fields are marked with `save::fixed`, vectors of constant length
//!   with `save::sized`. Large tables are a [`Table`](crate::save::Table), whose length is constant. These marks let a
//!   restore refuse the state of a different device.
//! - `new`: builds the state from a [`Shape`] and the parameters. If the device is unsuitable, it returns the reason
//!   and the remedy.
//! - [`Scheme`] for every [`Media`]: the decisions.
//!
//! Most schemes are a policy over an existing engine. For example, a [`Separation`](crate::region::log::Separation)
//! over a [`Log`](crate::region::log::Log) in [`OneRegion`](super::OneRegion) only decides which pages share blocks and
//! which block is collected. `examples/own-scheme` is such a scheme in a separate crate.
//!
//! # What a scheme may rely on
//!
//! Requests lie within the logical capacity. On a device with a write buffer a write is a run of consecutive sectors
//! that left the buffer together, not a request of the host; `bare-dies` has no buffer. `fill` is called before the
//! first request or never. The verbs of the media do not fail, because bad blocks are handled below the seam. The
//! device has the regions that [`SchemeSpec::regions`] asks for. In return the scheme programs each page once per
//! erase, and the pages of a block in order.
//!
//! # What a scheme must guarantee
//!
//! It uses no clock, no file and no randomness except [`Shape::seed`]: the same requests lead to the same operations.
//! It does not allocate once it is warm. The state may come from damaged bytes, so [`Scheme::check`] must find every
//! inconsistency by which serving could index out of range or loop for ever. `scheme::conformance`, behind the feature
//! `conformance` of this crate, tests these guarantees, except that of allocation. A replay checks none of them: simulated
//! media count every operation, also one that real flash refuses.
//!
//! # Registration
//!
//! [`add`](super::add) puts the scheme into the registry of a program. Then `compare`, `sweep` and all other commands
//! know it by its name. `bimetal_cli::Program` makes a program with `bimetal`'s commands, which can also serve the
//! scheme from a store.
//!
//! # The simplest scheme
//!
//! Each page write copies the whole block to an erased block:
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
//!     adapts: &[],
//!     version: 1,
//! };
//!
//! bimetal_core::parameters! {
//!     SPEC.name;
//!     /// No parameters.
//!     pub struct Parameters {}
//! }
//!
//! const REGION: RegionId = RegionId(0);
//!
//! #[derive(Debug, Serialize, Deserialize)]
//! struct Rewrite {
//!     #[serde(with = "bimetal_core::save::fixed")]
//!     geometry: Geometry,
//!     /// The physical block of each logical block, followed by the erased blocks.
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
//!         return Err(format!("it needs more than {logical_blocks} blocks; enlarge the region or lower the capacity"));
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

use serde::Serialize;

use super::ParameterSpec;
use crate::chip::Chip;
use crate::drive::Drive;
use crate::media::Media;
use crate::request::Request;
use crate::save::Save;
use crate::units::Geometry;

/// A flash management scheme over a medium. All of its state can be saved; [`restore`] reads it.
pub trait Scheme<M: Media>: Send + Save {
    /// Writes every mapping unit once, in order, bypassing all admission policies: the state in which measuring starts.
    /// The content is undefined. Called at most once, before any request.
    fn fill(&mut self, media: &mut M);

    /// Serves a host request. Its sectors lie within the logical capacity.
    fn serve(&mut self, media: &mut M, request: &Request);

    /// Announces requests that will be served soon, `near` before `far`, so that their map entries can be loaded into
    /// the processor's cache. Changes no state.
    fn prefetch(&self, _far: &Request, _near: &Request) {}

    /// The host is idle: the scheme may do background work worth about `budget_pages` page copies.
    fn idle(&mut self, _media: &mut M, _budget_pages: u32) {}

    /// Number of blocks that run in SLC mode permanently. They are the first blocks of the device's last region and
    /// share no wear with the other blocks.
    fn fixed_slc_blocks(&self) -> u32 {
        0
    }

    /// Adds the scheme's own figures: thresholds, hit rates, migrations, rejects, bytes of metadata.
    fn metrics(&self, metrics: &mut Metrics);

    /// Checks all invariants of the state.
    ///
    /// # Errors
    /// The first broken invariant.
    fn check(&self) -> Result<(), String>;
}

/// A region as a scheme sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionShape {
    /// The chip: times, endurance, modes.
    pub chip: Chip,
    /// Number of blocks, pages and dies.
    pub geometry: Geometry,
}

/// A device as a scheme sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Sectors visible to the host.
    pub logical_sectors: u64,
    /// The fast region first, the slow one last.
    pub regions: Vec<RegionShape>,
    /// The home disks, which together hold the logical sectors. Empty if all data are in flash.
    pub disks: Vec<Drive>,
    /// Seed for the pseudo-random choices of schemes that make any.
    pub seed: u64,
}

/// Which regions a scheme manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regions {
    /// One region, of any cell type.
    One,
    /// A fast region in front of a slow one.
    FastAndSlow,
    /// One region whose blocks can run with one bit per cell. The capacity beyond the usual spare area is the budget
    /// for SLC mode.
    DualMode,
    /// One region in front of disks, which are the home of all data.
    FlashOverDisk,
}

/// A figure by which a scheme adapts to the requests. Reports plot it over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Adaptation {
    /// Its name in [`Metrics`]. The scheme reports it at all times, with its default parameters at least.
    pub metric: &'static str,
    /// Title of its plot, with the symbol of the paper if there is one.
    pub title: &'static str,
    /// Its unit, or the things that it counts.
    pub unit: &'static str,
    /// What the scheme does with it, and what changes it, in a sentence.
    pub meaning: &'static str,
}

/// One line of the registry.
#[derive(Debug)]
pub struct SchemeSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// The paper or other source that defines it.
    pub source: &'static str,
    /// Regions that it requires of a device.
    pub regions: Regions,
    /// Its parameters.
    pub parameters: fn() -> Vec<ParameterSpec>,
    /// The figures by which it adapts to the requests. Empty if it does not adapt, or does not report them.
    pub adapts: &'static [Adaptation],
    /// Must change when the same requests lead to different operations, or when the form of the state changes. A device
    /// used with another version is refused.
    pub version: u32,
}

/// Named figures of a scheme, in the order in which the scheme adds them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    values: Vec<(&'static str, f64)>,
}

impl Metrics {
    /// Removes all figures and keeps the allocated memory.
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

    /// The figure with that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.iter().find_map(|(known, value)| (known == name).then_some(value))
    }
}
