//! Shared code of the text encoders.

use super::error::{ErrorKind, TraceError};
use super::{Trace, TraceDevice};
use crate::request::Request;

/// Writes one line for each request with `line`. Refuses traces with trims or placement handles.
pub(super) fn text(
    trace: &Trace,
    format: &str,
    line: impl FnMut(&mut Vec<u8>, &TraceDevice, &Request) -> std::io::Result<()>,
) -> Result<Vec<u8>, TraceError> {
    refuse(trace, format, trace.trims, "trims")?;
    text_with_trims(trace, format, line)
}

/// The same for a format with trims. None of the text formats has placement handles.
pub(super) fn text_with_trims(
    trace: &Trace,
    format: &str,
    mut line: impl FnMut(&mut Vec<u8>, &TraceDevice, &Request) -> std::io::Result<()>,
) -> Result<Vec<u8>, TraceError> {
    let handled = trace.requests.iter().filter(|request| request.handle > 0).count() as u64;
    refuse(trace, format, handled, "requests with placement handles")?;
    let mut bytes = Vec::with_capacity(trace.requests.len() * 48);
    for request in &trace.requests {
        let written = match trace.device_of(request.sector) {
            Some(device) => line(&mut bytes, device, request).is_ok(),
            None => false,
        };
        if !written {
            let what = format!("sector {} lies on no device of the trace", request.sector);
            return Err(TraceError::new(ErrorKind::Inexpressible, &trace.name, what));
        }
    }
    Ok(bytes)
}

/// Refuses a trace with `count` items that the format cannot express, if there are any.
fn refuse(trace: &Trace, format: &str, count: u64, what: &str) -> Result<(), TraceError> {
    if count == 0 {
        return Ok(());
    }
    let what = format!("the trace has {count} {what}, which {format} cannot express");
    Err(TraceError::new(ErrorKind::Inexpressible, &trace.name, what).with_hint("convert it to `bimetal`"))
}
