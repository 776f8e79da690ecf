//! Progress bars on the standard error, if that is a terminal.

use std::io::IsTerminal;
use std::ops::ControlFlow;

use bimetal_core::device::Resolved;
use bimetal_core::part::real::whole;
use bimetal_papers::pool::LabProgress;
use bimetal_study::compare::Progress;
use bimetal_study::drives;
use bimetal_study::sweep::schedule;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::messages::is_quiet;

/// One bar for each scheme.
pub struct Bars {
    bars: Vec<ProgressBar>,
}

impl Bars {
    /// Bars that end at `requests`; none without a terminal or with `--quiet`.
    pub fn new(runs: &[Resolved], requests: u64) -> Self {
        if !is_shown() {
            return Self { bars: Vec::new() };
        }
        let all = MultiProgress::new();
        let name_width = runs.iter().map(|run| run.device.scheme.len()).max().unwrap_or(0);
        let style = style("{msg} {bar:40} {human_pos:>12} of {human_len} requests");
        let bar = |run: &Resolved| {
            let bar = all.add(ProgressBar::new(requests).with_style(style.clone()));
            bar.set_message(format!("{:name_width$}", run.device.scheme));
            bar
        };
        Self { bars: runs.iter().map(bar).collect() }
    }
}

/// Whether progress is shown.
fn is_shown() -> bool {
    std::io::stderr().is_terminal() && !is_quiet()
}

/// A bar that ends at `length`; hidden if progress is not shown.
pub fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = if is_shown() { ProgressBar::new(length) } else { ProgressBar::hidden() };
    bar.with_style(style(template))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for Bars {
    fn served(&self, run: usize, requests: u64) -> ControlFlow<()> {
        if let Some(bar) = self.bars.get(run) {
            bar.set_position(requests);
        }
        ControlFlow::Continue(())
    }

    fn done(&self, run: usize) {
        if let Some(bar) = self.bars.get(run) {
            bar.finish_and_clear();
        }
    }
}

/// A bar for the figures of the papers, with the number of their replays.
pub struct PaperBar {
    bar: ProgressBar,
}

impl PaperBar {
    /// Hidden without a terminal or with `--quiet`.
    pub fn new() -> Self {
        Self { bar: bar(0, "{msg:18} {bar:16} figure {pos} of {len}, {prefix}{elapsed}") }
    }
}

impl LabProgress for PaperBar {
    fn replays(&self, done: usize, of: usize) {
        self.bar.set_prefix(format!("{done} of {of} replays, "));
    }
}

impl bimetal_papers::Progress for PaperBar {
    fn figure(&self, paper: &str, figure: &str, number: usize, of: usize) {
        self.bar.set_message(format!("{paper} {figure}"));
        self.bar.set_length(of as u64);
        self.bar.set_position(number as u64);
    }
}

impl Drop for PaperBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar for the points of a sweep, with the remaining time.
pub struct SweepBar {
    bar: ProgressBar,
}

/// Parts of a point, so that a bar of few long points moves.
const POINT_PARTS: f64 = 1e6;

impl SweepBar {
    /// Hidden without a terminal or with `--quiet`.
    pub fn new(points: usize) -> Self {
        let count = whole(points as f64 * POINT_PARTS);
        let bar = bar(count, "{bar:40} {percent:>3} % of {msg}, {elapsed}, {eta} left");
        bar.set_message(format!("{points} points"));
        Self { bar }
    }
}

impl schedule::Progress for SweepBar {
    fn resumed(&self, points: usize) {
        self.bar.inc(whole(points as f64 * POINT_PARTS));
        // Reused points took no time, so they must not affect the estimate.
        self.bar.reset_eta();
    }

    fn advanced(&self, share: f64) -> ControlFlow<()> {
        self.bar.inc(whole(share * POINT_PARTS));
        ControlFlow::Continue(())
    }
}

impl Drop for SweepBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar for the bytes of the trace files.
pub struct ReadBar {
    bar: ProgressBar,
}

impl ReadBar {
    /// Hidden without a terminal or with `--quiet`.
    pub fn new() -> Self {
        let bar = bar(0, "reading {bar:40} {binary_bytes:>12} of {binary_total_bytes}");
        Self { bar }
    }

    /// Bytes done, of all bytes.
    pub fn at(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}

impl Drop for ReadBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar for steps of about the same length.
pub struct StepBar {
    bar: ProgressBar,
}

impl StepBar {
    /// Hidden without a terminal or with `--quiet`.
    pub fn new(steps: u64) -> Self {
        let bar = bar(steps, "{msg:54} {bar:24} {pos:>3} of {len}, {elapsed}");
        Self { bar }
    }

    /// The current step.
    pub fn at(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// `done` of `all` are done.
    pub fn is_at(&self, what: &str, done: u64, of: u64) {
        self.at(what);
        self.bar.set_length(of);
        self.bar.set_position(done);
    }

    /// One step is done.
    #[cfg(live)]
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// All steps are done: the bar disappears.
    #[cfg(live)]
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl drives::Progress for StepBar {
    fn drives(&self, done: usize, of: usize) {
        self.is_at("drives", done as u64, of as u64);
    }
}

impl Drop for StepBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
