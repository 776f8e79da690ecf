//! Values in a study file: one value, a list, or a range with a number of steps.

use std::fmt;

use bimetal_core::part::real::{exp, ln, whole};
use bimetal_core::units::ByteSize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A setting's value: text, number or boolean.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scalar(pub String);

/// One value or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values(pub Vec<String>);

impl From<Scalar> for Values {
    fn from(scalar: Scalar) -> Self {
        Self(vec![scalar.0])
    }
}

/// One text or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Texts(pub Vec<String>);

/// A number of values between two bounds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    from: Scalar,
    to: Scalar,
    count: u32,
    #[serde(default)]
    scale: Scale,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scale {
    /// Equal differences between neighbours.
    #[default]
    Linear,
    /// Equal ratios between neighbours.
    Log,
}

/// Largest number of values in a range; more are a mistake.
const COUNT_MAX: u32 = 10_000;

impl Range {
    fn values(&self) -> Result<Vec<String>, String> {
        let (from, to) = (Quantity::parse(&self.from.0)?, Quantity::parse(&self.to.0)?);
        let unit = from.unit.common(to.unit).ok_or_else(|| {
            format!(
                "`{}` and `{}` are not of the same kind: write two numbers, two sizes or two shares",
                self.from.0, self.to.0
            )
        })?;
        if !(2..=COUNT_MAX).contains(&self.count) {
            return Err(format!("`count` is {}: write the number of values, 2 to {COUNT_MAX}", self.count));
        }
        if matches!(self.scale, Scale::Log) && !(from.number > 0.0 && to.number > 0.0) {
            return Err("values of a log scale are above 0".into());
        }
        let last = self.count - 1;
        let at = |index: u32| {
            let share = f64::from(index) / f64::from(last);
            match self.scale {
                _ if index == 0 => from.number,
                _ if index == last => to.number,
                Scale::Linear => from.number + (to.number - from.number) * share,
                Scale::Log => from.number * exp(ln(to.number / from.number) * share),
            }
        };
        let mut values: Vec<String> = (0..self.count).map(|index| unit.write(at(index))).collect();
        values.dedup();
        Ok(values)
    }
}

/// A number with its unit.
struct Quantity {
    number: f64,
    unit: Unit,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Whole,
    Number,
    Percent,
    /// Bytes, in whole multiples of this number.
    Size(u64),
}

impl Quantity {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        if let Some(percent) = text.trim().strip_suffix('%').and_then(number) {
            return Ok(Self { number: percent, unit: Unit::Percent });
        }
        if let Some(plain) = number(text) {
            let is_whole = text.trim().parse::<i64>().is_ok() && plain.abs() < 1e15;
            return Ok(Self { number: plain, unit: if is_whole { Unit::Whole } else { Unit::Number } });
        }
        let size: ByteSize = text.parse().map_err(|_| format!("`{text}` is no number, size or share"))?;
        let multiple =
            [40, 30, 20, 10, 0].into_iter().map(|shift| 1u64 << shift).find(|unit| size.0.is_multiple_of(*unit));
        Ok(Self { number: size.0 as f64, unit: Unit::Size(multiple.unwrap_or(1)) })
    }
}

impl Unit {
    fn common(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Whole | Self::Number, Self::Whole | Self::Number) if self != other => Some(Self::Number),
            (Self::Size(a), Self::Size(b)) => Some(Self::Size(a.min(b))),
            _ => (self == other).then_some(self),
        }
    }

    fn write(self, number: f64) -> String {
        match self {
            // Zero without a sign.
            Self::Whole => format!("{:.0}", number.round() + 0.0),
            Self::Number => six_digits(number),
            Self::Percent => format!("{}%", six_digits(number)),
            Self::Size(multiple) => ByteSize(whole((number / multiple as f64).round()) * multiple).to_string(),
        }
    }
}

/// A number with six significant digits.
fn six_digits(number: f64) -> String {
    let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    rounded.to_string()
}

/// Visitor methods that make a `T` of a single value.
macro_rules! visit_scalars {
    () => {
        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Scalar(text.trim().to_owned()).into())
        }
        fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
            Ok(Scalar(value.to_string()).into())
        }
        fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
            Ok(Scalar(value.to_string()).into())
        }
        fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
            Ok(Scalar(value.to_string()).into())
        }
        fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
            // `{:?}` keeps the decimal point of a whole number.
            Ok(Scalar(format!("{value:?}")).into())
        }
    };
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl Visitor<'_> for One {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a number, true or false")
            }
            visit_scalars!();
        }
        deserializer.deserialize_any(One)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Several;
        impl<'de> Visitor<'de> for Several {
            type Value = Values;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, a list of values, or { from = .., to = .., count = .. }")
            }
            visit_scalars!();
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some(Scalar(value)) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Values(values))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Values, A::Error> {
                let range = Range::deserialize(MapAccessDeserializer::new(map))?;
                range.values().map(Values).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(Several)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Several;
        impl<'de> Visitor<'de> for Several {
            type Value = Texts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list of texts")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = seq.next_element()? {
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        deserializer.deserialize_any(Several)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct File {
        v: Values,
    }

    fn values(text: &str) -> Result<Vec<String>, String> {
        toml::from_str(&format!("v = {text}")).map(|file: File| file.v.0).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn one_value_is_a_list_of_one() {
        assert_eq!(values("4"), Ok(vec!["4".into()]));
        assert_eq!(values("[0.5, \"5%\", true]").unwrap(), ["0.5", "5%", "true"]);
        assert!(values("[[1]]").is_err());
    }

    #[test]
    fn ranges_have_round_ends_and_values_of_their_kind() {
        for (text, expected) in [
            ("{ from = 1, to = 8, count = 8 }", "1 2 3 4 5 6 7 8"),
            ("{ from = 8, to = 1, count = 3 }", "8 5 1"),
            ("{ from = 1, to = 3, count = 9 }", "1 2 3"),
            ("{ from = 1.0, to = 2, count = 3 }", "1 1.5 2"),
            ("{ from = 0.1, to = 10, count = 3, scale = \"log\" }", "0.1 1 10"),
            ("{ from = \"5%\", to = \"20%\", count = 4 }", "5% 10% 15% 20%"),
            ("{ from = \"16MiB\", to = \"256MiB\", count = 5, scale = \"log\" }", "16MiB 32MiB 64MiB 128MiB 256MiB"),
            ("{ from = \"16MiB\", to = \"1GiB\", count = 4, scale = \"log\" }", "16MiB 64MiB 256MiB 1GiB"),
            ("{ from = \"16MiB\", to = \"256MiB\", count = 4, scale = \"log\" }", "16MiB 40MiB 102MiB 256MiB"),
        ] {
            assert_eq!(values(text).unwrap().join(" "), expected, "{text}");
        }
        for (text, said) in [
            ("{ from = 1, to = 8 }", "count"),
            ("{ from = 1, to = 8, count = 1 }", "2 to"),
            ("{ from = 0, to = 8, count = 3, scale = \"log\" }", "above 0"),
            ("{ from = 1, to = 8, count = 3, scale = \"cubic\" }", "cubic"),
            ("{ from = 1, to = \"8%\", count = 3 }", "the same kind"),
            ("{ from = \"a\", to = 8, count = 3 }", "`a`"),
            ("{ from = 1, to = 8, count = 3, step = 2 }", "step"),
        ] {
            let error = values(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
