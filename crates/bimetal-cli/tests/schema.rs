//! The output of `--json` matches `bimetal schema`: every field, its type, and no other fields.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::Bench;
use common::schema::{check, holds, schema};
use serde_json::{Value, json};

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
