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
        /// The workloads in the order of their turns, separated by commas; one may appear several times.
        pub of: Names = Names(vec!["zipf", "sequential", "uniform"]);
        /// Requests of a turn.
        pub phase_requests: u64 = 50_000, in 1..=1_000_000_000;
        /// Bytes of the address space of every workload.
        pub span: ByteSize = ByteSize(4 << 30);
        /// Bytes of the address space that are used, for every workload that has this parameter.
        pub used: ByteSize = ByteSize(1 << 30);
    }
}

/// Names of workloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(Vec<&'static str>);

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

fn others() -> impl Iterator<Item = &'static WorkloadSpec> {
    WORKLOADS.iter().copied().filter(|spec| spec.name != SPEC.name)
}

impl Value for Names {
    fn parse(text: &str) -> Option<Self> {
        let known = |name: &str| others().find(|spec| spec.name == name.trim()).map(|spec| spec.name);
        text.split(',').map(known).collect::<Option<_>>().map(Self)
    }

    fn accepts() -> String {
        format!("one or more of {}, separated by commas", others().map(|spec| spec.name).collect::<Vec<_>>().join(", "))
    }
}

/// A workload and the arrival time of its last request.
struct Phase {
    requests: Requests,
    last_ns: u64,
}

/// The generator.
struct Phases {
    left: u64,
    phases: Vec<Phase>,
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
    let mut phase = |name: &&'static str| {
        let given = [
            ("requests", parameters.requests.to_string()),
            ("span", parameters.span.to_string()),
            ("used", parameters.used.to_string()),
        ];
        let spec = others().find(|spec| spec.name == *name).ok_or_else(|| format!("there is no workload `{name}`"))?;
        let known = (spec.parameters)();
        let known = given.into_iter().filter(|(key, _)| known.iter().any(|parameter| parameter.name == *key));
        let settings: Vec<_> = known.map(|(key, value)| (key.to_owned(), value)).collect();
        let requests = build(name, &settings, random::split_mix(&mut state)).map_err(|error| error.to_string())?;
        Ok(Phase { requests, last_ns: 0 })
    };
    let phases = parameters.of.0.iter().map(&mut phase).collect::<Result<Vec<_>, String>>()?;
    let phase_requests = parameters.phase_requests;
    Ok(Box::new(Phases { left: parameters.requests, phases, turn: (0, phase_requests), phase_requests, now_ns: 0 }))
}

impl Iterator for Phases {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(of: &str, requests: u64) -> Parameters {
        let of = Names::parse(of).unwrap();
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
        let phases = [ended, alive].map(|requests| Phase { requests, last_ns: 0 }).into();
        requests.extend(Phases { left: 300, phases, turn: (0, 100), phase_requests: 100, now_ns: 0 });
        assert_eq!(requests.len(), 300);
        let nothing = Phases { left: 300, phases: Vec::new(), turn: (0, 1), phase_requests: 1, now_ns: 0 };
        assert_eq!(nothing.count(), 0);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(Names::parse("zipf,phases"), None);
        assert_eq!(Names::parse(""), None);
        let error = generate(&Parameters { span: ByteSize(4096), ..Parameters::default() }, 1).map(|_| ());
        assert!(error.unwrap_err().contains("`sequential` cannot be generated"));
    }
}
