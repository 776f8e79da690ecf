//! `bimetal copy`: its messages, refusals, and remaining files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::sync::Arc;

use bimetal_live::store::{CreateOptions, Directory, NewStore, replace};
use common::Bench;
use common::served::{Served, WRITE, answered, client, request};

#[test]
fn a_store_is_copied_to_one_like_it_or_to_another() {
    let bench = Bench::new();
    bench.succeed(&["create", "old", "--scheme", "chang", "--capacity", "16MiB", "--sparse"]);
    let ran = bench.succeed(&["copy", "old", "same", "--sparse"]);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("same: 16.0 MiB of `chang`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("0 B copied"), "{}", ran.stderr);
    let ran = bench.succeed(&["copy", "old", "other", "--scheme", "opfcl", "--capacity", "32MiB", "--sparse"]);
    assert!(ran.stderr.contains("other: 32.0 MiB of `opfcl`"), "{}", ran.stderr);
    let (old, same) = (bench.json(&["stat", "old"]), bench.json(&["stat", "same"]));
    assert_eq!(old["device"]["name"], same["device"]["name"]);
    assert_eq!(bench.json(&["stat", "other"])["capacity_bytes"], 32 << 20);
    assert_eq!(bench.json(&["check", "other"])["sound"], true);
    bench.fail(&["copy", "old", "same"], 1, &["there is a store already", "--force"]);
    bench.fail(&["copy", "old", "less", "--capacity", "8MiB"], 2, &["--capacity 16MiB"]);
    std::os::unix::fs::symlink("old", bench.path("link")).unwrap();
    for new in ["old", "./old", "link"] {
        for forced in [&[][..], &["--force"]] {
            let copy = [&["copy", "old", new], forced].concat();
            bench.fail(&copy, 2, &["old: a store cannot be copied to itself; hint: name another directory"]);
        }
    }
    bench.fail(&["copy", "nothing", "new"], 1, &["nothing: there is no store"]);
    bench.fail(&["copy", "old", "new", "--by-map"], 1, &["no map", "start and stop it"]);
    assert!(!bench.path("less").exists() && !bench.path("new").exists(), "a refused copy leaves no files");
}

#[test]
fn a_store_grows_in_its_place() {
    let bench = Bench::new();
    for scheme in ["chang", "opfcl", "pslc-dynamic"] {
        bench.succeed(&["create", "s", "--scheme", scheme, "--capacity", "16MiB", "--sparse"]);
        let mut served = Served::of(&bench, "");
        let mut write = client(&served.socket()).unwrap();
        let data = [request(WRITE, 8192, 8192), vec![7; 8192]].concat();
        assert!(answered(&mut write, &data, 0));
        bench.fail(&["grow", "s", "--capacity", "40MiB"], 1, &["in use", "bimetal copy"]);
        assert!(served.stop("TERM").0.success());
        let ran = bench.succeed(&["grow", "s", "--capacity", "40MiB"]);
        assert!(ran.stderr.contains("40.0 MiB") && ran.stderr.contains("8.00 KiB copied"), "{}", ran.stderr);
        let (stat, check) = (bench.json(&["stat", "s"]), bench.json(&["check", "s"]));
        assert_eq!((&stat["capacity_bytes"], &stat["data_bytes"]), (&(40 << 20).into(), &8192.into()));
        assert_eq!((&stat["device"]["scheme"], &check["sound"]), (&scheme.into(), &true.into()));
        assert!(!bench.path("s.growing").exists(), "the old files are gone");
        bench.fail(&["grow", "s", "--capacity", "40MiB"], 2, &["40MiB already", "cannot become smaller"]);
        fs::remove_dir_all(bench.path("s")).unwrap();
    }
}

/// Thresholds of request sizes stay, disks hold any capacity, and a link still leads to the store afterwards.
#[test]
fn a_grown_store_has_the_parameters_and_the_place_of_the_old_one() {
    let bench = Bench::new();
    let parameters = |store: &str| bench.json(&["stat", store])["device"]["parameters"].clone();
    bench.succeed(&["create", "c", "--scheme", "comboftl", "--capacity", "64MiB", "--sparse"]);
    let before = parameters("c");
    bench.succeed(&["grow", "c", "--capacity", "80MiB"]);
    assert_eq!(parameters("c"), before);
    bench.succeed(&["create", "o", "--scheme", "opfcl", "--capacity", "512MiB", "--sparse"]);
    bench.succeed(&["grow", "o", "--capacity", "697931776"]);
    assert_eq!(bench.json(&["stat", "o"])["capacity_bytes"], 697_931_776);

    fs::create_dir(bench.path("disk")).unwrap();
    bench.succeed(&["create", "disk/real", "--scheme", "pagemap", "--capacity", "16MiB", "--sparse"]);
    std::os::unix::fs::symlink("disk/real", bench.path("store")).unwrap();
    bench.succeed(&["grow", "store", "--capacity", "24MiB"]);
    assert!(fs::symlink_metadata(bench.path("store")).unwrap().is_symlink());
    assert_eq!(bench.json(&["stat", "disk/real"])["capacity_bytes"], 24 << 20);
    assert_eq!(fs::read_dir(bench.path("disk")).unwrap().count(), 1, "the old files are gone");
}

#[test]
fn a_start_that_fails_leaves_the_store_closed() {
    let bench = Bench::new();
    bench.succeed(&["create", "s", "--scheme", "pagemap", "--capacity", "16MiB", "--sparse"]);
    assert!(Served::of(&bench, "").stop("TERM").0.success());
    bench.fail(&["serve", "s", "--listen", "unix:/nonexistent/socket"], 1, &["/nonexistent/socket"]);
    bench.succeed(&["copy", "s", "new", "--by-map", "--sparse"]);
    assert_eq!(bench.json(&["stat", "s"])["smart"]["unsafe_shutdowns"], 0);
}

#[test]
fn a_store_that_cannot_grow_stays() {
    let bench = Bench::new();
    bench.fail(&["grow", "nothing", "--capacity", "1GiB"], 1, &["nothing: there is no store"]);
    let create = ["create", "s", "--scheme", "pagemap", "--capacity", "16MiB", "--sparse", "--region", "slow=outside"];
    bench.succeed(&create);
    bench.fail(&["grow", "s", "--capacity", "1GiB"], 1, &["outside` is outside the store's directory", "--region"]);
    bench.succeed(&["create", "t", "--scheme", "pagemap", "--capacity", "16MiB", "--sparse"]);
    bench.fail(&["grow", "t", "--capacity", "16777217"], 2, &["--capacity", "a multiple of 512 bytes", "16777728"]);
    // A store that cannot be made leaves no directory: its files do not fit, because it is not sparse.
    bench.succeed(&["create", "full", "--scheme", "pagemap", "--capacity", "16MiB"]);
    bench.fail(&["grow", "full", "--capacity", "4TiB"], 1, &["full.growing", "are free"]);
    assert!(!bench.path("full.growing").exists());
    // Another store in the place of the larger one, other files there, and a link stay.
    let refused = || bench.fail(&["grow", "t", "--capacity", "32MiB"], 1, &["t.growing", "move it elsewhere"]);
    bench.succeed(&["create", "t.growing", "--scheme", "chang", "--capacity", "16MiB", "--sparse"]);
    refused();
    assert_eq!(bench.json(&["stat", "t.growing"])["device"]["scheme"], "chang");
    fs::rename(bench.path("t.growing"), bench.path("other")).unwrap();
    std::os::unix::fs::symlink("other", bench.path("t.growing")).unwrap();
    refused();
    fs::remove_file(bench.path("t.growing")).unwrap();
    fs::create_dir(bench.path("t.growing")).unwrap();
    fs::write(bench.path("t.growing/region0.flash"), "mine").unwrap();
    refused();
    assert_eq!(fs::read_to_string(bench.path("t.growing/region0.flash")).unwrap(), "mine");
    fs::remove_dir_all(bench.path("t.growing")).unwrap();
    // The files of an interrupted growth are replaced, and files that are not part of the store are kept.
    let device = replace::contents(&Directory::new(&bench.path("t"))).unwrap().device;
    let larger = Arc::new(Directory::make(&bench.path("t.growing")).unwrap());
    drop(NewStore::create(larger, &device, &CreateOptions { sparse: true, ..CreateOptions::default() }).unwrap());
    let owner = |name: &str| {
        let found = fs::metadata(bench.path(name)).unwrap();
        (found.uid(), found.gid(), found.mode())
    };
    fs::set_permissions(bench.path("t"), fs::Permissions::from_mode(0o750)).unwrap();
    for name in ["t", "t/superblock"] {
        // Only root can give a file to another user.
        let _ = chown(bench.path(name), Some(65_534), Some(65_534));
    }
    let before = [owner("t"), owner("t/superblock")];
    fs::write(bench.path("t/notes"), "mine").unwrap();
    let ran = bench.succeed(&["grow", "t", "--capacity", "32MiB"]);
    assert!(!ran.stderr.contains("note"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(bench.path("t/notes")).unwrap(), "mine");
    assert!(!bench.path("t.growing").exists(), "the old files are gone");
    assert_eq!(bench.json(&["check", "t"])["sound"], true);
    assert_eq!([owner("t"), owner("t/superblock")], before);
    assert_eq!(owner("t/journal"), before[1]);
}

#[test]
fn a_store_whose_scheme_is_unknown_says_what_to_do() {
    let bench = Bench::new();
    bench.succeed(&["create", "old", "--scheme", "pagemap", "--capacity", "16MiB", "--sparse"]);
    bench.succeed(&["serve", "old", "--run", "true"]);
    let file = fs::OpenOptions::new().read(true).write(true).open(bench.path("old/superblock")).unwrap();
    for copy in [0, 65_536] {
        let mut bytes = vec![0; 65_536];
        file.read_exact_at(&mut bytes, copy).unwrap();
        bytes[64..68].copy_from_slice(&99_u32.to_le_bytes());
        let text = u32::from_le_bytes(bytes[68..72].try_into().unwrap()) as usize;
        let sum = crc32c(&bytes[4..132 + text]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        file.write_all_at(&bytes, copy).unwrap();
    }
    bench.fail(&["serve", "old"], 1, &["version 99 of scheme `pagemap`", "`bimetal copy`"]);
    let ran = bench.succeed(&["copy", "old", "new", "--sparse"]);
    assert!(ran.stderr.contains("note: old is read by its map"), "{}", ran.stderr);
    bench.succeed(&["check", "new"]);
    fs::remove_file(bench.path("old/map")).unwrap();
    bench.fail(&["copy", "old", "newer"], 1, &["version 99", "no file `map`", "--rescue"]);
    bench.succeed(&["check", "old", "--rescue", "image"]);
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 };
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), step))
}

/// A copy of a served store has the data written before it, and not the data written after it.
#[test]
fn a_store_is_copied_while_it_is_served() {
    let bench = Bench::new();
    bench.succeed(&["create", "s", "--scheme", "pslc-static", "--capacity", "16MiB", "--sparse"]);
    let mut served = Served::of(&bench, "");
    let mut client = client(&served.socket()).unwrap();
    let mut write = |offset, byte| {
        let request = [request(WRITE, offset, 8192), vec![byte; 8192]].concat();
        assert!(answered(&mut client, &request, 0));
    };
    write(0, 1);
    let ran = bench.succeed(&["copy", "s", "first", "--sparse"]);
    assert!(ran.stderr.contains("8.00 KiB copied"), "{}", ran.stderr);
    write(4096, 2);
    let ran = bench.succeed(&["copy", "s", "second", "--scheme", "opfcl", "--sparse"]);
    assert!(ran.stderr.contains("12.0 KiB copied"), "{}", ran.stderr);
    bench.fail(&["copy", "s", "first"], 1, &["there is a store already", "--force"]);
    bench.succeed(&["copy", "s", "first", "--sparse", "--force"]);
    bench.fail(&["copy", "s", "third", "--by-map"], 1, &["in use by another process"]);
    assert!(served.stop("TERM").0.success());
    assert!(!bench.path("s/backup.sock").exists(), "the socket is removed with the server");
    for (store, bytes) in [("first", 12_288), ("second", 12_288)] {
        assert_eq!(bench.json(&["check", store])["sound"], true);
        assert_eq!(bench.json(&["stat", store])["data_bytes"], bytes);
    }
}
