//! Extraction of a device's data: ascending runs of sectors that hold data, and the lost sectors.

use std::io;
use std::ops::{ControlFlow, Range};

use super::frame::SECTOR;
use crate::block_device::{BlockDevice, Extent, IoError};

/// Sectors of one read.
const RUN_SECTORS: u64 = 256;
/// Sectors of one lookup of holes.
const RANGE_SECTORS: u64 = 1 << 16;

/// Result of an extraction: number of sectors handed out, and lost runs as first sector and number.
pub type Read = (u64, Vec<(u64, u64)>);

/// Receives consecutive sectors: the first one, and the bytes.
pub type Take<'a> = &'a mut dyn FnMut(u64, &[u8]) -> io::Result<()>;

/// Appends lost sectors. They must follow all earlier ones.
pub fn lose(lost: &mut Vec<(u64, u64)>, sector: u64, sectors: u64) {
    match lost.last_mut() {
        Some((first, count)) if *first + *count == sector => *count += sectors,
        _ => lost.push((sector, sectors)),
    }
}

/// Reads the sectors in a range that hold data, and hands the readable ones to `take`, in ascending runs.
///
/// # Errors
/// Errors of `take`, or that the device is being stopped.
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

/// At least one of these sectors is lost: reads them one by one. Returns the number handed out.
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
