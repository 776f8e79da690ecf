//! Reading what a device holds: its sectors that hold data, in ascending runs, and which of them are lost.

use std::io;
use std::ops::{ControlFlow, Range};

use super::frame::SECTOR;
use crate::block_device::{BlockDevice, Extent, IoError};

/// Sectors that are read at once.
const RUN_SECTORS: u64 = 256;
/// Sectors whose holes are looked up at once.
const RANGE_SECTORS: u64 = 1 << 16;

/// What was read: sectors handed out, and runs that are lost as their first sector and their number.
pub type Read = (u64, Vec<(u64, u64)>);

/// Takes sectors from one on, with their bytes.
pub type Take<'a> = &'a mut dyn FnMut(u64, &[u8]) -> io::Result<()>;

/// Notes that sectors behind all others noted are lost.
pub fn lose(lost: &mut Vec<(u64, u64)>, sector: u64, sectors: u64) {
    match lost.last_mut() {
        Some((first, count)) if *first + *count == sector => *count += sectors,
        _ => lost.push((sector, sectors)),
    }
}

/// Reads the sectors of a device within a range that hold data, and hands those that can be read to `take`, in ascending runs.
///
/// # Errors
/// Those of `take`, and that the device is being stopped.
pub fn read_range(device: &dyn BlockDevice, range: Range<u64>, take: Take<'_>) -> io::Result<Read> {
    let (mut handed, mut lost): Read = (0, Vec::new());
    let mut bytes = vec![0; RUN_SECTORS as usize * SECTOR];
    for first in range.clone().step_by(RANGE_SECTORS as usize) {
        let mut runs = Vec::new();
        let mut at = first;
        let listed = device.extents(first, RANGE_SECTORS.min(range.end - first), &mut |sectors, extent| {
            if extent == Extent::Allocated {
                runs.push(at..at + sectors);
            }
            at += sectors;
            ControlFlow::Continue(())
        });
        listed.map_err(io::Error::other)?;
        for run in runs {
            for sector in run.clone().step_by(RUN_SECTORS as usize) {
                let count = (run.end - sector).min(RUN_SECTORS);
                let bytes = &mut bytes[..count as usize * SECTOR];
                if device.read(sector, bytes).is_ok() {
                    take(sector, bytes)?;
                    handed += count;
                } else {
                    handed += read_each(device, sector, bytes, &mut lost, take)?;
                }
            }
        }
    }
    Ok((handed, lost))
}

/// One of some sectors is lost, or several: reads one by one. Returns how many were handed out.
fn read_each(
    device: &dyn BlockDevice,
    sector: u64,
    bytes: &mut [u8],
    lost: &mut Vec<(u64, u64)>,
    take: Take<'_>,
) -> io::Result<u64> {
    let mut handed = 0;
    for (sector, bytes) in (sector..).zip(bytes.chunks_exact_mut(SECTOR)) {
        match device.read(sector, bytes) {
            Ok(()) => {
                take(sector, bytes)?;
                handed += 1;
            }
            Err(IoError::Shutdown | IoError::OutOfRange) => return Err(io::Error::other("the store was closed")),
            Err(_) => lose(lost, sector, 1),
        }
    }
    Ok(handed)
}
