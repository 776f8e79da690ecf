//! The results of a trace on one or several schemes.

use bimetal_core::media::Cause;
use bimetal_core::profile::Profile;
use bimetal_core::report::{KeyFigures, OpFigures, Shown, WearFigures};

use super::page::Page;
use super::table::Table;
use super::times::{self, main_time};
use super::{configuration, over_time, workload};
use crate::compare::{Comparison, Entry, worn_names};
use crate::figure::{Axis, Described, Origin, Plot, PlotKind, Points, Series};
use crate::number::{behind, capital, labelled};
use crate::ranking::{Ranking, Sort};
use crate::scale::Scale;
use crate::verdict::Verdict;
use crate::{describe, headline, scale};

/// Number of time diagrams that are visible at once; the others are details.
const TIMES_SHOWN: usize = 2;
/// Width of a mark in pixels.
const MARK: usize = 10;

/// A page of a comparison, or of one scheme. `profile` is the profile of its trace, and `command` reproduces the page.
pub fn comparison(comparison: &Comparison, sort: Sort, profile: &Profile, command: &str) -> String {
    let ranking = Ranking::of(&comparison.results, sort);
    let arranged = ranking.arranged(&comparison.results);
    let entries = arranged.as_slice();
    let what = match entries {
        [entry] => entry.report.scheme.clone(),
        _ => format!("{} schemes", entries.len()),
    };
    let schemes = entries.iter().map(|entry| entry.report.scheme.clone()).collect();
    let mut page = Page::new(&format!("{what} on {}", comparison.trace.name), schemes);
    page.verdict(&Verdict::of(&comparison.results, &ranking).map_or_else(String::new, |verdict| verdict.whole()));
    page.list("warnings", &comparison.warnings);
    let table = Table::of_sheet(&headline::sheet(&comparison.results, &ranking));
    let remarks = headline::remarks(&comparison.results, &ranking);
    page.beside(&front(&comparison.results, &ranking), |page| {
        page.table(&table);
        page.list("facts", &remarks);
        page.paragraph("The replay:");
        page.list("facts", &replay_facts(comparison));
    });
    page.paragraph("The command that repeats it:");
    page.code(command);
    page.section(match entries.iter().any(|entry| entry.service_beside().is_some()) {
        true => "Service time and response",
        false => main_time(entries).title,
    });
    left_out(&mut page, entries);
    let times = times::plots(entries);
    let (first, others) = times.split_at(times.len().min(TIMES_SHOWN));
    page.plots(first);
    page.section("Where time goes: operations by cause");
    let operations = operations(entries);
    if operations.iter().all(Plot::is_empty) {
        page.paragraph("No page was read or programmed, and no block erased.");
    }
    page.plots(&operations);
    page.section("Where wear goes: erases, energy, cost, life");
    page.plots(&wear_and_cost(entries));
    if !others.is_empty() {
        page.folded_section("Percentiles of reads and writes");
        page.plots(others);
    }
    page.folded_section("Blocks by erase count");
    page.plots(&erase_counts(entries));
    over_time::sections(&mut page, entries);
    page.folded_section("The trace");
    workload::section(&mut page, profile);
    page.folded_section(if entries.len() == 1 { "The device" } else { "The devices" });
    configuration::section(&mut page, entries);
    page.finish()
}

/// The trace, and how it was replayed.
fn replay_facts(comparison: &Comparison) -> Vec<String> {
    let mut facts = vec![format!("trace: {}, {}", comparison.trace.name, comparison.trace.format)];
    facts.extend(describe::trace(&comparison.trace));
    facts.extend(describe::replay(comparison));
    if let [entry] = comparison.results.as_slice() {
        facts.push(describe::device(entry));
    }
    facts
}

/// Lives and mean times of all schemes. Each scheme on the front has its own series, and all others share one.
fn front(entries: &[Entry], ranking: &Ranking) -> Plot {
    let scale = Scale::of(entries);
    let time = main_time(entries);
    let point = |entry: &Entry| {
        let (mean_us, years) = (entry.mean_us()?, entry.report.key_figures.lifetime_years?);
        let (x, y) = (years / scale.life.1, mean_us / scale.time.1);
        Some(Described { x, y, size: MARK, label: entry.report.scheme.clone() })
    };
    let (on_front, others): (Vec<usize>, Vec<usize>) =
        (0..entries.len()).partition(|&place| ranking.is_on_front(place));
    let series = |name: &str, places: &[usize]| Series {
        name: name.to_owned(),
        origin: Origin::Measured,
        points: Points::Described(places.iter().filter_map(|&place| point(&entries[place])).collect()),
    };
    let mut shown: Vec<Series> =
        on_front.iter().map(|&place| series(&entries[place].report.scheme, &[place])).collect();
    shown.push(series(if on_front.is_empty() { "all" } else { "not on the front" }, &others));
    shown.retain(|series| !series.is_empty());
    // A single point has nothing to be compared with.
    if entries.len() < 2 {
        shown.clear();
    }
    Plot {
        title: format!("Life and mean {}: best at the lower right", time.name),
        kind: PlotKind::Front,
        x: Axis::logarithmic(format!("life ({})", scale.life.0)),
        y: Axis::logarithmic(format!("mean {} ({})", time.name, scale.time.0)),
        series: shown,
    }
}

/// A value of each scheme that has one.
fn of_schemes(name: impl Into<String>, entries: &[Entry], value: impl Fn(&Entry) -> Option<f64>) -> Series {
    let point = |entry: &Entry| value(entry).map(|value| (entry.report.scheme.clone(), value));
    Series::measured_by_name(name, entries.iter().filter_map(point).collect())
}

/// Names the schemes whose responses are not in the diagrams.
fn left_out(page: &mut Page, entries: &[Entry]) {
    let late = entries.iter().filter(|entry| entry.falls_behind());
    let late: Vec<String> =
        late.map(|entry| format!("`{}` by {}", entry.report.scheme, behind(entry.backlog_s))).collect();
    if !late.is_empty() {
        page.paragraph(&format!(
            "Overloaded, so without responses; these schemes end later than the trace: {}.",
            late.join(", ")
        ));
    }
}

/// Counts and times of operations by cause.
fn operations(entries: &[Entry]) -> Vec<Plot> {
    let rows = || entries.iter().flat_map(|entry| &entry.report.ops);
    // The same causes in all diagrams, so that each cause keeps its colour.
    let causes: Vec<Cause> =
        Cause::ALL.into_iter().filter(|cause| rows().any(|row| row.cause == cause.name())).collect();
    let stacked =
        |title: &str, label: &str, of: &dyn Fn(&Entry) -> bool, figure: &dyn Fn(&Entry, &OpFigures) -> f64| {
            let sum = |entry: &Entry, cause: Option<&Cause>| -> f64 {
                let own = entry.report.ops.iter().filter(|row| cause.is_none_or(|cause| cause.name() == row.cause));
                own.fold(0.0, |sum, row| sum + figure(entry, row))
            };
            let of_cause = |cause: &Cause| {
                of_schemes(cause.name().replace('_', " "), entries, |entry| of(entry).then(|| sum(entry, Some(cause))))
            };
            // A scheme without such operations has 0, unless none has any.
            let has_any = entries.iter().any(|entry| sum(entry, None) > 0.0);
            let series = if has_any { causes.iter().map(of_cause).collect() } else { Vec::new() };
            Plot::by_name(title, PlotKind::StackedBars, "scheme", Axis::linear(label), series)
        };
    let counted = |holds: bool, row: &OpFigures| if holds { row.count as f64 } else { 0.0 };
    vec![
        stacked("Flash pages read and programmed, by cause", "page operations", &|_| true, &|entry, row| {
            counted(!entry.is_disk(&row.region) && row.op != "erase", row)
        }),
        stacked("Blocks erased, by cause", "block erases", &|_| true, &|entry, row| {
            counted(!entry.is_disk(&row.region) && row.op == "erase", row)
        }),
        stacked("Accesses to the disk, by cause", "accesses", &|entry| !entry.disks.is_empty(), &|entry, row| {
            counted(entry.is_disk(&row.region), row)
        }),
        stacked("Time of all operations, by cause", "array, channel and disk time (s)", &|_| true, &|_, row| {
            row.time_us / 1e6
        }),
    ]
}

fn wear_and_cost(entries: &[Entry]) -> Vec<Plot> {
    let regions = worn_names(entries);
    let of_region = |region: &str, name: String, value: &dyn Fn(&WearFigures) -> f64| {
        of_schemes(name, entries, |entry| entry.report.wear_of(region).map(value))
    };
    let used = |region: &&str| of_region(region, (*region).to_owned(), &|wear| wear.used * 100.0);
    let erases = |region: &&str| {
        [
            of_region(region, format!("{region}, mean"), &|wear| wear.erases_mean),
            of_region(region, format!("{region}, most"), &|wear| f64::from(wear.erases_max)),
        ]
    };
    let mut plots = vec![
        Plot::by_name(
            "Share of life used up",
            PlotKind::Bars,
            "scheme",
            Axis::linear("life used, mean of all blocks (%)"),
            regions.iter().map(used).collect(),
        ),
        Plot::by_name(
            "Erases per block",
            PlotKind::Marks,
            "scheme",
            Axis::logarithmic("erases since the device was filled"),
            regions.iter().flat_map(erases).collect(),
        ),
    ];
    plots.extend(KeyFigures::ALL.iter().filter(|figure| figure.shown != Shown::Details).map(|figure| {
        let (unit, size) = scale::of_figure(entries, figure);
        let mut label = labelled(figure.title, unit);
        if figure.is_extrapolated() && entries.iter().any(Entry::is_extrapolated) {
            label += ", extrapolated";
        }
        let value = |entry: &Entry| (figure.of)(&entry.report.key_figures).map(|value| value / size);
        let series = vec![of_schemes(&label, entries, value)];
        Plot::by_name(capital(figure.title), PlotKind::Bars, "scheme", Axis::linear(label), series)
    }));
    plots
}

/// Distribution of erases over the blocks of each region. For one scheme: bars. For several: the share of blocks up to
/// each count.
fn erase_counts(entries: &[Entry]) -> Vec<Plot> {
    let count = Axis::linear("erases since the device was filled");
    let plot = |region: &&str| {
        let title = format!("Blocks of {region} by erase count");
        let worn = || entries.iter().filter_map(|entry| Some((&entry.report.scheme, entry.report.wear_of(region)?)));
        let label = if entries.len() == 1 { "blocks" } else { "blocks with at most this many erases (%)" };
        let points = |wear: &WearFigures| match entries {
            [_] => wear.erase_counts.iter().map(|bin| (middle(bin.from, bin.to), f64::from(bin.blocks))).collect(),
            _ => cumulative(wear),
        };
        let kind = if entries.len() == 1 { PlotKind::Bars } else { PlotKind::Lines };
        let series = worn().map(|(scheme, wear)| Series::measured(scheme, points(wear))).collect();
        Plot { title, kind, x: count.clone(), y: Axis::linear(label), series }
    };
    worn_names(entries).iter().map(plot).collect()
}

fn middle(from: u32, to: u32) -> f64 {
    (f64::from(from) + f64::from(to)) / 2.0
}

/// By erase count: the share of blocks, in percent, with at most that count.
fn cumulative(wear: &WearFigures) -> Vec<(f64, f64)> {
    let all = f64::from(wear.blocks.max(1));
    let mut blocks = 0;
    let upto = wear.erase_counts.iter().map(|bin| {
        blocks += bin.blocks;
        (f64::from(bin.to), f64::from(blocks) / all * 100.0)
    });
    // Below 0 erases there is nothing.
    let first = wear.erase_counts.first().filter(|bin| bin.from > 0).map(|bin| (f64::from(bin.from - 1), 0.0));
    first.into_iter().chain(upto).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{Sketch, entries};

    const A: Sketch = Sketch { scheme: "a", mean_us: 5.0, years: None, usd: 8.0, disk: false, growing: false };

    #[test]
    fn a_scheme_without_an_erase_has_a_bar_of_length_0_and_one_without_a_disk_has_none() {
        let mut some = entries(&[A, Sketch { scheme: "b", disk: true, ..A }]);
        some.iter_mut().for_each(|entry| entry.report.ops.retain(|row| row.op != "erase"));
        let none = operations(&some);
        let erase = OpFigures { op: "erase", count: 3, ..some[0].report.ops[0].clone() };
        some[0].report.ops.push(erase);
        let [pages, erases, accesses, _] = <[Plot; 4]>::try_from(operations(&some)).unwrap();
        assert!(none[1].is_empty());
        assert_eq!((pages.names(), erases.names()), (vec!["a", "b"], vec!["a", "b"]));
        assert_eq!(
            erases.values().map(|value| (value, value.is_sign_negative())).find(|value| value.0 == 0.0),
            Some((0.0, false))
        );
        assert!(accesses.names().iter().all(|name| *name == "b"));
    }
}
