//! The scheme in the commands: listed, compared, and kept in a store.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

fn succeeds(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_own-scheme")).args(arguments).output().unwrap();
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn every_command_knows_the_scheme() {
    assert!(succeeds(&["list", "schemes"]).contains("by-size"));
    let table = succeeds(&["compare", "--schemes", "pagemap,by-size", "--limit", "2000"]);
    assert!(table.contains("pagemap") && table.contains("by-size"), "{table}");
}

#[test]
fn it_is_kept_in_a_store() {
    let store = std::env::temp_dir().join(format!("own-scheme-{}.store", std::process::id()));
    let path = store.to_str().unwrap();
    succeeds(&["create", path, "--scheme", "by-size", "--capacity", "16MiB"]);
    assert!(succeeds(&["stat", path]).contains("by-size"));
    succeeds(&["check", path]);
    std::fs::remove_dir_all(&store).unwrap();
}
