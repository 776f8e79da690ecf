//! Results of `compare` and `replay`: the contract of the JSON, determinism, sums.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod table;

use common::Bench;
use serde_json::Value;

const RESPONSES: [&str; 6] = ["mean", "p50", "p95", "p99", "p999", "max"];

/// The values of an array.
fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "no `{key}` in {value}");
    }
}

fn no_floats_but_finite(value: &Value) {
    match value {
        Value::Number(number) => assert!(number.as_f64().unwrap().is_finite()),
        Value::Array(items) => items.iter().for_each(no_floats_but_finite),
        Value::Object(fields) => fields.values().for_each(no_floats_but_finite),
        _ => {}
    }
}

fn without_speed(mut value: Value) -> Value {
    for result in value["results"].as_array_mut().unwrap() {
        assert!(result.as_object_mut().unwrap().remove("speed").is_some());
    }
    value
}

#[test]
fn json_has_every_key_of_the_contract() {
    let bench = Bench::new();
    let trace = bench.small_trace(3000);
    let compared = bench.json(&["compare", &trace]);
    has_keys(&compared, &["bimetal", "trace", "results", "warnings"]);
    let facts = ["name", "format", "requests", "reads", "writes", "trims", "read_bytes", "write_bytes"];
    has_keys(&compared["trace"], &facts);
    has_keys(&compared["trace"], &["footprint_bytes", "duration_s"]);
    let listed = bench.json(&["list", "schemes"]);
    let names: Vec<&Value> = items(&listed).iter().map(|scheme| &scheme["name"]).collect();
    let run: Vec<&Value> = items(&compared["results"]).iter().map(|result| &result["scheme"]).collect();
    assert_eq!(run, names, "the whole registry, in its order");
    for result in items(&compared["results"]) {
        has_keys(result, &["device", "write_amplification", "energy_j", "cost_usd", "lifetime_host_bytes"]);
        has_keys(result, &["lifetime_years", "lifetime_overwrites", "metrics", "arrivals", "backlog_s"]);
        // The trace has times: responses are at these times, and service times are added.
        assert_eq!(result["arrivals"], "trace");
        let service = ["service_us", "service_read_us", "service_write_us"];
        for responses in ["response_us", "read_us", "write_us"].into_iter().chain(service) {
            has_keys(&result[responses], &RESPONSES);
        }
        has_keys(&result["speed"], &["wall_s", "requests_per_s", "page_ops_per_s"]);
        for row in items(&result["ops"]) {
            has_keys(row, &["region", "op", "cause", "count", "bytes", "time_us"]);
        }
        for row in items(&result["wear"]) {
            has_keys(row, &["region", "blocks", "erases_total", "erases_mean", "erases_max", "erases_stddev"]);
            has_keys(row, &["endurance", "used"]);
        }
    }
    no_floats_but_finite(&compared);
}

#[test]
fn nothing_but_speed_differs_between_runs_and_threads() {
    let bench = Bench::new();
    let trace = bench.small_trace(5000);
    let run = |jobs: &str, arrivals: &str| {
        let asked = ["--arrivals", arrivals];
        let options = ["compare", &trace, "--jobs", jobs, "--repeat", "2"];
        without_speed(bench.json(&[&options[..], if arrivals == "both" { &[] } else { &asked[..] }].concat()))
    };
    for arrivals in ["closed:1", "closed:8", "trace:0.5", "both"] {
        let once = run("1", arrivals);
        assert_eq!(once, run("1", arrivals));
        assert_eq!(once, run("2", arrivals));
        assert_eq!(once["replay"]["arrivals"], if arrivals == "both" { "trace" } else { arrivals });
        for result in items(&once["results"]) {
            assert_eq!(result["service_us"].is_null(), !["closed:1", "both"].contains(&arrivals), "{arrivals}");
        }
    }
}

#[test]
fn operations_account_for_the_host_and_for_all_time() {
    let bench = Bench::new();
    let trace = bench.small_trace(5000);
    let compared = bench.json(&["compare", &trace, "--repeat", "3", "--arrivals", "closed"]);
    for result in items(&compared["results"]) {
        let ops = items(&result["ops"]);
        let time_us: f64 = ops.iter().map(|row| row["time_us"].as_f64().unwrap()).sum();
        let (simulated_s, responses) = (result["simulated_s"].as_f64().unwrap(), &result["response_us"]);
        // One die for each region at depth 1: never more than one of them at a time, unless regions overlap.
        assert!(time_us * 1e-6 >= simulated_s * 0.999, "{}: {time_us} {simulated_s}", result["scheme"]);
        let total = responses["mean"].as_f64().unwrap() * responses["count"].as_f64().unwrap();
        assert!((total * 1e-6 / simulated_s - 1.0).abs() < 1e-6, "{}", result["scheme"]);
        let erases = |rows: &[Value], key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
        let erased: Vec<Value> = ops.iter().filter(|row| row["op"] == "erase").cloned().collect();
        assert_eq!(erases(&erased, "count"), erases(items(&result["wear"]), "erases_total"), "{}", result["scheme"]);
        let programmed = ops.iter().filter(|row| row["op"] == "program").map(|row| row["bytes"].as_f64().unwrap());
        let written = compared["trace"]["write_bytes"].as_f64().unwrap() * 3.0;
        let ratio = programmed.sum::<f64>() / written;
        assert!((ratio / result["write_amplification"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{}", result["scheme"]);
    }
}

#[test]
fn devices_of_two_regions_say_how_evenly_they_wear() {
    let bench = Bench::new();
    let trace = bench.small_trace(20_000);
    let compared = bench.json(&["compare", &trace, "--schemes", "wlaftl,chang,pagemap", "--repeat", "5"]);
    for result in items(&compared["results"]) {
        let wear = |key: &str| items(&result["wear"]).iter().map(|row| row[key].as_f64().unwrap()).collect::<Vec<_>>();
        let [[fast, slow], [fast_used, slow_used]] = match (wear("erases_mean").as_slice(), wear("used").as_slice()) {
            (&[fast, slow], &[fast_used, slow_used]) => [[fast, slow], [fast_used, slow_used]],
            _ => {
                assert!(result["phi"].is_null() && result["block_wearing"].is_null(), "{}", result["scheme"]);
                continue;
            }
        };
        let close = |key: &str, expected: f64| (result[key].as_f64().unwrap() / expected - 1.0).abs() < 1e-9;
        assert!(close("block_wearing", fast / slow), "{}", result["scheme"]);
        assert!(close("phi", fast_used.max(slow_used) / fast_used.min(slow_used)), "{}", result["scheme"]);
        if result["scheme"] == "wlaftl" {
            assert!(close("phi", result["metrics"]["phi"].as_f64().unwrap()), "the scheme's own count is equal");
        }
    }
}

#[test]
fn seeds_show_how_the_mean_response_spreads() {
    let bench = Bench::new();
    let trace = bench.small_trace(2000);
    let faults = ["--set", "slow.program_fail_ppm=20000", "--set", "slow.replacement_blocks=100000"];
    let compare = |seeds: &[&str], settings: &[&str]| -> (String, Value) {
        let json = ["--json", "out.json"];
        let all = [&["compare", &trace, "--schemes", "pagemap,hyssd"], seeds, settings, &json[..]].concat();
        let stdout = bench.succeed(&all).stdout;
        (stdout, serde_json::from_slice(&std::fs::read(bench.path("out.json")).unwrap()).unwrap())
    };
    let (plain, without) = compare(&[], &faults);
    assert!(without["results"][0].get("spread").is_none() && !plain.contains('±'));
    let (shown, with) = compare(&["--seeds", "3"], &faults);
    assert!(shown.contains('±') && shown.contains("3 seeds from 1 on"), "{shown}");
    let means: Vec<f64> = ["1", "2", "3"]
        .iter()
        .map(|seed| compare(&["--seed", seed], &faults).1["results"][0]["response_us"]["mean"].as_f64().unwrap())
        .collect();
    let spread = &with["results"][0]["spread"];
    assert_eq!(spread["seeds"], 3);
    assert_eq!(spread["min_us"].as_f64().unwrap(), means.iter().copied().fold(f64::INFINITY, f64::min));
    assert_eq!(spread["max_us"].as_f64().unwrap(), means.iter().copied().fold(0.0, f64::max));
    assert!(spread["max_us"].as_f64() > spread["min_us"].as_f64());
    // The speed-up is that of the means over all seeds. All other figures are the same as without seeds.
    let [mean, second] = [0, 1].map(|at| with["results"][at]["spread"]["mean_us"].as_f64().unwrap());
    assert!((mean - means.iter().sum::<f64>() / 3.0).abs() < 1e-9 * mean);
    let speedup = |results: &mut Value| results["results"][1]["relative"]["response_speedup"].take().as_f64().unwrap();
    let (mut same, mut without) = (with.clone(), without);
    assert!((speedup(&mut same) - mean / second).abs() < 1e-9);
    assert!((speedup(&mut without) - mean / second).abs() > 1e-3);
    same["results"].as_array_mut().unwrap().iter_mut().for_each(|result| {
        result.as_object_mut().unwrap().remove("spread");
    });
    assert_eq!(without_speed(same), without_speed(without));
    let (unmoved, _) = compare(&["--seeds", "2"], &[]);
    assert!(!unmoved.contains('±') && unmoved.contains("2 seeds from 1 on give the same mean responses"), "{unmoved}");
    for wrong in ["1", "101", "-1", "many"] {
        bench.fail(&["compare", &trace, "--seeds", wrong], 2, &["--seeds", wrong]);
    }
    bench.fail(&["compare", &trace, "--sort", "price"], 2, &["price", "response"]);
}

#[test]
fn settings_seeds_and_devices_reach_the_simulation() {
    let bench = Bench::new();
    let trace = bench.small_trace(4000);
    let mean = |arguments: &[&str]| {
        let all: Vec<&str> = ["compare", &trace, "--device", "bare-dies", "--schemes", "pagemap"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        bench.json(&all)["results"][0]["response_us"]["mean"].as_f64().unwrap()
    };
    let usual = mean(&[]);
    assert!(mean(&["--set", "slow.spare=100%"]) < usual);
    assert!(mean(&["--set", "slow.program_us=1600"]) > usual);
    assert!(mean(&["--fill", "none"]) < usual);
    assert_ne!(mean(&["--set", "gc_free_blocks=3"]), usual);
    let configured = ["--set", "slow.spare=50%", "--seed", "9", "--schemes", "pagemap"];
    let configured = bench.json(&[&["compare", &trace, "--device", "bare-dies"], &configured[..]].concat());
    let device = &configured["results"][0]["device"];
    assert_eq!((&device["seed"], &device["region"][0]["capacity"]), (&9.into(), &"36MiB".into()));
    assert_eq!(device["region"][0]["chip"]["endurance"], 10_000);
    assert_eq!(device["parameters"]["gc_free_blocks"], 1);
}

#[test]
fn controllers_say_what_they_did() {
    let bench = Bench::new();
    let trace = bench.small_trace(2000);
    let compare = ["compare", &trace, "--schemes", "pagemap,chang"];
    let of_today = bench.json(&compare)["results"][0]["controller"].clone();
    assert!(of_today["link_busy_s"].as_f64().unwrap() > 0.0, "{of_today}");
    assert!(of_today["buffer_overwrite_ratio"].as_f64().is_some_and(|ratio| (0.0..1.0).contains(&ratio)));
    let details = bench.succeed(&[&compare[..], &["--details"]].concat()).stdout;
    assert!(details.contains("Controller") && details.contains("buffer overwrite ratio"), "{details}");
    let replayed = bench.succeed(&["replay", &trace, "--scheme", "pagemap"]).stdout;
    assert!(replayed.contains("Figures of the controller"), "{replayed}");
    let of_a_paper = [&compare[..], &["--device", "bare-dies"]].concat();
    assert_eq!(bench.json(&of_a_paper)["results"][0]["controller"], serde_json::json!({}));
}

#[test]
fn the_printed_threshold_rule_changes_what_chang_does() {
    let bench = Bench::new();
    let trace = bench.small_trace(6000);
    let metrics = |rule: &str| {
        let setting = format!("threshold_mode={rule}");
        bench.json(&["replay", &trace, "--scheme", "chang", "--set", &setting])["results"][0]["metrics"].clone()
    };
    assert_ne!(metrics("printed"), metrics("exhaustive"));
}

#[test]
fn only_the_last_passes_are_measured() {
    let bench = Bench::new();
    let trace = bench.small_trace(1000);
    let count = |measure: &[&str]| {
        let all: Vec<&str> =
            ["replay", &trace, "--scheme", "pagemap", "--repeat", "3"].iter().chain(measure).copied().collect();
        bench.json(&all)["results"][0]["response_us"]["count"].as_u64().unwrap()
    };
    assert_eq!((count(&[]), count(&["--measure", "1"])), (3000, 1000));
    let limited = bench.json(&["replay", &trace, "--scheme", "pagemap", "--limit", "10", "--intervals", "5"]);
    assert_eq!(limited["trace"]["requests"], 10);
    assert_eq!(items(&limited["results"][0]["intervals"]).len(), 5);
}

#[test]
fn the_last_interval_has_the_queued_writes_of_a_disk() {
    let bench = Bench::new();
    bench.succeed(&["generate", "uniform", "u.bimetal", "--set", "requests=5000", "--set", "span=64MiB"]);
    let replayed = bench.json(&["replay", "u.bimetal", "--scheme", "opfcl", "--intervals", "4"]);
    let result = &replayed["results"][0];
    let count = |value: &Value| value.as_u64().unwrap();
    let is_write = |op: &&Value| op["region"] == "disk" && op["op"] == "write";
    let all: u64 = items(&result["ops"]).iter().filter(is_write).map(|op| count(&op["count"])).sum();
    let by_interval: u64 =
        items(&result["intervals"]).iter().map(|interval| count(&interval["disks"][0]["write"])).sum();
    assert!(all > 0 && by_interval == all, "{by_interval} {all}");
}

#[test]
fn idle_collection_is_background_work() {
    let bench = Bench::new();
    // Forty writes within 80 ms, then three idle seconds, with little spare area.
    let mut text = String::new();
    let mut random = 1u64;
    for write in 0..8000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let time = (write / 40) as f64 * 3.0 + (write % 40) as f64 * 0.002;
        text.push_str(&format!("0,{},4096,w,{time:.3}\n", (random >> 33) % 8192 * 8));
    }
    bench.file("bursts.spc", text);
    let run = |idle: &str, free: &str| {
        let (idle, free) = (format!("idle_gc={idle}"), format!("gc_free_blocks={free}"));
        let settings = ["--arrivals", "trace", "--set", &idle, "--set", &free];
        let all: Vec<&str> = ["compare", "bursts.spc", "--device", "bare-dies", "--schemes", "pagemap"]
            .iter()
            .chain(&settings)
            .copied()
            .collect();
        bench.json(&all)["results"][0].clone()
    };
    let gc_erases = |result: &Value| result["metrics"]["gc_blocks"].as_f64().unwrap();
    let longest = |result: &Value| result["write_us"]["max"].as_f64().unwrap();
    let amplification = |result: &Value| result["write_amplification"].as_f64().unwrap();
    for free in ["1", "4"] {
        let (foreground, background) = (run("false", free), run("true", free));
        assert!(gc_erases(&foreground) > 0.0 && gc_erases(&background) >= gc_erases(&foreground));
        assert!(longest(&background) <= longest(&foreground));
        assert!(background["regions"][0]["busy"].as_f64().unwrap() <= 1.0);
        // It does not rewrite the whole device only to collect the last invalid pages.
        assert!(amplification(&background) < 2.0 * amplification(&foreground), "{}", amplification(&background));
        if free == "1" {
            assert!(longest(&background) < longest(&foreground) / 5.0, "{}", longest(&background));
        }
    }
}

#[test]
fn addresses_move_only_where_they_must() {
    let bench = Bench::new();
    bench.file("far.spc", "0,0,512,w,0.0\n0,100000000,4096,r,0.5\n");
    let trace = bench.small_trace(100);
    let compacted = |arguments: &[&str]| {
        let all: Vec<&str> =
            ["compare", "--schemes", "pagemap", "--fill", "none"].iter().chain(arguments).copied().collect();
        bench.json(&all)["addresses"].clone()
    };
    let far = compacted(&["far.spc", "--device", "chang-c3"]);
    assert_eq!(
        (&far["compacted"], &far["touched_extents"], &far["replayed_span_bytes"]),
        (&true.into(), &2.into(), &(128 << 10).into())
    );
    assert_eq!(compacted(&[&trace, "--device", "chang-c3"])["compacted"], false);
    assert_eq!(compacted(&["far.spc"])["compacted"], true);
}

#[test]
fn every_preset_runs() {
    let bench = Bench::new();
    let trace = bench.small_trace(20);
    for device in items(&bench.json(&["list", "devices"])) {
        let name = device["name"].as_str().unwrap();
        // Real drives have terabytes: they are scaled to the trace.
        let is_drive = !device["device"]["controller"].is_null();
        let fit: &[&str] = if is_drive { &["--set", "fit_to_trace=true"] } else { &[] };
        // Some devices are for any scheme.
        let own = device["device"]["scheme"].as_str();
        let scheme: &[&str] = if own.is_none() { &["--scheme", "pagemap"] } else { &[] };
        let words = ["replay", &trace, "--device", name, "--fill", "none"];
        let result = &bench.json(&[&words, fit, scheme].concat())["results"][0];
        assert_eq!(result["device"]["name"], name);
        assert_eq!(result["scheme"], own.unwrap_or("pagemap"));
    }
}

#[test]
fn tiny_traces_get_a_device_of_every_scheme() {
    let bench = Bench::new();
    bench.file("one.spc", "0,0,512,w,0.0\n");
    bench.file("far.spc", "0,0,512,w,0.0\n3,4000000000,4096,r,0.5\n");
    for trace in ["one.spc", "far.spc"] {
        let compared = bench.json(&["compare", trace]);
        assert_eq!(compared["warnings"], Value::Array(Vec::new()), "no scheme is left out");
        assert_eq!(compared["results"][0]["device"]["logical"], "128MiB");
        let bare = bench.json(&["compare", trace, "--device", "bare-dies"]);
        assert_eq!(bare["warnings"], Value::Array(Vec::new()), "no scheme is left out");
        assert_eq!(bare["results"][0]["device"]["logical"], "4MiB");
    }
}

#[test]
fn results_are_exported_in_formats_of_other_programs() {
    let bench = Bench::new();
    let trace = bench.small_trace(3000);
    let arguments =
        ["compare", &trace, "--schemes", "pagemap,hyssd", "--export", "fio=fio.json", "--export", "iob=log.csv"];
    let compared = bench.json(&arguments);
    let fio: Value = serde_json::from_slice(&std::fs::read(bench.path("fio.json")).unwrap()).unwrap();
    for (job, result) in items(&fio["jobs"]).iter().zip(items(&compared["results"])) {
        assert_eq!(job["jobname"], result["scheme"]);
        let p99_us = job["write"]["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap() / 1e3;
        assert_eq!(p99_us, result["write_us"]["p99"].as_f64().unwrap());
    }
    let log = std::fs::read_to_string(bench.path("log.csv")).unwrap();
    assert_eq!(log.lines().count(), 1 + 2 * 60, "a line for each interval of each scheme");
    assert!(log.starts_with("stat,type,prefix,hash,time,"));
    for (wrong, hint) in [("fio", "FORMAT=FILE"), ("xml=a", "fio, iob"), ("fio=-", "fio=results.json")] {
        let ran = bench.run(&["compare", &trace, "--export", wrong]);
        assert!(ran.status == 2 && ran.stderr.contains(hint), "{}", ran.stderr);
    }
    let ran = bench.run(&["replay", &trace, "--scheme", "pagemap", "--export", "fio=none/fio.json"]);
    assert!(ran.status == 1 && ran.stderr.contains("none/fio.json"), "{}", ran.stderr);
}
