import os
from collections.abc import Sequence
from typing import Final, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "VERSION",
    "Comparison",
    "Reproduction",
    "Trace",
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
    "schemes",
    "workloads",
]

VERSION: Final[str]

_Table = tuple[list[str], list[list[str]]]
_Settings = Sequence[tuple[str, str]]

@final
class Trace:
    @staticmethod
    def open(
        paths: Sequence[str | os.PathLike[str]],
        format: str | None,
        time_unit: str | None,
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
    ) -> Trace: ...
    @staticmethod
    def generate(workload: str, settings: _Settings, seed: int) -> Trace: ...
    def like(self, settings: _Settings, seed: int) -> Trace: ...
    def __len__(self) -> int: ...
    def facts(self) -> str: ...
    def warnings(self) -> list[str]: ...
    def profile(self, curve_points: int, sample: float | None) -> str: ...
    def columns(
        self,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.uint32]]: ...

@final
class Comparison:
    def json(self) -> str: ...
    def html(self, command: str) -> str: ...
    def headline(self) -> _Table: ...
    def remarks(self) -> list[str]: ...
    def operations(self) -> list[_Table]: ...
    def wear(self) -> list[_Table]: ...

@final
class Reproduction:
    def json(self) -> str: ...
    def html(self, title: str, command: str) -> str: ...

def compare_schemes(
    trace: Trace,
    schemes: Sequence[str] | None,
    device: str | None,
    settings: _Settings,
    arrivals: str,
    repeat: int,
    measure: int,
    fill: bool,
    intervals: int,
    jobs: int,
) -> Comparison: ...
def reproduce(
    paper: str | None,
    figures: Sequence[str],
    quick: bool,
    traces: Sequence[tuple[str, Trace]],
    jobs: int,
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
