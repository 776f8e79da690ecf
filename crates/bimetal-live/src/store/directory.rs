//! A directory of files, and block devices beside it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, OFlags};

use super::backing::{Access, Backing, Storage};

/// A directory that holds a store. A name that is an absolute path is that file or block device.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// A directory that is there.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Makes the directory if it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Ok(Self::new(path))
    }
}

impl Storage for Directory {
    fn open(&self, name: &str, access: Access, direct: bool) -> io::Result<Box<dyn Backing>> {
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read);
        if access == Access::Create {
            options.create(true).truncate(true);
        }
        if direct {
            options.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        let file = options.open(self.path.join(name))?;
        let is_fixed = file.metadata()?.file_type().is_block_device();
        Ok(Box::new(OpenFile { file, is_fixed }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.path.join(name).try_exists()
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn free_bytes(&self) -> Option<u64> {
        let space = rustix::fs::statvfs(&self.path).ok()?;
        Some(space.f_bavail * space.f_frsize)
    }
}

/// An open file, such as one that an image is rescued to.
pub fn image(file: File) -> Box<dyn Backing> {
    Box::new(OpenFile { file, is_fixed: false })
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    is_fixed: bool,
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
        self.file.write_all_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, offset, bytes) {
            // A file system without holes keeps what is there.
            Err(rustix::io::Errno::OPNOTSUPP) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
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
}
