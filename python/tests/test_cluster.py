"""The example of `docs/clusters.md`: scheduler, workers and client in separate processes."""

import csv
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

SCRIPT = Path(__file__).parents[2] / "contrib/cluster/sweep.py"

STUDY = """
title = "Spare area"
[[traces]]
limit = 500
[[grids]]
scheme = ["pagemap", "chang"]
[grids.set]
"slow.spare" = ["12%", "20%"]
"""


def dask(*words: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:], "--no-dashboard"]
    return subprocess.Popen(program, stderr=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str], words: str) -> str:
    """The first line of the log that contains the words."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"it ended before it said `{words}`")


@pytest.fixture
def scheduler() -> Iterator[str]:
    processes = [dask("dask_scheduler", "--host", "127.0.0.1", "--port", "0")]
    try:
        address = "tcp://" + said(processes[0], "Scheduler at:").rsplit("tcp://", 1)[1].strip()
        for _ in range(2):
            processes.append(dask("dask_worker", address, "--nworkers", "1", "--nthreads", "1"))
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.communicate(timeout=20)


def test_the_script_runs_a_study_on_two_workers(scheduler: str, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    words = [sys.executable, str(SCRIPT), str(study), scheduler, "2"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert "4 points, 4 done, 0 failed" in done.stdout
    with (tmp_path / "study.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["scheme"] for row in rows] == ["pagemap", "pagemap", "chang", "chang"]
    assert len((tmp_path / "study.results.jsonl").read_text().splitlines()) == 5
    assert "Spare area" in (tmp_path / "study.html").read_text()
    # No point is left: every row is taken from the results file.
    again = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert again.stdout == done.stdout
