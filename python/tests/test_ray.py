"""Sweeps on a real Ray cluster. Ray is installed for the tests where it can be."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
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


def parent(process: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def kill_worker() -> int | None:
    """Kill a process of this test's cluster that runs a point, as soon as there is one, and return its number."""
    end = time.monotonic() + 10.0
    while time.monotonic() < end:
        for commands in Path("/proc").glob("[0-9]*/cmdline"):
            process = int(commands.parent.name)
            with contextlib.suppress(OSError):
                # Workers are children of the raylet, which is a child of this process.
                if commands.read_bytes().startswith(b"ray::run_point") and parent(parent(process)) == os.getpid():
                    os.kill(process, signal.SIGKILL)
                    return process
        time.sleep(0.01)
    return None


def without_speed(path: Path) -> list[dict[str, Any]]:
    """Read rows, without the columns that differ from run to run."""
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    return [{name: value for name, value in row.items() if name not in {"wall_s", "requests_per_s"}} for row in rows]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
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
