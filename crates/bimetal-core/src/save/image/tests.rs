use serde::{Deserialize, Serialize};

use super::*;
use crate::part::random::below;
use crate::save::{Save, Table, entry, restore};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    first: Table<u32>,
    count: u64,
    empty: Table<u8>,
    bits: Table<u64>,
    list: Vec<u32>,
}

impl State {
    fn new() -> Self {
        let words = |count: usize| vec![0; count];
        let (first, bits) = (words(3 * CHUNK_WORDS + 5).into(), vec![0; CHUNK_WORDS].into());
        Self { first, count: 0, empty: Table::default(), bits, list: vec![] }
    }

    fn change(&mut self, random: &mut u64) {
        let at = below(random, self.first.len() as u64) as usize;
        self.first[at] += 1;
        self.first[at.saturating_sub(3)..at].fill(7);
        self.first.swap(at, 0);
        let at = below(random, self.bits.len() as u64) as usize;
        self.bits[at] |= 1 << (at % 64);
        self.count += 1;
        self.list.push(at as u32);
    }
}

fn read(skeleton: &[u8], chunks: Chunks) -> Result<State, String> {
    read_image(Box::new(chunks), true, || restore(&State::new(), skeleton).map_err(|error| error.to_string()))
}

#[test]
fn an_image_is_the_state_of_its_beginning() {
    let (mut state, mut random) = (State::new(), 1);
    for round in 0..20 {
        (0..50).for_each(|_| state.change(&mut random));
        let then = state.clone();
        let (image, skeleton) = Image::begin(|out| state.save(out));
        let mut pieces = Vec::new();
        loop {
            (0..round).for_each(|_| state.change(&mut random));
            let is_complete = image.collect(5000, |out| state.save(out));
            (0..round).for_each(|_| state.change(&mut random));
            pieces.extend(image.take());
            if is_complete {
                break;
            }
        }
        let mut numbers: Vec<u64> = pieces.iter().map(|piece| piece.chunk).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), image.ready_bytes()), (pieces.len(), 0), "each chunk once");
        let mut chunks = Chunks::new(image.chunks(), pieces);
        assert_eq!(read(&skeleton, chunks.clone()), Ok(then));
        chunks.chunks.push(Vec::new());
        assert!(read(&skeleton, chunks.clone()).is_err());
        chunks.chunks.truncate(3);
        assert!(read(&skeleton, chunks).is_err());
    }
}

#[test]
fn a_state_is_saved_whole_beside_its_image() {
    let mut state = State::new();
    let mut before = Vec::new();
    state.save(&mut before);
    let (image, _) = Image::begin(|out| state.save(out));
    let mut beside = Vec::new();
    state.save(&mut beside);
    assert_eq!(before, beside);
    assert!(!image.collect(1, |out| state.save(out)));
    image.abandon(|out| state.save(out));
    state.first[9] = 1;
    let (image, _) = Image::begin(|out| state.save(out));
    assert_eq!(image.ready_bytes(), 0);
    state.first[10] = 1;
    assert_eq!(image.ready_bytes(), 6, "a word and its place");
    state.bits.fill(1);
    assert_eq!(image.ready_bytes(), 6, "it was blank");
}

fn assert_coded(words: &[u32], bytes: usize) {
    let coded = encode(words);
    assert_eq!(coded.len(), bytes);
    let mut decoded = vec![0; words.len()];
    decode(&coded, &mut decoded).unwrap();
    assert_eq!(decoded, words);
}

#[test]
fn a_chunk_takes_as_much_as_is_in_it() {
    let mut words = vec![0; CHUNK_WORDS];
    assert_eq!(encode(&words), [0; 0]);
    words[CHUNK_WORDS - 1] = u32::MAX;
    assert_coded(&words, 6);
    words[..CHUNK_WORDS / 2].fill(3);
    assert_coded(&words, 6 * (CHUNK_WORDS / 2 + 1));
    words[CHUNK_WORDS / 2..].fill(4);
    assert_coded(&words, 4 * CHUNK_WORDS);
    assert_coded(&[0, 7], 6);
    assert_coded(&[6, 7], 8);
    assert!(decode(&[2, 0, 1, 0, 0, 0], &mut [0_u32; 2]).is_err(), "a place behind the chunk");
    assert!(decode(&[0; 7], &mut [0_u32; 2]).is_err(), "a part of a word");
}

#[test]
fn numbers_that_are_none_are_blank() {
    let words = [Some(0), None, Some(u32::MAX - 1)].map(|number: Option<u32>| entry(number.unwrap_or(u32::MAX)));
    assert_eq!(words.map(|word| word.is_none()), [false, true, false]);
    assert_eq!(words.map(crate::save::number), [0, u32::MAX, u32::MAX - 1]);
    assert_eq!(bytes_of(&words), [[0; 4], [255; 4], [254, 255, 255, 255]].concat());
    assert!(!(-0.0_f64).is_blank() && 0.0_f64.is_blank());
}

/// A list that counts how often one of its numbers is saved.
struct Counted(Vec<u32>, std::cell::Cell<usize>);

impl Serialize for Counted {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|number| CountedOne(*number, &self.1)))
    }
}

struct CountedOne<'a>(u32, &'a std::cell::Cell<usize>);

impl Serialize for CountedOne<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.1.set(self.1.get() + 1);
        serializer.serialize_u32(self.0)
    }
}

#[test]
fn collecting_passes_over_lists() {
    let state = (Counted(vec![9; 1000], std::cell::Cell::new(0)), State::new(), Counted(vec![], Default::default()));
    let (image, _) = Image::begin(|out| state.save(out));
    assert_eq!(state.0.1.replace(0), 1000, "they are in the skeleton");
    while !image.collect(1, |out| state.save(out)) {
        assert!(state.0.1.replace(0) <= 1);
    }
}

#[test]
fn a_table_of_another_length_takes_no_memory() {
    let fresh: Table<u32> = vec![0; 5].into();
    let skeleton = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let chunks = Chunks::new(1, Vec::new());
    let read = read_image(Box::new(chunks), true, || restore(&fresh, &skeleton).map_err(|error| error.to_string()));
    assert!(read.is_err());
}
