//! Memory check before a simulation: it is refused at the start instead of killed half way.

use bimetal_core::device::Resolved;

use crate::StudyError;

/// Checks whether the largest `jobs` simulations, which may run in parallel, fit into the available memory. Each device
/// is simulated `times` times. The check passes if the operating system does not report the available memory.
pub(crate) fn check(runs: &[Resolved], times: usize, jobs: usize) -> Result<(), StudyError> {
    let mut sizes: Vec<u64> = runs.iter().flat_map(|run| std::iter::repeat_n(run.memory_bytes(), times)).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    check_bytes(sizes.iter().take(jobs.max(1)).sum())
}

/// Checks whether `needed` bytes are available.
pub(crate) fn check_bytes(needed: u64) -> Result<(), StudyError> {
    match available_bytes() {
        Some(available) if needed > available => {
            Err(StudyError::Memory { needed_mib: needed >> 20, available_mib: available >> 20 })
        }
        _ => Ok(()),
    }
}

fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
