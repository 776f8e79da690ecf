"""Traces from files, arrays and frames."""

import gzip
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import bimetal

TIME = [0, 1_000, 5_000]
OP = [0, 1, 2]
SECTOR = [8, 0, 4096]
SECTORS = [8, 16, 8]


def arrays(**changes: Any) -> bimetal.Trace:
    return bimetal.Trace.from_arrays(**({"time_ns": TIME, "op": OP, "sector": SECTOR, "sectors": SECTORS} | changes))


def test_arrays_come_back(trace: bimetal.Trace) -> None:
    columns = trace.to_arrays()
    found: dict[str, Any] = {**columns}
    assert {name: column.dtype.name for name, column in found.items()} == {
        "time_ns": "uint64",
        "op": "uint8",
        "sector": "uint64",
        "sectors": "uint32",
    }
    again = bimetal.Trace.from_arrays(**columns)
    assert len(again) == len(trace) == len(columns["op"])
    for column, other in zip(again.to_arrays().values(), columns.values(), strict=True):
        np.testing.assert_array_equal(column, other)
    same = bimetal.replay(again, "chang").result
    assert same.ops == bimetal.replay(trace, "chang").result.ops
    assert again.facts.format == "columns"


def test_arrays_without_numpy_are_an_error_of_its_import() -> None:
    """Nothing else has imported it in a new process: there the first arrays of Rust code do."""
    code = "import sys, bimetal; sys.modules['numpy'] = None; bimetal.Trace.sample(limit=9).to_arrays()"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "ModuleNotFoundError" in done.stderr.splitlines()[-1]
    assert "panic" not in done.stderr


def test_placement_handles_come_back() -> None:
    trace = bimetal.Trace.generate("kv-cache", set={"requests": 2000, "span": "64MiB"})
    columns = trace.to_arrays()
    assert len(set(columns["handle"].tolist())) > 1
    again = bimetal.Trace.from_arrays(**columns)
    framed = bimetal.Trace.from_frame({**columns})
    for other in (again, framed):
        np.testing.assert_array_equal(other.to_arrays()["handle"], columns["handle"])
    with pytest.raises(bimetal.TraceError, match="row 0: `handle` is 256"):
        arrays(handle=[256, 0, 0])
    with pytest.warns(bimetal.BimetalWarning, match="handles"):
        trace.like(requests=100)


def test_counts_are_of_the_rows() -> None:
    facts = arrays(name="mine").facts
    assert (facts.name, facts.requests, facts.reads, facts.writes, facts.trims) == ("mine", 3, 1, 1, 1)
    assert (facts.read_bytes, facts.write_bytes, facts.duration_s) == (4096, 8192, 5e-6)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint64", ">i4", "int16"])
def test_integers_of_any_width_are_taken(kind: str) -> None:
    assert arrays(op=np.array(OP, dtype=kind), sectors=np.array(SECTORS, dtype=kind)).facts == arrays().facts


def test_a_column_need_not_be_contiguous() -> None:
    assert arrays(sector=np.array([*SECTOR, *SECTOR])[::1][:3]).facts == arrays().facts
    wide = np.array([SECTOR, TIME]).T
    np.testing.assert_array_equal(arrays(sector=wide[:, 0]).to_arrays()["sector"], SECTOR)


def test_operations_may_be_words_and_times_dates() -> None:
    assert arrays(op=["r", "Write", " TRIM "]).facts == arrays().facts
    assert arrays(op=np.array(["R", "w", "discard"], dtype=object)).facts == arrays().facts
    seconds = np.array(["2026-01-01T00:00:00", "2026-01-01T00:00:01", "2026-01-01T00:01:00"], dtype="datetime64[s]")
    assert arrays(time_ns=seconds).facts.duration_s == 60
    assert arrays(time_ns=np.array([0, 5, 7], dtype="timedelta64[ms]")).facts.duration_s == 7e-3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sector": [8, -1, 0]}, "row 1: `sector` is -1: it cannot be negative"),
        ({"op": [0, 1, 3]}, "row 2: `op` is 3: 0 is a read"),
        ({"op": ["r", "x", "w"]}, "row 1: `op` is 'x': it is `read`"),
        ({"sectors": [8, 0, 8]}, "row 1: `sectors` is 0: a request has at least one sector"),
        ({"sectors": [8, 8, 1 << 32]}, "row 2: `sectors` is 4294967296: a request is below 2 TiB"),
        ({"sector": [8, 1 << 60, 0]}, "row 1: `sector` is 1152921504606846976: the request ends beyond"),
        ({"sector": [8, 0]}, "`sector` has 2 rows and `time_ns` has 3"),
        ({"sector": [SECTOR]}, "`sector` has 2 dimensions"),
        ({"sector": 3}, "`sector` has 0 dimensions"),
        ({"time_ns": [0.0, 0.5, 1.0]}, "`time_ns` is of type float64; it holds integers; hint: in nanoseconds"),
        ({"sector": [8.0, np.nan, 0.0]}, "row 1: `sector` is missing"),
        ({"sector": [8, None, 0]}, "row 1: `sector` is missing"),
        ({"sector": [True, False, True]}, "`sector` is of type bool"),
        ({"sector": ["a", "b", "c"]}, "`sector` is of type <U1"),
        ({"time_ns": np.array([0, "NaT", 1], dtype="timedelta64[s]")}, "row 1: `time_ns` is missing"),
    ],
)
def test_what_is_no_request_is_named_by_its_row(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(")) as raised:
        arrays(**changes)
    assert isinstance(raised.value, bimetal.TraceError)


def test_no_rows_are_no_trace() -> None:
    with pytest.raises(bimetal.TraceError, match="the columns hold no requests"):
        bimetal.Trace.from_arrays(time_ns=[], op=[], sector=[], sectors=[])


def test_rows_out_of_order_are_sorted_with_a_warning() -> None:
    with pytest.warns(bimetal.BimetalWarning, match="1 row out of time order"):
        trace = arrays(time_ns=[5, 3, 9])
    assert trace.to_arrays()["time_ns"].tolist() == [0, 2, 6]


FRAMES: list[Callable[[dict[str, Any]], Any]] = [pd.DataFrame, pl.DataFrame, pa.table, dict, pa.RecordBatch.from_pydict]


@pytest.mark.parametrize("make", FRAMES)
def test_frames_of_every_kind(make: Callable[[dict[str, Any]], Any]) -> None:
    frame = make({"ts": TIME, "kind": ["r", "w", "trim"], "lba": SECTOR, "sectors": SECTORS, "else": [1.5, 2.5, None]})
    names = {"time_ns": "ts", "op": "kind", "sector": "lba"}
    trace = bimetal.Trace.from_frame(frame, names)
    assert trace.facts == arrays(name="frame").facts
    with pytest.raises(bimetal.TraceError, match=r"the frame has no column `op`; it has: ts, kind, lba"):
        bimetal.Trace.from_frame(frame, {"time_ns": "ts"})
    with pytest.raises(bimetal.TraceError, match="a trace has no column `size`"):
        bimetal.Trace.from_frame(frame, {"size": "lba"})
    with pytest.raises(bimetal.TraceError, match=r"row 2: `sectors` is missing"):
        bimetal.Trace.from_frame(make({"ts": TIME, "kind": OP, "lba": SECTOR, "sectors": [8, 8, None]}), names)


NAMED = "time=started:us,op=kind,offset=page:4kib,size=len"


@pytest.mark.parametrize("make", FRAMES)
def test_frames_name_columns_and_units_as_files_do(make: Callable[[dict[str, Any]], Any], tmp_path: Path) -> None:
    data = {"len": [512, 1000, 4096], "kind": ["R", "write", "Trim"], "page": [1, 0, 9], "started": [0.5, 2, 70.25]}
    frame = make(data)
    (tmp_path / "t.csv").write_text(pd.DataFrame(data).to_csv(index=False))
    with pytest.warns(bimetal.BimetalWarning, match="1 request rounded up"):
        text = bimetal.Trace.open(tmp_path / "t.csv", columns=NAMED)
    with pytest.warns(bimetal.BimetalWarning, match="1 request rounded up"):
        trace = bimetal.Trace.from_frame(frame, NAMED)
    read: dict[str, Any] = {**text.to_arrays()}
    for name, column in trace.to_arrays().items():
        np.testing.assert_array_equal(column, read[name])
    # In whole sectors.
    assert trace.facts.write_bytes == text.facts.write_bytes == 1024
    with pytest.raises(bimetal.TraceError, match=r"frame: there is no column `op`, in the columns `len,kind,page,star"):
        bimetal.Trace.from_frame(frame)
    with pytest.raises(bimetal.TraceError, match="there is no `lba`, in the columns"):
        bimetal.Trace.from_frame(frame, NAMED.replace("page", "lba"))
    with pytest.raises(bimetal.TraceError, match=r"row 2: `page` is missing"):
        bimetal.Trace.from_frame(make(data | {"page": [1, 0, None]}), NAMED)
    with pytest.raises(bimetal.TraceError, match=r"frame: row 1: field `size` is negative: `-1`"):
        bimetal.Trace.from_frame(make(data | {"len": [512, -1, 512]}), NAMED)
    with pytest.raises(bimetal.TraceError, match="`time_unit` goes with `columns` as a text"):
        bimetal.Trace.from_frame(frame, {"time_ns": "started"}, time_unit="us")


def test_names_of_a_frame_that_leave_nothing_open_need_no_word() -> None:
    times = pd.to_datetime(["2026-01-01 00:00:00", "2026-01-01 00:00:02", "2026-01-01 00:00:10"])
    columns = {"rw": ["r", "w", "r"], "lba": SECTOR, "bytes": [512, 512, 512]}
    for stamps in (times, times.tz_localize("UTC"), times - times[0]):
        frame = pd.DataFrame({"timestamp": stamps} | columns)
        for given in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            trace = bimetal.Trace.from_frame(given)
            assert (trace.facts.duration_s, trace.facts.writes) == (10, 1)
    whole = pd.DataFrame({"timestamp": [1, 2, 4], "rw": columns["rw"], "lba": SECTOR, "bytes": [512, 512, 512]})
    assert bimetal.Trace.from_frame(whole, time_unit="s").facts.duration_s == 3
    with pytest.raises(bimetal.TraceError, match="field `time` has an unknown unit"):
        bimetal.Trace.from_frame(whole)
    dates = pd.DataFrame({"timestamp": times.strftime("%Y-%m-%dT%H:%M:%SZ")} | columns)
    assert bimetal.Trace.from_frame(dates).facts.duration_s == 10


def test_parquet_files_are_traces(tmp_path: Path) -> None:
    times = pd.to_datetime(["2026-01-01 00:00:00", "2026-01-01 00:00:02", "2026-01-01 00:00:10"])
    kinds = pd.Categorical(["read", "write", "read"])
    frame = pd.DataFrame({"when": times, "rw": kinds, "lba": SECTOR, "n": [8, 8, 8]})
    named = "time=when,op=rw,offset=lba:sectors,size=n:sectors"
    for codec in ("snappy", "gzip", "zstd", "lz4", "none"):
        frame.to_parquet(tmp_path / "t.parquet", compression=codec)
        trace = bimetal.Trace.open(tmp_path / "t.parquet", columns=named)
        assert (trace.facts.format, trace.facts.duration_s, trace.facts.writes) == ("parquet", 10, 1)
    pl.from_pandas(frame).write_parquet(tmp_path / "t.parquet")
    assert len(bimetal.Trace.open(tmp_path / "t.parquet", columns=named)) == 3
    frame.to_parquet(tmp_path / "t.parquet", compression="brotli")
    with pytest.raises(bimetal.TraceError, match="the column `when` is compressed by BROTLI, which is unsupported"):
        bimetal.Trace.open(tmp_path / "t.parquet", columns=named)


def test_arrow_files_are_traces(tmp_path: Path) -> None:
    times = pd.to_datetime(["2026-01-01 00:00:00", "2026-01-01 00:00:02", "2026-01-01 00:00:10"])
    frame = pl.DataFrame({"when": times, "rw": ["read", "write", "read"], "lba": SECTOR, "n": [8, 8, 8]})
    named = "time=when,op=rw,offset=lba:sectors,size=n:sectors"
    categories = frame.with_columns(pl.col("rw").cast(pl.Categorical))
    for table in (frame, categories):
        for codec in ("uncompressed", "lz4", "zstd"):
            table.write_ipc(tmp_path / "t.arrow", compression=codec)
            table.write_ipc_stream(tmp_path / "t.arrows", compression=codec)
            for name in ("t.arrow", "t.arrows"):
                trace = bimetal.Trace.open(tmp_path / name, columns=named)
                assert (trace.facts.format, trace.facts.duration_s, trace.facts.writes) == ("arrow", 10, 1)
    feather.write_feather(frame.to_arrow(), tmp_path / "t.feather")
    assert len(bimetal.Trace.open(tmp_path / "t.feather", columns=named)) == 3
    cut = (tmp_path / "t.arrows").read_bytes()[:-8]
    (tmp_path / "t.arrows").write_bytes(cut)
    with pytest.raises(bimetal.TraceError, match="it lacks the mark at the end of a stream"):
        bimetal.Trace.open(tmp_path / "t.arrows", columns=named)


def test_any_arrow_stream_is_a_frame() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            table = pa.table({"time_ns": TIME, "op": OP, "sector": SECTOR, "sectors": SECTORS})
            return table.__arrow_c_stream__(requested_schema)

    assert bimetal.Trace.from_frame(Stream()).facts == arrays(name="frame").facts


OF_DAY = {"op": ["r", "w", "r"], "lba": SECTOR, "sectors": SECTORS}


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("x.csv", "'x.csv' is not a frame; hint: `Trace.open` reads files"),
        (pl.LazyFrame({"time_ns": TIME}), "a LazyFrame has no values yet; hint: pass `frame.collect()`"),
        (3, "a int has no columns; a frame is a DataFrame, a table or a mapping of arrays"),
        (pa.table({"time_us": pa.array(TIME, "time64[ns]")} | OF_DAY), "`time_us` has times of day"),
        (pl.DataFrame({"time_us": pl.Series(TIME).cast(pl.Time)} | OF_DAY), "`time_us` has times of day"),
    ],
)
def test_what_is_no_frame_is_refused_with_the_way_to_one(frame: object, message: str) -> None:
    with pytest.raises(bimetal.TraceError, match="^" + re.escape(message)):
        bimetal.Trace.from_frame(frame)


def test_a_trace_goes_to_another_process() -> None:
    for trace in (bimetal.Trace.generate("kv-cache", set={"requests": 400}), bimetal.Trace.sample(limit=9)):
        again = pickle.loads(pickle.dumps(trace))
        assert again.facts.name == trace.facts.name
        expected, found = dict[str, Any](trace.to_arrays()), dict[str, Any](again.to_arrays())
        assert list(found) == list(expected)
        assert all(np.array_equal(found[name], column) for name, column in expected.items())


def test_times_with_a_zone_are_those_of_utc() -> None:
    times = pd.to_datetime(["2026-03-29 00:30", "2026-03-29 03:30"]).tz_localize("Europe/Berlin")
    columns = {"op": ["r", "w"], "sector": SECTOR[:2], "sectors": SECTORS[:2]}
    frames = [pd.DataFrame({name: times} | columns) for name in ("time_ns", "time")]
    for frame in (*frames, pl.from_pandas(frames[0]), pa.Table.from_pandas(frames[1])):
        assert bimetal.Trace.from_frame(frame).facts.duration_s == 2 * 3600


STAMPS = pd.to_datetime(["2026-01-01", "2026-01-03", "2026-01-04"])
DAYS = [stamp.date() for stamp in STAMPS]
TICKS = pa.chunked_array([pa.array([0, 172_800_000, 259_200_000], pa.duration("ms"))])
IN_UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(TICKS.to_pandas(types_mapper=pd.ArrowDtype)),
        pd.Series(pd.array(STAMPS, dtype=pd.ArrowDtype(IN_UTC))),
        pd.Series(pd.array(DAYS, dtype=pd.ArrowDtype(pa.date32()))),
        STAMPS.tz_localize("UTC"),
        pl.Series(DAYS),
        pa.chunked_array([pa.array(DAYS)]),
        TICKS,
        [np.timedelta64(day, "D") for day in (0, 2, 3)],
        list(STAMPS - STAMPS[0]),
        list(STAMPS.tz_localize("UTC")),
        list((STAMPS - STAMPS[0]).to_pytimedelta()),
        list(STAMPS.to_pydatetime()),
        DAYS,
    ],
    ids=lambda values: f"{type(values).__module__}.{type(values).__name__} of {type(values[0]).__name__}",
)
@pytest.mark.filterwarnings("ignore:mean inter-arrival of 1.5 days")
def test_dates_and_durations_have_the_unit_of_their_type(values: Any) -> None:
    columns = {"op": ["r", "w", "r"], "sector": SECTOR, "sectors": SECTORS}
    named = "time=t,op=op,offset=sector:sectors,size=sectors:sectors"
    assert bimetal.Trace.from_frame({"t": values} | columns, named).facts.duration_s == 3 * 86_400
    with pytest.raises(bimetal.TraceError, match="`t` is of a type with times in `ns`, not in `ms`"):
        bimetal.Trace.from_frame({"t": values} | columns, named.replace("time=t", "time=t:ms"))
    assert bimetal.Trace.from_frame({"time": values, "else": [(1,), 2, "x"]} | columns).facts.duration_s == 3 * 86_400
    assert bimetal.Trace.from_frame({"time_ns": values} | columns).facts.duration_s == 3 * 86_400


@pytest.mark.filterwarnings("ignore:mean inter-arrival of 1.5 days")
def test_pandas_takes_its_types_from_arrow() -> None:
    columns = {"op": ["r", "w", "r"], "lba": SECTOR, "sectors": SECTORS}
    frame = pd.DataFrame({"time": STAMPS - STAMPS[0]} | columns).convert_dtypes(dtype_backend="pyarrow")
    assert bimetal.Trace.from_frame(frame).facts.duration_s == 3 * 86_400


def test_missing_dates_among_objects_are_named_by_their_row() -> None:
    for missing in (None, pd.NaT):
        with pytest.raises(bimetal.TraceError, match="row 1: `time_ns` is missing"):
            arrays(time_ns=np.array([STAMPS[0], missing, STAMPS[1]], dtype=object))
    with pytest.raises(bimetal.TraceError, match="`time_ns` is of type object"):
        arrays(time_ns=np.array([STAMPS[0], 5, "x"], dtype=object))


def test_operations_may_be_texts_of_any_length() -> None:
    words = np.array(["r", "Write", "trim"], dtype=np.dtypes.StringDType())
    assert arrays(op=words).facts == arrays().facts
    frame = {"time_ns": TIME, "op": words, "offset": [512 * at for at in SECTOR], "size": [512 * n for n in SECTORS]}
    assert bimetal.Trace.from_frame(frame).facts == arrays(name="frame").facts
    with pytest.raises(bimetal.TraceError, match="row 2: `op` is 'x'"):
        arrays(op=np.array(["r", "w", "x"], dtype=np.dtypes.StringDType()))


def test_dates_of_a_frame_are_times() -> None:
    times = pd.to_datetime(["2026-01-01 00:00:00", "2026-01-01 00:00:02", "2026-01-01 00:00:10"])
    columns = {"op": OP, "sector": SECTOR, "sectors": SECTORS}
    for frame in (pd.DataFrame({"time_ns": times} | columns), pl.DataFrame({"time_ns": times.to_list()} | columns)):
        assert bimetal.Trace.from_frame(frame).facts.duration_s == 10


def test_files_are_read_as_the_command_reads_them(small: Path, trace: bimetal.Trace, tmp_path: Path) -> None:
    packed = tmp_path / "small.bimetal.gz"
    with small.open("rb") as source, gzip.open(packed, "wb") as target:
        shutil.copyfileobj(source, target)
    assert bimetal.Trace.open(packed).to_arrays()["sector"].tolist() == trace.to_arrays()["sector"].tolist()
    assert len(bimetal.Trace.open(small, limit=10)) == 10
    assert len(bimetal.Trace.open(small, str(small))) == 2 * len(trace)
    text = tmp_path / "t.spc"
    text.write_text("0,8,4096,r,0.5\n1,16,512,w,750\n")
    assert bimetal.Trace.open(text, format="spc", time_unit="ms", volumes=[1]).facts.writes == 1
    with pytest.raises(bimetal.TraceError, match=r"t.spc: the trace has no device `7`"):
        bimetal.Trace.open(text, volumes=[7])


def test_generated_and_fitted_traces() -> None:
    trace = bimetal.Trace.generate("zipf", set={"requests": 500}, seed=3)
    assert (len(trace), trace.facts.format) == (500, "generated")
    other = bimetal.Trace.generate("zipf", set={"requests": 500}, seed=4)
    assert trace.to_arrays()["sector"].tolist() != other.to_arrays()["sector"].tolist()
    assert len(bimetal.Trace.sample(limit=20_000).like(requests=300)) == 300
    assert repr(trace) == "<Trace 'zipf', 500 requests>"
    with pytest.raises(TypeError, match=r"made by Trace.open"):
        bimetal.Trace()


def test_objects_of_a_cache_lie_in_slots_or_at_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "kvcache.csv"
    path.write_text("key,op,size,op_count,key_size\n8,SET,82,1,1\n16,GET,512,2,2\n")
    with pytest.warns(bimetal.BimetalWarning):
        slots = bimetal.Trace.open(path)
    with pytest.warns(bimetal.BimetalWarning):
        addresses = bimetal.Trace.open(path, objects="sectors,insert")
    assert slots.facts.format == "cachelib"
    assert slots.to_arrays()["sector"].tolist() == [0, 1, 1]
    assert addresses.to_arrays()["sector"].tolist() == [8, 16, 16]
    assert addresses.to_arrays()["op"].tolist() == [1, 1, 0]
    with pytest.raises(bimetal.TraceError, match="slots"):
        bimetal.Trace.open(path, objects="miles")


def test_masked_values_are_missing_and_dates_do_not_wrap() -> None:
    sectors = np.ma.array([0, 8, 999992], mask=[False, False, True])
    with pytest.raises(bimetal.TraceError, match="row 2: `sector` is missing"):
        bimetal.Trace.from_arrays(time_ns=[0, 1, 2], op=["r"] * 3, sector=sectors, sectors=[8] * 3)
    dates = np.array(["1990-01-02", "1500-01-01"], "M8[D]")
    with pytest.raises(bimetal.TraceError, match="row 1: `time_ns` is 1500-01-01, which does not fit"):
        bimetal.Trace.from_arrays(time_ns=dates, op=["r"] * 2, sector=[0, 8], sectors=[8] * 2)
    fine = np.array([1_500, 2_500], "m8[ps]")
    trace = bimetal.Trace.from_arrays(time_ns=fine, op=["r"] * 2, sector=[0, 8], sectors=[8] * 2)
    assert trace.to_arrays()["time_ns"].tolist() == [0, 1]
