"""Wrong input raises the exception of its kind, with the message of the command line in words of Python."""

import inspect
import pickle
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import BINARY, ROOT

import bimetal
from bimetal._errors import in_python


def said(*arguments: object) -> str:
    done = subprocess.run([str(BINARY), *map(str, arguments)], check=False, capture_output=True, text=True)
    assert done.returncode in (1, 2)
    return done.stderr.strip().removeprefix("error: ")


@pytest.mark.parametrize(
    ("work", "words", "kind"),
    [
        (lambda t: bimetal.compare(t, ["chnag"]), ["--schemes", "chnag"], bimetal.SchemeError),
        (lambda t: bimetal.compare(t, set={"nonsense": 1}), ["--set", "nonsense=1"], bimetal.SettingError),
        (lambda t: bimetal.compare(t, set={"fast.nonsense": 1}), ["--set", "fast.nonsense=1"], bimetal.SettingError),
        (
            lambda t: bimetal.compare(t, ["pagemap"], set={"gc_free_blocks": -1}),
            ["--schemes", "pagemap", "--set", "gc_free_blocks=-1"],
            bimetal.SettingError,
        ),
        (lambda t: bimetal.compare(t, set={"logical": "1MiB"}), ["--set", "logical=1MiB"], bimetal.DoesNotFitError),
        (
            lambda t: bimetal.compare(t, ["pagemap"], set={"slow.capacity": "1MiB"}),
            ["--schemes", "pagemap", "--set", "slow.capacity=1MiB"],
            bimetal.BimetalError,
        ),
    ],
)
def test_messages_are_those_of_the_command(
    work: Callable[[bimetal.Trace], object], words: list[str], kind: type[Exception], small: Path, trace: bimetal.Trace
) -> None:
    with pytest.raises(kind) as raised:
        work(trace)
    assert str(raised.value) == in_python(said("compare", small, *words))
    assert isinstance(raised.value, bimetal.BimetalError)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("`--repeat` is 0", "`repeat` is 0"),
        ("`--time-unit` and `--limit=5`", "`time_unit` and `limit=5`"),
        ("add `--repeat N --measure 1`", "add `repeat=N, measure=1`"),
        ("`--arrivals trace:SPEED`", "`arrivals='trace:SPEED'`"),
        ("`--set logical=5MiB` or `--price tlc=0.10`", "`set={'logical': '5MiB'}` or `price={'tlc': 0.10}`"),
        ("a scheme (`bimetal list schemes`)", "a scheme (`bimetal.schemes()`)"),
        ("`-- text` and `a --b`, --c", "`-- text` and `a --b`, --c"),
    ],
)
def test_options_are_arguments(message: str, expected: str) -> None:
    assert in_python(message) == expected
    assert in_python(expected) == expected
    assert str(bimetal.InsufficientMemoryError(message)) == str(bimetal.TraceError(message)) == expected


def test_options_in_messages_have_arguments_of_the_same_name() -> None:
    known = set()
    for public in map(vars(bimetal).get, bimetal.__all__):
        for work in [public, *vars(public).values()] if inspect.isclass(public) else [public]:
            work = getattr(work, "__func__", work)
            if inspect.isfunction(work):
                known |= set(inspect.signature(work).parameters)
    named: set[str] = set()
    for crate in ["core", "study", "papers"]:
        for path in (ROOT / f"crates/bimetal-{crate}/src").rglob("*.rs"):
            # Tests follow the code, and comments are no messages.
            code = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
            for line in code.splitlines():
                if not line.lstrip().startswith("//"):
                    named.update(re.findall(r"`--([a-z][a-z0-9-]*)", line))
    assert len(named) > 20
    assert {option for option in named if option.replace("-", "_") not in known} == set()


def wrong_type(value: object) -> Any:
    """Return a value that the type checker would refuse."""
    return value


def test_each_kind_of_error_has_a_class(trace: bimetal.Trace, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("name = 3")
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(b"\x1f\x8b\x08 nothing")
    missing = tmp_path / "missing.csv"
    cases: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: bimetal.Trace.open(missing), FileNotFoundError, "missing.csv"),
        (lambda: bimetal.Trace.open("-"), FileNotFoundError, "./-"),
        (lambda: bimetal.Device.open(missing), FileNotFoundError, "missing.csv"),
        (lambda: bimetal.Trace.open(tmp_path), bimetal.TraceError, "this is a directory"),
        (lambda: bimetal.Trace.open(), bimetal.TraceError, "no trace is given"),
        (lambda: bimetal.Trace.open(damaged), bimetal.TraceError, "gzip data are damaged"),
        (lambda: bimetal.Trace.open(wrong, format="nonsense"), bimetal.TraceError, "no trace format is named"),
        (lambda: bimetal.Trace.open(wrong, time_unit="min"), bimetal.TraceError, "no time unit is named"),
        (lambda: bimetal.Trace.open(wrong, limit=0), bimetal.TraceError, "`limit` is 0"),
        (lambda: bimetal.Device.open(wrong), bimetal.DeviceError, r"wrong.toml: line 1"),
        (lambda: bimetal.Device.preset("nonsense"), bimetal.DeviceError, "there is no device `nonsense`"),
        (lambda: bimetal.Device.auto().to_toml(), bimetal.DeviceError, "fitted to the trace"),
        (lambda: bimetal.Trace.generate("nonsense"), bimetal.WorkloadError, "there is no workload `nonsense`"),
        (lambda: bimetal.Trace.generate("zipf", set={"x": 1}), bimetal.WorkloadError, "`x`"),
        (
            lambda: bimetal.Trace.generate("zipf", set={"requests": 10**9}),
            bimetal.InsufficientMemoryError,
            "MiB of memory",
        ),
        (lambda: bimetal.paper("nonsense"), bimetal.PaperError, "there is no paper `nonsense`"),
        (lambda: bimetal.paper("chang", "nonsense"), bimetal.PaperError, "no figure `nonsense`"),
        (lambda: bimetal.paper("chang", traces={"x": trace}), bimetal.PaperError, "a trace `x`"),
        (lambda: bimetal.replay(trace), bimetal.SchemeError, "no scheme is named"),
        (lambda: bimetal.replay(trace, "all"), bimetal.SchemeError, "use `compare` for several"),
        (lambda: bimetal.compare(trace, []), bimetal.SchemeError, "no scheme is named"),
        (lambda: bimetal.replay(trace, "chang", arrivals="open"), bimetal.SettingError, "`open` is not one of"),
        (lambda: bimetal.replay(trace, "chang", repeat=2, measure=3), bimetal.SettingError, "`measure` is 3"),
        (lambda: bimetal.replay(trace, "chang", repeat=0), bimetal.SettingError, "at least 1"),
        (lambda: bimetal.replay(trace, "chang", intervals=-1), bimetal.SettingError, "`intervals` is -1"),
        (lambda: bimetal.compare(trace, jobs=0), bimetal.SettingError, "`jobs` is 0"),
        (lambda: bimetal.compare(trace, seeds=0), bimetal.SettingError, "`seeds` is 0"),
        (lambda: trace.profile(sample=0), bimetal.TraceError, "`sample` is 0"),
        (lambda: trace.profile(curve_points=-1), bimetal.TraceError, "`curve_points` is -1"),
        (lambda: trace.like(seed=-1), bimetal.SettingError, "`seed` is -1"),
        (lambda: bimetal.Trace.open(wrong, limit=2**70), bimetal.TraceError, "at most"),
        (lambda: bimetal.Trace.open(wrong, volumes=[-1]), bimetal.TraceError, "`volumes` is -1"),
        (lambda: bimetal.Device.open(damaged), bimetal.DeviceError, "not UTF-8"),
        (lambda: bimetal.sweep(damaged), bimetal.StudyError, "not UTF-8"),
        (lambda: bimetal.sweep({"grids": [{"scheme": float("nan")}]}), bimetal.StudyError, "no text, number"),
        (lambda: bimetal.replay(trace, "chang", repeat=wrong_type(2.5)), bimetal.SettingError, "a whole number"),
        (lambda: bimetal.replay(trace, "chang", set=wrong_type("slow.spare=7%")), bimetal.SettingError, "a mapping"),
        (
            lambda: bimetal.replay(trace, "chang", device=wrong_type(wrong)),
            bimetal.DeviceError,
            "`bimetal.Device.open",
        ),
        (lambda: bimetal.compare(wrong_type({"time_ns": [1]})), bimetal.TraceError, "`bimetal.Trace.from_frame`"),
        (lambda: bimetal.advise(trace, mean="1ms", channels=-1), bimetal.SettingError, "`channels` is -1"),
    ]
    for work, kind, message in cases:
        with pytest.raises(kind, match=re.escape(message)) as raised:
            work()
        assert type(pickle.loads(pickle.dumps(raised.value))) is type(raised.value)


STUDY: dict[str, Any] = {"traces": [{"limit": 100}], "grids": [{"scheme": "pagemap"}]}


@pytest.mark.parametrize(
    ("work", "kind", "message"),
    [
        (lambda t: bimetal.Trace.open("x", format=wrong_type(5)), "TraceError", "`format` is 5: it is a text"),
        (lambda t: bimetal.Trace.open("x", columns=wrong_type({"a": 1})), "TraceError", "`columns` is {'a': 1}"),
        (lambda t: bimetal.Trace.open("x", volumes=wrong_type(5)), "TraceError", "`volumes` is 5: it is a list"),
        (lambda t: bimetal.Trace.from_frame({}, wrong_type(5)), "TraceError", "`columns` is 5: it is a text"),
        (lambda t: bimetal.Trace.from_frame({}, time_unit=wrong_type(5)), "TraceError", "`time_unit` is 5"),
        (lambda t: bimetal.Trace.generate(wrong_type(5)), "WorkloadError", "`workload` is 5: it is a text"),
        (lambda t: bimetal.Trace.generate("zipf", set=wrong_type({1: 2})), "SettingError", "`set` has the name 1"),
        (lambda t: t.profile(sample=wrong_type("x")), "TraceError", "`sample` is 'x': it is a number"),
        (lambda t: bimetal.replay(t, "chang", set=wrong_type({1: 2})), "SettingError", "`set` has the name 1"),
        (lambda t: bimetal.replay(t, "chang", arrivals=wrong_type(5)), "SettingError", "`arrivals` is 5: it is a text"),
        (lambda t: bimetal.replay(t, "chang", fill=wrong_type(5)), "SettingError", "`fill` is 5: it is a text"),
        (lambda t: bimetal.replay(t, "chang", fill=wrong_type(None)), "SettingError", "`fill` is None: it is a text"),
        (lambda t: bimetal.Device.preset(wrong_type(5)), "DeviceError", "`name` is 5: it is a text"),
        (lambda t: bimetal.advise(t, life="1y", load=wrong_type(5)), "SettingError", "`load` is 5: it is a text"),
        (lambda t: bimetal.advise(t, life="1y", chips=wrong_type([5])), "SettingError", "`chips` is 5: it is a text"),
        (lambda t: bimetal.advise(t, life="1y", drives=wrong_type(5)), "SettingError", "`drives` is 5: it is a text"),
        (lambda t: bimetal.advise(t, life="1y", schemes=wrong_type(5)), "SettingError", "`schemes` is 5: it is a text"),
        (lambda t: bimetal.advise(t, life="1y", schemes=[]), "SettingError", "`schemes` names none; hint: leave it"),
        (lambda t: bimetal.advise(t, life="1y", price=wrong_type([1])), "SettingError", "`price` is [1]; it is a map"),
        (lambda t: bimetal.advise(t, life="1y", price=wrong_type({"tlc": "x"})), "SettingError", "`price` has 'tlc'"),
        (lambda t: bimetal.paper(wrong_type(5)), "PaperError", "`name` is 5: it is a text"),
        (lambda t: bimetal.paper("hyssd", on=[]), "SettingError", "`on` names no trace; hint: leave it out"),
        (lambda t: bimetal.paper("hyssd", on=wrong_type(5)), "TraceError", "a path is of type `int`"),
        (lambda t: bimetal.sweep(STUDY, jobs=0), "SettingError", "`jobs` is 0: it is at least 1"),
        (lambda t: bimetal.sweep(STUDY, jobs=2**70), "SettingError", "`jobs` is 1180591620717411303424: it is at most"),
        (lambda t: bimetal.sweep(STUDY, jobs=wrong_type("2")), "SettingError", "`jobs` is '2': it is a whole number"),
        (lambda t: bimetal.sweep(STUDY, jobs=wrong_type(1.5)), "SettingError", "`jobs` is 1.5: it is a whole number"),
        (lambda t: bimetal.sweep(STUDY, jobs=2, engine="dask"), "SettingError", "`jobs` is 2: a cluster runs"),
        (lambda t: bimetal.sweep(wrong_type([])), "StudyError", "the study is of type `list`"),
        (lambda t: bimetal.sweep(wrong_type(None)), "StudyError", "the study is of type `NoneType`"),
        (lambda t: bimetal.sweep(""), "StudyError", "the study is an empty text"),
        (lambda t: bimetal.sweep(STUDY).front("zz"), "SettingError", "there is no goal `zz`; there are: cost, mean"),
        (lambda t: bimetal.sweep({"grids": [{"scheme": {"chang", "dac"}}]}), "StudyError", "`scheme` is a set, which"),
        (lambda t: bimetal.compare(t, wrong_type({"chang", "dac"})), "SchemeError", "`schemes` is a set, which has no"),
        (lambda t: bimetal.advise(t, life="1y", chips={"slc-2011"}), "SettingError", "`chips` is a set, which has no"),
        (lambda t: bimetal.sweep(STUDY).front(wrong_type(5)), "SettingError", "`goals` is 5: it is a text"),
        (lambda t: bimetal.sweep(STUDY).to_csv(wrong_type(5)), "SettingError", "`path` is 5: it is a path"),
        (lambda t: bimetal.sweep(STUDY).html(wrong_type(None)), "SettingError", "`path` is None: it is a path"),
        (lambda t: bimetal.sweep(STUDY).plot(wrong_type(["p99"])), "SettingError", "`figure` is ['p99']: it is a text"),
        (lambda t: bimetal.sweep(STUDY, results=wrong_type(5)), "SettingError", "`results` is 5: it is a path"),
        (lambda t: bimetal.sweep(STUDY, results=wrong_type(b"x")), "SettingError", "`results` is b'x': it is a path"),
        (
            lambda t: bimetal.sweep(STUDY, restart=wrong_type("no")),
            "SettingError",
            "`restart` is 'no': it is `True`",
        ),
        (lambda t: bimetal.sweep(STUDY, progress=wrong_type(5)), "SettingError", "`progress` is 5: it is a function"),
        (lambda t: bimetal.sweep(STUDY, engine="dask", client=5), "SettingError", "`client` is 5: it is a `distr"),
        (lambda t: bimetal.compare(t, "chang", progress=wrong_type(5)), "SettingError", "`progress` is 5: it is a"),
        (lambda t: bimetal.compare(t, "chang").html(wrong_type(5)), "SettingError", "`path` is 5: it is a path"),
        (lambda t: bimetal.compare(t, "chang").plot(wrong_type([])), "SettingError", "`figure` is []: it is a text"),
        (lambda t: bimetal.compare(t, "chang").to_arrow(wrong_type([])), "SettingError", "`table` is []: it is a text"),
        (
            lambda t: bimetal.compare(t, "chang", seeds=wrong_type(None)),
            "SettingError",
            "`seeds` is None: it is a",
        ),
        (
            lambda t: bimetal.replay(t, "chang", repeat=wrong_type(None)),
            "SettingError",
            "`repeat` is None: it is a",
        ),
        (lambda t: t.like(seed=wrong_type(None)), "SettingError", "`seed` is None: it is a whole number"),
        (lambda t: t.profile(curve_points=wrong_type(None)), "TraceError", "`curve_points` is None: it is a whole"),
        (lambda t: bimetal.Trace.open("x", volumes=[]), "TraceError", "`volumes` names none; hint: leave it out"),
        (lambda t: bimetal.Device.open(wrong_type(5)), "DeviceError", "`path` is 5: it is a path"),
        (lambda t: bimetal.advise(t, life="1y", prices=wrong_type(5)), "SettingError", "`prices` is 5: it is a path"),
        (lambda t: bimetal.paper("chang", wrong_type(5)), "PaperError", "`figures` is 5: it is a text or a list"),
        (lambda t: bimetal.paper("chang", quick=wrong_type("no")), "SettingError", "`quick` is 'no': it is `True`"),
        (lambda t: bimetal.paper("chang", traces=wrong_type([t])), "PaperError", "`traces` is [<Trace "),
        (lambda t: bimetal.paper("chang", traces=wrong_type({5: t})), "PaperError", "`traces` is 5: it is a text"),
    ],
)
def test_a_wrong_argument_is_named(work: Callable[[bimetal.Trace], object], kind: str, message: str) -> None:
    with pytest.raises(bimetal.BimetalError, match="^" + re.escape(message)) as raised:
        work(bimetal.Trace.sample(limit=100))
    assert type(raised.value).__name__ == kind


def test_settings_may_be_truth_values_of_numpy(trace: bimetal.Trace) -> None:
    collected = bimetal.replay(trace, "pagemap", set={"idle_gc": wrong_type(np.True_)})
    assert collected.result.ops == bimetal.replay(trace, "pagemap", set={"idle_gc": True}).result.ops


def test_what_to_know_is_a_warning(trace: bimetal.Trace) -> None:
    with pytest.warns(bimetal.BimetalWarning, match="overloaded"):
        found = bimetal.replay(trace, "pagemap", arrivals="trace:1000000")
    assert any("overloaded" in warning for warning in found.warnings)
    with pytest.warns(bimetal.BimetalWarning, match="hint: replay with `arrivals='closed'`"):
        bimetal.replay(trace, "pagemap", arrivals="trace:1000000")


def test_a_warning_is_of_the_line_that_called(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("time_us,op,lba,sectors\n5,w,0,8\n3,w,8,8\n9,w,16,8\n")
    rows: dict[str, Any] = {"time_ns": [5, 3, 9], "op": [1, 1, 1], "sector": [0, 8, 16], "sectors": [8, 8, 8]}
    calls: list[Callable[[], object]] = [
        lambda: bimetal.Trace.open(path),
        lambda: bimetal.Trace.from_arrays(**rows),
        lambda: bimetal.Trace.from_frame(rows),
        lambda: bimetal.replay(path, "pagemap"),
        lambda: bimetal.paper("hyssd", on=path),
    ]
    for call in calls:
        with pytest.warns(bimetal.BimetalWarning, match="1 row out of time order") as warned:
            call()
        assert {warning.filename for warning in warned} == {__file__}
