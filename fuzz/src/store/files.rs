//! Files in memory that can be copied fast: a copy shares every piece that neither side has written since.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bimetal_live::store::backing::{Access, Backing, Storage};

/// Bytes of a piece, the unit of sharing and copying.
const PIECE: usize = 4096;
/// Limit of a file's length in bytes, far above the length of any file of so small a device.
const FILE_MAX: u64 = 64 << 20;

/// Output file of a rescue, which is not a file of the store. Frames give the positions of sectors in it, so damaged
/// frames may give any position.
pub const IMAGE: &str = "rescued";

/// A file.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    pieces: Vec<Arc<[u8; PIECE]>>,
    length: usize,
}

impl Bytes {
    /// Its length in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Changes the length; added bytes are zeros.
    pub fn set_length(&mut self, length: usize) {
        if length < self.length {
            // Bytes behind the new end must be zeros if the file grows again.
            let end = self.length.min(length.next_multiple_of(PIECE));
            self.write(length, &[0; PIECE][..end - length]);
        }
        self.pieces.resize_with(length.div_ceil(PIECE), || Arc::new([0; PIECE]));
        self.length = length;
    }

    /// Fills `out` with the bytes from `at` on; bytes behind the end are zeros.
    pub fn read(&self, at: usize, out: &mut [u8]) {
        if at >= self.length {
            return out.fill(0);
        }
        let mut done = 0;
        while done < out.len() {
            let (piece, from) = ((at + done) / PIECE, (at + done) % PIECE);
            let end = out.len().min(done + PIECE - from);
            match self.pieces.get(piece) {
                Some(piece) => out[done..end].copy_from_slice(&piece[from..from + end - done]),
                None => out[done..].fill(0),
            }
            done = end;
        }
    }

    /// The `bytes` bytes from `at` on.
    pub fn get(&self, at: usize, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        self.read(at, &mut out);
        out
    }

    /// Writes `data` at `at`; the file grows if necessary.
    pub fn write(&mut self, at: usize, data: &[u8]) {
        if at + data.len() > self.length {
            self.set_length(at + data.len());
        }
        let mut done = 0;
        while done < data.len() {
            let (piece, from) = ((at + done) / PIECE, (at + done) % PIECE);
            let end = data.len().min(done + PIECE - from);
            Arc::make_mut(&mut self.pieces[piece])[from..from + end - done].copy_from_slice(&data[done..end]);
            done = end;
        }
    }
}

/// Files by name, and the last access that a store should never make.
#[derive(Clone, Debug, Default)]
struct Folder {
    files: BTreeMap<String, Bytes>,
    complaint: Option<String>,
}

/// Files by name.
#[derive(Debug, Default)]
pub struct Files {
    folder: Arc<Mutex<Folder>>,
}

impl Clone for Files {
    fn clone(&self) -> Self {
        Self { folder: Arc::new(Mutex::new(self.lock().clone())) }
    }
}

impl Files {
    fn lock(&self) -> MutexGuard<'_, Folder> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another handle to the same files.
    pub fn share(&self) -> Self {
        Self { folder: Arc::clone(&self.folder) }
    }

    /// Reads or changes a file; a missing file is created empty.
    pub fn with<T>(&self, name: &str, work: impl FnOnce(&mut Bytes) -> T) -> T {
        work(self.lock().files.entry(name.into()).or_default())
    }

    /// Names and lengths.
    pub fn names(&self) -> Vec<(String, usize)> {
        self.lock().files.iter().map(|(name, file)| (name.clone(), file.length)).collect()
    }

    /// The last access that a store should never make, if any.
    pub fn complaint(&self) -> Option<String> {
        self.lock().complaint.clone()
    }
}

impl Storage for Files {
    fn open(&self, name: &str, access: Access, _direct: bool) -> io::Result<Box<dyn Backing>> {
        let mut folder = self.lock();
        match (folder.files.contains_key(name), access == Access::Create) {
            (false, true) => drop(folder.files.insert(name.into(), Bytes::default())),
            (true, true) => return Err(ErrorKind::AlreadyExists.into()),
            (false, false) => return Err(ErrorKind::NotFound.into()),
            (true, false) => {}
        }
        Ok(Box::new(Handle { files: self.share(), name: name.into() }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.lock().files.contains_key(name))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

struct Handle {
    files: Files,
    name: String,
}

impl Handle {
    fn with<T>(&self, work: impl FnOnce(&mut Bytes) -> T) -> T {
        self.files.with(&self.name, work)
    }

    /// Refuses an access beyond `FILE_MAX`. Records a complaint, except about the output file of a rescue.
    fn check_end(&self, offset: u64, bytes: u64) -> io::Result<()> {
        if offset.saturating_add(bytes) <= FILE_MAX {
            return Ok(());
        }
        if self.name != IMAGE {
            self.files.lock().complaint = Some(format!("`{}` is changed at byte {offset}", self.name));
        }
        Err(ErrorKind::FileTooLarge.into())
    }
}

impl Backing for Handle {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.with(|file| file.read(usize::try_from(offset).unwrap_or(usize::MAX), out));
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check_end(offset, data.len() as u64)?;
        self.with(|file| file.write(offset as usize, data));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.with(|file| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(file.length);
            let end = usize::try_from(offset.saturating_add(bytes)).unwrap_or(usize::MAX).min(file.length);
            file.write(start, &vec![0; end - start]);
        });
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.with(|file| file.length as u64))
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.check_end(bytes, 0)?;
        self.with(|file| file.set_length(bytes as usize));
        Ok(())
    }

    fn occupant(&self) -> io::Result<Option<String>> {
        Ok((self.length()? > 0).then(|| "data".to_owned()))
    }

    fn clear(&self) -> io::Result<()> {
        self.set_len(0)
    }
}
