//! `docs/checked.md`: figures of other programs, compared with ours.
//!
//! The commands and devices are those of the page, so that the test measures exactly the runs that a reader repeats.
//! `BIMETAL_UPDATE_DOCS=1` rewrites the table, and that of drives, whose figures are those of `docs/real-drives.json`.

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
    /// Words that occur together only in the page's command that measures our figure.
    command: &'static str,
    ours: fn(&Value) -> f64,
}

/// The name of a figure, and how it is read from our results.
type Figure = (&'static str, fn(&Value) -> f64);

/// Largest difference between both programs.
const BOUND_PERCENT: f64 = 3.0;
/// The same for SepBIT, whose rules are all settings of ours.
const SEPBIT_BOUND_PERCENT: f64 = 1.0;

impl Row {
    fn bound_percent(&self) -> f64 {
        if self.program == "SepBIT" { SEPBIT_BOUND_PERCENT } else { BOUND_PERCENT }
    }
}

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

/// The share of reads that the disk does not serve.
fn hit_rate(result: &Value) -> f64 {
    result["metrics"]["read_hit_rate"].as_f64().unwrap()
}

/// In the second half of a replay.
fn amplification_then(result: &Value) -> f64 {
    let half = result["intervals"].as_array().unwrap().last().unwrap();
    half["ops"][0]["program_bytes"].as_f64().unwrap() / half["write_bytes"].as_f64().unwrap()
}

const WRITES: &str = "600,000 writes, Zipf 0.9";
const MIXED: &str = "300,000 requests, Zipf 0.9";
const ERASES: &str = "SLC erases";
const DEMOTED: &str = "pages sent to MLC";
const HIT_RATE: &str = "hit rate of reads";
const FETCHED: &str = "pages read from the disk";
const DESTAGED: &str = "pages destaged";

const fn laboratory(program: &'static str, command: &'static str, (figure, ours): Figure, theirs: f64) -> Row {
    Row { program, requests: WRITES, figure, theirs, command, ours }
}

const fn layer(command: &'static str, (figure, ours): Figure, theirs: f64) -> Row {
    Row { program: "flash cache layer", requests: MIXED, figure, theirs, command, ours }
}

const fn ssd_iq(requests: &'static str, command: &'static str, theirs: f64) -> Row {
    let figure = "write amplification";
    Row { program: "SSD-iq, `greedy-s2r`", requests, figure, theirs, command, ours: amplification }
}

const fn sepbit(requests: &'static str, command: &'static str, (figure, ours): Figure, theirs: f64) -> Row {
    Row { program: "SepBIT", requests, figure, theirs, command, ours }
}

const GREEDY: Figure = ("write amplification, greedy", amplification_then);
const COST_BENEFIT: Figure = ("write amplification, cost-benefit", amplification_then);
const UNIFORM_15: &str = "uniform, 15 % garbage";
const UNIFORM_10: &str = "uniform, 10 % garbage";
const ZIPF_15: &str = "Zipf 0.99, 15 % garbage";
const ZIPF_10: &str = "Zipf 0.99, 10 % garbage";
const ZIPF_8: &str = "Zipf 0.99, 8.26 % garbage";

const ROWS: [Row; 35] = [
    laboratory("FlashSim fork, CFTL", "--scheme cftl", (ERASES, erases), 14_629.0),
    laboratory("FlashSim fork, CFTL", "--scheme cftl", (DEMOTED, demoted), 170_910.0),
    laboratory("FlashSim fork, ComboFTL", "--scheme comboftl", (ERASES, erases), 21_257.0),
    laboratory("FlashSim fork, ComboFTL", "--scheme comboftl", (DEMOTED, demoted), 61_160.0),
    laboratory("FlashSim fork, WLAFTL", "--scheme wlaftl-static", (ERASES, erases), 16_348.0),
    laboratory("FlashSim fork, WLAFTL", "--scheme wlaftl-static", (DEMOTED, demoted), 134_784.0),
    laboratory("FlashSim fork, WLAFTL", "--scheme wlaftl-static", ("pages sent round", round), 107_990.0),
    layer("--scheme fpfcl", (FETCHED, fetched), 32_520.0),
    layer("--scheme fpfcl", (DESTAGED, destaged), 36_571.0),
    layer("--scheme fpfcl", (HIT_RATE, hit_rate), 0.7288),
    layer("--scheme opfcl", (FETCHED, fetched), 36_296.0),
    layer("--scheme opfcl", (DESTAGED, destaged), 38_206.0),
    layer("--scheme opfcl", (HIT_RATE, hit_rate), 0.698),
    layer("--scheme rwfcl", (FETCHED, fetched), 32_573.0),
    layer("--scheme rwfcl", (DESTAGED, destaged), 32_000.0),
    layer("--scheme rwfcl", (HIT_RATE, hit_rate), 0.7287),
    ssd_iq("uniform writes", "replay uniform.csv", 4.092),
    ssd_iq("writes, Zipf 0.8", "replay zipf08.csv", 4.360),
    ssd_iq("writes, Zipf 1.0", "replay zipf10.csv", 4.334),
    sepbit(UNIFORM_15, "sepbit-u.csv pagemap victim=greedy gc_garbage_percent=15", GREEDY, 3.4423),
    sepbit(UNIFORM_10, "sepbit-u.csv pagemap victim=greedy gc_garbage_percent=10", GREEDY, 5.0026),
    sepbit(ZIPF_15, "sepbit-z.csv pagemap victim=greedy gc_garbage_percent=15", GREEDY, 3.7948),
    sepbit(ZIPF_10, "sepbit-z.csv pagemap victim=greedy gc_garbage_percent=10", GREEDY, 5.2324),
    sepbit(ZIPF_8, "sepbit-z.csv pagemap victim=greedy gc_garbage_percent=8.26", GREEDY, 6.10),
    sepbit(UNIFORM_15, "sepbit-u.csv pagemap victim=cost-benefit gc_garbage_percent=15", COST_BENEFIT, 3.45),
    sepbit(ZIPF_15, "sepbit-z.csv pagemap victim=cost-benefit gc_garbage_percent=15", COST_BENEFIT, 2.68),
    sepbit(ZIPF_8, "sepbit-z.csv pagemap victim=cost-benefit gc_garbage_percent=8.26", COST_BENEFIT, 4.21),
    sepbit(UNIFORM_15, "sepbit-u.csv sepbit victim=greedy gc_garbage_percent=15", GREEDY, 3.44),
    sepbit(ZIPF_15, "sepbit-z.csv sepbit victim=greedy gc_garbage_percent=15", GREEDY, 2.91),
    sepbit(UNIFORM_15, "sepbit-u.csv sepbit victim=cost-benefit gc_garbage_percent=15", COST_BENEFIT, 3.45),
    sepbit(ZIPF_15, "sepbit-z.csv sepbit victim=cost-benefit gc_garbage_percent=15", COST_BENEFIT, 2.37),
    sepbit(ZIPF_8, "sepbit-z.csv sepbit victim=cost-benefit gc_garbage_percent=8.26", COST_BENEFIT, 3.61),
    sepbit(UNIFORM_15, "sepbit-u.csv dac victim=cost-benefit gc_garbage_percent=15", COST_BENEFIT, 3.44),
    sepbit(ZIPF_15, "sepbit-z.csv dac victim=cost-benefit gc_garbage_percent=15", COST_BENEFIT, 2.16),
    sepbit(ZIPF_8, "sepbit-z.csv dac victim=cost-benefit gc_garbage_percent=8.26", COST_BENEFIT, 3.43),
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

/// The results of the page's replays, by their commands.
fn results(text: &str) -> Vec<(&str, Value)> {
    let bench = Bench::new();
    for block in text.split("```toml\n# ").skip(1) {
        let (file, rest) = block.split_once('\n').unwrap();
        bench.file(file, rest.split("```").next().unwrap());
    }
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("bimetal ")).collect();
    for command in commands.iter().filter(|command| command.starts_with("generate ")) {
        bench.succeed(&command.split(' ').collect::<Vec<_>>());
    }
    let replays = commands.into_iter().filter(|command| command.starts_with("replay "));
    replays
        .map(|command| {
            let result = bench.json(&command.split(' ').collect::<Vec<_>>());
            (command, result["results"][0].clone())
        })
        .collect()
}

/// A difference in percent.
fn difference(percent: f64) -> String {
    if percent.abs() < 0.05 { "0.0 %".to_owned() } else { format!("{percent:+.1} %") }
}

/// The tables of the page are these: each has a mark before it, and one with `end of` after it.
fn compare(text: &str, tables: &[(&str, String)]) {
    let mut renewed = text.to_owned();
    for (mark, table) in tables {
        let (before, rest) = renewed.split_once(&format!("<!-- {mark} -->\n")).unwrap();
        let (_, after) = rest.split_once(&format!("<!-- end of {mark} -->")).unwrap();
        renewed = format!("{before}<!-- {mark} -->\n\n{table}\n<!-- end of {mark} -->{after}");
    }
    if std::env::var_os("BIMETAL_UPDATE_DOCS").is_some() {
        fs::write(page(), renewed).unwrap();
    } else {
        assert_eq!(text, renewed, "BIMETAL_UPDATE_DOCS=1 rewrites the tables of docs/checked.md");
    }
}

#[test]
fn figures_are_those_of_other_programs() {
    let text = fs::read_to_string(page()).unwrap();
    let results = results(&text);
    let mut table =
        String::from("| program | requests | figure | theirs | ours | difference |\n|---|---|---|---:|---:|---:|\n");
    let mut wrong = Vec::new();
    for row in ROWS {
        let has_all = |command: &str| row.command.split(' ').all(|word| command.split(' ').any(|known| known == word));
        let mut named = results.iter().filter(|(command, _)| has_all(command));
        let (Some((command, result)), None) = (named.next(), named.next()) else {
            panic!("{:?} is no one command", row.command)
        };
        let ours = (row.ours)(result);
        let percent = (ours / row.theirs - 1.0) * 100.0;
        table += &format!(
            "| {} | {} | `{}`: {} | {} | {} | {} |\n",
            row.program,
            row.requests,
            result["scheme"].as_str().unwrap(),
            row.figure,
            shown(row.theirs),
            shown(ours),
            difference(percent)
        );
        if percent.abs() > row.bound_percent() {
            wrong.push(format!("{}: {ours} for {}, {percent:+.1} %: bimetal {command}", row.figure, row.theirs));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    compare(&text, &[("checked", table), ("checked drives", drives())]);
}

/// Write amplifications of real drives that were published with SSD-iq, without those that are inputs of the prediction.
/// `drives.rs` predicts them again.
fn drives() -> String {
    let json = fs::read(page().with_file_name("real-drives.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let mut table = String::from("| drive | writes | theirs | ours | difference |\n|---|---|---:|---:|---:|\n");
    for drive in json["drives"].as_array().unwrap() {
        let figures = drive["figures"].as_array().unwrap().iter();
        for figure in figures.filter(|figure| figure["verdict"] != "input") {
            let writes = match figure["figure"].as_str().unwrap() {
                "write_amplification" => "uniform",
                "write_amplification_zipf" => "Zipf 0.8, scattered",
                "write_amplification_zipf_in_order" => "Zipf 0.8, in order",
                _ => continue,
            };
            let [theirs, ours, error] = ["measured", "predicted", "error"].map(|key| figure[key].as_f64().unwrap());
            let title = drive["title"].as_str().unwrap();
            table += &format!("| {title} | {writes} | {theirs:.3} | {ours:.3} | {} |\n", difference(error * 100.0));
        }
    }
    table
}
