//! Figures: name, title, unit, direction and meaning of each, declared once.
//!
//! [`figures!`] makes two things from a list of figures: the struct that holds them, whose fields are their names in
//! JSON, and the table `ALL` of [`Figure`]s. The tables and pages of the study, the order of `compare` and the columns
//! of a sweep iterate this table. A new figure is one entry in its list, and the code that computes it.

/// A figure of a struct `F`.
#[derive(Debug)]
pub struct Figure<F> {
    /// Name in JSON, in columns and in Python, with its unit.
    pub name: &'static str,
    /// Title on screens.
    pub title: &'static str,
    /// The title above a column of a table, in one line or two.
    pub head: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Which of two values is better.
    pub better: Better,
    /// Where it is shown.
    pub shown: Shown,
    /// Its doc comment.
    pub(super) documentation: &'static str,
    /// Its value; `None` if it is not defined.
    pub of: fn(&F) -> Option<f64>,
}

/// The unit of a figure, as it is in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A value divided by another of the same unit.
    Ratio,
    /// 1e-6 s.
    Microsecond,
    /// Years of 365.25 days.
    Year,
    /// Bytes.
    Byte,
    /// Joules.
    Joule,
    /// US dollars.
    Dollar,
}

impl Unit {
    /// Its name in references.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Microsecond => "µs",
            Self::Year => "years",
            Self::Byte => "bytes",
            Self::Joule => "J",
            Self::Dollar => "USD",
        }
    }
}

/// Which of two values of a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
    /// Neither: the figure only describes.
    Neither,
}

impl Better {
    /// Its name in references.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::Neither => "neither",
        }
    }
}

/// Where a figure is shown. All are in JSON, in the columns of a sweep and in the output with all details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// In the table of schemes, in the order of these places, and on pages.
    Table(u8),
    /// On pages.
    Page,
    /// Only in details.
    Details,
}

impl<F> Figure<F> {
    /// Its meaning: the doc comment.
    pub fn meaning(&self) -> &'static str {
        self.documentation.trim()
    }

    /// Its value, negated if higher is better, so that lower is better; `None` for a figure without a better value.
    pub fn badness(&self, of: &F) -> Option<f64> {
        let value = (self.of)(of)?;
        match self.better {
            Better::Lower => Some(value),
            Better::Higher => Some(-value),
            Better::Neither => None,
        }
    }

    /// Whether it is extrapolated from the measured wear.
    pub fn is_extrapolated(&self) -> bool {
        matches!(self.unit, Unit::Year | Unit::Byte)
    }
}

/// Declares a struct of figures and its table. Fields in parentheses come first and are not figures.
macro_rules! figures {
    (
        $(#[$outer:meta])*
        pub struct $Figures:ident ($($field:ident: $kind:ty = $said:tt),*) {
            $($(#[doc = $documentation:tt])+ $name:ident: $type:ty = $title:literal, $head:literal, $unit:ident, $better:ident, $shown:expr;)+
        }
    ) => {
        $(#[$outer])*
        pub struct $Figures {
            $(#[doc = $said] pub $field: $kind,)*
            $($(#[doc = $documentation])+ pub $name: $type,)+
        }

        impl $Figures {
            /// All figures, in the order of JSON.
            pub const ALL: &'static [$crate::report::Figure<Self>] = &[$($crate::report::Figure {
                name: stringify!($name),
                title: $title,
                head: $head,
                unit: $crate::report::Unit::$unit,
                better: $crate::report::Better::$better,
                shown: $shown,
                documentation: concat!($($documentation),+),
                of: |figures| figures.$name.into(),
            }),+];
        }
    };
}
pub(super) use figures;
