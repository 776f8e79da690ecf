"""Devices: what a drive is made of and which scheme runs it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bimetal import _core
from bimetal._errors import DeviceError

#: What a setting can be.
Value = str | int | float | bool

#: Parameters of schemes and fields of the device, as ``--set`` takes them: ``{"fast.capacity": "32MiB"}``.
Settings = Mapping[str, Value]


def settings_text(settings: Settings | None) -> list[tuple[str, str]]:
    """Settings as the command line reads them."""
    items = (settings or {}).items()
    return [(key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in items]


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """A device: regions of flash, perhaps disks, and the scheme that runs them.

    Made by :meth:`preset`, :meth:`open`, :meth:`from_toml` or :meth:`auto`; ``docs/devices.md`` describes the files.
    The keyword ``set`` of :func:`bimetal.replay` and :func:`bimetal.compare` changes single fields.
    """

    _file: str | None

    @staticmethod
    def preset(name: str) -> Device:
        """Take a device of :func:`bimetal.devices`, such as ``"chang-c3"``."""
        return Device(_core.device_preset(name))

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Device:
        """Read a device file."""
        try:
            return Device.from_toml(Path(path).read_text(encoding="utf-8"))
        except DeviceError as error:
            raise DeviceError(f"{os.fspath(path)}: {error}") from None

    @staticmethod
    def from_toml(text: str) -> Device:
        """Read the text of a device file."""
        return Device(_core.device_file(text))

    @staticmethod
    def auto() -> Device:
        """Let a device be fitted to the trace, for each scheme one of the same capacity and price of its fast flash."""
        return Device(None)

    @staticmethod
    def _from_dict(value: Mapping[str, Any]) -> Device:
        return Device(_core.device_from_json(json.dumps(value)))

    def to_toml(self) -> str:
        """Write it as the text of a device file."""
        if self._file is None:
            raise DeviceError("the device is fitted to the trace when it is run; hint: take `device` of a result")
        return self._file

    def to_dict(self) -> dict[str, Any]:
        """All its fields, as results have them in JSON."""
        value: dict[str, Any] = json.loads(_core.device_json(self.to_toml()))
        return value

    @property
    def name(self) -> str:
        """Its name; ``auto`` where it is fitted to the trace."""
        return "auto" if self._file is None else str(self.to_dict()["name"])

    @property
    def scheme(self) -> str | None:
        """The scheme that runs it, unless another is asked for; none where it is fitted to the trace."""
        return None if self._file is None else str(self.to_dict()["scheme"])

    def __repr__(self) -> str:
        """Name and scheme."""
        return "Device.auto()" if self._file is None else f"<Device {self.name!r}, {self.scheme}>"
