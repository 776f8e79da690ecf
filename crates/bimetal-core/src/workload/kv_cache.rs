//! `kv-cache`: a cache of objects on flash. Objects are written once and dropped as a whole, when other objects
//! overwrite them.
//!
//! The device is divided into areas of objects of one size. Each area gets its share of the written bytes, and a
//! placement handle, by which `fdp` separates areas.
//!
//! - `mix=small-large`: a flash cache engine with two parts, like CacheLib. Small objects are in buckets of 4 KiB;
//!   inserting an object rewrites its bucket, at a random place of a small area. Large objects are appended to a
//!   circular log in the rest of the device.
//! - `mix=llm`: prefix caches for language models, as in the evaluation of LMCache's pull request 4016 (2026): nine
//!   programs on 855 GiB in five classes, with objects of 1 to 32 MiB. Sizes and areas scale with the span, down to
//!   objects of 4 KiB. Two facts are not published there: all programs are assumed to write at the same rate, and the
//!   choice of the dropped object is a parameter.

use super::sample::Arrivals;
use super::{Requests, WorkloadSpec, request_sectors, target};
use crate::part::random;
use crate::request::{Op, Request};
use crate::units::ByteSize;

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "kv-cache",
    summary: "caches of objects on flash, with placement handles: small and large objects, or prefixes of language models",
    source: "CacheLib (Berg et al., OSDI 2020); LMCache pull request 4016, 2026",
    parameters: Parameters::specs,
    targets: target::none,
    in_small: &[],
};

crate::choices! {
    /// The cached data.
    pub enum Mix {
        /// Small objects in buckets, large ones in a log.
        SmallAndLarge = "small-large",
        /// Prefixes of language models, in five classes.
        Llm = "llm",
    }
}

crate::choices! {
    /// The choice of the object that is dropped for a new one.
    pub enum Dropped {
        /// The object that was written first.
        Oldest = "oldest",
        /// A random object.
        Random = "random",
    }
}

crate::parameters! {
    SPEC.name;
    /// Parameters of `kv-cache`.
    pub struct Parameters {
        /// Number of requests.
        pub requests: u64 = 1_000_000, in 1..=1_000_000_000;
        /// Bytes of the device that are used.
        pub span: ByteSize = ByteSize(4 << 30);
        /// The cached data.
        pub mix: Mix = Mix::SmallAndLarge;
        /// Whether writes have placement handles: 1 for small objects and 2 for large ones, or 1 to 5 for the classes of `mix=llm`.
        pub handles: bool = true;
        /// Share of the span for small objects; only with `mix=small-large`, like the next two parameters.
        pub small_span: f64 = 0.04, in 0.001..=0.9;
        /// Share of the written bytes that belongs to small objects.
        pub small_writes: f64 = 0.5, in 0.001..=0.999;
        /// Bytes of a write to the log of large objects.
        pub large_size: ByteSize = ByteSize(256 << 10);
        /// The object of an area that is dropped for a new one; only with `mix=llm`.
        pub dropped: Dropped = Dropped::Oldest;
        /// Share of requests that read; they read a cached object.
        pub read_share: f64 = 0.5, in 0.0..=1.0;
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 1000.0, in 0.0..=1e9;
    }
}

/// Bytes of a bucket, which is also the smallest object.
const BUCKET: u64 = 4 << 10;

/// The programs of `mix=llm`: number of programs, MiB of an object, GiB of each program's area. Classes are numbered by
/// handle from 1: chat, long context, shared prefixes, prompts that rarely repeat, metadata.
const PROGRAMS: [(u64, u64, u64); 5] = [(2, 4, 90), (1, 32, 180), (2, 16, 90), (3, 2, 90), (1, 1, 45)];
/// Total of all areas, in GiB.
const PROGRAMS_GIB: u64 = 855;

/// Objects of one size.
#[derive(Clone, Debug)]
struct Area {
    first_sector: u64,
    object_sectors: u32,
    objects: u64,
    handle: u8,
    dropped: Dropped,
    /// Its share of the written bytes, relative to other areas.
    share: f64,
    /// Number of objects written to it so far.
    written: u64,
}

impl Area {
    /// Bytes written relative to its share.
    fn progress(&self) -> f64 {
        self.written as f64 * f64::from(self.object_sectors) / self.share
    }

    /// A random cached object, if there is one.
    fn any(&self, state: &mut u64) -> Option<u64> {
        let there = self.written.min(self.objects);
        (there > 0).then(|| random::below(state, there))
    }

    /// The index of the next written object. The area is filled in order before any object is dropped.
    fn next(&mut self, state: &mut u64) -> u64 {
        let turn = self.written;
        self.written += 1;
        match self.dropped {
            Dropped::Random if turn >= self.objects => random::below(state, self.objects),
            Dropped::Oldest | Dropped::Random => turn % self.objects,
        }
    }

    fn request(&self, object: u64, op: Op, arrival_ns: u64) -> Request {
        let sector = self.first_sector + object * u64::from(self.object_sectors);
        let handle = if op == Op::Write { self.handle } else { 0 };
        Request { arrival_ns, sector, sectors: self.object_sectors, op, handle }
    }
}

/// Adjacent areas, from bytes of an area, bytes of an object, handle, choice of the dropped object and share of the
/// writes.
fn areas(parts: impl IntoIterator<Item = (u64, u64, u8, Dropped, f64)>) -> Result<Vec<Area>, String> {
    let mut first_sector = 0;
    let area = |(bytes, object_bytes, handle, dropped, share): (u64, u64, u8, Dropped, f64)| {
        let objects = bytes / object_bytes;
        if objects == 0 {
            return Err(format!(
                "an area of {} does not hold an object of {}; enlarge the span",
                ByteSize(bytes),
                ByteSize(object_bytes)
            ));
        }
        let object_sectors = request_sectors(ByteSize(object_bytes), ByteSize(bytes))?;
        let area = Area { first_sector, object_sectors, objects, handle, dropped, share, written: 0 };
        first_sector += objects * u64::from(object_sectors);
        Ok(area)
    };
    parts.into_iter().map(area).collect()
}

fn small_and_large(parameters: &Parameters) -> Result<Vec<Area>, String> {
    let Parameters { span, small_span, small_writes, large_size, .. } = *parameters;
    let small = (span.0 as f64 * small_span) as u64 / BUCKET * BUCKET;
    if !large_size.0.is_multiple_of(BUCKET) || large_size.0 == 0 {
        return Err(format!("a write of {large_size} to the log is not a multiple of 4KiB"));
    }
    areas([
        (small, BUCKET, 1, Dropped::Random, small_writes),
        (span.0 - small, large_size.0, 2, Dropped::Oldest, 1.0 - small_writes),
    ])
}

fn programs(span: ByteSize, dropped: Dropped) -> Result<Vec<Area>, String> {
    // 128 bits, so that a span of 2^64 bytes times 180 does not overflow.
    let part = |bytes: u64| (u128::from(bytes) * u128::from(span.0) / (u128::from(PROGRAMS_GIB) << 30)) as u64;
    let class = |(handle, (count, object_mib, area_gib)): (u8, (u64, u64, u64))| {
        let object = (part(object_mib << 20) / BUCKET * BUCKET).max(BUCKET);
        (0..count).map(move |_| (part(area_gib << 30), object, handle, dropped, 1.0))
    };
    areas((1..).zip(PROGRAMS).flat_map(class))
}

/// The requests.
///
/// # Errors
/// The span is too small for its areas.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    let Parameters { requests, span, mix, handles, dropped, read_share, interval_us, .. } = *parameters;
    let mut areas = match mix {
        Mix::SmallAndLarge => small_and_large(parameters)?,
        Mix::Llm => programs(span, dropped)?,
    };
    if !handles {
        areas.iter_mut().for_each(|area| area.handle = 0);
    }
    let mut state = seed;
    let mut arrivals = Arrivals::new(interval_us);
    let next = move |_| {
        let arrival_ns = arrivals.next(&mut state);
        // The area with the least progress; among equal ones the first.
        let behind = (1..areas.len())
            .fold(0, |behind, area| if areas[area].progress() < areas[behind].progress() { area } else { behind });
        let area = &mut areas[behind];
        let read = if random::unit(&mut state) < read_share { area.any(&mut state) } else { None };
        match read {
            Some(object) => area.request(object, Op::Read, arrival_ns),
            None => {
                let object = area.next(&mut state);
                area.request(object, Op::Write, arrival_ns)
            }
        }
    };
    Ok(Box::new((0..requests).map(next)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SECTOR_BYTES;

    fn writes(parameters: &Parameters) -> Vec<Request> {
        generate(parameters, 1).unwrap().filter(|request| request.op == Op::Write).collect()
    }

    fn bytes_of(requests: &[Request], handle: u8) -> u64 {
        requests.iter().filter(|request| request.handle == handle).map(Request::bytes).sum()
    }

    #[test]
    fn buckets_are_written_at_random_and_the_log_goes_round() {
        let parameters = Parameters { requests: 200_000, span: ByteSize(1 << 30), ..Parameters::default() };
        let writes = writes(&parameters);
        let share = bytes_of(&writes, 1) as f64 / (bytes_of(&writes, 1) + bytes_of(&writes, 2)) as f64;
        assert!((share - 0.5).abs() < 0.001, "{share}");
        let boundary = ((1u64 << 30) as f64 * 0.04) as u64 / BUCKET * BUCKET / SECTOR_BYTES;
        let (small, large): (Vec<&Request>, Vec<&Request>) = writes.iter().partition(|request| request.handle == 1);
        assert!(small.iter().all(|request| request.end() <= boundary && request.sectors == 8));
        assert!(large.iter().all(|request| request.sector >= boundary && request.sectors == 512));
        let in_turn = small.windows(2).skip(20_000).filter(|pair| pair[1].sector == pair[0].end()).count();
        assert!(in_turn < 100, "{in_turn}");
        assert!(large.windows(2).all(|pair| pair[1].sector == pair[0].end() || pair[1].sector == boundary));
    }

    #[test]
    fn nine_programs_write_equally_fast() {
        let span = ByteSize((PROGRAMS_GIB << 30) / 256);
        let parameters = Parameters { requests: 400_000, span, mix: Mix::Llm, ..Parameters::default() };
        let writes = writes(&parameters);
        let all: u64 = writes.iter().map(Request::bytes).sum();
        for (handle, programs, object) in [(1, 2, 16), (2, 1, 128), (3, 2, 64), (4, 3, 8), (5, 1, 4)] {
            let share = bytes_of(&writes, handle) as f64 / all as f64;
            assert!((share - f64::from(programs) / 9.0).abs() < 0.001, "handle {handle}: {share}");
            assert!(writes.iter().all(|request| request.handle != handle || request.sectors == object * 2));
        }
        let end = writes.iter().map(Request::end).max().unwrap();
        assert_eq!(end * SECTOR_BYTES, span.0);
    }

    #[test]
    fn objects_are_read_once_they_are_there_and_handles_can_be_left_out() {
        let small = Parameters { requests: 2_000, span: ByteSize(96 << 20), ..Parameters::default() };
        for mix in [Mix::SmallAndLarge, Mix::Llm] {
            let mut written = std::collections::BTreeSet::new();
            for request in generate(&Parameters { mix, ..small.clone() }, 3).unwrap() {
                match request.op {
                    Op::Write => _ = written.insert(request.sector),
                    _ => assert!(written.contains(&request.sector) && request.handle == 0, "{request:?}"),
                }
            }
            let without = Parameters { mix, handles: false, ..small.clone() };
            assert!(generate(&without, 3).unwrap().all(|request| request.handle == 0));
        }
    }

    #[test]
    fn a_span_that_holds_no_object_is_refused() {
        let small = Parameters { span: ByteSize(256 << 10), ..Parameters::default() };
        assert!(generate(&small, 1).map(drop).unwrap_err().contains("enlarge the span"));
        let odd = Parameters { large_size: ByteSize(1000), ..Parameters::default() };
        assert!(generate(&odd, 1).map(drop).unwrap_err().contains("multiple of 4KiB"));
    }
}
