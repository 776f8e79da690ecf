//! The operations of the file, as requested by the kernel.
//!
//! The kernel keeps no copy of the data (`FOPEN_DIRECT_IO`): NBD clients may change the same device, and a page cached
//! by the kernel would hide their changes. A file system that is mounted through a loop device uses the page cache of
//! that device.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags};

use super::bytes::Bytes;
use crate::block_device::{BlockDevice, Extent, IoError, SECTOR_BYTES};

/// Largest request. The kernel has no larger ones unless `fs.fuse.max_pages_limit` is raised.
const REQUEST_BYTES: u32 = 1 << 20;
/// Maximum number of outstanding requests of asynchronous I/O.
const BACKGROUND_REQUESTS: u16 = 64;
/// Time for which the kernel may cache attributes, none of which changes.
const ATTRIBUTES_LAST: Duration = Duration::from_secs(3600);
/// Unit of discards of a loop device over the file, and the preferred size of requests.
const BLOCK_BYTES: u32 = 4096;
/// `whence` of `lseek`, in the kernel's numbers. The kernel handles the other kinds itself.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

thread_local! {
    /// Buffer for sectors read for the kernel, as long as the longest read of this thread.
    static SECTORS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A device that can be closed: this waits for requests under way, and later requests are refused.
#[derive(Clone)]
pub struct Gate(Arc<RwLock<Option<Bytes>>>);

impl Gate {
    pub fn new(device: Arc<dyn BlockDevice>) -> Self {
        Self(Arc::new(RwLock::new(Some(Bytes::new(device)))))
    }

    /// Waits for the requests under way, and refuses later ones.
    pub fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Performs a request, and waits until the modelled device would have answered.
    fn with<T>(&self, request: impl FnOnce(&Bytes) -> Result<T, IoError>) -> Result<T, Errno> {
        let bytes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(bytes) = bytes.as_ref() else { return Err(Errno::ESHUTDOWN) };
        let done = request(bytes).map_err(errno);
        bytes.settle();
        done
    }
}

/// The error number for the kernel.
fn errno(error: IoError) -> Errno {
    match error {
        IoError::Io => Errno::EIO,
        IoError::ReadOnly => Errno::EROFS,
        IoError::NoSpace => Errno::ENOSPC,
        IoError::OutOfRange => Errno::EINVAL,
        IoError::Shutdown => Errno::ESHUTDOWN,
    }
}

/// A file system of one file, its root, which is the device.
pub struct Disk {
    gate: Gate,
    attributes: FileAttr,
}

impl Disk {
    pub fn new(gate: Gate, sectors: u64, read_only: bool) -> Self {
        let now = SystemTime::now();
        let attributes = FileAttr {
            ino: INodeNo::ROOT,
            size: sectors * SECTOR_BYTES,
            // All sectors, including holes: programs assume that a file without blocks has no data.
            blocks: sectors,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind: FileType::RegularFile,
            perm: if read_only { 0o400 } else { 0o600 },
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        };
        Self { gate, attributes }
    }
}

fn reply_empty(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Disk {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A kernel without one of these is only slower. A refusal returns the nearest allowed value.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(REQUEST_BYTES);
        let _ = config.set_max_background(BACKGROUND_REQUESTS);
        Ok(())
    }

    fn getattr(&self, _: &Request, _: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&ATTRIBUTES_LAST, &self.attributes);
    }

    /// Setting times has no effect. Setting the size succeeds only if it is the current size.
    fn setattr(
        &self,
        _: &Request,
        _: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let is_another_size = size.is_some_and(|size| size != self.attributes.size);
        if is_another_size || mode.is_some() || uid.is_some() || gid.is_some() {
            return reply.error(Errno::EPERM);
        }
        reply.attr(&ATTRIBUTES_LAST, &self.attributes);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            // Closing the file makes nothing durable, as with a disk.
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        SECTORS.with_borrow_mut(|sectors| match self.gate.with(|bytes| bytes.read(offset, size as usize, sectors)) {
            Ok(data) => reply.data(data),
            Err(error) => reply.error(error),
        });
    }

    /// Each write of a file opened with `O_SYNC` or `O_DSYNC`, and each write with `RWF_DSYNC`, has these flags.
    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let sync = OFlags::from_bits_retain(flags.0.cast_unsigned()).contains(OFlags::DSYNC);
        match self.gate.with(|bytes| bytes.write(offset, data, sync)) {
            Ok(written) => reply.written(written as u32),
            Err(error) => reply.error(error),
        }
    }

    /// A kernel without `FOPEN_NOFLUSH` calls this when a file is closed.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply_empty(self.gate.with(Bytes::flush), reply);
    }

    /// Holes and zeroed ranges read as zeros afterwards. Space is not reserved: the store has it already, or is sparse.
    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let keeps_size = mode.contains(FallocateFlags::KEEP_SIZE);
        let is_known = [FallocateFlags::PUNCH_HOLE, FallocateFlags::ZERO_RANGE]
            .contains(&mode.difference(FallocateFlags::KEEP_SIZE));
        if !is_known {
            return reply.error(Errno::EOPNOTSUPP);
        }
        if !keeps_size && offset.saturating_add(length) > self.attributes.size {
            return reply.error(Errno::ENOSPC);
        }
        reply_empty(self.gate.with(|bytes| bytes.zero(offset, length)), reply);
    }

    fn lseek(&self, _: &Request, _: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let kind = match whence {
            SEEK_DATA => Extent::Allocated,
            SEEK_HOLE => Extent::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        match self.gate.with(|bytes| bytes.seek(offset, kind)) {
            Ok(Some(found)) => reply.offset(found as i64),
            Ok(None) => reply.error(Errno::ENXIO),
            Err(error) => reply.error(error),
        }
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.attributes.size / u64::from(BLOCK_BYTES);
        reply.statfs(blocks, 0, 0, 1, 0, BLOCK_BYTES, 255, BLOCK_BYTES);
    }
}
