//! The device as a disk of this machine: a ublk server.
//!
//! The kernel's driver `ublk_drv` makes a disk, `/dev/ublkbN`, whose requests a process serves. They arrive through io_uring at one
//! ring for each queue of the disk. A request of the kernel is one call of the device.
//!
//! ```text
//! control ── /dev/ublk-control ──▶ kernel: adds, starts, stops and deletes the disk
//! kernel ── /dev/ublkcN, rings ──▶ queue ─▶ request ─▶ execute ─▶ BlockDevice
//! ```
//!
//! Each queue has a thread, the only one that may tell the kernel about requests of this queue. Requests that may wait for a sync go
//! to workers, so that neither a flush nor a durable write delays the requests behind it. The thread that executes a request
//! copies its data between the kernel's pages and a buffer, once, with `pread` or `pwrite` of `/dev/ublkcN` (`UBLK_F_USER_COPY`).
//!
//! The disk ends with its server. The recovery of ublk, by which a disk waits for its next server after a kill, is not used:
//! writes that were not flushed are lost then, and the page cache of a file system relies on them. So all requests fail after a
//! kill, and the file system is to be mounted again.
//!
//! The feature `ublk` compiles this module: its library takes libclang. Without it, [`check`] and [`Disk::attach`] fail.

use std::fmt;
use std::str::FromStr;

#[cfg(not(feature = "ublk"))]
mod absent;
#[cfg(feature = "ublk")]
mod control;
mod error;
#[cfg(feature = "ublk")]
mod parameters;
#[cfg(feature = "ublk")]
mod queue;
#[cfg(feature = "ublk")]
mod request;

#[cfg(not(feature = "ublk"))]
pub use absent::{Disk, check};
#[cfg(feature = "ublk")]
pub use control::{Disk, check};
pub use error::AttachError;

use crate::requests::QUEUE_THREADS_MAX;

/// Open files of a disk: a ring and a wake-up for each queue, the rings and files for control and data.
pub const OPEN_FILES: usize = 2 * QUEUE_THREADS_MAX + 5;

/// Numbers of the driver are smaller (`UBLK_MINORS`).
const NUMBERS: u32 = 1 << 20;

/// The number N of `/dev/ublkbN`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Number {
    /// The first number that is free.
    #[default]
    Any,
    /// This number.
    Is(u32),
}

impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "any" {
            return Ok(Self::Any);
        }
        let number = text.parse().ok().filter(|&number| number < NUMBERS);
        number.map(Self::Is).ok_or_else(|| format!("a number from 0 to {}, for /dev/ublkbN", NUMBERS - 1))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => write!(f, "any"),
            Self::Is(number) => write!(f, "{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_of_the_driver() {
        for (text, number) in [("any", Number::Any), ("0", Number::Is(0)), ("1048575", Number::Is(1_048_575))] {
            let parsed: Number = text.parse().unwrap();
            assert_eq!((parsed, parsed.to_string()), (number, text.to_owned()));
        }
        for text in ["", "-1", "1048576", "/dev/ublkb0"] {
            assert!(text.parse::<Number>().unwrap_err().contains("1048575"), "{text}");
        }
    }
}
