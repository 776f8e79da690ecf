//! Sweeps: errors in a study name the line, an interrupted sweep continues, and every row can be repeated.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::Bench;
use serde_json::Value;

/// The rows of a JSON file, without figures that differ between runs.
fn rows(bench: &Bench, file: &str) -> Vec<Value> {
    let mut rows: Vec<Value> = serde_json::from_slice(&fs::read(bench.path(file)).unwrap()).unwrap();
    for row in &mut rows {
        for speed in ["wall_s", "requests_per_s"] {
            row.as_object_mut().unwrap().remove(speed).unwrap();
        }
    }
    rows
}

const GRID: &str = "
[[traces]]
files = \"small.spc\"
[[traces]]
generate = \"zipf\"
set = { requests = 2000, span = \"24MiB\" }
[replay]
repeat = 2
measure = 1
[[grids]]
scheme = [\"pagemap\", \"wlaftl\", \"opfcl\"]
set.\"fast.capacity\" = [\"4MiB\", \"6MiB\"]
set.\"slow.spare\" = [\"30%\", \"50%\"]
";

#[test]
fn what_is_wrong_with_a_study_is_said_with_its_line() {
    let bench = Bench::new();
    bench.fail(&["sweep", "none.toml"], 1, &["none.toml", "cannot be read", "No such file"]);
    bench.file("bad.toml", "title = \"x\"\n[[grids]]\nscheme = \"nosuch\"\n");
    bench.fail(&["sweep", "bad.toml"], 1, &["bad.toml: line 3: ", "`nosuch`", "pagemap, "]);
    bench.file("unknown.toml", "[[grids]]\nschemes = \"pagemap\"\n");
    bench.fail(&["sweep", "unknown.toml"], 1, &["unknown.toml: line 2: ", "schemes"]);
    bench.fail(&["sweep"], 2, &["STUDY"]);
    bench.file("good.toml", "");
    bench.fail(&["sweep", "good.toml", "--jobs", "0"], 2, &["jobs"]);
    for option in ["--csv", "--parquet", "--html", "--json"] {
        bench.fail(&["sweep", "good.toml", option, "nowhere/out"], 1, &["nowhere/out", "cannot be written"]);
    }
    assert!(!bench.path("good.results.jsonl").exists());
}

#[test]
fn a_dry_run_lists_the_points_and_runs_none() {
    let bench = Bench::new();
    bench.small_trace(100);
    bench.file("study.toml", GRID);
    let listed = bench.succeed(&["sweep", "study.toml", "--dry-run"]).stdout;
    // A page map has no SLC, and a cache no spare area of MLC.
    assert_eq!(listed.lines().count(), 1 + 2 * (2 + 4 + 2) + 1, "{listed}");
    assert!(listed.ends_with("16 points\n") && listed.contains("fast.capacity=6MiB"), "{listed}");
    assert!(!bench.path("study.results.jsonl").exists());
    for option in ["--csv", "--parquet", "--html", "--json"] {
        bench.fail(&["sweep", "study.toml", "--dry-run", option, "out"], 2, &["--dry-run", option]);
    }
}

#[test]
fn threads_make_no_difference_and_all_exports_have_all_rows() {
    let bench = Bench::new();
    bench.small_trace(2000);
    bench.file("study.toml", GRID);
    let ran = bench.succeed(&[
        "sweep",
        "study.toml",
        "--jobs",
        "1",
        "--json",
        "one.json",
        "--csv",
        "one.csv",
        "--parquet",
        "one.parquet",
    ]);
    assert!(ran.stdout.contains("16 points: 16 done, 0 failed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("small.spc, closed:1") && ran.stdout.contains("zipf, closed:1"), "{}", ran.stdout);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
    let one = rows(&bench, "one.json");
    assert_eq!(one.len(), 16);
    assert_eq!(
        fs::read_to_string(bench.path("one.csv")).unwrap().lines().next().unwrap().split(',').next(),
        Some("trace")
    );
    let parquet = fs::read(bench.path("one.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    bench.succeed(&["sweep", "study.toml", "--jobs", "2", "--restart", "--json", "two.json"]);
    assert_eq!(rows(&bench, "two.json"), one);
    // No point is left to run; the rows are bit-identical, with their earlier speeds.
    bench.succeed(&["sweep", "study.toml", "--json", "again.json"]);
    assert!(fs::read(bench.path("again.json")).unwrap() == fs::read(bench.path("two.json")).unwrap());
}

#[test]
fn killed_at_any_moment_a_study_goes_on() {
    let bench = Bench::new();
    bench.small_trace(20_000);
    bench.file("study.toml", GRID);
    bench.succeed(&["sweep", "study.toml", "--results", "whole.jsonl", "--json", "whole.json"]);
    let whole = rows(&bench, "whole.json");
    let path = bench.path("study.results.jsonl");
    let lines = || fs::read(&path).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count());
    // Each time it is killed a few rows later.
    for least in [1, 2, 4, 9] {
        let mut child = bench.command(&["sweep", "study.toml", "--jobs", "2"]).stdout(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while lines() < least && child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(120));
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = lines();
    assert!(before >= 9);
    bench.succeed(&["sweep", "study.toml", "--json", "resumed.json"]);
    assert_eq!(rows(&bench, "resumed.json"), whole);
    assert_eq!(lines(), 17, "none was run twice");
}

#[test]
fn failed_points_are_said_and_do_not_stop_the_others() {
    let bench = Bench::new();
    bench.small_trace(300);
    let study = |values: &str| {
        let text = format!(
            "traces = [{{ files = \"small.spc\" }}]\n[[grids]]\nscheme = \"pagemap\"\nset.\"slow.spare\" = {values}"
        );
        bench.file("study.toml", text);
    };
    study("[\"0%\", \"30%\", \"0.1%\"]");
    let ran = bench.succeed(&["sweep", "study.toml", "--json", "out.json"]);
    assert!(ran.stdout.contains("3 points: 1 done, 2 failed"), "{}", ran.stdout);
    let warnings: Vec<&str> = ran.stderr.lines().collect();
    assert!(warnings.len() == 2 && warnings.iter().all(|line| line.contains("spare")), "{}", ran.stderr);
    let rows = rows(&bench, "out.json");
    assert_eq!(rows[0]["failure"], "refused");
    assert!(rows[0]["error"].as_str().unwrap().contains("`pagemap` cannot run") && rows[0]["mean_us"].is_null());
    assert!(rows[1]["error"].is_null() && rows[1]["mean_us"].is_f64());
    study("\"0%\"");
    let ran = bench.run(&["sweep", "study.toml"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("no point of the study could be run"), "{}", ran.stderr);
    // Schemes of `all` that cannot run are left out.
    bench.file("all.toml", "traces = [{ files = \"small.spc\" }]\n[[grids]]\ndevice = \"chang-c3-mlc\"\nset.logical = \"32MiB\"\nset.\"slow.capacity\" = \"48MiB\"");
    let ran = bench.succeed(&["sweep", "all.toml", "--json", "all.json"]);
    assert!(ran.stdout.contains("left out: schemes that a device does not allow"), "{}", ran.stdout);
    let rows = self::rows(&bench, "all.json");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["failure"].is_null()));
}

#[test]
fn results_of_others_are_left_alone() {
    let bench = Bench::new();
    bench.small_trace(50);
    bench.file("study.toml", "traces = [{ files = \"small.spc\" }]\n[[grids]]\nscheme = \"pagemap\"\n");
    let other = bench.file("other.csv", "0,0,4096,w,0.0\n");
    let before = fs::read(bench.path(&other)).unwrap();
    for restart in [&[][..], &["--restart"]] {
        let arguments = [&["sweep", "study.toml", "--results", &other], restart].concat();
        bench.fail(&arguments, 1, &["other.csv", "no results file", "--results"]);
        assert!(fs::read(bench.path(&other)).unwrap() == before);
    }
    bench.file("old.jsonl", "{\"bimetal-sweep\":0,\"bimetal\":\"0.0.1\"}\n");
    bench.fail(&["sweep", "study.toml", "--results", "old.jsonl"], 1, &["old.jsonl", "0.0.1", "--restart"]);
    bench.succeed(&["sweep", "study.toml", "--results", "old.jsonl", "--restart"]);
    let held = File::open(bench.path("old.jsonl")).unwrap();
    held.lock().unwrap();
    bench.fail(&["sweep", "study.toml", "--results", "old.jsonl"], 1, &["old.jsonl", "another sweep"]);
}

#[test]
fn the_command_of_a_row_repeats_its_figures() {
    let bench = Bench::new();
    bench.small_trace(800);
    fs::create_dir(bench.path("my studies")).unwrap();
    let folder = bench.path("my studies");
    fs::rename(bench.path("small.spc"), folder.join("it's small.spc")).unwrap();
    let device = bench.succeed(&["list", "devices", "chang-c3"]).stdout;
    let device = device.replace("20GiB", "64MiB").replace("21GiB", "112MiB").replace("256MiB", "16MiB");
    fs::write(folder.join("a device.toml"), device).unwrap();
    let study = "
        [[traces]]
        name = \"files\"
        files = [\"it's small.spc\", \"it's small.spc\"]
        format = \"spc\"
        limit = 1200
        [[traces]]
        generate = \"zipf\"
        set = { requests = 900, span = \"24MiB\" }
        seed = 5
        [replay]
        arrivals = [\"closed:4\", \"trace:0.5\"]
        repeat = 3
        measure = 2
        fill = \"none\"
        seed = 7
        [[grids]]
        device = [\"auto\", \"a device.toml\"]
        scheme = [\"chang\", \"pagemap\"]
        set.\"slow.chip\" = \"chang-mlc\"
        set.\"slow.endurance\" = 2000
        set.\"slow.spare\" = \"60%\"
        ";
    fs::write(folder.join("study.toml"), study).unwrap();
    // From another folder: names in a study are relative to the study.
    bench.succeed(&["sweep", "my studies/study.toml", "--json", "out.json"]);
    let rows = rows(&bench, "out.json");
    assert_eq!(rows.len(), 16);
    let binary = Path::new(env!("CARGO_BIN_EXE_bimetal")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for row in rows {
        assert!(row["failure"].is_null(), "{row}");
        let command = format!("{} --json -", row["command"].as_str().unwrap());
        let ran = Command::new("sh").args(["-euc", &command]).current_dir(&folder).env("PATH", &path).output().unwrap();
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
        let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
        let result = &result["results"][0];
        for figure in ["mean", "p50", "p99", "p999", "max"] {
            assert_eq!(row[format!("{figure}_us")], result["response_us"][figure], "{command}: {figure}");
        }
        for figure in
            ["cost_usd", "energy_j", "lifetime_years", "lifetime_host_bytes", "write_amplification", "simulated_s"]
        {
            assert_eq!(row[figure], result[figure], "{command}: {figure}");
        }
        assert_eq!(result["device"]["seed"], 7);
    }
}
