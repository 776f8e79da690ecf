//! Schemes: how a device manages its flash. Each is a pure state machine over the [`Media`] seam.
//!
//! A scheme sees its configuration, its own state, the request and the media; nothing else. Its periods count requests
//! or pages. A new scheme is one file, one `mod` line and one line of the registry below; help texts, golden rows,
//! model, determinism and allocation tests iterate the registry.

mod block_mapped;
mod cftl;
mod chang;
mod combo;
mod combo_static;
mod comboftl;
mod conventional;
mod csal;
mod dac;
mod density_control;
mod fifo_log;
mod flash_cache;
mod fpfcl;
mod hybrid_ssd;
mod hyssd;
mod hyssd_static;
mod midas;
mod mixedftl;
mod opfcl;
mod pagemap;
mod parameters;
mod pslc_dynamic;
mod pslc_static;
mod rwfcl;
mod sepbit;
mod slc_cached;
mod space;
mod tiered;
mod two_queue_gclock;
mod unitmap;
mod wlaftl;
mod wlaftl_static;

pub use parameters::{ParameterError, ParameterSpec, Value};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::chip::Chip;
use crate::drive::Drive;
use crate::media::Media;
use crate::request::Request;
use crate::save::{self, Save};
use crate::units::Geometry;

/// Named figures of a scheme's own, in the order in which it gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    values: Vec<(&'static str, f64)>,
}

impl Metrics {
    /// Forgets all figures and keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// Adds a figure; its unit is part of its name.
    pub fn push(&mut self, name: &'static str, value: f64) {
        self.values.push((name, value));
    }

    /// Adds a count.
    pub fn count(&mut self, name: &'static str, value: u64) {
        self.push(name, value as f64);
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.values.iter().copied()
    }

    /// The figure of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.iter().find_map(|(known, value)| (known == name).then_some(value))
    }
}

/// A part of a whole, as metrics give it; 0 of nothing.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A management scheme over a medium. All of its state can be saved; [`restore`] reads it.
pub trait Scheme<M: Media>: Send + Save {
    /// Writes every logical unit once, in order and past all admission policy: the state in which measuring starts.
    /// The content is undefined. Called at most once, before any request.
    fn fill(&mut self, media: &mut M);

    /// Serves a host request. Its sectors lie within the logical capacity.
    fn serve(&mut self, media: &mut M, request: &Request);

    /// Requests that will be served soon, `near` sooner than `far`: their map entries may be brought into the
    /// processor's cache. Changes nothing.
    fn prefetch(&self, _far: &Request, _near: &Request) {}

    /// The host is idle: background work of about `budget_pages` page copies may be done.
    fn idle(&mut self, _media: &mut M, _budget_pages: u32) {}

    /// How many blocks, the first of the device's last region, run in SLC mode for good: they share no wear with others.
    fn fixed_slc_blocks(&self) -> u32 {
        0
    }

    /// Figures of its own: thresholds, hit rates, migrations, rejects, bytes of metadata.
    fn metrics(&self, metrics: &mut Metrics);

    /// Checks all invariants of the state.
    ///
    /// # Errors
    /// The first one that is broken.
    fn check(&self) -> Result<(), String>;
}

/// What a scheme knows of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionShape {
    /// The part: times, endurance, modes.
    pub chip: Chip,
    /// Blocks, pages, dies.
    pub geometry: Geometry,
}

/// What a scheme knows of its device.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Sectors that the host sees.
    pub logical_sectors: u64,
    /// The fast region first, the slow one last.
    pub regions: Vec<RegionShape>,
    /// The home disks, which together hold the logical sectors; none where all data are in flash.
    pub disks: Vec<Drive>,
    /// Seed of pseudo-random choices, for schemes that make any.
    pub seed: u64,
}

/// Which regions a scheme manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regions {
    /// One, of any cell.
    One,
    /// A fast one in front of a slow one.
    FastAndSlow,
    /// One whose blocks can run with one bit per cell; the capacity beyond the usual is the budget for that.
    DualMode,
    /// One in front of disks that are the home of all data.
    FlashOverDisk,
}

/// One line of the registry.
#[derive(Debug)]
pub struct SchemeSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// The paper, or what else defines it.
    pub source: &'static str,
    /// What it needs of a device.
    pub regions: Regions,
    /// Its parameters.
    pub parameters: fn() -> Vec<ParameterSpec>,
    /// Changes when the same requests lead to other operations, or the state to another form: a device that was used
    /// with another version is refused.
    pub version: u32,
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
    /// A saved state is damaged, or belongs to another device.
    #[error("the saved state of `{scheme}` is of no use: {reason}")]
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
        pub static SCHEMES: &[&SchemeSpec] = &[$(&$module::SPEC),+];

        /// Makes the scheme of that name, with the given parameters on top of its defaults.
        ///
        /// # Errors
        /// An unknown scheme or parameter, or a device that does not suit it.
        pub fn build<M: Media + 'static>(
            name: &str,
            shape: &Shape,
            settings: &[(String, String)],
        ) -> Result<Box<dyn Scheme<M>>, BuildError> {
            $(
                if name == $module::SPEC.name {
                    let parameters = $module::Parameters::parse(settings)?;
                    let scheme = $module::$type::new(shape, parameters)
                        .map_err(|reason| BuildError::Device { scheme: $module::SPEC.name, reason })?;
                    return Ok(Box::new(scheme));
                }
            )+
            Err(unknown(name))
        }

        /// Makes the scheme of that name as [`build`] does, in the state that [`Save::save`] wrote of one that was made
        /// in the same way. The state is checked.
        ///
        /// # Errors
        /// As of [`build`], and bytes that are damaged or belong to another device or other parameters.
        pub fn restore<M: Media + 'static>(
            name: &str,
            shape: &Shape,
            settings: &[(String, String)],
            bytes: &[u8],
        ) -> Result<Box<dyn Scheme<M>>, BuildError> {
            $(
                if name == $module::SPEC.name {
                    let parameters = $module::Parameters::parse(settings)?;
                    let fresh = $module::$type::new(shape, parameters)
                        .map_err(|reason| BuildError::Device { scheme: $module::SPEC.name, reason })?;
                    return restored(&$module::SPEC, &fresh, bytes);
                }
            )+
            Err(unknown(name))
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
            Err(unknown(name))
        }
    };
}

registry! {
    pagemap::PageMapped,
    sepbit::SepBitMapped,
    dac::DacMapped,
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

/// The scheme of that name.
///
/// # Errors
/// An unknown name, with those there are.
pub fn find(name: &str) -> Result<&'static SchemeSpec, BuildError> {
    SCHEMES.iter().copied().find(|spec| spec.name == name).ok_or_else(|| unknown(name))
}

/// A scheme in a saved state, if that belongs to one made as `fresh` was.
fn restored<M: Media, S: Scheme<M> + Serialize + DeserializeOwned + 'static>(
    spec: &SchemeSpec,
    fresh: &S,
    bytes: &[u8],
) -> Result<Box<dyn Scheme<M>>, BuildError> {
    let refused = |reason| BuildError::State { scheme: spec.name, reason };
    let scheme = save::restore(fresh, bytes).map_err(|error| refused(error.to_string()))?;
    scheme.check().map_err(refused)?;
    Ok(Box::new(scheme))
}

fn unknown(name: &str) -> BuildError {
    let known = SCHEMES.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    BuildError::Unknown { name: name.into(), known }
}
