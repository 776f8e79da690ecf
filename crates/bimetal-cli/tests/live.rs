//! Stores in practice: the commands of the page about serving, with a real file system that survives `kill -9`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::Bench;
use common::machine::{can_mount, has};
use common::schema::holds;

/// Runs a script, and removes its remaining mounts.
fn run(bench: &Bench, script: &str) {
    let binaries = Path::new(env!("CARGO_BIN_EXE_bimetal")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let folder = bench.path("");
    let output =
        Command::new("timeout").args(["120", "sh", "-euc", script]).current_dir(&folder).env("PATH", path).output();
    let output = output.unwrap();
    let tidy = "mountpoint -q fs && umount -l fs; umount -l disk; true";
    Command::new("sh").args(["-c", tidy]).current_dir(&folder).stderr(Stdio::null()).status().unwrap();
    assert!(
        output.status.success(),
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The scripts of the page about serving: those that mount a file system, or the others.
fn scripts(mount: bool) -> Vec<String> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serving.md")).unwrap();
    let blocks = page.split("```bash\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.filter(|script| script.contains("mount ") == mount).collect()
}

#[test]
fn a_file_system_survives_the_lines_of_the_page_about_serving() {
    if !can_mount() {
        return;
    }
    let [short, long] = &scripts(true)[..] else { panic!("two scripts mount a file system") };
    assert!(long.contains("kill -9") && long.contains("cmp data fs/data"));
    run(&Bench::new(), short);
    run(&Bench::new(), long);
}

#[test]
fn the_other_lines_of_the_page_about_serving_run() {
    if !has(&["nbdinfo", "nbdcopy", "qemu-io", "nbdkit", "fio", "taskset", "curl"]) {
        return;
    }
    let bench = Bench::new();
    scripts(false).iter().for_each(|script| run(&bench, script));
}

/// A server that does not outlive its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One server for a store, its figures over both sockets, and the error of a second server.
#[test]
fn a_served_store_says_how_it_is() {
    let bench = Bench::new();
    bench.succeed(&["create", "s", "--scheme", "wlaftl", "--capacity", "16MiB"]);
    let before = bench.json(&["stat", "s"]);
    assert_eq!(before["smart"]["power_cycles"], 0);
    let mut server = Server(
        bench
            .command(&["serve", "s", "--stats", "unix:figures"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let (stat, figures) = (bench.path("s/stat.sock"), bench.path("figures"));
    while !(stat.exists() && figures.exists()) {
        assert!(server.0.try_wait().unwrap().is_none(), "the server has ended");
        std::thread::yield_now();
    }
    let now = bench.json(&["stat", "s"]);
    assert_eq!((&now["scheme"], &now["smart"]["power_cycles"]), (&"wlaftl".into(), &1.into()));
    assert!(bench.succeed(&["stat", "s"]).stdout.contains("write amplification"));
    bench.fail(&["serve", "s"], 1, &["in use by another process"]);
    bench.fail(&["check", "s"], 1, &["in use by another process"]);
    let mut client = UnixStream::connect(&figures).unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"), "{answer}");
    assert!(answer.contains("bimetal_capacity_bytes{} 16777216.0") && answer.ends_with("# EOF\n"), "{answer}");
    Command::new("kill").arg(server.0.id().to_string()).status().unwrap();
    assert!(server.0.wait().unwrap().success());
    assert!(!stat.exists() && !figures.exists(), "sockets are removed with the server");
    assert_eq!(bench.json(&["stat", "s"])["smart"]["unsafe_shutdowns"], 0);
    assert_eq!(bench.json(&["check", "s"])["sound"], true);
    assert!(bench.succeed(&["dump", "s"]).stdout.contains("superblock copy 0"));
}

/// A scheme uses the time of an idle host for background work, until no work is left.
#[test]
fn idle_time_is_used() {
    if !has(&["nbdcopy"]) {
        return;
    }
    let bench = Bench::new();
    bench.succeed(&["create", "s", "--scheme", "pslc-static", "--capacity", "16MiB"]);
    bench.file("image", vec![7; 1 << 20]);
    let script = "nbdcopy image \"$uri\"; until bimetal stat s | grep -q 'folded pages *256$'; do sleep 0.1; done; \
                  sleep 1.2; bimetal stat s --json one; sleep 1.2; bimetal stat s --json two";
    let path = Path::new(env!("CARGO_BIN_EXE_bimetal")).parent().unwrap();
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    let served = bench.command(&["serve", "s", "--run", script]).env("PATH", path).output().unwrap();
    assert!(served.status.success(), "{}", String::from_utf8_lossy(&served.stderr));
    let events = |file| {
        let health: serde_json::Value = serde_json::from_slice(&std::fs::read(bench.path(file)).unwrap()).unwrap();
        health["store"]["events"].as_u64().unwrap()
    };
    assert_eq!(events("one"), events("two"));
}

/// A very short run of the benchmark with nbdkit: it runs, and its figures match their labels.
#[test]
fn the_benchmark_runs() {
    if !has(&["nbdkit", "fio", "taskset"]) {
        return;
    }
    let bench = Bench::new();
    let short = ["--size", "4MiB", "--rounds", "1", "--seconds", "0.05"];
    let rows = bench.json(&[&["bench", "nbd", "--schemes", "pagemap,hyssd"], &short[..]].concat());
    holds(&bench, "bench", &rows);
    let rows = rows.as_array().unwrap();
    let of = |backing: &str| rows.iter().filter(|row| row["backing"] == backing).count();
    assert_eq!((rows.len(), of("memory, no store"), of("hyssd")), (30, 4, 2));
    for row in rows {
        let (ours, theirs) = (row["bimetal"][0].as_f64().unwrap(), row["other"][0].as_f64().unwrap());
        assert!(ours > 0.0 && (row["ratio"].as_f64().unwrap() / (ours / theirs) - 1.0).abs() < 1e-9, "{row}");
        let writes_pages = row["workload"].as_str().unwrap().contains("write") && row["backing"] != "memory, no store";
        assert_eq!(
            row["write_amplification"].as_f64().is_some_and(|amplification| amplification >= 1.0),
            writes_pages,
            "{row}"
        );
    }
    bench.fail(&["bench", "nbd", "--scheme", "none"], 2, &["there is no scheme `none`"]);
    bench.fail(&["bench", "nbd", "--schemes", "pagemap,none"], 2, &["there is no scheme `none`"]);
    bench.fail(&["bench", "nbd", "--dir", "nowhere"], 1, &["directory for the store"]);
}

#[test]
fn what_is_no_store_is_said() {
    let bench = Bench::new();
    bench.fail(&["serve", "nothing"], 1, &["nothing: ", "there is no store", "bimetal create"]);
    bench.fail(&["create", "s"], 2, &["no scheme is given", "--scheme"]);
    bench.fail(&["create", "s", "--scheme", "none"], 2, &["there is no scheme `none`"]);
    bench.fail(&["create", "s", "--scheme", "chang", "--set", "slow.colour=red"], 2, &["slow.colour"]);
    bench.succeed(&["create", "s", "--scheme", "chang", "--capacity", "16MiB"]);
    bench.fail(&["create", "s", "--scheme", "chang", "--capacity", "16MiB"], 1, &["s: ", "there is a store already"]);
    bench.fail(&["serve", "s", "--listen", "tcp:0.0.0.0:0"], 2, &["other machines", "`--remote`"]);
    bench.fail(&["serve", "s", "--listen", "nowhere"], 2, &["unix:PATH"]);
    let ran = bench.run(&["serve", "s", "--run", "exit 3"]);
    assert!(
        ran.status == 1 && ran.stdout.is_empty() && ran.stderr.contains("`--run` ended with exit status: 3"),
        "{ran:?}"
    );
    bench.file("s/superblock", vec![0xff; 200_000]);
    bench.fail(&["serve", "s"], 1, &["s: "]);
}
