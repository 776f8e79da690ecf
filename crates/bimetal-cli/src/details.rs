//! All counts side by side: a column for each scheme.

use std::collections::BTreeSet;

use bimetal_core::media::{Cause, DiskOp, FlashOp};
use bimetal_core::report::{KeyFigures, OpFigures, Report, ResponseFigures, StreamFigures, WearFigures};
use bimetal_study::compare::{Entry, Relative, worn_names};
use bimetal_study::{headline, scale};

use crate::number::{self, NOTHING, RATES, SIZES, TIMES, common_unit, percent, significant, thousands, with_unit};
use crate::table::{Grid, width};

/// The table.
pub fn text(entries: &[Entry]) -> String {
    let mut grid = Grid::new(entries.iter().map(|entry| entry.report.scheme.clone()).collect());
    devices(&mut grid, entries);
    times(&mut grid, entries);
    wear_and_cost(&mut grid, entries);
    operations(&mut grid, entries);
    streams(&mut grid, entries);
    controllers(&mut grid, entries);
    grid.section("Simulation");
    let speed = |entry: &Entry| with_unit(RATES, entry.speed.requests_per_s);
    grid.row("requests per second", entries.iter().map(speed).collect());
    grid.render(width())
}

fn controllers(grid: &mut Grid, entries: &[Entry]) {
    let Some(longest) = entries.iter().map(|entry| &entry.report.controller.0).max_by_key(|figures| figures.len())
    else {
        return;
    };
    if longest.is_empty() {
        return;
    }
    grid.section("Controller");
    for (name, _) in longest {
        let value = |entry: &Entry| {
            let figure = entry.report.controller.0.iter().find(|(known, _)| known == name);
            figure.and_then(|(_, value)| *value).map_or_else(|| NOTHING.to_owned(), number::plain)
        };
        grid.row(name.replace('_', " "), entries.iter().map(value).collect());
    }
}

/// Names of all regions, those of the devices with the most regions first.
fn region_names(entries: &[Entry]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    // Such a device determines the order of its regions.
    let mut ordered: Vec<&Entry> = entries.iter().collect();
    ordered.sort_by_key(|entry| std::cmp::Reverse(entry.regions.len()));
    for name in ordered.iter().flat_map(|entry| entry.regions.iter().map(|region| region.name.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Names of all disks.
fn disk_names(entries: &[Entry]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in entries.iter().flat_map(|entry| entry.disks.iter().map(|disk| disk.name.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn devices(grid: &mut Grid, entries: &[Entry]) {
    grid.section("Device");
    for name in region_names(entries) {
        let capacity = |entry: &Entry| {
            let region = entry.regions.iter().find(|region| region.name == name);
            region.map_or_else(|| NOTHING.to_owned(), |region| with_unit(SIZES, region.capacity_bytes as f64))
        };
        grid.row(format!("{name}, raw"), entries.iter().map(capacity).collect());
    }
    for name in disk_names(entries) {
        let capacity = |entry: &Entry| {
            let disk = entry.disks.iter().find(|disk| disk.name == name);
            disk.map_or_else(|| NOTHING.to_owned(), |disk| with_unit(SIZES, disk.capacity_bytes as f64))
        };
        grid.row(format!("{name}, used"), entries.iter().map(capacity).collect());
    }
    let spare = |entry: &Entry| if entry.disks.is_empty() { percent(entry.spare) } else { NOTHING.to_owned() };
    grid.row("spare area", entries.iter().map(spare).collect());
}

/// A row of figures that share a unit, named in the label.
fn scaled(
    grid: &mut Grid,
    label: &str,
    units: &'static [(&'static str, f64)],
    entries: &[Entry],
    value: impl Fn(&Report) -> Option<f64>,
) {
    let values: Vec<_> = entries.iter().map(|entry| value(&entry.report)).collect();
    if values.iter().all(Option::is_none) {
        return;
    }
    let (unit, size) = common_unit(units, values.iter().copied().flatten(), 1.0);
    let shown = |value: Option<f64>| value.map_or_else(nothing, |value| significant(value / size));
    grid.row(format!("{label} ({unit})"), values.into_iter().map(shown).collect());
}

/// Times of a replay: of all requests, of reads and of writes. `None` if the device falls behind or there was no such
/// replay.
type Times<'a> = Option<[&'a ResponseFigures; 3]>;

fn service(entry: &Entry) -> Times<'_> {
    Some([entry.service_beside()?, entry.service_read_us.as_ref()?, entry.service_write_us.as_ref()?])
}

fn main_times(entry: &Entry) -> Times<'_> {
    let report = &entry.report;
    (!entry.falls_behind()).then_some([&report.response_us, &report.read_us, &report.write_us])
}

fn times(grid: &mut Grid, entries: &[Entry]) {
    if entries.iter().any(|entry| entry.service_beside().is_some()) {
        times_of(grid, entries, "Service time", service);
    }
    let name = entries.first().map(|entry| headline::time_name(&entry.arrivals));
    times_of(grid, entries, if name == Some("service") { "Service time" } else { "Response" }, main_times);
    if entries.iter().any(Entry::falls_behind) {
        let late = |entry: &Entry| {
            if entry.falls_behind() { number::behind(entry.backlog_s) } else { NOTHING.to_owned() }
        };
        grid.row("falls behind by", entries.iter().map(late).collect());
    }
    beside_the_first(grid, "speed-up over", entries, |relative| relative.response_speedup);
    let busiest =
        |entry: &Entry| format!("{} {}", entry.report.load.bottleneck, percent(entry.report.load.utilisation));
    grid.row("busiest", entries.iter().map(busiest).collect());
}

/// Rows of times in one unit.
fn times_of(grid: &mut Grid, entries: &[Entry], title: &str, of: fn(&Entry) -> Times<'_>) {
    let all = || entries.iter().filter_map(of);
    let (unit, us) = common_unit(TIMES, all().map(|[all, ..]| all.mean), 1.0);
    grid.section(&format!("{title} ({unit})"));
    let shown = |kind: usize| ResponseFigures::ALL.iter().filter(move |figure| kind == 0 || figure.name == "mean");
    let rows = ["", " of reads", " of writes"].into_iter().enumerate();
    let rows =
        rows.flat_map(|(kind, of)| shown(kind).map(move |figure| (format!("{}{of}", figure.title), kind, figure.of)));
    for (label, kind, value) in rows {
        let served = |kinds: [&ResponseFigures; 3]| if kinds[kind].count > 0 { value(kinds[kind]) } else { None };
        let values: Vec<Option<f64>> = entries.iter().map(|entry| of(entry).and_then(served)).collect();
        if values.iter().any(Option::is_some) {
            let shown = |value: Option<f64>| value.map_or_else(nothing, |value| significant(value / us));
            grid.row(label, values.into_iter().map(shown).collect());
        }
    }
}

fn nothing() -> String {
    NOTHING.to_owned()
}

/// A ratio of every scheme to the first, which is 1.
fn beside_the_first(grid: &mut Grid, label: &str, entries: &[Entry], ratio: impl Fn(&Relative) -> Option<f64>) {
    let Some(first) = entries.iter().find_map(|entry| entry.relative.as_ref()).map(|relative| &relative.to) else {
        return;
    };
    let shown = |entry: &Entry| {
        let value = entry.relative.as_ref().map_or(Some(1.0), &ratio);
        value.map_or_else(|| NOTHING.to_owned(), |value| format!("{} x", headline::speed_up(value)))
    };
    grid.row(format!("{label} {first}"), entries.iter().map(shown).collect());
}

fn wear_and_cost(grid: &mut Grid, entries: &[Entry]) {
    grid.section("Wear, energy and cost");
    for figure in KeyFigures::ALL {
        if entries.iter().any(|entry| (figure.of)(&entry.report.key_figures).is_some()) {
            let (unit, size) = scale::of_figure(entries, figure);
            let shown = entries.iter().map(|entry| headline::shown(entry, figure, size));
            grid.row(number::labelled(figure.title, unit), shown.collect());
        }
    }
    worn_regions(grid, entries);
    if entries.iter().any(|entry| entry.block_wearing.is_some()) {
        let ratio = |entry: &Entry| entry.block_wearing.map_or_else(|| NOTHING.to_owned(), significant);
        grid.row("cycles, fast / slow region", entries.iter().map(ratio).collect());
    }
    if entries.iter().any(|entry| entry.phi.is_some()) {
        let ratio = |entry: &Entry| entry.phi.map_or_else(|| NOTHING.to_owned(), significant);
        grid.row("life used, more / less worn region", entries.iter().map(ratio).collect());
    }
    beside_the_first(grid, "energy relative to", entries, |relative| relative.energy);
    beside_the_first(grid, "cost relative to", entries, |relative| relative.cost);
}

/// Erases since the device was filled. Blocks of a region that stay in one mode have rows of their own.
fn worn_regions(grid: &mut Grid, entries: &[Entry]) {
    for name in worn_names(entries) {
        let mut add = |label: String, figure: fn(&WearFigures) -> String| {
            let shown = |entry: &Entry| entry.report.wear_of(name).map_or_else(nothing, figure);
            grid.row(label, entries.iter().map(shown).collect());
        };
        add(format!("erases of {name}"), |wear| thousands(wear.erases_total));
        add(format!("cycles of {name}, mean / most"), |wear| {
            format!("{} / {}", significant(wear.erases_mean), wear.erases_max)
        });
    }
}

/// Host writes and copies by stream, for schemes with several streams in a region.
fn streams(grid: &mut Grid, entries: &[Entry]) {
    let all = || entries.iter().flat_map(|entry| &entry.report.streams);
    let names: BTreeSet<(&str, u32)> = all().map(|row| (row.region.as_str(), row.stream)).collect();
    if names.iter().all(|&(_, stream)| stream == 0) {
        return;
    }
    grid.section("Page programs by stream");
    for (region, stream) in names {
        let mut add = |what: &str, figure: fn(&StreamFigures) -> Option<String>| {
            let of = |entry: &Entry| {
                let row = entry.report.streams.iter().find(|row| (row.region.as_str(), row.stream) == (region, stream));
                row.and_then(figure)
            };
            let figures: Vec<Option<String>> = entries.iter().map(of).collect();
            if figures.iter().any(Option::is_some) {
                let shown = figures.into_iter().map(|figure| figure.unwrap_or_else(nothing)).collect();
                grid.row(format!("{region} {stream} {what}"), shown);
            }
        };
        add("written", |row| (row.written_pages > 0).then(|| thousands(row.written_pages)));
        add("copied", |row| (row.copied_pages > 0).then(|| thousands(row.copied_pages)));
        add("write amplification (x)", |row| row.write_amplification.map(significant));
    }
}

/// Every kind of operation of any scheme, to show the reasons for differences.
fn operations(grid: &mut Grid, entries: &[Entry]) {
    let rows = |entry: &Entry| entry.report.ops.iter().map(|row| row.region.clone()).collect::<Vec<_>>();
    let worked: BTreeSet<String> = entries.iter().flat_map(rows).collect();
    let mut regions: Vec<String> = Vec::new();
    for name in region_names(entries) {
        regions.extend(worked.iter().filter(|row| row.split(':').next() == Some(name)).cloned());
    }
    for op in FlashOp::ALL {
        let title = match op {
            FlashOp::Read => "Page reads",
            FlashOp::Program => "Page programs",
            FlashOp::Erase => "Block erases",
        };
        operations_in(grid, entries, title, op.name(), &regions);
    }
    let disks: Vec<String> = disk_names(entries).into_iter().map(str::to_owned).collect();
    for op in DiskOp::ALL {
        let title = match op {
            DiskOp::Read => "Disk reads",
            DiskOp::Write => "Disk writes",
        };
        operations_in(grid, entries, title, op.name(), &disks);
    }
}

/// Operations of a kind in these regions or on these disks, if any.
fn operations_in(grid: &mut Grid, entries: &[Entry], title: &str, op: &str, regions: &[String]) {
    let is_counted = |row: &&OpFigures| row.op == op && regions.contains(&row.region);
    let sum = |entry: &Entry| entry.report.ops.iter().filter(is_counted).map(|row| row.count).sum::<u64>();
    if entries.iter().map(sum).all(|count| count == 0) {
        return;
    }
    grid.section(title);
    for region in regions {
        for cause in Cause::ALL {
            let is_row = |row: &&OpFigures| row.op == op && row.region == *region && row.cause == cause.name();
            let counts = entries.iter().map(|entry| entry.report.ops.iter().find(is_row).map(|row| row.count));
            let counts: Vec<Option<u64>> = counts.collect();
            if counts.iter().any(Option::is_some) {
                let shown = counts.into_iter().map(|count| count.map_or_else(|| NOTHING.to_owned(), thousands));
                grid.row(format!("{region} {}", cause.name().replace('_', " ")), shown.collect());
            }
        }
    }
    grid.row("all", entries.iter().map(|entry| thousands(sum(entry))).collect());
    let time = |report: &Report| Some(report.ops.iter().filter(is_counted).map(|row| row.time_us).sum());
    scaled(grid, "time", TIMES, entries, time);
}
