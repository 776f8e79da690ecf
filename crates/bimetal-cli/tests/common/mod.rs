//! Runs the binary and checks its output.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod machine;
pub mod schema;
pub mod served;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A text in an object of JSON; empty if there is none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Result of a run of the binary.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the binary in a separate folder.
pub struct Bench {
    folder: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        name.to_owned()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bimetal"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("COLUMNS")
            .env("BIMETAL_CONFIG", "")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { status: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Runs a command that must succeed.
    pub fn succeed(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.status, 0, "{arguments:?}: {}", ran.stderr);
        ran
    }

    /// Runs a command that must fail with one line that contains all texts of `expected`.
    pub fn fail(&self, arguments: &[&str], status: i32, expected: &[&str]) {
        let ran = self.run(arguments);
        assert_eq!(ran.status, status, "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{arguments:?}: {}", ran.stderr);
        let line = ran.stderr.trim_end();
        assert!(line.starts_with("error: ") && !line.ends_with('.'), "{arguments:?}: {line}");
        for part in expected {
            assert!(line.contains(part), "{arguments:?}: no `{part}` in: {line}");
        }
    }

    /// Runs a command with `--json -` and parses its output.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json", "-"]).collect();
        serde_json::from_str(&self.succeed(&arguments).stdout).unwrap()
    }

    /// A small trace in SPC syntax: updates of a few hot pages, large writes and reads over 24 MiB.
    pub fn small_trace(&self, requests: u64) -> String {
        let mut text = String::new();
        let mut state = 1u64;
        for number in 0..requests {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = state >> 33;
            let (sector, bytes, op) = match number % 4 {
                0 => (random % 64 * 8, 4096, 'w'),
                1 => (random % 384 * 128, 65_536, 'w'),
                2 => (random % 6000 * 8, 8192, 'r'),
                _ => (random % 6000 * 8 + 3, 2560, 'w'),
            };
            let time = number as f64 / 1000.0;
            text.push_str(&format!("0,{sector},{bytes},{op},{time:.6}\n"));
        }
        self.file("small.spc", text)
    }
}
