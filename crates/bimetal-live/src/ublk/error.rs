//! Errors of making a device a disk of this machine.

use std::io;

/// Why a device is no disk of this machine.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// This program was compiled without the feature `ublk`.
    #[error("this program was compiled without ublk; compile it with `--features ublk`, which takes libclang")]
    NotCompiled,
    /// The driver is not loaded, or the kernel has none.
    #[error(
        "/dev/ublk-control: {source}; load the driver (`modprobe ublk_drv`), which a kernel has if it was configured with \
         CONFIG_BLK_DEV_UBLK"
    )]
    NoDriver {
        /// The system's error.
        source: io::Error,
    },
    /// This process may not use the driver.
    #[error("/dev/ublk-control: {source}; making a disk takes root")]
    NotPermitted {
        /// The system's error.
        source: io::Error,
    },
    /// The driver cannot copy data on request.
    #[error("the ublk driver of this kernel is too old (`UBLK_F_USER_COPY`): Linux 6.5 or newer is needed")]
    TooOld,
    /// Another server has the number.
    #[error("/dev/ublkb{0}: another server has this disk; choose another number, or none")]
    Taken(u32),
    /// The disk of a killed server still has users.
    #[error(
        "/dev/ublkb{0}: a server was killed, and its disk is still used; unmount its file system (`umount /dev/ublkb{0}`), or \
         choose another number"
    )]
    Held(u32),
    /// The system refused a step.
    #[error("ublk: {step}: {source}")]
    System {
        /// The step.
        step: &'static str,
        /// The system's error.
        source: io::Error,
    },
}
