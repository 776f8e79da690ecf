//! Logarithm, exponential and power that give the same bits on every machine.
//!
//! The standard library's functions may differ in the last bit between platforms and compiler versions, and one bit is
//! enough to make two replays diverge. These functions use only additions, multiplications and divisions, which IEEE
//! 754 rounds in one way, and are accurate to a few units in the last place over the range that models and generators
//! need.

use std::f64::consts::{LOG2_E, SQRT_2};

/// ln 2 in two parts; the first has zeros at its end, so that a small multiple of it is exact.
const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// Natural logarithm of a positive, finite, normal number.
pub fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh s, and s is within 0.172 of 0: eleven terms reach the last bit.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = (1..=11).rev().fold(0.0, |sum, term| (sum + 1.0 / f64::from(2 * term + 1)) * square);
    let exponent = f64::from(exponent);
    exponent * LN_2_HIGH + (2.0 * s + (2.0 * s * series + exponent * LN_2_LOW))
}

/// e to the power of `x`, for `x` from -700 to 700.
pub fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() <= 700.0);
    let exponent = (x * LOG2_E).round();
    let rest = x - exponent * LN_2_HIGH - exponent * LN_2_LOW;
    let series = (1..=14).rev().fold(1.0, |sum, term| 1.0 + sum * rest / f64::from(term));
    series * f64::from_bits(((exponent as i64 + 1023) as u64) << 52)
}

/// `base` to the power of `exponent`, for a positive base.
pub fn pow(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

/// The whole part of a number. 0 if it is negative or not a number; the largest `u64` if it is too large.
pub fn whole(x: f64) -> u64 {
    x as u64
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "libm is what the tests compare with")]
mod tests {
    use super::*;

    #[test]
    fn they_agree_with_the_standard_library() {
        for number in 1..20_000 {
            let x = f64::from(number) * f64::from(number) * 0.000_317;
            assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1.0), "ln {x}");
            for y in [x / 50.0, -x / 50.0] {
                if y.abs() < 690.0 {
                    assert!((exp(y) / y.exp() - 1.0).abs() < 1e-15, "exp {y}");
                }
            }
            assert!((pow(x, 0.99) / x.powf(0.99) - 1.0).abs() < 1e-14, "pow {x}");
        }
        assert_eq!((ln(1.0), exp(0.0)), (0.0, 1.0));
    }

    #[test]
    fn their_bits_are_fixed() {
        assert_eq!(ln(10.0).to_bits(), 0x4002_6bb1_bbb5_5516);
        assert_eq!(exp(1.0).to_bits(), 0x4005_bf0a_8b14_576a);
        assert_eq!(pow(1e6, -0.99).to_bits(), 0x3eb3_4348_41de_ffc8);
    }
}
