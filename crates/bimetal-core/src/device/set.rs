//! Changing one field of a device: `--set mlc.spare=7%`, `--set logical=1GiB`.

use toml::{Table, Value};

use super::{Capacity, ChipChoice, Device, DeviceError, Region, parse_percent, toml_value};
use crate::chip::OPTIONAL_FIGURES;
use crate::request::SECTOR_BYTES;
use crate::units::ByteSize;

/// Whether a setting is one of a device; without a dot it may be a scheme's parameter.
pub fn is_device_key(key: &str) -> bool {
    key.contains('.') || DEVICE_KEYS.contains(&key)
}

/// Settings of a device as a whole.
pub const DEVICE_KEYS: [&str; 3] = ["logical", "seed", "serial"];
/// More dies than any region can have.
const DIES_MAX: u64 = 4096;
const REGION_KEYS: [&str; 5] = ["capacity", "spare", "chip", "channels", "dies_per_channel"];

impl Device {
    /// Sets one field: `logical`, `seed`, `serial`, or `REGION.FIELD`, where the region may also be called `fast` or `slow` and
    /// the field is one of the region or of its chip. `spare` sets the capacity of the slow region. Returns the region.
    ///
    /// # Errors
    /// An unknown field, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<Option<usize>, DeviceError> {
        let result = match key.split_once('.') {
            None => self.set_top(key, value).map(|()| None),
            Some((region, field)) => match self.region_index(region) {
                Some(index) => self.set_region(index, field, value).map(|()| Some(index)),
                None => Err(Refused::Key),
            },
        };
        result.map_err(|refused| match refused {
            Refused::Key => {
                DeviceError::Setting { device: self.name.clone(), key: key.into(), known: self.setting_keys() }
            }
            Refused::Value(what) => self.wrong(key, what),
        })
    }

    fn region_index(&self, name: &str) -> Option<usize> {
        let position = self.regions.iter().position(|region| region.name == name);
        position.or_else(|| match name {
            "fast" if self.regions.len() > 1 => Some(0),
            "slow" => self.regions.len().checked_sub(1),
            _ => None,
        })
    }

    fn set_top(&mut self, key: &str, value: &str) -> Result<(), Refused> {
        match key {
            "logical" => {
                let logical: ByteSize = value.parse().map_err(Refused::Value)?;
                if logical.0 == 0 || !logical.0.is_multiple_of(SECTOR_BYTES) {
                    return Err(Refused::Value(format!("`{value}` is no multiple of 512 bytes above 0")));
                }
                self.logical = logical;
            }
            // TOML has no larger numbers.
            "seed" => self.seed = whole(value, 0, i64::MAX as u64)?,
            "serial" => {
                self.serial =
                    value.parse().map_err(|_| Refused::Value(format!("`{value}` is not `true` or `false`")))?;
            }
            _ => return Err(Refused::Key),
        }
        Ok(())
    }

    fn set_region(&mut self, index: usize, field: &str, value: &str) -> Result<(), Refused> {
        let slow = index + 1 == self.regions.len();
        let region = &mut self.regions[index];
        match field {
            "capacity" => region.capacity = value.parse().map_err(Refused::Value)?,
            "spare" if slow => {
                let percent = parse_percent(value.trim().trim_end_matches('%')).map_err(Refused::Value)?;
                region.capacity = Capacity::Percent(100.0 + percent);
            }
            "spare" => return Err(Refused::Value("spare area is that of the slow region; set `capacity`".into())),
            "chip" => {
                region.chip = ChipChoice::Named(value.into());
                region.chip.resolve().map_err(Refused::Value)?;
            }
            "channels" => region.channels = whole(value, 1, DIES_MAX)? as u32,
            "dies_per_channel" => region.dies_per_channel = whole(value, 1, DIES_MAX)? as u32,
            _ if fault_rates(region).contains_key(field) => {
                let mut rates = fault_rates(region);
                rates.insert(field.into(), toml_value(value));
                region.faults = Value::Table(rates).try_into().map_err(refused)?;
            }
            _ => {
                let figures = region.chip.resolve().map_err(Refused::Value)?;
                let known = Table::try_from(&figures).is_ok_and(|figures| figures.contains_key(field));
                if !known && !OPTIONAL_FIGURES.contains(&field) {
                    return Err(Refused::Key);
                }
                let mut chip = region.chip.clone();
                chip.set(field, toml_value(value));
                chip.resolve().map_err(Refused::Value)?;
                region.chip = chip;
            }
        }
        Ok(())
    }

    /// What can be set, for messages.
    fn setting_keys(&self) -> String {
        let mut keys: Vec<String> = DEVICE_KEYS.iter().map(|&key| key.to_owned()).collect();
        let regions: Vec<&str> = self.regions.iter().map(|region| region.name.as_str()).collect();
        let mut fields: Vec<String> = REGION_KEYS.iter().map(|&key| key.to_owned()).collect();
        if let Some(region) = self.regions.last() {
            let figures = region.chip.resolve().ok().and_then(|chip| Table::try_from(chip).ok()).unwrap_or_default();
            fields.extend(
                figures.into_iter().filter(|(_, value)| !value.is_str() && !value.is_table()).map(|(key, _)| key),
            );
            let optional = OPTIONAL_FIGURES.iter().map(|&key| key.to_owned());
            let missing: Vec<String> = optional.filter(|key| !fields.contains(key)).collect();
            fields.extend(missing);
            fields.extend(fault_rates(region).into_iter().map(|(key, _)| key));
        }
        keys.push(format!("and for {} each of .{}", regions.join(" and "), fields.join(", .")));
        keys.join(", ")
    }
}

enum Refused {
    Key,
    Value(String),
}

fn refused(error: toml::de::Error) -> Refused {
    Refused::Value(error.message().replace('\n', "; "))
}

fn whole(value: &str, from: u64, to: u64) -> Result<u64, Refused> {
    let number = value.trim().parse().ok().filter(|number| (from..=to).contains(number));
    number.ok_or_else(|| Refused::Value(format!("`{value}` is not a whole number from {from} to {to}")))
}

fn fault_rates(region: &Region) -> Table {
    Table::try_from(region.faults).unwrap_or_default()
}
