//! `bimetal create`: creates a store for a device.

use std::path::Path;

use bimetal_core::device::{Device, Resolved, Template};
use bimetal_core::scheme;
use bimetal_core::units::ByteSize;
use bimetal_live::store::{CreateOptions, Directory, StoreError, create};
use bimetal_study::number::{SIZES, with_unit};
use bimetal_study::prepare;

use crate::args::{CreateArgs, PlaceArgs};
use crate::failure::Failure;
use crate::manual::program_name;
use crate::{inform, setup};

/// Default capacity of a scaled device.
const CAPACITY: u64 = 512 << 20;

pub fn run(args: &CreateArgs) -> Result<(), Failure> {
    let resolved = device(args)?;
    make(&args.store, &args.place, |directory, options| create(&directory, &resolved.device, options))?;
    for note in &resolved.notes {
        inform(&format!("note: {note}"));
    }
    let store = args.store.display();
    inform(&format!("{store}: {}; serve it with `{} serve {store}`", summary(&resolved.device), program_name()));
    Ok(())
}

/// Makes a store in a directory, which is created if it is missing.
pub fn make<T>(
    store: &Path,
    place: &PlaceArgs,
    create: impl FnOnce(Directory, &CreateOptions) -> Result<T, StoreError>,
) -> Result<T, Failure> {
    let regions = place.region.iter().map(|(name, path)| Ok((name.clone(), absolute(path.as_ref())?)));
    let options = CreateOptions {
        regions: regions.collect::<Result<_, Failure>>()?,
        disk: place.disk.as_deref().map(absolute).transpose()?,
        sparse: place.sparse,
        force: place.force,
        ..CreateOptions::default()
    };
    let is_new = !store.exists();
    let directory = Directory::make(store)
        .map_err(|error| Failure::failed(format!("{}: the directory cannot be made: {error}", store.display())))?;
    create(directory, &options).map_err(|error| {
        if is_new {
            // Removed only if it is empty.
            let _ = std::fs::remove_dir(store);
        }
        Failure::store(store, error)
    })
}

fn device(args: &CreateArgs) -> Result<Resolved, Failure> {
    let described = setup::device(&args.device)?;
    let scheme = args.scheme.clone().unwrap_or_else(|| described.scheme.clone());
    if scheme.is_empty() {
        return Err(Failure::usage("no scheme is given; hint: add `--scheme`, see `bimetal list schemes`"));
    }
    fitted(described, &scheme, args.capacity, &args.set)
}

/// A device with a scheme, settings and, if given, a capacity.
pub fn fitted(
    described: Device,
    scheme: &str,
    capacity: Option<ByteSize>,
    settings: &[(String, String)],
) -> Result<Resolved, Failure> {
    let scheme = scheme::find(scheme)?;
    let mut template =
        Template::for_trace(Some(described), settings, capacity.map_or(CAPACITY, |capacity| capacity.0))?;
    if let Some(capacity) = capacity {
        template.set("logical", &capacity.to_string())?;
    }
    Ok(prepare::device(template, scheme, settings)?)
}

/// An absolute path, because a relative name in a store refers to its own directory.
pub fn absolute(path: &Path) -> Result<String, Failure> {
    let absolute = std::path::absolute(path)?;
    let text = absolute.to_str().ok_or_else(|| Failure::usage(format!("`{}` is not UTF-8", absolute.display())))?;
    Ok(text.to_owned())
}

/// A store's description in one line.
pub fn summary(device: &Device) -> String {
    let region = |region: &bimetal_core::device::Region| {
        format!("{} {}", with_unit(SIZES, region.capacity.bytes(device.logical) as f64), region.name)
    };
    let regions: Vec<String> = device.regions.iter().map(region).collect();
    let behind = if device.disks.is_empty() { "" } else { " in front of a disk" };
    format!("{} of `{}` on {}{behind}", with_unit(SIZES, device.logical.0 as f64), device.scheme, regions.join(" and "))
}
