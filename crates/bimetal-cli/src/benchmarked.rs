//! JSON output of `bimetal bench`. It is not in the module of the command, whose arguments list the outputs with a
//! schema.

use schemars::JsonSchema;
use serde::Serialize;

/// A workload on two servers in turns.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// The memory or the files behind both servers.
    pub backing: String,
    /// Kind, size and number of the requests in flight.
    pub workload: &'static str,
    /// The other program.
    pub other_program: &'static str,
    /// Requests per second in each round.
    pub bimetal: Vec<f64>,
    /// The same of the other program.
    pub other: Vec<f64>,
    /// Median of the rounds' ratios of requests per second, `bimetal`'s by the other program's.
    pub ratio: f64,
    /// 99th percentile of the time from a request to its reply, in microseconds, in each round.
    pub bimetal_p99_us: Vec<f64>,
    /// The same of the other program.
    pub other_p99_us: Vec<f64>,
    /// The longest of these times in each round, flushes included.
    pub bimetal_longest_us: Vec<f64>,
    /// The same of the other program.
    pub other_longest_us: Vec<f64>,
    /// Microseconds of processor time for each request in each round, of the server alone; none for a server in the kernel.
    pub bimetal_cpu_us: Vec<f64>,
    /// The same of the other program.
    pub other_cpu_us: Vec<f64>,
    /// Median of the rounds' ratios: processor time of the other program in multiples of `bimetal`'s.
    pub cpu_ratio: Option<f64>,
    /// Pages programmed per page that the host wrote.
    pub write_amplification: Option<f64>,
}
