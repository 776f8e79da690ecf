//! Transactions of a database, and the number of committed ones.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use bimetal_core::part::random::{below, split_mix};

/// Statements that make the tables.
pub const TABLES: &str = "CREATE TABLE entries(n INTEGER PRIMARY KEY, value TEXT); \
                          CREATE INDEX by_value ON entries(value); \
                          CREATE TABLE total(n INTEGER); INSERT INTO total VALUES(0);";
/// Query for all committed data: the number of transactions, and a line for each.
pub const EVERYTHING: &str = "SELECT n FROM total; SELECT n || ' ' || value FROM entries ORDER BY n;";

/// Transactions, numbered from 1. Each adds a line to one table and one to a number in the other.
pub struct Transactions {
    seed: u64,
    /// Number of transactions that the database has reported as committed.
    pub committed: u64,
    /// Whether one more was requested and not answered.
    is_pending: bool,
    /// Total number of acknowledged commits.
    pub acknowledged: u64,
}

impl Transactions {
    pub fn new(seed: u64) -> Self {
        Self { seed, committed: 0, is_pending: false, acknowledged: 0 }
    }

    /// A pseudo-random text of random length.
    fn value(&self, number: u64) -> String {
        let mut random = self.seed << 32 | number;
        let most = 1 << below(&mut random, 8);
        let words = 1 + below(&mut random, most);
        (0..words).map(|_| format!("{:016x}", split_mix(&mut random))).collect()
    }

    /// Commits transactions by a client that reads statements and writes answers, until an error. Returns the error.
    pub fn work(&mut self, client: &mut Command, lives: &(dyn Fn() -> bool + Sync)) -> String {
        let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut statements, mut answers) =
            (client.stdin.take().unwrap(), BufReader::new(client.stdout.take().unwrap()));
        let what = loop {
            let number = self.committed + 1;
            let statement = format!(
                "BEGIN; INSERT INTO entries VALUES({number}, '{}'); UPDATE total SET n = n + 1; COMMIT; SELECT {number};\n",
                self.value(number)
            );
            self.is_pending = true;
            if let Err(error) = statements.write_all(statement.as_bytes()).and_then(|()| statements.flush()) {
                break error.to_string();
            }
            let mut answer = String::new();
            match answers.read_line(&mut answer) {
                Ok(_) if answer.trim() == number.to_string() => {}
                Ok(_) => break format!("the client answers `{answer}`"),
                Err(error) => break error.to_string(),
            }
            if !lives() {
                break "the server no longer lives".into();
            }
            (self.committed, self.is_pending) = (number, false);
            self.acknowledged += 1;
        };
        drop(statements);
        let mut said = String::new();
        client.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        client.wait().unwrap();
        format!("{what}: {said}")
    }

    /// Compares the output of [`EVERYTHING`] with the committed data. Returns the number of transactions.
    pub fn verify(&mut self, shown: &str) -> Result<u64, String> {
        let mut lines = shown.lines();
        let total = lines.next().and_then(|line| line.parse::<u64>().ok()).ok_or("LOST: there is no total")?;
        let most = self.committed + u64::from(self.is_pending);
        if !(self.committed..=most).contains(&total) {
            return Err(format!("LOST: {} transactions were committed, there are {total}", self.committed));
        }
        for number in 1..=total {
            let expected = format!("{number} {}", self.value(number));
            if lines.next() != Some(&expected) {
                return Err(format!("LOST: transaction {number} of {total} is not as it was committed"));
            }
        }
        if let Some(line) = lines.next() {
            return Err(format!("LOST: there is more than was committed: {line}"));
        }
        // A transaction without an answer was either committed or not; this is known now.
        (self.committed, self.is_pending) = (total, false);
        Ok(total)
    }
}
