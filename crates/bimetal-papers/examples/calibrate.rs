//! Fits the calibrated stand-ins: `cargo run --release -p bimetal-papers --example calibrate -- [PAPER [TRACE]]`.
//!
//! It prints every combination of settings that it tries, and the best one beside what it was fitted to. Seeded and
//! repeatable: the same program prints the same lines.

use std::error::Error;

use bimetal_papers::PAPERS;
use bimetal_papers::calibration::{Calibration, Fit};

fn main() -> Result<(), Box<dyn Error>> {
    bimetal_core::workload::add(bimetal_papers::workload::entries())?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |at: usize, name: &str| wanted.get(at).is_none_or(|wanted| wanted == name);
    for paper in PAPERS.iter().filter(|paper| is_wanted(0, paper.name)) {
        for calibration in paper.calibrations.iter().filter(|calibration| is_wanted(1, calibration.source.name)) {
            println!("{} {}", paper.name, calibration.source.name);
            if let Some(best) = calibration.fit(|fit| println!("  {}", line(fit))) {
                println!("  best: {}", line(&best));
                outcome(calibration, &best);
            }
        }
    }
    Ok(())
}

fn line(fit: &Fit) -> String {
    let settings: Vec<String> = fit.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let values: Vec<String> = fit.values.iter().map(|value| format!("{value:.4}")).collect();
    format!("error {:.6}  {}  [{}]", fit.error, settings.join(" "), values.join(" "))
}

/// Each goal with what came out.
fn outcome(calibration: &Calibration, best: &Fit) {
    for (goal, value) in calibration.goals.iter().zip(&best.values) {
        println!("    {value:>12.4}  of {} to {}  {}", goal.low, goal.high, goal.claim);
    }
}
