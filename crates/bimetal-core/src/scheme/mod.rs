//! Schemes: how a device manages its flash. Each is a pure state machine over the [`Media`] seam.
//!
//! A scheme sees its configuration, its own state, the request and the media; nothing else. Its periods count requests
//! or pages. A new scheme is one file, one `mod` line and one line of the registry below; help texts, golden rows,
//! model, determinism and allocation tests iterate the registry. One in another crate is the same file, and joins by [`add`]:
//! [`contract`] says what it takes.

mod block_mapped;
mod cftl;
mod chang;
mod combo;
mod comboftl;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod contract;
mod conventional;
mod csal;
mod dac;
mod density_control;
mod entry;
mod fdp;
mod fifo_log;
mod flash_cache;
mod hybrid_ssd;
mod hyssd;
mod hyssd_static;
mod midas;
mod mixedftl;
mod pagemap;
mod parameters;
mod presets;
mod sepbit;
mod slc_cached;
mod space;
mod tiered;
mod unitmap;
mod wlaftl;

pub use contract::{Metrics, RegionShape, Regions, Scheme, SchemeSpec, Shape};
pub use entry::{Constructor, Entry, add};
pub use parameters::{ParameterError, ParameterSet, ParameterSpec, Value};
pub use space::{OneRegion, logical_pages};

use comboftl::{combo_static, two_queue_gclock};
use flash_cache::family::{fpfcl, opfcl, rwfcl};
use slc_cached::family::{pslc_dynamic, pslc_static};
use wlaftl::wlaftl_static;

use crate::media::Media;
use crate::registry::{Named, Registry};

/// A part of a whole, as metrics give it; 0 of nothing.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Named for SchemeSpec {
    const KIND: &'static str = "scheme";

    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name)
    }
}

/// A device on which a scheme cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No such scheme.
    #[error("there is no scheme `{name}`; there are: {known}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A parameter was refused.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The device is too small or of the wrong kind.
    #[error("`{scheme}` cannot run on this device: {reason}")]
    Device {
        /// The scheme.
        scheme: &'static str,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The scheme was added without a constructor for these media.
    #[error("`{scheme}` was added for other media than `{media}`; add it with `Entry::on` for these, too")]
    Media {
        /// The scheme.
        scheme: &'static str,
        /// The type of the media.
        media: &'static str,
    },
    /// A saved state is damaged, or belongs to another device.
    #[error("the saved state of `{scheme}` cannot be used: {reason}")]
    State {
        /// The scheme.
        scheme: &'static str,
        /// What is wrong.
        reason: String,
    },
}

macro_rules! registry {
    ($($module:ident::$type:ident),+ $(,)?) => {
        /// Every scheme.
        pub static SCHEMES: &Registry<SchemeSpec> = {
            static REGISTRY: Registry<SchemeSpec> = Registry::new(&[$(&$module::SPEC),+]);
            &REGISTRY
        };

        /// Makes a scheme, in a saved state if there is one.
        fn construct<M: Media + 'static>(
            name: &str,
            shape: &Shape,
            settings: &[(String, String)],
            saved: Option<&[u8]>,
        ) -> Result<Box<dyn Scheme<M>>, BuildError> {
            $(
                if name == $module::SPEC.name {
                    return entry::construct(&$module::SPEC, $module::$type::new, shape, settings, saved);
                }
            )+
            entry::added(name)?.construct(shape, settings, saved)
        }

        /// The parameters of a scheme as they will be, defaults included.
        ///
        /// # Errors
        /// An unknown scheme or parameter.
        pub fn settings(name: &str, settings: &[(String, String)]) -> Result<Vec<(String, String)>, BuildError> {
            $(
                if name == $module::SPEC.name {
                    return Ok($module::Parameters::parse(settings)?.settings());
                }
            )+
            entry::added(name)?.settings(settings)
        }
    };
}

registry! {
    pagemap::PageMapped,
    sepbit::SepBitMapped,
    dac::DacMapped,
    fdp::FdpMapped,
    midas::MidasMapped,
    unitmap::UnitMapped,
    conventional::Conventional,
    chang::Chang,
    density_control::DensityControl,
    comboftl::ComboFtl,
    combo_static::ComboStatic,
    two_queue_gclock::TwoQueueGclock,
    mixedftl::MixedFtl,
    wlaftl::Wlaftl,
    wlaftl_static::WlaftlStatic,
    cftl::Cftl,
    opfcl::OpFcl,
    rwfcl::RwFcl,
    fpfcl::FpFcl,
    hyssd::HySsd,
    hyssd_static::HySsdStatic,
    csal::Csal,
    pslc_static::PslcStatic,
    pslc_dynamic::PslcDynamic,
}

/// Makes the scheme of that name, with the given parameters on top of its defaults.
///
/// # Errors
/// An unknown scheme or parameter, or a device that does not suit it.
pub fn build<M: Media + 'static>(
    name: &str,
    shape: &Shape,
    settings: &[(String, String)],
) -> Result<Box<dyn Scheme<M>>, BuildError> {
    construct(name, shape, settings, None)
}

/// Makes the scheme of that name as [`build`] does, in the state that [`Save::save`](crate::save::Save::save) wrote of one that was made in the same way. The
/// state is checked.
///
/// # Errors
/// As of [`build`], and bytes that are damaged or belong to another device or other parameters.
pub fn restore<M: Media + 'static>(
    name: &str,
    shape: &Shape,
    settings: &[(String, String)],
    bytes: &[u8],
) -> Result<Box<dyn Scheme<M>>, BuildError> {
    construct(name, shape, settings, Some(bytes))
}

/// The scheme of that name.
///
/// # Errors
/// An unknown name, with those there are.
pub fn find(name: &str) -> Result<&'static SchemeSpec, BuildError> {
    SCHEMES.iter().copied().find(|spec| spec.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> BuildError {
    let known = SCHEMES.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    BuildError::Unknown { name: name.into(), known }
}
