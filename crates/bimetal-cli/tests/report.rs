//! Reports in a browser: every point drawn, no overlapping texts, nothing loaded, at the widths of a screen and of a
//! phone.
//!
//! A copy of the report with `report/check.js` in its head is opened by headless Chromium in frames of several widths.
//! Without Chromium these tests are skipped, unless `CI` is set.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::Bench;
use serde_json::Value;

/// Widths of a screen and of a phone, in pixels.
const WIDTHS: [u32; 2] = [1280, 390];

/// Height of a screen, in pixels.
const HEIGHT: f64 = 900.0;

/// Maximum size of a report.
const BYTES_MAX: usize = 3_000_000;

/// A browser, if there is one.
fn browser() -> Option<&'static str> {
    let answers = |name: &&str| {
        let status = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(answers);
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "`CI` is set and there is no Chromium");
    if found.is_none() {
        eprintln!("skipped: there is no Chromium to open reports with; hint: install the package `chromium`");
    }
    found
}

/// A page that shows another one in a frame, because windows have a minimum width, and records the results of its
/// checks.
fn frame(page: &str, width: u32) -> String {
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body>\n\
         <iframe src=\"{page}\" style=\"border:0;width:{width}px;height:{HEIGHT}px\"></iframe>\n<script>\n\
         addEventListener('message', ({{ data }}) => {{\n\
           const line = document.body.appendChild(document.createElement('pre'));\n\
           line.textContent = `RESULT ${{JSON.stringify(data)}}`;\n\
         }});\n</script></body>"
    )
}

/// Results of the checks of a page in a window of `width` pixels.
fn look(browser: &str, bench: &Bench, page: &str, width: u32) -> Value {
    let check = format!("<head>\n<script>{}</script>\n", include_str!("report/check.js"));
    bench.file("checked.html", page.replacen("<head>\n", &check, 1));
    bench.file("frame.html", frame("checked.html", width));
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"])
        .args(["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1400,1000"])
        .arg(format!("--user-data-dir={}", bench.path("profile").display()))
        .args(["--virtual-time-budget=60000", "--dump-dom"])
        .arg(url(&bench.path("frame.html")))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8(output.stdout).unwrap();
    let result = dom.rsplit_once("RESULT ").unwrap().1.split("</pre>").next().unwrap();
    let result = result.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&result)
        .unwrap_or_else(|error| panic!("{error}: {result}\n{}", String::from_utf8_lossy(&output.stderr)))
}

fn url(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Checks a report at every width, and its size. Returns the results at each width; none without a browser.
fn check(bench: &Bench, report: &str, plots: u64) -> Vec<Value> {
    let page = std::fs::read_to_string(bench.path(report)).unwrap();
    assert!(page.len() < BYTES_MAX, "{report} has {} bytes", page.len());
    let Some(browser) = browser() else { return Vec::new() };
    let check = |width| {
        let result = look(browser, bench, &page, width);
        assert_eq!(result["problems"], Value::Array(Vec::new()), "{report} at {width} pixels");
        assert_eq!(result["width"], width);
        assert!(result["plots"].as_u64().unwrap() >= plots, "{report}: {result}");
        assert!(result["texts"].as_u64().unwrap() > 100, "{report}: {result}");
        result
    };
    Vec::from(WIDTHS.map(check))
}

#[test]
fn a_comparison_of_all_schemes_is_readable() {
    let bench = Bench::new();
    let ran = bench.succeed(&["compare", "--limit", "30000", "--html", "all.html"]);
    assert!(ran.stdout.contains("Page operations"), "the table is printed too");
    for result in check(&bench, "all.html", 20) {
        let (width, folded) = (&result["width"], &result["folded"]);
        let of = |name: &str| folded[name].as_f64().unwrap_or_else(|| panic!("the page has no {name}: {result}"));
        if width == WIDTHS[0] {
            assert!(of("verdict") < HEIGHT && of("row") < HEIGHT, "the answer is not on the first screen: {folded}");
        }
        assert!(of("width") <= width.as_f64().unwrap(), "the page is wider than the screen: {folded}");
    }
}

#[test]
fn a_report_of_one_scheme_is_readable() {
    let bench = Bench::new();
    // A name with markup is escaped.
    let trace = bench.file("<b>&amp;\"'.csv", std::fs::read(bench.path(&bench.small_trace(4000))).unwrap());
    bench.succeed(&["replay", &trace, "--format", "spc", "--scheme", "opfcl", "--html", "one.html"]);
    let page = std::fs::read_to_string(bench.path("one.html")).unwrap();
    assert!(page.contains("<h1>opfcl on &lt;b&gt;&amp;amp;&quot;&#39;.csv</h1>") && !page.contains("<b>"));
    assert!(page.contains("bimetal replay &#39;&lt;b&gt;&amp;amp;"), "the command is in it");
    check(&bench, "one.html", 20);
}

#[test]
fn figures_of_a_paper_are_readable() {
    let bench = Bench::new();
    bench.succeed(&["paper", "hyssd", "--quick", "--html", "paper.html"]);
    check(&bench, "paper.html", 12);
}

#[test]
fn real_drives_are_readable() {
    let bench = Bench::new();
    bench.succeed(&["drives", "wd-sn550", "micron-7450-max-373gib", "lexar-nm790-2tb", "--html", "drives.html"]);
    check(&bench, "drives.html", 3);
}

#[test]
fn a_sweep_is_readable_and_its_points_can_be_sorted_and_filtered() {
    let bench = Bench::new();
    bench.file("study.toml", STUDY);
    bench.succeed(&["sweep", "study.toml", "--html", "sweep.html"]);
    check(&bench, "sweep.html", 2 * 3 + 6);
    let page = std::fs::read_to_string(bench.path("sweep.html")).unwrap();
    assert!(page.contains("<h1>&lt;b&gt; of all</h1>") && !page.contains("<b>"));
    // What the terminal says about the points: reasons of failures, and changes of devices.
    for said in
        [": keeping 1 blocks erased takes", "<li><code>opfcl</code>, 4 points: <code>disk</code> is used instead"]
    {
        assert!(page.contains(said), "no `{said}` in the page");
    }
    let Some(browser) = browser() else { return };
    let sifting = format!("<script>\n{}</script>\n</body>", include_str!("report/sift.js"));
    let look = |page: &str| look(browser, &bench, page, WIDTHS[0])["problems"].clone();
    assert_eq!(look(&page.replacen("</body>", &sifting, 1)), Value::Array(Vec::new()));
    let wrong = page.replacen("</body>", &sifting, 1).replacen("down * (x - y)", "down * (y - x)", 1);
    assert!(look(&wrong).to_string().contains("sorted"), "the check finds the error");
}

/// A study with failed, overloaded and normal points.
const STUDY: &str = "
title = \"<b> of all\"
traces = [{ limit = 3000 }, { name = \"fast\", limit = 3000 }]
replay = { arrivals = \"trace:40\" }
[[grids]]
scheme = [\"pagemap\", \"wlaftl\", \"hyssd\", \"pslc-dynamic\", \"opfcl\"]
set = { \"slow.spare\" = [\"0%\", \"9%\", \"20.5%\", \"20.25%\"], \"fast.capacity\" = [\"8MiB\", \"12MiB\"] }
";

#[test]
fn a_million_requests_make_a_small_report_and_always_the_same() {
    let bench = Bench::new();
    let page = || {
        // Nine passes of the built-in trace.
        bench.succeed(&["compare", "--schemes", "pagemap,wlaftl", "--repeat", "9", "--html", "long.html"]);
        std::fs::read_to_string(bench.path("long.html")).unwrap()
    };
    let first = page();
    assert!(first.contains("113,872 requests") && first.contains("9 passes"));
    assert!(first.len() < BYTES_MAX, "{} bytes", first.len());
    assert!(first == page(), "two pages of the same results differ");
}

#[test]
fn the_checks_find_what_is_wrong() {
    let Some(browser) = browser() else { return };
    let bench = Bench::new();
    let trace = bench.small_trace(200);
    bench.succeed(&["replay", &trace, "--scheme", "pagemap", "--intervals", "0", "--html", "one.html"]);
    let page = std::fs::read_to_string(bench.path("one.html")).unwrap();
    let wrongs = [
        ("<h2 id=\"section-2\"", "<h2 style=\"margin-top:-70px\" id=\"section-2\"", "overlap"),
        ("<main>", "<main><div style=\"width:2000px\">wide</div>", "pixels wide"),
        ("<main>", "<main><img src=\"https://example.com/image.png\">", "blocked"),
        ("<main>", "<main><script>console.error('broken')</script>", "console.error: broken"),
        ("drawSome, 10);", "drawSome, 10); else document.querySelector('.point')?.remove();", "points of"),
    ];
    let mut wrong = page;
    for (right, replaced, _) in wrongs {
        assert!(wrong.contains(right), "{right}");
        wrong = wrong.replacen(right, replaced, 1);
    }
    let problems = look(browser, &bench, &wrong, WIDTHS[1])["problems"].to_string();
    for (_, _, said) in wrongs {
        assert!(problems.contains(said), "no `{said}` in {problems}");
    }
}
