"""Shared by the tests: the command line, with which results are compared, and a small trace."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bimetal

ROOT = Path(__file__).parents[2]

#: The binary built from the same sources.
BINARY = Path(os.environ.get("BIMETAL", ROOT / "target/debug/bimetal"))

Cli = Callable[..., Any]


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> None:
    """Enable interrupts, which processes ignore if a shell starts them in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def cli() -> Cli:
    """Run the command line and read its JSON."""

    def run(*arguments: object) -> Any:
        command = [str(BINARY), *map(str, arguments), "--json", "-"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a trace of reads, writes and trims that exercises every scheme."""
    path = tmp_path_factory.mktemp("traces") / "small.bimetal"
    command = [str(BINARY), "generate", "zipf", str(path), "--set", "requests=6000", "--set", "span=64MiB"]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture(scope="session")
def trace(small: Path) -> bimetal.Trace:
    """Open that trace."""
    return bimetal.Trace.open(small)


def without_speed(result: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison without the figures that differ from run to run."""
    results = [{key: value for key, value in entry.items() if key != "speed"} for entry in result["results"]]
    return result | {"results": results}
