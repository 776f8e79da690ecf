//! Safety of stores: existing data are not overwritten, no file is shared by two stores, other users cannot read them,
//! and a device survives a full file system.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod rescue;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Bench;
use common::machine::{can_mount, has};

const SIZE: [&str; 2] = ["--capacity", "16MiB"];

/// Runs a script in the folder of a bench, with `bimetal` on its path. Returns whether it succeeded, its output and its
/// error output.
fn script(bench: &Bench, text: &str) -> (bool, String, String) {
    let binaries = Path::new(env!("CARGO_BIN_EXE_bimetal")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("timeout");
    command.args(["60", "sh", "-euc", text]).current_dir(bench.path("")).env("PATH", path).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn succeed(bench: &Bench, text: &str) -> String {
    let (succeeded, out, err) = script(bench, text);
    assert!(succeeded, "{text}\n{out}\n{err}");
    out
}

fn create(bench: &Bench, store: &str, scheme: &str, options: &[&str]) {
    bench.succeed(&[&["create", store, "--scheme", scheme], &SIZE[..], options].concat());
}

fn refuse(bench: &Bench, store: &str, scheme: &str, options: &[&str], expected: &[&str]) {
    bench.fail(&[&["create", store, "--scheme", scheme], &SIZE[..], options].concat(), 1, expected);
}

/// A served store, stopped at the end in any case.
struct Server(Child);

impl Server {
    fn start(bench: &Bench, store: &str, options: &[&str]) -> Self {
        let log = fs::File::create(bench.path("log")).unwrap();
        // The socket of a killed server.
        let _ = fs::remove_file(bench.path(store).join("nbd.sock"));
        let mut command = bench.command(&[&["serve", store], options].concat());
        let mut server = Self(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let start = Instant::now();
        while !bench.path(store).join("nbd.sock").exists() {
            let ended = server.0.try_wait().unwrap();
            let log = || fs::read_to_string(bench.path("log")).unwrap();
            assert!(ended.is_none() && start.elapsed() < Duration::from_secs(60), "{}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }

    fn signal(&mut self, signal: &str) -> i32 {
        Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        self.0.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fills the first mebibyte of a store with a byte, through a separate server.
fn fill(bench: &Bench, store: &str, byte: u8) {
    let command = format!("qemu-io -f raw -c 'write -P {byte} 0 1M' -c flush \"$uri\" >&2");
    bench.succeed(&["serve", store, "--run", &command]);
}

/// Checks that the first mebibyte of a store is filled with this byte.
fn holds(bench: &Bench, store: &str, byte: u8) {
    let command = format!("qemu-io -f raw -c 'read -P {byte} 0 1M' \"$uri\" | grep -v failed >&2");
    bench.succeed(&["serve", store, "--run", &command]);
}

/// Writes a page of ones at each of these bytes, and stops the server.
fn write_in(bench: &Bench, store: &str, places: &[u64]) {
    let writes: String = places.iter().map(|at| format!(" -c 'write -P 1 {at} 4k'")).collect();
    succeed(
        bench,
        &format!("bimetal serve {store} --run 'qemu-io -f raw{} -c flush \"$uri\"'", writes.replace('\'', "\"")),
    );
}

#[test]
fn create_overwrites_nothing_that_exists() {
    let bench = Bench::new();
    bench.file("data", vec![7; 10 << 20]);
    let path = bench.path("data");
    let given = |name: &str| format!("{name}={}", path.display());
    let holds = ["`, which would be overwritten", "`--force`"];
    for (scheme, option) in [("chang", ["--region", &given("slow")]), ("opfcl", ["--disk", path.to_str().unwrap()])] {
        refuse(&bench, "s", scheme, &option, &["data` holds 10485760 bytes, which would be overwritten", holds[1]]);
        assert!(fs::read(&path).unwrap() == vec![7; 10 << 20], "{scheme}");
        assert!(!bench.path("s").exists(), "a refused store leaves no files");
    }
    // Files with the names of a store's own files.
    fs::create_dir(bench.path("s")).unwrap();
    for name in ["journal", "superblock", "checkpoint.1", "region0.flash"] {
        let file = bench.file(&format!("s/{name}"), "mine");
        refuse(&bench, "s", "pagemap", &[], &[&format!("`{name}` holds 4 bytes, which would be overwritten")]);
        assert_eq!(fs::read_to_string(bench.path(&file)).unwrap(), "mine");
        fs::remove_file(bench.path(&file)).unwrap();
    }
    // Names that are neither a file nor a block device, and the same file twice.
    succeed(&bench, "mkfifo pipe; mkdir folder; ln -s data link; truncate -s 4M hole");
    for (name, what) in [("pipe", "it is a FIFO"), ("folder", "it is a directory"), ("link", "holds 10485760 bytes")] {
        refuse(&bench, "s", "chang", &["--region", &format!("slow={name}")], &[what]);
    }
    let twice = ["--region", "fast=hole", "--region", "slow=hole"];
    refuse(&bench, "s", "chang", &twice, &["it is the same file as `", "give each its own"]);
    // A region of another store, and a store.
    create(&bench, "other", "chang", &["--region", "slow=hole"]);
    refuse(&bench, "s", "chang", &["--region", "slow=hole"], &["hole` holds region 1 of store "]);
    refuse(&bench, "other", "chang", &[], &["there is a store already", "--force"]);
    bench.succeed(&["check", "other"]);
    // With `--force`, existing data are overwritten.
    create(&bench, "s", "chang", &["--region", &given("slow"), "--force"]);
    create(&bench, "other", "pagemap", &["--force"]);
    bench.succeed(&["check", "s"]);
    bench.succeed(&["check", "other"]);
}

/// A store that someone else made cannot make a server write to a file of its choice.
#[test]
fn links_in_a_store_are_not_followed() {
    let bench = Bench::new();
    create(&bench, "s", "pagemap", &["--sparse"]);
    for name in ["map", "checkpoint.0", "journal", "region0.flash", "superblock"] {
        let (file, kept) = (bench.path("s").join(name), bench.path("kept"));
        bench.file("target", "precious");
        fs::rename(&file, &kept).unwrap();
        std::os::unix::fs::symlink(bench.path("target"), &file).unwrap();
        bench.fail(&["serve", "s"], 1, &["symbolic link"]);
        assert_eq!(fs::read_to_string(bench.path("target")).unwrap(), "precious", "{name}");
        fs::rename(&kept, &file).unwrap();
    }
    bench.succeed(&["check", "s"]);
}

#[test]
fn a_checkpoint_that_is_not_in_use_may_be_missing() {
    if !has(&["qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    create(&bench, "s", "pagemap", &["--sparse"]);
    write_in(&bench, "s", &[0]);
    let checkpoints = ["checkpoint.0", "checkpoint.1"].map(|name| bench.path("s").join(name));
    let unused = checkpoints.iter().find(|path| fs::metadata(path).unwrap().len() == 0).unwrap();
    fs::remove_file(unused).unwrap();
    bench.succeed(&["check", "s"]);
    write_in(&bench, "s", &[4096]);
    assert!(unused.exists());
    bench.succeed(&["check", "s"]);
    for path in &checkpoints {
        fs::remove_file(path).unwrap();
    }
    bench.fail(&["check", "s"], 1, &["checkpoint", "missing", "--rescue"]);
}

#[test]
fn each_region_has_one_file_of_its_own() {
    let bench = Bench::new();
    let create = ["create", "s", "--scheme", "chang", "--capacity", "16MiB", "--sparse"];
    let refuse = |options: &[&str], expected: &[&str]| {
        bench.fail(&[&create[..], options].concat(), 1, expected);
        assert!(!bench.path("s").exists() || fs::read_dir(bench.path("s")).unwrap().next().is_none());
        assert!(!bench.path("one").exists());
    };
    refuse(&["--region", "fast=one", "--region", "fast=two"], &["`fast` already has a file"]);
    refuse(&["--region", "fast=one", "--region", "slow=one"], &["one` of region `fast`"]);
}

#[test]
fn a_benchmark_takes_no_more_room_than_there_is() {
    let bench = Bench::new();
    bench.fail(&["bench", "nbd", "--size", "0"], 2, &["`--size` is 0"]);
    bench.fail(&["bench", "nbd", "--size", "64TiB"], 1, &["512 TiB", "free", "--dir"]);
}

#[test]
fn what_is_in_use_is_not_taken_even_by_force() {
    let bench = Bench::new();
    create(&bench, "a", "chang", &["--region", "slow=region"]);
    let mut server = Server::start(&bench, "a", &[]);
    let force = ["--region", "slow=region", "--force"];
    refuse(&bench, "b", "chang", &force, &["region` is in use: another process has locked it"]);
    for file in ["journal", "checkpoint.0", "region0.flash", "superblock"] {
        let path = bench.path("a").join(file);
        let option = format!("slow={}", path.display());
        refuse(&bench, "b", "chang", &["--region", &option, "--force"], &["in use"]);
    }
    refuse(&bench, "a", "chang", &["--force"], &["the store is in use by another process"]);
    assert_eq!(server.signal("-TERM"), 0);
    bench.succeed(&["check", "a"]);
}

#[test]
fn a_block_device_in_use_is_not_taken_and_one_that_holds_something_only_by_force() {
    if !can_mount() || !has(&["blkid", "mkswap"]) {
        return;
    }
    let bench = Bench::new();
    let mount = "truncate -s 64M image; mkfs.ext4 -q -L precious image; mkdir at; device=$(losetup --find --show image); \
                 echo $device; mount $device at; echo text > at/file";
    let device = succeed(&bench, mount).trim().to_owned();
    let tidy = format!("umount at || true; losetup -d {device}");
    let tried = std::panic::catch_unwind(|| {
        let region = ["--region", &format!("slow={device}")];
        let forced = [&region[..], &["--force"]].concat();
        let point = fs::canonicalize(bench.path("at")).unwrap();
        for options in [&region[..], &forced] {
            refuse(
                &bench,
                "s",
                "chang",
                options,
                &[&device, &format!("in use: it is mounted at `{}`", point.display())],
            );
        }
        // The file behind a loop device is in use, too.
        refuse(&bench, "s", "chang", &["--region", "slow=image", "--force"], &["it is attached to `/dev/loop"]);
        succeed(&bench, "grep -q text at/file; umount at");
        refuse(&bench, "s", "chang", &region, &["holds a file system (ext4) `precious`, which would be overwritten"]);
        succeed(&bench, &format!("e2fsck -fn {device}; mkswap {device}; blkid -p {device}"));
        refuse(&bench, "s", "chang", &region, &["holds a swap signature, which"]);
        // Data without a signature are not blank.
        succeed(
            &bench,
            &format!(
                "wipefs -qa {device}; dd if=/dev/zero of={device} bs=1M count=1 2>&1; printf x | dd \
                                  of={device} bs=1 seek=900000 2>&1"
            ),
        );
        refuse(&bench, "s", "chang", &region, &["holds data, which would be overwritten"]);
        create(&bench, "s", "chang", &forced);
        let server = Server::start(&bench, "s", &[]);
        let (mounted, _, _) = script(&bench, &format!("mkfs.ext4 -q -F {device}"));
        assert!(!mounted, "a device of a served store is in use");
        drop(server);
        bench.succeed(&["check", "s"]);
        refuse(&bench, "t", "chang", &region, &["holds region 1 of store "]);
    });
    succeed(&bench, &tidy);
    if let Err(panic) = tried {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_clone_beside_its_original_is_refused() {
    if !has(&["qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    create(&bench, "s", "chang", &["--region", "slow=outside"]);
    fill(&bench, "s", 3);
    succeed(&bench, "cp -r s clone");
    let copied = ["the store was copied", "outside` outside its directory", "--moved"];
    let original = Server::start(&bench, "s", &[]);
    for arguments in
        [&["serve", "clone"][..], &["serve", "clone", "--read-only"], &["check", "clone"], &["stat", "clone"]]
    {
        bench.fail(arguments, 1, &copied);
    }
    bench.fail(&["serve", "clone", "--moved"], 1, &["outside` is in use"]);
    drop(original);
    bench.fail(&["serve", "clone"], 1, &copied);
    holds(&bench, "s", 3);
    // The original has been opened since then, so the clone is older than the file outside.
    bench.fail(&["serve", "clone", "--moved"], 1, &["outside`: it is region 1 of this store, but not as"]);
    // A moved directory is not a copy. A restored one is, and may take over its files with `--moved`.
    succeed(&bench, "mv s elsewhere");
    holds(&bench, "elsewhere", 3);
    succeed(&bench, "cp -r elsewhere restored; rm -r elsewhere clone");
    bench.fail(&["serve", "restored"], 1, &copied);
    bench.succeed(&["serve", "restored", "--moved", "--run", "true"]);
    holds(&bench, "restored", 3);
}

#[test]
fn a_whole_copy_is_a_store_of_its_own_and_parts_are_not_mixed() {
    if !has(&["qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    for (scheme, parts) in [
        ("chang", &["region0.flash", "region1.flash", "journal", "superblock"][..]),
        ("opfcl", &["region0.flash", "disk.image", "disk.sums", "journal", "superblock"]),
    ] {
        create(&bench, "s", scheme, &[]);
        fill(&bench, "s", 3);
        succeed(&bench, "cp -r s copy");
        fill(&bench, "copy", 4);
        fill(&bench, "s", 5);
        holds(&bench, "copy", 4);
        holds(&bench, "s", 5);
        for part in parts {
            succeed(&bench, &format!("mv s/{part} part; cp copy/{part} s/{part}"));
            for arguments in [&["serve", "s"][..], &["serve", "s", "--read-only"], &["check", "s"]] {
                bench.fail(arguments, 1, &["this store, but not as this store was last opened"]);
            }
            succeed(&bench, &format!("mv part s/{part}"));
        }
        // A part from before the last opening.
        succeed(&bench, &format!("cp s/{} old", parts[0]));
        holds(&bench, "s", 5);
        succeed(&bench, &format!("cp s/{0} new; cp old s/{0}", parts[0]));
        bench.fail(&["serve", "s"], 1, &["an older copy"]);
        succeed(&bench, &format!("cp new s/{}", parts[0]));
        holds(&bench, "s", 5);
        holds(&bench, "copy", 4);
        succeed(&bench, "rm -r s copy");
    }
}

#[test]
fn a_file_that_was_cut_is_noticed_and_all_lost_sectors_are_listed() {
    if !has(&["qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    create(&bench, "s", "pagemap", &[]);
    bench.succeed(&["serve", "s", "--run", "qemu-io -f raw -c 'write -P 1 0 8M' -c flush \"$uri\" >&2"]);
    let file = fs::File::options().write(true).open(bench.path("s/region0.flash")).unwrap();
    file.set_len(1 << 20).unwrap();
    let ran = bench.run(&["check", "s"]);
    assert!(ran.status == 1 && ran.stdout.contains(" more, which are counted"), "{ran:?}");
    assert!(ran.stdout.lines().any(|line| line.starts_with("  sectors ") && line.ends_with(" are lost")), "{ran:?}");
    let json = bench.run(&["check", "s", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), 100);
    assert!(json["findings_left_out"].as_u64().unwrap() > 0);
    let ran = bench.run(&["serve", "s", "--run", "true"]);
    assert!(ran.status == 0 && ran.stderr.contains("`region0.flash` is at least ") && ran.stderr.contains("too short"));
}

#[test]
fn a_store_that_was_not_closed_says_so() {
    if !has(&["qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    create(&bench, "s", "pagemap", &[]);
    let killed = r#"bimetal serve s --run 'qemu-io -f raw -c "write -f 0 4k" "$uri" >&2; kill -9 $PPID'"#;
    assert!(!script(&bench, killed).0);
    let check = bench.succeed(&["check", "s"]);
    assert!(check.stdout.contains("it was not closed: the next start replays "), "{check:?}");
    let stat = bench.succeed(&["stat", "s"]);
    assert!(stat.stderr.contains("the store was not closed"), "{stat:?}");
}

#[test]
fn directories_may_be_renamed_while_they_are_served() {
    if !has(&["qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    for store in ["a", "b"] {
        create(&bench, store, "wlaftl", &[]);
    }
    let mut servers = ["a", "b"].map(|store| Server::start(&bench, store, &[]));
    succeed(&bench, "mv a t; mv b a; mv t b");
    // Different amounts, so that the checkpoints of the two stores differ.
    for (byte, store) in [(1, "b"), (2, "a")] {
        let io = format!("-c 'write -P {byte} 0 {byte}M' -c flush 'nbd+unix:///?socket={store}/nbd.sock'");
        succeed(&bench, &format!("qemu-io -f raw {io}"));
    }
    // Each writes its checkpoint.
    assert_eq!(servers.each_mut().map(|server| server.signal("-TERM")), [0, 0]);
    holds(&bench, "b", 1);
    holds(&bench, "a", 2);
    assert_eq!(bench.json(&["check", "a"])["commits_replayed"], 0);
}

#[test]
fn nobody_else_can_read_a_store_whatever_the_umask() {
    for umask in ["0", "0777"] {
        let bench = Bench::new();
        bench.file("empty", "");
        fs::set_permissions(bench.path("empty"), fs::Permissions::from_mode(0o666)).unwrap();
        let made = format!("umask {umask}; bimetal create s --scheme opfcl --capacity 16MiB --disk empty");
        succeed(&bench, &made);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&bench.path("s")), 0o700);
        assert_eq!(mode(&bench.path("empty")), 0o600);
        let mut files = 0;
        for file in fs::read_dir(bench.path("s")).unwrap() {
            let path = file.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            files += 1;
        }
        assert_eq!(files, 7);
        fs::write(bench.path("s/superblock"), vec![0xff; 200_000]).unwrap();
        // There are no data, and nothing names the disk.
        succeed(&bench, &format!("umask {umask}; ! bimetal check s --rescue image"));
        assert_eq!(mode(&bench.path("image")), 0o600);
    }
}

#[test]
fn what_is_no_file_is_said_at_once() {
    let bench = Bench::new();
    create(&bench, "s", "pagemap", &[]);
    for file in ["superblock", "journal", "region0.flash", "checkpoint.0"] {
        succeed(&bench, &format!("mv s/{file} kept; mkfifo s/{file}"));
        for command in ["serve", "check", "stat"] {
            let (succeeded, _, error) = script(&bench, &format!("timeout 20 bimetal {command} s"));
            assert!(!succeeded && error.contains(&format!("`{file}`: it is a FIFO")), "{command}: {error}");
        }
        succeed(&bench, &format!("mv kept s/{file}"));
    }
    bench.succeed(&["check", "s"]);
}

#[test]
fn a_full_file_system_refuses_writes_and_nothing_else_until_there_is_room() {
    if !can_mount() || !has(&["qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    for scheme in ["pagemap", "opfcl"] {
        succeed(&bench, "mkdir -p small; mount -t tmpfs -o size=96M none small");
        let tried = std::panic::catch_unwind(|| full(&bench, scheme));
        succeed(&bench, "umount small");
        if let Err(panic) = tried {
            std::panic::resume_unwind(panic);
        }
    }
}

fn full(bench: &Bench, scheme: &str) {
    bench.succeed(&["create", "small/s", "--scheme", scheme, "--capacity", "256MiB", "--sparse"]);
    let mut server = Server::start(bench, "small/s", &[]);
    let io =
        |commands: &str| script(bench, &format!("qemu-io -f raw {commands} 'nbd+unix:///?socket=small/s/nbd.sock'"));
    let fine = |commands: &str| {
        let (succeeded, out, err) = io(commands);
        assert!(succeeded && !out.contains("failed") && !err.contains("failed"), "{scheme}: {commands}: {out}{err}");
    };
    fine("-c 'write -P 1 0 8M' -c flush");
    // Everything else on the file system.
    script(bench, "dd if=/dev/zero of=small/filler bs=1M 2>&1; true");
    let mut refused = 0;
    for at in 0..128 {
        let (_, out, err) = io(&format!("-c 'write -P 2 {}M 1M'", 8 + at));
        if (out + &err).contains("No space left") {
            refused += 1;
            break;
        }
    }
    assert_eq!(refused, 1, "{scheme}: nothing was refused");
    assert_eq!(bench.json(&["stat", "small/s"])["store"]["no_room"], true);
    fine("-c 'read -P 1 0 8M' -c 'discard 4M 1M' -c flush -c 'read -P 0 4M 1M'");
    // After a kill, which is a power cut for the store, it opens again with all data.
    server.signal("-KILL");
    server = Server::start(bench, "small/s", &[]);
    fine("-c 'read -P 1 0 4M' -c 'read -P 0 4M 1M' -c 'read -P 1 5M 3M' -c 'discard 6M 1M' -c flush");
    // With free space, it continues by itself.
    fs::remove_file(bench.path("small/filler")).unwrap();
    fine("-c 'write -P 3 100M 8M' -c flush -c 'read -P 3 100M 8M' -c 'read -P 1 0 4M'");
    assert_eq!(bench.json(&["stat", "small/s"])["store"]["no_room"], false);
    assert_eq!(server.signal("-TERM"), 0);
    assert_eq!(bench.json(&["check", "small/s"])["sound"], true);
}
