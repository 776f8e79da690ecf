//! `bimetal stat`: statistics of a store, served or not.

use std::sync::Arc;
use std::time::Duration;

use bimetal_core::report::ResponseFigures;
use bimetal_live::endpoint::{ask, connect};
use bimetal_live::health::Health;
use bimetal_live::runtime::STAT_SOCKET;
use bimetal_live::store::{Directory, OpenOptions, Store};
use bimetal_study::listing;
use bimetal_study::number::{NOTHING, SIZES, TIMES, counted, plain, significant, thousands, with_unit};

use crate::args::StatArgs;
use crate::failure::Failure;
use crate::figures::listed;
use crate::messages::inform;
use crate::output;
use crate::table::{bold, pairs};

pub fn run(args: &StatArgs) -> Result<(), Failure> {
    let text = || answer_of(args, "text");
    let json = if args.json.json.is_some() { answer_of(args, "json")? } else { String::new() };
    output::emit_bytes(&args.json, json.as_bytes(), text)
}

/// The answer of the store's server, or of the store itself if it is not served.
fn answer_of(args: &StatArgs, question: &str) -> Result<String, Failure> {
    if let Ok(server) = connect(&args.store.join(STAT_SOCKET)) {
        return ask(server, question, SILENCE).map_err(|error| {
            Failure::failed(format!("{}: the server does not answer: {error}", args.store.display()))
        });
    }
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let store = Store::open(Arc::new(Directory::new(&args.store)), options);
    let store = store.map_err(|error| Failure::store(&args.store, error))?;
    let replayed = store.recovery().batches;
    if replayed > 0 {
        inform(&format!("the store was not closed: the next start replays {}", counted(replayed, "commit")));
    }
    answer(&Health::of(&store), question)
}

/// The answer of a server, which is the same as the output without a server.
pub fn answer(health: &Health, question: &str) -> Result<String, Failure> {
    if question.trim() == "json" {
        return Ok(serde_json::to_string_pretty(health).map_err(Failure::failed)? + "\n");
    }
    Ok(text(health))
}

/// Time for which the server may be silent, for example because it is stopped.
const SILENCE: Duration = Duration::from_secs(10);

fn text(health: &Health) -> String {
    let size = |bytes: u64| with_unit(SIZES, bytes as f64);
    let (smart, device, store) = (&health.smart, &health.device, &health.store);
    let optional = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| NOTHING.to_owned(), show);
    let mut rows = vec![
        ("capacity", format!("{}, {} of it with data", size(health.capacity_bytes), size(health.data_bytes))),
        (
            "host has read",
            format!("{} in {}", size(health.host_read_bytes), counted(smart.host_read_commands, "request")),
        ),
        (
            "host has written",
            format!("{} in {}", size(health.host_write_bytes), counted(smart.host_write_commands, "request")),
        ),
        (
            "write amplification",
            optional(device.key_figures.write_amplification, |value| format!("{} x", significant(value))),
        ),
        ("host writes until worn", optional(device.key_figures.lifetime_host_bytes, |bytes| with_unit(SIZES, bytes))),
        ("life used", format!("{} %", smart.percent_used)),
        ("modelled responses", responses(&device.response_us)),
        ("media errors", thousands(smart.media_errors)),
        (
            "opened",
            format!(
                "{}, {} not closed cleanly",
                counted(smart.power_cycles, "time"),
                thousands(smart.unsafe_shutdowns)
            ),
        ),
        ("not durable yet", format!("{} of {} events", thousands(store.events_pending), thousands(store.events))),
        ("journal", format!("{} since the last checkpoint", size(store.journal_bytes))),
        ("memory", format!("{} for maps, {} for data", size(store.metadata_bytes), size(store.buffer_bytes))),
    ];
    if store.no_room {
        rows.insert(0, ("NO ROOM", "writes are refused until there is room in the file system".to_owned()));
    }
    if let Some(failure) = &store.failure {
        rows.insert(0, ("FAILED", failure.clone()));
    }
    let metrics = device.metrics.0.iter();
    let sections = [
        (format!("Store of `{}`", health.scheme), own(rows)),
        ("Operations".to_owned(), listed(listing::operations(device))),
        ("Wear".to_owned(), listed(listing::wear(device))),
        (
            "Figures of the scheme".to_owned(),
            pairs(metrics.map(|&(name, value)| (name.replace('_', " "), optional(value, plain))).collect()),
        ),
    ];
    let shown = sections.iter().filter(|(_, text)| !text.is_empty());
    shown.map(|(title, text)| format!("\n{}\n{text}", bold(title))).collect()
}

fn own(rows: Vec<(&str, String)>) -> String {
    pairs(rows.into_iter().map(|(label, value)| (label.to_owned(), value)).collect())
}

fn responses(figures: &ResponseFigures) -> String {
    if figures.count == 0 {
        return format!("{NOTHING} since it was opened");
    }
    let time = |us| with_unit(TIMES, us);
    format!("{} on average, 99 % within {}, since it was opened", time(figures.mean), time(figures.p99))
}
