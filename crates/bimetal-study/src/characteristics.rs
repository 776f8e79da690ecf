//! The profile of a trace as tables, identical in terminals and notebooks.

use bimetal_core::hit_rates::{HitRatePoint, HitRates};
use bimetal_core::profile::{HitClass, OpProfile, Profile, SizeClass};

use crate::listing::{Listing, owned};
use crate::number::{NOTHING, SIZES, TIMES, percent, significant, thousands, with_unit};

/// Figures of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// Explains the table; empty if its heads are enough.
    pub remark: String,
    /// The table. Without heads, it has labels and values.
    pub listing: Listing,
}

/// All figures of a profile. Sections without figures are left out.
pub fn sections(profile: &Profile) -> Vec<Section> {
    let section = |title, listing| Section { title, remark: String::new(), listing };
    let mut sections = vec![
        section("Requests", requests(profile)),
        section("Addresses", addresses(profile)),
        section("Sizes", sizes(&profile.sizes)),
        section("Sectors by how often they are hit", hits(profile)),
    ];
    sections.extend(profile.hit_rates.as_ref().map(|rates| {
        let remark = hit_rates_remark(rates);
        Section { title: "Hit rates by cache size", remark, listing: hit_rates(rates, profile.footprint.touched_bytes) }
    }));
    sections.push(section("Arrivals", arrivals(profile)));
    sections.retain(|section| !section.listing.rows.is_empty());
    sections
}

/// Labels and values.
fn pairs(rows: Vec<(&str, String)>) -> Listing {
    let rows = rows.into_iter().map(|(label, value)| vec![label.to_owned(), value]).collect();
    Listing { heads: Vec::new(), rows, text_columns: 2 }
}

/// A share, or its absence.
pub(crate) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), percent)
}

/// A number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    with_unit(SIZES, bytes as f64)
}

/// Requests by operation.
pub(crate) fn requests(profile: &Profile) -> Listing {
    let kinds = [("reads", &profile.reads), ("writes", &profile.writes), ("trims", &profile.trims)];
    let row = |(name, of): (&str, &OpProfile)| {
        let values =
            [thousands(of.requests), size(of.bytes), with_unit(SIZES, of.mean_bytes), share(of.sequential_share)];
        std::iter::once(name.to_owned()).chain(values).collect()
    };
    let rows = kinds.into_iter().filter(|(_, of)| of.requests > 0).map(row).collect();
    Listing { heads: owned(&["", "count", "bytes", "mean size", "sequential"]), rows, text_columns: 1 }
}

fn addresses(profile: &Profile) -> Listing {
    let footprint = &profile.footprint;
    let mut rows = vec![
        ("touched 4-KiB pages", size(footprint.touched_bytes)),
        ("of them read", size(footprint.read_bytes)),
        ("of them written", size(footprint.written_bytes)),
        ("of them read and written", size(footprint.both_bytes)),
        ("end of the last page", size(footprint.span_bytes)),
        ("requests aligned to 4 KiB", share(profile.aligned_share)),
        (
            "writes of a written sector",
            profile
                .update_ratio
                .map_or_else(|| NOTHING.to_owned(), |ratio| format!("{} on average", significant(ratio))),
        ),
    ];
    if let Some(hot) = &profile.hot_set {
        rows.push(("half of the page writes", format!("go to {}", size(hot.bytes_for_half))));
        rows.push(("90 % of the page writes", format!("go to {}", size(hot.bytes_for_90_percent))));
        let curve =
            hot.hottest.iter().map(|point| format!("{} %: {}", point.percent_of_pages, percent(point.share_of_writes)));
        rows.push(("share of the hottest pages", curve.collect::<Vec<_>>().join(", ")));
        rows.push(("writes of the hottest page", thousands(hot.writes_max)));
    }
    pairs(rows)
}

fn sizes(classes: &[SizeClass]) -> Listing {
    let used = |class: &&SizeClass| class.reads + class.writes > 0;
    let row = |class: &SizeClass| {
        let ratio = class.update_ratio.map_or_else(|| NOTHING.to_owned(), significant);
        vec![size(u64::from(class.sectors) * 512), thousands(class.reads), thousands(class.writes), ratio]
    };
    let heads = owned(&["from", "reads", "writes", "writes of a written sector"]);
    Listing { heads, rows: classes.iter().filter(used).map(row).collect(), text_columns: 0 }
}

fn hits(profile: &Profile) -> Listing {
    let sectors = |classes: &[HitClass], hits: u64| {
        let found = classes.iter().find(|class| class.hits == hits).map(|class| class.sectors);
        found.filter(|&sectors| sectors > 0).map_or_else(|| NOTHING.to_owned(), thousands)
    };
    let mut counts: Vec<u64> = profile.write_hits.iter().chain(&profile.read_hits).map(|class| class.hits).collect();
    counts.sort_unstable();
    counts.dedup();
    let row = |hits: u64| vec![thousands(hits), sectors(&profile.read_hits, hits), sectors(&profile.write_hits, hits)];
    let heads = owned(&["from", "sectors read", "sectors written"]);
    Listing { heads, rows: counts.into_iter().map(row).collect(), text_columns: 0 }
}

fn hit_rates_remark(rates: &HitRates) -> String {
    let source = if rates.sampling_rate < 1.0 {
        format!("estimated from {} of the pages", percent(rates.sampling_rate))
    } else {
        "exact".to_owned()
    };
    format!("LRU caches of all accessed 4-KiB pages, and of written pages only; reads look in both; {source}")
}

fn hit_rates(rates: &HitRates, touched_bytes: u64) -> Listing {
    let touched = touched_bytes as f64;
    let row = |point: &HitRatePoint| {
        let sizes = [size(point.cache_bytes), percent(point.cache_bytes as f64 / touched)];
        let rates = [point.reads, point.writes, point.all, point.reads_of_written, point.writes_of_written].map(share);
        sizes.into_iter().chain(rates).collect()
    };
    let heads = owned(&["size", "of all pages", "reads", "writes", "both", "written: reads", "writes"]);
    Listing { heads, rows: rates.points.iter().map(row).collect(), text_columns: 0 }
}

fn arrivals(profile: &Profile) -> Listing {
    let Some(arrivals) = &profile.arrivals else { return pairs(Vec::new()) };
    let time = |us: f64| with_unit(TIMES, us);
    let rate = arrivals.requests_per_s.map_or_else(|| NOTHING.to_owned(), significant);
    let bytes = arrivals.bytes_per_s.map_or_else(|| NOTHING.to_owned(), |rate| format!("{}/s", with_unit(SIZES, rate)));
    let rows = vec![
        ("duration", time(arrivals.duration_s * 1e6)),
        ("requests per second", rate),
        ("bytes per second", bytes),
        ("mean interval", time(arrivals.interval_mean_us)),
        ("median interval", time(arrivals.interval_p50_us)),
        ("99th percentile", time(arrivals.interval_p99_us)),
        ("longest interval", time(arrivals.interval_max_us)),
    ];
    pairs(rows)
}
