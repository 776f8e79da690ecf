"""Devices: the parts of a drive and its management scheme."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

from bimetal import _core
from bimetal._errors import DeviceError, SettingError, check_path, check_text, is_truth, text_of

#: The value of a setting.
Value = str | int | float | bool

#: Parameters of schemes and fields of the device, as for ``--set``: ``{"fast.capacity": "32MiB"}``.
Settings = Mapping[str, Value]


def settings_text(settings: Settings | None) -> list[tuple[str, str]]:
    """Settings in the form of the command line."""
    if settings is not None and not isinstance(settings, Mapping):
        raise SettingError(f"`set` is {settings!r}; it is a mapping such as {{'slow.spare': '7%'}}")
    items = (settings or {}).items()
    for name, _ in items:
        if not isinstance(name, str):
            raise SettingError(f"`set` has the name {name!r}: a name is a text")
    return [(key, str(value).lower() if is_truth(value) else str(value)) for key, value in items]


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """A device: regions of flash, optional disks, and the scheme that manages them.

    Made by :meth:`preset`, :meth:`open`, :meth:`from_toml` or :meth:`auto`. ``docs/devices.md`` describes device files.
    The keyword ``set`` of :func:`bimetal.replay` and :func:`bimetal.compare` changes single fields.
    """

    _file: str | None

    @staticmethod
    def preset(name: str) -> Device:
        """Return a device of :func:`bimetal.devices`, such as ``"chang-c3"``."""
        check_text(DeviceError, or_none=False, name=name)
        return Device(_core.device_preset(name))

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Device:
        """Read a device file."""
        check_path(DeviceError, path=path)
        try:
            return Device.from_toml(text_of(path, DeviceError))
        except DeviceError as error:
            raise DeviceError(f"{os.fspath(path)}: {error}") from None

    @staticmethod
    def from_toml(text: str) -> Device:
        """Read the text of a device file."""
        check_text(DeviceError, or_none=False, text=text)
        return Device(_core.device_file(text))

    @staticmethod
    def auto() -> Device:
        """Fit a device to the trace when it is run.

        All schemes get the same capacity, and those with fast flash the same budget for it.
        """
        return Device(None)

    @staticmethod
    def _from_dict(value: Mapping[str, Any]) -> Device:
        return Device(_core.device_from_json(json.dumps(value)))

    def to_toml(self) -> str:
        """Return the text of its device file."""
        if self._file is None:
            raise DeviceError("the device is fitted to the trace when it is run; hint: take `device` of a result")
        return self._file

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, as in the JSON of results."""
        value: dict[str, Any] = json.loads(_core.device_json(self.to_toml()))
        return value

    @property
    def name(self) -> str:
        """Its name; ``auto`` if it is fitted to the trace."""
        return "auto" if self._file is None else str(self.to_dict()["name"])

    @property
    def scheme(self) -> str | None:
        """Its default scheme; ``None`` if it has none, as a device for all schemes."""
        return None if self._file is None else self.to_dict().get("scheme")

    def __repr__(self) -> str:
        """Name and scheme."""
        return "Device.auto()" if self._file is None else f"<Device {self.name!r}, {self.scheme or 'any scheme'}>"
