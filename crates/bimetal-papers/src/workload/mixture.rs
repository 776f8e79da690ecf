//! `mixture`: the calibrated stand-in for the three traces of ComboFTL (2010): small, warm and large data, in fitted
//! shares.
//!
//! The text on figure 9 mentions small data, which return soon, and large data, which return late. It is silent on data
//! in between, on which N-chances and hot unit detection depend. Here these are a separate class, *warm* data: their
//! popularity decreases gradually by Zipf's law, and data of similar popularity are adjacent. `examples/calibrate.rs`
//! chooses the shares, the sizes, the exponent and the extent. It fits them to figures that the paper prints of its
//! traces and of its baseline schemes, never to ComboFTL's own results. The defaults are the result for PhoneTrace.

use bimetal_core::part::real::whole;
use bimetal_core::scheme::ParameterError;
use bimetal_core::units::ByteSize;
use bimetal_core::workload::{Requests, Target, WorkloadSpec};

use super::rewrites::{self, Class, Order, Profile, Rewrites};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "mixture",
    summary: "small data that return soon, warm ones with Zipf popularity, large ones in turn; fitted to ComboFTL's traces",
    source: "ComboFTL, JSA 2010, section 6, table 3, figure 9: calibrated stand-in for its traces",
    parameters: Parameters::specs,
    targets,
    in_small: &[],
};

bimetal_core::choices! {
    /// A trace of the paper.
    pub enum Name {
        /// PhoneTrace.
        Phone = "phone",
        /// PCTrace.
        Pc = "pc",
        /// IOzoneTrace.
        Iozone = "iozone",
    }
}

bimetal_core::parameters! {
    SPEC.name;
    /// Parameters of `mixture`.
    pub struct Parameters {
        /// The paper's trace that determines the written amount and the targets.
        pub trace: Name = Name::Phone;
        /// Largest number of requests; by default a trace ends with the written amount of table 3.
        pub requests: u64 = 100_000_000, in 1..=1_000_000_000;
        /// Bytes of the address space; 0 means those of table 3.
        pub span: ByteSize = ByteSize(0);
        /// Divides the address space and the bytes between two writes of small data; request sizes and number stay.
        pub scale: u32 = 1, in 1..=512;
        /// Share of the bytes in requests of 4 KiB.
        pub small_share: f64 = 0.23, in 0.0..=0.9;
        /// Mean bytes that the host writes between two writes of the same small data.
        pub small_mtbw: ByteSize = ByteSize(1 << 20);
        /// Share of the bytes in requests for warm data.
        pub warm_share: f64 = 0.75, in 0.01..=0.98;
        /// KiB of a request for warm data: a power of two.
        pub warm_kib: u64 = 16, in 4..=1024;
        /// Exponent of the popularity of warm data.
        pub theta: f64 = 1.0, in 0.0..=4.0;
        /// KiB of a request for large data: a power of two.
        pub large_kib: u64 = 128, in 4..=1024;
        /// KiB of contiguous warm and large data: a power of two.
        pub extent_kib: u64 = 1024, in 1024..=65_536;
        /// Mean time between arrivals in microseconds, the same as in `phone`.
        pub interval_us: f64 = 20_000.0, in 0.0..=1e9;
    }
}

impl Name {
    /// Table 3: MiB of the address space, and MiB written.
    fn table_3(self) -> (u64, u64) {
        match self {
            Self::Phone => (2036, 10_475),
            Self::Pc => (2005, 7837),
            Self::Iozone => (1416, 18_640),
        }
    }
}

impl Parameters {
    /// The classes, largest extents first.
    fn classes(&self) -> Vec<Class> {
        let extent = self.extent_kib << 10;
        let (warm, large) = (self.warm_kib << 10, self.large_kib << 10);
        let mtbw = self.small_mtbw.0 / u64::from(self.scale);
        let large_share = (1.0 - self.small_share - self.warm_share).max(0.0);
        let classes = [
            (warm, self.warm_share, None, extent, Order::PopularTogether(self.theta)),
            (large, large_share, None, extent, Order::InTurn),
            (4096, self.small_share, Some(mtbw), 8192, Order::AtRandom),
        ];
        let requests: f64 = classes.iter().map(|&(size, share, ..)| share / size as f64).sum();
        let class = |(size, share, mtbw, extent, order): (u64, f64, Option<u64>, u64, Order)| {
            (share > 0.0).then_some(Class { size, share: share / size as f64 / requests, mtbw, extent, order })
        };
        classes.into_iter().filter_map(class).collect()
    }

    /// Bytes of the address space.
    fn span(&self) -> u64 {
        let whole = if self.span.0 == 0 { self.trace.table_3().0 << 20 } else { self.span.0 };
        whole / u64::from(self.scale)
    }

    /// The number of requests that write the amount of table 3, or the requested number if that is smaller.
    fn requests(&self, classes: &[Class]) -> u64 {
        let mean: f64 = classes.iter().map(|class| class.share * class.size as f64).sum();
        whole(((self.trace.table_3().1 << 20) as f64 / mean).round()).min(self.requests)
    }
}

/// Targets from table 3, and from figure 9 for the traces that it covers.
fn targets(settings: &[(String, String)]) -> Result<Vec<Target>, ParameterError> {
    let here = Parameters::parse(settings)?;
    let (space, written) = here.trace.table_3();
    let all = Parameters { requests: u64::MAX, ..here };
    let part = here.requests(&here.classes()) as f64 / all.requests(&here.classes()) as f64;
    let mut targets = rewrites::table_3(space as f64, written as f64, here.scale, part);
    if here.trace != Name::Iozone {
        targets.extend(rewrites::figure_9(here.scale));
    }
    Ok(targets)
}

/// The requests.
///
/// # Errors
/// Sizes that are not powers of two, or shares that add up to more than 1.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    let Parameters { small_share, warm_share, warm_kib, large_kib, extent_kib, .. } = *parameters;
    if let Some(kib) = [warm_kib, large_kib, extent_kib].into_iter().find(|kib| !kib.is_power_of_two()) {
        return Err(format!("{kib} KiB: sizes are powers of two; set {}", kib.next_power_of_two()));
    }
    if small_share + warm_share > 1.0 {
        return Err(format!(
            "`small_share` and `warm_share` are {} together; they are shares of all bytes, so lower one of them",
            small_share + warm_share
        ));
    }
    let classes = parameters.classes();
    let profile = Profile {
        requests: parameters.requests(&classes),
        span: parameters.span(),
        read_share: 0.0,
        interval_us: parameters.interval_us,
        classes: &classes,
    };
    Ok(Box::new(Rewrites::new(profile, seed)?))
}
