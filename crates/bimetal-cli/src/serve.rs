//! `bimetal serve`: a store for clients of the network block device protocol.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bimetal_live::endpoint::Endpoint;
use bimetal_live::health::Health;
use bimetal_live::nbd::{Address, Export, Options, Remote, Server, Stop, TlsServer};
use bimetal_live::pace::Paced;
use bimetal_live::store::{Directory, OpenOptions, Recovery, Store};
use bimetal_study::number::thousands;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing_subscriber::filter::LevelFilter;

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::{inform, output, stat};

/// Where clients connect, and where `bimetal stat` asks, unless it is said: in the store's directory.
const SOCKET: &str = "nbd.sock";
pub const STAT_SOCKET: &str = "stat.sock";

/// The host is idle when it has asked for nothing for so long.
const IDLE_AFTER: Duration = Duration::from_millis(500);
/// Background work that is done at once, in pages.
const IDLE_PAGES: u32 = 64;

pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    // Clients that misbehave and files that fail are told of as it happens.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(LevelFilter::WARN).with_target(false).init();
    let options = OpenOptions { read_only: args.read_only, direct: args.direct, ..OpenOptions::default() };
    let store = Store::open(Arc::new(Directory::new(&args.store)), options);
    let store = Arc::new(store.map_err(|error| Failure::store(&args.store, error))?);
    let address = args.listen.clone().unwrap_or_else(|| Address::Unix(args.store.join(SOCKET)));
    let export = Export {
        name: args.export.clone(),
        description: format!("`{}` by Bimetal", store.resolved().device.scheme),
        read_only: args.read_only,
    };
    let server = Server::bind(&address, export, server_options(args)?).map_err(Failure::failed)?;
    let _stat = stat(args, &store)?;
    let stats = args.stats.as_ref().map(|address| stats(address, remote(args), &store)).transpose()?;
    stop_at_signals(server.stop())?;
    inform(&recovered(store.recovery()));
    if let Some(stats) = &stats {
        inform(&format!("figures at {}", stats.address()));
    }
    let uri = uri(&server.address(), &args.export, args.tls_cert.is_some())?;
    if args.run.is_none() {
        output::print(&format!("{uri}\n"))?;
    }
    let served = serve(args, server, &store, &uri);
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

/// Answers `bimetal stat`.
fn stat(args: &ServeArgs, store: &Arc<Store>) -> Result<Endpoint, Failure> {
    let store = Arc::clone(store);
    let answer = move |question: &[u8]| {
        let answer = stat::answer(&Health::of(&store), &String::from_utf8_lossy(question));
        answer.unwrap_or_default().into_bytes()
    };
    Endpoint::open(&Address::Unix(args.store.join(STAT_SOCKET)), Remote::Refused, b"\n", answer)
        .map_err(Failure::failed)
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
    Endpoint::open(address, remote, b"\r\n\r\n", answer).map_err(Failure::failed)
}

/// Serves until it is stopped; returns how the command ended, if there is one.
fn serve(args: &ServeArgs, server: Server, store: &Arc<Store>, uri: &str) -> Result<Option<ExitStatus>, Failure> {
    let stop = server.stop();
    let runner = args.run.clone().map(|command| {
        let (uri, stop) = (uri.to_owned(), stop.clone());
        thread::spawn(move || {
            let ended = Command::new("sh").args(["-c", &command]).env("uri", uri).status();
            stop.stop();
            ended
        })
    });
    if !args.read_only {
        let store = Arc::clone(store);
        thread::spawn(move || idle(&store));
    }
    match args.pace {
        Some(factor) => server.run(&Paced::new(Arc::clone(store), factor)),
        None => server.run(store.as_ref()),
    }?;
    match runner.map(thread::JoinHandle::join) {
        Some(Ok(ended)) => Ok(Some(ended?)),
        _ => Ok(None),
    }
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
    let poll = Duration::from_micros(args.poll.into());
    Ok(Options { connections: args.connections.into(), poll, remote: remote(args), tls, ..Options::default() })
}

fn remote(args: &ServeArgs) -> Remote {
    if args.remote { Remote::Plaintext } else { Remote::Refused }
}

/// Stops the server at the first signal; a second one ends the process as if there were no handler.
fn stop_at_signals(stop: Stop) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::spawn(move || {
        let mut arrived = signals.forever();
        if arrived.next().is_some() {
            inform("stopping");
            stop.stop();
        }
        if let Some(signal) = arrived.next() {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
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
