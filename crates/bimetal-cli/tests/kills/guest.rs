//! A Linux guest with the store as a disk, killed together with the server. The disk is attached by the guest's NBD
//! driver, or as a virtio disk (vhost-user).
//!
//! The guest is a kernel of Debian with a few programs in memory, emulated by QEMU; no virtualization is needed.

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

/// Modules that the guest may need, in the order of their dependencies.
const MODULES: [&str; 12] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
    "virtio_blk",
    "nbd",
    "ublk_drv",
    "loop",
];

/// What the guest of a kill does. The settings are set before this: `disk`, and `port` or `store`.
pub const WORK: &str = include_str!("work");

/// Number of direct writes before the kill.
pub const DIRECT: u64 = 20;
/// Bytes of a file that the guest removes and discards.
const RUBBISH_BYTES: u64 = 8 << 20;
/// Number of blocks that direct writes use in turn.
const BLOCKS: u64 = 16;

/// Attachment of the store to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// By the guest's own NBD driver, over TCP. It has FUA.
    Nbd,
    /// As a virtio disk with two queues. It has no FUA: a durable write is a write and a flush.
    VhostUser,
}

impl Attachment {
    fn serve_options(self) -> &'static [&'static str] {
        match self {
            Self::Nbd => &["--listen", "tcp:127.0.0.1:0"],
            Self::VhostUser => &["--vhost-user", "vm.sock"],
        }
    }

    /// The file of the disk in the guest's `/dev`.
    fn disk(self) -> &'static str {
        match self {
            Self::Nbd => "nbd0",
            Self::VhostUser => "vda",
        }
    }

    /// Properties of the queue in the guest's driver: whether it has FUA, and its cache.
    fn queue(self) -> &'static str {
        match self {
            Self::Nbd => "1 write back",
            Self::VhostUser => "0 write back",
        }
    }

    /// Options of QEMU.
    fn machine(self, bench: &Bench) -> String {
        match self {
            Self::Nbd => "-m 192 -M pc -netdev user,id=net -device virtio-net-pci,netdev=net,romfile=".to_owned(),
            Self::VhostUser => format!(
                "-m 192 -M pc,memory-backend=mem -object memory-backend-memfd,id=mem,size=192M,share=on \
                 -chardev socket,id=disk,path={},reconnect=1 -device vhost-user-blk-pci,chardev=disk,num-queues=2",
                bench.path("vm.sock").display()
            ),
        }
    }
}

/// A kernel, and the folder of its modules.
pub struct Kernel {
    image: PathBuf,
    modules: PathBuf,
}

impl Kernel {
    /// The kernel with this driver that `make clients` has unpacked, or an installed one.
    pub fn find(driver: &str) -> Option<Self> {
        let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
        [unpacked, "/".into()].iter().find_map(|root| {
            let kernels = fs::read_dir(root.join("lib/modules")).into_iter().flatten().flatten();
            kernels.map(|kernel| kernel.path()).find_map(|modules| {
                let image = root.join("boot").join(format!("vmlinuz-{}", modules.file_name()?.to_str()?));
                let kernel = Self { image, modules };
                (kernel.image.exists() && kernel.module(driver).is_some()).then_some(kernel)
            })
        })
    }

    /// The file of a module; `None` if it is built in.
    fn module(&self, name: &str) -> Option<PathBuf> {
        let found = run("find", &[self.modules.to_str()?, "-name", &format!("{name}.ko")]).ok()?;
        found.lines().next().map(PathBuf::from)
    }
}

/// Whether everything for a guest with this driver is available.
pub fn can_run(driver: &str) -> bool {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the guest is of x86-64");
        return false;
    }
    if !has(&["qemu-system-x86_64", "nbd-client", "busybox", "cpio", "ldd"]) {
        return false;
    }
    let is_there = Kernel::find(driver).is_some();
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "`CI` is set and there is no kernel with `{driver}` for a guest: `make clients`"
    );
    if !is_there {
        eprintln!("skipped: there is no kernel with `{driver}` for a guest; `make clients` unpacks one");
    }
    is_there
}

/// Kills a server and its guest. Returns the number of synced files, all of which must be present.
pub fn kill_under_a_guest(attachment: Attachment, seed: u64) -> u64 {
    try_to_kill(attachment, seed).unwrap_or_else(|what| {
        panic!(
            "{attachment:?}, seed {seed}: {what}\nrepeat with: BIMETAL_KILLS_SEED={seed} BIMETAL_KILLS=1 cargo test -p bimetal-cli \
             --test kills guest"
        )
    })
}

fn try_to_kill(attachment: Attachment, seed: u64) -> Result<u64, String> {
    let bench = Bench::new();
    bench.succeed(&["create", "s", "--scheme", crate::scheme(seed), "--capacity", "48MiB"]);
    let server = Server::start(&bench, &[]);
    server.wait_until_served()?;
    Disk::attach(&bench, FrontEnd::Nbd)?.format()?;
    drop(server);
    let mut server = Server::start(&bench, attachment.serve_options());
    let port = wait_for_port(&bench)?;
    let script = format!("disk={}\nport={port}\n{WORK}", attachment.disk());
    let kernel = Kernel::find("nbd").unwrap();
    let mut guest = Guest::start(&bench, &kernel, &["nbd-client"], &script, &attachment.machine(&bench))?;
    let queue = guest.hear("queue ")?;
    if queue != attachment.queue() {
        return Err(format!("the guest's driver has another kind of cache: `{queue}`"));
    }
    write_durably(&bench, &mut guest, attachment)?;
    let data_bytes = || bench.json(&["stat", "s"])["data_bytes"].as_u64().unwrap();
    guest.hear("filled")?;
    let filled = data_bytes();
    guest.go_on();
    guest.hear("trimmed")?;
    if data_bytes() + RUBBISH_BYTES / 2 > filled {
        return Err("the file system was trimmed, and the store was told nothing of it".into());
    }
    let mut random = seed ^ 0x0067_7565_7374;
    guest.go_on();
    if attachment == Attachment::VhostUser {
        // The server is stopped, and another one replaces it.
        guest.hear(&format!("synced {}", DIRECT + 1))?;
        server.terminate();
        server.wait()?;
        server = Server::start(&bench, attachment.serve_options());
    }
    let synced = 2 + below(&mut random, 30);
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

/// The TCP port of the server, as soon as it prints its address; empty if it listens at a path.
fn wait_for_port(bench: &Bench) -> Result<String, String> {
    let mut uri = String::new();
    until("the server says where it is", || {
        uri = fs::read_to_string(bench.path("uri")).unwrap();
        Ok(uri.ends_with('\n'))
    })?;
    let address = uri.trim_end().trim_end_matches('/').strip_prefix("nbd://");
    Ok(address.and_then(|address| address.rsplit(':').next()).unwrap_or_default().to_owned())
}

/// Lets the guest write durably, and counts commits: each write needs one, by FUA or by a flush.
fn write_durably(bench: &Bench, guest: &mut Guest, attachment: Attachment) -> Result<(), String> {
    let commits = || bench.json(&["stat", "s"])["store"]["commits"].as_u64().unwrap();
    let before = commits();
    guest.go_on();
    // The file system commits its journal every five seconds, which is a flush; a direct write with FUA is not a flush.
    // On a busy machine the writes take longer.
    let flushes: u64 = guest.hear("flushes ")?.parse().unwrap();
    let commits = commits() - before;
    let written = guest.heard.direct.values().max().copied();
    let is_flushed = match attachment {
        Attachment::Nbd => flushes < DIRECT / 2,
        Attachment::VhostUser => flushes >= DIRECT,
    };
    if written != Some(DIRECT) || !is_flushed || commits < DIRECT {
        return Err(format!("of {DIRECT} durable writes {written:?} led to {commits} commits and {flushes} flushes"));
    }
    Ok(())
}

/// Data reported as durable by the guest.
#[derive(Clone, Default)]
pub struct Heard {
    /// The number of the last file that was synced.
    pub synced: u64,
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

    /// Fails if some of the data are missing in the file system.
    pub fn verify(&self, fs: &Path) -> Result<(), String> {
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
            // The next write to this block may have been in progress.
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

/// A guest with its serial console.
pub struct Guest {
    qemu: Child,
    console: ChildStdin,
    lines: Receiver<String>,
    heard: Heard,
}

impl Guest {
    /// Starts it with these programs besides a shell, the script that it runs, and options of QEMU.
    pub fn start(
        bench: &Bench,
        kernel: &Kernel,
        programs: &[&str],
        script: &str,
        machine: &str,
    ) -> Result<Self, String> {
        let memory = initial_files(bench, kernel, programs, script)?;
        let log = fs::File::create(bench.path("qemu.log")).unwrap();
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-accel", "tcg", "-cpu", "qemu64", "-nodefaults", "-no-user-config"]);
        command.args(["-display", "none", "-no-reboot", "-serial", "stdio"]).args(machine.split(' '));
        command.args(["-append", "console=ttyS0 loglevel=3 panic=-1"]);
        command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(memory);
        let mut qemu = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let (console, output) = (qemu.stdin.take().unwrap(), BufReader::new(qemu.stdout.take().unwrap()));
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                // Output before the first line is from the firmware.
                let line = line.rsplit('\u{1b}').next().unwrap_or_default().trim_start_matches("[?7l").to_owned();
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { qemu, console, lines, heard: Heard::default() })
    }

    /// Waits for a line with this beginning. Returns the rest of the line.
    pub fn hear(&mut self, beginning: &str) -> Result<String, String> {
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

    /// Lets the guest continue.
    pub fn go_on(&mut self) {
        self.console.write_all(b"\n").unwrap();
    }

    /// Kills the guest. Returns the data that it had reported as durable.
    pub fn kill(mut self) -> Heard {
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

/// Makes the files in the guest's memory: programs, their libraries, and modules.
fn initial_files(bench: &Bench, kernel: &Kernel, programs: &[&str], script: &str) -> Result<PathBuf, String> {
    let root = bench.path("guest");
    for folder in ["bin", "dev", "sys", "proc", "run", "tmp", "mnt", "store", "modules"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for program in ["busybox", "dd"].iter().chain(programs) {
        let path = run("sh", &["-c", &format!("command -v {program}")])?;
        fs::copy(path.trim(), root.join("bin").join(Path::new(program).file_name().unwrap())).unwrap();
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
    let init = format!("#!/bin/busybox sh\nmodules='{}'\n{}{script}", modules.join(" "), include_str!("init"));
    fs::write(root.join("init"), init).unwrap();
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
    let memory = bench.path("initramfs");
    let pack = format!("cd {} && find . | cpio --quiet -o -H newc > {}", root.display(), memory.display());
    run("sh", &["-c", &pack])?;
    Ok(memory)
}
