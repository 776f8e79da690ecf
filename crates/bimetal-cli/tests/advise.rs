//! Advice: replays confirm its figures, prices change the answer, and wrong goals are reported.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Command;

use common::Bench;
use serde_json::Value;

const FEW: [&str; 4] = ["--schemes", "pagemap,wlaftl", "--chips", "slc-2011,mlc-2008,mlc-mqsim"];
/// A drive that folds its cache, one that bypasses a full cache, and one without a cache.
const DRIVES: [&str; 2] = ["--drives", "samsung-980-1tb,sn770,intel-p4500-2tb"];

fn advise(bench: &Bench, arguments: &[&str]) -> Value {
    let drives: &[&str] = if arguments.contains(&"--drives") { &[] } else { &["--drives", "none"] };
    let all: Vec<&str> = ["advise", "small.spc"].iter().chain(&FEW).chain(drives).chain(arguments).copied().collect();
    let ran = bench.run(&[all.as_slice(), &["--json", "answer.json"]].concat());
    assert!(ran.status == 0 || ran.status == 1, "{}", ran.stderr);
    serde_json::from_slice(&std::fs::read(bench.path("answer.json")).unwrap()).unwrap()
}

/// The figures of a command.
fn replayed(bench: &Bench, command: &str) -> Value {
    let arguments = command.strip_prefix("bimetal").unwrap();
    let binary = env!("CARGO_BIN_EXE_bimetal");
    let output = Command::new("sh")
        .args(["-c", &format!("{binary}{arguments} --json -")])
        .current_dir(bench.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}");
    let replayed: Value = serde_json::from_slice(&output.stdout).unwrap();
    replayed["results"][0].clone()
}

fn same_responses(figures: &Value, claimed: &Value, command: &str) {
    for name in ["mean", "p50", "p95", "p99", "p999"] {
        assert_eq!(figures["response_us"][name], claimed[name], "{command}: {name}");
    }
}

/// Replays a choice by its command, and compares every figure.
fn confirm(bench: &Bench, choice: &Value) {
    let command = choice["command"].as_str().unwrap();
    let figures = replayed(bench, command);
    assert_eq!(figures["cost_usd"], choice["cost_usd"], "{command}");
    assert_eq!(figures["lifetime_host_bytes"], choice["lifetime_host_bytes"], "{command}");
    // Responses of a device that falls behind have no meaning.
    if choice["overload"].is_null() {
        same_responses(&figures, &choice["response_us"], command);
    }
    let (before, after) = command.split_once(" --arrivals trace").unwrap_or((command, ""));
    if after.starts_with(':') {
        // At another speed than the trace's, the command computes lives at the trace's own rate.
        return;
    }
    assert_eq!(figures["lifetime_years"], choice["life_years"], "{command}");
    if !choice["service_us"].is_null() {
        let one_at_a_time = format!("{before} --arrivals closed:1{after}");
        same_responses(&replayed(bench, &one_at_a_time), &choice["service_us"], &one_at_a_time);
    }
}

#[test]
fn replays_confirm_every_device_and_its_price() {
    let bench = Bench::new();
    bench.small_trace(3000);
    let answer = advise(&bench, &["--life", "1d", "--p99", "10s", "--budget", "100"]);
    assert!(answer["candidates"].as_u64().unwrap() > answer["simulations"].as_u64().unwrap(), "{answer}");
    // At the trace's times, with service times in addition.
    assert_eq!(answer["replay"]["arrivals"], "trace");
    assert!(answer["recommended"]["command"].as_str().unwrap().contains("--arrivals trace"), "{answer}");
    confirm(&bench, &answer["recommended"]);
    for choice in answer["front"].as_array().unwrap() {
        assert!(choice["service_us"]["p99"].as_f64() <= choice["response_us"]["p99"].as_f64(), "{choice}");
        confirm(&bench, choice);
    }
    // Channels and dies, which the regions share, are in the command, too.
    let answer = advise(&bench, &["--mean", "10s", "--channels", "2", "--dies-per-channel", "3", "--simulations", "8"]);
    assert_eq!((&answer["dies"], &answer["failed"]), (&serde_json::json!([6]), &Value::from(0)));
    for choice in answer["simulated"].as_array().unwrap() {
        assert_eq!((&choice["channels"], &choice["dies"]), (&Value::from(2), &Value::from(6)), "{choice}");
        confirm(&bench, choice);
    }
    // Given prices are in the command.
    let answer = advise(&bench, &["--p99", "10s", "--price", "mlc=0.05", "--year", "2011", "--simulations", "8"]);
    assert!(answer["recommended"]["command"].as_str().unwrap().contains("usd_per_gib=0.05"), "{answer}");
    confirm(&bench, &answer["recommended"]);
}

#[test]
fn loads_and_closed_loops_are_confirmed_too() {
    let bench = Bench::new();
    bench.small_trace(3000);
    let few = ["--p99", "20s", "--simulations", "6"];
    for (arguments, arrivals) in [
        (["--load", "2x"], "trace:2"),
        (["--load", "500/s"], ""),
        (["--arrivals", "closed"], "closed:1"),
        (["--arrivals", "closed:4"], "closed:4"),
    ] {
        let answer = advise(&bench, &[few.as_slice(), &arguments].concat());
        assert!(answer["replay"]["arrivals"].as_str().unwrap().starts_with(arrivals), "{}", answer["replay"]);
        let chosen = &answer["recommended"];
        assert_eq!(chosen["service_us"].is_null(), arrivals.starts_with("closed"), "{chosen}");
        confirm(&bench, chosen);
    }
    let error = ["advise", "small.spc", "--p99", "1s", "--load", "2x", "--arrivals", "trace"];
    bench.fail(&error, 2, &["`--load 2x`", "leave one of them out"]);
}

#[test]
fn without_times_a_trace_is_replayed_in_a_closed_loop() {
    let bench = Bench::new();
    let lines: String = (0..200).map(|at| format!("0,{},4096,w,0.0\n", at % 50 * 8)).collect();
    bench.file("small.spc", lines);
    let answer = advise(&bench, &["--mean", "1s", "--simulations", "4"]);
    assert_eq!(answer["replay"]["arrivals"], "closed:1");
    assert!(answer["notes"][0].as_str().unwrap().contains("the trace has no times"), "{}", answer["notes"]);
    confirm(&bench, &answer["recommended"]);
    // After a warning that all requests have one time stamp.
    let ran = bench.run(&["advise", "small.spc", "--mean", "1s", "--load", "2x"]);
    assert!(ran.status == 2 && ran.stderr.contains("which has none; hint: `--arrivals closed"), "{}", ran.stderr);
}

#[test]
fn wear_that_is_asked_for_finds_capacity_beyond_the_usual() {
    let bench = Bench::new();
    bench.small_trace(3000);
    // For this number of writes, some hundred times the footprint of the trace has to be bought.
    let arguments = ["--tbw", "100TB", "--budget", "1000", "--chips", "qlc-3d-2020", "--schemes", "pagemap"];
    let ran = bench.run(&[&["advise", "small.spc", "--json", "worn.json"], arguments.as_slice()].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let answer: Value = serde_json::from_slice(&std::fs::read(bench.path("worn.json")).unwrap()).unwrap();
    let chosen = &answer["recommended"];
    assert!(chosen["tbw"].as_f64().unwrap() >= 100.0 && chosen["flash_bytes"].as_f64().unwrap() > 100e9, "{chosen}");
    let days = answer["warranty_years"].as_f64().unwrap() * 365.25;
    assert_eq!(days, 5.0 * 365.25);
    confirm(&bench, chosen);
    let ran = bench.run(&[&["advise", "small.spc"], arguments.as_slice()].concat());
    assert!(ran.stdout.contains("USD less, and") && ran.stdout.contains("of flash instead of"), "{}", ran.stdout);
    // Without a goal for the life, drive writes per day are computed for five years.
    let answer = advise(&bench, &["--dwpd", "0.01", "--simulations", "4"]);
    let notes = answer["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with("the trace lasts ")), "{notes:?}");
    let chosen = &answer["recommended"];
    let expected = chosen["tbw"].as_f64().unwrap() * 1e12 / (chosen["dwpd"].as_f64().unwrap() * days);
    assert!((expected / f64::from(1 << 20)).fract().abs() < 1e-6, "whole MiB of capacity: {expected}");
}

#[test]
fn a_large_capacity_is_simulated_at_a_fraction_of_it() {
    let bench = Bench::new();
    bench.small_trace(1000);
    let arguments = ["--mean", "1s", "--chips", "qlc-3d-2020", "--schemes", "pagemap", "--simulations", "1"];
    let ran =
        bench.run(&[&["advise", "small.spc", "--capacity", "1TiB", "--json", "a.json"], arguments.as_slice()].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let answer: Value = serde_json::from_slice(&std::fs::read(bench.path("a.json")).unwrap()).unwrap();
    let chosen = &answer["recommended"];
    assert!(answer["notes"][0].as_str().unwrap().contains("simulated at 64.0 GiB"), "{}", answer["notes"]);
    let command = chosen["command"].as_str().unwrap();
    let figures = replayed(&bench, command);
    same_responses(&figures, &chosen["response_us"], command);
    assert_eq!(figures["cost_usd"].as_f64().unwrap() * 16.0, chosen["cost_usd"].as_f64().unwrap());
}

/// Schemes are free, so that equally cheap devices differ only in figures.
#[test]
fn no_other_simulated_device_of_the_same_price_is_better() {
    let bench = Bench::new();
    let goals =
        ["advise", "--limit", "3000", "--life", "30d", "--p99", "50ms", "--simulations", "14", "--drives", "none"];
    let few = ["--schemes", "pagemap,dac", "--chips", "tlc-3d-2021", "--channels", "8", "--dies-per-channel", "1"];
    let answer = bench.json(&[&goals[..], &few].concat());
    let chosen = &answer["recommended"];
    let of = |choice: &Value| choice["response_us"]["p99"].as_f64().unwrap();
    let is_same = |choice: &&Value| choice["cost_usd"] == chosen["cost_usd"] && choice["meets"] == true;
    let same: Vec<f64> = answer["simulated"].as_array().unwrap().iter().filter(is_same).map(of).collect();
    assert!(same.len() > 1 && same.iter().all(|&p99| p99 >= of(chosen)), "{same:?} {}", of(chosen));
}

/// The raw capacity ends at limits of the search: what lies beyond is not known to miss the goal.
#[test]
fn capacities_that_end_before_the_budget_leave_the_answer_open() {
    let bench = Bench::new();
    bench.small_trace(300);
    let goal = ["--tbw", "900000PB", "--simulations", "2"];
    let answer = advise(&bench, &goal);
    let is_said = |answer: &Value| {
        let notes = answer["notes"].as_array().unwrap();
        notes.iter().any(|note| note.as_str().unwrap().starts_with("no candidate device has more than"))
    };
    assert_eq!((&answer["recommended"], &answer["is_settled"]), (&Value::Null, &Value::from(false)));
    assert!(is_said(&answer), "{}", answer["notes"]);
    let text = bench.run(&[&["advise", "small.spc", "--drives", "none"], &FEW[..], &goal].concat()).stdout;
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("a device that was not simulated may meet all goals"), "{text}");
    // With a budget, a larger device is no answer.
    assert!(!is_said(&advise(&bench, &[&goal[..], &["--budget", "0.01"]].concat())));
}

/// Replays a drive by its command: responses are those of the drive, life and TBW those of the scaled drive.
fn confirm_drive(bench: &Bench, drive: &Value) {
    let choice = &drive["choice"];
    let command = choice["command"].as_str().unwrap();
    let figures = replayed(bench, command);
    same_responses(&figures, &choice["response_us"], command);
    let scale = drive["scale"].as_f64().unwrap();
    let times = |name: &str| figures[name].as_f64().map(|value| value * scale);
    assert_eq!(times("lifetime_host_bytes"), choice["lifetime_host_bytes"].as_f64(), "{command}");
    if !command.contains(" --arrivals trace:") {
        assert_eq!(times("lifetime_years"), choice["life_years"].as_f64(), "{command}");
    }
    let logical = figures["device"]["logical"].as_str().unwrap();
    let logical_mib: f64 = logical.strip_suffix("MiB").unwrap().parse().unwrap();
    assert_eq!(scale, drive["capacity_bytes"].as_f64().unwrap() / (logical_mib * f64::from(1 << 20)), "{command}");
    if !choice["service_us"].is_null() {
        let (before, after) = command.split_once(" --arrivals trace").unwrap();
        let after = after.split_once(' ').map_or("", |(_, after)| after);
        let one_at_a_time = format!("{before} --arrivals closed:1 {after}");
        same_responses(&replayed(bench, &one_at_a_time), &choice["service_us"], &one_at_a_time);
    }
}

#[test]
fn drives_to_buy_are_confirmed_by_replays_of_them_scaled() {
    let bench = Bench::new();
    bench.small_trace(3000);
    for arrivals in [["--load", "1x"], ["--load", "2x"], ["--arrivals", "closed:4"]] {
        let answer = advise(&bench, &[&["--p99", "20s", "--simulations", "2"], &DRIVES[..], &arrivals].concat());
        let offered = answer["drives"]["offered"].as_array().unwrap();
        assert_eq!(offered.len(), 3, "{answer}");
        for drive in offered {
            confirm_drive(&bench, drive);
        }
    }
    // Drive writes per day are for the whole drive.
    let answer = advise(&bench, &[&["--dwpd", "0.001", "--simulations", "2", "--repeat", "40"], &DRIVES[..]].concat());
    for drive in answer["drives"]["offered"].as_array().unwrap() {
        confirm_drive(&bench, drive);
        let [tbw, dwpd] = ["tbw", "dwpd"].map(|name| drive["choice"][name].as_f64().unwrap());
        let writes = dwpd * drive["capacity_bytes"].as_f64().unwrap() * 5.0 * 365.25;
        assert!((writes / (tbw * 1e12) - 1.0).abs() < 1e-9, "{drive}");
    }
}

/// A write buffer of 64 MiB would take all writes to the 21 MiB that this trace touches.
#[test]
fn a_drive_larger_than_the_trace_has_a_smaller_write_buffer() {
    let bench = Bench::new();
    let question = ["advise", "--limit", "3000", "--mean", "10ms", "--simulations", "1", "--capacity", "4TiB"];
    let few = ["--schemes", "pagemap", "--chips", "qlc-3d-2020", "--drives", "p5430", "--repeat", "40"];
    let answer = bench.json(&[&question[..], &few].concat());
    let drive = &answer["drives"]["offered"][0];
    let command = drive["choice"]["command"].as_str().unwrap();
    assert!(command.contains("--set controller.buffer=32MiB"), "{command}");
    confirm_drive(&bench, drive);
    // Each of its cells endures some 1,500 cycles.
    let cycles = drive["choice"]["tbw"].as_f64().unwrap() * 1e12 / drive["capacity_bytes"].as_f64().unwrap();
    assert!((500.0..3000.0).contains(&cycles), "{cycles}");
    assert!(!answer["notes"].to_string().contains("less than half of the writes"), "{}", answer["notes"]);
    // Without a capacity, the buffer is that of the whole drive, and the answer says what it does.
    let arguments = ["advise", "--limit", "3000", "--mean", "10ms", "--simulations", "1"];
    let answer = bench.json(&[&arguments[..], &few].concat());
    assert!(answer["notes"].to_string().contains("less than half of the writes"), "{}", answer["notes"]);
}

#[test]
fn the_answer_names_the_cheapest_drive_that_meets_all_goals() {
    let bench = Bench::new();
    bench.small_trace(3000);
    let few = ["--simulations", "2", "--html", "all.html", "--price", "samsung-980-1tb=75"];
    let said = |arguments: &[&str]| {
        let all = [&["advise", "small.spc"], &FEW[..], &few, &DRIVES, arguments].concat();
        let ran = bench.run(&all);
        let page = std::fs::read_to_string(bench.path("all.html")).unwrap();
        (ran.status, ran.stdout.split_whitespace().collect::<Vec<_>>().join(" "), page)
    };
    let (status, text, page) = said(&["--mean", "1s"]);
    let cheapest = "the cheapest drive that meets all goals: Samsung 980 1TB, 75.00 USD";
    assert!(status == 0 && text.contains(cheapest) && page.contains(cheapest), "{text}");
    assert!(text.contains("the price of Samsung 980 1TB is given"), "{text}");
    let command = "bimetal replay small.spc --device samsung-980-1tb --scheme pslc-dynamic --set fit_to_trace=true";
    assert!(text.contains(command) && page.contains(command), "{text}");
    // The terms of the answer. The goal is far above the responses of all devices.
    for said in ["3,000 requests: ", " touched, recorded over ", "prices of 2026: ", "devices filled before"] {
        assert!(text.contains(said) && page.contains(said), "no `{said}` in {text}");
    }
    assert!(page.contains("<p class=\"vertical\">mean response (s), log scale</p>"));
    // A budget is for the whole drive.
    let (_, text, page) = said(&["--mean", "1s", "--budget", "50"]);
    let none = "no drive meets the goal: cost at most 50.00 USD; the nearest: Samsung 980 1TB, 75.00 USD, which misses: cost by a factor of 1.50";
    assert!(text.contains(none) && page.contains(none), "{text}");
    // If only a drive meets all goals, there is an answer.
    let (status, text, _) = said(&["--tbw", "500TB", "--budget", "80", "--price", "slc=1000", "--price", "mlc=1000"]);
    assert!(status == 0 && text.contains("No device meets all goals.") && text.contains(cheapest), "{text}");
    // Drives that are too small are counted.
    let (_, text, page) = said(&["--mean", "10s", "--capacity", "1200GB"]);
    let small = "2 drives are smaller than";
    assert!(text.contains(small) && page.contains(small) && !text.contains("● samsung"), "{text}");
}

#[test]
fn drives_to_buy_can_be_chosen_and_left_out() {
    let bench = Bench::new();
    bench.small_trace(300);
    let few = ["--mean", "1s", "--simulations", "1"];
    let offered = |drives: &[&str]| {
        let answer = advise(&bench, &[&few[..], drives].concat());
        let offered = answer["drives"]["offered"].as_array().map(|offered| offered.len());
        (offered, answer)
    };
    assert_eq!(offered(&["--drives", "none"]).0, None);
    assert_eq!(offered(&["--drives", "sn550,wd-sn770-1tb"]).0, Some(3));
    let all = offered(&["--drives", "all"]);
    assert!(all.0.unwrap() > 25 && all.1["drives"]["failed"].as_array().unwrap().is_empty(), "{}", all.1["drives"]);
    let ran = bench.run(&[&["advise", "small.spc"], &FEW[..], &few].concat());
    for line in ran.stdout.lines().filter(|line| line.contains("samsung-980-1tb") && !line.contains("bimetal replay")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(ran.stdout.contains("Drives to buy") && ran.stdout.contains("samsung-980-1tb"), "{}", ran.stdout);
}

#[test]
fn threads_make_no_difference() {
    let bench = Bench::new();
    bench.small_trace(3000);
    let with = |jobs| advise(&bench, &[&["--p99", "5ms", "--jobs", jobs], &DRIVES[..]].concat());
    assert_eq!(with("1"), with("2"));
}

#[test]
fn where_no_device_meets_the_goals_the_closest_are_named() {
    let bench = Bench::new();
    bench.small_trace(3000);
    // An answer without a recommended device is printed like any other.
    let ran = bench.run(&["advise", "small.spc", "--p99", "1us", "--simulations", "4"]);
    assert!(ran.status == 1 && ran.stderr.contains("no simulated device meets all goals"), "{}", ran.stderr);
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
    let hurried = ["--load", "100000x", "--mean", "1ms", "--channels", "2", "--dies-per-channel", "1"];
    let answer = advise(&bench, &hurried);
    assert_eq!((&answer["recommended"], &answer["binds"]), (&Value::Null, &Value::from("latency")));
    let times = |choice: &Value| choice["overload"].as_f64().unwrap();
    let closest = &answer["closest"][0];
    assert!(times(closest) > 1.0 && closest["response_us"].is_null(), "{closest}");
    assert!(answer["simulated"].as_array().unwrap().iter().all(|choice| times(choice) >= times(closest)), "{answer}");
    let ran = bench.run(&[&["advise", "small.spc"], FEW.as_slice(), &hurried, &["--html", "all.html"]].concat());
    let page = std::fs::read_to_string(bench.path("all.html")).unwrap();
    for said in ["Every device falls behind", "No device meets all goals from a quarter", ">falls behind<"] {
        assert!(page.contains(said), "{said}");
    }
    assert!(ran.stdout.contains("times as long as the arrivals"), "{}", ran.stdout);
    assert!(ran.stdout.contains("candidate devices of 2 dies"), "{}", ran.stdout);
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
        ("--year", "3000", "2009 to 2026"),
        ("--writes-per-day", "0", "leave it out"),
        ("--chips", "nosuch", "tlc-3d-2021"),
        ("--schemes", "nosuch", "pagemap"),
        ("--schemes", "opfcl", "--disk"),
        ("--disk", "nosuch", "nearline-18tb"),
        ("--capacity", "1KiB", "touches"),
        ("--simulations", "0", "simulations"),
        ("--tbw", "600", "1.2PB"),
        ("--dwpd", "1y", "0.3"),
        ("--load", "2", "5000/s"),
        ("--drives", "nosuch", "there is no drive `nosuch`; there are: wd-sn550-500gb"),
        ("--drives", "none,sn770", "both names and `none`"),
        ("--price", "sn550=50", "several drives: wd-sn550-500gb, wd-sn550-1tb"),
        ("--price", "sn770=-1", "the price of `wd-sn770-1tb`"),
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
    // After a warning that all requests have one time stamp.
    let ran = bench.run(&["advise", "still.spc", "--life", "1d"]);
    assert!(ran.status == 2 && ran.stdout.is_empty(), "{}", ran.stdout);
    assert!(ran.stderr.contains("no duration") && ran.stderr.contains("--writes-per-day"), "{}", ran.stderr);
    let few = ["--schemes", "pagemap", "--chips", "mlc-2008", "--simulations", "4"];
    bench.succeed(&[&["advise", "still.spc", "--life", "1d", "--writes-per-day", "1MiB"], few.as_slice()].concat());
}

/// Endurance is known only from writes. Without them a life at the rate of the trace has no end.
#[test]
fn endurance_is_not_promised_from_a_trace_without_writes() {
    let bench = Bench::new();
    let lines: String = (0..200).map(|at| format!("0,{},4096,r,{at}.0\n", at % 50 * 8)).collect();
    bench.file("reads.spc", lines);
    let few = ["advise", "reads.spc", "--schemes", "pagemap", "--chips", "mlc-2008", "--simulations", "1"];
    for (goals, option) in [
        (&["--tbw", "600TB"][..], "`--tbw`"),
        (&["--mean", "1s", "--dwpd", "1"], "`--dwpd`"),
        (&["--life", "5y", "--writes-per-day", "50GiB"], "`--writes-per-day`"),
    ] {
        bench.fail(&[&few[..], goals].concat(), 2, &[option, "the trace has none", "leave"]);
    }
    bench.succeed(&[&few[..], &["--life", "5y"]].concat());
}

/// Only goals for responses exclude devices that cannot keep up, so the answer says it of the device that it names.
#[test]
fn a_device_that_falls_behind_is_not_named_without_a_word() {
    let bench = Bench::new();
    let answer = |load: &str| {
        let search = ["--simulations", "4", "--schemes", "pagemap", "--drives", "none"];
        let command = ["advise", "--limit", "2000", "--life", "1h", "--load", load];
        bench.succeed(&[&command[..], &search].concat()).stdout
    };
    assert!(answer("1000x").contains("this device falls behind the trace"));
    assert!(!answer("2x").contains("falls behind"));
}
