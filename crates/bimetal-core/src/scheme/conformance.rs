//! The requirements of every scheme, as functions that panic if one is not met: for the tests of schemes here and in
//! other crates. They need the feature `conformance` of this crate. A panic names the scheme, and the device,
//! the settings and the seed if there are several.
//!
//! Small devices of all shapes are filled, or not, and serve random requests over [`Checked`] media, which assert the
//! rules of flash and follow the data. The simplest model of a device, the last written version of each sector, gives
//! the right result of every read.
//!
//! ```
//! # use bimetal_core::scheme::conformance::{self, Subject};
//! let pagemap = Subject::registered(bimetal_core::scheme::find("pagemap").unwrap());
//! conformance::repeats_to_the_bit(&pagemap, &[]);
//! ```

mod device;
mod model;
mod saved;

use std::fmt::{self, Display};
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::entry::{Constructor, construct};
use super::{Metrics, ParameterSet, ParameterSpec, Platform, Regions, Scheme, SchemeSpec, Shape};
use crate::media::{Checked, SimMedia, Simulation};
use crate::part::random::below;
use crate::request::{Op, Request};
use crate::save::Save;
pub use device::{DEVICES, Device};
#[cfg(test)]
pub(crate) use device::{checked_media, sim_regions};
use model::Model;
pub use saved::{
    goes_on_when_restored, is_imaged_while_it_serves, refuses_cut_states, refuses_states_of,
    refuses_states_of_other_devices, survives_damaged_states,
};

/// Settings of a scheme: keys and values.
pub type Pairs<'a> = &'a [(&'a str, &'a str)];

type Media = Checked<SimMedia>;

/// A scheme under test.
pub struct Subject {
    spec: &'static SchemeSpec,
    checked: Constructor<Media>,
    simulated: Constructor<SimMedia>,
}

impl Subject {
    /// A scheme, given as in [`Entry::of`](super::Entry::of); it need not be in the registry.
    pub fn of<P, S>(spec: &'static SchemeSpec, new: fn(&Shape, P) -> Result<S, String>) -> Self
    where
        P: ParameterSet,
        S: Scheme<SimMedia> + Scheme<Media> + serde::Serialize + serde::de::DeserializeOwned + 'static,
    {
        Self {
            spec,
            checked: Box::new(move |shape, settings, saved| construct(spec, new, shape, settings, saved)),
            simulated: Box::new(move |shape, settings, saved| construct(spec, new, shape, settings, saved)),
        }
    }

    /// A scheme of the registry.
    // Inline, like the construction for checked media.
    #[inline]
    pub fn registered(spec: &'static SchemeSpec) -> Self {
        let name = spec.name;
        Self {
            spec,
            checked: Box::new(|shape, settings, saved| Media::construct(name, shape, settings, saved)),
            simulated: Box::new(|shape, settings, saved| SimMedia::construct(name, shape, settings, saved)),
        }
    }

    /// Its registry line.
    pub fn spec(&self) -> &'static SchemeSpec {
        self.spec
    }

    /// Whether it can be built on a device with these settings.
    pub fn runs_on(&self, device: &Device, settings: Pairs<'_>) -> bool {
        (self.checked)(&device.shape(self.spec.regions), &owned(settings), None).is_ok()
    }
}

/// The request during which a device is filled.
const NOTHING: Request = Request { arrival_ns: 0, sector: 0, sectors: 0, op: Op::Write, handle: 0 };

fn owned(settings: Pairs<'_>) -> Vec<(String, String)> {
    settings.iter().map(|&(key, value)| (key.into(), value.into())).collect()
}

/// A scheme at work on a checked device, and the model to which it is compared.
struct Running {
    scheme: Box<dyn Scheme<Media>>,
    media: Media,
    model: Model,
}

/// A scheme on a device, and the seed of its requests.
#[derive(Clone, Copy)]
struct Case<'a> {
    subject: &'a Subject,
    device: &'a Device,
    settings: Pairs<'a>,
    filled: bool,
    seed: u64,
}

impl Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, device, settings, filled, seed } = self;
        write!(f, "`{}` on `{}`, {settings:?}, filled: {filled}, seed {seed}", subject.spec.name, device.name)
    }
}

impl Case<'_> {
    /// Runs a test with the scheme at work.
    fn run<R>(&self, test: impl FnOnce(Running) -> R) -> R {
        named(self, || test(Running::new(self)))
    }
}

/// Runs a test. A panic of the test gets `name` as its beginning.
fn named<R>(name: &dyn Display, test: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(test)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        panic!("{name}: {}", text.unwrap_or("a panic without a message"))
    })
}

impl Running {
    fn new(case: &Case<'_>) -> Self {
        let &Case { subject, device, settings, filled, seed } = case;
        let shape = device.shape(subject.spec.regions);
        let made = (subject.checked)(&shape, &owned(settings), None);
        let running = Self::over(made.unwrap_or_else(|error| panic!("{error}")), device, &shape, filled, seed);
        checked(running.scheme.as_ref(), "at the start");
        running
    }

    fn over(scheme: Box<dyn Scheme<Media>>, device: &Device, shape: &Shape, filled: bool, seed: u64) -> Self {
        let (mut scheme, mut media) = (scheme, device.media(shape));
        if filled {
            media.begin(&NOTHING, 0);
            scheme.fill(&mut media);
        }
        Self { scheme, media, model: Model::new(shape.logical_sectors, filled, seed) }
    }

    fn step(&mut self, request: &Request) -> Result<(), String> {
        self.model.step(&mut self.media, self.scheme.as_mut(), request)
    }

    /// Serves a request, at times followed by idle time.
    fn step_and_rest(&mut self, number: u64, requests: u64) -> Result<(), String> {
        let request = self.model.request(number * 20 / requests);
        self.step(&request)?;
        if number.is_multiple_of(64) {
            self.media.begin_background();
            self.scheme.idle(&mut self.media, 8);
        }
        Ok(())
    }

    /// Serves random requests, with some idle time.
    fn serve(&mut self, requests: u64) {
        for number in 0..requests {
            self.step_and_rest(number, requests).unwrap_or_else(|wrong| panic!("{wrong}"));
            if number % (requests / 50).max(1) == 0 {
                checked(self.scheme.as_ref(), "between requests");
            }
        }
        checked(self.scheme.as_ref(), "after the requests");
    }

    /// Reads all sectors.
    fn read_all(&mut self, sectors: u64) -> Result<(), String> {
        for sector in (0..sectors).step_by(256) {
            let sectors = 256.min(sectors - sector) as u32;
            self.step(&Request { arrival_ns: 0, sector, sectors, op: Op::Read, handle: 0 })?;
        }
        Ok(())
    }
}

fn checked(scheme: &dyn Scheme<Media>, when: &str) {
    scheme.check().unwrap_or_else(|broken| panic!("{when}: {broken}"));
}

/// Serves random requests, compares every read with the written data, and reads everything at the end.
pub fn returns_what_was_written(
    subject: &Subject,
    device: &Device,
    settings: Pairs<'_>,
    filled: bool,
    requests: u64,
    seed: u64,
) {
    Case { subject, device, settings, filled, seed }.run(|mut running| {
        running.serve(requests);
        let read = running.read_all(device.shape(subject.spec.regions).logical_sectors);
        read.unwrap_or_else(|wrong| panic!("{wrong}"));
    });
}

/// Like [`returns_what_was_written`], for a scheme that the caller has built for this device, and without a panic.
/// `goes_on` is called before each request, and the scheme reports its figures at times. Returns the final state of the
/// media. A deterministic scheme leaves the same state in each run with the same arguments.
///
/// # Errors
/// The first sector with wrong content.
pub fn try_out(
    scheme: Box<dyn Scheme<Media>>,
    (device, regions): (&Device, Regions),
    filled: bool,
    requests: u64,
    seed: u64,
    goes_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Vec<u8>, String> {
    let shape = device.shape(regions);
    let mut running = Running::over(scheme, device, &shape, filled, seed);
    let mut metrics = Metrics::default();
    for number in 0..requests {
        if number.is_multiple_of(64) {
            metrics.clear();
            running.scheme.metrics(&mut metrics);
        }
        if goes_on().is_break() {
            return Ok(Vec::new());
        }
        running.step_and_rest(number, requests)?;
    }
    running.read_all(shape.logical_sectors)?;
    let mut state = Vec::new();
    running.media.save(&mut state);
    Ok(state)
}

/// The words of a parameter that is a choice; none of other parameters.
fn words(parameter: &ParameterSpec) -> impl Iterator<Item = &str> {
    parameter.accepts.split('`').skip(1).step_by(2)
}

/// The same on drawn devices, with a drawn word for each parameter that is a choice: shapes and combinations that are on
/// no list. The seed in the message of a panic gives the device. Devices that are too small for the scheme are skipped.
/// Returns the number of the others.
pub fn drawn_devices_return_what_was_written(subject: &Subject, seeds: Range<u64>, requests: u64) -> usize {
    let parameters = (subject.spec.parameters)();
    let choices = parameters.iter().map(|parameter| (parameter.name, words(parameter).collect::<Vec<_>>()));
    let choices: Vec<(&str, Vec<&str>)> = choices.filter(|(_, words)| !words.is_empty()).collect();
    let runs = seeds.filter(|&seed| {
        let state = &mut { seed };
        let device = Device::drawn(state);
        let mut one_of = |number: usize| below(state, number as u64) as usize;
        let settings: Vec<(&str, &str)> =
            choices.iter().map(|(name, words)| (*name, words[one_of(words.len())])).collect();
        let runs = subject.runs_on(&device, &settings);
        if runs {
            returns_what_was_written(subject, &device, &settings, seed.is_multiple_of(2), requests, seed);
        }
        runs
    });
    runs.count()
}

/// The same on every device, for each other word of each parameter that is a choice. Combinations that a device cannot
/// have are skipped.
pub fn every_choice_returns_what_was_written(subject: &Subject, requests: u64) {
    for parameter in (subject.spec.parameters)() {
        for word in words(&parameter).filter(|word| *word != parameter.default) {
            let settings = [(parameter.name, word)];
            for device in DEVICES.iter().filter(|device| subject.runs_on(device, &settings)) {
                returns_what_was_written(subject, device, &settings, true, requests, 5);
            }
        }
    }
}

/// The same requests twice lead to the same state of the scheme and of its media, to the bit.
pub fn repeats_to_the_bit(subject: &Subject, settings: Pairs<'_>) {
    let case = Case { subject, device: &DEVICES[0], settings, filled: true, seed: 1 };
    let state = |mut running: Running| {
        running.serve(2000);
        let (mut scheme, mut media) = (Vec::new(), Vec::new());
        running.scheme.save(&mut scheme);
        running.media.save(&mut media);
        (scheme, media)
    };
    assert!(case.run(state) == case.run(state), "{case}: the same requests lead to another state");
}

/// The figures by which the scheme is declared to adapt are reported.
pub fn reports_what_it_adapts_by(subject: &Subject, settings: Pairs<'_>) {
    let case = Case { subject, device: &DEVICES[0], settings, filled: true, seed: 1 };
    case.run(|mut running| {
        running.serve(2000);
        let mut metrics = Metrics::default();
        running.scheme.metrics(&mut metrics);
        for adaptation in subject.spec.adapts {
            assert!(metrics.get(adaptation.metric).is_some(), "{case}: it does not report `{}`", adaptation.metric);
        }
    });
}

/// All requirements, in some seconds: with these settings, and with each choice.
pub fn holds(subject: &Subject, settings: Pairs<'_>) {
    for device in DEVICES {
        for filled in [true, false] {
            returns_what_was_written(subject, device, settings, filled, 4000, 1);
            goes_on_when_restored(subject, device, settings, filled, 1000);
            is_imaged_while_it_serves(subject, device, settings, filled, 1000);
        }
    }
    every_choice_returns_what_was_written(subject, 2000);
    drawn_devices_return_what_was_written(subject, 0..200, 300);
    repeats_to_the_bit(subject, settings);
    reports_what_it_adapts_by(subject, settings);
    refuses_states_of_other_devices(subject);
    refuses_cut_states(subject);
    survives_damaged_states(subject);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::pagemap;

    #[test]
    #[should_panic(expected = "in front of larger ones`, [], filled: true, seed 7: page 3 is lost")]
    fn a_panic_names_its_case() {
        let subject = Subject::of(&pagemap::SPEC, pagemap::PageMapped::new);
        let case = Case { subject: &subject, device: &DEVICES[0], settings: &[], filled: true, seed: 7 };
        case.run(|_| panic!("page {} is lost", 3));
    }
}
