//! A scheme that is saved in the middle of its work and restored continues as without the interruption.

use super::{Case, DEVICES, Device, Model, Pairs, Running, Subject, named, owned};
use crate::media::{SimMedia, Simulation};
use crate::part::random::below;
use crate::save::{self, Chunks, Image, Save, read_image};
use crate::scheme::{BuildError, Metrics, Scheme};

impl Running {
    /// The complete state: the scheme, the media with their ledger, and the scheme's figures.
    fn state(&self) -> (Vec<u8>, Vec<u8>, Metrics) {
        let (mut scheme, mut media, mut metrics) = (Vec::new(), Vec::new(), Metrics::default());
        self.scheme.save(&mut scheme);
        self.media.save(&mut media);
        self.scheme.metrics(&mut metrics);
        (scheme, media, metrics)
    }

    /// The same device, restored from its saved state.
    fn restored(&self, subject: &Subject, device: &Device, settings: Pairs<'_>) -> Self {
        let shape = device.shape(subject.spec.regions);
        let (scheme, media, _) = self.state();
        let scheme = (subject.checked)(&shape, &owned(settings), Some(&scheme));
        let media = save::restore(&device.media(&shape), &media);
        Self {
            scheme: scheme.unwrap_or_else(|error| panic!("{error}")),
            media: media.unwrap_or_else(|error| panic!("{error}")),
            model: self.model.clone(),
        }
    }
}

/// Saves and restores the scheme after some requests, and serves the same number again: the final bytes are the same
/// with and without that.
pub fn goes_on_when_restored(subject: &Subject, device: &Device, settings: Pairs<'_>, filled: bool, requests: u64) {
    Case { subject, device, settings, filled, seed: 21 }.run(|mut running| {
        running.serve(requests);
        let mut restored = running.restored(subject, device, settings);
        assert!(restored.state() == running.state(), "restored");
        running.serve(requests);
        restored.serve(requests);
        assert!(restored.state() == running.state(), "after more requests");
    });
}

/// Writes an image of the scheme's state while it serves requests: the image has the state of its beginning, as if that
/// had been saved at once. A table that is made only while the scheme is saved would be missing.
pub fn is_imaged_while_it_serves(subject: &Subject, device: &Device, settings: Pairs<'_>, filled: bool, requests: u64) {
    Case { subject, device, settings, filled, seed: 21 }.run(|mut running| {
        running.serve(requests);
        let saved = running.state().0;
        let (image, skeleton) = Image::begin(|out| running.scheme.save(out));
        while !image.collect(1, |out| running.scheme.save(out)) {
            running.serve(requests / 20);
        }
        let chunks = Chunks::new(image.chunks(), image.take());
        let shape = device.shape(subject.spec.regions);
        let restored = read_image(Box::new(chunks), true, || {
            (subject.checked)(&shape, &owned(settings), Some(&skeleton)).map_err(|error| error.to_string())
        });
        let mut imaged = Vec::new();
        restored.unwrap_or_else(|error| panic!("{error}")).save(&mut imaged);
        assert!(imaged == saved, "the image is another state");
    });
}

/// The state of a scheme on the first device after some requests.
fn saved_state(subject: &Subject, requests: u64) -> Vec<u8> {
    Case { subject, device: &DEVICES[0], settings: &[], filled: true, seed: 21 }.run(|mut running| {
        running.serve(requests);
        running.state().0
    })
}

fn refused(subject: &Subject, device: &Device, bytes: &[u8]) -> bool {
    let restored = (subject.checked)(&device.shape(subject.spec.regions), &[], Some(bytes));
    matches!(restored, Err(BuildError::State { .. }))
}

/// The state of a scheme can be restored on the device on which it was saved and on no other.
pub fn refuses_states_of_other_devices(subject: &Subject) {
    let bytes = saved_state(subject, 100);
    assert!(!refused(subject, &DEVICES[0], &bytes), "{}", subject.spec.name);
    for device in &DEVICES[1..] {
        assert!(refused(subject, device, &bytes), "{} on `{}`", subject.spec.name, device.name);
    }
}

/// The state of another scheme on the same device is refused.
pub fn refuses_states_of(subject: &Subject, other: &Subject) {
    let refused = refused(subject, &DEVICES[0], &saved_state(other, 100));
    assert!(refused, "`{}` accepts the state of `{}`", subject.spec.name, other.spec.name);
}

/// A state whose end is cut off is refused.
pub fn refuses_cut_states(subject: &Subject) {
    let bytes = saved_state(subject, 1000);
    let mut seed = 4;
    for _ in 0..50 {
        let length = below(&mut seed, bytes.len() as u64) as usize;
        let is_refused = refused(subject, &DEVICES[0], &bytes[..length]);
        assert!(is_refused, "`{}` accepts {length} of {} bytes of its state", subject.spec.name, bytes.len());
    }
}

/// Damages bytes: a bit, a byte, a number, or two bytes that are swapped.
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

/// Neither a scheme nor media restored from damaged bytes may panic, then or later. They may return wrong data, which
/// checked media would refuse: these media are simulated.
pub fn survives_damaged_states(subject: &Subject) {
    let device = &DEVICES[0];
    let shape = device.shape(subject.spec.regions);
    let mut media = device.sim(&shape);
    let mut scheme = (subject.simulated)(&shape, &[], None).unwrap_or_else(|error| panic!("{error}"));
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
        let scheme = (subject.simulated)(&shape, &[], Some(&scheme_bytes));
        let (Ok(mut scheme), Ok(mut media)) = (scheme, device.sim(&shape).restored(&media_bytes)) else {
            continue;
        };
        let name = format!("`{}` from damaged state {number}", subject.spec.name);
        named(&name, || serve(&mut media, scheme.as_mut(), &mut model.clone(), 100));
        accepted += 1;
    }
    assert!(accepted < 200, "`{}` accepts any bytes", subject.spec.name);
}
