//! Schemes of other crates: on simulated media and, if the program has stores, on the media of a store.

#[cfg(live)]
pub use bimetal_live::store::{StoredScheme, scheme_entry};
#[cfg(not(live))]
pub use simulated::{StoredScheme, scheme_entry};

#[cfg(not(live))]
mod simulated {
    use bimetal_core::media::{Checked, SimMedia};
    use bimetal_core::scheme::{Entry, ParameterSet, Scheme, SchemeSpec, Shape};
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    /// A scheme that can be simulated and checked. It has no methods to implement.
    pub trait StoredScheme:
        Scheme<SimMedia> + Scheme<Checked<SimMedia>> + Serialize + DeserializeOwned + 'static
    {
    }

    impl<S> StoredScheme for S where S: Scheme<SimMedia> + Scheme<Checked<SimMedia>> + Serialize + DeserializeOwned + 'static
    {}

    /// A scheme for [`bimetal_core::scheme::add`].
    pub fn scheme_entry<P: ParameterSet, S: StoredScheme>(
        spec: &'static SchemeSpec,
        new: fn(&Shape, P) -> Result<S, String>,
    ) -> Entry {
        Entry::of(spec, new)
    }
}
