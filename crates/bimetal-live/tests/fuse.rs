//! A device as a file through the kernel. The tests need the right to mount, and are skipped without it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use bimetal_live::fuse::{Mount, MountError, check};
use bimetal_live::measured::{Measured, Meter, Operation};
use bimetal_live::{BlockDevice, MemoryDevice};
use rustix::fs::{FallocateFlags, OFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use tempfile::TempDir;

const SECTORS: u64 = 8192;
const BYTES: u64 = SECTORS * 512;

/// A device in memory, mounted in a separate folder.
struct Shown {
    mount: Option<Mount>,
    device: Arc<dyn BlockDevice>,
    meter: Arc<Meter>,
    folder: TempDir,
}

impl Shown {
    /// `None` if this machine cannot mount.
    fn new() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let meter = Arc::<Meter>::default();
        let device: Arc<dyn BlockDevice> =
            Arc::new(Measured::new(Arc::new(MemoryDevice::new(SECTORS)), Arc::clone(&meter)));
        let folder = tempfile::tempdir().unwrap();
        let mount = Mount::new(&folder.path().join("disk"), Arc::clone(&device)).unwrap();
        Some(Self { mount: Some(mount), device, meter, folder })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn open(&self, flags: OFlags) -> File {
        let flags = flags.bits().cast_signed();
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(self.path()).unwrap()
    }

    fn count(&self, operation: Operation) -> u64 {
        self.meter.figures()[operation as usize].latency.count()
    }
}

/// Whether this process may mount.
fn can_mount() -> bool {
    let tried = "at=$(mktemp -d) && mount -t tmpfs none $at && umount $at && rmdir $at";
    let tried = Command::new("sh").args(["-c", tried]).stderr(Stdio::null()).status();
    let can = tried.is_ok_and(|status| status.success()) && Path::new("/dev/fuse").exists();
    if !can {
        eprintln!("skipped: mounting needs root and /dev/fuse");
    }
    can
}

fn read(file: &File, offset: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    let read = file.read_at(&mut data, offset).unwrap();
    data.truncate(read);
    data
}

fn error<T: std::fmt::Debug>(failed: std::io::Result<T>) -> Option<i32> {
    failed.unwrap_err().raw_os_error()
}

#[test]
fn the_file_has_the_bytes_of_the_device() {
    let Some(mut shown) = Shown::new() else { return };
    let file = shown.open(OFlags::empty());
    let there = file.metadata().unwrap();
    assert_eq!((there.len(), there.permissions().mode() & 0o7777, there.is_file()), (BYTES, 0o600, true));
    file.write_all_at(b"over a border", 505).unwrap();
    let mut sectors = [0; 1024];
    shown.device.read(0, &mut sectors).unwrap();
    assert_eq!(&sectors[505..518], b"over a border");
    // Changed by another front end: the kernel must not have cached the old data.
    assert_eq!(read(&file, 505, 13), b"over a border");
    shown.device.write(1, &[7; 512], false).unwrap();
    assert_eq!(read(&file, 510, 4), [b'a', b' ', 7, 7]);
    // Larger than the largest request.
    let large: Vec<u8> = (0..3 << 20).map(|at: u32| (at % 251) as u8).collect();
    file.write_all_at(&large, 100).unwrap();
    assert!(read(&file, 100, 3 << 20) == large);
    assert_eq!(read(&file, BYTES - 3, 10), [0; 3], "only up to the end");
    assert_eq!(file.write_at(&[1; 10], BYTES - 3).unwrap(), 3);
    assert_eq!((read(&file, BYTES, 1), error(file.write_at(&[1], BYTES))), (vec![], Some(Errno::NOSPC.raw_os_error())));
    file.set_len(BYTES).unwrap();
    assert_eq!(error(file.set_len(0)), Some(Errno::PERM.raw_os_error()));
    assert_eq!(error(file.set_permissions(fs::Permissions::from_mode(0o666))), Some(Errno::PERM.raw_os_error()));
    assert_eq!(error(fs::write(shown.path(), "all of it")), Some(Errno::PERM.raw_os_error()), "it is not truncated");
    let path = shown.path();
    drop(file);
    shown.mount = None;
    assert!(!path.exists(), "a file made for the mount is removed");
}

#[test]
fn what_is_synced_is_flushed() {
    let Some(shown) = Shown::new() else { return };
    let file = shown.open(OFlags::empty());
    file.write_all_at(&[1; 4096], 0).unwrap();
    assert_eq!((shown.count(Operation::Write), shown.count(Operation::Flush)), (1, 0));
    file.sync_data().unwrap();
    file.sync_all().unwrap();
    assert_eq!(shown.count(Operation::Flush), 2);
    for flags in [OFlags::DSYNC, OFlags::SYNC] {
        let fua = shown.count(Operation::WriteFua);
        shown.open(flags).write_all_at(&[2; 4096], 4096).unwrap();
        assert_eq!(shown.count(Operation::WriteFua), fua + 1);
    }
    shown.open(OFlags::DSYNC).write_all_at(&[3; 10], 10).unwrap();
    assert_eq!((shown.count(Operation::Write), shown.count(Operation::Flush)), (2, 3), "a part of a sector");
    drop(file);
    assert_eq!(shown.count(Operation::Flush), 3, "closing makes nothing durable");
}

#[test]
fn holes_are_punched_and_found() {
    let Some(shown) = Shown::new() else { return };
    let file = shown.open(OFlags::empty());
    let next = |from: fn(u64) -> SeekFrom, offset| seek(&file, from(offset));
    assert_eq!((next(SeekFrom::Data, 0), next(SeekFrom::Hole, 0)), (Err(Errno::NXIO), Ok(0)));
    file.write_all_at(&[5; 65536], 65536).unwrap();
    assert_eq!((next(SeekFrom::Data, 0), next(SeekFrom::Hole, 65540)), (Ok(65536), Ok(131_072)));
    let (punch, zero) = (FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, FallocateFlags::ZERO_RANGE);
    fallocate(&file, punch, 69632, 4096).unwrap();
    assert_eq!((next(SeekFrom::Hole, 65536), next(SeekFrom::Data, 69632)), (Ok(69632), Ok(73728)));
    fallocate(&file, zero, 80_001, 1000).unwrap();
    let mut expected = vec![5; 65536];
    expected[4096..8192].fill(0);
    expected[80_001 - 65536..][..1000].fill(0);
    assert!(read(&file, 65536, 65536) == expected);
    fallocate(&file, punch, 0, BYTES * 2).unwrap();
    assert_eq!(next(SeekFrom::Data, 0), Err(Errno::NXIO));
    assert_eq!(fallocate(&file, zero, 0, BYTES + 1), Err(Errno::NOSPC));
    assert_eq!(fallocate(&file, FallocateFlags::empty(), 0, 4096), Err(Errno::OPNOTSUPP));
    assert_eq!(next(SeekFrom::Hole, BYTES), Err(Errno::NXIO));
    assert_eq!(shown.count(Operation::Zero), 3, "parts of sectors are written");
}

/// Direct and cached readers and writers in parallel, each in its own sectors.
#[test]
fn many_use_it_at_once() {
    let Some(shown) = Shown::new() else { return };
    thread::scope(|scope| {
        for number in 0..8_u8 {
            let file = shown.open(OFlags::empty());
            scope.spawn(move || {
                for round in 0..50_u64 {
                    let offset = (round * 8 + u64::from(number)) * 700;
                    file.write_all_at(&[number + 1; 700], offset).unwrap();
                    assert_eq!(read(&file, offset, 700), [number + 1; 700]);
                }
            });
        }
    });
    let file = shown.open(OFlags::empty());
    for at in 0..400_u64 {
        assert_eq!(read(&file, at * 700, 700), [at as u8 % 8 + 1; 700], "{at}");
    }
}

#[test]
fn who_keeps_it_open_gets_errors_and_the_file_is_unmounted() {
    let Some(mut shown) = Shown::new() else { return };
    let file = shown.open(OFlags::empty());
    file.write_all_at(&[1; 512], 0).unwrap();
    shown.mount = None;
    assert!(!shown.path().exists());
    assert_eq!(error(file.write_at(&[2; 512], 0)), Some(Errno::SHUTDOWN.raw_os_error()));
    assert_eq!(error(file.sync_all()), Some(Errno::SHUTDOWN.raw_os_error()));
    let mut sector = [0; 512];
    shown.device.read(0, &mut sector).unwrap();
    assert_eq!(sector, [1; 512]);
}

#[test]
fn nothing_is_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "data").unwrap();
    assert!(matches!(check(&file), Err(MountError::NotEmpty { bytes: 4, .. })));
    assert!(matches!(check(folder.path()), Err(MountError::Directory(_))));
    assert!(matches!(check(Path::new("/dev/null")), Err(MountError::NotRegular(_))));
    let Some(mut shown) = Shown::new() else { return };
    assert!(matches!(check(&shown.path()), Err(MountError::Mounted(_))));
    let nowhere = folder.path().join("no/file");
    let refused = Mount::new(&nowhere, Arc::clone(&shown.device)).err().unwrap();
    assert!(matches!(&refused, MountError::System { source, .. } if source.kind() == ErrorKind::NotFound), "{refused}");
    // An empty file of the user stays.
    fs::write(&file, "").unwrap();
    shown.mount = Some(Mount::new(&file, Arc::clone(&shown.device)).unwrap());
    assert_eq!((file.metadata().unwrap().len(), shown.path().exists()), (BYTES, false));
    shown.mount = None;
    assert_eq!(file.metadata().unwrap().len(), 0);
}
