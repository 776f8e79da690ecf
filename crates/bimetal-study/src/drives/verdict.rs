//! Comparison of predicted and measured figures.

use serde::Serialize;

use super::measure::Measured;
use super::review::{Figure, Mark, Review};
use crate::number::NOTHING;

/// A prediction within this relative error counts as correct. Measurements of different reviewers scatter by about this
/// amount.
const WITHIN: f64 = 0.2;

/// The verdict on a predicted figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub enum Verdict {
    /// Within 20 %.
    #[serde(rename = "within 20 %")]
    Within,
    /// Beyond 20 %.
    #[serde(rename = "beyond 20 %")]
    Beyond,
    /// The figure was an input of the construction.
    #[serde(rename = "input")]
    Input,
}

impl Verdict {
    /// The text in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Within => "within 20 %",
            Self::Beyond => "beyond 20 %",
            Self::Input => "input",
        }
    }
}

/// A figure of a drive, predicted and measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Compared {
    /// The figure.
    pub figure: Figure,
    /// Figure of the simulated device; none if it did not occur, such as a second drop.
    pub predicted: Option<f64>,
    /// Published figure of the drive; none if there is no source.
    pub measured: Option<f64>,
    /// Kind of source.
    pub mark: Option<Mark>,
    /// Relative error of the prediction.
    pub error: Option<f64>,
    /// Whether they agree; none without a published figure.
    pub verdict: Option<Verdict>,
}

impl Compared {
    fn of(review: &Review, figure: Figure, known: Option<(f64, Mark)>, predicted: Option<f64>) -> Self {
        let (measured, mark) = known.unzip();
        let error = predicted.zip(measured).map(|(predicted, measured)| predicted / measured - 1.0);
        let verdict = match error {
            _ if review.inputs.contains(&figure) => Verdict::Input,
            Some(error) if error.abs() <= WITHIN => Verdict::Within,
            _ => Verdict::Beyond,
        };
        Self { figure, predicted, measured, mark, error, verdict: measured.map(|_| verdict) }
    }

    /// The error in percent with its sign.
    pub fn shown_error(&self) -> String {
        // The sum with 0 takes the sign from a rounded -0.
        self.error.map_or_else(|| NOTHING.into(), |error| format!("{:+} %", (error * 100.0).round() + 0.0))
    }
}

/// All figures of a drive.
pub fn compare(review: &Review, measured: &Measured) -> Vec<Compared> {
    let predicted = |figure| measured.figures.get(figure).copied();
    review.figures.iter().map(|(figure, &known)| Compared::of(review, *figure, known, predicted(figure))).collect()
}

/// Accuracy over the figures of several drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Assessment {
    /// Counted figures: those with a verdict that are not inputs.
    pub figures: usize,
    /// Figures within 20 %.
    pub within: usize,
    /// Share of figures within 20 %; none if no figure counts.
    pub share: Option<f64>,
    /// Median of the absolute relative errors; none if no figure counts.
    pub median_error: Option<f64>,
}

impl Assessment {
    /// Assesses figures. A figure that the device does not show has an error of 100 %.
    pub fn of<'a>(figures: impl IntoIterator<Item = &'a Compared>) -> Self {
        let counts = |figure: &&Compared| matches!(figure.verdict, Some(Verdict::Within | Verdict::Beyond));
        let counted: Vec<&Compared> = figures.into_iter().filter(counts).collect();
        let within = counted.iter().filter(|figure| figure.verdict == Some(Verdict::Within)).count();
        let mut errors: Vec<f64> = counted.iter().map(|figure| figure.error.map_or(1.0, f64::abs)).collect();
        errors.sort_by(f64::total_cmp);
        Self {
            figures: counted.len(),
            within,
            share: (!counted.is_empty()).then(|| within as f64 / counted.len() as f64),
            median_error: median(&errors),
        }
    }

    /// The assessment in words; none if no figure counts.
    pub fn sentence(&self) -> Option<String> {
        let [share, error] = [self.share?, self.median_error?].map(|share| (share * 100.0).round());
        let Self { figures, within, .. } = self;
        Some(format!("{within} of {figures} figures within 20 % ({share} %), median error {error} %"))
    }
}

/// The median of a sorted list.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { *middle } else { (sorted[sorted.len() / 2 - 1] + middle) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives::reviews;

    /// The figures of a drive, one of which is an input, with these predictions for the others.
    fn compared(predicted: &[(Figure, f64)]) -> Vec<Compared> {
        let mut review = reviews()[0].clone();
        review.inputs = vec![Figure::CacheGb];
        review.figures = [(Figure::CacheMbPerS, 1000.0), (Figure::CacheGb, 10.0), (Figure::AfterMbPerS, 400.0)]
            .map(|(figure, value)| (figure, Some((value, Mark::Measured))))
            .into();
        review.figures.insert(Figure::FillMbPerS, None);
        compare(&review, &Measured { figures: predicted.iter().copied().collect(), ..Measured::default() })
    }

    #[test]
    fn a_figure_is_judged_by_how_far_it_is_off() {
        use Figure::*;
        let figures = compared(&[(CacheMbPerS, 1200.0), (CacheGb, 50.0), (AfterMbPerS, 300.0), (FillMbPerS, 1.0)]);
        let verdicts: Vec<_> = figures.iter().map(|figure| figure.verdict).collect();
        assert_eq!(verdicts, [Some(Verdict::Within), Some(Verdict::Input), Some(Verdict::Beyond), None]);
        assert!((figures[0].error.unwrap() - 0.2).abs() < 1e-9 && figures[2].error == Some(-0.25));
        assert_eq!((figures[2].shown_error().as_str(), figures[3].shown_error().as_str()), ("-25 %", "–"));
        let exact = compared(&[(CacheMbPerS, 999.0)])[0];
        assert_eq!(exact.shown_error(), "+0 %", "not -0");
        assert_eq!((figures[3].predicted, figures[3].measured, figures[3].error), (Some(1.0), None, None));
    }

    #[test]
    fn inputs_and_what_nobody_knows_do_not_count() {
        use Figure::*;
        let assessed = |predicted: &[(Figure, f64)]| Assessment::of(&compared(predicted));
        let both = assessed(&[(CacheMbPerS, 1100.0), (CacheGb, 50.0), (AfterMbPerS, 300.0), (FillMbPerS, 1.0)]);
        assert_eq!((both.figures, both.within, both.share), (2, 1, Some(0.5)));
        assert!((both.median_error.unwrap() - 0.175).abs() < 1e-9, "the mean of 10 and 25 %");
        let missing = assessed(&[(CacheMbPerS, 1000.0)]);
        assert_eq!(
            (missing.within, missing.median_error),
            (1, Some(0.5)),
            "a drop that is not there is off by all of it"
        );
        let (none, sentence) = (Assessment::of(&[]), "1 of 2 figures within 20 % (50 %), median error 50 %");
        assert_eq!((none, none.sentence()), (Assessment::default(), None));
        assert_eq!(missing.sentence().unwrap(), sentence);
    }
}
