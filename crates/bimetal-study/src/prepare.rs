//! Preparation of a run: a trace, a comparable device for each scheme, and addresses that fit the device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;

use bimetal_core::compact::Extents;
use bimetal_core::device::{self, Device, DeviceError, Resolved, Template};
use bimetal_core::media::SimMedia;
use bimetal_core::profile::{CurvePlan, Join, Profile};
use bimetal_core::report::TraceFacts;
use bimetal_core::request::{PAGE_BYTES, Request, SECTOR_BYTES};
use bimetal_core::scheme::{self, BuildError, Regions, SCHEMES, SchemeSpec};
use bimetal_core::trace::Trace;
use serde::Serialize;

use crate::error::SAMPLED_PAGES_MIN;
use crate::{StudyError, memory};

/// Requests and facts about them.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Facts about the requests for the results.
    pub facts: TraceFacts,
    /// The requests, in order of arrival. Shared, so that many devices can be prepared for them.
    pub requests: Arc<Vec<Request>>,
    /// The extents that reads and writes touch.
    extents: Arc<Extents>,
    /// The requests after compaction or clipping, for the devices that need it.
    layouts: Arc<Layouts>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Requests that are changed to fit a device. They are made once for all devices of a kind, because they take the
/// memory of a trace.
#[derive(Debug, Default)]
struct Layouts {
    /// Requests with the touched extents moved next to each other, identical for all devices.
    compacted: OnceLock<Arc<Vec<Request>>>,
    /// Requests with trims clipped at the end of the device, by its capacity in bytes. Kept while one is in use.
    clipped: Mutex<BTreeMap<u64, Weak<Vec<Request>>>>,
}

impl Workload {
    /// A trace, or its first `limit` requests.
    pub fn of(trace: Trace, limit: Option<u64>) -> Self {
        let mut requests = trace.requests;
        requests.truncate(limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
        let (facts, extents) =
            Threads.join(|| TraceFacts::of(&trace.name, trace.format, &requests), || Extents::of(&requests));
        let layouts = Arc::default();
        Self { facts, requests: Arc::new(requests), extents: Arc::new(extents), layouts, warnings: trace.warnings }
    }

    /// Checks that a requested sample has enough pages for hit rates.
    ///
    /// # Errors
    /// Too few pages.
    pub fn check_sample(&self, curves: &CurvePlan) -> Result<(), StudyError> {
        let Some(rate) = curves.sampling_rate.filter(|&rate| rate < 1.0 && curves.points > 0) else { return Ok(()) };
        let pages = self.touched_pages();
        let sampled = pages as f64 * rate;
        if sampled < SAMPLED_PAGES_MIN as f64 { Err(StudyError::Sample { rate, pages, sampled }) } else { Ok(()) }
    }

    /// The profile of the trace, calculated on all processors.
    pub fn profile(&self, curves: &CurvePlan) -> Profile {
        Profile::joined(&self.requests, self.touched_pages(), curves, &Threads)
    }

    /// Number of distinct 4-KiB pages that reads and writes touch.
    pub(crate) fn touched_pages(&self) -> u64 {
        self.facts.footprint_bytes / PAGE_BYTES
    }

    /// Compacts the address space, which every device that is fitted to the trace needs. No additional memory is needed
    /// if the requests have no other owner.
    pub fn compacted(mut self) -> Self {
        self.compact();
        let extents = Arc::new(Extents::of(&self.requests));
        Self { extents, layouts: Arc::default(), ..self }
    }

    /// Bytes of the touched extents: the least capacity of a device that is fitted to the trace.
    pub fn touched_bytes(&self) -> u64 {
        self.extents.touched_bytes()
    }

    /// Moves the touched extents next to each other, in place if the requests have no other owner.
    fn compact(&mut self) {
        if let Some(own) = Arc::get_mut(&mut self.requests) {
            return self.extents.compact(own);
        }
        let compacted = || {
            let mut requests = self.requests.to_vec();
            self.extents.compact(&mut requests);
            Arc::new(requests)
        };
        let compacted = Arc::clone(self.layouts.compacted.get_or_init(compacted));
        self.requests = compacted;
    }

    /// Clips trims at the end of a device.
    fn clip(&mut self, logical_bytes: u64) {
        if let Some(own) = Arc::get_mut(&mut self.requests) {
            return clip_trims(own, logical_bytes);
        }
        let mut known = self.layouts.clipped.lock().unwrap_or_else(PoisonError::into_inner);
        let clipped = known.get(&logical_bytes).and_then(Weak::upgrade).unwrap_or_else(|| {
            let mut requests = self.requests.to_vec();
            clip_trims(&mut requests, logical_bytes);
            Arc::new(requests)
        });
        known.insert(logical_bytes, Arc::downgrade(&clipped));
        drop(known);
        self.requests = clipped;
    }
}

/// Evaluates the parts of a calculation at once, each in a thread of its own.
struct Threads;

impl Join for Threads {
    fn join<A: Send, B: Send>(&self, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
        thread::scope(|scope| {
            let b = scope.spawn(b);
            (a(), b.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

/// The schemes to run.
#[derive(Clone, Debug)]
pub struct Schemes {
    specs: Vec<&'static SchemeSpec>,
    /// Whether schemes that cannot run on the device are left out.
    optional: bool,
}

impl Schemes {
    /// The whole registry. Schemes that cannot run on the device are left out with a warning.
    pub fn all() -> Self {
        Self { specs: SCHEMES.to_vec(), optional: true }
    }

    /// The schemes with these names, in this order. `all` stands for all schemes of the registry that are not named
    /// before it.
    ///
    /// # Errors
    /// An unknown name. The message lists the valid ones.
    pub fn named(names: &[String]) -> Result<Self, BuildError> {
        let mut specs: Vec<&'static SchemeSpec> = Vec::new();
        let mut add = |spec: &'static SchemeSpec| {
            if !specs.iter().any(|known| known.name == spec.name) {
                specs.push(spec);
            }
        };
        for name in names {
            match name.as_str() {
                "all" => SCHEMES.iter().for_each(|spec| add(spec)),
                name => add(scheme::find(name)?),
            }
        }
        Ok(Self { specs, optional: names.iter().any(|name| name == "all") })
    }
}

/// Addresses of the trace on the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Addresses {
    /// Whether the touched extents were moved next to each other.
    pub compacted: bool,
    /// 64-KiB extents that reads and writes touch.
    pub touched_extents: u64,
    /// End of the address space in the trace, in bytes.
    pub span_bytes: u64,
    /// End of the replayed address space, in bytes.
    pub replayed_span_bytes: u64,
}

/// Everything that a run needs.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The requests as replayed.
    pub workload: Workload,
    /// Their addresses on the devices.
    pub addresses: Addresses,
    /// The device of each scheme.
    pub runs: Vec<Resolved>,
    /// Reasons for left-out schemes.
    pub warnings: Vec<String>,
}

/// Makes a device for each scheme and fits the trace's addresses to it.
///
/// A device that is scaled to the trace (the default, `auto`) holds the 64-KiB extents that the trace touches, which
/// are moved next to each other. On any other device they are moved only if the trace does not fit otherwise. Settings
/// with a dot and those of [`device::DEVICE_KEYS`] belong to the device. Any other setting goes to every scheme that
/// has the parameter.
///
/// # Errors
/// An unknown setting, an invalid device, or a trace that does not fit.
pub fn prepare(
    mut workload: Workload,
    device: Option<Device>,
    schemes: &Schemes,
    settings: &[(String, String)],
) -> Result<Prepared, StudyError> {
    let mut template = Template::for_trace(device, settings, workload.extents.touched_bytes())?;
    let of_schemes = configure(&mut template, schemes, settings)?;
    let addresses = place(&mut workload, &template)?;
    let (mut runs, mut left_out) = (Vec::new(), Vec::new());
    for spec in &schemes.specs {
        let made = resolve(&template, spec, &of_schemes);
        if let Ok(resolved) = &made {
            check_memory(resolved)?;
        }
        // All devices are built before the first run, so that errors appear at once.
        match made.and_then(|resolved| resolved.build::<SimMedia>().map(|_| resolved).map_err(DeviceError::from)) {
            Ok(resolved) => runs.push(resolved),
            Err(error) if schemes.optional && !matches!(error, DeviceError::Build(BuildError::Parameter(_))) => {
                left_out.push((spec.name, error));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if runs.is_empty() {
        let first = left_out.into_iter().next();
        return Err(StudyError::NoScheme { reason: first.map(|(_, error)| error.to_string()).unwrap_or_default() });
    }
    let warnings = left_out.into_iter().map(|(name, error)| format!("`{name}` is left out: {error}")).collect();
    Ok(Prepared { workload, addresses, runs, warnings })
}

/// Checks whether one simulation of a device fits into the available memory.
///
/// # Errors
/// Too little memory.
pub fn check_memory(resolved: &Resolved) -> Result<(), StudyError> {
    memory::check(std::slice::from_ref(resolved), 1, 1)
}

/// Makes the device of one scheme and fits the trace's addresses to it, like [`prepare`], but does not build it twice:
/// the replay tests whether the scheme accepts the device. Memory is not checked: a sweep waits until there is enough.
///
/// # Errors
/// The errors of [`prepare`].
pub fn prepare_one(
    mut workload: Workload,
    device: Device,
    scheme: &'static SchemeSpec,
    settings: &[(String, String)],
) -> Result<(Workload, Resolved), StudyError> {
    let mut template = Template::for_trace(Some(device), settings, workload.extents.touched_bytes())?;
    let schemes = Schemes { specs: vec![scheme], optional: false };
    let of_scheme = configure(&mut template, &schemes, settings)?;
    place(&mut workload, &template)?;
    let resolved = resolve(&template, scheme, &of_scheme)?;
    Ok((workload, resolved))
}

/// A device without a trace: as described, or fitted to a logical capacity.
///
/// # Errors
/// An unknown setting, or an invalid device.
pub fn device(
    mut template: Template,
    scheme: &'static SchemeSpec,
    settings: &[(String, String)],
) -> Result<Resolved, StudyError> {
    let schemes = Schemes { specs: vec![scheme], optional: false };
    let of_scheme = configure(&mut template, &schemes, settings)?;
    Ok(resolve(&template, scheme, &of_scheme)?)
}

/// Applies the settings of the device, and returns the others.
fn configure<'a>(
    template: &mut Template,
    schemes: &Schemes,
    settings: &'a [(String, String)],
) -> Result<Vec<&'a (String, String)>, StudyError> {
    let (of_device, of_schemes): (Vec<_>, Vec<_>) = settings.iter().partition(|(key, _)| device::is_device_key(key));
    for (key, value) in of_device {
        let region = template.set(key, value).map_err(StudyError::DeviceSetting)?;
        if !schemes.specs.iter().any(|spec| is_used(spec, template.device(), key, region)) {
            return Err(StudyError::Unused { key: key.clone() });
        }
    }
    check_keys(schemes, &of_schemes)?;
    Ok(of_schemes)
}

/// Whether a scheme's device has the part to which a setting belongs: the disk, or the region with this index; see
/// [`Template`].
pub(crate) fn is_used(spec: &SchemeSpec, device: &Device, key: &str, region: Option<usize>) -> bool {
    let (part, field) = key.split_once('.').unwrap_or(("", key));
    let is_of_disk = part == "disk" || device.disks.iter().any(|disk| disk.name == part);
    let has_one = device.regions.len() == 1;
    match spec.regions {
        // The dies of the fast region go to the slow one.
        Regions::One => {
            !is_of_disk && (has_one || region != Some(0) || matches!(field, "channels" | "dies_per_channel"))
        }
        Regions::FastAndSlow | Regions::DualMode => !is_of_disk,
        Regions::FlashOverDisk => has_one || region != Some(1),
    }
}

/// The device of a scheme, with the settings that the scheme has.
fn resolve(
    template: &Template,
    spec: &'static SchemeSpec,
    settings: &[&(String, String)],
) -> Result<Resolved, DeviceError> {
    let known: Vec<&str> = (spec.parameters)().iter().map(|parameter| parameter.name).collect();
    let own = settings.iter().filter(|(key, _)| known.contains(&key.as_str()));
    let own: Vec<(String, String)> = own.map(|&setting| setting.clone()).collect();
    template.resolve(spec, &own)
}

fn check_keys(schemes: &Schemes, settings: &[&(String, String)]) -> Result<(), StudyError> {
    let mut known: Vec<&str> =
        schemes.specs.iter().flat_map(|spec| (spec.parameters)()).map(|parameter| parameter.name).collect();
    known.sort_unstable();
    known.dedup();
    match settings.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some((key, _)) => {
            let of_device = device::DEVICE_KEYS.join(", ");
            let own = if known.is_empty() { String::new() } else { format!("{}, and ", known.join(", ")) };
            let known =
                format!("{own}those of the device: {of_device}, and REGION.FIELD such as fast.capacity or slow.spare");
            Err(StudyError::Setting { key: key.clone(), known })
        }
    }
}

/// Compacts the trace's address space if necessary.
fn place(workload: &mut Workload, template: &Template) -> Result<Addresses, StudyError> {
    let extents = &workload.extents;
    let logical = template.device().logical.0;
    let span_bytes = extents.span_bytes();
    let compacted = extents.touched_bytes() < span_bytes && (template.is_automatic() || span_bytes > logical);
    let replayed_span_bytes = if compacted { extents.touched_bytes() } else { span_bytes };
    if replayed_span_bytes > logical {
        return Err(StudyError::DoesNotFit {
            device: template.device().name.clone(),
            touched_mib: extents.touched_bytes().div_ceil(1 << 20),
            logical_mib: logical >> 20,
        });
    }
    let addresses = Addresses { compacted, touched_extents: extents.count(), span_bytes, replayed_span_bytes };
    if compacted {
        workload.compact();
    } else if workload.requests.iter().any(|request| request.end() > logical / SECTOR_BYTES) {
        workload.clip(logical);
    }
    Ok(addresses)
}

/// Clips trims that reach beyond the device, and removes those beyond its end.
fn clip_trims(requests: &mut Vec<Request>, logical_bytes: u64) {
    let end = logical_bytes / SECTOR_BYTES;
    requests.retain_mut(|request| {
        request.sectors =
            u32::try_from(end.saturating_sub(request.sector)).map_or(request.sectors, |left| left.min(request.sectors));
        request.sectors > 0
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_core::request::Op;

    static WITHOUT_PARAMETERS: SchemeSpec = SchemeSpec {
        name: "plain",
        summary: "a scheme without parameters",
        source: "none",
        regions: Regions::One,
        parameters: Vec::new,
        adapts: &[],
        version: 1,
    };

    #[test]
    fn an_unknown_setting_lists_those_there_are() {
        let setting = ("nosuch".to_owned(), "1".to_owned());
        let shown = |specs: Vec<&'static SchemeSpec>| {
            check_keys(&Schemes { specs, optional: false }, &[&setting]).unwrap_err().to_string()
        };
        let plain = shown(vec![&WITHOUT_PARAMETERS]);
        assert!(plain.contains("they have: those of the device: logical, "), "{plain}");
        let all = shown(SCHEMES.to_vec());
        assert!(all.contains(", and those of the device: logical, "), "{all}");
    }

    fn workload(requests: Vec<Request>) -> Workload {
        let trace = Trace {
            name: "t".into(),
            format: "generated",
            devices: Vec::new(),
            reads: 0,
            writes: requests.len() as u64,
            trims: 0,
            read_bytes: 0,
            write_bytes: 0,
            origin_ns: 0,
            action: None,
            warnings: Vec::new(),
            requests,
        };
        Workload::of(trace, None)
    }

    #[test]
    fn all_schemes_come_before_named_ones_that_they_are_not_among() {
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            Schemes::named(&names).map(|schemes| (schemes.specs.len(), schemes.optional))
        };
        assert_eq!(named(&["pagemap", "pagemap", "chang"]), Ok((2, false)));
        assert_eq!(named(&["pagemap", "all"]), Ok((SCHEMES.len(), true)));
        assert!(named(&["all", "none"]).unwrap_err().to_string().starts_with("there is no scheme `none`"));
    }

    #[test]
    fn sizes_are_those_of_whole_sectors_with_and_without_a_limit() {
        let text = "w,0,100,0\nr,512,513,1\nw,1024,100,2\n";
        let columns = Some("op,offset,size,time:s".parse().unwrap());
        let options = bimetal_core::trace::Options { columns, ..Default::default() };
        let trace = || bimetal_core::trace::decode("t.csv", text.as_bytes(), &options).unwrap();
        assert_eq!(trace().write_bytes, 200);
        for (limit, write_bytes) in [(None, 1024), (Some(3), 1024), (Some(2), 512)] {
            let facts = Workload::of(trace(), limit).facts;
            // A life is the quotient of host writes in sectors and this rate.
            assert_eq!((facts.read_bytes, facts.write_bytes), (1024, write_bytes), "{limit:?}");
        }
    }

    #[test]
    fn devices_of_a_layout_share_their_requests() {
        let request = |sector, op| Request { arrival_ns: 0, sector, sectors: 8, op, handle: 0 };
        let far = request(1 << 30, Op::Write);
        let trace = workload(vec![request(0, Op::Write), far]);
        let pagemap = scheme::find("pagemap").unwrap();
        let chang = scheme::find("chang").unwrap();
        let auto = device::preset(device::AUTO).unwrap();
        let on = |workload: &Workload, spec, settings: &[(&str, &str)]| {
            let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            prepare_one(workload.clone(), auto.clone(), spec, &settings).unwrap().0.requests
        };
        let first = on(&trace, pagemap, &[]);
        assert_eq!(first[1].sector, 128, "moved");
        assert!(Arc::ptr_eq(&first, &on(&trace, chang, &[("slow.spare", "60%")])));
        assert_eq!(trace.requests[1], far, "those of the trace stay where they are");
        // Requests without another owner are moved in place, once for all devices.
        let (place, moved) = (trace.requests.as_ptr(), first.to_vec());
        let compacted = Workload { layouts: Arc::default(), ..trace }.compacted();
        assert_eq!((compacted.requests.as_ptr(), compacted.requests.to_vec()), (place, moved));
        assert!(Arc::ptr_eq(&on(&compacted, pagemap, &[]), &compacted.requests));

        let trims = workload(vec![request(0, Op::Write), request(1 << 20, Op::Trim)]);
        let logical = [("logical", "8MiB")];
        let clipped = on(&trims, pagemap, &logical);
        assert_eq!((clipped.len(), trims.requests.len()), (1, 2));
        assert!(Arc::ptr_eq(&clipped, &on(&trims, chang, &logical)));
    }
}
