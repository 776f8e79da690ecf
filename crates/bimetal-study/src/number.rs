//! Numbers formatted for people.

use bimetal_core::part::real::whole;
use bimetal_core::report::Unit;

/// Stands for an undefined figure.
pub const NOTHING: &str = "–";
/// Stands for a response figure of an overloaded device, which would only reflect the length of the trace.
pub const OVERLOAD: &str = "overload";
/// Precedes a response figure of a device that is overloaded in bursts.
pub const IN_BURSTS: &str = "!";
/// Precedes a life that is extrapolated from less than one overwrite of the device.
pub const EXTRAPOLATED: &str = "~";
/// Number of overwrites of a device from which on its life is not extrapolated.
pub const KNOWN_FROM_OVERWRITES: f64 = 1.0;
/// Follows the name of a scheme on the Pareto front of its group.
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

/// A number of things: `1 read`, `1,234 reads`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// Three or more significant digits: `0.123`, `1.23`, `12.3`, `1,234`. Below 0.1 three decimals, below 0.0005 two
/// digits.
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

/// A backlog in few digits: `12 s`, `1.5 s`, `340 ms`.
pub fn behind(seconds: f64) -> String {
    let (unit, size) = common_unit(TIMES, std::iter::once(seconds * 1e6), 1.0);
    let value = seconds * 1e6 / size;
    if value >= 9.95 { format!("{} {unit}", thousands_signed(value)) } else { format!("{value:.1} {unit}") }
}

/// An amount in US dollars: with cents, below 1 USD with three significant digits, from 10,000 USD on without cents.
pub fn dollars(usd: f64) -> String {
    if (0.995..9_999.995).contains(&usd.abs()) { format!("{usd:.2}") } else { significant(usd) }
}

/// The value of a formatted number.
pub fn as_shown(text: &str) -> f64 {
    text.replace(',', "").parse().unwrap_or(f64::NAN)
}

/// A whole number in full, any other number with three significant digits.
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

/// Units from small to large, each with its size in the base unit.
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

/// The display units of a figure. Their base unit is `unit`.
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

/// A value in one of the display units of `unit`. Amounts in dollars have cents.
pub fn in_unit(unit: Unit, value: f64) -> String {
    if unit == Unit::Dollar { dollars(value) } else { significant(value) }
}

/// A label with its unit, if it has one: `life (days)`.
pub fn labelled(label: &str, unit: &str) -> String {
    if unit.is_empty() { label.to_owned() } else { format!("{label} ({unit})") }
}

/// The text with its first letter in upper case, as in a title.
pub fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Counts per second.
pub const RATES: Units = &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)];

/// The largest unit in which each of these values is at least `least`. All values are shown in it, side by side.
pub fn common_unit(units: Units, values: impl Iterator<Item = f64>, least: f64) -> (&'static str, f64) {
    let smallest = values.filter(|&value| value > 0.0).fold(f64::INFINITY, f64::min);
    let fits = |&&(_, size): &&(&str, f64)| smallest.is_finite() && smallest >= size * least;
    units.iter().rev().find(fits).copied().unwrap_or(units[0])
}

/// A value in a suitable unit: `12.3 MiB`.
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
    fn one_thing_is_not_a_plural() {
        let shown = [0, 1, 1234].map(|count| counted(count, "read"));
        assert_eq!(shown, ["0 reads", "1 read", "1,234 reads"]);
    }

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
