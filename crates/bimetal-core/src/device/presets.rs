//! Devices that come with the program.

use super::{Device, DeviceError};

/// A device file inside the program.
#[derive(Debug)]
pub struct Preset {
    /// Name on the command line, and in the file.
    pub name: &'static str,
    /// The file.
    pub toml: &'static str,
}

macro_rules! presets {
    ($($name:literal),+ $(,)?) => {
        /// Every preset.
        pub static PRESETS: &[Preset] =
            &[$(Preset { name: $name, toml: include_str!(concat!("../../presets/", $name, ".toml")) }),+];
    };
}

presets! {
    "chang-c1",
    "chang-c1-mlc",
    "chang-c2",
    "chang-c2-mlc",
    "chang-c3",
    "chang-c3-mlc",
    "comboftl-slc-only",
    "comboftl-mlc-only",
    "comboftl-5",
    "comboftl-10",
    "hyssd-st",
    "hyssd-mt",
    "wlaftl",
    "opfcl-1",
    "opfcl-2",
    "tlc-1tb-pslc",
    "qlc-2tb-pslc",
}

/// The preset of that name.
///
/// # Errors
/// An unknown name, with those there are.
pub fn preset(name: &str) -> Result<Device, DeviceError> {
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
        let known = PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
        return Err(DeviceError::Unknown { name: name.into(), known });
    };
    Device::from_toml(preset.toml)
}
