//! `midas` against the authors' simulator: sungkyun123/MiDAS-Simulation, commit a226265 (C++, FAST 2024), run with the
//! same requests. A device of 1 GB on 1 GiB in segments of 512 pages of 4 KiB, filled in order, then 8,000,000 Zipf
//! writes over shuffled pages; write amplification of the whole run, including the filling.

use crate::support::{SimDevice, Zipf, assert_documented, region};

const PAGES: u64 = 244_140;
const WRITES: u32 = 8_000_000;

/// Write amplification of a scheme.
fn measure(scheme: &str, exponent: f64) -> f64 {
    // The simulator keeps four segments free between writes.
    let settings = [("gc_free_blocks", "3"), ("victim", "cost-benefit")];
    let mut device = SimDevice::filled(scheme, &settings, &[region("chang-mlc", 512, 512, 1)], PAGES * 8);
    let mut state = 7;
    let zipf = Zipf::new(PAGES, exponent, &mut state);
    (0..WRITES).for_each(|_| device.write(zipf.draw(&mut state)));
    device.write_amplification()
}

#[test]
fn write_amplification_is_about_that_of_the_authors_simulator() {
    let mut rows = Vec::new();
    for (exponent, theirs, bound) in [(1.1, 3.242, 0.07), (1.0, 4.550, 0.05)] {
        let ours = measure("midas", exponent);
        let off = ours / theirs - 1.0;
        assert!(off.abs() < bound, "Zipf {exponent}: {ours} against {theirs}");
        rows.push(format!(
            "| MiDAS | `midas`, Zipf {exponent:.1} | {theirs:.3} | {ours:.3} | {:+.1} % | {:.0} % |",
            off * 100.0,
            bound * 100.0
        ));
        let two_streams = measure("pagemap", exponent);
        println!("Zipf {exponent}: {two_streams:.3} with two streams");
        assert!(ours < two_streams, "Zipf {exponent}: groups bring nothing");
    }
    assert_documented(&rows);
}
