//! Predictions of many drives side by side, for `bimetal drives`.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use bimetal_core::device::{Device, DeviceError};
use rayon::prelude::*;
use serde::Serialize;

use super::measure::{Curve, measure};
use super::review::{Review, Role, reviews};
use super::verdict::{Assessment, Compared, compare};
use crate::number::{counted, plain};
use crate::{StudyError, memory};

/// The JSON output of `bimetal drives`.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Predictions {
    /// Version of this program.
    pub bimetal: &'static str,
    /// Every drive, in the order of the list. Devices of the user are in the given order.
    pub drives: Vec<Drive>,
    /// Accuracy for the drives to which constants were fitted.
    pub fitted: Assessment,
    /// Accuracy for the drives that use the constants of the others.
    pub predicted: Assessment,
}

/// A predicted drive.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Drive {
    /// Name on the command line.
    pub name: String,
    /// Maker and model.
    pub title: String,
    /// Its construction, in a line.
    pub device: String,
    /// Its role in the list.
    pub role: Role,
    /// Predicted figures, with the measured ones.
    pub figures: Vec<Compared>,
    /// Speed of writes over an empty drive: GB written, and MB/s since the previous point. Empty if no figure needs it.
    pub curve: Curve,
    /// Sources of its figures.
    pub sources: Vec<String>,
    /// Caveats for the reader.
    pub note: String,
}

/// An unknown drive name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no drive `{name}`; there are: {known}")]
pub struct ChoiceError {
    /// The given name.
    pub name: String,
    /// The valid names.
    pub known: String,
}

/// The drives chosen by names; all if none is given. A name is a drive, its device, or a part of a drive's name. Each
/// drive occurs once, in the order of the list.
///
/// # Errors
/// The first unknown name.
pub fn choose(names: &[String]) -> Result<Vec<&'static Review>, ChoiceError> {
    let mut chosen = Vec::new();
    for name in names {
        let found = called(name);
        if found.is_empty() {
            let known: Vec<&str> = reviews().iter().map(|review| review.name.as_str()).collect();
            return Err(ChoiceError { name: name.clone(), known: known.join(", ") });
        }
        chosen.extend(found);
    }
    let is_chosen = |review: &&Review| names.is_empty() || chosen.iter().any(|one| one.name == review.name);
    Ok(reviews().iter().filter(is_chosen).collect())
}

/// The drives with this name or device. If there are none, drives whose names contain it.
fn called(name: &str) -> Vec<&'static Review> {
    let of = |suits: &dyn Fn(&Review) -> bool| reviews().iter().filter(|review| suits(review)).collect::<Vec<_>>();
    let exact = of(&|review| review.name == name || review.device == name);
    if exact.is_empty() && !name.is_empty() { of(&|review| review.name.contains(name)) } else { exact }
}

/// Called from several threads.
pub trait Progress: Sync {
    /// The number of finished drives, and the number of all.
    fn drives(&self, done: usize, of: usize);

    /// Called after each test of a drive. Returns whether to continue. After it has returned a break, it must do so for
    /// every drive.
    fn go_on(&self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Upper limit of the memory for a drive, in bytes. All drives are scaled down to the same capacity.
const DRIVE_BYTES: u64 = 256 << 20;

/// Measures the devices of drives, at most `jobs` at once; 0 means one for each processor. The result does not depend
/// on `jobs`.
///
/// # Errors
/// An invalid device, insufficient memory, or a stop by `progress`.
pub fn predict(drives: &[&Review], jobs: usize, progress: &dyn Progress) -> Result<Predictions, StudyError> {
    let jobs = if jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    let jobs = jobs.min(drives.len()).max(1);
    memory::check_bytes(DRIVE_BYTES * jobs as u64)?;
    let done = AtomicUsize::new(0);
    progress.drives(0, drives.len());
    let one = |review: &&Review| {
        let drive = drive(review, progress)?;
        progress.drives(done.fetch_add(1, Ordering::Relaxed) + 1, drives.len());
        Ok(drive)
    };
    let every = || drives.par_iter().with_max_len(1).map(one).collect::<Result<Vec<Drive>, StudyError>>();
    let drives = match rayon::ThreadPoolBuilder::new().num_threads(jobs).build() {
        Ok(pool) => pool.install(every),
        // No threads can be started, so the drives run one after the other.
        Err(_) => drives.iter().map(one).collect(),
    }?;
    let of = |role| Assessment::of(drives.iter().filter(|drive| drive.role == role).flat_map(|drive| &drive.figures));
    let (fitted, predicted) = (of(Role::Fitted), of(Role::Predicted));
    Ok(Predictions { bimetal: env!("CARGO_PKG_VERSION"), drives, fitted, predicted })
}

fn drive(review: &Review, progress: &dyn Progress) -> Result<Drive, StudyError> {
    let mut flow = progress.go_on();
    if flow.is_break() {
        return Err(StudyError::Stopped);
    }
    let measured = measure(review, &mut || {
        flow = progress.go_on();
        flow
    })?;
    if flow.is_break() {
        return Err(StudyError::Stopped);
    }
    Ok(Drive {
        name: review.name.clone(),
        title: review.title.clone(),
        device: construction(&review.made()?)?,
        role: review.role,
        figures: compare(review, &measured),
        curve: measured.curve,
        sources: review.sources.clone(),
        note: review.note.clone(),
    })
}

/// The construction of a device, in a line.
fn construction(device: &Device) -> Result<String, DeviceError> {
    let resolved = device.resolve()?;
    let mut parts = vec![format!("{} GB", plain(device.logical.0 as f64 / 1e9))];
    parts.extend(resolved.regions.iter().map(|region| {
        let dies = counted(region.geometry.dies.into(), "die");
        let channels = counted(region.channels.into(), "channel");
        let cell = region.chip.cell.name().to_uppercase();
        format!("{dies} of {cell} ({}) on {channels}", region.chip.name)
    }));
    parts.extend(resolved.volumes.iter().map(|volume| format!("disk {}", volume.drive.name)));
    parts.push(format!("scheme {}", device.scheme));
    match &device.controller {
        Some(controller) => {
            let link = plain(controller.link_mb_per_s);
            parts.push(format!("link of {link} MB/s, buffer of {}", controller.buffer));
        }
        None => parts.push("no controller".into()),
    }
    let spare = resolved.spare();
    if spare > 0.0 {
        parts.push(format!("{} % spare", plain((spare * 100.0).round())));
    }
    Ok(parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str]) -> Result<Vec<&'static str>, ChoiceError> {
        let given: Vec<String> = given.iter().map(|&name| name.to_owned()).collect();
        choose(&given).map(|chosen| chosen.iter().map(|review| review.name.as_str()).collect())
    }

    #[test]
    fn drives_are_chosen_by_name_by_device_or_by_a_part_of_the_name() {
        assert_eq!(names(&[]).unwrap().len(), reviews().len());
        assert_eq!(names(&["wd-sn550-1tb"]).unwrap(), ["wd-sn550-1tb"]);
        assert_eq!(names(&["sn550", "wd-sn550-1tb"]).unwrap(), ["wd-sn550-500gb", "wd-sn550-1tb"]);
        let partitions = names(&["micron-7450-max-800gb"]).unwrap();
        assert!(partitions.len() > 1 && partitions.iter().all(|name| name.starts_with("micron-7450-max-")));
        for wrong in ["sn55x", ""] {
            let error = names(&["wd-sn550-1tb", wrong]).unwrap_err();
            assert!(error.name == wrong && error.known.contains("wd-sn550-500gb, wd-sn550-1tb"), "{error}");
        }
    }

    /// Counts drives, and stops after some tests.
    struct Seen(AtomicUsize, AtomicUsize);

    impl Progress for Seen {
        fn drives(&self, done: usize, _of: usize) {
            self.0.fetch_max(done, Ordering::Relaxed);
        }
        fn go_on(&self) -> ControlFlow<()> {
            let left = self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if left.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
    }

    fn quick() -> Vec<&'static Review> {
        choose(&["micron-7450-max-373gib".into(), "micron-7450-max-745gib".into()]).unwrap()
    }

    #[test]
    fn any_number_of_jobs_gives_the_same_result() {
        let run = |jobs| {
            let seen = Seen(AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
            let predictions = predict(&quick(), jobs, &seen).unwrap();
            assert_eq!(seen.0.into_inner(), 2);
            predictions
        };
        let (one, two) = (run(1), run(2));
        assert_eq!(one, two);
        assert_eq!(one.predicted.figures, 2);
        assert!(one.drives.iter().map(|drive| &drive.name).eq(quick().iter().map(|review| &review.name)));
        let [least, most] = [0, 1].map(|at| one.drives[at].figures[0].predicted.unwrap());
        assert!(1.0 < least && least < most, "fuller drives copy more: {least} {most}");
    }

    #[test]
    fn whoever_watches_can_put_an_end_to_it() {
        for tests in 0..2 {
            let seen = Seen(AtomicUsize::new(0), AtomicUsize::new(tests));
            assert!(matches!(predict(&quick(), 1, &seen), Err(StudyError::Stopped)));
        }
    }

    #[test]
    fn a_construction_is_a_line() {
        let review = choose(&["wd-sn550-1tb".into()]).unwrap()[0];
        let line = construction(&review.made().unwrap()).unwrap();
        assert!(line.contains(" dies of TLC (") && line.contains(" channels, scheme pslc-"), "{line}");
    }
}
