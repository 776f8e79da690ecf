//! The records of the Python package, made from the JSON schemas: `python/bimetal/_records.py` is committed, held against the
//! schemas here, and written anew with `BIMETAL_UPDATE_DOCS=1`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use bimetal_study::listing::broken;
use serde_json::Value;

use crate::reference::hold;
use crate::schema::OUTPUTS;

/// What types of the sources are called in Python, where it is something else.
const NAMES: [(&str, &str); 22] = [
    ("ChipItem", "Chip"),
    ("DeviceItem", "Preset"),
    ("DriveItem", "Drive"),
    ("Entry", "Result"),
    ("FaultFigures", "Faults"),
    ("FigureItem", "PaperFigure"),
    ("Figures", "SweepFigures"),
    ("FormatItem", "Format"),
    ("IntervalFigures", "Interval"),
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
/// Columns of a line.
const WIDTH: usize = 120;

fn python_name(name: &str) -> &str {
    NAMES.iter().find(|(known, _)| *known == name).map_or(name, |&(_, python)| python)
}

/// Records by their names, as the schemas of all outputs have them.
fn definitions() -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut add = |name: &str, definition: &Value| {
        if definition.get("properties").is_some() {
            let name = python_name(name).to_owned();
            let known = found.insert(name.clone(), definition.clone());
            assert!(known.is_none_or(|known| known == *definition), "two records are called {name}");
        }
    };
    for output in OUTPUTS {
        let schema = Value::from((output.schema)());
        for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
            add(name, definition);
        }
        let mut root = schema.clone();
        root.as_object_mut().unwrap().retain(|key, _| key != "$defs" && key != "$schema" && key != "title");
        add(schema["title"].as_str().unwrap(), &root);
    }
    found
}

/// The type of a value.
fn hint(schema: &Value, records: &BTreeMap<String, Value>) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = python_name(reference.rsplit('/').next().unwrap());
        // What is no record is one of several texts, or what has a name and something with it.
        return if records.contains_key(name) { name.to_owned() } else { hint_of_kinds(reference).to_owned() };
    }
    if let Some(kinds) = schema["anyOf"].as_array() {
        return kinds.iter().map(|kind| hint(kind, records)).collect::<Vec<_>>().join(" | ");
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let of = |kind: &Value| {
                let mut one = schema.clone();
                one["type"] = kind.clone();
                hint(&one, records)
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
                    let items: Vec<String> = items.iter().map(|item| hint(item, records)).collect();
                    format!("tuple[{}]", items.join(", "))
                }
                None => format!("tuple[{}, ...]", hint(&schema["items"], records)),
            },
            // An object without a form is a device.
            "object" if schema["additionalProperties"] == true => "Device".into(),
            "object" => format!("dict[str, {}]", hint(&schema["additionalProperties"], records)),
            other => panic!("{other} has no type in Python"),
        },
        other => panic!("{other} has no type in Python: {schema}"),
    }
}

/// What a reference to no record stands for, in any of the outputs.
fn definition(reference: &str) -> Value {
    let find = |schema: Value| schema.pointer(reference.trim_start_matches('#')).cloned();
    OUTPUTS.iter().find_map(|output| find(Value::from((output.schema)()))).unwrap()
}

/// The kinds of what is no record: one of several texts, or something with a name.
fn kinds(definition: &Value) -> Vec<Value> {
    definition["oneOf"].as_array().cloned().unwrap_or_else(|| vec![definition.clone()])
}

/// The type of what is no record: a text, or for some a dictionary.
fn hint_of_kinds(reference: &str) -> &'static str {
    let is_text = |kind: &Value| kind["type"] == "string";
    if kinds(&definition(reference)).iter().all(is_text) { "str" } else { "str | dict[str, Any]" }
}

/// The texts that a value can be; none where it can be others, too.
fn texts(schema: &Value) -> Vec<String> {
    let Some(reference) = schema["$ref"].as_str() else { return Vec::new() };
    let of = |kind: &Value| match (&kind["const"], &kind["enum"]) {
        (Value::String(text), _) => vec![Some(text.clone())],
        (_, Value::Array(texts)) => texts.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
        _ => vec![None],
    };
    let texts: Option<Vec<String>> = kinds(&definition(reference)).iter().flat_map(of).collect();
    texts.unwrap_or_default()
}

/// What is said of a field: its meaning, and the texts that it can be.
fn meaning(schema: &Value) -> String {
    let said = schema["description"].as_str().unwrap_or_default();
    let texts: Vec<String> = texts(schema).iter().map(|text| format!("`{text}`")).collect();
    match texts.split_last() {
        Some((last, [])) => format!("{}: {last}.", said.trim_end_matches('.')),
        Some((last, others)) => format!("{}: {} or {last}.", said.trim_end_matches('.'), others.join(", ")),
        None => said.to_owned(),
    }
}

/// A text of the sources in lines of Python.
fn lines(text: &str, width: usize) -> Vec<String> {
    broken(&text.replace('\n', " ").replace('`', "``"), width)
}

/// A record's documentation: its first sentence, and the rest below it.
fn documentation(schema: &Value) -> String {
    let lines = lines(schema["description"].as_str().unwrap_or_default(), WIDTH - 10);
    if let [line] = lines.as_slice() {
        return format!("    \"\"\"{line}\"\"\"\n");
    }
    let text = lines.join(" ");
    let (first, rest) = text.split_once(". ").unwrap_or_else(|| panic!("one sentence of more than a line: {text}"));
    let rest: String = broken(rest, WIDTH - 4).iter().map(|line| format!("    {line}\n")).collect();
    format!("    \"\"\"{first}.\n\n{rest}    \"\"\"\n")
}

fn field(name: &str, schema: &Value, is_omitted: bool, records: &BTreeMap<String, Value>) -> String {
    let comment: String = lines(&meaning(schema), WIDTH - 7).iter().map(|line| format!("    #: {line}\n")).collect();
    let mut hint = hint(schema, records);
    let attribute = if ["from", "class", "def"].contains(&name) { format!("{name}_") } else { name.to_owned() };
    let mut default = String::new();
    if is_omitted {
        let empty = if hint.starts_with("tuple") { "()" } else { "None" };
        if empty == "None" && !hint.ends_with("| None") {
            hint += " | None";
        }
        default = format!(" = dataclasses.field(default={empty}, metadata=OMITTED)");
    }
    format!("{comment}    {attribute}: {hint}{default}\n")
}

/// A record; fields that are left out where they are empty come last.
fn record(name: &str, schema: &Value, records: &BTreeMap<String, Value>) -> String {
    let properties = schema["properties"].as_object().unwrap();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let omitted = properties.keys().map(String::as_str).filter(|name| !required.contains(name));
    let fields = required.iter().map(|&name| (name, false)).chain(omitted.map(|name| (name, true)));
    let fields: String = fields.map(|(name, is_omitted)| field(name, &properties[name], is_omitted, records)).collect();
    format!("\n\n@dataclasses.dataclass(frozen=True)\nclass {name}(Record):\n{}\n{fields}", documentation(schema))
}

#[test]
fn the_records_of_python_are_those_of_the_schemas() {
    let records = definitions();
    let mut text = String::from(
        "\"\"\"The records of the command line's JSON, made from its schemas: ``crates/bimetal-cli/src/records.rs`` writes them.\"\"\"\n\n\
         from __future__ import annotations\n\nimport dataclasses\nfrom typing import Any\n\n\
         from bimetal._device import Device\nfrom bimetal._record import OMITTED, Record\n",
    );
    text.extend(records.iter().map(|(name, schema)| record(name, schema, &records)));
    hold(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/bimetal/_records.py"), &text);
}
