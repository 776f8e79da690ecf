"""Sweeps: the same figures on threads, on a cluster whose workers are killed, and on the command line."""

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import dask
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from conftest import BINARY

import bimetal
from bimetal import _plot

distributed = pytest.importorskip("distributed")

#: Columns that differ from run to run.
SPEED = ["wall_s", "requests_per_s"]

STUDY = """
title = "Spare area"
[[traces]]
files = "small.bimetal"
[[traces]]
generate = "zipf"
set = {{ requests = 4000, span = "32MiB" }}
[replay]
repeat = {repeat}
[[grids]]
scheme = ["pagemap", "chang"]
set."slow.spare" = ["10%", "0%", "20%"]
"""


@pytest.fixture(scope="module")
def study(small: Path) -> Path:
    """Write a study beside the trace. Its points take some tenths of a second, and four of them fail."""
    path = small.with_name("study.toml")
    path.write_text(STUDY.format(repeat=20))
    return path


@pytest.fixture(scope="module")
def expected(study: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Run the command line."""
    out = tmp_path_factory.mktemp("cli")
    words = ["--results", out / "results.jsonl", "--json", out / "out.json", "--jobs", 2]
    subprocess.run([str(BINARY), "sweep", str(study), *map(str, words)], check=True, capture_output=True, timeout=60)
    return without_speed(json.loads((out / "out.json").read_text()))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Start a cluster of two worker processes. Those that tests kill are started again, however often."""
    with (
        # After this time, the cluster closes a worker of the same name that is just starting again.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def without_speed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in SPEED} for row in rows]


def exported(sweep: bimetal.Sweep, path: Path) -> list[dict[str, Any]]:
    sweep.to_json(path / "rows.json")
    return without_speed(json.loads((path / "rows.json").read_text()))


def kill_busiest(client: Any) -> int | None:
    """Kill the worker process with the most points, if one has any, and return its number."""
    busy = {address: len(keys) for address, keys in client.processing().items() if keys}
    if not busy:
        return None
    pids = {nanny.worker_address: nanny.pid for nanny in client.cluster.workers.values()}
    pid = int(pids[max(busy, key=lambda address: busy[address])])
    os.kill(pid, signal.SIGKILL)
    return pid


FAILURES = pytest.mark.filterwarnings("ignore:4 of 12 points failed:bimetal.BimetalWarning")


@FAILURES
def test_threads_have_what_the_command_writes(study: Path, expected: list[dict[str, Any]], tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    found = bimetal.sweep(study, jobs=2, progress=lambda done, of: told.append((done, of)))
    assert exported(found, tmp_path) == expected
    assert sorted(told) == [(done, 12) for done in range(13)]
    assert [row.failure.kind for row in found.failed if row.failure] == ["refused"] * 4
    assert [row.figures is None for row in found.rows] == [row["failure"] is not None for row in expected]
    assert found.title == "Spare area"
    assert pickle.loads(pickle.dumps(found)) == found


@FAILURES
def test_a_cluster_that_loses_a_worker_has_the_same(
    study: Path, expected: list[dict[str, Any]], client: Any, tmp_path: Path
) -> None:
    killed: list[int | None] = []
    prefix = client.cluster.scheduler.task_prefixes
    lost_before = prefix["run_point"].suspicious if "run_point" in prefix else 0

    def kill(done: int, _of: int) -> None:
        if done == 2:
            killed.append(kill_busiest(client))

    results = tmp_path / "results.jsonl"
    found = bimetal.sweep(study, engine="dask", client=client, results=results, progress=kill)
    assert exported(found, tmp_path) == expected
    client.wait_for_workers(2, timeout=20)
    assert killed[0] is not None
    assert killed[0] not in client.run(os.getpid).values()
    # The points of the killed worker were lost, and ran again.
    assert prefix["run_point"].suspicious > lost_before
    # Rows are transferred completely.
    kept = {row["key"]: row for row in map(json.loads, results.read_text().splitlines()[1:])}
    assert kept == {row.key: row.to_dict() for row in found.rows}
    # The command resumes from these results: no point is left.
    size = results.stat().st_size
    words = ["--results", results, "--json", tmp_path / "cli.json"]
    subprocess.run([str(BINARY), "sweep", str(study), *map(str, words)], check=True, capture_output=True, timeout=60)
    assert results.stat().st_size == size
    assert without_speed(json.loads((tmp_path / "cli.json").read_text())) == expected


@FAILURES
@pytest.mark.parametrize("engine", ["threads", "dask"])
def test_an_interrupted_sweep_goes_on_elsewhere(
    engine: str, study: Path, expected: list[dict[str, Any]], client: Any, tmp_path: Path
) -> None:
    def interrupt(done: int, _of: int) -> None:
        if done == 2:
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    results, sent = tmp_path / "results.jsonl", list[float]()
    cluster = {"engine": "dask", "client": client}
    with pytest.raises(KeyboardInterrupt):
        bimetal.sweep(study, results=results, progress=interrupt, **cluster if engine == "dask" else {"jobs": 1})
    assert time.monotonic() - sent[0] < 5.0
    told: list[int] = []
    found = bimetal.sweep(
        study, results=results, progress=lambda done, _: told.append(done), **cluster if engine == "threads" else {}
    )
    assert 2 <= min(told) < 12
    assert exported(found, tmp_path) == expected


def test_a_point_whose_workers_all_die_is_a_failed_point(client: Any) -> None:
    endless = {"replay": {"repeat": 1_000_000}, "grids": [{"scheme": "pagemap"}]}
    allowed, client.cluster.scheduler.allowed_failures = client.cluster.scheduler.allowed_failures, 0
    ended = threading.Event()

    def kill() -> None:
        while kill_busiest(client) is None and not ended.wait(0.2):
            pass

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.warns(bimetal.BimetalWarning, match="1 of 1 points failed"):
            found = bimetal.sweep(endless, engine="dask", client=client)
    finally:
        ended.set()
        killer.join()
        client.cluster.scheduler.allowed_failures = allowed
    assert found.rows[0].failure is not None
    assert found.rows[0].failure.kind == "worker"
    client.wait_for_workers(2, timeout=20)


def test_a_study_may_be_a_mapping_or_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'traces = [{ limit = 400 }]\n[[grids]]\nscheme = ["hyssd"]\nset.hash_probes = [4, 8]\n'
    text = text.replace("set.hash_probes", 'set."slow.spare"').replace("[4, 8]", "[50.5, 60.5]")
    grid = {"scheme": ("hyssd",), "set": MappingProxyType({"slow.spare": np.array([50.5, 60.5])}), "device": None}
    monkeypatch.chdir(tmp_path)
    found = bimetal.sweep({"traces": [{"limit": 400}], "grids": [grid]})
    again = bimetal.sweep(text)
    assert exported(found, tmp_path) == exported(again, tmp_path)
    assert len(found.rows) == 2
    assert not list(tmp_path.glob("*.jsonl"))


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('title = "x"\n[[grids]]\nscheme = "nosuch"\n')
    with pytest.raises(bimetal.StudyError, match=r"bad.toml: line 3: .*`nosuch`"):
        bimetal.sweep(path)
    with pytest.raises(bimetal.StudyError, match=r"^`scheme = \"nosuch\"`: .*`nosuch`"):
        bimetal.sweep({"grids": [{"scheme": "nosuch"}]})
    with pytest.raises(FileNotFoundError):
        bimetal.sweep(tmp_path / "none.toml")
    path.write_text("something else")
    with pytest.raises(bimetal.ResultsError, match="no results file"):
        bimetal.sweep({}, results=path)
    with pytest.raises(FileNotFoundError):
        bimetal.sweep({}, results=tmp_path / "none" / "results.jsonl")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"engine": "slurm"}, "no engine `slurm`"),
        ({"jobs": 0}, "`jobs` is 0"),
        ({"engine": "dask", "jobs": 2}, "`jobs` is 2: a cluster"),
        ({"client": 1}, "`client` is only"),
    ]
    for options, message in wrong:
        with pytest.raises(bimetal.SettingError, match=message):
            bimetal.sweep({}, **options)
    for engine, hint in [("dask", r"bimetal\[dask\]"), ("ray", "pip install ray")]:
        monkeypatch.setitem(sys.modules, {"dask": "distributed"}.get(engine, engine), None)
        with pytest.raises(ImportError, match=hint):
            bimetal.sweep({"traces": [{"limit": 100}]}, engine=engine)


class CrashedError(Exception):
    """Stand-in for Ray's error of the same name."""


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Replace Ray by its used functions. They raise `errors` before they run a point."""

    class Remote:
        def __init__(self, function: Any) -> None:
            self.function = function

        def remote(self, *arguments: str) -> Any:
            return (self.function, arguments)

    def get(reference: Any) -> str:
        if stub.errors:
            raise stub.errors.pop()
        function, arguments = reference
        return str(function(*arguments))

    stub = types.SimpleNamespace(errors=[], cancelled=[])
    stub.remote = lambda **_: Remote
    stub.wait = lambda left, num_returns: (left[:num_returns], left[num_returns:])
    stub.get = get
    stub.cancel = stub.cancelled.append
    stub.exceptions = types.SimpleNamespace(WorkerCrashedError=CrashedError, OutOfMemoryError=MemoryError)
    monkeypatch.setitem(sys.modules, "ray", stub)
    return stub


@FAILURES
def test_ray_is_asked_for_the_same(
    study: Path, expected: list[dict[str, Any]], tmp_path: Path, ray: types.SimpleNamespace
) -> None:
    results = tmp_path / "results.jsonl"
    ray.errors.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        bimetal.sweep(study, engine="ray", results=results)
    assert len(ray.cancelled) == 12
    ray.errors.append(CrashedError("gone"))
    with pytest.warns(bimetal.BimetalWarning, match="5 of 12 points failed, the first: its workers were lost: gone"):
        bimetal.sweep(study, engine="ray", results=results)
    assert exported(bimetal.sweep(study, engine="ray", results=results), tmp_path) == expected


def test_a_diagram_of_many_schemes_has_room_for_its_names() -> None:
    swept = bimetal.sweep({"traces": [{"limit": 100}], "grids": [{"scheme": "all", "set": {"slow.spare": "20%"}}]})
    for figure in ("mean", "p99", "life"):
        ax = swept.plot(figure)
        drawn = ax.get_figure(root=True)
        assert drawn is not None
        drawn.canvas.draw()
        plot = ax.get_window_extent()
        assert plot.width > 4 * drawn.dpi
        assert plot.height > 3 * drawn.dpi
        legend, whole = ax.get_legend(), drawn.bbox
        assert legend is not None
        box = legend.get_window_extent()
        assert whole.contains(box.x0, box.y0)
        assert whole.contains(box.x1, box.y1)
        schemes = {row.point.scheme for row in swept.rows}
        lines = [line for line in ax.lines if line.get_label() in schemes]
        assert len(lines) > 20
        assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(lines)
    plt.close("all")


@FAILURES
def test_rows_are_tables_fronts_and_diagrams(study: Path, tmp_path: Path) -> None:
    found = bimetal.sweep(study)
    found.to_csv(tmp_path / "out.csv")
    found.to_parquet(tmp_path / "out.parquet")
    table = found.to_arrow()
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == table.to_pydict()
    assert pq.read_table(tmp_path / "out.parquet").schema.types == table.schema.types
    frame = found.to_pandas()
    assert list(pd.read_csv(tmp_path / "out.csv").columns) == list(frame.columns) == table.column_names
    assert frame["on_front"].dtype == "boolean"
    on_front = [row.key for row in found.front()]
    assert on_front == frame["key"][frame["on_front"].fillna(value=False)].tolist()
    cheapest = {min(rows["cost_usd"].dropna()) for _, rows in frame.groupby("trace")}
    assert {row.figures.cost_usd for row in found.front("cost") if row.figures} == cheapest
    with pytest.raises(ValueError, match="there is no goal `price`"):
        found.front("price")
    found.html(tmp_path / "out.html")
    assert "<h1>Spare area" in (tmp_path / "out.html").read_text()
    assert repr(found).startswith("Spare area: 12 points, 8 done, 4 failed")
    assert found._repr_html_().count("<tr>") == 1 + len(found.front())
    for figure in ["mean", "p99", "life"]:
        ax = found.plot(figure, trace="zipf")
        legend = ax.get_legend()
        assert legend is not None
        entries = [text.get_text() for text in legend.get_texts()]
        assert entries[:3] == ["the best", "pagemap", "chang"]
        assert [np.size(line.get_xdata()) for line in ax.lines[1:3]] == [2, 2]
        named = [row for row in found.front("cost", figure) if row.point.trace.name == "zipf"]
        assert (
            [text.get_text() for text in ax.texts] == [entry[0] for entry in entries[3:]] == list("123"[: len(named)])
        )
        assert "extrapolated" not in ax.get_ylabel()
        plt.close("all")
    short = [
        dataclasses.replace(row, figures=dataclasses.replace(row.figures, lifetime_overwrites=0.5))
        for row in found.front("cost", "life")
        if row.figures and row.point.trace.name == "zipf"
    ]
    assert "extrapolated" in _plot.sweep(short, {}, "life", None).get_ylabel()
    plt.close("all")
    with pytest.raises(ValueError, match="choose one `trace`"):
        found.plot()
    with pytest.raises(ValueError, match="there is no figure 'cost'"):
        found.plot("cost", trace="zipf")
