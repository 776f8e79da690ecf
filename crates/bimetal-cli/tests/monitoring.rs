//! Monitoring of a served store: its figures for collectors, the dashboard and the alerts that use them, its log.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::Bench;
use common::machine::has_checker;
use common::served::{FLUSH, READ, Served, WRITE, answered, client, request};
use serde_json::Value;

/// Flag of a request that must be durable before its answer.
const FUA: u8 = 1;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name)
}

/// A store that has all figures.
fn served(bench: &Bench) -> Served {
    bench.succeed(&["create", "s", "--scheme", "pslc-static", "--capacity", "16MiB"]);
    Served::of(bench, "--stats unix:figures")
}

/// The figures of a served store, without the head of the answer.
fn figures(bench: &Bench) -> String {
    let mut asks = UnixStream::connect(bench.path("figures")).unwrap();
    asks.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    asks.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The value of a metric with these labels.
fn value(figures: &str, metric: &str) -> f64 {
    let of_line = |line: &str| line.strip_prefix(metric)?.strip_prefix(' ')?.parse().ok();
    figures.lines().find_map(of_line).unwrap_or_else(|| panic!("no `{metric}` in:\n{figures}"))
}

/// The names of metrics, as queries use them.
fn names(figures: &str) -> BTreeSet<&str> {
    let samples = figures.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.split(['{', ' ']).next().unwrap()).collect()
}

/// Writes, reads, trims, zeroes, writes durably and flushes, once each.
fn use_it(client: &mut UnixStream) {
    let write = |flags: u8| {
        let mut request = request(WRITE, 0, 8192);
        request[5] = flags;
        [request, vec![7; 8192]].concat()
    };
    assert!(answered(client, &write(0), 0));
    assert!(answered(client, &write(FUA), 0));
    assert!(answered(client, &request(READ, 0, 4096), 4096));
    assert!(answered(client, &request(TRIM, 4096, 4096), 0));
    assert!(answered(client, &request(WRITE_ZEROES, 65536, 16384), 0));
    assert!(answered(client, &request(FLUSH, 0, 0), 0));
}

#[test]
fn figures_are_of_what_really_happens() {
    let bench = Bench::new();
    let served = served(&bench);
    let unused = figures(&bench);
    let mut first = client(&served.socket()).unwrap();
    use_it(&mut first);
    let used = figures(&bench);
    let expected = [
        ("read", 4096.0),
        ("write", 8192.0),
        ("write_fua", 8192.0),
        ("trim", 4096.0),
        ("zero", 16384.0),
        ("flush", 0.0),
    ];
    for (op, bytes) in expected {
        let of = |figures: &str, name: &str| value(figures, &format!("bimetal_request_{name}{{op=\"{op}\"}}"));
        let bucket = |figures: &str, bound: &str| {
            value(figures, &format!("bimetal_request_duration_seconds_bucket{{le=\"{bound}\",op=\"{op}\"}}"))
        };
        assert_eq!((of(&unused, "duration_seconds_count"), of(&used, "duration_seconds_count")), (0.0, 1.0), "{op}");
        assert_eq!((bucket(&unused, "0.00001"), bucket(&used, "+Inf")), (0.0, 1.0), "{op}");
        assert_eq!((of(&unused, "bytes_total"), of(&used, "bytes_total")), (0.0, bytes), "{op}");
        assert!(of(&used, "duration_seconds_sum") > 0.0 && of(&used, "errors_total") == 0.0, "{op}");
    }
    let connections = |figures: &str| {
        let names = ["", "_accepted_total", "_turned_away_total", "_dropped_total"];
        names.map(|name| value(figures, &format!("bimetal_connections{name}{{}}")))
    };
    assert_eq!((connections(&unused), connections(&used)), ([0.0; 4], [1.0, 1.0, 0.0, 0.0]));
    for name in ["resident_memory", "file_system_free"] {
        assert!(value(&used, &format!("bimetal_{name}_bytes{{}}")) > 1e6);
    }
    // An idle store has every metric of the alerts. Only ratios, quantiles and operations are missing before the first ones.
    let of_nothing =
        ["modelled_response_seconds", "write_amplification_ratios", "operations_total", "media_bytes_total"];
    for name in names(&used).difference(&names(&unused)) {
        assert!(of_nothing.iter().any(|known| name.strip_prefix("bimetal_") == Some(known)), "{name} is missing");
    }
    assert_eq!(value(&unused, "bimetal_spare_ratios{}"), 1.0);
    drop(first);
    let start = Instant::now();
    while connections(&figures(&bench)) != [0.0, 1.0, 0.0, 0.0] {
        assert!(start.elapsed() < Duration::from_secs(20), "a disconnected client is counted");
    }
}

#[test]
fn requests_that_the_protocol_forbids_are_counted_apart_from_errors_of_the_device() {
    let bench = Bench::new();
    let served = served(&bench);
    let mut client = client(&served.socket()).unwrap();
    let invalid = 22_u32.to_be_bytes();
    for request in [
        request(READ, 0, 100),
        request(READ, 16 << 20, 4096),
        // Its data arrive before it is answered.
        [request(WRITE, 0, 100), vec![7; 100]].concat(),
    ] {
        client.write_all(&request).unwrap();
        let mut reply = [0; 16];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(reply[4..8], invalid);
    }
    let figures = figures(&bench);
    assert_eq!(value(&figures, "bimetal_requests_refused_total{}"), 3.0, "{figures}");
    for op in ["read", "write", "write_fua", "trim", "zero", "flush"] {
        assert_eq!(value(&figures, &format!("bimetal_request_errors_total{{op=\"{op}\"}}")), 0.0, "{op}");
    }
}

#[test]
fn clients_without_a_place_and_dropped_ones_are_counted() {
    let bench = Bench::new();
    bench.succeed(&["create", "s", "--scheme", "pagemap", "--capacity", "16MiB"]);
    let served = Served::of(&bench, "--stats unix:figures --connections 1");
    let mut only = client(&served.socket()).unwrap();
    assert!(client(&served.socket()).is_none());
    // An invalid message.
    only.write_all(&[0; 28]).unwrap();
    assert_eq!(only.read(&mut [0; 8]).unwrap_or(0), 0);
    let figures = figures(&bench);
    for (name, count) in [("accepted", 1.0), ("turned_away", 1.0), ("dropped", 1.0)] {
        assert_eq!(value(&figures, &format!("bimetal_connections_{name}_total{{}}")), count, "{name}");
    }
}

/// The names of metrics in a text.
fn mentioned(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("bimetal_")).collect()
}

/// All texts under this key, at any depth.
fn under<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key).and_then(Value::as_str));
            fields.values().for_each(|value| under(value, key, found));
        }
        Value::Array(values) => values.iter().for_each(|value| under(value, key, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_what_there_is() {
    let bench = Bench::new();
    let served = served(&bench);
    use_it(&mut client(&served.socket()).unwrap());
    let figures = figures(&bench);
    let known = names(&figures);
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(contrib("grafana-dashboard.json")).unwrap()).unwrap();
    let mut queries = Vec::new();
    under(&dashboard, "expr", &mut queries);
    under(&dashboard, "query", &mut queries);
    let alerts = fs::read_to_string(contrib("alerts.yml")).unwrap();
    let conditions: Vec<_> = alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert!(queries.len() > 20 && conditions.len() > 5, "{} queries, {} alerts", queries.len(), conditions.len());
    for query in queries.iter().chain(&conditions) {
        let asked = mentioned(query);
        let missing: Vec<_> = asked.difference(&known).collect();
        assert!(missing.is_empty(), "`{query}` asks for {missing:?}");
        let is_general = *query == "prometheus" || *query == r#"up{job="bimetal"} == 0"#;
        assert!(asked.is_empty() == is_general, "`{query}` asks for nothing of a store");
    }
}

#[test]
fn the_alerts_are_rules_for_prometheus() {
    if !has_checker("promtool") {
        return;
    }
    let checked = Command::new("promtool").args(["check", "rules"]).arg(contrib("alerts.yml")).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn the_log_says_as_much_as_is_wanted() {
    let bench = Bench::new();
    bench.succeed(&["create", "s", "--scheme", "pagemap", "--capacity", "16MiB"]);
    let log = |level: &str| {
        let mut served = Served::of(&bench, &format!("--listen tcp:127.0.0.1:0 {level}"));
        let address = served.uri.strip_prefix("nbd://").unwrap().trim_end_matches('/').to_owned();
        let mut client = std::net::TcpStream::connect(address).unwrap();
        let hello = [&3_u32.to_be_bytes()[..], b"IHAVEOPT", &1_u32.to_be_bytes(), &0_u32.to_be_bytes()].concat();
        client.write_all(&hello).unwrap();
        client.read_exact(&mut [0; 28]).unwrap();
        client.write_all(&[&request(WRITE, 0, 4096)[..], &[1; 4096]].concat()).unwrap();
        client.read_exact(&mut [0; 16]).unwrap();
        assert!(served.stop("TERM").0.success());
        served.errors()
    };
    let said = log("--log info");
    let expected = [
        "opened: the store was closed properly",
        "serving address=tcp:127.0.0.1:",
        "connected client=1 from=\"127.0.0.1\"",
        "INFO stopping",
        "dismissed client=1 seconds=",
        "requests=1",
        "checkpoint written checkpoints=1",
        "closed events=",
    ];
    let mut rest = said.as_str();
    for line in expected {
        rest = rest.split_once(line).unwrap_or_else(|| panic!("no `{line}` from here on: {rest}\nof:\n{said}")).1;
    }
    for level in ["", "--log warn", "--log error"] {
        assert!(!log(level).contains("INFO"));
    }
    bench.fail(&["serve", "s", "--log", "loud"], 2, &["--log", "loud"]);
}
