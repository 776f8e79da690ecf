//! Runs every target over its corpus and over mutations of it: a small part of `make fuzz`, without its compiler flags.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Pseudo-random numbers, the same in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    /// Changes `data` once; some changes insert a piece of `other`.
    fn mutate(&mut self, data: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(data.len() + 1);
        let to = at + self.below((data.len() - at).min(64) + 1);
        match self.below(7) {
            0 if at < data.len() => data[at] ^= 1 << self.below(8),
            1 if at < data.len() => data[at] = [0, 1, 0x7F, 0x80, 0xFF][self.below(5)],
            2 => drop(data.drain(at..to)),
            3 => data.truncate(at),
            4 => {
                let piece = data[at..to].to_vec();
                data.splice(at..at, piece);
            }
            5 => {
                let from = self.below(other.len() + 1);
                let until = from + self.below((other.len() - from).min(256) + 1);
                data.splice(at..at, other[from..until].iter().copied());
            }
            _ => {
                let number = [0_u32, 1, 511, 512, 4096, 1 << 18, 1 << 25, (1 << 25) + 1, 1 << 31, u32::MAX];
                let number = number[self.below(number.len())].to_be_bytes();
                let end = data.len().min(at + 4);
                data[at..end].copy_from_slice(&number[..end - at]);
            }
        }
    }
}

/// Runs a target over its corpus and over a number of mutations.
fn check(name: &str, target: fn(&[u8]), mutations: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(!corpus.is_empty());
    for (data, file) in corpus.iter().zip(&files) {
        if catch_unwind(|| target(data)).is_err() {
            panic!("`cargo run -p bimetal-fuzz --bin fuzz-{name} {}` repeats it", file.display());
        }
    }
    for seed in 0..mutations {
        let mut numbers = Numbers(seed);
        let mut data = corpus[numbers.below(corpus.len())].clone();
        for _ in 0..=numbers.below(6) {
            let other = &corpus[numbers.below(corpus.len())];
            numbers.mutate(&mut data, other);
        }
        data.truncate(1 << 16);
        if catch_unwind(AssertUnwindSafe(|| target(&data))).is_err() {
            let found = std::env::temp_dir().join(format!("bimetal-{name}-{seed}"));
            fs::write(&found, &data).unwrap();
            panic!(
                "mutation {seed} fails; `cargo run -p bimetal-fuzz --bin fuzz-{name} {}` repeats it",
                found.display()
            );
        }
    }
}

#[test]
fn nbd() {
    check("nbd", bimetal_fuzz::nbd, 30_000);
}

#[test]
fn store() {
    check("store", bimetal_fuzz::store, 10_000);
}
