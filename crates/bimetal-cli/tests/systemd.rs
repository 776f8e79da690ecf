//! `bimetal serve` under systemd: notifications, socket activation, and the units of `contrib`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::Bench;
use common::machine::has_checker;
use common::served::{READ, Served, answered, client, request};

fn store(bench: &Bench) {
    bench.succeed(&["create", "s", "--scheme", "pagemap", "--capacity", "16MiB", "--sparse"]);
}

/// A socket in the role of systemd.
fn listens(bench: &Bench, name: &str) -> UnixDatagram {
    let socket = UnixDatagram::bind(bench.path(name)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// Reads messages until one contains this line.
fn hears(socket: &UnixDatagram, line: &str) -> String {
    let mut message = [0; 4096];
    loop {
        let bytes = socket.recv(&mut message).unwrap_or_else(|error| panic!("no `{line}`: {error}"));
        let text = String::from_utf8_lossy(&message[..bytes]);
        if text.lines().any(|found| found == line) {
            return text.into_owned();
        }
    }
}

#[test]
fn systemd_hears_when_clients_are_served_and_when_no_more() {
    let bench = Bench::new();
    store(&bench);
    let systemd = listens(&bench, "notify");
    let mut served = Served::start(&bench, "NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=20000 exec bimetal serve s");
    let ready = hears(&systemd, "READY=1");
    assert!(ready.contains("STATUS=Serving 0 clients"), "{ready}");
    hears(&systemd, "WATCHDOG=1");
    hears(&systemd, "WATCHDOG=1");
    assert!(served.stop("TERM").0.success());
    hears(&systemd, "STOPPING=1");
    // The watchdog of another process is ignored, and the command of `--run` does not inherit the variables.
    let systemd = listens(&bench, "other");
    let script = "export NOTIFY_SOCKET=$PWD/other WATCHDOG_USEC=20000 WATCHDOG_PID=1 LISTEN_FDS_FIRST_FD=7 \
                  LISTEN_FDNAMES=a; exec bimetal serve s --run 'env >told'";
    let ran = run(&bench, script, Stdio::null());
    assert!(ran.status.success(), "{ran:?}");
    let told = fs::read_to_string(bench.path("told")).unwrap();
    assert!(told.contains("\nuri=") || told.starts_with("uri="), "{told}");
    for variable in ["NOTIFY_SOCKET", "WATCHDOG", "LISTEN_"] {
        assert!(!told.contains(variable), "{variable}: {told}");
    }
    systemd.set_nonblocking(true).unwrap();
    let mut heard = String::new();
    let mut message = [0; 4096];
    while let Ok(bytes) = systemd.recv(&mut message) {
        heard += &String::from_utf8_lossy(&message[..bytes]);
    }
    assert!(heard.contains("READY=1") && heard.contains("STOPPING=1") && !heard.contains("WATCHDOG"), "{heard}");
}

/// A server that gets its standard input as descriptor 3, as systemd passes a socket, with this environment.
fn activated(environment: &str, arguments: &str) -> String {
    format!("exec 3<&0 0</dev/null; export {environment}; exec bimetal serve s {arguments}")
}

fn run(bench: &Bench, script: &str, input: Stdio) -> Output {
    let path = Path::new(env!("CARGO_BIN_EXE_bimetal")).parent().unwrap();
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", script]).env("PATH", path).current_dir(bench.path("")).stdin(input).output().unwrap()
}

#[test]
fn a_socket_of_systemd_is_served_in_place_of_our_own() {
    let bench = Bench::new();
    store(&bench);
    let path = bench.path("passed.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let pass = || Stdio::from(OwnedFd::from(listener.try_clone().unwrap()));
    let script = activated("LISTEN_FDS=1 LISTEN_PID=$$", "--listen unix:other.sock");
    for _ in 0..2 {
        let mut served = Served::with_input(&bench, &script, pass());
        assert_eq!(served.socket(), path);
        assert!(!bench.path("other.sock").exists() && !bench.path("s/nbd.sock").exists());
        let mut reads = client(&path).unwrap();
        assert!(answered(&mut reads, &request(READ, 0, 4096), 4096));
        assert!(served.stop("TERM").0.success());
        assert!(path.exists(), "it is systemd's");
    }
    // The variables are for another process, so the server makes its own socket.
    let script = activated("LISTEN_FDS=1 LISTEN_PID=1", "");
    assert_eq!(Served::with_input(&bench, &script, pass()).socket(), bench.path("s/nbd.sock"));
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("nbd://{}/", tcp.local_addr().unwrap());
    let script = activated("LISTEN_FDS=1 LISTEN_PID=$$", "");
    assert_eq!(Served::with_input(&bench, &script, OwnedFd::from(tcp).into()).uri, uri);
}

#[test]
fn a_socket_that_cannot_be_served_is_refused() {
    let bench = Bench::new();
    store(&bench);
    let refused = |input: Stdio, environment: &str, expected: &[&str]| {
        let ran = run(&bench, &activated(environment, "--run true"), input);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        for part in expected {
            assert!(said.contains(part), "no `{part}` in: {said}");
        }
    };
    let one = "LISTEN_FDS=1 LISTEN_PID=$$";
    let file = fs::File::open("/dev/null").unwrap();
    refused(file.into(), one, &["the socket that was passed is no socket for streams", "pass one"]);
    let datagrams = UnixDatagram::bind(bench.path("datagrams")).unwrap();
    refused(OwnedFd::from(datagrams).into(), one, &["is no socket for streams"]);
    let (connected, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    refused(OwnedFd::from(connected).into(), one, &["does not listen"]);
    let wide = TcpListener::bind("0.0.0.0:0").unwrap();
    refused(OwnedFd::from(wide).into(), one, &["other machines can reach", "`--remote`"]);
    let listener = UnixListener::bind(bench.path("passed.sock")).unwrap();
    refused(OwnedFd::from(listener).into(), "LISTEN_FDS=2 LISTEN_PID=$$", &["2 sockets were passed"]);
    // A list of their numbers would not fit into the memory.
    let many = "LISTEN_FDS=2000000000 LISTEN_PID=$$; ulimit -v 4000000";
    refused(Stdio::null(), many, &["2000000000 sockets were passed", "pass that one only"]);
    refused(Stdio::null(), &many.replace(" LISTEN_PID=$$", ""), &["2000000000 sockets were passed"]);
    assert_eq!(bench.json(&["stat", "s"])["smart"]["power_cycles"], 0, "refused before the store was touched");
}

#[test]
fn the_units_are_what_systemd_takes() {
    if !has_checker("systemd-analyze") {
        return;
    }
    let bench = Bench::new();
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
    for unit in ["bimetal@.service", "bimetal@.socket"] {
        let text = fs::read_to_string(contrib.join(unit)).unwrap();
        // The program must exist.
        bench.file(unit, text.replace("/usr/local/bin/bimetal", env!("CARGO_BIN_EXE_bimetal")));
    }
    let units = ["./bimetal@disk.service", "./bimetal@disk.socket"];
    let verified =
        Command::new("systemd-analyze").arg("verify").args(units).current_dir(bench.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("bimetal@"), "{said}");
}
