//! The output of `compare`: the table, compared with the JSON, its order, width, verdicts and warnings.

use serde_json::Value;

use crate::common::Bench;
use crate::{items, without_speed};

#[test]
fn the_table_shows_what_the_json_says() {
    let bench = Bench::new();
    let trace = bench.small_trace(3000);
    let ran = bench.succeed(&["compare", &trace, "--json", "out.json"]);
    assert!(ran.stdout.contains("  device: auto, ") && ran.stdout.contains("; service time: one request at a"));
    let written = std::fs::read_to_string(bench.path("out.json")).unwrap();
    let compared: Value = serde_json::from_str(&written).unwrap();
    assert!(!ran.stdout.contains('\u{1b}'), "no colour off a terminal");
    for line in ran.stdout.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    // Names above the tables are not in their rows.
    let tables = ran.stdout.split("\n\n").skip(2).collect::<Vec<_>>().join("\n");
    let unit = if tables.contains("Page operations, thousands") { 1e3 } else { 1.0 };
    for result in items(&compared["results"]) {
        let name = result["scheme"].as_str().unwrap();
        let lines: Vec<&str> = tables.lines().filter(|line| line.split_whitespace().next() == Some(name)).collect();
        let cost = result["cost_usd"].as_f64().unwrap();
        let cost = if cost < 0.995 { format!("{cost:.3}") } else { format!("{cost:.2}") };
        assert!(lines[0].contains(&cost), "{name}: {cost}");
        // A scheme without disks has dashes for their accesses.
        let shown: Vec<f64> =
            lines[1].split_whitespace().skip(1).map(|count| count.replace(',', "").parse().unwrap_or(0.0)).collect();
        let [purposes @ .., all, disk_reads, disk_writes] = shown.as_slice() else { panic!("{name}: {shown:?}") };
        // Three digits are shown, or all before the point.
        let is = |shown: f64, count: f64| (shown - count / unit).abs() <= 0.005 * count / unit;
        // Each of the four purposes, and their sum, has a rounding error of at most half a digit.
        let rounding = if unit > 1.0 { 2.5 } else { 0.0 };
        assert!((purposes.iter().sum::<f64>() - all).abs() <= rounding, "{name}: purposes add up");
        let is_disk = |row: &&Value| items(&result["disks"]).iter().any(|disk| disk["name"] == row["region"]);
        let count = |on_disk: bool, ops: &[&str]| -> f64 {
            let rows = items(&result["ops"]).iter().filter(|row| is_disk(row) == on_disk);
            let rows = rows.filter(|row| ops.contains(&row["op"].as_str().unwrap()));
            rows.map(|row| row["count"].as_f64().unwrap()).sum()
        };
        assert!(is(*all, count(false, &["read", "program"])), "{name}");
        assert!(is(*disk_reads, count(true, &["read"])) && is(*disk_writes, count(true, &["write"])), "{name}");
    }
    let detailed = bench.succeed(&["compare", &trace, "--details"]);
    assert!(detailed.stdout.starts_with(ran.stdout.split("\n\n").next().unwrap()));
    assert!(detailed.stdout.contains("Block erases") && !ran.stdout.contains("Block erases"));
}

#[test]
fn erases_and_cycles_in_details_are_those_of_the_wear() {
    let bench = Bench::new();
    let trace = bench.small_trace(3000);
    let compare = ["compare", &trace, "--schemes", "pslc-dynamic,pslc-static,density-control"];
    let results = bench.json(&compare)["results"].clone();
    let details = bench.succeed(&[&compare[..], &["--details"]].concat()).stdout;
    let row = |label: &str| -> Vec<String> {
        let line = details.lines().find(|line| line.trim_start().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("{label}: {details}")).trim_start();
        line[label.len()..].split_whitespace().map(|shown| shown.replace(',', "")).collect()
    };
    for region in ["slow", "slow:slc"] {
        let worn = |result: &Value| {
            let wear = items(&result["wear"]).iter().find(|wear| wear["region"] == region);
            wear.map_or_else(|| "–".to_owned(), |wear| wear["erases_total"].to_string())
        };
        // The table has its own order of schemes.
        let sorted = |mut row: Vec<String>| {
            row.sort_unstable();
            row
        };
        let expected = sorted(items(&results).iter().map(worn).collect());
        assert!(expected.iter().any(|erases| erases != "–" && erases != "0"), "{expected:?}");
        assert_eq!(sorted(row(&format!("erases of {region} "))), expected, "{region}");
        let has_cycles = expected.iter().filter(|erases| *erases != "–").count();
        let slashes = row(&format!("cycles of {region}, mean / most ")).iter().filter(|shown| *shown == "/").count();
        assert_eq!(slashes, has_cycles, "{region}");
    }
}

/// The schemes of the first table, in its order; groups begin with their title.
fn listed(stdout: &str) -> Vec<String> {
    let table = stdout.split("\n\n").find(|part| part.contains("service (ms)")).unwrap();
    let lines = table.lines().skip_while(|line| line.split_whitespace().next() != Some("scheme")).skip(1);
    let rows = lines.take_while(|line| !line.trim_start().starts_with("sorted "));
    let name = |line: &str| match line.trim() {
        title @ ("flash only" | "flash cache over a disk") => title.to_owned(),
        row => row.split_whitespace().next().unwrap().to_owned(),
    };
    rows.map(name).collect()
}

#[test]
fn the_table_has_the_best_first_and_the_json_what_was_asked_for() {
    let bench = Bench::new();
    let trace = bench.small_trace(3000);
    let asked = "pagemap,opfcl,hyssd,chang,rwfcl";
    let compare = ["compare", &trace, "--device", "bare-dies", "--schemes", asked];
    // Schemes that fall behind come last, the one with the smallest backlog first.
    let late = |result: &Value| result["load"]["overload"] == "growing";
    let compared = bench.json(&compare);
    let results = items(&compared["results"]);
    let names: Vec<&str> = results.iter().map(|result| result["scheme"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), asked);
    let figure = |result: &Value, order: &str| match order {
        "response" => result["response_us"]["mean"].as_f64(),
        "p99" => result["response_us"]["p99"].as_f64(),
        "service" => result["service_us"]["mean"].as_f64(),
        "write-amplification" => result["write_amplification"].as_f64(),
        "life" => result["lifetime_years"].as_f64().map(|years| -years),
        "cost" => result["cost_usd"].as_f64(),
        other => panic!("{other}"),
    };
    let expected = |order: &str| -> Vec<String> {
        let group = |title: &str, on_disk: bool| {
            let mut rows: Vec<&Value> =
                results.iter().filter(|result| items(&result["disks"]).is_empty() != on_disk).collect();
            match order {
                "listed" => {}
                "name" => rows.sort_by_key(|result| result["scheme"].as_str().unwrap().to_owned()),
                "service" => rows.sort_by(|a, b| figure(a, order).unwrap().total_cmp(&figure(b, order).unwrap())),
                _ => rows.sort_by(|a, b| {
                    let by_backlog = |result: &Value| late(result) && ["response", "p99"].contains(&order);
                    let key = |result: &Value| match by_backlog(result) {
                        true => result["backlog_s"].as_f64().unwrap(),
                        false => figure(result, order).unwrap(),
                    };
                    late(a).cmp(&late(b)).then(key(a).total_cmp(&key(b)))
                }),
            }
            let names = rows.iter().map(|result| result["scheme"].as_str().unwrap().to_owned());
            std::iter::once(title.to_owned()).chain(names).collect::<Vec<_>>()
        };
        [group("flash only", false), group("flash cache over a disk", true)].concat()
    };
    assert_eq!(listed(&bench.succeed(&compare).stdout), expected("response"));
    for order in ["response", "p99", "service", "write-amplification", "life", "cost", "name", "listed"] {
        let ran = bench.succeed(&[&compare[..], &["--sort", order, "--json", "sorted.json"]].concat());
        assert_eq!(listed(&ran.stdout), expected(order), "{order}");
        let sorted: Value = serde_json::from_slice(&std::fs::read(bench.path("sorted.json")).unwrap()).unwrap();
        assert_eq!(without_speed(sorted), without_speed(compared.clone()), "{order}");
        // The second table has the same order.
        let operations: Vec<&str> =
            ran.stdout.split("Page operations").nth(1).unwrap().lines().map(str::trim).collect();
        let places = expected(order).into_iter().map(|name| {
            operations.iter().position(|line| *line == name || line.split_whitespace().next() == Some(&name)).unwrap()
        });
        assert!(places.collect::<Vec<_>>().is_sorted(), "{order}: {operations:?}");
    }
}

#[test]
fn every_scheme_fits_80_columns_and_has_a_verdict() {
    let bench = Bench::new();
    let bare = ["compare", "--limit", "20000", "--device", "bare-dies"];
    let ran = bench.command(&bare).env("COLUMNS", "80").output().unwrap();
    let stdout = String::from_utf8(ran.stdout).unwrap();
    assert!(stdout.lines().all(|line| line.chars().count() <= 80), "{stdout}");
    let (before, tables) = stdout.split_once("\n\n").unwrap();
    assert!(before.contains("20,000 requests"));
    assert!(tables.starts_with("  no scheme keeps up with the trace; shortest service time: "), "{tables}");
    assert!(tables.contains(" falls behind by ") && tables.contains("  service (ms)"), "{tables}");
    assert!(tables.contains("~ life extrapolated from 0.8"), "{tables}");
    let closed = bench.command(&["compare", "--limit", "20000", "--arrivals", "closed"]).env("COLUMNS", "80").output();
    let closed = String::from_utf8(closed.unwrap().stdout).unwrap();
    assert!(closed.lines().all(|line| line.chars().count() <= 80), "{closed}");
    let verdict = closed.split("\n\n").nth(1).unwrap();
    assert!(verdict.starts_with("  fastest flash: ") && verdict.contains("over a disk: "), "{closed}");
    let closed = closed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(tables.split("\n\n").next().unwrap().lines().count() <= 2, "{tables}");
    let words = tables.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        closed.contains("* no other scheme of its group is at least as good in cost, response and life"),
        "{closed}"
    );
    assert!(closed.contains("sorted by mean service time, best first; speed-up is over pagemap"), "{closed}");
    assert!(words.contains("sorted by mean response, best first"), "{tables}");
    assert!(!tables.contains("requests/s"), "that is the speed of the simulation");
    let one = bench.succeed(&["compare", "--limit", "2000", "--schemes", "pagemap"]).stdout;
    assert!(!one.contains("fastest") && !one.contains("sorted") && !one.contains('*'), "{one}");
}

#[test]
fn overload_is_said_plainly() {
    let bench = Bench::new();
    let trace = bench.small_trace(3000);
    let compare = |trace: &str, arrivals: &str| {
        let arguments = ["compare", trace, "--device", "bare-dies", "--arrivals", arrivals, "--schemes", "pagemap"];
        let load = bench.json(&arguments)["results"][0]["load"].clone();
        (bench.succeed(&arguments), load)
    };
    let (ran, load) = compare(&trace, "trace:100");
    assert!(
        ran.stderr.starts_with("warning: `pagemap` is overloaded: it falls behind more and more"),
        "{}",
        ran.stderr
    );
    let figures = ran.stdout.lines().find(|line| line.trim_start().starts_with("pagemap")).unwrap();
    assert!(figures.contains("  falls behind by ") && figures.contains(" s  "), "{}", ran.stdout);
    let deferred = bench.succeed(&[
        "compare",
        &trace,
        "--device",
        "bare-dies",
        "--arrivals",
        "trace:100",
        "--schemes",
        "pagemap",
        "--details",
    ]);
    assert!(deferred.stdout.contains("  falls behind by"), "{}", deferred.stdout);
    assert_eq!((&load["overload"], &load["bottleneck"]), (&"growing".into(), &"slow".into()));
    assert!(load["utilisation"].as_f64().unwrap() > 0.95 && load["backlog_s"].as_f64().unwrap() > 0.0, "{load}");

    let (ran, load) = compare(&trace, "trace:0.01");
    assert_eq!((ran.stderr.as_str(), &load["overload"]), ("", &"none".into()));
    assert!(!ran.stdout.contains("falls behind"), "{}", ran.stdout);

    let burst: String =
        (0..500).map(|write| format!("0,{},4096,w,{}\n", write * 8, f64::from(write / 499) * 100.0)).collect();
    bench.file("burst.spc", burst);
    let (ran, load) = compare("burst.spc", "trace");
    assert!(ran.stderr.contains("overloaded by bursts"), "{}", ran.stderr);
    assert_eq!(load["overload"], "bursts");
    assert!(ran.stdout.contains("  ! it falls behind in bursts"), "{}", ran.stdout);
}

/// Dies are free while pages are on the channel: with their transfers, they would be busy for more than the whole time.
#[test]
fn the_dies_of_a_region_are_as_busy_as_the_load_says() {
    let bench = Bench::new();
    bench.succeed(&["generate", "uniform", "u.bimetal", "--set", "requests=20000", "--set", "span=64MiB"]);
    let compared = bench.json(&["compare", "u.bimetal", "--schemes", "pagemap", "--arrivals", "closed:64"]);
    let result = &compared["results"][0];
    assert_eq!(result["load"]["bottleneck"], "slow", "{}", result["load"]);
    let (utilisation, busy) = (&result["load"]["utilisation"], &result["regions"][0]["busy"]);
    assert!(busy.as_f64().unwrap() > 0.5 && busy == utilisation, "{busy} {utilisation}");
}

#[test]
fn failures_without_a_replacement_are_warned_of() {
    let bench = Bench::new();
    let trace = bench.small_trace(500);
    let faulty = "slow.program_fail_ppm=100000";
    let compare = ["compare", &trace, "--schemes", "pagemap", "--arrivals", "closed", "--set", faulty];
    let ran = bench.succeed(&compare);
    assert!(
        ran.stderr.starts_with("warning: `pagemap`: ") && ran.stderr.contains("replacement_blocks"),
        "{}",
        ran.stderr
    );
    let with_blocks: Vec<&str> = compare.iter().chain(&["--set", "slow.replacement_blocks=10000"]).copied().collect();
    assert_eq!(bench.succeed(&with_blocks).stderr, "");
}
