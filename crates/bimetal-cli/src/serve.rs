//! `bimetal serve`: a store for clients of the network block device protocol.

mod machine;
mod stopping;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bimetal_live::endpoint::{CONVERSATIONS, Endpoint};
use bimetal_live::health::Health;
use bimetal_live::nbd::{Address, Export, ListenError, Options, Remote, Server, TlsServer};
use bimetal_live::pace::Paced;
use bimetal_live::store::{Directory, OpenOptions, Recovery, Store};
use bimetal_study::number::thousands;
use tempfile::TempDir;
use tracing_subscriber::filter::LevelFilter;

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::{inform, output, stat, warn};
use stopping::Stopping;

/// Where clients connect, and where `bimetal stat` asks, unless it is said: in the store's directory.
const SOCKET: &str = "nbd.sock";
pub const STAT_SOCKET: &str = "stat.sock";

/// The host is idle when it has asked for nothing for so long.
const IDLE_AFTER: Duration = Duration::from_millis(500);
/// Background work that is done at once, in pages.
const IDLE_PAGES: u32 = 64;

pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    // Clients that misbehave and files that fail are told of as it happens.
    tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(LevelFilter::WARN).with_target(false).init();
    let mut server_options = server_options(args)?;
    refuse_at_once(args, &server_options)?;
    let files_before = machine::raise_open_files()?;
    let options =
        OpenOptions { read_only: args.read_only, direct: args.direct, moved: args.moved, ..OpenOptions::default() };
    let store = Store::open(Arc::new(Directory::new(&args.store)), options);
    let store = Arc::new(store.map_err(|error| Failure::store(&args.store, error))?);
    let _stat = stat(args, &store)?;
    let stats = args.stats.as_ref().map(|address| stats(address, remote(args), &store)).transpose()?;
    let endpoints = 1 + usize::from(stats.is_some());
    machine::limit_connections(&mut server_options, endpoints * CONVERSATIONS)?;
    let (server, _folder) = listen(args, &store, &server_options)?;
    let stopping = Stopping::at_signals(server.stop())?;
    inform(&recovered(store.recovery()));
    warn_of_others(args, &server.address(), stats.as_ref().map(Endpoint::address));
    if let Some(stats) = &stats {
        inform(&format!("figures at {}", stats.address()));
    }
    let uri = uri(&server.address(), &args.export, args.tls_cert.is_some())?;
    if args.run.is_none() {
        output::print(&format!("{uri}\n"))?;
    }
    let served = serve(args, server, &store, &stopping, &uri, files_before);
    // Whatever ended it: what clients were told is durable stays so, and the next start has nothing to recover.
    let closed = store.close();
    let ran = served?;
    if let Some(failure) = store.status().failure {
        return Err(Failure::failed(format!(
            "{}: {failure}; the device was read-only from then on",
            args.store.display()
        )));
    }
    closed.map_err(|error| Failure::failed(format!("{}: {error}", args.store.display())))?;
    match ran {
        Some(status) if !status.success() => {
            Err(Failure::failed(format!("the command of `--run` ended with {status}")))
        }
        _ => Ok(()),
    }
}

/// Refuses what the arguments alone show to be wrong, before the store is touched.
fn refuse_at_once(args: &ServeArgs, options: &Options) -> Result<(), Failure> {
    options.check().map_err(|error| Failure::usage(format!("`--connections`, `--memory`: {error}")))?;
    let encrypted = args.tls_cert.is_some();
    for (option, address, encrypted) in [("--listen", &args.listen, encrypted), ("--stats", &args.stats, false)] {
        if let Some(address) = address {
            let refused = |error| Failure::usage(format!("`{option}`: {}", with_hint(error)));
            address.check(options.remote, encrypted).map_err(refused)?;
        }
    }
    Ok(())
}

/// What the error says, and which option says otherwise.
fn with_hint(error: ListenError) -> String {
    match error {
        ListenError::Remote { .. } => format!("{error} (`--remote`)"),
        ListenError::Plaintext { .. } => format!("{error} (`--plaintext`)"),
        error => error.to_string(),
    }
}

fn unheard(error: ListenError) -> Failure {
    Failure::failed(with_hint(error))
}

/// Says who can get at what, where that is not only this machine.
fn warn_of_others(args: &ServeArgs, address: &Address, stats: Option<&Address>) {
    let what = if args.read_only { "read" } else { "read and write" };
    if address.is_remote() && args.tls_cert.is_none() {
        warn(&format!(
            "anyone who reaches `{address}` can {what} everything: nothing is encrypted, nobody is asked who they are"
        ));
    } else if address.is_remote() && args.tls_clients.is_none() {
        warn(&format!(
            "connections to `{address}` are encrypted, but any client may connect and {what} everything; \
             `--tls-clients` asks for certificates"
        ));
    }
    if let Some(stats) = stats.filter(|stats| stats.is_remote()) {
        warn(&format!(
            "anyone who reaches `{stats}` can read the figures: nothing is encrypted, nobody is asked who they are"
        ));
    }
}

/// The server, and the folder of its socket if that cannot be in the store's directory.
fn listen(args: &ServeArgs, store: &Store, options: &Options) -> Result<(Server, Option<TempDir>), Failure> {
    let export = Export {
        name: args.export.clone(),
        description: format!("`{}` by Bimetal", store.resolved().device.scheme),
        read_only: args.read_only,
    };
    let bind = |address: &Address| Server::bind(address, export.clone(), options.clone());
    if let Some(address) = &args.listen {
        return Ok((bind(address).map_err(unheard)?, None));
    }
    match bind(&Address::Unix(args.store.join(SOCKET))) {
        Ok(server) => Ok((server, None)),
        Err(error) if args.read_only && is_unwritable(&error) => {
            let elsewhere = socket_folder().and_then(|folder| {
                let server = bind(&Address::Unix(folder.path().join(SOCKET)));
                Ok((server.map_err(io::Error::other)?, Some(folder)))
            });
            elsewhere.map_err(|other| {
                Failure::failed(format!("{error}, and for a socket elsewhere: {other}; say where with `--listen`"))
            })
        }
        Err(error) => Err(unheard(error)),
    }
}

/// Whether nothing can be written where the socket should be.
fn is_unwritable(error: &ListenError) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error, ListenError::System { source, .. } if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem))
}

/// A folder for a socket that only this user can look into.
fn socket_folder() -> io::Result<TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let own = std::fs::Permissions::from_mode(0o700);
    let make = |parent: PathBuf| {
        let folder = tempfile::Builder::new().prefix("bimetal-").permissions(own.clone()).tempdir_in(parent)?;
        // The umask may have taken some of it.
        std::fs::set_permissions(folder.path(), own.clone())?;
        Ok(folder)
    };
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|runtime| !runtime.is_empty()) {
        Some(runtime) => make(runtime.into()).or_else(|_: io::Error| make(std::env::temp_dir())),
        None => make(std::env::temp_dir()),
    }
}

/// Answers `bimetal stat`. Where nothing can be written, `bimetal stat` opens the store itself.
fn stat(args: &ServeArgs, store: &Arc<Store>) -> Result<Option<Endpoint>, Failure> {
    let store = Arc::clone(store);
    let answer = move |question: &[u8]| {
        let answer = stat::answer(&Health::of(&store), &String::from_utf8_lossy(question));
        answer.unwrap_or_default().into_bytes()
    };
    match Endpoint::open(&Address::Unix(args.store.join(STAT_SOCKET)), Remote::Refused, b"\n", answer) {
        Ok(endpoint) => Ok(Some(endpoint)),
        Err(error) if args.read_only => {
            warn(&format!("{error}; `bimetal stat` opens the store itself"));
            Ok(None)
        }
        Err(error) => Err(Failure::failed(error)),
    }
}

/// Answers whoever collects figures over HTTP.
fn stats(address: &Address, remote: Remote, store: &Arc<Store>) -> Result<Endpoint, Failure> {
    let store = Arc::clone(store);
    let answer = move |question: &[u8]| {
        let (status, body) = match Health::of(&store).openmetrics() {
            _ if !question.starts_with(b"GET ") => ("405 Method Not Allowed", String::new()),
            Ok(text) => ("200 OK", text),
            Err(_) => ("500 Internal Server Error", String::new()),
        };
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .into_bytes()
    };
    Endpoint::open(address, remote, b"\r\n\r\n", answer).map_err(unheard)
}

/// Serves until it is stopped; returns how the command ended, if there is one.
fn serve(
    args: &ServeArgs,
    server: Server,
    store: &Arc<Store>,
    stopping: &Stopping,
    uri: &str,
    open_files: Option<u64>,
) -> Result<Option<ExitStatus>, Failure> {
    let running = args.run.as_ref().map(|command| stopping.run(command, uri, open_files, server.stop())).transpose()?;
    if !args.read_only {
        let store = Arc::clone(store);
        thread::spawn(move || idle(&store));
    }
    match args.pace {
        Some(factor) => server.run(&Paced::new(Arc::clone(store), factor)),
        None => server.run(store.as_ref()),
    }?;
    running.map_or(Ok(None), |running| stopping.ended(&running))
}

/// Gives the scheme the time that the host does not need, as long as it does something with it.
fn idle(store: &Store) {
    let mut events = store.events();
    let mut done_at = None;
    loop {
        thread::sleep(IDLE_AFTER);
        while store.events() == events && done_at != Some(events) {
            let Ok(is_busy) = store.idle(IDLE_PAGES) else { return };
            events = store.events();
            if !is_busy {
                done_at = Some(events);
            }
        }
        events = store.events();
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
    if recovery.batches == 0 {
        return format!("opened in {milliseconds:.0} ms: the store was closed properly");
    }
    let (batches, events) = (thousands(recovery.batches), thousands(recovery.events));
    format!("recovered in {milliseconds:.0} ms: {events} events of {batches} commits replayed")
}

/// What clients are given: a URI of the NBD project's kind.
fn uri(address: &Address, export: &str, tls: bool) -> Result<String, Failure> {
    let scheme = if tls { "nbds" } else { "nbd" };
    let export = encoded(export);
    Ok(match address {
        Address::Unix(path) => {
            let path = std::path::absolute(path)?;
            format!("{scheme}+unix:///{export}?socket={}", encoded_path(&path))
        }
        Address::Tcp(address) => format!("{scheme}://{address}/{export}"),
    })
}

fn encoded_path(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    percent_encoded(path.as_os_str().as_bytes())
}

fn encoded(text: &str) -> String {
    percent_encoded(text.as_bytes())
}

/// Bytes as a URI has them (RFC 3986, section 2).
fn percent_encoded(bytes: &[u8]) -> String {
    let encode = |&byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    bytes.iter().map(encode).collect()
}
