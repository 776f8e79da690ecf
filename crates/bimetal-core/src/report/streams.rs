//! Programs by stream, and the write amplification that results.

use serde::Serialize;

use super::{RegionDescription, finite, row_name};
use crate::ledger::{Counts, Row};
use crate::media::{Cause, Stream};

/// Programs of one stream in one region and cell mode. NVMe's Flexible Data Placement calls a stream a reclaim unit
/// handle.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StreamFigures {
    /// Region; `:slc` behind its name marks blocks in SLC mode.
    pub region: String,
    /// Number of the stream, from 0.
    pub stream: u32,
    /// Pages that came from outside the region: from the host, or from another region.
    pub written_pages: u64,
    /// Pages that were copied within the region: by garbage collection, folding or wear levelling.
    pub copied_pages: u64,
    /// Sum of the two page counts divided by `written_pages`; `None` if no page came from outside, as in a stream for
    /// copies.
    pub write_amplification: Option<f64>,
}

/// Streams with programs other than metadata.
pub(super) fn figures(regions: &[RegionDescription<'_>], rows: &[Row]) -> Vec<StreamFigures> {
    let of_row = |row| (0..Stream::MAX).filter_map(move |number| figure(regions, row, number));
    rows.iter().flat_map(of_row).collect()
}

fn figure(regions: &[RegionDescription<'_>], row: &Row, number: usize) -> Option<StreamFigures> {
    let programs = |cause: &Cause| Counts::of_stream(&row.counts, Stream::new(number), *cause);
    let written_pages: u64 = [Cause::Host, Cause::MigrateUp, Cause::MigrateDown].iter().map(programs).sum();
    let copied_pages: u64 = [Cause::Gc, Cause::Fold, Cause::WearLevel].iter().map(programs).sum();
    (written_pages + copied_pages > 0).then(|| StreamFigures {
        region: row_name(regions, row),
        stream: number as u32,
        written_pages,
        copied_pages,
        write_amplification: finite((written_pages + copied_pages) as f64 / written_pages as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Faults, Media, SimMedia, SimRegion, Simulation};
    use crate::units::{BlockId, Geometry, RegionId};

    #[test]
    fn programs_are_counted_by_stream_however_they_come_about() {
        let chip = chip::find("chang-mlc").unwrap();
        let geometry = Geometry::new(4096, 8, 8, 1).unwrap();
        let region = SimRegion { chip: chip.clone(), geometry, channels: 1, faults: Faults::default() };
        let mut media = SimMedia::new(&[region], 1);
        let page = |block, page| geometry.ppa(BlockId(block), page);
        let region = RegionId(0);
        media.program(region, page(0, 0), &[], Stream::new(3), Cause::Host);
        media.program(region, page(0, 1), &[], Stream::new(3), Cause::MigrateDown);
        media.program(region, page(0, 2), &[], Stream::new(3), Cause::Meta);
        media.copy(region, page(0, 0), page(0, 3), Stream::new(3), Cause::Gc);
        media.copy_run(region, &[page(0, 0), page(0, 1)], page(1, 0), Stream::new(15), Cause::Gc);
        media.begin_background();
        media.copy_run(region, &[page(0, 0), page(0, 1)], page(1, 2), Stream::new(15), Cause::WearLevel);
        let described = [RegionDescription { name: "slow", chip: &chip, geometry }];
        let row = |stream, written_pages, copied_pages, write_amplification| StreamFigures {
            region: "slow".into(),
            stream,
            written_pages,
            copied_pages,
            write_amplification,
        };
        let rows = [row(3, 2, 1, Some(1.5)), row(15, 0, 4, None)];
        assert_eq!(figures(&described, &media.ledger().rows), rows);
        media.reset_counts();
        assert_eq!(figures(&described, &media.ledger().rows), []);
    }
}
