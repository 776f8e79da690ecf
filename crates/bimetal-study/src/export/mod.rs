//! Results in the formats of other programs, so that scripts and plots made for these can be used.

mod fio;
mod iob;

use std::io;

use crate::compare::Comparison;

/// A format of results, defined by another program.
#[derive(Debug)]
pub struct Export {
    /// Name on the command line.
    pub name: &'static str,
    /// The program and the output, in a line.
    pub summary: &'static str,
    /// Whether it has figures over time, so that the replay must be divided into intervals.
    pub is_over_time: bool,
    write: fn(&Comparison) -> io::Result<Vec<u8>>,
}

/// All formats.
pub static EXPORTS: [&Export; 2] = [&fio::EXPORT, &iob::EXPORT];

impl Export {
    /// The format with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        EXPORTS.into_iter().find(|export| export.name == name)
    }

    /// A file in this format.
    ///
    /// # Errors
    /// None that a caller can cause: only the libraries for JSON and CSV may fail.
    pub fn write(&self, comparison: &Comparison) -> io::Result<Vec<u8>> {
        (self.write)(comparison)
    }
}

#[cfg(test)]
mod testing {
    use bimetal_core::device::{BARE_DIES, preset};
    use bimetal_core::replay::{Arrivals, Plan};

    use crate::compare::{Comparison, Quiet, run};
    use crate::prepare::{Schemes, Workload, prepare};
    use crate::replays::Replays;

    /// Two schemes on reads and writes, with figures over time.
    pub fn comparison(arrivals: Arrivals) -> Comparison {
        let settings = [("requests", "4000"), ("read_share", "0.25")].map(|(key, value)| (key.into(), value.into()));
        let trace = crate::generate::trace("zipf", &settings, 1).unwrap();
        let schemes = Schemes::named(&["pagemap".to_owned(), "hyssd".to_owned()]).unwrap();
        let prepared = prepare(Workload::of(trace, None), preset(BARE_DIES).ok(), &schemes, &[]).unwrap();
        let main = Plan { arrivals, intervals: 5, passes: 3, measured_passes: 2, ..Plan::default() };
        run(&prepared, &Replays { main, service: None }, 1, 1, &Quiet).unwrap()
    }
}
