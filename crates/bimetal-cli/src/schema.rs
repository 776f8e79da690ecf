//! `bimetal schema`: JSON schemas of `--json` outputs, generated from the written types: names, types, and meaning of
//! each figure.

use std::collections::BTreeMap;

use bimetal_papers::Reproduction;
use bimetal_papers::catalogue::PaperItem;
use bimetal_study::advise::answer::Answer;
use bimetal_study::catalogue::{ChipItem, DeviceItem, DriveItem, FormatItem, SchemeItem, WorkloadItem};
use bimetal_study::compare::Comparison;
use bimetal_study::diff::Diff;
use bimetal_study::drives::Predictions;
use bimetal_study::sweep::export::Cell;
use bimetal_study::sweep::row::Row;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};

use crate::failure::Failure;
use crate::generated::{Generated, GeneratedLike};
use crate::profiled::Profiled;

/// The output of a command.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Its name: that of the command; for the kinds of `list` and `generate` and for `check --rescue`, with a hyphen.
    pub name: &'static str,
    /// Its schema.
    pub schema: fn() -> Schema,
}

/// Every output with a schema. Columns of a sweep depend on its study, so only their types are known. Lines of the file
/// with saved results have another form.
pub const OUTPUTS: &[Output] = &[
    Output { name: "compare", schema: of::<Comparison> },
    Output { name: "replay", schema: of::<Comparison> },
    Output { name: "diff", schema: of::<Diff> },
    Output { name: "advise", schema: of::<Answer> },
    Output { name: "profile", schema: of::<Profiled> },
    Output { name: "generate", schema: of::<Generated> },
    Output { name: "generate-like", schema: of::<GeneratedLike> },
    Output { name: "drives", schema: of::<Predictions> },
    Output { name: "sweep", schema: of::<Vec<BTreeMap<String, Cell<'static>>>> },
    Output { name: "sweep-results", schema: of::<Row> },
    Output { name: "paper", schema: of::<Reproduction> },
    Output { name: "list-schemes", schema: of::<Vec<SchemeItem>> },
    Output { name: "list-chips", schema: of::<Vec<ChipItem>> },
    Output { name: "list-drives", schema: of::<Vec<DriveItem>> },
    Output { name: "list-devices", schema: of::<Vec<DeviceItem>> },
    Output { name: "list-formats", schema: of::<Vec<FormatItem>> },
    Output { name: "list-workloads", schema: of::<Vec<WorkloadItem>> },
    Output { name: "list-papers", schema: of::<Vec<PaperItem>> },
    #[cfg(live)]
    Output { name: "stat", schema: of::<bimetal_live::health::Health> },
    #[cfg(live)]
    Output { name: "check", schema: of::<crate::checked::Checked<'static>> },
    #[cfg(live)]
    Output { name: "check-rescue", schema: of::<crate::checked::Rescue<'static>> },
    #[cfg(live)]
    Output { name: "bench", schema: of::<Vec<crate::benchmarked::Row>> },
];

/// The schema of the output with this name, as text.
///
/// # Errors
/// The output has no schema.
pub fn text(name: &str) -> Result<String, Failure> {
    let output = find(name).ok_or_else(|| Failure::usage(format!("there is no schema of `{name}`")))?;
    let text = serde_json::to_string_pretty(&(output.schema)()).map_err(Failure::failed)?;
    Ok(text + "\n")
}

/// The output with this name.
fn find(name: &str) -> Option<Output> {
    OUTPUTS.iter().copied().find(|output| output.name == name)
}

fn of<T: JsonSchema>() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    RecursiveTransform(without_links).transform(&mut schema);
    schema
}

/// Removes links to other types, which descriptions from the sources may contain.
fn without_links(schema: &mut Schema) {
    if let Some(serde_json::Value::String(text)) = schema.get_mut("description") {
        *text = text.replace("[`", "`").replace("`]", "`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_says_what_it_means() {
        for output in OUTPUTS {
            let schema = (output.schema)();
            let definitions = schema.get("$defs").and_then(|all| all.as_object()).into_iter().flatten();
            let whole = (&output.name.to_owned(), schema.as_value());
            for (name, record) in definitions.chain([whole]) {
                for (field, kind) in record["properties"].as_object().into_iter().flatten() {
                    let said = kind["description"].as_str().unwrap_or_default();
                    assert!(said.len() > 4 && !said.contains("[`"), "{}: {name}.{field}: {said:?}", output.name);
                }
            }
        }
    }
}
