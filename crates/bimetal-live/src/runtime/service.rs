//! A served store: start, operation, stop.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::housekeeping::{Housekeeping, IDLE_AFTER, Idle, Watch, keep_up};
use super::open_files::limit_connections;
use super::questions::{self, Answer};
use super::socket::Listen;
use super::{ServeError, Warning, backups, socket, systemd};
use crate::backup::{BackedUp, Backups};
use crate::block_device::BlockDevice;
use crate::endpoint::{CONVERSATIONS, Endpoint};
use crate::fuse::{self, Mount};
use crate::health::figures::Sources;
use crate::measured::{Measured, Meter};
use crate::nbd::{Address, Export, Options, Server, Stop, Tally};
use crate::pace::Paced;
use crate::store::Store;
use crate::ublk::{self, Disk};
use crate::vhost_user;

/// Time between two observations of the store for the log and for systemd.
const WATCH_PAUSE: Duration = Duration::from_secs(5);

/// Settings of a service.
#[derive(Debug, Default)]
pub struct ServiceSettings {
    /// Socket for clients.
    pub listen: Listen,
    /// File at which FUSE also shows the device, if any.
    pub fuse: Option<PathBuf>,
    /// Number of the disk of this machine that ublk also makes of the device, if any.
    pub ublk: Option<ublk::Number>,
    /// Name that clients may request.
    pub export: String,
    /// Limits for clients, access from other machines, TLS.
    pub nbd: Options,
    /// Address at which figures are served as OpenMetrics over HTTP, if any.
    pub stats: Option<Address>,
    /// Factor by which answers are slower than those of the modelled device; `None` does not hold answers back.
    pub pace: Option<f64>,
    /// Whether systemd is notified, if its environment variables ask for that.
    pub systemd: bool,
    /// Makes the answers to `bimetal stat`, at a socket in the store's directory. Without it the socket does not exist.
    pub answer: Option<Answer>,
    /// Whether `bimetal copy` can back up the store, at another socket there. A store opened read-only needs no such
    /// socket: other processes can open it, too.
    pub backups: bool,
    /// Socket for a virtual machine, in addition to NBD clients.
    pub vhost_user: Option<PathBuf>,
}

/// A store to which clients can connect. They are served once [`Service::run`] is called.
pub struct Service {
    store: Arc<Store>,
    /// The store for clients: paced, backed up and measured.
    device: Arc<dyn BlockDevice>,
    mount: Option<Mount>,
    disk: Option<Disk>,
    server: Server,
    vhost_user: Option<vhost_user::Server>,
    /// Stops the service, and becomes readable then.
    stop: (Stop, OwnedFd),
    backups: Arc<Backups>,
    uri: String,
    systemd: bool,
    sources: Sources,
    warnings: Vec<Warning>,
    stats: Option<Endpoint>,
    _stat: Option<Endpoint>,
    backup: Option<Endpoint>,
    /// Removed with the socket in it.
    _folder: Option<TempDir>,
}

impl Service {
    /// Opens the sockets of a store in `directory`, mounts the file and attaches the disk. Figures, the file and the disk are served
    /// from now on; clients of the sockets wait until [`Service::run`].
    ///
    /// # Errors
    /// Nothing can listen at one of the addresses, the file cannot be mounted, the disk cannot be attached, or this process may have
    /// too few files open.
    pub fn start(directory: &Path, store: Arc<Store>, settings: ServiceSettings) -> Result<Self, ServeError> {
        let ServiceSettings { listen, export, nbd: mut options, stats, pace, systemd, answer, .. } = settings;
        log_opening(&store);
        let read_only = store.read_only();
        let mut warnings = Vec::new();
        let stat = match answer.map(|answer| questions::stat(directory, &store, answer)).transpose() {
            Err(error) if read_only => {
                warnings.push(Warning::NoStat(error));
                None
            }
            opened => opened?,
        };
        let (meter, tally) = (Arc::<Meter>::default(), Arc::<Tally>::default());
        let sources = || Sources {
            directory: directory.into(),
            full_bytes: store.full_bytes(),
            meter: Arc::clone(&meter),
            tally: Arc::clone(&tally),
        };
        let stats = stats.map(|address| questions::metrics(&address, options.remote, &store, sources())).transpose()?;
        let backups = Arc::new(Backups::new(Arc::<Store>::clone(&store)));
        let is_backed_up = settings.backups && !read_only;
        let backup = is_backed_up.then(|| backups::open(directory, &store, &backups)).transpose()?;
        let endpoints = usize::from(stat.is_some()) + usize::from(stats.is_some());
        let open_files = endpoints * CONVERSATIONS
            + usize::from(is_backed_up) * backups::CLIENTS
            + usize::from(settings.fuse.is_some()) * fuse::OPEN_FILES
            + usize::from(settings.ublk.is_some()) * ublk::OPEN_FILES
            + usize::from(settings.vhost_user.is_some()) * vhost_user::OPEN_FILES;
        warnings.extend(limit_connections(&mut options, open_files)?);
        let sources = sources();
        let stop = Stop::new()?;
        let paced = pace.map(|factor| (factor, stop.0.clone()));
        let device = for_clients(&store, paced, Arc::clone(&backups), meter);
        // Before the sockets, so that a client that can connect finds the file and the disk, too.
        let mount = settings.fuse.map(|file| Mount::new(&file, Arc::clone(&device))).transpose()?;
        let disk = settings.ublk.map(|number| Disk::attach(number, Arc::clone(&device), pace.is_some())).transpose()?;
        let vhost_user = settings.vhost_user.map(|path| {
            let disk = vhost_user::Device::of(&store, Arc::clone(&device), options.poll, pace.is_some());
            vhost_user::Server::bind(&path, disk, Arc::clone(&tally))
        });
        let vhost_user = vhost_user.transpose()?;
        let description = format!("`{}` by Bimetal", store.resolved().device.scheme);
        let offered = Export { name: export.clone(), description, read_only };
        let encrypted = options.is_encrypted();
        let (server, folder) = socket::listen(directory, listen, offered, options)?;
        let server = server.counted_by(Arc::clone(&tally));
        let uri = socket::uri(&server.address(), &export, encrypted)?;
        Ok(Self {
            store,
            mount,
            disk,
            device,
            server,
            vhost_user,
            stop,
            backups,
            uri,
            systemd,
            sources,
            warnings,
            stats,
            _stat: stat,
            backup,
            _folder: folder,
        })
    }

    /// Limitations that the user should know.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Address for clients, with the chosen port.
    pub fn address(&self) -> Address {
        self.server.address()
    }

    /// Address at which figures are served over HTTP, if any, with the chosen port.
    pub fn stats_address(&self) -> Option<&Address> {
        self.stats.as_ref().map(Endpoint::address)
    }

    /// The URI for clients.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Absolute path at which the device is shown as a file, if any.
    pub fn file(&self) -> Option<&Path> {
        self.mount.as_ref().map(Mount::file)
    }

    /// Path of the disk of this machine, if any.
    pub fn disk(&self) -> Option<&Path> {
        self.disk.as_ref().map(Disk::path)
    }

    /// A handle that stops it, from any thread.
    pub fn stop(&self) -> Stop {
        self.stop.0.clone()
    }

    /// Serves until it is stopped, then closes the store, so that the next opening has nothing to recover.
    ///
    /// # Errors
    /// The system refused a socket or a thread, or the store has failed. Data that were durable before remain so in either case.
    pub fn run(self) -> Result<(), ServeError> {
        let Self {
            store,
            device,
            mount,
            disk,
            vhost_user,
            server,
            stop: (stop, woken),
            backups,
            systemd,
            sources,
            stats,
            _stat,
            backup,
            _folder,
            ..
        } = self;
        let watch = Arc::<Watch>::default();
        let housekeeping = keep_house(&store, &watch, &sources, systemd);
        let served = vhost_user.map(vhost_user::Server::start).transpose().and_then(|guests| {
            if systemd {
                systemd::tell_ready(&store.status());
            }
            let server_stop = server.stop();
            let served = thread::scope(|scope| {
                let end = || backups::end_at_stop(&stop, &woken, &backups, &server_stop);
                thread::Builder::new().name("stop".into()).spawn_scoped(scope, end)?;
                let served = server.run(device.as_ref());
                // It may have failed by itself.
                stop.stop();
                served
            });
            drop(guests);
            served
        });
        // The last writes of all front ends become durable when the store is closed.
        drop((mount, disk));
        drop(backup);
        if systemd {
            systemd::tell_stopping();
        }
        let closed = store.close();
        // The endpoints answer until the store is closed.
        drop((housekeeping, stats));
        let status = store.status();
        watch.look(&status);
        tracing::info!(events = status.events, commits = status.counts.commits, "closed");
        served?;
        match status.failure {
            Some(failure) => Err(ServeError::Failed(failure)),
            None => closed.map_err(ServeError::Close),
        }
    }
}

/// The store for clients: at the pace of the modelled device if `pace` is set, until it is to stop; with backups during
/// use, and measured.
fn for_clients(
    store: &Arc<Store>,
    pace: Option<(f64, Stop)>,
    backups: Arc<Backups>,
    meter: Arc<Meter>,
) -> Arc<dyn BlockDevice> {
    let paced: Arc<dyn BlockDevice> = match pace {
        Some((factor, stop)) => Arc::new(Paced::new(Arc::clone(store), factor, stop)),
        None => Arc::<Store>::clone(store),
    };
    Arc::new(Measured::new(Arc::new(BackedUp::new(paced, backups)), meter))
}

/// Starts the threads for periodic work. If the system refuses one, that is logged and serving goes on without it.
fn keep_house(store: &Arc<Store>, watch: &Arc<Watch>, sources: &Sources, systemd: bool) -> Housekeeping {
    let mut housekeeping = Housekeeping::default();
    if let Err(error) = start_threads(&mut housekeeping, store, watch, sources, systemd) {
        tracing::warn!(%error, "no thread for work beside serving");
    }
    housekeeping
}

fn start_threads(
    housekeeping: &mut Housekeeping,
    store: &Arc<Store>,
    watch: &Arc<Watch>,
    sources: &Sources,
    systemd: bool,
) -> io::Result<()> {
    if !store.read_only() {
        let (store, mut idle) = (Arc::clone(store), Idle::new(store));
        let kept_up = Arc::clone(&store);
        housekeeping.every(Duration::ZERO, "upkeep", move || keep_up(&kept_up))?;
        housekeeping.every(IDLE_AFTER, "idle", move || idle.look(&store))?;
    }
    if let Some(pause) = systemd::watchdog_pause().filter(|_| systemd) {
        let store = Arc::clone(store);
        housekeeping.every(pause, "watchdog", move || {
            systemd::feed_watchdog(&store);
            ControlFlow::Continue(())
        })?;
    }
    let is_told = systemd && systemd::is_there();
    if is_told || tracing::enabled!(tracing::Level::INFO) {
        let (store, watch, tally) = (Arc::clone(store), Arc::clone(watch), Arc::clone(&sources.tally));
        housekeeping.every(WATCH_PAUSE, "watch", move || {
            let status = store.status();
            watch.look(&status);
            if is_told {
                systemd::tell_status(&status, tally.figures().open);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(())
}

fn log_opening(store: &Store) {
    let recovery = store.recovery();
    let seconds = recovery.steps.iter().map(|&(_, took)| took).sum::<Duration>().as_secs_f64();
    let (scheme, sectors) = (&store.resolved().device.scheme, store.sectors());
    if recovery.was_closed {
        tracing::info!(%scheme, sectors, seconds, "opened: the store was closed properly");
    } else {
        let (commits, events) = (recovery.batches, recovery.events);
        tracing::info!(%scheme, sectors, seconds, commits, events, "recovered: the store was not closed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use bimetal_core::scheme::SCHEMES;

    use crate::backup::wire::Served;
    use crate::endpoint::connect;
    use crate::runtime::{BACKUP_SOCKET, NBD_SOCKET, STAT_SOCKET};
    use crate::store::soak::TINY;
    use crate::store::{CreateOptions, Directory, OpenOptions, create};

    fn open(path: &Path) -> Arc<Store> {
        Arc::new(Store::open(Arc::new(Directory::new(path)), OpenOptions::default()).unwrap())
    }

    fn make(path: &Path) {
        let device = TINY[0].device(SCHEMES[0], 0).unwrap();
        create(&Directory::new(path), &device, &CreateOptions::default()).unwrap();
    }

    /// A directory with a store.
    fn made() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        folder
    }

    fn ask(socket: &Path, question: &str) -> String {
        let mut asks = connect(socket).unwrap();
        asks.write_all(question.as_bytes()).unwrap();
        let mut answer = String::new();
        asks.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_program_serves_a_store_of_its_own() {
        let folder = made();
        let path = folder.path();
        let settings = ServiceSettings {
            stats: Some(Address::Unix(path.join("figures"))),
            answer: Some(|health, question| format!("{} is {}", question, health.scheme)),
            ..ServiceSettings::default()
        };
        let store = open(path);
        let service = Service::start(path, Arc::clone(&store), settings).unwrap();
        assert!(service.warnings().is_empty());
        assert_eq!(service.address(), Address::Unix(path.join(NBD_SOCKET)));
        assert!(service.uri().ends_with(NBD_SOCKET), "{}", service.uri());
        let stop = service.stop();
        let running = thread::spawn(move || service.run());
        let mut client = UnixStream::connect(path.join(NBD_SOCKET)).unwrap();
        let mut greeting = [0; 18];
        client.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting[..8], b"NBDMAGIC");
        assert_eq!(ask(&path.join(STAT_SOCKET), "this\n"), format!("this is {}", store.resolved().device.scheme));
        let figures = ask(&path.join("figures"), "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(figures.contains("bimetal_connections_accepted_total{} 1\n"), "{figures}");
        assert!(ask(&path.join("figures"), "PUT / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        stop.stop();
        running.join().unwrap().unwrap();
        drop(store);
        assert!(!path.join(NBD_SOCKET).exists() && !path.join(STAT_SOCKET).exists());
        assert_eq!(open(path).status().power.unsafe_shutdowns, 0, "it was closed");
    }

    #[test]
    fn a_store_at_a_long_path_has_its_clients_socket_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(120));
        std::fs::create_dir(&path).unwrap();
        make(&path);
        let settings = || {
            let answer: Option<Answer> = Some(|_, question| question.to_owned());
            ServiceSettings { answer, backups: true, ..ServiceSettings::default() }
        };
        let service = Service::start(&path, open(&path), settings()).unwrap();
        let Address::Unix(socket) = service.address() else { panic!("not a path") };
        assert!(!socket.starts_with(&path) && UnixStream::connect(&socket).is_ok(), "{}", socket.display());
        assert_eq!(ask(&path.join(STAT_SOCKET), "this\n"), "this");
        assert!(Served::connect(&path.join(BACKUP_SOCKET)).is_ok());
        drop(service);
        assert!(!socket.exists() && !path.join(STAT_SOCKET).exists() && !path.join(BACKUP_SOCKET).exists());
        // A killed server leaves its sockets.
        let directory = std::fs::File::open(&path).unwrap();
        drop(UnixListener::bind(format!("/proc/self/fd/{}/{STAT_SOCKET}", directory.as_raw_fd())).unwrap());
        assert!(path.join(STAT_SOCKET).exists());
        let at = Listen::At(Address::Unix(path.join("own.sock")));
        let stats = Some(Address::Unix(path.join("figures.sock")));
        for settings in [ServiceSettings { listen: at, ..settings() }, ServiceSettings { stats, ..settings() }] {
            let error = Service::start(&path, open(&path), settings).err().unwrap();
            assert!(error.to_string().contains("choose a shorter path"), "{error}");
        }
    }

    #[test]
    fn what_cannot_listen_is_said() {
        let folder = made();
        let path = folder.path();
        let store = open(path);
        let first = Service::start(path, Arc::clone(&store), ServiceSettings::default()).unwrap();
        assert!(first.stats_address().is_none() && !path.join(STAT_SOCKET).exists(), "nobody answers there");
        let error = Service::start(path, store, ServiceSettings::default()).err().unwrap();
        assert!(error.to_string().contains("another server listens"), "{error}");
    }
}
