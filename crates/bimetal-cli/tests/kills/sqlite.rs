//! SQLite: transactions of its shell, in a write-ahead log or with a rollback journal.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::cycles::Work;
use crate::served::run;
use crate::transactions::{EVERYTHING, TABLES, Transactions};

/// A database with one client that writes.
pub struct Sqlite {
    /// Settings that make commits durable: after the deletion of a journal, its folder must be synced, too.
    settings: [&'static str; 2],
    transactions: Transactions,
}

impl Sqlite {
    pub fn new(seed: u64) -> Self {
        let settings = match seed % 2 {
            0 => ["PRAGMA journal_mode = wal", "PRAGMA synchronous = full"],
            _ => ["PRAGMA journal_mode = delete", "PRAGMA synchronous = extra"],
        };
        Self { settings, transactions: Transactions::new(seed) }
    }

    fn ask(fs: &Path, statements: &str) -> Result<String, String> {
        run("sqlite3", &["-bail", fs.join("database").to_str().unwrap(), statements])
    }
}

impl Work for Sqlite {
    const CAPACITY: &str = "48MiB";
    const SPAN: Duration = Duration::from_millis(800);

    fn prepare(&mut self, fs: &Path) -> Result<(), String> {
        Self::ask(fs, &format!("{}; {TABLES}", self.settings[0]))?;
        run("sync", &["--file-system", fs.to_str().unwrap()]).map(drop)
    }

    fn verify(&mut self, fs: &Path) -> Result<u64, String> {
        let shown = Self::ask(fs, EVERYTHING)?;
        let check = Self::ask(fs, "PRAGMA integrity_check")?;
        if check.trim() != "ok" {
            return Err(format!("DAMAGED: {check}"));
        }
        self.transactions.verify(&shown)
    }

    fn work(&mut self, fs: &Path, lives: &(dyn Fn() -> bool + Sync)) -> String {
        let mut client = Command::new("sqlite3");
        client.arg("-bail").arg("-cmd").arg(self.settings[1]).arg(fs.join("database"));
        self.transactions.work(&mut client, lives)
    }

    fn acknowledged(&self) -> u64 {
        self.transactions.acknowledged
    }
}
