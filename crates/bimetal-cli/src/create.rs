//! `bimetal create`: a store for a device.

use bimetal_core::device::{Device, Resolved, Template};
use bimetal_core::scheme;
use bimetal_live::store::{CreateOptions, Directory, create};
use bimetal_study::number::{SIZES, with_unit};
use bimetal_study::prepare;

use crate::args::CreateArgs;
use crate::failure::Failure;
use crate::{inform, setup};

/// Capacity of a device that is fitted, unless it is given.
const CAPACITY: u64 = 512 << 20;

pub fn run(args: &CreateArgs) -> Result<(), Failure> {
    let resolved = device(args)?;
    let is_new = !args.store.exists();
    let directory = Directory::make(&args.store)
        .map_err(|error| Failure::failed(format!("{}: the directory cannot be made: {error}", args.store.display())))?;
    let regions = args.region.iter().map(|(name, path)| Ok((name.clone(), absolute(path.as_ref())?)));
    let options = CreateOptions {
        regions: regions.collect::<Result<_, Failure>>()?,
        disk: args.disk.as_deref().map(absolute).transpose()?,
        sparse: args.sparse,
        force: args.force,
        number: None,
    };
    create(&directory, &resolved.device, &options).map_err(|error| {
        if is_new {
            // Nothing was made in it, or it stays.
            let _ = std::fs::remove_dir(&args.store);
        }
        Failure::store(&args.store, error)
    })?;
    for note in &resolved.notes {
        inform(&format!("note: {note}"));
    }
    let store = args.store.display();
    inform(&format!("{store}: {}; serve it with `bimetal serve {store}`", summary(&resolved.device)));
    Ok(())
}

fn device(args: &CreateArgs) -> Result<Resolved, Failure> {
    let described = setup::device(&args.device)?;
    let scheme = args.scheme.clone().unwrap_or_else(|| described.scheme.clone());
    if scheme.is_empty() {
        return Err(Failure::usage("no scheme is given; hint: add `--scheme`, see `bimetal list schemes`"));
    }
    let scheme = scheme::find(&scheme)?;
    let capacity = args.capacity.map_or(CAPACITY, |capacity| capacity.0);
    let mut template = Template::for_trace(Some(described), &args.set, capacity)?;
    if let Some(capacity) = args.capacity {
        template.set("logical", &capacity.to_string())?;
    }
    Ok(prepare::device(template, scheme, &args.set)?)
}

/// Names in a store are taken from its own directory.
fn absolute(path: &std::path::Path) -> Result<String, Failure> {
    let absolute = std::path::absolute(path)?;
    let text = absolute.to_str().ok_or_else(|| Failure::usage(format!("`{}` is not UTF-8", absolute.display())))?;
    Ok(text.to_owned())
}

fn summary(device: &Device) -> String {
    let region = |region: &bimetal_core::device::Region| {
        format!("{} {}", with_unit(SIZES, region.capacity.bytes(device.logical) as f64), region.name)
    };
    let regions: Vec<String> = device.regions.iter().map(region).collect();
    let behind = if device.disks.is_empty() { "" } else { " before a disk" };
    format!("{} of `{}` on {}{behind}", with_unit(SIZES, device.logical.0 as f64), device.scheme, regions.join(" and "))
}
