//! `bimetal paper` with traces and settings of the user.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;

use common::{Bench, text};
use serde_json::Value;

/// Two small traces side by side; what does not wear out a region is not judged.
#[test]
fn traces_are_judged_side_by_side() {
    let bench = Bench::new();
    let short = ["--set", "span=16MiB", "--set", "requests=300"];
    let long = ["--set", "span=64MiB", "--set", "theta=0.6", "--set", "size=16KiB", "--set", "requests=20000"];
    for (name, settings) in [("one.bimetal", &short[..]), ("two.bimetal", &long)] {
        bench.succeed(&[&["generate", "zipf", name, "--set", "read_share=0"], settings].concat());
    }
    let shown = bench.succeed(&["paper", "wlaftl", "--on", "one.bimetal", "two.bimetal", "--jobs", "1"]).stdout;
    let heads: Vec<&str> = shown.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(heads, ["paper", "one", "two"], "{shown}");
    assert!(shown.contains("– not judged: `one.bimetal` is too short"), "{shown}");
    assert!(shown.contains("✓"), "{shown}");
}

#[test]
fn wrong_uses_of_own_traces_are_refused() {
    let bench = Bench::new();
    bench.fail(&["paper", "chang", "--on", "no-such-file"], 1, &["no-such-file"]);
    bench.fail(&["paper", "nobody", "--on", "sample"], 2, &["there is no paper `nobody`"]);
    bench.fail(&["paper", "--on", "sample", "--quick"], 2, &["--on", "--quick"]);
    bench.fail(&["paper", "chang", "--on", "sample", "--trace", "ntfs=x"], 2, &["--on", "--trace"]);
    bench.fail(&["paper", "chang", "fig8a", "--on", "sample"], 2, &["--on", "FIGURE"]);
    bench.fail(&["paper", "chang", "--on", "sample", "sample"], 2, &["two traces", "cloudphysics"]);
}

/// The commands of all figures, on both kinds of stand-ins.
fn all_commands(reproduction: &Value) -> Vec<&str> {
    let figures = reproduction["figures"].as_array().unwrap().iter();
    figures.flat_map(|figure| figure["commands"].as_array().unwrap()).filter_map(Value::as_str).collect()
}

/// The experiment that the reason of a claim names.
#[test]
fn a_claim_is_judged_with_another_setting() {
    let bench = Bench::new();
    let verdict = |reproduction: &Value| {
        let claims = reproduction["claims"].as_array().unwrap();
        let claim = claims.iter().find(|claim| {
            text(claim, "claim") == "utilisation of the Static that lives longest (%)"
                && text(claim, "stand_in") == "first"
        });
        (text(claim.unwrap(), "verdict").to_owned(), text(claim.unwrap(), "reason").to_owned())
    };
    let command = ["paper", "hyssd", "fig5c", "--quick"];
    let (held, reason) = verdict(&bench.json(&command));
    assert_eq!(held, "not held");
    assert!(reason.contains("(`popular_share=0`) it is at 5 % on Financial"), "{reason}");
    let varied = bench.json(&[&command[..], &["--set", "financial.popular_share=0"]].concat());
    assert_eq!(verdict(&varied).0, "held");
    let setting = &varied["settings"][0];
    assert_eq!(["of", "key", "value"].map(|key| text(setting, key)), ["financial", "popular_share", "0"]);
    let commands = all_commands(&varied);
    let replays = commands.iter().filter(|command| command.starts_with("bimetal replay")).count();
    assert_eq!(setting["replays"].as_u64(), Some(replays as u64));
    assert!(
        commands[0].starts_with("bimetal generate") && commands[0].contains("--set popular_share=0"),
        "{commands:?}"
    );
}

/// A figure keeps the values of parameters that it sets itself. A setting without effect is a warning.
#[test]
fn settings_of_schemes_apply_where_the_figure_sets_nothing() {
    let bench = Bench::new();
    let settings =
        ["--set", "hyssd-static.utilisation_percent=33", "--set", "hyssd.segments=32", "--set", "comboftl.chances=2"];
    let ran =
        bench.succeed(&[&["paper", "hyssd", "fig5c", "--quick", "--json", "varied.json"], &settings[..]].concat());
    for unused in ["`hyssd-static.utilisation_percent=33` changes no replay", "`comboftl.chances=2` changes no replay"]
    {
        assert!(ran.stderr.contains(unused), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("hyssd.segments"), "{}", ran.stderr);
    let varied: Value = serde_json::from_slice(&fs::read(bench.path("varied.json")).unwrap()).unwrap();
    let replays: Vec<u64> =
        varied["settings"].as_array().unwrap().iter().map(|setting| setting["replays"].as_u64().unwrap()).collect();
    let commands = all_commands(&varied);
    let of_hyssd: Vec<&&str> = commands.iter().filter(|command| command.contains("--scheme hyssd ")).collect();
    assert_eq!(replays, [0, of_hyssd.len() as u64, 0]);
    assert!(of_hyssd.iter().all(|command| command.contains("--set segments=32")), "{of_hyssd:?}");
    assert!(commands.iter().all(|command| !command.contains("utilisation_percent=33")), "{commands:?}");
}

#[test]
fn wrong_settings_are_refused() {
    let bench = Bench::new();
    for (setting, expected) in [
        ("period=64", "SCHEME.KEY=VALUE"),
        ("nobody.x=1", "`nobody` is neither a scheme"),
        ("hyssd.periods=64", "has no parameter `periods`"),
        ("financial.popular=0", "trace `financial`"),
        ("financial.popular_share=most", "most"),
        ("exchange-third.popular_share=0", "these are: financial"),
    ] {
        bench.fail(&["paper", "hyssd", "fig5c", "--quick", "--set", setting], 2, &[expected]);
    }
    let own = ["paper", "hyssd", "fig5c", "--trace", "financial=x", "--set", "financial.popular_share=0"];
    bench.fail(&own, 2, &["`financial` is neither a scheme", "these are: none"]);
    bench.fail(&["paper", "hyssd", "--on", "sample", "--set", "financial.popular_share=0"], 2, &["these are: none"]);
}

#[test]
fn wrong_names_are_refused() {
    let bench = Bench::new();
    bench.fail(&["paper", "nobody"], 2, &["there is no paper `nobody`", "chang"]);
    bench.fail(&["paper", "chang", "fig99"], 2, &["has no figure `fig99`", "fig8a"]);
    bench.fail(&["paper", "chang", "--trace", "nfts=x"], 2, &["trace `nfts`", "ntfs"]);
    bench.fail(&["paper", "chang", "--trace", "ntfs=no-such-file"], 1, &["no-such-file"]);
}
