//! Transfer of a backup from a server to another process, over a Unix socket.
//!
//! The client asks for a description (`describe` and a line feed), creates the new store, and starts the backup
//! (`begin` and a line feed). The numbers of the answers are little-endian. The description:
//!
//! ```text
//! 0    u32   magic `BMBU`
//! 4    u32   version: 1
//! 8    u64   sectors of the device
//! 16   u64   sectors that hold data, at this moment
//! 24   u64   length of the text
//! 32         the text: TOML with the device
//! ```
//!
//! After that records, each with a head of 24 bytes:
//!
//! ```text
//! 0    u32   kind: 1 sectors with their data, 2 sectors that cannot be read, 3 the end, 4 no backup
//! 4    u32   0
//! 8    u64   first sector; with kind 3 the sectors in all records of kind 1
//! 16   u64   sectors; with kind 4 the length of the text
//! 24         the data; with kind 4 a text with the reason
//! ```
//!
//! A backup without a record of kind 3 is not complete.

use std::io::{self, BufReader, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bimetal_core::device::Device;
use rustix::net::Shutdown;

use super::{Backups, Interrupter, Running, Sink};
use crate::block_device::{BlockDevice, SECTOR_BYTES};
use crate::clients::Client;
use crate::endpoint::{Awaited, connect};
use crate::nbd::Timed;
use crate::store::{InFile, Read, Source, Store, StoreError, Take, u32_at, u64_at};

const MAGIC: u32 = u32::from_le_bytes(*b"BMBU");
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 32;
const RECORD_BYTES: usize = 24;
const DATA: u32 = 1;
const LOST: u32 = 2;
const END: u32 = 3;
const REFUSED: u32 = 4;
/// Maximum number of bytes of a text, and of sectors of a record.
const TEXT_BYTES_MAX: u64 = 1 << 20;
const SECTORS_MAX: u64 = 1 << 16;

const DESCRIBE: &[u8] = b"describe\n";
const BEGIN: &[u8] = b"begin\n";
/// Time limit for a client to send a question or to take a record. Writers of the device may have to wait for it.
const STALL: Duration = Duration::from_secs(10);
/// Time limit for a client to create its store.
const PREPARATION: Duration = Duration::from_secs(3600);
/// Time for which a client waits for the server.
const SILENCE: Duration = Duration::from_secs(60);

fn record(kind: u32, sector: u64, sectors: u64) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..4].copy_from_slice(&kind.to_le_bytes());
    bytes[8..16].copy_from_slice(&sector.to_le_bytes());
    bytes[16..].copy_from_slice(&sectors.to_le_bytes());
    bytes
}

/// Sends all parts to a client. Fails if the client does not take them within `patience`.
fn send(client: &Arc<Client>, parts: [&[u8]; 2], patience: Duration) -> io::Result<()> {
    let mut socket = Timed::new(Arc::clone(client), Instant::now() + patience, Duration::ZERO);
    parts.into_iter().try_for_each(|part| socket.write_all(part))
}

/// Sends the copied sectors to a client.
struct Sending {
    client: Arc<Client>,
    patience: Duration,
    sent: Arc<AtomicU64>,
}

impl Sink for Sending {
    fn take(&mut self, sector: u64, bytes: &[u8]) -> io::Result<()> {
        let sectors = bytes.len() as u64 / SECTOR_BYTES;
        send(&self.client, [&record(DATA, sector, sectors), bytes], self.patience)?;
        self.sent.fetch_add(sectors, Ordering::Relaxed);
        Ok(())
    }

    fn lose(&mut self, sector: u64, sectors: u64) -> io::Result<()> {
        send(&self.client, [&record(LOST, sector, sectors), &[]], self.patience)
    }

    fn interrupter(&self) -> Interrupter {
        let client = Arc::clone(&self.client);
        Box::new(move || client.shutdown(Shutdown::Both))
    }
}

/// Serves a client that asks for a backup of a store, until the backup is complete or the client is gone.
///
/// # Errors
/// The client has gone, was too slow, or asked for something else; the store is being stopped.
pub(crate) fn serve(client: &Arc<Client>, store: &Store, backups: &Backups) -> io::Result<()> {
    serve_within(client, store, backups, STALL)
}

fn serve_within(client: &Arc<Client>, store: &Store, backups: &Backups, patience: Duration) -> io::Result<()> {
    expect(client, DESCRIBE, STALL)?;
    let text = toml::to_string(&store.resolved().device).map_err(io::Error::other)?;
    let mut head = [MAGIC, VERSION].map(u32::to_le_bytes).concat();
    let numbers = [store.sectors(), store.status().written_sectors, text.len() as u64];
    head.extend(numbers.map(u64::to_le_bytes).concat());
    send(client, [&head, text.as_bytes()], patience)?;
    expect(client, BEGIN, PREPARATION)?;
    let sent = Arc::<AtomicU64>::default();
    let sending = Sending { client: Arc::clone(client), patience, sent: Arc::clone(&sent) };
    let transferred = match backups.begin(Box::new(sending)) {
        Ok(running) => transfer(client, running, &sent, patience),
        Err(why) => return refuse(client, why, patience),
    };
    transferred.inspect_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            tracing::info!("the client of a backup has gone; the backup is not complete");
        }
        io::ErrorKind::TimedOut => {
            let reason = format!("its client took no data for {} s", patience.as_secs());
            tracing::warn!(reason, "a backup was dropped");
        }
        _ => tracing::warn!(reason = %error, "a backup was dropped"),
    })
}

fn transfer(client: &Arc<Client>, mut running: Running<'_>, sent: &AtomicU64, patience: Duration) -> io::Result<()> {
    loop {
        match running.step() {
            Ok(step) if step.is_continue() => {}
            Ok(_) => break,
            // It takes no text either, and a record may be incomplete.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
            Err(error) => {
                refuse(client, &error.to_string(), patience).ok();
                return Err(error);
            }
        }
    }
    drop(running);
    send(client, [&record(END, sent.load(Ordering::Relaxed), 0), &[]], patience)
}

fn refuse(client: &Arc<Client>, why: &str, patience: Duration) -> io::Result<()> {
    send(client, [&record(REFUSED, 0, why.len() as u64), why.as_bytes()], patience)
}

fn expect(client: &Arc<Client>, line: &[u8], patience: Duration) -> io::Result<()> {
    let mut asked = vec![0; line.len()];
    Timed::new(Arc::clone(client), Instant::now() + patience, Duration::ZERO).read_exact(&mut asked)?;
    if asked == line { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// A served store as the source of a copy: its state at the moment at which the copy begins.
pub struct Served {
    server: BufReader<Awaited>,
    sectors: u64,
    written: u64,
    device: Option<Device>,
}

impl Served {
    /// Asks the server at `socket`.
    ///
    /// # Errors
    /// No server listens there, or the answer is not that of a server of this version.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        Self::over(connect(socket)?, SILENCE)
    }

    fn over(server: UnixStream, silence: Duration) -> io::Result<Self> {
        let mut server = BufReader::with_capacity(256 << 10, Awaited::new(server, silence)?);
        let mut head = [0; HEAD_BYTES];
        let asked = server.get_mut().write_all(DESCRIBE).and_then(|()| server.read_exact(&mut head));
        asked.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                io::Error::other("it is stopping, or other backups are being prepared; try again when they have ended")
            }
            _ => error,
        })?;
        let [magic, version] = [0, 4].map(|at| u32_at(&head, at));
        if (magic, version) != (MAGIC, VERSION) {
            return Err(io::Error::other("the server is of another version; stop it and copy the store then"));
        }
        let text = text(&mut server, u64_at(&head, 24))?;
        let device = toml::from_str(&text).ok();
        Ok(Self { server, sectors: u64_at(&head, 8), written: u64_at(&head, 16), device })
    }

    fn receive(&mut self, take: Take<'_>) -> io::Result<Read> {
        self.server.get_mut().write_all(BEGIN)?;
        let (mut handed, mut lost): Read = (0, Vec::new());
        let (mut head, mut bytes) = ([0; RECORD_BYTES], Vec::new());
        loop {
            self.server.read_exact(&mut head)?;
            let (kind, sector, sectors) = (u32_at(&head, 0), u64_at(&head, 8), u64_at(&head, 16));
            let is_within = sector.checked_add(sectors).is_some_and(|end| end <= self.sectors);
            match kind {
                DATA if is_within && sectors <= SECTORS_MAX => {
                    bytes.resize((sectors * SECTOR_BYTES) as usize, 0);
                    self.server.read_exact(&mut bytes)?;
                    take(sector, &bytes)?;
                    handed += sectors;
                }
                LOST if is_within => lost.push((sector, sectors)),
                END if sector == handed => break,
                REFUSED => return Err(io::Error::other(text(&mut self.server, sectors)?)),
                _ => return Err(io::Error::other("the server's answer makes no sense")),
            }
        }
        lost.sort_unstable();
        Ok((handed, lost))
    }
}

fn text(server: &mut impl io::Read, bytes: u64) -> io::Result<String> {
    if bytes > TEXT_BYTES_MAX {
        return Err(io::Error::other("the server's answer makes no sense"));
    }
    let mut text = vec![0; bytes as usize];
    server.read_exact(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

impl Source for Served {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn written_sectors(&self) -> u64 {
        self.written
    }

    fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    fn read_all(&mut self, take: Take<'_>) -> Result<Read, StoreError> {
        let ended = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other(format!(
                "it has ended the backup: it was stopped, or it dropped the backup because no data were taken for {} s",
                STALL.as_secs()
            )),
            _ => error,
        };
        self.receive(take).map_err(ended).in_file("the server")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    use bimetal_core::scheme::SCHEMES;
    use rustix::net::sockopt::set_socket_send_buffer_size;

    use crate::backup::{BackedUp, CHUNK_SECTORS};
    use crate::store::backing::Storage;
    use crate::store::crash_backing::CrashStorage;
    use crate::store::soak::TINY;
    use crate::store::{CreateOptions, OpenOptions, create};

    fn client(socket: UnixStream) -> Arc<Client> {
        Arc::new(Client::new(socket.into(), None))
    }

    fn store() -> (Arc<CrashStorage>, Arc<Store>) {
        let storage = Arc::new(CrashStorage::new());
        let device = TINY[0].device(SCHEMES[0], 0).unwrap();
        create(storage.as_ref(), &device, &CreateOptions { number: Some(1), ..CreateOptions::default() }).unwrap();
        let store = Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
        (storage, Arc::new(store))
    }

    /// First sector, first byte and length.
    type Run = (u64, u8, usize);

    fn runs(served: &mut Served) -> Result<(Vec<Run>, Read), StoreError> {
        let mut runs = Vec::new();
        let read = served.read_all(&mut |sector, bytes| {
            runs.push((sector, bytes[0], bytes.len()));
            Ok(())
        })?;
        Ok((runs, read))
    }

    #[test]
    fn a_client_gets_what_is_there_and_what_is_lost() {
        let (storage, store) = store();
        store.write(8, &[1; 4096], true).unwrap();
        store.write(64, &[2; 4096], true).unwrap();
        let length = storage.bytes("region0.flash").len();
        // Damages the first page that was written.
        storage.flip("region0.flash", (4096 + 5) * 8);
        assert!(length > 4096 && store.sectors() < CHUNK_SECTORS);
        let backups = Backups::new(Arc::<Store>::clone(&store));
        let (one, other) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            let serving = scope.spawn(|| serve(&client(one), &store, &backups));
            let mut served = Served::over(other, SILENCE).unwrap();
            let device = &store.resolved().device;
            assert_eq!(
                (served.sectors(), served.written_sectors(), served.device()),
                (store.sectors(), 16, Some(device))
            );
            let found = runs(&mut served).unwrap();
            assert_eq!(found, (vec![(64, 2, 4096)], (8, vec![(8, 8)])));
            serving.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_second_one_is_refused_and_a_client_that_goes_away_leaves_room_for_the_next() {
        let (_, store) = store();
        store.write(8, &[1; 4096], true).unwrap();
        let backups = Arc::new(Backups::new(Arc::<Store>::clone(&store)));
        let used = BackedUp::new(Arc::clone(&store) as _, Arc::clone(&backups));
        let ask = || {
            let (one, other) = UnixStream::pair().unwrap();
            let (store, backups) = (Arc::clone(&store), Arc::clone(&backups));
            let serving = thread::spawn(move || serve(&client(one), &store, &backups));
            (Served::over(other, SILENCE).unwrap(), serving)
        };
        let sending = Sending { client: client(UnixStream::pair().unwrap().0), patience: STALL, sent: Arc::default() };
        let running = backups.begin(Box::new(sending));
        let (mut second, serving) = ask();
        let refusal = runs(&mut second).unwrap_err().to_string();
        assert!(refusal.contains("`the server`: another backup"), "{refusal}");
        serving.join().unwrap().unwrap();
        // No client takes the data that the write is about to change.
        used.write(8, &[2; 4096], false).unwrap();
        assert_eq!(running.unwrap().step().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let (gone, serving) = ask();
        drop(gone);
        serving.join().unwrap().unwrap_err();
        let (mut next, serving) = ask();
        assert_eq!(runs(&mut next).unwrap(), (vec![(8, 2, 4096)], (8, vec![])));
        serving.join().unwrap().unwrap();
        let (mut last, serving) = ask();
        store.close().unwrap();
        let refusal = runs(&mut last).unwrap_err().to_string();
        assert!(refusal.contains("closed") || refusal.contains("stopped"), "{refusal}");
        serving.join().unwrap().unwrap_err();
    }

    /// A backup whose client stalls after the first of two records: what the client learns, and the server's result.
    fn stalled(patience: Duration, meanwhile: impl FnOnce(&Backups)) -> (String, io::Error) {
        let (_, store) = store();
        store.write(0, &[1; 512 * SECTOR_BYTES as usize], true).unwrap();
        let backups = Backups::new(Arc::<Store>::clone(&store));
        let (one, other) = UnixStream::pair().unwrap();
        // Less than a record.
        set_socket_send_buffer_size(&one, 4096).unwrap();
        let (ends, ended) = channel();
        let (mut meanwhile, mut result) = (Some(meanwhile), None);
        thread::scope(|scope| {
            let (store, backups) = (&store, &backups);
            scope.spawn(move || ends.send(serve_within(&client(one), store, backups, patience)));
            let mut served = Served::over(other, SILENCE).unwrap();
            let read = served.read_all(&mut |_, _| {
                meanwhile.take().unwrap()(backups);
                result = Some(ended.recv().unwrap().unwrap_err());
                Ok(())
            });
            (read.unwrap_err().to_string(), result.unwrap())
        })
    }

    #[test]
    fn a_client_that_takes_nothing_is_dropped_and_learns_why() {
        let (told, ended) = stalled(Duration::from_millis(200), |_| {});
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        assert!(
            told.contains("it was stopped, or it dropped the backup because no data were taken for 10 s"),
            "{told}"
        );
    }

    #[test]
    fn a_client_that_takes_nothing_is_not_waited_for_when_the_server_stops() {
        let (told, ended) = stalled(Duration::from_secs(3600), Backups::close);
        assert_eq!(ended.to_string(), "the server is stopping");
        assert!(told.contains("it was stopped, or"), "{told}");
    }

    #[test]
    fn a_server_that_is_silent_is_not_waited_for() {
        let silence = Duration::from_millis(20);
        let (_server, client) = UnixStream::pair().unwrap();
        let error = Served::over(client, silence).map(drop).unwrap_err();
        assert!(error.to_string().contains("stopped or hung"), "{error}");
        let (mut server, client) = UnixStream::pair().unwrap();
        let mut head = [MAGIC, VERSION].map(u32::to_le_bytes).concat();
        head.extend([8, 0, 0_u64].map(u64::to_le_bytes).concat());
        server.write_all(&head).unwrap();
        let error = runs(&mut Served::over(client, silence).unwrap()).unwrap_err();
        assert!(error.to_string().contains("stopped or hung"), "{error}");
    }

    #[test]
    fn a_client_that_gets_no_place_learns_why() {
        let (server, client) = UnixStream::pair().unwrap();
        drop(server);
        let error = Served::over(client, SILENCE).map(drop).unwrap_err();
        assert!(error.to_string().contains("other backups are being prepared"), "{error}");
    }

    #[test]
    fn an_answer_that_makes_no_sense_is_refused() {
        let (_, store) = store();
        for wrong in [
            record(DATA, 5000, 1),
            record(DATA, u64::MAX, 2),
            record(END, 1, 0),
            record(REFUSED, 0, u64::MAX),
            record(9, 0, 0),
        ] {
            let (mut one, other) = UnixStream::pair().unwrap();
            let mut head = [MAGIC, VERSION].map(u32::to_le_bytes).concat();
            head.extend([store.sectors(), 0, 0].map(u64::to_le_bytes).concat());
            one.write_all(&head).unwrap();
            one.write_all(&wrong).unwrap();
            let refusal = runs(&mut Served::over(other, SILENCE).unwrap()).unwrap_err().to_string();
            assert!(refusal.contains("makes no sense"), "{refusal}");
        }
    }
}
