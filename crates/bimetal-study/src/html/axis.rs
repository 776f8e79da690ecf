//! Axes: numeric ones with round ticks, also on logarithmic scales, and axes of names.

use bimetal_core::part::real::whole;
use serde_json::{Value, json};

use super::markup::escape;
use super::style::{GRID, INK};
use crate::figure;
use crate::listing::broken;
use crate::number::plain;

/// Number of ticks that fit side by side on a phone.
const TICKS: usize = 6;
/// If all values are below this, ticks have powers of ten.
const SMALL: f64 = 0.001;

fn axis() -> Value {
    json!({ "automargin": true, "gridcolor": GRID, "linecolor": INK, "showline": true, "zeroline": false })
}

/// A numeric axis over these values. If `zero` is set, a linear axis starts at 0.
pub(super) fn number_axis(described: &figure::Axis, values: &[f64], zero: bool) -> Value {
    let mut axis = axis();
    if described.logarithmic {
        let ticks = logarithmic_ticks(values);
        axis["type"] = json!("log");
        axis["tickmode"] = json!("array");
        axis["ticktext"] = ticks.iter().map(|&tick| tick_label(tick)).collect();
        axis["tickvals"] = json!(ticks);
    } else {
        axis["rangemode"] = json!(if zero { "tozero" } else { "normal" });
        axis["nticks"] = json!(TICKS);
        axis["separatethousands"] = json!(true);
        axis["exponentformat"] = json!(exponents(values));
    }
    axis["hoverformat"] = json!(under_the_mouse(values));
    axis
}

/// Form of the ticks of a linear axis: `20k`, `3M`. The prefix µ is not used, because units such as % have none.
fn exponents(values: &[f64]) -> &'static str {
    let most = values.iter().filter(|value| value.is_finite()).fold(0.0, |most: f64, value| most.max(value.abs()));
    if most < SMALL { "e" } else { "SI" }
}

/// Form of a value under the mouse, without a prefix, as in the table: whole numbers in full, others with seven digits.
fn under_the_mouse(values: &[f64]) -> &'static str {
    if values.iter().all(|value| value.fract() == 0.0) { ",d" } else { ",.7~r" }
}

/// An axis of names. If the names are listed vertically, the first one is at the top.
pub(super) fn name_axis(names: Vec<String>, lying: bool) -> Value {
    let end = names.len() as f64 - 0.5;
    let mut axis = axis();
    axis["type"] = json!("category");
    axis["categoryorder"] = json!("array");
    axis["categoryarray"] = json!(names);
    axis["range"] = if lying { json!([end, -0.5]) } else { json!([-0.5, end]) };
    axis["showgrid"] = json!(!lying);
    axis["tickmode"] = json!("linear");
    axis["dtick"] = json!(1);
    axis
}

/// Powers of ten around the values; if there are few, also 2 and 5 times these. If the values are so close to each other
/// that fewer than two of these are among them, ticks at equal distances.
fn logarithmic_ticks(values: &[f64]) -> Vec<f64> {
    let positive = || values.iter().copied().filter(|&value| value > 0.0 && value.is_finite());
    let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
    if most == 0.0 {
        return Vec::new();
    }
    let (first, last) = (power_of_ten(least.log10().floor()), power_of_ten(most.log10().ceil()));
    let factors: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let step = (last - first).unsigned_abs() as usize / (TICKS + 1) + 1;
    let powers = (first..=last).step_by(step);
    let ticks: Vec<f64> = powers.flat_map(|power| factors.iter().map(move |&factor| decimal(factor, power))).collect();
    let among = ticks.iter().filter(|&&tick| (least..=most).contains(&tick)).count();
    if among < 2 && least < most { equidistant_ticks(least, most) } else { ticks }
}

/// About four ticks at round distances around the values.
fn equidistant_ticks(least: f64, most: f64) -> Vec<f64> {
    let distance = (most - least) / 3.0;
    let power = power_of_ten(distance.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|&factor| decimal(factor, power) >= distance).unwrap_or(10.0);
    let (first, last) = ((least / decimal(factor, power)).floor(), (most / decimal(factor, power)).ceil());
    let ticks = (0..=whole(last - first)).map(|n| decimal((first + n as f64) * factor, power));
    ticks.filter(|&tick| tick > 0.0).collect()
}

/// A whole logarithm of a number.
#[expect(clippy::cast_possible_truncation, reason = "no `f64` has more than 324 decimal places")]
fn power_of_ten(logarithm: f64) -> i32 {
    logarithm as i32
}

/// A whole number of powers of ten, as its decimal digits are read.
fn decimal(number: f64, power: i32) -> f64 {
    if power < 0 { number / 10f64.powi(-power) } else { number * 10f64.powi(power) }
}

fn tick_label(tick: f64) -> String {
    match tick {
        1.0..1e8 if tick.fract() == 0.0 => plain(tick),
        SMALL..1e8 => format!("{tick}"),
        _ => format!("{tick:e}"),
    }
}

/// HTML text in lines of at most `most` characters, unless a word is longer.
pub(super) fn with_breaks(text: &str, most: usize) -> String {
    broken(text, most).iter().map(|line| escape(line)).collect::<Vec<_>>().join("<br>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithmic_ticks_are_round_and_few() {
        assert_eq!(logarithmic_ticks(&[32.0, 512.0]), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3]);
        assert_eq!(logarithmic_ticks(&[0.0, 0.5, 900.0]), [0.1, 1.0, 10.0, 100.0, 1000.0]);
        assert!(logarithmic_ticks(&[1e-9, 1e9]).len() <= 10);
        assert!(logarithmic_ticks(&[0.0, f64::NAN]).is_empty());
        assert_eq!(logarithmic_ticks(&[18.9, 19.4, 31.9]), [15.0, 20.0, 25.0, 30.0, 35.0]);
        assert_eq!(logarithmic_ticks(&[40.0, 45.1]), [40.0, 42.0, 44.0, 46.0]);
        assert_eq!(logarithmic_ticks(&[0.0102, 0.0107]), [0.0102, 0.0104, 0.0106, 0.0108]);
        assert_eq!(logarithmic_ticks(&[3.0, 3.0]), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        for (tick, label) in [
            (0.02, "0.02"),
            (0.0104, "0.0104"),
            (1.0, "1"),
            (40.5, "40.5"),
            (5000.0, "5,000"),
            (1e6, "1,000,000"),
            (1e8, "1e8"),
            (1e-4, "1e-4"),
        ] {
            assert_eq!(tick_label(tick), label);
        }
    }

    #[test]
    fn values_have_no_prefix_under_the_mouse_and_small_ones_none_on_the_axis() {
        let forms = |axis: figure::Axis, values: &[f64]| {
            let axis = number_axis(&axis, values, true);
            [axis["exponentformat"].clone(), axis["hoverformat"].clone()]
        };
        let of_linear = |values: &[f64]| forms(figure::Axis::linear("life used (%)"), values);
        assert_eq!(of_linear(&[235_496.0, 0.0]), [json!("SI"), json!(",d")]);
        assert_eq!(of_linear(&[1.28e-4, f64::NAN]), [json!("e"), json!(",.7~r")]);
        assert_eq!(of_linear(&[1.28e-4, 0.5]), [json!("SI"), json!(",.7~r")]);
        assert_eq!(forms(figure::Axis::logarithmic("sectors"), &[187_123.0])[1], json!(",d"));
    }

    #[test]
    fn names_are_broken_between_words() {
        assert_eq!(with_breaks("a <very> long name", 8), "a &lt;very&gt;<br>long<br>name");
        assert_eq!(with_breaks("indivisible", 4), "indivisible");
    }
}
