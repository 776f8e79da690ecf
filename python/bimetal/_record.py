"""Records: frozen dataclasses that mirror the JSON of the command line, field by field."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping
from typing import Any, Self

from bimetal._device import Device
from bimetal._errors import BimetalError, in_python

#: Metadata of a field that the JSON leaves out if it is empty.
OMITTED = {"omitted": True}


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A field of a record."""

    #: Its name in JSON. The attribute has a trailing underscore if the name is a keyword of Python.
    key: str
    attribute: str
    hint: Any
    #: Whether the JSON leaves it out if it is empty.
    omitted: bool


#: Cached fields of records, because resolving their types is slow.
_MEMBERS: dict[type[Any], tuple[Member, ...]] = {}


def members(record: type[Any]) -> tuple[Member, ...]:
    """Return the fields of a record, in order."""
    if record not in _MEMBERS:
        hints = typing.get_type_hints(record)
        _MEMBERS[record] = tuple(
            Member(field.name.removesuffix("_"), field.name, hints[field.name], "omitted" in field.metadata)
            for field in dataclasses.fields(record)
        )
    return _MEMBERS[record]


def _read(hint: Any, value: Any, where: str) -> Any:
    """Convert JSON to a value of the type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        kinds = [kind for kind in arguments if kind is not types.NoneType]
        return value if value is None or len(kinds) > 1 else _read(kinds[0], value, where)
    if origin is tuple:
        if arguments[-1] is ...:
            return tuple(_read(arguments[0], item, where) for item in value)
        return tuple(_read(a, item, where) for a, item in zip(arguments, value, strict=True))
    if origin is dict:
        return {key: _read(arguments[1], item, where) for key, item in value.items()}
    if hint is Device:
        return Device._from_dict(value)
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint._from_dict(value, where)
    return float(value) if hint is float else value


def _write(value: Any) -> Any:
    """Convert a value to JSON."""
    match value:
        case Record() | Device():
            return value.to_dict()
        case tuple():
            return [_write(item) for item in value]
        case dict():
            return {key: _write(item) for key, item in value.items()}
        case _:
            return value


@dataclasses.dataclass(frozen=True)
class Record:
    """A part of a result."""

    def __init_subclass__(cls) -> None:
        """Add the attributes of an extended record to the documentation of its subclass, so that ``help`` has them."""
        base, heading = cls.__mro__[1], "\n\nAttributes\n"
        if base is not Record and cls.__doc__ and base.__doc__:
            attributes = inspect.cleandoc(base.__doc__).partition(heading)[1:]
            cls.__doc__ = inspect.cleandoc(cls.__doc__) + "".join(attributes)

    @classmethod
    def _from_dict(cls, value: Mapping[str, Any], where: str = "") -> Self:
        """Read the output of :meth:`to_dict`; refuse missing and unknown fields."""
        where = f"{where}.{cls.__name__}".lstrip(".")
        if unknown := value.keys() - {member.key for member in members(cls)}:
            raise TypeError(f"{where} has no field {sorted(unknown)}")
        if missing := {member.key for member in members(cls) if not member.omitted} - value.keys():
            raise TypeError(f"{where}: no {sorted(missing)} in the JSON")
        given = (member for member in members(cls) if member.key in value)
        return cls(**{member.attribute: _read(member.hint, value[member.key], where) for member in given})

    def to_dict(self) -> dict[str, Any]:
        """Return the object that the command line writes with ``--json``: dictionaries, lists, numbers and texts."""
        values = ((member, getattr(self, member.attribute)) for member in members(type(self)))
        return {member.key: _write(value) for member, value in values if value or not member.omitted}


@dataclasses.dataclass(frozen=True, repr=False)
class Made(Record):
    """A record with state beside its fields: what is printed of it, and the Rust object from which pages are made."""

    def _add(self, in_words: str | None = None, **state: Any) -> None:
        """Add this state. The field ``in_words`` has texts, whose options become arguments."""
        self.__dict__.update(state)
        if in_words is not None:
            texts = getattr(self, in_words)
            self.__dict__.update({"_texts_of_json": {in_words: texts}, in_words: tuple(map(in_python, texts))})

    def _state(self, name: str) -> Any:
        """Return this state.

        Raises :class:`BimetalError` if there is none: a pickled object has left the Rust object behind, and one that
        ``dataclasses.replace`` has made has only fields.
        """
        if name in self.__dict__:
            return self.__dict__[name]
        kind = type(self).__name__
        if "_command" in self.__dict__:
            raise BimetalError(f"no page can be made of a `{kind}` from another process; hint: make the page there")
        raise BimetalError(
            f"a `{kind}` with replaced fields has no printed form, page or plot; hint: take those of the original one"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the object that the command line writes with ``--json``. Its texts have options, not arguments."""
        texts: dict[str, tuple[str, ...]] = self.__dict__.get("_texts_of_json", {})
        return super().to_dict() | {name: list(values) for name, values in texts.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the Rust object when it is pickled: it is large, and belongs to this process."""
        return {name: value for name, value in self.__dict__.items() if name != "_core"}

    def __copy__(self) -> Self:
        """Copy it with its state."""
        return self._copied(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy it with its state. The Rust object never changes, so copies share it."""
        copied = {name: copy.deepcopy(value, memo) for name, value in self.__getstate__().items()}
        return self._copied({name: copied.get(name, value) for name, value in self.__dict__.items()})

    def _copied(self, attributes: Mapping[str, Any]) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(attributes)
        return made
