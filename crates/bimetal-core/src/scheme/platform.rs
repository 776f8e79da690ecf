//! Media for which every scheme is compiled.
//!
//! A scheme is generic over its media, so that no call of a medium is virtual. The compiler makes code of all schemes
//! for a type of media in each crate that names both, and this takes longer than everything else in such a crate. A
//! [`Platform`] names them once, and [`build`](super::build) and [`restore`](super::restore) call it.

use super::{BuildError, Scheme, Shape, construct};
use crate::media::{Checked, Media, SimMedia};

/// Media for which every scheme is compiled, in the crate that implements this.
pub trait Platform: Media + Sized + 'static {
    /// Builds a scheme, and restores its state if a saved one is given: [`construct`](super::construct) for these media.
    ///
    /// # Errors
    /// Those of [`restore`](super::restore).
    fn construct(
        name: &str,
        shape: &Shape,
        settings: &[(String, String)],
        saved: Option<&[u8]>,
    ) -> Result<Box<dyn Scheme<Self>>, BuildError>;
}

impl Platform for SimMedia {
    fn construct(
        name: &str,
        shape: &Shape,
        settings: &[(String, String)],
        saved: Option<&[u8]>,
    ) -> Result<Box<dyn Scheme<Self>>, BuildError> {
        construct(name, shape, settings, saved)
    }
}

impl Platform for Checked<SimMedia> {
    // Inline, so that schemes are compiled for these media in the crates that test them and not in every program.
    #[inline]
    fn construct(
        name: &str,
        shape: &Shape,
        settings: &[(String, String)],
        saved: Option<&[u8]>,
    ) -> Result<Box<dyn Scheme<Self>>, BuildError> {
        construct(name, shape, settings, saved)
    }
}
