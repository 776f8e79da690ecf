//! The part of a region or disk: one of a catalogue, one with changed figures, or a full description.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::chip::{self, Chip};
use crate::drive::{self, Drive, Mechanism, Model, QUEUE_MAX};
use crate::request::SECTOR_BYTES;
use crate::units::Geometry;

/// The part of a region or disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "the name of a part, or a table of figures in which `base` names a part for the others")]
pub enum PartChoice {
    /// A part of the catalogue.
    Named(String),
    /// Figures by name. `base` names a part of the catalogue for the figures that are not given.
    Figures(Table),
}

/// A kind of part with a catalogue.
pub trait Part: Serialize + DeserializeOwned {
    /// Its name in messages.
    const KIND: &'static str;
    /// Figures that a part may lack.
    const OPTIONAL_FIGURES: &'static [&'static str] = &[];

    /// Every part of the catalogue.
    fn catalogue() -> Vec<Self>;

    /// Its name.
    fn name(&self) -> &str;

    /// Checks the figures.
    ///
    /// # Errors
    /// The first invalid figure.
    fn check(&self) -> Result<(), String>;
}

impl Part for Chip {
    const KIND: &'static str = "chip";
    const OPTIONAL_FIGURES: &'static [&'static str] = &chip::OPTIONAL_FIGURES;

    fn catalogue() -> Vec<Self> {
        chip::catalogue()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), String> {
        check_chip(self)
    }
}

impl Part for Drive {
    const KIND: &'static str = "drive";

    fn catalogue() -> Vec<Self> {
        drive::catalogue()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), String> {
        check_drive(self)
    }
}

const BASE: &str = "base";

impl PartChoice {
    /// A part with all its figures.
    pub(super) fn of<P: Part>(part: &P) -> Self {
        Self::Figures(figures(part))
    }

    /// Changes one figure.
    pub(super) fn set(&mut self, figure: &str, value: Value) {
        if let Self::Named(name) = self {
            *self = Self::Figures(Table::from_iter([(BASE.to_owned(), Value::String(std::mem::take(name)))]));
        }
        if let Self::Figures(table) = self {
            table.insert(figure.to_owned(), value);
        }
    }

    /// The part with all its figures.
    ///
    /// # Errors
    /// An unknown name or figure, a missing figure, or an invalid one.
    pub fn resolve<P: Part>(&self) -> Result<P, String> {
        let part: P = match self {
            Self::Named(name) => find(name)?,
            Self::Figures(table) => from_table(table)?,
        };
        part.check()?;
        Ok(part)
    }
}

fn find<P: Part>(name: &str) -> Result<P, String> {
    P::catalogue().into_iter().find(|part| part.name() == name).ok_or_else(|| {
        let known = P::catalogue().iter().map(|part| part.name().to_owned()).collect::<Vec<_>>().join(", ");
        format!("there is no {} `{name}`; there are: {known}", P::KIND)
    })
}

pub(super) fn figures<P: Part>(part: &P) -> Table {
    Table::try_from(part).unwrap_or_default()
}

fn from_table<P: Part>(changes: &Table) -> Result<P, String> {
    let mut table = match changes.get(BASE) {
        None => Table::new(),
        Some(Value::String(base)) => figures(&find::<P>(base)?),
        Some(_) => return Err(format!("`base` is not the name of a {}", P::KIND)),
    };
    let changed: Vec<&str> = changes.keys().map(String::as_str).filter(|&key| key != BASE).collect();
    if changes.contains_key(BASE) && !changed.is_empty() && !changes.contains_key("source") {
        let source = table.get("source").and_then(Value::as_str).unwrap_or_default();
        let source = format!("{source}; changed here: {}", changed.join(", "));
        table.insert("source".into(), Value::String(source));
    }
    for &key in &changed {
        match (table.get_mut(key), &changes[key]) {
            (Some(Value::Table(inner)), Value::Table(new)) => inner.extend(new.clone()),
            (_, value) => {
                table.insert(key.into(), value.clone());
            }
        }
    }
    Value::Table(table).try_into::<P>().map_err(|error| error.to_string().trim().replace('\n', "; "))
}

/// Longest operation: an hour, far beyond any part. No clock overflows with it.
const LONGEST_US: f64 = 3.6e9;

fn check_chip(chip: &Chip) -> Result<(), String> {
    // A geometry of one block checks the figures of a block.
    Geometry::new(chip.page_bytes, chip.pages_per_block, 1, 1)?;
    let mut times = vec![("read_us", chip.read_us), ("program_us", chip.program_us), ("erase_us", chip.erase_us)];
    let mut endurances = vec![chip.endurance];
    if let Some(slc) = &chip.slc_mode {
        times.extend([
            ("slc_mode.read_us", slc.read_us),
            ("slc_mode.program_us", slc.program_us),
            ("slc_mode.erase_us", slc.erase_us),
        ]);
        endurances.push(slc.endurance);
        if slc.pages_per_block == 0 || slc.pages_per_block > chip.pages_per_block {
            return Err(format!(
                "a block of {} pages cannot have {} in its slc_mode; change both, or take a chip without slc_mode",
                chip.pages_per_block, slc.pages_per_block
            ));
        }
    }
    for (name, us) in times {
        if !(0.0..=LONGEST_US).contains(&us) {
            return Err(format!("{name} = {us:?} is not a time from 0 to an hour, in microseconds"));
        }
    }
    if let Some(us) = chip.copyback_us
        && us != 0.0
        && !(chip.read_us..=LONGEST_US).contains(&us)
    {
        return Err(format!(
            "copyback_us = {us:?} is not a time from read_us = {:?} to an hour, in microseconds; write 0 for none",
            chip.read_us
        ));
    }
    check_parallelism(chip)?;
    if chip.suspend_us.is_some_and(|us| !(0.0..=LONGEST_US).contains(&us)) {
        return Err("suspend_us is not a time from 0 to an hour, in microseconds".into());
    }
    let others = [
        ("bus_mb_per_s", chip.bus_mb_per_s, 1e6),
        ("supply_v", chip.supply_v, 1e3),
        ("current_ma", chip.current_ma, 1e6),
        ("usd_per_gib", chip.usd_per_gib, 1e9),
    ];
    for (name, value, most) in others {
        if !(0.0..=most).contains(&value) {
            return Err(format!("{name} = {value:?} is not within 0 to {most}"));
        }
    }
    if chip.bus_mb_per_s != 0.0 && chip.bus_mb_per_s < 1e-3 {
        return Err("bus_mb_per_s is too low; write 0 if the times include the transfer".into());
    }
    if endurances.contains(&0) {
        return Err("an endurance cannot be 0 cycles; write at least 1".into());
    }
    Ok(())
}

/// Checks the planes and pages that a die uses together.
fn check_parallelism(chip: &Chip) -> Result<(), String> {
    let wordlines = chip.planes.saturating_mul(chip.program_pages);
    if !(1..=64).contains(&wordlines) {
        return Err(format!(
            "planes = {} times program_pages = {} is not within 1 to 64 pages that a die programs together",
            chip.planes, chip.program_pages
        ));
    }
    if !chip.pages_per_block.is_multiple_of(chip.program_pages) {
        return Err(format!(
            "a block of {} pages is no multiple of program_pages = {}",
            chip.pages_per_block, chip.program_pages
        ));
    }
    if !(1..=chip.planes).contains(&chip.independent_reads) {
        return Err(format!(
            "independent_reads = {} is not within 1 to planes = {}",
            chip.independent_reads, chip.planes
        ));
    }
    Ok(())
}

fn check_drive(drive: &Drive) -> Result<(), String> {
    let figures = [
        ("read_position_us", drive.read_position_us, 0.0, LONGEST_US),
        ("write_position_us", drive.write_position_us, 0.0, LONGEST_US),
        ("mb_per_s", drive.mb_per_s, 1e-3, 1e6),
        ("usd_per_gib", drive.usd_per_gib, 0.0, 1e9),
        ("active_w", drive.active_w, 0.0, 1e6),
        ("idle_w", drive.idle_w, 0.0, 1e6),
    ];
    for (name, value, least, most) in figures {
        if !(least..=most).contains(&value) {
            return Err(format!("{name} = {value:?} is not within {least} to {most}"));
        }
    }
    if drive.queue > QUEUE_MAX {
        return Err(format!("queue = {} is not within 0 to {QUEUE_MAX}", drive.queue));
    }
    let Some(mechanics) = &drive.mechanics else {
        return match drive.model {
            Model::Constant => Ok(()),
            Model::Mechanical => Err("model = \"mechanical\" needs `mechanics`; take a base that has them".into()),
        };
    };
    mechanics.check().map_err(|what| format!("mechanics: {what}"))?;
    let bytes = Mechanism::new(mechanics).sectors() * SECTOR_BYTES;
    if bytes < drive.capacity.0 {
        return Err(format!(
            "mechanics: its tracks hold {bytes} bytes, fewer than the capacity of {}",
            drive.capacity.0
        ));
    }
    Ok(())
}
