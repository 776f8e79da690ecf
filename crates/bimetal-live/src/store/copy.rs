//! Copies: the data of one store in another, whatever scheme, device or capacity that has.
//!
//! Holes stay holes. A store that is being filled says that it is not complete until it is, as one that is being made does: a copy
//! that was cut short is never taken for one.

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

    /// The device that it is, if this program can read its description.
    fn device(&self) -> Option<&Device>;

    /// Hands all sectors that hold data and can be read to `take`, in ascending runs.
    ///
    /// # Errors
    /// Those of `take`, as of the device; and the store cannot be read to the end.
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

/// A store to be copied, and why it is read by its map if nobody asked for that.
pub type Opened = (Box<dyn Source>, Option<StoreError>);

/// Opens a store to be copied: by its scheme if this program has that in the store's version, otherwise, or if `by_map` asks for it,
/// by its map. Returns with it why its scheme could not be asked. The files stay as they are.
///
/// # Errors
/// There is none, somebody has it open, or it can be read neither by its scheme nor by its map.
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
            | StoreError::Contradiction { .. }),
        ) => match Mapped::open(storage.as_ref()) {
            Ok(mapped) => Ok((Box::new(mapped), Some(error))),
            Err(StoreError::NoMap { what }) => Err(StoreError::Uncopied { refusal: error.to_string(), what }),
            Err(_) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// A store that is being filled. It is not complete, and can only be made again, until [`NewStore::complete`] says so.
pub struct NewStore {
    store: Store,
}

impl NewStore {
    /// Makes it, as [`create`] does.
    ///
    /// # Errors
    /// As there.
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

    /// It has all its data: it is a store like any other, and closed.
    ///
    /// # Errors
    /// Something may not be durable, and it is not complete.
    pub fn complete(self) -> io::Result<()> {
        self.store.flush().map_err(|error| self.reason(error))?;
        self.store.inspect(|committer, _| committer.write_superblock(|superblock| superblock.is_complete = true))?;
        self.store.close().map_err(|error| self.reason(error))
    }

    fn reason(&self, error: IoError) -> io::Error {
        io::Error::other(self.store.status().failure.unwrap_or_else(|| error.to_string()))
    }
}
