//! The other commands: list, profile, convert, generate, and properties of their output.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::Read;
use std::process::{Command, Stdio};

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
    bench.file("table.txt", "x 1 2048 4096\ny 0 2048 4096\n");
    assert_eq!(requests(&["profile", "table.txt", "--columns", "-,op:0=read,offset,size"]), 2);
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
    let version = bench.succeed(&["--version"]).stdout;
    assert!(version.starts_with(concat!("bimetal ", env!("CARGO_PKG_VERSION"))), "{version}");
    for command in ["compare", "replay", "profile", "convert", "generate", "list"] {
        let help = bench.succeed(&[command, "--help"]).stdout;
        assert!(help.contains(&format!("Usage: bimetal {command}")), "{help}");
        assert_eq!(bench.succeed(&["help", command]).stdout, help);
        assert!(bench.succeed(&["--help"]).stdout.contains(command));
    }
    // Without arguments the help is shown.
    let help = bench.succeed(&[]);
    assert!(help.stdout.contains("Usage: bimetal") && help.stderr.is_empty(), "{help:?}");
    assert!(bench.succeed(&["bench"]).stdout.contains("Usage: bimetal bench"));
    let listed = bench.succeed(&["list"]).stdout;
    assert!(listed.contains("Usage: bimetal list") && listed.contains("workloads"), "{listed}");
}

#[test]
fn shells_and_man_know_every_command() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.succeed(&["completions", shell]).stdout;
        assert!(script.contains("compare") && script.contains("curve-points"), "{shell}: {script}");
    }
    bench.fail(&["completions", "cmd"], 2, &["cmd"]);
    let noted = bench.succeed(&["man", "pages"]).stderr;
    assert!(noted.contains("pages/bimetal.1"), "{noted}");
    let page = std::fs::read_to_string(bench.path("pages/bimetal-profile.1")).unwrap();
    assert!(page.contains("curve\\-points"), "{page}");
    bench.file("taken", "");
    bench.fail(&["man", "taken"], 1, &["taken"]);
}

/// A program with schemes of its own has another name than `bimetal`.
#[test]
fn completions_and_manual_pages_have_the_name_of_the_program() {
    let bench = Bench::new();
    let program = bench.path("mine");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bimetal"), &program).unwrap();
    let run = |arguments: &[&str]| {
        let done = Command::new(&program).args(arguments).current_dir(bench.path("")).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let script = run(&["completions", "bash"]);
    assert!(script.contains("_mine") && !script.contains("_bimetal"), "{script}");
    run(&["man", "pages"]);
    let mut pages: Vec<_> =
        bench.path("pages").read_dir().unwrap().map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort();
    assert!(pages.contains(&"mine.1".into()) && pages.iter().all(|page| page.starts_with("mine")), "{pages:?}");
}

#[test]
fn options_that_are_always_wanted_come_from_a_file() {
    let bench = Bench::new();
    let run = |config: &str, arguments: &[&str]| {
        let path = bench.file("config.toml", config);
        let output = bench.command(arguments).env("BIMETAL_CONFIG", path).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let config = "[compare]\nlimit = 500\nschemes = [\"pagemap\", \"unitmap\"]\nset = [\"slow.spare=20%\"]\n";
    let (status, with, said) = run(config, &["compare"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("config.toml: --limit=500 --schemes=pagemap,unitmap --set=slow.spare=20%"), "{said}");
    let plain = ["compare", "--limit", "500", "--schemes", "pagemap,unitmap", "--set", "slow.spare=20%"];
    assert_eq!(with, bench.succeed(&plain).stdout);
    let (_, other, said) = run("[compare]\nlimit = 500\nschemes = \"pagemap\"\n", &["compare", "--schemes=unitmap"]);
    assert!(other.contains("unitmap") && !other.contains("pagemap") && !said.contains("schemes"), "{other}{said}");
    let (_, _, said) = run("[compare]\nlimit = 500\nschemes = \"pagemap\"\nquiet = true\n", &["compare"]);
    assert_eq!(said, "", "`quiet` works in the file, too");
    for (config, arguments, expected) in [
        ("[compare]\nlimt = 5\n", &["compare"][..], "`compare` has no option `--limt`"),
        ("[compar]\nlimit = 5\n", &["compare"], "`compar` is no command"),
        ("[list]\njson = [\"a\", \"b\"]\n", &["list", "chips"], "`json` takes one value"),
        ("[compare]\ndetails = 1\n", &["compare"], "`details` is `true` or `false`"),
        ("compare = 1\n", &["compare"], "has to be a table"),
        ("[compare\n", &["compare"], "config.toml: line 1: this is not TOML"),
    ] {
        let (status, _, said) = run(config, arguments);
        assert!(status == Some(2) && said.contains(expected) && said.lines().count() == 1, "{config}: {said}");
    }
    let (status, help, said) = run("[profile]\nlimit = 10\n", &["help", "profile"]);
    assert!(status == Some(0) && help.contains("Usage: bimetal profile") && said.is_empty(), "{said}");
    // A wrong value of the file is not reported as one of the command line.
    let wrong = "[profile]\nlimit = \"x\"\n";
    let (status, _, said) = run(wrong, &["profile"]);
    assert!(status == Some(2) && said.starts_with("error: config.toml: invalid value `x` for `--limit"), "{said}");
    let (status, _, said) = run(wrong, &["profile", "--nosuch"]);
    assert!(status == Some(2) && said.contains("`--nosuch`") && !said.contains("config.toml"), "{said}");
    assert_eq!(run(wrong, &["profile", "--help"]).0, Some(0));
    assert_eq!(run(wrong, &["list", "chips"]).0, Some(0));
    let missing = bench.command(&["list", "chips"]).env("BIMETAL_CONFIG", "gone.toml").output().unwrap();
    assert_eq!(missing.status.code(), Some(2), "a named file must exist");
}

#[test]
fn the_example_of_a_file_of_options_works() {
    let bench = Bench::new();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/install.md")).unwrap();
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let config = bench.file("config.toml", example);
    let trace = bench.small_trace(100);
    for (arguments, status, expected) in [
        (&["compare", &trace][..], 0, "--set=slow.spare=10%"),
        (&["serve", "nosuch"], 1, "--log=info"),
        (&["list", "chips"], 0, ""),
    ] {
        let output = bench.command(arguments).env("BIMETAL_CONFIG", &config).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(status) && said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn quiet_leaves_warnings_and_errors() {
    let bench = Bench::new();
    let convert = |arguments: &[&str]| {
        let convert = ["convert", "--limit", "100"];
        bench.succeed(&[&convert[..], arguments].concat()).stderr
    };
    let generated = bench.file("t.csv", "time,op,offset,size\n0,r,0,4096\n1,w,0,4096\n");
    assert!(convert(&[&generated, "loud.spc", "--time-unit", "s"]).contains("2 requests written"));
    assert_eq!(convert(&[&generated, "quiet.spc", "--time-unit", "s", "--quiet"]), "");
    let untimed = bench.file("untimed.csv", "op,offset,size\nr,0,4096\nw,0,4096\n");
    assert!(convert(&[&untimed, "warned.spc", "-q"]).starts_with("warning: "), "no times are known");
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
    // The properties of few requests are random.
    let few = ["generate", "financial", "few.bimetal", "--set", "requests=300", "--json", "few.json"];
    assert!(bench.succeed(&few).stdout.contains("below 10,000"));
    let few: Value = serde_json::from_slice(&std::fs::read(bench.path("few.json")).unwrap()).unwrap();
    assert!(few["targets"].as_array().unwrap().iter().all(|target| target["met"].is_null()));
    let none = bench.json(&["generate", "zipf", "z.bimetal", "--set", "requests=300"]);
    assert_eq!(none["targets"], Value::Array(Vec::new()));
    let listed = bench.succeed(&["list", "workloads", "financial"]).stdout;
    assert!(listed.contains("published figures") && listed.contains("HySSD, MSST 2013, table I"), "{listed}");
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
