//! Every error is one line with the problem, its place and the remedy, with the right exit status.

#![allow(clippy::unwrap_used)]

mod common;

use common::Bench;

#[test]
fn unknown_names_list_those_there_are() {
    let bench = Bench::new();
    bench.fail(&["compare", "--schemes", "pagemap,nosuch"], 2, &["`nosuch`", "pagemap, "]);
    bench.fail(&["compare", "--schemes", "pagemap,chang,pagemap"], 2, &["`pagemap` twice"]);
    bench.fail(&["compare", "--schemes", ""], 2, &["--schemes"]);
    bench.fail(&["replay", "--scheme", "nosuch"], 2, &["`nosuch`", "pagemap, "]);
    bench.fail(&["replay"], 2, &["--scheme", "pagemap, "]);
    bench.fail(&["replay", "--scheme", "all"], 2, &["compare"]);
    let trace = bench.small_trace(100);
    bench.fail(&["sweep", &trace], 1, &[&trace, "line 1", "this is not TOML"]);
    bench.fail(&["compare", "--device", "nosuch"], 2, &["`nosuch`", "chang-c3", "device file"]);
    bench.fail(&["compare", "--format", "nosuch", "x"], 2, &["`nosuch`", "`spc`"]);
    bench.fail(&["list", "schemes", "nosuch"], 2, &["`nosuch`", "pagemap, "]);
    bench.fail(&["list", "things"], 2, &["`things`", "schemes"]);
    bench.fail(&["generate", "nosuch", "out.spc"], 2, &["`nosuch`", "uniform"]);
    bench.fail(&["nosuch"], 2, &["`nosuch`"]);
    bench.fail(&["compare", "--nosuch"], 2, &["`--nosuch`", "hint: see `--help`"]);
    bench.fail(&["compare", "--jason", "x"], 2, &["`--jason`", "`--json`"]);
}

#[test]
fn settings_are_checked_against_the_chosen_schemes() {
    let bench = Bench::new();
    bench.fail(&["compare", "--set", "nosuch=1"], 2, &["`nosuch`", "gc_free_blocks", "slow.spare"]);
    bench.fail(&["compare", "--schemes", "pagemap", "--set", "gc_free_blocks=none"], 2, &["`none`", "whole number"]);
    bench.fail(&["compare", "--set", "gc_free_blocks=0"], 2, &["`0`", "from 1 to"]);
    bench.fail(&["compare", "--set", "gc_free_blocks"], 2, &["KEY=VALUE"]);
    bench.fail(&["compare", "--set", "qlc.spare=1%"], 2, &["`qlc.spare`", "fast and slow"]);
    bench.fail(&["compare", "--set", "slow.spare=much"], 2, &["`slow.spare`", "much"]);
    bench.fail(&["compare", "--set", "slow.chip=nosuch"], 2, &["`nosuch`", "chang-mlc"]);
    bench.fail(&["compare", "--set", "slow.channels=0"], 2, &["`0`", "from 1 to"]);
    bench.fail(&["compare", "--set", "slow.endurance=-1"], 2, &["`slow.endurance`"]);
    bench.fail(&["compare", "--set", "slow.page_bytes=3000"], 2, &["`slow.page_bytes`", "3000", "multiple of 512"]);
    bench.fail(&["compare", "--set", "slow.pages_per_block=0"], 2, &["`slow.pages_per_block`", "1 to 65536"]);
    bench.fail(&["compare", "--set", "slow.pages_per_block=7"], 2, &["`slow.pages_per_block`", "7 pages", "slc_mode"]);
    bench.fail(&["compare", "--set", "slow.read_us=1e300"], 2, &["`slow.read_us`", "1e300"]);
    bench.fail(&["generate", "uniform", "out.spc", "--set", "requests=0"], 2, &["`requests`", "from 1 to"]);
    bench.fail(&["generate", "uniform", "out.spc", "--set", "nosuch=1"], 2, &["`nosuch`", "requests"]);
    bench.fail(
        &["replay", "--scheme", "pagemap", "--set", "fast.erase_us=9"],
        2,
        &["`fast.erase_us`", "change nothing"],
    );
    bench.fail(&["compare", "--schemes", "pagemap,chang", "--set", "disk.queue=9"], 2, &["`disk.queue`", "nothing"]);
    // A parameter of only one of the schemes is accepted.
    let trace = bench.small_trace(100);
    bench.succeed(&["compare", &trace, "--schemes", "conventional,pagemap", "--set", "gc_free_blocks=2"]);
}

#[test]
fn values_out_of_range_are_wrong_usage() {
    let bench = Bench::new();
    for arguments in [
        ["--repeat", "0"],
        ["--repeat", "x"],
        ["--measure", "2"],
        ["--arrivals", "open"],
        ["--arrivals", "closed:0"],
        ["--arrivals", "trace:nan"],
        ["--jobs", "0"],
        ["--limit", "0"],
        ["--seed", "x"],
        ["--seed", "-1"],
        ["--limit", "-1"],
        ["--repeat", "-1"],
        ["--measure", "-1"],
        ["--jobs", "-1"],
    ] {
        bench.fail(&["compare", arguments[0], arguments[1]], 2, &[arguments[0].trim_start_matches("--")]);
    }
    bench.fail(&["compare", "--limit", "x"], 2, &["`x`", "--limit", "not a whole number from 1 to"]);
    bench.fail(&["compare", "--jobs", "65536"], 2, &["`65536`", "from 1 to 65535"]);
    bench.fail(&["compare", "--seed", "1.5"], 2, &["`1.5`", "from 0 to"]);
    bench.fail(&["advise", "--load", "3y"], 2, &["`3y`", "the trace's speed such as `2x`"]);
    for rate in ["0", "-0.1", "1.5", "nan", "all"] {
        bench.fail(&["profile", "--sample", rate], 2, &["--sample", "above 0", "`exact`"]);
    }
    bench.fail(&["profile", "--curve-points", "1001"], 2, &["curve-points"]);
    bench.fail(&["compare", "--volumes", "1"], 2, &["no trace"]);
    bench.fail(&["compare", "--set", "logical=0"], 2, &["logical", "512"]);
    bench.fail(&["compare", "--set", "logical=1MiB"], 1, &["MiB", "logical"]);
    bench.fail(&["compare", "--schemes", "pagemap", "--set", "slow.spare=0%"], 1, &["`pagemap` cannot run", "spare"]);
    bench.fail(&["compare", "--set", "logical=900TiB"], 1, &["no scheme can run", "2^32"]);
}

/// Hit rates of a sample without pages would be 100 %.
#[test]
fn a_sample_of_hardly_any_pages_is_refused() {
    let bench = Bench::new();
    bench.fail(
        &["profile", "--sample", "0.00001"],
        2,
        &["`--sample`", "hit rates take at least 100", "a larger share"],
    );
    bench.succeed(&["profile", "--sample", "0.00001", "--curve-points", "0"]);
}

#[test]
fn what_to_generate_is_one_thing() {
    let bench = Bench::new();
    bench.fail(&["generate", "zipf"], 2, &["only `zipf`", "--like"]);
    bench.fail(&["generate", "zipf", "--like", "sample", "out.bimetal"], 2, &["`zipf` and `--like`"]);
    bench.fail(&["generate", "--like", "sample"], 2, &["OUT"]);
    bench.fail(&["generate", "zipf", "out.bimetal", "--limit", "5"], 2, &["no trace", "--set requests"]);
    bench.fail(&["generate", "--like", "missing.spc", "out.bimetal"], 1, &["missing.spc", "No such file"]);
    bench.fail(&["generate", "--like", "sample", "out.bimetal", "--set", "theta=1"], 2, &["theta", "requests"]);
    bench.fail(&["generate", "--like", "sample", "out.tsv"], 2, &["--to"]);
}

#[test]
fn unreadable_traces_are_failures_that_name_the_file() {
    let bench = Bench::new();
    let run = |name: &str, expected: &[&str]| {
        for command in [&["compare"][..], &["replay", "--scheme", "pagemap"], &["profile"]] {
            let arguments: Vec<&str> = command.iter().copied().chain([name]).collect();
            bench.fail(&arguments, 1, expected);
        }
    };
    run(&bench.file("empty.csv", ""), &["empty.csv", "empty"]);
    run(".", &["directory"]);
    run("missing.csv", &["missing.csv", "No such file"]);
    let mut state = 7u64;
    let random = (0..10_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    run(&bench.file("random.bin", random.collect::<Vec<u8>>()), &["random.bin"]);
    let record = [1u32, 4096, 1].map(u32::to_le_bytes).concat();
    let mut vscsi: Vec<u8> = Vec::new();
    for time in 0..50u64 {
        vscsi.extend(&record);
        vscsi.extend(0x2au16.to_le_bytes());
        vscsi.extend(0x0100u16.to_le_bytes());
        vscsi.extend((time * 8).to_le_bytes());
        vscsi.extend((1_000_000 + time).to_le_bytes());
    }
    vscsi.truncate(vscsi.len() - 5);
    bench.file("cut.vscsi", &vscsi);
    bench.fail(&["compare", "--format", "vscsi", "cut.vscsi"], 1, &["cut.vscsi", "record 50"]);
}

#[test]
fn a_bad_line_is_named() {
    let bench = Bench::new();
    let mut text = String::new();
    for line in 1..=5000 {
        let size = if line == 4711 { "40q6" } else { "4096" };
        text.push_str(&format!("128166372003061629,hm,0,Write,{},{size},100\n", line * 4096));
    }
    bench.file("bad.csv", &text);
    bench.fail(&["compare", "bad.csv"], 1, &["bad.csv", "line 4711", "40q6"]);
    let far = text.replace("40q6", "4096").replacen("Write,4096,", "Write,18446744073709547520,", 1);
    bench.file("far.csv", far);
    bench.fail(&["compare", "far.csv"], 1, &["far.csv", "line 1"]);
}

#[test]
fn device_files_are_checked() {
    let bench = Bench::new();
    let good = bench.succeed(&["list", "devices", "chang-c3"]).stdout;
    let trace = bench.small_trace(200);
    bench.file("good.toml", good.replace("20GiB", "200MiB").replace("21GiB", "210MiB").replace("256MiB", "16MiB"));
    bench.succeed(&["replay", &trace, "--device", "good.toml"]);
    bench.file("bad.toml", good.replace("logical", "logicl"));
    bench.fail(&["compare", &trace, "--device", "bad.toml"], 1, &["bad.toml: line", "logicl"]);
    bench.file("chip.toml", good.replace("chang-slc", "nosuch"));
    bench.fail(&["compare", &trace, "--device", "chip.toml", "--schemes", "chang"], 1, &["`slc.chip`", "nosuch"]);
    bench.fail(&["compare", &trace, "--device", "missing.toml"], 1, &["missing.toml"]);
    bench.file("small.toml", good.replace("20GiB", "8MiB").replace("21GiB", "16MiB").replace("256MiB", "4MiB"));
    let wide = bench.small_trace(3000);
    bench.fail(&["replay", &wide, "--device", "small.toml"], 1, &["24 MiB", "8 MiB", "hint"]);
    // A scheme that needs a fast region, on a device without one.
    bench.fail(&["replay", "--scheme", "chang", "--device", "chang-c3-mlc"], 1, &["`chang` needs a fast region"]);
}

#[test]
fn files_are_not_overwritten_unless_told() {
    let bench = Bench::new();
    let trace = bench.small_trace(50);
    bench.succeed(&["convert", &trace, "out.bimetal"]);
    bench.fail(&["convert", &trace, "out.bimetal"], 1, &["out.bimetal", "--force"]);
    bench.succeed(&["convert", &trace, "out.bimetal", "--force"]);
    std::os::unix::fs::symlink("out.bimetal", bench.path("link.bimetal")).unwrap();
    for output in ["out.bimetal", "link.bimetal"] {
        bench.fail(&["convert", "out.bimetal", output, "--force"], 2, &[output, "this is the input `out.bimetal`"]);
    }
    bench.fail(&["convert", &trace, "out.xyz"], 2, &["--to", "bimetal, spc, msr"]);
    bench.fail(&["convert", &trace, "out", "--to", "xyz"], 2, &["`xyz`", "bimetal, spc, msr"]);
    bench.fail(&["convert", &trace, "out.csv.gz", "--to", "msr"], 2, &["out.csv.gz", "uncompressed", "`gzip out.csv`"]);
    bench.fail(&["generate", "zipf", "out.zst"], 2, &["out.zst", "uncompressed", "`zstd out`"]);
    bench.fail(&["convert", &trace], 2, &["required"]);
    bench.fail(&["convert", &trace, "nowhere/out.spc"], 1, &["nowhere/out.spc"]);
    bench.fail(&["compare", &trace, "--json", "nowhere/out.json"], 1, &["nowhere/out.json"]);
    for (arguments, expected) in [
        (["convert", &trace, ".", "--to=spc"], ".: this is a directory"),
        (["convert", &trace, "nowhere/out.spc", "--force"], "No such file or directory"),
    ] {
        let line = bench.run(&arguments).stderr;
        assert!(line.contains(expected) && !line.contains(".bimetal-"), "{line}");
    }
}

#[test]
fn files_that_cannot_be_written_are_said_before_the_work() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("folder")).unwrap();
    // The trace is not opened before this error.
    for command in [["compare", "--schemes", "pagemap"], ["replay", "--scheme", "pagemap"]] {
        let with = |file: [&'static str; 2]| [command.as_slice(), &["nosuch.csv"], &file].concat();
        bench.fail(&with(["--html", "nowhere/report.html"]), 1, &["nowhere/report.html", "cannot be written"]);
        bench.fail(&with(["--json", "nowhere/all.json"]), 1, &["nowhere/all.json", "cannot be written"]);
        bench.fail(&with(["--html", "folder"]), 1, &["folder", "directory"]);
        bench.fail(&with(["--html", "-"]), 2, &["--html", "report.html"]);
    }
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn no_output_replaces_an_input_or_another_output() {
    let bench = Bench::new();
    let trace = bench.small_trace(50);
    let before = std::fs::read(bench.path(&trace)).unwrap();
    std::os::unix::fs::symlink(&trace, bench.path("link.spc")).unwrap();
    std::fs::hard_link(bench.path(&trace), bench.path("hard.spc")).unwrap();
    let device = bench.succeed(&["list", "devices", "chang-c3"]).stdout;
    bench.file("device.toml", device);
    bench.file("prices.toml", "");
    bench.file("study.toml", "[[traces]]\nfiles = \"small.spc\"\n[[grids]]\nscheme = \"pagemap\"\n");
    for (arguments, input) in [
        (&["compare", &trace, "--json", &trace][..], &*trace),
        (&["compare", &trace, "--html", "link.spc"], &trace),
        (&["compare", &trace, "--export", "fio=./hard.spc"], &trace),
        (&["replay", &trace, "--device", "device.toml", "--json", "device.toml"], "device.toml"),
        (&["profile", &trace, "--json", &trace], &trace),
        (&["convert", &trace, "hard.spc", "--force"], &trace),
        (&["generate", "--like", &trace, "out.spc", "--json", "link.spc"], &trace),
        (&["generate", "--like", &trace, "link.spc", "--force"], &trace),
        (&["sweep", "study.toml", "--csv", "study.toml"], "study.toml"),
        (&["sweep", "study.toml", "--results", "study.toml", "--restart"], "study.toml"),
        (&["sweep", "study.toml", "--parquet", &trace], &trace),
        (&["advise", &trace, "--life", "5y", "--json", &trace], &trace),
        (&["advise", &trace, "--life", "5y", "--prices", "prices.toml", "--html", "prices.toml"], "prices.toml"),
        (&["diff", "a.json", "b.json", "--json", "b.json"], "b.json"),
        (&["paper", "--on", &trace, "--html", &trace], &trace),
        (&["paper", "wlaftl", "--trace", "fin1=small.spc", "--json", &trace], &trace),
        (&["drives", "--device", "device.toml", "--html", "device.toml"], "device.toml"),
    ] {
        bench.fail(arguments, 2, &["this is the input", input, "another file"]);
    }
    for (arguments, expected) in [
        (&["compare", "--json", "one", "--html", "./one"][..], "`--json` and `--html`"),
        (&["replay", "--scheme", "pagemap", "--json", "one", "--export", "fio=one"], "`--json` and `--export`"),
        (&["compare", "--export", "fio=one", "--export", "iob=one"], "several `--export`"),
        (&["generate", "zipf", "one", "--to", "msr", "--json", "one"], "`OUT` and `--json`"),
        (&["sweep", "study.toml", "--csv", "study.results.jsonl"], "`--results` and `--csv`"),
    ] {
        bench.fail(arguments, 2, &[expected, "name this file", "hint: name a file for each"]);
    }
    assert_eq!(std::fs::read(bench.path(&trace)).unwrap(), before);
    assert!(!bench.path("one").exists() && !bench.path("study.results.jsonl").exists());
    bench.succeed(&["compare", &trace, "--schemes", "pagemap", "--json", "/dev/null", "--html", "/dev/null"]);
}

#[test]
fn a_hyphen_is_no_file() {
    let bench = Bench::new();
    let trace = bench.small_trace(50);
    bench.file("study.toml", "[[grids]]\nscheme = \"pagemap\"\n");
    for option in ["--csv", "--parquet", "--html", "--results"] {
        bench.fail(&["sweep", "study.toml", option, "-"], 2, &[option, "hint: name one"]);
    }
    bench.fail(&["man", "-"], 2, &["folder"]);
    bench.fail(&["convert", &trace, "-"], 2, &["--to"]);
    bench.fail(&["generate", "zipf", "-", "--to", "msr", "--json", "-"], 2, &["`--json -`", "standard output"]);
    bench.succeed(&["convert", &trace, "out.csv"]);
    let printed = bench.succeed(&["convert", &trace, "-", "--to", "msr"]);
    assert_eq!(printed.stdout, std::fs::read_to_string(bench.path("out.csv")).unwrap());
    assert!(printed.stderr.contains("the standard output as `msr`"), "{}", printed.stderr);
    let few = ["generate", "zipf", "-", "--to", "msr", "--set", "requests=3", "--json", "few.json"];
    assert_eq!(bench.succeed(&few).stdout.lines().count(), 3);
    assert!(bench.path("few.json").exists() && !bench.path("-").exists());
}

#[test]
fn a_full_standard_output_is_named() {
    let bench = Bench::new();
    for arguments in [&["list", "chips"][..], &["list", "chips", "--json", "-"], &["--help"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = bench.command(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("error: the standard output cannot be written: No space left"), "{said}");
    }
}
