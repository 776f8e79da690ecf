//! Generated workloads as traces.

use bimetal_core::request::{Op, SECTOR_BYTES};
use bimetal_core::trace::{Trace, TraceDevice};
use bimetal_core::workload;

use crate::{StudyError, memory};

/// Name of the format in results of requests that come from no file.
pub const FORMAT: &str = "generated";

/// Sectors to which devices of traces are rounded up: 1 MiB.
const DEVICE_STEP: u64 = 2048;

/// Generates a workload.
///
/// # Errors
/// An unknown workload or parameter, parameters that do not fit together, or more requests than memory holds.
pub fn trace(name: &str, settings: &[(String, String)], seed: u64) -> Result<Trace, StudyError> {
    let all = workload::settings(name, settings)?;
    let count = all.iter().find_map(|(key, value)| (key == "requests").then(|| value.parse::<u64>().ok()).flatten());
    // In memory, and once more as the bytes of a file.
    memory::check_bytes(count.unwrap_or(0).saturating_mul(2 * size_of::<bimetal_core::request::Request>() as u64))?;
    let requests: Vec<_> = workload::build(name, settings, seed)?.collect();
    let mut trace = Trace {
        name: name.to_owned(),
        format: FORMAT,
        devices: Vec::new(),
        reads: 0,
        writes: 0,
        trims: 0,
        read_bytes: 0,
        write_bytes: 0,
        origin_ns: 0,
        warnings: Vec::new(),
        requests: Vec::new(),
    };
    let mut end = 0;
    for request in &requests {
        end = end.max(request.end());
        match request.op {
            Op::Read => {
                trace.reads += 1;
                trace.read_bytes += u64::from(request.sectors) * SECTOR_BYTES;
            }
            Op::Write => {
                trace.writes += 1;
                trace.write_bytes += u64::from(request.sectors) * SECTOR_BYTES;
            }
            Op::Trim => trace.trims += 1,
        }
    }
    let sectors = end.next_multiple_of(DEVICE_STEP);
    trace.devices.push(TraceDevice { id: 0, base_sector: 0, sectors, requests: requests.len() as u64 });
    trace.requests = requests;
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_core::trace::{Options, decode};
    use bimetal_core::workload::WORKLOADS;

    #[test]
    fn every_workload_survives_every_format() {
        for spec in WORKLOADS {
            let trace = trace(spec.name, &[("requests".into(), "500".into())], 3).unwrap();
            for writer in crate::writer::WRITERS {
                let bytes = (writer.encode)(&trace).unwrap();
                let read = decode("x", &bytes, &Options::default()).unwrap();
                let places = |trace: &Trace| -> Vec<_> {
                    trace.requests.iter().map(|request| (request.sector, request.sectors, request.op)).collect()
                };
                assert_eq!(places(&read), places(&trace), "{} as {}", spec.name, writer.format);
            }
        }
    }

    #[test]
    fn more_than_memory_holds_is_refused() {
        let error = trace(WORKLOADS[0].name, &[("requests".into(), "1000000000000".into())], 1).unwrap_err();
        assert!(!error.to_string().is_empty());
    }
}
