//! Earlier contents and current users of a file or block device, examined before it becomes part of a store.
//!
//! `blkid`, the command of libblkid, recognises file systems, partition tables, swap, RAID and LVM members. Without
//! that command a device that is not blank is still refused, but the error does not say what it holds.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{SeekFrom, major, minor, seek};
use rustix::io::Errno;

use super::label::Label;
use super::superblock::Superblock;

/// Bytes at both ends of a block device that hold the signatures of its contents: file systems, partition tables and
/// their copies, RAID superblocks.
pub const END_BYTES: u64 = 1 << 20;

/// Contents of a file in words; `None` if it is empty or one hole.
///
/// # Errors
/// The file cannot be read.
pub fn occupant(file: &File, length: u64, is_block_device: bool) -> io::Result<Option<String>> {
    let is_blank = if is_block_device { has_blank_ends(file, length)? } else { is_hole(file, length)? };
    if is_blank {
        return Ok(None);
    }
    let mut head = vec![0; Label::BYTES];
    let read = file.read_at(&mut head, 0)?;
    head.resize(read.max(Label::BYTES), 0);
    if let Some(label) = Label::decode(&head) {
        return Ok(Some(format!("{} of store {:016x}", label.part, label.store)));
    }
    if Superblock::is_one(&head) {
        return Ok(Some("the superblock of a store".into()));
    }
    Ok(Some(signature(file).unwrap_or_else(|| if is_block_device { "data".into() } else { format!("{length} bytes") })))
}

/// Whether a file was never written: its whole length is a hole.
fn is_hole(file: &File, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(true);
    }
    match seek(file, SeekFrom::Data(0)) {
        // There are no data at or after byte 0.
        Err(Errno::NXIO) => Ok(true),
        Ok(_) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn has_blank_ends(file: &File, length: u64) -> io::Result<bool> {
    let end_bytes = END_BYTES.min(length);
    let mut bytes = vec![0; end_bytes as usize];
    for offset in [0, length - end_bytes] {
        file.read_exact_at(&mut bytes, offset)?;
        if bytes.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Contents that `blkid` recognises, in words.
fn signature(file: &File) -> Option<String> {
    // This path denotes the open file itself, even if its original path now leads to another file.
    let opened = format!("/proc/{}/fd/{}", std::process::id(), file.as_fd().as_raw_fd());
    let run = |program: &str| {
        Command::new(program).args(["-p", "-o", "export", &opened]).stdin(Stdio::null()).stderr(Stdio::null()).output()
    };
    // Users other than root often lack `/usr/sbin` and `/sbin` on their path.
    let output = ["blkid", "/usr/sbin/blkid", "/sbin/blkid"].into_iter().find_map(|program| run(program).ok())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let named = value("LABEL").map_or_else(String::new, |label| format!(" `{label}`"));
    match (value("TYPE"), value("USAGE"), value("PTTYPE")) {
        (Some(kind), Some("filesystem"), _) => Some(format!("a file system ({kind}){named}")),
        (Some(kind), ..) => Some(format!("a {kind} signature{named}")),
        (None, _, Some(table)) => Some(format!("a partition table ({table})")),
        (None, _, None) => None,
    }
}

/// The user of a file or block device, if it can be determined.
pub fn user(file: &Metadata) -> Option<String> {
    if !file.file_type().is_block_device() {
        return loop_device(file).map(|device| format!("it is attached to `{}`", device.display()));
    }
    let devices = with_partitions(file.rdev());
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    for mount in mounts.lines() {
        let fields: Vec<&str> = mount.split(' ').collect();
        let (number, point) = (fields.get(2)?, fields.get(4)?);
        // A file system over several devices has its own device number, and one of its devices as its source.
        let source = fields.iter().skip_while(|&&field| field != "-").nth(2);
        let source = source.and_then(|source| fs::metadata(unescaped(source)).ok());
        let source = source.filter(|source| source.file_type().is_block_device()).map(|source| numbered(source.rdev()));
        if devices.iter().any(|device| device == number || source.as_ref() == Some(device)) {
            return Some(format!("it is mounted at `{}`", unescaped(point).display()));
        }
    }
    let swaps = fs::read_to_string("/proc/swaps").ok()?;
    let is_swap = |line: &str| {
        let device = line.split_whitespace().next().and_then(|path| fs::metadata(unescaped(path)).ok());
        device.is_some_and(|device| devices.contains(&numbered(device.rdev())))
    };
    swaps.lines().skip(1).any(is_swap).then(|| "it is swap space in use".to_owned())
}

fn numbered(device: u64) -> String {
    format!("{}:{}", major(device), minor(device))
}

/// A block device and its partitions, as `MAJOR:MINOR`.
fn with_partitions(device: u64) -> Vec<String> {
    let mut devices = vec![numbered(device)];
    let entries = fs::read_dir(format!("/sys/dev/block/{}", numbered(device)));
    for entry in entries.into_iter().flatten().flatten() {
        if entry.path().join("partition").exists()
            && let Ok(number) = fs::read_to_string(entry.path().join("dev"))
        {
            devices.push(number.trim().to_owned());
        }
    }
    devices
}

/// The loop device to which a file is attached.
fn loop_device(file: &Metadata) -> Option<PathBuf> {
    for entry in fs::read_dir("/sys/block").ok()?.flatten() {
        let Ok(backing) = fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        let backing = fs::metadata(backing.trim_end_matches('\n'));
        if backing.is_ok_and(|backing| (backing.dev(), backing.ino()) == (file.dev(), file.ino())) {
            return Some(Path::new("/dev").join(entry.file_name()));
        }
    }
    None
}

/// Decodes a path as the kernel lists it, with blanks and backslashes as octal numbers.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = (first == b'\\').then(|| std::str::from_utf8(after.get(..3)?).ok()).flatten();
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// Refuses anything but regular files and block devices: a store reads and writes at offsets, and must not block on a
/// FIFO.
///
/// # Errors
/// The file has another kind, which the error names.
pub fn check_kind(file: &Metadata) -> io::Result<()> {
    let kind = file.file_type();
    let what = if kind.is_file() || kind.is_block_device() {
        return Ok(());
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a character device"
    };
    let text = format!("it is {what}; a store is kept in files and block devices");
    Err(io::Error::new(ErrorKind::InvalidInput, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_kernel_lose_their_escapes() {
        assert_eq!(unescaped(r"/mnt/a\040b\134c"), Path::new(r"/mnt/a b\c"));
        assert_eq!(unescaped(r"/mnt/\9"), Path::new(r"/mnt/\9"));
    }

    #[test]
    fn a_file_that_was_never_written_to_holds_nothing() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert_eq!(occupant(&file, 0, false).unwrap(), None);
        file.set_len(1 << 20).unwrap();
        assert_eq!(occupant(&file, 1 << 20, false).unwrap(), None);
        file.write_at(b"text", 9000).unwrap();
        assert_eq!(occupant(&file, 1 << 20, false).unwrap().as_deref(), Some("1048576 bytes"));
    }
}
