//! The examples of section 4: results of the cost model for given hit curves.

use bimetal_core::chip;
use bimetal_core::model::cleaning::{CleaningCost, FlashCosts, VictimUtilisation};
use bimetal_core::model::opfcl::{CacheCost, CacheLoad, DiskCosts, Partition};
use bimetal_core::part::real::{pow, whole};

use super::super::Drawn;
use super::super::claim::Kind;
use super::super::finding::{Finding, lowest};
use super::super::lab::Lab;
use bimetal_study::StudyError;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

/// Hit rate of a cache that holds the most popular pages, if `pages` pages are requested by Zipf's law.
pub(crate) fn zipf_hits(exponent: f64, pages: usize) -> impl Fn(f64) -> f64 {
    let mut sums = vec![0.0];
    for rank in 1..=pages {
        sums.push(sums[rank - 1] + pow(rank as f64, -exponent));
    }
    move |cached| {
        let whole = usize::try_from(whole(cached)).map_or(pages, |whole| whole.min(pages));
        let next = sums[(whole + 1).min(pages)];
        (sums[whole] + (next - sums[whole]) * cached.fract()) / sums[pages]
    }
}

/// The model with the constants of table 2, for a flash of `flash_pages` pages.
fn model(flash_pages: u32) -> Option<CacheCost> {
    let flash = FlashCosts::of(&chip::find("opfcl-slc")?);
    let disk = DiskCosts { read_position_us: 4500.0, write_position_us: 4900.0, mb_per_s: 72.0 };
    Some(CacheCost {
        flash: CleaningCost::new(flash, VictimUtilisation::Fifo),
        disk_read_us: disk.read_us(4096),
        disk_write_us: disk.write_us(4096),
        flash_pages: f64::from(flash_pages),
    })
}

/// Utilisations in steps of 1 %.
fn utilisations() -> impl Iterator<Item = f64> {
    (1..100).map(|percent| f64::from(percent) / 100.0)
}

/// Fig. 3: a read cache.
pub(super) fn fig3(_: &Lab<'_>) -> Result<Drawn, StudyError> {
    const PAGES: u32 = 1000;
    let Some(model) = model(PAGES) else {
        return Ok(Drawn::default());
    };
    let hits = zipf_hits(1.2, PAGES as usize * 12 / 10);
    let hit = |utilisation: f64| hits(utilisation * f64::from(PAGES));
    let costs: Vec<_> =
        utilisations().map(|utilisation| (utilisation, model.read_us(utilisation, hit(utilisation)) / 1e3)).collect();
    let best = lowest(&costs).map_or(f64::NAN, |((utilisation, _), _)| utilisation);
    let line = |title: &str, y: &str, points| Plot {
        title: title.into(),
        kind: PlotKind::Lines,
        x: Axis::linear("utilisation of the flash"),
        y: Axis::linear(y),
        series: vec![Series::measured(title, points)],
    };
    Ok(Drawn {
        caption: "Reads by Zipf's law (exponent 1.2) over 120 % of the flash, the most popular pages cached; cost by equation 5."
            .into(),
        plots: vec![
            line("Hit rate", "hit rate", utilisations().map(|utilisation| (utilisation, hit(utilisation))).collect()),
            line("Cost of a read", "ms", costs),
        ],
        findings: vec![Finding::between("the best utilisation: 0.92", 0.89, 0.95, best).of_kind(Kind::Arithmetic).target("T9")],
    })
}

/// The load with the hit curves of Fig. 4, for a flash of `pages` pages.
fn fig4_load(pages: u32) -> CacheLoad<impl Fn(f64) -> f64, impl Fn(f64) -> f64> {
    CacheLoad {
        read_hits: zipf_hits(1.2, pages as usize * 12 / 10),
        write_hits: zipf_hits(1.4, pages as usize * 22 / 10),
        read_share_of_write_hits: 0.2,
        write_cache_share: 0.8,
    }
}

/// Fig. 4: a read and a write cache.
pub(super) fn fig4(_: &Lab<'_>) -> Result<Drawn, StudyError> {
    let best = |pages| model(pages).map(|model| model.optimum(&fig4_load(pages), 100, 100));
    let (Some(model), Some(found), Some(fine)) = (model(100), best(100), best(1000)) else {
        return Ok(Drawn::default());
    };
    let load = fig4_load(100);
    let series = [0.0, 0.25, 0.5, 0.75].map(|read_share| {
        let cost = |utilisation| (utilisation, model.access_us(utilisation, read_share, &load) / 1e3);
        Series::measured(format!("r = {read_share}"), utilisations().map(cost).collect())
    });
    let in_words = |best: Partition| format!("u = {}, r = {}", short(best.utilisation), short(best.read_share));
    // For a flash of 4 GB, in hundredths.
    let sizes = model.sizes(0.64, 0.25);
    let gb = |pages: f64| pages * 4.0 / 100.0;
    Ok(Drawn {
        caption: format!(
            "Reads by Zipf's law with exponent 1.2 over 120 %, writes with 1.4 over 220 % of the flash, cost by equation 6. The \
             curves are made of a hundred pages, one for each per cent; of a thousand, the popular ones take less of the \
             flash, and the best is {}.",
            in_words(fine)
        ),
        plots: vec![Plot {
            title: "Cost of an access".into(),
            kind: PlotKind::Lines,
            x: Axis::linear("utilisation of the flash"),
            y: Axis::linear("ms"),
            series: series.into(),
        }],
        findings: vec![
            Finding::between("the best utilisation: 0.64", 0.58, 0.7, found.utilisation)
                .of_kind(Kind::Arithmetic)
                .target("T9"),
            Finding::between("the best share for reads: 0.25", 0.17, 0.33, found.read_share)
                .of_kind(Kind::Arithmetic)
                .target("T9"),
            Finding::about("read cache of 4 GB at these (GB)", 0.64, 1e-6, gb(sizes.read))
                .of_kind(Kind::Arithmetic)
                .target("T9"),
            Finding::about("write cache (GB)", 1.92, 1e-6, gb(sizes.write)).of_kind(Kind::Arithmetic).target("T9"),
            Finding::about("over-provisioned (GB)", 1.44, 1e-6, gb(sizes.spare)).of_kind(Kind::Arithmetic).target("T9"),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_go_by_popularity() {
        let hits = zipf_hits(1.0, 2);
        assert_eq!([0.0, 1.0, 2.0, 3.0].map(&hits), [0.0, 2.0 / 3.0, 1.0, 1.0]);
        assert!((hits(0.5) - 1.0 / 3.0).abs() < 1e-12);
    }
}
