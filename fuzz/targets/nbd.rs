//! Fuzzes the NBD server's protocol.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| bimetal_fuzz::nbd(data));

/// Runs the target on the named files, such as a fuzzer's findings.
#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    for file in std::env::args_os().skip(1) {
        bimetal_fuzz::nbd(&std::fs::read(file)?);
    }
    Ok(())
}
