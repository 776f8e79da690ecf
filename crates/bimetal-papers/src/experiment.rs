//! The experiments of the papers: traces, stand-ins for them, and replays with the commands that repeat them.

use std::ops::ControlFlow;

use bimetal_core::device::{self, DeviceError, Resolved};
use bimetal_core::replay::{Arrivals, Fill, Plan};
use bimetal_core::scheme;

use crate::claim::StandIn;
use crate::variation::Variation;
use bimetal_study::compare::{self, Entry};
use bimetal_study::prepare::{Workload, check_memory, prepare_one};
use bimetal_study::{StudyError, arrivals, sample};

/// Size of the experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Fewer requests: minutes for everything.
    Quick,
    /// As in the papers.
    Full,
}

impl Scale {
    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// A trace of a paper. A stand-in is generated unless the user has the trace.
#[derive(Debug)]
pub struct Source {
    /// Name on the command line: `--trace NAME=FILE`.
    pub name: &'static str,
    /// The workload that stands in for the trace.
    pub workload: &'static str,
    /// Settings of the workload at any scale.
    pub settings: &'static [(&'static str, &'static str)],
    /// Additional or overriding settings of a quick run: fewer requests, or less space for a device that is also
    /// smaller. A user's trace is always used completely.
    pub quick: &'static [(&'static str, &'static str)],
    /// The calibrated stand-in, if there is one.
    pub calibrated: Option<Fitted>,
}

/// A trace of the user that stands for none of a paper's traces: claims are judged on it by themselves, on devices
/// that are scaled to it.
pub static ANY_TRACE: Source = Source { name: "any trace", workload: "", settings: &[], quick: &[], calibrated: None };

/// The sources of a figure about [`ANY_TRACE`].
pub const ON_ANY_TRACE: &[&Source] = &[&ANY_TRACE];

/// A calibrated stand-in: the result of `examples/calibrate.rs`.
#[derive(Clone, Copy, Debug)]
pub struct Fitted {
    /// The workload.
    pub workload: &'static str,
    /// Settings in addition to those of the first stand-in, or overriding them.
    pub settings: &'static [(&'static str, &'static str)],
    /// Settings of a quick run; `None` for those of the first stand-in.
    pub quick: Option<&'static [(&'static str, &'static str)]>,
}

impl Source {
    /// Whether this is [`ANY_TRACE`].
    pub fn is_any(&self) -> bool {
        self.name == ANY_TRACE.name
    }

    /// The capacity of a region that has `mib` MiB on the paper's device of `logical_mib` MiB: the same share of a device
    /// that is scaled to any trace.
    pub fn capacity(&self, mib: f64, logical_mib: u32) -> String {
        if self.is_any() { format!("{}%", mib / f64::from(logical_mib) * 100.0) } else { format!("{mib}MiB") }
    }

    /// The calibrated stand-in, if it is requested and exists.
    fn fitted(&self, stand_in: StandIn) -> Option<Fitted> {
        self.calibrated.filter(|_| stand_in == StandIn::Calibrated)
    }

    /// The workloads of both kinds of stand-ins.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.workload).chain(self.calibrated.map(|fitted| fitted.workload))
    }

    /// The workload and its settings, with those of the user.
    pub(crate) fn generator(
        &self,
        scale: Scale,
        stand_in: StandIn,
        variations: &[Variation],
    ) -> (&'static str, Vec<(String, String)>) {
        let fitted = self.fitted(stand_in);
        let quick = fitted.and_then(|fitted| fitted.quick).unwrap_or(self.quick);
        let quick = if scale == Scale::Quick { quick } else { &[] };
        let workload = fitted.map_or(self.workload, |fitted| fitted.workload);
        let own = self.settings.iter().chain(fitted.map_or(&[][..], |fitted| fitted.settings)).chain(quick);
        let own = own.map(|&(key, value)| (key.to_owned(), value.to_owned()));
        let of_user =
            variations.iter().filter(|variation| variation.applies_to(self.name, workload)).map(Variation::pair);
        let mut settings: Vec<(String, String)> = Vec::new();
        for (key, value) in own.chain(of_user) {
            settings.retain(|(known, _)| *known != key);
            settings.push((key, value));
        }
        (workload, settings)
    }

    /// Name of a file for the trace.
    pub(crate) fn file(&self, stand_in: StandIn) -> String {
        let kind = if self.fitted(stand_in).is_some() { "-calibrated" } else { "" };
        format!("{}{kind}.bimetal", self.name)
    }

    /// The command that writes this file.
    pub(crate) fn command(&self, scale: Scale, stand_in: StandIn, variations: &[Variation]) -> String {
        let (workload, settings) = self.generator(scale, stand_in, variations);
        let mut command = format!("bimetal generate {workload} {}", self.file(stand_in));
        for (key, value) in settings {
            command += &format!(" --set {key}={value}");
        }
        command
    }
}

/// One replay: a trace, a device, a scheme and a plan.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub(crate) source: &'static Source,
    device: &'static str,
    scheme: &'static str,
    settings: Vec<(String, String)>,
    /// Settings that a user's setting replaces.
    scaled: Vec<String>,
    plan: Plan,
}

impl Experiment {
    /// A trace on a device of `bimetal list devices` with a scheme, one request at a time, on a filled device.
    pub fn new(source: &'static Source, device: &'static str, scheme: &'static str) -> Self {
        Self {
            source,
            device,
            scheme,
            settings: Vec::new(),
            scaled: Vec::new(),
            plan: Plan { intervals: 0, ..Plan::default() },
        }
    }

    /// Sets a parameter of the scheme or a field of the device, overriding an earlier value.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.settings.retain(|(known, _)| known != key);
        self.scaled.retain(|known| known != key);
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    /// The same for a value that belongs to the size of the device or the trace, and not to the figure: a user's setting
    /// replaces it.
    pub fn scaled(self, key: &str, value: impl ToString) -> Self {
        let mut experiment = self.set(key, value);
        experiment.scaled.push(key.to_owned());
        experiment
    }

    /// The same with the user's settings of its scheme, except for parameters that the figure sets.
    pub(crate) fn varied(&self, variations: &[Variation]) -> Self {
        let mut varied = self.clone();
        for variation in variations.iter().filter(|variation| variation.of == self.scheme) {
            let is_set = self.settings.iter().any(|(known, _)| *known == variation.key);
            if !is_set || self.scaled.contains(&variation.key) {
                varied = varied.set(&variation.key, &variation.value);
            }
        }
        varied
    }

    /// Whether a setting of the user applies to it, on the workload of a generated trace or on a trace of the user.
    pub(crate) fn takes(&self, variation: &Variation, workload: Option<&str>) -> bool {
        let of_scheme = variation.of == self.scheme && self.settings.contains(&variation.pair());
        of_scheme || workload.is_some_and(|workload| variation.applies_to(self.source.name, workload))
    }

    /// Sets the arrivals.
    pub fn arrivals(mut self, arrivals: Arrivals) -> Self {
        self.plan.arrivals = arrivals;
        self
    }

    /// Sets the number of passes over the trace, and the number of last passes that are measured.
    pub fn passes(mut self, passes: u32, measured: u32) -> Self {
        (self.plan.passes, self.plan.measured_passes) = (passes, measured);
        self
    }

    /// Scales the device to the trace, and measures its steady state.
    pub fn fitted(self) -> Self {
        self.set("fit_to_trace", true).passes(FITTED_PASSES.0, FITTED_PASSES.1)
    }

    /// Sets the data on the device before the replay.
    pub fn fill(mut self, fill: Fill) -> Self {
        self.plan.fill = fill;
        self
    }

    /// Records figures over time in `intervals` intervals.
    pub fn intervals(mut self, intervals: u32) -> Self {
        self.plan.intervals = intervals;
        self
    }

    /// The command that repeats the replay with the trace in this file.
    pub(crate) fn command(&self, file: &str) -> String {
        let mut command = with_trace("bimetal replay", file);
        command += &format!(" --device {} --scheme {}", self.device, self.scheme);
        for (key, value) in &self.settings {
            command += &format!(" --set {key}={value}");
        }
        let default = Plan::default();
        command += &format!(" --arrivals {}", arrivals::name(self.plan.arrivals));
        if self.plan.passes != default.passes {
            command += &format!(" --repeat {}", self.plan.passes);
        }
        if self.plan.measured_passes != self.plan.passes {
            command += &format!(" --measure {}", self.plan.measured_passes);
        }
        if self.plan.fill != default.fill {
            command += &format!(" --fill {}", self.plan.fill);
        }
        if self.plan.intervals > 0 {
            command += &format!(" --intervals {}", self.plan.intervals);
        }
        command
    }

    /// Makes the device, and fits the trace's addresses to it.
    ///
    /// # Errors
    /// A device or a scheme that does not take a setting, a device that does not take the trace, or too little memory.
    pub(crate) fn prepare(&self, workload: Workload) -> Result<Prepared<'_>, StudyError> {
        let device = device::preset(self.device)?;
        let scheme = scheme::find(self.scheme).map_err(DeviceError::from)?;
        let (workload, resolved) = prepare_one(workload, device, scheme, &self.settings)?;
        check_memory(&resolved)?;
        Ok(Prepared { workload, resolved, plan: &self.plan })
    }
}

/// An experiment whose device is made.
pub(crate) struct Prepared<'a> {
    workload: Workload,
    resolved: Resolved,
    plan: &'a Plan,
}

impl Prepared<'_> {
    /// Its device in full and its plan: equal for all experiments on a trace that have the same result, however their
    /// commands describe the device.
    pub(crate) fn description(&self) -> String {
        format!("{:?} {:?}", self.resolved.device, self.plan)
    }

    /// Runs the replay. `progress` is called every few milliseconds.
    ///
    /// # Errors
    /// A scheme that does not take the device, or a stop by `progress`.
    pub(crate) fn replay(&self, progress: &mut impl FnMut() -> ControlFlow<()>) -> Result<Entry, StudyError> {
        let (requests, facts) = (&self.workload.requests, &self.workload.facts);
        compare::entry(&self.resolved, requests, facts, self.plan, &mut |_| progress())
    }
}

/// Passes over a trace to which a device is fitted, and the last ones, which are measured.
const FITTED_PASSES: (u32, u32) = (4, 2);

/// A command for the trace in this file. Without a file it uses the built-in trace, which has none.
pub(crate) fn with_trace(command: &str, file: &str) -> String {
    if file == sample::NAME { command.to_owned() } else { format!("{command} {file}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_settings_take_the_place_of_others() {
        let source = Source {
            name: "n",
            workload: "w",
            settings: &[("requests", "100"), ("used", "8GiB"), ("span", "9GiB")],
            quick: &[("requests", "7"), ("used", "1GiB")],
            calibrated: Some(Fitted { workload: "v", settings: &[("theta", "1"), ("used", "6GiB")], quick: None }),
        };
        let command = |scale, stand_in| {
            source.command(scale, stand_in, &[]).replace("bimetal generate ", "").replace("--set ", "")
        };
        let of = StandIn::ALL.map(|stand_in| [Scale::Full, Scale::Quick].map(|scale| command(scale, stand_in)));
        assert_eq!(
            of[0],
            ["w n.bimetal requests=100 used=8GiB span=9GiB", "w n.bimetal span=9GiB requests=7 used=1GiB"]
        );
        let calibrated = ["requests=100 span=9GiB theta=1 used=6GiB", "span=9GiB theta=1 requests=7 used=1GiB"];
        assert_eq!(of[1], calibrated.map(|settings| format!("v n-calibrated.bimetal {settings}")));
    }

    #[test]
    fn a_users_setting_replaces_a_size_and_not_what_a_figure_varies() {
        let variation = |key, value| Variation::new(key, value).unwrap();
        let variations = [variation("rwfcl.period", "7"), variation("rwfcl.cache_percent", "50")];
        let of = |experiment: Experiment| experiment.varied(&variations).settings;
        let replay = || Experiment::new(&ANY_TRACE, "opfcl-1", "rwfcl").set("cache_percent", 80);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(of(replay()), [pair("cache_percent", "80"), pair("period", "7")]);
        assert_eq!(of(replay().scaled("period", 4096)), [pair("cache_percent", "80"), pair("period", "7")]);
        let swept = replay().scaled("period", 4096).set("period", 1024);
        assert_eq!(of(swept), [pair("cache_percent", "80"), pair("period", "1024")]);
    }
}
