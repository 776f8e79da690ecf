//! Files that are written and synced, and a record of them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use bimetal_core::part::random::{below, split_mix};

use crate::cycles::Work;
use crate::served::FrontEnd;

/// Writing threads, each with its own folder.
const WRITERS: u64 = 2;
/// Files of a folder.
const FILES: u64 = 24;
/// Maximum length of a file after an append.
const LENGTH_MAX: usize = 256 << 10;
/// Bytes of a block, the unit that is completely old or completely new after a crash.
const BLOCK: usize = 4096;

/// A change of a file, which is then synced.
#[derive(Clone)]
enum Change {
    /// Written to another file, which is renamed.
    Replace(u64, Vec<u8>),
    Overwrite(u64, usize, Vec<u8>),
    Append(u64, Vec<u8>),
    Truncate(u64, usize),
    Rename(u64, u64),
    Unlink(u64),
}

type Contents = BTreeMap<u64, Vec<u8>>;

/// The durable state of a folder.
struct Folder {
    name: String,
    random: u64,
    contents: Contents,
    /// The change in progress when the server was killed: it may have happened or not.
    pending: Option<Change>,
    acknowledged: u64,
}

/// Writers of files, over NBD or through the file mounted by the server.
pub struct Files<const FUSE: bool>(Vec<Folder>);

impl<const FUSE: bool> Files<FUSE> {
    pub fn new(seed: u64) -> Self {
        let folder = |number| Folder {
            name: format!("folder{number}"),
            random: seed << 8 | number,
            contents: Contents::new(),
            pending: None,
            acknowledged: 0,
        };
        Self((0..WRITERS).map(folder).collect())
    }
}

impl<const FUSE: bool> Work for Files<FUSE> {
    const CAPACITY: &str = "48MiB";
    const SPAN: Duration = Duration::from_millis(600);
    const FRONT_END: FrontEnd = if FUSE { FrontEnd::Fuse } else { FrontEnd::Nbd };

    fn prepare(&mut self, fs: &Path) -> Result<(), String> {
        for folder in &self.0 {
            fs::create_dir(fs.join(&folder.name)).map_err(|error| error.to_string())?;
        }
        sync(fs).map_err(|error| error.to_string())
    }

    fn verify(&mut self, fs: &Path) -> Result<u64, String> {
        let found: Result<Vec<Contents>, String> = self.0.iter().map(|folder| folder.verify(fs)).collect();
        let mut verified = 0;
        for (folder, found) in self.0.iter_mut().zip(found?) {
            verified += folder.contents.len() as u64;
            // The recovered state of a change in progress is final.
            (folder.contents, folder.pending) = (found, None);
        }
        Ok(verified)
    }

    fn work(&mut self, fs: &Path, lives: &(dyn Fn() -> bool + Sync)) -> String {
        thread::scope(|scope| {
            let writers: Vec<_> = self.0.iter_mut().map(|folder| scope.spawn(|| folder.work(fs, lives))).collect();
            writers.into_iter().map(|writer| writer.join().unwrap().to_string()).collect::<Vec<_>>().join("; ")
        })
    }

    fn acknowledged(&self) -> u64 {
        self.0.iter().map(|folder| folder.acknowledged).sum()
    }
}

impl Folder {
    fn work(&mut self, fs: &Path, lives: &(dyn Fn() -> bool + Sync)) -> io::Error {
        let folder = fs.join(&self.name);
        loop {
            let change = self.next_change();
            self.pending = Some(change.clone());
            if let Err(error) = change.perform(&folder) {
                return error;
            }
            if !lives() {
                return io::Error::other("the server no longer lives");
            }
            change.note(&mut self.contents);
            self.pending = None;
            self.acknowledged += 1;
        }
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend(split_mix(&mut self.random).to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    fn next_change(&mut self) -> Change {
        let file = below(&mut self.random, FILES);
        let length = self.contents.get(&file).map(Vec::len);
        let most = 1 << (8 + below(&mut self.random, 9));
        let size = 1 + below(&mut self.random, most) as usize;
        match (below(&mut self.random, 10), length) {
            (0..4, Some(length)) if length > 0 => {
                let at = below(&mut self.random, length as u64) as usize;
                Change::Overwrite(file, at, self.bytes(size.min(length - at)))
            }
            (4..6, Some(length)) if length + size <= LENGTH_MAX => Change::Append(file, self.bytes(size)),
            (6, Some(length)) => Change::Truncate(file, below(&mut self.random, length as u64 + 1) as usize),
            (7, Some(_)) => Change::Unlink(file),
            (8, Some(_)) => Change::Rename(file, (file + 1 + below(&mut self.random, FILES - 1)) % FILES),
            _ => Change::Replace(file, self.bytes(size)),
        }
    }

    /// The files found, if they are the recorded ones, with or without the change in progress.
    fn verify(&self, fs: &Path) -> Result<Contents, String> {
        let folder = fs.join(&self.name);
        let mut found = Contents::new();
        for file in 0..FILES {
            match fs::read(path(&folder, file)) {
                Ok(bytes) => drop(found.insert(file, bytes)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{}: {error}", path(&folder, file).display())),
            }
        }
        let mut after = self.contents.clone();
        if let Some(change) = &self.pending {
            change.note(&mut after);
        }
        if found == self.contents || found == after || self.is_half_done(&found, &after) {
            return Ok(found);
        }
        let wrong = (0..FILES).filter(|file| {
            let found = found.get(file);
            found != self.contents.get(file) && (found != after.get(file) || self.contents.get(file) == after.get(file))
        });
        let wrong: Vec<String> = wrong
            .map(|file| {
                let noted = [&self.contents, &after].map(|contents| difference(contents.get(&file), found.get(&file)));
                format!("file {file} {} before it, {} after it", noted[0], noted[1])
            })
            .collect();
        let pending = self.pending.as_ref().map(Change::what);
        Err(format!("LOST: {}, {} changes, then {pending:?}: {}", self.name, self.acknowledged, wrong.join("; ")))
    }

    /// Whether the change in progress is present in part, as the file system may leave it. After an overwrite, each
    /// block is old or new. After an append, the length may be new and whole blocks still zeros. A truncated file may
    /// have zeros up to the end of a block, and still its old length.
    fn is_half_done(&self, found: &Contents, after: &Contents) -> bool {
        let Some(Change::Overwrite(file, ..) | Change::Append(file, _) | Change::Truncate(file, _)) = &self.pending
        else {
            return false;
        };
        let (Some(bytes), old, new) = (found.get(file), &self.contents[file], &after[file]) else { return false };
        let others_are_same = found.len() == after.len()
            && found.iter().all(|(other, bytes)| other == file || self.contents.get(other) == Some(bytes));
        others_are_same
            && match self.pending {
                Some(Change::Overwrite(..)) => {
                    let mut blocks = bytes.chunks(BLOCK).zip(old.chunks(BLOCK)).zip(new.chunks(BLOCK));
                    bytes.len() == old.len() && blocks.all(|((found, old), new)| found == old || found == new)
                }
                Some(Change::Append(..)) => {
                    let mut longer = old.clone();
                    longer.resize(new.len(), 0);
                    let mut blocks = bytes.chunks(BLOCK).zip(longer.chunks(BLOCK)).zip(new.chunks(BLOCK));
                    (old.len()..=new.len()).contains(&bytes.len())
                        && blocks.all(|((found, longer), new)| longer.starts_with(found) || new.starts_with(found))
                }
                _ => {
                    let mut cut = old.clone();
                    let end = new.len().next_multiple_of(BLOCK).min(old.len());
                    cut[new.len()..end].fill(0);
                    *bytes == cut
                }
            }
    }
}

/// The difference between a file and its record.
fn difference(noted: Option<&Vec<u8>>, found: Option<&Vec<u8>>) -> String {
    let (Some(noted), Some(found)) = (noted, found) else {
        return if noted.is_some() { "was there" } else { "was not there" }.into();
    };
    let same = noted.iter().zip(found).take_while(|(noted, found)| noted == found).count();
    let zeros = found[same..].iter().take_while(|&&byte| byte == 0).count();
    format!("({} bytes) was like the {} that are there up to {same}, where {zeros} zeros are", noted.len(), found.len())
}

impl Change {
    /// A description of the change, for messages.
    fn what(&self) -> String {
        match self {
            Self::Replace(file, bytes) => format!("replace {file} by {} bytes", bytes.len()),
            Self::Overwrite(file, at, bytes) => format!("overwrite {} bytes of {file} from {at}", bytes.len()),
            Self::Append(file, bytes) => format!("append {} bytes to {file}", bytes.len()),
            Self::Truncate(file, length) => format!("cut {file} to {length}"),
            Self::Rename(from, to) => format!("rename {from} to {to}"),
            Self::Unlink(file) => format!("unlink {file}"),
        }
    }

    /// Applies the change to recorded files.
    fn note(&self, contents: &mut Contents) {
        match self {
            Self::Replace(file, bytes) => drop(contents.insert(*file, bytes.clone())),
            Self::Overwrite(file, at, bytes) => {
                contents.get_mut(file).unwrap()[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            Self::Append(file, bytes) => contents.get_mut(file).unwrap().extend(bytes),
            Self::Truncate(file, length) => contents.get_mut(file).unwrap().truncate(*length),
            Self::Rename(from, to) => {
                let bytes = contents.remove(from).unwrap();
                contents.insert(*to, bytes);
            }
            Self::Unlink(file) => drop(contents.remove(file)),
        }
    }

    /// Performs the change, which is durable when this returns.
    fn perform(&self, folder: &Path) -> io::Result<()> {
        let open = |file| OpenOptions::new().write(true).open(path(folder, file));
        match self {
            Self::Replace(file, bytes) => {
                let beside = folder.join("new");
                let mut new = File::create(&beside)?;
                new.write_all(bytes)?;
                new.sync_all()?;
                fs::rename(beside, path(folder, *file))?;
                sync(folder)
            }
            Self::Overwrite(file, at, bytes) => {
                let file = open(*file)?;
                file.write_all_at(bytes, *at as u64)?;
                file.sync_data()
            }
            Self::Append(file, bytes) => {
                let mut file = OpenOptions::new().append(true).open(path(folder, *file))?;
                file.write_all(bytes)?;
                file.sync_data()
            }
            Self::Truncate(file, length) => {
                let file = open(*file)?;
                file.set_len(*length as u64)?;
                file.sync_all()
            }
            Self::Rename(from, to) => {
                fs::rename(path(folder, *from), path(folder, *to))?;
                sync(folder)
            }
            Self::Unlink(file) => {
                fs::remove_file(path(folder, *file))?;
                sync(folder)
            }
        }
    }
}

fn path(folder: &Path, file: u64) -> PathBuf {
    folder.join(file.to_string())
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
