//! The built-in trace: two hours of a virtual machine's disk. `sample/README.md` names its source.

use std::io::Read;

use bimetal_core::trace::{self, Options, Trace};

use crate::input::{Compression, InputError};

/// Name of the trace in results.
pub const NAME: &str = "cloudphysics (built-in sample)";

pub(crate) const BYTES: &[u8] = include_bytes!("../sample/cloudphysics.vscsi.xz");

/// Decodes the built-in trace.
///
/// # Errors
/// None, unless the program file is damaged.
pub fn open() -> Result<Trace, InputError> {
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(BYTES).read_to_end(&mut bytes).map_err(|source| InputError::Corrupt {
        path: NAME.into(),
        compression: Compression::Xz,
        source,
    })?;
    let options = Options { format: Some(trace::format("vscsi")?), ..Options::default() };
    let mut trace = trace::decode(NAME, &bytes, &options)?;
    NAME.clone_into(&mut trace.name);
    Ok(trace)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sample_is_what_its_readme_says() {
        let trace = super::open().unwrap();
        assert_eq!((trace.requests.len(), trace.reads, trace.writes), (113_872, 46_974, 66_898));
        assert_eq!((trace.footprint_bytes() + 500_000) / 1_000_000, 1_103);
    }
}
