//! Every registered scheme, saved in the middle of its work and restored: nothing shows that it was interrupted.

use bimetal_core::media::{SimMedia, Simulation};
use bimetal_core::part::random::below;
use bimetal_core::save::{self, Save};
use bimetal_core::scheme::{self, BuildError, Metrics, SCHEMES, Scheme, SchemeSpec, Shape};

use super::{DEVICES, Device, Media, Model, SITUATIONS, owned};

/// Serves random requests, with some idle time.
fn serve(media: &mut SimMedia, scheme: &mut dyn Scheme<SimMedia>, model: &mut Model, requests: u64) {
    for number in 0..requests {
        let request = model.request(number * 20 / requests);
        let now = media.end();
        media.begin(&request, now);
        scheme.serve(media, &request);
        if number % 64 == 0 {
            media.begin_background();
            scheme.idle(media, 8);
        }
    }
}

/// A device at work, with the model that it is held against.
struct Running {
    scheme: Box<dyn Scheme<Media>>,
    media: Media,
    model: Model,
}

impl Running {
    fn new(spec: &SchemeSpec, device: &Device, settings: &[(&str, &str)], filled: bool) -> Self {
        let shape = device.shape(spec.regions);
        let mut scheme = scheme::build::<Media>(spec.name, &shape, &owned(settings)).unwrap();
        let mut media = device.media(&shape);
        let model = Model::new(shape.logical_sectors, filled, 21);
        if filled {
            media.begin(&super::NOTHING, 0);
            scheme.fill(&mut media);
        }
        Self { scheme, media, model }
    }

    /// Serves random requests, with some idle time.
    fn serve(&mut self, requests: u64) {
        for number in 0..requests {
            let request = self.model.request(number * 20 / requests);
            self.model.step(&mut self.media, self.scheme.as_mut(), &request);
            if number % 64 == 0 {
                self.media.begin_background();
                self.scheme.idle(&mut self.media, 8);
            }
        }
        self.scheme.check().unwrap();
    }

    /// Everything there is: of the scheme, of the media with their ledger, and the scheme's figures.
    fn state(&self) -> (Vec<u8>, Vec<u8>, Metrics) {
        let (mut scheme, mut media, mut metrics) = (Vec::new(), Vec::new(), Metrics::default());
        self.scheme.save(&mut scheme);
        self.media.save(&mut media);
        self.scheme.metrics(&mut metrics);
        (scheme, media, metrics)
    }

    /// The same device as it comes back from its saved state.
    fn restored(&self, spec: &SchemeSpec, device: &Device, settings: &[(&str, &str)]) -> Self {
        let shape = device.shape(spec.regions);
        let (scheme, media, _) = self.state();
        Self {
            scheme: scheme::restore(spec.name, &shape, &owned(settings), &scheme).unwrap(),
            media: save::restore(&device.media(&shape), &media).unwrap(),
            model: self.model.clone(),
        }
    }
}

fn goes_on(spec: &SchemeSpec, device: &Device, settings: &[(&str, &str)], filled: bool, requests: u64) {
    println!("{} on `{}`, {settings:?}, filled: {filled}", spec.name, device.name);
    let mut running = Running::new(spec, device, settings, filled);
    running.serve(requests);
    let mut restored = running.restored(spec, device, settings);
    assert!(restored.state() == running.state(), "restored");
    running.serve(requests);
    restored.serve(requests);
    assert!(restored.state() == running.state(), "after more requests");
}

#[test]
fn a_restored_scheme_goes_on_as_if_nothing_had_been() {
    for spec in SCHEMES {
        for device in DEVICES {
            for filled in [true, false] {
                goes_on(spec, device, &[], filled, 1000);
            }
        }
    }
}

#[test]
fn every_situation_is_restored() {
    for &(name, settings) in SITUATIONS {
        let spec = scheme::find(name).unwrap();
        for device in DEVICES {
            goes_on(spec, device, settings, true, 1000);
        }
    }
}

fn refused(spec: &SchemeSpec, shape: &Shape, settings: &[(&str, &str)], bytes: &[u8]) -> bool {
    matches!(scheme::restore::<Media>(spec.name, shape, &owned(settings), bytes), Err(BuildError::State { .. }))
}

#[test]
fn the_state_of_another_device_is_refused() {
    for spec in SCHEMES {
        let mut running = Running::new(spec, &DEVICES[0], &[], true);
        running.serve(100);
        let (bytes, ..) = running.state();
        assert!(!refused(spec, &DEVICES[0].shape(spec.regions), &[], &bytes), "{}", spec.name);
        for device in &DEVICES[1..] {
            assert!(refused(spec, &device.shape(spec.regions), &[], &bytes), "{}", spec.name);
        }
        for other in SCHEMES.iter().filter(|other| other.regions == spec.regions && other.name != spec.name) {
            let refused = refused(other, &DEVICES[0].shape(spec.regions), &[], &bytes);
            assert!(refused, "`{}` took the state of `{}`", other.name, spec.name);
        }
    }
}

#[test]
fn cut_states_are_refused() {
    for spec in SCHEMES {
        let mut running = Running::new(spec, &DEVICES[0], &[], true);
        running.serve(1000);
        let (bytes, ..) = running.state();
        let shape = DEVICES[0].shape(spec.regions);
        let mut seed = 4;
        for _ in 0..50 {
            let length = below(&mut seed, bytes.len() as u64) as usize;
            assert!(refused(spec, &shape, &[], &bytes[..length]), "{length} of {} bytes", bytes.len());
        }
    }
}

/// Damages bytes: a bit, a number, or two places that change.
fn damage(bytes: &mut [u8], seed: &mut u64) {
    let mut draw = |bound: usize| below(seed, bound as u64) as usize;
    let (at, other) = (draw(bytes.len()), draw(bytes.len()));
    match draw(5) {
        0 => bytes[at] ^= 1 << draw(8),
        1 => bytes[at] = draw(256) as u8,
        2 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0),
        3 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
        _ => bytes.swap(at, other),
    }
}

/// Neither a scheme nor media that came from damaged bytes may panic, then or later. What they serve may be nonsense, which
/// checked media would not stand: these are simulated.
#[test]
fn damaged_states_are_refused_or_can_be_served_from() {
    for spec in SCHEMES {
        let device = &DEVICES[0];
        let shape = device.shape(spec.regions);
        let restored = |bytes: &[u8]| scheme::restore::<SimMedia>(spec.name, &shape, &[], bytes);
        let mut media = device.sim(&shape);
        let mut scheme = scheme::build::<SimMedia>(spec.name, &shape, &[]).unwrap();
        let mut model = Model::new(shape.logical_sectors, true, 21);
        scheme.fill(&mut media);
        serve(&mut media, scheme.as_mut(), &mut model, 2000);
        let (mut of_scheme, mut of_media) = (Vec::new(), Vec::new());
        scheme.save(&mut of_scheme);
        media.save(&mut of_media);
        let (mut seed, mut accepted) = (4, 0);
        for number in 0..200 {
            let (mut scheme_bytes, mut media_bytes) = (of_scheme.clone(), of_media.clone());
            damage(if number % 2 == 0 { &mut scheme_bytes } else { &mut media_bytes }, &mut seed);
            let (Ok(mut scheme), Ok(mut media)) = (restored(&scheme_bytes), device.sim(&shape).restored(&media_bytes))
            else {
                continue;
            };
            serve(&mut media, scheme.as_mut(), &mut model.clone(), 100);
            accepted += 1;
        }
        assert!(accepted < 200, "`{}` takes anything", spec.name);
    }
}
