//! `bimetal serve` as a process: allowed clients, limits of resources for clients, and its end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::Bench;
use common::machine::can_mount;
use common::served::{FLUSH, READ, Served, WRITE, answered, client, request};

const LARGE: u32 = 32 << 20;

fn store(bench: &Bench, capacity: &str) {
    bench.succeed(&["create", "s", "--scheme", "pagemap", "--capacity", capacity, "--sparse"]);
}

#[test]
fn other_machines_connect_without_tls_only_if_that_is_said() {
    let bench = Bench::new();
    store(&bench, "16MiB");
    let wide = ["serve", "s", "--listen", "tcp:0.0.0.0:0"];
    let with = |more: &[&'static str]| [&wide[..], more].concat();
    bench.fail(&wide, 2, &["`--listen`", "other machines can reach", "`--remote`"]);
    bench.fail(&with(&["--remote"]), 2, &["nothing would be encrypted", "`--plaintext`"]);
    bench.fail(&with(&["--plaintext"]), 2, &["--remote"]);
    bench.fail(&["serve", "s", "--stats", "tcp:[::]:0"], 2, &["`--stats`", "`--remote`"]);
    bench.fail(&["serve", "s", "--stats", "tcp:[::]:0", "--remote"], 2, &["`--stats`", "`--plaintext`"]);
    // Refused before the store was touched.
    assert_eq!(bench.json(&["stat", "s"])["smart"]["power_cycles"], 0);
    let ran = bench.succeed(&with(&["--remote", "--plaintext", "--run", "true"]));
    assert!(ran.stderr.contains("warning: anyone who reaches `tcp:0.0.0.0:"), "{}", ran.stderr);
    assert!(ran.stderr.contains("can read and write everything"), "{}", ran.stderr);
    let ran = bench.succeed(&with(&["--remote", "--plaintext", "--read-only", "--run", "true"]));
    assert!(ran.stderr.contains("can read everything"), "{}", ran.stderr);
    let stats = ["serve", "s", "--stats", "tcp:0.0.0.0:0", "--remote", "--plaintext", "--run", "true"];
    let ran = bench.succeed(&stats);
    assert!(ran.stderr.contains("can read the figures") && !ran.stderr.contains("everything"), "{}", ran.stderr);
    let ran = bench.succeed(&["serve", "s", "--listen", "tcp:127.0.0.1:0", "--run", "true"]);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    bench.fail(&["serve", "s", "--connections", "200"], 2, &["200 connections need at least 400 MiB"]);
    bench.fail(&["serve", "s", "--memory", "90MiB"], 2, &["--memory", "96MiB"]);
    let (longest, longer) = ("x".repeat(4096), "x".repeat(4097));
    bench.succeed(&["serve", "s", "--export", &longest, "--run", "true"]);
    bench.fail(
        &["serve", "s", "--export", &longer],
        2,
        &["--export", "it has 4097 bytes, and a name has at most 4096"],
    );
}

/// The address of a Unix socket has room for 107 bytes. The relative path of the store is short, but the URI is absolute.
#[test]
fn a_store_at_a_long_path_is_served_and_answers() {
    let bench = Bench::new();
    let deep = bench.path(&"x".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let store = deep.join("s").display().to_string();
    bench.succeed(&["create", &store, "--scheme", "pagemap", "--capacity", "16MiB", "--sparse"]);
    let listen = format!("unix:{store}/own.sock");
    for option in ["--listen", "--stats"] {
        bench.fail(&["serve", &store, option, &listen], 2, &[option, "longer than 107 bytes", "choose a shorter path"]);
    }
    let mut served = Served::start(&bench, &format!("cd {} && exec bimetal serve s", deep.display()));
    let socket = served.socket();
    assert!(!socket.starts_with(&deep), "{}", socket.display());
    let mut client = client(&socket).unwrap();
    assert!(answered(&mut client, &request(READ, 0, 4096), 4096));
    // Otherwise the store would be in use.
    assert_eq!(bench.json(&["stat", &store])["capacity_bytes"], 16 << 20);
    bench.succeed(&["copy", &store, "copied", "--sparse"]);
    assert!(served.stop("TERM").0.success());
    assert!(!socket.exists() && !deep.join("s/stat.sock").exists());
}

#[test]
fn a_disk_that_cannot_be_made_is_refused_at_once() {
    let bench = Bench::new();
    store(&bench, "16MiB");
    bench.fail(&["serve", "s", "--ublk=/dev/ublkb0"], 2, &["--ublk", "a number from 0 to 1048575"]);
    // With the feature, a machine that has the driver would make the disk.
    if cfg!(not(feature = "ublk")) {
        bench.fail(&["serve", "s", "--ublk"], 1, &["`--ublk`", "compile it with `--features ublk`"]);
        bench.fail(&["bench", "ublk"], 1, &["compile it with `--features ublk`"]);
    } else if !Path::new("/dev/ublk-control").exists() {
        bench.fail(&["serve", "s", "--ublk"], 1, &["`--ublk`", "`modprobe ublk_drv`"]);
        bench.fail(&["bench", "ublk"], 1, &["`modprobe ublk_drv`"]);
    }
    bench.fail(&["bench", "ublk", "--scheme", "none"], 2, &["there is no scheme `none`"]);
    assert_eq!(bench.json(&["stat", "s"])["smart"]["power_cycles"], 0, "refused before the store was touched");
}

#[test]
fn sockets_are_for_their_user_whatever_the_umask() {
    for umask in ["0", "0777", "022"] {
        let bench = Bench::new();
        store(&bench, "16MiB");
        let served = Served::start(&bench, &format!("umask {umask}; exec bimetal serve s --stats unix:figures"));
        for socket in ["s/nbd.sock", "s/stat.sock", "figures"] {
            let mode = std::fs::metadata(bench.path(socket)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{socket} under umask {umask}");
        }
        assert!(client(&served.socket()).is_some());
    }
}

/// Clients that do nothing, do not read their replies, or are in the middle of a message, one that requests figures
/// byte by byte, and a command that does not end.
#[test]
fn nobody_keeps_it_from_stopping() {
    let bench = Bench::new();
    store(&bench, "64MiB");
    let mut served =
        Served::of(&bench, "--stats unix:figures --run 'trap \"\" TERM; echo \"$uri\"; sleep 5 & wait; wait'");
    let mut clients: Vec<_> = (0..12).map(|_| client(&served.socket()).unwrap()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        match number % 4 {
            0 => client.write_all(&request(READ, 0, LARGE)).unwrap(),
            1 => client.write_all(&request(WRITE, 0, 8192)).unwrap(),
            2 => client.write_all(&[&request(WRITE, 0, LARGE)[..], &vec![1; 1 << 20]].concat()).unwrap(),
            _ => {}
        }
    }
    let mut asks = UnixStream::connect(bench.path("figures")).unwrap();
    let trickle = thread::spawn(move || {
        while asks.write_all(b"G").is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    thread::sleep(Duration::from_millis(200));
    let (status, took) = served.stop("TERM");
    println!("stopped in {took:?}");
    assert!(status.success() && took < Duration::from_secs(2), "{status} {took:?}");
    trickle.join().unwrap();
    assert_eq!(bench.json(&["stat", "s"])["smart"]["unsafe_shutdowns"], 0);
}

/// The modelled device has minutes of work for a write that the store has completed.
#[test]
fn a_stop_does_not_wait_for_the_modelled_device() {
    let bench = Bench::new();
    store(&bench, "64MiB");
    let mut served = Served::of(&bench, "--pace 1000");
    let mut client = client(&served.socket()).unwrap();
    client.write_all(&[&request(WRITE, 0, 1 << 20)[..], &vec![1; 1 << 20]].concat()).unwrap();
    thread::sleep(Duration::from_millis(500));
    let (status, took) = served.stop("TERM");
    assert!(status.success() && took < Duration::from_secs(2), "{status} {took:?}");
    assert_eq!(bench.json(&["stat", "s"])["smart"]["unsafe_shutdowns"], 0);
}

/// A command is told to stop with the server, which is not a failure.
#[test]
fn the_command_ends_with_the_server() {
    let bench = Bench::new();
    store(&bench, "16MiB");
    let mut served = Served::of(&bench, "--run 'trap \"echo told; exit 7\" TERM; echo \"$uri\"; sleep 60 & wait'");
    let (status, took) = served.stop("TERM");
    assert!(status.success() && took < Duration::from_secs(2), "{status} {took:?}");
    let mut last = String::new();
    served.said.read_line(&mut last).unwrap();
    assert_eq!(last, "told\n");
    let ran = bench.run(&["serve", "s", "--run", "exit 7"]);
    assert!(ran.status == 1 && ran.stderr.contains("exit status: 7"), "{ran:?}");
}

#[test]
fn the_end_of_the_terminal_stops_it_as_it_should_be() {
    let bench = Bench::new();
    store(&bench, "16MiB");
    // Whether or not these tests run under `nohup`.
    let mut served = Served::start(&bench, "exec env --default-signal=HUP bimetal serve s");
    let mut writes = client(&served.socket()).unwrap();
    assert!(answered(&mut writes, &[&request(WRITE, 0, 4096)[..], &[1; 4096]].concat(), 0));
    let (status, _) = served.stop("HUP");
    assert!(status.success(), "{status}: {}", served.errors());
    assert_eq!(bench.json(&["stat", "s"])["smart"]["unsafe_shutdowns"], 0);
    let mut served = Served::start(&bench, "exec nohup bimetal serve s");
    served.signal("HUP");
    thread::sleep(Duration::from_millis(100));
    assert!(client(&served.socket()).is_some() && served.child.try_wait().unwrap().is_none());
    assert!(served.stop("TERM").0.success());
}

/// As `timeout` sends a signal: to its child, and immediately afterwards to the process group.
#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let bench = Bench::new();
    store(&bench, "16MiB");
    for _ in 0..10 {
        let mut served = Served::of(&bench, "");
        let mut writes = client(&served.socket()).unwrap();
        assert!(answered(&mut writes, &[&request(WRITE, 0, 4096)[..], &[1; 4096]].concat(), 0));
        let id = served.child.id();
        let twice =
            Command::new("sh").args(["-c", &format!("kill {id}; kill {id}; true")]).stderr(Stdio::null()).status();
        assert!(twice.unwrap().success());
        assert!(served.child.wait().unwrap().success(), "{}", served.errors());
    }
    assert_eq!(bench.json(&["stat", "s"])["smart"]["unsafe_shutdowns"], 0);
}

/// Monitoring connects and leaves, and clients are killed.
#[test]
fn a_client_that_leaves_is_no_warning() {
    let bench = Bench::new();
    store(&bench, "16MiB");
    let mut served = Served::of(&bench, "");
    for _ in 0..4 {
        drop(UnixStream::connect(served.socket()).unwrap());
        let mut leaves = client(&served.socket()).unwrap();
        leaves.write_all(&request(READ, 0, 8 << 20)).unwrap();
        drop(leaves);
    }
    assert!(answered(&mut client(&served.socket()).unwrap(), &request(READ, 0, 512), 512));
    assert!(served.stop("TERM").0.success());
    let errors = served.errors();
    assert!(!errors.contains("WARN"), "{errors}");
}

#[test]
fn a_slow_reader_of_figures_keeps_nobody_waiting() {
    let bench = Bench::new();
    store(&bench, "16MiB");
    let served = Served::of(&bench, "--stats unix:figures");
    for socket in ["figures", "s/stat.sock"] {
        let slow: Vec<_> = (0..20).map(|_| UnixStream::connect(bench.path(socket)).unwrap()).collect();
        let start = Instant::now();
        bench.json(&["stat", "s"]);
        let mut asks = UnixStream::connect(bench.path("figures")).unwrap();
        asks.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        asks.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("# EOF\n") && start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        drop(slow);
    }
    drop(served);
}

/// With a low limit of open files, and clients that use as many as possible, the store continues.
#[test]
fn clients_do_not_take_the_descriptors_of_the_store() {
    let bench = Bench::new();
    store(&bench, "16MiB");
    let mut served = Served::start(&bench, "ulimit -n 72; exec bimetal serve s --connections 60");
    let mut first = client(&served.socket()).unwrap();
    let others: Vec<_> = (0..60).filter_map(|_| client(&served.socket())).collect();
    assert!((3..40).contains(&others.len()), "{}", others.len());
    let asking: Vec<_> = (0..20).map(|_| UnixStream::connect(bench.path("s/stat.sock")).unwrap()).collect();
    // Enough for commits and checkpoints.
    for round in 0..64_u64 {
        let data = [&request(WRITE, (round % 8) << 20, 1 << 20)[..], &vec![round as u8; 1 << 20]].concat();
        assert!(answered(&mut first, &data, 0) && answered(&mut first, &request(FLUSH, 0, 0), 0), "round {round}");
    }
    assert_eq!(bench.json(&["stat", "s"])["store"]["failure"], serde_json::Value::Null);
    drop((others, asking));
    assert!(served.stop("TERM").0.success());
    let told = served.errors();
    assert!(told.contains("of 60 connections are served") && told.contains("ulimit -n"), "{told}");
    let ran = bench.command(&[]).get_program().to_owned();
    let script = format!("ulimit -n 30; exec {} serve s --run true", ran.display());
    let ran = Command::new("sh").args(["-c", &script]).current_dir(bench.path("")).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("raise the limit (`ulimit -n`)"), "{ran:?}");
}

/// A store in a read-only directory is served read-only, at a socket elsewhere.
#[test]
fn a_store_that_cannot_be_written_is_served_read_only() {
    if !can_mount() {
        return;
    }
    let bench = Bench::new();
    store(&bench, "16MiB");
    let mount = "mkdir ro run && mount -t tmpfs none ro && cp -a s ro/s && mount -o remount,ro ro";
    assert!(Command::new("sh").args(["-c", mount]).current_dir(bench.path("")).status().unwrap().success());
    let script = "XDG_RUNTIME_DIR=$PWD/run exec bimetal serve ro/s --read-only";
    let outcome = std::panic::catch_unwind(|| {
        let mut served = Served::start(&bench, script);
        let socket = served.socket();
        assert!(socket.starts_with(bench.path("run")), "{socket:?}");
        let folder = socket.parent().unwrap();
        assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        let mut reads = client(&socket).unwrap();
        assert!(answered(&mut reads, &request(READ, 0, 4096), 4096));
        assert_eq!(bench.json(&["stat", "ro/s"])["scheme"], "pagemap");
        assert!(served.stop("TERM").0.success());
        assert!(!folder.exists(), "the folder is removed with the server");
        let told = served.errors();
        assert!(told.contains("`bimetal stat` opens the store itself"), "{told}");
    });
    let tidy = Command::new("umount").arg(bench.path("ro")).status().unwrap();
    outcome.unwrap();
    assert!(tidy.success());
}

/// Peak memory of a process, in bytes.
fn peak_bytes(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// 31 clients request the longest replies and read nothing; one that reads gets its replies.
#[test]
fn unread_replies_have_a_bound_over_all_clients() {
    let bench = Bench::new();
    store(&bench, "64MiB");
    let served = Served::of(&bench, "--memory 128MiB");
    let mut reads = client(&served.socket()).unwrap();
    let before = peak_bytes(&served.child);
    let greedy: Vec<_> = (0..31)
        .map(|_| {
            let mut greedy = client(&served.socket()).unwrap();
            greedy.write_all(&request(READ, 0, LARGE)).unwrap();
            greedy
        })
        .collect();
    let start = Instant::now();
    assert!(answered(&mut reads, &request(READ, 0, 1 << 20), 1 << 20));
    let small = start.elapsed();
    // Some of the others disconnect, so that the test need not wait until all are dropped.
    drop(greedy.into_iter().skip(4).collect::<Vec<_>>());
    assert!(answered(&mut reads, &request(READ, 0, LARGE), LARGE as usize));
    let (large, peak) = (start.elapsed(), peak_bytes(&served.child));
    println!("{} MiB before, at most {} MiB; answers after {small:?} and {large:?}", before >> 20, peak >> 20);
    assert!(small < Duration::from_secs(2) && large < Duration::from_secs(30));
    assert!(peak < before + (128 << 20) + (16 << 20), "{} MiB", peak >> 20);
}
