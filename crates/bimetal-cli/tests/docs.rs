//! Every command in README and docs runs as printed.
//!
//! A fenced block marked `sh` is a script: its lines run in order, in a directory of the page's own, so that a later line
//! can use what an earlier one wrote. A block marked `toml` that begins with `# NAME.toml` is that file. Lines that set up
//! a machine (`git clone`, `cd`) are not run; a `make` line must name a target of the Makefile, since the tests themselves
//! run under `make`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md"].iter().map(|name| root().join(name)).collect();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The lines of all blocks marked `sh`, continuation lines joined.
fn commands(page: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let (mut inside, mut continued) = (false, false);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside && line.trim() == "```sh";
            continue;
        }
        let text = line.trim();
        if !inside || text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (text, more) = text.strip_suffix('\\').map_or((text, false), |text| (text.trim_end(), true));
        match commands.last_mut() {
            Some(last) if continued => *last = format!("{last} {text}"),
            _ => commands.push(text.into()),
        }
        continued = more;
    }
    commands
}

/// Blocks marked `toml` that name a file.
fn files(page: &str) -> Vec<(&str, &str)> {
    page.split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"))
        .filter_map(|(text, _)| {
            let name = text.lines().next()?.strip_prefix("# ")?;
            name.ends_with(".toml").then_some((name, text))
        })
        .collect()
}

fn run(command: &str, folder: &Path) {
    let binary = Path::new(env!("CARGO_BIN_EXE_bimetal"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh").args(["-euc", command]).current_dir(folder).env("PATH", path).output().unwrap();
    assert!(
        output.status.success(),
        "`{command}` ended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs the commands of a page; returns how many there are.
fn run_page(page: &Path, makefile: &str) -> usize {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs").join(page.file_stem().unwrap());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let text = fs::read_to_string(page).unwrap();
    for (name, content) in files(&text) {
        fs::write(folder.join(name), content).unwrap();
    }
    let commands = commands(&text);
    for command in &commands {
        match command.split_whitespace().next() {
            Some("bimetal" | "for") => run(command, &folder),
            Some("make") => {
                let command = command.split(" #").next().unwrap_or_default();
                for target in command.split_whitespace().skip(1) {
                    assert!(makefile.contains(&format!("\n{target}:")), "{}: no target `{target}`", page.display());
                }
            }
            Some("git" | "cd" | "cargo") => {}
            _ => panic!("{}: `{command}` is not a command that this test knows how to run", page.display()),
        }
    }
    commands.len()
}

#[test]
fn every_command_in_the_docs_runs() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let pages = Mutex::new(pages().into_iter());
    let next = || pages.lock().unwrap().next();
    let worker = || std::iter::from_fn(next).map(|page| run_page(&page, &makefile)).sum::<usize>();
    // Pages are independent of each other, and many commands use one processor.
    let ran: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).sum()
    });
    assert!(ran > 5, "the docs show {ran} commands only: were their blocks marked `sh`?");
}

#[test]
fn continuation_lines_are_joined() {
    let page = "text\n```sh\n# a comment\nbimetal compare \\\n    trace.spc\nmake test\n```\n```\nnot run\n```\n";
    assert_eq!(commands(page), ["bimetal compare trace.spc", "make test"]);
}
