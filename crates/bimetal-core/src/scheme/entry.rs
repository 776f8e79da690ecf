//! Construction of schemes: those of the registry and those that a program adds to it.
//!
//! A scheme is compiled for each type of media on which it runs, so that no call of a medium is virtual. For a built-in
//! scheme the compiler knows both types at the place of construction. An [`Entry`] has one constructor for each type of
//! media that it was given.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BuildError, ParameterSet, SCHEMES, Scheme, SchemeSpec, Shape, unknown};
use crate::media::{Checked, Media, SimMedia};
use crate::registry::RegistryError;
use crate::save;

/// Makes a scheme over media `M` from a device and settings, and restores a saved state if one is given.
pub type Constructor<M> =
    Box<dyn Fn(&Shape, &[(String, String)], Option<&[u8]>) -> Result<Box<dyn Scheme<M>>, BuildError> + Send + Sync>;

/// Completes settings with the defaults.
type Completion = fn(&[(String, String)]) -> Result<Vec<(String, String)>, BuildError>;

/// A scheme that a program adds to the registry.
#[derive(Debug)]
pub struct Entry {
    spec: &'static SchemeSpec,
    settings: Completion,
    /// By type of media `M`: a [`Constructor<M>`].
    constructors: BTreeMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl Entry {
    /// A scheme, from its registry line and its constructor. It can be simulated and checked; [`Self::on`] adds other
    /// media.
    pub fn of<P, S>(spec: &'static SchemeSpec, new: fn(&Shape, P) -> Result<S, String>) -> Self
    where
        P: ParameterSet,
        S: Scheme<SimMedia> + Scheme<Checked<SimMedia>> + Serialize + DeserializeOwned + 'static,
    {
        let settings = |settings: &[(String, String)]| Ok(P::parse(settings)?.settings());
        let bare = Self { spec, settings, constructors: BTreeMap::new() };
        bare.on::<SimMedia, P, S>(new).on::<Checked<SimMedia>, P, S>(new)
    }

    /// Adds another type of media. `new` must be the constructor given to [`Self::of`].
    #[must_use]
    pub fn on<M, P, S>(mut self, new: fn(&Shape, P) -> Result<S, String>) -> Self
    where
        M: Media + 'static,
        P: ParameterSet,
        S: Scheme<M> + Serialize + DeserializeOwned + 'static,
    {
        let spec = self.spec;
        let constructor: Constructor<M> =
            Box::new(move |shape, settings, saved| construct(spec, new, shape, settings, saved));
        self.constructors.insert(TypeId::of::<M>(), Box::new(constructor));
        self
    }

    /// Makes the scheme, and restores a saved state if one is given.
    ///
    /// # Errors
    /// Those of [`restore`](super::restore), and media for which the scheme was not added.
    pub(super) fn construct<M: Media + 'static>(
        &self,
        shape: &Shape,
        settings: &[(String, String)],
        saved: Option<&[u8]>,
    ) -> Result<Box<dyn Scheme<M>>, BuildError> {
        let known = self.constructors.get(&TypeId::of::<M>()).and_then(|any| any.downcast_ref::<Constructor<M>>());
        let constructor = known.ok_or(BuildError::Media { scheme: self.spec.name, media: type_name::<M>() })?;
        constructor(shape, settings, saved)
    }

    /// Its effective parameters, including defaults.
    pub(super) fn settings(&self, settings: &[(String, String)]) -> Result<Vec<(String, String)>, BuildError> {
        (self.settings)(settings)
    }
}

static ADDED: OnceLock<Vec<Entry>> = OnceLock::new();

/// Adds schemes to the registry. Called once, before the first look-up.
///
/// # Errors
/// A name is taken, or the registry is already in use.
pub fn add(entries: Vec<Entry>) -> Result<(), RegistryError> {
    SCHEMES.add(&entries.iter().map(|entry| entry.spec).collect::<Vec<_>>())?;
    ADDED.get_or_init(|| entries);
    Ok(())
}

/// The added scheme with this name.
pub(super) fn added(name: &str) -> Result<&'static Entry, BuildError> {
    ADDED.get().into_iter().flatten().find(|entry| entry.spec.name == name).ok_or_else(|| unknown(name))
}

/// Makes a scheme from settings. A saved state must belong to a scheme with the same settings, and is checked.
pub(super) fn construct<M, P, S>(
    spec: &'static SchemeSpec,
    new: fn(&Shape, P) -> Result<S, String>,
    shape: &Shape,
    settings: &[(String, String)],
    saved: Option<&[u8]>,
) -> Result<Box<dyn Scheme<M>>, BuildError>
where
    M: Media,
    P: ParameterSet,
    S: Scheme<M> + Serialize + DeserializeOwned + 'static,
{
    let parameters = P::parse(settings)?;
    let fresh = new(shape, parameters).map_err(|reason| BuildError::Device { scheme: spec.name, reason })?;
    let Some(bytes) = saved else { return Ok(Box::new(fresh)) };
    let refused = |reason| BuildError::State { scheme: spec.name, reason };
    let scheme = save::restore(&fresh, bytes).map_err(|error| refused(error.to_string()))?;
    scheme.check().map_err(refused)?;
    Ok(Box::new(scheme))
}
