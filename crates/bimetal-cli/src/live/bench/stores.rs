//! The stores of a benchmark, preconditioned.

use std::path::Path;
use std::sync::Arc;

use bimetal_core::device::Template;
use bimetal_core::part::random::{below, split_mix};
use bimetal_core::request::SECTOR_BYTES;
use bimetal_core::scheme::SchemeSpec;
use bimetal_live::store::{CreateOptions, Directory, OpenOptions, Store, create};
use bimetal_live::{BlockDevice, IoError};
use bimetal_study::number::{SIZES, with_unit};
use bimetal_study::prepare;

use super::{Interrupted, REQUEST_BYTES};
use crate::failure::Failure;
use crate::progress::StepBar;

/// A store of a scheme for `capacity` bytes of data, of which `used` are in use: written in order, then at random with
/// as many bytes as the flash has, so that garbage collection reaches its steady state.
pub(super) fn preconditioned(
    scheme: &'static SchemeSpec,
    path: &Path,
    capacity: u64,
    used: u64,
    (interrupted, bar): (&Interrupted, &StepBar),
) -> Result<Arc<Store>, Failure> {
    bar.at(&format!("filling a store of {}, `{}`", with_unit(SIZES, capacity as f64), scheme.name));
    let resolved = prepare::device(Template::bare_dies(capacity)?, scheme, &[])?;
    let directory = Directory::make(path)?;
    // Sparse, like the files of the other servers; a directory in memory may lack the space for unused capacity.
    let options = CreateOptions { sparse: true, ..CreateOptions::default() };
    create(&directory, &resolved.device, &options).map_err(|error| Failure::store(path, error))?;
    let store =
        Store::open(Arc::new(directory), OpenOptions::default()).map_err(|error| Failure::store(path, error))?;
    let failed = |error: IoError| Failure::failed(format!("{}: {error}", path.display()));
    let page_bytes = u64::from(REQUEST_BYTES);
    let sectors = page_bytes / SECTOR_BYTES;
    let data: Vec<u8> = (0..=u8::MAX).cycle().zip(0..REQUEST_BYTES).map(|(byte, _)| byte | 1).collect();
    let mut random = 1;
    let pages = used / page_bytes;
    for page in 0..pages {
        interrupted.check()?;
        store.write(page * sectors, &data, false).map_err(failed)?;
    }
    let flash: u64 = resolved.shape.regions.iter().map(|region| region.geometry.capacity_bytes()).sum();
    for _ in 0..flash / page_bytes {
        interrupted.check()?;
        split_mix(&mut random);
        store.write(below(&mut random, pages) * sectors, &data, false).map_err(failed)?;
    }
    bar.step();
    Ok(Arc::new(store))
}
