//! Runs of points: each becomes a [`Row`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bimetal_core::device;
use bimetal_core::replay::Progress;
use bimetal_core::scheme;

use super::failure::{Failure, FailureKind};
use super::point::Point;
use super::row::{Figures, Row};
use super::source::Loaded;
use crate::compare::Speed;
use crate::{StudyError, compare, memory, prepare};

/// Runs a point on its own. `folder` is the folder of the study file. The row contains any error, including a stop by
/// `served`.
pub fn run(point: &Point, folder: &Path, served: Progress<'_>) -> Row {
    match point.trace.load(folder) {
        Ok(trace) => run_on(point, &trace, &|bytes| memory::check_bytes(bytes), served),
        Err(failure) => Row::failed(point, "", failure),
    }
}

/// Runs a point on its trace. `admit` is called before memory is allocated, with the number of bytes. Its result is
/// held while the memory is in use. `served` gets the number of requests served so far, and may stop the run.
pub(crate) fn run_on<P>(
    point: &Point,
    trace: &Loaded,
    admit: &dyn Fn(u64) -> Result<P, StudyError>,
    served: Progress<'_>,
) -> Row {
    // A panic drops the scheme that was being built, and the trace is only read. Nothing inconsistent survives.
    let result = catch_unwind(AssertUnwindSafe(|| figures(point, trace, admit, served)));
    let result = result.unwrap_or_else(|panic| Err(Failure::panic(panic.as_ref())));
    match result {
        Ok((figures, speed)) => Row::done(point, &trace.fingerprint, figures, speed),
        Err(failure) => Row::failed(point, &trace.fingerprint, failure),
    }
}

fn figures<P>(
    point: &Point,
    trace: &Loaded,
    admit: &dyn Fn(u64) -> Result<P, StudyError>,
    served: Progress<'_>,
) -> Result<(Figures, Speed), Failure> {
    let device = point.device.device().map_err(StudyError::from)?;
    let scheme = scheme::find(&point.scheme).map_err(device::DeviceError::from).map_err(StudyError::from)?;
    let plan = point.replay.plan().map_err(|what| Failure { kind: FailureKind::Refused, what })?;
    let (workload, resolved) = prepare::prepare_one(trace.workload.clone(), device, scheme, &point.settings())?;
    let _permit = admit(resolved.memory_bytes())?;
    let entry = compare::entry(&resolved, &workload.requests, &workload.facts, &plan, served)?;
    let speed = entry.speed;
    Ok((Figures::of(entry, &workload.facts), speed))
}

#[cfg(test)]
mod tests {
    use bimetal_core::replay::to_the_end;

    use super::*;
    use crate::sweep::point::testing::point;
    use crate::sweep::source::Origin;

    #[test]
    fn a_point_that_was_sent_comes_to_the_same() {
        let sent: Point = serde_json::from_str(&serde_json::to_string(&point()).unwrap()).unwrap();
        let row = run(&sent, Path::new("."), &mut to_the_end);
        assert_eq!(row.failure, None);
        assert_eq!(row.without_speed(), run(&point(), Path::new("."), &mut to_the_end).without_speed());
    }

    #[test]
    fn what_goes_wrong_is_in_the_row() {
        let failure = |change: fn(&mut Point)| {
            let mut point = point();
            change(&mut point);
            let row = run(&point, Path::new("."), &mut to_the_end);
            assert!(row.figures.is_none() && row.speed.is_none());
            row.failure.unwrap()
        };
        let refused = failure(|point| drop(point.set.insert("slow.spare".into(), "0%".into())));
        assert!(refused.kind == FailureKind::Refused && refused.what.contains("spare"), "{refused:?}");
        let large = failure(|point| drop(point.set.insert("logical".into(), "900TiB".into())));
        assert_eq!(large.kind, FailureKind::Refused, "{large:?}");
        let unknown = failure(|point| point.scheme = "nosuch".into());
        assert!(unknown.what.contains("pagemap"), "{unknown:?}");
        let trace = Origin::Files {
            paths: vec!["none".into()],
            format: None,
            time_unit: None,
            columns: None,
            objects: None,
            action: None,
            volumes: None,
        };
        let mut point = point();
        point.trace.from = trace;
        assert_eq!(run(&point, Path::new("."), &mut to_the_end).failure.unwrap().kind, FailureKind::Trace);
    }

    #[test]
    fn memory_that_others_use_is_no_error_before_the_admission() {
        let mut point = point();
        point.set.insert("logical".into(), "14TiB".into());
        let trace = point.trace.load(Path::new(".")).unwrap();
        let asked = std::cell::Cell::new(0);
        let refuse = |bytes: u64| -> Result<(), _> {
            asked.set(bytes);
            Err(StudyError::Memory { needed_mib: 2, available_mib: 1 })
        };
        let failure = run_on(&point, &trace, &refuse, &mut to_the_end).failure.unwrap();
        assert!(failure.kind == FailureKind::Memory && failure.what.contains("2 MiB"), "{failure:?}");
        assert!(asked.get() > 32 << 30, "{} bytes are not more than a machine has", asked.get());
    }

    #[test]
    fn too_little_memory_and_a_panic_are_failed_points() {
        let trace = point().trace.load(Path::new(".")).unwrap();
        let refuse = |bytes: u64| -> Result<(), _> {
            assert!(bytes > 0);
            Err(StudyError::Memory { needed_mib: 2, available_mib: 1 })
        };
        let failure = run_on(&point(), &trace, &refuse, &mut to_the_end).failure.unwrap();
        assert!(failure.kind == FailureKind::Memory && failure.may_pass(), "{failure:?}");
        let row = run_on(&point(), &trace, &|_| -> Result<(), _> { panic!("a {}", "wall") }, &mut to_the_end);
        let failure = row.failure.unwrap();
        assert!(failure.kind == FailureKind::Panic && failure.what.contains("a wall"), "{failure:?}");
    }
}
