//! Real drives, predicted from their construction and held against what reviewers measured and makers claim.
//!
//! A drive is a device file (a preset: dies, channels, planes, link, cache policy) and a review (`reviews.toml`: figures with
//! sources). The constants of firmware were fitted on some of the drives, which say so; the others have the same constants and show
//! what a prediction is worth. A figure that the construction was taken from, such as the size of a cache that nobody publishes, is
//! shown and not counted.

mod measure;
mod predict;
mod product;
mod review;
mod verdict;

pub use measure::{Curve, Measured, measure};
pub use predict::{ChoiceError, Drive, Predictions, Progress, choose, predict};
pub use product::{Product, products};
pub use review::{Figure, Mark, Review, Role, Sourced, reviews};
pub use verdict::{Assessment, Compared, Verdict, compare};
