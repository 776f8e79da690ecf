"""Sweeps on a real Ray cluster. Ray is installed for the tests where it can be."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import BINARY

import bimetal

ray = pytest.importorskip("ray", reason="Ray is not installed: no sweep runs on it")

POINTS = 6

STUDY = """
[[traces]]
generate = "zipf"
set = { requests = 4000, span = "32MiB" }
[replay]
repeat = 50
[[grids]]
scheme = ["pagemap", "chang"]
set."slow.spare" = ["10%", "20%", "30%"]
"""


@pytest.fixture
def cluster() -> Iterator[None]:
    """Start a cluster of two worker processes, and connect to it."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


def kill_worker() -> int | None:
    """Kill a process that runs a point, if there is one, and return its number."""
    for commands in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            is_worker = commands.read_bytes().startswith(b"ray::run_point")
        except OSError:
            continue
        if is_worker:
            os.kill(pid := int(commands.parent.name), signal.SIGKILL)
            return pid
    return None


def without_speed(path: Path) -> list[dict[str, Any]]:
    """Read rows, without the columns that differ from run to run."""
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    return [{name: value for name, value in row.items() if name not in {"wall_s", "requests_per_s"}} for row in rows]


@pytest.mark.usefixtures("cluster")
def test_a_cluster_that_loses_a_worker_has_what_the_command_writes(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    killed: list[int | None] = []

    def kill(done: int, _of: int) -> None:
        if done == 1:
            killed.append(kill_worker())

    found = bimetal.sweep(study, engine="ray", progress=kill)
    assert killed[0] is not None
    found.to_json(tmp_path / "ray.json")
    words = ["--results", tmp_path / "results.jsonl", "--json", tmp_path / "cli.json"]
    subprocess.run([str(BINARY), "sweep", str(study), *map(str, words)], check=True, capture_output=True, timeout=60)
    expected = without_speed(tmp_path / "cli.json")
    assert len(expected) == POINTS
    assert without_speed(tmp_path / "ray.json") == expected
