//! Tells the program which commit it is built from, and whether it has stores.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(live)");
    if env::var_os("CARGO_FEATURE_LIVE").is_some() && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cfg=live");
    }
    // A package from the registry states its commit. The repository that contains its folder may be another one.
    let commit = if Path::new(".cargo_vcs_info.json").exists() { None } else { commit() };
    println!("cargo::rustc-env=BIMETAL_COMMIT={}", commit.unwrap_or_default());
}

/// ` (hash date)` of the commit that is checked out, if this is a repository.
fn commit() -> Option<String> {
    // This file changes with every commit and checkout.
    println!("cargo::rerun-if-changed={}", git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    Some(format!(" ({})", git(&["log", "-1", "--format=%h %cs"])?))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
