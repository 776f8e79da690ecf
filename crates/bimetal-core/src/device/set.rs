//! Changing one field of a device: `--set mlc.spare=7%`, `--set logical=1GiB`.

use toml::{Table, Value};

use super::part_choice::figures;
use super::{Capacity, Device, DeviceError, Disk, Part, PartChoice, Region, parse_percent, toml_value};
use crate::chip::Chip;
use crate::controller;
use crate::drive::Drive;
use crate::request::SECTOR_BYTES;
use crate::units::ByteSize;

/// Whether a setting belongs to a device; without a dot it may be a scheme's parameter.
pub fn is_device_key(key: &str) -> bool {
    key.contains('.') || DEVICE_KEYS.contains(&key)
}

/// Settings of a device as a whole.
pub const DEVICE_KEYS: [&str; 4] = ["logical", "seed", "serial", FIT_TO_TRACE];
/// The setting that decides whether a device is scaled to a trace.
pub(super) const FIT_TO_TRACE: &str = "fit_to_trace";
/// More dies than any region can have.
const DIES_MAX: u64 = 4096;
const REGION_KEYS: [&str; 6] = ["capacity", "spare", "chip", "channels", "dies_per_channel", "mapping_unit"];
/// Prefix of the controller's fields: `controller.FIELD`.
const CONTROLLER: &str = "controller";
const DISK_KEYS: [&str; 2] = ["capacity", "drive"];

impl Device {
    /// Sets one field: `logical`, `seed`, `serial`, `fit_to_trace`, `REGION.FIELD`, `controller.FIELD` or `DISK.FIELD`.
    /// A region may also be called `fast` or `slow`; its fields are those of the region and of its chip. `spare` sets
    /// the capacity of the slow region. The disks are together called `disk`; their fields are those of the disk and of
    /// its drive. Returns the region.
    ///
    /// # Errors
    /// An unknown field, or an invalid value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<Option<usize>, DeviceError> {
        let result = match key.split_once('.') {
            None => self.set_top(key, value).map(|()| None),
            Some((CONTROLLER, field)) => self.set_controller(field, value).map(|()| None),
            Some((region, field)) => match self.region_index(region) {
                Some(index) => self.set_region(index, field, value).map(|()| Some(index)),
                None => self.set_disks(region, field, value).map(|()| None),
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
            "serial" => self.serial = boolean(value)?,
            FIT_TO_TRACE => self.fit_to_trace = boolean(value)?,
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
                let percent = parse_percent(value).map_err(Refused::Value)?;
                let number = value.trim();
                if !number.ends_with('%') && percent > 0.0 && percent < 1.0 {
                    let whole = (percent * 1e4).round() / 100.0;
                    let what = format!("`{number}` has no unit: write `{whole}%`, or `{number}%`");
                    return Err(Refused::Value(what));
                }
                region.capacity = Capacity::Percent(100.0 + percent);
            }
            "spare" => return Err(Refused::Value("only the slow region has a spare area; set `capacity`".into())),
            "chip" => {
                region.chip = PartChoice::Named(value.into());
                region.chip.resolve::<Chip>().map_err(Refused::Value)?;
            }
            "mapping_unit" => region.mapping_unit = Some(value.parse().map_err(Refused::Value)?),
            "channels" => region.channels = whole(value, 1, DIES_MAX)? as u32,
            "dies_per_channel" => region.dies_per_channel = whole(value, 1, DIES_MAX)? as u32,
            _ if fault_rates(region).contains_key(field) => {
                let mut rates = fault_rates(region);
                rates.insert(field.into(), toml_value(value));
                region.faults = Value::Table(rates).try_into().map_err(refused)?;
            }
            _ => set_figure::<Chip>(&mut region.chip, field, value)?,
        }
        Ok(())
    }

    fn set_controller(&mut self, field: &str, value: &str) -> Result<(), Refused> {
        let mut table = match &self.controller {
            Some(controller) => Table::try_from(controller).unwrap_or_default(),
            None if field == "link_mb_per_s" => Table::new(),
            None => return Err(Refused::Value("there is no controller; set controller.link_mb_per_s first".into())),
        };
        table.insert(field.into(), toml_value(value));
        let controller: controller::ControllerSettings = Value::Table(table).try_into().map_err(refused)?;
        controller.check().map_err(|(_, what)| Refused::Value(what))?;
        self.controller = Some(controller);
        Ok(())
    }

    fn set_disks(&mut self, name: &str, field: &str, value: &str) -> Result<(), Refused> {
        let mut is_known = false;
        for disk in self.disks.iter_mut().filter(|disk| name == "disk" || disk.name == name) {
            is_known = true;
            set_disk(disk, field, value)?;
        }
        if is_known { Ok(()) } else { Err(Refused::Key) }
    }

    /// The fields that can be set, for messages.
    fn setting_keys(&self) -> String {
        let mut keys: Vec<String> = DEVICE_KEYS.iter().map(|&key| key.to_owned()).collect();
        let regions: Vec<&str> = self.regions.iter().map(|region| region.name.as_str()).collect();
        let mut fields: Vec<String> = REGION_KEYS.iter().map(|&key| key.to_owned()).collect();
        if let Some(region) = self.regions.last() {
            fields.extend(figure_names::<Chip>(&region.chip));
            fields.extend(fault_rates(region).into_iter().map(|(key, _)| key));
        }
        keys.push(format!("and for {} each of .{}", regions.join(" and "), fields.join(", .")));
        if let Some(disk) = self.disks.first() {
            let mut fields: Vec<String> = DISK_KEYS.iter().map(|&key| key.to_owned()).collect();
            fields.extend(figure_names::<Drive>(&disk.drive));
            let disks: Vec<&str> = self.disks.iter().map(|disk| disk.name.as_str()).collect();
            keys.push(format!("and for {} each of .{}", disks.join(" and "), fields.join(", .")));
        }
        keys.join(", ")
    }
}

fn set_disk(disk: &mut Disk, field: &str, value: &str) -> Result<(), Refused> {
    match field {
        "capacity" => disk.capacity = Some(value.parse().map_err(Refused::Value)?),
        "drive" => {
            disk.drive = PartChoice::Named(value.into());
            disk.drive.resolve::<Drive>().map_err(Refused::Value)?;
        }
        _ => set_figure::<Drive>(&mut disk.drive, field, value)?,
    }
    Ok(())
}

fn set_figure<P: Part>(part: &mut PartChoice, field: &str, value: &str) -> Result<(), Refused> {
    let known: P = part.resolve().map_err(Refused::Value)?;
    if !figures(&known).contains_key(field) && !P::OPTIONAL_FIGURES.contains(&field) {
        return Err(Refused::Key);
    }
    let mut changed = part.clone();
    changed.set(field, toml_value(value));
    changed.resolve::<P>().map_err(Refused::Value)?;
    *part = changed;
    Ok(())
}

/// Names of a part's numeric figures.
fn figure_names<P: Part>(part: &PartChoice) -> Vec<String> {
    let figures = part.resolve::<P>().map(|part| figures(&part)).unwrap_or_default();
    let numbers = figures.into_iter().filter(|(_, value)| !value.is_str() && !value.is_table()).map(|(key, _)| key);
    let mut names: Vec<String> = numbers.collect();
    let missing = P::OPTIONAL_FIGURES.iter().filter(|&&name| names.iter().all(|known| known != name));
    names.extend(missing.map(|&name| name.to_owned()).collect::<Vec<_>>());
    names
}

enum Refused {
    Key,
    Value(String),
}

fn refused(error: toml::de::Error) -> Refused {
    Refused::Value(error.message().replace('\n', "; "))
}

fn boolean(value: &str) -> Result<bool, Refused> {
    value.trim().parse().map_err(|_| Refused::Value(format!("`{value}` is not `true` or `false`")))
}

fn whole(value: &str, from: u64, to: u64) -> Result<u64, Refused> {
    let number = value.trim().parse().ok().filter(|number| (from..=to).contains(number));
    number.ok_or_else(|| Refused::Value(format!("`{value}` is not a whole number from {from} to {to}")))
}

fn fault_rates(region: &Region) -> Table {
    Table::try_from(region.faults).unwrap_or_default()
}
