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
    "auto",
    "bare-dies",
    "tlc-1tb-pslc",
    "qlc-2tb-pslc",
    "wd-sn550-500gb",
    "wd-sn550-1tb",
    "samsung-970-evo-500gb",
    "samsung-980-1tb",
    "samsung-980-pro-1tb",
    "hynix-p31-1tb",
    "kingston-kc2000-1tb",
    "kingston-a2000-1tb",
    "adata-sx8200-pro-1tb",
    "adata-s50-lite-2tb",
    "sabrent-rocket-4-plus-2tb",
    "kingston-kc3000-2tb",
    "cardea-a440-pro-1tb",
    "lexar-nm790-2tb",
    "acer-gm7-4tb",
    "crucial-t500-2tb",
    "wd-sn850x-2tb",
    "wd-sn770-1tb",
    "crucial-p1-1tb",
    "intel-660p-1tb",
    "intel-670p-2tb",
    "solidigm-p41-plus-1tb",
    "samsung-870-qvo-1tb",
    "hp-fx700-2tb",
    "corsair-mp400-1tb",
    "samsung-pm983-960gb",
    "intel-p4500-1tb",
    "intel-p4500-2tb",
    "intel-p4500-4tb",
    "intel-d5-p4320-7680gb",
    "solidigm-d5-p5430-7680gb",
    "micron-7450-max-800gb",
    "solidigm-d7-p5520-1920gb",
}

/// The preset with this name.
///
/// # Errors
/// An unknown name; the message lists the known ones.
pub fn preset(name: &str) -> Result<Device, DeviceError> {
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
        let known = PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
        return Err(DeviceError::Unknown { name: name.into(), known });
    };
    Device::from_toml(preset.toml)
}
