//! Numbers as people read them.

use bimetal_core::part::real::whole;
use bimetal_core::report::Unit;

/// What a figure that is not defined is shown as.
pub const NOTHING: &str = "–";
/// What a figure of the responses of an overloaded device is shown as: it would say how long the trace is.
pub const OVERLOAD: &str = "overload";
/// In front of a figure of the responses of a device that is overloaded in bursts.
pub const IN_BURSTS: &str = "!";
/// In front of a life that is extrapolated from less than one overwrite of the device.
pub const EXTRAPOLATED: &str = "~";
/// Behind the name of a scheme that no other one of its group is better than.
pub const ON_FRONT: &str = "*";

/// `1,234,567`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three or more significant digits: `0.123`, `1.23`, `12.3`, `1,234`.
pub fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size >= 99.95 => thousands_signed(value),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size >= 0.0005 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

/// How far behind, in few digits: `12 s`, `1.5 s`, `340 ms`.
pub fn behind(seconds: f64) -> String {
    let (unit, size) = common_unit(TIMES, std::iter::once(seconds * 1e6), 1.0);
    let value = seconds * 1e6 / size;
    if value >= 9.95 { format!("{} {unit}", thousands_signed(value)) } else { format!("{value:.1} {unit}") }
}

/// An amount of dollars: to the cent, below one with three significant digits, and from ten thousand on without cents.
pub fn dollars(usd: f64) -> String {
    if (0.995..9_999.995).contains(&usd.abs()) { format!("{usd:.2}") } else { significant(usd) }
}

/// The value of a number that is shown so.
pub fn as_shown(text: &str) -> f64 {
    text.replace(',', "").parse().unwrap_or(f64::NAN)
}

/// A count as it is, any other figure with three significant digits.
pub fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { thousands_signed(value) } else { significant(value) }
}

fn thousands_signed(value: f64) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:.2e}");
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", thousands(whole(value.abs().round())))
}

/// Units from small to large, with what one is in the base unit.
pub type Units = &'static [(&'static str, f64)];

/// Times; the base unit is the microsecond.
pub const TIMES: Units = &[("µs", 1.0), ("ms", 1e3), ("s", 1e6), ("h", 3.6e9)];

/// Sizes; the base unit is the byte.
pub const SIZES: Units = &[
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
];

/// Lives; the base unit is the year.
pub const LIVES: Units = &[("hours", 1.0 / 8766.0), ("days", 1.0 / 365.25), ("years", 1.0)];

/// The units that figures of a unit are shown in; the base unit is that one.
pub fn units(unit: Unit) -> Units {
    match unit {
        Unit::Ratio => &[("", 1.0)],
        Unit::Microsecond => TIMES,
        Unit::Year => LIVES,
        Unit::Byte => SIZES,
        Unit::Joule => &[("mJ", 1e-3), ("J", 1.0), ("kJ", 1e3)],
        Unit::Dollar => &[("USD", 1.0)],
    }
}

/// A figure of a unit, as it is in one of [`units`]: amounts of dollars have cents.
pub fn in_unit(unit: Unit, value: f64) -> String {
    if unit == Unit::Dollar { dollars(value) } else { significant(value) }
}

/// A label with its unit, if it has one: `life (days)`.
pub fn labelled(label: &str, unit: &str) -> String {
    if unit.is_empty() { label.to_owned() } else { format!("{label} ({unit})") }
}

/// A label with a capital letter first, as a title has it.
pub fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Counts per second.
pub const RATES: Units = &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)];

/// The largest unit of which all these values are at least `least`, so that they can stand side by side.
pub fn common_unit(units: Units, values: impl Iterator<Item = f64>, least: f64) -> (&'static str, f64) {
    let smallest = values.filter(|&value| value > 0.0).fold(f64::INFINITY, f64::min);
    let fits = |&&(_, size): &&(&str, f64)| smallest.is_finite() && smallest >= size * least;
    units.iter().rev().find(fits).copied().unwrap_or(units[0])
}

/// A value with its own unit: `12.3 MiB`.
pub fn with_unit(units: Units, value: f64) -> String {
    let (name, size) = common_unit(units, std::iter::once(value), 1.0);
    format!("{} {name}", significant(value / size)).trim_end().to_owned()
}

/// `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_012, "1.2e-5"),
            (0.5, "0.500"),
            (1.0, "1.00"),
            (9.999, "10.0"),
            (99.96, "100"),
            (1234.4, "1,234"),
            (-1_234_567.0, "-1,234,567"),
            (1e18, "1.00e18"),
        ] {
            assert_eq!(significant(value), text);
            assert_eq!(significant(as_shown(text)), text);
        }
        for (value, text) in
            [(1_234_567.0, "1,234,567"), (-2.0, "-2"), (0.5, "0.500"), (99.99, "100"), (1e18, "1.00e18")]
        {
            assert_eq!(plain(value), text);
        }
        for (usd, text) in [
            (0.0, "0"),
            (0.0561, "0.056"),
            (0.468, "0.468"),
            (0.999, "1.00"),
            (1234.5, "1234.50"),
            (98_765.4, "98,765"),
        ] {
            assert_eq!(dollars(usd), text);
        }
        assert_eq!(thousands(100), "100");
        assert_eq!(thousands(18_446_744_073_709_551_615), "18,446,744,073,709,551,615");
    }

    #[test]
    fn a_backlog_has_few_digits() {
        for (seconds, text) in
            [(12.3, "12 s"), (1.52, "1.5 s"), (0.34, "340 ms"), (1234.0, "1,234 s"), (36_000.0, "10 h")]
        {
            assert_eq!(behind(seconds), text);
        }
    }

    #[test]
    fn units_suit_all_values() {
        assert_eq!(common_unit(TIMES, [1500.0, 90_000.0].into_iter(), 1.0).0, "ms");
        assert_eq!(common_unit(TIMES, [0.0, 90.0].into_iter(), 1.0).0, "µs");
        assert_eq!(common_unit(TIMES, [0.0].into_iter(), 1.0).0, "µs");
        assert_eq!(with_unit(SIZES, 1_610_612_736.0), "1.50 GiB");
        assert_eq!(with_unit(RATES, 2_500_000.0), "2.50 M");
        assert_eq!(percent(0.0525), "5.2 %");
    }
}
