//! CacheLib: Meta's key-value caches and block storage, published as CSV for CacheBench.
//!
//! Key-value traces have a header of `key,op,size,op_count,key_size[,ttl]` (2022, 2023) or
//! `op_time,key,key_size,op,op_count,size,cache_hits,ttl[,usecase,sub_usecase]` (2022, 2024): seconds, bytes, and
//! `GET`, `GET_LEASE`, `SET`, `SET_LEASE` or `DELETE`. Traces of block storage have
//! `op_time,block_id,block_id_size,io_size,io_offset,…,op_name,op_count,…`, where a name begins with `getChunkData` or
//! `putChunk`. (CacheLib, KVReplayGenerator.h and its tests.)
//!
//! Traps: a line stands for `op_count` equal operations. The size is that of the value, and 0 for a `GET` that missed.
//! Some files of 2022 and 2023 lack `op_time` and have no times.

use super::super::error::{ErrorKind, Fault, Parsed};
use super::super::{Format, Shared, TimeUnit};
use super::csv::{self, Names};
use crate::request::Op;

/// The format's entry in [`FORMATS`](crate::trace::FORMATS).
pub static FORMAT: Format = Format {
    name: "cachelib",
    aliases: &["kvcache"],
    summary: "CacheLib's CSV of key-value caches and of block storage (Meta)",
    layout: "[op_time,]key,op,size,op_count or op_time,block_id,io_size,io_offset,op_name,op_count by a header: seconds, bytes, GET or SET or DELETE",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: true,
    has_columns: false,
    shared: Shared::Nothing,
    probe: |sample| csv::probe(sample, &NAMES),
    decode: |input| csv::decode(input, &NAMES),
};

const NAMES: Names = Names {
    time: &["op_time"],
    key: &["key", "block_id"],
    op: &["op", "op_name"],
    size: &["size", "io_size"],
    offset: &["io_offset"],
    times: &["op_count"],
    needed: &["op_count"],
    keys_are_numbers: false,
    operation,
};

fn operation(text: &[u8]) -> Parsed<Option<Op>> {
    match text {
        b"GET" | b"GET_LEASE" => Ok(Some(Op::Read)),
        b"SET" | b"SET_LEASE" => Ok(Some(Op::Write)),
        b"DELETE" => Ok(Some(Op::Trim)),
        _ if text.starts_with(b"getChunkData") => Ok(Some(Op::Read)),
        _ if text.starts_with(b"putChunk") => Ok(Some(Op::Write)),
        // Block storage has further operations, which move no data.
        _ if text.contains(&b'.') => Ok(None),
        _ => Err(Fault::field(ErrorKind::Field, "op", "is none of CacheLib's", text)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{fault_of, read_as};
    use super::super::super::{self as trace, Options};
    use super::*;

    /// Built from the layouts, with lines from CacheLib's documentation and tests.
    const WITHOUT_TIMES: &str = "key,op,size,op_count,key_size\n\
                                 1668757755,SET,82,1,40\n1668757755,GET,0,1,40\n1665497896,GET,169,18,78\n1665497896,DELETE,0,1,78\n";
    const WITH_TIMES: &str = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
                              604038471,82131353f9ddc8c6,48,GET,1,87,1,0,366387042,3003229276\n\
                              604038471,a54f88ab02ece24d,24,GET,3,0,0,0,699950563,699950563\n\
                              604038473,82131353f9ddc8c6,48,SET_LEASE,1,1065,0,7200,2777918327,655456894\n";

    fn read(text: &str) -> trace::Trace {
        trace::decode("t", text.as_bytes(), &Options::default()).unwrap()
    }

    #[test]
    fn a_line_is_as_many_operations_as_it_counts() {
        let trace = read(WITHOUT_TIMES);
        assert_eq!((trace.format, trace.writes, trace.reads, trace.trims), ("cachelib", 1, 18, 1));
        assert_eq!(trace.requests.last().map(|request| (request.sector, request.sectors)), Some((1, 1)));
        assert!(
            trace.warnings.iter().any(|warning| warning.starts_with("1 zero-length request")),
            "{:?}",
            trace.warnings
        );
        assert!(trace.warnings.iter().any(|warning| warning.contains("one time stamp")), "{:?}", trace.warnings);
    }

    #[test]
    fn a_slot_has_the_largest_value_and_a_miss_reads_nothing() {
        let trace = read(WITH_TIMES);
        assert_eq!(
            (trace.reads, trace.read_bytes, trace.write_bytes, trace.duration_ns()),
            (1, 87, 1065, 2_000_000_000)
        );
        assert_eq!((trace.requests[0].sectors, trace.requests[1].sectors), (1, 3));
        assert!(
            trace.warnings.iter().any(|warning| warning.starts_with("3 zero-length requests")),
            "{:?}",
            trace.warnings
        );
    }

    #[test]
    fn a_first_read_can_be_what_puts_the_value_there() {
        let options = Options { objects: Some("insert".parse().unwrap()), ..Options::default() };
        let text = "key,op,size,op_count,key_size\nk,GET,100,3,1\nk,DELETE,0,1,1\nk,GET,100,1,1\n";
        let trace = trace::decode("t", text.as_bytes(), &options).unwrap();
        let ops: Vec<Op> = trace.requests.iter().map(|request| request.op).collect();
        assert_eq!(ops, [Op::Write, Op::Read, Op::Read, Op::Trim, Op::Write]);
    }

    #[test]
    fn block_storage_has_offsets_within_blocks() {
        let text = "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id\n\
                    5,a,8,4096,8192,u,n,getChunkData.Temp,1,h,3\n6,b,8,512,0,u,n,putChunk.Permanent,1,h,3\n7,b,8,0,0,u,n,other.x,1,h,3\n";
        let trace = read(text);
        let places: Vec<_> =
            trace.requests.iter().map(|request| (request.op, request.sector, request.sectors)).collect();
        assert_eq!(places, [(Op::Read, 16, 8), (Op::Write, 24, 1)]);
        assert!(
            trace.warnings[0].starts_with("1 operation other than reads and writes left out"),
            "{:?}",
            trace.warnings
        );
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("7,PEEK,82,1,40", "op", "is none of CacheLib's"),
            ("7,GET,82,18446744073709551615,40", "op_count", "stands for more requests"),
            ("7,GET,1099511627777,1,40", "size", "makes an object of more than 1 TiB"),
            ("7,GET,82", "", "is missing"),
        ] {
            fault_of(&FORMAT, WITHOUT_TIMES, line, field, what);
        }
        let by_address = Options { objects: Some("bytes".parse().unwrap()), ..Options::default() };
        let error = trace::decode("t", WITH_TIMES.as_bytes(), &by_address).unwrap_err();
        assert!(error.to_string().contains("field `id` is not a number"), "{error}");
        assert_eq!(read_as(&FORMAT, WITHOUT_TIMES.as_bytes()).devices.len(), 1);
    }
}
