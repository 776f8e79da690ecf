//! A Linux guest whose own NBD driver has the store as a disk, killed together with the server.
//!
//! The guest is a kernel of Debian with a handful of programs in memory, emulated by QEMU; no virtualization is needed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use bimetal_core::part::random::below;

use crate::common::Bench;
use crate::common::machine::has;
use crate::served::{Disk, FrontEnd, Server, run, until};

/// Modules that the guest may need, in the order in which they need each other.
const MODULES: [&str; 9] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "nbd",
];

/// Direct writes before the kill, which are counted.
const DIRECT: u64 = 20;
/// Blocks that direct writes go to in turn.
const BLOCKS: u64 = 16;

/// A kernel, and the folder of its modules.
struct Kernel {
    image: PathBuf,
    modules: PathBuf,
}

impl Kernel {
    /// The kernel that `make clients` has unpacked, or an installed one.
    fn find() -> Option<Self> {
        let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
        [unpacked, "/".into()].iter().find_map(|root| {
            let kernels = fs::read_dir(root.join("lib/modules")).into_iter().flatten().flatten();
            kernels.map(|kernel| kernel.path()).find_map(|modules| {
                let image = root.join("boot").join(format!("vmlinuz-{}", modules.file_name()?.to_str()?));
                let kernel = Self { image, modules };
                (kernel.image.exists() && kernel.module("nbd").is_some()).then_some(kernel)
            })
        })
    }

    /// The file of a module; none if it is built in.
    fn module(&self, name: &str) -> Option<PathBuf> {
        let found = run("find", &[self.modules.to_str()?, "-name", &format!("{name}.ko")]).ok()?;
        found.lines().next().map(PathBuf::from)
    }
}

/// Whether there is all that a guest needs.
pub fn can_run() -> bool {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the guest is of x86-64");
        return false;
    }
    if !has(&["qemu-system-x86_64", "nbd-client", "busybox", "cpio", "ldd"]) {
        return false;
    }
    let is_there = Kernel::find().is_some();
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "`CI` is set and there is no kernel for a guest: `make clients`"
    );
    if !is_there {
        eprintln!("skipped: there is no kernel for a guest; `make clients` unpacks one");
    }
    is_there
}

/// Kills a server under a guest, and the guest; how many files it had synced. All must be there.
pub fn kill_under_a_guest(seed: u64) -> u64 {
    try_to_kill(seed).unwrap_or_else(|what| {
        panic!("seed {seed}: {what}\nrepeat with: BIMETAL_KILLS_SEED={seed} BIMETAL_KILLS=1 cargo test -p bimetal-cli --test kills guest")
    })
}

fn try_to_kill(seed: u64) -> Result<u64, String> {
    let bench = Bench::new();
    bench.succeed(&["create", "s", "--scheme", crate::scheme(seed), "--capacity", "48MiB"]);
    let server = Server::start(&bench, &[]);
    server.wait_until_served()?;
    Disk::attach(&bench, FrontEnd::Nbd)?.format()?;
    drop(server);
    let server = Server::start(&bench, &["--listen", "tcp:127.0.0.1:0"]);
    let mut port = String::new();
    until("the server says where it is", || {
        let uri = fs::read_to_string(bench.path("uri")).unwrap();
        port = uri.trim_end().trim_end_matches('/').rsplit(':').next().unwrap_or_default().to_owned();
        Ok(uri.ends_with('\n'))
    })?;
    let mut guest = Guest::start(&bench, &Kernel::find().unwrap(), &port)?;
    let queue = guest.hear("queue ")?;
    if queue != "1 write back" {
        return Err(format!("the guest's driver has no FUA, or no write cache: `{queue}`"));
    }
    let commits = || bench.json(&["stat", "s"])["store"]["commits"].as_u64().unwrap();
    let before = commits();
    guest.go_on();
    // A journal of the file system that is committed meanwhile, as it is every five seconds, is a flush; a direct write
    // none.
    let flushes: u64 = guest.hear("flushes ")?.parse().unwrap();
    let after = commits();
    let written = guest.heard.direct.values().max().copied();
    if written != Some(DIRECT) || flushes > 3 || after - before < DIRECT {
        let commits = after - before;
        return Err(format!("of {DIRECT} writes with FUA {written:?} led to {commits} commits and {flushes} flushes"));
    }
    let mut random = seed ^ 0x0067_7565_7374;
    guest.go_on();
    let synced = 1 + below(&mut random, 30);
    guest.hear(&format!("synced {}", DIRECT + synced))?;
    thread::sleep(Duration::from_micros(below(&mut random, 100_000)));
    server.kill();
    let heard = guest.kill();
    let server = Server::start(&bench, &[]);
    server.wait_until_served()?;
    let mut disk = Disk::attach(&bench, FrontEnd::Nbd)?;
    disk.mount_checked()?;
    heard.verify(&disk.fs)?;
    Ok(heard.synced - DIRECT)
}

/// What the guest has said is durable.
#[derive(Clone, Default)]
struct Heard {
    /// The number of the last file that was synced.
    synced: u64,
    /// The number of the last direct write to each block.
    direct: BTreeMap<u64, u64>,
}

impl Heard {
    fn note(&mut self, line: &str) {
        if let Some(number) = line.strip_prefix("synced ").and_then(|number| number.parse().ok()) {
            self.synced = number;
        }
        if let Some(number) = line.strip_prefix("direct ").and_then(|number| number.parse().ok()) {
            self.direct.insert(number % BLOCKS, number);
        }
    }

    fn verify(&self, fs: &Path) -> Result<(), String> {
        for number in DIRECT + 1..=self.synced {
            let expected = repeated(&format!("synced {number}\n"), (number * 997 % 60_000) as usize);
            if fs::read(fs.join(number.to_string())).ok() != Some(expected) {
                return Err(format!("LOST: file {number} of {}", self.synced));
            }
        }
        let found = fs::read(fs.join("direct")).map_err(|error| error.to_string())?;
        for (&block, &number) in &self.direct {
            let found = &found[block as usize * 4096..][..4096];
            let is_of = |number: u64| found == repeated(&format!("direct {number}\n"), 4096);
            // The next one may have been on its way.
            if !is_of(number) && !is_of(number + BLOCKS) {
                return Err(format!("LOST: direct write {number}"));
            }
        }
        Ok(())
    }
}

fn repeated(line: &str, length: usize) -> Vec<u8> {
    line.bytes().cycle().take(length).collect()
}

/// A guest, heard over its serial console.
struct Guest {
    qemu: Child,
    console: ChildStdin,
    lines: Receiver<String>,
    heard: Heard,
}

impl Guest {
    fn start(bench: &Bench, kernel: &Kernel, port: &str) -> Result<Self, String> {
        let memory = initial_files(bench, kernel, port)?;
        let log = fs::File::create(bench.path("qemu.log")).unwrap();
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-M", "pc", "-accel", "tcg", "-cpu", "qemu64", "-m", "192", "-nodefaults", "-no-user-config"]);
        command.args(["-display", "none", "-no-reboot", "-serial", "stdio", "-netdev", "user,id=net"]);
        command.args(["-device", "virtio-net-pci,netdev=net,romfile=", "-append", "console=ttyS0 loglevel=3 panic=-1"]);
        command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(memory);
        let mut qemu = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let (console, output) = (qemu.stdin.take().unwrap(), BufReader::new(qemu.stdout.take().unwrap()));
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                // What precedes the first line is of the firmware.
                let line = line.rsplit('\u{1b}').next().unwrap_or_default().trim_start_matches("[?7l").to_owned();
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { qemu, console, lines, heard: Heard::default() })
    }

    /// Waits for a line that begins like this; the rest of it.
    fn hear(&mut self, beginning: &str) -> Result<String, String> {
        let mut last = String::new();
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(90));
            let line = line.map_err(|_| format!("the guest does not say `{beginning}`; its last word is `{last}`"))?;
            self.heard.note(&line);
            match line.strip_prefix(beginning) {
                Some(rest) => return Ok(rest.to_owned()),
                None => last = line,
            }
        }
    }

    /// Answers that it may go on.
    fn go_on(&mut self) {
        self.console.write_all(b"\n").unwrap();
    }

    /// Kills it; what it had said.
    fn kill(mut self) -> Heard {
        self.qemu.kill().unwrap();
        self.qemu.wait().unwrap();
        while let Ok(line) = self.lines.recv() {
            self.heard.note(&line);
        }
        self.heard.clone()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Makes the files that the guest has in memory: the programs that it runs, what they are linked with, and the modules.
fn initial_files(bench: &Bench, kernel: &Kernel, port: &str) -> Result<PathBuf, String> {
    let root = bench.path("guest");
    for folder in ["bin", "dev", "sys", "proc", "tmp", "mnt", "modules"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for program in ["busybox", "nbd-client", "dd"] {
        let path = run("sh", &["-c", &format!("command -v {program}")])?;
        fs::copy(path.trim(), root.join("bin").join(program)).unwrap();
        let linked = run("sh", &["-c", &format!("ldd {} | grep -o '/[^ ]*' || true", path.trim())])?;
        for library in linked.lines() {
            let to = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(library, to).unwrap();
        }
    }
    let mut modules = Vec::new();
    for name in MODULES {
        if let Some(file) = kernel.module(name) {
            fs::copy(file, root.join("modules").join(format!("{name}.ko"))).unwrap();
            modules.push(name);
        }
    }
    let settings = format!("#!/bin/busybox sh\nport={port}\nmodules='{}'\n", modules.join(" "));
    fs::write(root.join("init"), settings + include_str!("init")).unwrap();
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
    let memory = bench.path("initramfs");
    let pack = format!("cd {} && find . | cpio --quiet -o -H newc > {}", root.display(), memory.display());
    run("sh", &["-c", &pack])?;
    Ok(memory)
}
