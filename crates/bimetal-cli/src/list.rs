//! `bimetal list`: what there is.

use bimetal_core::chip::{self, Chip};
use bimetal_core::device::{self, PRESETS};
use bimetal_core::drive::{self, Drive};
use bimetal_core::scheme::{ParameterSpec, Regions, SCHEMES, SchemeSpec};
use bimetal_core::trace::FORMATS;
use bimetal_core::workload::{Goal, WORKLOADS, WorkloadSpec};
use bimetal_study::writer::WRITERS;
use serde_json::{Value, json};

use crate::args::{ListArgs, Listed};
use crate::failure::Failure;
use crate::number::{NOTHING, SIZES, significant, thousands, with_unit};
use crate::output;
use crate::table::{Align, bold, broken, indented, plain, width};

/// One thing that is listed.
struct Item {
    name: String,
    /// A line of the list, its name first.
    row: Vec<String>,
    /// Everything, as JSON.
    json: Value,
    /// Everything, as text.
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
        // Schemes are listed with their parameters: the list is their reference.
        if args.names.is_empty() && args.what != Listed::Schemes {
            let rows = items.into_iter().map(|item| item.row).collect();
            return wrapped(heads(args.what), rows);
        }
        items.iter().map(|item| item.full.as_str()).collect::<Vec<_>>().join("\n")
    })
}

/// A plain table; where it has two columns, the second is wrapped.
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

fn items(what: Listed) -> Result<Vec<Item>, Failure> {
    match what {
        Listed::Schemes => Ok(SCHEMES.iter().map(|spec| scheme(spec)).collect()),
        Listed::Chips => Ok(chip::catalogue().iter().map(chip_item).collect()),
        Listed::Drives => Ok(drive::catalogue().iter().map(drive_item).collect()),
        Listed::Devices => PRESETS.iter().map(device_item).collect(),
        Listed::Formats => Ok(FORMATS.iter().map(|format| format_item(format)).collect()),
        Listed::Workloads => Ok(WORKLOADS.iter().map(|spec| workload(spec)).collect()),
    }
}

fn heads(what: Listed) -> &'static [(&'static str, Align)] {
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
    }
}

fn scheme(spec: &SchemeSpec) -> Item {
    let regions = match spec.regions {
        Regions::One => "one",
        Regions::FastAndSlow => "fast and slow",
        Regions::DualMode => "one, in two cell modes",
        Regions::FlashOverDisk => "one, over disks",
    };
    let mut item = parameterised(spec.name, spec.summary, spec.source, &(spec.parameters)());
    item.json["regions"] = regions.into();
    item
}

fn workload(spec: &WorkloadSpec) -> Item {
    let mut item = parameterised(spec.name, spec.summary, spec.source, &(spec.parameters)());
    let targets = (spec.targets)(&[]).unwrap_or_default();
    if !targets.is_empty() {
        item.full += "    held against\n";
    }
    for target in &targets {
        let bound = match target.goal {
            Goal::Within(_) => "",
            Goal::AtLeast => "≥ ",
            Goal::AtMost => "≤ ",
        };
        let value = significant(target.published);
        item.full += &indented(&format!("{}: {bound}{value}: {}", target.name, target.source), 8);
    }
    if !spec.in_small.is_empty() {
        let settings = spec.in_small.iter().map(|(key, value)| format!("--set {key}={value}")).collect::<Vec<_>>();
        item.full += &indented(&format!("the same in small: {}", settings.join(" ")), 4);
    }
    let targets = targets.iter().map(|target| {
        json!({ "name": target.name, "source": target.source, "published": target.published, "goal": target.goal })
    });
    item.json["targets"] = targets.collect();
    item
}

fn parameterised(name: &str, summary: &str, source: &str, parameters: &[ParameterSpec]) -> Item {
    let mut full = bold(name) + "\n" + &indented(summary, 2) + &indented(&format!("source: {source}"), 2);
    for parameter in parameters {
        let head = format!("{}={}", parameter.name, parameter.default);
        full.push_str(&format!("    {head:<32} {}\n", parameter.accepts));
        full.push_str(&indented(parameter.summary, 8));
    }
    let parameters = parameters.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "summary": parameter.summary,
            "default": parameter.default,
            "accepts": parameter.accepts,
        })
    });
    let parameters: Vec<Value> = parameters.collect();
    let json = json!({ "name": name, "summary": summary, "source": source, "parameters": parameters });
    Item { name: name.into(), row: vec![name.into(), summary.into()], json, full }
}

fn chip_item(chip: &Chip) -> Item {
    let cell = format!("{:?}", chip.cell).to_uppercase();
    let (page, block) = (u64::from(chip.page_bytes), u64::from(chip.page_bytes) * u64::from(chip.pages_per_block));
    let (page, block) = (with_unit(SIZES, page as f64), with_unit(SIZES, block as f64));
    let summary = format!(
        "{cell}, {page} pages in {block} blocks; {} / {} / {} µs to read / program / erase; {} cycles",
        chip.read_us, chip.program_us, chip.erase_us, chip.endurance
    );
    let row = vec![
        chip.name.clone(),
        cell,
        page,
        block,
        significant(chip.read_us),
        significant(chip.program_us),
        significant(chip.erase_us),
        thousands(u64::from(chip.endurance)),
        significant(chip.usd_per_gib),
    ];
    catalogued(&chip.name, &summary, row, &serde_json::to_value(chip).unwrap_or_default())
}

fn drive_item(drive: &Drive) -> Item {
    let capacity = with_unit(SIZES, drive.capacity.0 as f64);
    let rpm = drive.mechanics.as_ref().map_or_else(|| NOTHING.to_owned(), |parts| thousands(u64::from(parts.rpm)));
    let (read_ms, write_ms) = (drive.read_position_us / 1e3, drive.write_position_us / 1e3);
    let (read_ms, write_ms) = (significant(read_ms), significant(write_ms));
    let summary = format!(
        "{capacity}, {rpm} rpm; {read_ms} / {write_ms} ms to reach the first sector of a read / write in the constant \
         model; {} MB/s",
        drive.mb_per_s
    );
    let row = vec![
        drive.name.clone(),
        capacity,
        rpm,
        read_ms,
        write_ms,
        significant(drive.mb_per_s),
        significant(drive.active_w),
        significant(drive.usd_per_gib),
    ];
    catalogued(&drive.name, &summary, row, &serde_json::to_value(drive).unwrap_or_default())
}

/// A part with all its figures; those of an inner object stand under its name.
fn catalogued(name: &str, summary: &str, row: Vec<String>, figures: &Value) -> Item {
    let mut full = format!("{}\n{}", bold(name), indented(summary, 2));
    push_figures(figures, 4, &mut full);
    let mut json = json!({ "name": name, "summary": summary });
    if let (Value::Object(all), Value::Object(figures)) = (&mut json, figures) {
        all.extend(figures.clone());
    }
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
    let device = device::preset(preset.name)?;
    let json = json!({ "name": preset.name, "summary": device.summary, "device": device });
    Ok(Item { name: preset.name.into(), row: vec![preset.name.into(), device.summary], json, full: preset.toml.into() })
}

fn format_item(format: &bimetal_core::trace::Format) -> Item {
    let written = WRITERS.iter().any(|writer| writer.format == format.name);
    let unit = format.time_unit.map(|unit| unit.to_string());
    let json = json!({
        "name": format.name, "summary": format.summary, "layout": format.layout, "aliases": format.aliases,
        "time_unit": unit, "written": written,
    });
    let mut full = format!("{}\n  {}\n    record     {}\n", bold(format.name), format.summary, format.layout);
    if let Some(unit) = unit {
        full.push_str(&format!("    time unit  {unit} unless `--time-unit` says otherwise\n"));
    }
    if !format.aliases.is_empty() {
        full.push_str(&format!("    aliases    {}\n", format.aliases.join(", ")));
    }
    full.push_str(if written { "    read and written\n" } else { "    read\n" });
    Item { name: format.name.into(), row: vec![format.name.into(), format.summary.into()], json, full }
}
