//! Generated workloads as traces.

use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::replay::{Progress, to_the_end};
use bimetal_core::request::{Op, Request, SECTOR_BYTES};
use bimetal_core::trace::{MAX_BYTES, Trace, TraceDevice};
use bimetal_core::workload::like::{self, Comparison, Model};
use bimetal_core::workload::{self, Judged, Requests, WorkloadError};

use crate::prepare::Workload;
use crate::{StudyError, memory};

/// Format name in results whose requests come from no file.
pub const FORMAT: &str = "generated";

/// Sizes of trace devices are rounded up to this number of sectors: 1 MiB.
const DEVICE_STEP: u64 = 2048;

/// Requests between two calls of the progress callback.
const PROGRESS_STEP: usize = 1 << 14;

/// Generates a workload.
///
/// # Errors
/// An unknown workload or parameter, parameters that do not fit together, or more requests than memory holds.
pub fn trace(name: &str, settings: &[(String, String)], seed: u64) -> Result<Trace, StudyError> {
    trace_with_progress(name, settings, seed, &mut to_the_end)
}

/// [`trace`], with regular calls of `progress` with the number of requests so far.
///
/// # Errors
/// The errors of [`trace`], or `progress` stopped it.
pub fn trace_with_progress(
    name: &str,
    settings: &[(String, String)],
    seed: u64,
    progress: Progress<'_>,
) -> Result<Trace, StudyError> {
    let requests = workload::build(name, settings, seed)?;
    check_memory(requests.size_hint().1.map_or(0, |count| count as u64), 0)?;
    let trace = drawn(name, requests, progress)?;
    if trace.devices.iter().any(|device| device.sectors > MAX_BYTES / SECTOR_BYTES) {
        let reason = "its requests end beyond 2^63 bytes, where no trace is read; set a smaller `span`".to_owned();
        return Err(WorkloadError::Settings { workload: workload::find(name)?.name, reason }.into());
    }
    Ok(trace)
}

/// All requests of a generator.
fn drawn(name: &str, generator: Requests, progress: Progress<'_>) -> Result<Trace, StudyError> {
    let mut requests = Vec::with_capacity(generator.size_hint().0);
    for request in generator {
        requests.push(request);
        if requests.len().is_multiple_of(PROGRESS_STEP) && progress(requests.len() as u64).is_break() {
            return Err(StudyError::Stopped);
        }
    }
    Ok(collected(name, FORMAT, requests))
}

/// All parameters of a workload, including those that have default values.
///
/// # Errors
/// An unknown workload or parameter.
pub fn settings(name: &str, settings: &[(String, String)]) -> Result<Vec<(String, String)>, StudyError> {
    Ok(workload::settings(name, settings)?)
}

/// Compares a generated workload with the published characteristics.
///
/// # Errors
/// An unknown workload or parameter.
pub fn targets(name: &str, settings: &[(String, String)], trace: &Trace) -> Result<Vec<Judged>, StudyError> {
    let targets = (workload::find(name)?.targets)(settings).map_err(WorkloadError::from)?;
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let profile = Profile::of(&trace.requests, &CurvePlan { points: 0, sampling_rate: None });
    Ok(targets.iter().map(|target| target.judge(&profile)).collect())
}

bimetal_core::parameters! {
    "--like";
    /// Parameters of a generator that is fitted to a trace.
    pub struct LikeParameters {
        /// Number of requests; 0: the number of the trace
        pub requests: u64 = 0, in 0..=1_000_000_000;
    }
}

/// Generated requests that resemble a trace.
#[derive(Clone, Debug)]
pub struct Like {
    /// The requests.
    pub trace: Trace,
    /// All parameters, including those that have default values.
    pub settings: Vec<(String, String)>,
    /// Number of numbers in the fitted model.
    pub model_numbers: usize,
    /// Similarity to the trace.
    pub comparison: Comparison,
}

/// Fits a generator to a trace and generates requests.
///
/// # Errors
/// An unknown parameter, a trace to which no model can be fitted, or more requests than memory holds.
pub fn like(source: &Workload, settings: &[(String, String)], seed: u64) -> Result<Like, StudyError> {
    let (trace, parameters, model) = fitted(source, settings, seed, &mut to_the_end)?;
    let comparison = like::compare(&source.requests, &trace.requests, seed)?;
    Ok(Like { trace, settings: parameters.settings(), model_numbers: model.numbers(), comparison })
}

/// The requests of [`like`] alone, with a progress callback like that of [`trace_with_progress`].
///
/// # Errors
/// The errors of [`like`], or `progress` stopped it.
pub fn like_with_progress(
    source: &Workload,
    settings: &[(String, String)],
    seed: u64,
    progress: Progress<'_>,
) -> Result<Trace, StudyError> {
    fitted(source, settings, seed, progress).map(|(trace, ..)| trace)
}

/// Requests like those of a trace, their parameters and their model.
fn fitted(
    source: &Workload,
    settings: &[(String, String)],
    seed: u64,
    progress: Progress<'_>,
) -> Result<(Trace, LikeParameters, Model), StudyError> {
    let mut parameters = LikeParameters::parse(settings).map_err(WorkloadError::from)?;
    memory::check_bytes(like::fit_memory_bytes(source.touched_pages()))?;
    let model = Model::fit(&source.requests)?;
    if parameters.requests == 0 {
        parameters.requests = model.requests();
    }
    check_memory(parameters.requests, model.memory_bytes(parameters.requests))?;
    let requests: Requests = model.generate(parameters.requests, seed);
    let mut trace = drawn(&format!("like {}", source.facts.name), requests, progress)?;
    if source.requests.iter().any(|request| request.handle != 0) {
        trace.warnings.push("the placement handles of the trace are not modelled: the requests have none".to_owned());
    }
    Ok((trace, parameters, model))
}

/// Checks the memory for the requests, for their profile, which takes as much, and for other data.
fn check_memory(requests: u64, others: u64) -> Result<(), StudyError> {
    memory::check_bytes(requests.saturating_mul(2 * size_of::<Request>() as u64).saturating_add(others))
}

/// A trace of requests on one device.
pub(crate) fn collected(name: &str, format: &'static str, requests: Vec<Request>) -> Trace {
    let count = |op: Op| requests.iter().filter(|request| request.op == op).count() as u64;
    let bytes = |op: Op| requests.iter().filter(|request| request.op == op).map(Request::bytes).sum();
    let end = requests.iter().map(Request::end).max().unwrap_or(0);
    let sectors = end.next_multiple_of(DEVICE_STEP);
    Trace {
        name: name.to_owned(),
        format,
        devices: vec![TraceDevice { id: 0, base_sector: 0, sectors, requests: requests.len() as u64 }],
        reads: count(Op::Read),
        writes: count(Op::Write),
        trims: count(Op::Trim),
        read_bytes: bytes(Op::Read),
        write_bytes: bytes(Op::Write),
        origin_ns: 0,
        action: None,
        warnings: Vec::new(),
        requests,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_core::trace::{Options, decode, encoded};
    use bimetal_core::workload::WORKLOADS;
    use std::ops::ControlFlow;

    #[test]
    fn every_workload_survives_every_format() {
        for spec in WORKLOADS {
            let mut trace = trace(spec.name, &[("requests".into(), "500".into())], 3).unwrap();
            // Most formats have no placement handles.
            trace.requests.iter_mut().for_each(|request| request.handle = 0);
            for writer in crate::writer::WRITERS {
                let bytes = encoded(writer.encode, &trace).unwrap();
                let read = decode("x", &bytes, &Options::default()).unwrap();
                let places = |trace: &Trace| -> Vec<_> {
                    trace.requests.iter().map(|request| (request.sector, request.sectors, request.op)).collect()
                };
                assert_eq!(places(&read), places(&trace), "{} as {}", spec.name, writer.format);
            }
        }
    }

    #[test]
    fn what_is_stopped_is_no_trace() {
        let stopped = trace_with_progress("zipf", &[], 1, &mut |_| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(StudyError::Stopped)), "{stopped:?}");
    }

    #[test]
    fn addresses_that_no_trace_may_have_are_refused() {
        let of = |span: u64| {
            let settings = [("requests", 100.to_string()), ("span", span.to_string()), ("align", "1GiB".to_owned())];
            trace("uniform", &settings.map(|(key, value)| (key.to_owned(), value)), 1)
        };
        let error = of(u64::MAX).unwrap_err().to_string();
        assert!(error.contains("`uniform`") && error.contains("2^63") && error.contains("`span`"), "{error}");
        let bytes = encoded(crate::writer::WRITERS[0].encode, &of(1 << 63).unwrap()).unwrap();
        assert_eq!(decode("x", &bytes, &Options::default()).unwrap().requests.len(), 100);
    }

    #[test]
    fn more_than_memory_holds_is_refused() {
        let error = trace(WORKLOADS[0].name, &[("requests".into(), "1000000000000".into())], 1).unwrap_err();
        assert!(!error.to_string().is_empty());
    }
}
