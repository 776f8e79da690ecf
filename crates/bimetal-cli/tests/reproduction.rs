//! The tables of claims in the docs are results of `bimetal paper`: `docs/papers/reproduction.json` is its output with
//! `--quick`, and `docs/papers/full-size.json` its output without. `make papers` and `make papers-full-size` rewrite them
//! and the tables. `docs/papers/real-traces.json` is the output of `bimetal paper --on` for the traces of
//! `docs/papers/real-traces.md`. `docs/papers/wlaftl-laboratory.json` is the output of `make papers` for the rules of a
//! paper's laboratory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use common::{Bench, text};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn reproduction() -> Value {
    json("reproduction")
}

/// The claims on real traces.
fn real_traces() -> Value {
    json("real-traces")
}

/// The claims on traces and devices of the papers' sizes.
fn full_size() -> Value {
    json("full-size")
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&fs::read(root().join(format!("docs/papers/{name}.json"))).unwrap()).unwrap()
}

/// A cell of a table, with bars escaped.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// All claims of a paper.
fn claims(reproduction: &Value, paper: &str) -> String {
    let mut table = String::from(
        "| figure | claim | kind | traces | paper | here | verdict | why |\n|---|---|---|---|---|---|---|---|\n",
    );
    let of_paper = reproduction["claims"].as_array().unwrap().iter().filter(|claim| text(claim, "paper") == paper);
    for claim in of_paper {
        let cells = ["figure", "claim", "kind", "stand_in", "expected", "measured", "verdict", "reason"];
        let cells = cells.map(|key| cell(text(claim, key)));
        table += &format!("| {} |\n", cells.join(" | "));
    }
    table
}

/// The name of a trace without the extensions of its file, or remarks.
fn short_name(trace: &str) -> &str {
    trace.split(['.', ' ']).next().unwrap_or(trace)
}

/// The claims of a paper on real traces: a row for each claim, a column for each trace.
fn on_traces(real_traces: &Value, paper: &str) -> String {
    let all = real_traces["claims"].as_array().unwrap();
    let of_paper: Vec<&Value> = all.iter().filter(|claim| text(claim, "paper") == paper).collect();
    let columns: Vec<&[&Value]> = of_paper.chunk_by(|one, other| text(one, "trace") == text(other, "trace")).collect();
    let heads: Vec<&str> = columns.iter().map(|claims| short_name(text(claims[0], "trace"))).collect();
    let mut table =
        format!("| figure | claim | paper | {} |\n|---|---|---|{}\n", heads.join(" | "), "---:|".repeat(heads.len()));
    for (row, claim) in columns[0].iter().enumerate() {
        let figures =
            columns.iter().map(|claims| match (text(claims[row], "verdict"), text(claims[row], "measured")) {
                ("held", measured) => format!("**{}**", cell(measured)),
                ("not judged", _) => "–".to_owned(),
                (_, measured) => cell(measured),
            });
        let figures: Vec<String> = figures.collect();
        let kind = if text(claim, "kind") == "ours" { " (ours)" } else { "" };
        let said = ["figure", "claim", "expected"].map(|key| cell(text(claim, key)));
        table += &format!("| {} | {}{kind} | {} | {} |\n", said[0], said[1], said[2], figures.join(" | "));
    }
    let held = columns.iter().map(|claims| {
        let of = |verdicts: &[&str]| {
            let results = claims.iter().filter(|claim| text(claim, "kind") == "result");
            results.filter(|claim| verdicts.contains(&text(claim, "verdict"))).count()
        };
        format!("{} of {}", of(&["held"]), of(&["held", "not held"]))
    });
    table += &format!("| | results that held, of those judged | | {} |\n", held.collect::<Vec<_>>().join(" | "));
    table + &not_judged(&of_paper)
}

/// The reasons of claims that are not judged.
fn not_judged(claims: &[&Value]) -> String {
    let reasons =
        claims.iter().filter(|claim| text(claim, "verdict") == "not judged").map(|claim| text(claim, "reason"));
    let mut reasons: Vec<&str> = reasons.collect();
    let mut seen = BTreeSet::new();
    reasons.retain(|reason| seen.insert(*reason));
    if reasons.is_empty() { String::new() } else { format!("\nNot judged (–): {}.\n", reasons.join("; ")) }
}

/// The number of results of each paper that held, on calibrated stand-ins if it has any, and of claims of other kinds,
/// of those judged. In addition the results on the first stand-ins.
fn scoreboard(reproduction: &Value) -> String {
    let mut table = String::from(
        "| paper | traces | results held | not held | not judged | held on the first | arithmetic | generator | ours |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let scores = reproduction["scoreboard"].as_array().unwrap();
    let mut shown = BTreeSet::new();
    // The first row of each kind of a paper is the primary one.
    for results in scores.iter().filter(|score| text(score, "kind") == "result") {
        let count = |score: &Value, key: &str| score[key].as_u64().unwrap();
        let (paper, stand_in) = (text(results, "paper"), text(results, "stand_in"));
        if !shown.insert(paper) {
            continue;
        }
        let is_first =
            |score: &&Value| ["paper", "kind", "stand_in"].map(|key| text(score, key)) == [paper, "result", "first"];
        let first = scores.iter().find(is_first).filter(|_| stand_in != "first").map_or_else(String::new, |score| {
            let [held, not_held] = ["held", "not_held"].map(|key| count(score, key));
            format!("{held} of {}", held + not_held)
        });
        let others = ["arithmetic", "generator", "ours"].map(|kind| {
            let of_kind =
                |score: &&Value| ["paper", "kind", "stand_in"].map(|key| text(score, key)) == [paper, kind, stand_in];
            scores.iter().find(of_kind).map_or_else(String::new, |score| {
                let [held, not_held] = ["held", "not_held"].map(|key| count(score, key));
                format!("{held} of {}", held + not_held)
            })
        });
        let [held, not_held, not_judged] = ["held", "not_held", "not_judged"].map(|key| count(results, key));
        table += &format!(
            "| `{paper}` | {stand_in} | {held} | {not_held} | {not_judged} | {first} | {} |\n",
            others.join(" | ")
        );
    }
    table
}

/// Each claim of a quick run and the same claim at full size. Claims have the same order in both.
fn pairs<'a>(quick: &'a Value, full: &'a Value) -> Vec<[&'a Value; 2]> {
    let [quick, full] = [quick, full].map(|run| run["claims"].as_array().unwrap());
    let pairs: Vec<[&Value; 2]> = quick.iter().zip(full).map(|(quick, full)| [quick, full]).collect();
    let is_same = |[quick, full]: &[&Value; 2]| {
        ["paper", "figure", "claim", "kind", "stand_in"].iter().all(|key| text(quick, key) == text(full, key))
    };
    let is_due = quick.len() != full.len() || !pairs.iter().all(is_same);
    assert!(!is_due, "claims differ: `make papers` or `make papers-full-size` is due");
    pairs
}

fn is_held(claim: &Value) -> bool {
    text(claim, "verdict") == "held"
}

/// The number of results that held in a quick run, at full size, and in both, by paper and kind of stand-ins.
fn both_sizes(quick: &Value, full: &Value) -> String {
    let mut table = String::from(
        "| paper | traces | results | held, quick | held, full size | held in both |\n|---|---|---|---|---|---|\n",
    );
    let mut counts: Vec<([&str; 2], [usize; 4])> = Vec::new();
    for [quick, full] in pairs(quick, full).into_iter().filter(|[quick, _]| text(quick, "kind") == "result") {
        let group = ["paper", "stand_in"].map(|key| text(quick, key));
        let at = counts.iter().position(|(known, _)| *known == group).unwrap_or_else(|| {
            counts.push((group, [0; 4]));
            counts.len() - 1
        });
        let held = [is_held(quick), is_held(full)];
        for (count, counts) in counts[at].1.iter_mut().zip([true, held[0], held[1], held == [true, true]]) {
            *count += usize::from(counts);
        }
    }
    for ([paper, stand_in], counts) in counts {
        table += &format!("| `{paper}` | {stand_in} | {} |\n", counts.map(|count| count.to_string()).join(" | "));
    }
    table
}

/// The claims whose verdicts differ between a quick run and one at full size.
fn changed_verdicts(quick: &Value, full: &Value) -> String {
    let mut table = String::from(
        "| paper | figure | claim | kind | traces | paper's figure | quick | | full size | |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for [quick, full] in pairs(quick, full) {
        if text(quick, "verdict") != text(full, "verdict") {
            let known = ["paper", "figure", "claim", "kind", "stand_in", "expected"].map(|key| cell(text(quick, key)));
            let found = [quick, full].map(|run| format!("{} | {}", cell(text(run, "measured")), text(run, "verdict")));
            table += &format!("| {} | {} |\n", known.join(" | "), found.join(" | "));
        }
    }
    table
}

/// The results of a paper that do not hold with some settings for all experiments or without. Held ones are bold.
fn with_settings(reproduction: &Value, varied: &Value) -> String {
    let mut table =
        String::from("| figure | claim | traces | paper | default | with the settings |\n|---|---|---|---|---|---|\n");
    let figure = |claim: &Value| match text(claim, "verdict") {
        "held" => format!("**{}**", cell(text(claim, "measured"))),
        _ => cell(text(claim, "measured")),
    };
    let varied = varied["claims"].as_array().unwrap();
    let paper = text(&varied[0], "paper");
    let default = reproduction["claims"].as_array().unwrap().iter().filter(|claim| text(claim, "paper") == paper);
    let default: Vec<&Value> = default.collect();
    assert_eq!(default.len(), varied.len(), "`make papers` is due");
    let mut held = BTreeMap::new();
    for (default, varied) in default.into_iter().zip(varied).filter(|(claim, _)| text(claim, "kind") == "result") {
        let [said, same] = [default, varied]
            .map(|claim| ["figure", "claim", "stand_in", "expected"].map(|key| cell(text(claim, key))));
        assert_eq!(said, same, "`make papers` is due");
        if text(default, "verdict") == "not judged" {
            continue;
        }
        if !is_held(default) || !is_held(varied) {
            table += &format!("| {} | {} | {} |\n", said.join(" | "), figure(default), figure(varied));
        }
        let [of, without, with] = held.entry(text(default, "stand_in")).or_insert([0; 3]);
        *of += 1;
        *without += usize::from(is_held(default));
        *with += usize::from(is_held(varied));
    }
    for (stand_in, [of, without, with]) in held {
        table += &format!("| | results that held | {stand_in} | | {without} of {of} | {with} of {of} |\n");
    }
    table
}

/// A page with the tables between its marks replaced.
fn renewed(page: &str, reproduction: &Value, real_traces: &Value) -> String {
    let mut page = page.to_owned();
    if let Some(at) = page.find("<!-- both sizes -->") {
        replace(&mut page, at, "<!-- end of both sizes -->", &both_sizes(reproduction, &full_size()));
    }
    if let Some(at) = page.find("<!-- changed verdicts -->") {
        replace(&mut page, at, "<!-- end of changed verdicts -->", &changed_verdicts(reproduction, &full_size()));
    }
    let mut from = 0;
    while let Some(at) = page[from..].find("<!-- claims: ").map(|at| from + at) {
        let name_at = at + "<!-- claims: ".len();
        let paper = page[name_at..].split(" -->").next().unwrap().to_owned();
        from = replace(&mut page, at, "<!-- end of claims -->", &claims(reproduction, &paper));
    }
    from = 0;
    while let Some(at) = page[from..].find("<!-- on traces: ").map(|at| from + at) {
        let name_at = at + "<!-- on traces: ".len();
        let paper = page[name_at..].split(" -->").next().unwrap().to_owned();
        from = replace(&mut page, at, "<!-- end of on traces -->", &on_traces(real_traces, &paper));
    }
    if let Some(at) = page.find("<!-- with settings: ") {
        let name = page[at + "<!-- with settings: ".len()..].split(" -->").next().unwrap().to_owned();
        replace(&mut page, at, "<!-- end of with settings -->", &with_settings(reproduction, &json(&name)));
    }
    if let Some(at) = page.find("<!-- scoreboard -->") {
        replace(&mut page, at, "<!-- end of scoreboard -->", &scoreboard(reproduction));
    }
    page
}

/// Puts a table between the mark at a position and the next `end`. Returns the position after `end`.
fn replace(page: &mut String, mark_at: usize, end: &str, table: &str) -> usize {
    let from = mark_at + page[mark_at..].find("-->").unwrap() + "-->".len();
    let to = from + page[from..].find(end).unwrap_or_else(|| panic!("`{end}` is missing"));
    let table = format!("\n\n{table}\n");
    page.replace_range(from..to, &table);
    from + table.len() + end.len()
}

#[test]
fn tables_are_those_of_the_reproduction() {
    let (reproduction, real_traces) = (reproduction(), real_traces());
    let mut pages = vec![root().join("README.md")];
    pages.extend(fs::read_dir(root().join("docs/papers")).unwrap().map(|entry| entry.unwrap().path()));
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    for path in pages {
        let page = fs::read_to_string(&path).unwrap();
        let renewed = renewed(&page, &reproduction, &real_traces);
        if std::env::var_os("BIMETAL_UPDATE_DOCS").is_some() {
            fs::write(&path, renewed).unwrap();
        } else {
            assert!(page == renewed, "{} is not up to date; `make papers` makes its tables", path.display());
        }
    }
}

#[test]
fn the_reproduction_has_every_figure_and_every_target() {
    let reproduction = reproduction();
    let of = |value: &Value, keys: [&str; 2]| keys.map(|key| text(value, key).to_owned());
    let claims = reproduction["claims"].as_array().unwrap();
    let judged: BTreeSet<[String; 2]> = claims.iter().map(|claim| of(claim, ["paper", "figure"])).collect();
    let papers = Bench::new().json(&["list", "papers"]);
    let figures = papers.as_array().unwrap().iter().flat_map(|paper| {
        let figures = paper["figures"].as_array().unwrap().iter();
        figures.map(|figure| [text(paper, "name").to_owned(), text(figure, "name").to_owned()])
    });
    let figures: BTreeSet<[String; 2]> = figures.collect();
    assert_eq!(judged, figures, "`make papers` is due");
    let targets: BTreeSet<&str> = claims.iter().map(|claim| text(claim, "target")).collect();
    for target in 20..=29 {
        assert!(targets.contains(format!("T{target}").as_str()), "no claim belongs to T{target}");
    }
    assert!(claims.iter().all(|claim| {
        ["claim", "expected", "measured", "verdict", "reason"].iter().all(|key| !text(claim, key).is_empty())
    }));
}

/// All figures of a paper again with two threads, and one of them with one thread: the results are those in the docs.
#[test]
fn a_paper_comes_out_the_same_every_time() {
    const FIGURE: &str = "fig5c";
    let bench = Bench::new();
    let claims = reproduction()["claims"].as_array().unwrap().clone();
    let known: Vec<Value> = claims.into_iter().filter(|claim| text(claim, "paper") == "hyssd").collect();
    let two = bench.json(&["paper", "hyssd", "--quick", "--jobs", "2"]);
    assert_eq!(two["claims"].as_array().unwrap(), &known, "`make papers` is due");
    let of_figure: Vec<Value> = known.into_iter().filter(|claim| text(claim, "figure") == FIGURE).collect();
    let one = bench.json(&["paper", "hyssd", FIGURE, "--quick", "--jobs", "1"]);
    assert!(of_figure.len() > 5, "{of_figure:?}");
    assert_eq!(one["claims"].as_array().unwrap(), &of_figure, "with one thread");
}

/// A figure that replays little at full size.
#[test]
fn a_figure_comes_out_at_full_size_as_in_the_docs() {
    let made = Bench::new().json(&["paper", "comboftl", FULL_SIZE_FIGURE]);
    let claims = full_size()["claims"].as_array().unwrap().clone();
    let is_same = |claim: &Value| (text(claim, "paper"), text(claim, "figure")) == ("comboftl", FULL_SIZE_FIGURE);
    let known: Vec<Value> = claims.into_iter().filter(is_same).collect();
    assert!(!known.is_empty());
    assert_eq!(made["claims"].as_array().unwrap(), &known, "`make papers-full-size` is due");
}

const FULL_SIZE_FIGURE: &str = "fig13";

#[test]
fn real_traces_have_every_paper() {
    let real_traces = real_traces();
    let claims = real_traces["claims"].as_array().unwrap();
    let traces: BTreeSet<&str> = claims.iter().map(|claim| text(claim, "trace")).collect();
    let page = fs::read_to_string(root().join("docs/papers/real-traces.md")).unwrap();
    for trace in &traces {
        assert!(page.contains(&format!("| {} |", short_name(trace))), "{trace} has no row in the table of traces");
    }
    for paper in Bench::new().json(&["list", "papers"]).as_array().unwrap() {
        let paper = text(paper, "name");
        let judged: BTreeSet<&str> =
            claims.iter().filter(|claim| text(claim, "paper") == paper).map(|claim| text(claim, "trace")).collect();
        assert_eq!(judged, traces, "{paper}");
        assert!(page.contains(&format!("<!-- on traces: {paper} -->")), "{paper} has no table");
    }
}

/// The claims of a paper on the built-in trace, as in the docs.
#[test]
fn claims_are_judged_on_any_trace() {
    let bench = Bench::new();
    let command = ["paper", "wlaftl", "--on", "sample", "--json", "on.json"];
    let shown = bench.succeed(&command).stdout;
    let written: Value = serde_json::from_slice(&fs::read(bench.path("on.json")).unwrap()).unwrap();
    let trace = "cloudphysics (built-in sample)";
    let real_traces = real_traces();
    let is_same = |claim: &&Value| (text(claim, "paper"), text(claim, "trace")) == ("wlaftl", trace);
    let known: Vec<&Value> = real_traces["claims"].as_array().unwrap().iter().filter(is_same).collect();
    assert_eq!(written["claims"].as_array().unwrap().iter().collect::<Vec<_>>(), known);
    assert!(written["figures"].as_array().unwrap().iter().all(|figure| text(figure, "trace") == trace));
    let commands = written["figures"][0]["commands"].as_array().unwrap();
    assert!(
        commands.iter().any(|command| command.as_str().unwrap().contains("--set fit_to_trace=true")),
        "{commands:?}"
    );
    // The built-in trace is the default of `replay`, and has no file.
    assert!(
        commands.iter().all(|command| command.as_str().unwrap().starts_with("bimetal replay --device")),
        "{commands:?}"
    );
    assert!(shown.lines().next().unwrap_or_default().ends_with("cloudphysics"), "{shown}");
    for claim in known {
        let (said, measured) = (text(claim, "claim"), text(claim, "measured"));
        let start = said.split(' ').take(5).collect::<Vec<_>>().join(" ");
        let mark = if text(claim, "verdict") == "held" { " ✓" } else { "" };
        let end = format!(" {measured}{mark}");
        let is_shown = |line: &str| line.trim_start().starts_with(&start) && line.ends_with(&end);
        assert!(shown.lines().any(is_shown), "{said}: {measured}{mark} is not in\n{shown}");
    }
}
