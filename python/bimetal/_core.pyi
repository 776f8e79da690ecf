import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "VERSION",
    "Advice",
    "Comparison",
    "Media",
    "Reproduction",
    "Request",
    "Rows",
    "Sweep",
    "Trace",
    "advise_devices",
    "check_scheme",
    "chips",
    "compare_schemes",
    "device_file",
    "device_from_json",
    "device_json",
    "device_preset",
    "devices",
    "drives",
    "formats",
    "papers",
    "reproduce",
    "reproduce_on",
    "run_point",
    "schemes",
    "sweep",
    "workloads",
]

VERSION: Final[str]

_Table = tuple[list[str], list[list[str]]]
_Settings = Sequence[tuple[str, str]]
_Class = tuple[str, str, type]
_Cause = Literal["host", "gc", "fold", "migrate_up", "migrate_down", "wear_level", "scan", "meta"]

@final
class Trace:
    @staticmethod
    def open(
        paths: Sequence[str | os.PathLike[str]],
        format: str | None,
        time_unit: str | None,
        columns: str | None,
        objects: str | None,
        action: str | None,
        volumes: Sequence[int] | None,
        limit: int | None,
    ) -> Trace: ...
    @staticmethod
    def sample(limit: int | None) -> Trace: ...
    @staticmethod
    def from_columns(
        name: str,
        time_ns: npt.NDArray[np.uint64],
        op: npt.NDArray[np.uint64],
        sector: npt.NDArray[np.uint64],
        sectors: npt.NDArray[np.uint64],
        handle: npt.NDArray[np.uint64] | None,
    ) -> Trace: ...
    @staticmethod
    def from_table(
        name: str,
        columns: str | None,
        time_unit: str | None,
        names: Sequence[tuple[str, str | None]],
        cells: Callable[[int, str], npt.NDArray[Any] | tuple[list[str], npt.NDArray[np.uint64]]],
    ) -> Trace: ...
    @staticmethod
    def generate(workload: str, settings: _Settings, seed: int) -> Trace: ...
    def like(self, settings: _Settings, seed: int) -> Trace: ...
    def __len__(self) -> int: ...
    def facts(self) -> str: ...
    def warnings(self) -> list[str]: ...
    def profile(self, curve_points: int, sample: float | None) -> tuple[str, list[tuple[str, str, _Table]]]: ...
    def columns(
        self,
    ) -> tuple[
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint8],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint8] | None,
    ]: ...

@final
class Comparison:
    def json(self) -> str: ...
    def html(self, command: str) -> str: ...
    def verdict(self) -> list[str]: ...
    def headline(self) -> _Table: ...
    def lines(self) -> list[str]: ...
    def remarks(self) -> list[str]: ...
    def order(self) -> list[int]: ...
    def operations(self) -> list[_Table]: ...
    def wear(self) -> list[_Table]: ...

@final
class Request:
    """A request of the host."""

    @property
    def number(self) -> int:
        """How many requests the scheme was asked to serve before, also in earlier passes of the trace."""
    @property
    def op(self) -> Literal["read", "write", "trim"]:
        """What the host asks for."""
    @property
    def sector(self) -> int:
        """The first 512-byte sector."""
    @property
    def sectors(self) -> int:
        """The number of sectors."""
    @property
    def handle(self) -> int:
        """The placement handle given by the host; 0 if it gives none."""

@final
class Media:
    """The flash of a device, as a scheme in Python uses it.

    Operations take place in the order of the calls, when the method of the scheme has returned. What is against the
    rules of flash or would lose data is a :class:`SchemeError` at once. Pages of a block are programmed in order, each
    once per erase; all blocks are erased at the start. Each operation has a cause, by which results tell operations
    apart.
    """

    def program(self, block: int, *, stream: int = 0) -> int:
        """Program the page that the host writes, in the next free page of a block. Return its place.

        ``stream`` is a number below 16 by which results tell apart what shares blocks.
        """
    def pad(self, block: int, *, cause: _Cause = "gc", stream: int = 0) -> int:
        """Program a page that holds nothing of the host's: a gap, or a table of the scheme. Return its place."""
    def copy(self, place: int, block: int, *, cause: _Cause = "gc", stream: int = 0) -> int:
        """Copy the page at a place to the next free page of a block, also of another region. Return the new place.

        The copy is the one that counts as valid from here on. Both can be read until their blocks are erased.
        """
    def read(self, place: int, *, cause: _Cause = "host") -> None:
        """Read the page at a place: for the host, or with another cause for the scheme."""
    def erase(self, block: int, *, slc: bool = False, cause: _Cause = "gc") -> None:
        """Erase a block, which is programmed in SLC mode afterwards or in its native one."""
    def place(self, page: int) -> int | None:
        """Return where the valid copy of a page of the host is; ``None`` if it has no data."""
    def page(self, place: int) -> int | None:
        """Return the page whose newest data a place holds; ``None`` if its content is old or none of the host's."""
    def places(self, block: int) -> list[int]:
        """Return the places of a block's valid pages, in order."""
    def valid(self, block: int) -> int:
        """Return the number of a block's valid pages."""
    def room(self, block: int) -> int:
        """Return the number of pages that can be programmed before the block is full, in its present mode."""
    def erases(self, block: int) -> int:
        """Return how often the scheme has erased a block."""
    @property
    def request(self) -> Request | None:
        """The request of the host that is being served; ``None`` while the device is filled or idle."""

@final
class Reproduction:
    def json(self) -> str: ...
    def warnings(self) -> list[str]: ...
    def html(self, title: str, command: str) -> str: ...

@final
class Sweep:
    def __new__(cls, text: str, is_json: bool, folder: str, results: str | None, restart: bool) -> Sweep: ...
    def __len__(self) -> int: ...
    def left(self) -> list[tuple[int, str]]: ...
    def keep(self, at: int, row: str) -> None: ...
    def lose(self, at: int, what: str) -> None: ...
    def end(self) -> Rows: ...

@final
class Rows:
    def __new__(cls, title: str, rows: str, left_out: str) -> Rows: ...
    def title(self) -> str: ...
    def json(self) -> str: ...
    def left_out(self) -> str: ...
    def front(self, goals: Sequence[str]) -> list[int]: ...
    def groups(self) -> list[list[int]]: ...
    def labels(self) -> list[str]: ...
    def columns(self) -> list[tuple[str, str, list[Any]]]: ...
    def csv(self) -> bytes: ...
    def table_json(self) -> bytes: ...
    def parquet(self) -> bytes: ...
    def html(self, command: str) -> str: ...

@final
class Advice:
    def json(self) -> str: ...
    def html(self, command: str) -> str: ...
    def response(self) -> tuple[str, str]: ...
    def goals(self) -> list[str]: ...
    def searched(self) -> str: ...
    def facts(self) -> list[str]: ...
    def binding(self) -> list[str]: ...
    def drives(self) -> list[str]: ...
    def chosen(self) -> _Table: ...
    def front(self) -> _Table: ...

def advise_devices(
    trace: Trace,
    goals: Sequence[tuple[str, str]],
    writes_per_day: str | None,
    chips: Sequence[str],
    schemes: Sequence[str],
    capacity: str | None,
    disk: str | None,
    channels: int | None,
    dies_per_channel: int | None,
    year: int | None,
    prices: tuple[str, str] | None,
    price: Sequence[tuple[str, float]],
    arrivals: str | None,
    load: str | None,
    repeat: int | None,
    measure: int | None,
    simulations: int | None,
    jobs: int,
    drives: Sequence[str],
    progress: Callable[[int, int], object] | None,
) -> Advice: ...
def run_point(point: str, folder: str) -> str: ...
def sweep(
    text: str,
    is_json: bool,
    folder: str,
    results: str | None,
    restart: bool,
    jobs: int,
    progress: Callable[[int, int], object] | None,
) -> Rows: ...
def check_scheme(scheme: _Class, requests: int, seed: int) -> None: ...
def compare_schemes(
    trace: Trace,
    schemes: Sequence[str] | None,
    classes: Sequence[_Class],
    device: str | None,
    settings: _Settings,
    arrivals: str | None,
    repeat: int,
    measure: int,
    fill: str,
    intervals: int,
    seeds: int,
    jobs: int,
    progress: Callable[[int, int], object] | None,
) -> Comparison: ...
def reproduce(
    paper: str | None,
    figures: Sequence[str],
    quick: bool,
    traces: Sequence[tuple[str, Trace]],
    settings: _Settings,
    jobs: int,
    progress: Callable[[int, int], object] | None,
) -> Reproduction: ...
def reproduce_on(
    paper: str | None,
    traces: Sequence[Trace],
    settings: _Settings,
    jobs: int,
    progress: Callable[[int, int], object] | None,
) -> Reproduction: ...
def device_preset(name: str) -> str: ...
def device_file(text: str) -> str: ...
def device_json(text: str) -> str: ...
def device_from_json(text: str) -> str: ...
def schemes() -> str: ...
def chips() -> str: ...
def drives() -> str: ...
def devices() -> str: ...
def formats() -> str: ...
def workloads() -> str: ...
def papers() -> str: ...
