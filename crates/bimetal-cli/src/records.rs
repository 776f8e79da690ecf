//! The records of the Python package, generated from the JSON schemas: `python/bimetal/_records.py` is committed,
//! compared with the schemas here, and rewritten with `BIMETAL_UPDATE_DOCS=1`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use bimetal_study::listing::broken;
use serde_json::Value;

use crate::reference::hold;
use crate::schema::OUTPUTS;

/// Names of types in the sources that differ in Python.
const NAMES: [(&str, &str); 26] = [
    ("Answer", "Advice"),
    ("Arrivals", "ArrivalProfile"),
    ("ByGoal", "GoalAlone"),
    ("ChipItem", "Chip"),
    ("DeviceItem", "Preset"),
    ("DriveItem", "Drive"),
    ("Entry", "Result"),
    ("FaultFigures", "Faults"),
    ("FigureItem", "PaperFigure"),
    ("Figures", "SweepFigures"),
    ("FormatItem", "Format"),
    ("IntervalFigures", "Interval"),
    ("Listed", "Price"),
    ("LoadFigures", "Load"),
    ("OpFigures", "Operations"),
    ("PaperItem", "Paper"),
    ("ParameterSpec", "Parameter"),
    ("Point", "SweepPoint"),
    ("Replay", "SweepReplay"),
    ("ResponseFigures", "Responses"),
    ("Row", "SweepRow"),
    ("SchemeItem", "Scheme"),
    ("StreamFigures", "Stream"),
    ("TargetItem", "Target"),
    ("WearFigures", "Wear"),
    ("WorkloadItem", "Workload"),
];
/// Outputs of commands that Python does not have.
const OF_COMMANDS_ALONE: [&str; 7] = ["generate", "generate-like", "drives", "stat", "check", "check-rescue", "bench"];
/// Columns of a line.
const WIDTH: usize = 120;

fn python_name(name: &str) -> &str {
    NAMES.iter().find(|(known, _)| *known == name).map_or(name, |&(_, python)| python)
}

/// Records of the schemas of all outputs by name, each with its schema.
fn definitions() -> BTreeMap<String, (Value, Value)> {
    let mut found = BTreeMap::new();
    let mut add = |name: &str, definition: &Value, root: &Value| {
        if definition.get("properties").is_some() {
            let name = python_name(name).to_owned();
            let known = found.insert(name.clone(), (definition.clone(), root.clone()));
            assert!(known.is_none_or(|(known, _)| known == *definition), "two records are called {name}");
        }
    };
    for output in OUTPUTS.iter().filter(|output| !OF_COMMANDS_ALONE.contains(&output.name)) {
        let root = Value::from((output.schema)());
        for (name, definition) in root["$defs"].as_object().into_iter().flatten() {
            add(name, definition, &root);
        }
        // Of the output of `profile`, Python has only the profile.
        if root["title"] != "Profiled" {
            let mut whole = root.clone();
            whole.as_object_mut().unwrap().retain(|key, _| key != "$defs" && key != "$schema" && key != "title");
            add(root["title"].as_str().unwrap(), &whole, &root);
        }
    }
    found
}

/// The type of a value in the schema `root`.
fn hint(schema: &Value, root: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let definition = definition(reference, root);
        if definition.get("properties").is_some() {
            return python_name(reference.rsplit('/').next().unwrap()).to_owned();
        }
        // A definition that is not a record is one of several texts, or a dictionary.
        let is_text = |kind: &&Value| kind["type"] == "string";
        return if kinds(definition).iter().all(is_text) { "str" } else { "str | dict[str, Any]" }.to_owned();
    }
    if let Some(kinds) = schema["anyOf"].as_array() {
        return kinds.iter().map(|kind| hint(kind, root)).collect::<Vec<_>>().join(" | ");
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let of = |kind: &Value| {
                let mut one = schema.clone();
                one["type"] = kind.clone();
                hint(&one, root)
            };
            kinds.iter().map(of).collect::<Vec<_>>().join(" | ")
        }
        Value::String(kind) => match kind.as_str() {
            "string" => "str".into(),
            "integer" => "int".into(),
            "number" => "float".into(),
            "boolean" => "bool".into(),
            "null" => "None".into(),
            "array" => match schema["prefixItems"].as_array() {
                Some(items) => {
                    let items: Vec<String> = items.iter().map(|item| hint(item, root)).collect();
                    format!("tuple[{}]", items.join(", "))
                }
                None => format!("tuple[{}, ...]", hint(&schema["items"], root)),
            },
            // An object without properties is a device.
            "object" if schema["additionalProperties"] == true => "Device".into(),
            "object" => format!("dict[str, {}]", hint(&schema["additionalProperties"], root)),
            other => panic!("{other} has no type in Python"),
        },
        other => panic!("{other} has no type in Python: {schema}"),
    }
}

/// The definition to which a reference points.
fn definition<'a>(reference: &str, root: &'a Value) -> &'a Value {
    root.pointer(reference.trim_start_matches('#')).unwrap()
}

/// The kinds of a definition that is not a record.
fn kinds(definition: &Value) -> Vec<&Value> {
    definition["oneOf"].as_array().map_or_else(|| vec![definition], |kinds| kinds.iter().collect())
}

/// The texts that a value can be; empty if it may also be another value.
fn texts(schema: &Value, root: &Value) -> Vec<String> {
    let ways = schema["anyOf"].as_array().into_iter().flatten().chain([schema]);
    let Some(reference) = ways.filter_map(|way| way["$ref"].as_str()).next() else { return Vec::new() };
    let of = |kind: &Value| match (&kind["const"], &kind["enum"]) {
        (Value::String(text), _) => vec![Some(text.clone())],
        (_, Value::Array(texts)) => texts.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
        _ => vec![None],
    };
    let texts: Option<Vec<String>> = kinds(definition(reference, root)).into_iter().flat_map(of).collect();
    texts.unwrap_or_default()
}

/// The documentation of a field: its meaning, and its possible texts.
fn meaning(schema: &Value, root: &Value) -> String {
    let said = schema["description"].as_str().unwrap_or_default();
    let texts: Vec<String> = texts(schema, root).iter().map(|text| format!("`{text}`")).collect();
    match texts.split_last() {
        Some((last, [])) => format!("{}: {last}.", said.trim_end_matches('.')),
        Some((last, others)) => format!("{}: {} or {last}.", said.trim_end_matches('.'), others.join(", ")),
        None => said.to_owned(),
    }
}

/// Wraps a text of the sources into lines of Python.
fn lines(text: &str, width: usize) -> Vec<String> {
    broken(&text.replace('\n', " ").replace('`', "``"), width)
}

/// The description of a record: its first sentence, and the rest below it.
fn description(schema: &Value) -> String {
    let lines = lines(schema["description"].as_str().unwrap_or_default(), WIDTH - 10);
    if let [line] = lines.as_slice() {
        return format!("{line}\n");
    }
    let text = lines.join(" ");
    let (first, rest) = text.split_once(". ").unwrap_or_else(|| panic!("one sentence of more than a line: {text}"));
    let rest: String = broken(rest, WIDTH - 4).iter().map(|line| format!("    {line}\n")).collect();
    format!("{first}.\n\n{rest}")
}

/// The name of a field in Python, where some names are keywords.
fn attribute(name: &str) -> String {
    if ["from", "class", "def"].contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// A field in the documentation of its record.
fn documented(name: &str, schema: &Value, root: &Value) -> String {
    let meaning = lines(&meaning(schema, root), WIDTH - 8).into_iter().map(|line| format!("        {line}\n"));
    format!("    {}\n{}", attribute(name), meaning.collect::<String>())
}

fn field(name: &str, schema: &Value, is_omitted: bool, root: &Value) -> String {
    let mut hint = hint(schema, root);
    let mut default = String::new();
    if is_omitted {
        let empty = if hint.starts_with("tuple") { "()" } else { "None" };
        if empty == "None" && !hint.ends_with("| None") {
            hint += " | None";
        }
        default = format!(" = dataclasses.field(default={empty}, metadata=OMITTED)");
    }
    format!("    {}: {hint}{default}\n", attribute(name))
}

/// A record. Optional fields, which are omitted if empty, come last.
fn record(name: &str, schema: &Value, root: &Value) -> String {
    let properties = schema["properties"].as_object().unwrap();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let omitted = properties.keys().map(String::as_str).filter(|name| !required.contains(name));
    let fields = required.iter().map(|&name| (name, false)).chain(omitted.map(|name| (name, true)));
    let attributes: String = fields.clone().map(|(name, _)| documented(name, &properties[name], root)).collect();
    let fields: String = fields.map(|(name, is_omitted)| field(name, &properties[name], is_omitted, root)).collect();
    format!(
        "\n\n@dataclasses.dataclass(frozen=True)\nclass {name}(Record):\n    \"\"\"{}\n    Attributes\n    ----------\n\
         {attributes}\n    \"\"\"\n\n{fields}",
        description(schema)
    )
}

#[test]
fn the_records_of_python_are_those_of_the_schemas() {
    let mut text = String::from(
        "\"\"\"The records of the command line's JSON, made from its schemas: ``crates/bimetal-cli/src/records.rs`` writes them.\"\"\"\n\n\
         from __future__ import annotations\n\nimport dataclasses\nfrom typing import Any\n\n\
         from bimetal._device import Device\nfrom bimetal._record import OMITTED, Record\n",
    );
    text.extend(definitions().iter().map(|(name, (schema, root))| record(name, schema, root)));
    hold(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/bimetal/_records.py"), &text);
}
