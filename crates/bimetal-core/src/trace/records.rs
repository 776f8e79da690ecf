//! Binary traces: records of one length.

use std::io::{self, Read};
use std::ops::ControlFlow;

use super::Input;
use super::collect::count;
use super::error::{ErrorKind, Parsed, Place, TraceError};
use super::input::BUFFER_BYTES;

/// Calls `read` for each record of `length` bytes after the first `header` bytes of a file, until it ends that. Returns
/// their number.
pub(super) fn each(
    input: &Input<'_>,
    header: usize,
    length: usize,
    mut read: impl FnMut(&[u8]) -> Parsed<ControlFlow<()>>,
) -> Result<u64, TraceError> {
    let mut source = input.bytes();
    let skipped = io::copy(&mut Read::take(&mut source, header as u64), &mut io::sink());
    skipped.map_err(|error| input.unread(&error))?;
    let mut buffer = vec![0; BUFFER_BYTES.next_multiple_of(length)];
    let mut number = 0;
    let place = |number: u64| Place::Record { number: number + 1, byte: header as u64 + number * length as u64 };
    loop {
        let filled = source.fill(&mut buffer)?;
        let records = buffer[..filled].chunks_exact(length);
        let rest = records.remainder().len();
        for record in records {
            let flow = read(record).map_err(|fault| input.fault(place(number), *fault))?;
            number += 1;
            if flow.is_break() {
                return Ok(number);
            }
        }
        if rest > 0 {
            let bytes = count(length as u64, "byte");
            let what = format!("the file ends within this record, after {rest} of its {bytes}");
            return Err(input.error(ErrorKind::Truncated, what).at(place(number)).with_hint("copy the file again"));
        }
        if filled < buffer.len() {
            return Ok(number);
        }
    }
}
