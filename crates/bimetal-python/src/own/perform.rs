//! Performs recorded operations on real media.

use bimetal_core::media::{Cause, Media, PageMerge};
use bimetal_core::units::{Ppa, Span};

use super::layout::Layout;
use super::recorder::Step;

/// A part of the page being written, in sectors of the page.
#[derive(Clone, Copy)]
struct Source<D> {
    data: D,
    /// First sector of the data for this part.
    from: u32,
    /// First sector within the page.
    first: u32,
    sectors: u32,
}

/// Performs the steps of one call; `span` is the part of the host's request, if it is one.
pub fn perform<M: Media>(media: &mut M, layout: &Layout, steps: &[Step], span: Option<Span>, run: &mut Vec<Ppa>) {
    // The newest first.
    let mut sources: Vec<Source<M::Data>> = Vec::new();
    if let Some(Span { first, sectors, at, .. }) = span {
        sources.push(Source { data: media.host(), from: at, first, sectors });
    }
    let mut at = 0;
    while let Some(&step) = steps.get(at) {
        at += 1;
        match step {
            Step::Merge { from } => merge(media, layout, from, &mut sources),
            Step::Program { to, stream } => {
                let (tier, first) = layout.flash(to);
                for piece in 0..tier.pieces {
                    let parts = parts(&sources, piece * tier.geometry.page_sectors(), tier.geometry.page_sectors());
                    media.program(tier.region, Ppa(first.0 + piece), parts.parts(), stream, Cause::Host);
                }
            }
            Step::Pad { to, stream, cause } => {
                let (tier, first) = layout.flash(to);
                (0..tier.pieces).for_each(|piece| media.program(tier.region, Ppa(first.0 + piece), &[], stream, cause));
            }
            Step::Copy { .. } => at += copy(media, layout, &steps[at - 1..], run) - 1,
            Step::Read { from, cause } => {
                let span = span.filter(|_| cause == Cause::Host);
                read(media, layout, from, cause, span);
            }
            Step::Erase { block, mode, cause } => {
                let tier = layout.tier(block);
                media.erase(tier.region, tier.block(block), mode, cause);
            }
        }
    }
}

/// Reads the remaining part of a page that the host writes in part.
fn merge<M: Media>(media: &mut M, layout: &Layout, from: u32, sources: &mut Vec<Source<M::Data>>) {
    let (tier, page) = layout.flash(from);
    let sectors = tier.geometry.page_sectors();
    let host = sources.first().map_or(0..0, |host| host.first..host.first + host.sectors);
    for piece in 0..tier.pieces {
        let first = piece * sectors;
        if first < host.start || first + sectors > host.end {
            let data = media.read(tier.region, Ppa(page.0 + piece), Cause::Host);
            sources.push(Source { data, from: 0, first, sectors });
        }
    }
}

/// The parts of a flash page, which begins at a sector of the page.
fn parts<D: Copy>(sources: &[Source<D>], begin: u32, page_sectors: u32) -> PageMerge<D> {
    let mut merge = PageMerge::default();
    for source in sources {
        let first = source.first.max(begin);
        let end = (source.first + source.sectors).min(begin + page_sectors);
        if first < end {
            merge.fill(source.data, source.from + (first - source.first), first - begin, end - first);
        }
    }
    merge
}

/// Reads a page. For a read of the host, reads only the requested flash pages.
fn read<M: Media>(media: &mut M, layout: &Layout, from: u32, cause: Cause, span: Option<Span>) {
    let (tier, page) = layout.flash(from);
    let sectors = tier.geometry.page_sectors();
    for piece in 0..tier.pieces {
        let begin = piece * sectors;
        let Some(Span { first, sectors: asked, at, .. }) = span else {
            media.read(tier.region, Ppa(page.0 + piece), cause);
            continue;
        };
        let (start, end) = (first.max(begin), (first + asked).min(begin + sectors));
        if start < end {
            let data = media.read(tier.region, Ppa(page.0 + piece), cause);
            media.deliver(data, start - begin, at + (start - first), end - start);
        }
    }
}

/// Copies consecutive pages to a block, as one operation if they stay in their region. Returns the number of steps.
fn copy<M: Media>(media: &mut M, layout: &Layout, steps: &[Step], run: &mut Vec<Ppa>) -> usize {
    let Some(&Step::Copy { from, to, stream, cause }) = steps.first() else { return 1 };
    let ((source, _), (target, first)) = (layout.flash(from), layout.flash(to));
    if source.region != target.region {
        copy_across(media, layout, steps[0]);
        return 1;
    }
    run.clear();
    let mut count = 0;
    for step in steps {
        let &Step::Copy { from: next, to: place, stream: its_stream, cause: its_cause } = step else { break };
        let follows = layout.block_of(place) == layout.block_of(to) && (its_stream, its_cause) == (stream, cause);
        let (tier, page) = layout.flash(next);
        if !follows || tier.region != target.region {
            break;
        }
        run.extend((0..tier.pieces).map(|piece| Ppa(page.0 + piece)));
        count += 1;
    }
    media.copy_run(target.region, run, first, stream, cause);
    count
}

/// Copies a page to another region, through the controller.
fn copy_across<M: Media>(media: &mut M, layout: &Layout, step: Step) {
    let Step::Copy { from, to, stream, cause } = step else { return };
    let ((source, page), (target, first)) = (layout.flash(from), layout.flash(to));
    let sectors = source.geometry.page_sectors();
    let mut read: Vec<Source<M::Data>> = Vec::with_capacity(source.pieces as usize);
    for piece in 0..source.pieces {
        let data = media.read(source.region, Ppa(page.0 + piece), cause);
        read.push(Source { data, from: 0, first: piece * sectors, sectors });
    }
    for piece in 0..target.pieces {
        let page_sectors = target.geometry.page_sectors();
        let parts = parts(&read, piece * page_sectors, page_sectors);
        media.program(target.region, Ppa(first.0 + piece), parts.parts(), stream, cause);
    }
}
