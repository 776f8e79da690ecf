//! A device of one region: the host's side of `pagemap` and `unitmap`.
//!
//! The mapping unit is the flash page. A write that covers part of a page reads the old page and programs the merged
//! one (read-modify-write). A part of a page cannot be trimmed: its sectors keep their content.

use serde::{Deserialize, Serialize};

use crate::media::{Cause, Media, Part};
use crate::region::Space;
use crate::request::{Op, Request};
use crate::scheme::{Metrics, Scheme, Shape};
use crate::units::Span;

/// The scheme's state, which is the state of its region.
#[derive(Debug, Serialize, Deserialize)]
pub struct OneRegion<S>(pub S);

/// Logical pages of a one-region device.
///
/// # Errors
/// A device without a region.
pub fn logical_pages(shape: &Shape) -> Result<u64, String> {
    let region = shape.regions.last().ok_or("it has no region")?;
    Ok(shape.logical_sectors.div_ceil(u64::from(region.geometry.page_sectors())))
}

impl<S: Space> OneRegion<S> {
    /// Writes part of a page. The rest comes from the old copy, if there is one.
    fn write_partial<M: Media>(&mut self, media: &mut M, logical: u32, host: Part<M::Data>) {
        let Some(old) = self.0.lookup(logical) else {
            self.0.write(media, logical, &[host], Cause::Host);
            return;
        };
        let data = media.read(self.0.region(), old, Cause::Host);
        let end = host.to + host.sectors;
        let before = Part { data, from: 0, to: 0, sectors: host.to };
        let after = Part { data, from: end, to: end, sectors: self.0.geometry().page_sectors() - end };
        self.0.write(media, logical, &[before, host, after], Cause::Host);
    }
}

impl<M: Media, S: Space> Scheme<M> for OneRegion<S> {
    fn fill(&mut self, media: &mut M) {
        for logical in 0..self.0.logical_pages() {
            self.0.write(media, logical, &[], Cause::Host);
        }
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.0.geometry();
        let page_sectors = geometry.page_sectors();
        match request.op {
            Op::Write => {
                let data = media.host();
                self.0.begin(request);
                for Span { page, first, sectors, at } in geometry.spans(request) {
                    let host = Part { data, from: at, to: first, sectors };
                    if sectors == page_sectors {
                        self.0.write(media, page, &[host], Cause::Host);
                    } else {
                        self.write_partial(media, page, host);
                    }
                }
                self.0.end(media);
            }
            Op::Read => {
                for Span { page, first, sectors, at } in geometry.spans(request) {
                    match self.0.lookup(page) {
                        Some(ppa) => {
                            let data = media.read(self.0.region(), ppa, Cause::Host);
                            media.deliver(data, first, at, sectors);
                        }
                        None => media.deliver_zeros(at, sectors),
                    }
                }
            }
            Op::Trim => {
                let whole = geometry.spans(request).filter(|span| span.sectors == page_sectors);
                whole.for_each(|span| _ = self.0.invalidate(span.page));
            }
        }
    }

    #[inline]
    fn prefetch(&self, far: &Request, near: &Request) {
        let geometry = self.0.geometry();
        self.0.prefetch_entry(geometry.logical_page(far.sector).0);
        self.0.prefetch_page(geometry.logical_page(near.sector).0);
    }

    fn idle(&mut self, media: &mut M, budget_pages: u32) {
        self.0.idle(media, budget_pages);
    }

    fn metrics(&self, metrics: &mut Metrics) {
        metrics.count("gc_blocks", self.0.erases());
        metrics.count("gc_copied_pages", self.0.copied_pages());
        metrics.count("metadata_bytes", self.0.metadata_bytes());
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}
