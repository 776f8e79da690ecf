//! Lengths of runs in tables, found a chunk at a time.

/// Values that are looked at together.
const CHUNK: usize = 16;

/// Number of values before the first one that `ends` the run; all of them if none does. A chunk without such a value is
/// passed over by one test, which the compiler vectorises.
#[inline]
pub fn run_length<T: Copy>(values: &[T], ends: impl Fn(T) -> bool) -> usize {
    let (chunks, _) = values.as_chunks::<CHUNK>();
    let has_end = |chunk: &[T; CHUNK]| chunk.iter().fold(false, |found, &value| found | ends(value));
    let before = chunks.iter().position(has_end).unwrap_or(chunks.len()) * CHUNK;
    let rest = &values[before..];
    before + rest.iter().position(|&value| ends(value)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_the_first_value_that_ends_it() {
        for length in [0, 1, 15, 16, 17, 100] {
            let mut values = vec![0u8; length];
            assert_eq!(run_length(&values, |value| value > 0), length);
            for end in (0..length).rev() {
                values[end] = 1;
                assert_eq!(run_length(&values, |value| value > 0), end, "of {length}");
            }
        }
    }
}
