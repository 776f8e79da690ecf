//! Pages of the docs that follow from the code: the reference of the command line, the catalogue of parts, tables of
//! formats and of parameters. They are committed, compared with the code here, and rewritten with
//! `BIMETAL_UPDATE_DOCS=1`.
//!
//! The library `clap-markdown` is not used because it puts all options of a command into one list, without the headings
//! of `--help`. This module is in the binary's crate because the commands are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use bimetal_core::scheme::{Adaptation, SCHEMES};
use bimetal_study::catalogue::{self, SchemeItem};
use clap::{Arg, Command, CommandFactory};

use crate::args::{Cli, Listed};
use crate::list;
use crate::table::Align;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Compares a page with its generated content, or writes it.
pub(crate) fn hold(page: &Path, wanted: &str) {
    if std::env::var_os("BIMETAL_UPDATE_DOCS").is_some() {
        fs::write(page, wanted).unwrap();
    }
    let found = fs::read_to_string(page).unwrap_or_default();
    assert!(found == wanted, "{} is not up to date; BIMETAL_UPDATE_DOCS=1 writes it", page.display());
}

/// Literals and help, escaped for a cell of a table on GitHub and in the site.
fn cell(text: &str) -> String {
    text.replace('\n', "<br>").replace('|', "&#124;")
}

fn code(text: &str) -> String {
    cell(&format!("<code>{}</code>", text.replace('&', "&amp;").replace('<', "&lt;")))
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn options(heading: &str, args: &[&Arg]) -> String {
    let mut text = format!("\n**{heading}**\n\n| | |\n|---|---|\n");
    for arg in args {
        let mut names = match (arg.get_short(), arg.get_long()) {
            (Some(short), Some(long)) => format!("-{short}, --{long}"),
            (None, Some(long)) => format!("--{long}"),
            (Some(short), None) => format!("-{short}"),
            (None, None) => String::new(),
        };
        if arg.get_action().takes_values() {
            let values = arg.get_value_names().unwrap_or_default();
            let values = values.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
            names = if arg.is_require_equals_set() {
                format!("{names}[={values}]")
            } else {
                format!("{names} {values}").trim().to_owned()
            };
        }
        let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
        let mut help = cell(help.trim_end_matches('.'));
        if arg.get_action().takes_values() {
            let of = |values: Vec<String>| values.iter().map(|value| code(value)).collect::<Vec<_>>().join(", ");
            let possible = of(arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect());
            let default = of(arg.get_default_values().iter().map(|value| value.to_string_lossy().into()).collect());
            for (label, values) in [("one of", possible), ("default:", default)] {
                if !values.is_empty() && values != code("") {
                    help += &format!("; {label} {values}");
                }
            }
        }
        text += &row(&[code(&names), help]);
    }
    text
}

fn command(command: &Command, level: usize) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<&str> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
    let (heading, usage) = ("#".repeat(level), usage.join("\n"));
    let mut text = format!("\n{heading} `{name}`\n\n{about}.\n\n```text\n{usage}\n```\n");
    let mut headings: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for arg in command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
    {
        let usual = if arg.is_positional() { "Arguments" } else { "Options" };
        let heading = arg.get_help_heading().unwrap_or(usual);
        match headings.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, args)) => args.push(arg),
            None => headings.push((heading, vec![arg])),
        }
    }
    for (heading, args) in headings {
        text += &options(heading, &args);
    }
    command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help")
        .fold(text, |text, sub| text + &self::command(sub, level + 1))
}

#[test]
fn the_reference_of_the_command_line_is_that_of_the_code() {
    let mut cli = Cli::command();
    cli.build();
    let about = cli.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!(
        "# Command line\n\n{about}. This page is what `--help` says of each command.\n\n```text\n{}\n```\n\n| command | |\n|---|---|\n",
        cli.get_after_help().map(ToString::to_string).unwrap_or_default()
    );
    let subcommands = || cli.get_subcommands().filter(|command| command.get_name() != "help");
    for sub in subcommands() {
        let name = sub.get_name();
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        text += &row(&[format!("[`{name}`](#bimetal-{name})"), cell(&about)]);
    }
    text += "\nThe exit status is 0 if all went well, 1 if the work failed, 2 if what was asked for cannot be. Data go to the\n\
             standard output, everything else to the standard error.\n";
    for sub in subcommands() {
        text += &command(sub, 2);
    }
    hold(&docs().join("reference/cli.md"), &text);
}

fn listed(what: Listed) -> String {
    let heads = list::heads(what);
    let mut text = row(&heads.iter().map(|(head, _)| (*head).to_owned()).collect::<Vec<_>>());
    let marks = heads.iter().map(|(_, align)| if matches!(align, Align::Right) { "---:" } else { "---" });
    text += &format!("|{}|\n", marks.collect::<Vec<_>>().join("|"));
    for item in list::items(what).unwrap() {
        let mut cells: Vec<String> = item.row.iter().map(|text| cell(text)).collect();
        cells[0] = format!("`{}`", cells[0]);
        text += &row(&cells);
    }
    text
}

#[test]
fn the_catalogue_is_that_of_the_code() {
    let text = format!(
        "# Parts and devices\n\nNames for device files and `--set`. `bimetal list chips NAME` shows every figure of a chip with its \
         source; `list drives` and\n`list devices` do the same. Other parts are described in a [device file](../devices.md).\n\n\
         ## Chips\n\n{}\n## Drives\n\n{}\n## Devices\n\n{}",
        listed(Listed::Chips),
        listed(Listed::Drives),
        listed(Listed::Devices),
    );
    hold(&docs().join("reference/parts.md"), &text);
}

/// A page with the text between two marks replaced.
fn replaced(page: &str, mark: &str, end: &str, table: &str) -> String {
    let (before, rest) = page.split_once(mark).unwrap_or_else(|| panic!("`{mark}` is missing"));
    let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("`{end}` is missing after `{mark}`"));
    format!("{before}{mark}\n\n{table}\n{end}{after}")
}

#[test]
fn the_table_of_formats_is_that_of_the_code() {
    let mut table = String::from("| format | what it is | a record | units |\n|---|---|---|---|\n");
    for item in catalogue::formats() {
        let names: Vec<String> =
            std::iter::once(&item.name).chain(item.aliases).map(|name| format!("`{name}`")).collect();
        let written = if item.written { "; can be written" } else { "" };
        let (record, units) = item.layout.split_once(": ").unwrap_or((item.layout, ""));
        let what = format!("{}{written}", item.summary);
        table += &row(&[names.join(", "), cell(&what), cell(&record.replace(',', ", ")), cell(units)]);
    }
    let path = docs().join("traces.md");
    let page = fs::read_to_string(&path).unwrap();
    hold(&path, &replaced(&page, "<!-- formats -->", "<!-- end of formats -->", &table));
}

/// Generated text of one scheme in a page, below its heading.
fn parameters(item: &SchemeItem) -> String {
    let mut text = format!(
        "<details markdown=\"1\"><summary>Parameters of <code>{}</code></summary>\n\n| parameter | default | what it is | accepts |\n|---|---|---|---|\n",
        item.name
    );
    for parameter in &item.parameters {
        let name = format!("`{}`", parameter.name);
        let default = format!("`{}`", parameter.default);
        text += &row(&[name, default, cell(parameter.summary), cell(&parameter.accepts)]);
    }
    text += "\n</details>\n";
    if !item.adapts.is_empty() {
        text += "\nIt adapts by:\n\n";
    }
    for adaptation in &item.adapts {
        let Adaptation { metric, title, unit, meaning } = adaptation;
        text += &format!("- {title} (`{metric}`, {unit}). {meaning}\n");
    }
    text
}

#[test]
fn every_scheme_has_a_section_with_its_parameters() {
    let mut pages: Vec<(PathBuf, String)> = fs::read_dir(docs().join("schemes"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    for spec in SCHEMES {
        let item = SchemeItem::of(spec);
        let (heading, mark) = (format!("\n## `{}`\n", item.name), format!("<!-- parameters: {} -->", item.name));
        let mut of_scheme = pages.iter_mut().filter(|(_, page)| page.contains(&heading));
        let (_, page) =
            of_scheme.next().unwrap_or_else(|| panic!("no page of docs/schemes has a section `{}`", item.name));
        assert!(of_scheme.next().is_none(), "`{}` has more than one section", item.name);
        let section = page.split(&heading).nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
        assert!(section.contains(&mark), "the section `{}` has no `{mark}`", item.name);
        *page = replaced(page, &mark, "<!-- end of parameters -->", &parameters(&item));
    }
    let sections: usize = pages.iter().map(|(_, page)| page.matches("<!-- parameters: ").count()).sum();
    assert_eq!(sections, SCHEMES.len(), "a section describes a scheme that is not in the registry");
    for (path, page) in &pages {
        hold(path, page);
    }
}
