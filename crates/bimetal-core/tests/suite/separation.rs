//! Schemes that separate data, against an independent simulator: fallfish/sepbit, commit 1e4b664 (Java, FAST 2022), run
//! with similar requests. Write amplification from the sixth to the twelfth multiple of the data, after a sequential
//! fill, with a share of garbage of 15 % and 8.26 %, in segments of 128 pages of 4 KiB.

use crate::support::{SimDevice, Zipf, region};
use bimetal_core::media::Simulation;
use bimetal_core::part::random;

const PAGES: u64 = 65_536;
const PAGES_PER_BLOCK: u32 = 128;

/// Write amplification of a scheme on `blocks` blocks. Writes are uniform, or Zipf with exponent 0.99.
fn measure(scheme: &str, settings: &[(&str, &str)], is_zipf: bool, blocks: u32) -> f64 {
    let regions = [region("chang-mlc", PAGES_PER_BLOCK, blocks, 1)];
    let mut device = SimDevice::filled(scheme, settings, &regions, PAGES * 8);
    let mut state = 7;
    let zipf = Zipf::new(PAGES, 0.99, &mut state);
    for round in 0..12 {
        if round == 6 {
            device.media.reset_counts();
        }
        for _ in 0..PAGES {
            device.write(if is_zipf { zipf.draw(&mut state) } else { random::below(&mut state, PAGES) });
        }
    }
    device.write_amplification()
}

/// Number of blocks for a store with this share of garbage. The share does not count open blocks, of which each stream
/// has one, half full on average; and one block is erased.
fn blocks(garbage: f64, streams: u32) -> u32 {
    (PAGES as f64 / (1.0 - garbage) / f64::from(PAGES_PER_BLOCK)).round() as u32 + 1 + streams / 2
}

struct Row {
    scheme: &'static str,
    victim: &'static str,
    streams: u32,
    /// Uniform and Zipf at 15 %, Zipf at 8.26 %, in that program; `None` if it was not run.
    theirs: [Option<f64>; 3],
}

const ROWS: [Row; 5] = [
    Row { scheme: "pagemap", victim: "greedy", streams: 2, theirs: [Some(3.44), Some(3.79), Some(6.10)] },
    Row { scheme: "pagemap", victim: "cost-benefit", streams: 2, theirs: [Some(3.45), Some(2.68), Some(4.21)] },
    Row { scheme: "sepbit", victim: "greedy", streams: 6, theirs: [Some(3.44), Some(2.91), None] },
    Row { scheme: "sepbit", victim: "cost-benefit", streams: 6, theirs: [Some(3.45), Some(2.37), Some(3.61)] },
    Row { scheme: "dac", victim: "cost-benefit", streams: 6, theirs: [Some(3.44), Some(2.16), Some(3.43)] },
];

#[test]
fn write_amplification_is_that_of_an_independent_simulator() {
    for Row { scheme, victim, streams, theirs } in ROWS {
        let cases = [(false, 0.15), (true, 0.15), (true, 0.0826)];
        for ((zipf, garbage), theirs) in cases.into_iter().zip(theirs) {
            let Some(theirs) = theirs else { continue };
            let ours = measure(scheme, &[("victim", victim)], zipf, blocks(garbage, streams));
            let off = ours / theirs - 1.0;
            let requests = if zipf { "Zipf 0.99" } else { "uniform" };
            println!("{scheme} {victim}, {requests}, {garbage}: {ours:.3}, theirs {theirs:.2} ({:+.1} %)", off * 100.0);
            // Its greedy page map collects once per request, not once per page.
            let bound = if (scheme, victim) == ("pagemap", "greedy") { 0.03 } else { 0.02 };
            assert!(off.abs() < bound, "{scheme} {victim}, {requests}: {ours} against {theirs}");
        }
    }
}
