"""An exception for each kind of error. Messages are those of the command line: the problem, its place, the remedy.

An option in a message is shown as the argument of the same name: ```--repeat 4``` as ```repeat=4```.
"""

from __future__ import annotations

import inspect
import operator
import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_OPTIONS = re.compile(r"`(?P<options>--[a-z][^`]*)`")
_OPTION = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)(?:[ =](?P<value>(?!--)[^ ]+))?")
_LIST = re.compile(r"`bimetal list (?P<name>[a-z]+)`")


def in_python(message: str) -> str:
    """Return a message of the command line with its options as arguments, and its lists as functions."""

    def arguments(span: re.Match[str]) -> str:
        return "`" + ", ".join(map(_argument, _OPTION.finditer(span["options"]))) + "`"

    return _LIST.sub(r"`bimetal.\g<name>()`", _OPTIONS.sub(arguments, message))


def _argument(option: re.Match[str]) -> str:
    name, value = option["name"].replace("-", "_"), option["value"]
    if value is None:
        return name
    key, equals, of_key = value.partition("=")
    return f"{name}={{'{key}': {_literal(of_key)}}}" if equals else f"{name}={_literal(value)}"


def _literal(value: str) -> str:
    """Return a number, or a placeholder such as ``N``, as it is, and another value as a string."""
    return value if value.isupper() or re.fullmatch(r"-?\d+(\.\d+)?", value) else f"'{value}'"


class _InPython:
    """An exception with a message of the command line."""

    def __str__(self) -> str:
        return in_python(super().__str__())


class BimetalError(_InPython, Exception):
    """Base of every exception of this package."""


class TraceError(BimetalError, ValueError):
    """A trace cannot be read, decoded or made from columns."""


class DeviceError(BimetalError, ValueError):
    """A device is unknown or invalid."""


class SchemeError(BimetalError, ValueError):
    """A scheme is unknown, cannot run on the device, or has an error in its Python code."""


class SettingError(BimetalError, ValueError):
    """A setting is unknown, or its value is invalid."""


class WorkloadError(BimetalError, ValueError):
    """A workload is unknown or cannot be generated."""


class FitError(BimetalError, ValueError):
    """No generator can be fitted to the trace."""


class PaperError(BimetalError, ValueError):
    """A paper, or a figure or trace of a paper, is unknown."""


class StudyError(BimetalError, ValueError):
    """A study is invalid."""


class AdviceError(BimetalError, ValueError):
    """Advice is impossible: no goal, no candidate device, wrong prices."""


class ResultsError(BimetalError):
    """A results file is of another kind or version, is damaged or is in use."""


class DoesNotFitError(BimetalError, ValueError):
    """The trace touches more bytes than the device holds."""


# `MemoryError` comes first, because it has its own `__new__`, which libraries such as `distributed` call to unpickle.
class InsufficientMemoryError(MemoryError, BimetalError):
    """The work needs more memory than is available."""


class BimetalWarning(_InPython, UserWarning):
    """A caveat about the figures."""


def warn(text: str) -> None:
    """Issue a warning of the line that called this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, BimetalWarning, stacklevel=level)


def text_of(path: str | os.PathLike[str], kind: type[BimetalError]) -> str:
    """Return the text of a file; bytes that are no text are an error of this kind."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise kind(f"{os.fspath(path)}: byte {error.start} is not UTF-8: it is no text file") from None


def check_path(kind: type[BimetalError], **values: Any) -> None:
    """Refuse a named value that is no path."""
    for name, value in values.items():
        if not isinstance(value, str | os.PathLike):
            raise kind(f"`{name}` is {value!r}: it is a path, as a text or a `pathlib.Path`")


def check_progress(progress: Any) -> None:
    """Refuse a function of progress that cannot be called."""
    if progress is not None and not callable(progress):
        raise SettingError(f"`progress` is {progress!r}: it is a function of two numbers")


def is_truth(value: object) -> bool:
    """Return whether a value is true or false; the type of NumPy's values has the same name."""
    return type(value).__name__ == "bool"


def check_truth(kind: type[BimetalError], **values: Any) -> None:
    """Refuse a named value that is neither true nor false."""
    for name, value in values.items():
        if not is_truth(value):
            raise kind(f"`{name}` is {value!r}: it is `True` or `False`")


def check_whole(
    kind: type[BimetalError], least: int, most: int = 2**64 - 1, *, or_none: bool = True, **values: Any
) -> None:
    """Refuse a named value that is no whole number within these limits, and ``None`` unless it is allowed."""
    for name, value in values.items():
        if or_none and value is None:
            continue
        try:
            number = operator.index(value)
        except TypeError:
            raise kind(f"`{name}` is {value!r}: it is a whole number") from None
        if number < least:
            raise kind(f"`{name}` is {number}: it is at least {least}")
        if number > most:
            raise kind(f"`{name}` is {number}: it is at most {most}")


def list_of(kind: type[BimetalError], name: str, values: Any) -> list[Any]:
    """Return a named text as a list of one, and several values as a list; refuse other values."""
    if isinstance(values, str):
        return [values]
    if not isinstance(values, Iterable):
        raise kind(f"`{name}` is {values!r}: it is a text or a list of texts")
    check_order(kind, **{name: values})
    return list(values)


def check_order(kind: type[BimetalError], **values: Any) -> None:
    """Refuse a named set: its order, and with it the results, would differ from run to run."""
    for name, value in values.items():
        if isinstance(value, set | frozenset):
            raise kind(f"`{name}` is a set, which has no order; hint: a list")


def check_text(kind: type[BimetalError], *, or_none: bool = True, **values: Any) -> None:
    """Refuse a named value that is no text, and ``None`` unless it is allowed."""
    for name, value in values.items():
        if not isinstance(value, str) and not (or_none and value is None):
            raise kind(f"`{name}` is {value!r}: it is a text")
