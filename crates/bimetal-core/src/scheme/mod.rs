//! Schemes: how a device manages its flash. Each is a pure state machine over the [`Media`] seam.
//!
//! A scheme sees only its configuration, its own state, the request and the media. Its periods count requests or pages,
//! not time. A new scheme is one file, one `mod` line and one line of the registry below. Help texts, golden rows and
//! the tests of model, determinism and allocation iterate the registry. A scheme in another crate is the same file and
//! is registered by [`add`], and one that exists only for a time is lent by [`lend`]. [`contract`] describes what a scheme must provide.

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
mod platform;
mod presets;
mod sepbit;
mod slc_cached;
mod space;
mod tiered;
mod unitmap;
mod wlaftl;

pub use contract::{Adaptation, Metrics, RegionShape, Regions, Scheme, SchemeSpec, Shape};
pub use entry::{Constructor, Entry, Loan, add, lend};
pub use parameters::{ParameterError, ParameterSet, ParameterSpec, Value};
pub use platform::Platform;
pub use space::{OneRegion, logical_pages};

use comboftl::{combo_static, two_queue_gclock};
use flash_cache::family::{fpfcl, opfcl, rwfcl};
use slc_cached::family::{pslc_dynamic, pslc_static};
use wlaftl::wlaftl_static;

use crate::media::Media;
use crate::registry::{Named, Registry};

/// `part / whole`, for metrics; 0 if `whole` is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Named for SchemeSpec {
    const KIND: &'static str = "scheme";

    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name)
    }
}

/// Why a scheme cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No scheme has this name.
    #[error("there is no scheme `{name}`; there are: {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The known names.
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
        /// The problem and the remedy.
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
        /// The problem.
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

        /// Builds a scheme, and restores its state if a saved one is given. All schemes are compiled for the media `M`
        /// where this is called: only a [`Platform`] does so.
        ///
        /// # Errors
        /// Those of [`restore`].
        pub fn construct<M: Media + 'static>(
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

        /// The effective parameters of a scheme, including defaults.
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

/// Builds the scheme `name` with `settings` in addition to its defaults.
///
/// # Errors
/// An unknown scheme or parameter, or an unsuitable device.
pub fn build<M: Platform>(
    name: &str,
    shape: &Shape,
    settings: &[(String, String)],
) -> Result<Box<dyn Scheme<M>>, BuildError> {
    M::construct(name, shape, settings, None)
}

/// Builds the scheme `name` as [`build`] does and restores the state that [`Save::save`](crate::save::Save::save) wrote
/// for a scheme built the same way. The restored state is checked.
///
/// # Errors
/// Those of [`build`], and bytes that are damaged or belong to another device or other parameters.
pub fn restore<M: Platform>(
    name: &str,
    shape: &Shape,
    settings: &[(String, String)],
    bytes: &[u8],
) -> Result<Box<dyn Scheme<M>>, BuildError> {
    M::construct(name, shape, settings, Some(bytes))
}

/// Finds the scheme `name`, of the registry or lent.
///
/// # Errors
/// An unknown name; the error lists the known names.
pub fn find(name: &str) -> Result<&'static SchemeSpec, BuildError> {
    let known = SCHEMES.iter().copied().find(|spec| spec.name == name);
    known.or_else(|| entry::lent(name)).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> BuildError {
    let known = SCHEMES.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    BuildError::Unknown { name: name.into(), known }
}
