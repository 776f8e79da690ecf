//! The state of a device before a replay.

use std::str::FromStr;

use crate::compact::Extents;
use crate::controller::{Direct, Front};
use crate::media::Simulation;
use crate::request::{Op, Request};
use crate::scheme::{Scheme, Value};

crate::choices! {
    /// Data on a device before a replay.
    #[derive(Default)]
    pub enum Fill {
        /// Every logical unit has been written.
        #[default]
        Device = "device",
        /// Only the 64-KiB extents that the trace reads or writes have been written, in order, in requests of up to 1 MiB.
        Trace = "trace",
        /// No data: all blocks are erased.
        None = "none",
    }
}

impl FromStr for Fill {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| format!("`{text}` is not {}", Self::accepts()))
    }
}

/// Sectors of a request that fills: 1 MiB.
const FILL_SECTORS: u64 = 2048;

/// Brings a new device into a state. `requests` are those of the trace. Counts and clocks of the media start afterwards.
///
/// The scheme serves the writes of [`Fill::Trace`] like any others: its own counts include them, and a cache may hold
/// some of them afterwards. [`Scheme::fill`] bypasses caches.
pub fn fill<M: Simulation>(media: &mut M, scheme: &mut dyn Scheme<M>, requests: &[Request], fill: Fill) {
    match fill {
        Fill::Device => {
            media.begin(&write(0, 0), 0);
            scheme.fill(media);
            media.end();
        }
        Fill::Trace => {
            let mut now_ns = 0;
            for request in touched(requests) {
                now_ns = Direct.serve(media, scheme, &request, now_ns);
            }
        }
        Fill::None => {}
    }
    media.reset();
}

/// Writes of the extents that requests touch, one for each MiB of the address space that has any.
fn touched(requests: &[Request]) -> impl Iterator<Item = Request> {
    Extents::of(requests).into_runs().flat_map(|run| {
        (run.start / FILL_SECTORS..run.end.div_ceil(FILL_SECTORS)).map(move |piece| {
            let start = run.start.max(piece * FILL_SECTORS);
            write(start, run.end.min((piece + 1) * FILL_SECTORS) - start)
        })
    })
}

fn write(sector: u64, sectors: u64) -> Request {
    Request { arrival_ns: 0, sector, sectors: sectors as u32, op: Op::Write, handle: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_of_a_trace_are_written_once_in_pieces_of_a_mebibyte() {
        let request = |op, sector, sectors| Request { op, ..write(sector, sectors) };
        let requests = [
            request(Op::Read, 5000, 8),
            request(Op::Write, 2040, 100),
            request(Op::Write, 5100, 50),
            request(Op::Trim, 9000, 100),
        ];
        let pieces: Vec<_> = touched(&requests).map(|piece| (piece.sector, piece.sectors)).collect();
        assert_eq!(pieces, [(1920, 128), (2048, 128), (4992, 158)], "the last one ends with the last request");
    }

    #[test]
    fn a_state_that_does_not_exist_is_refused() {
        assert_eq!("trace".parse(), Ok(Fill::Trace));
        assert_eq!("full".parse::<Fill>(), Err("`full` is not `device` or `trace` or `none`".into()));
    }
}
