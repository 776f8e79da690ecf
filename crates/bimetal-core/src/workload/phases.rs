//! `phases`: other workloads that alternate, each for a number of requests, like the changing use of a machine.
//!
//! Each turn of a workload continues where its previous turn stopped, with that workload's own inter-arrival times. All
//! workloads share the start of the address space, like programs on one disk.

use super::{Requests, WORKLOADS, WorkloadSpec, build, target};
use crate::part::random;
use crate::request::Request;
use crate::scheme::Value;
use crate::units::ByteSize;

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "phases",
    summary: "other workloads that take turns: the hot set, the sizes, the share of reads change",
    source: "none: for how fast a scheme adapts",
    parameters: Parameters::specs,
    targets: target::none,
    in_small: &[],
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `phases`.
    pub struct Parameters {
        /// Number of requests.
        pub requests: u64 = 1_000_000, in 1..=1_000_000_000;
        /// The workloads in the order of their turns, separated by commas, each with its own settings after colons:
        /// `zipf:theta=0.5,zipf:theta=1.2:read_share=0.5`. One may appear several times.
        pub of: Phases = Phases::default();
        /// Requests of a turn.
        pub phase_requests: u64 = 50_000, in 1..=1_000_000_000;
        /// Bytes of the address space of every workload.
        pub span: ByteSize = ByteSize(4 << 30);
        /// Bytes of the address space that are used, for every workload that has this parameter.
        pub used: ByteSize = ByteSize(1 << 30);
    }
}

/// A workload and its own settings.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Phase {
    workload: &'static str,
    settings: Vec<(String, String)>,
}

impl Phase {
    const fn new(workload: &'static str) -> Self {
        Self { workload, settings: Vec::new() }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(':').map(str::trim);
        let name = fields.next()?;
        let workload = others().find(|spec| spec.name == name)?.name;
        let setting = |field: &str| field.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        Some(Self { workload, settings: fields.map(setting).collect::<Option<_>>()? })
    }
}

/// Workloads in the order of their turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phases(Vec<Phase>);

impl Default for Phases {
    fn default() -> Self {
        Self(["zipf", "sequential", "uniform"].map(Phase::new).into())
    }
}

impl std::fmt::Display for Phases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, phase) in self.0.iter().enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { "," }, phase.workload)?;
            phase.settings.iter().try_for_each(|(key, value)| write!(f, ":{key}={value}"))?;
        }
        Ok(())
    }
}

fn others() -> impl Iterator<Item = &'static WorkloadSpec> {
    WORKLOADS.iter().copied().filter(|spec| spec.name != SPEC.name)
}

impl Value for Phases {
    fn parse(text: &str) -> Option<Self> {
        text.split(',').map(Phase::parse).collect::<Option<_>>().map(Self)
    }

    fn accepts() -> String {
        let names = others().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
        format!(
            "one or more of {names}, separated by commas, each with settings after colons, such as `zipf:theta=0.5`"
        )
    }
}

/// A workload and the arrival time of its last request.
struct Running {
    requests: Requests,
    last_ns: u64,
}

/// The generator.
struct InTurn {
    left: u64,
    phases: Vec<Running>,
    /// The current phase, and the remaining requests of its turn.
    turn: (usize, u64),
    phase_requests: u64,
    now_ns: u64,
}

/// The requests.
///
/// # Errors
/// A workload that cannot be generated in the address space.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    let mut state = seed;
    let mut start = |phase: &Phase| {
        let given = [
            ("requests", parameters.requests.to_string()),
            ("span", parameters.span.to_string()),
            ("used", parameters.used.to_string()),
        ];
        let name = phase.workload;
        let spec = others().find(|spec| spec.name == name).ok_or_else(|| format!("there is no workload `{name}`"))?;
        let known = (spec.parameters)();
        let shared = given.into_iter().map(|(key, value)| (key.to_owned(), value));
        let shared = shared.filter(|(key, _)| {
            known.iter().any(|parameter| parameter.name == *key) && phase.settings.iter().all(|(own, _)| own != key)
        });
        let settings: Vec<_> = shared.chain(phase.settings.iter().cloned()).collect();
        let requests = build(name, &settings, random::split_mix(&mut state)).map_err(|error| error.to_string())?;
        Ok(Running { requests, last_ns: 0 })
    };
    let phases = parameters.of.0.iter().map(&mut start).collect::<Result<Vec<_>, String>>()?;
    let phase_requests = parameters.phase_requests;
    Ok(Box::new(InTurn { left: parameters.requests, phases, turn: (0, phase_requests), phase_requests, now_ns: 0 }))
}

impl Iterator for InTurn {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if self.turn.1 == 0 {
                self.turn = ((self.turn.0 + 1) % self.phases.len(), self.phase_requests);
            }
            let (at, left) = self.turn;
            let phase = self.phases.get_mut(at)?;
            let Some(request) = phase.requests.next() else {
                // A finite workload, such as a trace, has no more turns after its end.
                self.phases.remove(at);
                self.turn = (at % self.phases.len().max(1), self.phase_requests);
                continue;
            };
            self.turn.1 = left - 1;
            self.now_ns = self.now_ns.saturating_add(request.arrival_ns - phase.last_ns);
            phase.last_ns = request.arrival_ns;
            return Some(Request { arrival_ns: self.now_ns, ..request });
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;

    fn parameters(of: &str, requests: u64) -> Parameters {
        let of = Phases::parse(of).unwrap();
        Parameters { requests, of, phase_requests: 100, ..Parameters::default() }
    }

    #[test]
    fn each_phase_goes_on_where_it_stopped() {
        let requests: Vec<Request> = generate(&parameters("sequential,uniform", 500), 1).unwrap().collect();
        let (sequential, uniform): (Vec<_>, Vec<_>) =
            requests.iter().enumerate().partition(|(at, _)| at / 100 % 2 == 0);
        assert!(sequential.iter().enumerate().all(|(nth, (_, request))| request.sector == nth as u64 * 256));
        assert!(uniform.iter().all(|(_, request)| request.sectors == 8));
        assert!(requests.is_sorted_by_key(|request| request.arrival_ns));
        // If a workload's clock ran on during the turns of others, there would be gaps of a hundred intervals.
        let longest = requests.windows(2).map(|pair| pair[1].arrival_ns - pair[0].arrival_ns).max().unwrap();
        assert!(longest < 20_000_000, "{longest}");
    }

    #[test]
    fn a_workload_that_ends_leaves_its_turns_to_the_others() {
        let mut requests = Vec::new();
        let ended: Requests = Box::new(std::iter::empty());
        let alive = build("uniform", &[], 1).unwrap();
        let phases = [ended, alive].map(|requests| Running { requests, last_ns: 0 }).into();
        requests.extend(InTurn { left: 300, phases, turn: (0, 100), phase_requests: 100, now_ns: 0 });
        assert_eq!(requests.len(), 300);
        let nothing = InTurn { left: 300, phases: Vec::new(), turn: (0, 1), phase_requests: 1, now_ns: 0 };
        assert_eq!(nothing.count(), 0);
    }

    #[test]
    fn each_phase_has_its_own_settings() {
        let of = "uniform:read_share=0,uniform:read_share=1:size=8KiB";
        assert_eq!(Phases::parse(of).unwrap().to_string(), of);
        let requests: Vec<Request> = generate(&parameters(of, 400), 1).unwrap().collect();
        for (at, request) in requests.iter().enumerate() {
            let expected = if at / 100 % 2 == 0 { (Op::Write, 8) } else { (Op::Read, 16) };
            assert_eq!((request.op, request.sectors), expected, "request {at}");
        }
        let spanned: Vec<Request> = generate(&parameters("uniform:span=1MiB", 100), 1).unwrap().collect();
        assert!(spanned.iter().all(|request| request.end() <= 2048), "its own span takes precedence");
    }

    #[test]
    fn mistakes_are_named() {
        for text in ["zipf,phases", "", "zipf:theta", "zipf:"] {
            assert_eq!(Phases::parse(text), None, "{text}");
        }
        let error = generate(&parameters("zipf:tetha=1", 1), 1).map(|_| ()).unwrap_err();
        assert!(error.contains("`zipf`") && error.contains("`tetha`") && error.contains("theta"), "{error}");
        let error = generate(&Parameters { span: ByteSize(4096), ..Parameters::default() }, 1).map(|_| ());
        assert!(error.unwrap_err().contains("`sequential` cannot be generated"));
    }
}
