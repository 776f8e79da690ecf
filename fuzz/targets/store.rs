//! Fuzzes the files of a store.
#![cfg_attr(fuzzing, no_main)]

// libFuzzer's hook ends the process with the first panic. The store catches those of a scheme, which is what it should do;
// one that is not caught ends the process still.
#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: drop(std::panic::take_hook()),
    |data: &[u8]| bimetal_fuzz::store(data)
);

/// Runs the files that are named, as a fuzzer found them.
#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    for file in std::env::args_os().skip(1) {
        bimetal_fuzz::store(&std::fs::read(file)?);
    }
    Ok(())
}
