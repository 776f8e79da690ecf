//! The `bimetal` binary.
fn main() {}
