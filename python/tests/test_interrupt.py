"""Ctrl-C ends work quickly, and no thread continues afterwards."""

import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bimetal
from bimetal import _core

#: Maximum wait, for a busy machine and an unoptimised build.
SOON_S = 5.0


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.fixture(scope="module")
def large() -> bimetal.Trace:
    """Generate a trace of which many passes keep every scheme busy for long."""
    return bimetal.Trace.generate("zipf", set={"requests": 200_000, "span": "64MiB"})


@pytest.mark.parametrize("work", ["replay", "compare", "open loop", "paper", "sweep", "advice", "like"])
def test_an_interrupt_ends_work_soon(work: str, large: bimetal.Trace) -> None:
    jobs: dict[str, Callable[[], object]] = {
        "replay": lambda: bimetal.replay(large, "pagemap", repeat=100_000),
        "compare": lambda: bimetal.compare(large, repeat=100_000, jobs=3),
        "open loop": lambda: bimetal.replay(large, "opfcl", repeat=100_000, arrivals="trace"),
        "paper": lambda: bimetal.paper("chang", "fig8"),
        "sweep": lambda: bimetal.sweep({"replay": {"repeat": 100_000}, "grids": [{"scheme": ["pagemap", "chang"]}]}),
        "advice": lambda: bimetal.advise(large, mean="1us", schemes="pagemap", repeat=100_000),
        "like": lambda: bimetal.Trace.sample().like(requests=20_000_000),
    }
    before = threads()
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.0, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        jobs[work]()
    took = time.monotonic() - sent[0]
    timer.join()
    # Ended threads disappear from the list after a short delay.
    for _ in range(20):
        if threads() <= before:
            break
        time.sleep(0.05)
    assert threads() <= before
    # On an idle machine the signal is noticed within 50 ms and handled some ms later. The whole work would take hours.
    assert took < SOON_S, f"{took:.2f} s"


@pytest.mark.parametrize("work", ["compare", "paper", "paper on", "sweep", "advice"])
def test_an_interrupt_ends_a_progress_function(work: str) -> None:
    calls: list[int] = []
    called = threading.Event()

    def waits(done: int, _of: int) -> None:
        calls.append(done)
        called.set()
        while True:
            pass

    def interrupt() -> None:
        # The first work of its kind in a process takes longer than later ones.
        called.wait()
        time.sleep(0.2)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    trace = bimetal.Trace.generate("zipf", set={"requests": 200, "span": "1MiB"})
    point = {"traces": [{"limit": 100}], "grids": [{"scheme": "pagemap"}]}
    few: dict[str, Any] = {"mean": "1s", "chips": "tlc-3d-2021", "schemes": "pagemap", "simulations": 1}
    jobs: dict[str, Callable[[], object]] = {
        "compare": lambda: bimetal.compare(trace, ["pagemap", "chang"], jobs=2, progress=waits),
        "paper": lambda: bimetal.paper("chang", "fig8", quick=True, progress=waits),
        "paper on": lambda: bimetal.paper("hyssd", on=trace, progress=waits),
        "sweep": lambda: bimetal.sweep(point, progress=waits),
        "advice": lambda: bimetal.advise(trace, progress=waits, **few),
    }
    sent: list[float] = []
    interrupts = threading.Thread(target=interrupt, daemon=True)
    interrupts.start()
    with pytest.raises(KeyboardInterrupt):
        jobs[work]()
    took = time.monotonic() - sent[0]
    interrupts.join()
    assert took < SOON_S, f"{took:.2f} s"
    assert 1 <= len(calls) <= (os.cpu_count() or 1), "it is not called again"


#: A study of many points, which takes about a second to read.
MANY = json.dumps(
    {"grids": [{"scheme": "pagemap", "set": {"gc_free_blocks": [*range(1, 1001)], "gc_garbage_percent": [*range(10)]}}]}
)


@pytest.mark.parametrize("work", ["replay", "study"])
def test_other_threads_run_meanwhile(work: str, large: bimetal.Trace) -> None:
    jobs: dict[str, Callable[[], object]] = {
        "replay": lambda: bimetal.replay(large, "chang", repeat=10),
        "study": lambda: _core.Sweep(MANY, True, ".", None, False).left(),
    }
    done = threading.Event()

    def run() -> None:
        jobs[work]()
        done.set()

    worker = threading.Thread(target=run)
    seen = [time.monotonic()]
    worker.start()
    while not done.wait(0.001):
        seen.append(time.monotonic())
    worker.join()
    assert max(after - before for before, after in itertools.pairwise(seen)) < (seen[-1] - seen[0]) / 2
