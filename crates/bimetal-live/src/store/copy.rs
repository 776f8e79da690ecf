//! Copies: the data of one store in another, which may have any scheme, device or capacity.
//!
//! Holes stay holes. The new store is marked as incomplete until the copy is complete, like a store under creation. So
//! an interrupted copy is never mistaken for a store.

use std::io;
use std::sync::Arc;

use bimetal_core::device::Device;

use super::backing::Storage;
use super::create::{CreateOptions, create};
use super::device::Store;
use super::error::{InFile, StoreError};
use super::extract::{Read, Take, read_range};
use super::files::OpenOptions;
use super::map::Mapped;
use crate::block_device::{BlockDevice, IoError};

/// A store that can be copied.
pub trait Source {
    /// Sectors of the device.
    fn sectors(&self) -> u64;

    /// Sectors that hold data.
    fn written_sectors(&self) -> u64;

    /// The device, if this program can parse its description.
    fn device(&self) -> Option<&Device>;

    /// Hands all readable sectors that hold data to `take`, in ascending runs.
    ///
    /// # Errors
    /// Errors of `take` and of the device; or the store cannot be read to the end.
    fn read_all(&mut self, take: Take<'_>) -> Result<Read, StoreError>;
}

/// A store that is read by its scheme.
struct ByScheme(Store);

impl Source for ByScheme {
    fn sectors(&self) -> u64 {
        self.0.sectors()
    }

    fn written_sectors(&self) -> u64 {
        self.0.status().written_sectors
    }

    fn device(&self) -> Option<&Device> {
        Some(&self.0.resolved().device)
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<Read, StoreError> {
        read_range(&self.0, 0..self.0.sectors(), take).in_file("the device")
    }
}

impl Source for Mapped {
    fn sectors(&self) -> u64 {
        self.sectors()
    }

    fn written_sectors(&self) -> u64 {
        self.written_sectors()
    }

    fn device(&self) -> Option<&Device> {
        self.device()
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<Read, StoreError> {
        self.read_all(take)
    }
}

/// A store to copy, and the reason why it is read by its map if the user did not ask for that.
pub type Opened = (Box<dyn Source>, Option<StoreError>);

/// Opens a store to copy. It is read by its scheme if this program has the scheme in the store's version. Otherwise, or
/// if `by_map` is set, it is read by its map; the reason is returned with it. No file is changed.
///
/// # Errors
/// There is no store, it is in use, or neither its scheme nor its map can read it.
pub fn source(storage: &Arc<dyn Storage>, by_map: bool) -> Result<Opened, StoreError> {
    if by_map {
        return Ok((Box::new(Mapped::open(storage.as_ref())?), None));
    }
    match Store::open(Arc::clone(storage), OpenOptions { read_only: true, ..OpenOptions::default() }) {
        Ok(store) => Ok((Box::new(ByScheme(store)), None)),
        Err(
            error @ (StoreError::SchemeVersion { .. }
            | StoreError::Scheme(_)
            | StoreError::Device(_)
            | StoreError::Damaged { .. }
            | StoreError::Journal { .. }
            | StoreError::Contradiction { .. }
            // Neither journal nor checkpoints are needed for the map.
            | StoreError::Io { .. }
            | StoreError::Foreign { .. }),
        ) => match Mapped::open(storage.as_ref()) {
            Ok(mapped) => Ok((Box::new(mapped), Some(error))),
            Err(StoreError::NoMap { what }) => Err(StoreError::Uncopied { refusal: error.to_string(), what }),
            Err(_) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// A store that is being filled. Until [`NewStore::complete`] it is incomplete and can only be created again.
pub struct NewStore {
    store: Store,
}

impl NewStore {
    /// Creates it like [`create`].
    ///
    /// # Errors
    /// The errors of [`create`].
    pub fn create(storage: Arc<dyn Storage>, device: &Device, options: &CreateOptions) -> Result<Self, StoreError> {
        create(storage.as_ref(), device, &CreateOptions { is_to_be_filled: true, ..options.clone() })?;
        let open = OpenOptions { is_being_filled: true, opening: options.number, ..OpenOptions::default() };
        Ok(Self { store: Store::open(storage, open)? })
    }

    /// Sectors of the device.
    pub fn sectors(&self) -> u64 {
        self.store.sectors()
    }

    /// Writes sectors.
    ///
    /// # Errors
    /// They may not have been written.
    pub fn write(&self, sector: u64, bytes: &[u8]) -> io::Result<()> {
        self.store.write(sector, bytes, false).map_err(|error| self.reason(error))
    }

    /// All data are written: marks the store as complete and closes it.
    ///
    /// # Errors
    /// Some data may not be durable, and the store is not complete.
    pub fn complete(self) -> io::Result<()> {
        self.store.flush().map_err(|error| self.reason(error))?;
        self.store.inspect(|committer, _| committer.write_superblock(|superblock| superblock.is_complete = true))?;
        self.store.close().map_err(|error| self.reason(error))
    }

    fn reason(&self, error: IoError) -> io::Error {
        io::Error::other(self.store.status().failure.unwrap_or_else(|| error.to_string()))
    }
}
