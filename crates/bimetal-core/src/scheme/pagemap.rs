//! `pagemap`: one region, page-mapped, greedy garbage collection. The plain modern baseline.
//!
//! The mapping unit is the flash page. A write that covers part of a page reads the old page and programs the merged one
//! (read-modify-write). Host writes go to the dies in turn; each die is collected by itself, in the foreground, when it
//! is down to `gc_free_blocks` erased blocks. Write amplification under uniform random writes follows from the spare
//! area alone; [`crate::model::write_amplification`] has the closed forms.

use super::{Metrics, Regions, Scheme, SchemeSpec, Shape};
use crate::media::{Cause, CellMode, Media, Part};
use crate::region::page_map::{PageMap, Run, Stream};
use crate::request::{Op, Request};
use crate::units::{BlockId, RegionId};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "pagemap",
    summary: "one region, page map, greedy garbage collection",
    source: "baseline; greedy cleaning as in Desnoyers, SYSTOR 2012",
    regions: Regions::One,
    parameters: Parameters::specs,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `pagemap`.
    pub struct Parameters {
        /// Erased blocks of a die at or below which it is collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// Whether idle time is used to collect up to twice `gc_free_blocks`, as far as the spare area allows.
        pub idle_gc: bool = false;
    }
}

const REGION: RegionId = RegionId(0);

/// The state of `pagemap`.
#[derive(Debug)]
pub struct PageMapped {
    pages: PageMap,
    parameters: Parameters,
    /// Erased blocks of a die up to which idle time is used.
    idle_blocks: u32,
    collected_blocks: u64,
    copied_pages: u64,
}

impl PageMapped {
    /// A scheme over the device's last region.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let region = shape.regions.last().ok_or("it has no region")?;
        let page_sectors = region.geometry.page_sectors();
        let logical_pages = shape.logical_sectors.div_ceil(u64::from(page_sectors));
        let spare = u64::from(region.geometry.blocks / region.geometry.dies)
            .saturating_sub(logical_pages.div_ceil(u64::from(region.geometry.pages_per_block * region.geometry.dies)));
        if u64::from(parameters.gc_free_blocks) + 2 > spare {
            return Err(format!(
                "keeping {} blocks erased takes {} spare blocks per die and there are {spare}; enlarge the spare area \
                 or lower gc_free_blocks",
                parameters.gc_free_blocks,
                parameters.gc_free_blocks + 2
            ));
        }
        let pages = PageMap::new(region.geometry, logical_pages)?;
        // Two blocks of a die are open. Were all others of its spare area to be erased too, each block would be copied
        // for the sake of its last invalid page, again and again.
        let attainable = u32::try_from(spare - 2).unwrap_or(u32::MAX);
        let idle_blocks = attainable.min(2 * parameters.gc_free_blocks);
        Ok(Self { pages, parameters, idle_blocks, collected_blocks: 0, copied_pages: 0 })
    }

    /// Makes room on a die for one more host page.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M, die: u32) {
        if !self.pages.needs_block(die, Stream::Host) {
            return;
        }
        while self.pages.free_blocks(die) <= self.parameters.gc_free_blocks {
            let Some(victim) = self.pages.victim(die) else { return };
            self.collect(media, die, victim, Cause::Gc);
        }
    }

    /// Moves the valid pages of a block away and erases it.
    fn collect<M: Media>(&mut self, media: &mut M, die: u32, victim: BlockId, cause: Cause) {
        self.pages.unseal(victim);
        let mut run = Run::default();
        let mut page = 0;
        while let Some((to, next)) = self.pages.relocate(victim, page, die, &mut run) {
            media.copy_run(REGION, run.pages(), to, cause);
            self.copied_pages += run.pages().len() as u64;
            page = next;
        }
        media.erase(REGION, victim, CellMode::Native, cause);
        self.pages.release(die, victim);
        self.collected_blocks += 1;
    }

    #[inline]
    fn write_page<M: Media>(&mut self, media: &mut M, logical: u32, parts: &[Part<M::Data>]) {
        self.pages.invalidate(logical);
        let die = self.pages.next_die();
        self.make_room(media, die);
        let ppa = self.pages.place(logical, die, Stream::Host);
        media.program(REGION, ppa, parts, Cause::Host);
    }

    /// Writes part of a page: the rest comes from the old copy, if there is one.
    fn write_partial<M: Media>(&mut self, media: &mut M, logical: u32, host: Part<M::Data>) {
        let Some(old) = self.pages.lookup(logical) else {
            self.write_page(media, logical, &[host]);
            return;
        };
        let data = media.read(REGION, old, Cause::Host);
        let end = host.to + host.sectors;
        let before = Part { data, from: 0, to: 0, sectors: host.to };
        let after = Part { data, from: end, to: end, sectors: self.pages.geometry().page_sectors() - end };
        self.write_page(media, logical, &[before, host, after]);
    }
}

impl<M: Media> Scheme<M> for PageMapped {
    fn fill(&mut self, media: &mut M) {
        for logical in 0..self.pages.logical_pages() {
            self.write_page(media, logical, &[]);
        }
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.pages.geometry();
        let page_sectors = geometry.page_sectors();
        match request.op {
            Op::Write => {
                let data = media.host();
                geometry.for_each_page(request, |logical, offset, sectors, at| {
                    let host = Part { data, from: at, to: offset, sectors };
                    if sectors == page_sectors {
                        self.write_page(media, logical, &[host]);
                    } else {
                        self.write_partial(media, logical, host);
                    }
                });
            }
            Op::Read => {
                geometry.for_each_page(request, |logical, offset, sectors, at| match self.pages.lookup(logical) {
                    Some(ppa) => {
                        let data = media.read(REGION, ppa, Cause::Host);
                        media.deliver(data, offset, at, sectors);
                    }
                    None => media.deliver_zeros(at, sectors),
                })
            }
            // Part of a page cannot be given back; its sectors keep their content.
            Op::Trim => geometry.for_each_page(request, |logical, _, sectors, _| {
                if sectors == page_sectors {
                    self.pages.invalidate(logical);
                }
            }),
        }
    }

    #[inline]
    fn prefetch(&self, far: &Request, near: &Request) {
        let geometry = self.pages.geometry();
        self.pages.prefetch(geometry.logical_page(far.sector).0, geometry.logical_page(near.sector).0);
    }

    fn idle(&mut self, media: &mut M, budget_pages: u32) {
        if !self.parameters.idle_gc {
            return;
        }
        let budget = self.copied_pages + u64::from(budget_pages);
        for die in 0..self.pages.geometry().dies {
            while self.pages.free_blocks(die) < self.idle_blocks && self.copied_pages < budget {
                let Some(victim) = self.pages.victim(die) else { break };
                self.collect(media, die, victim, Cause::Gc);
            }
        }
    }

    fn metrics(&self, metrics: &mut Metrics) {
        metrics.count("gc_blocks", self.collected_blocks);
        metrics.count("gc_copied_pages", self.copied_pages);
        metrics.count("metadata_bytes", u64::from(self.pages.logical_pages()) * 4);
    }

    fn check(&self) -> Result<(), String> {
        self.pages.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Faults, FlashOp, SimMedia, SimRegion, Simulation};
    use crate::scheme::RegionShape;
    use crate::units::Geometry;

    /// 32 logical pages of 4 KiB on 8 blocks of 8.
    fn device() -> (SimMedia, PageMapped) {
        let chip = chip::find("chang-mlc").unwrap();
        let geometry = Geometry::new(4096, 8, 8, 1).unwrap();
        let shape =
            Shape { logical_sectors: 32 * 8, regions: vec![RegionShape { chip: chip.clone(), geometry }], seed: 1 };
        let scheme = PageMapped::new(&shape, Parameters::default()).unwrap();
        (SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1), scheme)
    }

    /// Host reads and programs that a request takes.
    fn cost(media: &mut SimMedia, scheme: &mut PageMapped, op: Op, sector: u64, sectors: u32) -> (u64, u64) {
        media.reset_counts();
        let request = Request { arrival_ns: 0, sector, sectors, op };
        media.begin(&request, 0);
        scheme.serve(media, &request);
        let ledger = media.ledger();
        (ledger.total(FlashOp::Read, Cause::Host), ledger.total(FlashOp::Program, Cause::Host))
    }

    #[test]
    fn part_of_a_page_is_read_modified_and_written() {
        let (mut media, mut scheme) = device();
        assert_eq!(cost(&mut media, &mut scheme, Op::Write, 3, 2), (0, 1), "there is nothing to read yet");
        assert_eq!(cost(&mut media, &mut scheme, Op::Write, 3, 2), (1, 1));
        assert_eq!(cost(&mut media, &mut scheme, Op::Write, 0, 8), (0, 1));
        // Part of page 0, all of page 1, part of page 2, which was never written.
        assert_eq!(cost(&mut media, &mut scheme, Op::Write, 6, 11), (1, 3));
        assert_eq!(cost(&mut media, &mut scheme, Op::Read, 6, 11), (3, 0));
    }

    #[test]
    fn a_trim_gives_back_whole_pages() {
        let (mut media, mut scheme) = device();
        cost(&mut media, &mut scheme, Op::Write, 0, 24);
        cost(&mut media, &mut scheme, Op::Trim, 4, 16);
        assert_eq!(cost(&mut media, &mut scheme, Op::Read, 0, 24), (2, 0), "page 1 is gone, pages 0 and 2 are not");
        scheme.pages.check().unwrap();
    }

    #[test]
    fn too_little_spare_area_is_refused_with_what_it_takes() {
        let chip = chip::find("chang-mlc").unwrap();
        let geometry = Geometry::new(4096, 8, 8, 1).unwrap();
        let shape = Shape { logical_sectors: 48 * 8, regions: vec![RegionShape { chip, geometry }], seed: 1 };
        let error = PageMapped::new(&shape, Parameters::default()).unwrap_err();
        assert!(error.contains("spare"), "{error}");
    }
}
