//! `bimetal bench ublk` in a Linux guest, whose kernel has the driver. Figures of an emulated machine say nothing about speed; the test is
//! that there are some, and that nothing is left.

use serde_json::Value;

use crate::common::Bench;
use crate::guest::{Guest, Kernel};

/// Prints the rows in one line, and the disks that are left. Until then it prints points for a few minutes, because the host waits only for
/// a limited time for a line.
const SCRIPT: &str = "
for point in $(seq 40); do sleep 10; echo .; done &
rows=$(bimetal bench ublk --dir /tmp --size 4MiB --rounds 1 --seconds 0.5 --json - --quiet)
echo rows $rows
echo left $(/bin/losetup --all) $(ls /sys/class/ublk-char) $(ls /tmp)
read -r _
";

/// Runs a very short benchmark.
pub fn run_in_a_guest() {
    let bench = Bench::new();
    let kernel = Kernel::find("ublk_drv").unwrap();
    let programs = [env!("CARGO_BIN_EXE_bimetal"), "fio", "losetup", "taskset"];
    let mut guest = Guest::start(&bench, &kernel, &programs, SCRIPT, "-m 768 -smp 2 -M pc").unwrap();
    let rows: Vec<Value> = serde_json::from_str(&guest.hear("rows ").unwrap()).unwrap();
    assert_eq!(rows.len(), 11);
    for row in rows {
        assert_eq!(row["other_program"], "loop");
        let (ours, theirs) = (row["bimetal"][0].as_f64().unwrap(), row["other"][0].as_f64().unwrap());
        assert!(ours > 0.0 && (row["ratio"].as_f64().unwrap() / (ours / theirs) - 1.0).abs() < 1e-9, "{row}");
        assert!(row["other_cpu_us"] == Value::Array(Vec::new()) && row["cpu_ratio"].is_null(), "{row}");
    }
    assert_eq!(guest.hear("left").unwrap().trim(), "");
}
