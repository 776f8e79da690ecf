//! Numbers of the hosts, files or objects that a file names, in order of appearance.

use std::collections::BTreeMap;

/// The names so far.
#[derive(Default)]
pub(super) struct Numbering {
    numbers: BTreeMap<Box<[u8]>, u64>,
    /// The last name and its number: the next name is often the same.
    last: (Vec<u8>, u64),
}

impl Numbering {
    /// The number of a name, from 0.
    #[inline]
    pub(super) fn number(&mut self, name: &[u8]) -> u64 {
        if self.numbers.is_empty() || self.last.0 != name {
            self.find(name);
        }
        self.last.1
    }

    fn find(&mut self, name: &[u8]) {
        let next = self.numbers.len() as u64;
        let number = self.numbers.get(name).copied().unwrap_or_else(|| {
            self.numbers.insert(name.into(), next);
            next
        });
        self.last.0.clear();
        self.last.0.extend_from_slice(name);
        self.last.1 = number;
    }

    /// How many names there are.
    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// The name with a number.
    pub(super) fn name(&self, number: u64) -> Option<&[u8]> {
        self.numbers.iter().find(|(_, known)| **known == number).map(|(name, _)| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let mut names = Numbering::default();
        let numbers = [&b""[..], b"b", b"b", b"a", b"", b"b"].map(|name| names.number(name));
        assert_eq!(numbers, [0, 1, 1, 2, 0, 1]);
        assert_eq!((names.count(), names.name(2), names.name(3)), (3, Some(&b"a"[..]), None));
    }
}
