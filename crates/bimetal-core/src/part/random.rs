//! Seeded pseudo-random numbers and hashes: the same on every machine.

/// The next number of the SplitMix64 sequence (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*,
/// OOPSLA 2014).
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A number below `bound`, without division (Lemire's multiply-shift; its bias is below `bound / 2^64`).
pub fn below(state: &mut u64, bound: u64) -> u64 {
    ((u128::from(split_mix(state)) * u128::from(bound)) >> 64) as u64
}

/// A number in [0, 1).
pub fn unit(state: &mut u64) -> f64 {
    (split_mix(state) >> 11) as f64 / (1u64 << 53) as f64
}

/// Multipliers of [`hash`] for the index of pages: any odd numbers without pattern will do, if no two uses share them.
pub const INDEX: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// Multipliers of [`hash`] for the choice of pages that are sampled.
pub const SAMPLING: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// A hash of a number, equal for equal numbers; hashes with other multipliers are independent of it.
#[inline]
pub fn hash(number: u32, multipliers: [u64; 2]) -> u32 {
    let mixed = u64::from(number).wrapping_add(1).wrapping_mul(multipliers[0]);
    ((mixed ^ (mixed >> 32)).wrapping_mul(multipliers[1]) >> 32) as u32
}
