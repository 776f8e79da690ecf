//! `bimetal serve --fuse`: the file exists while the server runs, synced data survive it, and no data are hidden by the
//! mount.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::Bench;
use common::machine::{can_mount, has};
use common::schema::holds;
use common::served::{READ, Served, WRITE, answered, client, request};

const BYTES: u64 = 16 << 20;

/// A bench with a store, if this machine can mount files. Remaining mounts are removed.
struct Mounts(Bench);

impl Mounts {
    fn new() -> Option<Self> {
        let bench = Bench::new();
        bench.succeed(&["create", "s", "--scheme", "pagemap", "--capacity", "16MiB", "--sparse"]);
        can_mount().then_some(Self(bench))
    }

    fn open(&self, write: bool) -> std::io::Result<File> {
        OpenOptions::new().read(true).write(write).open(self.0.path("disk"))
    }

    fn unmount(&self) -> bool {
        Command::new("umount").arg(self.0.path("disk")).status().unwrap().success()
    }

    fn is_mounted(&self) -> bool {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.contains(self.0.path("disk").to_str().unwrap())
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        let umount = || Command::new("umount").arg("-l").arg(self.0.path("disk")).status();
        while self.is_mounted() && umount().is_ok_and(|status| status.success()) {}
    }
}

fn read(file: &File, offset: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    file.read_exact_at(&mut data, offset).unwrap();
    data
}

#[test]
fn the_file_and_nbd_show_the_same_device() {
    let Some(mounts) = Mounts::new() else { return };
    let mut served = Served::of(&mounts.0, "--fuse disk");
    let mut nbd = client(&served.socket()).unwrap();
    let file = mounts.open(true).unwrap();
    assert_eq!(file.metadata().unwrap().len(), BYTES);
    file.write_all_at(b"by file", 4090).unwrap();
    assert_eq!(read(&file, 4090, 7), b"by file");
    assert!(answered(&mut nbd, &[&request(WRITE, 4096, 512)[..], &[9; 512]].concat(), 0));
    assert_eq!(read(&file, 4090, 8), [b'b', b'y', b' ', b'f', b'i', b'l', 9, 9]);
    file.write_all_at(&[8; 512], 4096).unwrap();
    std::io::Write::write_all(&mut nbd, &request(READ, 4096, 512)).unwrap();
    let mut reply = [0; 16 + 512];
    nbd.read_exact(&mut reply).unwrap();
    assert_eq!(reply[16..], [8; 512]);
    drop(file);
    let (status, took) = served.stop("TERM");
    assert!(status.success() && took < Duration::from_secs(2), "{status} {took:?}");
    assert!(!mounts.is_mounted() && !mounts.0.path("disk").exists(), "nothing is left");
    let told = served.errors();
    assert!(told.contains("the device is the file /") && !told.contains("WARN"), "{told}");
    assert_eq!(mounts.0.json(&["stat", "s"])["smart"]["unsafe_shutdowns"], 0);
    let ran = mounts.0.succeed(&["serve", "s", "--fuse", "disk", "--run", "head -c 4092 \"$fuse\" | tail -c 2"]);
    assert_eq!(ran.stdout, "by");
}

#[test]
fn what_was_synced_survives_a_kill() {
    let Some(mounts) = Mounts::new() else { return };
    let mut served = Served::of(&mounts.0, "--fuse disk");
    let file = mounts.open(true).unwrap();
    file.write_all_at(&[5; 100_000], 12_345).unwrap();
    file.sync_data().unwrap();
    served.stop("KILL");
    assert_eq!(file.write_at(&[6; 512], 0).unwrap_err().kind(), ErrorKind::NotConnected);
    drop(file);
    mounts.0.fail(&["serve", "s", "--fuse", "disk"], 1, &["`--fuse`: disk: ", "was killed", "run `umount disk`"]);
    assert_eq!(mounts.0.json(&["stat", "s"])["smart"]["power_cycles"], 1, "refused before the store was touched");
    assert!(mounts.unmount());
    let _served = Served::of(&mounts.0, "--fuse disk");
    let file = mounts.open(false).unwrap();
    assert!(read(&file, 12_345, 100_000) == [5; 100_000]);
}

#[test]
fn who_keeps_it_open_does_not_keep_it_from_stopping() {
    let Some(mounts) = Mounts::new() else { return };
    let mut served = Served::of(&mounts.0, "--fuse disk");
    let file = mounts.open(true).unwrap();
    file.write_all_at(&[5; 512], 0).unwrap();
    let (status, took) = served.stop("TERM");
    assert!(status.success() && took < Duration::from_secs(5), "{status} {took:?}");
    assert!(!mounts.is_mounted() && !mounts.0.path("disk").exists());
    assert!(file.write_at(&[6; 512], 0).is_err());
    let told = served.errors();
    assert!(told.contains("a client keeps the file open"), "{told}");
    assert_eq!(mounts.0.json(&["stat", "s"])["smart"]["unsafe_shutdowns"], 0);
    drop(file);
    mounts.0.succeed(&["serve", "s", "--fuse", "disk", "--run", "test $(head -c 1 disk) = \"$(printf '\\005')\""]);
}

#[test]
fn nbd_goes_on_when_the_file_is_unmounted() {
    let Some(mounts) = Mounts::new() else { return };
    let mut served = Served::start(&mounts.0, "exec bimetal serve s --fuse disk --log info 2>log");
    assert!(mounts.unmount());
    let told = || std::fs::read_to_string(mounts.0.path("log")).unwrap();
    let start = Instant::now();
    while !told().contains("serving over NBD goes on") {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", told());
        thread::sleep(Duration::from_millis(1));
    }
    let mut nbd = client(&served.socket()).unwrap();
    assert!(answered(&mut nbd, &request(READ, 0, 512), 512));
    assert!(served.stop("TERM").0.success());
    assert!(told().contains("mounted file=/") && !told().contains("WARN"), "{}", told());
}

#[test]
fn a_device_that_is_not_written_to_is_a_file_that_is_not() {
    let Some(mounts) = Mounts::new() else { return };
    mounts.0.file("disk", "");
    let mut served = Served::of(&mounts.0, "--fuse disk --read-only");
    assert_eq!(mounts.open(true).unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    assert_eq!(read(&mounts.open(false).unwrap(), BYTES - 10, 10), [0; 10]);
    assert!(served.stop("TERM").0.success());
    assert_eq!(mounts.0.path("disk").metadata().unwrap().len(), 0, "an empty file stays");
}

#[test]
fn nothing_is_hidden() {
    let bench = Bench::new();
    bench.succeed(&["create", "s", "--scheme", "pagemap", "--capacity", "16MiB", "--sparse"]);
    bench.file("full", "data");
    let refused = |file: &str, expected: &[&str]| {
        let expected = [&["`--fuse`: ", file], expected].concat();
        bench.fail(&["serve", "s", "--fuse", file], 1, &expected);
    };
    refused("full", &["it holds 4 bytes", "name an empty file"]);
    refused("s", &["it is a directory", "name a file"]);
    refused("/dev/null", &["it is no regular file"]);
    assert_eq!(bench.json(&["stat", "s"])["smart"]["power_cycles"], 0);
}

#[test]
fn a_file_that_is_mounted_is_refused() {
    let Some(mounts) = Mounts::new() else { return };
    let _served = Served::of(&mounts.0, "--fuse disk");
    mounts.0.succeed(&["create", "t", "--scheme", "pagemap", "--capacity", "16MiB", "--sparse"]);
    let expected = ["disk: something is mounted there already", "run `umount disk`"];
    mounts.0.fail(&["serve", "t", "--fuse", "disk"], 1, &expected);
}

/// A very short run of the benchmark with nbdfuse: it has figures of both, and nothing stays mounted.
#[test]
fn the_benchmark_runs() {
    let Some(mounts) = Mounts::new().filter(|_| has(&["nbdfuse", "fio", "taskset"])) else { return };
    let bench = &mounts.0;
    let short = ["--size", "4MiB", "--rounds", "1", "--seconds", "0.05", "--dir", "."];
    let rows = bench.json(&[&["bench", "fuse"], &short[..]].concat());
    holds(bench, "bench", &rows);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 10);
    for row in rows {
        assert_eq!(row["other_program"], "nbdfuse");
        let (ours, theirs) = (row["bimetal"][0].as_f64().unwrap(), row["other"][0].as_f64().unwrap());
        assert!(ours > 0.0 && (row["ratio"].as_f64().unwrap() / (ours / theirs) - 1.0).abs() < 1e-9, "{row}");
    }
    let left = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!left.contains(bench.path("").to_str().unwrap()), "{left}");
    bench.fail(&["bench", "fuse", "--scheme", "none"], 2, &["there is no scheme `none`"]);
}
