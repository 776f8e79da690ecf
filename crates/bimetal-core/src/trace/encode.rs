//! What the text encoders share.

use super::error::{ErrorKind, TraceError};
use super::{Trace, TraceDevice};
use crate::request::Request;

/// Writes one line a request, by `line`; refuses traces with trims or placement handles, which no text format of ours knows.
pub(super) fn text(
    trace: &Trace,
    format: &str,
    mut line: impl FnMut(&mut Vec<u8>, &TraceDevice, &Request) -> std::io::Result<()>,
) -> Result<Vec<u8>, TraceError> {
    let handled = trace.requests.iter().filter(|request| request.handle > 0).count() as u64;
    if let Some((count, what)) =
        [(trace.trims, "trims"), (handled, "requests with placement handles")].into_iter().find(|&(count, _)| count > 0)
    {
        let what = format!("the trace has {count} {what}, which {format} cannot express");
        return Err(TraceError::new(ErrorKind::Inexpressible, &trace.name, what).with_hint("convert it to `bimetal`"));
    }
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
