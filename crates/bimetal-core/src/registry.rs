//! Registries of schemes, trace formats and workloads: the built-in entries, and those that a program adds at its
//! start.
//!
//! A registry is read as a slice, the built-in entries first, then the added ones in their order. Entries are added
//! once, before the first read, so that all readers see the same. Lists, help texts and tests iterate it.

use std::ops::Deref;
use std::sync::OnceLock;

/// An entry of a registry: something with a name on the command line.
pub trait Named: 'static {
    /// Kind of entry, for messages.
    const KIND: &'static str;

    /// Its names; the first one is shown.
    fn names(&self) -> impl Iterator<Item = &'static str>;
}

/// An addition that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The name is taken.
    #[error("there are two {kind}s of the name `{name}`; give the added one another name")]
    Duplicate {
        /// Scheme, trace format or workload.
        kind: &'static str,
        /// The name.
        name: &'static str,
    },
    /// The registry was already read, or added to.
    #[error(
        "a {kind} cannot be added any more; add all in one call at the start of the program, before the first look-up"
    )]
    Late {
        /// Scheme, trace format or workload.
        kind: &'static str,
    },
}

/// Entries of one kind.
#[derive(Debug)]
pub struct Registry<T: 'static> {
    built_in: &'static [&'static T],
    all: OnceLock<Vec<&'static T>>,
}

impl<T: Named> Registry<T> {
    /// A registry without additions.
    pub const fn new(built_in: &'static [&'static T]) -> Self {
        Self { built_in, all: OnceLock::new() }
    }

    /// Adds entries after the built-in ones, in this order.
    ///
    /// # Errors
    /// A name is taken, or the registry is already in use. Nothing is added then.
    pub fn add(&self, added: &[&'static T]) -> Result<(), RegistryError> {
        if added.is_empty() {
            return Ok(());
        }
        let all = [self.built_in, added].concat();
        for (index, entry) in all.iter().enumerate() {
            let taken = |name: &&str| all[..index].iter().any(|earlier| earlier.names().any(|known| known == *name));
            if let Some(name) = entry.names().find(taken) {
                return Err(RegistryError::Duplicate { kind: T::KIND, name });
            }
        }
        self.all.set(all).map_err(|_| RegistryError::Late { kind: T::KIND })
    }
}

impl<T> Deref for Registry<T> {
    type Target = [&'static T];

    fn deref(&self) -> &Self::Target {
        self.all.get_or_init(|| self.built_in.to_vec())
    }
}

impl<T> IntoIterator for &'static Registry<T> {
    type Item = &'static &'static T;
    type IntoIter = std::slice::Iter<'static, &'static T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fruit(&'static [&'static str]);

    impl Named for Fruit {
        const KIND: &'static str = "fruit";

        fn names(&self) -> impl Iterator<Item = &'static str> {
            self.0.iter().copied()
        }
    }

    static APPLE: Fruit = Fruit(&["apple"]);
    static PEAR: Fruit = Fruit(&["pear", "williams"]);
    static QUINCE: Fruit = Fruit(&["quince"]);
    static OTHER: Fruit = Fruit(&["other", "williams"]);

    #[test]
    fn built_in_entries_come_first_and_added_ones_in_their_order() {
        static FRUITS: Registry<Fruit> = Registry::new(&[&APPLE]);
        FRUITS.add(&[&QUINCE, &PEAR]).unwrap();
        assert_eq!(FRUITS.iter().map(|fruit| fruit.0[0]).collect::<Vec<_>>(), ["apple", "quince", "pear"]);
        assert_eq!((&FRUITS).into_iter().count(), FRUITS.len());
    }

    #[test]
    fn a_name_that_is_taken_is_refused() {
        static FRUITS: Registry<Fruit> = Registry::new(&[&PEAR]);
        let fruits = &FRUITS;
        let error = fruits.add(&[&QUINCE, &OTHER]).unwrap_err();
        assert_eq!(error, RegistryError::Duplicate { kind: "fruit", name: "williams" });
        assert!(error.to_string().contains("two fruits of the name `williams`"));
        assert_eq!(
            fruits.add(&[&QUINCE, &QUINCE]).unwrap_err(),
            RegistryError::Duplicate { kind: "fruit", name: "quince" }
        );
        fruits.add(&[&QUINCE]).unwrap();
    }

    #[test]
    fn nothing_is_added_to_a_registry_in_use() {
        static FRUITS: Registry<Fruit> = Registry::new(&[&PEAR]);
        let fruits = &FRUITS;
        assert_eq!(fruits.len(), 1);
        assert_eq!(fruits.add(&[&QUINCE]), Err(RegistryError::Late { kind: "fruit" }));
        assert_eq!(fruits.add(&[]), Ok(()));
        assert_eq!(fruits.len(), 1);
    }
}
