"""Schemes in Python that loop: Ctrl-C and errors of others end them."""

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest
from test_scheme import Greedy, broken

import bimetal
from bimetal import Media, OwnScheme, SchemeError, Shape


def loops(self: object, media: Media, page: int) -> None:
    while True:
        pass


class Constructs(Greedy):  # type: ignore[misc, valid-type]
    """A scheme whose constructor does not end from a certain object on."""

    made = 0
    last = 0

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        Constructs.made += 1
        while Constructs.made > self.last:
            pass


def constructs(objects: int) -> type[OwnScheme]:
    Constructs.made = 0
    return type("Constructs", (Constructs,), {"name": "constructs", "last": objects})


@pytest.mark.parametrize(
    "work", ["replay", "compare", "check", "busy", "first object", "second object", "check object"]
)
def test_an_interrupt_ends_a_scheme_that_loops(work: str, trace: bimetal.Trace) -> None:
    jobs: dict[str, Callable[[], object]] = {
        "replay": lambda: bimetal.replay(trace, broken(loops)),
        "compare": lambda: bimetal.compare(trace, ["pagemap", broken(loops), Greedy], jobs=3),
        "check": lambda: bimetal.check_scheme(broken(loops)),
        "busy": lambda: bimetal.replay(trace, Greedy, repeat=100_000),
        "first object": lambda: bimetal.replay(trace, constructs(0)),
        "second object": lambda: bimetal.compare(trace, ["pagemap", constructs(1)], jobs=2),
        "check object": lambda: bimetal.check_scheme(constructs(3)),
    }
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        jobs[work]()
    timer.join()
    assert time.monotonic() - begun < 30, "all of it would take for ever"
    assert bimetal.replay(trace, Greedy).result.scheme == "greedy", "the name is free again"


def test_an_error_ends_another_scheme_that_loops(trace: bimetal.Trace) -> None:
    class Stuck(broken(loops)):  # type: ignore[misc]
        name = "stuck"

    class Fails(broken(lambda self, media, page: time.sleep(0.3) or media.erase(10**6))):  # type: ignore[misc]
        name = "fails"

    with pytest.raises(SchemeError, match="`fails`"):
        bimetal.compare(trace, [Stuck, Fails], jobs=2)
