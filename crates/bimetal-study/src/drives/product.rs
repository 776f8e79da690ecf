//! Drives as products: data-sheet values and measurements of drives on the market.

use super::predict::{ChoiceError, choose};
use super::review::{Figure, Review};

/// A drive as a product.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// Name on the command line, which is the name of its device.
    pub name: String,
    /// Maker and model.
    pub title: String,
    /// Year of its release, if known.
    pub released: Option<u16>,
    /// Host writes that its warranty covers, in TB of 10^12 bytes, if known.
    pub rated_tbw: Option<f64>,
    /// MB/s of sequential reads.
    pub read_mb_per_s: Option<f64>,
    /// MB/s of sequential writes, into the cache if it has one.
    pub write_mb_per_s: Option<f64>,
    /// Random 4-KiB reads per second with many outstanding.
    pub read_iops: Option<f64>,
    /// Random 4-KiB writes per second with many outstanding: into the cache, or steady if only that is known.
    pub write_iops: Option<f64>,
}

/// The drives chosen by [`choose`]; all if no name is given. A drive with reviews of several parts occurs once.
///
/// # Errors
/// The first unknown name.
pub fn products(names: &[String]) -> Result<Vec<Product>, ChoiceError> {
    let mut products: Vec<Product> = Vec::new();
    for review in choose(names)? {
        if products.iter().all(|known| known.name != review.device) {
            products.push(Product::of(review));
        }
    }
    Ok(products)
}

impl Product {
    fn of(review: &Review) -> Self {
        let figure = |figure: &Figure| review.figures.get(figure).copied().flatten().map(|(value, _)| value);
        let first = |figures: &[Figure]| figures.iter().find_map(figure);
        // The title of a part of a drive continues with the part's description.
        let title = review.title.split(", ").next().unwrap_or(&review.title);
        Self {
            name: review.device.clone(),
            title: title.to_owned(),
            released: review.released.as_ref().map(|year| year.value),
            rated_tbw: review.rated_tbw.as_ref().map(|tbw| tbw.value),
            read_mb_per_s: first(&[Figure::ReadMbPerS]),
            write_mb_per_s: first(&[Figure::WriteMbPerS, Figure::CacheMbPerS]),
            read_iops: first(&[Figure::ReadDeep]),
            write_iops: first(&[Figure::WriteDeep, Figure::WriteSteady]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(name: &str) -> Product {
        let found = products(&[name.to_owned()]).unwrap();
        assert_eq!(found.len(), 1, "{name}");
        found[0].clone()
    }

    #[test]
    fn a_product_has_the_figures_of_its_review() {
        let drive = product("samsung-980-1tb");
        assert_eq!((drive.released, drive.rated_tbw), (Some(2021), Some(600.0)));
        assert_eq!((drive.read_mb_per_s, drive.write_mb_per_s), (Some(3500.0), Some(3000.0)));
        assert_eq!((drive.read_iops, drive.write_iops), (Some(500e3), Some(480e3)));
        // Some reviews measured only the cache, others only steady writes.
        assert_eq!(product("p41-plus").write_mb_per_s, Some(3000.0));
        assert_eq!(product("samsung-pm983-960gb").write_iops, Some(40e3));
        assert_eq!(product("kc3000").rated_tbw, None);
    }

    #[test]
    fn a_drive_is_there_once() {
        let drive = product("micron-7450");
        assert_eq!((drive.name.as_str(), drive.title.as_str()), ("micron-7450-max-800gb", "Micron 7450 MAX 800GB"));
        let all = products(&[]).unwrap();
        assert_eq!(all.iter().filter(|one| one.name == drive.name).count(), 1);
        assert!(products(&["nosuch".to_owned()]).unwrap_err().to_string().contains("samsung-980-1tb"));
    }
}
