//! PostgreSQL: a cluster with checksums, whose server loses its disk and is restarted on it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::machine::has;
use crate::cycles::Work;
use crate::served::{run, until};
use crate::transactions::{EVERYTHING, TABLES, Transactions};

/// The folder of its programs. On Debian they are not in the path, and several versions may be installed.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin")).max().unwrap_or_default()
}

fn program(name: &str) -> String {
    programs().join(name).to_str().unwrap().to_owned()
}

/// Whether it is installed.
pub fn can_run() -> bool {
    let programs = ["initdb", "postgres", "psql", "pg_amcheck", "pg_checksums"].map(program);
    has(&[&["setpriv"], &programs.each_ref().map(String::as_str)[..]].concat())
}

/// Options to run a program as PostgreSQL's user: it refuses to run as root.
const AS_USER: [&str; 3] = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];

fn run_as_user(name: &str, arguments: &[&str]) -> Result<String, String> {
    run("setpriv", &[&AS_USER[..], &[&program(name)], arguments].concat())
}

/// A cluster with one client that writes.
pub struct Postgresql(Transactions);

impl Postgresql {
    pub fn new(seed: u64) -> Self {
        Self(Transactions::new(seed))
    }
}

/// A running server; its socket is beside its data.
struct Postmaster(Child);

impl Postmaster {
    fn start(data: &Path) -> Result<Self, String> {
        let log = File::create(data.join("../../postgresql.log")).unwrap();
        let mut command = Command::new("setpriv");
        command.args(AS_USER).arg(program("postgres")).arg("-D").arg(data).arg("-k").arg(data);
        // Small, so that rare work happens often.
        for setting in ["listen_addresses=", "shared_buffers=4MB", "min_wal_size=2MB", "max_wal_size=4MB"] {
            command.args(["-c", setting]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut postmaster = Self(child);
        until("PostgreSQL takes connections", || match postmaster.0.try_wait().unwrap() {
            Some(status) => Err(format!("PostgreSQL has ended: {status}")),
            None => Ok(ask(data, "SELECT 1").is_ok()),
        })?;
        Ok(postmaster)
    }

    /// Asks it to stop, and waits for its end. Fails if it ended with an error.
    fn stop(&mut self, signal: &str) -> Result<(), String> {
        run("kill", &[signal, &self.0.id().to_string()])?;
        let mut status = None;
        until("PostgreSQL stops", || {
            status = self.0.try_wait().unwrap();
            Ok(status.is_some())
        })?;
        if status.unwrap().success() { Ok(()) } else { Err(format!("PostgreSQL has ended: {status:?}")) }
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        // Its disk is gone, so it must stop at once, without further writes.
        let is_running = self.0.try_wait().unwrap().is_none();
        if is_running && self.stop("-QUIT").is_err() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

fn connection(data: &Path) -> [String; 4] {
    ["-h".into(), data.to_str().unwrap().into(), "-U".into(), "postgres".into()]
}

const QUIETLY: [&str; 8] = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", "postgres"];

fn ask(data: &Path, statements: &str) -> Result<String, String> {
    let connection = connection(data);
    let arguments = [&connection.each_ref().map(String::as_str)[..], &QUIETLY, &["-c", statements]].concat();
    run(&program("psql"), &arguments)
}

impl Work for Postgresql {
    const CAPACITY: &str = "160MiB";
    const SPAN: Duration = Duration::from_millis(1500);

    fn prepare(&mut self, fs: &Path) -> Result<(), String> {
        let data = fs.join("data");
        fs::create_dir(&data).unwrap();
        run("chown", &["postgres:postgres", data.to_str().unwrap()])?;
        let options = ["--data-checksums", "--wal-segsize=1", "--auth=trust", "--no-locale", "--no-sync"];
        run_as_user("initdb", &[&["-D", data.to_str().unwrap(), "-U", "postgres"], &options[..]].concat())?;
        let mut postmaster = Postmaster::start(&data)?;
        ask(&data, TABLES)?;
        ask(&data, "CREATE EXTENSION amcheck")?;
        postmaster.stop("-INT")?;
        run("sync", &["--file-system", fs.to_str().unwrap()]).map(drop)
    }

    fn verify(&mut self, fs: &Path) -> Result<u64, String> {
        let data = fs.join("data");
        let mut postmaster = Postmaster::start(&data)?;
        let shown = ask(&data, EVERYTHING)?;
        let connection = connection(&data);
        let all = ["--all", "--heapallindexed", "--rootdescend"];
        run(&program("pg_amcheck"), &[&connection.each_ref().map(String::as_str)[..], &all].concat())?;
        postmaster.stop("-INT")?;
        run_as_user("pg_checksums", &["--check", "-D", data.to_str().unwrap()])?;
        self.0.verify(&shown)
    }

    fn work(&mut self, fs: &Path, lives: &(dyn Fn() -> bool + Sync)) -> String {
        let data = fs.join("data");
        match Postmaster::start(&data) {
            Ok(_postmaster) => {
                let mut client = Command::new(program("psql"));
                self.0.work(client.args(connection(&data)).args(QUIETLY), lives)
            }
            Err(what) => what,
        }
    }

    fn acknowledged(&self) -> u64 {
        self.0.acknowledged
    }
}
