//! The usual storage of a store: a directory of files, and block devices outside it.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, AtFlags, FallocateFlags, FlockOperation, OFlags, StatxFlags, fadvise, fcntl_lock, statx};
use rustix::io::Errno;

use super::backing::{Access, Backing, Identity, Storage, collect, is_full, read_bounced};
use super::descriptions::Descriptions;
use super::existing::{self, END_BYTES};
use super::frame::SECTOR;

/// Permissions of a store's files and of its directory: access for the owner only.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// The directory of a store. A name that is an absolute path stands for that file or block device.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// A directory that exists.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Creates the directory with access for the owner only, unless it exists.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn make(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
            // Regardless of the umask.
            Ok(()) => fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) => return Err(error),
        }
        Ok(Self::new(path))
    }
}

impl Storage for Directory {
    fn open(&self, name: &str, access: Access, direct: bool) -> io::Result<Box<dyn Backing>> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read);
        // If the path becomes a FIFO in the meantime, the open does not block.
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        if access == Access::Create {
            options.create_new(true).mode(FILE_MODE);
        } else {
            // A link in a store that someone else made could lead to any file.
            if Path::new(name).is_relative() {
                refuse_link(&path)?;
                flags |= OFlags::NOFOLLOW;
            }
            let found = fs::metadata(&path)?;
            existing::check_kind(&found)?;
            // `O_EXCL` on a block device: it is not mounted, and cannot be while it is open.
            flags.set(OFlags::EXCL, found.file_type().is_block_device() && access == Access::Write);
        }
        flags.set(OFlags::DIRECT, direct);
        let opened = options.custom_flags(flags.bits() as i32).open(&path);
        let file = opened.map_err(|error| busy(error, &path))?;
        let found = file.metadata()?;
        existing::check_kind(&found)?;
        if access == Access::Create {
            // Regardless of the umask.
            file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        }
        if direct {
            check_direct(&file)?;
        }
        let descriptions = Descriptions::of(&file)?;
        Ok(Box::new(OpenFile { file, descriptions, is_fixed: found.file_type().is_block_device(), is_direct: direct }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        // A dangling symbolic link counts as existing.
        match fs::symlink_metadata(self.path.join(name)) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn free_bytes(&self) -> Option<u64> {
        let space = rustix::fs::statvfs(&self.path).ok()?;
        Some(space.f_bavail * space.f_frsize)
    }
}

/// Refuses a symbolic link in place of a store's own file.
fn refuse_link(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_symlink() {
        return Ok(());
    }
    let what = "it is a symbolic link, which could lead to any file; hint: if the link is your own, move the file itself into \
                the store";
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}

/// `STATX_DIOALIGN`, which the library does not name.
const DIRECT_ALIGNMENT: StatxFlags = StatxFlags::from_bits_retain(0x2000);

/// Refuses direct access to a file or block device that takes only larger blocks than sectors.
fn check_direct(file: &File) -> io::Result<()> {
    let found = statx(file, "", AtFlags::EMPTY_PATH, DIRECT_ALIGNMENT);
    let of_file = found.ok().filter(|found| found.stx_mask & DIRECT_ALIGNMENT.bits() != 0);
    let of_disk = || rustix::fs::ioctl_blksszget(file).unwrap_or(SECTOR as u32);
    let align = of_file.map_or_else(of_disk, |found| found.stx_dio_offset_align);
    if align <= SECTOR as u32 {
        return Ok(());
    }
    let what = format!(
        "its disk has blocks of {align} bytes, and direct access takes blocks of {SECTOR}; hint: leave out `--direct`"
    );
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}

/// Adds the user of a block device to the error, if it cannot be opened exclusively.
fn busy(error: io::Error, path: &Path) -> io::Error {
    if error.kind() != ErrorKind::ResourceBusy {
        return error;
    }
    let user = fs::metadata(path).ok().and_then(|file| existing::user(&file));
    io::Error::new(ErrorKind::ResourceBusy, user.unwrap_or_else(|| "another program has it open".into()))
}

/// An open file as a backing, such as the output of a rescue.
///
/// # Errors
/// The process has too many open files.
pub fn image(file: File) -> io::Result<Box<dyn Backing>> {
    let descriptions = Descriptions::of(&file)?;
    Ok(Box::new(OpenFile { file, descriptions, is_fixed: false, is_direct: false }))
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// Descriptions for syncs.
    descriptions: Descriptions,
    is_fixed: bool,
    is_direct: bool,
}

/// Maximum buffers of one `preadv` or `pwritev` call: the system's limit.
const PLACES_MAX: usize = 1024;

impl OpenFile {
    /// Reads into unaligned buffers until they are full or the file ends; the rest is zeros.
    fn scatter(&self, mut offset: u64, mut out: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        while !out.is_empty() {
            let most = out.len().min(PLACES_MAX);
            match rustix::io::preadv(&self.file, &mut out[..most], offset) {
                Ok(0) => {
                    out.iter_mut().for_each(|place| place.fill(0));
                    break;
                }
                Ok(bytes) => {
                    IoSliceMut::advance_slices(&mut out, bytes);
                    offset += bytes as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes from unaligned buffers.
    fn gather(&self, mut offset: u64, data: &[IoSlice<'_>]) -> io::Result<()> {
        for places in data.chunks(PLACES_MAX) {
            let written = loop {
                match rustix::io::pwritev(&self.file, places, offset) {
                    Err(Errno::INTR) => {}
                    written => break written?,
                }
            };
            // The rest of a write that a full file system or a signal cut short is written buffer by buffer.
            let mut done = written;
            for place in places {
                let now = done.min(place.len());
                self.write_at(offset + now as u64, &place[now..])?;
                done -= now;
                offset += place.len() as u64;
            }
        }
        Ok(())
    }

    fn fallocate(&self, flags: FallocateFlags, offset: u64, bytes: u64) -> io::Result<()> {
        loop {
            match rustix::fs::fallocate(&self.file, flags, offset, bytes) {
                Err(Errno::INTR) => {}
                // A file system without `fallocate` keeps the bytes, or allocates when it is written.
                Err(Errno::OPNOTSUPP) | Ok(()) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Backing for OpenFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < out.len() {
            match self.file.read_at(&mut out[done..], offset + done as u64) {
                Ok(0) => {
                    out[done..].fill(0);
                    return Ok(());
                }
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        // Data that were held in memory may lie at any address, and direct access takes aligned ones only.
        if self.is_direct && !data.as_ptr().addr().is_multiple_of(SECTOR) {
            return self.file.write_all_at(collect(&[IoSlice::new(data)]).bytes(), offset);
        }
        self.file.write_all_at(data, offset)
    }

    fn read_vectored_at(&self, offset: u64, out: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        if self.is_direct { read_bounced(out, |bytes| self.read_at(offset, bytes)) } else { self.scatter(offset, out) }
    }

    fn write_vectored_at(&self, offset: u64, data: &[IoSlice<'_>]) -> io::Result<()> {
        if self.is_direct { self.write_at(offset, collect(data).bytes()) } else { self.gather(offset, data) }
    }

    fn sync(&self) -> io::Result<()> {
        // Data that a failed sync could not place may be lost: the failure is then an I/O error, not a lack of space
        // that passes.
        let synced = self.descriptions.sync(File::sync_data);
        synced.map_err(|error| if is_full(&error) { io::Error::other(error) } else { error })
    }

    fn drop_cached(&self) -> io::Result<()> {
        Ok(fadvise(&self.file, 0, None, Advice::DontNeed)?)
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.fallocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, bytes)
    }

    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        if self.is_fixed || bytes == 0 { Ok(()) } else { self.fallocate(FallocateFlags::KEEP_SIZE, offset, bytes) }
    }

    fn length(&self) -> io::Result<u64> {
        if self.is_fixed { (&self.file).seek(SeekFrom::End(0)) } else { Ok(self.file.metadata()?.len()) }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    fn lock(&self, shared: bool) -> io::Result<()> {
        let taken = if shared { self.file.try_lock_shared() } else { self.file.try_lock() };
        taken.map_err(|error| match error {
            TryLockError::WouldBlock => ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })
    }

    fn identity(&self) -> io::Result<Option<Identity>> {
        let found: Metadata = self.file.metadata()?;
        if self.is_fixed {
            return Ok(Some(Identity { device: found.rdev(), inode: 0, born_ns: 0 }));
        }
        let born = statx(&self.file, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME);
        let born = born.ok().filter(|found| found.stx_mask & StatxFlags::BTIME.bits() != 0);
        let born_ns = born.map_or(0, |found| {
            (found.stx_btime.tv_sec as u64).wrapping_mul(1_000_000_000) + u64::from(found.stx_btime.tv_nsec)
        });
        Ok(Some(Identity { device: found.dev(), inode: found.ino(), born_ns }))
    }

    fn occupant(&self) -> io::Result<Option<String>> {
        existing::occupant(&self.file, self.length()?, self.is_fixed)
    }

    fn claim(&self) -> io::Result<()> {
        self.lock(false)?;
        let found = self.file.metadata()?;
        if self.is_fixed {
            return Ok(());
        }
        if let Some(user) = existing::user(&found) {
            return Err(io::Error::new(ErrorKind::ResourceBusy, user));
        }
        // QEMU and others lock byte ranges of their images, not the whole file.
        match fcntl_lock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::AGAIN | Errno::ACCESS) => Err(ErrorKind::WouldBlock.into()),
            // A file system without such locks has no holders of them.
            _ => Ok(()),
        }
    }

    fn clear(&self) -> io::Result<()> {
        if !self.is_fixed {
            self.file.set_permissions(Permissions::from_mode(FILE_MODE))?;
            return self.file.set_len(0);
        }
        let length = self.length()?;
        let zeros = vec![0; END_BYTES.min(length) as usize];
        for offset in [0, length - zeros.len() as u64] {
            self.file.write_all_at(&zeros, offset)?;
        }
        Ok(())
    }
}
