//! Schemes of other crates, on the media of a store.

use bimetal_core::media::{Checked, SimMedia};
use bimetal_core::scheme::{Entry, ParameterSet, Scheme, SchemeSpec, Shape};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::media::FileMedia;

/// A scheme over any media whose state can be saved, so that it can be simulated, checked and kept in a store. It has
/// no methods to implement.
pub trait StoredScheme:
    Scheme<SimMedia> + Scheme<Checked<SimMedia>> + Scheme<FileMedia> + Serialize + DeserializeOwned + 'static
{
}

impl<S> StoredScheme for S where
    S: Scheme<SimMedia> + Scheme<Checked<SimMedia>> + Scheme<FileMedia> + Serialize + DeserializeOwned + 'static
{
}

/// A scheme for [`bimetal_core::scheme::add`] that can be simulated and served.
pub fn scheme_entry<P: ParameterSet, S: StoredScheme>(
    spec: &'static SchemeSpec,
    new: fn(&Shape, P) -> Result<S, String>,
) -> Entry {
    Entry::of(spec, new).on::<FileMedia, P, S>(new)
}
