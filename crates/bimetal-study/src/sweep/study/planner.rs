//! Expansion of a study's grids to points.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bimetal_core::device::{self, AUTO, Device, DeviceError};
use bimetal_core::scheme::{self, SCHEMES, SchemeSpec};
use toml::Spanned;

use super::{GridTable, POINTS_MAX, Planned, Wrong, span_of};
use crate::StudyError;
use crate::prepare::is_used;
use crate::sweep::point::{DeviceSource, Point, Replay, is_part};
use crate::sweep::source::TraceSource;
use crate::sweep::values::{Texts, Values};

/// Name for the whole registry.
const ALL: &str = "all";

/// Collects the points of all grids.
pub(super) struct Planner<'a> {
    traces: Vec<TraceSource>,
    replays: Vec<Replay>,
    seed: Option<u64>,
    folder: &'a Path,
    /// Indexes of the points by their content.
    known: BTreeMap<String, usize>,
    points: Vec<Planned>,
}

/// Whether any device or scheme accepted the value of a setting, the reason of a refusal, and whether any scheme has the
/// part of the device to which it belongs.
#[derive(Default)]
struct Tried {
    is_taken: bool,
    is_used: bool,
    refusal: Option<String>,
}

/// A device source and its description, fitted to traces or fixed.
type Described = (DeviceSource, Device);

impl<'a> Planner<'a> {
    /// A planner without points. Each trace is replayed in each of `replays`. Relative paths start in `folder`.
    pub fn new(traces: Vec<TraceSource>, replays: Vec<Replay>, seed: Option<u64>, folder: &'a Path) -> Self {
        Self { traces, replays, seed, folder, known: BTreeMap::new(), points: Vec::new() }
    }

    /// All points, without duplicates.
    pub fn into_points(self) -> Vec<Planned> {
        self.points
    }

    /// Adds the new points of a grid.
    pub fn add(&mut self, grid: &GridTable) -> Result<(), Wrong> {
        let traces = self.chosen_traces(grid)?;
        let devices = self.devices(grid)?;
        let schemes = schemes(grid)?;
        let keys: Vec<(&str, &Spanned<Values>)> = grid.set.iter().map(|(key, values)| (key.as_str(), values)).collect();
        check_keys(&keys, &schemes)?;
        let lists = [traces.len(), devices.len(), schemes.len(), self.replays.len()];
        let mut lists = lists.into_iter().chain(keys.iter().map(|(_, values)| values.get_ref().0.len()));
        let count = lists.try_fold(1usize, |all, list| all.checked_mul(list)).unwrap_or(usize::MAX);
        if self.points.len().saturating_add(count) > POINTS_MAX {
            let place = keys.first().map_or(0..0, |(_, values)| values.span());
            return Err(Wrong(place, format!("this grid has {count} points; a study has at most {POINTS_MAX}")));
        }
        let mut tried: BTreeMap<(&str, &str), Tried> = BTreeMap::new();
        for trace in &traces {
            for device in &devices {
                for &(spec, optional) in &schemes {
                    let mut chosen = vec![0; keys.len()];
                    loop {
                        let settings = keys
                            .iter()
                            .zip(&chosen)
                            .map(|(&(key, values), &at)| (key, values.get_ref().0[at].as_str()));
                        let set = fitting(settings, device, spec, &mut tried);
                        self.plan(trace, &device.0, spec, set, optional);
                        if !advance(&mut chosen, &keys) {
                            break;
                        }
                    }
                }
            }
        }
        // A value that is refused everywhere is a mistake. A value that fits some points makes the others fail.
        let refused = tried.iter().find(|(_, tried)| !tried.is_taken && tried.refusal.is_some());
        if let Some(((key, _), tried)) = refused {
            return Err(Wrong(span_of(grid.set.get(*key)), tried.refusal.clone().unwrap_or_default()));
        }
        match tried.iter().find(|(_, tried)| !tried.is_used) {
            Some(((key, _), _)) => {
                Err(Wrong(span_of(grid.set.get(*key)), StudyError::Unused { key: (*key).into() }.to_string()))
            }
            None => Ok(()),
        }
    }

    fn chosen_traces(&self, grid: &GridTable) -> Result<Vec<TraceSource>, Wrong> {
        let Some(chosen) = &grid.trace else { return Ok(self.traces.clone()) };
        let find = |name: &String| {
            self.traces.iter().find(|trace| trace.name == *name).cloned().ok_or_else(|| {
                let known: Vec<&str> = self.traces.iter().map(|trace| trace.name.as_str()).collect();
                Wrong(chosen.span(), format!("there is no trace `{name}`; there are: {}", known.join(", ")))
            })
        };
        not_empty(chosen, "trace")?.iter().map(find).collect()
    }

    fn devices(&self, grid: &GridTable) -> Result<Vec<Described>, Wrong> {
        let Some(chosen) = &grid.device else {
            let source = DeviceSource { name: AUTO.into(), file: None };
            let device = source.device().map_err(|error| Wrong(0..0, error.to_string()))?;
            return Ok(vec![(source, device)]);
        };
        let find = |name: &String| {
            let source = self.device(name).map_err(|what| Wrong(chosen.span(), what))?;
            let device = source.device().map_err(|error| {
                let place = source.file.as_ref().map_or_else(String::new, |_| format!("{name}: "));
                Wrong(chosen.span(), format!("{place}{error}"))
            })?;
            Ok((source, device))
        };
        not_empty(chosen, "device")?.iter().map(find).collect()
    }

    fn device(&self, name: &str) -> Result<DeviceSource, String> {
        let path = self.folder.join(name);
        let is_preset = device::PRESETS.iter().any(|preset| preset.name == name);
        let looks_like_path = name.contains(std::path::MAIN_SEPARATOR) || name.ends_with(".toml");
        let file = if is_preset || !(path.exists() || looks_like_path) {
            None
        } else {
            let text = std::fs::read_to_string(&path);
            Some(text.map_err(|error| format!("{name}: the device file cannot be read: {error}"))?)
        };
        Ok(DeviceSource { name: name.into(), file })
    }

    fn plan(
        &mut self,
        trace: &TraceSource,
        device: &DeviceSource,
        spec: &SchemeSpec,
        mut set: BTreeMap<String, String>,
        optional: bool,
    ) {
        if let Some(seed) = self.seed {
            set.entry("seed".to_owned()).or_insert_with(|| seed.to_string());
        }
        for replay in &self.replays {
            let point = Point {
                trace: trace.clone(),
                device: device.clone(),
                scheme: spec.name.to_owned(),
                set: set.clone(),
                replay: replay.clone(),
            };
            let key = point.key("");
            match self.known.get(&key) {
                // A point that any grid names explicitly is not optional.
                Some(&at) => self.points[at].optional &= optional,
                None => {
                    self.known.insert(key, self.points.len());
                    self.points.push(Planned { point, optional });
                }
            }
        }
    }
}

fn not_empty<'a>(texts: &'a Spanned<Texts>, what: &str) -> Result<&'a [String], Wrong> {
    match texts.get_ref().0.as_slice() {
        [] => Err(Wrong(texts.span(), format!("`{what}` is an empty list; leave it out for all"))),
        some => Ok(some),
    }
}

/// The schemes, and whether each comes from `all`.
fn schemes(grid: &GridTable) -> Result<Vec<(&'static SchemeSpec, bool)>, Wrong> {
    let all = || SCHEMES.iter().map(|&spec| (spec, true));
    let Some(chosen) = &grid.scheme else { return Ok(all().collect()) };
    let names = not_empty(chosen, "scheme")?;
    if names.iter().any(|name| name == ALL) {
        return Ok(all().collect());
    }
    let find = |name: &String| scheme::find(name).map(|spec| (spec, false));
    names.iter().map(|name| find(name).map_err(|error| Wrong(chosen.span(), error.to_string()))).collect()
}

/// Whether a scheme has a parameter.
fn has(spec: &SchemeSpec, key: &str) -> bool {
    (spec.parameters)().iter().any(|parameter| parameter.name == key)
}

fn check_keys(keys: &[(&str, &Spanned<Values>)], schemes: &[(&'static SchemeSpec, bool)]) -> Result<(), Wrong> {
    for (key, values) in keys {
        if values.get_ref().0.is_empty() {
            return Err(Wrong(values.span(), format!("`{key}` is an empty list; leave it out for the usual value")));
        }
        if !device::is_device_key(key) && !schemes.iter().any(|(spec, _)| has(spec, key)) {
            let known: BTreeSet<&str> =
                schemes.iter().flat_map(|(spec, _)| (spec.parameters)()).map(|parameter| parameter.name).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Wrong(values.span(), StudyError::Setting { key: (*key).into(), known }.to_string()));
        }
    }
    Ok(())
}

/// Advances to the next combination; the last key varies fastest. Returns false after the last combination.
fn advance(chosen: &mut [usize], keys: &[(&str, &Spanned<Values>)]) -> bool {
    for (at, (_, values)) in chosen.iter_mut().zip(keys).rev() {
        *at += 1;
        if *at < values.get_ref().0.len() {
            return true;
        }
        *at = 0;
    }
    false
}

/// The settings that apply: the device or the scheme has them, and the scheme uses the part to which they belong.
fn fitting<'k>(
    settings: impl Iterator<Item = (&'k str, &'k str)>,
    (_, device): &Described,
    spec: &SchemeSpec,
    tried: &mut BTreeMap<(&'k str, &'k str), Tried>,
) -> BTreeMap<String, String> {
    // The names of settings do not depend on the size, so any size will do.
    let mut device = device.clone();
    let mut settings: Vec<(&str, &str)> = settings.collect();
    settings.sort_by_key(|&(key, _)| !is_part(key));
    let mut set = BTreeMap::new();
    for (key, value) in settings {
        let (result, matters) = if device::is_device_key(key) {
            match device.set(key, value) {
                Ok(region) => (Ok(()), is_used(spec, &device, key, region)),
                Err(error) => {
                    let is_unknown = matches!(error, DeviceError::Setting { .. });
                    (Err(error.to_string()), !is_unknown)
                }
            }
        } else if has(spec, key) {
            let one = [(key.to_owned(), value.to_owned())];
            (scheme::settings(spec.name, &one).map(|_| ()).map_err(|error| error.to_string()), true)
        } else {
            continue;
        };
        let tried = tried.entry((key, value)).or_default();
        match result {
            Ok(()) => tried.is_taken = true,
            Err(refusal) => drop(tried.refusal.get_or_insert(refusal)),
        }
        tried.is_used |= matters;
        if matters {
            set.insert(key.to_owned(), value.to_owned());
        }
    }
    set
}
