//! `bimetal serve`: a store for clients of the network block device protocol.

mod stopping;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bimetal_live::fuse::{self, MountError};
use bimetal_live::nbd::{Address, ListenError, Options, Remote, TlsServer};
use bimetal_live::runtime::{Listen, ServeError, Service, ServiceSettings, raise_open_files, systemd};
use bimetal_live::store::{Directory, OpenOptions, Recovery, Store};
use bimetal_live::ublk::{self, AttachError};
use bimetal_study::number::counted;
use tracing_subscriber::filter::LevelFilter;

use super::stat;
use crate::args::{LogLevel, ServeArgs};
use crate::failure::Failure;
use crate::{inform, output, warn};
use stopping::Stopping;

pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    // Misbehaving clients and failing files are logged when they occur.
    tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level(args.log)).with_target(false).init();
    let options = server_options(args)?;
    refuse_at_once(args, &options)?;
    let passed = systemd::passed_listener(options.remote, args.tls_cert.is_some()).map_err(unheard)?;
    let files_before = raise_open_files()?;
    let open =
        OpenOptions { read_only: args.read_only, direct: args.direct, moved: args.moved, ..OpenOptions::default() };
    let store = Store::open(Arc::new(Directory::new(&args.store)), open);
    let store = Arc::new(store.map_err(|error| Failure::store(&args.store, error))?);
    let settings = ServiceSettings {
        listen: passed.map(Listen::Passed).or(args.listen.clone().map(Listen::At)).unwrap_or_default(),
        fuse: args.fuse.clone(),
        ublk: args.ublk,
        export: args.export.clone(),
        nbd: options,
        stats: args.stats.clone(),
        pace: args.pace,
        systemd: true,
        answer: Some(|health, question| stat::answer(health, question).unwrap_or_default()),
        backups: true,
        vhost_user: args.vhost_user.clone(),
    };
    let served = serve(args, &store, settings, files_before);
    if served.is_err() {
        // What fails before clients can connect leaves the store as it was.
        store.close().unwrap_or_else(|error| warn(&format!("the store could not be closed: {error}")));
    }
    served
}

/// Serves an open store until it is told to stop.
fn serve(
    args: &ServeArgs,
    store: &Arc<Store>,
    settings: ServiceSettings,
    files_before: Option<u64>,
) -> Result<(), Failure> {
    let unserved = |error| unserved(args, error);
    let service = Service::start(&args.store, Arc::clone(store), settings).map_err(unserved)?;
    service.warnings().iter().for_each(|warning| warn(&warning.to_string()));
    let stopping = Stopping::at_signals(service.stop())?;
    inform(&recovered(store.recovery()));
    warn_of_others(args, &service.address(), service.stats_address());
    if let Some(stats) = service.stats_address() {
        inform(&format!("figures at {stats}"));
    }
    if let Some(file) = service.file() {
        inform(&format!("the device is the file {}", file.display()));
    }
    if let Some(disk) = service.disk() {
        inform(&format!("the device is the disk {}", disk.display()));
    }
    let uri = service.uri().to_owned();
    if args.run.is_none() {
        match output::print(&format!("{uri}\n")) {
            // The device is served even if nobody reads its URI.
            Err(Failure::ClosedPipe) => {}
            printed => printed?,
        }
    }
    let stop = service.stop();
    let mut variables = vec![("uri", OsString::from(&uri))];
    variables.extend(service.file().map(|file| ("fuse", file.into())));
    variables.extend(service.disk().map(|disk| ("ublk", disk.into())));
    let running = args.run.as_ref().map(|command| stopping.run(command, variables, files_before, stop)).transpose()?;
    service.run().map_err(unserved)?;
    match running.map_or(Ok(None), |running| stopping.ended(&running))? {
        Some(status) if !status.success() => {
            Err(Failure::failed(format!("the command of `--run` ended with {status}")))
        }
        _ => Ok(()),
    }
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}

/// Refuses invalid arguments before the store is opened.
fn refuse_at_once(args: &ServeArgs, options: &Options) -> Result<(), Failure> {
    options.check().map_err(|error| Failure::usage(format!("`--connections`, `--memory`: {error}")))?;
    let encrypted = args.tls_cert.is_some();
    for (option, address, encrypted) in [("--listen", &args.listen, encrypted), ("--stats", &args.stats, false)] {
        if let Some(address) = address {
            let refused = |error| Failure::usage(format!("`{option}`: {}", with_hint(error)));
            address.check(options.remote, encrypted).map_err(refused)?;
        }
    }
    args.ublk.map_or(Ok(()), |_| ublk::check()).map_err(unattached)?;
    args.fuse.as_deref().map_or(Ok(()), fuse::check).map_err(unmounted)
}

/// The error's text, and the option that permits it.
fn with_hint(error: ListenError) -> String {
    match error {
        ListenError::Remote { .. } => format!("{error} (`--remote`)"),
        ListenError::Plaintext { .. } => format!("{error} (`--tls-cert` and `--tls-key`, or `--plaintext`)"),
        error => error.to_string(),
    }
}

fn unheard(error: ListenError) -> Failure {
    Failure::failed(with_hint(error))
}

fn unmounted(error: MountError) -> Failure {
    Failure::failed(format!("`--fuse`: {error}"))
}

fn unattached(error: AttachError) -> Failure {
    Failure::failed(format!("`--ublk`: {error}"))
}

/// Message for a store that could not be served, or failed while it was served.
fn unserved(args: &ServeArgs, error: ServeError) -> Failure {
    match error {
        ServeError::Listen(error) => unheard(error),
        ServeError::NoPlace { .. } => Failure::failed(format!("{error}; say where with `--listen`")),
        ServeError::Mount(error) => unmounted(error),
        ServeError::Attach(error) => unattached(error),
        ServeError::OpenFiles { .. } => Failure::failed(error),
        ServeError::Failed(_) | ServeError::Close(_) => Failure::failed(format!("{}: {error}", args.store.display())),
        ServeError::System(error) => error.into(),
    }
}

/// Reports who can connect, if other machines can.
fn warn_of_others(args: &ServeArgs, address: &Address, stats: Option<&Address>) {
    let what = if args.read_only { "read" } else { "read and write" };
    if address.is_remote() && args.tls_cert.is_none() {
        warn(&format!("anyone who reaches `{address}` can {what} everything: no encryption, no authentication"));
    } else if address.is_remote() && args.tls_clients.is_none() {
        warn(&format!(
            "connections to `{address}` are encrypted, but any client may connect and {what} everything; \
             `--tls-clients` asks for certificates"
        ));
    }
    if let Some(stats) = stats.filter(|stats| stats.is_remote()) {
        warn(&format!("anyone who reaches `{stats}` can read the figures: no encryption, no authentication"));
    }
}

fn server_options(args: &ServeArgs) -> Result<Options, Failure> {
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(TlsServer::from_files(certificate, key, args.tls_clients.as_deref()).map_err(Failure::failed)?)
        }
        _ => None,
    };
    let per_address = args.connections_per_address.unwrap_or((args.connections / 2).max(1));
    Ok(Options {
        connections: args.connections.into(),
        connections_per_address: per_address.into(),
        memory_bytes: usize::try_from(args.memory.0).unwrap_or(usize::MAX),
        idle: Duration::from_secs(args.idle_timeout.into()),
        poll: Duration::from_micros(args.poll.into()),
        remote: remote(args),
        tls,
        ..Options::default()
    })
}

fn remote(args: &ServeArgs) -> Remote {
    match (args.remote, args.plaintext) {
        (false, _) => Remote::Refused,
        (true, false) => Remote::Encrypted,
        (true, true) => Remote::Plaintext,
    }
}

fn recovered(recovery: &Recovery) -> String {
    let took: Duration = recovery.steps.iter().map(|&(_, took)| took).sum();
    let milliseconds = took.as_secs_f64() * 1e3;
    if recovery.was_closed {
        return format!("opened in {milliseconds:.0} ms: the store was closed properly");
    }
    let (batches, events) = (counted(recovery.batches, "commit"), counted(recovery.events, "event"));
    format!("recovered in {milliseconds:.0} ms: {events} of {batches} replayed")
}
