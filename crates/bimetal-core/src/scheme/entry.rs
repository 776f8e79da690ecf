//! Construction of schemes: those of the registry and those that a program adds to it.
//!
//! A scheme is compiled for each type of media on which it runs, so that no call of a medium is virtual. For a built-in
//! scheme the compiler knows both types at the place of construction. An [`Entry`] has one constructor for each type of
//! media that it was given.
//!
//! A scheme that exists only for a time, such as a class in a notebook, is lent to the registry: it is found by its name
//! as long as its [`Loan`] lives, and is in no list.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BuildError, ParameterError, ParameterSet, SCHEMES, Scheme, SchemeSpec, Shape, unknown};
use crate::media::{Checked, Media, SimMedia};
use crate::registry::{Named, RegistryError};
use crate::save;

/// Makes a scheme over media `M` from a device and settings, and restores a saved state if one is given.
pub type Constructor<M> =
    Box<dyn Fn(&Shape, &[(String, String)], Option<&[u8]>) -> Result<Box<dyn Scheme<M>>, BuildError> + Send + Sync>;

/// Completes settings with the defaults.
type Completion = Box<dyn Fn(&[(String, String)]) -> Result<Vec<(String, String)>, BuildError> + Send + Sync>;

/// A scheme that a program adds to the registry.
pub struct Entry {
    spec: &'static SchemeSpec,
    settings: Completion,
    /// By type of media `M`: a [`Constructor<M>`].
    constructors: BTreeMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("spec", self.spec).finish_non_exhaustive()
    }
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
        let bare = Self { spec, settings: Box::new(settings), constructors: BTreeMap::new() };
        bare.on::<SimMedia, P, S>(new).on::<Checked<SimMedia>, P, S>(new)
    }

    /// A scheme without parameters that can only be simulated, from a constructor that may hold something of its own. No
    /// state is saved or restored.
    pub fn simulated(spec: &'static SchemeSpec, constructor: Constructor<SimMedia>) -> Self {
        let settings = move |settings: &[(String, String)]| match settings.first() {
            None => Ok(Vec::new()),
            Some((name, _)) => {
                let (name, known) = (name.clone(), "none".to_owned());
                Err(ParameterError::Unknown { scheme: spec.name, name, known }.into())
            }
        };
        let constructor: Box<dyn Any + Send + Sync> = Box::new(constructor);
        Self {
            spec,
            settings: Box::new(settings),
            constructors: BTreeMap::from([(TypeId::of::<SimMedia>(), constructor)]),
        }
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

static ADDED: OnceLock<Vec<Arc<Entry>>> = OnceLock::new();

/// By name: the schemes that are lent at present.
static LENT: RwLock<BTreeMap<&'static str, Arc<Entry>>> = RwLock::new(BTreeMap::new());

/// Adds schemes to the registry. Called once, before the first look-up.
///
/// # Errors
/// A name is taken, or the registry is already in use.
pub fn add(entries: Vec<Entry>) -> Result<(), RegistryError> {
    SCHEMES.add(&entries.iter().map(|entry| entry.spec).collect::<Vec<_>>())?;
    ADDED.get_or_init(|| entries.into_iter().map(Arc::new).collect());
    Ok(())
}

/// The time for which a scheme is lent. Its end takes the scheme back.
#[derive(Debug)]
pub struct Loan(&'static str);

impl Drop for Loan {
    fn drop(&mut self) {
        // Dropped when the lock is free again: what a constructor holds may do anything at its end.
        let _entry = LENT.write().unwrap_or_else(PoisonError::into_inner).remove(self.0);
    }
}

/// Lends a scheme: it is found by its name until the loan ends, and [`SCHEMES`] stays as it is.
///
/// # Errors
/// A scheme of the registry, or another one that is lent at present, has the name.
pub fn lend(entry: Entry) -> Result<Loan, RegistryError> {
    let name = entry.spec.name;
    let mut lent = LENT.write().unwrap_or_else(PoisonError::into_inner);
    if lent.contains_key(name) || SCHEMES.iter().any(|spec| spec.name == name) {
        return Err(RegistryError::Duplicate { kind: SchemeSpec::KIND, name });
    }
    lent.insert(name, Arc::new(entry));
    Ok(Loan(name))
}

/// The registry line of the lent scheme with this name.
pub(super) fn lent(name: &str) -> Option<&'static SchemeSpec> {
    LENT.read().unwrap_or_else(PoisonError::into_inner).get(name).map(|entry| entry.spec)
}

/// The added or lent scheme with this name.
pub(super) fn added(name: &str) -> Result<Arc<Entry>, BuildError> {
    let added = ADDED.get().into_iter().flatten().find(|entry| entry.spec.name == name).cloned();
    let lent = || LENT.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    added.or_else(lent).ok_or_else(|| unknown(name))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::{Regions, build, find, settings};

    static SPEC: SchemeSpec = SchemeSpec {
        name: "guest",
        summary: "lent",
        source: "none",
        regions: Regions::One,
        parameters: Vec::new,
        adapts: &[],
        version: 1,
    };

    /// A scheme that no device suits.
    fn guest(spec: &'static SchemeSpec) -> Entry {
        let refused = move |_: &Shape, _: &[(String, String)], _: Option<&[u8]>| {
            Err(BuildError::Device { scheme: spec.name, reason: "it is a guest".into() })
        };
        Entry::simulated(spec, Box::new(refused))
    }

    #[test]
    fn a_lent_scheme_is_found_until_its_loan_ends_and_listed_never() {
        let shape = Shape { logical_sectors: 8, regions: Vec::new(), disks: Vec::new(), seed: 1 };
        let loan = lend(guest(&SPEC)).unwrap();
        assert_eq!(find("guest").unwrap().summary, "lent");
        assert!(!SCHEMES.iter().any(|spec| spec.name == "guest"));
        assert_eq!(settings("guest", &[]).unwrap(), []);
        let error = settings("guest", &[("speed".into(), "high".into())]).unwrap_err();
        assert_eq!(error.to_string(), "`guest` has no parameter `speed`; it has: none");
        assert!(build::<SimMedia>("guest", &shape, &[]).err().unwrap().to_string().contains("it is a guest"));
        assert!(matches!(
            build::<Checked<SimMedia>>("guest", &shape, &[]),
            Err(BuildError::Media { scheme: "guest", .. })
        ));
        assert_eq!(lend(guest(&SPEC)).unwrap_err(), RegistryError::Duplicate { kind: "scheme", name: "guest" });
        drop(loan);
        assert!(find("guest").is_err());
        drop(lend(guest(&SPEC)).unwrap());
    }

    #[test]
    fn a_name_of_the_registry_is_not_lent() {
        let taken = lend(guest(find("pagemap").unwrap())).unwrap_err();
        assert_eq!(taken, RegistryError::Duplicate { kind: "scheme", name: "pagemap" });
    }
}
