//! `bimetal list`: schemes, chips, drives, devices, formats, workloads, papers.

use bimetal_core::device::{self, PRESETS};
use bimetal_core::scheme::ParameterSpec;
use bimetal_core::workload::{Goal, WORKLOADS, WorkloadSpec};
use bimetal_papers::catalogue::{self as papers, PaperItem};
use bimetal_study::catalogue::{self, ChipItem, DeviceItem, DriveItem, FormatItem, SchemeItem, WorkloadItem};
use serde::Serialize;
use serde_json::Value;

use crate::args::{ListArgs, Listed};
use crate::failure::Failure;
use crate::number::{NOTHING, SIZES, significant, thousands, with_unit};
use crate::output;
use crate::table::{Align, bold, broken, indented, plain, width};

/// A listed entry.
pub struct Item {
    name: String,
    /// Its line in the list, beginning with its name.
    pub row: Vec<String>,
    /// All details as JSON.
    json: Value,
    /// All details as text.
    full: String,
}

/// Runs the command.
pub fn run(args: &ListArgs) -> Result<(), Failure> {
    let mut items = items(args.what)?;
    if let Some(unknown) = args.names.iter().find(|&name| !items.iter().any(|item| item.name == *name)) {
        let known = items.iter().map(|item| item.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("there is no `{unknown}` to list; there are: {known}")));
    }
    if !args.names.is_empty() {
        items.retain(|item| args.names.contains(&item.name));
    }
    let json: Vec<Value> = items.iter_mut().map(|item| item.json.take()).collect();
    output::emit(&args.json, &json, || {
        // Schemes are always listed with their parameters: the list is their reference.
        if args.names.is_empty() && args.what != Listed::Schemes {
            let rows = items.into_iter().map(|item| item.row).collect();
            return wrapped(heads(args.what), rows);
        }
        items.iter().map(|item| item.full.as_str()).collect::<Vec<_>>().join("\n")
    })
}

/// A plain table. In a table of two columns, the second is wrapped.
fn wrapped(heads: &[(&str, Align)], rows: Vec<Vec<String>>) -> String {
    let [_, _] = heads else { return plain(heads, rows) };
    let names = rows.iter().filter_map(|row| row.first()).map(|name| name.chars().count());
    let room = width() - names.max().unwrap_or(0) - 4;
    let mut lines = Vec::new();
    for row in rows {
        let mut name = row.first().cloned().unwrap_or_default();
        for line in broken(row.get(1).map_or("", String::as_str), room) {
            lines.push(vec![std::mem::take(&mut name), line]);
        }
    }
    plain(heads, lines)
}

/// All entries of a kind.
pub fn items(what: Listed) -> Result<Vec<Item>, Failure> {
    match what {
        Listed::Schemes => Ok(catalogue::schemes().iter().map(scheme).collect()),
        Listed::Chips => Ok(catalogue::chips().iter().map(chip_item).collect()),
        Listed::Drives => Ok(catalogue::drives().iter().map(drive_item).collect()),
        Listed::Devices => PRESETS.iter().map(device_item).collect(),
        Listed::Formats => Ok(catalogue::formats().iter().map(format_item).collect()),
        Listed::Workloads => Ok(WORKLOADS.iter().map(|spec| workload(spec)).collect()),
        Listed::Papers => Ok(papers::papers().iter().map(paper_item).collect()),
    }
}

/// Names and alignment of the columns.
pub fn heads(what: Listed) -> &'static [(&'static str, Align)] {
    use Align::{Left, Right};
    match what {
        Listed::Chips => &[
            ("chip", Left),
            ("cell", Left),
            ("page", Right),
            ("block", Right),
            ("read µs", Right),
            ("program µs", Right),
            ("erase µs", Right),
            ("cycles", Right),
            ("USD/GiB", Right),
        ],
        Listed::Drives => &[
            ("drive", Left),
            ("capacity", Right),
            ("rpm", Right),
            ("read ms", Right),
            ("write ms", Right),
            ("MB/s", Right),
            ("W", Right),
            ("USD/GiB", Right),
        ],
        Listed::Schemes => &[("scheme", Left), ("summary", Left)],
        Listed::Devices => &[("device", Left), ("summary", Left)],
        Listed::Formats => &[("format", Left), ("summary", Left)],
        Listed::Workloads => &[("workload", Left), ("summary", Left)],
        Listed::Papers => &[("paper", Left), ("summary", Left)],
    }
}

fn scheme(item: &SchemeItem) -> Item {
    let mut listed = parameterised(item.name, item.summary, item.source, &item.parameters, value(item));
    if !item.adapts.is_empty() {
        listed.full += "    adapts by\n";
    }
    for adaptation in &item.adapts {
        listed.full += &format!("        {}: {} ({})\n", adaptation.metric, adaptation.title, adaptation.unit);
        listed.full += &indented(adaptation.meaning, 12);
    }
    listed
}

fn workload(spec: &WorkloadSpec) -> Item {
    let listed = WorkloadItem::of(spec);
    let mut item = parameterised(listed.name, listed.summary, listed.source, &listed.parameters, value(&listed));
    if !listed.targets.is_empty() {
        item.full += "    published figures\n";
    }
    for target in &listed.targets {
        let bound = match target.goal {
            Goal::Within(_) => "",
            Goal::AtLeast => "≥ ",
            Goal::AtMost => "≤ ",
        };
        let published = significant(target.published);
        item.full += &indented(&format!("{}: {bound}{published}: {}", target.name, target.source), 8);
    }
    if !spec.in_small.is_empty() {
        let settings = spec.in_small.iter().map(|(key, value)| format!("--set {key}={value}")).collect::<Vec<_>>();
        item.full += &indented(&format!("a small version: {}", settings.join(" ")), 4);
    }
    item
}

/// Columns for the name of a figure, such as `introduction`.
const FIGURE_WIDTH: usize = 14;

fn paper_item(item: &PaperItem) -> Item {
    let mut full = bold(item.name) + "\n" + &indented(item.summary, 2) + &indented(item.citation, 2);
    for figure in &item.figures {
        let traces = figure.traces.join(", ");
        let traces = if traces.is_empty() { String::new() } else { format!(" (traces: {traces})") };
        full.push_str(&format!("    {:<FIGURE_WIDTH$}", figure.name));
        let indent = 4 + FIGURE_WIDTH;
        let lines = broken(&format!("{}{traces}", figure.title), width() - indent);
        full.push_str(&(lines.join(&format!("\n{}", " ".repeat(indent))) + "\n"));
    }
    Item { name: item.name.into(), row: vec![item.name.into(), item.summary.into()], json: value(item), full }
}

/// An object of the catalogue as JSON.
fn value(item: &impl Serialize) -> Value {
    serde_json::to_value(item).unwrap_or_default()
}

fn parameterised(name: &str, summary: &str, source: &str, parameters: &[ParameterSpec], json: Value) -> Item {
    let mut full = bold(name) + "\n" + &indented(summary, 2) + &indented(&format!("source: {source}"), 2);
    for parameter in parameters {
        let head = format!("{}={}", parameter.name, parameter.default);
        full.push_str(&format!("    {head:<32} {}\n", parameter.accepts));
        full.push_str(&indented(parameter.summary, 8));
    }
    Item { name: name.into(), row: vec![name.into(), summary.into()], json, full }
}

fn chip_item(item: &ChipItem) -> Item {
    let chip = &item.chip;
    let (page, block) = (u64::from(chip.page_bytes), u64::from(chip.page_bytes) * u64::from(chip.pages_per_block));
    let row = vec![
        chip.name.clone(),
        format!("{:?}", chip.cell).to_uppercase(),
        with_unit(SIZES, page as f64),
        with_unit(SIZES, block as f64),
        significant(chip.read_us),
        significant(chip.program_us),
        significant(chip.erase_us),
        thousands(u64::from(chip.endurance)),
        significant(chip.usd_per_gib),
    ];
    catalogued(&chip.name, &item.summary, row, &value(chip), value(item))
}

fn drive_item(item: &DriveItem) -> Item {
    let drive = &item.drive;
    let row = vec![
        drive.name.clone(),
        with_unit(SIZES, drive.capacity.0 as f64),
        drive.mechanics.as_ref().map_or_else(|| NOTHING.to_owned(), |parts| thousands(u64::from(parts.rpm))),
        significant(drive.read_position_us / 1e3),
        significant(drive.write_position_us / 1e3),
        significant(drive.mb_per_s),
        significant(drive.active_w),
        significant(drive.usd_per_gib),
    ];
    catalogued(&drive.name, &item.summary, row, &value(drive), value(item))
}

/// A part with all its figures; those of an inner object appear under its name.
fn catalogued(name: &str, summary: &str, row: Vec<String>, figures: &Value, json: Value) -> Item {
    let mut full = format!("{}\n{}", bold(name), indented(summary, 2));
    push_figures(figures, 4, &mut full);
    Item { name: name.into(), row, json, full }
}

fn push_figures(figures: &Value, indent: usize, text: &mut String) {
    const LABEL: usize = 17;
    for (figure, value) in figures.as_object().into_iter().flatten() {
        let pad = " ".repeat(indent);
        match value {
            _ if figure == "name" => {}
            Value::Object(_) => {
                text.push_str(&format!("{pad}{figure}\n"));
                push_figures(value, indent + 2, text);
            }
            _ => {
                let value = value.as_str().map_or_else(|| value.to_string().replace(',', ", "), str::to_owned);
                let value = indented(&value, indent + LABEL + 1);
                text.push_str(&format!("{pad}{figure:<LABEL$} {}", value.trim_start()));
            }
        }
    }
}

fn device_item(preset: &device::Preset) -> Result<Item, Failure> {
    let item = DeviceItem::of(preset)?;
    let json = value(&item);
    Ok(Item { name: preset.name.into(), row: vec![preset.name.into(), item.summary], json, full: preset.toml.into() })
}

fn format_item(item: &FormatItem) -> Item {
    let mut full = format!("{}\n  {}\n    record     {}\n", bold(item.name), item.summary, item.layout);
    if let Some(unit) = &item.time_unit {
        full.push_str(&format!("    time unit  {unit} unless `--time-unit` says otherwise\n"));
    }
    if !item.aliases.is_empty() {
        full.push_str(&format!("    aliases    {}\n", item.aliases.join(", ")));
    }
    full.push_str(if item.written { "    read and written\n" } else { "    read\n" });
    Item { name: item.name.into(), row: vec![item.name.into(), item.summary.into()], json: value(item), full }
}
