//! `csal` on a QLC region with large indirection units, compared with writing to that region directly.

use crate::support::{SimDevice, Zipf};
use bimetal_core::chip;
use bimetal_core::ledger::Ledger;
use bimetal_core::media::{Cause, Faults, FlashOp, SimRegion, Simulation};
use bimetal_core::scheme::Metrics;
use bimetal_core::units::Geometry;

/// 256 MiB in units of 4 KiB.
const UNITS: u64 = 65_536;
const UNIT_BYTES: u64 = 4096;

/// A region of a chip with blocks of `block_mib` MiB, mapped by units of `unit_kib` KiB.
fn region(name: &str, unit_kib: u32, mib: u32, block_mib: u32) -> SimRegion {
    let mut chip = chip::find(name).unwrap();
    chip.pages_per_block = (block_mib << 20) / chip.page_bytes / chip.planes;
    chip.slc_mode = None;
    let chip = chip.in_units(unit_kib << 10).unwrap();
    let geometry = Geometry::new(chip.page_bytes, chip.pages_per_block, mib / block_mib, 1).unwrap();
    SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
}

/// Zipf writes of 4 KiB, three times the data, after the same number that is not measured.
fn replay(name: &str, regions: &[SimRegion]) -> (Ledger, Metrics, u64) {
    let mut device = SimDevice::filled(name, &[], regions, UNITS * 8);
    let mut state = 7;
    let zipf = Zipf::new(UNITS, 0.99, &mut state);
    let mut before = Metrics::default();
    for round in 0..6 {
        if round == 3 {
            device.media.reset_counts();
            device.scheme.metrics(&mut before);
        }
        (0..UNITS).for_each(|_| device.write(zipf.draw(&mut state)));
    }
    device.scheme.check().unwrap();
    let mut after = Metrics::default();
    device.scheme.metrics(&mut after);
    let mut grown = Metrics::default();
    after.iter().for_each(|(name, value)| grown.push(name, value - before.get(name).unwrap_or(0.0)));
    (device.media.ledger().clone(), grown, 3 * UNITS * UNIT_BYTES)
}

/// Bytes that a region programmed because of `cause`, for each byte of the host.
fn amplification(ledger: &Ledger, regions: &[SimRegion], region: usize, cause: Cause, host: u64) -> f64 {
    let pages = ledger.rows[region].counts.get(FlashOp::Program, cause);
    (pages * u64::from(regions[region].geometry.page_bytes)) as f64 / host as f64
}

#[test]
fn small_writes_cost_a_read_and_a_write_of_a_unit_unless_a_cache_shapes_them() {
    for (unit_kib, direct_least, least_ratio) in [(64, 16.0, 10.0), (16, 4.0, 3.0)] {
        let slow = || region("solidigm-192-qlc", unit_kib, 300, 4);
        let direct = [slow()];
        let (ledger, _, host) = replay("pagemap", &direct);
        let causes = [Cause::Host, Cause::Gc].map(|cause| amplification(&ledger, &direct, 0, cause, host));
        let direct = causes.iter().sum::<f64>();
        assert!((causes[0] - direct_least).abs() < 1e-9, "each write of 4 KiB programs a unit");
        println!("units of {unit_kib} KiB, direct: host {:.2}, gc {:.2}, together {direct:.2}", causes[0], causes[1]);

        let cached = [region("bics6-pslc", 4, 16, 1), slow()];
        let (ledger, metrics, host) = replay("csal", &cached);
        let of = |region, cause| amplification(&ledger, &cached, region, cause, host);
        let [fast, down, gc] = [of(0, Cause::Host), of(1, Cause::MigrateDown), of(1, Cause::Gc)];
        println!("csal: cache {fast:.2}, compaction {down:.2}, gc {gc:.2}, slow together {:.2}", down + gc);
        assert!(direct / (down + gc) > least_ratio, "{direct} against {}", down + gc);

        // Every program has one of these causes. The programs hold the moved units, and the empty slots.
        let counts = &ledger.rows[1].counts;
        let [moved, collected] = [Cause::MigrateDown, Cause::Gc].map(|cause| counts.get(FlashOp::Program, cause));
        assert_eq!(counts.total(FlashOp::Program), moved + collected);
        let units = |name| metrics.get(name).unwrap() as u64;
        let slots = (moved + collected) * u64::from(unit_kib / 4);
        assert_eq!(slots, units("compacted_units") + units("gc_copied_units") + units("padded_units"));
        assert_eq!(ledger.rows[0].counts.total(FlashOp::Program), units("written_units"));
        assert_eq!(ledger.rows[0].counts.get(FlashOp::Read, Cause::MigrateDown), units("compacted_units"));
    }
}
