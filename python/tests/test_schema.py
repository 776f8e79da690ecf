"""Records have the fields that the command line's JSON schemas have."""

import json
import subprocess
import types
import typing
from typing import Any

import pytest
from conftest import BINARY

import bimetal
from bimetal._record import Record, members

RECORDS: list[tuple[str, type[Record]]] = [
    ("compare", bimetal.Comparison),
    ("replay", bimetal.Replay),
    ("list-schemes", bimetal.Scheme),
    ("list-chips", bimetal.Chip),
    ("list-drives", bimetal.Drive),
    ("list-devices", bimetal.Preset),
    ("list-formats", bimetal.Format),
    ("list-workloads", bimetal.Workload),
    ("list-papers", bimetal.Paper),
]


def resolved(schema: Any, root: Any) -> Any:
    """Return what a schema stands for, where it is not null."""
    if "$ref" in schema:
        return resolved(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    for one in schema.get("anyOf", []):
        if one.get("type") != "null":
            return resolved(one, root)
    return schema


def hold(record: type[Record], schema: Any, root: Any, where: str) -> None:
    """Hold the fields of a record, and of the records in it, against a schema."""
    fields = {member.key: member for member in members(record)}
    assert fields.keys() == schema["properties"].keys(), where
    for key, member in fields.items():
        inner = resolved(schema["properties"][key], root)
        kinds = [member.hint, *typing.get_args(member.hint)]
        if typing.get_origin(member.hint) is tuple and "items" in inner:
            inner = resolved(inner["items"], root)
        for kind in kinds:
            if isinstance(kind, type) and not isinstance(kind, types.GenericAlias) and issubclass(kind, Record):
                hold(kind, inner, root, f"{where}.{key}")


@pytest.mark.parametrize(("output", "record"), RECORDS)
def test_records_are_those_of_the_schema(output: str, record: type[Record]) -> None:
    done = subprocess.run([str(BINARY), "schema", output], check=True, capture_output=True, text=True)
    root = json.loads(done.stdout)
    schema = resolved(root["items"], root) if output.startswith("list-") else root
    hold(record, schema, root, output)
