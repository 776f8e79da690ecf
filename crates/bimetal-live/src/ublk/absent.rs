//! The interface of this module in a program that was compiled without it.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use super::{AttachError, Number};
use crate::block_device::BlockDevice;

/// A disk of this machine. None exists in this program.
pub struct Disk(Infallible);

/// Refuses a disk.
///
/// # Errors
/// Always.
pub fn check() -> Result<(), AttachError> {
    Err(AttachError::NotCompiled)
}

impl Disk {
    /// Refuses to make a disk.
    ///
    /// # Errors
    /// Always.
    pub fn attach(_: Number, _: Arc<dyn BlockDevice>, _: bool) -> Result<Self, AttachError> {
        Err(AttachError::NotCompiled)
    }

    /// The path of the disk.
    pub fn path(&self) -> &Path {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn the_user_is_told_how_to_compile_it() {
        let attached = Disk::attach(Number::Any, Arc::new(MemoryDevice::new(8)), false);
        for error in [check(), attached.map(drop)] {
            let error = error.unwrap_err().to_string();
            assert!(error.contains("`--features ublk`"), "{error}");
        }
    }
}
