//! The other commands: list, profile, convert, generate, and how output behaves.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::Read;
use std::process::Stdio;

use common::Bench;
use serde_json::Value;

#[test]
fn everything_listed_has_a_name_and_a_summary() {
    let bench = Bench::new();
    for what in ["schemes", "chips", "drives", "devices", "formats", "workloads"] {
        let listed = bench.json(&["list", what]);
        let items = listed.as_array().unwrap();
        assert!(!items.is_empty(), "{what}");
        let text = bench.succeed(&["list", what]).stdout;
        for item in items {
            let name = item["name"].as_str().unwrap();
            assert!(!item["summary"].as_str().unwrap().is_empty(), "{what} {name}");
            assert!(text.contains(name), "{what} {name}");
            assert!(bench.succeed(&["list", what, name]).stdout.contains(name));
        }
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{what}: {line}");
        }
    }
    let schemes = bench.succeed(&["list", "schemes"]).stdout;
    assert!(schemes.contains("gc_free_blocks=1") && schemes.contains("from 1 to 1024"));
}

#[test]
fn traces_survive_conversion_and_generation() {
    let bench = Bench::new();
    let trace = bench.small_trace(400);
    let profile = |name: &str| bench.json(&["profile", name])["profile"].clone();
    for output in ["a.bimetal", "b.spc", "c.msr", "d.csv"] {
        bench.succeed(&["convert", &trace, output]);
        let (mut before, mut after) = (profile(&trace), profile(output));
        // MSR keeps times to 100 ns.
        before["arrivals"].take();
        after["arrivals"].take();
        assert_eq!(before, after, "{output}");
    }
    for seed in ["1", "1", "2"] {
        bench.succeed(&["generate", "zipf", "z.spc", "--seed", seed, "--set", "requests=300", "--force"]);
        std::fs::rename(bench.path("z.spc"), bench.path(&format!("z{seed}.spc"))).unwrap();
    }
    assert_eq!(profile("z1.spc")["requests"], 300);
    assert_ne!(profile("z1.spc"), profile("z2.spc"));
}

#[test]
fn several_files_volumes_and_the_standard_input_are_read() {
    let bench = Bench::new();
    bench.file("a.spc", "0,0,4096,w,0.0\n1,0,4096,r,0.5\n");
    bench.file("b.spc", "0,8,4096,w,0.0\n");
    let requests = |arguments: &[&str]| bench.json(arguments)["trace"]["requests"].clone();
    assert_eq!(requests(&["profile", "a.spc", "b.spc"]), 3);
    assert_eq!(requests(&["profile", "a.spc", "--volumes", "1"]), 1);
    bench.fail(&["profile", "a.spc", "--volumes", "7"], 2, &["7"]);
    let mut command = bench.command(&["profile", "-", "--json", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"0,0,4096,w,0.0\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let profiled: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(profiled["trace"]["requests"], 1);
}

#[test]
fn hit_rates_are_shown_by_cache_size() {
    let bench = Bench::new();
    bench.succeed(&["generate", "zipf", "z.bimetal", "--set", "requests=20000", "--set", "span=64MiB"]);
    let curve = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["profile", "z.bimetal"].iter().chain(arguments).copied().collect();
        bench.json(&arguments)["profile"]["hit_rates"].clone()
    };
    let rates = curve(&[]);
    let points = rates["points"].as_array().unwrap();
    assert_eq!((rates["sampling_rate"].as_f64(), points.len()), (Some(1.0), 20));
    let column = |name: &str| points.iter().map(|point| point[name].as_f64().unwrap()).collect::<Vec<_>>();
    for name in ["cache_bytes", "reads", "writes", "all", "reads_of_written", "writes_of_written"] {
        assert!(column(name).is_sorted() && column(name)[0] < column(name)[19], "{name}: {:?}", column(name));
    }
    assert_eq!(curve(&["--sample", "exact"]), rates);
    let sampled = curve(&["--sample", "0.125", "--curve-points", "3"]);
    assert_eq!(sampled["sampling_rate"].as_f64(), Some(0.125));
    assert_eq!(sampled["points"].as_array().unwrap().len(), 3);
    assert!(curve(&["--curve-points", "0"]).is_null());

    let text = bench.succeed(&["profile", "z.bimetal", "--curve-points", "3", "--sample", "0.125"]).stdout;
    let section: Vec<&str> = text.lines().skip_while(|line| *line != "Hit rates by cache size").take(7).collect();
    assert!(section.concat().contains("12.5 % of the pages"), "{text}");
    let table = &section[3..];
    assert!(table[0].ends_with(" writes") && table[3].contains("100.0 %"), "{text}");
    assert!(table.iter().all(|line| line.chars().count() == table[0].chars().count()), "{text}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let bench = Bench::new();
    for arguments in [&["list", "chips"][..], &["list", "schemes", "--json", "-"], &["--help"]] {
        let mut command = bench.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(stderr, "", "{arguments:?}");
        assert!(child.wait().unwrap().success(), "{arguments:?}");
    }
}

#[test]
fn help_and_version_are_output() {
    let bench = Bench::new();
    assert!(bench.succeed(&["--version"]).stdout.starts_with("bimetal "));
    for command in ["compare", "replay", "profile", "convert", "generate", "list"] {
        assert!(bench.succeed(&[command, "--help"]).stdout.contains("Usage: bimetal"));
        assert!(bench.succeed(&["--help"]).stdout.contains(command));
    }
}

#[test]
fn a_generated_workload_is_held_against_what_was_published() {
    let bench = Bench::new();
    let small = ["--set", "requests=20000", "--set", "used=64MiB", "--set", "span=1GiB"];
    let arguments =
        |more: &[&'static str]| [&["generate", "financial", "f.bimetal", "--force"], &small[..], more].concat();
    let text = bench.succeed(&arguments(&[])).stdout;
    let row = text.lines().find(|line| line.contains("mean size of a write (KiB)")).unwrap();
    assert!(row.contains("7.20") && row.ends_with("yes"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let generated = bench.json(&arguments(&["--seed", "3"]));
    assert_eq!((&generated["workload"], &generated["seed"]), (&"financial".into(), &3.into()));
    assert_eq!(generated["settings"]["used"], "64MiB");
    assert_eq!(generated["trace"]["requests"], 20_000);
    let targets = generated["targets"].as_array().unwrap();
    let read = targets.iter().find(|target| target["name"] == "read (GiB)").unwrap();
    let part = 20_000.0 / 5_334_987.0;
    assert!((read["expected"].as_f64().unwrap() / read["published"].as_f64().unwrap() / part - 1.0).abs() < 1e-9);
    assert!(targets.iter().all(|target| !target["source"].as_str().unwrap().is_empty()));
    // Chance decides what a few requests are like.
    let few = ["generate", "financial", "few.bimetal", "--set", "requests=300", "--json", "few.json"];
    assert!(bench.succeed(&few).stdout.contains("below 10,000"));
    let few: Value = serde_json::from_slice(&std::fs::read(bench.path("few.json")).unwrap()).unwrap();
    assert!(few["targets"].as_array().unwrap().iter().all(|target| target["met"].is_null()));
    let none = bench.json(&["generate", "zipf", "z.bimetal", "--set", "requests=300"]);
    assert_eq!(none["targets"], Value::Array(Vec::new()));
    let listed = bench.succeed(&["list", "workloads", "financial"]).stdout;
    assert!(listed.contains("held against") && listed.contains("HySSD, MSST 2013, table I"), "{listed}");
}

#[test]
fn requests_like_those_of_a_trace_are_compared_with_it() {
    let bench = Bench::new();
    bench.succeed(&["generate", "zipf", "z.bimetal", "--set", "requests=20000", "--set", "span=64MiB"]);
    let like = ["generate", "--like", "z.bimetal", "like.bimetal", "--force"];
    let text = bench.succeed(&like).stdout;
    assert!(text.contains("Fitted") && text.contains("Held back") && text.contains("hits, cache of"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let generated = bench.json(&like);
    assert_eq!((&generated["like"]["requests"], &generated["trace"]["requests"]), (&20_000.into(), &20_000.into()));
    for part in ["fitted", "held_back"] {
        let rows = generated[part].as_array().unwrap();
        assert!(rows.len() > 5, "{part}");
        assert!(rows.iter().all(|row| row["trace"].is_number() && row["generated"].is_number()), "{part}");
    }
    let other = bench.json(&[&like[..], &["--set", "requests=500", "--seed", "2"]].concat());
    assert_eq!((&other["trace"]["requests"], &other["requests"]), (&500.into(), &500.into()));
    bench.file("empty.spc", "0,0,4096,w,0.0\n");
    assert_eq!(bench.json(&["generate", "--like", "empty.spc", "one.bimetal"])["trace"]["writes"], 1);
}
