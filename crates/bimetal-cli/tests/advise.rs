//! Advice: what is claimed is what a replay finds, prices move the answer, and wrong goals are said.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Command;

use common::Bench;
use serde_json::Value;

const FEW: [&str; 4] = ["--schemes", "pagemap,wlaftl", "--chips", "slc-2011,mlc-2008,mlc-mqsim"];

fn advise(bench: &Bench, arguments: &[&str]) -> Value {
    let all: Vec<&str> = ["advise", "small.spc"].iter().chain(&FEW).chain(arguments).copied().collect();
    let ran = bench.run(&[all.as_slice(), &["--json", "answer.json"]].concat());
    assert!(ran.status == 0 || ran.status == 1, "{}", ran.stderr);
    serde_json::from_slice(&std::fs::read(bench.path("answer.json")).unwrap()).unwrap()
}

/// Replays a choice by its command, and compares every figure that is claimed.
fn confirm(bench: &Bench, choice: &Value) {
    let command = choice["command"].as_str().unwrap().strip_prefix("bimetal").unwrap();
    let binary = env!("CARGO_BIN_EXE_bimetal");
    let output = Command::new("sh")
        .args(["-c", &format!("{binary}{command} --json -")])
        .current_dir(bench.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}");
    let replayed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figures = &replayed["results"][0];
    assert_eq!(figures["cost_usd"], choice["cost_usd"], "{command}");
    assert_eq!(figures["lifetime_years"], choice["life_years"], "{command}");
    for name in ["mean", "p50", "p95", "p99", "p999"] {
        assert_eq!(figures["response_us"][name], choice["response_us"][name], "{command}: {name}");
    }
}

#[test]
fn replays_confirm_every_device_and_its_price() {
    let bench = Bench::new();
    bench.small_trace(3000);
    let answer = advise(&bench, &["--life", "1d", "--p99", "1s", "--budget", "100"]);
    assert!(answer["candidates"].as_u64().unwrap() > answer["simulations"].as_u64().unwrap(), "{answer}");
    confirm(&bench, &answer["recommended"]);
    for choice in answer["front"].as_array().unwrap() {
        confirm(&bench, choice);
    }
    // So are channels and dies, and every region has them all.
    let answer = advise(&bench, &["--mean", "1s", "--channels", "2", "--dies-per-channel", "3"]);
    assert_eq!((&answer["channels"], &answer["dies_per_channel"]), (&Value::from(2), &Value::from(3)));
    assert_eq!(answer["failed"], 0);
    for choice in answer["simulated"].as_array().unwrap() {
        confirm(&bench, choice);
    }
    // Prices that are given are in the command.
    let answer = advise(&bench, &["--p99", "1s", "--price", "mlc=0.05", "--year", "2011"]);
    assert!(answer["recommended"]["command"].as_str().unwrap().contains("usd_per_gib=0.05"), "{answer}");
    confirm(&bench, &answer["recommended"]);
}

#[test]
fn threads_make_no_difference() {
    let bench = Bench::new();
    bench.small_trace(3000);
    let one = advise(&bench, &["--p99", "5ms", "--jobs", "1"]);
    assert_eq!(advise(&bench, &["--p99", "5ms", "--jobs", "2"]), one);
}

#[test]
fn where_no_device_meets_the_goals_the_closest_are_named() {
    let bench = Bench::new();
    bench.small_trace(3000);
    // The answer is no less one than another.
    let ran = bench.run(&["advise", "small.spc", "--p99", "1us", "--simulations", "4"]);
    assert!(ran.status == 1 && ran.stderr.contains("no device that was simulated meets all goals"), "{}", ran.stderr);
    assert!(ran.stdout.contains("The closest:"), "{}", ran.stdout);
    let answer = advise(&bench, &["--p99", "1us", "--life", "1d"]);
    assert_eq!(answer["recommended"], Value::Null);
    assert_eq!(answer["binds"], "latency");
    let closest = &answer["closest"][0];
    assert!(closest["excess"][1].as_f64().unwrap() > 1.0, "{closest}");
    confirm(&bench, closest);
}

#[test]
fn of_devices_that_all_fall_behind_the_fastest_is_the_closest() {
    let bench = Bench::new();
    bench.small_trace(3000);
    let hurried = ["--arrivals", "trace:100000", "--mean", "1ms", "--channels", "2"];
    let answer = advise(&bench, &hurried);
    assert_eq!((&answer["recommended"], &answer["binds"]), (&Value::Null, &Value::from("latency")));
    let times = |choice: &Value| choice["overload"].as_f64().unwrap();
    let closest = &answer["closest"][0];
    assert!(times(closest) > 1.0 && closest["response_us"].is_null(), "{closest}");
    assert!(answer["simulated"].as_array().unwrap().iter().all(|choice| times(choice) >= times(closest)), "{answer}");
    let ran = bench.run(&[&["advise", "small.spc"], FEW.as_slice(), &hurried, &["--html", "all.html"]].concat());
    let page = std::fs::read_to_string(bench.path("all.html")).unwrap();
    for said in ["Every device falls behind", "No device meets all goals from a quarter", " x overload"] {
        assert!(page.contains(said), "{said}");
    }
    assert!(ran.stdout.contains("times as long as requests take to arrive"), "{}", ran.stdout);
    assert!(ran.stdout.contains("of 2 dies a region"), "{}", ran.stdout);
}

#[test]
fn what_is_wrong_is_said() {
    let bench = Bench::new();
    bench.small_trace(100);
    bench.fail(&["advise", "small.spc"], 2, &["no goal", "--life 5y"]);
    for (option, value, said) in [
        ("--life", "5", "90d"),
        ("--p99", "fast", "500us"),
        ("--budget", "5y", "dollars"),
        ("--price", "tlc", "KEY=VALUE"),
        ("--price", "plc=1", "qlc"),
        ("--year", "1999", "2009"),
        ("--chips", "nosuch", "tlc-3d-2021"),
        ("--schemes", "nosuch", "pagemap"),
        ("--schemes", "opfcl", "--disk"),
        ("--disk", "nosuch", "nearline-18tb"),
        ("--capacity", "1KiB", "touches"),
        ("--simulations", "0", "simulations"),
        ("--channels", "0", "from 1 to 64"),
        ("--dies-per-channel", "65", "from 1 to 64"),
    ] {
        bench.fail(&["advise", "small.spc", "--mean", "1s", option, value], 2, &[said]);
    }
    bench.fail(&["advise", "small.spc", "--mean", "1s", "--prices", "none.toml"], 1, &["none.toml", "cannot be read"]);
    bench.file("prices.toml", "[[prices]]\nyear = 2026\ncell = \"tlc\"\n");
    bench.fail(
        &["advise", "small.spc", "--mean", "1s", "--prices", "prices.toml"],
        1,
        &["prices.toml: line 1", "usd_per_gib"],
    );
    bench.fail(&["advise", "small.spc", "--mean", "1s", "--html", "nowhere/x"], 1, &["nowhere/x", "cannot be written"]);
}

#[test]
fn a_trace_without_duration_needs_a_rate() {
    let bench = Bench::new();
    let lines: String = (0..200).map(|at| format!("0,{},4096,w,0.0\n", at % 50 * 8)).collect();
    bench.file("still.spc", lines);
    // After a warning that they have one time stamp.
    let ran = bench.run(&["advise", "still.spc", "--life", "1d"]);
    assert!(ran.status == 2 && ran.stdout.is_empty(), "{}", ran.stdout);
    assert!(ran.stderr.contains("no duration") && ran.stderr.contains("--writes-per-day"), "{}", ran.stderr);
    let few = ["--schemes", "pagemap", "--chips", "mlc-2008", "--simulations", "4"];
    bench.succeed(&[&["advise", "still.spc", "--life", "1d", "--writes-per-day", "1MiB"], few.as_slice()].concat());
}
