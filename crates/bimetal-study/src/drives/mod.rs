//! Real drives, predicted from their construction and compared with measurements of reviewers and claims of makers.
//!
//! A drive is a device file (a preset: dies, channels, planes, link, cache policy) and a review (`reviews.toml`:
//! figures with sources). The constants of firmware were fitted to some of the drives, which are marked. The other
//! drives use the same constants and show the accuracy of predictions. Some figures served as input of the
//! construction, such as an unpublished cache size. They are shown but not counted.

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
