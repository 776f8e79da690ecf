//! Every command in README and docs runs as printed.
//!
//! A fenced block marked `sh` is a script: its lines run in order, in a separate directory for each page, so that a
//! later line can use files written by an earlier one. A block marked `toml` that begins with `# NAME.toml` is that
//! file. Lines that set up a machine (`git clone`, `cd`) are not run; a `make` line must name a target of the Makefile,
//! since the tests themselves run under `make`. A block marked `text` right after one marked `sh` is its standard
//! output; `BIMETAL_UPDATE_DOCS=1` writes it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::ops::Range;
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

#[test]
fn the_guide_for_contributors_shows_the_program_of_the_example() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    assert!(read("CONTRIBUTING.md").contains(&read("examples/own-scheme/src/main.rs")));
}

/// A block marked `sh`.
#[derive(Debug, Default, PartialEq)]
struct Script {
    /// Its lines, continuation lines joined.
    commands: Vec<String>,
    /// Lines of the page with its output: the block marked `text` after it.
    output: Option<Range<usize>>,
}

fn scripts(page: &str) -> Vec<Script> {
    let mut scripts: Vec<Script> = Vec::new();
    // The block that contains a line, and whether only empty lines were read since the last script.
    let (mut block, mut continued, mut after_script) = (None, false, false);
    for (number, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            block = if block.is_none() { Some(line.trim().trim_start_matches('`')) } else { None };
            match (block, scripts.last_mut()) {
                (Some("sh"), _) => scripts.push(Script::default()),
                (Some("text"), Some(script)) if after_script => script.output = Some(number + 1..number + 1),
                _ => {}
            }
            after_script = block == Some("sh") || (after_script && block.is_none());
            continue;
        }
        let text = line.trim();
        match (block, scripts.last_mut()) {
            (Some("sh"), Some(script)) => {
                if text.is_empty() || text.starts_with('#') {
                    continue;
                }
                let (text, more) = text.strip_suffix('\\').map_or((text, false), |text| (text.trim_end(), true));
                match script.commands.last_mut() {
                    Some(last) if continued => *last = format!("{last} {text}"),
                    _ => script.commands.push(text.into()),
                }
                continued = more;
            }
            (Some("text"), Some(Script { output: Some(output), .. })) if output.end == number => output.end += 1,
            _ => after_script &= text.is_empty(),
        }
    }
    scripts
}

/// The lines of an output, in the form of a page.
fn lines_of(output: &str) -> Vec<String> {
    output.lines().map(|line| line.trim_end().to_owned()).collect()
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

/// Runs a command; returns its standard output.
fn run(command: &str, folder: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_bimetal"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-euc", command])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "`{command}` ended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the commands of a page, and compares their output with the page. Returns the number of commands.
fn run_page(page: &Path, makefile: &str) -> usize {
    let name = page.strip_prefix(root()).unwrap().with_extension("");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let text = fs::read_to_string(page).unwrap();
    for (name, content) in files(&text) {
        fs::write(folder.join(name), content).unwrap();
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let scripts = scripts(&text);
    // From the last one to the first, so that a replacement does not move lines that are replaced later.
    let outputs: Vec<String> = scripts.iter().map(|script| run_script(script, page, &folder, makefile)).collect();
    for (script, output) in scripts.iter().zip(outputs).rev() {
        let Some(shown) = script.output.clone() else { continue };
        let printed = lines_of(&output);
        if std::env::var_os("BIMETAL_UPDATE_DOCS").is_some() {
            lines.splice(shown, printed);
        } else {
            let place = format!("{}:{}", page.display(), shown.start);
            assert_eq!(lines[shown], printed, "{place} is not what the commands before it print");
        }
    }
    if std::env::var_os("BIMETAL_UPDATE_DOCS").is_some() {
        fs::write(page, lines.join("\n") + "\n").unwrap();
    }
    scripts.iter().map(|script| script.commands.len()).sum()
}

fn run_script(script: &Script, page: &Path, folder: &Path, makefile: &str) -> String {
    let mut output = String::new();
    for command in &script.commands {
        match command.split_whitespace().next() {
            Some("bimetal" | "for" | "printf") => output += &run(command, folder),
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
    output
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
fn scripts_are_found_with_their_output() {
    let page = "text\n```sh\n# a comment\nbimetal compare \\\n    trace.spc\nmake test\n```\n\n```text\na\nb\n```\n\
                ```\nnot run\n```\n```sh\nbimetal list\n```\nno output:\n```text\nc\n```\n";
    let first = Script { commands: vec!["bimetal compare trace.spc".into(), "make test".into()], output: Some(9..11) };
    assert_eq!(scripts(page), [first, Script { commands: vec!["bimetal list".into()], output: None }]);
}
