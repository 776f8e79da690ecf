//! Real clients of the server: libnbd's, QEMU's, fio.
//!
//! If a program is not installed, its test is skipped, or fails if `CI` is set. `make clients` installs the programs.

use std::env;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bimetal_live::nbd::{Export, Options};
use bimetal_live::{BlockDevice, MemoryDevice};

use crate::running::Running;

const MIB: u64 = 1 << 20;

/// A program of the system.
pub struct Program(PathBuf);

impl Program {
    /// The program with this name, if it is installed.
    pub fn find(name: &str) -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
        if found.is_none() {
            assert!(env::var_os("CI").is_none(), "`{name}` is not installed; run `make clients`");
            eprintln!("SKIPPED: `{name}` is not installed; `make clients` installs it");
        }
        found.map(Self)
    }

    fn output(&self, arguments: &[&str]) -> Output {
        // The system's Python has libnbd, even if another Python is first in the path.
        let path = format!("/usr/bin:{}", env::var("PATH").unwrap_or_default());
        let folder = tempfile::tempdir().unwrap();
        Command::new(&self.0).args(arguments).env("PATH", path).current_dir(folder.path()).output().unwrap()
    }

    /// Runs it, which must succeed. Returns its output.
    pub fn run(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.output(arguments);
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{} {arguments:?}: {status}\n{out}\n{err}", self.0.display());
        out.into_owned()
    }

    /// Runs it, which must fail. Returns its error output.
    pub fn fail(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.output(arguments);
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(!status.success(), "{} {arguments:?} succeeded\n{out}\n{err}", self.0.display());
        err.into_owned()
    }
}

fn memory(mebibytes: u64) -> (Arc<MemoryDevice>, Running) {
    let device = Arc::new(MemoryDevice::new(mebibytes * MIB / 512));
    (device.clone(), Running::new(device))
}

/// `bytes` bytes of data with holes, compressible parts and incompressible parts.
fn sample(bytes: usize) -> Vec<u8> {
    // Pages of untouched memory may be missing: FUSE would split writes at a missing page, and nbdfuse would pass on
    // parts that are not whole sectors.
    let mut data = vec![1; bytes];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for (part, chunk) in data.chunks_mut(100 << 10).enumerate() {
        for word in chunk.chunks_exact_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match part % 4 {
                0 => word.copy_from_slice(&state.to_le_bytes()),
                1 => word.fill(part as u8),
                _ => word.fill(0),
            }
        }
    }
    data
}

fn contents(device: &MemoryDevice) -> Vec<u8> {
    let mut contents = vec![0; (device.sectors() * 512) as usize];
    device.read(0, &mut contents).unwrap();
    contents
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn nbdinfo_sees_what_is_offered() {
    let Some(nbdinfo) = Program::find("nbdinfo") else { return };
    let device = Arc::new(MemoryDevice::new(64 * MIB / 512));
    let export = Export { name: "disk".into(), description: "a device".into(), read_only: false };
    for family in ["unix", "tcp"] {
        let running = Running::with(device.clone(), export.clone(), Options::default(), family);
        let uri = running.uri();
        let named = match family {
            "unix" => uri.replace("///", "///disk"),
            _ => format!("{uri}/disk"),
        };
        for uri in [&uri, &named] {
            let told = nbdinfo.run(&[uri]);
            // libnbd has extended headers since 1.18.
            assert!(told.contains("structured packets") || told.contains("extended packets"), "{told}");
            for line in [
                "protocol: newstyle-fixed without TLS, using ",
                "export-size: 67108864 (64M)",
                "base:allocation",
                "is_rotational: false",
                "is_read_only: false",
                "can_cache: true",
                "can_df: true",
                "can_fast_zero: true",
                "can_flush: true",
                "can_fua: true",
                "can_multi_conn: true",
                "can_trim: true",
                "can_zero: true",
                "block_size_minimum: 512",
                "block_size_preferred: 4096",
                "block_size_maximum: 33554432",
            ] {
                assert!(told.contains(line), "{line}\n{told}");
            }
        }
        let listed = nbdinfo.run(&["--list", &uri]);
        assert!(listed.contains("export=\"disk\"") && listed.contains("description: a device"), "{listed}");
        let json = nbdinfo.run(&["--json", &named]);
        assert!(json.contains("\"export-size\": 67108864"), "{json}");
        nbdinfo.fail(&[&named.replace("disk", "desk")]);
        running.stop().unwrap();
    }
    let running = Running::with(device, Export { read_only: true, ..export }, Options::default(), "unix");
    let told = nbdinfo.run(&[&running.uri()]);
    assert!(told.contains("is_read_only: true") && told.contains("can_trim: false"), "{told}");
    nbdinfo.run(&["--is", "read-only", &running.uri()]);
}

#[test]
fn nbdinfo_maps_holes() {
    let Some(nbdinfo) = Program::find("nbdinfo") else { return };
    // Larger than any length field: the map is requested in pieces of almost 4 GiB.
    let (device, running) = memory(8 << 10);
    device.write(2048, &[1; 8192], false).unwrap();
    device.write((6 << 30) / 512, &[1; 4096], false).unwrap();
    let map = nbdinfo.run(&["--map", &running.uri()]);
    let rows: Vec<Vec<&str>> = map.lines().map(|line| line.split_whitespace().collect()).collect();
    let hole = |row: &[&str]| row[3] == "hole,zero";
    assert_eq!(rows[0], ["0", "1048576", "3", "hole,zero"]);
    assert_eq!(rows[1], ["1048576", "8192", "0", "data"]);
    let data: Vec<_> = rows.iter().filter(|row| !hole(row)).collect();
    assert_eq!(data[1], &["6442450944", "4096", "0", "data"]);
    assert_eq!(data.len(), 2, "{map}");
    let totals = nbdinfo.run(&["--map", "--totals", &running.uri()]);
    assert!(totals.contains("12288"), "{totals}");
}

#[test]
fn nbdcopy_copies_both_ways() {
    let Some(nbdcopy) = Program::find("nbdcopy") else { return };
    let (device, running) = memory(48);
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let data = sample(48 << 20);
    fs::write(&from, &data).unwrap();
    for options in [&[][..], &["--connections=4", "--requests=64"], &["--request-size=33554432"], &["--synchronous"]] {
        device.trim(0, device.sectors(), false).unwrap();
        let mut arguments = vec!["--flush"];
        arguments.extend(options);
        nbdcopy.run(&[&arguments[..], &[&text(&from), &running.uri()]].concat());
        assert!(contents(&device) == data, "{options:?}");
        nbdcopy.run(&[&arguments[..], &[&running.uri(), &text(&to)]].concat());
        assert!(fs::read(&to).unwrap() == data, "{options:?}");
        fs::remove_file(&to).unwrap();
    }
    // From one device to another, without and with holes.
    let (second, other) = memory(48);
    nbdcopy.run(&["--allocated", &running.uri(), &other.uri()]);
    assert!(contents(&second) == data);
    second.write(0, &[7; 1 << 20], false).unwrap();
    nbdcopy.run(&["--destination-is-zero", &running.uri(), "null:"]);
    nbdcopy.run(&[&running.uri(), &other.uri()]);
    assert!(contents(&second) == data);
}

#[test]
fn nbdsh_gets_data_and_errors() {
    let Some(nbdsh) = Program::find("nbdsh") else { return };
    let (_, running) = memory(64);
    let script = r#"
import errno
def refused(code, call, *arguments):
    try:
        call(*arguments)
    except nbd.Error as error:
        assert error.errnum == code, (error, code)
    else:
        raise AssertionError(("no error", call, arguments))
size = h.get_size()
assert size == 64 << 20
data = bytearray(range(256)) * 4096
h.pwrite(data, 4096, nbd.CMD_FLAG_FUA)
assert h.pread(len(data), 4096) == data
h.flush()
h.cache(len(data), 0)
h.trim(4096, 4096, nbd.CMD_FLAG_FUA)
assert h.pread(8192, 0) == bytearray(8192)
h.zero(4096, 8192, nbd.CMD_FLAG_NO_HOLE)
h.zero(4096, 12288, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_FUA)
assert h.pread(8192, 8192) == bytearray(8192)
holes = []
def chunk(buf, offset, kind, error):
    holes.append((offset, len(buf), kind))
h.pread_structured(1 << 20, 32 << 20, chunk)
assert holes == [(32 << 20, 1 << 20, nbd.READ_HOLE)], holes
status = []
h.block_status(64 << 20, 0, lambda context, offset, entries, error: status.append((context, entries)))
assert len(status) == 1 and status[0][0] == "base:allocation", status
assert status[0][1] == [8192, 3, 4096, 0, 4096, 3, (1 << 20) - 12288, 0, size - (1 << 20) - 4096, 3], status
h.set_strict_mode(0)
refused(errno.ENOTSUP, h.zero, 4096, 0, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE)
refused(errno.EINVAL, h.pread, 512, size)
refused(errno.EINVAL, h.pread, 100, 0)
refused(errno.EINVAL, h.pread, 512, 100)
refused(errno.ENOSPC, h.pwrite, bytes(512), size)
refused(errno.EINVAL, h.pwrite, bytes(100), 0)
# with extended headers, which libnbd has since 1.18, the connection is closed instead
if not getattr(h, 'get_extended_headers_negotiated', lambda: False)():
    refused(errno.EINVAL, h.pwrite, bytes((32 << 20) + 512), 0)
refused(errno.EINVAL, h.trim, 512, size)
refused(errno.ENOSPC, h.zero, 1024, size - 512)
refused(errno.EINVAL, h.cache, 1024, size - 512)
refused(errno.EINVAL, h.trim, 512, 0, 1 << 9)
# and after all that the connection is as it was
h.pwrite(bytearray(32 << 20), 0)
assert h.pread(32 << 20, 0) == bytearray(32 << 20)
print("done")
"#;
    let arguments = ["-c", "h.add_meta_context('base:allocation')"];
    let connect = format!("h.connect_uri('{}')", running.uri());
    let told = nbdsh.run(&[&arguments[..], &["-c", &connect, "-c", script]].concat());
    assert!(told.ends_with("done\n"), "{told}");
    // The same without structured replies, except for commands that need them.
    let simple = "h.set_request_structured_replies(False)";
    let read = "h.pwrite(b'x' * 512, 0); assert h.pread(512, 0) == b'x' * 512; print(h.can_df())";
    let told = nbdsh.run(&["-c", simple, "-c", &connect, "-c", read]);
    assert_eq!(told, "False\n");
}

#[test]
fn fio_verifies_what_it_wrote() {
    let Some(fio) = Program::find("fio") else { return };
    let (_, running) = memory(64);
    let uri = format!("--uri={}", running.uri());
    // Each job has its own part and its own connection.
    for options in [
        &["--rw=randwrite", "--bs=4k", "--iodepth=32", "--numjobs=2"][..],
        &["--rw=randrw", "--bsrange=512-256k", "--blockalign=512", "--iodepth=8", "--numjobs=2"],
        &["--rw=write", "--bs=1m", "--iodepth=4", "--numjobs=1"],
        &["--rw=randtrimwrite", "--bs=4k", "--iodepth=4", "--numjobs=1"],
    ] {
        let verify = if options[0].contains("trim") { "--verify=0" } else { "--verify=crc32c" };
        let fixed = ["--name=verify", "--ioengine=nbd", &uri, "--size=16m", "--offset_increment=16m", verify];
        fio.run(&[&fixed[..], &["--verify_fatal=1", "--fsync=100", "--group_reporting"], options].concat());
    }
}

#[test]
fn qemu_reads_writes_and_converts() {
    let (Some(img), Some(io)) = (Program::find("qemu-img"), Program::find("qemu-io")) else { return };
    let (device, running) = memory(32);
    let uri = running.uri();
    let folder = tempfile::tempdir().unwrap();
    let data = sample(32 << 20);
    let (raw, qcow, back) = (folder.path().join("raw"), folder.path().join("qcow2"), folder.path().join("back"));
    fs::write(&raw, &data).unwrap();
    assert!(img.run(&["info", &uri]).contains("virtual size: 32 MiB"));
    img.run(&["convert", "-n", "-f", "raw", "-O", "raw", &text(&raw), &uri]);
    assert!(contents(&device) == data);
    img.run(&["compare", "-f", "raw", "-F", "raw", &text(&raw), &uri]);
    img.run(&["convert", "-f", "raw", "-O", "qcow2", &uri, &text(&qcow)]);
    img.run(&["convert", "-f", "qcow2", "-O", "raw", &text(&qcow), &text(&back)]);
    assert!(fs::read(&back).unwrap() == data);
    let commands = [
        "write -f -P 5 0 1m",
        "read -P 5 0 1m",
        "write -z 64k 64k",
        "write -z -u 256k 64k",
        "write -z -n -u 384k 64k",
        "discard 512k 128k",
        "read -P 0 64k 64k",
        "read -P 0 256k 64k",
        "read -P 0 384k 64k",
        "read -P 0 512k 128k",
        "read -P 5 640k 384k",
        "aio_write -P 6 8m 4m",
        "aio_write -P 7 12m 4m",
        "aio_flush",
        "flush",
        "read -P 6 8m 4m",
        "read -P 7 12m 4m",
    ];
    let arguments: Vec<&str> = commands.iter().flat_map(|&command| ["-c", command]).collect();
    let told = io.run(&[&["-f", "raw"], &arguments[..], &[&uri]].concat());
    assert!(!told.contains("failed") && !told.contains("rror"), "{told}");
    let map = img.run(&["map", "--output=json", "-f", "raw", &uri]);
    assert!(map.contains("\"zero\": true") && map.contains("\"data\": false"), "{map}");
    let read_only = Export { read_only: true, ..Export::default() };
    let running = Running::with(device, read_only, Options::default(), "unix");
    io.fail(&["-f", "raw", "-c", "write 0 4k", &running.uri()]);
    io.run(&["-f", "raw", "-r", "-c", "read -P 5 0 4k", &running.uri()]);
}

#[test]
fn nbdkit_passes_requests_on() {
    let Some(nbdkit) = Program::find("nbdkit") else { return };
    let (Some(nbdinfo), Some(nbdcopy)) = (Program::find("nbdinfo"), Program::find("nbdcopy")) else { return };
    let (device, running) = memory(16);
    let data = sample(16 << 20);
    device.write(0, &data, false).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let back = folder.path().join("back");
    let script = format!("nbdcopy \"$uri\" {} && nbdinfo --size \"$uri\"", text(&back));
    let uri = format!("uri={}", running.uri());
    let told = nbdkit.run(&["-U", "-", "nbd", &uri, "--run", &script]);
    assert_eq!(told.trim(), "16777216");
    assert!(fs::read(&back).unwrap() == data);
    drop((nbdinfo, nbdcopy));
}

/// A device shown as a file by nbdfuse; unmounted at the end, even if the test fails.
struct Mounted {
    nbdfuse: Child,
    fusermount: Program,
    file: String,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.fusermount.output(&["-u", "-z", &self.file]);
        let start = Instant::now();
        while self.nbdfuse.try_wait().is_ok_and(|ended| ended.is_none()) && start.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.nbdfuse.kill();
        let _ = self.nbdfuse.wait();
    }
}

#[test]
fn nbdfuse_makes_a_file_of_it() {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("SKIPPED: no /dev/fuse");
        return;
    }
    let (Some(nbdfuse), Some(fusermount)) = (Program::find("nbdfuse"), Program::find("fusermount3")) else { return };
    let (device, running) = memory(16);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    fs::write(&file, "").unwrap();
    let nbdfuse = Command::new(&nbdfuse.0).args([&text(&file), &running.uri()]).spawn().unwrap();
    let mut mounted = Mounted { nbdfuse, fusermount, file: text(&file) };
    let start = Instant::now();
    while fs::metadata(&file).map_or(0, |found| found.len()) != 16 * MIB {
        assert!(start.elapsed() < Duration::from_secs(20), "no file");
        assert!(mounted.nbdfuse.try_wait().unwrap().is_none(), "nbdfuse has ended");
        thread::sleep(Duration::from_millis(10));
    }
    let data = sample(16 << 20);
    let target = fs::OpenOptions::new().write(true).open(&file).unwrap();
    target.write_all_at(&data, 0).unwrap();
    target.sync_all().unwrap();
    drop(target);
    let read = fs::read(&file).unwrap();
    drop(mounted);
    assert!(read == data && contents(&device) == data);
}
