use super::*;
use bimetal_core::device;
use bimetal_core::device::AUTO;
use bimetal_core::scheme::SCHEMES;

fn parse(text: &str) -> Result<Study, TomlFileError> {
    Study::parse(text, Path::new("."))
}

/// Scheme and settings of each point.
fn listed(text: &str) -> Vec<String> {
    let study = parse(text).unwrap();
    let set = |point: &Point| point.set.iter().map(|(key, value)| format!(" {key}={value}")).collect::<String>();
    study.points.iter().map(|Planned { point, .. }| format!("{}{}", point.scheme, set(point))).collect()
}

#[test]
fn an_empty_study_is_every_scheme_on_the_trace_inside_the_program() {
    let study = parse("").unwrap();
    assert_eq!(study.points.len(), SCHEMES.len());
    assert!(study.points.iter().all(|planned| planned.optional && planned.point.set.is_empty()));
    assert_eq!(study.points[0].point.trace.from, Origin::Sample);
    assert_eq!(study.points[0].point.device.name, AUTO);
}

#[test]
fn a_grid_is_the_product_of_its_lists_and_grids_are_added_up() {
    let text = "
        [[grids]]
        scheme = [\"wlaftl\", \"chang\"]
        set = { \"fast.capacity\" = [\"2MiB\", \"4MiB\"], hash_probes = [4, 8] }
        [[grids]]
        scheme = \"chang\"
        set.\"fast.capacity\" = \"4MiB\"
        set.hash_probes = [8, 16]
        ";
    let expected = [
        // A scheme runs once for all values of a setting that it does not have.
        "wlaftl fast.capacity=2MiB",
        "wlaftl fast.capacity=4MiB",
        "chang fast.capacity=2MiB hash_probes=4",
        "chang fast.capacity=2MiB hash_probes=8",
        "chang fast.capacity=4MiB hash_probes=4",
        "chang fast.capacity=4MiB hash_probes=8",
        "chang fast.capacity=4MiB hash_probes=16",
    ];
    assert_eq!(listed(text), expected);
}

#[test]
fn settings_of_parts_that_a_scheme_does_not_use_make_no_points() {
    let text = "
        [[grids]]
        scheme = [\"pagemap\", \"opfcl\", \"pslc-static\", \"chang\", \"rwfcl\"]
        set.\"fast.capacity\" = [\"2MiB\", \"4MiB\"]
        set.\"slow.spare\" = [\"5%\", \"9%\"]
        set.\"disk.model\" = [\"constant\", \"mechanical\"]
        ";
    let count = |scheme: &str| listed(text).iter().filter(|point| point.starts_with(scheme)).count();
    assert_eq!(["pagemap", "opfcl", "pslc-static", "chang", "rwfcl"].map(count), [2, 4, 4, 4, 4]);
    let devices = "
        [[grids]]
        device = [\"auto\", \"chang-c3-mlc\"]
        scheme = [\"pagemap\", \"chang\"]
        set = { \"slow.spare\" = [\"7%\", \"8%\"], \"fast.endurance\" = [1, 2], seed = [1, 2] }
        ";
    assert_eq!(listed(devices).iter().filter(|point| point.starts_with("pagemap")).count(), 2 * 2 * 2);
    let unused = "[[grids]]\nscheme = \"pagemap\"\nset.\"fast.endurance\" = [1, 2]";
    let error = parse(unused).unwrap_err();
    assert!(error.to_string().contains("`fast.endurance`"), "{error}");
}

#[test]
fn traces_devices_and_replays_are_lists_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "").unwrap();
    std::fs::write(folder.path().join("mine.toml"), device::PRESETS[0].toml).unwrap();
    let text = "
        title = \"t\"
        [[traces]]
        files = \"a.csv\"
        time-unit = \"ms\"
        format = \"disksim\"
        [[traces]]
        name = \"z\"
        generate = \"zipf\"
        set = { theta = 0.5, requests = 100 }
        seed = 4
        limit = 10
        [replay]
        arrivals = [\"closed\", \"trace:2\"]
        repeat = 4
        measure = 2
        fill = 'none'
        seed = 9
        [[grids]]
        trace = [\"z\", \"a.csv\"]
        device = [\"mine.toml\", \"auto\"]
        scheme = \"pagemap\"
        ";
    let study = Study::parse(text, folder.path()).unwrap();
    assert_eq!((study.title.as_str(), study.points.len()), ("t", 8));
    let first = &study.points[0].point;
    let set = BTreeMap::from([("requests".into(), "100".into()), ("theta".into(), "0.5".into())]);
    let from = Origin::Generated { workload: "zipf".into(), set, seed: 4 };
    assert_eq!(first.trace, TraceSource { name: "z".into(), from, limit: Some(10) });
    assert_eq!(first.device.file.as_deref(), Some(device::PRESETS[0].toml));
    assert_eq!(first.replay, Replay { arrivals: "closed:1".into(), repeat: 4, measure: 2, fill: "none".into() });
    assert_eq!(first.set["seed"], "9");
    assert_eq!(study.points[1].point.replay.arrivals, "trace:2");
    assert!(study.points.iter().all(|planned| !planned.optional));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "").unwrap();
    std::fs::write(folder.path().join("bad.toml"), "name = \"x\"\nlogicl = 3\n").unwrap();
    for (line, text, said) in [
        (1, "titel = \"x\"", "titel"),
        (2, "title = \"x\"\ntitle = \"y\"", "duplicate"),
        (2, "[[grids]]\nschemes = \"chang\"", "schemes"),
        (2, "[[grids]]\nscheme = \"nosuch\"", "pagemap, "),
        (2, "[[grids]]\nscheme = []", "empty list"),
        (2, "[[grids]]\nscheme = 3", "text or a list of texts"),
        (2, "[[grids]]\ndevice = \"nosuch\"", "chang-c3"),
        (2, "[[grids]]\ndevice = \"nosuch.toml\"", "nosuch.toml"),
        (2, "[[grids]]\ndevice = \"bad.toml\"", "bad.toml: line 2: "),
        (2, "[[grids]]\ntrace = \"web\"", "there are: sample"),
        (3, "[[grids]]\nscheme = \"chang\"\nset.nosuch = 1", "hash_probes"),
        (3, "[[grids]]\nscheme = \"chang\"\nset.hash_probes = [4, \"many\"]", "`many`"),
        (3, "[[grids]]\n[grids.set]\n\"qlc.spare\" = \"1%\"", "fast and slow"),
        (3, "[[grids]]\n[grids.set]\n\"slow.spare\" = [\"5%\", \"much\"]", "much"),
        (3, "[[grids]]\n[grids.set]\n\"slow.chip\" = \"nosuch\"", "chang-mlc"),
        (3, "[[grids]]\n[grids.set]\n\"slow.spare\" = []", "empty list"),
        (2, "[[grids]]\nset.seed = { from = 1, to = 9 }", "count"),
        (3, "[[grids]]\nset.seed = { from = 1, to = 9999, count = 9999 }\nset.mlc = 3", "mlc"),
        (
            3,
            "[[grids]]\nscheme = \"chang\"\nset.seed = { from = 1, to = 9999, count = 9999 }\nset.\"slow.page_bytes\" = \
             { from = 1, to = 9999, count = 9999 }",
            "points; a study",
        ),
        (2, "[replay]\narrivals = [\"closed\", \"open\"]", "`open`"),
        (2, "[replay]\nmeasure = 2", "measure"),
        (2, "[replay]\nrepeat = 0", "measure"),
        (2, "[[traces]]\nfiles = \"b.csv\"", "trace file `b.csv` cannot be read: No such file"),
        (2, "[[traces]]\nfiles = [\".\"]", "directory"),
        (2, "[[traces]]\nfiles = []", "leave it out"),
        (3, "[[traces]]\nfiles = \"a.csv\"\nformat = \"nosuch\"", "nosuch"),
        (3, "[[traces]]\nfiles = \"a.csv\"\naction = \"X\"", "actions are"),
        (3, "[[traces]]\nfiles = \"a.csv\"\ngenerate = \"zipf\"", "not both"),
        (3, "[[traces]]\nfiles = \"a.csv\"\nseed = 3", "a trace with `generate`"),
        (2, "[[traces]]\nformat = \"spc\"", "a trace with `files`"),
        (2, "[[traces]]\ngenerate = \"nosuch\"", "zipf"),
        (3, "[[traces]]\ngenerate = \"zipf\"\nset.nosuch = 3", "nosuch"),
        (2, "[[traces]]\nlimit = 0", "at least 1"),
        (4, "[[traces]]\ngenerate = \"zipf\"\n\n[[traces]]\ngenerate = \"zipf\"", "two traces `zipf`"),
    ] {
        let error = Study::parse(text, folder.path()).unwrap_err();
        assert!(error.what.contains(said) && error.line == line, "{text}: {error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn a_value_that_fits_some_points_is_no_mistake() {
    // Blocks of 7 pages are invalid for a part that has a mode of one bit per cell, and valid for a part without one.
    let text = "[[grids]]\nscheme = \"wlaftl\"\nset.\"slow.pages_per_block\" = 7\nset.\"slow.chip\" = ";
    assert_eq!(parse(&format!("{text}[\"chang-mlc\", \"chang-slc\"]")).unwrap().points.len(), 2);
    let error = parse(&format!("{text}\"chang-mlc\"")).unwrap_err();
    assert!(error.line == 3 && error.what.contains("7 pages"), "{error}");
}

#[test]
fn json_is_read_as_a_study_file_is() {
    let text = "traces = [{ limit = 300 }]\n[[grids]]\nscheme = \"pagemap\"\nset.\"slow.spare\" = [\"10%\", 12]";
    let json = r#"{"grids": [{"scheme": "pagemap", "set": {"slow.spare": ["10%", 12]}}], "traces": [{"limit": 300}]}"#;
    let points = |study: Study| study.points.into_iter().map(|planned| planned.point).collect::<Vec<_>>();
    let folder = Path::new(".");
    assert_eq!(points(Study::from_json(json, folder).unwrap()), points(Study::parse(text, folder).unwrap()));
    let wrong = |json| Study::from_json(json, folder).unwrap_err();
    assert_eq!(wrong(r#"{"title": 3}"#), "`title = 3`: invalid type: integer `3`, expected a string");
    assert!(wrong(r#"{"grids": [{"scheme": "nosuch"}]}"#).starts_with("`scheme = \"nosuch\"`: "));
}
