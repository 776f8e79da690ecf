//! A queue of numbers in a table, so that an image stores it separately. Saved states write it as a list.

use std::fmt;

use serde::de::{Deserializer, Error};
use serde::ser::{SerializeTuple, Serializer};
use serde::{Deserialize, Serialize};

use super::table::deserialize_apart;
use super::{Table, image};

/// A queue of numbers, first in, first out.
pub struct Queue {
    /// A ring whose length is a power of two.
    ring: Table<u32>,
    first: u32,
    len: u32,
}

impl Queue {
    /// An empty queue with room for `capacity` numbers.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { ring: vec![0; capacity.next_power_of_two()].into(), first: 0, len: 0 }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn place(&self, at: u32) -> usize {
        self.first.wrapping_add(at) as usize & (self.ring.len() - 1)
    }

    /// Adds a number at the end.
    #[inline]
    pub fn push_back(&mut self, number: u32) {
        if self.len() == self.ring.len() {
            self.grow();
        }
        let place = self.place(self.len);
        self.ring[place] = number;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = vec![0; 2 * self.ring.len()];
        larger.iter_mut().zip(self.iter()).for_each(|(to, number)| *to = number);
        // An image that is being written gets the whole old ring.
        self.ring.as_mut_slice();
        (self.ring, self.first) = (larger.into(), 0);
    }

    /// Takes the first number.
    #[inline]
    pub fn pop_front(&mut self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let number = self.ring[self.place(0)];
        (self.first, self.len) = (self.place(1) as u32, self.len - 1);
        Some(number)
    }

    /// Makes the first of the numbers that `is_preferred` the first of all. The others keep their order.
    pub fn bring_forward(&mut self, is_preferred: impl Fn(u32) -> bool) {
        let Some(found) = (0..self.len).find(|&at| is_preferred(self.ring[self.place(at)])) else { return };
        let number = self.ring[self.place(found)];
        for at in (0..found).rev() {
            let (before, behind) = (self.place(at), self.place(at + 1));
            self.ring[behind] = self.ring[before];
        }
        let first = self.place(0);
        self.ring[first] = number;
    }

    /// The numbers, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (before, behind) = self.ring.split_at(self.first as usize);
        behind.iter().chain(before).copied().take(self.len())
    }
}

impl FromIterator<u32> for Queue {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut ring = Vec::from_iter(numbers);
        let len = ring.len() as u32;
        ring.resize(ring.len().next_power_of_two(), 0);
        Self { ring: ring.into(), first: 0, len }
    }
}

impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !image::takes_all() {
            return serializer.collect_seq(self.iter());
        }
        let mut parts = serializer.serialize_tuple(3)?;
        parts.serialize_element(&self.ring)?;
        parts.serialize_element(&self.first)?;
        parts.serialize_element(&self.len)?;
        parts.end()
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !image::is_all_read() {
            return Vec::<u32>::deserialize(deserializer).map(Self::from_iter);
        }
        let (Ring(ring), first, len) = Deserialize::deserialize(deserializer)?;
        if first as usize >= ring.len() || len as usize > ring.len() {
            return Err(D::Error::custom(format!("{len} numbers do not fit into a ring of {}", ring.len())));
        }
        Ok(Self { ring, first, len })
    }
}

struct Ring(Table<u32>);

impl<'de> Deserialize<'de> for Ring {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A queue that was read from a list has room for its numbers.
        deserialize_apart(deserializer, |length, fresh| length.is_power_of_two() && length <= fresh).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::part::random::below;
    use crate::save::{Chunks, Image, Save, read_image, restore};

    #[test]
    fn agrees_with_a_list() {
        let (mut queue, mut list, mut random) = (Queue::with_capacity(3), VecDeque::new(), 1);
        for number in 0..3000 {
            if below(&mut random, 100) < 40 + number % 40 {
                queue.push_back(number as u32);
                list.push_back(number as u32);
            } else if number % 3 == 0 {
                queue.bring_forward(|number| number % 5 == 0);
                let preferred = list.iter().position(|number| number % 5 == 0);
                preferred.and_then(|at| list.remove(at)).into_iter().for_each(|number| list.push_front(number));
            } else {
                assert_eq!(queue.pop_front(), list.pop_front());
            }
            assert_eq!((queue.len(), queue.is_empty()), (list.len(), list.is_empty()));
        }
        assert!(queue.iter().eq(list.iter().copied()));
        let (mut saved, mut expected) = (Vec::new(), Vec::new());
        queue.save(&mut saved);
        list.save(&mut expected);
        assert_eq!(saved, expected, "the form of a list");
        assert_eq!(restore(&Queue::with_capacity(0), &saved), Ok(queue));
    }

    #[test]
    fn an_image_has_what_was_in_it() {
        let mut queue: Queue = (1..=8).collect();
        queue.pop_front();
        let (image, skeleton) = Image::begin(|out| queue.save(out));
        assert!(skeleton.len() < 8, "no number is in the skeleton");
        (20..30).for_each(|number| queue.push_back(number));
        assert!(image.collect(1000, |out| queue.save(out)));
        let chunks = Chunks::new(image.chunks(), image.take());
        let read = |fresh: Queue, skeleton: &[u8]| {
            let read = || restore(&fresh, skeleton).map_err(|error| error.to_string());
            read_image(Box::new(chunks.clone()), true, read)
        };
        assert_eq!(read(Queue::with_capacity(8), &skeleton), Ok((2..=8).collect()));
        assert_eq!(read(Queue::with_capacity(20), &skeleton), Ok((2..=8).collect()));
        assert!(read(Queue::with_capacity(4), &skeleton).is_err(), "it is larger than it can be");
        let damaged = |at: usize, value| [&skeleton[..at], &[value], &skeleton[at + 1..]].concat();
        assert!(read(Queue::with_capacity(8), &damaged(1, 8)).is_err(), "it begins behind its ring");
        assert!(read(Queue::with_capacity(8), &damaged(2, 9)).is_err(), "it has more than its ring");
    }
}
