//! The picture and the table at the top of README are the results of `make demo`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The output of `make demo`, and its figures.
fn demo() -> (String, Value) {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let arguments = makefile.lines().find_map(|line| Some(line.split_once("bimetal-cli -- ")?.1.to_owned())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_bimetal"))
        .args(arguments.split_whitespace().chain(["--json", "demo.json"]))
        .current_dir(folder.path())
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = fs::read_to_string(folder.path().join("demo.json")).unwrap();
    (String::from_utf8(output.stdout).unwrap(), serde_json::from_str(&figures).unwrap())
}

#[test]
fn readme_shows_what_make_demo_measures() {
    let (printed, figures) = demo();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let shown = readme.split("```").nth(1).unwrap();
    assert!(shown.lines().count() > 10, "the first block of README is its table");
    for line in shown.lines().map(str::trim_end) {
        assert!(
            printed.lines().any(|known| known.trim_end() == line),
            "README shows a line that `make demo` does not print:\n{line}"
        );
    }
    let (path, picture) = (root().join("docs/pictures/schemes.svg"), picture(&figures));
    if std::env::var_os("BIMETAL_UPDATE_DOCS").is_some() {
        fs::write(&path, &picture).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == picture, "{} is not up to date; BIMETAL_UPDATE_DOCS=1 writes it", path.display());
}

/// A quantity of every scheme, as bars.
struct Panel {
    title: &'static str,
    /// Left end of the bars, in pixels.
    left: f64,
    /// The value of the longest bar. Bars of larger values are cut.
    most: f64,
    /// Whether small values are better.
    is_less_better: bool,
}

/// Bars of two panels: maximum width, height with the gap, and position of the first bar.
const BAR_WIDTH: f64 = 250.0;
const ROW: f64 = 19.0;
const TOP: f64 = 44.0;

/// Mean response and life of every scheme without a disk, the shortest response first.
fn picture(figures: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap();
    let results = figures["results"].as_array().unwrap().iter();
    let mut rows: Vec<(&str, [f64; 2])> = results
        .filter(|result| result["disks"].as_array().is_none_or(Vec::is_empty))
        .map(|result| {
            let (response, life) = (number(&result["response_us"]["mean"]), number(&result["lifetime_years"]));
            (result["scheme"].as_str().unwrap(), [response / 1e3, life * 365.25])
        })
        .collect();
    rows.sort_by(|one, other| one.1[0].total_cmp(&other.1[0]));
    let longest = rows.iter().map(|row| row.1[1]).fold(0.0, f64::max);
    let panels = [
        Panel { title: "mean response (ms): less is better", left: 130.0, most: 3.0, is_less_better: true },
        Panel { title: "life (days): more is better", left: 450.0, most: longest, is_less_better: false },
    ];
    let height = TOP + ROW * rows.len() as f64 + 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Mean response and life of {} schemes on the same drive and trace</title>\n\
         <style>text {{ fill: #24292f }} .bar {{ fill: #8aa4b8 }} .best {{ fill: #d55e00 }} .head {{ font-weight: bold }}\n\
         @media (prefers-color-scheme: dark) {{ text {{ fill: #d0d7de }} .bar {{ fill: #5b7488 }} }}</style>\n",
        rows.len()
    );
    for (index, panel) in panels.iter().enumerate() {
        writeln!(svg, "<text class=\"head\" x=\"{}\" y=\"24\">{}</text>", panel.left, panel.title).unwrap();
        let values = rows.iter().map(|row| row.1[index]);
        let best = if panel.is_less_better { values.fold(f64::MAX, f64::min) } else { values.fold(0.0, f64::max) };
        for (y, (_, values)) in (0..).map(|row| TOP + ROW * f64::from(row)).zip(&rows) {
            let value = values[index];
            let class = if value == best { "best" } else { "bar" };
            let width = BAR_WIDTH * (value / panel.most).min(1.0);
            // A bar that is cut ends in a point.
            let point = if value > panel.most { width + 7.0 } else { width };
            let (left, right, tip) = (panel.left, panel.left + width, panel.left + point);
            let (bottom, middle) = (y + 14.0, y + 7.0);
            writeln!(
                svg,
                "<path class=\"{class}\" d=\"M{left} {y}H{right:.1}L{tip:.1} {middle}L{right:.1} {bottom}H{left}Z\"/>\n\
                 <text x=\"{:.1}\" y=\"{}\">{}</text>",
                tip + 5.0,
                y + 11.0,
                if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") },
            )
            .unwrap();
        }
    }
    for (y, (scheme, _)) in (0..).map(|row| TOP + ROW * f64::from(row)).zip(&rows) {
        writeln!(svg, "<text x=\"122\" y=\"{}\" text-anchor=\"end\">{scheme}</text>", y + 11.0).unwrap();
    }
    svg + "</svg>\n"
}
