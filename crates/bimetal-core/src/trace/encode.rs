//! Writing of traces: shared code of the encoders.

use std::io::{self, Write};

use super::error::{ErrorKind, TraceError};
use super::{Trace, TraceDevice};
use crate::request::Request;

/// Bytes that are written at once.
const PIECE_BYTES: usize = 256 << 10;

/// Writes a whole trace in a format.
pub type Encode = fn(&Trace, &mut dyn Write) -> Result<(), WriteError>;

/// Error of writing a trace.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Writing failed.
    #[error(transparent)]
    Sink(#[from] io::Error),
    /// The format cannot express the trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// The bytes of a trace in a format.
///
/// # Errors
/// [`ErrorKind::Inexpressible`] if the format cannot express the trace.
pub fn encoded(encode: Encode, trace: &Trace) -> Result<Vec<u8>, TraceError> {
    let mut bytes = Vec::new();
    encode(trace, &mut bytes).map_err(|error| match error {
        WriteError::Trace(error) => error,
        WriteError::Sink(error) => TraceError::new(ErrorKind::Inexpressible, &trace.name, error.to_string()),
    })?;
    Ok(bytes)
}

/// Writes each request with `record`, some of them at once.
pub(super) fn each(
    trace: &Trace,
    out: &mut dyn Write,
    mut record: impl FnMut(&mut Vec<u8>, &Request) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let mut piece = Vec::with_capacity(2 * PIECE_BYTES);
    for request in &trace.requests {
        record(&mut piece, request)?;
        if piece.len() >= PIECE_BYTES {
            out.write_all(&piece)?;
            piece.clear();
        }
    }
    Ok(out.write_all(&piece)?)
}

/// Writes one line for each request with `line`. Refuses traces with trims or placement handles.
pub(super) fn text(
    trace: &Trace,
    out: &mut dyn Write,
    format: &str,
    line: impl FnMut(&mut Vec<u8>, &TraceDevice, &Request) -> io::Result<()>,
) -> Result<(), WriteError> {
    refuse(trace, format, trace.trims, "trims")?;
    text_with_trims(trace, out, format, line)
}

/// The same for a format with trims. None of the text formats has placement handles.
pub(super) fn text_with_trims(
    trace: &Trace,
    out: &mut dyn Write,
    format: &str,
    mut line: impl FnMut(&mut Vec<u8>, &TraceDevice, &Request) -> io::Result<()>,
) -> Result<(), WriteError> {
    let handled = trace.requests.iter().filter(|request| request.handle > 0).count() as u64;
    refuse(trace, format, handled, "requests with placement handles")?;
    each(trace, out, |piece, request| {
        let device = trace.device_of(request.sector).ok_or_else(|| {
            let what = format!("sector {} lies on no device of the trace", request.sector);
            TraceError::new(ErrorKind::Inexpressible, &trace.name, what)
        })?;
        Ok(line(piece, device, request)?)
    })
}

/// Refuses a trace with `count` items that the format cannot express, if there are any.
fn refuse(trace: &Trace, format: &str, count: u64, what: &str) -> Result<(), TraceError> {
    if count == 0 {
        return Ok(());
    }
    let what = format!("the trace has {count} {what}, which {format} cannot express");
    Err(TraceError::new(ErrorKind::Inexpressible, &trace.name, what).with_hint("convert it to `bimetal`"))
}
