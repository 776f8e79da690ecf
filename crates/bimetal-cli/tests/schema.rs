//! The output of `--json` matches `bimetal schema`: every field, its type, and no other fields.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::Bench;
use serde_json::{Value, json};

/// Checks a value. Supports only the keywords of JSON Schema that our schemas use, and fails at all others.
fn check(schema: &Value, root: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(rules) = schema.as_object() else { return Ok(()) };
    for (rule, wanted) in rules {
        let holds = match rule.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => true,
            // Checked with the properties.
            "additionalProperties" | "propertyNames" => true,
            "$ref" => {
                let target = root.pointer(wanted.as_str().unwrap().trim_start_matches('#'));
                check(target.unwrap(), root, value, at)?;
                true
            }
            "type" => match wanted {
                Value::Array(kinds) => kinds.iter().any(|kind| is_a(kind, value)),
                kind => is_a(kind, value),
            },
            "const" => wanted == value,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().unwrap()),
            "anyOf" | "oneOf" => wanted.as_array().unwrap().iter().any(|one| check(one, root, value, at).is_ok()),
            "required" => wanted.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(wanted, root, item, &format!("{at}[{index}]"))?;
                }
                true
            }
            "prefixItems" => {
                for (kind, item) in wanted.as_array().unwrap().iter().zip(value.as_array().into_iter().flatten()) {
                    check(kind, root, item, at)?;
                }
                true
            }
            "properties" => true,
            unknown => return Err(format!("{at}: the check does not know `{unknown}`")),
        };
        if !holds {
            return Err(format!("{at}: {value} is not `{rule}`: {wanted}"));
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        match (schema["properties"].get(name), rules.get("additionalProperties")) {
            (Some(kind), _) => check(kind, root, field, &at)?,
            (None, Some(kind)) if *kind != json!(false) => check(kind, root, field, &at)?,
            // An object without `properties` is described elsewhere.
            (None, _) if schema.get("properties").is_none() => {}
            (None, _) => return Err(format!("{at}: the schema does not have it")),
        }
    }
    Ok(())
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("{unknown}"),
    }
}

fn schema(bench: &Bench, output: &str) -> Value {
    serde_json::from_str(&bench.succeed(&["schema", output]).stdout).unwrap()
}

fn holds(bench: &Bench, output: &str, value: &Value) {
    let schema = schema(bench, output);
    check(&schema, &schema, value, output).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn results_are_as_their_schema_says() {
    let bench = Bench::new();
    let trace = bench.small_trace(3000);
    holds(&bench, "compare", &bench.json(&["compare", &trace, "--seeds", "2"]));
    for scheme in ["opfcl", "pslc-dynamic"] {
        holds(&bench, "replay", &bench.json(&["replay", &trace, "--scheme", scheme, "--intervals", "4"]));
    }
}

#[test]
fn advice_and_profiles_are_as_their_schema_says() {
    let bench = Bench::new();
    let trace = bench.small_trace(1000);
    holds(&bench, "profile", &bench.json(&["profile", &trace]));
    // Goals that are met, with drives, and goals that no device meets.
    for (p99, drives) in [("10s", "sn770"), ("1us", "none")] {
        let few = ["--schemes", "pagemap", "--chips", "slc-2011,mlc-2008", "--simulations", "4", "--drives", drives];
        bench.run(&[&["advise", &trace, "--life", "1d", "--p99", p99, "--json", "advice.json"], &few[..]].concat());
        let advice: Value = serde_json::from_slice(&std::fs::read(bench.path("advice.json")).unwrap()).unwrap();
        holds(&bench, "advise", &advice);
    }
}

#[test]
fn rows_of_a_sweep_are_as_their_schema_says() {
    let bench = Bench::new();
    let study = "traces = [{ limit = 300 }]\n[[grids]]\nscheme = [\"pagemap\", \"opfcl\"]\nset.\"slow.spare\" = [\"9%\", \"0%\"]";
    bench.file("study.toml", study);
    bench.run(&["sweep", "study.toml", "--json", "rows.json"]);
    let rows: Value = serde_json::from_slice(&std::fs::read(bench.path("rows.json")).unwrap()).unwrap();
    assert!(rows.as_array().unwrap().len() >= 2);
    holds(&bench, "sweep", &rows);
}

/// The recorded reproductions are outputs with every kind of figure. The output for a user's trace names this trace.
#[test]
fn reproductions_are_as_their_schema_says() {
    let bench = Bench::new();
    for recorded in
        [include_str!("../../../docs/papers/reproduction.json"), include_str!("../../../docs/papers/full-size.json")]
    {
        holds(&bench, "paper", &serde_json::from_str(recorded).unwrap());
    }
    let trace = bench.small_trace(1000);
    holds(&bench, "paper", &bench.json(&["paper", "hyssd", "--on", &trace]));
}

#[test]
fn generated_traces_and_drives_are_as_their_schema_says() {
    let bench = Bench::new();
    let trace = bench.small_trace(1000);
    holds(&bench, "generate", &bench.json(&["generate", "kv-cache", "k.bimetal", "--set", "requests=12000"]));
    holds(&bench, "generate-like", &bench.json(&["generate", "--like", &trace, "like.bimetal"]));
    holds(&bench, "drives", &bench.json(&["drives", "sn770"]));
}

#[test]
fn lists_are_as_their_schema_says() {
    let bench = Bench::new();
    for what in ["schemes", "chips", "drives", "devices", "formats", "workloads", "papers"] {
        holds(&bench, &format!("list-{what}"), &bench.json(&["list", what]));
    }
}

#[cfg(live)]
#[test]
fn figures_of_stores_are_as_their_schema_says() {
    let bench = Bench::new();
    for scheme in ["pagemap", "opfcl"] {
        bench.succeed(&["create", scheme, "--scheme", scheme, "--capacity", "16MiB", "--sparse"]);
        holds(&bench, "stat", &bench.json(&["stat", scheme]));
        holds(&bench, "check", &bench.json(&["check", scheme]));
        let image = format!("{scheme}.img");
        holds(&bench, "check-rescue", &bench.json(&["check", scheme, "--rescue", &image]));
    }
}

#[test]
fn the_check_finds_what_is_wrong() {
    let bench = Bench::new();
    let schema = schema(&bench, "list-schemes");
    let right = bench.json(&["list", "schemes", "pagemap"]);
    let mut wrongs = [right.clone(), right.clone(), right];
    wrongs[0][0]["new"] = json!(1);
    wrongs[1][0]["summary"] = json!(1);
    wrongs[2][0].as_object_mut().unwrap().remove("source");
    for (wrong, said) in wrongs.iter().zip(["new", "summary", "required"]) {
        let found = check(&schema, &schema, wrong, "list").unwrap_err();
        assert!(found.contains(said), "{found}");
    }
    bench.fail(&["schema", "compar"], 2, &["compar"]);
}
