//! `bimetal drives`, and the tables of `docs/real-drives.md`: they are generated from `docs/real-drives.json`, which is
//! the output of the command without the curves. `BIMETAL_UPDATE_DOCS=1` predicts all drives and rewrites both.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use bimetal_core::chip;
use bimetal_core::controller::ControllerSettings;
use bimetal_core::device::preset;
use bimetal_study::drives::{Figure, Mark, Review, Role, reviews};
use bimetal_study::number::plain;
use common::Bench;
use serde_json::{Value, json};

/// A drive with write amplifications only, and a drive that is filled.
const QUICK: [&str; 2] = ["micron-7450-max-373gib", "wd-sn550-1tb"];

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// The keys of an object, in their order.
fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn drives_are_predicted_beside_what_was_measured() {
    let json = Bench::new().json(&["drives", QUICK[1], QUICK[0]]);
    assert_eq!(keys(&json), ["bimetal", "drives", "fitted", "predicted"]);
    for assessment in ["fitted", "predicted"] {
        assert_eq!(keys(&json[assessment]), ["figures", "median_error", "share", "within"]);
    }
    let drives = list(&json["drives"]);
    // In the order of the list.
    let known: Vec<&Review> = reviews().iter().filter(|review| QUICK.contains(&review.name.as_str())).collect();
    assert_eq!(drives.len(), known.len());
    for (drive, review) in drives.iter().zip(known) {
        assert_eq!(
            keys(drive),
            ["curve", "device", "figures", "name", "note", "role", "sources", "title"],
            "{}",
            review.name
        );
        assert_eq!((&drive["name"], &drive["role"]), (&json!(review.name), &json!(review.role)));
        assert!(drive["device"].as_str().unwrap().contains(" dies of TLC ("), "{}", drive["device"]);
        for (figure, (name, known)) in list(&drive["figures"]).iter().zip(&review.figures) {
            assert_eq!(keys(figure), ["error", "figure", "mark", "measured", "predicted", "verdict"]);
            let (measured, mark) = known.unwrap();
            assert_eq!(figure["figure"], json!(name));
            assert_eq!((&figure["measured"], &figure["mark"]), (&json!(measured), &json!(mark)));
            let [predicted, error] = ["predicted", "error"].map(|key| figure[key].as_f64().unwrap());
            assert!((predicted / measured - 1.0 - error).abs() < 1e-9);
            assert_eq!(figure["verdict"], if error.abs() <= 0.2 { "within 20 %" } else { "beyond 20 %" });
        }
    }
    let (filled, partition) = (list(&drives[0]["curve"]), list(&drives[1]["curve"]));
    assert!(partition.is_empty() && filled.len() > 100, "{} points", filled.len());
    let [gb, speed] = [0, 1].map(|at| filled.last().unwrap()[at].as_f64().unwrap());
    assert!((gb - 1000.0).abs() < 5.0 && speed > 100.0, "{gb} GB, {speed} MB/s");
}

#[test]
fn a_terminal_of_80_columns_is_wide_enough() {
    let bench = Bench::new();
    let output = bench.command(&["drives", QUICK[0], "samsung-980-1tb"]).env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in ["Samsung 980 1TB  predicted\n", "  figure ", " M ", " C ", "\npredicted: ", " figures within 20 % ("] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(!text.contains("fitted: "), "there is no fitted drive");
}

const DEVICE: &str = "
name = \"mine\"
summary = \"an experiment\"
scheme = \"pslc-static\"
logical = \"8GiB\"
[controller]
link_mb_per_s = 3000
command_us = 2.0
buffer = \"8MiB\"
[[region]]
name = \"tlc\"
chip = \"tlc-3d-2019\"
capacity = \"112%\"
channels = 2
dies_per_channel = 2
mapping_unit = \"4KiB\"
[parameters]
budget = \"300MiB\"
when_full = \"direct\"
";

#[test]
fn a_device_file_is_measured_with_nothing_beside_it() {
    let bench = Bench::new();
    let file = bench.file("mine.toml", DEVICE);
    let ran = bench.succeed(&["drives", "--device", &file, "--json", "mine.json", "--html", "mine.html"]);
    let shown = |figure: &Figure| ran.stdout.contains(figure.title());
    assert!(Figure::ALL.iter().all(shown) && !ran.stdout.contains("verdict"), "{}", ran.stdout);
    assert!(
        ran.stdout.starts_with("mine  unreviewed\n") && ran.stdout.contains("\n  an experiment\n"),
        "{}",
        ran.stdout
    );
    let json: Value = serde_json::from_slice(&fs::read(bench.path("mine.json")).unwrap()).unwrap();
    let [drive] = list(&json["drives"]) else { panic!("the device alone: {json}") };
    let predicted = |key: &str| {
        let figure = list(&drive["figures"]).iter().find(|figure| figure["figure"] == key).unwrap();
        assert_eq!(
            (&figure["measured"], &figure["error"], &figure["verdict"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
        figure["predicted"].as_f64().unwrap()
    };
    assert!(predicted("cache_mb_per_s") > 1.5 * predicted("after_mb_per_s"), "{drive}");
    assert!((0.05..1.0).contains(&predicted("cache_gb")) && predicted("write_amplification") > 1.0, "{drive}");
    assert_eq!((&json["fitted"]["figures"], &json["predicted"]["median_error"]), (&json!(0), &Value::Null));
    assert!(fs::read_to_string(bench.path("mine.html")).unwrap().contains("<h2 id=\"section-1\">mine</h2>"));
}

#[test]
fn wrong_names_and_devices_are_refused() {
    let bench = Bench::new();
    bench.fail(&["drives", "wd-sn551"], 2, &["there is no drive `wd-sn551`; there are: wd-sn550-500gb, "]);
    bench.fail(&["drives", "--jobs", "0"], 2, &["--jobs"]);
    bench.fail(&["drives", "--device", "auto"], 2, &["`auto`", "a device file"]);
    bench.fail(&["drives", "--device", "nothing"], 2, &["there is no device `nothing`", "the path of a device file"]);
    bench.fail(&["drives", "--device", "no.toml"], 1, &["no.toml: the device file cannot be read"]);
    let broken = bench.file("broken.toml", DEVICE.replace("scheme", "schema"));
    bench.fail(&["drives", "--device", &broken], 1, &["broken.toml: line 4: ", "schema"]);
    let small = bench.file("small.toml", DEVICE.replace("8GiB", "512MiB"));
    bench.fail(&["drives", "--device", &small], 1, &["device `mine`, `logical`: 512MiB is too small", "1GiB"]);
}

fn updates() -> bool {
    std::env::var_os("BIMETAL_UPDATE_DOCS").is_some()
}

/// The predictions in the docs. If these are to be rewritten, all drives are predicted.
fn predictions() -> Value {
    let path = docs("real-drives.json");
    if updates() {
        let mut json = Bench::new().json(&["drives"]);
        for drive in json["drives"].as_array_mut().unwrap() {
            drive.as_object_mut().unwrap().remove("curve");
        }
        fs::write(&path, serde_json::to_string_pretty(&json).unwrap() + "\n").unwrap();
    }
    serde_json::from_slice(&fs::read(&path).unwrap()).unwrap()
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | ").replace('\n', " "))
}

fn head(cells: &[&str], text_columns: usize) -> String {
    let marks = (0..cells.len()).map(|column| if column < text_columns { "---" } else { "---:" });
    format!("| {} |\n|{}|\n", cells.join(" | "), marks.collect::<Vec<_>>().join("|"))
}

/// The number of correct figures for each role.
fn summary(predictions: &Value) -> String {
    let mut table = head(&["drives", "how many", "figures that count", "within 20 %", "share", "median error"], 1);
    for role in [Role::Fitted, Role::Predicted] {
        let assessment = &predictions[role.name()];
        let drives = list(&predictions["drives"]).iter().filter(|drive| drive["role"] == role.name()).count();
        let count = |key: &str| assessment[key].to_string();
        let percent = |key: &str| format!("{:.0} %", assessment[key].as_f64().unwrap() * 100.0);
        let cells = [count("figures"), count("within"), percent("share"), percent("median_error")];
        let names = [role.name().to_owned(), drives.to_string()];
        table += &row(&names.into_iter().chain(cells).collect::<Vec<_>>());
    }
    table
}

/// All figures of the drives of a role.
fn figures(predictions: &Value, role: Role) -> String {
    let mut table = head(&["drive", "figure", "verdict", "by", "predicted", "measured", "error"], 4);
    for drive in list(&predictions["drives"]).iter().filter(|drive| drive["role"] == role.name()) {
        for (index, figure) in list(&drive["figures"]).iter().enumerate() {
            let text = |key: &str| figure[key].as_str().unwrap().to_owned();
            let number = |key: &str| figure[key].as_f64().map_or_else(|| "–".to_owned(), plain);
            let error = figure["error"].as_f64().map(|error| format!("{:+} %", (error * 100.0).round() + 0.0));
            let title: Figure = serde_json::from_value(figure["figure"].clone()).unwrap();
            table += &row(&[
                if index == 0 { drive["title"].as_str().unwrap().to_owned() } else { String::new() },
                title.title().to_owned(),
                text("verdict"),
                text("mark"),
                number("predicted"),
                number("measured"),
                error.unwrap_or_else(|| "–".into()),
            ]);
        }
    }
    table
}

fn sources() -> String {
    let link = |(index, url): (usize, &String)| format!("[{}](<{url}>)", index + 1);
    let links = |review: &Review| review.sources.iter().enumerate().map(link).collect::<Vec<_>>().join(", ");
    let of = |review: &Review| format!("- {}: {}\n", review.title, links(review));
    reviews().iter().map(of).collect()
}

/// Titles of the drives of a role that a predicate accepts, each device once.
fn titles(role: Role, takes: impl Fn(&Review) -> bool) -> String {
    let mut devices: Vec<&str> = Vec::new();
    let mut titles = Vec::new();
    for review in reviews().iter().filter(|review| review.role == role && takes(review)) {
        if !devices.contains(&review.device.as_str()) {
            devices.push(&review.device);
            titles.push(review.title.split(',').next().unwrap());
        }
    }
    if titles.is_empty() { "–".into() } else { titles.join(", ") }
}

fn constants(settings: &ControllerSettings) -> [f64; 6] {
    [
        settings.link_mb_per_s,
        settings.command_us,
        settings.us_per_4kib,
        settings.read_latency_us,
        settings.write_latency_us,
        settings.fold_efficiency,
    ]
}

/// The constants of controllers, and the drives with each.
fn controllers() -> String {
    let of = |review: &Review| constants(&review.made().unwrap().controller.unwrap());
    let mut classes: Vec<[f64; 6]> = reviews().iter().map(of).collect();
    classes.sort_by(|a, b| a.partial_cmp(b).unwrap());
    classes.dedup();
    let heads = [
        "`link_mb_per_s`",
        "`command_us`",
        "`us_per_4kib`",
        "`read_latency_us`",
        "`write_latency_us`",
        "`fold_efficiency`",
    ];
    let mut table = head(&[&heads[..], &["fitted", "predicted"]].concat(), 0);
    for class in classes {
        let drives = [Role::Fitted, Role::Predicted].map(|role| titles(role, |review| of(review) == class));
        table += &row(&class.map(plain).into_iter().chain(drives).collect::<Vec<_>>());
    }
    table
}

/// The dies of the drives, with their sources.
fn dies() -> String {
    let chips = |review: &Review| {
        let resolved = preset(&review.device).unwrap().resolve().unwrap();
        resolved.regions.into_iter().map(|region| region.chip.name).collect::<Vec<_>>()
    };
    let used: Vec<String> = reviews().iter().flat_map(chips).collect();
    let mut table = head(&["die", "source", "fitted", "predicted"], 4);
    for chip in chip::catalogue().into_iter().filter(|chip| used.contains(&chip.name)) {
        let drives =
            [Role::Fitted, Role::Predicted].map(|role| titles(role, |review| chips(review).contains(&chip.name)));
        table += &row(&[format!("`{}`", chip.name), chip.source.clone()].into_iter().chain(drives).collect::<Vec<_>>());
    }
    table
}

#[test]
fn the_page_of_real_drives_is_up_to_date() {
    let predictions = predictions();
    let summary = ("summary", summary(&predictions));
    keep(&docs("../README.md"), std::slice::from_ref(&summary));
    let others = [
        ("controllers", controllers()),
        ("dies", dies()),
        ("fitted", figures(&predictions, Role::Fitted)),
        ("predicted", figures(&predictions, Role::Predicted)),
        ("sources", sources()),
    ];
    keep(&docs("real-drives.md"), &[&[summary], others.as_slice()].concat());
}

/// Compares the tables of a page with these, or writes them.
fn keep(path: &Path, tables: &[(&str, String)]) {
    let found = fs::read_to_string(path).unwrap();
    let mut page = found.clone();
    for (name, table) in tables {
        let mark = format!("<!-- drives: {name} -->");
        let (before, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("no {mark}"));
        let (_, after) = rest.split_once("<!-- end of drives -->").unwrap();
        page = format!("{before}{mark}\n\n{table}\n<!-- end of drives -->{after}");
    }
    if updates() {
        fs::write(path, &page).unwrap();
    } else {
        assert!(found == page, "{} is not up to date; BIMETAL_UPDATE_DOCS=1 writes it", path.display());
    }
}

/// The docs contain every drive with its known figures, and new predictions of the fast ones are equal.
#[test]
fn the_docs_have_the_predictions_of_the_code() {
    if updates() {
        return;
    }
    const STALE: &str = "docs/real-drives.json is not up to date; BIMETAL_UPDATE_DOCS=1 writes it";
    let known = predictions();
    let figures = |drive: &Value| -> Vec<(Figure, Option<(f64, Mark)>)> {
        let of = |figure: &Value| {
            let name = serde_json::from_value(figure["figure"].clone()).unwrap();
            let mark = serde_json::from_value(figure["mark"].clone()).unwrap();
            (name, Some((figure["measured"].as_f64().unwrap(), mark)))
        };
        list(&drive["figures"]).iter().map(of).collect()
    };
    assert_eq!(list(&known["drives"]).len(), reviews().len(), "{STALE}");
    for (drive, review) in list(&known["drives"]).iter().zip(reviews()) {
        assert_eq!((&drive["name"], &drive["role"]), (&json!(review.name), &json!(review.role)), "{STALE}");
        assert!(figures(drive).into_iter().eq(review.figures.clone()), "{}: {STALE}", review.name);
    }
    for drive in list(&Bench::new().json(&[&["drives"], &QUICK[..]].concat())["drives"]) {
        let known = list(&known["drives"]).iter().find(|known| known["name"] == drive["name"]).unwrap();
        assert_eq!(known["figures"], drive["figures"], "{}: {STALE}", drive["name"]);
    }
}
