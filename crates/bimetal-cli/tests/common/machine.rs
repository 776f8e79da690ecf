//! Programs and rights of the machine that tests need.
//!
//! A missing package is an error if `CI` is set; otherwise the test is skipped. A missing feature of the machine itself
//! (FUSE, loop devices, the rights for them) always skips the test.

use std::path::Path;
use std::process::{Command, Stdio};

/// Whether the programs are installed.
pub fn has(programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !is_there(program)).collect();
    if missing.is_empty() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "`CI` is set and these are missing: {missing:?}");
    eprintln!("skipped: {missing:?} are missing");
    false
}

/// Whether a program for additional checks is installed. Without it these checks are skipped, even if `CI` is set.
pub fn has_checker(program: &str) -> bool {
    let found = is_there(program);
    if !found {
        eprintln!("skipped: `{program}` is not installed");
    }
    found
}

fn is_there(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// Whether a file system served by a process can be mounted.
pub fn can_mount() -> bool {
    let tried = "losetup --find >/dev/null && at=$(mktemp -d) && mount -t tmpfs none $at && umount $at && rmdir $at";
    let tried = Command::new("sh").args(["-c", tried]).stderr(Stdio::null()).status();
    let can = tried.is_ok_and(|status| status.success()) && Path::new("/dev/fuse").exists();
    if !can {
        eprintln!("skipped: mounting needs root, /dev/fuse and loop devices");
    }
    can && has(&["nbdfuse", "nbdinfo", "fusermount3", "losetup", "mkfs.ext4", "e2fsck"])
}
