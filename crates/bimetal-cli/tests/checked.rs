//! `docs/checked.md`: figures of other programs, compared with ours.
//!
//! The commands and devices are those of the page, so that the test measures exactly the runs that a reader repeats.
//! `BIMETAL_UPDATE_DOCS=1` rewrites the table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::Bench;
use serde_json::Value;

/// A figure of another program.
struct Row {
    program: &'static str,
    requests: &'static str,
    figure: &'static str,
    theirs: f64,
    /// Words that occur only in the page's command that measures our figure.
    command: &'static str,
    ours: fn(&Value) -> f64,
}

/// Largest difference between both programs.
const BOUND_PERCENT: f64 = 3.0;

/// Operations of a region or disk, for one cause or for all.
fn count(result: &Value, region: &str, op: &str, cause: Option<&str>) -> f64 {
    let rows = result["ops"].as_array().unwrap().iter();
    let counted = rows
        .filter(|row| row["region"] == region && row["op"] == op && cause.is_none_or(|cause| row["cause"] == cause));
    counted.map(|row| row["count"].as_f64().unwrap()).sum()
}

fn erases(result: &Value) -> f64 {
    count(result, "slc", "erase", None)
}

fn demoted(result: &Value) -> f64 {
    count(result, "slc", "read", Some("migrate_down"))
}

fn round(result: &Value) -> f64 {
    count(result, "slc", "program", Some("gc"))
}

fn fetched(result: &Value) -> f64 {
    count(result, "disk", "read", None)
}

fn destaged(result: &Value) -> f64 {
    count(result, "disk", "write", None)
}

fn amplification(result: &Value) -> f64 {
    result["write_amplification"].as_f64().unwrap()
}

const WRITES: &str = "600,000 writes, Zipf 0.9";
const MIXED: &str = "300,000 requests, Zipf 0.9";
const ERASES: &str = "SLC erases";
const DEMOTED: &str = "pages sent to MLC";
const FETCHED: &str = "pages read from the disk";
const DESTAGED: &str = "pages destaged";

const fn laboratory(
    program: &'static str,
    command: &'static str,
    (figure, ours): (&'static str, fn(&Value) -> f64),
    theirs: f64,
) -> Row {
    Row { program, requests: WRITES, figure, theirs, command, ours }
}

const fn layer(command: &'static str, (figure, ours): (&'static str, fn(&Value) -> f64), theirs: f64) -> Row {
    Row { program: "flash cache layer", requests: MIXED, figure, theirs, command, ours }
}

const fn ssd_iq(requests: &'static str, command: &'static str, theirs: f64) -> Row {
    let figure = "write amplification";
    Row { program: "SSD-iq, `greedy-s2r`", requests, figure, theirs, command, ours: amplification }
}

const ROWS: [Row; 16] = [
    laboratory("FlashSim fork, CFTL", "--scheme cftl", (ERASES, erases), 14_629.0),
    laboratory("FlashSim fork, CFTL", "--scheme cftl", (DEMOTED, demoted), 170_910.0),
    laboratory("FlashSim fork, ComboFTL", "--scheme comboftl", (ERASES, erases), 21_257.0),
    laboratory("FlashSim fork, ComboFTL", "--scheme comboftl", (DEMOTED, demoted), 61_160.0),
    laboratory("FlashSim fork, WLAFTL", "--scheme wlaftl-static", (ERASES, erases), 16_348.0),
    laboratory("FlashSim fork, WLAFTL", "--scheme wlaftl-static", (DEMOTED, demoted), 134_784.0),
    laboratory("FlashSim fork, WLAFTL", "--scheme wlaftl-static", ("pages sent round", round), 107_990.0),
    layer("--scheme fpfcl", (FETCHED, fetched), 32_520.0),
    layer("--scheme fpfcl", (DESTAGED, destaged), 36_571.0),
    layer("--scheme opfcl", (FETCHED, fetched), 36_296.0),
    layer("--scheme opfcl", (DESTAGED, destaged), 38_206.0),
    layer("--scheme rwfcl", (FETCHED, fetched), 32_573.0),
    layer("--scheme rwfcl", (DESTAGED, destaged), 32_000.0),
    ssd_iq("uniform writes", "replay uniform.csv", 4.092),
    ssd_iq("writes, Zipf 0.8", "replay zipf08.csv", 4.360),
    ssd_iq("writes, Zipf 1.0", "replay zipf10.csv", 4.334),
];

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checked.md")
}

/// A number in the form of the table.
fn shown(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.3}");
    }
    let digits = format!("{value:.0}");
    let (head, tail) = digits.split_at(digits.len() - 3);
    format!("{head},{tail}")
}

#[test]
fn figures_are_those_of_other_programs() {
    let text = fs::read_to_string(page()).unwrap();
    let bench = Bench::new();
    for block in text.split("```toml\n# ").skip(1) {
        let (file, rest) = block.split_once('\n').unwrap();
        bench.file(file, rest.split("```").next().unwrap());
    }
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("bimetal ")).collect();
    for command in commands.iter().filter(|command| command.starts_with("generate ")) {
        bench.succeed(&command.split(' ').collect::<Vec<_>>());
    }
    let mut results: Vec<(&str, Value)> = Vec::new();
    for command in commands.iter().filter(|command| command.starts_with("replay ")) {
        let result = bench.json(&command.split(' ').collect::<Vec<_>>());
        results.push((command, result["results"][0].clone()));
    }
    let mut table =
        String::from("| program | requests | figure | theirs | ours | difference |\n|---|---|---|---:|---:|---:|\n");
    let mut wrong = Vec::new();
    for row in ROWS {
        let mut named = results.iter().filter(|(command, _)| command.contains(row.command));
        let (Some((command, result)), None) = (named.next(), named.next()) else {
            panic!("{:?} is no one command", row.command)
        };
        let ours = (row.ours)(result);
        let percent = (ours / row.theirs - 1.0) * 100.0;
        let difference = if percent.abs() < 0.05 { "0.0".to_owned() } else { format!("{percent:+.1}") };
        let scheme = result["scheme"].as_str().unwrap();
        table += &format!(
            "| {} | {} | `{scheme}`: {} | {} | {} | {difference} % |\n",
            row.program,
            row.requests,
            row.figure,
            shown(row.theirs),
            shown(ours)
        );
        if percent.abs() > BOUND_PERCENT {
            wrong.push(format!("{}: {ours} for {}, {percent:+.1} %: bimetal {command}", row.figure, row.theirs));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let (before, rest) = text.split_once("<!-- checked -->\n").unwrap();
    let (known, after) = rest.split_once("<!-- end of checked -->").unwrap();
    if std::env::var_os("BIMETAL_UPDATE_DOCS").is_some() {
        fs::write(page(), format!("{before}<!-- checked -->\n\n{table}\n<!-- end of checked -->{after}")).unwrap();
    } else {
        assert_eq!(known.trim(), table.trim(), "BIMETAL_UPDATE_DOCS=1 rewrites the table of docs/checked.md");
    }
}
